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
