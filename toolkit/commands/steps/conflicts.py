"""Checks of the sections of a configuration against each other, before the first one begins."""

from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.commands import ingest
from toolkit.commands.mixing import preparation, publishing
from toolkit.commands.steps.context import Context
from toolkit.dedup import section as dedup_section
from toolkit.errors import ConfigError
from toolkit.ingest import section as ingest_section
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.records import sets as records
from toolkit.runs import claims
from toolkit.storage.paths import check_writable, join
from toolkit.tag import declared, run


class Faults:
    """Collects what is wrong, section by section."""

    def __init__(self) -> None:
        self._messages: dict[str, None] = {}
        """Each once: what is wrong with the dataset is met by every section."""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a ConfigError and go on behind the block."""
        try:
            yield
        except ConfigError as error:
            self._messages[str(error)] = None

    def __bool__(self) -> bool:
        return bool(self._messages)

    def tell(self) -> None:
        """Raise ConfigError if anything is wrong, a line (or more) each."""
        if self._messages:
            raise ConfigError("\n".join(self._messages))


def check(context: Context, *, shares_output: bool = False) -> ingest.PlannedIngest | None:
    """Check the sections against each other, what is on disk, and other runs; write nothing.

    Args:
        context: of the configuration.
        shares_output: whether other runs of the same mix may work on the output at the same time.

    Returns:
        What the ingest comes to, if there is one.

    Raises:
        ConfigError: with all that is wrong.
    """
    found = Faults()
    inputs: ingest.PlannedIngest | None = None
    sets: dict[str, records.SetSchema] = {}
    made: dict[str, records.SetSchema] = {}
    if context.has("ingest"):
        with found.noted():
            inputs = ingest.plan(context)
            sets |= ingest_section.set_schemas(inputs.entries)
    if context.has("tag"):
        with found.noted():
            overwrite = context.options.overwrite
            made = declared.prepare(context.tags, context.dataset, sets, overwrite=overwrite, write=False)
            sets |= made
    duplicates: dedup_section.Plan | None = None
    if context.has("dedup") and not found:  # or else sets are not known
        with found.noted():
            duplicates = dedup_section.read_section(context.section("dedup"), context.dataset, sets)
            dedup_section.prepare(duplicates, context.dataset, overwrite=context.options.overwrite, write=False)
            sets |= duplicates.schemas
    settings: MixSettings | None = None
    if context.has("mix"):
        complete = not found  # or else sets are not known, and what is said of them would be wrong
        with found.noted():
            settings = preparation.settings_of(context)
            preparation.check_output(settings)
            _check_limit(context, settings)
            if complete:
                preparation.check(context, settings, sets)
    if context.has_dataset or any(map(context.has, ("ingest", "tag", "dedup"))):
        with found.noted():
            dataset = context.dataset
            for root in (dataset.bookkeeping, *([dataset.documents] if context.has("ingest") else [])):
                check_writable(root, context.options.config or "")
    found.tell()
    if not context.options.dry_run:
        holds = (ingest_section.holds(inputs.entries) if inputs else {}) | (
            run.holds(run.settings_of(made)) if made else {}
        )
        holds |= dedup_section.holds(duplicates) if duplicates else {}
        _check_claims(context, holds, settings, shares_output=shares_output)
    return inputs


def _check_limit(context: Context, settings: MixSettings) -> None:
    """Do what `publishing.check_limit` does, for the documents that are there already."""
    if context.options.limit is None or context.options.shard is not None:
        return
    known = 0
    for stream in settings.streams:
        try:
            known += len(stream.dataset.shards())
        except ConfigError:
            continue  # there are none yet
    publishing.check_limit(context, settings.output.path, min(context.options.limit, known), known)


def _check_claims(
    context: Context,
    holds: dict[str, str],
    settings: MixSettings | None,
    *,
    shares_output: bool,
) -> None:
    """Raise ConfigError if another run works on what a section will work on."""
    found = Faults()
    if holds:
        with found.noted():
            dataset = context.dataset
            claims.check(join(dataset.bookkeeping, "claims"), dataset.documents, holds)
    if settings:
        output = settings.output.path
        with found.noted():
            digest = settings.stage_digest() if shares_output else ""
            claims.check(join(work_folder(output), "claims"), output, {"the output": digest})
    found.tell()
