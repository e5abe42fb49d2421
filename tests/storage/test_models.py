"""Files and folders that options name: digests, the file of a language, lists."""

import ast
import gzip
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sources import nodes
from tests.test_layers import MODULES
from toolkit.errors import ConfigError, DataError, StaleError, Unreadable
from toolkit.storage import models
from toolkit.storage.freshness import Artifact, FileRecord, state
from toolkit.storage.paths import stat
from toolkit.storage.reading import content_digest


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_digest_of_a_folder_is_that_of_its_files_and_their_names(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "two").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(b"x")
    listed = f"{sha256(b'1')}  a\n{sha256(b'2')}  b/c/two\n"
    assert models.digest(str(tmp_path)) == models.digest(f"{tmp_path}/") == sha256(listed.encode())
    assert models.digest(str(tmp_path / "a")) == sha256(b"1")
    before = models.digest(str(tmp_path))
    (tmp_path / "a").rename(tmp_path / "d")
    assert models.digest(str(tmp_path)) != before
    with pytest.raises(ConfigError, match="expected a model file, got a folder"):
        models.resolve(str(tmp_path))


def test_the_file_of_a_language(tmp_path: Path) -> None:
    for name in ("en", "en.txt", "de.txt", "secret.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "fr").write_text("x")
    (tmp_path / "ja").mkdir()

    def found(language: str | None, folder: str = "") -> str | None:
        path = models.for_language(str(tmp_path / folder), language, ("", ".txt"))
        return path and str(Path(path).relative_to(tmp_path))

    assert [found(language) for language in ("en", "de", "fr", "ja", "", None)] == ["en", "de.txt", *[None] * 4]
    assert [found(language, "lists") for language in ("fr", "../secret", "..", ".", "/etc/passwd")] == [
        "lists/fr",
        *[None] * 4,
    ]
    assert found(None, "en.txt") == found("de", "en.txt") == "en.txt"
    with pytest.raises(ConfigError, match="expected a model file, got nothing"):
        found("en", "none")


def test_lists(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes("\ufeff# comment\r\n one  word \r\n\n#no\nzwei # drei\u2028x".encode())
    assert models.entries(str(path)) == ["one  word", "zwei # drei\u2028x"]
    packed = tmp_path / "list.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert models.entries(str(packed)) == models.entries(str(path))
    path.write_bytes(b"a\nb\xff\n")
    with pytest.raises(DataError, match=r"list:2: expected UTF-8, got: "):
        models.read_list(str(path))


def test_a_model_that_cannot_be_fetched_can_be_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the name that the error says; another file than the known one is refused."""
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path))
    known = "gpt2-tokenizer.json"

    def unreachable(url: str) -> None:
        raise Unreadable("expected an answer, got none", path=url)

    monkeypatch.setattr(models, "open_stored", unreachable)
    with pytest.raises(Unreadable, match=f"save the file yourself as {tmp_path}/{known}$"):
        models.resolve(known)
    assert list(tmp_path.iterdir()) == []
    brought = tmp_path / known
    brought.write_text("{}")
    with pytest.raises(ConfigError, match=f"expected {known} with sha256 8414cab924d8b9b3"):
        models.resolve(known)
    monkeypatch.setitem(models.SHA256, known, sha256(b"{}"))
    assert models.resolve(known) == str(brought)


def test_models_by_name_say_where_they_are_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One without an address says what to do; a file saved by hand is taken, and checked if its digest is known."""
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path))
    assert all(known.page.startswith("https://") for known in models.KNOWN.values())
    assert models.where("lid.176.ftz")
    name = next(name for name, known in models.KNOWN.items() if not known.url)
    with pytest.raises(ConfigError, match=f"get it from {models.KNOWN[name].page}, and save it as {tmp_path}/{name}"):
        models.resolve(name)
    (tmp_path / name).write_bytes(b"x")
    assert models.resolve(name) == models.where(name) == str(tmp_path / name)
    (tmp_path / "lid.176.bin").write_bytes(b"x")
    with pytest.raises(ConfigError, match=r"expected lid\.176\.bin with sha256"):
        models.resolve("lid.176.bin")


# The state of an artifact: one function compares what is recorded with what there is now.

RECORDED = {"stamp", "lineage", "made_with", "made_of", "made_from"}
"""Fields of records that say what an artifact was made of, and which version of a file there was."""

ELSEWHERE = "toolkit.storage"
"""Stores compare versions of a file that is being read or written."""


class Made(Artifact, frozen=True, kw_only=True):
    settings: dict[str, int]
    of: dict[str, str]
    file: FileRecord

    @property
    def lineage(self) -> dict[str, str]:
        return self.of


@pytest.fixture
def made(tmp_path: Path) -> Made:
    path = tmp_path / "a.txt"
    path.write_text("some text")
    there = stat(str(path))
    assert there
    file = FileRecord(str(path), there.size, there.stamp, content_digest(str(path)))
    return Made(settings={"n": 1}, of={"": "d", "other-0": "o"}, file=file)


def gone() -> Iterator[tuple[str, str]]:
    yield "", "d"
    raise StaleError("expected the other set as it is now")


Change = Callable[[Made], object]


@pytest.mark.parametrize(
    ("change", "quick", "expected"),
    [
        (lambda made: None, True, "done"),
        (lambda made: os.utime(made.file.path, ns=(1, 1)), False, "done"),
        (lambda made: os.utime(made.file.path, ns=(1, 1)), True, "missing"),
        (lambda made: Path(made.file.path).write_text("some tex+"), False, "missing"),
        (lambda made: Path(made.file.path).write_text("some"), False, "missing"),
        (lambda made: Path(made.file.path).unlink(), False, "missing"),
        (lambda made: made.settings.update(n=2), False, "stale"),
        (lambda made: made.of.update({"other-0": "p"}), False, "stale"),
        (lambda made: made.of.update({"third-0": "t"}), False, "stale"),
        (lambda made: made.of.pop("other-0"), False, "stale"),
    ],
)
def test_states(made: Made, change: Change, quick: bool, expected: str) -> None:
    change(made)
    found = state(made, [("", "d"), ("other-0", "o")], {"n": 1}, lambda made: [made.file], quick=quick)
    assert (found.name, bool(found.why)) == (expected, expected != "done")


def test_an_attempt_without_a_record_was_interrupted() -> None:
    assert [state(None, begun=begun).name for begun in (True, False)] == ["interrupted", "missing"]


def test_an_input_that_is_not_what_it_should_be_makes_stale(made: Made) -> None:
    found = state(made, gone(), {"n": 1}, lambda made: [made.file])
    assert (found.name, type(found.error)) == ("stale", StaleError)


def test_nothing_else_compares_records_with_what_there_is_now() -> None:
    places = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        for node in nodes(path)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        if not module.startswith(ELSEWHERE) and any(map(_is_recorded, ast.walk(node)))
    ]
    assert places == []


def _is_recorded(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Stat"
    return isinstance(node, ast.Attribute) and node.attr in RECORDED
