r"""What C4's rules find: the lines that they remove, and what they remove a page for.

Source: Raffel et al. 2020 (T5), JMLR 21(140), section 2.2; ``c4_utils.py`` of TensorFlow Datasets, which made C4
(``clean_page``) and mC4. datatrove 0.10 (``c4_filters.py``) and Dolma 1.2 (``c4_v1``, ``c4_v2``) have the numbers of
the paper's first version: 3 words a line and 5 sentences a page, where the published paper and the code have 5 and 3.
"""

import functools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from toolkit import (
    ALPHA,
    LOWER,
    NUMBER,
    PUNCTUATION,
    SPACE,
    Attribute,
    Batch,
    Document,
    Example,
    Files,
    LineTable,
    Span,
    Tagger,
    Words,
    characters,
    compiled,
    entries,
    for_language,
    is_among,
    spacy_words,
)

Array = np.ndarray[Any, np.dtype[Any]]

TERMINALS = (  # what ends a sentence, the same as in `fineweb`
    "21 2e 3f 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 17d4-17d6 "
    "17d9-17da 1803 1809 1944-1945 1aa8-1aab 1b5a-1b5b 1b5e-1b5f 1b7d-1b7e 1c3b-1c3c 1c7e-1c7f 203c-203d 2047-2049 "
    "2e2e 2e3c 2e53-2e54 3002 a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb "
    "fe52 fe56-fe57 ff01 ff0e ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 110be-110c1 11141-11143 "
    "111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 1144b-1144c 115c2-115c3 115c9-115d7 11641-11642 "
    "1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 11ef7-11ef8 11f43-11f44 16a6e-16a6f 16af5 "
    "16b37-16b38 16b44 16e98 1bc9f 1da88"
)
NOT_SPACY = (  # of these, what spaCy's sentencizer does not know
    "61d-61e 837 839 83d-83e 17d4-17d6 17d9-17da 1b7d-1b7e 2e53-2e54 10f55-10f59 10f86-10f89 11944 11946 11ef7-11ef8 "
    "11f43-11f44 16e98"
)
QUOTES = '"\u201c\u201d\u201e\xab\xbb\u300d\u300f\u301e\u301f\uff02\uff63'
CLOSERS = QUOTES + "')]}\u2018\u2019\u2039\u203a\u3009\u300b\u3011\u3015\u3017\u3019\u301b\uff07\uff09\uff3d\uff5d"

CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
ENDS = {"code": (".", "?", "!", '"'), "datatrove": (".", "?", "!", '"', "'")}
WITHOUT_SPACES = ("ja", "th", "zh")

LONG, NO_MARK, LOREM, JAVASCRIPT, CURLY, POLICY = (1 << bit for bit in range(6))
TERMINAL, MARK, CLOSER, WHITE, LETTER, SMALL, SPECIAL = (1 << bit for bit in range(7))


class Page(msgspec.Struct, frozen=True):
    """The value of `C4`; a line that is removed counts for the first rule that it breaks."""

    cuts: list[Span]
    lines: int
    kept_lines: int
    words: int
    sentences: int
    long_word: int
    no_end_mark: int
    few_words: int
    javascript: int
    policy: int
    lorem_ipsum: bool
    curly_bracket: bool
    bad_word: bool | None
    paragraphs: int


NOTHING = {
    "cuts": [], "lines": 0, "kept_lines": 0, "words": 0, "sentences": 0, "long_word": 0, "no_end_mark": 0,
    "few_words": 0, "javascript": 0, "policy": 0, "lorem_ipsum": False, "curly_bracket": False, "bad_word": None,
    "paragraphs": 0,
}  # fmt: skip


class C4(Tagger):
    r"""What C4 removes from a page, what is left, and what the page as a whole would be removed for.

    A line is looked at without the citation marks of Wikipedia (``[1]``, ``[]``, ``[edit]``, ``[citation needed]``)
    and without the white space around it. It is removed for the first of:

    - ``long_word``: more than `max_word_chars` code points without white space,
    - ``no_end_mark``: it does not end in a full stop, question mark or exclamation mark of some script or in a double
      quotation mark; or it ends in ``...``,
    - ``few_words``: fewer words than `min_words`, by Unicode's word boundaries,
    - ``javascript``: it has "javascript" in it,
    - ``policy``: it has "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies" or "use
      cookies" in it, in any case of letters.

    These are numbers of lines; ``lines`` is that of all. ``cuts`` are the spans without which exactly the other lines
    stand, joined by ``\n``; ``kept_lines``, ``words`` and ``sentences`` are of these. A line with letters or digits is
    one sentence, and one more for each end mark within it (with closing quotes and brackets) that is followed by white
    space and a letter or digit, no small letter after a full stop; marks beyond ASCII need no white space.
    Abbreviations are not known: "Dr. Who" is two sentences; for NLTK's punkt, which C4 was made with, it is one.

    ``lorem_ipsum``, ``curly_bracket`` (``{``), ``bad_word``: whether the page has it anywhere. An entry of `bad_words`
    is found as whole words, in any case. Null if there is no list for the document's language.

    ``paragraphs``: lines of at least `paragraph_chars` code points; mC4 asks for three.

    The other variants are exact, but for sentences in ``code``, and twenty times slower:

    - ``code``: TensorFlow Datasets. Lines are ``str.splitlines``, words stand between white space; end marks are
      ``. ? ! "``; citations go after the first rule and leave their white space; ``lorem_ipsum``, ``curly_bracket``
      and ``bad_word`` (between other than word characters, in Japanese, Thai and Chinese anywhere) count only in lines
      that have come so far: the first before, the second after ``javascript``, the third in lines that stay.
    - ``datatrove``: likewise, but words are counted with citations, ``'`` is an end mark, too, ``bad_word`` is looked
      for in the whole page, sentences are those of spaCy's sentencizer in English.
    - ``dolma``, ``dolma_v2``: lines end at ``\n``; ``cuts`` are the lines that have no end mark (score 1), too few
      words (score 2) or both (score 3), and nothing else is removed. ``javascript``: lines with the word, in v2 with
      the letters. ``bad_word``: a list's words stand between white space, its phrases anywhere. ``words`` are those of
      all lines, ``sentences`` 0. As spans, like Dolma's own: `dolma_c4`.
    """

    EXAMPLES = (
        Example("", NOTHING),
        Example(
            "Menu | Home\nThe library opens at nine.[1] It closes at five.\nWe use cookies on all of our pages.\n",
            NOTHING
            | {"cuts": [[0, 12, 1.0], [38, 41, 1.0], [60, 97, 1.0]], "lines": 3, "kept_lines": 1, "words": 9}
            | {"sentences": 2, "no_end_mark": 1, "policy": 1},
        ),
        Example(
            "図書館は九時に開きます。五時に閉まります。\nメニュー\nLorem ipsum {}...",
            NOTHING
            | {"cuts": [[21, 44, 1.0]], "lines": 3, "kept_lines": 1, "words": 19, "sentences": 2, "no_end_mark": 2}
            | {"lorem_ipsum": True, "curly_bracket": True},
        ),
        Example(
            "It’s { a test, 'really'\nIt is a test\u2028but not a long one.",
            NOTHING
            | {"cuts": [[0, 37, 1.0]], "lines": 3, "kept_lines": 1, "words": 5, "sentences": 1, "no_end_mark": 2},
            options={"variant": "code"},
        ),
        Example(
            "It’s { a test, 'really'",
            NOTHING | {"lines": 1, "kept_lines": 1, "words": 5, "sentences": 1, "curly_bracket": True},
            options={"variant": "datatrove"},
        ),
        Example(
            "Two words.\nÜber JavaScript und mehr\n",
            NOTHING
            | {"cuts": [[0, 11, 2.0], [11, 36, 1.0], [36, 36, 3.0]], "lines": 3, "words": 6, "no_end_mark": 2}
            | {"few_words": 2, "javascript": 1},
            options={"variant": "dolma"},
        ),
    )

    variant: Annotated[
        Literal["paper", "code", "datatrove", "dolma", "dolma_v2"], msgspec.Meta(description="whose definitions")
    ] = "paper"
    min_words: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        msgspec.Meta(description="of a line that stays; null: 5, as of datatrove and Dolma 3"),
    ] = None
    max_word_chars: Annotated[int, msgspec.Meta(ge=1, description="of a line that stays, its longest word")] = 1000
    paragraph_chars: Annotated[int, msgspec.Meta(ge=0, description="from which a line is a paragraph")] = 200
    bad_words: Annotated[
        Files | None,
        msgspec.Meta(description="words and phrases, one a line: a file, or a folder of files called `en`, `en.txt` …"),
    ] = None
    language: Annotated[
        str | None,
        Attribute("language.label", str | None, or_value=True),
        msgspec.Meta(description="of the document, which chooses among the lists of bad words"),
    ] = None

    def tag(self, document: Document) -> Page:
        return self.tag_batch([document])[0]

    def tag_batch(self, documents: Sequence[Document]) -> list[Page]:
        batch = Batch.of(documents)
        languages = batch.given(self.language if self.bad_words else None)
        if self.variant == "paper":
            return self._of_paper(batch, languages)
        of = self._of_dolma if self.variant.startswith("dolma") else self._of_code
        return [of(document.text, language) for document, language in zip(batch, languages, strict=True)]

    @property
    def _least(self) -> int:
        return self.min_words if self.min_words is not None else 5 if self.variant in ("paper", "code") else 3

    # --- paper --------------------------------------------------------------------------------------------------------

    def _of_paper(self, batch: Batch, languages: Sequence[str | None]) -> list[Page]:
        lines, words = batch.lines, batch.words()
        texts = [document.text for document in batch]
        seen = _look(texts, lines, self.max_word_chars)
        n_words = np.diff(words.of_lines()) - seen.cited
        reasons = np.select(
            [seen.found & LONG > 0, seen.found & NO_MARK > 0, n_words < self._least]
            + [seen.found & bit > 0 for bit in (JAVASCRIPT, POLICY)],
            [1, 2, 3, 4, 5],
            0,
        )
        kept = reasons == 0
        columns = (
            _cuts(texts, lines, seen, kept),
            np.diff(lines.bounds).tolist(),
            lines.sums(kept).tolist(),
            lines.sums(np.where(kept, n_words, 0)).tolist(),
            lines.sums(np.where(kept, seen.sentences, 0)).tolist(),
            *(lines.sums(reasons == reason).tolist() for reason in (1, 2, 3, 4, 5)),
            *((lines.sums(seen.found & bit > 0) > 0).tolist() for bit in (LOREM, CURLY)),
            self._bad_words(words, languages),
            lines.sums(lines.chars >= self.paragraph_chars).tolist(),
        )
        return list(map(Page, *columns))

    def _bad_words(self, words: Words, languages: Sequence[str | None]) -> list[bool | None]:
        found: list[bool | None] = [None] * len(languages)
        for i, language in enumerate(languages):
            listed = self._entries(language)
            if listed is not None:
                begin, end = words.bounds[i : i + 2]
                known = _by_first_word(listed)
                hits = np.flatnonzero(is_among(words.folded[begin:end], known.hashes)) + begin
                found[i] = any(_is_bad(words, hit, end, known) for hit in hits.tolist())
        return found

    def _entries(self, language: str | None) -> frozenset[str] | None:
        """The bad words of a language, if there is a list."""
        path = for_language(self.bad_words, language, ("", ".txt")) if self.bad_words else None
        return _list(path) if path else None

    # --- code and datatrove -------------------------------------------------------------------------------------------

    def _of_code(self, text: str, language: str | None) -> Page:
        theirs = self.variant == "datatrove"
        listed = self._entries(language)
        is_bad = None if listed is None else _pattern(listed, anywhere=language in WITHOUT_SPACES).search
        lorem = curly = bad = False
        words = at = 0
        broken = Counter[str]()
        kept: list[str] = []
        left: list[tuple[int, int]] = []  # stretches of the text
        lines = text.splitlines(keepends=True)
        for raw in lines:
            body = raw.strip()
            line = CITATION.sub("", body)
            n_words = len((body if theirs else line).split())
            begin, at = at + len(raw) - len(raw.lstrip()), at + len(raw)
            rule = self._rule_broken(body, line, n_words)
            if rule in (None, "javascript", "policy"):
                lorem = lorem or "lorem ipsum" in line.lower()
            if rule in (None, "policy"):
                curly = curly or "{" in line
            if rule:
                broken[rule] += 1
                continue
            bad = bad or bool(is_bad and not theirs and is_bad(line.lower()))
            words += n_words
            left += _between((match.span() for match in CITATION.finditer(body)), begin, begin + len(body))
            left.append((max(at - 1, begin + len(body)), at))  # the line's end
            kept.append(line)
        if is_bad and theirs:
            bad = bool(is_bad(text.lower()))
        return Page(
            cuts=_rest(text, left),
            lines=len(lines),
            kept_lines=len(kept),
            words=words,
            sentences=sum(map(_spacy_sentences, kept)) if theirs else _sentences(kept),
            long_word=broken["long_word"],
            no_end_mark=broken["no_end_mark"],
            few_words=broken["few_words"],
            javascript=broken["javascript"],
            policy=broken["policy"],
            lorem_ipsum=lorem,
            curly_bracket=curly,
            bad_word=bad if is_bad else None,
            paragraphs=sum(len(line) >= self.paragraph_chars for line in text.split("\n")),
        )

    def _rule_broken(self, body: str, line: str, n_words: int) -> str | None:
        """What a line, `body` with citations, is removed for."""
        if max(map(len, body.split()), default=0) > self.max_word_chars:
            return "long_word"
        if not line.endswith(ENDS[self.variant]) or line.endswith("..."):
            return "no_end_mark"
        if n_words < self._least:
            return "few_words"
        lower = line.lower()
        if "javascript" in lower:
            return "javascript"
        return "policy" if any(policy in lower for policy in POLICIES) else None

    # --- dolma --------------------------------------------------------------------------------------------------------

    def _of_dolma(self, text: str, language: str | None) -> Page:
        listed = self._entries(language)
        phrases = [entry for entry in listed or () if " " in entry]
        lower, lines = text.lower(), text.split("\n")
        marked = [line.strip().endswith(ENDS["code"]) for line in lines]
        long = [len(line.split()) >= self._least for line in lines]
        sizes = [len(line) + 1 for line in lines]
        sizes[-1] -= 1
        ends = np.cumsum([0, *sizes]).tolist()
        cuts = [
            Span(begin, end, float((not is_marked) + 2 * (not is_long)))
            for (begin, end), is_marked, is_long in zip(pairwise(ends), marked, long, strict=True)
            if not (is_marked and is_long)
        ]
        scripts = lower.split("\n") if self.variant == "dolma_v2" else map(str.split, lower.split("\n"))
        bad = not (listed or frozenset()).isdisjoint(lower.split()) or any(phrase in lower for phrase in phrases)
        return Page(
            cuts=cuts,
            lines=len(lines),
            kept_lines=len(lines) - len(cuts),
            words=len(text.split()),
            sentences=0,
            long_word=0,
            no_end_mark=marked.count(False),
            few_words=long.count(False),
            javascript=sum("javascript" in line for line in scripts),
            policy=0,
            lorem_ipsum="lorem ipsum" in lower,
            curly_bracket="{" in text,
            bad_word=bad if listed is not None else None,
            paragraphs=sum(len(line) >= self.paragraph_chars for line in lines),
        )


# --- what a line has in it --------------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """Of each line, in code points of all texts in a row: where it begins; where what counts of it begins and ends;
    bits of what it has in it; its sentences; its words in citations. And where all citations begin and end.
    """

    starts: Array
    begins: Array
    ends: Array
    found: Array
    sentences: Array
    cited: Array
    citations: Array


def _look(texts: Sequence[str], lines: LineTable, max_word_chars: int) -> _Seen:
    whole = "".join(text if text.endswith("\n") or not text else text + "\n" for text in texts) + "\n"
    points = np.frombuffer(whole.encode("utf-32-le"), dtype=np.uint32)
    n = len(lines.starts)
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(lines.chars + 1 + (lines.utf8[lines.ends] == ord("\r")), out=starts[1:])
    begins, ends, found, sentences, cited = np.zeros((5, n), dtype=np.int64)
    citations = np.zeros((2, whole.count("[") + 1), dtype=np.int64)
    table = characters()
    _look_at(
        points, starts, lines.chars, n, table.blocks, table.classes, max_word_chars, *_parts(),
        begins, ends, found, sentences, cited, *citations,
    )  # fmt: skip
    return _Seen(starts, begins, ends, found, sentences, cited, citations)


class _Parts(NamedTuple):
    """What is looked for: roles of ASCII characters; other characters, sorted, and their roles, and how many they are;
    phrases one behind the other, then what may stand in brackets; where each begins and the last one ends, the bits of
    phrases, and how many they are.
    """

    ascii: Array
    points: Array
    roles: Array
    n_points: int
    phrases: Array
    bounds: Array
    bits: Array
    n_phrases: int


@functools.cache
def _parts() -> _Parts:
    roles: dict[str, int] = {}
    for some, role in (
        (_characters(TERMINALS), TERMINAL | MARK),
        (QUOTES, MARK),
        (CLOSERS, CLOSER),
        (string.whitespace + "\x1c\x1d\x1e\x1f", WHITE),
        (string.ascii_letters + string.digits, LETTER),
        (string.ascii_lowercase, SMALL),
        ("cjlptuCJLPTU[{", SPECIAL),
    ):
        for c in some:
            roles[c] = roles.get(c, 0) | role
    others = sorted(c for c in roles if not c.isascii())
    phrases = [("lorem ipsum", LOREM), ("javascript", JAVASCRIPT), *((policy, POLICY) for policy in POLICIES)]
    parts = [*(phrase for phrase, _ in phrases), "edit]", "citation needed]"]
    return _Parts(
        np.array([roles.get(chr(code), 0) for code in range(128)]),
        np.array(list(map(ord, others))),
        np.array([roles[c] for c in others]),
        len(others),
        np.frombuffer("".join(parts).encode("utf-32-le"), dtype=np.uint32),
        np.cumsum([0, *map(len, parts)]),
        np.array([bit for _, bit in phrases]),
        len(phrases),
    )


def _characters(ranges: str) -> Iterable[str]:
    """Those of hexadecimal code points and ranges of them."""
    for each in ranges.split():
        first, _, last = each.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


@compiled(
    "uint32* int64* int64* int64 int64* int64* int64 int64* int64* int64* int64 uint32* int64* int64* int64 "
    "int64* int64* int64* int64* int64* int64* int64*"
)
def _look_at(
    text: Any, starts: Any, sizes: Any, n: Any, blocks: Any, classes: Any, longest: Any,
    ascii_roles: Any, others: Any, other_roles: Any, n_others: Any,
    phrases: Any, bounds: Any, bits: Any, n_phrases: Any,
    begins: Any, ends: Any, found: Any, sentences: Any, cited: Any, citation_starts: Any, citation_ends: Any,
) -> None:  # fmt: skip
    """Fills what `_Seen` has of n lines."""
    n_citations = 0
    for line in range(n):
        at, end = starts[line], starts[line] + sizes[line]
        begin = stop = at
        has = words = 0
        last, behind = -1, -1  # the role of the last character that counts, and where the next one is if it is close
        run = dots = 0  # characters since white space; full stops at the end
        begun, state, stopped = 0, 0, False  # sentences; 1: behind an end mark, 2: the next letter begins one
        while at < end:
            point = int(text[at])
            at += 1
            if point < 128:
                role = ascii_roles[point]
            else:
                number = classes[(blocks[point >> 8] << 8) | (point & 255)]
                role = 0
                if number & (ALPHA | NUMBER):
                    role = LETTER | SMALL if number & LOWER else LETTER
                elif number & SPACE:
                    role = WHITE
                elif number & PUNCTUATION:
                    low, high = 0, n_others
                    while low < high:
                        middle = (low + high) >> 1
                        if others[middle] < point:
                            low = middle + 1
                        else:
                            high = middle
                    if low < n_others and others[low] == point:
                        role = other_roles[low]
            if role & WHITE:
                run = 0
                if state == 1:
                    state = 2
                continue
            if role & SPECIAL:
                if point == 123:  # {
                    has |= CURLY
                elif point == 91:  # [
                    close = at
                    while close < end and 48 <= text[close] <= 57:
                        close += 1
                    cites = 1 if close > at else 0
                    if close == end or text[close] != 93:
                        close = -1
                        for k in range(n_phrases, n_phrases + 2):
                            j, size = 0, bounds[k + 1] - bounds[k]
                            while j < size and at + j < end and text[at + j] == phrases[bounds[k] + j]:
                                j += 1
                            if j == size:
                                close, cites = at + size - 1, k - n_phrases + 1
                    if close >= 0:
                        citation_starts[n_citations], citation_ends[n_citations] = at - 1, close + 1
                        n_citations += 1
                        words += cites
                        if behind == at - 1:
                            behind = close + 1
                        at = close + 1
                        continue
                else:
                    for k in range(n_phrases):
                        if (point | 32) == phrases[bounds[k]]:
                            j, size = 1, bounds[k + 1] - bounds[k]
                            while j < size and at - 1 + j < end:
                                wanted, got = phrases[bounds[k] + j], text[at - 1 + j]
                                if got != wanted and ((got | 32) != wanted or wanted == 32):
                                    break
                                j += 1
                            if j == size:
                                has |= bits[k]
            run += 1
            if run > longest:
                has |= LONG
            if role & LETTER:
                if begun == 0 or (state == 2 and not (stopped and role & SMALL)):
                    begun += 1
                state = 0
            elif role & TERMINAL:
                state, stopped = 1 if point < 128 else 2, point == 46
            elif state == 1 and not role & CLOSER:
                state = 0
            dots = (dots + 1 if behind == at - 1 else 1) if point == 46 else 0
            if last < 0:
                begin = at - 1
            stop = behind = at
            last = role
        if last < 0 or not last & MARK or dots >= 3:
            has |= NO_MARK
        begins[line], ends[line], found[line], sentences[line], cited[line] = begin, stop, has, begun, words


# --- what is cut ------------------------------------------------------------------------------------------------------


def _cuts(texts: Sequence[str], lines: LineTable, seen: _Seen, kept: Array) -> list[list[Span]]:
    """What is cut of each text, so that its kept lines are left."""
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    starts, ends = np.zeros((2, 2 * len(kept) + len(texts) + len(seen.citations[0])), dtype=np.int64)
    bounds = np.zeros(len(texts) + 1, dtype=np.int64)
    _cut_out(
        lines.bounds, len(texts), sizes, seen.starts, seen.begins, seen.ends, kept.astype(np.int64), *seen.citations,
        starts, ends, bounds,
    )  # fmt: skip
    spans = list(map(Span, starts[: bounds[-1]].tolist(), ends[: bounds[-1]].tolist()))
    return [spans[begin:end] for begin, end in pairwise(bounds.tolist())]


@compiled("int64* int64 int64* int64* int64* int64* int64* int64* int64* int64* int64* int64*")
def _cut_out(
    texts: Any, n: Any, sizes: Any, line_starts: Any, begins: Any, stops: Any, kept: Any,
    citation_starts: Any, citation_ends: Any, starts: Any, ends: Any, bounds: Any,
) -> None:  # fmt: skip
    """Fills `starts`, `ends` and `bounds` with the spans of n texts that are in no line that is kept."""
    at = citation = 0
    for i in range(n):
        base = line_starts[texts[i]]
        from_, end_of_line = base, -1  # what is not cut yet, and the line feed before it that stays if a line follows
        for line in range(texts[i], texts[i + 1]):
            if not kept[line]:
                continue
            if end_of_line >= 0 and from_ < end_of_line:
                starts[at], ends[at] = from_ - base, end_of_line - base
                at += 1
            if end_of_line >= 0:
                from_ = end_of_line + 1
            if from_ < begins[line]:
                starts[at], ends[at] = from_ - base, begins[line] - base
                at += 1
            while citation_ends[citation] and citation_starts[citation] < begins[line]:
                citation += 1
            while citation_ends[citation] and citation_starts[citation] < stops[line]:
                starts[at], ends[at] = citation_starts[citation] - base, citation_ends[citation] - base
                at += 1
                citation += 1
            from_, end_of_line = stops[line], line_starts[line + 1] - 1
        if from_ < base + sizes[i]:
            starts[at], ends[at] = from_ - base, sizes[i]
            at += 1
        bounds[i + 1] = at


def _rest(text: str, left: Sequence[tuple[int, int]]) -> list[Span]:
    """What is cut where these stretches of a text are left, without the white space around all of them."""
    begin, end = 0, len(left)
    while begin < end and not text[slice(*left[begin])].strip():
        begin += 1
    while begin < end and not text[slice(*left[end - 1])].strip():
        end -= 1
    stretches = [[a, b] for a, b in left[begin:end]]
    if stretches:
        first, last = text[slice(*stretches[0])], text[slice(*stretches[-1])]
        stretches[0][0] += len(first) - len(first.lstrip())
        stretches[-1][1] -= len(last) - len(last.rstrip())
    edges = [0, *(edge for stretch in stretches for edge in stretch), len(text)]
    return [Span(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def _between(spans: Iterable[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """What is between spans that are counted from `begin`, up to `end`."""
    edges = [begin, *(begin + edge for span in spans for edge in span), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


# --- sentences and bad words ------------------------------------------------------------------------------------------


def _sentences(lines: list[str]) -> int:
    table = LineTable.of(["\n".join(lines)])
    return int(_look(["\n".join(lines)], table, 1000).sentences.sum())


def _spacy_sentences(line: str) -> int:
    """As spaCy's sentencizer has them: a sentence begins with what is no punctuation behind a mark."""
    count, marked = 1, False
    for word in spacy_words(line, "en"):
        if word in _spacy_marks():
            marked = True
        elif marked and not all(unicodedata.category(c)[0] == "P" for c in word):
            count, marked = count + 1, False
    return count


@functools.cache
def _spacy_marks() -> frozenset[str]:
    return frozenset(_characters(TERMINALS)) - frozenset(_characters(NOT_SPACY))


@functools.lru_cache(maxsize=64)
def _list(path: str) -> frozenset[str]:
    return frozenset(entry.lower() for entry in entries(path))


@functools.lru_cache(maxsize=64)
def _pattern(listed: frozenset[str], *, anywhere: bool) -> re.Pattern[str]:
    """What finds a bad word as C4 does."""
    some = "|".join(map(re.escape, sorted(listed)))
    return re.compile(some if anywhere else rf"(?:\W|^)(?:{some})(?:\W|$)")


class _Known(NamedTuple):
    """The hashes of the first words of entries, and the entries with the hash of each, from their first word to their
    last, with their number of words.
    """

    hashes: Array
    entries: dict[int, list[tuple[int, str]]]


@functools.lru_cache(maxsize=64)
def _by_first_word(listed: frozenset[str]) -> _Known:
    words = Words.of(LineTable.of(sorted(listed)))
    found: dict[int, list[tuple[int, str]]] = {}
    for begin, end in pairwise(words.bounds.tolist()):
        if begin < end:
            found.setdefault(int(words.folded[begin]), []).append((end - begin, _stretch(words, begin, end)))
    return _Known(np.array(sorted(found), dtype=np.uint64), found)


def _is_bad(words: Words, first: int, end: int, known: _Known) -> bool:
    """Whether an entry begins at a word whose hash is among the first ones."""
    return any(
        first + n <= end and _stretch(words, first, first + n) == entry
        for n, entry in known.entries[int(words.folded[first])]
    )


def _stretch(words: Words, first: int, end: int) -> str:
    """The text from one word to another, in lower case."""
    return words.lines.utf8[words.starts[first] : words.ends[end - 1]].tobytes().decode().casefold()
