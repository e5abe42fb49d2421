"""Annotation files in a bucket: what is joined there, and what is written there, are what a disk has."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.test_annotation_files import annotation, raw_files
from tests.recipes import tree
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_annotations_come_from_a_bucket_and_go_there(tmp_path: Path, bucket: str, run: Run) -> None:
    ids = raw_files(tmp_path)
    found = []
    for root in (str(tmp_path), join(bucket, "corpus")):
        for path in sorted((tmp_path / "raw").rglob("*.jsonl")):
            write_file(join(root, str(path.relative_to(tmp_path))), path.read_bytes())
        rows = "".join(json.dumps(annotation(id, [i % 6, None])) + "\n" for i, id in enumerate(reversed(ids)))
        write_file(join(root, "exp/generated_annotations/x__annotations_org--m_edu_en_.jsonl"), rows.encode())
        config = tmp_path / "c.yaml"
        entry = {"format": "jsonl", "from": [join(root, "raw/**/*.jsonl")], "source": "cc"}
        config.write_text(
            json.dumps(
                {
                    "dataset": join(root, "data"),
                    "executor": {"type": "in_process"},
                    "ingest": [entry],
                    "align": {"edu-0": {"from": join(root, "exp/generated_annotations")}},
                }
            )
        )
        out, tasks = join(root, "out"), join(root, "tasks.json")
        for command in (("ingest",), ("align",), *[("annotate", "--from", "edu-0", "-o", out)] * 2):
            ran = run(*command, "-c", config, "--json").succeeds()
        assert (ran.json["files"], ran.json["written"]) == (2, 0)
        assert run("annotate", "--to", "argilla", "-o", tasks, "-c", config).code == 0
        assert run("annotate", "--to", "argilla", "-o", tasks, "-c", config).code == 2
        store = store_of(out)
        files = {name: store.read(join(out, name)).replace(root.encode(), b"ROOT") for name in list_files(out)}
        found.append((files, tree(join(root, "data/attributes"))))
        write_file(join(root, "exp/generated_annotations/x__annotations_org--m_edu_en_.jsonl"), b'{"document_id": 1}\n')
        run("align", "-c", config).fails(2, "x__annotations_org--m_edu_en_.jsonl:1: expected an annotation with")
    assert found[0] == found[1]
    assert [len(each) for each in found[0]] == [2, 2]
