"""Samples: exact sizes, quotas, chances that follow the weights and nothing else, bounded memory."""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.whole_corpus.making import make, run_here, write_shards
from toolkit.config.settings import ConfigNode
from toolkit.errors import ToolkitError
from toolkit.exchange.thresholds import Keys, KeySource
from toolkit.rules.rule import sample_hash
from toolkit.whole_corpus import corpus_config
from toolkit.whole_corpus.kinds.sample import (
    Sample,
    StratumChoice,
    allot,
    choose,
    equal_quotas,
    proportional_quotas,
    weighted_key,
)
from toolkit.whole_corpus.records import load_signatures

Row = dict[str, Any]


# --- quotas -----------------------------------------------------------------------------------------------------------

COUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 60), min_size=1)


@given(COUNTS, st.integers(1, 300))
def test_equal_quotas_are_as_equal_as_the_strata_allow(counts: dict[str, int], total: int) -> None:
    found = equal_quotas(counts, total, "redistribute")
    given_ = {label: quota.size for label, quota in found.items()}
    assert sum(given_.values()) == min(total, sum(counts.values()))
    assert all(number <= counts[label] for label, number in given_.items())
    most = max(given_.values())
    assert all(number >= most - 1 or number == counts[label] for label, number in given_.items())
    assert sum(quota.target for quota in found.values()) == total


@given(COUNTS, st.integers(1, 300))
def test_what_is_lacking_is_reported_and_not_redistributed(counts: dict[str, int], total: int) -> None:
    for label, quota in equal_quotas(counts, total, "report").items():
        assert quota.size == min(quota.target, counts[label])


@given(COUNTS, st.data())
def test_proportional_quotas_are_within_one_of_the_share(counts: dict[str, int], data: st.DataObject) -> None:
    whole = sum(counts.values())
    total = data.draw(st.integers(1, whole))
    found = proportional_quotas(counts, total)
    assert sum(quota.size for quota in found.values()) == total
    for label, quota in found.items():
        assert abs(quota.size - Fraction(total * counts[label], whole)) < 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"documents": 9}, {"de": 4, "en": 4, "fi": 1}),
        ({"documents": 8}, {"de": 4, "en": 3, "fi": 1}),
        ({"documents": 9, "short": "report"}, {"de": 3, "en": 3, "fi": 1}),
        ({"documents": 50}, {"de": 6, "en": 20, "fi": 1}),
        ({"documents": 9, "quota": "proportional"}, {"de": 2, "en": 7, "fi": 0}),
        ({"share": 0.5, "quota": "proportional"}, {"de": 3, "en": 10, "fi": 1}),
        ({"quota": {"en": 4, "fi": 3, "xx": 2}}, {"en": 4, "fi": 1, "xx": 0}),
        ({"quota": {"en": 4, "fi": 3}, "short": "redistribute"}, {"en": 6, "fi": 1}),
        ({"documents": 10, "quota": {"en": 0.2, "de": 0.8}}, {"en": 4, "de": 6}),
        ({"documents": 10, "quota": {"en": 0.2, "de": 0.8}, "short": "report"}, {"en": 2, "de": 6}),
    ],
)
def test_quotas_of_options(options: dict[str, Any], expected: dict[str, int]) -> None:
    kind = Sample(by="document.source", **options)
    assert {label: quota.size for label, quota in allot(kind, {"en": 20, "de": 6, "fi": 1}).items()} == expected


# --- the choice -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40) | st.integers(0, 2**64 - 1)), max_size=30), max_size=4
    ),
    st.data(),
)
def test_the_choice_is_that_of_a_sort_in_any_memory(shards: list[list[tuple[int, int]]], data: st.DataObject) -> None:
    counts = [sum(stratum == i for shard in shards for stratum, _ in shard) for i in range(3)]
    wanted = [data.draw(st.integers(0, count)) for count in counts]
    memory = data.draw(st.sampled_from([1, 64, 100_000]))
    numbered = [(*row, (s << 32) + r) for s, shard in enumerate(shards) for r, row in enumerate(shard)]
    half = data.draw(st.integers(0, len(numbered)))
    with tempfile.TemporaryDirectory() as folder:
        sources = [_Given(rows=numbered[:half]), _Given(rows=numbered[half:])]
        found = choose(run_here, folder, sources, counts, wanted, memory)
        assert not os.listdir(folder)
    for i in range(3):
        rows = [(key, s, r) for s, shard in enumerate(shards) for r, (stratum, key) in enumerate(shard) if stratum == i]
        expected = {(s, r) for _, s, r in sorted(rows)[: wanted[i]]}
        assert {(s, r) for key, s, r in rows if _is_chosen(found[i], key, s, r)} == expected


class _Given(KeySource):
    """Keys with strata and places."""

    rows: list[tuple[int, int, int]]

    def read(self) -> Iterator[Keys]:
        for stratum in range(3):
            mine = [row for row in self.rows if row[0] == stratum]
            keys, places = (np.array([row[i] for row in mine], dtype=np.uint64) for i in (1, 2))
            yield Keys(stratum, keys, np.ones(len(mine)), places)


def _is_chosen(found: StratumChoice, key: int, shard: int, row: int) -> bool:
    return key < found.below or (shard, row) in found.ties


# --- sets -------------------------------------------------------------------------------------------------------------


def corpus(count: int, seed: int = 0) -> list[Row]:
    drawn = random.Random(seed)
    return [
        {
            "id": f"{i}",
            "source": drawn.choice(["web", "web", "web", "books"]),
            "text": "x" * drawn.randrange(1, 50),
            "metadata": {"host": f"h{drawn.randrange(count // 3)}", "score": drawn.random()},
        }
        for i in range(count)
    ]


def drawn_ids(root: Path, shards: Mapping[str, Sequence[Row]], **options: Any) -> dict[str, Any]:
    """Return the values of the documents that are chosen, by id."""
    made = make(write_shards(root, shards), {"it-0": options}, name="sample")
    return {
        row["id"]: value
        for name, rows in shards.items()
        for row, value in zip(rows, made.values[name], strict=True)
        if value["chosen"]
    }


def test_the_same_documents_are_chosen_wherever_they_lie(tmp_path: Path) -> None:
    rows = corpus(300)
    one = drawn_ids(tmp_path / "one", {"a.jsonl.gz": rows}, documents=70, by="document.source")
    mixed = [*rows]
    random.Random(1).shuffle(mixed)
    shards = {"a.jsonl.gz": mixed[:10], "b/c.jsonl.gz": mixed[10:200], "d.jsonl.gz": mixed[200:]}
    assert drawn_ids(tmp_path / "several", shards, documents=70, by="document.source", memory=300) == one
    assert Counter(value["stratum"] for value in one.values()) == {"web": 35, "books": 35}
    assert (
        drawn_ids(tmp_path / "seed", {"a.jsonl.gz": rows}, documents=70, by="document.source", seed=2).keys()
        != one.keys()
    )


def test_only_what_when_lets_in_is_chosen_and_more_documents_of_a_seed_hold_the_fewer(tmp_path: Path) -> None:
    shards = {"a.jsonl.gz": corpus(200)}
    few = drawn_ids(tmp_path / "few", shards, documents=20, when="document.chars > 20")
    many = drawn_ids(tmp_path / "many", shards, share=0.5, when="document.chars > 20")
    chars = {row["id"]: len(row["text"]) for row in shards["a.jsonl.gz"]}
    assert len(few) == 20
    assert len(many) == int(sum(n > 20 for n in chars.values()) / 2 + 0.5)
    assert few.keys() < many.keys()
    assert all(chars[id_] > 20 for id_ in many)


def test_documents_of_a_group_are_in_the_same_split(tmp_path: Path) -> None:
    rows = corpus(600)
    options = {"documents": 500, "splits": {"train": 0.7, "test": 0.3}}
    grouped = drawn_ids(tmp_path / "host", {"a.jsonl.gz": rows}, **options, split_by="document.metadata['host']")
    hosts: dict[str, set[str]] = {}
    for row in rows:
        if row["id"] in grouped:
            hosts.setdefault(row["metadata"]["host"], set()).add(grouped[row["id"]]["split"])
    assert max(map(len, hosts.values())) == 1
    single = drawn_ids(tmp_path / "id", {"a.jsonl.gz": rows}, **options)
    train = sum(value["split"] == "train" for value in single.values())
    assert abs(train - 350) < 4 * (500 * 0.7 * 0.3) ** 0.5


@pytest.mark.slow
def test_every_document_is_as_likely_wherever_it_stands(tmp_path: Path) -> None:
    """Chances over 400 seeds: each document's within 5 deviations, those of halves and of even rows within 4."""
    rows, seeds, chosen = 60, 400, 15
    counts = np.zeros(rows)
    documents = [{"id": f"doc-{i}", "source": "s", "text": "t"} for i in range(rows)]
    for seed in range(seeds):
        keys = np.array([_key(seed, row["id"]) for row in documents], dtype=np.uint64)
        of_shard = _Given(rows=[(0, key, row) for row, key in enumerate(keys.tolist())])
        (found,) = choose(run_here, str(tmp_path), [of_shard], [rows], [chosen], 10**6)
        counts += keys < np.uint64(found.below)
    assert counts.sum() == seeds * chosen
    p = chosen / rows
    assert np.abs(counts - seeds * p).max() < 5 * (seeds * p * (1 - p)) ** 0.5
    for half in (counts[: rows // 2], counts[::2]):
        assert abs(half.sum() - seeds * chosen / 2) < 4 * (seeds * chosen * (1 - p)) ** 0.5 / 2


def _key(seed: int, id_: str) -> int:
    return sample_hash(str(seed), "s", id_)


def test_weights_are_chances(tmp_path: Path) -> None:
    """One of four documents with weights 1 to 4, and none of weight 0: chances of a tenth to four tenths."""
    seeds = 4000
    counts: Counter[int] = Counter()
    for seed in range(seeds):
        keys = [weighted_key(_key(seed, f"{weight}"), weight) for weight in (1, 2, 3, 4)]
        counts[1 + keys.index(min(keys))] += 1
    for weight in (1, 2, 3, 4):
        p = weight / 10
        assert abs(counts[weight] - seeds * p) < 4 * (seeds * p * (1 - p)) ** 0.5
    rows = [{"id": f"{i}", "source": "s", "text": "t", "metadata": {"w": i % 3}} for i in range(90)]
    options = {"documents": 80, "weight": "document.metadata['w']"}
    found = drawn_ids(tmp_path, {"a.jsonl.gz": rows}, **options)
    assert sorted(int(id_) for id_ in found) == [i for i in range(90) if i % 3]


def test_documents_with_the_same_id_are_told_apart(tmp_path: Path) -> None:
    shards = {name: [{"id": "0", "source": "s", "text": "t"}] * 20 for name in ("a.jsonl.gz", "b.jsonl.gz")}
    made = make(write_shards(tmp_path, shards), {"it-0": {"documents": 25}}, name="sample")
    assert [sum(value["chosen"] for value in values) for values in made.values.values()] == [20, 5]


def test_strata_with_other_labels_are_drawn_anew(tmp_path: Path) -> None:
    """When a set that is read calls languages otherwise, the files of a shard stay: labels are in its record."""
    dataset = write_shards(tmp_path, {"a.jsonl.gz": corpus(30)})
    make(dataset, {"it-0": {"documents": 5, "by": "document.source"}}, name="sample")
    record = load_signatures(dataset, "it-0", "a.jsonl.gz")
    assert record
    other = msgspec.structs.replace(record, details=[["eng", "deu"], record.details[1]])
    assert other.digest != record.digest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected `documents: N` or `share: P`, got neither"),
        ({"documents": 5, "share": 0.1}, "expected `documents` or `share`, got both"),
        ({"quota": {"en": 5}}, "quota: expected `by:` beside it"),
        ({"quota": {"en": 0.5}, "by": "document.source"}, "expected whole numbers of documents"),
        ({"quota": {"en": 5}, "by": "document.source", "documents": 9}, "expected shares that add up to 1"),
        ({"documents": 5, "splits": {"train": 0.5}}, "splits: expected shares that add up to 1, got 0.5"),
        ({"documents": 5, "split_by": "document.id"}, "expected `splits:` beside it"),
        ({"documents": 5, "copy": {"path": "x.txt"}}, "expected a file ending in .jsonl.gz .jsonl.zst .jsonl"),
        ({"documents": 5, "kind": "exact"}, "expected 'exact' in the section `dedup:`"),
        ({"documents": 5, "weight": "-1"}, "weight: expected a number of 0 or more, got -1"),
        ({"documents": 5, "wieght": "1"}, "did you mean 'weight'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolkitError) as raised:
        drawn_ids(tmp_path, {"a.jsonl.gz": corpus(20)}, **options)
    assert message in str(raised.value)


def test_a_sample_is_no_kind_of_duplicates(tmp_path: Path) -> None:
    dataset = write_shards(tmp_path, {"a.jsonl.gz": corpus(5)})
    with pytest.raises(ToolkitError, match="expected 'sample' in the section `sample:`"):
        corpus_config.read_section(ConfigNode({"x-0": {"kind": "sample", "documents": 1}}), dataset, {})
