"""Measure how well values of a set predict labels: in all, by source, language and length, beside baselines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.aggregate.tables import display
from toolkit.command_options import CommandResult, Flag, Words, natural
from toolkit.commands import _questions as questions
from toolkit.commands._questions import LABELS, LANGUAGE, LENGTH, Finder, confusion
from toolkit.config import scale as scales, settings as config
from toolkit.config.scale import Declared, Scale
from toolkit.data import excerpts
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, StepFailed, amount
from toolkit.execution.grouped import tasks_of
from toolkit.learn.evaluate import evaluation, metrics, plots, predictions as answering
from toolkit.learn.evaluate.metrics import HEADLINES, Task as What
from toolkit.learn.train import trained_models
from toolkit.mix.join import JoinedSet, scale_of
from toolkit.records import sets as records
from toolkit.stages.context import Context, Outcome, failures, table
from toolkit.storage.paths import check_writable

MOST_LABELS = 20
"""Labels that are shown, the most frequent."""

_TASKS = {
    "numbers": "numbers that predict numbers",
    "score": "numbers that predict true or false",
    "classes": "labels that predict labels",
    "lists": "sets of labels that predict sets of labels",
}


def task(result: metrics.Judged) -> str:
    """Return the task in words."""
    text = _TASKS[result.task]
    if result.level == "ordinal":
        scale = f"on {result.scale}" if result.scale else "all the same"
        text += (
            f"; the labels are {scale}: predictions are rounded and clipped to it for accuracy, F1, kappa "
            "(quadratic), alpha (ordinal)"
        )
    elif result.scale:
        text += (
            f"; the labels are on {result.scale}"
            if result.scale.is_text
            else f"; predictions are clipped to {result.scale}"
        )
    elif result.level == "interval":
        text += "; alpha is that of intervals"
    elif result.level:
        text += "; kappa and alpha are those of names"
    return text


def whole(result: metrics.Judged) -> str:
    """Return the tables of all documents: metrics, differences, labels, confusion, calibration."""
    group, heads = result.all, _heads(result)
    metrics = list(dict.fromkeys(metric for scores in group.scores.values() for metric in scores))
    rows = [["", *(heads[name] for name in group.scores)]]
    rows += [[metric, *(_cell(scores.get(metric)) for scores in group.scores.values())] for metric in metrics]
    parts = [table(rows), _differences(group, heads)]
    for name, details in result.details.items():
        of = "" if len(result.details) == 1 else f"{heads[name]}:\n"
        parts += [f"{of}{text}" for text in _details(details) if text]
    return "\n\n".join(part for part in parts if part)


def _differences(group: metrics.GroupScores, heads: Mapping[str, str]) -> str:
    listed = [difference for difference in group.differences if difference.metrics]
    if not listed:
        return ""
    metrics = list(dict.fromkeys(metric for difference in listed for metric in difference.metrics))
    rows = [["difference", *(f"{heads[difference.one]} to {heads[difference.other]}" for difference in listed)]]
    rows += [[metric, *(_verdict(difference.metrics.get(metric)) for difference in listed)] for metric in metrics]
    return table(rows)


def _details(details: metrics.Details) -> Iterable[str]:
    if details.labels:
        rows = [["label", "documents", "precision", "recall", "F1"]]
        for label in details.labels[:MOST_LABELS]:
            cells = [_number(label.precision), _number(label.recall), _cell(label.f1)]
            rows.append([excerpts.head(display(label.label), 40), f"{label.documents:,}", *cells])
        more = len(details.labels) - MOST_LABELS
        yield table(rows, right=[1, 2, 3]) + (f"\nand {more:,} other labels" if more > 0 else "")
    if details.grades:
        rows = [["at least", "documents", "accuracy", "F1", "macro F1", "weighted F1"]]
        for grade in details.grades[:MOST_LABELS]:
            cells = [_cell(estimate) for estimate in (grade.accuracy, grade.f1, grade.macro_f1, grade.weighted_f1)]
            rows.append([f"{grade.grade:g}", f"{grade.documents:,}", *cells])
        yield table(rows, right=[0, 1])
    if details.confusion:
        pairs = {
            (confused_pair.label, confused_pair.prediction): confused_pair.documents
            for confused_pair in details.confusion
        }
        yield confusion(pairs, ("label", "predicted"), whole=not details.confusion_left_out)
    if details.calibration:
        rows = [["predicted", "documents", "mean", "mean label"]]
        for one in details.calibration:
            where = f"{one.low:.3g} to {one.high:.3g}"
            rows.append([where, f"{one.documents:,}", _number(one.prediction), _cell(one.label)])
        yield table(rows, right=[1, 2])


def groups(by: str, result: metrics.Judged) -> str:
    """Return the table of the groups of one kind."""
    listed, (more, documents) = result.groups[by], result.left_out[by]
    columns = [
        (metric, name)
        for metric in HEADLINES[result.task]
        for name in result.all.scores
        if any((score := group.scores.get(name, {}).get(metric)) and score.value is not None for group in listed)
    ]
    pairs = [(difference.one, difference.other) for difference in result.all.differences]
    verdicts = [(pair, metric) for pair in pairs if (metric := _first(pair, listed, result))]
    heads = _heads(result)
    only = next(iter(result.details)) if len(result.details) == 1 else ""
    rows = [[f"by {by}", "documents", "not judged"]]
    rows[0] += [metric if name == only else f"{metric}, {heads[name]}" for metric, name in columns]
    rows[0] += [f"{'' if only else f'{heads[one]} '}to {heads[other]} ({metric})" for (one, other), metric in verdicts]
    for group in listed:
        row = [excerpts.head(display(group.group), 40), f"{group.documents:,}", f"{sum(group.nulls.values()):,}"]
        row += [_cell(group.scores.get(name, {}).get(metric)) for metric, name in columns]
        for pair, metric in verdicts:
            paired = _of(group, pair).get(metric)
            row.append(paired.verdict if paired else "-")
        rows.append(row)
    text = table(rows, right=[1, 2])
    return text + (f"\nand {more:,} smaller groups, {amount(documents, 'document')}" if more else "")


def _first(pair: tuple[str, str], listed: Sequence[metrics.GroupScores], result: metrics.Judged) -> str:
    """Return the first headline metric with a comparison in some group."""
    return next((m for m in HEADLINES[result.task] if any(m in _of(group, pair) for group in listed)), "")


def _of(group: metrics.GroupScores, pair: tuple[str, str]) -> dict[str, metrics.Paired]:
    return next(
        (difference.metrics for difference in group.differences if (difference.one, difference.other) == pair), {}
    )


def warnings(result: metrics.Judged) -> list[str]:
    """Return important remarks."""
    messages = []
    for group in [result.all, *(group for listed in result.groups.values() for group in listed)]:
        where = f"{group.by} {display(group.group)}" if group.by else "all documents"
        messages += [
            f"{where}: {name} is the same for all {group.documents:,} documents: it says nothing within them"
            for name in group.constant
        ]
    return messages


def _heads(result: metrics.Judged) -> dict[str, str]:
    """Return the names of predictions and baselines in tables: of two predictions, A and B."""
    names = dict(zip(result.details, "AB", strict=False))
    if len(names) == 1:
        names = {name: excerpts.head(name, 40) for name in names}
    return {metrics.MAJORITY: "majority", metrics.SOURCE: "source only", **names}


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.6g}"
    return "0.000" if text == "-0.000" else text


def _cell(estimate: metrics.Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return "-"
    if estimate.low is None:
        return _number(estimate.value)
    return f"{_number(estimate.value)} [{_number(estimate.low)}, {_number(estimate.high)}]"


def _verdict(difference: metrics.Paired | None) -> str:
    return (
        "-"
        if difference is None
        else f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}] {difference.verdict}"
    )


BASELINES = {
    "majority": "the most frequent label of the group, or the mean of its labels",
    "source": "the same of all other documents with the same source, in five folds by the hash of source and id",
}


class Evaluation(CommandResult, kw_only=True):
    """The result of `evaluate`.

    Attributes:
        predictions, labels, where, sample: Expressions as they were given, and the sample that they were asked of.
        documents, looked_at: Number of documents, and of those that ``where`` chose.
        labels_of_no_document: Labels in files that none of these has.
        task: Kind of prediction: ``numbers``, ``score``, ``classes`` or ``lists``.
        level, scale: Level of Krippendorff's alpha; scale of labels that are on one.
        all: Scores of each prediction and baseline over all documents, with intervals, and paired differences.
        details: Labels, confused pairs and calibration curve of each prediction.
        groups: Scores of groups, by what they are grouped by.
        left_out: Number of groups and documents that are not judged.
        baselines: Baselines in words.
        rounds, seed: Settings of the bootstrap.
        warnings: Remarks that one should not overlook.
        plots: Paths of pictures.
        failed: Messages of shards that could not be read.
    """

    predictions: tuple[str, ...]
    labels: str
    where: str | None
    sample: str | None
    documents: int
    looked_at: int
    labels_of_no_document: int | None
    task: What
    level: str | None
    scale: Scale | None
    all: metrics.GroupScores
    details: dict[str, metrics.Details]
    groups: dict[str, list[metrics.GroupScores]]
    left_out: dict[str, dict[str, int]]
    baselines: dict[str, str]
    rounds: int
    seed: int
    warnings: list[str]
    plots: list[str]
    failed: list[str]


class Options(questions.SetOptions, frozen=True, kw_only=True):
    """Options of ``toolkit evaluate``.

    Attributes:
        targets: a prediction, or two that are compared: SET.KEY[.field], or an expression
        against: labels: SET.KEY[.field], an expression, or {files: …, id: …, value: …}
        where: use only documents for which the expression is true
        by: more groups than source, language and length: host, crawl, or an expression
        language: the language of a document (language.label, if one set has it)
        attributes: the set that is meant if several sets have the same key; you can give several
        task: the task, if the types of the values do not decide it
        scale: scale of the labels, '{range: [0, 5], step: 1}', '{values: […]}' or none
        rounds: bootstrap resamples (1000)
        seed: seed of the bootstrap (0)
        top: show the N largest groups of each kind (30)
        plots: write pictures into this folder, as .svg and .png
        sample: evaluate in the sample that `tag --sample` has made (with -c)

    Raises:
        ConfigError: if there are not one or two predictions, or it is not said of which dataset.
    """

    WRITES: ClassVar = True
    EXAMPLES: ClassVar = (
        "toolkit evaluate edu-1.score --against labels.score -c edu.yaml --where 'sample.split == \"test\"'",
        "toolkit evaluate edu-1.score edu-0.score --against labels.score --dataset data/crawl --by host",
        "toolkit evaluate edu-1.score --against '{files: labels.jsonl, id: id, value: score}' -c edu.yaml",
    )

    targets: Annotated[tuple[str, ...], Words("PREDICTION | KEY=VALUE")] = ()
    against: Annotated[str, Flag(metavar="LABELS")]
    where: Annotated[str | None, Flag(metavar="EXPRESSION")] = None
    by: Annotated[tuple[str, ...], Flag(metavar="WHAT")] = ()
    language: Annotated[str | None, Flag(metavar="EXPRESSION")] = None
    attributes: Annotated[tuple[str, ...], Flag(metavar="SET")] = ()
    task: Annotated[Literal["numbers", "score", "classes", "lists"] | None, Flag()] = None
    scale: Annotated[str | None, Flag(metavar="SCALE")] = None
    rounds: Annotated[int, Flag(metavar="N")] = 1000
    seed: Annotated[int, Flag(parse=natural)] = 0
    top: Annotated[int, Flag(metavar="N")] = 30
    plots: Annotated[str | None, Flag(metavar="FOLDER")] = None
    sample: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.targets) <= 2:
            raise ConfigError(f"expected one prediction, or two, got {len(self.targets)}")
        if len({*self.targets}) < len(self.targets):
            raise ConfigError(f"expected two different predictions, got {self.targets[0]} twice")
        super().__post_init__()


def run(context: Context, options: Options) -> Outcome:
    """Evaluate predictions against labels."""
    if options.plots:
        plots.check_installed()
        check_writable(options.plots, "--plots")
    names = [text.strip().partition(".")[0] for text in (*options.targets, options.against)]
    dataset, over = questions.dataset_of(context, options.dataset, names, sampled=options.sample)
    spec = answering.read_spec(options.against) if options.against.lstrip().startswith("{") else None
    labels = answering.KeyedLabels(spec, context.config.max_document_bytes) if spec else None
    expressions, groups = _questions(options, dataset, in_files=labels is not None)
    answers, broken, sets = _answers(context, dataset, expressions, labels, over)
    columns = {
        name: answering.joined([answer.columns[name] for answer in answers], name) for name in answers[0].columns
    }
    unused = None
    if labels:
        columns[LABELS], unused = labels.column(b"".join(answer.keys for answer in answers))
    documents = sum(answer.documents for answer in answers)
    if not len(columns[metrics.SOURCE].values):
        where = "" if options.where is None else f"--where {options.where}: "
        raise ConfigError(f"{where}expected documents to look at, got none of {documents:,}")
    hashes = np.frombuffer(b"".join(answer.hashes for answer in answers), np.uint64)
    predictions = {text: columns[text] for text in options.targets}
    judge = evaluation.Judge(
        columns[LABELS],
        predictions,
        columns[metrics.SOURCE].values,
        hashes,
        task=options.task,
        count=options.rounds,
        seed=options.seed,
        scale=_scale(options, sets, spec),
    )
    columns[LENGTH] = answering.binned_lengths(columns[LENGTH])
    result = judge.judged({name: columns[name] for name in groups}, options.top)
    messages = warnings(result)
    if LANGUAGE not in groups:
        messages.append(
            "not by language: no set, or several, have `language.label` or `text_language.label`; name it: --language"
        )
    if options.where is None:
        messages += _learnt_from(dataset, [question for question in expressions if question.name in options.targets])
    written = plots.draw(options.plots, result) if options.plots else []
    data = Evaluation(
        predictions=options.targets,
        labels=options.against,
        where=options.where,
        sample=over or None,
        documents=documents,
        looked_at=len(columns[metrics.SOURCE].values),
        labels_of_no_document=unused,
        task=result.task,
        level=result.level or None,
        scale=result.scale,
        all=result.all,
        details=result.details,
        groups=result.groups,
        left_out={by: {"groups": count, "documents": number} for by, (count, number) in result.left_out.items()},
        baselines=BASELINES,
        rounds=options.rounds,
        seed=options.seed,
        warnings=messages,
        plots=written,
        failed=broken,
    )
    text = _text(options, result, data, over)
    return Outcome(text=text, data=data, failures=broken)


def _learnt_from(dataset: Dataset, predictions: list[answering.Question]) -> list[str]:
    """Return warnings about predictions for a model's training documents."""
    results = []
    for prediction in predictions:
        digests = {digest for name in prediction.sets for digest in records.load_models(dataset, name)}
        results += [
            f"{prediction.text}: the model {card.name} was trained on "
            f"{amount(sum(card.documents['train'].values()), 'document')}, which may be among these; look at others, "
            "such as --where 'sample.split == \"test\"'"
            for card in trained_models.with_files(dataset, digests)
        ]
    return results


def _questions(options: Options, dataset: Dataset, *, in_files: bool) -> tuple[list[answering.Question], list[str]]:
    """Return all questions about documents, and the names of groups."""
    finder = Finder(dataset, options.attributes)
    columns = [finder.question(text, text, "prediction") for text in options.targets]
    if not in_files:
        columns.append(finder.question(LABELS, options.against, "--against"))
    columns += finder.where(options.where)
    language = finder.language() if options.language is None else None
    if options.language is not None:
        language = finder.question(LANGUAGE, options.language, "--language")
    if options.language is None and language and language.text in [_of_set(question) for question in columns]:
        labels = [question for question in columns if question.name == LABELS]  # languages are judged by what they are
        language = msgspec.structs.replace(labels[0], name=LANGUAGE) if labels else None
    groups = [answering.Question(metrics.SOURCE, "source"), *([language] if language else []), questions.of_lengths()]
    names = {group.name for group in [*columns, *groups]}
    groups += [finder.question(text, text, "--by") for text in dict.fromkeys(options.by) if text not in names]
    return [*columns, *groups], [group.name for group in groups]


def _of_set(question: answering.Question) -> str:
    """Return the text of a question with its set."""
    text = question.text.strip()
    return text if not question.sets or text.startswith(f"{question.sets[0]}.") else f"{question.sets[0]}.{text}"


def _answers(
    context: Context,
    dataset: Dataset,
    expressions: list[answering.Question],
    labels: answering.KeyedLabels | None,
    over: str,
) -> tuple[list[answering.ShardAnswers], list[str], Sequence[JoinedSet]]:
    """Return the answers by shard, failures, and the sets.

    Raises:
        ConfigError: if an expression is not one over these sets.
    """
    works, unreadable = questions.works_for(context, dataset, expressions, over, "warn")
    by = (labels.match, labels.by_shard) if labels else ()
    tasks = tasks_of(works, [answering.ShardToAsk(work, expressions, *by) for work in works])
    results = context.run("evaluate", answering.ask_shard, tasks)
    answers = [result.value for result in results if result.value]
    broken = [*unreadable.values(), *failures(results)]
    if not answers:
        raise StepFailed(*broken)
    return answers, broken, works[0].sets


def _scale(options: Options, sets: Sequence[JoinedSet], spec: answering.LabelFiles | None) -> Declared:
    """Return the scale of the labels: that of the command line, of their files, or of their set."""
    if options.scale is not None:
        return scales.parse(config.parse(options.scale, "--scale"))
    return spec.scale if spec else scale_of(options.against, sets)


def _text(options: Options, result: metrics.Judged, data: Evaluation, over: str) -> str:
    """Return the evaluation for people."""
    where = f" where {options.where}" if options.where is not None else ""
    lines = [over] if over else []
    of_all = f" of {data.documents:,}" if data.looked_at < data.documents else ""
    named = [f"{name}: {text}" for name, text in zip("AB", options.targets, strict=False)]
    lines += named if len(named) > 1 else []
    lines += [
        f"{'A and B' if len(named) > 1 else options.targets[0]} against {options.against}{where}",
        f"{amount(data.looked_at, 'document')}{of_all}, {result.all.documents:,} judged; {task(result)}",
    ]
    nulls = {name: count for name, count in result.all.nulls.items() if count}
    if nulls:
        without = {"label": "a label", "prediction": "a prediction", "both": "both"}
        lines.append("not judged: " + ", ".join(f"{count:,} without {without[name]}" for name, count in nulls.items()))
    if data.labels_of_no_document:
        lines.append(f"labels of no document that is looked at: {data.labels_of_no_document:,}")
    lines.append(
        f"in brackets: 95 % intervals, {amount(options.rounds, 'round')} of the bootstrap, seed {options.seed}"
    )
    lines += [f"{name}: {text}" for name, text in BASELINES.items()]
    parts = ["\n".join(lines), whole(result), *(groups(by, result) for by in result.groups)]
    parts.append("\n".join(f"warning: {warning}" for warning in data.warnings))
    parts.append("\n".join(data.plots))
    return "\n\n".join(part for part in parts if part)
