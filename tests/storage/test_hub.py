"""Files of datasets on the Hugging Face Hub, from a server of our own: read at a pinned commit, and never written."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.hub_server import TOKEN, Hub, Repo, serving
from tests.sessions import forget_hosts, forget_stores
from toolkit.errors import ConfigError, Unreadable
from toolkit.storage import store_of
from toolkit.storage.paths import expand
from toolkit.testing import check_readable_store

pytestmark = pytest.mark.slow

ROOT = "hf://datasets/some/data"
ROWS = [{"id": f"{i}", "text": f"text {i}\n" * 3, "source": "s"} for i in range(5)]
SHARD = gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in ROWS), mtime=0)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The Hub, with a public dataset."""
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
        digest = hashlib.sha256(SHARD).hexdigest()
        server.objects[digest] = SHARD
        small = {f"more/{i}.txt": b"%d" % i for i in range(6)}
        files: dict[str, bytes | tuple[str, int]] = {"README.md": b"a readme of a dataset", **small}
        files |= {f"data/a {i}.jsonl.gz": (digest, len(SHARD)) for i in range(2)}
        server.repos["some/data"] = Repo(private=False, files=files)
        forget_stores()
        forget_hosts()
        yield server
        forget_stores()


def test_the_hub_keeps_the_contract_for_reading(hub: Hub) -> None:
    check_readable_store(store_of(ROOT), f"{ROOT}/data/a 0.jsonl.gz", SHARD)
    check_readable_store(store_of(ROOT), f"{ROOT}@main/README.md", b"a readme of a dataset")
    assert [path for path, _ in expand(f"{ROOT}/more/[1-5].txt")] == [f"{ROOT}/more/{i}.txt" for i in range(1, 6)]
    assert store_of(ROOT).folders(ROOT) == ["data", "more"]
    assert (store_of(ROOT).is_folder(f"{ROOT}/data"), store_of(ROOT).is_folder(f"{ROOT}/dat")) == (True, False)


def test_a_branch_that_moves_changes_nothing_that_is_read(hub: Hub) -> None:
    path = f"{ROOT}/more/1.txt"
    assert store_of(path).read(path) == b"1"
    repo = hub.repos["some/data"]
    repo.files["more/1.txt"] = b"another"
    repo.commits.append({})
    assert store_of(path).read(path) == b"1"
    forget_stores()
    assert store_of(path).read(path) == b"another"


def test_a_private_dataset_needs_a_token_and_no_message_has_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["some/data"].private = True
    path = f"{ROOT}/data/a 0.jsonl.gz"
    with pytest.raises(Unreadable, match="a private one needs HF_TOKEN"):
        store_of(path).stat(path)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert store_of(path).read(path) == SHARD
    hub.echoes = True
    hub.fails["tree"] = [400]
    forget_stores()
    with pytest.raises(Unreadable, match="400") as raised:
        store_of(path).stat(path)
    assert TOKEN not in str(raised.value)


def test_what_is_no_file_of_a_dataset_is_said(hub: Hub) -> None:
    for path in ("hf://some/data/x", "hf://datasets/data"):
        with pytest.raises(ConfigError, match="expected hf://datasets/USER/NAME@REVISION/PATH"):
            store_of(path).stat(path)
    with pytest.raises(Unreadable, match="expected a dataset with the revision main, got none"):
        list(store_of(ROOT).files("hf://datasets/no/such"))


def test_documents_are_read_in_place(hub: Hub, tmp_path: Path, run: Run) -> None:
    config = {
        "documents": {"format": "jsonl", "path": f"{ROOT}/data/*.jsonl.gz", "ids": "{path}/{id}"},
        "attributes": str(tmp_path / "attributes"),
        "processes": 2,
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": str(tmp_path / "out")}},
    }
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(config))
    run("run", "-c", path).succeeds()
    (part,) = (tmp_path / "out").rglob("*.gz")
    texts = [json.loads(line)["text"] for line in gzip.decompress(part.read_bytes()).splitlines()]
    assert texts == [row["text"] for row in ROWS] * 2
