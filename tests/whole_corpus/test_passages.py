"""Passages against a few lines of plain Python that look at each of them."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import xxhash
from hypothesis import example, given, strategies as st

from tests.whole_corpus.making import make, write_shards
from tests.whole_corpus.test_exact import Row, named
from toolkit.errors import ConfigError
from toolkit.text import LineTable, Words
from toolkit.whole_corpus.exact import runs
from toolkit.whole_corpus.passages.chunks import Cut, stretches_of

TOKENIZER = str(Path(__file__).parents[1] / "taggers" / "files" / "tokenizer.json")
"""Byte-level: several of its tokens are one character, and blanks are part of tokens."""
try:
    from tokenizers import Tokenizer

    LIBRARY = Tokenizer.from_file(TOKENIZER)
    LIBRARY.no_truncation()
    LIBRARY.no_padding()
    UNITS = ["byte", "word", "token"]
except ImportError:
    UNITS = ["byte", "word"]

SCORE = 'get(document.metadata, "score", 0)'
ASKED = 'get(document.metadata, "asked", False)'


def reference(shards: Sequence[Sequence[Row]], entry: Mapping[str, Any], others: int = 0) -> list[list[Any]]:
    """The values of all documents but those of the first shards, which are of another dataset."""
    length, keep, scope = entry.get("length", 500), entry.get("keep", "first"), entry.get("scope", "all")
    unit = entry.get("unit", "byte")
    ordered = []
    for i, rows in enumerate(shards):
        for j, row in enumerate(rows):
            score = row["metadata"]["score"]
            rank = 0 if keep == "first" else -score if "max" in keep else score
            ordered.append((-math.inf if i < others else rank, i, j, row))
    known = set()
    values: list[list[Any]] = [[None] * len(rows) for rows in shards]
    for _, i, j, row in sorted(ordered, key=lambda each: each[:3]):
        within = {"all": 0, "source": row["source"]}.get(scope, row["metadata"]["label"])
        words = words_of(row["text"]) if unit == "word" else []
        text: Any = row["text"].encode()
        if unit == "word":
            text = tuple(row["text"][slice(*word)] for word in words)
        elif unit == "token":
            tokens = LIBRARY.encode(row["text"], add_special_tokens=False)
            text = tuple(tokens.ids)
        seen = []
        for at in range(len(text) - length + 1) if not entry.get("when") or row["metadata"]["asked"] else ():
            passage = (within, text[at : at + length])
            if passage in known:
                seen.append(at)
            known.add(passage)
        if unit != "byte":
            inside = {at + k for at in seen for k in range(length)}
            of = of_words(row["text"], words, inside) if unit == "word" else of_tokens(row["text"], tokens, inside)
            values[i][j] = of
            continue
        spans: list[list[float]] = []
        size = begin = 0
        for number, character in enumerate(row["text"]):
            end = begin + len(character.encode())
            if any(at <= begin and end <= at + length for at in seen):
                size += end - begin
                if spans and spans[-1][1] == number:
                    spans[-1][1] = number + 1
                else:
                    spans.append([number, number + 1, 1.0])
            begin = end
        chars = sum(end - start for start, end, _ in spans)
        values[i][j] = {"spans": spans, "chars": chars, "bytes": size}
    return values[others:]


def words_of(text: str) -> list[tuple[int, int]]:
    """The words that taggers know, punctuation, too, by code points."""
    words = Words.of(LineTable.of([text]), "segments")
    data = text.encode()
    bounds = zip((words.starts - 1).tolist(), (words.ends - 1).tolist(), strict=True)
    return [(len(data[:begin].decode()), len(data[:end].decode())) for begin, end in bounds]


def of_words(text: str, words: Sequence[tuple[int, int]], seen: Collection[int]) -> dict[str, Any]:
    """The value of a document some of whose words are in repeats."""
    spans: list[list[float]] = []
    for number in sorted(seen):
        if number - 1 in seen:
            spans[-1][1] = words[number][1]
        else:
            spans.append([*words[number], 1.0])
    return of_spans(text, spans)


def of_tokens(text: str, tokens: Any, seen: Collection[int]) -> dict[str, Any]:
    """The value of a document some of whose tokens are in repeats: of characters all whose tokens are."""
    of_characters: list[list[int]] = [[] for _ in text]
    for number, (start, end) in enumerate(tokens.offsets):
        for place in range(start, end):
            of_characters[place].append(number)
    spans: list[list[float]] = []
    for place, mine in enumerate(of_characters):
        if mine and all(number in seen for number in mine):
            if spans and spans[-1][1] == place:
                spans[-1][1] = place + 1
            else:
                spans.append([place, place + 1, 1.0])
    return of_spans(text, spans)


def of_spans(text: str, spans: list[list[float]]) -> dict[str, Any]:
    parts = [text[int(start) : int(end)] for start, end, _ in spans]
    return {"spans": spans, "chars": sum(map(len, parts)), "bytes": sum(len(part.encode()) for part in parts)}


PIECE = st.text("ab", min_size=1, max_size=30) | st.text("aé€𝒳\n", max_size=12) | st.integers(1, 40).map("ab".__mul__)
WORDS = st.lists(st.sampled_from(["x", "Yy", "é", "1", "的", ".", "\n"]), max_size=12).map(" ".join)


@st.composite
def corpora(draw: st.DrawFn) -> list[list[Row]]:
    """Documents of pieces of which some are in several of them, whole or in part."""
    planted = draw(st.lists(st.text("abé€𝒳", min_size=8, max_size=40), min_size=1, max_size=3))
    part = st.tuples(st.sampled_from(planted), st.integers(0, 6), st.integers(0, 6))
    piece = PIECE | WORDS | st.sampled_from(planted) | part.map(lambda each: each[0][each[1] : len(each[0]) - each[2]])
    texts = st.lists(piece, max_size=4).map("".join)
    return [
        [
            {
                "id": f"{i}-{j}",
                "source": draw(st.sampled_from("st")),
                "text": text,
                "metadata": {
                    "score": draw(st.sampled_from([0.5, 1, -2])),
                    "asked": draw(st.booleans()),
                    "label": draw(st.sampled_from(["en", None])),
                },
            }
            for j, text in enumerate(rows)
        ]
        for i, rows in enumerate(draw(st.lists(st.lists(texts, max_size=4), min_size=1, max_size=4)))
    ]


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    unit = draw(st.sampled_from(UNITS))
    entry: dict[str, Any] = {"kind": "passages", "unit": unit}
    if unit == "token":
        entry["tokenizer"] = TOKENIZER
    entry["length"] = draw(st.sampled_from([10, 11, 17] if unit == "byte" else [5, 6]))
    entry["keep"] = draw(st.sampled_from(["first", {"max": SCORE}, {"min": SCORE}]))
    entry["scope"] = draw(st.sampled_from(["all", "source", 'get(document.metadata, "label", None)']))
    entry["memory"] = draw(st.sampled_from([1500, 20_000, "256 MB"]))
    if draw(st.booleans()):
        entry["when"] = ASKED
    return entry


TOKENS = {"unit": "token", "length": 5, "tokenizer": TOKENIZER} if "token" in UNITS else {"length": 10}


def rows_of(*texts: str) -> list[Row]:
    metadata = {"score": 1, "asked": True, "label": None}
    return [{"id": str(i), "source": "s", "text": text, "metadata": metadata} for i, text in enumerate(texts)]


@pytest.mark.slow
@given(corpora(), entries(), st.sampled_from([1, 3, 1 << 19]), st.integers(0, 2))
@example([rows_of("-" * 30, "=" + "-" * 30)], {"kind": "passages", "length": 10}, 1, 0)
@example([rows_of("a b c d e f", "x, a b  c\nd e, f")], {"kind": "passages", "unit": "word", "length": 5}, 1, 0)
@example([rows_of("a € b € c € d", "x € b € c € d €")], {"kind": "passages"} | TOKENS, 1, 0)
@example([rows_of("-" * 500)], {"kind": "passages", "length": 10}, 1, 0)  # more stretches than there is room for
def test_values_are_those_of_the_reference(
    shards: list[list[Row]], entry: dict[str, Any], items: int, others: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "ITEMS", items)  # of a run
        patch.setattr(runs, "_CELL", 1)
        if others := min(others, len(shards) - 1):
            write_shards(Path(folder, "other"), named(shards[:others]))
            entry = entry | {"against": f"{folder}/other"}
        made = make(write_shards(Path(folder), named(shards[others:])), {"passages-0": entry})
        assert list(made.values.values()) == reference(shards, entry, others)


def test_the_hashes_of_stretches_are_those_of_ever() -> None:
    """Or else what is kept of a shard would not be told from what is made now; then the version of the kind rises."""
    found = stretches_of([b"", "ab\u20acd".encode() * 9, b"-" * 14], Cut.of(10), [0, 0, 7])
    assert found.counts.tolist() == [0, 15, 5]
    assert found.passages.sum() == 45 + 5
    assert xxhash.xxh3_64_hexdigest(found.keys.astype(">u8").tobytes() + found.places.tobytes()) == "f39d11e2e8eef7a1"


def test_repeats_of_words_are_found_whatever_white_space_is_between_them(tmp_path: Path) -> None:
    texts = "One, two: three four.", "So: one, two", "é One,\ntwo  : three four! 的"
    made = make(
        write_shards(tmp_path, named([rows_of(*texts)])), {"p-0": {"kind": "passages", "unit": "word", "length": 6}}
    )
    (values,) = made.values.values()
    assert [value["spans"] for value in values] == [[], [], [[2, 24, 1.0]]]
    assert texts[2][2:24] == "One,\ntwo  : three four"


def test_spans_of_tokens_are_of_whole_characters_of_the_text_as_it_is(tmp_path: Path) -> None:
    """White space that is no token is in them, and a character of several tokens only if all of these are repeats."""
    pytest.importorskip("tokenizers")
    file = json.loads(Path(TOKENIZER).read_text(encoding="utf-8"))
    file |= {"pre_tokenizer": {"type": "Whitespace"}, "normalizer": {"type": "NFKC"}}
    (tmp_path / "t.json").write_text(json.dumps(file), encoding="utf-8")
    entry = {"kind": "passages", "unit": "token", "length": 5, "tokenizer": str(tmp_path / "t.json")}
    texts = "one two", "x one\n two y", "afield", "\ufb01eld 2", "zioned, 3 \ufb01oned"
    made = make(write_shards(tmp_path, named([rows_of(*texts)])), {"passages-0": entry})
    (values,) = made.values.values()
    assert [value["spans"] for value in values] == [[], [[2, 10, 1.0]], [], [[0, 4, 1.0]], [[11, 15, 1.0]]]
    assert values[3]["bytes"] == 6


def test_another_tokenizer_is_another_setting_and_its_place_is_none(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    for name, more in (("a.json", ""), ("b.json", ""), ("c.json", "\n")):
        (tmp_path / name).write_text(Path(TOKENIZER).read_text(encoding="utf-8") + more, encoding="utf-8")
    dataset = write_shards(tmp_path, named([rows_of("-" * 30)]))
    entry = {"kind": "passages", "unit": "token", "length": 5}
    assert make(dataset, {"passages-0": entry | {"tokenizer": str(tmp_path / "a.json")}}).written
    assert not make(dataset, {"passages-0": entry | {"tokenizer": str(tmp_path / "b.json")}}).written
    with pytest.raises(ConfigError, match="tokenizer"):
        make(dataset, {"passages-0": entry | {"tokenizer": str(tmp_path / "c.json")}})


def test_one_copy_of_overlapping_repeats_stays(tmp_path: Path) -> None:
    """As the docs say it: what goes is decided by the texts as they are, not by what is left of them."""
    a, b, c, d, e = ("".join(chr(97 + i) + str(j) for j in range(200)) for i in range(5))
    dataset = write_shards(tmp_path, named([rows_of(a + b + c, b + c + d, c + d + e)]))
    (values,) = make(dataset, {"passages-0": {"kind": "passages"}}).values.values()
    assert [value["spans"] for value in values] == [[], [[0, len(b + c), 1.0]], [[0, len(c + d), 1.0]]]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"length": 9}, "length: expected a number of bytes from 10 to 1,000,000, got 9"),
        ({"length": "500 B"}, "length"),
        ({"unit": "line"}, "unit"),
        ({"unit": "word", "length": 4}, "length: expected a number of words from 5 to 100,000, got 4"),
        ({"unit": "token"}, "tokenizer: expected a file `tokenizer.json` with `unit: token`, got none"),
        ({"unit": "word", "tokenizer": "x"}, "tokenizer: expected it only with `unit: token`, got `unit: word`"),
        ({"keep": {}}, "keep: expected `first`, {max: EXPRESSION} or {min: EXPRESSION}"),
    ],
)
def test_options_that_do_not_fit_are_refused(entry: dict[str, Any], expected: str, tmp_path: Path) -> None:
    dataset = write_shards(tmp_path, named([rows_of("a")]))
    with pytest.raises(ConfigError) as raised:
        make(dataset, {"passages-0": {"kind": "passages"} | entry})
    assert expected in str(raised.value)


def test_what_is_left_of_a_resolution_whose_spans_are_gone_is_of_no_use(tmp_path: Path) -> None:
    dataset = write_shards(tmp_path, named([rows_of("ab" * 20, "-" + "ab" * 20)]))
    entries_ = {"passages-0": {"kind": "passages", "length": 20}}
    expected = make(dataset, entries_)
    (spans,) = tmp_path.rglob("fates-0")
    spans.unlink()
    left = spans.parent / "work-256000000"
    left.mkdir()
    (left / "part-0-of-1.json").write_text('{"digests":{},"distinct":0,"stay":0}')
    (tmp_path / "attributes/passages-0/0.jsonl.gz").unlink()
    assert make(dataset, entries_).values == expected.values
    assert not left.exists()


@pytest.mark.slow
@given(corpora(), corpora(), entries(), st.sampled_from([1, 1 << 19]))
def test_neither_memory_nor_the_time_at_which_shards_come_changes_anything(
    old: list[list[Row]], new: list[list[Row]], entry: dict[str, Any], items: int
) -> None:
    found = []
    more = {f"z{name}": rows for name, rows in named(new).items()}
    for memory, later in ((1500, True), ("256 MB", False)):
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(runs, "ITEMS", items)
            mine = {"passages-0": entry | {"memory": memory}}
            if later:
                make(write_shards(Path(folder), named(old)), mine)
                made = make(write_shards(Path(folder), more), mine)
                assert made.signed == [f"passages-0 {name}" for name in more]
            else:
                made = make(write_shards(Path(folder), named(old) | more), mine)
            found.append((made.values, made.fates["passages-0"], made.resolutions["passages-0"].counts))
    assert found[0] == found[1]
