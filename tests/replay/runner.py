"""Cases run in a checkout: in a folder on disk or in a bucket, by a process that has the checkout's modules."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.learn.annotate.server import serving
from tests.replay.cases import ABSENT_ENDPOINT, Case, Line
from tests.replay.recording import BOOKKEEPING, Contents, Mask, Step, changes
from tests.storage.buckets import AzContainer, Bucket, GsBucket, S3Bucket
from tests.storage.servers import CLOUD_BUCKET, Azurite, Gcs, Seaweed

SERVER = Path(__file__).with_name("server.py")


class Checkout:
    """A checkout and the process that runs its commands; a context manager."""

    def __init__(self, tree: Path, plugin: Path | None, variables: Mapping[str, str]) -> None:
        self.tree = tree
        paths = [*([plugin] if plugin else []), tree, *([SERVER.parent.parent.parent] if plugin else [])]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLKIT_", "AWS_"))}
        self.env = {**kept, **variables, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "100", "DATA": "."}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, arguments: list[str], folder: Path, output: Path, error: Path) -> int:
        """Run a command line in a folder; return its exit status."""
        assert self._process.stdin
        assert self._process.stdout
        request = {"arguments": arguments, "folder": str(folder), "output": str(output), "error": str(error)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status: int = json.loads(self._process.stdout.readline())
        return status

    def shell(self, command: str, folder: Path, output: Path, error: Path) -> int:
        """Run a command of a shell in a folder, in which ``toolkit`` is this one; return its exit status."""
        define = f'toolkit() {{ "{sys.executable}" -m toolkit "$@"; }}; python() {{ "{sys.executable}" "$@"; }}; '
        with output.open("wb") as out, error.open("wb") as err:
            return subprocess.run(
                ["bash", "-c", define + command], cwd=folder, stdout=out, stderr=err, env=self.env, check=False
            ).returncode


class Servers:
    """Servers of the places that are asked for, and one of language models, for all checkouts; a context manager.

    Attributes:
        variables: Environment of commands.
        buckets: Buckets by place.
        roots: Their addresses by place.
    """

    def __init__(self, folder: Path, places: Iterable[str]) -> None:
        self._folder, self._places = folder, {*places} - {"disk"}
        self._stack = ExitStack()
        self.variables: dict[str, str] = {}
        self.buckets: dict[str, Bucket] = {}
        self.roots: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.endpoint = self._stack.enter_context(serving()).url
        for place in sorted(self._places):
            server: Any
            if place == "bucket":
                server = Seaweed(self._folder / "s3")
                server.start()
                variables, root = server.environment(server.url), f"s3://{CLOUD_BUCKET}"
                bucket: Bucket = S3Bucket(server.url)
            else:
                server = Gcs(self._folder / "gs") if place == "gs" else Azurite(self._folder / "az")
                variables, root = server.environment(server.url), server.root
                bucket = GsBucket(server.url) if place == "gs" else AzContainer(*variables.values())
            self._stack.callback(server.kill)
            self.variables |= variables
            self.buckets[place], self.roots[place] = bucket, root
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


class Playground:
    """A folder in which one case is run by one checkout; what is below ``data/`` lies in a bucket if the case says so.

    Attributes:
        folder: Folder, which is the working directory of commands.
    """

    def __init__(self, case: Case, checkout: Checkout, folder: Path, servers: Servers, contents: Contents) -> None:
        self.case, self.checkout, self.folder, self._servers, self._contents = case, checkout, folder, servers, contents
        self._prefix = f"{folder.parent.name}/{folder.name}/"
        self._bucket = servers.buckets.get(case.place)
        self._root = f"{servers.roots.get(case.place)}/{self._prefix}"
        trees = {str(checkout.tree): "TREE", os.path.relpath(checkout.tree, folder): "TREE"}
        self._mask = Mask({f"{folder}/": "", str(folder): ".", self._root: "", **trees})
        self._stamps: dict[str, str] = {}

    def play(self, quickstart: Path | None, wanted: set[int]) -> list[Step]:
        """Run the lines of the case up to the last that is wanted; return what the wanted ones gave."""
        if quickstart is None:
            self.folder.mkdir(parents=True)
        else:
            shutil.copytree(quickstart, self.folder)
        self.case.prepare(self.folder)
        if self._bucket:
            self._upload(self._bucket)
        self._stamps = self._listed()
        found = []
        for number, line in enumerate(self.case.lines[: max(wanted) + 1]):
            step = self._do(line)
            if number in wanted:
                found.append(step)
        shutil.rmtree(self.folder)
        return found

    def _upload(self, bucket: Bucket) -> None:
        data = self.folder / "data"
        for path in sorted(data.rglob("*")):
            if path.is_file():
                bucket.put(f"{self._prefix}{path.relative_to(self.folder)}", path.read_bytes())
        shutil.rmtree(data, ignore_errors=True)

    def _do(self, line: Line) -> Step:
        """Carry out a line."""
        if line.file:
            name, text = line.file
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._here(text), encoding="utf-8")
            self._stamps[name] = _stamp(path)
        if not (line.arguments or line.shell):
            return Step(line.name)
        output, error = (self.folder.with_name(f"{self.folder.name}.{name}") for name in ("out", "err"))
        if line.shell:
            status = self.checkout.shell(line.shell, self.folder, output, error)
        else:
            status = self.checkout.run([self._here(word) for word in line.arguments], self.folder, output, error)
        after = self._listed()
        files = changes(self._stamps, after, self._read, self._mask, self._contents)
        self._stamps = after
        out, err = (path.read_text(encoding="utf-8", errors="backslashreplace") for path in (output, error))
        return Step(line.name, status, self._mask.printed(out), self._mask.text(err) if status else "", files)

    def _here(self, text: str) -> str:
        """Return a text whose relative paths below ``data/`` are in the place of the case."""
        text = text.replace(ABSENT_ENDPOINT, self._servers.endpoint)
        return Case.DATA.sub(f"{self._root}data/", text) if self._bucket else text

    def _listed(self) -> dict[str, str]:
        """Return the stamps of all files that are no bookkeeping; those of the bucket have the paths of a folder."""
        found = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in (BOOKKEEPING, "__pycache__")]
            for name in names:
                path = Path(folder, name)
                found[str(path.relative_to(self.folder))] = _stamp(path)
        for key, stamp in self._bucket.listed(self._prefix).items() if self._bucket else ():
            name = key.removeprefix(self._prefix)
            if BOOKKEEPING not in name.split("/"):
                found[name] = stamp
        return found

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        if path.is_file():
            return path.read_bytes()
        if path.is_symlink():
            return os.readlink(path).encode()
        assert self._bucket
        return self._bucket.get(self._prefix + name)


def _stamp(path: Path) -> str:
    stat = path.lstat()
    return f"{stat.st_mtime_ns} {stat.st_size} {stat.st_ino}"
