"""Normalisations: examples, and every character that there is."""

import os
import random
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, strategies as st

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, write_rows
from tests.whole_corpus.making import make, write_shards
from toolkit.errors import ConfigError, DataError
from toolkit.whole_corpus.exact import pieces, runs
from toolkit.whole_corpus.exact.pieces import Texts, hashes_128, numbers_of

SYMBOLS = "´∶～━►"
SIGNS = "，。、„”“«»」「《》：？！（）；–—．’…〈〉【】％" + SYMBOLS
"""What cc_net's own code removes, beside controls (``text_normalizer.py`` of facebookresearch/cc_net)."""


def of_cc_net(line: str) -> str:
    """What cc_net's ``normalize_for_dedup`` makes of a line, in a few words of our own."""
    kept = [c for c in re.sub(r"\d", "0", line.strip().lower()) if c not in SIGNS and unicodedata.category(c) != "Cc"]
    return "".join(kept)


@given(st.text(st.sampled_from("aAéÉ1٣ \t\x0c«»“.,-!´►İΣς…\u0301\u00adǅ가") | st.characters(exclude_characters="\n")))
def test_what_is_equal_for_cc_net_s_code_is_equal_here(line: str) -> None:
    assert pieces.whole("ccnet", of_cc_net(line)) == pieces.whole("ccnet", line)


@pytest.mark.slow
def test_ccnet_takes_punctuation_accents_and_controls_away_and_nothing_else() -> None:
    for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, sys.maxunicode + 1, 97)):
        character = chr(code)
        kept = [
            "0" if unicodedata.category(c) == "Nd" else c
            for c in unicodedata.normalize("NFD", character.lower())
            if c == "\n"
            or not (unicodedata.category(c)[0] == "P" or unicodedata.category(c) in ("Mn", "Cc") or c in SYMBOLS)
        ]
        assert pieces.ccnet(character) == "".join(kept), hex(code)


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("none", " A\n", " A\n"),
        ("dolma", " \n ", ""),
        ("dolma", " A ", " A "),
        ("ccnet", " Café, 12:30!\n", "cafe 0000"),
        ("ccnet", "…", ""),
        ("datatrove", " Café—x, 12.30!\n\n3", "cafe x 0 0"),
        ("unicode", "  ＡB\n\n ﬁ\tSTRASSE ", "ab fi strasse"),
        ("unicode", "straße", "strasse"),
        ("url", "HTTPS://www.Example.org:443/A/?b=C#d", "example.org/A?b=C"),
        ("url", "http://example.org:8080", "example.org:8080"),
        ("url", "no address", "no address"),
    ],
)
def test_whole_texts(name: pieces.Normalisation, text: str, same: str) -> None:
    assert pieces.whole(name, text) == same


def test_a_broken_address_is_an_error() -> None:
    with pytest.raises(DataError, match="expected an address, got 'http://"):
        pieces.whole("url", "http://[a")


# Hashes that are compiled are those of the library.


def test_hashes_are_those_of_the_library_for_every_length() -> None:
    chance = random.Random(1)
    texts = [
        chance.randbytes(size)
        for size in [*range(1, 260), *range(1020, 1030), *range(1080, 1095), 2048, 2049, 5000, 100_000]
        for _ in range(4)
    ]
    chance.shuffle(texts)
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - np.array([len(text) for text in texts])
    buffer = np.frombuffer(b"".join(texts) + bytes(16), dtype=np.int8)
    expected = b"".join(map(xxhash.xxh3_128_digest, texts))
    found = hashes_128(Texts(buffer, starts, ends, len(texts)))
    assert found.astype(">u8").tobytes() == expected
    assert np.array_equal(found, numbers_of(expected, 128))
    assert len(hashes_128(Texts(buffer, starts[:0], ends[:0], 0))) == 0


# Bloom filters: nothing that was seen is new, and what is new counts as seen as rarely as was asked for.


@pytest.mark.parametrize("rate", [0.1, 0.01, 0.001])
def test_the_rate_is_met(rate: float) -> None:
    """Of hashes that are all different, as when the filter is made for them alone: it fills up to the last."""
    high, low = np.random.default_rng(1).integers(0, 1 << 64, (2, 200_000), dtype=np.uint64)
    seen = 1 - runs.first_seen(high, low, rate).mean()
    assert 0 < seen <= rate
    again = runs.first_seen(np.concatenate([high, high]), np.concatenate([low, low]), rate)
    assert not again[len(high) :].any()


def test_what_is_small_is_as_asked_for() -> None:
    assert runs.bits_of(0, 1e-6) == 64
    assert runs.bits_of(1_000_000, 1e-6) / 8e6 == pytest.approx(1.1 * 3.594, rel=1e-3)  # bytes a hash


def shards(count: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    chance = random.Random(seed)
    return {
        f"{shard}.jsonl.gz": [
            document(f"{shard}-{i}", "\n".join(str(chance.randrange(4000)) for _ in range(30))) for i in range(60)
        ]
        for shard in range(count)
    }


@pytest.mark.slow
def test_lines_are_those_of_the_exact_set_but_for_some_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.whole_corpus.exact.runs.KEYS", 500)
    dataset = write_shards(tmp_path, shards(4, 2))
    rate = 0.05
    entry = {"kind": "exact", "unit": "line", "approximate": "bloom", "false_positive_rate": rate}
    sets: dict[str, dict[str, Any]] = {"e-0": {"kind": "exact", "unit": "line", "as": "e"}, "b-0": {**entry, "as": "b"},
            "c-0": {**entry, "as": "c", "memory": 100_000}}  # fmt: skip
    found = {}
    for name, options in sets.items():
        made = make(dataset, {name: options})
        found[name] = [line for shard in made.values.values() for line in shard]
        notes = made.resolutions[name].notes
        assert options.get("approximate") is None or notes[0].startswith("Bloom filters of 0.0 MB in ")
    exact, near, again = found.values()
    assert near == again
    pairs = [(a, b) for x, y in zip(exact, near, strict=True) for a, b in zip(x["seen"], y["seen"], strict=True)]
    assert all(b for a, b in pairs if a)
    new = [b for a, b in pairs if not a]
    assert 0 < sum(new) / len(new) <= rate
    with pytest.raises(ConfigError, match="memory: expected at least 1 MB for `approximate: bloom`"):
        make(dataset, {"d-0": {**entry, "as": "d", "memory": 1000}})


# Signatures of ranks and samples: what is read for them.


def test_no_text_is_read_where_attributes_and_row_indexes_say_all(tmp_path: Path, run: Run) -> None:
    config = {
        "dataset": str(tmp_path / "data"),
        "tag": {"length-0": "length"},
        "calibrate": {"rank-0": {"kind": "rank", "score": "length-0.length.chars"}},
        "sample": {"few-0": {"documents": 3, "weight": "length.chars"}},
    }
    project = Project(tmp_path, run, config)
    path = project.documents / "a.jsonl"
    write_rows(path, [document(str(i), "x" * (i + 1)) for i in range(9)])
    project.ok("tag")
    before = path.stat()
    path.write_bytes(b"?" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    project.ok("calibrate")
    project.ok("sample")
    assert [row["rank"]["rank"] for row in project.values("rank-0", "a.jsonl")] == [(2 * i + 1) / 18 for i in range(9)]
    assert sum(row["sample"]["chosen"] for row in project.values("few-0", "a.jsonl")) == 3


def test_other_documents_than_those_that_were_indexed_are_refused(tmp_path: Path, run: Run) -> None:
    config = {"dataset": str(tmp_path / "data"), "tag": {"length-0": "length"}, "dedup": {"exact-0": {"kind": "exact"}}}
    project = Project(tmp_path, run, config)
    path = project.documents / "a.jsonl"
    write_rows(path, [document("a", "x"), document("b", "y")])
    project.ok("tag")
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"y"', b'"x"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    project("dedup").fails(1, "got other content with the same size and time")
    project.ok("dedup")
    assert [row["exact"]["copies"] for row in project.values("exact-0", "a.jsonl")] == [2, 2]


def test_a_source_with_a_nul_byte_is_refused(tmp_path: Path, run: Run) -> None:
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "tag": {"length-0": "length"}})
    write_rows(project.documents / "a.jsonl", [document("c", "", "a\0b"), document("b\0c", "", "a")])
    project("tag").fails(1, f"{project.documents / 'a.jsonl'}:1: expected a source without NUL bytes")
