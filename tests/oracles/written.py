<<<<<<< HEAD
"""Pages that this project writes itself, from its own sentences and a seed: for recorded samples.

They are made to lie on both sides of what recipes look at: length, lists, repetition, end marks, symbols, addresses.
"""

import random
from collections.abc import Iterator

from tests.oracles.pages import Page

SENTENCES = {
    "en": """The baker opens the shop at six and sells the first bread before the street is awake.
Nobody in the village knows how old the bridge is, but everybody has an opinion about it.
When the river rises, the ferry stays on the other side and the mail comes a day late.
You can plant the beans as soon as the nights are warm enough for the soil to keep its heat.
A good map shows less than the land has, and that is the reason why it can be read.
We walked along the old railway until the rain began, and then we waited in a barn.
The museum has three rooms of clocks, of which not one agrees with another.
My grandmother kept the recipes in a tin box, together with buttons and letters.
To repair the roof they needed new tiles, two ladders and a day without wind.
The school choir sings on the square every Friday, also in winter.""",
    "de": """Der Bäcker öffnet den Laden um sechs und verkauft das erste Brot, bevor die Straße wach ist.
Niemand im Dorf weiß, wie alt die Brücke ist, aber jeder hat eine Meinung dazu.
Wenn der Fluss steigt, bleibt die Fähre am anderen Ufer und die Post kommt einen Tag später.
Eine gute Karte zeigt weniger, als das Land hat, und darum kann man sie lesen.
Wir gingen die alte Bahnstrecke entlang, bis der Regen begann, und warteten dann in einer Scheune.""",
    "fr": """Le boulanger ouvre la boutique à six heures et vend le premier pain avant que la rue ne s'éveille.
Personne au village ne sait quel âge a le pont, mais chacun a son avis sur la question.
Quand la rivière monte, le bac reste sur l'autre rive et le courrier arrive un jour plus tard.
Une bonne carte montre moins que le pays ne contient, et c'est pourquoi on peut la lire.""",
    "es": """El panadero abre la tienda a las seis y vende el primer pan antes de que despierte la calle.
Nadie en el pueblo sabe cuántos años tiene el puente, pero todos tienen una opinión.
Cuando el río sube, la barca se queda en la otra orilla y el correo llega un día tarde.""",
    "it": """Il fornaio apre il negozio alle sei e vende il primo pane prima che la strada si svegli.
Nessuno nel paese sa quanti anni abbia il ponte, ma tutti hanno un'opinione.
Quando il fiume sale, il traghetto resta sull'altra riva e la posta arriva un giorno dopo.""",
    "ru": """Пекарь открывает лавку в шесть часов и продаёт первый хлеб, пока улица ещё спит.
Никто в деревне не знает, сколько лет мосту, но у каждого есть своё мнение.""",
    "zh": """面包师六点开门，在街道醒来之前卖出第一批面包。
没有人知道这座桥有多少年，但是每个人都有自己的看法。两个人从北京来，带了三百本书。""",
}
"""A sentence a line, by language."""

ODD = (
    "Home", "Read more...", "• one item of a list", "- another item of a list", "* a third item", "Share this…",
    "lorem ipsum dolor sit amet", "function () { return 1; }", "Please enable JavaScript to see this page.",
    "Write to anna.beispiel@example.org or to info@example.com.", "Call us: 555-123-4567 or (555) 987-6543",
    "The server is at 192.0.2.17, the other one at 198.51.100.200", "HOME NEWS ABOUT", "# one # two # three",
    "1234 5678 90", "…", "?", "We use cookies.", "Terms of use", "no end mark here", "\tTab\tand  two blanks ", "😀 😀",
    "“A quotation.”", "3 likes", "half a line with \r in it", "ＡＢＣ １２３", "naïve café", "x" * 60, "<p>tag</p>",
    "...", "-" * 120, "ab" * 60, "= " * 70,
)  # fmt: skip
"""Lines that some recipe looks at."""


def written_pages(count: int = 400) -> Iterator[Page]:
    """Yield pages, the same each time: runs of sentences of one language, with odd lines and repetition."""
    chance = random.Random(13)
    yield Page("written:empty", "")
    yield Page("written:blank", " \n\n")
    for number in range(count):
        language = chance.choices(list(SENTENCES), (60, 10, 8, 6, 6, 4, 6))[0]
        own = SENTENCES[language].split("\n")
        lines = [_line(own, chance) for _ in range(chance.choice((1, 2, 3, 5, 8, 13, 21, 34)))]
        share = chance.choice((0, 0, 0, 0.1, 0.3, 0.7))
        lines = [chance.choice(ODD) if chance.random() < share else line for line in lines]
        if chance.random() < 0.25:
            lines += chance.choices(lines, k=chance.randint(1, 2 * len(lines)))
        if chance.random() < 0.1:
            lines.insert(chance.randrange(len(lines) + 1), "")
        yield Page(f"written:{number}", "\n".join(lines) + chance.choice(("", "", "\n")))


def _line(sentences: list[str], chance: random.Random) -> str:
    """Return some sentences in one line, whole or cut short, with their words in another order now and then."""
    found = chance.choices(sentences, k=chance.choice((1, 1, 1, 2, 3)))
    words = " ".join(found).split(" ")
    if chance.random() < 0.7:
        chance.shuffle(words)
    return " ".join(words[: chance.choice((2, 6, 12, 99, 99, 99))])
=======
"""Pages that this project wrote, or generates: the shipped sample, and pages around each threshold of OSCAR's tools."""

import re
from collections.abc import Iterator
from itertools import count

from tests.benchmarks.pages import records
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
>>>>>>> main
