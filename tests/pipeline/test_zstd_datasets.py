"""``compression: zstd``: documents and attributes are frames of zstd, and all that is made of them is as with gzip."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, read_bytes, tree, write_rows
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


def test_every_command_reads_it(pipeline: Project, run: Run) -> None:
    pipeline.config["compression"] = "zstd"
    pipeline.ok("run")
    before = tree(pipeline.root)
    pipeline.ok("validate")
    pipeline.ok("mix", "--dry-run")
    pipeline.ok("status")
    assert run("stats", str(pipeline.data)).code == 0
    shown = run("head", str(pipeline.documents / f"{SHARD}.zst"), "-n", "1")
    assert "line_shape" in shown.out
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
