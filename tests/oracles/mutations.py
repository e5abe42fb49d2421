"""Mutations of pages that real pages seldom have, the same for the same seed: input of every oracle (`--mutate SEED`).

A page gets one to three of them, by a hash of its id; its id says which.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tests.oracles.pages import Page

Mutation = Callable[[str, random.Random], str]

ENDS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
SPACES = ["\xa0", "\u2003", "\u202f", "\u3000", "\u1680", "\u200b", "\xad", "\ufeff"]
MARKS = ["́", "̈", "⃝", "ٓ", "़", "️"]
PICTURES = ["👩\u200d👩\u200d👧", "👍🏽", "🇨🇭", "☃", "😀", "❤️"]
SCRIPTS = (  # sentences of no language, in scripts that tables often lack
    "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᎴ ᎤᏬᏂᏒᎢ.", "ⵜⴰⵎⴰⵣⵉⵖⵜ ⴷ ⵜⵓⵜⵍⴰⵢⵜ!", "ߒߞߏ ߞߊ߲ ߞߍ߫ ߘߏ߫؟", "𐌰𐍄𐍄𐌰 𐌿𐌽𐍃𐌰𐍂 𐌸𐌿",
    "𞤀𞤁𞤂𞤃 𞤆𞤵𞤤𞤢𞤪⹁", "ꦲꦏ꧀ꦱꦫꦗꦮ꧉", "ភាសាខ្មែរពិរោះ។", "ພາສາລາວ ງ່າຍ.", "မြန်မာဘာသာ။", "བོད་སྐད་ཡིན།",
    "ሰላም ለዓለም።", "שלום עולם, ״ציטוט״", "مرحبا بالعالم؟", "ਪੰਜਾਬੀ ਭਾਸ਼ਾ॥", "日本語と中文。", "한국어 문장입니다.",
)  # fmt: skip


def _between(text: str, draw: random.Random, pieces: list[str], share: float) -> str:
    """Return a text with pieces put before a share of its words."""
    return re.sub(r"\b(?=\w)", lambda _: draw.choice(pieces) * (draw.random() < share), text)


def _marked(text: str, draw: random.Random) -> str:
    return "".join(each + draw.choice(MARKS) * (each.isalpha() and draw.random() < 0.1) for each in text)


def _scripts(text: str, draw: random.Random) -> str:
    return "\n".join(line if draw.random() < 0.5 else " ".join(draw.choices(SCRIPTS, k=4)) for line in text.split("\n"))


def _long_line(text: str, draw: random.Random) -> str:
    line = " ".join(text.split()) or "word"
    return f"{text}\n" + (line + " ") * (1_000_000 // (len(line) + 1)) if draw.random() < 0.05 else line


MUTATIONS: dict[str, Mutation] = {
    "crlf": lambda text, draw: text.replace("\n", "\r\n"),
    "ends": lambda text, draw: re.sub("\n", lambda _: draw.choice([*ENDS, "\n", "\n\n"]), text),
    "mixed_ends": lambda text, draw: re.sub(" ", lambda _: draw.choice(ENDS) if draw.random() < 0.02 else " ", text),
    "nul": lambda text, draw: _between(text, draw, ["\0", "\x07", "\x1b"], 0.02),
    "spaces": lambda text, draw: re.sub(" ", lambda _: draw.choice([*SPACES, " ", " ", "  "]), text),
    "marks": _marked,
    "decomposed": lambda text, draw: unicodedata.normalize("NFD", text),
    "rtl": lambda text, draw: _between(text, draw, ["\u202e", "\u202b", "\u200f", "\u2067"], 0.1),
    "pictures": lambda text, draw: _between(text, draw, PICTURES, 0.05),
    "scripts": _scripts,
    "bullets": lambda text, draw: "\n".join(draw.choice("•-*●–➤") + " " + line for line in text.split("\n")),
    "only_bullets": lambda text, draw: "\n".join("•-*●"[i % 4] for i in range(text.count("\n") + 1)),
    "word_lines": lambda text, draw: "\n".join(text.split()[:500]),
    "long_line": _long_line,
    "upper": lambda text, draw: text.upper(),
    "digits": lambda text, draw: re.sub("[0-9]", lambda found: chr(0x660 + int(found[0])), text),
    "twice": lambda text, draw: f"{text}\n{text}",
    "blank": lambda text, draw: "".join(draw.choices([*ENDS, *SPACES, "\n", " "], k=20)),
    "cut": lambda text, draw: text[: draw.randrange(len(text) + 1)],
    "symbols": lambda text, draw: _between(text, draw, ["#", "…", "...", "{", "@", "http://a.example/b?c=d#e "], 0.1),
}


def mutated(pages: Iterable[Page], seed: str) -> Iterator[Page]:
    """Yield each page with one to three mutations; none is empty, as readers of peers pass over empty ones."""
    for page in pages:
        draw = random.Random(f"{seed}\0{page.id}")
        names = draw.sample(list(MUTATIONS), draw.choice((1, 1, 2, 3)))
        text = page.text
        for name in names:
            text = MUTATIONS[name](text, draw)
        yield msgspec.structs.replace(page, id=f"{'+'.join(names)}:{page.id}", text=text or "word")


def mutated_texts(texts: Sequence[str], seed: str | None) -> list[str]:
    """Return texts with mutations; as they are without a seed."""
    pages = [Page(str(i), text) for i, text in enumerate(texts)]
    return [page.text for page in (mutated(pages, seed) if seed else pages)]
