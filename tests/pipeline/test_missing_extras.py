"""A package that is missing ends a command before its first task, whoever needs it, with the line that installs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.pipeline.conftest import Project, document, tree, write_rows

TOKENS = {"path": "out", "tokenizer": f"{ROOT}/configs/sample/tokenizer.json", "eod": "</s>", "files": "megatron"}
BLOCK = "import sys\nfor name in {names!r}:\n    sys.modules[name] = None\n"


def toolkit_without(folder: Path, package: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder, where a package cannot be imported."""
    (folder / "block").mkdir()
    (folder / "block/sitecustomize.py").write_text(BLOCK.format(names=[package]))
    return subprocess.run(
        [sys.executable, "-m", "toolkit", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}/block:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )


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
        ("detect_secrets", "secrets", "tag", {"tag": {"a-0": "secrets"}}),
        ("presidio_analyzer", "presidio", "tag", {"tag": {"a-0": "pii_presidio"}}),
        ("kenlm", "kenlm", "tag", {"tag": {"a-0": {"tagger": "perplexity", "model": "model.bin"}}}),
        ("icu", "icu", "tag", {"tag": {"a-0": {"tagger": "length", "splitter": "icu"}}}),
        ("icu", "icu", "tag", {"tag": {"a-0": {"tagger": "gopher_quality", "splitter": "icu"}}}),
        (
            "jieba",
            "words-zh",
            "tag",
            {"tag": {"a-0": {"tagger": "fineweb", "variant": "datatrove", "language": "zh"}}},
        ),
        ("pyarrow", "parquet", "mix", {"mix": {"output": {"format": "parquet", "path": "out"}}}),
        ("pyarrow", "parquet", "run", {"mix": {"output": {"format": "parquet", "path": "out"}}}),
        ("tokenizers", "tokens", "mix", {"mix": {"output": TOKENS | {"format": "tokens"}}}),
        ("tokenizers", "tokens", "tokenize", {"tokenize": TOKENS}),
        ("boto3", "s3", "ingest", {"ingest": [{"format": "jsonl", "from": "s3://bucket/*.gz", "source": "s"}]}),
        ("ray", "ray", "tag", {"tag": {"a-0": "length"}, "executor": {"type": "ray"}}),
        ("matplotlib", "plots", "stats --output plots.png", {}),
        (
            "jq",
            "dolma",
            "mix",
            {"mix": {"rules": [{"drop": ".text", "syntax": "jq"}], "output": {"format": "dolma", "path": "out"}}},
        ),
    ],
)
def test_a_missing_package_ends_the_command_at_its_start(
    project: Project, tmp_path: Path, package: str, extra: str, command: str, section: dict[str, Any]
) -> None:
    for shard in range(4):
        write_rows(project.documents / f"{shard}.jsonl.gz", [document(f"{shard}", "Call 030 1234567 now.")])
        for suffix in ("parquet", "warc"):
            write_rows(tmp_path / f"raw/{shard}.{suffix}", [{"no": "data"}])
    if "ingest" in section:
        project.config["dataset"] = str(tmp_path / "new")
    project.config |= {"processes": 2, "executor": {"type": "local"}, **section}
    (tmp_path / "model.bin").write_bytes(b"")
    yaml, before = project.yaml, tree(tmp_path, bookkeeping=True)
    ran = toolkit_without(tmp_path, package, *command.split(), "-c", str(yaml))
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert f"'tagmix[{extra}]'" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "0 documents" not in ran.stdout
    shutil.rmtree(tmp_path / "block")
    assert sorted(tree(tmp_path, bookkeeping=True)) == sorted(before), "no task has begun"


def test_a_package_that_one_shard_needs_stops_no_other(project: Project, tmp_path: Path) -> None:
    """Which languages there are is known only when documents are read."""
    texts = {
        "a": "我们今天去图书馆看书。那里很安静。",
        "b": "Wir gehen heute in die Bibliothek und lesen.",
        "c": "We read a book.",
    }
    for name, text in texts.items():
        write_rows(project.documents / f"{name}.jsonl.gz", [document(name, text)])
    words = {"tagger": "length", "splitter": "dictionary", "language": "language-0.text_language.label"}
    project.config |= {"processes": 1, "tag": {"language-0": "text_language", "words-0": words}}
    ran = toolkit_without(tmp_path, "jieba", "tag", "-c", str(project.yaml))
    assert ran.returncode == 1, ran.stdout + ran.stderr
    told = [line for line in ran.stderr.splitlines() if "tagmix[words-zh]" in line]
    assert told
    assert all("a.jsonl.gz: expected the package jieba" in line for line in told)
    made = {path.name for path in (project.documents.parent / "attributes/words-0").rglob("*.gz")}
    assert made == {"b.jsonl.gz", "c.jsonl.gz"}
