"""Several processes on one shard: the same bytes, the same errors, and nothing left of those that die."""

import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from tests.conftest import Ran
from tests.execution.tasks import is_alive
from tests.execution.test_blocks import ROOT, children, end_group, is_gone
from tests.pipeline import model
from tests.pipeline.conftest import (
    JsonRows,
    Project,
    attributes,
    document,
    read_bytes,
    record_log,
    strays,
    tree,
    write_rows,
)
from tests.waiting import PATIENCE, wait_until
from toolkit.cli import main
from toolkit.command_options import Options
from toolkit.config.settings import Config, ConfigNode, ConfigStruct
from toolkit.data.dataset import open_dataset
from toolkit.execution import blocks, workers
from toolkit.execution.blocks import in_order
from toolkit.execution.executors import Executor, Report, Task
from toolkit.execution.executors.in_process import InProcess
from toolkit.execution.executors.local import Local
from toolkit.execution.workers import LARGE
from toolkit.mix import intermediates, publication
from toolkit.records import sets
from toolkit.stages.context import Context
from toolkit.storage import reading
from toolkit.storage.compression import compress_zstd
from toolkit.tag import run as tagging

SHARD = "d.jsonl.gz"
SHARDS = {SHARD: 90, "deep/e.jsonl.gz": 5, "f.jsonl.gz": 16, "none.jsonl.gz": 0}
"""Documents of each shard; a block has 16."""

LABELS = [*"abcdefghijkl", None]

PLUGIN = '''"""Taggers and a writer for tests."""

import os
import time
from typing import Annotated, Any

import msgspec

from toolkit import Attribute, Document, Mixed, Span, Tagger, Writer


class Lang(msgspec.Struct, frozen=True):
    """A label."""

    label: str | None


class Echo(Tagger):
    """What sets of other programs say."""

    of: Annotated[str, Attribute("lang", Lang)]
    spans: Annotated[str, Attribute("dup", list[Span] | None)]

    def tag(self, document: Document) -> dict[str, str | None]:
        spans = document.attribute(self.spans)
        return {"label": document.attribute(self.of).label, "spans": None if spans is None else str(len(spans))}


class Late(Tagger):
    """What sets of ours say, which are there already."""

    of: Annotated[str, Attribute("echo", dict[str, str | None])]
    vote: Annotated[str, Attribute("language", Lang)]

    def tag(self, document: Document) -> list[str | None]:
        return [document.attribute(self.vote).label, *document.attribute(self.of).values()]


def pass_time(id: str, folder: str, seconds: float) -> None:
    """Take some time for a document.

    Args:
        id: of the document.
        folder: where processes that work on the large shard leave their numbers. While there is a file called ``held``,
            nobody gets on with a document of that shard.
        seconds: that each document takes.
    """
    if folder and id.startswith("d"):
        open(os.path.join(folder, f"{os.getpid()}.pid"), "w").close()
    time.sleep(seconds)
    while folder and id.startswith("d") and os.path.exists(os.path.join(folder, "held")):
        time.sleep(0.01)


class Chars(Tagger):
    """The code points of a document; at some documents, by id, something else happens."""

    acts: dict[str, str] = {}
    folder: str = ""
    seconds: float = 0.0

    def tag(self, document: Document) -> int:
        pass_time(document.id, self.folder, self.seconds)
        if self.acts.get(document.id) == "raise":
            raise ValueError("cannot")
        return len(document.text)

    def tag_batch(self, documents: Any) -> Any:
        found = super().tag_batch(documents)
        lost = [self.acts.get(document.id) == "lose" for document in documents]
        return [value for value, is_lost in zip(found, lost, strict=True) if not is_lost]


class Ids(Writer):
    """The ids of documents; at some of them, by id, something else happens."""

    acts: dict[str, str] = {}
    folder: str = ""
    seconds: float = 0.0

    def encode(self, document: Document, mixed: Mixed) -> Any:
        pass_time(document.id, self.folder, self.seconds)
        if self.acts.get(document.id) == "raise":
            raise ValueError("cannot")
        return [("ids", document.id.encode() + b"\\n")]
'''

ECHO = {"as": "echo", "of": "exp", "spans": "nameless"}

TEXT = "the quick brown fox jumps over a lazy dog while der schnelle Fuchs springt und le renard saute"


def text_of(number: int, chance: random.Random) -> str:
    lines = [" ".join(chance.choices(TEXT.split(), k=chance.randint(1, 9))) for _ in range(number % 7)]
    return "\r\n".join(lines) if number % 13 == 0 else "\n".join(lines) + "\u2028é\n" * (number % 5 == 0)


def make_documents(count: int, prefix: str, seed: int) -> JsonRows:
    """Documents of two sources, some with metadata, some with attributes of their own."""
    chance = random.Random(seed)
    found = []
    for i in range(count):
        more: dict[str, Any] = {}
        if i % 3 == 0:
            more["metadata"] = [None, {}, {"url": f"https://h{i % 4}.example/{i}", "k": {"a": i}}][i // 3 % 3]
        if i % 10 == 7:
            more["attributes"] = {"own": [[0, 1, i / 100]]}
        if i % 11 == 0:
            more["added"] = "2024-01-01T00:00:00Z"
        found.append(document(f"{prefix}{i}", text_of(i, chance), "st"[i % 2], **more))
    return found


def expressed(row: dict[str, Any], number: int) -> dict[str, Any]:
    """The attributes of a document in the set ``exp``."""
    text, lines = row["text"], streams_of(row["text"])
    middle = len(text) // 2
    return attributes(
        row["id"],
        {
            "n": None if number % 9 == 0 else number % 12,
            "lang": {"label": LABELS[number % len(LABELS)], "prob": 0.5},
            "sp": [[0, min(3, len(text)), 1.0], [middle, min(middle + 4, len(text)), number % 4 / 4]] if text else [],
            "each": [(number + i) % 5 for i in range(lines)],
        },
        row["source"],
    )


def streams_of(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def deduplicated(row: dict[str, Any], number: int) -> dict[str, Any]:
    """As Dolma's deduper has it: without source, and ``[]`` for documents that it skipped."""
    values: Any = [] if number % 8 == 3 else {"dup": [[0, 1, 1]]} if number % 3 == 0 and row["text"] else {}
    return {"id": row["id"], "attributes": values}


def fill(root: Path, shard: str, rows: JsonRows) -> None:
    """Writes documents, and the attributes of other programs."""
    write_rows(root / "documents" / shard, rows)
    write_rows(root / "attributes" / "exp" / shard, (expressed(row, i) for i, row in enumerate(rows)))
    write_rows(root / "attributes" / "dedup" / shard, (deduplicated(row, i) for i, row in enumerate(rows)))
    nameless = (
        {"attributes": {"dup": [[0, min(i % 4, len(row["text"])), 1]] * (i % 3)}, "id": row["id"]}
        for i, row in enumerate(rows)
    )
    write_rows(root / "attributes" / "nameless" / shard, nameless)


def simulated(make: Any, work: Any, parts: Iterable[Any], processes: int, name: str) -> Iterator[Any]:
    """What `in_order` does, as its contract has it, without processes: all that is sent is copied.

    Functions are as many as processes; blocks are read ahead, and those in hand are worked on from the last.
    """

    def copied(thing: Any) -> Any:
        return pickle.loads(pickle.dumps(thing))

    functions = [make(copied(work)) for _ in range(max(processes, 1))]
    source, number = iter(parts), 0
    fault: Exception | None = None
    while fault is None:
        hand: deque[Any] = deque()
        while fault is None and len(hand) < 3 * processes:
            try:
                hand.append(copied(next(source)))
            except Exception as error:  # the end among them
                fault = error
        outcomes: list[Callable[[], Any]] = []
        for block in reversed(hand):
            number += 1
            try:
                outcomes.append(partial(copied, functions[number % len(functions)](block)))
            except Exception as error:
                outcomes.append(partial(raised, error))
        for outcome in reversed(outcomes):
            yield outcome()
    if not isinstance(fault, StopIteration):
        raise fault


def raised(error: BaseException) -> Any:
    raise error


RUN = Context.run


class Spreading:
    """Lets all tasks whose work can be spread have so many processes, real ones or none; counts what got them.

    Whatever the executor: so that tasks run in this process.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.used: list[int] = []

    def __call__(self, processes: int, *, real: bool = True) -> None:
        def run(
            context: Context,
            what: str,
            function: Any,
            tasks: Iterable[Task[Any]],
            *more: Any,
            spreads: bool = False,
            **options: Any,
        ) -> Any:
            listed = list(tasks)
            if spreads:
                payloads = [msgspec.structs.replace(task.payload, processes=processes) for task in listed]
                listed = [replace(task, payload=payload) for task, payload in zip(listed, payloads, strict=True)]
            return RUN(context, what, function, listed, *more, **options)

        def counted(make: Any, work: Any, parts: Any, processes: int, name: str) -> Iterator[Any]:
            assert name.endswith(".gz"), "messages name the shard"
            self.used.append(processes)
            return (in_order if real else simulated)(make, work, parts, processes, name)

        self._patch.setattr(Context, "run", run)
        self._patch.setattr(tagging, "in_order", counted)
        self._patch.setattr(intermediates, "in_order", counted)


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> Spreading:
    """Also makes blocks small, and what is read at a time: that is done in this process."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 3000)
    monkeypatch.setattr(reading, "READ", 2000)
    return Spreading(monkeypatch)


@pytest.fixture
def large(project: Project) -> Project:
    """Shards with sets of other programs, and taggers that read these and each other."""
    prepare(project)
    return project


def prepare(project: Project) -> None:
    for shard, count in SHARDS.items():
        fill(project.data, shard, make_documents(count, Path(shard).name[0], count))
    (project.root / "plugin.py").write_text(PLUGIN)
    (project.root / "list.txt").write_text("d3\nt\td5\nnobody\nh1.example\nhttps://h2.example/6\nd88\n")
    project.config["tag"] = {
        "lines-0": {"tagger": "line_language", "min_prob": 0.1},
        "language-0": {"tagger": "language", "lines": "lines-0"},
        "shape-0": ["line_shape", "noise"],
        "echo-0": {**ECHO, "tagger": f"{project.root}/plugin.py:Echo"},
    }


def snapshot(root: Path) -> dict[str, Any]:
    """All files below a folder, also our records: those without what differs from run to run."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file() and path.name != "lock":
            data = path.read_bytes()
            if path.parent.name == "record-log":
                found[name] = timeless(record_log(path))
            else:
                found[name] = timeless(json.loads(data)) if name.endswith(".json") else sha256(data).hexdigest()
    return found


def timeless(record: Any) -> Any:
    if isinstance(record, dict):
        return {key: timeless(value) for key, value in record.items() if key not in ("seconds", "stamp", "details")}
    return [timeless(value) for value in record] if isinstance(record, list) else record


def tagged_whole(project: Project) -> dict[str, Any]:
    """Tags from the beginning, in two steps, the second of which reads what the first has written."""
    for path in [project.data / ".toolkit", *project.attributes.glob("*-0")]:
        shutil.rmtree(path, ignore_errors=True)
    first = project.config["tag"]
    project.ok("tag")
    late = {"tagger": f"{project.root}/plugin.py:Late", "of": "echo-0.echo", "vote": "language-0"}
    project.config["tag"] = {**first, "late-0": late}
    assert project.ok("tag", "--json").json["written"]["late-0"] == len(SHARDS)
    project.config["tag"] = first
    return snapshot(project.data)


RULES: dict[str, list[dict[str, Any]]] = {
    "dolma": [
        {"drop": "n is not None and n > p", "name": "above"},
        {"keep": 'document.source == "s" or n is None or n < 8', "name": "only"},
        {"drop": "$.attributes[?(@.own[0][2] > 0.7)]", "syntax": "jsonpath", "name": "own"},
        {"sample": 0.95, "seed": 3},
        {"sample": {"a": 0.5, "default": 0.95}, "name": "by label", "when": "label is not None"},
        {"drop": "blocklist", "files": "list.txt", "entries": "ids", "name": "ids", "when": "n is not None and n < 7"},
        {"drop": "blocklist", "files": "list.txt", "name": "listed"},
        {
            "group": "g",
            "when": "label is not None",
            "rules": [
                {"drop": 'label == "b" and document.chars > 150', "name": "long b"},
                {"annotate": "early", "when": 'label < "d"'},
            ],
        },
        {"annotate": "short", "when": "document.chars < 20"},
        {"set": {"mine.id": "document.id", "mine.chars": "document.chars"}},
        {"route": '"null"', "when": "label is None"},
        {"route": '"l/" + (lang.label if lang.label is not None else "null")'},
        {"cut": "sp", "min_score": 0.75},
        {"replace": "dup", "by": "<{}>", "when": "len(dup) > 0"},
        {"cut": "lines", "when": "each == 4"},
    ],
    "oscar": [
        {"drop": "language.label is None", "name": "unidentified"},
        {"drop": "blocklist", "files": "list.txt", "name": "listed"},
        {"annotate": "short", "when": "line_shape.lines < 4"},
        {"set": {"votes": "line_language"}},
        {"cut": "lines", "when": "line_language is None or line_language.label != language.label"},
    ],
    "streams": [
        {"drop": "n is not None and n > 8", "name": "above"},
        {"drop": "blocklist", "files": "list.txt", "name": "listed"},
        {"route": '(lang.label if lang.label is not None else "null") + "/" + document.source'},
    ],
    "text": [{"drop": "n is not None and n == 3", "name": "three"}, {"cut": "lines", "when": "line.chars < 9"}],
    "parquet": [
        {"drop": "language.label is None", "name": "unidentified"},
        {"annotate": "echoed", "when": 'get(echo, "spans", None) is not None'},
        {"set": "late", "to": "late"},
        {"route": '"all"', "when": "n is None"},
    ],
}

MIXES: dict[str, dict[str, Any]] = {
    "dolma": {
        "attributes": ["exp", "dedup"],
        "label": "lang.label",
        "parameters": {"p": 9},
        "languages": {"c": {"p": 6}, "k": {"p": 3}},
        "output": {"format": "dolma", "part_size": 4000, "provenance": True, "attributes": "original"},
    },
    "oscar": {
        "attributes": ["lines-0", "language-0", "shape-0", "exp"],
        "output": {"format": "oscar", "part_size": 3000, "provenance": "line"},
    },
    "streams": {
        "attributes": ["exp"],
        "streams": {
            "one": {"attributes": ["dedup"], "rules": [{"sample": 0.8}, {"set": {"from": '"one"'}}]},
            "two": {"attributes": ["shape-0"], "rules": [{"annotate": "long", "when": "line_shape.lines > 4"}]},
        },
        "output": {"format": "dolma", "part_size": 6000, "provenance": True},
    },
    "text": {"attributes": ["lines-0", "exp"], "output": {"format": "text", "unit": "line", "compression": "zstd"}},
    "parquet": {
        "attributes": ["lines-0", "language-0", "exp", "echo-0", "late-0"],
        "output": {"format": "parquet", "by": "language", "attributes": True, "part_size": 4000},
    },
}


def configure(project: Project, name: str) -> None:
    """The mix of this name."""
    mix = json.loads(json.dumps(MIXES[name]))
    for weight, stream in enumerate(mix.get("streams", {}).values(), 1):
        stream |= {"dataset": str(project.data), "weight": weight}
        project.config["duplicate_ids"] = "allow"  # each document is in both
    project.config["mix"] = {
        **mix,
        "rules": RULES[name],
        "rejected": str(project.root / "rejected"),
        "output": {**mix["output"], "path": str(project.out)},
    }


def mixed_whole(project: Project) -> tuple[dict[str, Any], Any]:
    """Mixes from the beginning; all files, and the result."""
    roots = (project.out, project.root / "rejected")
    for path in roots:
        shutil.rmtree(path, ignore_errors=True)
    result = project.ok("mix", "--json").json
    return {f"{root.name}/{path}": seen for root in roots for path, seen in snapshot(root).items()}, result


@pytest.fixture(scope="module")
def tagged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a `large` whose taggers have run."""
    root = tmp_path_factory.mktemp("tagged")
    project = Project(root, in_this_process, {"dataset": str(root / "data"), "executor": {"type": "in_process"}})
    prepare(project)
    tagged_whole(project)
    return root


def in_this_process(*arguments: object) -> Ran:
    return Ran(main([*map(str, arguments), "--quiet"]), json.dumps({"written": {"late-0": len(SHARDS)}}), "")


@pytest.fixture
def tagged(project: Project, tagged_once: Path) -> Project:
    """A `large` whose taggers have run, and that is not mixed yet."""
    shutil.copytree(tagged_once, project.root, dirs_exist_ok=True)
    return project


# --- the same bytes ---------------------------------------------------------------------------------------------------

SLOW = (pytest.mark.slow,)
SIMULATED, TWO, THREE = (3, False), (2, True), (3, True)


def ways(names: Iterable[str], *, real: str, later: str) -> list[Any]:
    """Each with simulated processes, a half of them in slow tests; one with real ones, and some (`later`) there."""
    found = [
        pytest.param(name, *SIMULATED, id=f"{name}-simulated", marks=SLOW if number % 2 else ())
        for number, name in enumerate(names)
    ]
    found.append(pytest.param(real, *TWO, id=f"{real}-two"))
    return found + [pytest.param(name, *TWO, id=f"{name}-two", marks=SLOW) for name in later.split("; ")]


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "real"), [SIMULATED, THREE], ids=["simulated", "three"])
def test_tagging_gives_the_same_bytes(processes: int, real: bool, large: Project, spread: Spreading) -> None:
    spread(1)
    one = tagged_whole(large)
    assert set(spread.used) == {1}
    assert len([path for path in one if path.endswith(".bin")]) == len(SHARDS)
    spread.used.clear()
    spread(processes, real=real)
    assert tagged_whole(large) == one
    assert set(spread.used) == {processes}
    large.ok("validate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "processes", "real"),
    [
        *ways(MIXES, real="dolma", later="streams"),
        *(pytest.param(name, *THREE, id=f"{name}-three") for name in ("dolma", "oscar")),
    ],
)
def test_mixing_gives_the_same_bytes(
    name: str, processes: int, real: bool, tagged: Project, spread: Spreading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "clear_work", lambda *_: None)  # so that intermediates stay to be compared
    monkeypatch.setattr(intermediates, "HELD", 3000)
    configure(tagged, name)
    spread(1)
    one, result = mixed_whole(tagged)
    assert sum("/stage/" in path for path in one) == len(SHARDS) * len(MIXES[name].get("streams", [0])) + 1  # records
    spread(processes, real=real)
    assert mixed_whole(tagged) == (one, result)
    assert set(spread.used) == {1, processes}
    idle = [rule["name"] for rule in result["rules"] if not rule["documents"] and "weight" not in rule["name"]]
    assert idle == [], "each rule does something"
    assert all(0 < listed["matched"] < listed["entries"] for listed in result["blocklists"])


Rules = tuple[list[dict[str, Any]], list[model.Modelled]]


def check_model(project: Project, spread: Spreading, docs: list[model.Doc], rules: Rules) -> None:
    yaml, flat = rules
    (project.root / "list.txt").write_text("\n".join(model.LIST))
    model.write(project, docs)
    used = "n > p" in str(yaml) or "p + 1" in str(yaml)
    project.config["mix"] = {
        "attributes": ["exp"],
        "label": model.LABEL,
        "rejected": str(project.root / "rejected"),
        "allow_empty": True,
        "output": {"format": "dolma", "path": str(project.out)},
        "rules": yaml,
        **(model.PARAMETERS if used else {}),
    }
    spread(1)
    one = mixed_whole(project)
    spread(2, real=False)
    assert mixed_whole(project) == one
    wanted = model.expected(docs, flat)
    assert {e["name"]: [e["documents"], e["chars"], e["reached"]] for e in one[1]["rules"]} == wanted.effects


BESIDE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.slow
@given(model.docs(), model.rules())
@settings(max_examples=60, deadline=None, suppress_health_check=BESIDE)
def test_any_rules_give_the_same_bytes(
    project: Project, spread: Spreading, docs: list[model.Doc], rules: Rules
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ROWS", 2)
        check_model(project, spread, docs, rules)


def chars_by(project: Project, **options: Any) -> dict[str, Any]:
    """The settings of the tagger `Chars`."""
    return {"tagger": f"{project.root}/plugin.py:Chars", "as": "chars", **options}


@pytest.mark.slow
def test_a_large_shard_is_worked_on_by_several_processes(large: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As commands decide it; other processes find a tagger by its file."""
    for shard in SHARDS:
        if shard != SHARD:
            (large.documents / shard).unlink()
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    folder = large.root / "folder"
    large.config |= {"executor": {"type": "local"}, "processes": 2}
    large.config["tag"] |= {"chars-0": chars_by(large, folder=str(folder), seconds=0.001)}
    found = []
    for least in (10**9, 1):
        monkeypatch.setattr(workers, "LARGE", least)
        folder.mkdir()
        large.ok("tag")
        pids = {int(path.stem) for path in folder.iterdir()}
        found.append((snapshot(large.data), pids))
        forget(large)
        shutil.rmtree(folder)
    (one, alone), (two, pids) = found
    assert one == two
    assert alone == {os.getpid()}
    assert 1 <= len(pids) <= 2
    assert not pids & {os.getpid(), *children()}


@pytest.mark.slow
def test_several_large_shards_are_the_same_in_workers_that_have_processes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With blocks as they are, in workers, with shares of their own."""
    for shard, count in (("a.jsonl.gz", 2000), ("b.jsonl", 900), ("c.jsonl.zst", 300)):
        fill(project.data, shard.removesuffix(".zst"), make_documents(count, shard[0], count))
        if shard.endswith(".zst"):
            for path in (project.data / folder for folder in ("documents", "attributes/exp", "attributes/dedup")):
                plain = path / "c.jsonl"
                plain.with_suffix(".jsonl.zst").write_bytes(compress_zstd(plain.read_bytes()))
                plain.unlink()
            (project.attributes / "nameless" / "c.jsonl").unlink()
    (project.root / "list.txt").write_text("a3\nt\tb5\nnobody\nh1.example\n")
    project.config |= {"executor": {"type": "local"}, "tag": {"shape-0": ["line_shape", "noise"]}}
    configure(project, "streams")
    found, before = [], children()
    for large, processes in ((10**9, 1), (1, 4)):
        monkeypatch.setattr(workers, "LARGE", large)
        project.config["processes"] = processes
        shutil.rmtree(project.attributes / "shape-0", ignore_errors=True)
        shutil.rmtree(project.data / ".toolkit", ignore_errors=True)
        project.ok("tag")
        found.append((snapshot(project.data), mixed_whole(project)))
    assert found[0] == found[1]
    assert children() <= before


# --- the same errors --------------------------------------------------------------------------------------------------

Damage = Callable[[Project], None]


def lines_of(path: Path) -> list[bytes]:
    return read_bytes(path).split(b"\n")[:-1]


def row(number: int, edit: Any, folder: str = "documents") -> Damage:
    """Replaces a row by bytes, by what a function makes of it, or (with None) by nothing."""

    def damage(project: Project) -> None:
        path = project.data / folder / SHARD
        lines: list[Any] = lines_of(path)
        found = edit(json.loads(lines[number - 1])) if callable(edit) else edit
        lines[number - 1 : number] = [] if found is None else [found]
        write_rows(path, lines)

    return damage


def changed(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: row | values


def valued(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: row | {"attributes": row["attributes"] | values}


def longer(folder: str) -> Damage:
    def damage(project: Project) -> None:
        lines = lines_of(project.data / folder / SHARD)
        write_rows(project.data / folder / SHARD, [*lines, json.loads(lines[-1]) | {"id": "more"}])

    return damage


def cut(folder: str = "documents") -> Damage:
    def damage(project: Project) -> None:
        path = project.data / folder / SHARD
        path.write_bytes(path.read_bytes()[:-9])

    return damage


def acts(**by_id: str) -> Damage:
    """Lets the tagger do what it should not, at some documents."""

    def damage(project: Project) -> None:
        project.config["tag"]["chars-0"]["acts"] = by_id

    return damage


def echoes(project: Project) -> None:
    """Lets a tagger read sets of other programs."""
    project.config["tag"]["echo-0"] = {**ECHO, "tagger": f"{project.root}/plugin.py:Echo"}


E, N = "attributes/exp", "attributes/nameless"
TAG_FAULTS: dict[str, tuple[list[Damage], str]] = {
    "not json": ([row(41, b"{")], "D:41: expected a JSON object in UTF-8, got a line that is not: "),
    "truncated": ([cut()], "D:8"),
    "tagger, truncated": ([cut(), acts(d40="raise")], "D:41: tagger chars failed: ValueError: cannot"),
    "row, tagger": ([row(40, b""), acts(d60="raise")], "D:40: expected a JSON object, got a blank line"),
    "tagger, row": ([row(60, b""), acts(d20="raise")], "D:21: tagger chars failed: ValueError: cannot"),
    "lost": ([acts(d33="lose")], "D: tagger chars: expected 16 values of tag_batch, got 15"),
    "set short": ([echoes, row(50, None, E)], "E:50: expected the attributes of D:50, got those of 'd50'"),
    "set long": ([echoes, longer(E)], "E:91: expected the end of the file after 90 rows, as many as D has"),
    "tagger, set long": ([echoes, longer(E), acts(d89="raise")], "D:90: tagger chars failed: ValueError: cannot"),
    "two sets": ([echoes, row(50, None, E), row(30, None, N)], "N:30: expected the attributes of D:30, got those of"),
}


def fails(project: Project, command: str, message: str) -> tuple[list[str], dict[str, Any]]:
    """The failures of a command, the only one with this message, and all files that it leaves."""
    ran = project(command, "--json", "--quiet").fails(1)
    failed: list[str] = ran.json["failed"]
    assert len(failed) == 1
    short = failed[0]
    for letter, folder in (("D", "documents"), ("E", E), ("N", N), ("X", "attributes/dedup")):
        short = short.replace(str(project.data / folder / SHARD), letter)
    short = short.replace(f"{project.root}/config.yaml:1", "CONFIG")
    assert short.startswith(message)
    assert not list(project.root.rglob("*.tmp"))
    return failed, snapshot(project.root)


def forget(project: Project) -> None:
    """Deletes all that commands have made."""
    for path in (project.data / ".toolkit", project.out, project.root / "rejected", *project.attributes.glob("*-0")):
        shutil.rmtree(path, ignore_errors=True)


def fails_alike(project: Project, spread: Spreading, command: str, message: str, processes: int, real: bool) -> None:
    """A command fails in the same way with one process and with several, and leaves the same."""
    spread(1)
    expected = fails(project, command, message)
    forget(project)
    before = children()
    spread(processes, real=real)
    assert fails(project, command, message) == expected
    assert children() <= before


@pytest.fixture
def faulty(project: Project) -> Project:
    """A shard and a smaller one, as they should be until something is damaged."""
    for shard in (SHARD, "f.jsonl.gz"):
        fill(project.data, shard, make_documents(SHARDS[shard], shard[0], 1))
    (project.root / "plugin.py").write_text(PLUGIN)
    project.config["tag"] = {"chars-0": chars_by(project, acts={}), "shape-0": "line_shape"}
    return project


@pytest.mark.parametrize(("fault", "processes", "real"), ways(TAG_FAULTS, real="tagger, truncated", later="lost"))
def test_a_shard_that_cannot_be_tagged_is_the_same_error_and_leaves_nothing(
    fault: str, processes: int, real: bool, faulty: Project, spread: Spreading
) -> None:
    damages, message = TAG_FAULTS[fault]
    for damage in damages:
        damage(faulty)
    fails_alike(faulty, spread, "tag", message, processes, real)
    made = [str(path.relative_to(faulty.attributes)) for path in faulty.attributes.glob("*-0/*.gz")]
    assert sorted(made) == sorted(f"{name}/f.jsonl.gz" for name in faulty.config["tag"]), "what the other shard has"


def test_a_shard_that_is_mended_is_tagged_as_if_it_had_always_been_sound(faulty: Project, spread: Spreading) -> None:
    echoes(faulty)
    spread(3, real=False)
    faulty.ok("tag")
    expected = snapshot(faulty.data)
    forget(faulty)
    path = faulty.documents / SHARD
    for damage in (row(60, b""), cut()):
        sound = path.read_bytes()
        damage(faulty)
        assert faulty("tag").code == 1
        path.write_bytes(sound)
        faulty.ok("tag")
        assert snapshot(faulty.data) == expected


def rules(*listed: dict[str, Any]) -> Damage:
    """Other rules."""

    def damage(project: Project) -> None:
        project.config["mix"]["rules"] = list(listed)

    return damage


def writes(**by_id: str) -> Damage:
    """Lets a writer do what it should not, at some documents."""

    def damage(project: Project) -> None:
        output = {"format": f"{project.root}/plugin.py:Ids", "acts": by_id, "path": str(project.out)}
        project.config["mix"]["output"] = output

    return damage


def at(id: str) -> dict[str, str]:
    return {"when": f'document.id == "{id}"'}


X = "attributes/dedup"
SHORT_LIST = "expected an element, got a list that is too short"
MIX_FAULTS: dict[str, tuple[list[Damage], str]] = {
    "set short": ([row(50, None, E)], "E:50: expected the attributes of D:50, got those of 'd50' from 's'"),
    "two sets": ([row(50, None, E), row(30, None, X)], "X:30: expected the attributes of D:30, got those of 'd30'"),
    "rule": (
        [rules({"drop": "sp[5].score > 1", "name": "r", **at("d40")})],
        f"E:41: rule 'r' (CONFIG) failed: {SHORT_LIST}",
    ),
    "rule, set": (
        [rules({"drop": "sp[5].score > 1", "name": "r", **at("d40")}), row(45, None, E)],
        f"E:41: rule 'r' (CONFIG) failed: {SHORT_LIST} (document 'd40')",
    ),
    "set, rule": (
        [rules({"drop": "sp[5].score > 1", "name": "r", **at("d47")}), row(45, None, E)],
        "E:45: expected the attributes of D:45, got those of 'd45'",
    ),
    "folder, set long": ([rules({"route": '"../x"', **at("d89")}), longer(E)], "D:90: expected a label of letters"),
    "span": (
        [rules({"cut": "sp", "name": "r"}), row(34, valued(sp=[[0, 9999, 1.0]]), E)],
        "E:34: rule 'r' (CONFIG): expected ",
    ),
    "writer": ([writes(d60="raise", d33="raise")], "D:34: format Ids failed: ValueError: cannot (document 'd33')"),
}


@pytest.fixture
def faulty_mix(faulty: Project) -> Project:
    """A mix that is as it should be until something is damaged."""
    faulty.mixes(attributes=["exp", "dedup"], rejected=str(faulty.root / "rejected"))
    return faulty


@pytest.mark.parametrize(("fault", "processes", "real"), ways(MIX_FAULTS, real="rule, set", later="writer"))
def test_a_shard_that_cannot_be_mixed_is_the_same_error_and_publishes_nothing(
    fault: str, processes: int, real: bool, faulty_mix: Project, spread: Spreading
) -> None:
    damages, message = MIX_FAULTS[fault]
    for damage in damages:
        damage(faulty_mix)
    fails_alike(faulty_mix, spread, "mix", message, processes, real)
    assert tree(faulty_mix.out) == {}
    left = [path.name for path in (faulty_mix.out / ".toolkit").rglob("*") if path.is_file()]
    assert sorted(left) == ["f=2Ejsonl=2Egz", "records.records", "records.records"], (
        "the other shard's work, its records, and what failed"
    )


def test_a_shard_that_is_mended_is_mixed_as_if_it_had_always_been_sound(faulty_mix: Project, spread: Spreading) -> None:
    spread(3, real=False)
    expected = mixed_whole(faulty_mix)
    forget(faulty_mix)
    path = faulty_mix.data / E / SHARD
    sound = path.read_bytes()
    row(60, None, E)(faulty_mix)
    assert faulty_mix("mix").code == 1
    path.write_bytes(sound)
    result = faulty_mix.ok("mix", "--json").json
    assert (tree(faulty_mix.out), result["totals"]) == (
        {
            path.removeprefix("out/"): seen
            for path, seen in expected[0].items()
            if ".toolkit" not in path and "out/" in path
        },
        expected[1]["totals"],
    )
    assert strays(faulty_mix.out) == []


def told(project: Project, spread: Spreading, command: str, processes: int) -> tuple[int, list[str], str]:
    """Exit status, failures and what is shown of a command that may fail."""
    spread(processes)
    ran = project(command, "--json", "--debug")
    errors = re.sub(r"(?m)^tag: 2/2 shards, .* done$", "…", ran.err)  # how far a shard was that failed is chance
    return ran.code, ran.json["failed"], errors


@pytest.mark.slow
def test_no_traceback_is_shown_where_the_message_says_it_all(faulty: Project, spread: Spreading) -> None:
    row(41, b"")(faulty)
    one = told(faulty, spread, "tag", 1)
    assert "Traceback" not in one[2]
    forget(faulty)
    assert told(faulty, spread, "tag", 2) == one


@pytest.mark.slow
def test_the_traceback_of_a_tagger_is_shown_to_those_who_debug_it(faulty: Project, spread: Spreading) -> None:
    acts(d33="raise")(faulty)
    _, _, errors = told(faulty, spread, "tag", 2)
    assert "plugin.py" in errors
    assert 'raise ValueError("cannot")' in errors


# --- what blocks have changed with one process ------------------------------------------------------------------------


def test_an_error_names_the_document_where_the_documents_are_cut_short(faulty_mix: Project) -> None:
    cut()(faulty_mix)
    ran = faulty_mix("mix")
    assert "d.jsonl.gz:1: expected whole compressed data" in ran.err
    assert "(document 'd0')" in ran.err


def test_a_blocklist_of_no_documents_is_reported_as_matching_nothing(project: Project) -> None:
    write_rows(project.documents / SHARD, [])
    (project.root / "list.txt").write_text("a\nb\n")
    project.mixes({"drop": "blocklist", "files": "list.txt", "name": "listed"}, attributes=[], allow_empty=True)
    result = project.ok("mix", "--json").json
    assert result["blocklists"] == [{"rule": "listed", "entries": 2, "matched": 0}]
    assert len(result["unmatched"]["listed"]) == 2


# --- processes that die -----------------------------------------------------------------------------------------------


TWICE = "a process that worked on a part of it was ended by SIGKILL, twice; was the memory exhausted?"


EVERYWHERE = """
from toolkit.execution import blocks, workers

workers.LARGE = 1
blocks.BLOCK_ROWS = 4
"""
"""What the command and all its processes begin with: a `sitecustomize`."""


@dataclass
class Running:
    """A command that runs by itself, in a process group of its own, with two processes on each shard.

    Attributes:
        pids: of those who have worked on documents of the large shard.
        log: what it has said.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    log_path: Path

    @property
    def pids(self) -> set[int]:
        return {int(path.stem) for path in self.folder.glob("*.pid")}

    @property
    def forked(self) -> set[int]:
        """Processes that the command has begun: the children of its fork server."""
        return {pid for server in children(self.process.pid) for pid in children(server)}

    @property
    def workers(self) -> set[int]:
        """Of the executor, which have whole shards, and helpers for the large one."""
        return {pid for pid in self.forked if children(pid)}

    @property
    def helpers(self) -> set[int]:
        """Processes that work on a part of the large shard."""
        return {pid for each in self.forked for pid in (each, *children(each))} & self.pids

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def wait_for(self, processes: int) -> None:
        """Until so many work on the large shard, which does not get on before `release`."""
        assert wait_until(lambda: len(self.helpers) >= processes or self.process.poll() is not None), self.log
        assert self.process.poll() is None, self.log

    def release(self) -> None:
        """Let the large shard get on."""
        (self.folder / "held").unlink(missing_ok=True)

    def end(self) -> int:
        """Its exit status, when no process of its group is left."""
        code = self.process.wait(PATIENCE)
        assert wait_until(lambda: is_gone(self.process.pid)), "processes were still there"
        return code


@contextmanager
def running(project: Project, command: str, *, held: bool = False) -> Iterator[Running]:
    folder, site = project.root / "folder", project.root / "site"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if held:
        (folder / "held").touch()
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(EVERYWHERE)
    log = project.root / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "toolkit.cli", command, "-c", str(project.yaml)],
            start_new_session=True,
            stdout=stream,
            stderr=stream,
            env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        )
    try:
        yield Running(process, folder, log)
    finally:
        end_group(process.pid)
        process.wait(PATIENCE)


@pytest.fixture
def slow(faulty_mix: Project) -> Project:
    """Its tagger, and its writer, take a while for each document."""
    slowly = {"folder": str(faulty_mix.root / "folder"), "seconds": 0.006}
    (faulty_mix.root / "folder").mkdir()
    faulty_mix.config["tag"] = {"chars-0": chars_by(faulty_mix, **slowly)}
    writes()(faulty_mix)
    faulty_mix.config["mix"]["output"] |= slowly
    faulty_mix.config |= {"executor": {"type": "local"}, "processes": 3}
    return faulty_mix


def only_large(project: Project) -> None:
    """Without the other shard, so that there are no workers."""
    (project.documents / "f.jsonl.gz").unlink()
    for name in ("exp", "dedup", "nameless"):
        (project.attributes / name / "f.jsonl.gz").unlink()


def is_tagged(project: Project, shard: str) -> bool:
    """Whether a shard need not be tagged any more."""
    return sets.is_recorded(open_dataset(str(project.data), None, None), "chars-0", shard)


def mixed(project: Project) -> int:
    """How many shards need not be encoded any more."""
    stages: list[dict[str, Any]] = project("status", "--json").json["stages"]
    return sum(int(each["done"]) for each in stages if each["stage"] == "mix")


def kill_all(run: Running) -> None:
    for pid in run.helpers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_all_that_come(run: Running) -> None:
    """Also those that take their place."""
    while run.process.poll() is None:
        kill_all(run)


INTERRUPTED = "interrupted; run the same command to resume"
TERMINATED = "terminated; run the same command to resume"
ENDS: dict[str, tuple[Callable[[Running], None], int, str]] = {
    "killed": (lambda run: run.process.kill(), -signal.SIGKILL, ""),
    "terminated": (lambda run: run.process.terminate(), 143, TERMINATED),
    "interrupted": (lambda run: run.process.send_signal(signal.SIGINT), 130, INTERRUPTED),
    "ctrl-c": (lambda run: os.killpg(run.process.pid, signal.SIGINT), 130, INTERRUPTED),
    "one of them": (lambda run: os.kill(max(run.helpers), signal.SIGKILL), 0, ""),
    "all of them": (kill_all, 0, ""),
    "all that come": (kill_all_that_come, 1, f"{SHARD}: {TWICE}"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shards", "command", "how"),
    [
        ("one", "tag", "killed"),
        ("two", "mix", "killed"),
        ("two", "tag", "terminated"),
        ("two", "mix", "interrupted"),
        ("one", "mix", "ctrl-c"),
        ("two", "tag", "ctrl-c"),
        ("two", "tag", "one of them"),
        ("one", "mix", "all of them"),
        ("one", "tag", "all that come"),
        ("two", "mix", "all that come"),
    ],
)
def test_a_run_that_is_ended_leaves_no_process_and_the_next_one_is_whole(
    shards: str, command: str, how: str, slow: Project
) -> None:
    if shards == "one":
        only_large(slow)
    act, code, said = ENDS[how]
    with running(slow, command, held=True) as run:
        run.wait_for(3 if shards == "one" else 2)
        act(run)
        run.release()
        assert run.end() == code, run.log
        assert said in run.log
        assert "Traceback" not in run.log
        if code >= 0:
            assert not list(slow.root.rglob("*.tmp"))
        if code:
            made = slow.attributes / "chars-0" / SHARD if command == "tag" else slow.out / "ids"
            assert not made.exists()
            assert not is_tagged(slow, SHARD) or command == "mix"
    if code:  # else it was whole at once
        with running(slow, command, held=True) as run:
            run.wait_for(2)
            run.release()
            assert run.end() == 0, run.log
    assert not list(slow.root.rglob("*.tmp"))
    slow.config |= {"executor": {"type": "in_process"}, "processes": 1}
    if command == "tag":
        expected = tree(slow.attributes)
        forget(slow)
        slow.ok("tag")
        assert tree(slow.attributes) == expected
    else:
        expected = tree(slow.out)
        assert expected
        forget(slow)
        slow.ok("mix")
        assert tree(slow.out) == expected


@pytest.mark.slow
@pytest.mark.parametrize("command", ["tag", "mix"])
def test_a_worker_that_is_killed_with_its_processes_costs_its_shard_one_retry(command: str, slow: Project) -> None:
    with running(slow, command, held=True) as run:
        run.wait_for(2)
        helpers = run.helpers
        (worker,) = run.workers
        os.kill(worker, signal.SIGKILL)
        assert wait_until(lambda: not any(map(is_alive, helpers)))
        assert wait_until(lambda: len(run.pids) >= 4), run.log
        run.release()
        assert run.end() == 0, run.log
    for path in slow.root.rglob(".*.tmp"):  # of the worker; the next run would delete it
        path.unlink()
    expected = tree(slow.attributes), tree(slow.out)
    forget(slow)
    slow.config |= {"executor": {"type": "in_process"}, "processes": 1}
    slow.ok(command)
    assert (tree(slow.attributes), tree(slow.out)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2])
def test_an_interrupt_while_processes_start_is_no_traceback(shards: int, slow: Project) -> None:
    """Those of a shard, and the workers that two shards have."""
    if shards == 1:
        only_large(slow)
    with running(slow, "tag", held=True) as run:
        assert wait_until(lambda: bool(run.forked))
        time.sleep(0.06)
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.end() == 130, run.log
        assert INTERRUPTED in run.log
        assert not list(slow.root.rglob("*.tmp"))
        assert "Traceback" not in run.log


# --- how many processes a task gets -----------------------------------------------------------------------------------


class Shard(ConfigStruct):
    """A payload whose work can be spread."""

    processes: int = 1


class Unspread(ConfigStruct):
    """One whose work cannot."""


def context(processes: int, **config: Any) -> Context:
    return Context(Options(quiet=True), Config(processes=processes, **config), ConfigNode({}))


def shares(processes: int, *sizes: float) -> list[int]:
    """The processes of tasks of these sizes, given in units from which shards are large."""
    tasks = [Task(str(i), Shard(), int(size * LARGE)) for i, size in enumerate(sizes)]
    spread = context(processes)._workers.spread(tasks)
    assert [(task.name, task.size) for task in spread] == [(task.name, task.size) for task in tasks]
    assert [task.payload.processes for task in spread] == [task.processes for task in spread]
    return [task.processes for task in spread]


def test_a_large_shard_gets_the_share_of_the_processes_that_it_has_of_the_bytes() -> None:
    assert shares(8, 1) == [8]
    assert shares(8, 100) == [8]
    assert shares(2, 1) == [2]
    assert shares(1, 50) == [1]
    assert shares(8, *[3] * 8) == [1] * 8
    assert shares(8, *[3] * 100) == [1] * 100
    assert shares(8, *[3] * 4) == [2] * 4
    assert shares(8, 8, *[1] * 8) == [4, *[1] * 8], "half of the bytes, half of the processes"
    assert shares(8, 6, 2) == [6, 2]
    assert shares(8, 5, 3, 1) == [4, 2, 1]
    assert shares(3, 2, 1) == [2, 1]
    assert shares(8) == []


def test_a_small_shard_is_the_work_of_one_process() -> None:
    assert shares(8, 0.99) == [1]
    assert shares(8, 0) == [1]
    assert shares(8, 0.9, 0.9) == [1, 1]
    assert shares(8, 3, 0.5) == [6, 1]


def test_shares_come_to_no_more_than_all_processes() -> None:
    chance = random.Random(2)
    for _ in range(300):
        processes = chance.randint(1, 64)
        sizes = [chance.choice([0, 0.5, 1, chance.expovariate(0.1)]) for _ in range(chance.randint(1, 12))]
        found = shares(processes, *sizes)
        assert sum(n for n in found if n > 1) <= processes
        assert all(n == 1 for n, size in zip(found, sizes, strict=True) if int(size * LARGE) < LARGE)


class Limits(Exception):
    """Ends a run where it would begin."""


def nothing(payload: Any, report: Report) -> None:
    pass


def limit_of(
    context: Context, tasks: list[Task[Any]], monkeypatch: pytest.MonkeyPatch, *, spreads: bool = True
) -> tuple[int, list[int]]:
    """With how many processes a context runs tasks, and how many each of them keeps."""
    found: list[Any] = []

    def run(executor: Executor, function: Any, tasks: Iterable[Task[Any]], *, at_once: int | None = None) -> Any:
        found.extend([executor.cores[0], [task.processes for task in tasks]])
        raise Limits

    monkeypatch.setattr(Local, "run", run)
    monkeypatch.setattr(InProcess, "run", run)
    with pytest.raises(Limits):
        context.run("test", nothing, tasks, spreads=spreads)
    limit, kept = found
    return limit, kept


def test_one_large_task_needs_no_worker_to_have_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_of(context(8), [Task("a", Shard(), LARGE)], monkeypatch) == (1, [8])


def test_a_few_large_tasks_run_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, kept = limit_of(context(8), [Task("a", Shard(), 5 * LARGE), Task("b", Shard(), 3 * LARGE)], monkeypatch)
    assert kept == [5, 3]
    assert limit >= sum(kept)


def test_what_runs_in_this_process_for_a_debugger_starts_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = limit_of(context(8, executor={"type": "in_process"}), [Task("a", Shard(), LARGE)], monkeypatch)
    assert found == (1, [1])


def test_tasks_that_cannot_use_several_processes_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large they are, and whatever their payload is."""
    for payload in (Unspread(), Shard()):
        tasks = [Task(name, payload, 100 * LARGE) for name in "ab"]
        assert limit_of(context(8), tasks, monkeypatch, spreads=False) == (8, [1, 1])
