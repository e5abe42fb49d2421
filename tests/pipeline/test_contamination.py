"""Documents that have n-grams of evaluation items, against a slow look for them; items of all forms; the report."""

import gzip
import json
import unicodedata
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.storage.conftest import bucket, seaweed
from toolkit import Document
from toolkit.text import LineTable, Words
from toolkit.whole_corpus.kinds import contamination
from toolkit.whole_corpus.kinds.contamination import BenchmarkItem, Index

__all__ = ["bucket", "seaweed"]

Place = tuple[str, int, int]


def words_of(text: str) -> list[Place]:
    """The normalised words of a text, with their code points."""
    table = Words.of(LineTable.of([text]))
    found = []
    data = text.encode()
    for start, end in zip((table.starts - 1).tolist(), (table.ends - 1).tolist(), strict=True):
        word = data[start:end].decode()
        plain = "".join(
            c for c in word.lower() if unicodedata.category(c)[0] not in "PS" and unicodedata.category(c) != "Cf"
        )
        found.append((plain, len(data[:start].decode()), len(data[:end].decode())))
    return found


def grams(text: str, n: int, min_words: int) -> set[tuple[str, ...]]:
    words = [word for word, _, _ in words_of(text)]
    if not words or len(words) < min(n, min_words):
        return set()
    n = min(n, len(words))
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def slowly(items: list[BenchmarkItem], text: str, n: int, min_words: int) -> dict[str, Any]:
    """The value of a document."""
    wanted = {item.name: {g for each in item.texts for g in grams(each, n, min_words)} for item in items}
    words = words_of(text)
    lengths = {len(gram) for each in wanted.values() for gram in each}
    hits = []
    for i in range(len(words)):
        for length in sorted(lengths):
            gram = tuple(word for word, _, _ in words[i : i + length])
            if len(gram) == length and any(gram in each for each in wanted.values()):
                hits.append((i, length, gram))
    here = {gram for _, _, gram in hits}
    shares = {name: len(each & here) / len(each) for name, each in wanted.items() if each & here}
    runs: list[list[float]] = []
    for i, length, gram in hits:
        share = max(shares[name] for name, each in wanted.items() if gram in each)
        if runs and i < runs[-1][1]:
            runs[-1][1], runs[-1][2] = max(runs[-1][1], i + length), max(runs[-1][2], share)
        else:
            runs.append([i, i + length, share])
    spans = [[words[int(a)][1], words[int(b) - 1][2], round(share, 4)] for a, b, share in runs]
    ordered = sorted(shares, key=lambda name: (-shares[name], int(name)))
    return {
        "contaminated": bool(hits),
        "share": round(max(shares.values(), default=0), 4),
        "chars": sum(b - a for a, b, _ in spans),
        "found": len(shares),
        "items": [{"benchmark": "b", "item": name, "share": round(shares[name], 4)} for name in ordered],
        "spans": spans,
    }


pieces = st.sampled_from(
    ["a", "A", "b", "É", "é", "don't", "don’t", "x-y", "3.14", "東", "京", "ไท", "soft\u00adly", "ß", "🙂"]
)
between = st.sampled_from([" ", "\n", "\r\n", ", ", " — ", "\n\n\n", "\u2028", "\u00a0", '"'])
texts = st.lists(st.tuples(pieces, between), max_size=25).map(lambda some: "".join(a + b for a, b in some))


@pytest.mark.slow
@given(
    st.lists(st.lists(texts, max_size=2), max_size=6), st.lists(texts, max_size=5), st.integers(1, 5), st.integers(1, 3)
)
def test_what_is_found_is_what_a_slow_look_finds(
    given_items: list[list[str]], documents: list[str], n: int, min_words: int
) -> None:
    items = [BenchmarkItem("b", str(i), each) for i, each in enumerate(given_items)]
    parts = [text for each in given_items for text in each][:3]
    documents = [*documents, " ".join([*documents[:1], *parts]).upper().replace(" ", "\n"), ""]
    found = contamination._find_items(
        Index(items, n, min_words), [Document(text, id="", source="") for text in documents]
    )
    values = [each.value if each else contamination._NONE for each in found]
    assert msgspec.json.decode(msgspec.json.encode(values)) == [slowly(items, text, n, min_words) for text in documents]


QUESTION = "Which of the three rivers, if any, flows north-east through the old town and then into the sea?"
SHORT = "Is it so, or not?"


@pytest.fixture
def held(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Documents with an item in other clothes, with half of one, with a short one, with none."""
    monkeypatch.chdir(project.root)
    wrapped = QUESTION.upper().replace(" ", "\r\n").replace(",", ";")
    half = " ".join(QUESTION.split()[:14])
    rows = [
        document("whole", f"Intro.\n\n{wrapped} Outro"),
        document("half", f"Of late: {half} — nobody knows"),
        document("short", "He asked: “is it so — or not”! Then he left."),
        document("none", "Which of the three rivers flows north?"),
    ]
    write_rows(project.documents / "a.jsonl.gz", rows[:2])
    write_rows(project.documents / "b.jsonl.gz", rows[2:])
    write_rows(
        project.root / "evals" / "geo.jsonl", [{"text": QUESTION}, {"text": "never there " * 9}, {"text": "Why?"}]
    )
    write_rows(project.root / "evals" / "yes.jsonl.gz", [{"text": SHORT}])
    project.config["dedup"] = {"evals-0": {"kind": "contamination", "against": ["evals/*.jsonl*"]}}
    return project


def values(project: Project, name: str = "evals-0") -> dict[str, Any]:
    return {
        row["id"]: row["attributes"]["contamination"]
        for path in sorted((project.attributes / name).glob("*.gz"))
        for row in read_rows(path)
    }


def test_over_line_breaks_case_and_punctuation(held: Project) -> None:
    ran = held.ok("dedup", "--json")
    found = values(held)
    whole, half, short, none = (found[name] for name in ("whole", "half", "short", "none"))
    assert [each["contaminated"] for each in (whole, half, short, none)] == [True, True, True, False]
    assert whole["items"] == [{"benchmark": "geo", "item": "1", "share": 1.0}]
    (text,) = [row["text"] for row in held.shard("a.jsonl.gz") if row["id"] == "whole"]
    ((start, end, score),) = whole["spans"]
    assert (text[start:end].split()[0], text[start:end].split()[-1], score) == ("WHICH", "SEA", 1.0)
    assert half["share"] == round(3 / 7, 4), "15 words, as north-east is two: 3 of 7 13-grams"
    assert short["items"] == [{"benchmark": "yes", "item": "1", "share": 1.0}]
    assert none == {"contaminated": False, "share": 0.0, "chars": 0, "found": 0, "items": [], "spans": []}
    geo, yes, where = ran.json["sets"]["evals-0"]["notes"]
    assert geo.startswith("geo: 1 of 3 items found (1 by half or more in one document, 1 whole), ")
    assert geo.endswith("1 item not looked for, with fewer words than `min_words`")
    assert yes == "yes: 1 of 1 item found (1 by half or more in one document, 1 whole), 100.0 % of their n-grams"
    report = read_rows(Path(where.partition(": ")[2]))
    assert [(row["item"], row["ngrams"], row["found"], row["documents"]) for row in report] == [
        ("1", 7, 7, 2),
        ("1", 1, 1, 1),
    ]
    assert report[0]["where"] == [
        {"shard": "a.jsonl.gz", "row": 1, "share": 1.0},
        {"shard": "a.jsonl.gz", "row": 2, "share": round(3 / 7, 4)},
    ]


def test_rules_use_it(held: Project) -> None:
    held.mixes(
        {"drop": 'any([i.benchmark == "yes" for i in evals.items])', "name": "yes"},
        {"drop": "evals.share == 1"},
        {"cut": "evals.spans", "name": "cut"},
        attributes=[{"set": "evals-0", "as": {"contamination": "evals"}}],
    )
    held.ok("dedup")
    held.ok("mix")
    assert {row["id"]: row["text"] for row in held.output()} == {
        "half": "Of late:  — nobody knows",
        "none": "Which of the three rivers flows north?",
    }


def test_items_in_all_forms(held: Project) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = held.root / "forms"
    (folder / "texts").mkdir(parents=True)
    (folder / "texts" / "one.txt").write_text(f"{SHORT}\n")
    (folder / "texts" / "two.txt.gz").write_bytes(gzip.compress(QUESTION.encode()))
    pq.write_table(pa.table({"q": [[QUESTION, None]], "name": [7]}), folder / "geo.parquet")
    entry = held.config["dedup"]["evals-0"]
    for options, items in (
        ({"against": ["forms/texts"]}, [("texts", "two"), ("texts", "one")]),
        ({"against": ["forms/texts/*.txt"]}, [None, ("texts", "one")]),
        ({"against": ["forms/geo.parquet"], "fields": ["q"], "id": "name"}, [("geo", "7"), None]),
    ):
        held.config["dedup"] = {"evals-0": {**entry, **options}}
        held.ok("dedup", "--overwrite")
        found = [values(held)[name]["items"] for name in ("whole", "short")]
        assert found == [[{"benchmark": i[0], "item": i[1], "share": 1.0}] if i else [] for i in items]


@pytest.mark.parametrize(
    ("row", "options", "why"),
    [
        ({"question": "x"}, {}, "expected an item with the field 'text', got none; there are: question; say which"),
        ({"texts": "x"}, {}, "expected an item with the field 'text', got none; did you mean 'texts'?"),
        ({"text": 3}, {}, "new.jsonl:1: expected a text, or a list of texts, at 'text', got '3'"),
        ({"text": "x"}, {"id": "name"}, "new.jsonl:1: expected a text or a number at 'name', got None"),
        (b"{", {}, "new.jsonl:1: expected an item as a JSON object, got"),
        (b"[]", {}, "new.jsonl:1: expected an item as a JSON object, got a list"),
    ],
)
def test_items_that_are_none(held: Project, row: Any, options: dict[str, Any], why: str) -> None:
    write_rows(held.root / "new.jsonl", [row])
    held.config["dedup"]["evals-0"] |= {"against": ["new.jsonl"], **options}
    held("dedup").fails(1, why)
    assert not values(held)


def test_an_item_larger_than_any_limit_names_no_option(held: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.whole_corpus.kinds.contamination.MAX_ITEM", 100)
    write_rows(held.root / "new.jsonl", [{"text": "x" * 200}])
    held.config["dedup"]["evals-0"] |= {"against": ["new.jsonl"]}
    ran = held("dedup").fails(1, "new.jsonl:1: expected a line of at most 100 bytes, got a longer one\n")
    assert "max_document_bytes" not in ran.err


def test_other_items_are_other_settings(held: Project) -> None:
    held.ok("dedup")
    before = tree(held.attributes)
    (held.root / "evals").rename(held.root / "moved")
    held.config["dedup"]["evals-0"]["against"] = ["moved/*.jsonl*"]
    assert held.ok("dedup", "--json").json["sets"]["evals-0"]["written"] == 0
    with (held.root / "moved" / "geo.jsonl").open("a") as file:
        file.write(json.dumps({"text": "Which of the three rivers flows north?"}) + "\n")
    ran = held("dedup")
    assert (ran.code, "--overwrite" in ran.err, tree(held.attributes)) == (2, True, before)
    held.ok("dedup", "--overwrite")
    assert values(held)["none"]["share"] == 1


def test_documents_that_do_not_compete_have_nothing(held: Project) -> None:
    held.config["dedup"]["evals-0"]["when"] = 'document.id != "whole"'
    held.ok("dedup")
    assert [values(held)[name]["contaminated"] for name in ("whole", "half")] == [False, True]


def test_the_same_bytes_for_any_number_of_processes(held: Project) -> None:
    rows = [document(str(i), f"{i} {QUESTION if i % 7 == 0 else ''} {'words ' * 50}") for i in range(600)]
    write_rows(held.documents / "c.jsonl.gz", rows)
    held.ok("dedup", "processes=1")
    one = tree(held.attributes)
    held.ok("dedup", "processes=2", f"attributes={held.root}/again")
    assert tree(held.root / "again") == one


def test_what_items_share_is_listed_up_to_a_number(held: Project) -> None:
    common = "Choose the one answer that is right of those that follow here, please, without delay:"
    write_rows(held.root / "evals" / "many.jsonl", [{"text": f"{common} {i} and {i}"} for i in range(300)])
    write_rows(held.documents / "b.jsonl.gz", [document("common", common), document("seven", f"{common} 7 and 7")])
    held.config["dedup"]["evals-0"]["against"] = ["evals/many.jsonl"]
    held.ok("dedup")
    for id in ("common", "seven"):
        assert (values(held)[id]["found"], len(values(held)[id]["items"])) == (300, 100)
    assert values(held)["seven"]["items"][0] == {"benchmark": "many", "item": "8", "share": 1.0}


@pytest.mark.slow
def test_items_in_a_bucket(held: Project, bucket: str) -> None:
    from toolkit.storage.outputs import write_file

    write_file(f"{bucket}/evals/geo.jsonl", (held.root / "evals" / "geo.jsonl").read_bytes())
    held.config["dedup"]["evals-0"]["against"] = [f"{bucket}/evals/*.jsonl"]
    held.ok("dedup")
    assert values(held)["whole"]["share"] == 1
