"""The page about a corpus of a small language runs as it stands, on a crawl that is made here."""

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import Run
from tests.crawls import make_crawl
from tests.pages import blocks, commands
from tests.pipeline.conftest import read_rows
from tests.storage.web_server import Behaviour, web


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    crawl = make_crawl(tmp_path / "www")
    wanted = {row["url"] for row in crawl.wanted() if row["fetch_status"] == 200}
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yaml_, *others = blocks("docs/small-language.md")
    config = yaml.safe_load(yaml_.text)
    behaviour = Behaviour()
    with web(crawl.root, behaviour) as url:
        config["ingest"][0]["base_url"] = url
        Path("breton.yaml").write_text(json.dumps(config | {"executor": {"type": "in_process"}}))
        said = []
        for block in others:
            for each in commands(block) if block.language == "sh" else []:
                ran = run(*each.command.split()[1:])
                assert ran.code == 0, ran.err
                said.append(ran.out)
    shown = next(block.text for block in others if block.language == "text").strip()
    assert shown in said[0], said[0]
    rows = [row for path in Path("data/breton-corpus").rglob("*.jsonl.gz") for row in read_rows(path)]
    assert {row["metadata"]["warc_headers"]["warc-target-uri"] for row in rows} == wanted
