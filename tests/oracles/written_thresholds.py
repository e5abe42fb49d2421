"""Pages that this project wrote, made to lie around the thresholds of rules for web pages: for recorded samples."""

import random
from collections.abc import Iterator

from tests.oracles.pages import Page

_NOUNS = """
library river teacher garden window market engine village letter bridge doctor winter summer kitchen mountain
station camera painter farmer forest island museum orchard harbour blanket ladder compass lantern clock sailor
baker journal valley theatre captain basket chimney lesson meadow
"""
_ADJECTIVES = "old quiet narrow bright heavy gentle wooden distant early careful simple broken famous little warm"
_VERBS = "opens follows paints repairs visits describes carries finds remembers watches builds measures crosses"
_SHORT = "it is so he or we do go up in an on at as by if my no us me"
NOUNS, ADJECTIVES, VERBS, SHORT = (words.split() for words in (_NOUNS, _ADJECTIVES, _VERBS, _SHORT))
TEMPLATES = (
    "The {a} {n} {v} the {n} of the {n}, and nobody asks why",
    "In the {n} a {a} {n} {v} every {n} that they have",
    "Whoever {v} this {n} will be with the {a} {n} to the end",
    "It was the {a} {n} that {v} a {n} and another {n}",
    "People say that a {n} {v} more than the {a} {n} of a {n}",
    "When the {n} {v} its {a} {n}, the {n} has to wait",
    "There is a {a} {n} near the {n}, which {v} our {n}",
)


class Writer:
    """Writes sentences, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed)

    def sentence(self, end: str = ".") -> str:
        """Return a sentence of 10 to 13 words."""
        text = self._draw.choice(TEMPLATES)
        for mark, words in (("{n}", NOUNS), ("{a}", ADJECTIVES), ("{v}", VERBS)):
            while mark in text:
                text = text.replace(mark, self._draw.choice(words), 1)
        return text + end

    def lines(self, count: int, end: str = ".", sentences: int = 1) -> list[str]:
        """Return lines of so many sentences."""
        return [" ".join(self.sentence(end) for _ in range(sentences)) for _ in range(count)]

    def bare(self, count: int) -> str:
        """Return lines without stop words."""
        kinds = (ADJECTIVES, NOUNS, VERBS, NOUNS, NOUNS)
        draws = ([self._draw.choice(kind) for kind in kinds] for _ in range(count))
        return "\n".join(f"A {a} {b} {c} another {d} or some {e}." for a, b, c, d, e in draws)

    def short(self, count: int) -> str:
        """Return so many words of two letters."""
        return " ".join(self._draw.choices(SHORT, k=count))

    def words(self, count: int) -> str:
        """Return so many words, with a full stop behind every twelfth."""
        words = " ".join(self.lines(count // 9 + 1)).replace(".", "").replace(",", "").lower().split()[:count]
        return " ".join(word + "." * (i % 12 == 11) for i, word in enumerate(words))

    def page(self, *more: str, lines: int = 12) -> str:
        """Return a page of lines, with more lines at places that are drawn."""
        found = self.lines(lines)
        for line in more:
            found.insert(self._draw.randrange(len(found) + 1), line)
        return "\n".join(found)


def web_pages() -> Iterator[Page]:
    """Yield pages around the thresholds of Gopher's, C4's and FineWeb's rules."""
    for name, text in _texts():
        yield Page(name, text)


def _texts() -> Iterator[tuple[str, str]]:
    yield "blank", " \n\n\t\n"
    yield "marks", "... !!! ??? - # {"
    yield "french", "Le vieux moulin du village a été construit près de la rivière, où tout le monde passe. " * 8
    yield (
        "mixed",
        Writer("mixed").page("Das alte Haus am Fluss gehört niemandem mehr, seit der Müller fort ist.", lines=3),
    )
    yield from _repetition()
    yield from _quality()
    yield from _cut_lines()
    yield from _whole_pages()
    yield from _shapes()


def _repetition() -> Iterator[tuple[str, str]]:
    for again in range(1, 9):
        lines = Writer(f"lines {again}").lines(12)
        yield f"lines again {again}", "\n".join([*lines, *lines[:again]])
        yield f"paragraphs again {again}", "\n\n".join([*lines, *lines[:again]])
        yield f"a short line {again} times", "\n".join([*lines, *["Home page of it"] * again])
        yield f"blank lines {again}", ("\n" * again).join(lines)
    for n in range(2, 12):
        for times in (2, 3, 4, 6):
            own = Writer(f"ngram {n} {times}")
            phrase = " ".join(own.words(60).replace(".", "").split()[:n])
            yield (
                f"{n} words {times} times",
                " ".join(f"{own.sentence('')} {phrase}." for _ in range(times)) + "\n" + own.page(lines=4),
            )


def _quality() -> Iterator[tuple[str, str]]:
    for count in (1, 5, 48, 49, 50, 51, 52):
        yield f"{count} words", Writer(f"words {count}").words(count)
    for share in range(1, 10):
        own = Writer(f"share {share}")
        words = own.words(120).split()
        every = [i % 10 < share for i in range(len(words))]
        for name, other in (("short", "a"), ("long", "incomprehensibilities"), ("numbers", "1234"), ("marks", "|")):
            yield f"{share} of 10 {name}", " ".join(other if o else w for w, o in zip(words, every, strict=True)) + "."
        for name, mark in (("hash", "#"), ("dots", "..."), ("ellipsis", "…")):
            yield f"{share} of 20 {name}", " ".join(w + mark * (i % 20 < share) for i, w in enumerate(words)) + "."
        lines = own.lines(10)
        for name, bullet in (("dash", "- "), ("dot", " •")):
            found = [bullet * (i <= share) + line for i, line in enumerate(lines)]
            yield f"{share} of 10 {name} lines", "\n".join(found)
        for name, end in (("dots", "..."), ("ellipsis", "… ")):
            found = [line + end * (i < share) for i, line in enumerate(lines)]
            yield f"{share} of 10 lines end in {name}", "\n".join(found)
    for stop in ("", "the", "the with", "the with of", "The With Of"):
        yield f"stop words {stop!r}", Writer(f"stop {stop}").bare(12) + f"\nOld books smell nice {stop} here."
    for count in (10, 20, 30, 40, 60):
        yield (
            f"{count} words of two letters",
            Writer(f"two {count}").short(count) + "\n" + Writer("more").words(60 - count),
        )


ENDS = {"crlf": "\r\n", "nel lf": "\x85\n", "lf ls": "\n\u2028", "blank ls lf": " \u2028 \n ", "two": "\n\n"}
"""Between lines. Where there is no line feed, ours leaves the other line end, C4's programs put a line feed instead."""


def _cut_lines() -> Iterator[tuple[str, str]]:
    some = (
        "Home", "Read more", "Read more here", "Click { here", "Enable JavaScript in your browser to read the page.",
        "We use cookies on all of our pages.", "See our Privacy Policy and the Terms of Use.", "[1] [2] [3]",
        "It was so.[1][edit] It is [citation needed] so", "[edit]", "“Is it so?” asked the doctor", "Who knows...",
        "'So it is'", "  a line with white space around it  ", "lorem ipsum dolor sit amet", "x" * 1000 + " is a word",
        "x" * 1001 + " is a word", "mail joe@example.org or call 8.8.8.8", "図書館は九時に開きます。", "Déjà vu à 5 h.",
    )  # fmt: skip
    for number, line in enumerate(some):
        for size in (3, 5, 12):
            yield f"line {number} among {size}", Writer(f"line {number} {size}").page(line, lines=size)
    own = Writer("several lines")
    for number in range(30):
        yield f"several lines {number}", own.page(*random.Random(number).sample(some, 5), lines=4 + number % 9)
    for first, second in (("a { here now", "lorem ipsum dolor sit"), ("lorem ipsum dolor sit", "a { here now")):
        yield f"{first} and {second}", own.page(lines=6) + f"\n{first}\n{own.sentence()}\n{second}"
    yield "a { in a line that goes", own.page(lines=6) + "\n{ {\nJavaScript { is\n" + own.sentence()
    for name, end in ENDS.items():
        lines = Writer(f"ends {name}").lines(9)
        yield f"ends {name}", end.join(lines)
        yield f"one end {name}", "\n".join(lines[:5]) + end + "\n".join(lines[5:])
        yield f"ends {name} around a menu", end.join([*lines[:4], "Menu", *lines[4:], "Home"])


def _whole_pages() -> Iterator[tuple[str, str]]:
    for sentences in range(1, 8):
        for end in (".", "", "!", "。"):
            own = Writer(f"sentences {sentences} {end}")
            pieces = [own.words(14).replace(".", "") + end for _ in range(sentences)]
            yield f"{sentences} sentences {end!r} in lines", "\n".join(pieces)
            yield f"{sentences} sentences {end!r} in a line", " ".join(pieces)


def _shapes() -> Iterator[tuple[str, str]]:
    for share in range(13):
        own = Writer(f"shape {share}")
        lines = own.lines(25)
        yield (
            f"{share} of 25 end in a mark",
            "\n".join(line if i < share else line[:-1] for i, line in enumerate(lines)),
        )
        yield f"{share} of 25 end in a quote", "\n".join(line + '"' * (i >= share) for i, line in enumerate(lines))
        short = [own.sentence()[:30].strip() if i < share + 10 else line for i, line in enumerate(lines)]
        yield f"{share + 10} of 25 short", "\n".join(short)
        menu = [f"{own.sentence()[:24].strip()} {i}" for i in range(share)]
        yield f"{share} short lines more", "\n".join([*own.lines(6), *menu])
        yield (
            f"a line of {share * 3} again",
            "\n".join([*own.lines(20), *["The wide open sea and more of it"[: share * 3]] * 2]),
        )
        items = " \n".join(own.words(4 + share % 4).replace(".", "") for _ in range(share + 8))
        yield f"list of {share}", own.page(lines=3) + "\n" + items
    for width in range(27, 34):
        own = Writer(f"width {width}")
        yield f"lines of {width}", "\n".join([*own.lines(4), *(own.words(9)[: width - 1] + "." for _ in range(9))])
