"""Values and documents as files of ml_filter, Label Studio and Argilla."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
import xxhash

from toolkit.command_options import Flag, StageOptions
from toolkit.commands import _questions as questions
from toolkit.commands._questions import Finder
from toolkit.data.dataset import Dataset
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, amount, mismatch
from toolkit.execution.executors import Task
from toolkit.label_files.formats import annotations
from toolkit.learn import labelling
from toolkit.learn.evaluate.predictions import Question, ShardQuestions
from toolkit.learn.labelling import Names, origins
from toolkit.mix.join import JoinedShard
from toolkit.plugins import default_name
from toolkit.records import origins as datasets, sets
from toolkit.stages.context import Context, Outcome, failures, show_plan
from toolkit.storage import json_files, outputs, paths, store

UNKNOWN = "und"
"""The language of no prompt, as ISO 639-2 calls what is not determined."""


def names_of(dataset: Dataset, question: Question, overrides: Mapping[str, str | None]) -> Names:
    """Return the names for the values of a question.

    Args:
        dataset: Dataset that has the sets.
        question: an expression over one set, or several.
        overrides: on the command line, by the names of ml_filter.

    Raises:
        ConfigError: if nothing tells them, and they are not given.
    """
    names = {key: value for key, value in overrides.items() if value}
    if len(question.sets) != 1:
        for option in ("model_name", "prompt_name"):
            if option not in names:
                flag = f"--{option.replace('_', '-')}"
                raise ConfigError(
                    f"expected {flag} NAME, got none: `--from {question.text}` does not name one set, whose "
                    f"settings would say it"
                )
        return Names(overrides=names, model="", prompt="", language=UNKNOWN)
    (name,) = question.sets
    settings = _settings(dataset, name, question.text)
    options = settings.get("options", {})
    model, prompt = options.get("model"), options.get("prompt")
    if isinstance(model, dict):  # a file, by its digest
        model = sets.load_models(dataset, name).get(str(model.get("sha256")), "").rstrip("/").rpartition("/")[2]
    if not model and "tagger" in settings:
        model = default_name(settings["tagger"])
    named = prompt if isinstance(prompt, dict) else {}
    return Names(
        overrides=names,
        model=model if isinstance(model, str) and model else name,
        prompt=named.get("prompt_name") or name,
        language=named.get("language") or UNKNOWN,
    )


def key_of(dataset: Dataset, question: Question) -> str:
    """Return the first key of an expression, or its set's only one; empty if there is none such."""
    if len(question.sets) != 1:
        return ""
    (name,) = question.sets
    schema = sets.load_schema(dataset, name)
    keys = list(schema.keys) if schema else []
    parts = question.text.strip().split(".")
    return next((part for part in parts[:2] if part in keys), keys[0] if len(keys) == 1 else "")


def _settings(dataset: Dataset, name: str, text: str) -> dict[str, Any]:
    schema = sets.load_schema(dataset, name)
    if schema is None:
        return {}
    parts = text.strip().split(".")
    key = next((part for part in parts[:2] if part in schema.keys), next(iter(schema.keys), ""))
    return schema.keys[key].settings if key in schema.keys else {}


ML_FILTER: Final = "ml-filter"

Form = Literal["ml-filter", "label-studio", "argilla"]


class FileOptions(StageOptions, frozen=True, kw_only=True):
    """Options for writing external files.

    Attributes:
        from_: ask no model: write these values to files, SET[.KEY[.field]] or an expression
        to: the form of these files (ml-filter); for tasks for people, --from is optional
        output: the place of these files: the folder of an experiment, or a .json file
        where: write only documents for which the expression is true
        model_name: name of the model to record (the set's)
        prompt_name: name of the prompt to record (the set's)
        prompt_lang: language of the prompt to record (the set's)
        question: name of the labelling question (the key); values of --from become pre-annotations

    Raises:
        ConfigError: if they do not go together.
    """

    from_: Annotated[str | None, Flag("--from", metavar="SET")] = None
    to: Annotated[Form | None, Flag()] = None
    output: Annotated[str | None, Flag("-o", "--output", metavar="PATH")] = None
    where: Annotated[str | None, Flag(metavar="EXPRESSION")] = None
    model_name: Annotated[str | None, Flag(metavar="NAME")] = None
    prompt_name: Annotated[str | None, Flag(metavar="NAME")] = None
    prompt_lang: Annotated[str | None, Flag(metavar="LANG")] = None
    question: Annotated[str | None, Flag(metavar="NAME")] = None

    @property
    def form(self) -> Form | None:
        """Return the form of the files to write; None if none are."""
        return self.to or (ML_FILTER if self.from_ is not None else None)

    @property
    def remakes(self) -> str:
        return self.REMAKES if self.form is None else ""

    def __post_init__(self) -> None:
        if self.form is None:
            for name in ("output", "where", "model_name", "prompt_name", "prompt_lang", "question"):
                if getattr(self, name) is not None:
                    raise ConfigError(f"--{name.replace('_', '-')}: expected it only with --from or --to")
            return
        if self.output is None:
            target = "the folder of the experiment" if self.form == ML_FILTER else "the file"
            raise ConfigError(f"--to {self.form}: expected --output, {target}, got none")
        if self.form == ML_FILTER and self.from_ is None:
            raise ConfigError("--to ml-filter: expected --from SET, whose values are written, got none")
        if self.shard is not None:
            raise ConfigError(
                "expected no --shard with --from or --to, because one file may have documents of several shards"
            )


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The mark of an experiment of ours.

    Attributes:
        values: Values in its files, as `--from` names them.
        origin: Dataset of the values.
    """

    version: int = 2
    values: str
    origin: datasets.Origin


def write(context: Context, options: FileOptions) -> Outcome:
    """Write the requested files."""
    dataset, form = context.dataset, options.form
    store.note_roots([str(options.output)])
    finder = Finder(dataset, ())
    if options.from_ is not None:
        _check_set(options.from_, dataset.sets())
    expressions = [finder.question(options.from_, options.from_, "--from")] if options.from_ is not None else []
    value = expressions[0] if expressions else None
    expressions += finder.where(options.where)
    works, unreadable = questions.works_for(context, dataset, expressions, "", "strict")
    outcome = (
        _experiment(context, options, works, expressions)
        if form == ML_FILTER
        else _list(context, options, works, expressions, value)
    )
    outcome.failures += unreadable.values()
    outcome.data["failed"] = outcome.failures
    outcome.exit_code = 1 if outcome.failures else 0
    return outcome


def _check_set(text: str, names: list[str]) -> None:
    """Raise ConfigError for a missing set; ``edu-1`` would be a difference."""
    name = text.strip().partition(".")[0]
    if paths.is_set_name(name) and not name.isidentifier() and name not in names:
        raise ConfigError(f"--from {text}: expected a set, {mismatch(name, names)}")


# --- ml_filter --------------------------------------------------------------------------------------------------------


def _experiment(
    context: Context, options: FileOptions, works: list[JoinedShard], expressions: list[Question]
) -> Outcome:
    """Write the annotation files of an experiment: those that are not there, or not as they would be written."""
    value, output, dataset = expressions[0], str(options.output).rstrip("/"), context.dataset
    type_ = value.checked(works[0]).expression.type
    if not _has_scores(type_):
        raise ConfigError(
            f"--from {value.text}: expected a number, a list of numbers, or an object with `score` or `scores`, got "
            f"values of type {type_}; name a field: SET.KEY.field"
        )
    names = names_of(dataset, value, {name: getattr(options, name) for name in _NAMES})
    by_shard = {work.shard: work for work in works}
    todo = [
        labelling.FilesToWrite(
            shards=[ShardQuestions(_work(by_shard, works[0], shard), expressions) for shard in origin.shards],
            selected=origin.selected,
            files=origin.files,
            names=names,
            experiment=output,
        )
        for origin in origins(dataset, [work.shard for work in works])
    ]
    files = [file.name for files in todo for file in files.files]
    if options.dry_run:
        return show_plan(context, {"annotate": {"experiment": output, "names": names, "raw files": files}})
    if paths.exists(output) and not paths.is_folder(output):
        raise ConfigError(f"--output {output}: expected a folder, new or existing, got a file")
    marker = paths.join(output, paths.BOOKKEEPING, "experiment.json")
    before = json_files.load(marker, Experiment)
    experiment = Experiment(values=value.text, origin=datasets.origin_of([dataset]))
    if not options.overwrite and paths.is_folder(paths.join(output, annotations.FOLDER)):
        if before is None or before.values != experiment.values:
            message = f"--output {output}: expected a new folder, or one that this command has written"
            message += f", got one with {before.values}" if before else ", got another"
            raise ConfigError(f"{message}; choose another one, or add --overwrite")
        datasets.check(f"--output {output}", before.origin, experiment.origin, "its files", overwrite=False)
    context.sweep(output)
    with context.lease(paths.join(output, paths.BOOKKEEPING), output, {}):
        if before != experiment:
            json_files.save(marker, experiment)
        results = context.run(
            "writing the output", labelling.write_files, [Task(files.files[0].path, files) for files in todo], "files"
        )
    written_files = [result.value for result in results if result.value is not None]
    written = [file for written_files in written_files if written_files.written for file in written_files.files]
    documents, without = (
        sum(file.documents for written_files in written_files for file in written_files.files),
        sum(written_files.without for written_files in written_files),
    )
    count = sum(len(written_files.files) for written_files in written_files)
    text = f"{amount(count, 'annotation file')}, {len(written):,} of them written now"
    text += f" -> {paths.join(output, annotations.FOLDER)}\n"
    text += f"{amount(documents, 'document')}; {without:,} without a value have no line"
    data = {"output": output, "files": count, "written": len(written), "documents": documents, "without": without}
    return Outcome(text=text, data=data, failures=failures(results))


_NAMES = ("model_name", "prompt_name", "prompt_lang")


def _work(by_shard: dict[str, JoinedShard], other: JoinedShard, shard: str) -> JoinedShard:
    """Return the work on a shard; one that is only counted has that of another."""
    return by_shard.get(shard) or msgspec.structs.replace(other, shard=shard)


def _has_scores(type_: Type) -> bool:
    inner = type_.not_null
    if inner.kind == "list" and inner.item:
        inner = inner.item.not_null
    if inner.kind == "object":
        return any(name in ("score", "scores") for name, _ in inner.fields)
    return inner.kind in ("bool", "int", "float", "any", "never", "null")


# --- people -----------------------------------------------------------------------------------------------------------


def _list(
    context: Context,
    options: FileOptions,
    works: Sequence[JoinedShard],
    expressions: list[Question],
    value: Question | None,
) -> Outcome:
    """Write the tasks of the selected documents as one list."""
    output, dataset = str(options.output), context.dataset
    assert options.form in get_args(labelling.Form)
    form: Any = options.form
    model, question = "", options.question or ""
    if value is not None:
        model = options.model_name or (names_of(dataset, value, {}).model if len(value.sets) == 1 else value.text)
        question = question or key_of(dataset, value) or "label"
    if options.dry_run:
        plan = {
            "output": output,
            "form": form,
            "question": question,
            "model": model,
            "shards": [w.shard for w in works],
        }
        return show_plan(context, {"annotate": plan})
    if paths.exists(output) and not options.overwrite:
        raise ConfigError(
            f"--output {output}: expected a new file, got one that exists; choose another name, or add --overwrite"
        )
    named = outputs.NamedOutput(output, "--output")
    folder = paths.join(dataset.bookkeeping, "tasks", xxhash.xxh3_64_hexdigest(output.encode()))
    todo = [
        labelling.TasksToWrite(
            shard=ShardQuestions(work, expressions),
            form=form,
            question=question,
            model=model,
            path=paths.join(folder, f"{number:06d}.jsonl.gz"),
        )
        for number, work in enumerate(works)
    ]
    with context.lease(folder, output, {}):
        results = context.run(
            "writing the output", labelling.write_tasks, [Task(tasks.shard.work.path, tasks) for tasks in todo]
        )
        broken = failures(results)
        count = sum(result.value or 0 for result in results)
        if not broken and count:
            labelling.gather([tasks.path for tasks in todo], named)
    paths.remove_tree(folder)
    if not broken and not count:
        broken = [f"--where {options.where}: expected documents for which it is true, got none of all"]
    text = "nothing was written" if broken else f"{amount(count, 'document')} -> {output}"
    return Outcome(text=text, data={"output": output, "documents": count}, failures=broken)
