r"""Words as spaCy has them in its blank pipelines, ``spacy.blank("de")``, without spaCy.

Source: spaCy 3.8 (MIT), ``tokenizer.pyx``: the algorithm, written anew; `spacy_rules` has the languages.

A text is split at white space; one blank after a word vanishes, all other white space is a word of its own. What stands
between is a known exception, or loses a prefix and a suffix at a time until it is one or neither is found; the rest is
an exception, a URL, or is split at infixes. At last, exceptions that were torn apart this way are put together again.
spaCy needs quadratic time for some texts. This module needs linear time, as far as the patterns of a language allow it,
and keeps the words of chunks that it has seen.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from toolkit.text.languages.spacy_kinds import is_url
from toolkit.text.languages.spacy_rules import rules_of

KEPT, LONGEST_KEPT = 50_000, 40
"""Chunks that are kept with their words, and how long these are at most."""

_CHUNKS = re.compile(r"\S+|\s{2,}|[^\S ]")
_LEADING = re.compile(r"\s+")


def spacy_words(text: str, language: str = "xx") -> list[str]:
    """Return the words of a text, white space that is more than a blank among them; all in order, nothing left out.

    Args:
        text: of any length.
        language: one of `toolkit.spacy_languages`: ``xx`` is for all languages, others know their contractions and
            abbreviations.
    """
    return _tokenizer(language)(text)


@functools.cache
def _tokenizer(language: str) -> "_Tokenizer":
    return _Tokenizer(language)


def _chunks(text: str) -> list[str]:
    """Return what is between white space, and white space that is more than the blank behind a word, with that."""
    leading = _LEADING.match(text)
    if not leading:
        return _CHUNKS.findall(text)
    first = leading.group()
    return [" " * (first[0] == " ") + first, *_CHUNKS.findall(text, leading.end())]


class _Tokenizer(dict[str, tuple[str, ...]]):
    """The tokenizer of a language; a dict of the words that chunks of text gave so far."""

    def __init__(self, language: str) -> None:
        rules = rules_of(language)
        self._exceptions, self._infix, self._whole = rules.exceptions, rules.infix, rules.whole
        self._match_prefix, self._loose = rules.prefix.match, rules.loose
        self._search_suffix, self._window = rules.suffix.search, rules.window
        self._longest = max(map(len, self._exceptions))
        self._torn = dict[str, dict[str, list[tuple[tuple[str, ...], str]]]]()  # by their first and second word
        for known, gives in self._exceptions.items():
            if " " in known or self._has_affix(known):
                words = tuple(chain.from_iterable(self._words_of(chunk, {}) for chunk in _chunks(known)))
                if len(words) > 1 or words != gives:  # what gives just these words keeps others from overlapping
                    second = words[1] if len(words) > 1 else ""
                    self._torn.setdefault(words[0], {}).setdefault(second, []).append((words, known))

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        words = self._words_of(chunk, self._exceptions)
        if len(self) >= KEPT:
            self.clear()
        if len(chunk) <= LONGEST_KEPT:
            self[chunk] = words
        return words

    def __call__(self, text: str) -> list[str]:
        chunks = _chunks(text)
        return self._mend(text, list(chain.from_iterable(map(self.__getitem__, chunks))))

    def _words_of(self, chunk: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
        if chunk[0] == " ":  # of white space behind a word
            return (chunk[1:],)
        return tuple(self._split(chunk, known))

    def _split(self, chunk: str, known: dict[str, tuple[str, ...]]) -> Iterator[str]:
        """Yield the words of a chunk: an exception, or prefixes, what is between, suffixes."""
        begin, end = 0, len(chunk)
        behind = list[str]()
        longest = self._longest if known else -1
        whole, whole_length = self._whole, 0

        while begin < end:
            if whole and whole.match(chunk[begin:end]):
                whole_length = end - begin
                break
            if end - begin <= longest and chunk[begin:end] in known:
                break
            first = self._prefix(chunk, begin, end)
            if first and end - begin - first <= longest and chunk[begin + first : end] in known:
                yield chunk[begin : begin + first]
                begin += first
                break
            last = self._suffix(chunk, begin + first, end)
            if last and end - begin - last <= longest and chunk[begin : end - last] in known:
                behind.append(chunk[end - last : end])
                end -= last
                break
            if not first and not last:
                break
            if first:
                yield chunk[begin : begin + first]
                begin += first
            if last:
                behind.append(chunk[end - last : end])
                end -= last
        if begin < end:
            inside = chunk[begin:end]
            if inside in known:
                yield from known[inside]
            elif end - begin == whole_length or is_url(inside):
                yield inside
            else:
                yield from self._between_infixes(inside)
        yield from reversed(behind)

    def _prefix(self, chunk: str, begin: int, end: int) -> int:
        """Return the length of what is split off at the beginning."""
        found = self._match_prefix(chunk, begin, end)
        if not found and self._loose:
            found = self._loose.search(chunk, begin, end)
        return found.end() - found.start() if found else 0

    def _suffix(self, chunk: str, begin: int, end: int) -> int:
        """Return the length of what is split off at the end, the longest."""
        window = self._window or end - begin
        while True:
            start = max(begin, end - window)
            found = self._search_suffix(chunk[start:end])
            if not found:
                return 0
            if found.start() or start == begin:
                return found.end() - found.start()
            window *= 2

    def _between_infixes(self, chunk: str) -> Iterator[str]:
        at = 0
        for infix in self._infix.finditer(chunk):
            begin, end = infix.span()
            if begin:
                if at < begin:
                    yield chunk[at:begin]
                if begin < end:
                    yield chunk[begin:end]
                at = end
        if at < len(chunk):
            yield chunk[at:]

    def _has_affix(self, known: str) -> bool:
        size = len(known)
        return bool(self._prefix(known, 0, size) or self._suffix(known, 0, size) or self._infix.search(known))

    def _mend(self, text: str, words: list[str]) -> list[str]:
        """Return the words with exceptions put together again.

        They are looked for in the words alone, so that also those are found which have blanks inside; these stay apart,
        yet no other one overlaps them.
        """
        found = list[tuple[int, int, str]]()
        torn = self._torn
        for i in [i for i, word in enumerate(words) if word in torn]:
            follows = torn[words[i]]
            for second in (words[i + 1], "") if i + 1 < len(words) else ("",):
                for parts, known in follows.get(second, ()):
                    if tuple(words[i : i + len(parts)]) == parts:
                        found.append((len(parts), -i, known))
        if not found:
            return words
        taken = set[int]()
        chosen = dict[int, tuple[int, str]]()
        for size, minus, known in sorted(found, reverse=True):  # the longest, of these the first
            if -minus not in taken and size - minus - 1 not in taken:
                chosen[-minus] = size, known
            taken.update(range(-minus, size - minus))
        mended = list[str]()
        at = 0
        for i, begin in enumerate(_offsets(text, words)):
            if i in chosen and text.startswith(chosen[i][1], begin):
                size, known = chosen[i]
                mended += words[at:i]
                mended += self._exceptions[known]
                at = i + size
        return mended + words[at:]


def _offsets(text: str, words: Iterable[str]) -> Iterator[int]:
    """Yield where each of all words of a text is in it."""
    at = 0
    for word in words:
        if not text.startswith(word, at):
            at += 1  # a blank
        yield at
        at += len(word)
