"""``compression: zstd``: documents and attributes are frames of zstd, and all that is made of them is as with gzip."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, document, read_bytes, tree, write_rows
from toolkit.storage.compression import zstd
from toolkit.storage.outputs import BLOCK

SHARD = "cc/sample-00000.jsonl"


def content(path: Path) -> bytes:
    """The content of a file of many frames, read by the standard library's reader of files."""
    with zstd().open(path) as stream:
        found: bytes = stream.read()
    return found


def elsewhere(project: Project, root: Path, run: Run, **settings: object) -> Project:
    """The same project in another folder."""
    root.mkdir()
    config = json.loads(json.dumps(project.config).replace(str(project.root), str(root)))
    return Project(root, run, config | settings)


@pytest.mark.slow
def test_the_rows_are_those_of_gzip_for_any_number_of_processes(pipeline: Project, tmp_path: Path, run: Run) -> None:
    pipeline.ok("run")
    one = elsewhere(pipeline, tmp_path / "one", run, compression="zstd")
    one.ok("run")
    two = elsewhere(pipeline, tmp_path / "two", run, compression="zstd", executor={}, processes=2)
    two.ok("run")
    assert tree(one.data) == tree(two.data)
    assert tree(one.out) == tree(two.out) == tree(pipeline.out)
    for path in tree(pipeline.data):
        assert content(one.data / path.replace(".gz", ".zst")) == read_bytes(pipeline.data / path)
    assert {Path(path).suffix for path in tree(one.data)} == {".zst"}


@pytest.mark.slow
def test_every_command_reads_it(pipeline: Project, run: Run) -> None:
    pipeline.config["compression"] = "zstd"
    pipeline.ok("run")
    before = tree(pipeline.root)
    pipeline.ok("validate")
    pipeline.ok("mix", "--dry-run")
    pipeline.ok("status")
    assert run("stats", str(pipeline.data)).code == 0
    run("head", str(pipeline.documents / f"{SHARD}.zst"), "-n", "1").shows("line_shape")
    again = pipeline.ok("run", "--json").json
    assert again["ingest"]["skipped"] == again["ingest"]["inputs"]
    assert tree(pipeline.root) == before


def test_a_shard_is_frames_of_a_block_each(project: Project) -> None:
    path = write_rows(project.root / "in" / "a.jsonl", ({"id": str(i), "text": "text " * 2000} for i in range(300)))
    project.config["compression"] = "zstd"
    project.ingest({"format": "jsonl", "from": [str(path)], "source": "j"})
    stored = (project.documents / "j/a.jsonl.zst").read_bytes()
    sizes = []
    while stored:
        frame = zstd().ZstdDecompressor()
        sizes.append(len(frame.decompress(stored)))
        assert frame.eof
        stored = frame.unused_data
    assert len(sizes) == 3
    assert all(BLOCK <= size < BLOCK + 11_000 for size in sizes[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(("before", "now"), [(None, "zstd"), ("zstd", "gzip"), ("zstd", None)])
def test_another_compression_is_refused_like_any_setting(
    pipeline: Project, before: str | None, now: str | None
) -> None:
    pipeline.config["compression"] = before
    pipeline.ok("run")
    made = tree(pipeline.root, bookkeeping=True)
    pipeline.config["compression"] = now
    for command in ("ingest", "tag", "mix", "run"):
        pipeline(command).fails(2, f"documents.compression: {before or 'gzip'!r} -> {now or 'gzip'!r}")
    assert pipeline("status", "--json").json["done"] is False
    assert {k: v for k, v in tree(pipeline.root, bookkeeping=True).items() if k != "config.yaml"} == {
        k: v for k, v in made.items() if k != "config.yaml"
    }
    pipeline.ok("run", "--overwrite")
    suffix = {"zstd": ".zst"}.get(now or "gzip", ".gz")
    assert {path.suffix for path in pipeline.documents.rglob("*.*")} == {suffix}
    pipeline.ok("run")


def test_attributes_have_the_compression_of_their_documents(small: Project) -> None:
    """Which others may have made: another one is refused, none in the configuration means theirs."""
    small.config["compression"] = "zstd"
    small.config["tag"]["more-0"] = "line_shape"
    before = tree(small.data, bookkeeping=True)
    small("tag").fails(2, "compression: expected documents of the compression zstd, got", "a.jsonl.gz, which has gzip")
    assert tree(small.data, bookkeeping=True) == before
    small.config["compression"] = "lz4"
    small("tag").fails(2, "compression: expected gzip or zstd, got 'lz4'")
    del small.config["compression"]
    small.ok("tag")


# A package that is missing ends a command before its first task, whoever needs it, with the line that installs it.

TOKENS = {"path": "out", "tokenizer": f"{ROOT}/configs/sample/tokenizer.json", "eod": "</s>", "files": "megatron"}
MISSING_EXTRAS_BLOCK = "import sys\nfor name in {names!r}:\n    sys.modules[name] = None\n"


def toolkit_without(folder: Path, package: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder, where a package cannot be imported."""
    (folder / "block").mkdir()
    (folder / "block/sitecustomize.py").write_text(MISSING_EXTRAS_BLOCK.format(names=[package]))
    return subprocess.run(
        [sys.executable, "-m", "toolkit", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}/block:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "extra", "command", "section"),
    [
        ("phonenumbers", "phone", "tag", {"tag": {"a-0": {"tagger": "phone_numbers", "region": "DE"}}}),
        ("phonenumbers", "phone", "run", {"tag": {"a-0": {"tagger": "phone_numbers", "region": "DE"}}}),
        ("pyarrow", "parquet", "ingest", {"ingest": [{"format": "parquet", "from": "raw/*.parquet"}]}),
        ("pyarrow", "parquet", "run", {"ingest": [{"format": "parquet", "from": "raw/*.parquet"}]}),
        (
            "trafilatura",
            "trafilatura",
            "ingest",
            {"ingest": [{"format": "warc", "from": "raw/*.warc", "extractor": "trafilatura"}]},
        ),
        (
            "tokenizers",
            "tokens",
            "tag",
            {"tag": {"a-0": {"tagger": "tokens", "tokenizer": f"{ROOT}/configs/sample/tokenizer.json"}}},
        ),
        ("detect_secrets", "secrets", "tag", {"tag": {"a-0": "secrets"}}),
        ("presidio_analyzer", "presidio", "tag", {"tag": {"a-0": "pii_presidio"}}),
        ("kenlm", "kenlm", "tag", {"tag": {"a-0": {"tagger": "perplexity", "model": "model.bin"}}}),
        ("icu", "icu", "tag", {"tag": {"a-0": {"tagger": "length", "splitter": "icu"}}}),
        ("icu", "icu", "tag", {"tag": {"a-0": {"tagger": "gopher_quality", "splitter": "icu"}}}),
        ("jieba", "words-zh", "tag", {"tag": {"a-0": {"tagger": "fineweb", "variant": "datatrove", "language": "zh"}}}),
        ("pyarrow", "parquet", "mix", {"mix": {"output": {"format": "parquet", "path": "out"}}}),
        ("pyarrow", "parquet", "run", {"mix": {"output": {"format": "parquet", "path": "out"}}}),
        ("tokenizers", "tokens", "mix", {"mix": {"output": TOKENS | {"format": "tokens"}}}),
        ("tokenizers", "tokens", "tokenize", {"tokenize": TOKENS}),
        ("boto3", "s3", "ingest", {"ingest": [{"format": "jsonl", "from": "s3://bucket/*.gz", "source": "s"}]}),
        ("ray", "ray", "tag", {"tag": {"a-0": "length"}, "executor": {"type": "ray"}}),
        ("matplotlib", "plots", "stats --output plots.png", {}),
        (
            "jq",
            "dolma",
            "mix",
            {"mix": {"rules": [{"drop": ".text", "syntax": "jq"}], "output": {"format": "dolma", "path": "out"}}},
        ),
    ],
)
def test_a_missing_package_ends_the_command_at_its_start(
    project: Project, tmp_path: Path, package: str, extra: str, command: str, section: dict[str, Any]
) -> None:
    for shard in range(4):
        write_rows(project.documents / f"{shard}.jsonl.gz", [document(f"{shard}", "Call 030 1234567 now.")])
        for suffix in ("parquet", "warc"):
            write_rows(tmp_path / f"raw/{shard}.{suffix}", [{"no": "data"}])
    if "ingest" in section:
        project.config["dataset"] = str(tmp_path / "new")
    project.config |= {"processes": 2, "executor": {"type": "local"}, **section}
    (tmp_path / "model.bin").write_bytes(b"")
    yaml, before = project.yaml, tree(tmp_path, bookkeeping=True)
    ran = toolkit_without(tmp_path, package, *command.split(), "-c", str(yaml))
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"'tagmix[{extra}]'" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "0 documents" not in ran.stdout
    shutil.rmtree(tmp_path / "block")
    assert sorted(tree(tmp_path, bookkeeping=True)) == sorted(before), "no task has begun"


@pytest.mark.slow
def test_a_package_that_one_shard_needs_stops_no_other(project: Project, tmp_path: Path) -> None:
    """Which languages there are is known only when documents are read."""
    texts = {
        "a": "我们今天去图书馆看书。那里很安静。",
        "b": "Wir gehen heute in die Bibliothek und lesen.",
        "c": "We read a book.",
    }
    for name, text in texts.items():
        write_rows(project.documents / f"{name}.jsonl.gz", [document(name, text)])
    words = {"tagger": "length", "splitter": "dictionary", "language": "language-0.text_language.label"}
    project.config |= {"processes": 1, "tag": {"language-0": "text_language", "words-0": words}}
    ran = toolkit_without(tmp_path, "jieba", "tag", "-c", str(project.yaml))
    assert ran.returncode == 1, ran.stdout + ran.stderr
    told = [line for line in ran.stderr.splitlines() if "tagmix[words-zh]" in line]
    assert told
    assert all("a.jsonl.gz: expected the package jieba" in line for line in told)
    made = {path.name for path in (project.documents.parent / "attributes/words-0").rglob("*.gz")}
    assert made == {"b.jsonl.gz", "c.jsonl.gz"}


# A tagger's value that is not of its declared type fails its shard, in any row and whatever form the values have.

OWN = '''
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from toolkit import Batch, Document, Prediction, Span, Tagger
from toolkit.text import Column
from toolkit.text import LinePredictions

WRONG = {"nan": float("nan"), "inf": float("-inf"), "text": "many", "null": None}


class Score(msgspec.Struct):
    best: float | None


class One(Tagger):
    """A number for a document."""

    def tag(self, document: Document) -> float:
        return WRONG.get(document.text, 0.5)


class Object(Tagger):
    """A number that may be null, in an object."""

    def tag(self, document: Document) -> Score:
        return Score(WRONG.get(document.text, None))


class Scores(msgspec.Struct):
    count: int
    parts: list[float]


class Numbers(Tagger):
    """Numbers alone in an object."""

    def tag(self, document: Document) -> Scores:
        return Scores(1, [0.5, WRONG.get(document.text, 1)])


class Open(Tagger):
    """Anything in a map."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[dict[str, Any]]:
        return [{"a": [{"b": WRONG.get(document.text)}]} for document in documents]


class Texts(Column[float]):
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def value(self, index: int) -> float:
        return self.values[index]

    def raw(self) -> list[msgspec.Raw]:
        return [msgspec.Raw(msgspec.json.encode(value)) for value in self.values]


class Own(Tagger):
    """A column of its own."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[float]:
        return Texts([WRONG.get(document.text, 0.5) for document in documents])


class Nullable(Tagger):
    """The same, which may be null."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[float | None]:
        return Texts([WRONG.get(document.text, 0.5) for document in documents])


class Lines(Tagger):
    """A column of compiled code."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[list[Prediction | None]]:
        probs = np.array([WRONG.get(document.text, 0.5) for document in documents], dtype=np.float32)
        return LinePredictions(["en"], np.zeros(len(probs), np.int32), probs, np.arange(len(probs) + 1))


SPANS = {"outside é": (0, len("outside é".encode())), "reversed": (2, 1), "negative": (-1, 1)}


class Marked(Tagger):
    """Spans."""

    def tag(self, document: Document) -> dict[str, list[Span]]:
        return {"a": [Span(*SPANS.get(document.text, (0, len(document.text))))]}


class Lazy(Tagger):
    """Values that nobody can count."""

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[int]:
        return (1 for document in documents)
'''
ROW = 300  # in the second block of documents
MARKED = "map[list[span]], got {'a': [Span(start"


WRONG = [
    ("One", "nan", "float, got nan"),
    ("One", "text", "float, got 'many'"),
    ("One", "null", "float, got None"),
    ("Object", "nan", "{best: float | null}, got Score(best=nan)"),
    ("Object", "inf", "{best: float | null}, got Score(best=-inf)"),
    ("Numbers", "nan", "{count: int, parts: list[float]}, got Scores(count=1, parts=[0.5, nan])"),
    ("Open", "nan", "map[any], got {'a': [{'b': nan}]}"),
    ("Own", "nan", "float, got null"),
    ("Own", "text", 'float, got "many"'),
    ("Nullable", "inf", "float | null, got null: NaN and infinity are no numbers of JSON"),
    (
        "Marked",
        "outside é",
        f"{MARKED}=0, end=10, score=1.0)]}}: expected spans of code points from 0 to 9, got [0, 10]",
    ),
    ("Marked", "reversed", f"{MARKED}=2, end=1, score=1.0)]}}: expected spans of code points from 0 to 8, got [2, 1]"),
    (
        "Marked",
        "negative",
        f"{MARKED}=-1, end=1, score=1.0)]}}: expected spans of code points from 0 to 8, got [-1, 1]",
    ),
    ("Lines", "nan", 'list[{label: str, prob: float} | null], got [{"label":"en","prob":null}]'),
]
CASES = [
    (way, tagger)
    for way in ("tag", "run", "when", "without")  # the values of the last two are encoded by the same code
    for tagger in dict.fromkeys(case[0] for case in WRONG)
    if way in ("tag", "run") or tagger in ("Own", "Object")
]


@pytest.mark.parametrize(("way", "tagger"), CASES)
def test_a_wrong_value_fails_its_shard_in_any_row(way: str, tagger: str, project: Project) -> None:
    """Its error names file, row, document and tagger; the shard beside those with one is done."""
    (project.root / "own.py").write_text(OWN)
    expected = {text: message for name, text, message in WRONG if name == tagger}
    project.config["tag"] = {"own-0": {"tagger": f"{project.root}/own.py:{tagger}", "as": "own"}}
    entry = project.config["tag"]["own-0"]
    if way == "when":
        entry["when"] = 'document.id != "d1"'
    if way == "without":
        project.config["tag"]["mails-0"] = "emails"
        entry["without"] = "mails-0.emails"
    folder = project.root / "in" if way == "run" else project.documents
    for wrong in expected:
        rows = [document(f"d{i}", wrong if i == ROW else "good") for i in range(1, ROW + 50)]
        write_rows(folder / f"{wrong}.jsonl.gz", rows)
    write_rows(folder / "b.jsonl.gz", [document("e", "good")])
    if way == "run":
        project.config["ingest"] = [{"format": "dolma", "from": [f"{project.root}/in/*"]}]
        project.config["mix"] = {"attributes": ["own-0"], "output": {"format": "dolma", "path": str(project.out)}}
    told = project("run" if way == "run" else "tag").fails(1).err.splitlines()
    for wrong, type_ in expected.items():
        message = f"{wrong}.jsonl.gz:{ROW}: tagger own: expected a value of its declared type {type_}"
        assert [line for line in told if message in line and f"(document 'd{ROW}')" in line], (message, told)
    made = [path.name for path in (project.attributes / "own-0").rglob("*.jsonl.gz")]
    assert made == ["b.jsonl.gz"]
    assert not project.output()


def test_a_batch_of_values_that_is_no_list_is_refused(project: Project) -> None:
    (project.root / "own.py").write_text(OWN)
    write_rows(project.documents / "a.jsonl.gz", [document("d", "text")])
    project.config["tag"] = {"own-0": {"tagger": f"{project.root}/own.py:Lazy"}}
    project("tag").fails(1, "tagger lazy: expected 1 values of tag_batch, got generator; return a list")


def test_a_long_wrong_value_is_cut_in_the_message(project: Project) -> None:
    (project.root / "own.py").write_text(OWN.replace('"many"', '"many" * 1000'))
    write_rows(project.documents / "a.jsonl.gz", [document("d", "text")])
    project.config["tag"] = {"own-0": {"tagger": f"{project.root}/own.py:One"}}
    ran = project("tag").fails(1, "got 'manymany")
    assert "many" * 100 not in ran.err
