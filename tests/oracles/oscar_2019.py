"""OSCAR 2019's second edition: goclassy's own program, and then what runiq does to each language's file.

runiq (github.com/whitfin/runiq, 1.x, `DigestFilter` of ``filters.rs``, `main` of ``main.rs``) prints each line whose
64-bit xxHash, seed 0, it has not seen before. That is a set and a loop, which are here. What it leaves is dealt to the
pages again: each line to the first page that has it. Blank lines, of which runiq leaves one, are no lines of a page.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import xxhash

from tests.oracles.frame import Verdict
from tests.oracles.goclassy import Goclassy
from tests.oracles.wet import bytes_of, write_wet


class Oscar2019(Goclassy):
    """A page's text is the lines that are there for the first time, by language."""

    NAME = "oscar_2019"
    CONFIG = "oscar-2019.yaml"
    SETTINGS = ("mix.output.shuffle=null", "mix.output.borders=true")

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        texts = self.texts(pages, environment, folder)
        once = {language: runiq(text) for language, text in texts.items()}
        lines = (sum(len([*filter(None, text.split(b"\n"))]) for text in each.values()) for each in (texts, once))
        print("{} lines, of which runiq leaves {}".format(*lines), file=sys.stderr)
        yield from _by_page(pages, once)

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        wet = write_wet(pages, folder / "pages.warc.wet.gz")
        out = folder / "once"
        self.run(
            folder,
            f"ingest.0.from=['{wet}']",
            f"mix.output.path={folder / 'original'}",
            "mix.output.layout=flat",
            "mix.output.compression=none",
            f"mix.editions.deduplicated.output.path={out}",
        )
        texts = {path.stem: path.read_bytes() for path in out.glob("*.txt") if not path.stem.endswith("_sha256")}
        yield from _by_page(pages, texts)


def runiq(text: bytes) -> bytes:
    """The lines of a file that are there for the first time."""
    seen: set[int] = set()
    kept = []
    for line in text.split(b"\n")[:-1]:
        stripped = line.removesuffix(b"\r")
        digest = xxhash.xxh64_intdigest(stripped)
        if digest not in seen:
            seen.add(digest)
            kept.append(stripped + b"\n")
    return b"".join(kept)


def _by_page(pages: Path, texts: Mapping[str, bytes]) -> Iterator[Verdict]:
    """Yield what each page gave: by language its lines; a page that gave nothing is dropped.

    Raises:
        ValueError: if the files are not made of the first occurrences of the pages' lines, in their order.
    """
    waiting = {language: iter(line for line in text.split(b"\n") if line) for language, text in texts.items()}
    languages = {line: language for language, text in texts.items() for line in text.split(b"\n") if line}
    given: set[bytes] = set()
    with pages.open("rb") as rows:
        for row in rows:
            id, text = bytes_of(row)
            found: dict[str, list[str]] = defaultdict(list)
            for line in (line.removesuffix(b"\r") for line in text.split(b"\n")):
                language = languages.get(line, "")
                if not language or line in given:
                    continue
                if (got := next(waiting[language], b"")) != line:
                    raise ValueError(f"{id}: expected in {language} {line[:80]!r}, got {got[:80]!r}")
                given.add(line)
                found[language].append(line.decode() + "\n")
            shown = [f"{language}: {''.join(found[language])}" for language in sorted(found)]
            yield Verdict(id, "" if found else "nothing", text="".join(shown) or None)
    if left := [language for language, lines in waiting.items() if next(lines, None) is not None]:
        raise ValueError(f"expected no further lines, got some in {', '.join(left)}")
