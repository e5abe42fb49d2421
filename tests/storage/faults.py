"""Whole runs on a cloud under faults: connections that break, a server that restarts, processes that are killed.

    python -m tests.storage.faults --count 100            a hundred of them, by hand
    python -m tests.storage.faults --store gs             on another cloud

Each round runs ingest, tag and mix in a new folder of a bucket while one fault happens at a random moment, and, if
that run failed, once more without a fault. Then the bytes must be those of a run on disk. Meanwhile nothing
may be visible that is not whole, and afterwards no upload may be left.
"""

import argparse
import contextlib
import gzip
import hashlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from tests.execution.cluster import Cluster
from tests.recipes import mix_of
from tests.sessions import forget_stores
from tests.storage.servers import Azurite, Faults, Gcs, Seaweed, proxy
from toolkit.errors import ToolkitError
from toolkit.storage import store_of
from toolkit.storage.models import resolve
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files

CONNECTION = ("reset", "cut", "500", "503", "403")
"""Faults of requests."""

KINDS = (*CONNECTION, "server", "worker", "driver", "all processes")
"""The others: the server is killed and started again; a process is killed."""

RAY = ("ray worker", "ray node", "ray driver", "ray head")
"""On a Ray cluster with two nodes, where the package ray is installed: what is killed. A node is replaced at once."""

STANDS = ("ray worker", "ray node")
"""What a run on a cluster survives."""

BUCKET = "faults"

Server: TypeAlias = Seaweed | Gcs | Azurite

SERVERS: dict[str, type[Server]] = {"s3": Seaweed, "gs": Gcs, "az": Azurite}
"""By scheme. Only that of S3 keeps its data when it is killed, so only there it is."""

FRESH = 10
"""Rounds after which the server begins anew: what was deleted still takes room in it."""

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
    def made(cls, *, large: bool) -> "Corpus":
        """As `of`, four inputs. Large: one shard is uploaded in several parts."""
        count = 1200 if large else 60
        chars = 20_000 if large else 2_000
        return cls.of({f"{i}.warc.wet.gz": wet(i, count if i == 0 else 20, chars) for i in range(4)})

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
        self.looks = 0
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
                self.looks += 1


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


@dataclass
class Round:
    """What happened.

    Attributes:
        kind: of the fault.
        happened: how many faults there were.
        codes: exit status of the runs.
        seconds: of all of it.
    """

    kind: str
    happened: int
    codes: list[int]
    seconds: float


def play(
    kind: str,
    seed: int,
    root: str,
    corpus: Corpus,
    server: Server,
    *,
    length: float,
    cluster: Cluster | None = None,
) -> Round:
    """One round; the environment of this process speaks with the server.

    Args:
        kind: of `KINDS`.
        seed: of all that is random.
        root: an empty folder of a bucket.
        corpus: what is run.
        server: may be killed.
        length: about how many seconds a run takes.
        cluster: of Ray, on which tasks run if the kind is one of it; it has two nodes before and behind.

    Raises:
        AssertionError: if anything is not as it should be.
    """
    chance = random.Random(seed)
    begin = time.monotonic()
    path = lay_out(root, corpus.inputs, processes=2)
    rate = chance.uniform(0.003, 0.01) if kind == "403" else chance.uniform(0.02, 0.06)
    faults = Faults({kind: rate} if kind in CONNECTION else {}, seed=seed)
    codes, happened = [], 0
    with Watch(root, corpus) as watch:
        with proxy(lambda: server.port, faults) as url:
            command = [*COMMAND, "run", "-c", path, "--quiet", *(["executor={type: ray}"] if cluster else [])]
            env = os.environ | server.environment(url) | (cluster.env if cluster else {})
            run = subprocess.Popen(
                command, env=env, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if kind not in CONNECTION:
                time.sleep(chance.uniform(0.2, length))
                happened = _strike(kind, chance, run, server, cluster)
            output, _ = run.communicate()
            codes.append(run.returncode)
            assert b"Traceback" not in output, f"{kind}, seed {seed}: {output!r}"
            if cluster:
                assert (codes[0] == 0) == (kind in STANDS or not happened), f"{kind}, seed {seed}: {codes} {output!r}"
            if kind == "ray head":
                assert cluster
                cluster.begin_anew()
            happened += sum(faults.seen.values()) - faults.seen["none"]
        if codes[-1]:
            if kind == "server" and not _are_readable(root, corpus):
                print(f"{kind}, seed {seed}: the server has lost inputs that it had taken; they are put there again")
                lay_out(root, corpus.inputs, processes=2)
            again = subprocess.run([*COMMAND, "run", "-c", path, "--quiet"], capture_output=True, check=False)
            codes.append(again.returncode)
            assert again.returncode == 0, f"{kind}, seed {seed}: {output!r}, then {again.stdout!r} {again.stderr!r}"
    assert watch.wrong == [], f"{kind}, seed {seed}: {watch.wrong}"
    found = tree(root)
    assert found == corpus.expected, f"{kind}, seed {seed}: {found.keys() ^ corpus.expected.keys()}"
    subprocess.run([*COMMAND, "clean", root, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    assert store_of(root).leftovers(root, any_owner=True) == [], f"{kind}, seed {seed}"
    return Round(kind, happened, codes, time.monotonic() - begin)


def _are_readable(root: str, corpus: Corpus) -> bool:
    """Whether the server still has what a round begins with."""
    store = store_of(root)
    try:
        return bool(store.read(join(root, "c.yaml")) and store.read(join(root, "lid.ftz"))) and all(
            store.read(join(root, "wet", name)) == data for name, data in corpus.inputs.items()
        )
    except (ToolkitError, OSError):
        return False


def _strike(
    kind: str, chance: random.Random, run: "subprocess.Popen[bytes]", server: Server, cluster: Cluster | None
) -> int:
    """One of the faults that happen at a moment; whether there was anything to strike."""
    if cluster and run.poll() is None:
        if kind == "ray worker":
            workers = [pid for node in range(cluster.nodes) for pid in cluster.workers(node)]
            for victim in chance.sample(workers, min(len(workers), 1)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            return len(workers) and 1
        if kind == "ray driver":
            run.kill()
        else:
            cluster.kill_node(0 if kind == "ray head" else cluster.nodes - 1)
        if kind == "ray node":
            cluster.add_node()
        return 1
    if kind == "server":
        assert isinstance(server, Seaweed)
        server.kill()
        time.sleep(chance.uniform(0, 1))
        server.start()
        return 1
    if run.poll() is not None:
        return 0
    victims = [run.pid]
    if kind == "all processes":
        victims = [*descendants(run.pid), run.pid]
    elif kind == "worker":
        victims = chance.sample(workers, 1) if (workers := descendants(run.pid)) else []
    for victim in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    return len(victims) and 1


@contextlib.contextmanager
def served(scheme: str = "s3") -> Iterator[Server]:
    """A server with a bucket, with which this process speaks."""
    with tempfile.TemporaryDirectory() as folder:
        server = SERVERS[scheme](Path(folder))
        os.environ |= server.environment(server.url)
        forget_stores()
        if isinstance(server, Seaweed):
            server.start()
            store: Any = store_of("s3://x")
            store.client.create_bucket(Bucket=BUCKET)
        try:
            yield server
        finally:
            server.kill()


def _length(corpus: Corpus, cluster: Cluster | None, bucket: str) -> float:
    """Seconds that a run takes without faults."""
    path = lay_out(f"{bucket}/{'cluster' if cluster else 'whole'}", corpus.inputs, processes=2)
    begin = time.monotonic()
    command = [*COMMAND, "run", "-c", path, "--quiet", *(["executor={type: ray}"] if cluster else [])]
    env = os.environ | (cluster.env if cluster else {})
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    print(f"a run without faults{' on Ray' if cluster else ''}: {time.monotonic() - begin:.1f} s", flush=True)
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=[*KINDS, *RAY])
    parser.add_argument("--small", action="store_true", help="no file is uploaded in several parts")
    parser.add_argument("--store", choices=SERVERS, default="s3")
    given = parser.parse_args()
    corpus = Corpus.made(large=not given.small)
    print(f"{len(corpus.expected)} files, {sum(corpus.sizes.values()) / 1e6:.1f} MB", flush=True)
    kinds = given.kind or [*KINDS, *(RAY if importlib.util.find_spec("ray") else [])]
    if given.store != "s3":
        kinds = given.kind or [kind for kind in KINDS if kind != "server"]
    rounds: list[Round] = []
    lengths: dict[Cluster | None, float] = {}
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(own_network=False)) if set(RAY) & set(kinds) else None
        for begin in range(given.seed, given.seed + given.count, FRESH):
            with served(given.store) as server:
                bucket = f"s3://{BUCKET}" if isinstance(server, Seaweed) else server.root
                for seed in range(begin, min(begin + FRESH, given.seed + given.count)):
                    kind = kinds[seed % len(kinds)]
                    root, on = f"{bucket}/{seed}", cluster if kind in RAY else None
                    if on not in lengths:
                        lengths[on] = _length(corpus, on, bucket)
                    rounds.append(play(kind, seed, root, corpus, server, length=lengths[on], cluster=on))
                    last = rounds[-1]
                    print(f"{seed}: {kind}: {last.happened} faults, {last.codes}, {last.seconds:.1f} s", flush=True)
    print("\nkind            rounds  faults  without a rerun")
    for kind in kinds:
        mine = [each for each in rounds if each.kind == kind]
        reruns = Counter(len(each.codes) for each in mine)
        print(f"{kind:14}  {len(mine):6}  {sum(each.happened for each in mine):6}  {reruns[1]:15}")


if __name__ == "__main__":
    main()
