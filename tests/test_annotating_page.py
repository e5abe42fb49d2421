"""The page about annotating shows what happens: its commands, against a server on loopback."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Run
from tests.learn.annotate.server import serving
from tests.pages import assert_shown, blocks, carried_out, commands, text_of
from toolkit.learn.annotate.annotator import Annotator
from toolkit.learn.annotate.answers import Annotation

PAGE = "docs/annotating.md"


def make(folder: Path) -> None:
    """Write the input that the page names."""
    (folder / "raw").mkdir()
    rows = [json.dumps({"id": str(i), "text": f"Text number {i}." + i * "!"}) for i in range(10)]
    (folder / "raw/a.jsonl").write_text("\n".join(rows) + "\n")


def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    configuration, session, mix, status, row, *_ = blocks(PAGE)
    with serving() as server:
        text = configuration.text.replace("http://127.0.0.1:8000/v1", server.url)
        assert text != configuration.text
        (tmp_path / "crawl.yaml").write_text(text)
        for shown in [*commands(session), *commands(status)]:
            printed = carried_out(f"{shown.command} executor.type=in_process", tmp_path, run)
            assert_shown([line for line in shown.lines if line != "…"], printed)
        (tmp_path / "crawl.yaml").write_text(text + mix.text)
        assert "documents, " in carried_out("toolkit run -c crawl.yaml executor.type=in_process", tmp_path, run)
        assert len(server.bodies) == 4
    annotation = msgspec.json.decode(row.text, type=Annotation)
    assert msgspec.to_builtins(annotation) == json.loads(row.text)


def test_every_option_is_described() -> None:
    page = text_of(PAGE)
    for field in msgspec.structs.fields(Annotator):
        assert f"`{field.encode_name}`" in page
