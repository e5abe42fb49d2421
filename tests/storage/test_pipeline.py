"""The whole path on S3: the same bytes as on disk, whatever the connection does meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.test_crawl import CRAWL, write_crawl
from tests.recipes import tree
from tests.storage import faults
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import expand_listed, join, list_files, stat

pytestmark = [pytest.mark.s3, pytest.mark.slow]


MIX = {
    "rules": [{"drop": "language.label is None", "name": "unidentified"}],
    "output": {"format": "oscar", "path": "oscar", "part_size": "20 kB"},
}


def lay_out(root: str, sample: list[Path], **more: Any) -> str:
    """Write the sample, the model and the configuration below a root; return the configuration's path."""
    return faults.lay_out(root, {path.name: path.read_bytes() for path in sample}, MIX, **more)


@pytest.fixture
def expected(tmp_path: Path, sample: list[Path], run: Run) -> dict[str, str]:
    """What a run on disk gives."""
    root = str(tmp_path / "local")
    assert run("run", "-c", lay_out(root, sample, processes=1)).code == 0
    return {name: digest for name, digest in tree(root).items() if name != "c.yaml"}


def same(root: str, expected: dict[str, str]) -> bool:
    return {name: digest for name, digest in tree(root).items() if name != "c.yaml"} == expected


def test_everything_on_s3_gives_the_same_bytes_as_on_disk(
    bucket: str, expected: dict[str, str], sample: list[Path], run: Run
) -> None:
    root = join(bucket, "corpus")
    path = lay_out(root, sample, processes=2)
    run("run", "-c", path).succeeds()
    assert same(root, expected)
    assert run("validate", "-c", path).code == 0
    run("run", "-c", path, "--json").succeeds()
    assert same(root, expected)
    assert [name for name in list_files(root, hidden=True) if "/stage/" in name or "leases" in name] == []
    shard = join(root, "data/documents/cc/sample-00000.jsonl.gz")
    assert run("head", shard, "-n", "1").code == 0
    assert [each["place"] for each in run("tag", "--try", shard, "noise", "--json").json["documents"]][:1] == [
        f"{shard}:1"
    ]
    assert run("mix", "-c", path, "--dry-run").code == 0
    assert store_of(bucket).leftovers(bucket, any_owner=True) == []
    assert not Path("s3:").exists()


def test_a_dataset_of_zstd_on_s3_is_that_on_disk(bucket: str, tmp_path: Path, sample: list[Path], run: Run) -> None:
    roots = str(tmp_path / "local"), join(bucket, "corpus")
    for root in roots:
        path = lay_out(root, sample, processes=1, compression="zstd")
        for command in ("run", "validate"):
            run(command, "-c", path).succeeds()
    local, remote = ({name: digest for name, digest in tree(root).items() if name != "c.yaml"} for root in roots)
    assert local == remote
    assert {Path(name).suffix for name in local if name.startswith("data/")} == {".zst"}


def test_a_listing_says_sizes_and_stamps(bucket: str) -> None:
    for name in ("a.gz", "b/c.gz", "b/c.txt"):
        write_file(join(bucket, "in", name), name.encode() * 3)
    listed = [("a.gz", 12), ("b/c.gz", 18)]
    found = expand_listed(join(bucket, "in/**/*.gz"))
    assert [(path, name, there and there.size) for path, name, there in found] == [
        (join(bucket, "in", name), name, size) for name, size in listed
    ]
    assert [there for _, _, there in found] == [stat(join(bucket, "in", name)) for name, _ in listed]


def test_documents_in_a_bucket_and_attributes_on_disk(
    bucket: str, tmp_path: Path, expected: dict[str, str], sample: list[Path], run: Run
) -> None:
    """As those of a bucket that only can be read are tagged."""
    root = join(bucket, "corpus")
    path = lay_out(root, sample)
    assert run("ingest", "-c", path).code == 0
    given = json.loads(store_of(path).read(path))
    given |= {"attributes": str(tmp_path / "attributes"), "documents": join(root, "data/documents")}
    del given["dataset"]
    given["mix"]["output"]["path"] = str(tmp_path / "oscar")
    local = tmp_path / "c.yaml"
    local.write_text(json.dumps(given))
    assert run("tag", "-c", local).code == 0
    assert run("mix", "-c", local).code == 0
    found = {f"oscar/{name}": digest for name, digest in tree(str(tmp_path / "oscar")).items()}
    assert found == {name: digest for name, digest in expected.items() if name.startswith("oscar/")}


def test_a_second_run_with_the_same_output_is_told(bucket: str, sample: list[Path], run: Run) -> None:
    from toolkit.execution.leases import hold

    root = join(bucket, "corpus")
    path = lay_out(root, sample, processes=1)
    assert run("ingest", "-c", path).code == 0
    assert run("tag", "-c", path).code == 0
    with hold(join(root, "oscar/.toolkit/leases"), "it", {"the output": ""}):
        run("mix", "-c", path).fails(2, "expected no other run")
    assert run("mix", "-c", path).code == 0


def test_a_crawl_in_a_bucket_gives_the_same_bytes_as_on_disk(bucket: str, tmp_path: Path, run: Run) -> None:
    write_crawl(tmp_path / "www", 3)
    for name in list_files(str(tmp_path / "www")):
        write_file(join(bucket, "www", name), (tmp_path / "www" / name).read_bytes())
    found = []
    for number, base in enumerate((str(tmp_path / "www"), join(bucket, "www"))):
        path, dataset = tmp_path / f"{number}.yaml", str(tmp_path / f"data-{number}")
        entry = {"format": "wet", "crawl": CRAWL, "files": "0-1", "base_url": base, "source": "cc"}
        path.write_text(json.dumps({"dataset": dataset, "processes": 1, "ingest": [entry]}))
        assert run("ingest", "-c", path).code == 0
        found.append(tree(join(dataset, "documents")))
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_counts_in_a_bucket_are_with_their_dataset_or_output(
    bucket: str, sample: list[Path], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = join(bucket, "corpus")
    assert run("run", "-c", lay_out(root, sample)).code == 0
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path))
    (part, *_) = (name for name in list_files(join(root, "oscar")) if name.endswith(".gz"))
    write_file(join(bucket, "foreign/en.jsonl.gz"), store_of(root).read(join(root, "oscar", part)))
    for target, place in (
        (join(root, "oscar"), "oscar"), (join(root, "oscar", part), "oscar"), (join(root, "data/documents"), "data"),
        (join(root, "data"), "data"), (join(bucket, "foreign"), ""), (join(bucket, "foreign/en.jsonl.gz"), ""),
    ):  # fmt: skip
        before = {*store_of(bucket).files(bucket)}
        for read in (True, False):
            found = run("stats", target, "--by", "source", "--json").json
            assert found["inputs"]["files"]
            assert read or not found["inputs"]["read"]
        new = {*store_of(bucket).files(bucket)} - before
        ours = f"corpus/{place}/.toolkit/"
        assert all(name.startswith(ours) for name in new) if place else not new
    assert [*tmp_path.rglob("*.counts")]
