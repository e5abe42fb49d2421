"""FineWeb-2's configuration against datatrove's filters, in the order and with the options of fineweb-2-pipeline.py.

Both sides take each page's language as it is given: FineWeb-2's own pages have GlotLID's label, others that of their
source. So the group `language` is left out; duplicates are looked for in each of these languages, and the first of them
stays. Pages are in languages whose words need no further library. ftfy is left out on both sides.
"""

import csv
import gzip
from collections.abc import Iterator
from itertools import cycle, islice
from typing import ClassVar

from tests.conftest import SHARED
from tests.oracles.of_datatrove import GOPHER, Datatrove
from tests.oracles.pages import BENCH, TEXTS, Page, of_texts, of_wet
from tests.oracles.written import ODD, written_pages
from toolkit.text.languages.spacy_words import spacy_languages
from toolkit.text.languages.tables import glotlid_label, thresholds, tokenizer_of

TABLE = "fineweb-2-baedee4"


def by_rules(label: str) -> bool:
    """Return True if FineWeb-2 has the language, and its words need no library."""
    kind, code = tokenizer_of(label) or ("", "")
    ruled = kind in ("IndicNLP", "Whitespace") or (kind == "SpaCy" and code in spacy_languages())
    return ruled and label in thresholds(TABLE)


class Fineweb2(Datatrove):
    """FineWeb-2."""

    NAME = "fineweb-2"
    CONFIG = "fineweb-2.yaml"
    PEER = "fineweb_2"
    LEFT_OUT: ClassVar[tuple[str, ...]] = ("language", "duplicate")
    INGEST = "fields: {source: metadata.language}, leave_out: [source]"
    REASONS = GOPHER | {
        "repetition: empty": "reader",
        "fineweb: empty": "empty",
        "fineweb: line_ends": "line_punct_ratio",
        "fineweb: repeated_lines": "char_dup_ratio",
        "fineweb: list": "list_ratio",
    }
    SETTINGS = (
        *(f"tag.filters-0.{i}.language=metadata.language" for i in range(3)),
        "mix.label=get(document.metadata, 'language', '')",
        "mix.output.by=null",
        "dedup.near-0.keep=first",
        "dedup.near-0.scope=source",
    )

    def pages(self) -> Iterator[Page]:
        """Yield FineWeb-2's 1,200 pages, and some 11,000 in 90 languages and scripts."""
        for label, name in (("spa_Latn", TEXTS[2]), ("srp_Cyrl", TEXTS[3])):
            for page in of_texts([name]):
                yield Page(page.id, page.text, metadata={"language": label})
        with gzip.open(SHARED / "wet/bench/labels.tsv.gz", "rt", encoding="utf-8", newline="") as file:
            labels = [glotlid_label(row["lang_lid176"]) for row in csv.DictReader(file, delimiter="\t")]
        for page, label in zip(of_wet(BENCH), labels, strict=True):
            if by_rules(label):
                yield Page(page.id, page.text, metadata={"language": label})

    def written(self) -> Iterator[Page]:
        """Yield our own pages, in turn as those of several languages, and runs of words around the thresholds."""
        labels = cycle(("deu_Latn", "fra_Latn", "spa_Latn", "ita_Latn", "rus_Cyrl", "srp_Cyrl", "hin_Deva", "urd_Arab"))
        for page, label in zip(islice(written_pages(), 400), labels, strict=False):
            yield Page(page.id, page.text, metadata={"language": label})
        for label, words in thresholds_of_words():
            for number in range(12):
                line = " ".join(f"{word}{number}" * (1 + i % 3) for i, word in enumerate(words))
                text = "\n".join([f"{line}.", *(ODD[(number + i) % len(ODD)] for i in range(number)), f"{line}!"] * 2)
                yield Page(f"words:{label}:{number}", text, metadata={"language": label})


class Fineweb2Minhash(Fineweb2):
    """FineWeb-2 with its near duplicates; nothing is recorded, as our own pages are alike by chance."""

    NAME = "fineweb-2-minhash"
    LEFT_OUT = ("language",)


def thresholds_of_words() -> Iterator[tuple[str, list[str]]]:
    """Yield labels, and words of our own in their script."""
    yield "kat_Geor", ["სახლი", "წიგნი", "ქალაქი", "მდინარე"] * 8
    yield "ell_Grek", ["σπίτι", "βιβλίο", "πόλη", "ποτάμι-νερό"] * 8
    yield "hun_Latn", ["ház", "könyv", "5-ös", "folyó"] * 8
    yield "ind_Latn", ["anak-anak", "buku", "kota", "sungai"] * 8
    yield "fra_Latn", ["l'eau", "aujourd'hui", "porte-clé", "anti-âge"] * 8
    yield "ace_Arab", ["رومه", "بوكو", "كوتا", "كروڠ"] * 8
