"""goclassy's own program, with fastText's command line: which lines go where, in which blocks.

Its peer is no environment but a folder with both programs, called ``goclassy`` and ``fasttext``.

What goclassy writes is one text file a language, without ids. A line has one language wherever it stands, so the files
are dealt to the pages again, line after line; where they cannot be, that is an error. What cannot differ here: goclassy
loses the last line of a page that ends without a line feed (all pages get one), and a page begins a block of its own,
where goclassy goes on with the block of the page before if that ended in the same language.
"""

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.oracles.frame import Oracle, Verdict
from tests.oracles.pages import BENCH, WET, Page, of_wet
from tests.oracles.wet import bytes_of, write_wet
from tests.oracles.written_lines import line_pages, sample_pages
from toolkit.storage.models import resolve

MODEL = "lid.176.ftz"


class Goclassy(Oracle):
    """A page's text is its blocks, by language."""

    NAME = "goclassy"
    CONFIG = "goclassy.yaml"

    def pages(self) -> Iterable[Page]:
        return of_wet((*WET, *BENCH))

    def written(self) -> Iterator[Page]:
        yield from sample_pages()
        yield from line_pages()

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        texts = self.texts(pages, environment, folder)
        blocks = sum(len(list(_blocks(text))) for text in texts.values())
        dealt = list(_by_page(pages, texts))
        ours = sum(verdict.values["blocks"] for verdict in dealt)
        print(f"goclassy: {blocks} blocks, {ours} with borders between pages", file=sys.stderr)
        yield from dealt

    def texts(self, pages: Path, environment: Path, folder: Path) -> dict[str, bytes]:
        """What goclassy writes, by language."""
        work = folder / "goclassy"
        for name in ("wet", "data", "tmp", "classified", "fastText"):
            (work / name).mkdir(parents=True)
        (work / "fastText" / "fasttext").symlink_to(environment / "fasttext")
        (work / "fastText" / "lid.176.bin").symlink_to(resolve(MODEL))
        write_wet(pages, work / "wet" / "pages.warc.wet.gz")
        subprocess.run([environment / "goclassy", "wet"], cwd=work, check=True)
        return {path.stem: path.read_bytes() for path in (work / "classified").glob("*.txt")}

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        wet = write_wet(pages, folder / "pages.warc.wet.gz")
        out = folder / "out"
        self.run(folder, f"ingest.0.from=['{wet}']", f"mix.output.path={out}", "mix.output.compression=none")
        texts = {path.stem: path.read_bytes() for path in out.glob("*.txt") if not path.stem.endswith("_sha256")}
        yield from _by_page(pages, texts)


def _blocks(text: bytes) -> Iterator[list[bytes]]:
    """Yield the blocks of a language's file, which blank lines part."""
    block: list[bytes] = []
    for line in [*text.split(b"\n"), b""]:
        if line:
            block.append(line.removesuffix(b"\r"))
        elif block:
            yield block
            block = []


def _by_page(pages: Path, texts: Mapping[str, bytes]) -> Iterator[Verdict]:
    """Yield what each page gave: by language its blocks; a page that gave nothing is dropped.

    Raises:
        ValueError: if a line stands in two files, or the files are not made of the pages' lines in their order.
    """
    languages: dict[bytes, str] = {}
    waiting: dict[str, Iterator[tuple[bytes, bool]]] = {}
    for language, text in texts.items():
        blocks = list(_blocks(text))
        waiting[language] = ((line, i == 0) for block in blocks for i, line in enumerate(block))
        for line in (line for block in blocks for line in block):
            if languages.setdefault(line, language) != language:
                raise ValueError(f"a line in {language} and {languages[line]}: {line[:80]!r}")
    with pages.open("rb") as rows:
        for row in rows:
            id, text = bytes_of(row)
            found: dict[str, list[str]] = defaultdict(list)
            for line in (line.removesuffix(b"\r") for line in text.split(b"\n")):
                language = languages.get(line, "")
                if not language:
                    continue
                given, begins = next(waiting[language], (b"", False))
                if given != line:
                    raise ValueError(f"{id}: expected in {language} {line[:80]!r}, got {given[:80]!r}")
                if begins or not found[language]:
                    found[language].append("")
                found[language][-1] += line.decode() + "\n"
            shown = [f"{language}: {block}" for language in sorted(found) for block in found[language]]
            yield Verdict(id, "" if found else "nothing", text="".join(shown) or None, values={"blocks": len(shown)})
    left = Counter({language: sum(1 for _ in lines) for language, lines in waiting.items()})
    if left.total():
        raise ValueError(f"expected no further lines, got {+left}")
