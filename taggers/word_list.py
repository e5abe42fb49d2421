"""Words and phrases of a list in a text: bad words, stop words, boilerplate.

Source: C4 (Raffel et al. 2020, section 2.2, and the code in TFDS): pages with an entry of LDNOOBW's list of their
language, flanked by what is no word, in Chinese, Japanese and Thai anywhere; RedPajama-V2, ``rps_doc_ldnoobw_words``:
n-grams of words that are an entry; ml_filter, ``bad_word_rate``: per 1,000 words. They differ in what a word is and in
what of it is counted; here it is the toolkit's word, and all of these counts.
"""

import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec

from taggers._options import Label
from toolkit import Batch, Document, Example, Files, Tagger
from toolkit.text import Int64s, LineTable, Splitter, UInt64s, Words, compiled, entries, for_language, np, stop_words

WITHOUT_BLANKS = frozenset({"bo", "dz", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"})
"""Languages that are written without blanks between words."""

_INSIDE = np.array([byte >= 128 or chr(byte).isalnum() for byte in range(256)], dtype=np.int64)
"""Bytes of UTF-8 that may be inside words."""


class Hits(msgspec.Struct, frozen=True):
    """Entries of the list; occurrences, distinct entries, and occurrences per 1,000 words.

    Attributes:
        entries: Entries of the list for the document's language; 0 if there is none.
        hits: Occurrences of entries in the text.
        distinct: Entries that occur in the text.
        per_1000: Occurrences per 1,000 words; null for a text without words.
    """

    entries: int
    hits: int
    distinct: int
    per_1000: float | None


class _Table(NamedTuple):
    """The entries of one list, for `_find_phrases` and `_find_strings`."""

    entries: int
    mask: int  # of the slots
    slots: Int64s  # entry + 1 by the hash of its first word, open addressing
    following: Int64s  # the next entry + 1 with the same first word
    firsts: Int64s  # the first word of each entry, and the end
    hashes: UInt64s  # the words of all entries
    nodes: Int64s  # 256 for each node of the tree of the entries' bytes: the next node, 0 for none
    ends: Int64s  # of each node, entry + 1 if one ends here
    anywhere: Int64s  # whether an entry is looked for inside words


class _EntryCounts(NamedTuple):
    """Counts of entries in texts.

    Entries have the last text that has it, and 1; texts have hits and different entries.
    """

    last_texts: Int64s
    hits: Int64s
    distinct: Int64s


class WordList(Tagger):
    r"""Occurrences of the words and phrases of a list.

    The tagger finds an entry, in any case of letters, where its words (`Batch.words`) stand one after the other,
    whatever is between them. So it finds ``e-mail`` in ``E mail``, but not ``art`` in ``smart``, nor in ``l'art``,
    which is one word. If an entry has no words, or punctuation other than hyphens and apostrophes (``s&m``), the tagger
    looks for its characters; no letter, digit or character beyond ASCII may follow or precede them directly. With
    `match` ``strings`` it finds the characters of all entries anywhere.

    - ``entries``: the number of entries of the list; 0 if there is no list for the language of the document.
    - ``hits``: the number of occurrences. Those that overlap, or are inside of one of another entry, count, too.
    - ``distinct``: the number of entries that occur.
    - ``per_1000``: 1,000 x hits / words; null for a text without words.

    Attributes:
        lists: a file with a word or phrase on each line; a folder of such files named by language (`en` or `en.txt`);
            or `stop_words`: those of the language in the package stopwordsiso
        words: more entries, for all languages
        language: the language of the text: an attribute, or one language for all documents
        splitter: the definition of a word; `word_punct` (`\w+` and runs of punctuation) is nearest to C4
        match: `auto`: whole words, but strings in languages without blanks between words (zh, ja, th …)
    """

    EXAMPLES = (
        Example("", Hits(0, 0, 0, None)),
        Example(
            "Lorem IPSUM, lorem-ipsum; ipsum. Lore.",
            Hits(2, 5, 2, 833.3333333333334),
            options={"lists": None, "words": ["ipsum", "lorem ipsum"]},
        ),
        Example(
            "Où est l'été ? OÙ ?", Hits(3, 3, 2, 750.0), options={"lists": None, "words": ["où", "est l'été", "e"]}
        ),
        Example(
            "東京都に行った",
            Hits(2, 2, 2, 285.7142857142857),
            options={"lists": None, "words": ["東京", "京都", "東京"], "language": "ja"},
        ),
        Example("Smart art", Hits(1, 2, 1, 1000.0), options={"lists": None, "words": ["ART"], "match": "strings"}),
    )

    VERSION = "2"

    lists: Files | None = "stop_words"
    words: tuple[str, ...] = ()
    language: Label = None
    splitter: Literal["unicode", "white_space", "word_punct"] = "unicode"
    match: Literal["auto", "words", "strings"] = "auto"

    def tag_batch(self, documents: Sequence[Document]) -> list[Hits]:
        batch = Batch.of(documents)
        if not len(batch):
            return []
        words, languages = batch.words(self.splitter), batch.given(self.language)
        hits, distinct, size = np.zeros((3, len(batch)), dtype=np.int64)
        for language in dict.fromkeys(languages):
            of_language = np.array([i for i, item in enumerate(languages) if item == language])
            table = self._table(language)
            size[of_language] = table.entries
            into = _EntryCounts(np.zeros(table.entries, dtype=np.int64), hits, distinct)
            if len(table.hashes):
                _find_phrases(words.folded, words.bounds, of_language, len(of_language), table, into)
            if len(table.nodes) > 256:
                lower = [batch[i].text.lower().encode() for i in of_language.tolist()]
                bounds = np.cumsum([0, *map(len, lower)])
                utf8 = np.frombuffer(b"".join(lower) or b"\0", dtype=np.uint8)
                _find_strings(utf8, bounds, of_language, len(lower), table, _INSIDE, into)
        return [
            Hits(listed, hit, different, 1000 * hit / n if n else None)
            for listed, hit, different, n in zip(
                size.tolist(), hits.tolist(), distinct.tolist(), words.counts.tolist(), strict=True
            )
        ]

    def _table(self, language: str | None) -> _Table:
        table = self._tables.get(language)
        if table is None:
            strings = self.match == "strings" or (self.match == "auto" and language in WITHOUT_BLANKS)
            table = self._tables[language] = _table_of(self._entries(language), self.splitter, strings)
        return table

    def _entries(self, language: str | None) -> list[str]:
        listed: Sequence[str] = ()
        if self.lists == "stop_words":
            listed = sorted(stop_words(language or ""))
        elif self.lists and (path := for_language(self.lists, language, ("", ".txt"))):
            listed = entries(path)
        return list(dict.fromkeys(word.lower() for word in (*listed, *self.words) if word.strip()))

    @cached_property
    def _tables(self) -> dict[str | None, _Table]:
        return {}


def _table_of(listed: Sequence[str], splitter: Splitter, strings: bool) -> _Table:
    words = Words.of(LineTable.of(listed), splitter)
    odd = [splitter == "unicode" and any(map(_is_odd, entry)) for entry in listed]
    counts = np.where(np.array(odd, dtype=bool) | strings, 0, words.counts)
    firsts = np.append(words.bounds[:-1], len(words.folded))
    slots = np.zeros(1 << (4 * len(listed) + 1).bit_length(), dtype=np.int64)
    following = np.zeros(len(listed) + 1, dtype=np.int64)
    mask = len(slots) - 1
    for entry in np.flatnonzero(counts).tolist():
        first = int(words.folded[firsts[entry]])
        slot = first & mask
        while slots[slot] and int(words.folded[firsts[slots[slot] - 1]]) != first:
            slot = (slot + 1) & mask
        following[entry] = slots[slot]
        slots[slot] = entry + 1
    nodes, ends = [[0] * 256], [0]
    for entry in np.flatnonzero(counts == 0).tolist():
        node = 0
        for byte in listed[entry].encode():
            if not nodes[node][byte]:
                nodes[node][byte] = len(nodes)
                nodes.append([0] * 256)
                ends.append(0)
            node = nodes[node][byte]
        ends[node] = entry + 1
    tree = np.array(nodes, dtype=np.int64).reshape(-1)
    anywhere = (words.counts == 0) | strings
    return _Table(
        len(listed),
        len(slots) - 1,
        slots,
        following,
        firsts,
        words.folded,
        tree,
        np.array(ends),
        anywhere.astype(np.int64),
    )


def _is_odd(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS" and char not in "-'’"


@compiled("uint64* int64* int64* int64", _Table, _EntryCounts)
def _find_phrases(words: Any, bounds: Any, texts: Any, n: Any, table: _Table, counts: _EntryCounts) -> None:
    """Count the entries of words in n texts."""
    slots, mask, following, firsts, hashes = table.slots, table.mask, table.following, table.firsts, table.hashes
    last_texts, hits, distinct = counts
    for k in range(n):
        text = texts[k]
        for i in range(bounds[text], bounds[text + 1]):
            slot = words[i] & mask
            while slots[slot] and hashes[firsts[slots[slot] - 1]] != words[i]:
                slot = (slot + 1) & mask
            entry = slots[slot]
            while entry:
                first, end = firsts[entry - 1], firsts[entry]
                same = i + end - first <= bounds[text + 1]
                j = first + 1
                while same and j < end:
                    same = hashes[j] == words[i + j - first]
                    j += 1
                if same:
                    hits[text] += 1
                    if last_texts[entry - 1] != text + 1:
                        last_texts[entry - 1] = text + 1
                        distinct[text] += 1
                entry = following[entry - 1]


@compiled("uint8* int64* int64* int64", _Table, "int64*", _EntryCounts)
def _find_strings(utf8: Any, bounds: Any, texts: Any, n: Any, table: _Table, inside: Any, counts: _EntryCounts) -> None:
    """Count the entries of strings in n texts."""
    nodes, ends, anywhere = table.nodes, table.ends, table.anywhere
    last_texts, hits, distinct = counts
    for k in range(n):
        text, begin, end = texts[k], bounds[k], bounds[k + 1]
        for i in range(begin, end):
            at = i
            node = nodes[utf8[at]]
            while node:
                at += 1
                entry = ends[node]
                if entry and not anywhere[entry - 1]:
                    if i > begin and inside[utf8[i - 1]] and inside[utf8[i]]:
                        entry = 0
                    if at < end and inside[utf8[at - 1]] and inside[utf8[at]]:
                        entry = 0
                if entry:
                    hits[text] += 1
                    if last_texts[entry - 1] != text + 1:
                        last_texts[entry - 1] = text + 1
                        distinct[text] += 1
                node = nodes[256 * node + utf8[at]] if at < end else 0
