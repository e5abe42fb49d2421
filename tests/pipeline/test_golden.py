"""Real documents of OSCAR 22.01, taken apart and put together again, are the same bytes."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pipeline.conftest import Project, read_bytes, sha256sum_accepts, strays, tree


@pytest.fixture
def golden(project: Project, shared: Path) -> tuple[Project, list[bytes]]:
    """The released documents, and the recipe of OSCAR 22.01 over them."""
    released = shared / "oscar-22.01" / "real-22.01-sample.jsonl"
    project.config |= {
        "ingest": [{"format": "oscar", "from": [str(released)], "source": "oscar"}],
        "tag": {
            "language-0": {"tagger": "language", "lines": "oscar-0"},
            "shape-0": ["line_shape", "noise"],
        },
        "mix": {
            "attributes": ["oscar-0", "language-0", "shape-0"],
            "rules": [{"include": str(ROOT / "configs" / "oscar-22.01.yaml")}],
            "output": {"format": "oscar", "path": str(project.out)},
        },
    }
    return project, released.read_bytes().splitlines()


def test_released_documents_come_out_byte_by_byte(golden: tuple[Project, list[bytes]]) -> None:
    project, released = golden
    project.ok("run")
    written = [line for path in project.out.rglob("*.jsonl.gz") for line in read_bytes(path).splitlines()]
    assert len(released) == 23
    assert sorted(written) == sorted(released)
    assert strays(project.root) == []
    project.ok("validate")


def test_a_release_can_pass_through_with_its_own_values(golden: tuple[Project, list[bytes]]) -> None:
    project, released = golden
    del project.config["tag"]
    output = {"identification": "oscar.identification", "annotation": "oscar.annotation"}
    project.config["mix"] = {
        "attributes": ["oscar-0"],
        "output": {"format": "oscar", "path": str(project.out)} | output,
    }
    project.ok("run")
    written = [line for path in project.out.rglob("*.jsonl.gz") for line in read_bytes(path).splitlines()]
    assert sorted(written) == sorted(released)


def test_documents_of_a_language_keep_their_order(golden: tuple[Project, list[bytes]]) -> None:
    project, released = golden
    project.config["mix"]["output"]["part_size"] = 20_000
    project.ok("run")
    for folder in (path for path in project.out.iterdir() if path.name != ".toolkit"):
        parts = sorted(folder.glob("*.jsonl.gz"), key=lambda path: (len(path.name), path.name))
        written = [line for part in parts for line in read_bytes(part).splitlines()]
        assert written == [line for line in released if line in set(written)]


@pytest.mark.slow
def test_real_wet_files_go_the_whole_way(pipeline: Project, shared: Path) -> None:
    pipeline.config["ingest"][0]["from"] = [f"{shared}/wet/*.wet*"]
    pipeline.ok("run")
    found = pipeline.ok("run", "--json").json
    assert found["ingest"]["skipped"] == 4
    checksums = sorted(pipeline.out.rglob("*_sha256.txt"))
    assert checksums
    assert all(map(sha256sum_accepts, checksums))
    pipeline.ok("validate")


def test_a_real_file_without_a_valid_record_fails_by_name(pipeline: Project, shared: Path) -> None:
    bad = shared / "wet" / "cc_net_sample.warc.txt"
    pipeline.config["ingest"][0]["from"].append(str(bad))
    pipeline("run").fails(1, str(bad))
    assert len(list(pipeline.documents.rglob("*.jsonl.gz"))) == 2
    assert tree(pipeline.out) == {}
