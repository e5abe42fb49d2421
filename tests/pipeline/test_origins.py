"""An output belongs to its dataset: only what was made from the same one is replaced without being asked for."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Ran, Run
from tests.recipes import mix_of, tree

pytestmark = pytest.mark.slow

TOKENIZER = f"{ROOT}/tests/taggers/files/tokenizer.json"
_ABOUT = {
    "name": "c",
    "description": "d",
    "creator": {"type": "Person", "name": "E"},
    "license": "https://example.org/l",
    "date_published": "2026-01-31",
    "url": "https://example.org/",
    "version": "1.0.0",
}


class Corpora:
    """Two datasets, and configurations that write to the same places."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder, self.run = folder, run
        for name, count in (("a", 30), ("b", 2)):
            for shard in range(2):
                self.write(name, shard, count)

    def write(self, name: str, shard: int, count: int) -> None:
        path = self.folder / name / "documents" / f"{shard}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"id": f"{name}-{shard}-{i}", "source": "s", "text": f"{name} says {i} words"} for i in range(count)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def config(self, name: str, **more: Any) -> Path:
        sections: dict[str, Any] = {
            "dataset": str(self.folder / name),
            "tag": {"length-0": {"tagger": "length"}},
            "mix": mix_of(self.folder / "out", {"drop": "length.words < 1"}, attributes=["length-0"]),
            "tokenize": {"path": str(self.folder / "tokens"), "tokenizer": TOKENIZER, "eod": "</s>", "files": "numpy"},
            "about": _ABOUT,
        }
        path = self.folder / f"{name.replace('/', '-')}.yaml"
        path.write_text(json.dumps(sections | more))
        return path

    def __call__(self, command: str, name: str, *more: object) -> Ran:
        return self.run(command, "-c", self.config(name), *more)


@pytest.fixture
def corpora(tmp_path: Path, run: Run) -> Corpora:
    found = Corpora(tmp_path, run)
    assert [found("tag", name).code for name in "ab"] == [0, 0]
    return found


def _published(folder: Path) -> dict[str, str]:
    return {name: data for name, data in tree(str(folder)).items() if "/leases" not in name}


def test_a_mix_of_another_dataset_replaces_nothing_unasked(corpora: Corpora) -> None:
    """The error names both, and what would go; `run` and dry runs say so, too; --overwrite does it, and says so."""
    assert corpora("mix", "a").code == 0
    before = _published(corpora.folder / "out")
    for command in (["mix"], ["run"], ["mix", "--dry-run"]):
        ran = corpora(*command[:1], "b", *command[1:])
        assert (ran.code, ran.out) == (2, "")
        a, b = corpora.folder / "a", corpora.folder / "b"
        assert f"out: expected nothing, or what was made from {b}, got what was made from {a}: " in ran.err
        assert "1 part, 60 documents, labels: 1 (documents) would be replaced" in ran.err
        assert "--overwrite" in ran.err
        assert _published(corpora.folder / "out") == before
    ran = corpora("mix", "b", "--overwrite")
    assert (ran.code, f"replaces what was made from {corpora.folder / 'a'}: 1 part, 60 documents" in ran.err) == (
        0,
        True,
    )
    assert corpora("mix", "a").code == 2
    assert corpora("mix", "b").code == 0


def test_a_dataset_that_grows_or_is_made_again_in_its_place_goes_on(corpora: Corpora) -> None:
    assert corpora("mix", "a").code == 0
    for shard in range(2):
        corpora.write("a", shard, 7)
    assert [corpora(command, "a").code for command in ("tag", "mix")] == [0, 0]
    assert json.loads((corpora.folder / "out/.toolkit/manifest.json").read_bytes())["totals"]["kept"] == 14


def _renamed(source: Path, target: Path) -> None:
    source.rename(target)


def _copied(source: Path, target: Path) -> None:
    """As ``cp -r`` does: all files are new, and so are their times."""
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
    shutil.rmtree(source)


@pytest.mark.parametrize("move", [_renamed, _copied])
@pytest.mark.parametrize("changes", [False, True])
def test_a_dataset_that_was_moved_goes_on(corpora: Corpora, move: Callable[[Path, Path], None], changes: bool) -> None:
    """One of its two shards may have changed; afterwards the new place is that of the output."""
    pytest.importorskip("pyarrow")
    export = ("--parquet", corpora.folder / "exported")

    def codes(name: str) -> list[int]:
        more = {"mix": (), "tokenize": (), "export": export, "report": ("-o", corpora.folder / "report.html")}
        return [corpora(command, name, *options).code for command, options in more.items()]

    assert codes("a") == [0] * 4
    move(corpora.folder / "a", corpora.folder / "moved")
    if changes:
        corpora.write("moved", 1, 11)
    assert corpora("tag", "moved").code == 0
    assert codes("moved") == [0] * 4
    for shard in range(2):
        corpora.write("moved", shard, 5)
    assert corpora("tag", "moved").code == 0
    assert codes("moved") == [0] * 4


def test_a_lock_of_another_dataset_is_replaced_only_if_asked(corpora: Corpora) -> None:
    """One of the same dataset is, also of documents that were all made again since; any other file is not."""
    lock = corpora.folder / "corpus.lock.json"
    own = {"output": {"format": "dolma", "path": str(corpora.folder / "own")}}

    def locked(name: str, *more: str) -> Ran:
        sections = {"mix": own} if name == "b" else {}
        return corpora.run("mix", "-c", corpora.config(name, **sections), "--lock", lock, *more)

    assert locked("a").code == 0
    before = lock.read_bytes()
    ran = locked("b")
    assert (ran.code, lock.read_bytes()) == (2, before)
    assert (
        f"{lock}: expected no file, or a lock of this dataset, got a lock of other documents (60 documents" in ran.err
    )
    assert "--overwrite" in ran.err
    assert not (corpora.folder / "own").exists()
    for shard in range(2):
        corpora.write("a", shard, 7)
    assert corpora("tag", "a").code == 0
    assert locked("a").code == 0
    assert lock.read_bytes() != before
    assert locked("b", "--overwrite").code == 0
    lock.write_text("my notes")
    ran = locked("b")
    assert (ran.code, lock.read_text()) == (2, "my notes")
    assert "got a file that is no lock" in ran.err


def test_an_empty_shard_in_common_is_none(corpora: Corpora) -> None:
    for name in "ab":
        (corpora.folder / name / "documents" / "empty.jsonl").write_bytes(b"")
        assert corpora("tag", name).code == 0
    assert corpora("mix", "a").code == 0
    assert corpora("mix", "b").code == 2


def test_an_interrupted_publication_is_of_its_dataset(corpora: Corpora) -> None:
    """As long as its files are not all in place, only the note of what is to be done says whose they are."""
    assert corpora("mix", "a").code == 0
    work = corpora.folder / "out/.toolkit"
    manifest = json.loads((work / "manifest.json").read_bytes())
    recorded = json.loads((work / "origins.json").read_bytes())
    datasets = recorded["origins"]["."]["datasets"]
    (work / "publishing.json").write_text(json.dumps({"manifest": manifest, "datasets": datasets, "obsolete": []}))
    for name in ("manifest.json", "origins.json"):
        (work / name).unlink()
    assert corpora("mix", "b").code == 2
    assert corpora("mix", "a").code == 0


@pytest.mark.parametrize("what", ["files in place", "streams"])
def test_so_it_is_in_place_and_with_streams(corpora: Corpora, what: str) -> None:
    """Files in place that lie in one folder are other datasets if their globs are."""

    def mix(name: str, *more: str) -> int:
        dataset = {"documents": {"format": "jsonl", "path": f"{corpora.folder}/files/{name}*.jsonl", "source": "s"}}
        own: dict[str, Any] = {"attributes": str(corpora.folder / "attributes" / name), **dataset}
        mixed: dict[str, Any] = {"output": {"format": "dolma", "path": str(corpora.folder / "out")}}
        if what == "streams":
            own, streams = {}, [{"name": f"s{part}", "dataset": str(corpora.folder / part)} for part in name]
            mixed["streams"] = streams
        path = corpora.folder / "other.yaml"
        path.write_text(json.dumps({**own, "mix": mixed}))
        return corpora.run("mix", "-c", path, *more).code

    (corpora.folder / "files").mkdir()
    for name in "abc":
        corpora.write(name, 0, 4)
        shutil.copy(corpora.folder / name / "documents/0.jsonl", corpora.folder / "files" / f"{name}.jsonl")
    assert [mix("a"), mix("b"), mix("a")] == [0, 2, 0]
    if what == "streams":
        assert [mix("ab"), mix("bc"), mix("a")] == [0, 0, 2]
    assert mix("a", "--overwrite") == 0


def test_so_it_is_with_tokens_exports_reports_cards_and_croissant_files(corpora: Corpora) -> None:
    """Each of what is made from `a` stays until --overwrite is given; what is made from `a` again is replaced."""
    pytest.importorskip("pyarrow")
    folder = corpora.folder
    (folder / "exported").mkdir()
    commands: dict[str, tuple[list[object], Path]] = {
        "mix": ([], folder / "out"),
        "tokenize": ([], folder / "tokens"),
        "export": (["--parquet", folder / "exported"], folder / "exported"),
        "report": (["-o", folder / "report.html"], folder / "report.html"),
        "croissant": ([], folder / "out"),
        "card": ([], folder / "out"),
    }

    def state(path: Path) -> dict[str, str]:
        return {"": path.read_text()} if path.is_file() else _published(path)

    for command, (more, _) in commands.items():
        assert corpora(command, "a", *more).code == 0, command
    for command, (more, path) in commands.items():
        before = state(path)
        ran = corpora(command, "b", *more)
        assert (ran.code, str(folder / "a") in ran.err, str(folder / "b") in ran.err) == (2, True, True), command
        assert "--overwrite" in ran.err
        assert state(path) == before
    for command, (more, path) in commands.items():
        before = state(path)
        ran = corpora(command, "b", *more, "--overwrite")
        assert (ran.code, f"made from {folder / 'a'}" in ran.err) == (0, True), (command, ran.err)
        assert state(path) != before
        assert corpora(command, "b", *more).code == 0


def test_a_report_replaces_no_file_of_another_program(corpora: Corpora) -> None:
    page = corpora.folder / "page.html"
    page.write_text("<p>mine</p>")
    corpora("report", "a", "-o", page).fails(2, "that `toolkit report` did not write")
    assert page.read_text() == "<p>mine</p>"
    assert corpora("report", "a", "-o", page, "--overwrite").code == 0
    assert corpora("report", "a", "-o", page).code == 0
    assert corpora.run("report", corpora.folder / "a", "-o", page).code == 0


def test_a_model_of_another_dataset_stays_and_both_are_named(corpora: Corpora) -> None:
    labels = "'x' if document.id > 'b-0-9' or document.id < 'a-0-9' else 'y'"
    model = {"labels": labels, "task": "classes", "splits": {"train": 1.0}, "minimum": 1, "buckets": 256}
    section = {"edu-1": {**model, "path": str(corpora.folder / "model")}}

    def train(name: str, *more: str) -> Ran:
        return corpora.run("train", "-c", corpora.config(name, train=section), *more)

    for name in "ab":
        for shard in range(2):
            corpora.write(name, shard, 20)
    train("a").succeeds()
    train("b").fails(
        2,
        f"expected nothing, or what was made from {corpora.folder / 'b'}, got what was made from",
        "the model edu-1 (",
    )
    assert train("b", "--overwrite").code == 0
