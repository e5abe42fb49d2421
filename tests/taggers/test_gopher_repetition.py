"""The variant `paper` against a slow rendering of its definitions; other variants against what their origins give."""

import gzip
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taggers.gopher_repetition import GopherRepetition, Repetition
from toolkit import ConfigError, Document

TEXT = (
    "The small museum opens at 9.30 a.m. #culture … and closes at five...\n"
    "\n"
    "- Don't bring food; don't bring drinks.\n"
    "• Don't bring food; don't bring drinks.\n"
    "* tickets cost $5.00 (students: $2) ...\n"
    "\n\n"
    "To reach the small museum, take line 4 to the end of the park…\n"
    "To reach the small museum, take line 4 to the end of the park, and walk.\r\n"
    " – Öffnungszeiten: 9–17 Uhr ‽ » \n"
    "\n"
    "- Don't bring food; don't bring drinks."
)


def real_texts(shared: Path) -> list[str]:
    texts = []
    for path in sorted((shared / "quality").glob("*.jsonl.gz")):
        with gzip.open(path) as stream:
            texts += [msgspec.json.decode(row)["text"] for row in itertools.islice(stream, 25)]
    return texts


def again(parts: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Of parts that are lines, which have characters: the share of those that came before, and of their characters."""
    sizes = [sum(map(len, part)) for part in parts]
    seen = [part in parts[:i] for i, part in enumerate(parts)]
    chars = sum(size for size, known in zip(sizes, seen, strict=True) if known)
    return sum(seen) / max(len(parts), 1), chars / max(sum(sizes), 1)


def slow_paper(text: str, *, case: bool = False) -> Repetition:
    lines = [line.strip() for line in Document(text).lines]
    paragraphs = [list(group) for some, group in itertools.groupby(lines, bool) if some]
    shares = [*again([[line] for line in lines if line]), *again(paragraphs)]
    words = Document(text).words
    sizes = list(map(len, words))
    for n in range(2, 11):
        ngrams = [tuple(map(str if case else str.lower, words[i : i + n])) for i in range(len(words) - n + 1)]
        counts = Counter(ngrams)
        if n < 5:
            top, count = max(counts.items(), key=lambda item: item[1], default=((), 0))
            first = ngrams.index(top) if top else 0
            shares.append(min(sum(sizes[first : first + n]) * count / max(sum(sizes), 1), 1) if count > 1 else 0.0)
        else:
            covered = {i + j for i, ngram in enumerate(ngrams) if counts[ngram] > 1 for j in range(n)}
            shares.append(sum(sizes[i] for i in covered) / max(sum(sizes), 1))
    return Repetition(*shares)


PIECES = ["a", "A", "bc", "é", "一", "\U0001f600", "\n\n", "\r\n", *"-\n  \t\x85\xa0\u1680\u3000"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=80).map("".join) | st.text("ab \n", max_size=200)


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.booleans())
def test_paper_is_as_defined_in_any_batch(texts: list[str], case: bool) -> None:
    found = GopherRepetition(case=case).tag_batch([Document(text) for text in texts])
    assert found == [slow_paper(text, case=case) for text in texts]


def test_paper_is_as_defined_on_real_documents(shared: Path) -> None:
    texts = real_texts(shared)
    for case in (False, True):
        found = GopherRepetition(case=case).tag_batch([Document(text) for text in texts])
        assert found == [slow_paper(text, case=case) for text in texts]


def test_case_is_of_the_variant_paper() -> None:
    with pytest.raises(ConfigError, match="case: expected the variant paper with it, got 'dolma'"):
        GopherRepetition(variant="dolma", case=True).check()


def test_paragraphs_end_with_the_document() -> None:
    texts = ["a\nb\n\na\nb", "a\nb", "", "\n", "a\n\na\n", "a\nb\n \t\r\na\nb\n\n"]
    found = GopherRepetition().tag_batch([Document(text) for text in texts])
    assert [each.duplicate_paragraph_share for each in found] == [0.5, 0, 0, 0, 0.5, 0.5]
    assert [each.duplicate_line_share for each in found] == [0.5, 0, 0, 0, 0.5, 0.5]


COLUMNS = Repetition.__struct_fields__
ORIGINS: dict[str, list[float]] = {  # by datatrove 0.10.1, Dolma 1.2.1, RedPajama-V2's formulas; else as `paper`
    "datatrove": [
        0.125, 0.09701492537313433, 0.0, 0.0, 0.13432835820895522, 0.08955223880597014, 0.12686567164179105,
        0.27860696517412936, 0.1791044776119403, 0.20398009950248755, 0.1890547263681592, 0.21890547263681592,
        0.24129353233830847,
    ],
    "dolma": [
        0.5, 0.2445141065830721, 0.0, 0.0, 0.09404388714733543, 0.14106583072100312, 0.18808777429467086,
        0.34561286001339586, 0.2743764172335601, 0.20236920039486672, 0.1471747700394218, 0.12564203871987356,
        0.10154843356139719,
    ],
    "dolma_v2": [
        0.25, 0.2445141065830721, 0.0, 0.0, 0.09404388714733543, 0.14106583072100312, 0.18808777429467086,
        0.34561286001339586, 0.2743764172335601, 0.20236920039486672, 0.1471747700394218, 0.12564203871987356,
        0.10154843356139719,
    ],
    "redpajama": [
        0.125, 0.10051546391752578, 0.0, 0.0, 0.19014084507042253, 0.14788732394366197, 0.1795774647887324,
        0.5985915492957746, 0.5985915492957746, 0.3028169014084507, 0.3028169014084507, 0.3028169014084507,
        0.3028169014084507,
    ],
}  # fmt: skip


@pytest.mark.parametrize("variant", ORIGINS)
def test_other_variants_are_what_their_origins_give(variant: Any) -> None:
    found = msgspec.structs.astuple(GopherRepetition(variant=variant).tag(Document(TEXT)))
    assert dict(zip(COLUMNS, found, strict=True)) == dict(zip(COLUMNS, ORIGINS[variant], strict=True))


@pytest.mark.parametrize("variant", ORIGINS)
def test_other_variants_are_the_same_in_any_batch(variant: Any) -> None:
    tagger = GopherRepetition(variant=variant)
    documents = [Document(text) for text in ("", TEXT, "a", " \n", "a b " * 20, TEXT[:50], "")]
    assert list(tagger.tag_batch(documents)) == [tagger.tag(document) for document in documents]


def test_what_overlaps_is_at_most_all() -> None:
    document = Document("a " * 100)
    assert GopherRepetition().tag(document).top_2gram_char_share == 1
    assert GopherRepetition(variant="redpajama").tag(document).top_2gram_char_share == 1.98
    assert GopherRepetition(variant="dolma").tag(document).duplicate_5gram_char_share == 1
