"""Write croissant.json, a machine-readable description of a dataset or an output."""

import re
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from toolkit.command_options import CommandResult, Flag, absent
from toolkit.commands import _description
from toolkit.describe import croissant, splits, versions
from toolkit.describe.about import About, read_about
from toolkit.describe.model import Facts
from toolkit.errors import ConfigError, amount
from toolkit.stages.context import Context, Outcome
from toolkit.storage import globs, outputs, paths, store_of


class CroissantFile(CommandResult, kw_only=True):
    """The result of `croissant`.

    Attributes:
        document: Description, with --dry-run.
        path: Path of the file.
        due, reasons, raised: Part of the version that must be raised, why, and whether it has been.
        notes: Remarks on what the description lacks.
        fresh: True if the file is up to date, with --check.
    """

    document: dict[str, Any] = absent()
    path: str
    due: versions.Level
    reasons: list[str]
    raised: bool
    notes: list[str]
    fresh: bool = absent()


class Options(_description.DescriptionOptions, frozen=True, kw_only=True):
    """Options of ``toolkit croissant``.

    Attributes:
        spec: version of the Croissant specification (1.0)
        check: write nothing; exit status 1 if the file is out of date, or its version must be raised
    """

    EXAMPLES: ClassVar = (
        "toolkit croissant -c my/corpus.yaml about.version=1.1.0",
        "toolkit croissant -c my/corpus.yaml --of dataset --dry-run",
    )

    spec: Annotated[Literal["1.0", "1.1"] | None, Flag()] = None
    check: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """Write, print (--dry-run) or check (--check) ``croissant.json``."""
    about = read_about(_description.section(context))
    found_facts = _description.facts_of(context, options, about.examples)
    path = paths.join(found_facts.root, croissant.NAME)
    dry_run = options.dry_run or options.check
    output = None if dry_run else outputs.NamedOutput(path, "")
    goes = output and _description.is_replaced(found_facts, croissant.NAME, overwrite=options.overwrite)
    old = None if goes else _old(path)
    facts = _description.split(
        context, about, found_facts, dry_run=dry_run or old is not None
    )  # not before the version is right
    results = croissant.document(facts, about, options.spec or about.croissant)
    data = croissant.to_bytes(results)
    level, reasons = versions.due(old, results) if old else ("none", [])
    enough = versions.is_enough(old.get("version") if old else None, about.version, level)
    notes = [*_notes(about, facts), *([] if enough else [_raise(old or {}, level, reasons)])]
    result = CroissantFile(path=path, due=level, reasons=reasons, raised=enough, notes=notes)
    wrong = versions.fault(old, results) if old else ""
    if options.check:
        notes += [wrong] if wrong and enough else []
        result.fresh = fresh = old is not None and store_of(path).read(path) == data
        text = f"{path}: " + ("up to date" if fresh else "expected what the data are now; run `toolkit croissant`")
        return Outcome("\n".join([text, *notes]), result, exit_code=0 if fresh and enough and not wrong else 1)
    if wrong:
        raise ConfigError(f"{path}: {wrong}; raise it, or move the file away if it was never published")
    if output is None:
        result.document = results
        return Outcome(data.decode().rstrip("\n"), result, for_programs=True)
    if old is not None:
        _description.split(context, about, found_facts, dry_run=False)
    output.save(data)
    _description.note_origin(facts, croissant.NAME)
    splits.remove_others(facts.root, facts)
    sets = ", ".join(record.name for record in facts.records) or "none"
    text = f"{path}: {amount(len(facts.files), 'file')}, record sets: {sets}"
    if old:
        text += f"\nsince the last one: {level if level != 'none' else 'no change of the data or their description'}"
        text += "".join(f"\n  {reason}" for reason in reasons[:_SHOWN])
    return Outcome("\n".join([text, *(f"note: {note}" for note in notes)]), result)


_SHOWN = 10
_MANY = 2000
"""Files from which mlcroissant takes seconds to parse the list."""


def _old(path: str) -> dict[str, Any] | None:
    if not paths.exists(path):
        return None
    try:
        results = msgspec.json.decode(store_of(path).read(path), type=dict[str, Any])
        versions.due(results, results)
        versions.fault(results, results)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: expected a Croissant file that the toolkit wrote, got: {error}; move it away"
        ) from None
    except (TypeError, AttributeError, KeyError, re.error, IndexError):
        message = "expected a Croissant file that the toolkit wrote, got JSON of another shape; move it away"
        raise ConfigError(f"{path}: {message}") from None
    return results


def _raise(old: dict[str, Any], level: versions.Level, reasons: list[str]) -> str:
    before = str(old.get("version"))
    return (
        f"{level} is due, because {reasons[0]}: expected about.version {versions.raised(before, level)} or more, after "
        f"{before}"
    )


def _notes(about: About, facts: Facts) -> list[str]:
    notes = list(facts.notes)
    if len(facts.files) > _MANY:
        notes.append(f"{len(facts.files):,} files: mlcroissant takes long to read their list")
    for glob in about.live if isinstance(about.live, list) else ():
        if not any(globs.glob_regex(glob).match(file.path) for file in facts.files):
            notes.append(f"about.live: {glob!r} matches no file")
    for key, subject in (("citation", "how to cite the data"), ("version", "a version")):
        if not getattr(about, key):
            notes.append(f"about.{key}: not required, but readers warn where {subject} is missing")
    return notes
