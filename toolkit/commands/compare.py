"""Compare two attribute sets of the same documents, such as two versions of a tagger."""

from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.aggregate.distributions import quantiles
from toolkit.command_line import CommandResult, Flag, Words, absent, natural
from toolkit.commands import _questions as questions
from toolkit.commands._questions import confusion
from toolkit.data import excerpts
from toolkit.errors import ConfigError, amount, mismatch, short
from toolkit.execution.grouped import tasks_of
from toolkit.inspect import comparing
from toolkit.inspect.comparing import Compared, Example, Pair, Part
from toolkit.mix.joined_sets import JoinedSet, Key
from toolkit.stages.context import Context, Outcome, failures


class PartComparison(msgspec.Struct, kw_only=True):
    """How two sets differ in a value, or in a part of it.

    Attributes:
        key, other_key, path: Keys of both sets, and the part of the value.
        kind: ``number``, ``label`` or ``whole``.
        both, same, agreement: Documents with a value in both sets, those with the same, and their share.
        nulls: Documents without a value in ``both`` sets, in ``one`` alone, in the ``other`` alone.
        confusion: Of labels, documents by the label in the one and the other; those of rare pairs are left out.
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

    Raises:
        ConfigError: if there are not two sets, or it is not said of which dataset.
    """

    EXAMPLES: ClassVar = (
        "toolkit compare toxicity-0 toxicity-1 -c toxicity.yaml -n 5",
        "toolkit compare language-0.language.label language-1.language.label --dataset data/crawl",
    )

    targets: Annotated[
        tuple[str, ...], Words("two sets; settings, which override those of the file", "SET[.KEY[.field]] | KEY=VALUE")
    ] = ()
    sample: Annotated[bool, Flag("compare in the sample that `tag --sample` has made (with -c)")] = False
    count: Annotated[int, Flag("number of documents shown for each difference (3)", "-n", metavar="N")] = 3
    seed: Annotated[int, Flag("another seed shows other documents in which the sets differ (0)", parse=natural)] = 0

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
    output = Compared()
    for result in results:
        if result.value:
            output.add(result.value, options.count)
    text = f"{over}\n" if over else ""
    text += f"{options.targets[0]} and {options.targets[1]}: {amount(output.rows, 'document')}\n"
    text += "".join(f"\n{_show(part, names)}\n" for part in output.parts)
    data = SetComparison(
        sets=list(options.targets),
        sample=over or None,
        rows=output.rows,
        parts=[_compared(part) for part in output.parts],
        failed=broken,
    )
    return Outcome(text=text.rstrip(), data=data, failures=broken)


def _pairs(targets: tuple[str, ...], sets: list[JoinedSet]) -> list[Pair]:
    """Return which keys are compared: those that are named; else those of one name, or the only ones of both sets."""
    named = [target.split(".")[1:] for target in targets]
    keys = [{key.key: key for key in joined.keys} for joined in sets]
    asked: list[Key | None] = []
    for target, joined, path in zip(targets, sets, named, strict=True):
        of_set = {key.key: key for key in joined.keys}
        if path and path[0] not in of_set:
            raise ConfigError(f"{target}: expected a key of the set {joined.set}, {mismatch(path[0], of_set)}")
        asked.append(of_set[path[0]] if path else next(iter(of_set.values())) if len(of_set) == 1 else None)
    fields = [".".join(path[1:]) for path in named]
    if fields[0] != fields[1] and any(named):
        raise ConfigError(f"expected the same field of both, got {targets[0]} and {targets[1]}")
    if not any(named):
        shared = [Pair(one=key, other=keys[1][name]) for name, key in keys[0].items() if name in keys[1]]
        if shared:
            return shared
    one, other = asked
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


def _show(part: Part, names: list[str]) -> str:
    """Return what was found of a part, for people."""
    lines = [_title(part) + (" (whether all of it is the same)" if part.kind == "whole" and part.both else "")]
    share = "" if part.agreement is None else f" ({part.agreement:.1%})"
    lines.append(f"  the same in {part.same:,} of {part.both:,} documents{share}")
    if part.null_in_both or part.null_in_one or part.null_in_other:
        lines.append(
            f"  null in both: {part.null_in_both:,}, in {names[0]} alone: {part.null_in_one:,}, in {names[1]} alone: "
            f"{part.null_in_other:,}"
        )
    if part.kind == "number" and part.both:
        lines += [f"  {line}" for line in _numbers(part)]
    if part.kind == "label" and part.both:
        pairs = {tuple(msgspec.json.decode(pair)): count for pair, count in part.pairs.items() if pair}
        shown = confusion(pairs, (names[0], names[1]), whole=not part.pairs.get(""))
        lines += [f"  {line}" for line in shown.splitlines()]
    if part.examples:
        lines.append("  largest differences:" if part.kind == "number" else "  some that differ:")
    room = excerpts.width()
    for example in part.examples:
        one, other = (short(each_value, 120) for each_value in (example.one, example.other))
        lines.append(excerpts.head(f"    {one} -> {other}  {example.place}  {example.id}", max(room, 160)))
        lines.append("      | " + excerpts.head(example.text, room - 8))
    return "\n".join(lines)


def _title(part: Part) -> str:
    keys = part.key if part.key == part.other_key else f"{part.key} and {part.other_key}"
    if part.path.startswith("len("):
        return f"len({keys}{part.path[4:]}"
    return f"{keys}.{part.path}" if part.path else keys


def _numbers(part: Part) -> list[str]:
    x, y, varied = part.moments.x, part.moments.y, part.moments.correlation
    correlation = "none (one of them does not vary)" if varied is None else f"{varied:.4f}"
    absolute = part.absolute / part.both
    means = f"mean {x:.6g} -> {y:.6g}; difference {part.difference / part.both:+.4g}"
    return [
        f"{means}, absolute {absolute:.4g}, at most {part.largest:.4g}; correlation {correlation}",
        "differences: " + ", ".join(f"{float(q):.0%} {value:+.4g}" for q, value in quantiles(part.differences).items()),
    ]


def _compared(part: Part) -> PartComparison:
    compared = PartComparison(
        key=part.key,
        other_key=part.other_key,
        path=part.path,
        kind=part.kind,
        both=part.both,
        same=part.same,
        agreement=part.agreement,
        nulls={"both": part.null_in_both, "one": part.null_in_one, "other": part.null_in_other},
        examples=part.examples,
    )
    if part.kind == "label":
        listed = sorted(part.pairs.items(), key=lambda pair: (-pair[1], pair[0]))
        decoded = [(msgspec.json.decode(pair), count) for pair, count in listed if pair]
        compared.confusion = [{"one": pair[0], "other": pair[1], "documents": count} for pair, count in decoded]
        compared.confusion_left_out = part.pairs.get("", 0)
    if part.kind == "number" and part.both:
        compared.means = [part.moments.x, part.moments.y]
        compared.mean_difference = part.difference / part.both
        compared.mean_absolute_difference = part.absolute / part.both
        compared.largest_difference = part.largest
        compared.correlation = part.moments.correlation
        compared.quantiles = quantiles(part.differences)
    return compared
