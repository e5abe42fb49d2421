"""Exact duplicates against a reference in memory, over all units, normalisations, scopes, ranks and conditions."""

import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.whole_corpus.making import LIMIT, make, write_shards
from toolkit.data import row_index
from toolkit.data.documents import split_lines
from toolkit.whole_corpus.exact import pieces as pieces_module, runs

pytestmark = pytest.mark.slow

Row = dict[str, Any]
Place = tuple[int, int, int]
"""Shard, row, piece."""


# --- the reference ----------------------------------------------------------------------------------------------------


def plain(name: str, text: str) -> str:
    """A text or piece as it is compared, character by character."""
    if name == "dolma":
        return text if text.strip() else ""
    if name == "unicode":
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        return " ".join(folded.split())
    if name == "ccnet":
        characters = unicodedata.normalize("NFD", text.lower())
        kept = [
            "0" if unicodedata.category(c) == "Nd" else c
            for c in characters
            if c == "\n" or not (unicodedata.category(c).startswith("P") or unicodedata.category(c) in ("Mn", "Cc"))
        ]
        return "".join(kept).strip()
    return text


def pieces(unit: str, text: str) -> list[tuple[int, int, list[str]]]:
    """Beginning, end and lines of each piece."""
    ends = [match.end() for match in re.finditer(r"\n|(?<=[^\n])\Z", text)]
    found: list[tuple[int, int, list[str]]] = []
    begin = 0
    inside = False
    for end, line in zip(ends, split_lines(text), strict=True):
        if unit == "line":
            found.append((begin, end, [line]))
        elif not line.strip():
            if found:
                found[-1] = (found[-1][0], end, found[-1][2])
            inside = False
        elif inside:
            found[-1] = (found[-1][0], end, [*found[-1][2], line])
        else:
            found.append((begin, end, [line]))
            inside = True
        begin = end
    return found


def reference(shards: Sequence[Sequence[Row]], entry: Mapping[str, Any], others: int = 0) -> list[list[Any]]:
    """The values of all documents but those of the first shards, which are of another dataset."""
    unit, name = entry.get("unit", "document"), entry.get("normalize", "none")
    keep, scope = entry.get("keep", "first"), entry.get("scope", "all")
    groups: dict[Any, list[tuple[bool, float, Place]]] = {}
    for i, rows in enumerate(shards):
        for j, row in enumerate(rows):
            if entry.get("when") == 'get(document.metadata, "asked", False)' and not row["metadata"]["asked"]:
                continue
            score = row["metadata"]["score"]
            rank = 0 if keep == "first" else -score if "max" in keep else score
            if unit == "document":
                text = row["metadata"].get("url") if "of" in entry else row["text"]
                found = [] if text is None else [plain(name, text)]
            else:
                found = []
                for *_, lines in pieces(unit, row["text"]):
                    same = "\n".join(plain(name, line) for line in lines)
                    found.append("" if unit == "paragraph" and name != "none" and not same.strip() else same)
            for k, same in enumerate(found):
                if same:
                    within = {"all": 0, "source": row["source"]}.get(scope, row["metadata"].get("label"))
                    groups.setdefault((within, same), []).append((i >= others, rank, (i, j, k)))
    lost: dict[Place, Place] = {}
    copies: dict[Place, int] = {}
    for members in groups.values():
        (*_, best), *_ = sorted(members)
        for *_, place in members:
            copies[place] = len(members)
            if place != best:
                lost[place] = best
    values: list[list[Any]] = [[] for _ in shards]
    for i, rows in enumerate(shards):
        for j, row in enumerate(rows):
            if unit == "document":
                of = lost.get((i, j, 0))
                other = shards[of[0]][of[1]] if of else None
                values[i].append(
                    {
                        "duplicate_of": [other["source"], other["id"]] if other else None,
                        "copies": copies.get((i, j, 0), 0),
                    }
                )
                continue
            listed = pieces(unit, row["text"])
            seen = [(i, j, k) in lost for k in range(len(listed))]
            spans: list[list[float]] = []
            for (begin, end, _), gone in zip(listed, seen, strict=True):
                if gone and spans and spans[-1][1] == begin:
                    spans[-1][1] = end
                elif gone:
                    spans.append([begin, end, 1.0])
            chars = sum(end - begin for begin, end, _ in spans)
            values[i].append({"seen": seen, "spans": spans, "chars_seen": chars})
    return values[others:]


# --- corpora with planted duplicates ----------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        "Page 12",
        "page 34",
        "PAGE 12!",
        "",
        "  ",
        "Página 7",
        "pagina 7",
        "a b",
        "A  b",
        "ﬁn",
        "fin",
        "\r",
        "x\r",
        "…",
        "\x1c",
    ]
)
TEXTS = st.lists(LINES, max_size=5).map("\n".join) | st.lists(LINES, max_size=3).map(lambda x: "\n".join([*x, ""]))


@st.composite
def corpora(draw: st.DrawFn) -> list[list[Row]]:
    texts = draw(st.lists(TEXTS, min_size=1, max_size=4))
    shards = draw(st.lists(st.lists(st.sampled_from(texts) | TEXTS, max_size=5), min_size=1, max_size=4))
    return [
        [
            {
                "id": f"{i}-{j}",
                "source": draw(st.sampled_from("st")),
                "text": text,
                "metadata": {
                    "score": draw(st.sampled_from([0.5, 1, -2])),
                    "asked": draw(st.booleans()),
                    "label": draw(st.sampled_from(["en", "fr", None])),
                    "url": draw(st.sampled_from(["http://a", "b", None])),
                },
            }
            for j, text in enumerate(rows)
        ]
        for i, rows in enumerate(shards)
    ]


SCORE = 'get(document.metadata, "score", 0)'


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    unit = draw(st.sampled_from(["document", "line", "paragraph"]))
    entry: dict[str, Any] = {"kind": "exact", "unit": unit}
    entry["normalize"] = draw(st.sampled_from(["none", "dolma", "ccnet", "unicode"]))
    entry["keep"] = draw(st.sampled_from(["first", {"max": SCORE}, {"min": SCORE}]))
    entry["scope"] = draw(st.sampled_from(["all", "source", 'get(document.metadata, "label", None)']))
    entry["bits"] = draw(st.sampled_from([64, 128]))
    entry["memory"] = draw(st.sampled_from([400, 1000, "256 MB"]))  # a few keys at a time
    if unit == "document" and draw(st.booleans()):
        entry["of"] = 'get(document.metadata, "url", None)'
    if draw(st.booleans()):
        entry["when"] = 'get(document.metadata, "asked", False)'
    return entry


def named(shards: list[list[Row]]) -> dict[str, list[Row]]:
    return {f"{i}.jsonl.gz": rows for i, rows in enumerate(shards)}


@given(corpora(), entries(), st.sampled_from([1, 3, 1 << 19]), st.integers(0, 2))
def test_values_are_those_of_the_reference(
    shards: list[list[Row]], entry: dict[str, Any], items: int, others: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "ITEMS", items)  # of a run
        patch.setattr(runs, "_CELL", 1)  # a fan of several cells
        if others := min(others, len(shards) - 1):
            write_shards(Path(folder, "other"), named(shards[:others]))
            entry["against"] = f"{folder}/other"
        dataset = write_shards(Path(folder), named(shards[others:]))
        made = make(dataset, {"exact-0": entry})
        assert list(made.values.values()) == reference(shards, entry, others)


SENTENCES = st.lists(st.sampled_from(["One.", "Two two!", "TWO, two!", "3 of 4?", "?!", "Five"]), max_size=9)


@given(st.lists(st.lists(SENTENCES, max_size=3), min_size=1, max_size=3), st.integers(1, 4), st.sampled_from([1, 999]))
def test_of_spans_of_sentences_the_first_stays(texts: list[list[list[str]]], length: int, items: int) -> None:
    """Each sentence of a later one is seen, with the white space before it."""
    seen = set[str]()
    expected: list[list[Any]] = []
    for rows in texts:
        expected.append([])
        for parts in rows:
            ends = list(itertools.accumulate(len(part) + (i > 0) for i, part in enumerate(parts)))
            sentences = [i for i, part in enumerate(parts) if i == 0 or (part != "?!" and parts[i - 1][-1] in ".!?")]
            places = [0, *(ends[i - 1] for i in sentences[1:]), *ends[-1:]]
            text = " ".join(parts)
            normal = [pieces_module.datatrove(text[a:b]) for a, b in itertools.pairwise(places)]
            repeated = [False] * len(normal)
            for i in range(len(normal) - length + 1):
                span = " ".join(normal[i : i + length])
                if span.strip() and span in seen:
                    repeated[i : i + length] = [True] * length
                seen.add(span)
            spans: list[list[float]] = []
            for (a, b), gone in zip(itertools.pairwise(places), repeated, strict=True):
                if gone and spans and spans[-1][1] == a:
                    spans[-1][1] = b
                elif gone:
                    spans.append([a, b, 1.0])
            expected[-1].append({"seen": repeated, "spans": spans, "chars_seen": int(sum(b - a for a, b, _ in spans))})
    shards = [
        [{"id": f"{i}-{j}", "source": "s", "text": " ".join(parts)} for j, parts in enumerate(rows)]
        for i, rows in enumerate(texts)
    ]
    entry = {"kind": "exact", "unit": "sentence", "length": length, "normalize": "datatrove"}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "ITEMS", items)
        made = make(write_shards(Path(folder), named(shards)), {"exact-0": entry})
        assert list(made.values.values()) == expected


@pytest.mark.parametrize("items", [1, 1 << 19])
def test_of_equal_documents_of_other_datasets_the_one_that_keep_prefers_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    """Whatever their shards are, and whatever parts of these were sorted by themselves."""
    monkeypatch.setattr(runs, "ITEMS", items)
    rows = [
        {"id": name, "source": "s", "text": "same", "metadata": {"score": score}}
        for name, score in (("a", 2), ("b", 1), ("c", 0), ("d", 0), ("own", -9))
    ]
    write_shards(tmp_path / "other", named([rows[:2], rows[2:4]]))
    entry = {"kind": "exact", "against": f"{tmp_path}/other"}
    for keep, expected in (("first", "a"), ({"min": SCORE}, "c"), ({"max": SCORE}, "a")):
        dataset = write_shards(tmp_path / str(keep), named([rows[4:]]))
        made = make(dataset, {"exact-0": entry | {"keep": keep}})
        assert made.values["0.jsonl.gz"] == [{"duplicate_of": ["s", expected], "copies": 5}]


@given(corpora(), corpora(), entries())
def test_shards_that_are_added_change_no_more_than_they_must(
    old: list[list[Row]], new: list[list[Row]], entry: dict[str, Any]
) -> None:
    """Old text is not read; with `keep: first` what was a copy of something stays one of the same."""
    with TemporaryDirectory() as folder:
        before = make(write_shards(Path(folder), named(old)), {"exact-0": entry})
        more = {f"z{name}": rows for name, rows in named(new).items()}
        after = make(write_shards(Path(folder), more), {"exact-0": entry})
        assert list(after.values.values()) == reference([*old, *new], entry)
        assert after.signed == [f"exact-0 {name}" for name in more]
        changed = {name for name, values in before.values.items() if after.values[name] != values}
        assert {f"exact-0 {name}" for name in changed} == {*after.written} - {f"exact-0 {name}" for name in more}
        if entry["keep"] == "first":
            assert {k: fate(v) for k, v in before.values.items()} == {k: fate(after.values[k]) for k in before.values}


@given(corpora(), entries(), st.sampled_from([1, 1 << 19]))
def test_digests_of_fates_do_not_depend_on_partitions(
    shards: list[list[Row]], entry: dict[str, Any], items: int
) -> None:
    """Or else attributes would be written again for nothing."""
    found = []
    for memory in (300, "256 MB"):
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(runs, "ITEMS", items)
            dataset = write_shards(Path(folder), named(shards))
            found.append(make(dataset, {"exact-0": entry | {"memory": memory}}).fates["exact-0"])
    assert found[0] == found[1]


ODD_NAMES = ["", "}", '"}', '","id":"', '{"source":"', '","', "\\", "\n", "é"]


def test_names_may_have_in_them_what_stands_between_names(tmp_path: Path) -> None:
    names = [[source, id] for source, id in itertools.product(ODD_NAMES, ODD_NAMES)]
    rows = [{"source": source, "id": id, "text": f"{i}"} for i, (source, id) in enumerate(names)]
    rows += [{"source": "copy", "id": f"{i}", "text": f"{i}"} for i in range(len(names))]
    values = make(write_shards(tmp_path, {"a.jsonl.gz": rows}), {"exact-0": {"kind": "exact"}}).values["a.jsonl.gz"]
    assert [value["duplicate_of"] for value in values] == [*[None] * len(names), *names]


def fate(values: list[Any]) -> list[Any]:
    """The values without the number of copies, which grows."""
    return [{key: found for key, found in value.items() if key != "copies"} for value in values]


FIELDS: list[dict[str, Any]] = [
    {},
    {"added": "2024-05-18", "metadata": None},
    {"metadata": {"warc_headers": {"warc-record-id": "b", "warc-date": "2024-05-18"}, "a.b": {"c": 1}}},
    {"other": [1, {"c": None}]},
    {"attributes": {"seen": True}},
]


@pytest.mark.parametrize("fields", [*([each] for each in FIELDS), FIELDS])
def test_what_is_indexed_while_it_is_signed_is_what_is_indexed_alone(
    tmp_path: Path, fields: list[dict[str, Any]]
) -> None:
    texts = ["", "a", "é\n𝒳\r\n", "\n", "a\r", 'tab\t"\\', "a"]
    rows = [
        {"id": f"{i}", "text": text, "source": "é"} | each
        for i, (text, each) in enumerate(itertools.product(texts, fields))
    ]
    signed, alone = (write_shards(tmp_path / name, {"a.jsonl.gz": rows}) for name in ("signed", "alone"))
    make(signed, {"exact-0": {"kind": "exact"}})
    state = row_index.recorded(signed, "a.jsonl.gz")
    assert state
    assert state == msgspec.structs.replace(row_index.build(alone, "a.jsonl.gz", LIMIT), stamp=state.stamp)
    assert Path(row_index.path_of(signed, "a.jsonl.gz")).read_bytes() == (
        Path(row_index.path_of(alone, "a.jsonl.gz")).read_bytes()
    )
