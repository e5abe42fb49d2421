"""Signatures of ranks and samples: what is read for them."""

import os
from pathlib import Path

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, write_rows


def test_no_text_is_read_where_attributes_and_row_indexes_say_all(tmp_path: Path, run: Run) -> None:
    config = {
        "dataset": str(tmp_path / "data"),
        "tag": {"length-0": "length"},
        "calibrate": {"rank-0": {"kind": "rank", "score": "length-0.length.chars"}},
        "sample": {"few-0": {"documents": 3, "weight": "length.chars"}},
    }
    project = Project(tmp_path, run, config)
    path = project.documents / "a.jsonl"
    write_rows(path, [document(str(i), "x" * (i + 1)) for i in range(9)])
    project.ok("tag")
    before = path.stat()
    path.write_bytes(b"?" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    project.ok("calibrate")
    project.ok("sample")
    assert [row["rank"]["rank"] for row in project.values("rank-0", "a.jsonl")] == [(2 * i + 1) / 18 for i in range(9)]
    assert sum(row["sample"]["chosen"] for row in project.values("few-0", "a.jsonl")) == 3


def test_a_source_with_a_nul_byte_is_refused(tmp_path: Path, run: Run) -> None:
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "tag": {"length-0": "length"}})
    write_rows(project.documents / "a.jsonl", [document("c", "", "a\0b"), document("b\0c", "", "a")])
    project("tag").fails(1, "expected a source without NUL bytes")
