"""``toolkit croissant``: describes a dataset or an output in the Croissant format."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from toolkit import config, validating
from toolkit.commands import Context, Outcome
from toolkit.config import Config, Source
from toolkit.describing import croissant, jsonld, looking, of_dataset, of_output, splits, versions
from toolkit.describing.about import About, read_about
from toolkit.describing.facts import Facts
from toolkit.errors import ConfigError, ToolkitError
from toolkit.executors import R, Report, Task
from toolkit.mixing import publish
from toolkit.mixing import settings as mix_settings
from toolkit.paths import Dataset, exists, is_folder, join
from toolkit.stores import store_of
from toolkit.stores.options import set_options
from toolkit.streams import write_file


def run(context: Context) -> Outcome:
    """Writes ``croissant.json``, or prints it (--dry-run), or says whether it is up to date (--check)."""
    about = read_about(_section(context))
    facts = _facts(context, about)
    if about.splits:
        dry_run = context.options.dry_run or context.options.check
        works = splits.plan(facts, about.splits, context.config.max_document_bytes, about.examples, dry_run=dry_run)
        facts = splits.added(facts, about.splits, _run(context, "split", splits.write, works))
    made = croissant.document(facts, about, context.options.spec or about.croissant)
    data = jsonld.to_bytes(made)
    path = join(facts.root, croissant.NAME)
    old = _old(path)
    level, reasons = versions.due(old, made) if old else ("none", [])
    enough = versions.is_enough(old.get("version") if old else None, about.version, level)
    notes = [*_notes(about, facts), *([] if enough else [_raise(old or {}, level, reasons)])]
    found: dict[str, Any] = {"path": path, "due": level, "reasons": reasons, "raised": enough, "notes": notes}
    if context.options.check:
        fresh = old is not None and store_of(path).read(path) == data
        text = f"{path}: " + ("up to date" if fresh else "expected what the data are now; run `toolkit croissant`")
        return Outcome("\n".join([text, *notes]), found | {"fresh": fresh}, exit_code=0 if fresh and enough else 1)
    if context.options.dry_run:
        return Outcome(data.decode().rstrip("\n"), {"document": made, **found})
    write_file(path, data)
    splits.remove_others(facts.root, facts)
    sets = ", ".join(record.name for record in facts.records) or "none"
    text = f"{path}: {len(facts.files)} files, record sets: {sets}"
    if old:
        text += f"\nsince the last one: {level if level != 'none' else 'no change of the data or their description'}"
        text += "".join(f"\n  {reason}" for reason in reasons[:_SHOWN])
    return Outcome("\n".join([text, *(f"note: {note}" for note in notes)]), found)


W = TypeVar("W", looking.Work, splits.Work)

_SHOWN = 10
_MANY = 2000
"""Files from which mlcroissant takes seconds to parse the list."""


def _section(context: Context) -> Source:
    """The section ``about:``; without a configuration, what the command line gives of it, and of all others."""
    if context.options.config is not None:
        return context.source.at("about") if context.has("about") else Source({}, context.options.config)
    source = Source({}, "command line")
    for assignment in context.options.overrides:
        config.override(source, assignment)
    context.config = config.convert(source, Config)
    set_options(context.config.storage)
    return source.at("about") if source.value.get("about") else source


def _facts(context: Context, about: About) -> Facts:
    options: dict[str, Any] = {
        "first": context.options.first,
        "examples": about.examples,
        "max_bytes": context.config.max_document_bytes,
    }

    def looks(works: list[looking.Work]) -> list[looking.Looked]:
        return _run(context, "look", looking.look, works)

    if context.options.targets:
        target = context.options.targets[0].rstrip("/")
        if context.options.targets[1:]:
            raise ConfigError(f"expected one path, got {', '.join(context.options.targets)}")
        of = context.options.of or _kind(target)
        if of == "output":
            return of_output.output_facts(target, [], looks, **options)
        return of_dataset.dataset_facts(
            Dataset(join(target, "documents"), join(target, "attributes")), looks, **options
        )
    of = context.options.of or ("output" if context.has("mix") else "dataset")
    if of == "dataset":
        found = of_dataset.dataset_facts(context.dataset, looks, **options)
        if unfinished := context.whole(context.dataset, context.dataset.shards()):
            found.notes.append(unfinished.strip())
        return found
    settings = mix_settings.read_section(context.section("mix"), context.folder, lambda: context.dataset)
    folder = settings.output.path
    if publish.load_manifest(folder) is None:
        raise ConfigError(f"{folder}: expected the output of a mix, got none; run `toolkit mix`")
    return of_output.output_facts(folder, [stream.dataset for stream in settings.streams], looks, **options)


def _run(context: Context, what: str, function: Callable[[W, Report], R], works: list[W]) -> list[R]:
    """What a function gives for each file; an error if it fails for one."""
    results = context.run(what, function, [Task(work.path, work) for work in works], "files")
    if failed := [result.failure.message for result in results if result.failure]:
        raise ToolkitError("\n".join(failed))
    return [result.value for result in results if result.value is not None]


def _kind(target: str) -> str:
    """Whether a path is that of an output, or of a dataset."""
    if publish.load_manifest(target):
        return "output"
    if is_folder(join(target, "documents")):
        return "dataset"
    if is_folder(target) and (validating.is_output(target) or validating.data_files(target)):
        return "output"
    raise ConfigError(f"{target}: expected an output, or a dataset with a folder `documents`, got neither")


def _old(path: str) -> dict[str, Any] | None:
    if not exists(path):
        return None
    try:
        found = msgspec.json.decode(store_of(path).read(path), type=dict[str, Any])
        versions.due(found, found)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: expected a Croissant file of ours, got: {error}; move it away") from None
    return found


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
    for key, what in (("citation", "how to cite the data"), ("version", "a version")):
        if not getattr(about, key):
            notes.append(f"about.{key}: not required, but readers warn where {what} is missing")
    return notes
