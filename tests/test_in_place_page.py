"""The configuration of the page about documents in place runs as it stands; the others there are read."""

from pathlib import Path

import pytest
import yaml

from tests.conftest import Run
from tests.pages import blocks

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

ENGLISH = "The library opens at nine in the morning and it closes at six in the evening, on every day of the week."
README = "---\nconfigs:\n- config_name: sample\n  data_files: sample/*.parquet\n---\n"


def make(folder: Path) -> None:
    """Write the files in place that the first example names."""
    (folder / "hub/fineweb/sample").mkdir(parents=True)
    (folder / "hub/fineweb/README.md").write_text(README)
    rows = [{"text": ENGLISH, "id": "1", "language": "en"}, {"text": ENGLISH, "id": "2", "language": "de"}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "hub/fineweb/sample/000.parquet")


def test_the_first_example_runs_and_the_others_fail_at_their_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    first, *others = (block.text for block in blocks("docs/in-place.md") if block.language == "yaml")
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    (tmp_path / "web.yaml").write_text(first)
    ran = run("run", "-c", "web.yaml", "executor.type=in_process")
    assert ran.code == 0, ran.err
    assert "2 documents, 1 kept" in ran.out
    assert (tmp_path / "data/web/attributes/lines-0/sample/000.parquet.jsonl.gz").exists()
    for text in others:
        config = yaml.safe_load(text) | {"tag": {"length-0": "length"}}
        config["documents"] |= {"path": f"{tmp_path}/nowhere/*"}  # no bucket, no web
        config["documents"].pop("include", None)
        (tmp_path / "other.yaml").write_text(yaml.safe_dump(config))
        ran = run("tag", "-c", "other.yaml")
        assert (ran.code, "expected at least one file, got no match" in ran.err) == (2, True), ran.err
