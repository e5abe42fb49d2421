"""The frame of an oracle: the same pages through the program that a configuration names, and through the configuration.

An oracle is a module of this folder with a class that inherits from `Oracle`; `python -m tests.oracles NAME` finds it
by its file's name. Its peer runs in an environment of its own, made with `peers/NAME.txt`, by a script that imports
nothing of this project: `peers/NAME.py PAGES VERDICTS` reads documents and writes one `Verdict` a line. What the peer
says of the pages that we wrote ourselves is recorded in `recorded/NAME.jsonl.gz`; the default suite holds the
configuration against that (test_recorded.py), without the peer.
"""

import contextlib
import gzip
import io
import json
import subprocess
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tests.conftest import ROOT
from tests.oracles.pages import Page, real_pages
from toolkit import cli
from toolkit.storage.reading import Lines

FOLDER = Path(__file__).parent
DUPLICATE = "duplicate"
"""The reason of a page that is dropped for another one; also the name of our rules."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a program says of a page.

    Attributes:
        id: of the page.
        reason: why it is dropped, in the peer's words; empty if it is kept.
        text: what is written of a kept page; None if the comparison is not about texts.
        values: by name, where a peer gives values and no decisions.
    """

    id: str
    reason: str = ""
    text: str | None = None
    values: dict[str, Any] = {}

    @property
    def kept(self) -> bool:
        """Return True if the page is not dropped."""
        return not self.reason


class Case(msgspec.Struct, frozen=True):
    """A recorded page with its peer's verdict."""

    page: Page
    verdict: Verdict


class Oracle(ABC):
    """A configuration, the program that it is held against, and the pages.

    Attributes:
        NAME: of the module, of `peers/NAME.txt`, `peers/NAME.py` and `recorded/NAME.jsonl.gz`.
        PEER: of `peers/PEER.txt`, where several oracles have one peer; else empty.
        CONFIG: path below `configs/`.
        REASONS: our rules' names (`group: name`) to the peer's reasons; an exact name, or that of a group.
        INGEST: options of the input; by default, all pages have one source.
        SETTINGS: overrides of the configuration for both the run by hand and the recorded pages.
        CHECKOUT: the repository of a peer that no registry has; else empty.
        checkout: a copy of it that exists.
    """

    NAME: ClassVar[str]
    PEER: ClassVar[str] = ""
    CONFIG: ClassVar[str]
    REASONS: ClassVar[Mapping[str, str]] = {}
    INGEST: ClassVar[str] = "source: oracle"
    SETTINGS: ClassVar[tuple[str, ...]] = ()
    CHECKOUT: ClassVar[str] = ""
    checkout: Path | None = None

    def pages(self) -> Iterable[Page]:
        """Return real pages from ../shared/data, at least 5,000 of them."""
        return real_pages()

    def written(self) -> Iterable[Page]:
        """Return pages that this project wrote or generates, around each threshold: for the recorded sample."""
        raise NotImplementedError(f"{self.NAME} has no pages for a recorded sample")

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        """Yield the peer's verdicts.

        Args:
            pages: documents, JSON Lines.
            environment: of the peer; its Python is `bin/python` there.
            folder: for what the peer writes.
        """
        verdicts = folder / "verdicts.jsonl"
        script = FOLDER / "peers" / f"{self.NAME.replace('-', '_')}.py"
        line = [environment / "bin" / "python", script, pages, verdicts, *([self.checkout] if self.checkout else [])]
        subprocess.run(line, cwd=folder, check=True)
        with verdicts.open("rb") as lines:
            yield from (msgspec.json.decode(line, type=Verdict) for line in lines)

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        """Yield the configuration's verdicts: `toolkit run` on the pages, then its output and what it rejected."""
        self.run(
            folder,
            f"ingest=[{{format: jsonl, from: ['{pages}'], {self.INGEST}}}]",
            f"mix.output.path={folder / 'out'}",
            f"mix.rejected={folder / 'rejected'}",
        )
        for row in rows_of(folder / "out"):
            yield Verdict(row["id"], text=row["text"])
        for row in rows_of(folder / "rejected"):
            yield Verdict(row["id"], self.reason(row["rejected"]["rule"]))

    def same(self, one: Any, other: Any) -> bool:
        """Return True if two values are equal; for peers that round, or compute in another order."""
        return bool(one == other)

    def run(self, folder: Path, *settings: str) -> None:
        """Run the configuration as a user does; its dataset is `folder/dataset`."""
        run_config(self.CONFIG, f"dataset={folder / 'dataset'}", *self.SETTINGS, *settings)

    def reason(self, rule: str) -> str:
        """Return a peer's reason for the name of one of our rules."""
        return self.REASONS.get(rule) or self.REASONS.get(rule.partition(":")[0]) or rule


def run_config(name: str, *settings: str) -> None:
    """Run a configuration with overrides, as a user does."""
    line = ["run", "-c", str(ROOT / "configs" / name), "--quiet", "--json", *settings]
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(line) == 0


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of an output, in the order of its parts' names."""
    for path in sorted(folder.rglob("*.jsonl.gz")):
        if ".toolkit" not in path.parts:
            with Lines(str(path), 1 << 30) as lines:
                yield from map(json.loads, lines)


def write_pages(pages: Iterable[Page], path: Path) -> int:
    """Write pages as documents; return how many there are."""
    count = 0
    with path.open("wb") as out:
        for page in pages:
            out.write(msgspec.json.encode(page) + b"\n")
            count += 1
    return count


def by_id(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    """Return verdicts by their pages; ValueError if there are two of a page."""
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.id in found:
            raise ValueError(f"two verdicts of {verdict.id}")
        found[verdict.id] = verdict
    return found


class Table(msgspec.Struct):
    """How two programs judge the same pages.

    Attributes:
        kept_by_both, only_there, only_here: pages kept by both, by the peer alone, by the configuration alone.
        reasons_equal: of the pages that both drop, those with the peer's reason.
        texts_equal: of the pages that both keep, those with the same text.
        duplicates: duplicates that both drop, and those of the peer alone, and of the configuration alone.
        values_equal: of the values that the peer gives, by name: how many are equal, and of how many.
        unlike: the pages with any difference, with what it is.
    """

    pages: int = 0
    kept_by_both: int = 0
    only_there: int = 0
    only_here: int = 0
    dropped_by_both: int = 0
    reasons_equal: int = 0
    texts_equal: int = 0
    duplicates: tuple[int, int, int] = (0, 0, 0)
    values_equal: dict[str, tuple[int, int]] = {}
    unlike: dict[str, str] = {}

    def row(self, name: str) -> str:
        """Return a line of a Markdown table."""
        numbers = (self.pages, self.kept_by_both, self.only_there, self.only_here)
        duplicates = "{} / {} / {}".format(*self.duplicates) if any(self.duplicates) else ""
        shares = (
            f"{self.reasons_equal} of {self.dropped_by_both}", f"{self.texts_equal} of {self.kept_by_both}", duplicates
        )  # fmt: skip
        return "| " + " | ".join(map(str, (name, *numbers, *shares))) + " |"


HEAD = (
    "| configuration | pages | kept by both | only there | only here | reasons equal | texts equal "
    "| duplicates of both / there / here |"
)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other)


def compare(
    theirs: Mapping[str, Verdict], ours: Mapping[str, Verdict], same: Callable[[Any, Any], bool] = _same
) -> Table:
    """Return the table of two programs' verdicts.

    Args:
        same: whether two values are equal, where a peer rounds.
    """
    if theirs.keys() != ours.keys():
        missing = sorted(theirs.keys() ^ ours.keys())
        raise ValueError(f"{len(missing)} pages have one verdict only, such as {missing[0]}")
    table = Table(pages=len(theirs))
    for id, peer in theirs.items():
        own = ours[id]
        there, here = peer.reason == DUPLICATE, own.reason == DUPLICATE
        kinds = (there and here, there and not here, here and not there)
        table.duplicates = tuple(map(sum, zip(table.duplicates, kinds, strict=True)))  # type: ignore[assignment]
        if peer.kept and own.kept:
            table.kept_by_both += 1
            table.texts_equal += peer.text == own.text
            told = "texts differ" * (peer.text != own.text)
        elif peer.kept or own.kept:
            table.only_there += peer.kept
            table.only_here += own.kept
            told = f"only there; here: {own.reason}" if peer.kept else f"only here; there: {peer.reason}"
        else:
            table.dropped_by_both += 1
            table.reasons_equal += peer.reason == own.reason
            told = f"there: {peer.reason}; here: {own.reason}" * (peer.reason != own.reason)
        for name, value in peer.values.items():
            equal, of = table.values_equal.get(name, (0, 0))
            right = name in own.values and same(value, own.values[name])
            table.values_equal[name] = (equal + right, of + 1)
            told += f" {name}: there {value}, here {own.values.get(name)}" * (not right)
        if told:
            table.unlike[id] = told
    return table


def recorded(name: str) -> Path:
    """Return the path of the recorded sample of an oracle."""
    return FOLDER / "recorded" / f"{name}.jsonl.gz"


def record(name: str, pages: Iterable[Page], verdicts: Mapping[str, Verdict]) -> None:
    """Write the sample: pages with the peer's verdicts, in the order of the pages."""
    lines = b"".join(msgspec.json.encode(Case(page, verdicts[page.id])) + b"\n" for page in pages)
    recorded(name).parent.mkdir(exist_ok=True)
    recorded(name).write_bytes(gzip.compress(lines, mtime=0))


def cases(name: str) -> list[Case]:
    """Return the recorded sample of an oracle."""
    return [msgspec.json.decode(line, type=Case) for line in gzip.decompress(recorded(name).read_bytes()).splitlines()]
