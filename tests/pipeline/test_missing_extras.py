"""A package that is missing ends a command at its start, whoever needs it, with the line that installs it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.pipeline.conftest import Project, document, tree, write_rows

BLOCK = "import sys\nfor name in {names!r}:\n    sys.modules[name] = None\n"


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("package", "extra", "command", "section"),
    [
        ("phonenumbers", "phone", "tag", {"tag": {"a-0": {"tagger": "phone_numbers", "region": "DE"}}}),
        ("phonenumbers", "phone", "run", {"tag": {"a-0": {"tagger": "phone_numbers", "region": "DE"}}}),
        ("pyarrow", "parquet", "ingest", {"ingest": [{"format": "parquet", "from": "raw/*.parquet"}]}),
        ("pyarrow", "parquet", "run", {"ingest": [{"format": "parquet", "from": "raw/*.parquet"}]}),
        (
            "trafilatura",
            "trafilatura",
            "ingest",
            {"ingest": [{"format": "warc", "from": "raw/*.warc", "extractor": "trafilatura"}]},
        ),
        (
            "tokenizers",
            "tokens",
            "tag",
            {"tag": {"a-0": {"tagger": "tokens", "tokenizer": f"{ROOT}/configs/sample/tokenizer.json"}}},
        ),
        (
            "jq",
            "dolma",
            "mix",
            {"mix": {"rules": [{"drop": ".text", "syntax": "jq"}], "output": {"format": "dolma", "path": "out"}}},
        ),
    ],
)
def test_a_missing_package_ends_the_command_at_its_start(
    project: Project, tmp_path: Path, package: str, extra: str, command: str, section: dict[str, Any], processes: int
) -> None:
    for shard in range(4):
        write_rows(project.documents / f"{shard}.jsonl.gz", [document(f"{shard}", "Call 030 1234567 now.")])
        for suffix in ("parquet", "warc"):
            write_rows(tmp_path / f"raw/{shard}.{suffix}", [{"no": "data"}])
    if "ingest" in section:
        project.config["dataset"] = str(tmp_path / "new")
    project.config |= {**section, "processes": processes, "executor": {"type": "local"}}
    (tmp_path / "block").mkdir()
    (tmp_path / "block/sitecustomize.py").write_text(BLOCK.format(names=[package]))
    before = tree(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-m", "toolkit", command, "-c", str(project.yaml)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}/block:{ROOT}"},
        check=False,
    )
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"'tagmix[{extra}]'" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "0 documents" not in ran.stdout
    assert {name: digest for name, digest in tree(tmp_path).items() if name.endswith((".gz", ".zst"))} == {
        name: digest for name, digest in before.items() if name.endswith((".gz", ".zst"))
    }
