"""Checks of the sections of a configuration against each other, before the first one begins."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from toolkit.annotate import section as annotate_section
from toolkit.commands import _mix_editions as editions
from toolkit.commands import _mix_preparation as preparation
from toolkit.commands import _mix_publishing as publishing
from toolkit.commands import ingest, make
from toolkit.errors import ConfigError
from toolkit.ingest import section as ingest_section
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.records import sets as records
from toolkit.runs import claims
from toolkit.stages.context import Context
from toolkit.stages.sections import MAKING
from toolkit.storage.paths import check_writable
from toolkit.tag import declared, run
from toolkit.whole import section as dedup_section


class Faults:
    """Collects what is wrong, section by section.

    Attributes:
        messages: each once: what is wrong with the dataset is met by every section.
    """

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a ConfigError and go on behind the block."""
        try:
            yield
        except ConfigError as error:
            self.messages[str(error)] = None

    def __bool__(self) -> bool:
        return bool(self.messages)

    def tell(self) -> None:
        """Raise ConfigError if anything is wrong, a line (or more) each."""
        if self.messages:
            raise ConfigError("\n".join(self.messages))


@dataclass
class Checked:
    """What sections come to.

    Attributes:
        inputs: what the ingest does, if there is one.
        tagged: the schemas of the sets of the section ``tag:``.
        wholes: the plans of the sections over the whole dataset, in order.
    """

    inputs: ingest.PlannedIngest | None = None
    tagged: dict[str, records.SetSchema] = field(default_factory=dict)
    wholes: list[dedup_section.Plan] = field(default_factory=list)


def check(context: Context, *, shares_output: bool = False) -> Checked:
    """Check the sections against each other, what is on disk, and other runs; write nothing.

    Args:
        context: of the configuration.
        shares_output: whether other runs of the same mix may work on the output at the same time.

    Raises:
        ConfigError: with all that is wrong.
    """
    found, checked = Faults(), Checked()
    sets = _checked_sets(context, found, checked)
    settings = _checked_outputs(context, found, sets)
    if not context.options.dry_run and (context.has_dataset or any(map(context.has, ("ingest", *MAKING)))):
        with found.noted():
            dataset = context.dataset
            for root in (dataset.bookkeeping, *([dataset.documents] if context.has("ingest") else [])):
                check_writable(root, context.options.config or "")
    found.tell()
    if not context.options.dry_run:
        holds = ingest_section.holds(checked.inputs.entries) if checked.inputs else {}
        if checked.tagged:
            holds |= run.holds(run.settings_of(checked.tagged))
        for plan in checked.wholes:
            holds |= dedup_section.holds(plan)
        _check_claims(context, holds, settings, shares_output=shares_output)
    return checked


def _checked_sets(context: Context, found: Faults, checked: Checked) -> dict[str, records.SetSchema]:
    """Return the schemas of the sets that the sections make, as far as they can be known."""
    sets: dict[str, records.SetSchema] = {}
    if context.has("ingest"):
        with found.noted():
            checked.inputs = ingest.plan(context)
            sets |= ingest_section.set_schemas(checked.inputs.entries)
    if context.has("align"):
        with found.noted():
            sets |= context.aligned
    if context.has("tag"):
        with found.noted():
            overwrite = context.options.overwrite
            checked.tagged = declared.prepare(context.tags, context.dataset, sets, overwrite=overwrite, write=False)
            sets |= checked.tagged
    for name in context.in_order if not found else ():  # or else sets are not known
        if name == "make":
            with found.noted():
                sets |= make.schemas_of(context, sets, overwrite=context.options.overwrite)
            continue
        if name == "annotate":
            with found.noted():
                sets |= annotate_section.schemas_of(
                    context.annotations(sets), context.dataset, sets, overwrite=context.options.overwrite
                )
            continue
        with found.noted():
            plan = dedup_section.read_section(
                context.section(name), context.dataset, sets, name, context.own_types_known(), external=context.external
            )
            dedup_section.prepare(plan, context.dataset, overwrite=context.options.overwrite, write=False)
            dedup_section.try_first(plan, context.dataset, context.config.max_document_bytes)
            checked.wholes.append(plan)
            sets |= plan.schemas
    return sets


def _checked_outputs(context: Context, found: Faults, sets: Mapping[str, records.SetSchema]) -> MixSettings | None:
    """Check the mix, its editions and its tokens; return the settings of the mix."""
    settings: MixSettings | None = None
    if context.has("mix"):
        complete = not found  # or else sets are not known, and what is said of them would be wrong
        with found.noted():
            settings = _checked_mix(context, sets, complete=complete)
            _check_limit(context, settings)
            for edition in editions.of(context).values():
                _checked_mix(edition, sets, complete=complete)
    if context.has(editions.SECTION):
        with found.noted():
            _checked_mix(editions.with_tokens(context), sets, complete=not found)
    return settings


def _checked_mix(context: Context, sets: Mapping[str, records.SetSchema], *, complete: bool) -> MixSettings:
    """Return the settings of a mix, checked; its rules only where all sets are known."""
    settings = preparation.settings_of(context, writes=not context.options.dry_run)
    preparation.check_output(context, settings)
    if complete:
        preparation.check(context, settings, sets)
    return settings


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
            claims.check(claims.folder_in(dataset.bookkeeping), dataset.documents, holds)
    if settings:
        output = settings.output.path
        with found.noted():
            digest = settings.stage_digest() if shares_output else ""
            claims.check(claims.folder_in(work_folder(output)), output, {"the output": digest})
    found.tell()
