"""Occurrences of lists of words and phrases, beside a slow plain count."""

from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.text.line_table import LineTable
from toolkit.text.listed_phrases import occurrences
from toolkit.text.words import Words

WORDS = st.lists(st.sampled_from(["a", "B", "été", "日"]), max_size=12).map(" ".join)


def plain(text: str, known: frozenset[str]) -> int:
    words = text.casefold().split()
    phrases = {tuple(entry.casefold().split()) for entry in known} - {()}
    return sum(words[i : i + len(phrase)] == list(phrase) for phrase in phrases for i in range(len(words)))


@settings(deadline=None)  # the first text waits for the compiler
@given(st.lists(st.tuples(WORDS, st.none() | st.frozensets(WORDS, max_size=4)), max_size=5))
def test_occurrences(cases: list[tuple[str, frozenset[str] | None]]) -> None:
    texts, lists = [text for text, _ in cases], [known for _, known in cases]
    found = occurrences(Words.of(LineTable.of(texts)), lists)
    assert found.tolist() == [plain(text, known) if known else 0 for text, known in cases]


def test_entries_are_whole_words_in_any_case() -> None:
    table = LineTable.of(["Holy, COW! unholy cow\nholy"])
    for words in (Words.of(table), Words.of(table, "segments")):
        assert occurrences(words, [frozenset({"holy cow", "holy", "!", ""})]).tolist() == [3]
