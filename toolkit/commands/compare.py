"""Compare two attribute sets of the same documents."""

from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.aggregate.agreement import Agreement
from toolkit.aggregate.distributions import quantiles
from toolkit.command_options import CommandResult, Flag, Words, absent, natural
from toolkit.commands import _questions as questions
from toolkit.commands._questions import confusion
from toolkit.data import excerpts
from toolkit.errors import ConfigError, amount, mismatch, short
from toolkit.execution.grouped import tasks_of
from toolkit.inspect import comparing
from toolkit.inspect.comparing import Comparison, Example, Pair, Part, parts_of
from toolkit.mix.join import JoinedKey, JoinedSet
from toolkit.stages.context import Context, Outcome, failures


class PartComparison(msgspec.Struct, kw_only=True):
    """Difference of two sets in a value, or its part.

    Attributes:
        key, other_key, path: Keys of both sets, and the part of the value.
        kind: ``number``, ``label`` or ``whole``.
        both, same, agreement: Documents with a value in both sets, those with the same, and their share.
        nulls: Documents without a value in ``both`` sets, in ``one`` alone, in the ``other`` alone.
        confusion: Number of documents by both labels; those of rare pairs are left out.
        means, correlation: Of numbers.
        mean_difference, mean_absolute_difference, largest_difference, quantiles: Differences of numbers.
        examples: Documents that differ, with both values.
    """

    key: str
    other_key: str
    path: str
    kind: str
    both: int
    same: int
    agreement: float | None
    nulls: dict[str, int]
    confusion: list[dict[str, Any]] = absent()
    confusion_left_out: int = absent()
    means: list[float] = absent()
    mean_difference: float = absent()
    mean_absolute_difference: float = absent()
    largest_difference: float = absent()
    correlation: float | None = absent()
    quantiles: dict[str, float] = absent()
    examples: list[Example]


class SetComparison(CommandResult, kw_only=True):
    """How two attribute sets differ.

    Attributes:
        sets: Names as they were given.
        sample: Sample that was compared, None for all documents.
        rows: Number of documents.
        parts: Comparison of each value, or part of it.
        failed: Messages of shards that could not be read.
    """

    sets: list[str]
    sample: str | None
    rows: int
    parts: list[PartComparison]
    failed: list[str]


class Options(questions.SetOptions, frozen=True, kw_only=True):
    """Options of ``toolkit compare``.

    Attributes:
        targets: two sets; settings, which override those of the file
        sample: compare in the sample that `tag --sample` has made (with -c)
        count: number of documents shown for each difference (3)
        seed: another seed shows other documents in which the sets differ (0)

    Raises:
        ConfigError: if there are not two sets, or it is not said of which dataset.
    """

    EXAMPLES: ClassVar = (
        "toolkit compare toxicity-0 toxicity-1 -c toxicity.yaml -n 5",
        "toolkit compare language-0.language.label language-1.language.label --dataset data/crawl",
    )

    targets: Annotated[tuple[str, ...], Words("SET[.KEY[.field]] | KEY=VALUE")] = ()
    sample: Annotated[bool, Flag()] = False
    count: Annotated[int, Flag("-n", metavar="N")] = 3
    seed: Annotated[int, Flag(parse=natural)] = 0

    def __post_init__(self) -> None:
        if len(self.targets) != 2:
            raise ConfigError(f"expected two sets to compare, got {len(self.targets)}")
        super().__post_init__()


def run(context: Context, options: Options) -> Outcome:
    """Compare two sets, row by row: agreement, confusion of labels, differences of numbers, with examples."""
    names = [target.partition(".")[0] for target in options.targets]
    dataset, over = questions.dataset_of(context, options.dataset, names, sampled=options.sample)
    shards = questions.shards_of(context, dataset, over)
    resolved = context.source_of(dataset, shards).resolve_each(names, options.command, check="warn")
    pairs = _pairs(options.targets, resolved.sets)
    works = resolved.joined(context.config.max_document_bytes)
    jobs = [comparing.ShardToCompare(work, pairs, options.count, options.seed) for work in works]
    results = context.run("compare", comparing.compare_shard, tasks_of(works, jobs))
    broken = [*resolved.unreadable.values(), *failures(results)]
    output = Comparison()
    for result in results:
        if result.value:
            output.merge(result.value, options.count)
    parts = [_compared(part, *counted) for part, counted in zip(parts_of(pairs), output.parts, strict=False)]
    text = f"{over}\n" if over else ""
    text += f"{options.targets[0]} and {options.targets[1]}: {amount(output.rows, 'document')}\n"
    text += "".join(f"\n{_show(part, names)}\n" for part in parts)
    data = SetComparison(sets=list(options.targets), sample=over or None, rows=output.rows, parts=parts, failed=broken)
    return Outcome(text=text.rstrip(), data=data, failures=broken)


def _pairs(targets: tuple[str, ...], sets: list[JoinedSet]) -> list[Pair]:
    """Return the keys to compare: those that are named; else those of one name, or the only ones of both sets."""
    named = [target.split(".")[1:] for target in targets]
    keys = [{key.key: key for key in joined.keys} for joined in sets]
    named_keys: list[JoinedKey | None] = []
    for target, joined, path in zip(targets, sets, named, strict=True):
        of_set = {key.key: key for key in joined.keys}
        if path and path[0] not in of_set:
            raise ConfigError(f"{target}: expected a key of the set {joined.set}, {mismatch(path[0], of_set)}")
        named_keys.append(of_set[path[0]] if path else next(iter(of_set.values())) if len(of_set) == 1 else None)
    fields = [".".join(path[1:]) for path in named]
    if fields[0] != fields[1] and any(named):
        raise ConfigError(f"expected the same field of both, got {targets[0]} and {targets[1]}")
    if not any(named):
        shared = [Pair(one=key, other=keys[1][name]) for name, key in keys[0].items() if name in keys[1]]
        if shared:
            return shared
    one, other = named_keys
    if one is None or other is None:
        raise ConfigError(
            f"expected sets with the same keys, got {', '.join(keys[0])} and {', '.join(keys[1])}; name them: SET.KEY"
        )
    pair = Pair(one=one, other=other, path=fields[0])
    if not comparing.parts_of([pair]):
        raise ConfigError(
            f"expected values of one kind under {targets[0]} and {targets[1]}, got types {one.declared} and "
            f"{other.declared}"
        )
    return [pair]


# --- for people and for machines --------------------------------------------------------------------------------------


def _show(part: PartComparison, names: list[str]) -> str:
    """Return the comparison of a part, for people."""
    lines = [_title(part) + (" (whether all of it is the same)" if part.kind == "whole" and part.both else "")]
    share = "" if part.agreement is None else f" ({part.agreement:.1%})"
    lines.append(f"  the same in {part.same:,} of {part.both:,} documents{share}")
    if any(part.nulls.values()):
        lines.append(
            f"  null in both: {part.nulls['both']:,}, in {names[0]} alone: {part.nulls['one']:,}, in {names[1]} alone: "
            f"{part.nulls['other']:,}"
        )
    if part.kind == "number" and part.both:
        correlation = (
            "none (one of them does not vary, or beyond floats)"
            if part.correlation is None
            else f"{part.correlation:.4f}"
        )
        means = f"mean {part.means[0]:.6g} -> {part.means[1]:.6g}; difference {part.mean_difference:+.4g}"
        distance = f"absolute {part.mean_absolute_difference:.4g}, at most {part.largest_difference:.4g}"
        lines.append(f"  {means}, {distance}; correlation {correlation}")
        shares = ", ".join(f"{float(share):.0%} {value:+.4g}" for share, value in part.quantiles.items())
        lines.append(f"  differences: {shares}")
    if part.kind == "label" and part.both:
        pairs = {(pair["one"], pair["other"]): pair["documents"] for pair in part.confusion}
        matrix = confusion(pairs, (names[0], names[1]), whole=not part.confusion_left_out)
        lines += [f"  {line}" for line in matrix.splitlines()]
    if part.examples:
        lines.append("  largest differences:" if part.kind == "number" else "  some that differ:")
    room = excerpts.width()
    for example in part.examples:
        one, other = (short(value, 120) for value in (example.one, example.other))
        lines.append(excerpts.head(f"    {one} -> {other}  {example.place}  {example.id}", max(room, 160)))
        lines.append("      | " + excerpts.head(example.text, room - 8))
    return "\n".join(lines)


def _title(part: PartComparison) -> str:
    keys = part.key if part.key == part.other_key else f"{part.key} and {part.other_key}"
    if part.path.startswith("len("):
        return f"len({keys}{part.path[4:]}"
    return f"{keys}.{part.path}" if part.path else keys


def _compared(part: Part, counts: Agreement, examples: list[Example]) -> PartComparison:
    both = counts.both
    result = PartComparison(
        key=part.pair.one.key,
        other_key=part.pair.other.key,
        path=part.path,
        kind=part.kind,
        both=both,
        same=counts.same,
        agreement=counts.same / both if both else None,
        nulls=counts.nulls,
        examples=examples,
    )
    if part.kind == "label":
        ranked = sorted(counts.pairs.items(), key=lambda pair: (-pair[1], pair[0]))
        decoded = [(msgspec.json.decode(pair), count) for pair, count in ranked if pair]
        result.confusion = [{"one": pair[0], "other": pair[1], "documents": count} for pair, count in decoded]
        result.confusion_left_out = counts.pairs.get("", 0)
    if part.kind == "number" and counts.differences and counts.differences.buckets:
        result.means = [counts.moments.x, counts.moments.y]
        result.mean_difference = counts.difference / both
        result.mean_absolute_difference = counts.absolute / both
        result.largest_difference = max(counts.differences.buckets.high, -counts.differences.buckets.low)
        result.correlation = counts.moments.correlation
        result.quantiles = quantiles(counts.differences)
    return result
