"""Compares two mixes of the same datasets, document by document, from attributes and row indexes alone."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER
from toolkit.data.row_index import row_hash
from toolkit.errors import DataError
from toolkit.mix.effects.counts import NO_LABEL
from toolkit.mix.effects.explain import HEAD, plain
from toolkit.mix.effects.preview import blocks
from toolkit.mix.join import ShardToMix, at_document, inputs_of
from toolkit.rules import RuleSet
from toolkit.runs.executors import Report
from toolkit.runs.progress import Share
from toolkit.session import Session, current
from toolkit.storage.journal import apart
from toolkit.storage.reading import lines_at
from toolkit.tag.sample import key_of

HELD = 1000
"""Samples that are held beside those that will be shown, before they are sorted out."""


class Pair(ConfigStruct):
    """A shard in two mixes, and how many samples of each kind of change are wanted of it.

    Attributes:
        rule: name of the only rule that samples are wanted for.
        seed: with which samples are drawn; None for those that come first.
        session: Session of the other mix, if its options of the storage, or its root, are others.
    """

    one: ShardToMix
    other: ShardToMix
    samples: int
    rule: str | None = None
    seed: int | None = None
    session: Session | None = None


class Sample(ConfigStruct):
    """A document for which something changes.

    Attributes:
        what: ``gained``, ``lost`` or ``relabelled``.
        why: the rule, or the labels.
        place: ``shard:row``.
        values: that the rule sees, as plain data.
        text: of the document, its beginning.
        rank: the least are shown.
        shard, number: path of the documents, and the row.
    """

    what: Literal["gained", "lost", "relabelled"]
    why: str
    place: str
    id: str
    values: dict[str, Any]
    text: str = ""
    rank: int = 0
    shard: str = ""
    number: int = 0


class Comparison(msgspec.Struct):
    """The changes between two mixes.

    Attributes:
        rows: documents.
        kept: by the first mix.
        gained: documents that only the second keeps, by the first's rule that drops them.
        lost: documents that only the first keeps, by the second's rule that drops them.
        relabelled: documents that both keep, by ``label -> other label`` (the output folder, where rules route).
        samples: of all three.
    """

    rows: int = 0
    kept: int = 0
    gained: Counter[str] = msgspec.field(default_factory=Counter)
    lost: Counter[str] = msgspec.field(default_factory=Counter)
    relabelled: Counter[str] = msgspec.field(default_factory=Counter)
    samples: list[Sample] = []

    def add(self, other: "Comparison") -> None:
        """Add what changes in another shard."""
        self.rows += other.rows
        self.kept += other.kept
        self.gained += other.gained
        self.lost += other.lost
        self.relabelled += other.relabelled
        self.samples += other.samples

    def note(self, change: Sample, samples: int) -> None:
        """Count a change, and keep it as a sample if it may be among those of its cause that are shown."""
        counts: Counter[str] = getattr(self, change.what)
        counts[change.why] += 1
        if counts[change.why] <= samples or change.rank:
            self.samples.append(change)
            if len(self.samples) > 2 * samples * (len(self.gained) + len(self.lost) + len(self.relabelled)) + HELD:
                self.keep_samples(samples)

    def keep_samples(self, number: int, rule: str | None = None) -> None:
        """Keep the samples of each cause with the least ranks; with a rule, of that one alone."""
        seen: Counter[tuple[str, str]] = Counter()
        kept = []
        for sample in sorted(self.samples, key=lambda each: each.rank):
            seen[sample.what, sample.why] += 1
            if seen[sample.what, sample.why] <= number and rule in (None, sample.why):
                kept.append(sample)
        self.samples = kept


class _Fate(NamedTuple):
    """The fate of a document in a mix: the rule that drops it, None if it stays; and what the rules see."""

    work: ShardToMix
    rules: RuleSet
    dropped: int | None
    values: tuple[Any, ...]


def compare_shard(pair: Pair, report: Report) -> Comparison:
    """Return the changes in one shard.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    with ExitStack() as stack:
        session = current()
        if (other := pair.session) is not None:
            session = session.kept((Session, other.id), lambda: other)
            with session.bound():
                stack.enter_context(apart.not_kept())
        return _compare_shard(pair, session, report)


def _compare_shard(pair: Pair, session: Session, report: Report) -> Comparison:
    found = Comparison()
    state, _ = inputs_of(pair.one)
    with session.bound():
        inputs_of(pair.other)
    done = Share(report, state.rows, state.size)
    fates = zip(_fates(pair.one), session.steps(_fates(pair.other)), strict=True)
    for number, (one, other) in enumerate(fates, 1):
        found.rows += 1
        done(1)
        found.kept += one.dropped is None
        if change := _change(one, other, number):
            if pair.seed is not None:
                document = one.values[-1]
                change = msgspec.structs.replace(
                    change, rank=key_of(row_hash(document.source or "", document.id), pair.seed)
                )
            found.note(change, pair.samples)
    found.keep_samples(pair.samples, pair.rule)
    if found.rows != state.rows:
        raise DataError(f"expected {state.rows} rows as indexed, got {found.rows}", path=pair.one.path)
    return found


def _fates(work: ShardToMix) -> Iterator[_Fate]:
    rules = work.compile_rules()
    for block in blocks(work, rules):
        for outcome, values in zip(block.outcomes, block.values(), strict=True):
            yield _Fate(work, rules, outcome if isinstance(outcome, int) else None, values)


def _change(one: _Fate, other: _Fate, number: int) -> Sample | None:
    """Return what changes for a document; None if nothing does."""
    place, id, shard = f"{one.work.name}:{number}", one.values[-1].id, one.work.path
    if one.dropped is None and other.dropped is None:
        labels = [_folder(fate, number) or "(none)" for fate in (one, other)]
        return (
            Sample("relabelled", " -> ".join(labels), place, id, {}, shard=shard, number=number)
            if labels[0] != labels[1]
            else None
        )
    if one.dropped is not None and other.dropped is not None:
        return None
    fate = one if other.dropped is None else other
    rule = fate.rules.compiled[fate.dropped or 0]
    what: Literal["gained", "lost"] = "gained" if fate is one else "lost"
    return Sample(what, rule.rule.name, place, id, plain(rule.watched(fate.values)), shard=shard, number=number)


def _folder(fate: _Fate, number: int) -> str:
    """Return the output folder of a document that stays: the label of the format, or where a rule routes it."""
    rules, values = fate.rules, fate.values
    try:
        label = rules.folder(*values) if rules.folder else None
        return rules.route(rules.applied(*values), label or NO_LABEL, *values) if rules.applies else label or NO_LABEL
    except DataError as error:
        raise at_document(error, fate.work, number, values[-1].id) from None


class Texts(ConfigStruct):
    """Rows of a shard whose texts are shown: their numbers from 1, ascending."""

    dataset: Dataset
    shard: str
    numbers: list[int]
    max_document_bytes: int


def read_texts(work: Texts, report: Report) -> list[str]:
    """Return the beginnings of texts."""
    opened = work.dataset.lines(work.shard, work.max_document_bytes)
    lines = lines_at(opened, [number - 1 for number in work.numbers])
    return [DOCUMENT_DECODER.decode(line).text[:HEAD] for line in lines]
