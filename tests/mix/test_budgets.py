"""What a budget wants of each group, and which copies it takes."""

import itertools
import struct
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import (
    HealthCheck,
    given,
    settings as settings_orphans,
    settings as settings_shuffle_sorting,
    strategies as st,
)

from tests.whole_corpus.making import run_here
from toolkit.config import settings
from toolkit.errors import ConfigError
from toolkit.exchange import thresholds
from toolkit.exchange.thresholds import Keys, KeySource
from toolkit.mix import assemble
from toolkit.mix.budget import BudgetSettings, read_budget
from toolkit.mix.budget.bounds import Bound, find_bounds, settled
from toolkit.mix.orphans import COPY, ELSEWHERE, GONE, Orphan, ShardNotes, judge
from toolkit.mix.plan import PartPlan
from toolkit.rules.kinds.repeat import EVERYTHING
from toolkit.storage.compression import compress_fast

COPIES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 2**64 - 1) | st.integers(0, 5), st.integers(0, 50)), max_size=60
)


class _Given(KeySource):
    """Copies of a shard: group, hash, amount."""

    copies: list[tuple[str, int, int]]

    def read(self) -> Iterator[Keys]:
        for group, copies in itertools.groupby(sorted(self.copies), key=lambda copy: copy[0]):
            listed = list(copies)
            hashes = np.array([hash_ for _, hash_, _ in listed], dtype=np.uint64)
            yield Keys("abc".index(group), hashes, np.array([amount for *_, amount in listed], dtype=float))


@pytest.mark.slow
@given(st.lists(COPIES, max_size=4), st.dictionaries(st.sampled_from("abc"), st.integers(0, 900)), st.booleans())
def test_the_bound_is_where_the_amounts_up_to_it_are_nearest_to_the_goal(
    shards: list[list[tuple[str, int, int]]], given: dict[str, int], few: bool
) -> None:
    goals = {group: float(given.get(group, 100)) for group in "abc"}
    cells, thresholds.CELLS = thresholds.CELLS, 12 if few else thresholds.CELLS
    try:
        with tempfile.TemporaryDirectory() as folder:
            sources = [_Given(copies=shard) for shard in shards] or [_Given(copies=[])]
            listed = find_bounds(run_here, "bounds", folder, sources, [[goal, goal / 2] for goal in goals.values()])
    finally:
        thresholds.CELLS = cells
    several = dict(zip(goals, listed, strict=True))
    found, taken = ({group: each[0][0][i] for group, each in several.items()} for i in (0, 1))
    assert all(each[1][0].hash <= each[0][0].hash for each in several.values())
    for group, goal in goals.items():
        amounts: dict[int, float] = defaultdict(float)
        for name, hash_, amount in itertools.chain.from_iterable(shards):
            amounts[hash_] += amount * (name == group)
        mine = {hash_ for name, hash_, _ in itertools.chain.from_iterable(shards) if name == group}
        sums = [0.0, *itertools.accumulate(amounts[hash_] for hash_ in sorted(mine))]
        assert taken[group] == sum(amounts[hash_] for hash_ in mine if hash_ <= found[group])
        assert abs(taken[group] - goal) == min(abs(each - goal) for each in sums)
        assert found[group] == EVERYTHING or sums[-1] > goal
        around = [bound.amount for bound in several[group][0]]
        if len(around) == 2:
            assert [min(around), max(around)] == [
                max(each for each in sums if each <= goal),
                min(each for each in sums if each > goal),
            ]
        else:
            assert goal in sums or sums[-1] < goal


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40), st.booleans()), min_size=1, max_size=40))
def test_groups_together_come_to_the_sum_within_half_a_document(given: list[tuple[float, int, bool]]) -> None:
    goals, around = dict[str, float](), dict[str, list[Bound]]()
    for i, (part, size, is_enough) in enumerate(given):
        below, goal = 100.0 * i, 100.0 * i + part * size
        goals[f"{i:02}"] = goal
        options = [Bound(0, below), Bound(1, below + size)] if is_enough else [Bound(EVERYTHING, below)]
        around[f"{i:02}"] = sorted(options, key=lambda bound, goal=goal: abs(bound.amount - goal))  # type: ignore[misc]
    found = settled(around, goals)
    assert all(found[group] in options for group, options in around.items())
    met = [group for group, options in around.items() if len(options) == 2]
    largest = max((size for _, size, is_enough in given if is_enough), default=0)
    assert abs(sum(found[group].amount - goals[group] for group in met)) <= largest / 2 + 1e-6


def budget(text: str) -> BudgetSettings:
    return read_budget(settings.parse(text, "c.yaml"))


HAS = {"en": 8000.0, "de": 1000.0, "fr": 1000.0}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{tokens: 2 k}", {"": 2000}),
        ("{documents: 1_000, by: label}", {"en": 800, "de": 100, "fr": 100}),
        ("{tokens: 1e3, by: label, temperature: 0}", {"en": 1000 / 3, "de": 1000 / 3, "fr": 1000 / 3}),
        ("{bytes: 1.5 MB, by: label, shares: {en: 1, default: 0.5}}", {"en": 750_000, "de": 375_000, "fr": 375_000}),
        ("{tokens: {en: 5 M, default: all}, by: label}", {"en": 5_000_000, "de": 1000, "fr": 1000}),
        ("{tokens: {en: 7, de: 0, default: 2, xx: 3}, by: label}", {"en": 7, "de": 0, "fr": 2, "xx": 3}),
    ],
)
def test_targets_are_amounts_or_shares(text: str, wanted: dict[str, float]) -> None:
    assert budget(text).targets_of({"": 9.0} if list(wanted) == [""] else HAS) == pytest.approx(wanted)


@pytest.mark.parametrize("tau", [0.3, 0.7, 1.0])
def test_a_temperature_gives_shares_in_proportion_to_a_power(tau: float) -> None:
    wanted = budget(f"{{tokens: 1000, by: label, temperature: {tau}}}").targets_of(HAS)
    powers = {group: (n / 10_000) ** tau for group, n in HAS.items()}
    assert wanted == pytest.approx({group: 1000 * n / sum(powers.values()) for group, n in powers.items()})


def test_what_a_group_lacks_is_given_by_others_only_if_that_is_said() -> None:
    text = "{{tokens: 9000, by: label, shares: {{en: 1, de: 1, fr: 1}}, short: {}}}"
    assert budget(text.format("report")).goals(HAS)[1] == {"en": 3000, "de": 3000, "fr": 3000}
    wanted, goals = budget(text.format("redistribute")).goals(HAS)
    assert (wanted["de"], goals) == (3000, {"en": 7000, "de": 1000, "fr": 1000})
    assert sum(budget(text.format("redistribute").replace("9000", "99999")).goals(HAS)[1].values()) == 10_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "expected one of documents, bytes, characters, words, tokens with its amount, got none"),
        ("{tokens: 1, words: 2, of: n}", "got words and tokens"),
        ("{words: 5}", "words: expected `of` beside it"),
        ("{bytes: 5, of: n}", "expected `of` only with words or tokens, got it with bytes"),
        ("{bytes: 5 Q}", "expected a size such as"),
        ("{tokens: -5}", "expected an amount such as 1000000, 500 M or 2 G, got -5"),
        ("{tokens: all}", "got 'all'"),
        ("{tokens: {en: 5}}", "expected `by` beside it"),
        ("{tokens: 5, shares: {en: 5}}", "expected `by` beside it"),
        ("{tokens: {en: 5}, by: label, temperature: 1}", "expected one amount for all groups together"),
        ("{tokens: 5, by: label, temperature: 1, shares: {en: 1}}", "expected `shares` or `temperature`, got both"),
        ("{tokens: 5, by: label, shares: {en: -1}}", "expected a share, a number of 0 or more, got -1"),
        ("{tokens: 5, by: label, shares: {en: 0}}", "expected shares above 0, got none"),
        ("{tokens: 5, short: redistribute}", "without groups, no other group can give more"),
        ("{token: 5}", "did you mean 'tokens'"),
    ],
)
def test_a_section_that_says_nothing_clear_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        budget(text)
    assert message in str(raised.value)
    assert str(raised.value).startswith("c.yaml:1: ")


def test_a_group_without_target_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"expected a target for each group, got none for de \(1,000 tokens\), fr"):
        budget("{tokens: {en: 1}, by: label}").targets_of(HAS)


# Which documents nothing stands for, against a slow count of them.

SPREAD = 0x9E3779B97F4A7C15

documents = st.lists(
    st.tuples(
        st.booleans(),  # stays
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=2
        ),  # rule, of; 2 is against another dataset
        st.booleans(),  # no other rule drops it
    ),
    max_size=30,
)


def wrote(folder: Path, name: str, kept: bytes, copies: bytes) -> ShardNotes:
    """Writes what is noted of a shard."""
    (folder / f"{name}.kept").write_bytes(kept)
    (folder / f"{name}.copies").write_bytes(copies)
    return ShardNotes(f"{folder}/{name}.kept", f"{folder}/{name}.copies", len(kept + copies))


@pytest.mark.slow
@given(documents, st.integers(1, 4))
@settings_orphans(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_stands_for_what(
    tmp_path: Path, found: list[tuple[bool, list[tuple[int, int]], bool]], shards: int
) -> None:
    noted: list[ShardNotes | None] = []
    standing = {i for i, (stays, _, _) in enumerate(found) if stays}
    for shard in range(shards):
        mine = [(i, *each) for i, each in enumerate(found) if i % shards == shard]
        kept = b"".join(struct.pack("<Q", i * SPREAD % 2**64) for i, stays, _, _ in mine if stays)
        copies = b"".join(
            COPY.pack(i * SPREAD % 2**64, of * SPREAD % 2**64, i + 1, rule, 0, flags)
            for i, stays, named, only in mine
            for rule, of, flags in [*((r, of, only | ELSEWHERE * (r == 2)) for r, of in named), (0, i, GONE)]
            if not stays
        )
        noted += [wrote(tmp_path, f"{shard}", kept, copies), None]
    here = set(range(len(found)))
    standing |= {
        i for i, (_, named, _) in enumerate(found) for rule, of in named if rule == 2 and (of == i or of not in here)
    }
    edges = [(i, of) for i, (stays, named, _) in enumerate(found) if not stays for _, of in named]
    while more := {i for i, of in edges if of in standing} - standing:
        standing |= more
    lost = [
        Orphan(2 * (i % shards), i + 1, named[0][0], 0)
        for i, (stays, named, only) in enumerate(found)
        if named and only and not stays and i not in standing
    ]
    judged = judge(noted)
    assert judged.counts == Counter((each.shard, each.rule, each.set) for each in lost)
    assert judged.first == sorted(lost)[:3]


@pytest.mark.slow
def test_long_chains(tmp_path: Path) -> None:
    for last in (0, 1):
        copies = b"".join(COPY.pack(i * SPREAD % 2**64, (i + 1) * SPREAD % 2**64, i + 1, 0, 0, 1) for i in range(200))
        kept = struct.pack("<Q", 200 * SPREAD % 2**64) * last
        assert judge([wrote(tmp_path, "0", kept, copies)]).counts.total() == 200 * (not last)


# The second stage of a shuffle: what one sort in memory gives, each member read once, nothing left behind.


@settings_shuffle_sorting(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=st.lists(st.lists(st.tuples(st.integers(0, 999), st.binary(max_size=40)), max_size=60), max_size=8),
    bounds=st.tuples(st.integers(0, 999), st.integers(0, 999)).map(sorted),
    range_=st.integers(16, 3000),
    most=st.integers(2, 5),
)
def test_pieces_come_in_the_order_of_hashes_and_then_as_they_were(
    runs: list[list[tuple[int, bytes]]],
    bounds: list[int],
    range_: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With ranges that do not fit, and are divided again, and with many pieces of one hash, which cannot be."""
    low, high = bounds
    wanted = [frame for run in runs for frame in run if low <= frame[0] <= high]
    stored = [b"".join(struct.pack(">QI", hash_, len(data)) + data for hash_, data in run) for run in runs]
    read: Counter[str] = Counter()

    def of_run(key: str, offset: int, length: int) -> bytes:
        read[key] += 1
        return compress_fast(stored[int(key)])

    part = PartPlan(
        label="",
        path="",
        pieces=[],
        size=sum(len(data) for _, data in wanted),
        documents=len(wanted),
        low=low,
        high=high,
        runs=[(str(number), 0, 0) for number in range(len(runs))],
    )
    with monkeypatch.context() as small:
        small.setattr(assemble, "RANGE", range_)
        small.setattr(assemble, "MOST", most)
        small.setattr(assemble, "JOINED", 100)
        chunks = list(assemble.sorted_chunks(part, of_run, "gzip-fast", str(tmp_path)))
    assert b"".join(chunks) == b"".join(data for _, data in sorted(wanted, key=lambda frame: frame[0]))
    assert all(0 < len(chunk) <= 100 for chunk in chunks if len(wanted) and chunk)
    assert set(read.values()) <= {1}
    assert list(tmp_path.iterdir()) == []
