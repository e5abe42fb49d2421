"""The page about annotation files shows what happens: its commands, run in order, on files such as it names."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pages import assert_shown, blocks, carried_out, commands
from tests.pipeline.test_annotation_files import annotation, write_lines

PAGE = "docs/annotation-files.md"


def make(folder: Path) -> None:
    """Write raw files and annotations such as the page names."""
    scores: dict[str, list[Any]] = {"de-0": [1, 2, 2], "de-1": [None, None, 9], "de-2": [0, 0, 1]}
    scores |= {"fr-0": [4, 4, 5], "fr-1": [3, 3, 3], "fr-2": [1, 1, 1]}
    for language in ("de", "fr"):
        ids = [id for id in scores if id.startswith(language)]
        raw, name = f"2014-41/{language}/00000", "annotations_org--model-7B_edu_en"
        write_lines(folder / f"raw/{raw}.jsonl", [{"id": id, "text": f"A text, {id}."} for id in ids])
        rows = [annotation(id, scores[id]) for id in reversed(ids)]
        write_lines(folder / f"exp/generated_annotations/{raw}__{name}.jsonl", rows)


def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    configuration, session, broken, written, *_ = page = blocks(PAGE)
    (tmp_path / "crawl.yaml").write_text(configuration.text)
    for shown in commands(session):
        assert_shown(shown.lines, carried_out(f"{shown.command} executor.type=in_process", tmp_path, run))
    assert (tmp_path / written.text.strip()).exists()
    to_people, back = page[4:]
    for shown in commands(to_people):
        carried_out(f"{shown.command} executor.type=in_process", tmp_path, run)
    tasks, records = (json.loads((tmp_path / name).read_text()) for name in ("tasks.json", "records.json"))
    assert (len(tasks), records[0]["suggestions"]) == (6, {"edu": {"value": 2.0, "agent": "edu-0"}})
    for task in tasks:
        task["annotations"] = []
    tasks[0]["annotations"] = [
        {"result": [{"type": "choices", "from_name": "topics", "to_name": "text", "value": {"choices": ["a", "b"]}}]}
    ]
    records[0]["responses"] = {"comment": [{"value": "well written", "user_id": "u"}]}
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    (tmp_path / "answered.json").write_text(json.dumps(records))
    (tmp_path / "people.yaml").write_text("dataset: data/crawl\n" + back.text)
    carried_out("toolkit align -c people.yaml executor.type=in_process", tmp_path, run)
    bad = {"document_id": "a", "scores": [1, "x"]}
    write_lines(tmp_path / "exp/x__annotations_m_p_en.jsonl", [annotation("a", [1]), bad])
    (tmp_path / "bad.yaml").write_text("dataset: data/crawl\nalign: {bad-0: {from: exp/x__annotations_m_p_en.jsonl}}\n")
    assert_shown(
        broken.text.splitlines(), carried_out("toolkit align -c bad.yaml executor.type=in_process", tmp_path, run, 1)
    )
