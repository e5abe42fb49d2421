"""Small data sets, and a working folder in which commands are run on them."""

import copy
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Ran, Run
from tests.recipes import mix_of
from toolkit.data.dataset import open_dataset
from toolkit.records.ingested import InputRecord, load_all

if TYPE_CHECKING:
    from tests.pipeline.dolma import Dolma

JsonRows = list[dict[str, Any]]


@dataclass
class Folder:
    """A folder with data, an output, and a configuration with which commands are run."""

    root: Path
    run: Run
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def out(self) -> Path:
        return self.root / "out"

    def mixes(self, *rules: Any, **more: Any) -> None:
        """Let the configuration mix by these rules; see `mix_of`."""
        self.config["mix"] = mix_of(self.out, *rules, **more)


class Project(Folder):
    """With a configuration of ours, in which commands are run on one dataset."""

    @property
    def documents(self) -> Path:
        return self.data / "documents"

    @property
    def attributes(self) -> Path:
        return self.data / "attributes"

    @property
    def yaml(self) -> Path:
        """The configuration on disk: JSON, which is YAML."""
        path = self.root / "config.yaml"
        text = json.dumps(self.config)
        if not path.exists() or path.read_text() != text:  # a command that has just begun may be reading it
            path.write_text(text)
        return path

    def __call__(self, command: str, *arguments: object) -> Ran:
        return self.run(command, "-c", self.yaml, *arguments)

    def ok(self, command: str, *arguments: object) -> Ran:
        """As a call, for what must succeed."""
        return self(command, *arguments).succeeds()

    def ingest(self, *entries: dict[str, Any]) -> Ran:
        """Ingests by these entries."""
        self.config["ingest"] = list(entries)
        return self("ingest")

    def begin(self, kept: Path, make: Callable[[], object]) -> None:
        """Begins with what `make` has made in the first such folder: no file of it holds the folder's path."""
        if kept.exists():
            shutil.copytree(kept, self.root, dirs_exist_ok=True)
            return
        make()
        shutil.copytree(self.root, kept, ignore=shutil.ignore_patterns("config.yaml"))

    def shard(self, name: str) -> JsonRows:
        """The rows of a documents file."""
        return read_rows(self.documents / name)

    def values(self, set_name: str, name: str) -> list[dict[str, Any]]:
        """What the rows of an attribute file hold."""
        return [row["attributes"] for row in read_rows(self.attributes / set_name / name)]

    def output(self) -> JsonRows:
        """All rows of an output, in the order of its parts' names."""
        parts = sorted(path for path in self.out.rglob("*.jsonl.gz") if ".toolkit" not in path.parts)
        return [row for path in parts for row in read_rows(path)]


def read_bytes(path: Path) -> bytes:
    """The content of a file, gzipped or not, read by the standard library."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def read_rows(path: Path) -> JsonRows:
    """The rows of a JSON Lines file, gzipped or not."""
    return [json.loads(line) for line in read_bytes(path).split(b"\n") if line]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any] | bytes]) -> Path:
    """Writes rows; those given as bytes as they are. Gzipped by another library than ours, with name and time."""
    lines = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def document(id: str, text: str, source: str = "s", **more: Any) -> dict[str, Any]:
    """A row of a documents file."""
    return {"id": id, "text": text, "source": source, **more}


def attributes(id: str, values: Any, source: str = "s") -> dict[str, Any]:
    """A row of an attribute file as the Dolma toolkit orders it."""
    return {"id": id, "attributes": values, "source": source}


def tree(root: Path, *, bookkeeping: bool = False) -> dict[str, str]:
    """The sha256 of every file below a folder by relative path; a missing folder has none."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and (bookkeeping or ".toolkit" not in path.relative_to(root).parts)
    }


def inputs_of(project: "Project") -> dict[str, InputRecord]:
    """The records of the inputs of a project's dataset, by key."""
    return dict(load_all(open_dataset(str(project.data), None, None)))


def record_log(path: Path) -> dict[str, Any]:
    """The records in a file of a record log, by kind and key."""
    entries = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()][1:]
    return {f"{each['kind']} {each['key']}": each["record"] for each in entries if each["record"] is not None}


def strays(root: Path) -> list[str]:
    """Files that no finished run leaves: temporaries, marks of begun work, intermediates, staged parts."""
    found = []
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        work = ".toolkit" in parts and ("stage" in parts or "parts" in parts)
        if path.name.endswith((".tmp", "publishing.json")) or work:
            found.append(str(path.relative_to(root)))
    return sorted(found)


def sha256sum_accepts(checksums: Path) -> bool:
    """What ``sha256sum -c`` does, in the strict form: every line two columns, every file there and right."""
    lines = checksums.read_text().splitlines()
    for line in lines:
        digest, gap, name = line[:64], line[64:66], line[66:]
        if gap not in ("  ", " *") or hashlib.sha256((checksums.parent / name).read_bytes()).hexdigest() != digest:
            return False
    return bool(lines)


TEXTS = {
    "a.jsonl.gz": ["one\ntwo", "one line", "three\nlines\nhere", "", "ünïcode\u2028is one line"],
    "b.jsonl.gz": ["x" * 120, "y\n" * 7, "z"],
    "deep/er/c.jsonl.gz": ["c one", "c two\nlines", "c\nthree\nlines", "c four"],
}
"""The small data set: texts by shard."""


def id_of(shard: str, number: int) -> str:
    """The id of a document of the small data set; rows are numbered from 1."""
    return f"{shard.split('.')[0]}-{number}"


def write_documents(project: Project, texts: Mapping[str, list[str]] = TEXTS) -> None:
    """Writes documents of texts by shard."""
    for shard, each in texts.items():
        rows = [document(id_of(shard, i), text, n=i) for i, text in enumerate(each, 1)]
        write_rows(project.documents / shard, rows)


def write_attributes(project: Project, texts: Mapping[str, list[str]] = TEXTS) -> None:
    """Writes attributes of the same in the Dolma form, as the set ``exp``."""
    for shard, each in texts.items():
        rows = [
            attributes(id_of(shard, i), {"exp__lines__count": [[0, len(text), float(text.count("\n"))]]})
            for i, text in enumerate(each, 1)
        ]
        write_rows(project.attributes / "exp" / shard, rows)


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """An empty folder."""
    return Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}})


@pytest.fixture
def small(project: Project, made: Path) -> Project:
    """Three shards of documents, tagged with ``shape-0`` by two taggers, and a mix that is not run yet."""
    project.config["tag"] = {"shape-0": ["line_shape", "noise"]}
    project.config["mix"] = {
        "attributes": ["shape-0"],
        "rules": [{"drop": "line_shape.lines > 2", "name": "long"}],
        "output": {"format": "dolma", "path": str(project.out)},
    }

    def make() -> None:
        write_documents(project)
        project.ok("tag")

    project.begin(made / "small", make)
    return project


@pytest.fixture
def by_hand(project: Project) -> Project:
    """The small data set with attributes in the Dolma form that no toolkit recorded, and a mix that is not run yet."""
    write_documents(project)
    write_attributes(project)
    project.config["mix"] = {
        "attributes": ["exp"],
        "rules": [{"drop": "exp__lines__count[0][2] >= 2", "name": "long"}],
        "output": {"format": "dolma", "path": str(project.out)},
    }
    return project


def oscar_tags(**lines: Any) -> dict[str, Any]:
    """The sets of an OSCAR corpus; with options of the languages of lines."""
    return {
        "lines-0": {"tagger": "line_language", **lines},
        "language-0": {"tagger": "language", "lines": "lines-0"},
        "shape-0": ["line_shape", "noise"],
    }


@pytest.fixture
def pipeline(project: Project, sample: list[Path]) -> Project:
    """The configuration of the main job on the sample that ships with the project."""
    folder = sample[0].parent
    project.config |= {
        "ingest": [{"format": "wet", "from": [f"{folder}/*.warc.wet.gz"], "source": "cc", "trim": {"min_chars": 101}}],
        "tag": oscar_tags(),
        "mix": {
            "attributes": list(oscar_tags()),
            "rules": [
                {"drop": "line_shape.long_chars < 0.6 * line_shape.chars", "name": "short_lines"},
                {"drop": "language.label is None", "name": "unidentified"},
                {"drop": "language.prob < 0.6 and not language.multilingual", "name": "unsure"},
                {"annotate": "short_sentences", "when": "line_shape.short > line_shape.lines // 2"},
            ],
            "output": {"format": "oscar", "path": str(project.out)},
        },
    }
    return project


@pytest.fixture
def dolma(tmp_path: Path, run: Run) -> "Dolma":
    """A stream of the attributes ``m`` that cuts the spans ``s``; without data."""
    from tests.pipeline.dolma import STREAM, Dolma

    return Dolma(tmp_path, run, {"streams": [copy.deepcopy(STREAM)], "processes": 1})
