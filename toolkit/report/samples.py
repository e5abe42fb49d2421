"""The samples of a report: which documents are shown, and what is read of them."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from toolkit import partial_sums
from toolkit.config.settings import ConfigStruct
from toolkit.data import alignment, row_index, urls
from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.execution.blocks import Block
from toolkit.execution.executors import Report
from toolkit.lazy_numpy import np
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import Joiner, JointBlock, at_document, inputs_of
from toolkit.mix.rule_effects.explain import plain
from toolkit.report.facts import Line, Marked, PairText, Sample
from toolkit.report.fields import StreamFields
from toolkit.report.shard_stats import MOST_LABELS, SampleCandidate, StreamCounts
from toolkit.rules.expressions import FAULTS
from toolkit.rules.rule import Rule
from toolkit.rules.ruleset import RuleSet, rules_in
from toolkit.storage import freshness, json_files, record_log

At = tuple[int, int]
"""The place of a document: number of its shard, row from 1."""

SAMPLE_BYTES = 1_100_000
"""JSON of all samples of a run, about; texts are cut to that."""

_BESIDE = 420
"""Bytes of JSON that a sample has beside its text, about."""

_LEAST, _MOST = 160, 1500
"""Bytes of UTF-8 of a text that is shown."""

DRAWN_LABELS = 60
"""Labels of which several documents are drawn; of all others one."""

COSTLY_LABELS = 50
"""Labels with most dropped documents, of which all that their costliest rule proposes are shown; of others a few."""

RULE_LABELS = 2
"""Labels that a rule costs most of which its documents are shown, whether or not it costs them most."""


class OfRule(NamedTuple):
    """Documents of a rule: see `toolkit.report.facts.RuleSamples`."""

    rule: int
    field: str
    value: float | None
    dropped: list[At]
    stays: list[At]
    labels: dict[str, list[At]]


class ShownDocuments(NamedTuple):
    """The shown documents of a stream.

    Attributes:
        rows: Rules of each document, by its place.
        drawn: Drawn by label.
        of_rules: Documents of each rule and threshold.
    """

    rows: dict[At, list[int]]
    drawn: dict[str, list[At]]
    of_rules: list[OfRule]


def select(merged: StreamCounts, fields: StreamFields, rules: Sequence[Rule]) -> ShownDocuments:
    """Return the documents of a stream to show."""
    chosen = {tuple(key.split("\n", 1)): item for key, item in merged.chosen.items.items()}
    rows: dict[At, list[int]] = {}

    def select_rows(listed: Iterable[SampleCandidate], rule: int | None = None) -> list[At]:
        places = [(item.shard, item.row) for item in listed]
        for place in places:
            chosen_for = rows.setdefault(place, [])
            if rule is not None and rule not in chosen_for:
                chosen_for.append(rule)
        return places

    ranked = sorted(merged.sums.before, key=lambda label: (-merged.sums.before[label][0], label))
    drawn = {
        label: select_rows(chosen.get(("label", label), [])[: 4 if i < DRAWN_LABELS else 1])
        for i, label in enumerate(ranked)
    }
    labels = _costly(merged, rules)
    of_rules = []
    for i, rule in enumerate(rules):
        by_label = {
            label: select_rows(chosen.get(("dropped", f"{i}\n{label}"), [])[:most], i)
            for label, most in labels[i].items()
        }
        marks = [(n, m, score.title, mark.value) for n, score in enumerate(fields.scores)
                 for m, mark in enumerate(score.marks) if mark.rule == i]  # fmt: skip
        for n, m, path, value in marks:
            sides = [select_rows(chosen.get(("near", f"{n}\n{m}\n{side}"), []), i) for side in ("dropped", "kept")]
            of_rules.append(OfRule(i, path, value, sides[0], sides[1], by_label))
            by_label = {}
        if not marks:
            mine = (item for key, item in chosen.items() if key[0] == "dropped" and key[1].startswith(f"{i}\n"))
            least = sorted(item for listed in mine for item in listed) or chosen.get(("applied", str(i)), [])
            if rule.drops or least:
                of_rules.append(OfRule(i, "", None, select_rows(least[:5], i), [], by_label))
    return ShownDocuments(rows, drawn, of_rules)


def _costly(merged: StreamCounts, rules: Sequence[Rule]) -> list[dict[str, int]]:
    """Return for each rule the labels to show, with limits."""
    labels: list[dict[str, int]] = [{} for _ in rules]
    dropping = [i for i, rule in enumerate(rules) if rule.drops]
    lost = {label: sum(item[i][0] for i in dropping) for label, item in merged.sums.by_label.items()}
    for place, label in enumerate(sorted(lost, key=lambda label: (-lost[label], label))[:MOST_LABELS]):
        costliest = max(dropping, key=lambda i: (merged.sums.by_label[label][i][0], -i), default=None)
        if costliest is not None and merged.sums.by_label[label][costliest][0]:
            labels[costliest][label] = 10 if place < COSTLY_LABELS else 3
    for i in dropping:
        ranked = sorted(merged.sums.by_label, key=lambda label: (-merged.sums.by_label[label][i][0], label))
        for label in ranked[:RULE_LABELS]:
            if merged.sums.by_label[label][i][0]:
                labels[i].setdefault(label, 10)
    return labels


def text_bytes(samples: int, share: float) -> int:
    """Return the bytes of UTF-8 to show of a text.

    Args:
        samples: Number of samples.
        share: Share of `SAMPLE_BYTES` that they have.
    """
    return max(_LEAST, min(_MOST, int(share * SAMPLE_BYTES) // max(1, samples) - _BESIDE))


VALUE_BYTES = 200
"""JSON of a value that is shown with a sample; of longer ones only the beginning."""

NAME_CHARS = 300
"""Code points of ids, sources, addresses and labels that are shown."""

_MARKED = 200
"""Spans of a sample that are shown."""


class ShardToShow(ConfigStruct):
    """A shard and its documents to show.

    Attributes:
        base: path of what is kept of it, without the suffix.
        work: the shard with its mix.
        fields: Fields whose spans, lines and edges are shown.
        rows: Rows from 1, ascending, each with the numbers of its rules.
        documents: hashes of source and id of documents whose rows are not known, wherever they are.
        length: bytes of UTF-8 that are shown of a text.
        pair_length: bytes of UTF-8 that are shown of a near duplicate.
    """

    base: str
    work: ShardToMix
    fields: StreamFields
    rows: dict[int, list[int]]
    pair_rows: list[int]
    documents: list[int]
    length: int
    pair_length: int


class ShardSamples(ConfigStruct):
    """The samples of a shard.

    Attributes:
        samples: Samples, in the order of rows.
        pairs: documents of pairs of near duplicates, in the order of rows.
    """

    samples: list[Sample]
    pairs: list[PairText]


class _SavedSamples(freshness.Derived, frozen=True, kw_only=True):
    """The samples of a shard, and the digest of their origins."""

    samples: ShardSamples = msgspec.field(name="shown")


def show_shard(task: ShardToShow, report: Report, group: record_log.Group | None = None) -> ShardSamples:
    """Return documents of a shard; it is read up to the last of them, unless they are those of the last time.

    Raises:
        DataError: if a row is not what it should be.
    """
    documents, inputs = inputs_of(task.work)
    selection = (task.rows, task.pair_rows, task.documents, task.length, task.pair_length)
    made_of = json_files.json_digest(msgspec.to_builtins((documents.content, inputs, selection), str_keys=True))
    old = partial_sums.load(f"{task.base}.shown", _SavedSamples)
    if old is None or not freshness.state(old, [("", made_of)]).is_done:
        old = _SavedSamples(made_of=made_of, samples=_read(task))
        if old.samples.samples or old.samples.pairs:
            partial_sums.save(f"{task.base}.shown", old, group.files if group else None)
    report(documents.rows if old.samples.samples or old.samples.pairs else 0, 0)
    return old.samples


def _read(task: ShardToShow) -> ShardSamples:
    work, rules = task.work, task.work.compile_rules()
    of_pairs = sorted({*task.pair_rows, *_rows_of(work, task.documents)})
    rows = sorted({*task.rows, *of_pairs})
    reader = _SampleReader(task, rules)
    result = ShardSamples([], [])
    for number, document, values in _joined(work, rules, task.fields, rows):
        try:
            if number in task.rows:
                result.samples.append(reader.sample(number, document, values))
            if number in of_pairs:
                result.pairs.append(reader.pair(number, document, values))
        except DataError as error:
            raise at_document(error, work, number, document.id) from None
    return result


def _rows_of(work: ShardToMix, hashes: Sequence[int]) -> list[int]:
    """Return the rows, from 1, of the documents with these hashes."""
    if not hashes:
        return []
    hashed, number, results = np.array(hashes, dtype=np.uint64), 0, list[int]()
    for block in row_index.read(work.dataset, work.shard):
        results += [number + 1 + int(row) for row in np.isin(block["hash"], hashed).nonzero()[0]]
        number += len(block)
    return results


def _joined(
    work: ShardToMix, rules: RuleSet, fields: StreamFields, rows: Sequence[int]
) -> Iterable[tuple[int, Document, list[Any]]]:
    """Yield documents with their attributes; the rows between them are not decoded."""
    if not rows:
        return
    joiner = Joiner(work, rules.needs.keys | fields.sample_keys, joined=rules.needs.joined)
    with ExitStack() as stack:
        lines = stack.enter_context(work.dataset.lines(work.shard, work.max_document_bytes))
        sets = [stack.enter_context(alignment.attribute_lines(work.attributes_of(item))) for item in work.sets]
        before = 0
        for number in rows:
            skipped = number - before - 1
            for item in (lines, *sets):
                next(islice(item, skipped, skipped), None)
            before = number
            block = JointBlock(number - 1, Block(list(islice(lines, 1))), [Block(list(islice(o, 1))) for o in sets])
            for document, _, _, values in joiner.rows(block):
                yield number, document, values


class _SampleReader:
    """Makes samples of documents.

    Args:
        task: says what is shown.
        rules: Rules of the stream.
    """

    def __init__(self, task: ShardToShow, rules: RuleSet) -> None:
        self._task, self._rules = task, rules
        self._scores: dict[int, dict[str, Callable[..., Any]]] = {}

    def sample(self, number: int, document: Document, row: list[Any]) -> Sample:
        """Return a document as a sample; `number` is that of its row."""
        rules, values = self._rules, [*row, document]
        outcome = rules.decide(*values)
        dropping = outcome if isinstance(outcome, int) else None
        chosen_for = self._task.rows[number]
        text = cut(document.text, self._task.length)
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        watched: dict[str, Any] = {}
        for i in dict.fromkeys([*([dropping] if dropping is not None else []), *chosen_for]):
            watched |= plain(rules.compiled[i].watched(values)) | self._computed(i, values)
        header, footer = self._edges(row)
        return Sample(
            shard=self._task.work.shard,
            row=number,
            stream=self._task.work.stream.name,
            id=document.id[:NAME_CHARS],
            source=document.source[:NAME_CHARS],
            url=(urls.url_of({"metadata": document.metadata}) or "")[:NAME_CHARS],
            label=((rules.label(*values) if rules.label else None) or "")[:NAME_CHARS],
            chars=len(document.text),
            text=text,
            dropped_by="" if dropping is None else rules.rules[dropping].name,
            would_drop=[] if dropping is None else self._other_drops(dropping, values),
            applied=[] if dropping is not None else [rules.rules[i].name for i in self._applied(outcome, values)],
            for_rules=[rules.rules[i].name for i in chosen_for],
            values={name: short(value) for name, value in watched.items() if value != "…"},
            lines=self._lines(row, lines),
            spans=self._spans(row, len(text)),
            header=header,
            footer=footer,
        )

    def pair(self, number: int, document: Document, row: list[Any]) -> PairText:
        """Return a document as one of two near duplicates."""
        rules, values = self._rules, [*row, document]
        return PairText(
            shard=self._task.work.shard,
            row=number,
            id=document.id[:NAME_CHARS],
            source=document.source[:NAME_CHARS],
            label=((rules.label(*values) if rules.label else None) or "")[:NAME_CHARS],
            chars=len(document.text),
            text=cut(document.text, self._task.pair_length),
            kept=not isinstance(rules.decide(*values), int),
        )

    def _computed(self, rule: int, values: list[Any]) -> dict[str, Any]:
        """Return the ratios and other computed numbers of a rule's thresholds."""
        if rule not in self._scores:
            parts = {
                score.title: self._rules.compiled[rule].part(score.title)
                for score in self._task.fields.scores
                if (score.over or score.rule is not None) and any(mark.rule == rule for mark in score.marks)
            }
            self._scores[rule] = {title: part for title, part in parts.items() if part}
        results = {}
        for title, part in self._scores[rule].items():
            with contextlib.suppress(*FAULTS, OverflowError):
                results[title] = part(*values)
        return results

    def _other_drops(self, dropping: int, values: list[Any]) -> list[str]:
        results = []
        for compiled_rule in self._rules.compiled[dropping + 1 :]:
            with contextlib.suppress(DataError):  # it counts on what the first rule has ruled out
                if compiled_rule.rule.drops and compiled_rule.holds(values):
                    results.append(compiled_rule.rule.name)
        return results

    def _applied(self, outcome: Any, values: list[Any]) -> list[int]:
        rules = self._rules
        applied = rules.applied(*values) if rules.applies else []
        edits = (
            [i for i, compiled_rule in enumerate(rules.compiled) if compiled_rule.preview(values)[0]]
            if rules.edits
            else []
        )
        return sorted({*rules_in(outcome), *applied, *edits, *(rules.repeated(*values) if rules.repeats else ())})

    def _lines(self, row: list[Any], most: int) -> list[Line]:
        place = self._task.fields.lines
        result = getattr(row[place.set], place.key) if place else None
        return [Line(None, None) if item is None else Line(item.label, item.prob) for item in (result or [])[:most]]

    def _edges(self, row: list[Any]) -> tuple[int | None, int | None]:
        place = self._task.fields.edges
        result = getattr(row[place.set], place.key) if place else None
        return (None, None) if result is None else (result.header_lines, result.footer_lines)

    def _spans(self, row: list[Any], length: int) -> list[Marked]:
        results = [
            Marked(spans.path, span.start, min(span.end, length), span.score)
            for spans in self._task.fields.spans
            for span in spans.get(row[spans.place.set]) or ()
            if span.start < length
        ]
        return sorted(results, key=lambda item: (item.start, item.end))[:_MARKED]


def cut(text: str, length: int) -> str:
    """Return the beginning of a text: at most so many bytes of UTF-8, whole code points."""
    head = text[:length]
    return head.encode()[:length].decode(errors="ignore")


def short(value: Any) -> Any:
    """Return a value as it is shown: a long one as the beginning of its JSON."""
    if isinstance(value, float | int | bool | None):
        return value
    encoded = msgspec.json.encode(value)
    return value if len(encoded) <= VALUE_BYTES else encoded[:VALUE_BYTES].decode(errors="ignore") + "…"


def jaccard(one: str, other: str) -> float | None:
    """Return how alike the words of two texts are: those of both by those of either; None without words."""
    left, right = set(one.split()), set(other.split())
    return len(left & right) / len(left | right) if left | right else None
