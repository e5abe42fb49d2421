"""Pages that this project wrote, or generates: the shipped sample, and pages around each threshold of OSCAR's tools."""

import re
from collections.abc import Iterator
from itertools import count

from tests.benchmarks.inputs import records
from tests.conftest import ROOT
from tests.oracles.pages import Page

_LANGUAGE = re.compile(rb"WARC-Identified-Content-Language: (\w+)\r")
ENGLISH = "the library opens at nine and closes late in the evening of every day but Sunday, when it stays closed; "
"""Its first 100 code points are sure to be English."""
NEAR = """\
bytes right keepers uva stad jarven nhau star month sawah history took pék api worth ine gratis fine telle ahorro \
exactly musica
orgen rues ewsletter souhaitez mata poniewa long kuunnellaan amy duemila exactly lök ndigas hall bandas cuoca voor \
one muddy
""".splitlines()
"""Words in which lid.176.ftz sees a language by 0.8000075 and 0.8000067: more than 0.8, less than 0.8 + 1e-5."""


def sample_pages() -> Iterator[Page]:
    """Yield the pages of `configs/sample`; bytes that are no UTF-8 become U+FFFD."""
    for path in sorted((ROOT / "configs" / "sample").glob("*.warc.wet.gz")):
        for number, record in enumerate(records([path])):
            yield Page(f"{path.name}:{number}", record.block.decode(errors="replace"))


def long_lines() -> dict[str, list[str]]:
    """Return lines of more than 100 code points of the sample, by ISO 639-3 code, of languages that have 5."""
    found: dict[str, list[str]] = {}
    for record in records(sorted((ROOT / "configs" / "sample").glob("*.warc.wet.gz"))):
        match = _LANGUAGE.search(record.head)
        lines = [line for line in record.block.decode(errors="replace").splitlines() if len(line) > 100]
        found.setdefault(match[1].decode() if match else "", []).extend(lines)
    return {language: lines for language, lines in found.items() if language and len(lines) >= 5}


def cut(text: str, chars: int) -> str:
    """Return a text of so many code points, which ends in a letter."""
    return (text * (chars // len(text) + 1))[: chars - 1] + "e"


def line_pages() -> Iterator[Page]:
    """Yield pages for programs that look at lines: their length, bytes, languages beside each other."""
    lines, number = long_lines(), count()
    english, french, german = lines["eng"], lines["fra"], lines["deu"]

    def page(*lines: str, encoding: str = "utf-8") -> Page:
        metadata = {"encoding": encoding} if encoding != "utf-8" else {}
        return Page(f"line:{next(number)}", "".join(line + "\n" for line in lines), metadata=metadata)

    yield page(*(cut(ENGLISH, chars) for chars in (98, 99, 100, 101)))
    yield page(*(cut(french[0], chars) for chars in range(97, 103)))
    yield page(*NEAR)
    yield page(english[0], german[0], english[1], english[2], "short", english[3], german[1])
    yield page(english[4] + " naïve", german[2], encoding="latin-1")
    yield page("*" * 120, " " * 120, "1 2 3 " * 30, "\t" * 101 + "x")
    yield page(cut(ENGLISH, 40) + "\u2028" + cut(french[1], 70), cut(ENGLISH, 120) + "\x0c" + cut(german[3], 70))


ALEMANNIC = """\
Dr Bode isch vo de Gmeind, aber s Huus ghöört de Familie, wo scho sit hundert Joor doo woont und schafft, nid wit vo \
dr Chile
Die Gmeind lyt im Süde vom Kanton und het öbbe tuusig Iiwooner, wo mäischtens Dütsch redde; s Dorf isch im Johr \
zwölfhundert s erscht Mol gnennt worre
S Dorf lit am Rhii und isch vor allem für si alti Chirche bekannt, wo im Mittelalter baut worre isch und hüt no \
stoht, nebe em Schuelhuus
""".splitlines()


def document_pages() -> Iterator[Page]:
    """Yield pages for programs that look at documents: noise, short lines, shares of languages."""
    lines, number = long_lines(), count()
    english, french = lines["eng"], lines["fra"]
    one, other = cut(ENGLISH, 150), cut(french[0], 150)

    def page(lines: list[str], end: str = "\n") -> Page:
        return Page(f"document:{next(number)}", "".join(line + end for line in lines))

    # noise: the same words further apart are the same to fastText
    for text in (english[0], french[1], lines["rus"][0], lines["ell"][0], lines["hin"][0]):
        yield from (page(apart) for apart in _around_half(text))
    yield from (page([*apart, *english[:4]]) for apart in _around_half(english[5]))
    yield page([" | ".join(f"{word} {i * 37 % 1000}.{i:02}" for i, word in enumerate(ENGLISH.split() * 3))] * 6)
    # lengths of lines at both ends; of the text in long lines; of short lines; of headers and footers
    yield page([cut(ENGLISH, chars) for chars in (100, 101, 20, 101, 100)])
    yield page([cut(ENGLISH, 100), "short"])
    for short in (159, 160, 161):
        yield page([cut(ENGLISH, 120), "x" * 80, "y" * (short - 80), cut(ENGLISH, 120)])
    yield page([cut(ENGLISH, 101), cut(ENGLISH, 100), cut(ENGLISH, 99), cut(ENGLISH, 101)])
    for shorts in (3, 4, 5, 6):
        yield page([one, *["short"] * shorts, *[one] * (8 - shorts)])
    for count_ in (14, 15, 19, 20):
        for head in (["short"] * 2, [cut("naïve été ", 95)] * 2, [cut(ENGLISH, 99)] * 2, [cut(ENGLISH, 100)] * 2):
            yield page([one, *head, *[one] * (count_ - 6), *reversed(head), one])
    # languages: equally many lines, more of one, with a line of none, five and six languages
    none = "0x7f 1234-5678 " * 8
    yield page([one, other] * 5)
    yield page([one] * 6 + [other] * 4)
    yield page([one] * 6 + [other] * 4 + [none] + [one])
    yield page([one] * 4 + [none] * 2 + [other] * 4)
    yield page([lines[name][i] for name in ("eng", "fra", "rus", "ell", "hin") for i in range(2)])
    yield page([lines[name][i] for name in ("eng", "fra", "rus", "ell", "hin", "tha") for i in range(2)])
    yield page([lines[name][i] for name in ("eng", "fra", "rus") for i in range(3)])
    yield page([one, cut(french[2], 150)])
    yield page([one, none, none, none, one])
    yield page([one, none, one])
    yield page([*ALEMANNIC, *ALEMANNIC])
    # what lines are
    yield page([*english[:3], *english[4:6]], "\r\n")
    yield page([one, "in\rside", one], "\r\n")
    yield page([one, cut(ENGLISH, 60) + "\u2028" + cut(ENGLISH, 60) + "\x0b\x85" + cut(ENGLISH, 20), one, ""])
    yield page([one, "\0".join(ENGLISH), one])


def _around_half(text: str) -> Iterator[list[str]]:
    """Yield a text as one line of which as many code points as letters, one fewer and one more are white space."""
    words = re.findall(r"[^\W\d_]+", text)
    letters = sum(map(len, words))
    for noise in (letters - 1, letters, letters + 1, letters + 2):
        gap, more = divmod(noise, len(words) - 1)
        yield [words[0] + "".join(" " * (gap + (i < more)) + word for i, word in enumerate(words[1:]))]
