"""Configurations of Dolma's over buckets: the tagger, beside the documents and elsewhere, then the mixer."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from toolkit.storage import store_of
from toolkit.storage.compression import compress_small, compress_zstd
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import glob_folders, join, list_files

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def put(root: str) -> None:
    for name, compress in (
        ("en/a.jsonl.gz", compress_small),
        ("en/b.jsonl.zstd", compress_zstd),
        ("de/c.gz", compress_small),
    ):
        rows = [{"id": f"{name}:{i}", "text": "x" * (10 * i), "source": "s"} for i in range(3)]
        write_file(join(root, "documents", name), compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))


def run_config(run: Run, folder: Path, command: str, config: dict[str, Any]) -> None:
    path = folder / f"{command}.json"
    path.write_text(json.dumps(config))
    run("-c", path, command).succeeds()


@pytest.mark.parametrize("destination", [False, True], ids=["beside", "destination"])
def test_a_bucket_is_tagged_and_mixed_as_a_folder_is(bucket: str, tmp_path: Path, run: Run, destination: bool) -> None:
    found = []
    for root in (join(bucket, "corpus"), str(tmp_path / "corpus")):
        put(root)
        assert glob_folders(f"{root}/*/[de]?") == [f"{root}/documents/de", f"{root}/documents/en"]
        globs = [join(root, "documents/en/*"), join(root, "documents/d?/*.gz")][: None if not destination else 1]
        globs += [join(root, "documents/de/c.gz")] if destination else []
        tag = {"documents": globs, "taggers": ["char_length_v1"], "experiment": "e"}
        if destination:
            tag["destination"] = [join(root, "attributes/e/en"), join(root, "attributes/e/de")]
        run_config(run, tmp_path, "tag", tag)
        output = {"path": join(root, "mixed")}
        rule = {"exclude": ["$.attributes[?(@.e__char_length_v1__length && @.e__char_length_v1__length[0][2] < 5)]"]}
        stream = {"name": "s", "documents": globs, "attributes": ["e"], "filter": rule, "output": output}
        run_config(run, tmp_path, "mix", {"streams": [stream], "compat": "strict"})
        names = [name for name in list_files(root) if not name.startswith(("documents/", "mixed/s_sha256"))]
        assert names == [
            *(f"attributes/e/{name}" for name in ("de/c.gz", "en/a.jsonl.gz", "en/b.jsonl.zstd")),
            "mixed/s-0000.json.gz",
        ]
        found.append(gzip.decompress(store_of(root).read(join(root, "mixed/s-0000.json.gz"))))
    assert found[0] == found[1]
    ids = [json.loads(line)["id"] for line in found[0].splitlines()]
    assert ids == [f"{name}:{i}" for name in ("en/a.jsonl.gz", "en/b.jsonl.zstd", "de/c.gz") for i in (1, 2)]
    assert not Path("s3:").exists()
