"""A whole run on a cloud under faults: connections that are cut, processes that are killed.

Commands on S3 have more of both (`tests.faults`, `tests.kills`), and a server that goes away (`test_outage.py`).
"""

import contextlib
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from tests.recipes import mix_of
from tests.storage.servers import Azurite, Faults, Gcs, Seaweed, proxy
from toolkit.storage import store_of
from toolkit.storage.models import resolve
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files

KINDS = ("cut", "all processes")
"""Of faults: answers that break off, or all processes of the run are killed."""

Server: TypeAlias = Seaweed | Gcs | Azurite

WATCHED = 0.3
"""Seconds between two looks at what is visible."""


def wet(seed: int, documents: int, chars: int) -> bytes:
    """A WET file of made-up text, which hardly compresses."""
    chance = random.Random(seed)
    records = [b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n"]
    for i in range(documents):
        letters = chance.choices("abcdefghijklmnopqrstuvwxyz    ", k=chars)
        text = "".join("\n" if j % 120 == 119 else letter for j, letter in enumerate(letters)).encode()
        head = (
            f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:uuid:{seed}-{i}>\r\nContent-Length: {len(text)}"
        )
        records.append(head.encode() + b"\r\n\r\n" + text + b"\r\n\r\n")
    return gzip.compress(b"".join(records), 1, mtime=0)


MIX = mix_of("out", {"drop": "document.id == '<urn:uuid:0-1>'", "name": "one"}, output={"part_size": "30 MB"})


def lay_out(root: str, inputs: dict[str, bytes], mix: dict[str, Any] = MIX, **more: Any) -> str:
    """Write inputs, model and configuration below a root; return the path of the configuration.

    The output's path is relative to the root.
    """
    for name, data in inputs.items():
        write_file(join(root, "wet", name), data)
    write_file(join(root, "lid.ftz"), Path(resolve("lid.176.ftz")).read_bytes())
    config = {
        "dataset": join(root, "data"),
        "ingest": [{"format": "wet", "from": [join(root, "wet/*.warc.wet.gz")], "source": "cc"}],
        "tag": {
            "lines-0": {"tagger": "line_language", "model": join(root, "lid.ftz")},
            "language-0": {"tagger": "language", "lines": "lines-0"},
        },
        "mix": {
            "attributes": ["lines-0", "language-0"],
            **mix,
            "output": {**mix["output"], "path": join(root, mix["output"]["path"])},
        },
        **more,
    }
    write_file(join(root, "c.yaml"), json.dumps(config).encode())
    return join(root, "c.yaml")


def tree(root: str) -> dict[str, str]:
    """The sha256 of what is visible of documents, attributes and output."""
    store = store_of(root)
    names = [name for name in list_files(root) if name.startswith(("data/", "out/"))]
    return {name: hashlib.sha256(store.read(join(root, name))).hexdigest() for name in names}


@dataclass
class Corpus:
    """What rounds are played with.

    Attributes:
        inputs: WET files by name.
        expected: the sha256 of all that a run makes of them.
        sizes: stored bytes of the same.
    """

    inputs: dict[str, bytes]
    expected: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def made(cls) -> "Corpus":
        """As `of`, four inputs."""
        return cls.of({f"{i}.warc.wet.gz": wet(i, 60 if i == 0 else 20, 2_000) for i in range(4)})

    @classmethod
    def of(cls, inputs: dict[str, bytes]) -> "Corpus":
        """Run inputs on disk once."""
        corpus = cls(inputs)
        with tempfile.TemporaryDirectory() as folder:
            path = lay_out(folder, corpus.inputs)
            subprocess.run([*COMMAND, "run", "-c", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            corpus.expected = tree(folder)
            corpus.sizes = {name: os.path.getsize(join(folder, name)) for name in corpus.expected}
        return corpus


COMMAND = [sys.executable, "-m", "toolkit.cli"]


class Watch:
    """Looks at what is visible below a root until it is closed; a context manager."""

    def __init__(self, root: str, corpus: Corpus) -> None:
        self.root, self.corpus = root, corpus
        self.wrong: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._ended.wait(WATCHED):
            with contextlib.suppress(Exception):  # the server may be down just now
                store = store_of(self.root)
                for name in list_files(self.root):
                    found = store.stat(join(self.root, name)) if name.startswith(("data/", "out/")) else None
                    if found and found.size != self.corpus.sizes.get(name):
                        self.wrong.append(f"{name}: {found.size} bytes")


def environment(url: str) -> dict[str, str]:
    """Of a process that speaks with a server of S3."""
    return os.environ | Seaweed.environment(url)


def descendants(pid: int) -> list[int]:
    """The processes that a process has begun, and those that they have."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                child = int(path.parent.name)
                found += [child, *descendants(child)]
    return found


def play(kind: str, seed: int, root: str, corpus: Corpus, server: Server) -> None:
    """Run ingest, tag and mix in a new folder of a bucket while a fault happens, and again if that run failed.

    Meanwhile nothing may be visible that is not whole; then the bytes must be those of a run on disk, and no upload may
    be left. The environment of this process speaks with the server.

    Args:
        kind: of `KINDS`.
        seed: of all that is random.
        root: an empty folder of a bucket.
        corpus: what is run.
        server: of the bucket.
    """
    chance = random.Random(seed)
    path = lay_out(root, corpus.inputs, processes=2)
    command = [*COMMAND, "run", "-c", path, "--quiet"]
    faults = Faults({"cut": chance.uniform(0.02, 0.06)} if kind == "cut" else {}, seed=seed)
    with Watch(root, corpus) as watch:
        with proxy(lambda: server.port, faults) as url:
            env = os.environ | server.environment(url)
            run = subprocess.Popen(
                command, env=env, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if kind == "all processes":
                time.sleep(chance.uniform(0.2, 2))
                for victim in [*descendants(run.pid), run.pid]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
            output, _ = run.communicate()
            assert b"Traceback" not in output, output
        assert faults.seen["cut"] or kind != "cut"
        if run.returncode:
            again = subprocess.run(command, capture_output=True, check=False)
            assert again.returncode == 0, (output, again)
    assert watch.wrong == []
    assert tree(root) == corpus.expected
    subprocess.run([*COMMAND, "clean", root, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    assert store_of(root).leftovers(root, any_owner=True) == []
