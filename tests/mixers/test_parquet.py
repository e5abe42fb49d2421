"""Parquet files: the same columns always, row groups that are bounded, the same bytes again, and what damage does."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mixers import parquet
from tests.conftest import Run
from tests.marks import slow
from tests.mixers.test_contract import document_of, writer_of
from tests.pipeline.conftest import (
    Project,
    attributes,
    document,
    read_rows,
    sha256sum_accepts,
    strays,
    tree,
    write_rows,
)
from toolkit import DataError, MissingExtra, Mixed
from toolkit.mix import assemble, publication

pa = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")

NAMES = ["id", "source", "text", "added", "created", "label", "prob", "annotation", "metadata", "attributes"]
HUGE = '{"n":123456789012345678901234567890,"f":1e999,"small":-0.0,"é":"日本 \U0001f600\\u0000"}'


def rows_of(path: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(path).to_pylist())


def groups_of(path: Path) -> list[int]:
    """Rows of each row group."""
    found = pq.ParquetFile(path).metadata
    return [found.row_group(i).num_rows for i in range(found.num_row_groups)]


@pytest.fixture
def corpus(tmp_path: Path, run: Run) -> Project:
    """Three shards in two languages, and a mix to Parquet that is not run yet."""
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}})
    for shard in range(3):
        texts = [f"{shard}-{i} " + "Größe 日本 \U0001f600\r\n" * (i % 5) for i in range(40)]
        write_rows(
            project.documents / f"{shard}.jsonl.gz",
            [document(f"{shard}-{i}", text, metadata={"i": i, "x": "y" * 300}) for i, text in enumerate(texts)],
        )
        write_rows(
            project.attributes / "language-0" / f"{shard}.jsonl.gz",
            [
                attributes(f"{shard}-{i}", {"language": {"label": "fr" if i % 4 else "en", "prob": 0.1 + i / 100}})
                for i in range(40)
            ],
        )
    project.mixes(attributes=["language-0"], format="parquet", output={"by": "language"})
    return project


# --- rows -------------------------------------------------------------------------------------------------------------


def written(tmp_path: Path, lines: list[bytes], **options: Any) -> Path:
    """A file of these encoded documents."""
    path = tmp_path / "x.parquet"
    with path.open("wb") as out:
        writer_of("parquet", options).assemble(iter(lines), out)
    return path


def test_a_row_is_exactly_this(tmp_path: Path) -> None:
    writer = writer_of("parquet", {})
    lines = []
    for text, metadata, annotations in (("", None, []), ("Größe\r\n\0日本 \U0001f600\u2028", HUGE, ["tiny", "a b"])):
        ((label, line),) = writer.encode(document_of(text, metadata), Mixed({}, annotations))
        assert label == "documents"
        lines.append(line)
    path = written(tmp_path, [b"".join(lines)])
    empty = dict.fromkeys(NAMES) | {"id": "a", "source": "s", "text": "", "annotation": []}
    assert rows_of(path) == [
        empty,
        empty | {"text": "Größe\r\n\0日本 \U0001f600\u2028", "annotation": ["tiny", "a b"], "metadata": HUGE},
    ]
    assert list(writer.check_file(str(path), 2)) == []


def test_the_columns_do_not_depend_on_the_data(tmp_path: Path) -> None:
    found = pq.ParquetFile(written(tmp_path, [])).schema_arrow
    text, large = pa.string(), pa.large_string()
    types = [text, text, large, text, text, text, pa.float64(), pa.list_(pa.field("element", text)), large, large]
    assert dict(zip(found.names, found.types, strict=True)) == dict(zip(NAMES, types, strict=True))


def test_what_a_document_brings_is_kept() -> None:
    row = (
        b'{"id":"a","source":"s","text":"t","added":"2024","created":null,"version":3,'
        b'"attributes":{"old":[],"x":0},"metadata":{"b": 2}}'
    )
    found = document_of("t", '{"b": 2}')
    found.row = row
    mixed = Mixed({}, [], None, fields={"kind": {"new": 1}})
    ((_, line),) = writer_of("parquet", {}).encode(found, mixed)
    decoded = json.loads(line)
    assert decoded["added"] == "2024"
    assert decoded["metadata"] == {"b": 2, "kind": {"new": 1}}
    assert decoded["attributes"] == {"old": [], "x": 0}
    assert decoded["own"] == {"version": 3}


def test_attributes_that_cannot_be_text_are_an_error() -> None:
    found = document_of("t")
    found.row = b'{"id":"a","source":"s","text":"t","attributes":{"a":"\xff"}}'
    with pytest.raises(DataError, match="expected attributes in UTF-8"):
        list(writer_of("parquet", {}).encode(found, Mixed({}, [])))


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 500, 2000, 1_000_000])
def test_row_groups_are_bounded(tmp_path: Path, limit: int) -> None:
    writer = writer_of("parquet", {})
    lines = []
    for i in range(200):
        ((_, line),) = writer.encode(document_of(str(i) * (i % 50)), Mixed({}, []))
        lines.append(line)
    pieces = [b"".join(lines[i : i + 7]) for i in range(0, 200, 7)]
    path = written(tmp_path, pieces, row_group_size=limit)
    groups = groups_of(path)
    assert sum(groups) == 200
    start = 0
    for rows in groups:
        size = sum(map(len, lines[start : start + rows]))
        assert size <= limit or rows == 1
        if start + rows < 200:
            assert size + len(lines[start + rows]) > limit, "full"
        start += rows
    assert [row["text"] for row in rows_of(path)] == [str(i) * (i % 50) for i in range(200)]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
def test_the_codec_is_that_of_the_option(tmp_path: Path, codec: str) -> None:
    ((_, line),) = writer_of("parquet", {}).encode(document_of("a" * 1000), Mixed({}, []))
    path = written(tmp_path, [line], codec=codec)
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    assert column.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert list(writer_of("parquet", {}).check_file(str(path))) == []


def test_a_mix_writes_a_folder_a_label_with_checksums(corpus: Project) -> None:
    corpus.config["mix"]["rules"] = [{"annotate": "unsure", "when": "language.prob < 0.15"}]
    corpus.config["mix"]["output"] |= {"attributes": True, "provenance": "line"}
    corpus.ok("mix")
    assert sorted(tree(corpus.out)) == ["en/en.parquet", "en/en_sha256.txt", "fr/fr.parquet", "fr/fr_sha256.txt"]
    assert all(sha256sum_accepts(corpus.out / label / f"{label}_sha256.txt") for label in ("en", "fr"))
    english, french = (rows_of(corpus.out / label / f"{label}.parquet") for label in ("en", "fr"))
    assert (len(english), len(french)) == (30, 90)
    assert [row["id"] for row in english[:3]] == ["0-0", "0-4", "0-8"]
    first = french[0]
    assert (first["label"], first["prob"], first["annotation"]) == ("fr", 0.11, ["unsure"])
    assert json.loads(first["metadata"]) == {"i": 1, "x": "y" * 300, "provenance": "0.jsonl.gz:2"}
    assert json.loads(first["attributes"]) == {"language": {"label": "fr", "prob": 0.11}}
    manifest = publication.load_manifest(str(corpus.out))
    assert manifest
    assert {part.path: part.documents for part in manifest.parts} == {"en/en.parquet": 30, "fr/fr.parquet": 90}
    assert "0 findings" in corpus.ok("validate").out
    assert "0 findings" in corpus.run("validate", corpus.out / "en" / "en.parquet").out
    assert "already" in corpus.ok("mix").out


def test_parts_are_cut_and_named_by_the_format(corpus: Project) -> None:
    corpus.config["mix"]["output"] |= {"part_size": "20 kB", "row_group_size": "6 kB"}
    corpus.config["mix"]["output"].pop("by")
    corpus.ok("mix")
    parts = sorted(corpus.out.glob("*.parquet"))
    assert [path.name for path in parts] == [f"documents_part_{i}.parquet" for i in range(1, len(parts) + 1)]
    assert len(parts) > 2
    assert all(len(groups_of(path)) > 1 for path in parts[:-1])
    assert [row["id"] for path in parts for row in rows_of(path)] == [f"{s}-{i}" for s in range(3) for i in range(40)]
    assert sha256sum_accepts(corpus.out / "documents_sha256.txt")
    assert "0 findings" in corpus.ok("validate").out


@pytest.mark.slow
def test_any_number_of_processes_writes_the_same_bytes(corpus: Project) -> None:
    corpus.config["mix"]["output"] |= {"part_size": "20 kB", "row_group_size": "6 kB"}
    corpus.ok("mix")
    one = tree(corpus.out)
    corpus.config |= {"executor": {"type": "local"}, "processes": 2}
    corpus.config["mix"]["output"]["path"] = str(corpus.root / "two")
    corpus.ok("mix")
    assert tree(corpus.root / "two") == one
    contents = [publication.load_manifest(str(corpus.root / name)) for name in ("out", "two")]
    assert contents[0] == contents[1]


def test_dropped_documents_stay_json_lines(corpus: Project) -> None:
    corpus.config["mix"]["rules"] = [{"drop": 'language.label == "en"', "name": "english"}]
    corpus.config["mix"]["rejected"] = str(corpus.root / "rejected")
    corpus.ok("mix")
    assert [path.name for path in corpus.out.rglob("*.parquet")] == ["fr.parquet"]
    rejected = read_rows(corpus.root / "rejected" / "documents" / "rejected.jsonl.gz")
    assert len(rejected) == 30
    assert rejected[0]["rejected"]["rule"] == "english"
    assert "0 findings" in corpus.ok("validate").out


def test_without_the_package_nothing_begins(corpus: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    corpus("mix").fails(2, "pip install 'tagmix[parquet]'")
    assert not (corpus.out / ".toolkit" / "stage").exists()
    with pytest.raises(MissingExtra):
        list(writer_of("parquet", {}).check_file("x"))


# --- failures ---------------------------------------------------------------------------------------------------------


def leftovers(project: Project) -> list[str]:
    """Files of stage 2, and temporaries, but none of stage 1, and no notes of failures."""
    ours = (".toolkit/stage/", ".toolkit/record-log/")
    found = [path for path in tree(project.out, bookkeeping=True) if not path.startswith(ours)]
    return [path for path in found if "/leases/" not in path]


def fail(self: Any, *_: Any) -> None:
    raise OSError(28, "No space left on device")


def take_none(self: Any, pieces: Iterator[bytes], out: Any) -> None:
    out.write(b"PAR1")


@pytest.mark.parametrize(
    ("owner", "name", "replacement", "words"),
    [
        (pq.ParquetWriter, "write_table", fail, "No space left on device"),
        (parquet.Parquet, "assemble", take_none, "bytes as planned, got 0"),
        *slow((assemble._Sink, "write", fail, "No space left on device")),
    ],
)
def test_a_part_that_fails_leaves_nothing(
    corpus: Project,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    replacement: Callable[..., Any],
    words: str,
) -> None:
    corpus.config["mix"]["output"] |= {"part_size": "20 kB", "row_group_size": "6 kB"}
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, replacement)
        ran = corpus("mix").fails(1)
        assert words in ran.out + ran.err
        assert leftovers(corpus) == []
    corpus.ok("mix")
    assert "0 findings" in corpus.ok("validate").out
    assert strays(corpus.root) == []


@pytest.mark.slow
def test_a_killed_part_is_made_again(corpus: Project) -> None:
    corpus.config["mix"]["output"] |= {"part_size": "20 kB", "row_group_size": "6 kB"}
    corpus.ok("mix")
    whole = tree(corpus.out)
    corpus.config["mix"]["output"]["path"] = str(corpus.root / "killed")
    code = (
        "import os, sys, pyarrow.parquet as pq\n"
        "write, calls = pq.ParquetWriter.write_table, []\n"
        "def fatal(self, *arguments):\n"
        "    calls.append(1)\n"
        "    return write(self, *arguments) if len(calls) < 6 else os._exit(9)\n"
        "pq.ParquetWriter.write_table = fatal\n"
        "from toolkit.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", code, "mix", "-c", str(corpus.yaml)]
    ran = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONWARNINGS": ""})
    assert ran.returncode == 9, ran.stderr.decode()
    assert tree(corpus.root / "killed") == {}
    corpus.ok("mix")
    assert tree(corpus.root / "killed") == whole
    assert strays(corpus.root) == []


# --- validate ---------------------------------------------------------------------------------------------------------


def findings(corpus: Project, *options: object) -> list[str]:
    return [each["message"] for each in corpus("validate", corpus.out, "--json", *options).json["findings"]]


def published_anew(path: Path, table: Any) -> None:
    """Another table in the place of a part, its checksum right."""
    old = hashlib.sha256(path.read_bytes()).hexdigest()
    pq.write_table(table, path)
    checksums = path.parent / f"{path.stem}_sha256.txt"
    checksums.write_text(checksums.read_text().replace(old, hashlib.sha256(path.read_bytes()).hexdigest()))


def test_a_file_that_is_cut_or_changed_is_found_with_and_without_checksums(corpus: Project) -> None:
    corpus.config["mix"]["output"]["row_group_size"] = "4 kB"
    corpus.ok("mix")
    path = corpus.out / "fr" / "fr.parquet"
    sound = path.read_bytes()
    texts = pq.ParquetFile(path).metadata.row_group(1).column(NAMES.index("text"))
    inside = texts.data_page_offset + texts.total_compressed_size - 4
    changed = sound[:inside] + bytes([sound[inside] ^ 1]) + sound[inside + 1 :]
    for wrong in (sound[:-1], sound[:50], b"", changed):
        path.write_bytes(wrong)
        found = findings(corpus)
        assert any(each.startswith(f"{path}: expected a sound Parquet file, got damage") for each in found), found
        assert any(f"{path}: expected the checksum" in each for each in found)
    path.write_bytes(sound)
    assert findings(corpus) == []


def test_rows_that_are_missing_or_wrong_are_found(corpus: Project) -> None:
    corpus.ok("mix")
    path = corpus.out / "fr" / "fr.parquet"
    table = pq.read_table(path)

    def wrong(column: str, row: int, value: Any) -> Any:
        values = table.column(column).to_pylist()
        values[row] = value
        place = NAMES.index(column)
        return table.set_column(place, column, pa.array(values, table.schema.field(column).type))

    published_anew(path, table.slice(1))
    assert f"{path}: expected 90 rows by the manifest, got 89" in findings(corpus)
    published_anew(path, wrong("metadata", 4, '{"a":'))
    assert any(each.startswith(f"{path}:5: expected metadata in JSON, got: ") for each in findings(corpus))
    assert not any(f"{path}:5:" in each for each in findings(corpus, "--first", 4))
    published_anew(path, wrong("text", 0, None))
    assert f"{path}:1: expected a value of text, got null" in findings(corpus)
    published_anew(path, table.drop_columns(["label"]))
    assert any(f"{path}: expected the columns {', '.join(NAMES)}, got" in each for each in findings(corpus))
    published_anew(path, table.cast(table.schema.set(6, pa.field("prob", pa.float32()))))
    assert f"{path}: expected the column prob to be double, got float" in findings(corpus)


def test_a_folder_without_manifest_is_checked_by_suffix(corpus: Project, run: Run) -> None:
    corpus.ok("mix")
    (corpus.out / ".toolkit" / "manifest.json").unlink()
    assert "checked 2 files" in run("validate", corpus.out).out
    assert findings(corpus) == []
    path = corpus.out / "en" / "en.parquet"
    path.write_bytes(path.read_bytes()[:-3])
    assert any("expected a sound Parquet file" in each for each in findings(corpus))
