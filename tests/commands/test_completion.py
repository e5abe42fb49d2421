"""What a real bash gets from `argcomplete` when it asks how a word goes on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from toolkit import command_options

argcomplete = pytest.importorskip("argcomplete", reason="the shell asks by argcomplete")
BASH = shutil.which("bash")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BASH is None, reason="there is no bash")]

ASK = """
eval "$1"; shift
for COMP_LINE in "$@"; do
  COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMPREPLY=()
  _python_argcomplete toolkit
  echo "${COMPREPLY[@]}"
done
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "bin").mkdir()
    program = folder / "bin" / "toolkit"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolkit "$@"\n')
    program.chmod(0o755)
    (folder / "data/own/attributes/old-0").mkdir(parents=True)
    (folder / "data/own/attributes/old-0/a.jsonl.gz").touch()
    (folder / "own.yaml").write_text(
        "dataset: data/own\ntag: {length-0: {tagger: length}}\nmix: {attributes: [length-0]}"
    )
    (folder / "broken.yaml").write_text("dataset: [")
    return folder


def completed(folder: Path, *lines: str) -> list[set[str]]:
    """What each line goes on with, asked in one bash."""
    assert BASH
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [BASH, "--norc", "-c", ASK, "bash", argcomplete.shellcode(["toolkit"]), *lines],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [{*line.split()} for line in ran.stdout.split("\n")[:-1]]


def test_bash_knows_commands_options_recipes_taggers_and_keys(folder: Path) -> None:
    lines = {
        "toolkit ": {"-h", "--help", "--version", *command_options.names()},
        "toolkit run --d": {"--dry-run", "--debug"},
        "toolkit run -c recipe:fine": {"fineweb", "fineweb-2", "fineweb-minhash"},  # a colon parts words for bash
        "toolkit taggers gopher_": {"gopher_quality", "gopher_repetition"},
        "toolkit mix -c own.yaml m": {"max_document_bytes=", "max_disk=", "make=", "mix=", "mix.attributes="},
        "toolkit tag -c own.yaml dataset=d": {"data/"},
        "toolkit tag -c broken.yaml proc": {"processes="},
        "toolkit export -c own.yaml --parquet x --set len": {"length-0"},
        "toolkit compare -c own.yaml o": {"old-0"},
        "toolkit compare --dataset data/own o": {"old-0"},
        "toolkit mix -c own.yaml mix.attributes=": {"length-0", "old-0"},
        "toolkit mix -c own.yaml mix.output.format=osc": {"oscar"},
        "toolkit run -c own.yaml executor.type=l": {"local"},
        "toolkit tag -c own.yaml tag.length-0.tagger=gopher_q": {"gopher_quality"},
    }
    found = dict(zip(lines, completed(folder, *lines), strict=True))
    for line, expected in lines.items():
        assert found[line] == expected, line


def test_nothing_of_it_is_imported_otherwise() -> None:
    code = "import sys; from toolkit import cli; cli.main(['--version']); print('argcomplete' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("\nFalse\n")
