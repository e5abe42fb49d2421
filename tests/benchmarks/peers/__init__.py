"""The programs that we are compared with, each in a virtual environment of its own: how they are made and found."""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("fasttext", "dolma", "datatrove")
NEWEST_PYTHON = (3, 12)
"""Dolma 1.2.1 needs packages that have no wheels for a newer one."""

FASTTEXT_SOURCE = "fasttext-wheel==0.9.2"
FASTTEXT_FLAGS = ("-std=c++11", "-pthread", "-march=native", "-O3", "-funroll-loops", "-DNDEBUG")
"""Those of fastText's own Makefile (``make opt``)."""


class MissingPeer(Exception):
    """A peer is not installed."""


class Peers:
    """The peers in a folder.

    Args:
        folder: with an environment for each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def python(self, name: str) -> Path:
        """The interpreter of a peer.

        Raises:
            MissingPeer: if it has not been made, or from other requirements.
        """
        made = self.folder / name / "made.json"
        if not made.is_file() or json.loads(made.read_text())["requirements"] != _requirements(name):
            raise MissingPeer(f"{name} is not installed; make it: python -m tests.benchmarks peers")
        return self.folder / name / "bin" / "python"

    def fasttext_binary(self) -> Path:
        """fastText's command line, compiled for this machine.

        Raises:
            MissingPeer: if it has not been made.
        """
        path = self.folder / "fasttext" / "bin" / "fasttext"
        if not path.is_file():
            raise MissingPeer("fastText's command line is not compiled; make it: python -m tests.benchmarks peers")
        return path

    def goclassy(self) -> Path:
        """goclassy's own program.

        Raises:
            MissingPeer: if it is not there.
        """
        path = self.folder / "goclassy" / "goclassy"
        if not path.is_file():
            raise MissingPeer(f"goclassy is not there; put its program, or a link to it, in its place: {path}")
        return path

    @property
    def compiled(self) -> str:
        """What fastText's command line was made from, and how; empty if it is not there."""
        note = self.folder / "fasttext" / "compiled.txt"
        return note.read_text().strip() if note.is_file() else ""

    @cached_property
    def versions(self) -> dict[str, dict[str, str]]:
        """Of each peer that is there, its packages."""
        found = {}
        for name in NAMES:
            made = self.folder / name / "made.json"
            if made.is_file():
                found[name] = json.loads(made.read_text())["versions"]
        return found

    def make(self) -> list[str]:
        """Makes what is not there; a line for each peer."""
        return [self._make(name) for name in NAMES] + [self._compile_fasttext()]

    def _make(self, name: str) -> str:
        try:
            return f"{name}: {self.python(name).parent.parent} (was there)"
        except MissingPeer:
            pass
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _run([_interpreter(), "-m", "venv", str(folder)])
            pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
            _run([*pip, "install", "--quiet", "-r", str(HERE / f"{name}.txt")])
            listed = json.loads(_run([*pip, "list", "--format", "json"]))
        except MissingPeer as error:
            return f"{name}: not made: {error}"
        versions = {each["name"].lower(): each["version"] for each in listed}
        made = {"requirements": _requirements(name), "versions": versions}
        (folder / "made.json").write_text(json.dumps(made, indent=1))
        return f"{name}: {folder}"

    def _compile_fasttext(self) -> str:
        target = self.folder / "fasttext" / "bin" / "fasttext"
        if target.is_file() and self.compiled:
            return f"fastText's command line: {target} (was there)"
        compiler = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
        if compiler is None:
            return "fastText's command line: not made: expected a C++ compiler (g++, c++ or clang++), got none"
        try:
            python = self.python("fasttext")
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                download = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", name, FASTTEXT_SOURCE]
                _run([str(python), "-m", "pip", "--disable-pip-version-check", *download])
                with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
                    archive.extractall(folder, filter="data")
                sources = sorted(map(str, folder.glob("*/src/*.cc")))
                _run([compiler, *FASTTEXT_FLAGS, *sources, "-o", str(target)])
                version = _run([compiler, "--version"]).splitlines()[0]
                note = f"source of {FASTTEXT_SOURCE}; {version}, {' '.join(FASTTEXT_FLAGS)}"
                (self.folder / "fasttext" / "compiled.txt").write_text(note)
        except MissingPeer as error:
            return f"fastText's command line: not made: {error}"
        return f"fastText's command line: {target}"


def _requirements(name: str) -> str:
    return hashlib.sha256((HERE / f"{name}.txt").read_bytes()).hexdigest()


def _interpreter() -> str:
    """One that all peers have wheels for."""
    if sys.version_info[:2] <= NEWEST_PYTHON:
        return sys.executable
    for minor in range(NEWEST_PYTHON[1], 10, -1):
        if path := shutil.which(f"python3.{minor}"):
            return path
    raise MissingPeer(f"expected a Python of at most {'.'.join(map(str, NEWEST_PYTHON))} on the path, got none")


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise MissingPeer(f"exit status {done.returncode}: {' '.join(command)}\n" + "\n".join(lines[-6:]))
    return done.stdout
