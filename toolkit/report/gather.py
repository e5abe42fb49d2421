"""Gathers the facts of a run: shards are counted, their counts added up, samples chosen and read."""

import copy
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolkit import partial_sums
from toolkit.aggregate import groups
from toolkit.aggregate.histogram import REST, Spread
from toolkit.data import record_logs, row_index
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import row_hash
from toolkit.execution.grouped import Work, run_batch
from toolkit.mix import bindings, join, orphans, publication
from toolkit.mix.rule_effects.counts import added
from toolkit.mix.settings import MixSettings, Stream
from toolkit.mix.writer import not_carried
from toolkit.report import facts, output_facts, samples, shard_stats as counted
from toolkit.report.fields import StreamFields, fields_of
from toolkit.rules.rule import Rule
from toolkit.storage.record_log import RecordLog
from toolkit.storage.threads import for_each

T = TypeVar("T")

TOP = 100
"""Hosts, and other groups, that are shown."""

PAIR_BYTES = 2500
"""Bytes of UTF-8 that are shown of each of two near duplicates."""


def _log_of(task: counted.ShardToCount | samples.ShardToShow) -> RecordLog:
    return record_logs.of(task.work.dataset)


_COUNT = Work(counted.count_shard, partial(run_batch, counted.count_shard, _log_of))
_SHOW = Work(samples.show_shard, partial(run_batch, samples.show_shard, _log_of))

Run = Callable[[str, Callable[..., Any], Sequence[tuple[str, Any, bindings.ShardToMix]]], list[Any]]
"""Runs a function on the payloads of shards, each with its name and its work; gives the results in their order."""


class MixInput(NamedTuple):
    """A mix to report on.

    Attributes:
        name: Name of the run.
        settings: Settings of the mix.
        works: its shards.
        sets: Sets that each stream joins.
        budget: Result of the budget, if there is one.
        manifest: Manifest of its output, if that was made of just these inputs by these settings.
        config: text of the configuration.
        folders: Folders that counts, and columns of shards, are kept in, by the bookkeeping folder of the dataset.
        temporary: Folder for data beyond the memory.
        share: Share of the samples that the run has, if there are two.
    """

    name: str
    settings: MixSettings
    works: Sequence[bindings.ShardToMix]
    sets: Mapping[str, list[join.JoinedSet]]
    budget: publication.BudgetFound | None
    manifest: publication.Manifest | None
    config: str
    folders: Mapping[str, tuple[str, str]]
    temporary: str
    share: float = 1.0


class _OfStream(NamedTuple):
    stream: Stream
    rules: list[Rule]
    fields: StreamFields
    merged: counted.StreamCounts
    selected: samples.ShownDocuments


def gather(mix: MixInput, run: Run) -> facts.Run:
    """Return the facts of a mix.

    Args:
        mix: the mix.
        run: runs tasks.

    Raises:
        ToolkitError: if a shard cannot be counted.
    """
    fields = {
        stream.name: fields_of(mix.sets.get(stream.name, []), stream.all_rules) for stream in mix.settings.streams
    }
    tasks = [
        counted.ShardToCount(work, fields[work.stream.name], *mix.folders[work.dataset.bookkeeping])
        for work in mix.works
    ]
    run("counting documents", _COUNT, [(task.work.name, task, task.work) for task in tasks])
    streams = [_merged(mix, stream, fields[stream.name], tasks) for stream in mix.settings.streams]
    texts = _read_samples(mix, streams, tasks, run)
    return _assembled(mix, streams, tasks, texts)


def _merged(mix: MixInput, stream: Stream, fields: StreamFields, tasks: Sequence[counted.ShardToCount]) -> _OfStream:
    rules = stream.all_rules
    merged = counted.StreamCounts(len(rules), fields)
    for number, task in enumerate(tasks):
        if task.work.stream.name == stream.name and (shard_counts := counted.load(task)):
            merged.add(number, shard_counts)
    return _OfStream(stream, rules, fields, merged, samples.select(merged, fields, rules))


# --- samples ----------------------------------------------------------------------------------------------------------


class _Texts(NamedTuple):
    """Shown texts: places of samples in the list, and near duplicates by source and id."""

    samples: list[facts.Sample]
    places: dict[samples.At, int]
    texts: dict[tuple[str, str], facts.PairText]


def _read_samples(
    mix: MixInput, streams: Sequence[_OfStream], tasks: Sequence[counted.ShardToCount], run: Run
) -> _Texts:
    rows: dict[int, dict[int, list[int]]] = {}
    for stream in streams:
        for (shard, row), rules in stream.selected.rows.items():
            rows.setdefault(shard, {})[row] = rules
    length = samples.text_bytes(sum(map(len, rows.values())), mix.share)
    pairs = [pair for stream in streams for results in stream.merged.pairs.items.values() for pair in results]
    hashes = sorted({row_hash(pair[4], pair[5].partition("\0")[0]) for pair in pairs})
    works = []
    for number, task in enumerate(tasks):
        of_pairs = sorted({pair[2] for pair in pairs if pair[1] == number})
        selected = dict(sorted(rows.get(number, {}).items()))
        works.append(
            samples.ShardToShow(task.base, task.work, task.fields, selected, of_pairs, hashes, length, PAIR_BYTES)
        )
    results: list[samples.ShardSamples] = run(
        "finding documents to show", _SHOW, [(work.work.name, work, work.work) for work in works]
    )
    listed: list[facts.Sample] = []
    places: dict[samples.At, int] = {}
    texts: dict[tuple[str, str], facts.PairText] = {}
    for number, result in enumerate(results):
        for sample in result.samples:
            places[number, sample.row] = len(listed)
            listed.append(sample)
        work = tasks[number].work
        for text in result.pairs:
            place = work.dataset.place_of(work.shard, text.row)
            texts[text.source, f"{text.id}\0{place}" if place else text.id] = text
        texts |= {("", f"{number}:{text.row}"): text for text in result.pairs}
    return _Texts(listed, places, texts)


def _pairs(streams: Sequence[_OfStream], texts: _Texts) -> Iterator[facts.Pair]:
    for stream in streams:
        for number, at in enumerate(stream.fields.duplicates):
            for _, shard, row, similarity, source, id_, size in stream.merged.pairs.items.get(str(number), []):
                other, one = texts.texts.get(("", f"{shard}:{row}")), texts.texts.get((source, id_))
                if one and other:
                    similarity = samples.jaccard(one.text, other.text) if similarity is None else similarity
                    yield facts.Pair(set=at.set, one=one, other=other, similarity=similarity, cluster=size or None)


def _not_carried(mix: MixInput) -> dict[str, int]:
    """Return the fields missing in the output, with their documents."""
    writer = mix.settings.writer()
    states = for_each(lambda work: row_index.current(work.dataset, work.shard), mix.works)
    return added(not_carried(writer, state.all_fields) for state in states if state)


# --- putting together -------------------------------------------------------------------------------------------------


def _assembled(
    mix: MixInput, streams: Sequence[_OfStream], tasks: Sequence[counted.ShardToCount], texts: _Texts
) -> facts.Run:
    manifest = mix.manifest
    datasets = {
        stream.stream.name: (
            stream.stream.dataset,
            mix.sets.get(stream.stream.name, []),
            [work.shard for work in mix.works if work.stream.name == stream.stream.name],
        )
        for stream in streams
    }
    results = output_facts.sets_made(mix.sets)
    own: list[Dataset] = []
    for dataset, _, _ in datasets.values():
        own += [] if dataset in own else [dataset]
    every = _labels(streams, manifest)
    many = {label_sizes.label for label_sizes in every[: counted.MOST_LABELS]}
    labels = every[: counted.MOST_LABELS] + _together(every[counted.MOST_LABELS :])
    return facts.Run(
        name=mix.name,
        dataset=", ".join(dataset.documents for dataset in own),
        output=mix.settings.output.path,
        config=mix.config,
        mixed=manifest is not None,
        versions=output_facts.versions(results, manifest),
        models=output_facts.models([(dataset, joined) for dataset, joined, _ in datasets.values()]),
        sets=results,
        came_in=output_facts.came_in(own),
        stages=output_facts.stages(datasets),
        totals=manifest.totals if manifest else _over(streams, lambda sums: sums.totals),
        labels=labels,
        groups=list(_groups(mix, tasks)),
        rules=_rules(streams, many, manifest),
        left_out=dict(manifest.counts) if manifest else {},
        not_carried=manifest.not_carried if manifest else _not_carried(mix),
        budget=output_facts.budget_of((manifest or mix).budget, _over(streams, lambda sums: sums.budget)),
        duplicates=list(_duplicates(streams)),
        orphans=_orphans(mix, streams, tasks),
        lengths=_lengths(streams, many),
        scores=list(_scores(streams, many)),
        spans=list(_spans(streams, many)),
        samples=texts.samples,
        drawn=_drawn(streams, texts),
        of_rules=list(_of_rules(streams, texts)),
        pairs=list(_pairs(streams, texts)),
    )


def _over(streams: Sequence[_OfStream], of: Callable[[counted.Sums], T]) -> T:
    """Return the total of sums over all streams."""
    first, *rest = (of(stream.merged.sums) for stream in streams)
    return partial_sums.total(copy.deepcopy(first), rest)


def _labels(streams: Sequence[_OfStream], manifest: publication.Manifest | None) -> list[facts.LabelSizes]:
    """Return the sizes of each label; of what was mixed those that the mix has counted, of edited texts."""
    before, after = _over(streams, lambda sums: sums.before), _over(streams, lambda sums: sums.after)
    tokens = any(stream.fields.tokens for stream in streams)
    results = []
    for label, numbers in before.items():
        sizes = facts.LabelSizes(
            label=label,
            before=counted.sizes_of(numbers, tokens=tokens),
            after=counted.sizes_of(after[label], tokens=tokens),
        )
        if manifest and label in manifest.statistics:
            tokens_after = sizes.after.tokens
            sizes.after = output_facts.sizes_of(manifest.statistics[label].after)
            sizes.after.tokens = tokens_after
        results.append(sizes)
    return sorted(results, key=lambda item: (-item.before.documents, item.label))


def _together(listed: Sequence[facts.LabelSizes]) -> list[facts.LabelSizes]:
    """Return the sizes of all other labels together; nothing if there are none."""
    if not listed:
        return []
    label_sizes = facts.LabelSizes(label=REST, before=facts.Sizes(), after=facts.Sizes())
    for item in listed:
        for mine, theirs in ((label_sizes.before, item.before), (label_sizes.after, item.after)):
            for name in facts.Sizes.__struct_fields__:
                if (number := getattr(theirs, name)) is not None:
                    setattr(mine, name, (getattr(mine, name) or 0) + number)
    return [label_sizes]


def _shown_labels(counts: Mapping[str, Sequence[int]], labels: set[str]) -> dict[str, tuple[int, ...]]:
    """Return numbers by label, sorted; of labels that are not shown by themselves together."""
    results: dict[str, tuple[int, ...]] = {}
    for label, numbers in sorted(counts.items()):
        key = label if label in labels else REST
        before = results.get(key, (0,) * len(numbers))
        results[key] = tuple(a + b for a, b in zip(before, numbers, strict=True))
    return results


def _counts_by_label(counts: Mapping[str, int], labels: set[str]) -> dict[str, int]:
    return {label: count for label, (count,) in _shown_labels({k: (n,) for k, n in counts.items()}, labels).items()}


def _rules(
    streams: Sequence[_OfStream], many: set[str], manifest: publication.Manifest | None
) -> list[facts.RuleFacts]:
    results = []
    for stream in streams:
        for i, rule in enumerate(stream.rules):
            count, labels = stream.merged.sums.effects[i], stream.merged.sums.by_label
            by_label = _shown_labels({label: of[i] for label, of in labels.items() if any(of[i])}, many)
            results.append(
                facts.RuleFacts(
                    name=rule.name,
                    stream=stream.stream.name,
                    group=rule.group,
                    kind=rule.kind,
                    expression=written(rule),
                    role=rule.ROLE.verb,
                    unique=sum(of[2] for of in by_label.values()) if rule.drops else None,
                    labels=by_label,  # type: ignore[arg-type]  # three numbers each
                    **msgspec.structs.asdict(count),
                )
            )
    for mine, theirs in zip(results, manifest.rules if manifest else (), strict=False):
        mine.documents, mine.chars, mine.spans = theirs.documents, theirs.chars, theirs.spans
    return results


def written(rule: Rule) -> str:
    """Return the expressions of a rule as text."""
    texts = [" or ".join(rule.foreign.texts)] if rule.foreign else [rule.expression]
    return " when ".join(text for text in [*texts, rule.when] if text)


def _duplicates(streams: Sequence[_OfStream]) -> Iterator[facts.Duplicates]:
    for stream in streams:
        for at, duplicate in zip(stream.fields.duplicates, stream.merged.sums.duplicates, strict=True):
            clusters = sorted(duplicate.clusters.items())
            yield facts.Duplicates(
                set=at.set, kind=at.kind, documents=duplicate.documents, dropped=duplicate.copies, clusters=clusters
            )


def _orphans(mix: MixInput, streams: Sequence[_OfStream], tasks: Sequence[counted.ShardToCount]) -> list[facts.Orphans]:
    """Return the orphans: those of the mix, or those that it would have."""
    if mix.manifest:
        results = mix.manifest.orphans
    else:
        sizes = {number: size for stream in streams for number, size in stream.merged.fates.items()}
        notes = (
            orphans.ShardNotes(f"{task.base}.kept", f"{task.base}.copies", sizes[number]) if number in sizes else None
            for number, task in enumerate(tasks)
        )
        results = publication.orphan_counts([task.work for task in tasks], orphans.judge(notes))
    return [facts.Orphans(**msgspec.structs.asdict(orphan_count)) for orphan_count in results]


def _join(together: Spread, other: Spread) -> None:
    together.merge(other.packed(), list(other.labels))


def _lengths(streams: Sequence[_OfStream], labels: set[str]) -> facts.Lengths:
    together = Spread()
    for stream in streams:
        _join(together, stream.merged.lengths)
    bins = together.bins(counted.BINS, labels, whole=True)
    return facts.Lengths(edges=bins.edges, before=bins.counts, after=bins.after)


def _scores(streams: Sequence[_OfStream], labels: set[str]) -> Iterator[facts.Score]:
    """Yield the scores of all streams; those that are called alike are one."""
    results: dict[str, list[tuple[_OfStream, int]]] = {}
    for stream in streams:
        for i, score in enumerate(stream.fields.scores):
            results.setdefault(score.title, []).append((stream, i))
    for path, places in results.items():
        together = Spread()
        for stream, i in places:
            _join(together, stream.merged.scores[i])
        first = places[0][0].fields.scores[places[0][1]]
        marked = any(item.fields.scores[i].marks for item, i in places)
        whole = together.whole if first.rule is not None else first.whole
        bins = together.bins(counted.MARKED_BINS if marked else counted.BINS, labels, whole=whole)
        yield facts.Score(
            field=path,
            set=first.set,
            **bins._asdict(),
            nulls=_counts_by_label(together.nulls, labels),
            marks=[mark for item, i in places for mark in _marks(item, i, labels)],
            description=first.description,
        )


def _marks(stream: _OfStream, number: int, labels: set[str]) -> Iterator[facts.Mark]:
    for mark, counts in zip(stream.fields.scores[number].marks, stream.merged.sums.marks[number], strict=True):
        yield facts.Mark(
            rule=stream.rules[mark.rule].name,
            stream=stream.stream.name,
            label=mark.label,
            value=mark.value,
            sign=mark.sign,
            drops=mark.drops,  # type: ignore[arg-type]  # below, above or neither
            text=mark.text,
            holds=_counts_by_label(counts, labels),
        )


def _spans(streams: Sequence[_OfStream], many: set[str]) -> Iterator[facts.Spans]:
    results: dict[str, facts.Spans] = {}
    for stream in streams:
        for at, labels in zip(stream.fields.spans, stream.merged.sums.spans, strict=True):
            mine = results.setdefault(at.path, facts.Spans(field=at.path, set=at.set, pii=at.personal, labels={}))
            for label, numbers in _shown_labels(labels, many).items():
                before = mine.labels.get(label, (0, 0, 0))
                mine.labels[label] = (before[0] + numbers[0], before[1] + numbers[1], before[2] + numbers[2])
    yield from results.values()


def _drawn(streams: Sequence[_OfStream], texts: _Texts) -> dict[str, list[int]]:
    results: dict[str, list[int]] = {}
    for stream in streams:
        for label, places in stream.selected.drawn.items():
            results.setdefault(label, []).extend(texts.places[at] for at in places)
    return results


def _of_rules(streams: Sequence[_OfStream], texts: _Texts) -> Iterator[facts.RuleSamples]:
    for stream in streams:
        for of_rule in stream.selected.of_rules:
            yield facts.RuleSamples(
                rule=stream.rules[of_rule.rule].name,
                stream=stream.stream.name,
                field=of_rule.field,
                value=of_rule.value,
                dropped=[texts.places[at] for at in of_rule.dropped],
                kept=[texts.places[at] for at in of_rule.stays],
                labels={
                    label: [texts.places[at] for at in places] for label, places in of_rule.labels.items() if places
                },
            )


# --- sources and hosts ------------------------------------------------------------------------------------------------


def _groups(mix: MixInput, tasks: Sequence[counted.ShardToCount]) -> Iterator[facts.LargestGroups]:
    """Yield the largest groups of each kind; what does not fit into memory is sorted on disk."""
    top: dict[str, list[tuple[int, str, list[int]]]] = {}
    sums: dict[str, list[int]] = {}
    values: Counter[str] = Counter()
    for key, row in groups.merged((f"{task.base}.groups" for task in tasks), mix.temporary):
        kind, value = msgspec.json.decode(key)
        values[kind] += 1
        whole = sums.setdefault(kind, [0] * len(row))
        sums[kind] = [a + b for a, b in zip(whole, row, strict=True)]
        heap = top.setdefault(kind, [])
        (heapq.heappush if len(heap) < TOP else heapq.heappushpop)(heap, (row[0], value, row))
    for kind in ("source", "host", "tld", "crawl"):
        largest = sorted(top.get(kind, []), key=lambda item: (-item[0], item[1]))
        if not largest or [value for _, value, _ in largest] == ["null"]:
            continue
        rest = sums[kind]
        for _, _, row in largest:
            rest = [a - b for a, b in zip(rest, row, strict=True)]
        remainder = _group(None, rest) if values[kind] > len(largest) else None
        yield facts.LargestGroups(
            by=kind,
            values=values[kind],
            top=[_group(msgspec.json.decode(value), row) for _, value, row in largest],
            rest=remainder,
        )


def _group(value: str | None, row: Sequence[int]) -> facts.Group:
    return facts.Group(
        value=value and value[: samples.NAME_CHARS],
        before=facts.Sizes(documents=row[0], chars=row[1], bytes=row[2]),
        after=facts.Sizes(documents=row[3], chars=row[4], bytes=row[5]),
    )
