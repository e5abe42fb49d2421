"""Tokens: the output format, the section ``tokenize:``, and the files as others read them."""

import csv
import gzip
import json
import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolkit
from mixers._token_files import KINDS
from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, read_rows, tree, write_rows
from tests.recipes import tree as tree_at
from tests.storage.conftest import bucket, seaweed  # noqa: F401  # fixtures
from toolkit.errors import DataError
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.text import Tokenizer

pytest.importorskip("tokenizers")

TOKENIZER = str(Path(__file__).parents[1] / "taggers" / "files" / "tokenizer.json")
TEXTS = [
    "the cat\n",
    "",
    "the hat, the cat\n" * 40,
    "größe 图书馆\n",
    "</s>",
    "x" * 700,
    *(f"cat {i}" for i in range(30)),
]


@pytest.fixture
def tokens() -> Tokenizer:
    return Tokenizer(TOKENIZER)


def lay_out(project: Project, files: str = "numpy", **output: Any) -> Project:
    """Two shards, of which a rule drops what is short, and tokens as output."""
    for i, texts in enumerate((TEXTS, TEXTS[::-1])):
        rows = [document(f"{i}-{j}", text) for j, text in enumerate(texts)]
        write_rows(project.documents / "a" / f"{i}.jsonl.gz", rows)
    project.config["mix"] = {
        "rules": [{"drop": "document.chars == 5", "name": "short"}],
        "output": {"format": "tokens", "path": str(project.out), "tokenizer": TOKENIZER, "eod": "</s>", "files": files}
        | {"strip": False}
        | output,
    }
    project.config |= {"dataset": str(project.data)}
    return project


def expected(tokens: Tokenizer, *, shards: tuple[int, ...] = (0, 1)) -> list[list[int]]:
    """The tokens of each document that stays, by the library, with one end."""
    texts = [text for i in shards for text in ([TEXTS, TEXTS[::-1]][i]) if len(text) != 5 and text]
    found = [tokens.library.encode(text, add_special_tokens=False).ids for text in texts]
    end = tokens.number_of("</s>")
    assert end is not None
    return [each if each[-1:] == [end] else [*each, end] for each in found]


def of_numpy(path: Path) -> list[list[int]]:
    data, bounds = np.load(path, mmap_mode="r"), np.load(path.with_suffix(".index.npy"))
    assert data.dtype == np.uint16
    return [data[a:b].tolist() for a, b in pairwise(bounds)]


def of_pbin(path: Path) -> list[list[int]]:
    """As Modalities' `PackedMemMapDatasetBase` reads it."""
    import pickle

    data = path.read_bytes()
    size, width = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:12], "little")
    index = pickle.loads(data[12 + size :])
    kind = {1: "u1", 2: "<u2", 4: "<u4"}[width]
    return [np.frombuffer(data, kind, length // width, 12 + offset).tolist() for offset, length in index]


def of_dolma(path: Path, second: Sequence[str] = ("0-2", "a/0.jsonl.gz", "3")) -> list[list[int]]:
    data = np.memmap(path, np.uint16, "r")
    with gzip.open(path.with_suffix(".csv.gz"), "rt", newline="") as stream:
        rows = list(csv.reader(stream))
    assert not second or [rows[1][2], rows[1][3].rpartition("documents/")[2], rows[1][4]] == list(second)
    return [data[int(row[0]) : int(row[1])].tolist() for row in rows]


def of_megatron(path: Path) -> list[list[int]]:
    """As Megatron's `_IndexReader` reads it."""
    index = path.with_suffix(".idx").read_bytes()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version, code, documents) == (b"MMIDIDX\0\0", 1, 8, sequences + 1)
    lengths = np.frombuffer(index, np.int32, sequences, 34)
    pointers = np.frombuffer(index, np.int64, sequences, 34 + lengths.nbytes)
    ends = np.frombuffer(index, np.int64, documents, 34 + lengths.nbytes + pointers.nbytes)
    assert ends.tolist() == list(range(documents))
    assert len(index) == 34 + lengths.nbytes + pointers.nbytes + ends.nbytes
    data = np.memmap(path, np.uint16, "r")
    return [data[at // 2 : at // 2 + n].tolist() for at, n in zip(pointers, lengths, strict=True)]


READERS = {
    "numpy": (of_numpy, ".npy"),
    "pbin": (of_pbin, ".pbin"),
    "dolma": (of_dolma, ".npy"),
    "megatron": (of_megatron, ".bin"),
}


@pytest.mark.parametrize("files", ["dolma", "megatron", *slow("numpy", "pbin")])
def test_files_have_the_tokens_of_the_library(project: Project, tokens: Tokenizer, files: str) -> None:
    read, suffix = READERS[files]
    lay_out(project, files).ok("mix")
    assert read(project.out / f"tokens{suffix}") == expected(tokens)
    written = sum(map(len, expected(tokens)))
    assert project.ok("mix", "--json").json["counts"] == {"documents without output": 2, "tokens": written}
    assert f"\ntokens: {written:,}\n" in project.ok("mix").out
    project.ok("validate", project.out)
    lines = (project.out / "tokens_sha256.txt").read_text().splitlines()
    there = sorted(path.name for path in project.out.iterdir() if path.name != ".toolkit")
    assert [line.split("  ")[1] for line in lines] == [name for name in there if not name.endswith(".txt")]
    for name in there:
        damaged = project.out / name
        sound = damaged.read_bytes()
        damaged.write_bytes(sound[:-1])
        assert name in project("validate", project.out).out
        damaged.write_bytes(sound)


@pytest.mark.parametrize("strip", [True, False])
def test_tokens_in_dolma_s_files_are_those_of_the_edited_text(project: Project, tokens: Tokenizer, strip: bool) -> None:
    """Also where an edit leaves white space, which Dolma strips, or nothing."""
    lay_out(project, "dolma", strip=strip)
    edits = [{"cut_lines": {"regex": "cat"}}, {"replace": {"regex": "x+"}, "by": " hat "}]
    project.config["mix"] = {"text": edits} | project.config["mix"] | {"rules": []}
    project.ok("mix")
    stream = np.memmap(project.out / "tokens.npy", np.uint16, "r")
    with gzip.open(project.out / "tokens.csv.gz", "rt", newline="") as file:
        found = {row[2]: stream[int(row[0]) : int(row[1])].tolist() for row in csv.reader(file)}
    texts = {"3": "größe 图书馆\n", "4": "</s>", "5": " hat "}
    end = tokens.number_of("</s>")
    wanted = {}
    for i, key in ((i, key) for i in (0, 1) for key in texts):
        text = texts[key].strip() if strip else texts[key]
        ids = tokens.library.encode(text, add_special_tokens=False).ids
        wanted[f"{i}-{key if i == 0 else len(TEXTS) - 1 - int(key)}"] = ids if ids[-1] == end else [*ids, end]
    assert found == wanted


def test_parts_and_inputs(project: Project, tokens: Tokenizer) -> None:
    lay_out(project, part_size=2000).ok("mix")
    parts = sorted(project.out.glob("*_part_?.npy"))
    assert len(parts) > 2
    assert [each for part in parts for each in of_numpy(part)] == expected(tokens)
    lay_out(project, "pbin", layout="inputs", part_size=4000).ok("mix")
    for i in (0, 1):
        assert of_pbin(project.out / "a" / f"{i}.pbin") == expected(tokens, shards=(i,))
    assert [path.name for path in project.out.rglob("*.npy")] == []


def test_shards_whose_outputs_would_have_one_name_are_refused(project: Project) -> None:
    lay_out(project, "pbin", layout="inputs")
    (project.documents / "a" / "1.jsonl.gz").rename(project.documents / "a" / "0.json.gz")
    project("mix").fails(2, "expected a name of its own for each shard with `layout: inputs`, got 'a/0' for ")
    del project.config["mix"]["output"]["layout"]
    project.ok("mix")
    streams = [{"name": name, "dataset": str(project.data)} for name in "ab"]
    project.config["mix"] |= {"streams": streams, "output": project.config["mix"]["output"] | {"layout": "inputs"}}
    (project.documents / "a" / "0.json.gz").unlink()
    project.ok("clean", "--forget", "a/0.json.gz")
    assert "got 'a/0' for a: " in project("mix").err


@pytest.mark.parametrize("name", ["part=1", "x" * 101])
def test_a_shard_whose_name_is_none_of_an_output_is_refused_before_work_begins(project: Project, name: str) -> None:
    lay_out(project, "pbin", layout="inputs")
    (project.documents / "a" / "1.jsonl.gz").rename(project.documents / "a" / f"{name}.jsonl.gz")
    message = f"{name}.jsonl.gz: expected a label of letters, digits, _ . - and inner spaces, at most 100, "
    project("mix").fails(2, "`layout: inputs`: ", message)
    assert not project.out.exists()


def test_copies_are_told_apart_in_the_words_of_dolma_and_tokenized_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[str] = []

    def noted(tokenizer: Tokenizer, texts: Sequence[str]) -> Any:
        encoded.extend(texts)
        return encode(tokenizer, texts)

    encode = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", noted)
    lay_out(project, "dolma")
    project.config["mix"]["rules"] = [{"repeat": 3, "when": "document.id == '0-2'"}]
    project.ok("mix")
    assert encoded.count(TEXTS[2]) == 2, "of each shard once"
    found = of_dolma(project.out / "tokens.npy", second=())
    assert found[1] == found[2] == found[3] != found[0]
    with gzip.open(project.out / "tokens.csv.gz", "rt") as file:
        ids = [row[2] for row in csv.reader(file)]
    assert [id for id in ids if id.partition("#")[0] == "0-2"] == ["0-2", "0-2#2", "0-2#3"]
    assert len({*ids}) == len(ids)


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n"


def of_shape(shape: str, kind: str = "<u2") -> bytes:
    return npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}")


def index_of(lengths: list[int], begins: list[int], ends: list[int]) -> bytes:
    """A Megatron index."""
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(ends))
    return head + np.array(lengths, "<i4").tobytes() + np.array([*begins, *ends], "<i8").tobytes()


DAMAGED = bytearray(gzip.compress(b"0,2,a,b,1\r\n" * 1000, mtime=0))
DAMAGED[20] ^= 255


@pytest.mark.parametrize(
    ("files", "suffix", "content"),
    [
        ("numpy", ".npy", of_shape("(-2,)")),
        ("numpy", ".npy", of_shape("(9999999999999999,)")),
        ("numpy", ".npy", npy("{[]: 1}")),
        ("numpy", ".npy", npy("-" * 9000 + "1")),
        ("numpy", ".npy", npy("(" * 9000)),
        ("numpy", ".index.npy", of_shape("(-1,)", "<i8")),
        ("pbin", ".pbin", struct.pack("<QI", 0, 2) + b"\x80\x04\x8e" + struct.pack("<Q", 2**62)),
        ("pbin", ".pbin", struct.pack("<QI", 0, 2) + b"\x80\x04\x8d" + struct.pack("<Q", 8 << 30)),
        ("dolma", ".csv.gz", bytes(DAMAGED)),
        ("dolma", ".csv.gz", gzip.compress(b"0,2," + b"a" * (4 << 20), mtime=0)),
        ("dolma", ".csv.gz", gzip.compress(b"0,2" + b"," * (4 << 20), mtime=0)),
        ("dolma", ".csv.gz", gzip.compress(b"0,2" + b',"\n"' * (1 << 20), mtime=0)),
        ("megatron", ".idx", index_of([-2, 4], [0, -4], [0, 1, 2])),
        ("megatron", ".idx", index_of([1, 1], [0, 2], [0, 7, 2])),
    ],
)
def test_files_made_to_harm_are_told_of(tmp_path: Path, files: str, suffix: str, content: bytes) -> None:
    kind = KINDS[files]
    sound = {".npy": of_shape("(2,)") + b"abcd", ".bin": b"abcd"} if files != "dolma" else {".npy": b"abcd"}
    for each, data in {**sound, suffix: content}.items():
        (tmp_path / f"x{each}").write_bytes(data)
    with pytest.raises(DataError, match="expected"):
        kind.check(str(tmp_path / f"x{kind.SUFFIX}"), [str(tmp_path / f"x{each}") for each in kind.BESIDE])


@pytest.mark.parametrize("packing", ["cut", "fit"])
def test_sequences_have_one_length_and_keep_where_documents_begin(
    project: Project, tokens: Tokenizer, packing: str
) -> None:
    lay_out(project, sequence_length=64, packing=packing, pad="<s>").ok("mix")
    project.ok("validate", project.out)
    found = of_numpy(project.out / "tokens.npy")
    assert {len(each) for each in found} == {64}
    stream, bounds = np.load(project.out / "tokens.npy"), np.load(project.out / "tokens.documents.npy")
    pieces = [stream[a:b].tolist() for a, b in pairwise(bounds)]
    pad = tokens.number_of("<s>")
    documents = [piece for piece in pieces if {*piece} != {pad}]
    wanted = expected(tokens)
    assert sum(map(len, documents)) == sum(map(len, wanted))
    if packing == "cut":
        assert documents == wanted
    else:
        whole = sorted(each for each in wanted if len(each) <= 64)
        assert [each for each in sorted(documents) if each in whole] == whole
        assert all(a // 64 == (b - 1) // 64 for a, b in pairwise(bounds))
        assert len(found) <= sum(map(len, wanted)) / 64 * 1.1 + 1


@pytest.mark.slow
def test_tokenize_writes_what_the_mix_keeps(project: Project, tokens: Tokenizer, tmp_path: Path) -> None:
    lay_out(project)
    output = project.config["mix"]["output"]
    project.config["mix"]["output"] = {"format": "dolma", "path": str(project.out)}
    project.config["tokenize"] = {key: value for key, value in output.items() if key != "format"}
    assert "tokenize: expected an output of its own" in project("tokenize").err.replace(".path", "")
    project.config["tokenize"]["path"] = str(tmp_path / "tokens")
    project.ok("run")
    assert of_numpy(tmp_path / "tokens" / "tokens.npy") == expected(tokens)
    assert len(read_rows(project.out / "documents" / "documents.jsonl.gz")) == len(expected(tokens)) + 2  # empty ones
    before = tree(tmp_path / "tokens")
    project.config["mix"] = {}
    project.ok("tokenize", "--dry-run")
    assert tree(tmp_path / "tokens") == before
    project.ok("tokenize", f"tokenize.path={tmp_path / 'all'}")
    assert len(of_numpy(tmp_path / "all" / "tokens.npy")) == 2 * len(list(filter(None, TEXTS)))
    assert toolkit.tokenize(project.config, overrides={"tokenize.path": str(tmp_path / "call")}).published
    assert "expected no `format` here, because" in project("tokenize", "tokenize.format=oscar").err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eod": "</no>"}, "eod: expected an added token"),
        ({"eod": "the"}, "eod: expected an added token"),
        ({"eod": None, "sequence_length": 8}, "expected a token to fill sequences with"),
        ({"files": "parquet"}, "expected pbin, dolma, megatron or numpy"),
        ({"tokenizer": "none.json"}, "expected a model file, got nothing at 'none.json'"),
        ({"tokenizer": "none.json", "eod": None}, "expected a model file, got nothing at 'none.json'"),
        ({"layout": "inputs", "by": "metadata.x"}, "by: expected none with `layout: inputs`"),
        ({"compression": "gzip"}, "compresses inside its files"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    project: Project, options: dict[str, Any], message: str
) -> None:
    ran = lay_out(project, **options)("mix")
    assert (ran.code, message in ran.err, project.out.exists()) == (2, True, False), ran.err


@pytest.mark.parametrize("with_mix", [True, False])
def test_status_and_plan_of_a_run_show_the_tokens(project: Project, with_mix: bool) -> None:
    lay_out(project)
    output = project.config["mix"]["output"]
    project.config["tokenize"] = {key: output[key] for key in ("tokenizer", "eod", "files")} | {
        "path": f"{project.out}-tokens"
    }
    project.config["mix"]["output"] = {"format": "dolma", "path": str(project.out)}
    project.config["tag"] = {"length-0": "length"}
    project.ok("tag")
    stages = ["tag length-0", "mix", "publish", "tokenize", "publish of tokenize"]
    if with_mix:
        project.ok("mix")
    else:
        del project.config["mix"]
        del stages[1:3]

    def missing() -> dict[str, int]:
        found = {each["stage"]: each["missing"] for each in project("status", "--json").json["stages"]}
        planned = project.ok("run", "--dry-run", "--json").json["plan"]
        assert {name: planned[name]["to_do"] for name in stages} == found
        return found

    assert missing() == dict.fromkeys(stages, 0) | {"tokenize": 2, "publish of tokenize": 1}
    assert "`toolkit tokenize` puts the parts together" in project("status").out
    project.ok("tokenize")
    assert missing() == dict.fromkeys(stages, 0)
    assert "all is done" in project.ok("status").out
    next(Path(f"{project.out}-tokens").glob("*.npy")).unlink()
    assert missing()["publish of tokenize"] == 1


def test_another_tokenizer_at_the_same_path_makes_other_tokens(project: Project, tmp_path: Path) -> None:
    there = tmp_path / "t.json"
    found = json.loads(Path(TOKENIZER).read_text(encoding="utf-8"))
    there.write_text(json.dumps(found), encoding="utf-8")
    lay_out(project, tokenizer=str(there)).ok("mix")
    before = (project.out / "tokens.npy").read_bytes()
    assert project.ok("mix", "--json").json["already"]
    found["model"]["merges"] = found["model"]["merges"][:1]
    there.write_text(json.dumps(found), encoding="utf-8")
    project.ok("mix")
    assert (project.out / "tokens.npy").read_bytes() != before


@pytest.mark.slow
def test_two_processes_give_the_same_bytes(tmp_path: Path, run: Run) -> None:
    def prepare(root: Path, run: Run, processes: int) -> Project:
        return lay_out(
            Project(root, run, {"processes": processes, "executor": {"type": "local"}}), "megatron", part_size=4000
        )

    whole = prepare(tmp_path / "whole", run, 1)
    whole.ok("mix")
    project = prepare(tmp_path / "two", run, 2)
    project.ok("mix")
    assert tree(project.out) == tree(whole.out)


@pytest.mark.s3
@pytest.mark.slow
def test_files_on_s3_are_those_on_disk(tmp_path: Path, project: Project, bucket: str) -> None:  # noqa: F811  # a fixture
    lay_out(project, "dolma").ok("mix")
    wanted = tree(project.out)
    root = join(bucket, "corpus")
    for i in (0, 1):
        write_file(
            join(root, "documents", "a", f"{i}.jsonl.gz"), (project.documents / "a" / f"{i}.jsonl.gz").read_bytes()
        )
    project.config["dataset"] = root
    project.config["mix"]["output"]["path"] = join(root, "out")
    project.ok("mix")
    paths = {"tokens.csv.gz", "tokens_sha256.txt"}  # Dolma's form has the paths of documents
    assert {n: d for n, d in tree_at(join(root, "out")).items() if n not in paths} == {
        n: d for n, d in wanted.items() if n not in paths
    }
    project.ok("validate", join(root, "out"))
