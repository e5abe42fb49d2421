"""The replay by hand; see the package."""

import argparse
import hashlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from tests.conftest import ROOT
from tests.replay import cases, recording
from tests.replay.cases import Case
from tests.replay.comparing import closest, read_expected, report
from tests.replay.recording import Contents, Recording
from tests.replay.runner import Checkout, Playground, Servers

QUICKSTART = ("run", "-c", "configs/quickstart.yaml", "processes=1", "--quiet")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    found.add_argument("--base", required=True, metavar="COMMIT", help="what this checkout is compared with")
    found.add_argument("--head", metavar="COMMIT", help="compare this commit, not the files of this checkout")
    found.add_argument("--base-place", choices=cases.PLACES, default="", help="run all cases of the base there")
    found.add_argument("--data", type=Path, metavar="FOLDER", help="real data, such as ../shared/data")
    found.add_argument("--cache", type=Path, metavar="FOLDER", help="keep recordings of bases here, by commit")
    found.add_argument("--expected", type=Path, metavar="FILE", help="differences that are meant: matches, reason")
    found.add_argument("--only", action="append", default=[], metavar="WORD", help=ONLY)
    found.add_argument("--lanes", type=int, default=2, metavar="N", help="cases at once (2)")
    found.add_argument("--plugin", type=Path, metavar="FOLDER", help="put this before this checkout on PYTHONPATH")
    found.add_argument("--list", action="store_true", help="list the cases and end")
    return found


ONLY = (
    "a part, configuration, page, place, number of processes or command; WORD,WORD is one of them; "
    "may be repeated, then all must hold"
)


def git(*arguments: object) -> str:
    """Return what git prints for this repository."""
    command = ["git", "-C", str(ROOT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Yield a worktree of a commit, which is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="replay-tree-") as scratch:
        tree = Path(scratch) / "tree"
        git("worktree", "add", "--detach", "-q", tree, commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", tree)


def commit_of(name: str) -> str:
    """Return the id of a commit."""
    try:
        return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        raise SystemExit(f"error: --base, --head: expected a commit, got {name!r}") from None


def key_of(commit: str, data: Path | None, chosen: dict[str, set[int]]) -> str:
    """Return the name of a recording: what it depends on beside the machine."""
    sources = [*sorted(cases.FOLDER.glob("*.*")), *sorted((ROOT / "tests").glob("*.py"))]
    parts = [path.read_bytes() for path in sources if path.suffix in (".py", ".yaml")]
    parts += [
        sys.version.encode(),
        str(data).encode(),
        repr(sorted((k, sorted(v)) for k, v in chosen.items())).encode(),
    ]
    return f"{commit[:12]}-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"


class Replay:
    """Cases that are run in checkouts.

    Attributes:
        selected: Cases to run, each with the numbers of lines that are recorded.
        scratch: Folder of its own.
        contents: Contents of files of all recordings.
        base_place: Place of all cases of the base, if not their own.
    """

    def __init__(
        self, selected: list[tuple[Case, set[int]]], scratch: Path, contents: Contents, lanes: int, base_place: str = ""
    ) -> None:
        self.selected, self.scratch, self.contents, self.lanes = selected, scratch, contents, lanes
        self.base_place = base_place

    def record(self, trees: dict[str, tuple[Path, Path | None]]) -> dict[str, Recording]:
        """Return what the cases give in each checkout; they are run in lanes, side by side.

        Args:
            trees: Checkouts by name, each with the folder of a plugin or None.
        """
        found = {name: Recording() for name in trees}
        with ExitStack() as stack:
            places = {self.base_place or "disk", *(case.place for case, _ in self.selected)}
            servers = stack.enter_context(Servers(self.scratch, places))
            free: SimpleQueue[dict[str, Checkout]] = SimpleQueue()
            for _ in range(self.lanes):
                free.put(
                    {
                        name: stack.enter_context(Checkout(tree, plugin, servers.variables))
                        for name, (tree, plugin) in trees.items()
                    }
                )
            numbers = {name: f"{number:02}" for number, name in enumerate(trees)}
            first = free.get()
            quickstarts = {
                name: self._quickstart(first[name], self.scratch / f"quickstart-{number}")
                for name, number in numbers.items()
                if any(case.begins_with_quickstart for case, _ in self.selected)
            }
            free.put(first)

            def play(name: str, number: int) -> tuple[str, str, list[recording.Step], float]:
                begin, lane = time.monotonic(), free.get()
                try:
                    case, wanted = self.selected[number]
                    folder = self.scratch / numbers[name] / f"{number:05}"
                    played = replace(case, place=self.base_place) if self.base_place and name == "base" else case
                    place = Playground(played, lane[name], folder, servers, self.contents)
                    steps = place.play(quickstarts[name] if case.begins_with_quickstart else None, wanted)
                finally:
                    free.put(lane)
                return name, str(case), steps, time.monotonic() - begin

            with ThreadPoolExecutor(self.lanes) as pool:
                tasks = [pool.submit(play, name, number) for number in range(len(self.selected)) for name in trees]
                for done, task in enumerate(tasks, 1):
                    try:
                        name, case, steps, seconds = task.result()
                    except BaseException:  # an interruption, too: what is not begun is left
                        pool.shutdown(wait=False, cancel_futures=True)
                        raise
                    found[name].cases[case] = steps
                    failed = sum(bool(step.status) for step in steps)
                    print(
                        f"{done}/{len(tasks)} {name} {case}: {failed} of {len(steps)} not 0, {seconds:.1f} s",
                        file=sys.stderr,
                    )
        return found

    def _quickstart(self, checkout: Checkout, folder: Path) -> Path:
        """Make the folder that pages begin with: recipes, and the dataset and output of the quickstart."""
        shutil.copytree(checkout.tree / "configs", folder / "configs")
        output, error = folder.with_suffix(".out"), folder.with_suffix(".err")
        if checkout.run(list(QUICKSTART), folder, output, error):
            raise RuntimeError(f"{checkout.tree}: expected the quickstart to run: {error.read_text()[-2000:]}")
        return folder


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers and worktrees go, too
    begin, base = time.monotonic(), commit_of(given.base)
    words = [set(word.split(",")) for word in given.only]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replay-")))
        cache = given.cache or scratch / "cache"
        cases.keep_models(cache / "models")
        tree = stack.enter_context(checked_out(base))
        head = stack.enter_context(checked_out(commit_of(given.head))) if given.head else ROOT
        every = cases.cases(tree, given.data.resolve() if given.data else None)
        every = [case for case in every if case.place not in cases.CLOUDS or any(case.place in word for word in words)]
        selected = [(case, lines) for case in every if (lines := case.wanted(words))]
        if not selected:
            known = sorted({case.name for case in every})
            raise SystemExit(
                f"error: --only: expected words of a case, got {given.only}; {closest(given.only[0], known)}"
            )
        if given.list:
            print("\n".join(f"{case}: {len(lines)} steps" for case, lines in selected))
            return 0
        contents = Contents(cache / "contents")
        asked = {f"{given.base_place}: {case}": lines for case, lines in selected}
        kept = cache / f"{key_of(base, given.data, asked)}.json"
        trees = (
            {"head": (head, given.plugin)} if kept.exists() else {"base": (tree, None), "head": (head, given.plugin)}
        )
        found = Replay(selected, scratch, contents, given.lanes, given.base_place).record(trees)
        if "base" in found:
            recording.write(found["base"], kept)
        old = recording.read(kept)
        text, count = report(old, found["head"], contents, read_expected(given.expected) if given.expected else [])
    print(text)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    used, seconds = spent.ru_utime + spent.ru_stime, time.monotonic() - begin
    print(f"{base[:8]} with {given.head or 'this checkout'}, {seconds:.0f} s, {used:.0f} s of CPU")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
