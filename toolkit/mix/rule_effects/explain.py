"""Explanations of a mix for single documents, and comparisons of two mixes."""

import ast
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import excerpts
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, Document, Span
from toolkit.data.excerpts import escaped
from toolkit.data.row_index import row_hash
from toolkit.errors import DataError, short
from toolkit.execution.blocks import Block
from toolkit.execution.executors import Report
from toolkit.execution.progress import Share
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import RAW_ATTRIBUTES, Joiner, JointBlock, at_document, inputs_of, joint_rows, plain_values
from toolkit.mix.rule_effects.counts import NO_LABEL
from toolkit.mix.rule_effects.preview import blocks
from toolkit.records.left_out import is_called
from toolkit.rules import expression_tree, expressions, ruleset
from toolkit.rules.rule import LABEL, CompiledRule, Role
from toolkit.session import Session, current
from toolkit.storage import ephemeral
from toolkit.storage.reading import lines_at
from toolkit.tag.sample import key_of
from toolkit.text.editing import PastEnd

MOST = 3
"""Stretches of a rule that are shown."""

AROUND = 80
"""Code points before and behind a stretch, and most of it, that are kept."""

HEAD = 500
"""Code points of the beginning of a text that are kept."""


class TextStretch(ConfigStruct):
    """A stretch of a text.

    Attributes:
        start, end: Bounds in code points.
        before, text, after: Text and its surroundings, cut where they are long.
        value: Value of a line; null of others.
    """

    start: int
    end: int
    before: str
    text: str
    after: str
    value: Any = None


def of_rule(rule: CompiledRule, document: Document, values: Sequence[Any]) -> list[TextStretch]:
    """Return the first stretches edited by a rule. For a rule that edits none, these are spans and lines whose values
    it reads.
    """
    text = document.text
    edits = rule.edits(document, values, "clamp") if rule.holds(values) else []
    results: list[tuple[int, int, Any]] = [(edit.start, edit.end, None) for edit in edits if edit.start < edit.end]
    listed = results or list(_watched(rule, document, values))
    return [
        TextStretch(
            start,
            end,
            text[max(0, start - AROUND) : start],
            text[start : min(end, start + AROUND)],
            text[end : end + AROUND],
            value,
        )
        for start, end, value in listed[:MOST]
    ]


def _watched(rule: CompiledRule, document: Document, values: Sequence[Any]) -> Iterator[tuple[int, int, Any]]:
    for value in rule.watched(values).values():
        if not isinstance(value, list) or not value:
            continue
        if all(isinstance(item, Span) for item in value):
            yield from ((span.start, span.end, None) for span in value[:MOST])
        elif len(value) == len(document.lines):
            for (start, end), item in zip(document.line_spans[:MOST], value[:MOST], strict=True):
                yield start, end, msgspec.to_builtins(item)


def show_stretches(text: str, stretches: Sequence[TextStretch]) -> list[str]:
    """Return lines for people, as wide as the terminal: the stretches, or the beginning of the text."""
    room = excerpts.width() - 6
    if not stretches:
        return ["    | " + excerpts.head(text, room)] if text else []
    lines = []
    for stretch in stretches:
        whole = stretch.before + stretch.text + stretch.after
        excerpt = excerpts.around(whole, len(stretch.before), len(stretch.before) + len(stretch.text), room)
        lines.append("    | " + excerpt)
    return lines


VALUE_CHARS = 200


class ExplainTarget(ConfigStruct):
    """The documents of a shard to explain: those with an id, or so many that each rule does something to.

    Attributes:
        id: Id of the documents, or their URL; None for samples.
        samples: Number of samples for each rule.
        rule: Name of the only rule that samples are wanted for.
        seed: Seed of the draw of samples; None for the first documents.
        rows: Numbers of the documents, from 1, in place of an id.
    """

    work: ShardToMix
    id: str | None = None
    samples: int = 0
    rule: str | None = None
    seed: int | None = None
    rows: list[int] | None = None

    @property
    def asks(self) -> bool:
        """Return True if certain documents are requested."""
        return self.id is not None or self.rows is not None

    def has(self, document: Document, number: int) -> bool:
        """Return True if a document is requested."""
        if self.rows is not None:
            return number in self.rows
        return is_called(document.row, document.id, self.id or "")


class RuleStep(ConfigStruct):
    """A rule as it meets a document.

    Attributes:
        rule: Name.
        verdict: Verdict in words.
        values: Values read by the rule, as plain data.
    """

    rule: str
    verdict: str
    values: dict[str, Any]


class Explanation(ConfigStruct):
    """One document.

    Attributes:
        place: ``shard:row``.
        dropped: Name of the rule that drops it, None if it stays.
        reason: Reason of a document that is dropped: the rule again, and in place of a verdict the part of its
            expression that decided, with its values alone: ``language.prob < 0.6``. A rule that has none says what it
            does.
        deciding: Index of the rule that it is a sample for.
        text: Text of the document, its beginning.
        stretches: Stretches of the text, that the rule is about.
        rank: Rank; the samples with the least are shown.
        attributes: Attributes of a document that was asked for, by their names in the mix.
        way: Origin of such a document, and its place in the output (see `toolkit.commands._tracing`).
        emptied: True if it stays, and edits leave no text, so that a mix leaves it out.
    """

    place: str
    id: str
    source: str
    chars: int
    dropped: str | None
    deciding: int
    steps: list[RuleStep]
    reason: RuleStep | None = None
    text: str = ""
    stretches: list[TextStretch] = []
    rank: int = 0
    attributes: dict[str, Any] = {}
    way: dict[str, Any] = {}
    emptied: bool = False


def explain_shard(target: ExplainTarget, report: Report) -> list[Explanation]:
    """Return the explanations of documents of a shard.

    Raises:
        DataError: as a mix of it would.
    """
    work = target.work
    inputs_of(work)
    rules = work.compile_rules()
    needs = rules.needs
    samples = _Samples(target, [rule.name for rule in rules.rules])
    for document, number, lines, row in joint_rows(work, needs.keys, needs.fields, joined=needs.joined):
        report(1, 0)
        values = [*row, document]
        try:
            if not target.asks:
                concerned = _concerned(rules, document, values, work.stream.past_end) if samples.rules else []
                deciding = samples.take(document, number, concerned)
            else:
                deciding = [(-1, 0)] if target.has(document, number) else []
            for i, rank in deciding:
                explanation = _explain(work, rules, document, number, values, i)
                attributes = plain_values(work.sets, map(RAW_ATTRIBUTES.decode, lines)) if target.asks else {}
                samples.add(msgspec.structs.replace(explanation, rank=rank, attributes=attributes), number)
        except DataError as error:
            raise at_document(error, work, number, document.id) from None
        if (not target.asks and samples.are_complete) or (target.rows and number == max(target.rows)):
            break
    return samples.results()


class _Samples:
    """The explanations selected in a shard.

    Args:
        target: Target of the shard.
        names: Names of the rules.
    """

    def __init__(self, target: ExplainTarget, names: list[str]) -> None:
        self._seed = target.seed
        self.rules = {i for i, name in enumerate(names) if target.rule in (None, name)}
        self._missing = dict.fromkeys(self.rules, target.samples)
        self._most = target.samples * len(self.rules)  # a document may be a sample of several rules, and is one of one
        self._samples: dict[int, list[tuple[int, int, Explanation]]] = {i: [] for i in (-1, *self.rules)}

    @property
    def are_complete(self) -> bool:
        """Return True if the rest of the shard can be skipped."""
        return not self.rules or (self._seed is None and not any(self._missing.values()))

    def take(self, document: Document, number: int, concerned: list[int]) -> list[tuple[int, int]]:
        """Return the rules for a sample document, with its rank."""
        mine = [i for i in concerned if i in self.rules]
        if self._seed is None:
            first = next((i for i in mine if self._missing[i]), None)
            return [] if first is None else [(first, number)]
        rank = key_of(row_hash(document.source, document.id), self._seed) if mine else 0
        samples = self._samples
        return [(i, rank) for i in mine if len(samples[i]) < self._most or (-rank, -number) > samples[i][0][:2]]

    def add(self, explanation: Explanation, number: int) -> None:
        """Keep an explanation."""
        i, entry = explanation.deciding, (-explanation.rank, -number, explanation)
        if self._seed is None or i < 0:
            self._samples[i].append(entry)
            if i >= 0:
                self._missing[i] -= 1
        elif len(self._samples[i]) < self._most:
            heapq.heappush(self._samples[i], entry)
        else:
            heapq.heapreplace(self._samples[i], entry)

    def results(self) -> list[Explanation]:
        """Return the selected explanations, by rank."""
        return [
            item[2]
            for samples in self._samples.values()
            for item in sorted(samples, key=lambda item: item[:2], reverse=True)
        ]


def _concerned(rules: ruleset.RuleSet, document: Document, values: list[Any], past_end: PastEnd) -> list[int]:
    """Return the indexes of the rules with an effect on a document."""
    outcome = rules.decide(*values)
    if isinstance(outcome, int):
        return [outcome]
    edits = rules.edit(document, *values, past_end=past_end)[1] if rules.edits else []
    applied = rules.applied(*values) if rules.applies else []
    repeated = rules.repeated(*values) if rules.repeats else []
    return sorted({*outcome, *applied, *repeated, *(i for i, edit in enumerate(edits) if edit)})


def _explain(
    work: ShardToMix, rules: ruleset.RuleSet, document: Document, number: int, values: list[Any], deciding: int
) -> Explanation:
    outcome = rules.decide(*values)
    last = outcome if isinstance(outcome, int) else len(rules.rules)
    steps = []
    for i, compiled_rule in enumerate(rules.compiled):
        verdict = compiled_rule.verdict(values) if i <= last else "is not reached"
        watched = compiled_rule.watched(values)
        if compiled_rule.rule.ROLE is Role.ROUTES:
            folder = rules.folder(*values) if rules.folder else None
            if compiled_rule.takes_label():
                watched |= {LABEL: folder}
            if not isinstance(outcome, int) and compiled_rule.holds(values):
                verdict = _routing(rules, i, folder, values)
        steps.append(RuleStep(compiled_rule.rule.name, verdict, plain(watched)))
    dropping = rules.compiled[outcome] if isinstance(outcome, int) else None
    place = f"{work.name}:{number}"
    about = deciding if deciding >= 0 else outcome if isinstance(outcome, int) else None
    reached = rules.compiled[: last + 1] if about is None else [rules.compiled[about]]
    edits = rules.edits and dropping is None and not work.settings.output.keep_empty
    edited = rules.edit(document, *values, overlaps=work.stream.overlaps, past_end="clamp")[0] if edits else None
    return Explanation(
        place,
        document.id,
        document.source,
        len(document.text),
        dropping.rule.name if dropping else None,
        deciding,
        steps,
        _reason(dropping, values) if dropping else None,
        document.text[:HEAD],
        [stretch for rule in reached for stretch in of_rule(rule, document, values)],
        emptied=edited is not None and not edited.text,
    )


def _routing(rules: ruleset.RuleSet, i: int, folder: str | None, values: list[Any]) -> str:
    """Return the verdict of a `route` rule with a true condition. The first one decides."""
    if i not in rules.applied(*values):
        return "routes nothing: an earlier rule has routed it"
    if folder is None and rules.compiled[i].takes_label():
        return "routes it"  # a format that gives each piece of a document a label tells it when it writes
    return f"routes it to {rules.route([i], folder or '', *values)}"


def _reason(rule: CompiledRule, values: list[Any]) -> RuleStep:
    """Return the reason for dropping a document."""
    written, watched = rule.rule, rule.watched(values)
    if written.DRAWS or written.foreign or not written.expression:
        return RuleStep(written.name, rule.verdict(values), plain(watched))
    parts = dict.fromkeys(
        (ast.unparse(part), truth)
        for part, truth in _deciding(rule, expression_tree.parse(written.expression), values, truth=not written.KEEPS)
    )
    paths = [path for part, _ in parts for path in expressions.paths_in(part, rule.names)]
    verdict = " and ".join(f"`{part}` is {str(truth).lower()}" for part, truth in parts)
    return RuleStep(written.name, verdict, plain({path: watched[path] for path in paths if path in watched}))


def _deciding(rule: CompiledRule, node: ast.expr, values: list[Any], *, truth: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the deciding parts of an expression, with their values.

    Args:
        rule: Rule that has the expression.
        node: Node of the expression.
        values: Values of the document.
        truth: Value of the node.
    """
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _deciding(rule, operand, values, truth=not truth)
            return
        case ast.BoolOp(op=op, values=parts):
            is_enough = isinstance(op, ast.Or) is truth  # one part is, and those behind it are not looked at
            deciding = _first(rule, parts, values, truth=truth) if is_enough else parts
            for part in deciding:
                yield from _deciding(rule, part, values, truth=truth)
            if deciding:
                return
    yield node, truth


def _first(rule: CompiledRule, parts: list[ast.expr], values: list[Any], *, truth: bool) -> list[ast.expr]:
    """Return the first part with this value, or none. The parts may not be computable alone."""
    for part in parts:  # in the order in which the rule looks at them: each may count on those before it
        function = rule.part(ast.unparse(part))
        if function is None:
            break
        if bool(function(*values)) is truth:
            return [part]
    return []


def explain_row(work: ShardToMix, row: int, line: bytes, attribute_rows: Sequence[bytes]) -> Explanation:
    """Return the explanation of one document.

    Args:
        work: Shard of the document.
        row: Number of the row, from 0.
        line: Row of the document.
        attribute_rows: The same row of each set.

    Raises:
        DataError: as a mix of it would.
    """
    rules = work.compile_rules()
    needs, block = rules.needs, JointBlock(row, Block([line]), [Block([other]) for other in attribute_rows])
    ((document, number, _, values),) = Joiner(work, needs.keys, needs.fields, joined=needs.joined).rows(block)
    try:
        return _explain(work, rules, document, number, [*values, document], -1)
    except DataError as error:
        raise at_document(error, work, number, document.id) from None


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values read by a rule as data for JSON. A whole document becomes an ellipsis."""
    return {
        name: "…" if isinstance(value, Document) else msgspec.json.decode(msgspec.json.encode(value))
        for name, value in values.items()
    }


def show_kept(*, emptied: bool) -> str:
    """Return the line on a document kept by the rules."""
    return "  left out: edits leave no text" if emptied else "  stays"


def show(explanation: Explanation) -> str:
    """Return an explanation for people."""
    reason = explanation.reason
    lines = [
        explanation.place,
        f"  dropped by {reason.rule!r}: {reason.verdict}" if reason else show_kept(emptied=explanation.emptied),
        *([f"    with {_listed(reason.values)}"] if reason and reason.values else []),
        f"  id {escaped(explanation.id)}, source {escaped(explanation.source)}, {explanation.chars:,} characters",
    ]
    width = max((len(step.rule) for step in explanation.steps), default=0)
    for step in explanation.steps:
        lines.append(
            f"    {step.rule.ljust(width)}  {step.verdict}" + (f"  ({_listed(step.values)})" if step.values else "")
        )
    lines += [f"    {name} = {short(value, VALUE_CHARS)}" for name, value in explanation.attributes.items()]
    return "\n".join([*lines, *show_stretches(explanation.text, explanation.stretches)])


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {short(value, VALUE_CHARS)}" for name, value in values.items())


HELD = 1000
"""Samples that are held beside those that will be shown, before they are sorted out."""


class Pair(ConfigStruct):
    """A shard in two mixes, with the number of samples.

    Attributes:
        rule: Name of the only rule that samples are wanted for.
        seed: Seed of the draw of samples; None for the first documents.
        session: Session of the other mix, if its options of the storage, or its root, are others.
    """

    one: ShardToMix
    other: ShardToMix
    samples: int
    rule: str | None = None
    seed: int | None = None
    session: Session | None = None


class ChangedDocument(ConfigStruct, omit_defaults=True):
    """A document with a change.

    Attributes:
        what: ``gained``, ``lost`` or ``relabelled``.
        why: Rule, or labels.
        place: ``shard:row``.
        values: Values that the rule sees, as plain data.
        text: Text of the document, its beginning.
        rank: Rank; the samples with the least are shown.
        shard, number: Path of the documents, and the row; both and the rank only until the text is read.
    """

    what: Literal["gained", "lost", "relabelled"]
    why: str
    place: str
    id: str
    values: dict[str, Any]
    text: str
    rank: int = 0
    shard: str = ""
    number: int = 0


class MixChanges(msgspec.Struct):
    """The changes between two mixes.

    Attributes:
        rows: Number of documents.
        kept: Number of documents that the first mix keeps.
        gained: Documents that only the second keeps, by the first's rule that drops them.
        lost: Documents that only the first keeps, by the second's rule that drops them.
        relabelled: Documents that both keep, by ``label -> other label`` (the output folder, where rules route).
        samples: Samples of all three.
    """

    rows: int = 0
    kept: int = 0
    gained: Counter[str] = msgspec.field(default_factory=Counter)
    lost: Counter[str] = msgspec.field(default_factory=Counter)
    relabelled: Counter[str] = msgspec.field(default_factory=Counter)
    samples: list[ChangedDocument] = []

    def add(self, other: "MixChanges") -> None:
        """Add the changes in another shard."""
        self.rows += other.rows
        self.kept += other.kept
        self.gained += other.gained
        self.lost += other.lost
        self.relabelled += other.relabelled
        self.samples += other.samples

    def note(self, change: ChangedDocument, samples: int) -> None:
        """Count a change, and keep it as a sample, if needed."""
        counts: Counter[str] = getattr(self, change.what)
        counts[change.why] += 1
        if counts[change.why] <= samples or change.rank:
            self.samples.append(change)
            if len(self.samples) > 2 * samples * (len(self.gained) + len(self.lost) + len(self.relabelled)) + HELD:
                self.keep_samples(samples)

    def keep_samples(self, number: int, rule: str | None = None) -> None:
        """Keep the samples of each cause with the least ranks; with a rule, of that one alone."""
        numbers: Counter[tuple[str, str]] = Counter()
        samples = []
        for sample in sorted(self.samples, key=lambda sample: sample.rank):
            numbers[sample.what, sample.why] += 1
            if numbers[sample.what, sample.why] <= number and rule in (None, sample.why):
                samples.append(sample)
        self.samples = samples


class _Fate(NamedTuple):
    """The fate of a document in a mix: the rule that drops it, None if it stays; and what the rules see."""

    work: ShardToMix
    rules: ruleset.RuleSet
    dropped: int | None
    values: tuple[Any, ...]


def compare_shard(pair: Pair, report: Report) -> MixChanges:
    """Return the changes in one shard.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    comparison = MixChanges()
    with ExitStack() as stack:
        session = current()
        if (other_session := pair.session) is not None:
            session = session.get_or_make((Session, other_session.id), lambda: other_session)
            with session.bound():
                stack.enter_context(ephemeral.ephemeral_records())
        state, _ = inputs_of(pair.one)
        with session.bound():
            inputs_of(pair.other)
        progress = Share(report, state.rows, state.size)
        fates = zip(_fates(pair.one), session.steps(_fates(pair.other)), strict=True)
        for number, (one, other) in enumerate(fates, 1):
            comparison.rows += 1
            progress(1)
            comparison.kept += one.dropped is None
            if change := _change(one, other, number):
                if pair.seed is not None:
                    rank = key_of(row_hash(one.values[-1].source or "", change.id), pair.seed)
                    change = msgspec.structs.replace(change, rank=rank)
                comparison.note(change, pair.samples)
    comparison.keep_samples(pair.samples, pair.rule)
    if comparison.rows != state.rows:
        raise DataError(f"expected {state.rows} rows as indexed, got {comparison.rows}", path=pair.one.path)
    return comparison


def _fates(work: ShardToMix) -> Iterator[_Fate]:
    rules = work.compile_rules()
    for block in blocks(work, rules):
        for outcome, values in zip(block.outcomes, block.values(), strict=True):
            yield _Fate(work, rules, outcome if isinstance(outcome, int) else None, values)


def _change(one: _Fate, other: _Fate, number: int) -> ChangedDocument | None:
    """Return the change for a document; None if there is none."""
    sample = partial(
        ChangedDocument,
        place=f"{one.work.name}:{number}",
        id=one.values[-1].id,
        text="",
        shard=one.work.path,
        number=number,
    )
    if one.dropped is None and other.dropped is None:
        before, now = (_folder(fate, number) or "(none)" for fate in (one, other))
        return None if before == now else sample("relabelled", f"{before} -> {now}", values={})
    if one.dropped is not None and other.dropped is not None:
        return None
    fate = one if other.dropped is None else other
    rule = fate.rules.compiled[fate.dropped or 0]
    values = plain(rule.watched(fate.values))
    return sample("gained" if fate is one else "lost", rule.rule.name, values=values)


def _folder(fate: _Fate, number: int) -> str:
    """Return the output folder of a document: label of the format, or route."""
    rules, values = fate.rules, fate.values
    try:
        label = rules.folder(*values) if rules.folder else None
        return rules.route(rules.applied(*values), label or NO_LABEL, *values) if rules.applies else label or NO_LABEL
    except DataError as error:
        raise at_document(error, fate.work, number, values[-1].id) from None


class ShownTexts(ConfigStruct):
    """Rows of a shard with texts to show. Numbers count from 1 and ascend."""

    dataset: Dataset
    shard: str
    numbers: list[int]
    max_document_bytes: int


def read_texts(work: ShownTexts, report: Report) -> list[str]:
    """Return the beginnings of texts."""
    opened = work.dataset.lines(work.shard, work.max_document_bytes)
    lines = lines_at(opened, [number - 1 for number in work.numbers])
    return [DOCUMENT_DECODER.decode(line).text[:HEAD] for line in lines]
