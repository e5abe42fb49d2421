"""Locks of mixes: written behind a mix, and held against one before anything of it is written, and behind it."""

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec

from toolkit.commands.command_line.options import Configured, Flag, Stage
from toolkit.commands.mixing import editions, preparation, publishing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import ConfigError, ToolkitError
from toolkit.mix import lock, publish
from toolkit.mix.lock import Lock
from toolkit.mix.publish import Manifest
from toolkit.mix.settings import MixSettings
from toolkit.runs.executors import Task
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import absolute
from toolkit.storage.roots import note_roots


class Locking(Configured, Stage, frozen=True, kw_only=True):
    """Options of commands that publish an output."""

    lock: Annotated[
        str | None,
        Flag(
            "write a lock: digests of all that the output was made from, and of its parts (without "
            "FILE: OUTPUT.lock.json)",
            metavar="FILE",
            alone="",
        ),
    ] = None
    locked: Annotated[
        str | None,
        Flag(
            "make the output only if all is as this lock says; otherwise name what differs, and write nothing",
            metavar="FILE",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.lock is not None and self.dry_run:
            raise ConfigError("expected --lock without --dry-run: a lock is of an output")
        if self.lock and "=" in self.lock and not self.lock.endswith(".json"):
            raise ConfigError(f"expected the path of a file after --lock, got {self.lock}; put settings before it")
        for option, given in (("lock", self.lock), ("locked", self.locked)):
            if given is not None and self.shard is not None:
                raise ConfigError(
                    f"expected --{option} without --shard; give it to the last step, which publishes the output"
                )


def begin(context: Context, options: Locking) -> dict[str, NamedOutput]:
    """Check, before anything is written, that the mix and its editions are what their locks describe.

    Return the locks to write, by edition.

    Raises:
        ConfigError: if they are not, with each difference; if a lock cannot be written, or there is none.
    """
    if options.lock is None and options.locked is None:
        return {}
    note_roots(os.path.dirname(path) or "." for path in (options.lock, options.locked) if path)
    if context.is_dolma:
        raise ConfigError("--lock and --locked take configurations of our own form, this one is of Dolma's")
    locks = {"": _output(context, options, "")}
    found = _differences(context, options, "")
    for name, edition in editions.of(context).items():
        with edition:
            locks[name] = _output(edition, options, name)
            found += [f"edition {name}: {line}" for line in _differences(edition, options, name)]
    if found:
        said = f"{options.locked}: expected what the lock describes, got something else; nothing was written:"
        raise ConfigError("\n  ".join([said, *found, "make it as it was, or choose another lock"]))
    return {name: lock for name, lock in locks.items() if lock}


def _output(context: Context, options: Locking, edition: str) -> NamedOutput | None:
    """Return the lock to write, if there is one."""
    if options.lock is None:
        return None
    settings = preparation.settings_of(context, writes=False)
    path, output = _path(settings, options.lock, edition), absolute(settings.output.path)
    if absolute(path).startswith(f"{output}/"):
        raise ConfigError(f"{path}: expected a file outside the output {output}, which holds only its own files")
    return NamedOutput(path, "--lock")


def _differences(context: Context, options: Locking, edition: str) -> list[str]:
    settings = preparation.settings_of(context, writes=False)
    if options.locked is None:
        return []
    path = _path(settings, options.locked, edition)
    wanted = lock.load(path)
    prepared = preparation.prepare(context, settings)
    results = context.run("lock", lock.input_of, [Task(work.name, work, key=work.key) for work in prepared.works])
    broken = [*prepared.unreadable.values(), *(each.failure.message for each in results if each.failure)]
    if broken:
        raise ToolkitError(
            "\n  ".join([f"{path}: the shards could not be compared with it; nothing was written:", *broken])
        )
    manifest = publishing.begun(prepared, [each.value for each in results if each.value])
    found = msgspec.structs.replace(_lock(settings, manifest), omitted=wanted.omitted)
    return lock.differences(wanted, found)


def finish(
    context: Context, options: Locking, outcome: Outcome, locks: Mapping[str, NamedOutput], edition: str = ""
) -> None:
    """Compare what was published with its lock, and write the lock that was asked for.

    Args:
        context: of the mix, or of an edition.
        options: of the command.
        outcome: of it, to which this is added: parts that differ are failures.
        locks: the result of `begin`.
        edition: its name.
    """
    if not outcome.data.get("published") or (options.lock is None and options.locked is None):
        return
    settings = context.mix
    manifest = publish.load_manifest(settings.output.path)
    assert manifest is not None, "it was just published"
    made = _lock(settings, manifest)
    if options.locked is not None:
        path = _path(settings, options.locked, edition)
        wanted = lock.load(path)
        if broken := lock.part_differences(wanted, made):
            outcome.failures += [f"{settings.output.path}: {line}, by {path}" for line in broken]
            outcome.exit_code = 1
        else:
            outcome.text += f"\n\n{settings.output.path} is what {path} describes"
    if output := locks.get(edition):
        lock.save(output, made)
        outcome.text += f"\n\nlock -> {output.path}"
        outcome.data["lock"] = output.path


def _lock(settings: MixSettings, manifest: Manifest) -> Lock:
    return lock.lock_of(manifest, concatenates=settings.writer().CONCATENATES)


def _path(settings: MixSettings, given: str, edition: str) -> str:
    """Return the path of a lock: beside the output if none is given; that of an edition has its name in it."""
    if not given:
        return f"{settings.output.path.rstrip('/')}.lock.json"
    stem, ending = os.path.splitext(given)
    return f"{stem}.{edition}{ending}" if edition else given
