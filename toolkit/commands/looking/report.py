"""Report on a corpus: what came in, what each rule costs, sizes, distributions, samples; one file to look at."""

import os
import sys
from json import JSONDecodeError, JSONDecoder
from typing import Annotated, ClassVar

import msgspec

from toolkit.commands.command_line.options import Flag, Limited, Looking, Words
from toolkit.commands.opening import open_context
from toolkit.commands.reporting import runs
from toolkit.commands.reporting.runs import Reported
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, StepFailed
from toolkit.config.settings import Source
from toolkit.data.dataset import Dataset
from toolkit.distribution import VERSION
from toolkit.errors import ConfigError, amount
from toolkit.inspect import targets
from toolkit.inspect.describe.croissant import document
from toolkit.mix import publish
from toolkit.pages.report import render
from toolkit.records import origins
from toolkit.records.origins import Origin
from toolkit.report import facts
from toolkit.report.languages import languages_of
from toolkit.report.of_output import run_of_output
from toolkit.storage import store_of
from toolkit.storage.outputs import NamedOutput
from toolkit.storage.paths import exists, join, size_of
from toolkit.storage.roots import note_roots

SUFFIXES = (".html", ".json")


class Options(Looking, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit report``.

    Raises:
        ConfigError: for options that do not go together.
    """

    EXAMPLES: ClassVar = (
        "toolkit report -c configs/quickstart.yaml -o report.html",
        "toolkit report -c configs/quickstart.yaml --compare stricter.yaml -o both.html",
        "toolkit report data/quickstart/oscar -o report.html",
    )

    targets: Annotated[
        tuple[str, ...],
        Words("an output or a dataset, or two side by side; settings, which override those of the file"),
    ] = ()
    compare: Annotated[
        str | None, Flag("another configuration, output or dataset that is shown beside the first", metavar="FILE")
    ] = None
    output: Annotated[
        str, Flag("write to this file: .html, or .json for programs", "-o", "--output", metavar="FILE")
    ] = "report.html"
    overwrite: Annotated[bool, Flag("replace a report on another dataset, or another file")] = False
    title: Annotated[str | None, Flag("the title of the page", metavar="TEXT")] = None
    other: Source | None = None
    """The other configuration itself, where it is in no file."""
    page: str | None = None
    """Another file to write, where `output` has the facts for a program."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for path in filter(None, (self.output, self.page)):
            if not path.endswith(SUFFIXES):
                raise ConfigError(f"--output {path}: expected a file that ends in {' or '.join(SUFFIXES)}")
        if self.text_field is not None:
            raise ConfigError("expected a configuration, or an output, without --text-field: a report is on a mix")
        if self.config is None and (self.limit is not None or len(self.targets) + (self.compare is not None) > 2):
            message = "--limit only with a configuration" if self.limit is not None else "one path, or two"
            raise ConfigError(f"expected {message}, got {' '.join(self.targets)}; -c names a configuration")

    @property
    def only_shows(self) -> bool:
        return True

    @property
    def keeps_indexes(self) -> bool:
        return True


def run(context: Context, options: Options) -> Outcome:
    """Gather the facts of a configuration or an output, or of two, and write the page."""
    files = [NamedOutput(path, "--output") for path in (options.output, options.page) if path]
    note_roots(os.path.dirname(os.path.abspath(path)) for path in (options.output, options.page) if path)
    try:
        found = _runs(context, options)
    except StepFailed as failed:
        text = f"{amount(len(failed.messages), 'shard')} cannot be read, so no report was written"
        return Outcome(text=text, data={"failed": list(failed.messages)}, failures=list(failed.messages), exit_code=1)
    faults = [fault for each in found for fault in each.faults]
    made = [each.facts for each in found]
    labels = {each.label for run in made for each in run.labels}
    origin = origins.union(each.origin for each in found).without_places
    for file in files:
        _check_replaced(file.path, origin, overwrite=options.overwrite)
    report = facts.Report(
        origin=origin,
        title=options.title or " and ".join(each.name for each in made),
        toolkit=VERSION,
        languages=languages_of(labels),
        runs=made,
    )
    encoded = msgspec.json.encode(report)
    for file in files:
        is_json = file.path.endswith(".json")
        file.save(encoded + b"\n" if is_json else render(encoded, _described(report.runs[0])))
    notes = [f"{each.name}: {note}" if len(made) > 1 else note for each in made for note in each.notes]
    data = {"output": options.output, "runs": [_summary(each) for each in made], "notes": notes, "failed": faults}
    text = "\n".join([options.output, *(note for note in notes if note not in faults)])
    return Outcome(text=text, data=data, failures=faults, exit_code=1 if faults else 0)


def _check_replaced(path: str, origin: Origin, *, overwrite: bool) -> None:
    """Check that a file is not there, or a report on the same dataset; say what goes if it may be replaced.

    Raises:
        ConfigError: if it is another file.
    """
    if not size_of(path):
        return
    text, mark = store_of(path).read(path).decode(errors="replace"), '"origin":'
    at = text.find(mark) + len(mark)
    try:
        there = msgspec.convert(JSONDecoder().raw_decode(text, at)[0] if at >= len(mark) else None, Origin)
    except (JSONDecodeError, msgspec.ValidationError):
        if not overwrite:
            raise ConfigError(
                f"{path}: expected no file, or a report on {origin}, got a file that `toolkit report` did not write; "
                "choose another path, or add --overwrite"
            ) from None
        return
    if replaced := origins.check(path, there, origin, "a report", overwrite=overwrite):
        print(replaced, file=sys.stderr)


def _described(run: facts.Run) -> bytes | None:
    """Return what ``toolkit croissant`` has written of the output, for search engines; nothing where it has not.

    Raises:
        ConfigError: if the file is no JSON.
    """
    path = join(run.output, document.NAME)
    if not run.mixed or not exists(path):
        return None
    data = store_of(path).read(path)
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: expected JSON, got: {error}; run `toolkit croissant` again") from None
    return data


def _runs(context: Context, options: Options) -> list[Reported]:
    others = [*options.targets, *([options.compare] if options.compare is not None else [])]
    share = 1 / (len(others) + (options.config is not None))
    found = []
    if options.config is not None:
        found.append(runs.of_configuration(context, _name(options.config), share))
    for other in others:
        found.append(_other(context, options, other.rstrip("/"), share))
    return found


def _other(context: Context, options: Options, what: str, share: float) -> Reported:
    """Return the facts of an output, or of the mix of another configuration."""
    if options.other is None and not what.endswith((".yaml", ".yml")) and not what.startswith("recipe:"):
        target = targets.expected(what)
        if target.kind == "dataset":
            dataset = Dataset(join(what, "documents"), join(what, "attributes"))
            return runs.of_dataset(context, dataset, _name(what), share)
        if target.kind != "output":
            raise ConfigError(f"{what}: expected a dataset, or the output of a mix, got {target.kind}")
        return _of_output(what)
    with open_context(
        msgspec.structs.replace(options, config=what, targets=(), overrides=(), given=options.other)
    ) as opened:
        return runs.of_configuration(opened, _name(what), share)


def _of_output(folder: str) -> Reported:
    found = run_of_output(folder, _name(folder))
    manifest = publish.load_manifest(folder)
    fault = publish.fault_of(folder, manifest) if manifest else ""
    return Reported(found, publish.origin_of(folder) or Origin(datasets={}), [fault] if fault else [])


def _name(path: str) -> str:
    return os.path.basename(path.rstrip("/")).removesuffix(".yaml").removesuffix(".yml") or path


def _summary(found: facts.Run) -> dict[str, object]:
    """Return what programs want to know at once of a run."""
    totals = msgspec.to_builtins(found.totals)
    return {"name": found.name, "mixed": found.mixed, "totals": totals, "missing": found.missing}
