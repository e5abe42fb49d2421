"""The raw form of ml_filter: its lines, its folders, and that documents come back from it as they were."""

import gzip
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from mixers.ml_filter import MlFilter
from mixers.text import _blank
from tests.conftest import Run
from tests.mixers.test_contract import document_of, writer_of
from tests.pipeline.conftest import Project, attributes, document, read_bytes, sha256sum_accepts, write_rows
from toolkit import DataError, Document, Labelled, Mixed, Prediction
from toolkit.text import LineTable

OWN = ["url", "date", "language", "language_score", "corpus", "file_path"]


def encoded(
    metadata: dict[str, Any], *, statistics: Any = None, source: str = "web", shard: str = "web/a", **options: Any
) -> tuple[str, dict[str, Any]]:
    row = msgspec.json.encode({"id": "a", "text": "Größe\n", "source": source, "added": "2014-09-22T22:15:10Z"})
    document = Document("Größe\n", id="a", source=source, metadata=metadata, row=row)
    writer = MlFilter(**options)
    mixed = Mixed({"language": Labelled("de", 0.98), "statistics": statistics or {}}, [], shard=shard)
    ((label, data),) = writer.encode(document, mixed)
    assert writer.check(data.removesuffix(b"\n")) is None
    return label, json.loads(data)


def test_a_line_is_exactly_this() -> None:
    headers = {"warc-target-uri": "http://interview.de/", "warc-record-id": "a"}
    label, line = encoded({"warc_headers": headers}, statistics={"num_lines": 1, "pct_space": 0.0}, dump="2014-41")
    assert label == "2014-41/de"
    assert list(line) == ["text", "id", "metadata"]
    assert list(line["metadata"].items()) == [
        ("url", "http://interview.de/"),
        ("date", "2014-09-22T22:15:10Z"),
        ("language", "de"),
        ("language_score", 0.98),
        ("corpus", "2014-41"),
        ("file_path", "web/a"),
        ("num_lines", 1),
        ("pct_space", 0.0),
    ]


def test_keys_are_in_the_order_of_ml_filter_whatever_they_come_from() -> None:
    """Those of the example in its documentation first, then ours, as they come."""
    found = {"dup_line_char_frac": 0.5, "dup_line_char_frac ": 0.5, "token_count": 1, "mine": 2, "num_words": 3}
    line = encoded({"num_lines": 4, "other": 5}, statistics=found, others=True)[1]
    keys = ["num_lines", "num_words", "dup_line_char_frac ", "token_count", "dup_line_char_frac", "mine", "other"]
    assert [*line["metadata"]] == [*OWN, *keys]


@pytest.mark.parametrize(
    ("metadata", "place", "dump"),
    [
        ({"corpus": "2014-41", "dump": "other"}, {"source": "CC-MAIN-2024-10"}, "2014-41"),
        ({"dump": "CC-MAIN-2014-41"}, {}, "2014-41"),
        ({"corpus": 3}, {"shard": "cc/CC-MAIN-2024-10/segments/1/a"}, "2024-10"),
        ({}, {"source": "CC-MAIN-2024-10", "shard": "CC-MAIN-2024-10/CC-MAIN-20240220211055-00000"}, "2024-10"),
        ({}, {"source": "CC-MAIN-20240220211055"}, "CC-MAIN-20240220211055"),
        ({}, {}, "web"),
        ({"corpus": "2014-41"}, {"dump": "2015-02"}, "2015-02"),
    ],
)
def test_the_dump_is_told_by_what_is_there(metadata: dict[str, Any], place: dict[str, Any], dump: str) -> None:
    label, line = encoded(metadata, **place)
    assert (label, line["metadata"]["corpus"]) == (f"{dump}/de", dump)


def test_what_has_no_place_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a dump such as 2014-41, the name of a folder, got 'a/b'"):
        MlFilter(dump="a/b")
    with pytest.raises(DataError, match=r"got '\.\./x'; say which dump it is: `dump: 2014-41` in `output:`"):
        encoded({"corpus": "../x"})
    with pytest.raises(DataError, match="expected an object at statistics, got 3"):
        encoded({}, statistics=3)
    with pytest.raises(DataError, match="expected fields beside those of the format, got 'url' in statistics"):
        encoded({}, statistics={"url": "x"})


def test_other_metadata_stays_if_that_is_wanted() -> None:
    known = {"license": "cc", "warc_headers": {}, "url": "http://a.org", "num_lines": 7, "language_score": 0.1}
    assert [*encoded(known, statistics={"num_lines": 1})[1]["metadata"]] == [*OWN, "num_lines"]
    metadata = encoded(known, statistics={"num_lines": 1}, others=True)[1]["metadata"]
    assert [*metadata] == [*OWN, "num_lines", "license"]
    assert metadata["num_lines"] == 1


CONFIGURATION = """
dataset: data/crawl
ingest: [{format: wet, from: ["recipe:sample/*.warc.wet.gz"], source: CC-MAIN-2024-10}]
tag:
  lines-0: line_language
  language-0: {tagger: language, lines: lines-0}
  statistics-0: {tagger: statistics, variant: eurolingua, language: language-0.language.label}
mix:
  attributes: [language-0, statistics-0]
  rules: [{drop: language.label is None}]
  output: {format: ml_filter, path: raw, part_size: 3 kB, index: true}
"""
AGAIN = [
    "mix.attributes=[statistics-0]",
    "mix.rules=[{drop: metadata.language is None}]",
    "mix.output={format: ml_filter, path: again, language: metadata.language, part_size: 3 kB}",
]


def documents(dataset: str) -> dict[str, dict[str, Any]]:
    files = Path(dataset, "documents").rglob("*.jsonl.gz")
    rows = [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
    return {row["id"]: row for row in rows}


@pytest.mark.slow
def test_documents_come_back_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """By the recipe `ml-filter-raw`; and of these the same files are made again."""
    monkeypatch.chdir(tmp_path)
    Path("crawl.yaml").write_text(CONFIGURATION, encoding="utf-8")
    run("run", "-c", "crawl.yaml", "processes=1", "--quiet").succeeds()
    raw = {str(path.relative_to("raw")): path.read_bytes() for path in Path("raw").rglob("*.jsonl")}
    for name, data in raw.items():  # the indexes of Modalities are beside the files, and can be made anywhere else
        ends = [0, *(i + 1 for i, byte in enumerate(data) if byte == ord("\n"))]
        pairs = [(begin, end - begin - 1) for begin, end in itertools.pairwise(ends)]
        assert Path("raw", name).with_suffix(".idx").read_bytes() == pickle.dumps(pairs, 4)
    assert {"2024-10/en/00000.jsonl", "2024-10/en/00001.jsonl", "2024-10/de/00000.jsonl"} <= raw.keys()
    lines = {row["id"]: row for data in raw.values() for row in map(json.loads, data.splitlines())}
    assert all(list(row["metadata"])[:6] == OWN and len(row["metadata"]) == 63 for row in lines.values())
    assert run("validate", "raw", "--quiet").code == 0
    (line,) = raw["2024-10/de/00000.jsonl"].splitlines()
    assert (MlFilter.of_file("a.jsonl", line), MlFilter.of_file("a.jsonl", b'{"text":"","id":""}')) == (
        MlFilter(),
        None,
    )

    run("run", "-c", "recipe:ml-filter-raw", "processes=1", "--quiet", *AGAIN).succeeds()
    read = documents("data/ml-filter")
    assert {id: (row["text"], row["metadata"]) for id, row in read.items()} == {
        id: (row["text"], row["metadata"]) for id, row in lines.items()
    }
    written = documents("data/crawl")
    assert all((row["text"], row["added"]) == (written[id]["text"], written[id]["added"]) for id, row in read.items())
    assert raw == {str(path.relative_to("again")): path.read_bytes() for path in Path("again").rglob("*.jsonl")}


# The text of OSCAR 2019 and 21.09: which lines make a piece, and where the files lie.

LINES = "a\nb\n\nc\nd\ne\n"
LABELS = ["en", None, "en", "en", "fr", "en"]


@pytest.mark.parametrize(
    ("unit", "pieces"),
    [
        ("line", [("en", "a\nc\ne\n\n"), ("fr", "d\n\n")]),
        ("block", [("en", "a\nc\n\n"), ("fr", "d\n\n"), ("en", "e\n\n")]),
    ],
)
def test_lines_become_these_pieces(unit: str, pieces: list[tuple[str, str]]) -> None:
    found = [Prediction(label, 0.9) if label else None for label in LABELS]
    mixed = Mixed({"lines": found}, [])
    encoded = writer_of("text", {"unit": unit}).encode(document_of(LINES), mixed)
    assert [(label, data.decode()) for label, data in encoded] == pieces
    assert mixed.counts == {"lines without language": 1, "blank lines": 1}


@pytest.mark.parametrize(
    ("options", "stem", "checksums"),
    [
        ({}, "en", "en_sha256.txt"),
        ({"layout": "flat"}, "en", "en_sha256.txt"),
        ({"layout": "folders"}, "en/en", "en/en_sha256.txt"),
    ],
)
def test_files_are_named_like_this(options: dict[str, Any], stem: str, checksums: str) -> None:
    writer = writer_of("text", options)
    assert (writer.stem("en"), writer.checksums("en")) == (stem, checksums)


def test_folders_hold_parts_and_checksums_as_released(run: Run, tmp_path: Path) -> None:
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}})
    english, french = {"label": "en", "prob": 0.9}, {"label": "fr", "prob": 0.9}
    found = [[english, french, english], [english], [None]]
    texts = ["one\nun\ntwo\n", "three " * 20, "?"]
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), text) for i, text in enumerate(texts)])
    rows = [attributes(str(i), {"line_language": lines}) for i, lines in enumerate(found)]
    write_rows(project.attributes / "lines-0" / "a.jsonl.gz", rows)
    output = {"format": "text", "unit": "line", "layout": "folders", "path": str(project.out), "part_size": 100}
    project.config["mix"] = {"attributes": ["lines-0"], "output": output}
    project.ok("mix")
    written = {
        str(path.relative_to(project.out)): read_bytes(path).decode()
        for path in project.out.rglob("*.txt.gz")
        if ".toolkit" not in path.parts
    }
    assert written == {
        "en/en_part_1.txt.gz": "one\ntwo\n\n",
        "en/en_part_2.txt.gz": "three " * 20 + "\n\n",
        "fr/fr.txt.gz": "un\n\n",
    }
    assert all(sha256sum_accepts(project.out / label / f"{label}_sha256.txt") for label in ("en", "fr"))
    project.ok("validate")


def test_blank_lines_are_those_of_white_space_as_python_has_it() -> None:
    """Lines are looked at as bytes, of which ``bytes.strip`` knows six."""
    points = [chr(point) for point in (*range(0xD800), *range(0xE000, 0x3100)) if chr(point) not in "\r\n"]
    lines = ["", "\u2003x", *points, *(f" {point}\t{point}" for point in points)]
    table = LineTable.of(["\n".join(lines)])
    found = _blank(table, np.arange(len(lines)), ascii_only=False)
    assert found.tolist() == [not line or line.isspace() for line in lines]
    found = _blank(table, np.arange(len(lines)), ascii_only=True)  # as goclassy has it
    assert found.tolist() == [not line.encode().strip() for line in lines]
