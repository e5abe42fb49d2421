"""How fast a tagger is on this machine: over a sample of made-up pages, or over given documents."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from toolkit.data.documents import Document
from toolkit.tag.plan import Step
from toolkit.tag.steps import run_steps
from toolkit.text.batch import Batch, Column, in_blocks

SAMPLE_BYTES = 1 << 20
SECONDS = 0.4
"""That a measurement takes, about."""


@dataclass(frozen=True)
class Cost:
    """How fast a tagger is, alone and in one process, with the words and lines that it needs.

    Attributes:
        mb_per_s: 1,000,000 bytes of UTF-8 in a second of the processor.
        ns_per_char: nanoseconds a code point.
        start_seconds: until the first values are there, if they take long: models are read, code is compiled.
        documents, bytes, chars: that were measured.
    """

    mb_per_s: float
    ns_per_char: float
    start_seconds: float
    documents: int
    bytes: int
    chars: int


def measure(steps: Sequence[Step], key: str, documents: Sequence[Document]) -> Cost:
    """Return the cost of the tagger that writes a key.

    Args:
        steps: the tagger, after those that it reads, whose time is not counted.
        key: of the tagger.
        documents: to measure with, as many as there is time for.
    """
    begin = time.perf_counter()
    _seconds(steps, key, documents[:4])
    start = time.perf_counter() - begin
    few = documents[:16]
    share = SECONDS / max(_seconds(steps, key, few), 1e-6)
    some = documents[: max(len(few), int(share * len(few)))]
    seconds = min(_seconds(steps, key, some) for _ in range(2))
    chars, size = sum(len(d.text) for d in some), sum(len(d.text.encode()) for d in some)
    return Cost(
        mb_per_s=_rounded(size / 1e6 / max(seconds, 1e-9)),
        ns_per_char=_rounded(seconds * 1e9 / max(chars, 1)),
        start_seconds=round(start, 2),
        documents=len(some),
        bytes=size,
        chars=chars,
    )


def _rounded(number: float) -> float:
    return round(number) if number >= 100 else float(f"{number:.3g}")


def _seconds(steps: Sequence[Step], key: str, documents: Sequence[Document]) -> float:
    """Return the processor's seconds for the values of one key and their JSON; blocks are as a worker has them."""
    total = 0.0
    for block in in_blocks(documents, lambda document: len(document.text)):
        batch = Batch([Document(d.text, id=d.id, source=d.source, metadata=d.raw_metadata, row=d.row) for d in block])
        numbered = [(document, 1_000_000) for document in batch]  # behind those whose values are checked
        begin = time.process_time()
        for step, values, *_ in run_steps(batch, numbered, steps, ""):
            if step.key == key:
                raws = values.raw() if isinstance(values, Column) else values
                for value in raws:
                    msgspec.json.encode(value)
                total += time.process_time() - begin
            begin = time.process_time()
    return total


# --- the sample -------------------------------------------------------------------------------------------------------

SENTENCES = {
    "en": (
        "The library on the corner opens at nine and closes late in the evening. It doesn't charge for reading. "
        "Who brings a book back after three weeks pays 0.50 a day. We asked 1,200 readers what they'd like."
    ),
    "de": (
        "Die Bücherei an der Ecke öffnet um neun und schließt erst spät am Abend. Lesen kostet dort nichts. "
        "Wer ein Buch nach drei Wochen zurückbringt, zahlt 0,50 Euro am Tag. Größere Gruppen melden sich bitte an."
    ),
    "fr": (
        "La bibliothèque du coin ouvre à neuf heures et ferme tard le soir. Lire n’y coûte rien. "
        "Qui rend un livre après trois semaines paie 0,50 € par jour. L’été dernier, elle était fermée."
    ),
    "es": (
        "La biblioteca de la esquina abre a las nueve y cierra tarde. ¿Cuánto cuesta leer? Nada. "
        "Quien devuelve un libro después de tres semanas paga 0,50 al día. Los niños tienen su propia sala."
    ),
    "ru": (
        "Библиотека на углу открывается в девять и закрывается поздно вечером. Читать там можно бесплатно. "
        "Кто вернёт книгу через три недели, платит за каждый день. Летом она работает до шести."
    ),
    "el": (
        "Η βιβλιοθήκη στη γωνία ανοίγει στις εννέα και κλείνει αργά το βράδυ. Το διάβασμα εκεί δεν κοστίζει τίποτα. "
        "Όποιος φέρει πίσω ένα βιβλίο μετά από τρεις εβδομάδες πληρώνει κάθε μέρα."
    ),
    "tr": (
        "Köşedeki kütüphane dokuzda açılır ve akşam geç saatte kapanır. Orada okumak ücretsizdir. "
        "Bir kitabı üç haftadan sonra getiren her gün için öder. Çocukların kendi odası vardır."
    ),
    "ar": (
        "المكتبة على الزاوية تفتح في التاسعة وتغلق في وقت متأخر من المساء. القراءة فيها مجانية. "
        "من يعيد كتابا بعد ثلاثة أسابيع يدفع عن كل يوم."
    ),
    "hi": (
        "कोने पर का पुस्तकालय नौ बजे खुलता है और देर शाम को बंद होता है। वहाँ पढ़ना मुफ़्त है। "
        "जो तीन हफ़्ते बाद किताब लौटाता है वह हर दिन के लिए पैसे देता है।"
    ),
    "zh": "街角的图书馆九点开门，晚上很晚才关门。在那里看书不用花钱。三个星期以后还书的人，每天要付五毛钱。",
    "ja": "角の図書館は九時に開いて、夜遅くに閉まります。そこで読むのは無料です。返すのが遅れたら、毎日払います。",
    "th": "ห้องสมุดที่หัวมุมเปิดเก้าโมงและปิดดึก การอ่านที่นั่นไม่เสียเงิน คนที่คืนหนังสือหลังจากสามสัปดาห์ต้องจ่ายทุกวัน",
}
AROUND = (
    "Home | About us | Contact",
    "» Menu",
    "Read more …",
    "© 2024 Example Ltd. All rights reserved",
    "Share:",
    "",
)


def sample_pages(size: int = SAMPLE_BYTES) -> list[Document]:
    """Pages in several languages, nearly half of them English, the same every time.

    Args:
        size: bytes of UTF-8 at which it is enough.
    """
    chance = random.Random(1)  # noqa: S311  # nothing to keep secret
    pages: list[Document] = []
    total = 0
    while total < size:
        language = chance.choice(["en", "en", "en", "en", "en", "en", "en", "en", *SENTENCES])
        lines = chance.choices(AROUND, k=3)
        lines += [_line(language, chance) for _ in range(chance.randint(3, 30))]
        lines += [f"info{chance.randrange(10_000)}@example.org", f"https://www.example.org/{chance.randrange(10**6)}"]
        pages.append(Document("\n".join(lines), id=f"page-{len(pages)}", source="sample"))
        total += len(pages[-1].text.encode())
    return pages


def _line(language: str, chance: random.Random) -> str:
    text = SENTENCES[language]
    words = text.split(" ")
    for _ in range(len(words) // 8):  # some in other places, so that not all is a repetition
        i, j = chance.randrange(len(words)), chance.randrange(len(words))
        words[i], words[j] = words[j], words[i]
    begin = chance.randrange(len(words))
    number = f"{chance.choice(['-', '•', str(chance.randrange(2000))])} " if chance.random() < 0.2 else ""
    return number + " ".join(words[begin:] + words[: chance.randrange(begin + 1)])
