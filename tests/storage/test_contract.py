"""The contract of stores: every store keeps it, and what breaks it is caught."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run
from tests.pages import blocks
from tests.storage.web_server import Behaviour, web
from toolkit.errors import ConfigError
from toolkit.plugins import Kind
from toolkit.session import current
from toolkit.storage import STORES, Stat, Store, store_of
from toolkit.storage.paths import join, list_files
from toolkit.storage.stores.s3 import S3
from toolkit.storage_options import StorageOptions
from toolkit.testing import MemoryStore, check_readable_store, check_store

pytestmark = pytest.mark.slow

PAGE = "docs/writing-a-store.md"


def test_stores_on_this_machine_keep_the_contract(tmp_path: Path) -> None:
    check_store(MemoryStore(), "memory://root")
    check_store(store_of(str(tmp_path / "root")), str(tmp_path / "root"))


def test_the_web_keeps_the_contract_for_reading(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "a file").write_bytes(content)
    with web(tmp_path, Behaviour()) as url:
        check_readable_store(store_of(url), url + "a%20file", content)


class _Unsorted(MemoryStore):
    def files(self, root: str) -> Iterator[str]:
        return reversed(list(super().files(root)))


class _Partial(MemoryStore):
    """Shows a file before it is complete."""

    def writing(self, path: str) -> "_Showing":  # type: ignore[override]
        return _Showing(self, path)


class _Showing:
    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path, self._data = store, path, b""

    def write(self, data: bytes, /) -> None:
        self._data += data
        self._store.put(self._path, self._data)

    def commit(self) -> Stat:
        return self._store.put(self._path, self._data)

    def abort(self) -> None:
        pass


class _Overwriting(MemoryStore):
    def create(self, path: str, data: bytes) -> bool:
        self.put(path, data)
        return True


class _WithoutVersions(MemoryStore):
    def put(self, path: str, data: bytes) -> Stat:
        super().put(path, data)
        self._files[path] = (data, "", self._files[path][2])
        return Stat(len(data), "")


class _Empty(MemoryStore):
    """Takes what is not there for an empty file."""

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return super().read(path, offset, length) if path in self._files else b""


class _GoesOn(MemoryStore):
    """Gives the last byte again behind the end."""

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return super().read(path, offset, length) or super().read(path)[-1:]


class _ListsOld(MemoryStore):
    """Lists sizes and stamps as they were when a file was first seen."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, Stat | None] = {}

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        return ((name, self._seen[f"{root}/{name}"]) for name in self.files(root))

    def put(self, path: str, data: bytes) -> Stat:
        found = super().put(path, data)
        self._seen.setdefault(path, found)
        return found


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (_GoesOn, "`read` of .*/10 at 10: 10 bytes are there: expected b'', got b'.'"),
        (_ListsOld, "what `listing` gives and is not what `stat` gives: expected {}, got {'~': "),
        (_Unsorted, "`files`, sorted by code point: expected"),
        (_Partial, "`stat` while a file is written, before `commit`: expected"),
        (_WithoutVersions, "another `Stat` of another content of the same size, got"),
        (_Overwriting, "who `create` a file at once and do: expected 1, got 8"),
        (_Empty, "`read` of .*, which is not there: expected FileNotFoundError, got b''"),
    ],
)
def test_stores_that_break_the_contract_are_caught(store: Callable[[], Store], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_store(store(), "memory://root")


# --- plugins ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the store and the test of the page, and the sample."""
    store, test = (block.text for block in blocks(PAGE) if block.language == "python")
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "sqlite.py").write_text(store, encoding="utf-8")
    (tmp_path / "test_sqlite.py").write_text(test, encoding="utf-8")
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_store_of_the_page_keeps_the_contract(page: Path) -> None:
    check_store(STORES.find("my/sqlite.py:Sqlite")(), "sqlite://test/root")


def test_a_whole_run_on_the_store_of_the_page_makes_what_a_run_on_disk_makes(page: Path, run: Run) -> None:
    (yaml,) = (block.text for block in blocks(PAGE) if block.language == "yaml")
    (page / "c.yaml").write_text(yaml, encoding="utf-8")
    (page / "disk.yaml").write_text(yaml.replace("sqlite://", ""), encoding="utf-8")
    for name in ("c.yaml", "disk.yaml"):
        run("run", "-c", name, "processes=2").succeeds()
    current().options = StorageOptions(stores={"sqlite": "my/sqlite.py:Sqlite"})
    for folder in ("crawl/data/documents", "crawl/data/attributes", "crawl/out"):
        there = f"sqlite://{folder}"
        assert list(list_files(there)) == list(list_files(folder)) != []
        for name in list_files(folder):
            if not name.endswith(".json"):  # records, which have the stamps of files
                assert store_of(there).read(join(there, name)) == (page / folder / name).read_bytes(), name
    assert not (page / "sqlite:").exists()
    (page / "crawl.db").write_bytes(b"no database at all" * 100)
    ran = run("status", "-c", "c.yaml", "--json")
    assert "expected an answer of the database, got: file is not a database" in ran.err


def test_stores_are_found_as_other_plugins_are(page: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"http", "https", "local", "s3"} <= set(STORES.names())
    with pytest.raises(
        ConfigError,
        match=r"^sqlite://: expected a local path, az:// or gs:// or hf:// or http:// or https:// or s3://; ",
    ):
        store_of("sqlite://x/y")
    with pytest.raises(ConfigError, match=r"^local://: expected a local path"):
        store_of("local://x")
    current().options = StorageOptions(stores={"sqlite": "json:JSONDecoder"})
    with pytest.raises(ConfigError, match=r"json:JSONDecoder: expected a class that extends toolkit\.storage\.Store"):
        store_of("sqlite://x/y")
    (page / "c.yaml").write_text(json.dumps({"storage": {"stores": {"no scheme": "x:Y"}}, "dataset": "data"}))
    run("tag", "-c", "c.yaml").fails(2, "c.yaml:1: storage.stores")

    class Entry:
        name = "memory"

        def load(self) -> type[Store]:
            return MemoryStore

    monkeypatch.setattr("toolkit.plugins._entry_points", lambda group: (Entry(),) if group == "toolkit.stores" else ())
    assert isinstance(store_of("memory://x"), MemoryStore)
    assert store_of("memory://x") is store_of("memory://y/z")
    assert isinstance(STORES, Kind)


@pytest.mark.s3
def test_options_that_are_set_after_a_store_was_used_count(bucket: str) -> None:
    """As when the configuration itself lies in a bucket."""
    before = store_of(bucket)
    current().options = StorageOptions(region="elsewhere")
    after = store_of(bucket)
    assert isinstance(before, S3)
    assert isinstance(after, S3)
    assert (before.options.region, after.options.region) == (None, "elsewhere")


# --- nothing goes around ----------------------------------------------------------------------------------------------

LOCAL = ("toolkit.storage.stores.local.scratch", "toolkit.storage.stores.local.scratch")
"""Scratch files and private folders are of this machine, whatever the stores."""

INSIDE = ("toolkit/storage/", "toolkit/testing/", "toolkit/learn/annotate/")
"""Where schemes are known, and the libraries that reach files; and where servers of models are spoken with."""

TEXTS = ("toolkit/text/", "taggers/")
"""Where addresses that stand in documents are looked at."""

LIBRARIES = {"boto3", "botocore", "azure", "google", "requests", "smart_open", "urllib3"}
SCHEME = re.compile(r"s3|gs|az|(?:gs|az)://|(?:s3|https?)?://|https?:?")
TAKEN_APART = ("startswith", "partition", "split", "removeprefix")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


def _compared(node: ast.AST) -> list[str]:
    """Return the texts that a comparison, or a method that takes a path apart, has: ``"://" in path``."""
    if isinstance(node, ast.Compare):
        inside = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKEN_APART:
        inside = node.args
    else:
        return []
    constants = [each.value for part in inside for each in ast.walk(part) if isinstance(each, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def _around(code: str, *, texts: bool = False) -> list[str]:
    """Return what a module does that belongs to a store; ``texts`` if it looks at addresses in documents."""
    found = []
    for node in ast.walk(ast.parse(code)):
        for name in _imported(node):
            around = name.startswith("toolkit.storage.stores") and not name.startswith(LOCAL)
            if name.split(".")[0] in LIBRARIES or around or "scheme_of" in name:
                found.append(name)
        found += [text for text in _compared(node) if SCHEME.fullmatch(text) and not texts]
    return found


def test_nothing_goes_around_the_stores() -> None:
    """A new store must need no edit elsewhere, so nobody else tells one from another, or speaks with a server."""
    paths = [path for folder in ("toolkit", "taggers", "mixers") for path in (ROOT / folder).rglob("*.py")]
    outside = {name: path for path in paths if not (name := str(path.relative_to(ROOT))).startswith(INSIDE)}
    assert len(outside) > 100
    found = {
        name: _around(path.read_text(encoding="utf-8"), texts=name.startswith(TEXTS)) for name, path in outside.items()
    }
    assert {name: each for name, each in found.items() if each} == {}


def test_what_goes_around_is_seen() -> None:
    code = """
import boto3
from toolkit.storage import scheme_of
from toolkit.storage.stores.local import Local
if "://" in path or scheme == "s3" or path.startswith(("http://", "https://")): ...
scheme, _, rest = path.partition("://")
"""
    seen = ["boto3", "toolkit.storage.scheme_of", "toolkit.storage.stores.local.Local"]
    assert sorted(_around(code)) == sorted([*seen, "://", "s3", "http://", "https://", "://"])
