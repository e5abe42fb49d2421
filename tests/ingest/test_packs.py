"""Where packs end: told from each input, so that one that comes or goes changes what is beside it, and no more."""

import itertools
import random
from pathlib import Path

import pytest
import xxhash
from hypothesis import example, given, strategies as st

from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.ingest import plan
from toolkit.ingest.ingest_config import Entry
from toolkit.ingest.plan import InputFile, InputToIngest, makers
from toolkit.ingest.shares import Dealer, Share
from toolkit.storage import Stat, packed_rows

BOUND = 1000
INPUTS = st.dictionaries(st.text("abc.019/é", min_size=1, max_size=8), st.integers(0, BOUND - 1), max_size=60)

Pack = tuple[str, ...]


def cut(inputs: dict[str, int], bound: int = BOUND) -> list[Pack]:
    """The packs of inputs, in the order of their paths."""
    listed = sorted(inputs.items())
    return [tuple(listed[i][0] for i in places) for places in plan.divide(listed, bound)]


def ends(path: str, size: int, bound: int = BOUND) -> bool:
    """Whether the path of an input says that a pack ends behind it; in floating point, hence not at the very edge."""
    weight = size + bound / plan.MOST
    return xxhash.xxh3_64_intdigest(path.encode()) / 2**64 < plan.SMALLER * weight / bound


@given(INPUTS)
def test_each_input_is_in_one_pack_and_none_is_too_large(inputs: dict[str, int]) -> None:
    found = cut(inputs)
    assert [path for pack in found for path in pack] == sorted(inputs)
    assert all(pack and sum(inputs[path] for path in pack) <= BOUND for pack in found)


@given(INPUTS)
def test_a_pack_ends_where_a_path_says_so_or_where_the_next_input_is_too_large(inputs: dict[str, int]) -> None:
    found = cut(inputs)
    for pack, after in itertools.pairwise(found):
        weight = sum(inputs[path] + BOUND / plan.MOST for path in (*pack, after[0]))
        assert ends(pack[-1], inputs[pack[-1]]) or weight > BOUND
    assert not any(ends(path, inputs[path]) for pack in found for path in pack[:-1])


@given(INPUTS, st.data())
def test_what_lies_between_paths_that_end_packs_depends_on_nothing_else(
    inputs: dict[str, int], data: st.DataObject
) -> None:
    if not inputs:
        return
    gone = data.draw(st.sampled_from(sorted(inputs)))
    left = {path: size for path, size in inputs.items() if path != gone}
    before = [path for path in sorted(left) if path < gone and ends(path, left[path])]
    after = [path for path in sorted(left) if path > gone and ends(path, left[path])]
    for pack in set(cut(inputs)) ^ set(cut(left)):
        assert not before or pack[0] > before[-1]
        assert not after or pack[-1] <= after[0]


def test_one_of_a_thousand_inputs_that_comes_or_goes_changes_at_most_two_packs() -> None:
    chance = random.Random(2)
    inputs = {f"notes/{i:04d}.txt": chance.randrange(50, 2000) for i in range(1000)}
    bound = 64_000
    before = set(cut(inputs, bound))
    assert len(before) > 16  # as there would be if all were full
    for path in list(inputs)[::5]:
        without = {other: size for other, size in inputs.items() if other != path}
        added = inputs | {path + "-more": chance.randrange(50, 2000)}
        assert len(set(cut(without, bound)) - before) <= 2
        assert len(set(cut(added, bound)) - before) <= 2


def test_many_inputs_of_no_size_share_few_packs() -> None:
    found = cut({f"{i:06d}.txt": 0 for i in range(20_000)}, 64_000_000)
    assert 10 < len(found) < 40


# What the shares of a job own: all of it, once, in equal parts, and the same however it is looked at.

NAMES = st.text("ab.019/é", min_size=1, max_size=6)
SIZES = st.dictionaries(NAMES, st.integers(0, 50) | st.none(), max_size=30)
COUNTS = st.integers(1, 12)


def held(sizes: dict[str, int | None], dealt: dict[str, int], count: int) -> tuple[list[int], list[int], list[int]]:
    """Bytes, things with a size, and things without, of each share."""
    found: tuple[list[int], ...] = ([0] * count, [0] * count, [0] * count)
    for name, share in dealt.items():
        size = sizes[name]
        found[0][share] += size or 0
        found[1 if size is not None else 2][share] += 1
    return found[0], found[1], found[2]


@given(SIZES, COUNTS, st.randoms())
@example({"a": 0, "b": None, "c": None}, 3, random.Random(0))
def test_a_deal_is_balanced_and_does_not_depend_on_the_order(
    sizes: dict[str, int | None], count: int, chance: random.Random
) -> None:
    dealt = Dealer(count).deal(sizes)
    assert dealt.keys() == sizes.keys()
    assert set(dealt.values()) <= set(range(count))
    load, sized, unsized = held(sizes, dealt, count)
    assert max(load) - min(load) <= max((size for size in sizes.values() if size), default=0)
    assert max(unsized) - min(unsized) <= 1
    if len(sizes) >= count:
        assert all(a + b for a, b in zip(sized, unsized, strict=True)), "no share is empty"
    shuffled = list(sizes.items())
    chance.shuffle(shuffled)
    assert Dealer(count).deal(dict(shuffled)) == dealt


@given(st.lists(SIZES, min_size=1, max_size=4), COUNTS)
def test_what_is_dealt_later_fills_up_what_was_dealt_before(deals: list[dict[str, int | None]], count: int) -> None:
    """As the datasets of a mix."""
    dealer = Dealer(count)
    load, unsized = [0] * count, [0] * count
    for sizes in deals:
        more, _, none = held(sizes, dealer.deal(sizes), count)
        load = [a + b for a, b in zip(load, more, strict=True)]
        unsized = [a + b for a, b in zip(unsized, none, strict=True)]
    assert max(load) - min(load) <= max((size or 0 for sizes in deals for size in sizes.values()), default=0)
    assert max(unsized) - min(unsized) <= 1


def test_things_of_one_size_are_dealt_in_turn() -> None:
    assert Dealer(3).deal(dict.fromkeys("gfedcba", 5)) == dict(zip("abcdefg", [0, 1, 2] * 3, strict=False))
    assert Dealer(3).deal(dict.fromkeys("gfedcba")) == dict(zip("abcdefg", [0, 1, 2] * 3, strict=False))


def work(dataset: Dataset, shard: str, *, cut: bool, size: int | None = 1) -> InputToIngest:
    common = {"format": "jsonl", "from": "x", **({"shard_size": 1000} if cut else {})}
    entry = Entry(common=common, options={})
    file = InputFile(path=f"in/{shard}", relative=shard, key=shard, stat=Stat(size, "") if size is not None else None)
    return InputToIngest(dataset, entry, files=[file], shard=shard, max_document_bytes=1)


@given(st.dictionaries(NAMES, st.booleans(), min_size=1, max_size=8), COUNTS, st.integers(0, 200_000))
def test_all_shards_of_an_input_belong_to_its_owner_and_every_other_to_one_share(
    inputs: dict[str, bool], count: int, number: int
) -> None:
    dataset = Dataset("d", "a")
    works = [work(dataset, name, cut=cut) for name, cut in inputs.items()]
    shares = [Share(i, count, dataset, works) for i in range(count)]
    of_inputs = {one.shard: [i for i, share in enumerate(shares) if share.owns_input(one)] for one in works}
    assert all(len(owners) == 1 for owners in of_inputs.values())
    wanted: dict[str, set[int]] = {}
    for one in works:
        for name in {one.shard_name(), one.shard_name(number)}:
            wanted.setdefault(name, set()).update(of_inputs[one.shard])
    for name in (*wanted, "other.jsonl.gz", "other.00001.jsonl.gz", "other.json"):
        owners = {i for i, share in enumerate(shares) if share.owns(dataset, name)}
        assert len(owners) == 1
        assert owners <= wanted.get(name, owners)  # two inputs for one name are refused where they are ingested


def test_shards_that_other_settings_named_belong_to_their_input() -> None:
    dataset = Dataset("d", "a")
    a, b, numbered = (work(dataset, name, cut=cut) for name, cut in (("a", False), ("b", True), ("b.00001", False)))
    maker = makers([a, b, numbered])
    assert [maker(f"{name}.jsonl.gz") for name in ("a", "a.00007", "b", "b.00000", "b.00001")] == [a, a, b, b, b]
    assert [maker(name) for name in ("a.jsonl", "c.jsonl.gz", "a.1.jsonl.gz", "c.00001.jsonl.gz")] == [None] * 4
    assert makers([numbered])("b.00001.jsonl.gz") == numbered
    assert [maker(f"{name}.jsonl.zst") for name in ("a", "a.00007", "b.00000")] == [a, a, b]


def test_without_inputs_the_documents_are_dealt_by_their_bytes_the_own_ones_first(tmp_path: Path) -> None:
    own, other = (Dataset(str(tmp_path / name), str(tmp_path / "attributes")) for name in ("own", "other"))
    for dataset, sizes in ((own, {"a": 10, "b": 6, "c": 5}), (other, {"a": 1, "b": 1})):
        for name, size in sizes.items():
            path = tmp_path / dataset.documents / f"{name}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x" * size)
    asked = [(own, ["a", "b", "c"]), (other, ["a", "b"])]
    found = []
    for order in (asked, asked[::-1]):
        shares = [Share(i, 2, own, []) for i in range(2)]
        found.append(
            {
                (dataset.documents, name): [i for i in range(2) if shares[i].owns(dataset, f"{name}.jsonl")]
                for dataset, names in order
                for name in names
            }
        )
    assert found[0] == found[1]
    assert [owners for (root, _), owners in sorted(found[0].items()) if root == own.documents] == [[0], [1], [1]]
    assert all(len(owners) == 1 for owners in found[0].values())
    assert shares[0].plan()["bytes"] == {"here": 12, "all": 23, "least": 11, "most": 12, "largest": 10}


def test_planned_inputs_are_those_that_were_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry stays the same object; a part of the inputs is a list, all of them are themselves."""
    monkeypatch.setattr(packed_rows, "PACKED", 3)
    dataset, entries = Dataset("d", "a"), [Entry(common={"format": "jsonl"}, options={}) for _ in range(2)]
    works = [
        InputToIngest(
            dataset=dataset,
            entry=entries[number % 2],
            files=[
                InputFile(path=f"p/{i}", relative=f"{i}", key=f"s/{i}", stat=Stat(i, "t") if i else None)
                for i in range(3)
            ],
            shard=f"s/{number}",
            max_document_bytes=1,
            types=OwnTypes(fields={"a": {"b": "int"}}) if number % 2 else None,
        )
        for number in range(8)
    ]
    planned = plan.PlannedInputs(iter(works))
    assert [*planned] == works == [planned[i] for i in range(8)]
    assert all(work.entry is entries[number % 2] for number, work in enumerate(planned))
    assert (planned[:], planned[:None], len(planned), planned[-1]) == (planned, planned, 8, works[-1])
    assert planned[2:4] == works[2:4]
    maker = makers(planned)
    assert [maker("s/7.jsonl.gz"), maker("s/8.jsonl.gz")] == [works[7], None]
