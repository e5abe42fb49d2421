r"""Findings of C4's rules: lines to remove, and reasons to remove a page.

Source: Raffel et al. 2020 (T5), JMLR 21(140), section 2.2; ``c4_utils.py`` of TensorFlow Datasets, which made C4
(``clean_page``) and mC4. datatrove 0.10 (``c4_filters.py``) and Dolma 1.2 (``c4_v1``, ``c4_v2``) have the numbers of
the paper's first version: 3 words a line and 5 sentences a page, where the published paper and the code have 5 and 3.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import msgspec

from taggers._c4_lines import CURLY, JAVASCRIPT, LONG, LOREM, NO_MARK, POLICIES, POLICY, LineFeatures, look
from taggers._options import Label
from toolkit import Batch, Document, Example, Files, Span, Tagger, cached
from toolkit.text import Array, LineTable, Words, entries, for_language, np, places_among, spacy_sentences

CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
ENDS = {"code": (".", "?", "!", '"'), "datatrove": (".", "?", "!", '"', "'")}
WITHOUT_SPACES = ("ja", "th", "zh")
ODD_ENDS = frozenset("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
"""Where `str.splitlines` ends a line, but for the line feed."""


class Page(msgspec.Struct, frozen=True):
    """The value of `C4`; a line that is removed counts for the first rule that it breaks.

    Attributes:
        cuts: Spans of what is removed, without which exactly the lines that stay are left.
        lines: Lines of the page.
        kept_lines: Lines that stay.
        words: Words of the lines that stay.
        sentences: Sentences of the lines that stay.
        long_word: Lines that are removed for a word that is too long.
        no_end_mark: Lines that are removed because they do not end in an end mark of a sentence.
        few_words: Lines that are removed because they have too few words.
        javascript: Lines that are removed because they name JavaScript.
        policy: Lines that are removed because they name a policy, terms of use or cookies.
        lorem_ipsum: True if the page has "lorem ipsum" in it.
        curly_bracket: True if the page has a curly bracket in it.
        lorem_first: True if the page has "lorem ipsum" in it, and no curly bracket in a line before.
        bad_word: True if the page has an entry of the list of bad words in it; null without a list for its language.
        paragraphs: Lines that are long enough to be paragraphs.
        line_ends: Spans of the line ends that are left and are no line feed; the programs put a line feed there.
    """

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
    lorem_first: bool
    bad_word: bool | None
    paragraphs: int
    line_ends: list[Span] = []


NOTHING = {
    "cuts": [], "lines": 0, "kept_lines": 0, "words": 0, "sentences": 0, "long_word": 0, "no_end_mark": 0,
    "few_words": 0, "javascript": 0, "policy": 0, "lorem_ipsum": False, "curly_bracket": False, "lorem_first": False,
    "bad_word": None, "paragraphs": 0, "line_ends": [],
}  # fmt: skip


class C4(Tagger):
    r"""The lines of a page removed by C4, and the rest.

    There are also the reasons for which C4 would drop the whole page.

    The tagger looks at each line without the citation marks of Wikipedia (``[1]``, ``[]``, ``[edit]``, ``[citation
    needed]``) and without the white space around it. It removes a line for the first of these reasons:

    - ``long_word``: more than `max_word_chars` code points without white space,
    - ``no_end_mark``: it does not end in a full stop, question mark or exclamation mark of some script or in a double
      quotation mark; or it ends in ``...`` (with `end_marks: false` such a line stays, as in FineWeb),
    - ``few_words``: fewer words than `min_words`, by Unicode's word boundaries,
    - ``javascript``: it has "javascript" in it,
    - ``policy``: it has "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies" or "use
      cookies" in it, in any case of letters.

    Each of these values is a number of lines; ``lines`` counts all lines. ``cuts`` are spans: without them, exactly the
    other lines are left, joined by ``\n``. ``kept_lines``, ``words`` and ``sentences`` count in the lines that are
    left. A line with a letter or digit counts as one sentence, plus one for each end mark inside of it. An end mark
    counts if white space and a letter or digit follow it; closing quotes and brackets may stand in between. After a
    full stop, the letter must not be a small one. Marks beyond ASCII need no white space. The tagger does not know
    abbreviations: "Dr. Who" has two sentences. (NLTK's punkt, with which C4 was made, counts one.)

    ``lorem_ipsum``, ``curly_bracket`` (``{``) and ``bad_word`` say whether the page has such a text anywhere. C4 drops
    a page at its first "lorem ipsum" or curly bracket; ``lorem_first`` says whether "lorem ipsum" comes first. The
    tagger finds entries of `bad_words` as whole words, in any case of letters. ``bad_word`` is null if there is no list
    for the language of the document.

    ``paragraphs`` counts lines of at least `paragraph_chars` code points; mC4 requires three.

    The other variants give exactly the values of their programs, except for sentences in ``code``. They are twenty
    times slower:

    - ``code``: TensorFlow Datasets. Lines are those of ``str.splitlines``, words are the pieces between white space,
      and end marks are ``. ? ! "``. Citation marks go after the first rule, and leave their white space. Cuts may leave
      a line end such as U+2028 between two lines; ``line_ends`` are these, for a rule that puts ``\n`` there.
      ``lorem_ipsum`` counts only in lines that no rule before ``javascript`` has removed, ``curly_bracket`` only in
      lines that ``javascript`` has not removed either, and ``bad_word`` only in lines that stay. A bad word must have
      no word characters beside it; in Japanese, Thai and Chinese it counts anywhere.
    - ``datatrove``: as ``code``, but words are counted with citation marks, ``'`` is an end mark, too, bad words count
      in the whole page, and sentences are those of spaCy's English sentencizer.

    Dolma's spans are those of `dolma_c4`.

    Attributes:
        variant: the project whose definitions are used
        min_words: a line with fewer words is removed; null: 5, for `datatrove` 3
        end_marks: true removes lines that do not end in an end mark; FineWeb keeps them
        max_word_chars: a line with a longer word (code points) is removed
        paragraph_chars: a line with at least this many code points is a paragraph
        bad_words: words and phrases, one on each line: a file, or a folder of files `en`, `en.txt` …
        language: the language of the document; chooses the list of bad words
    """

    VERSION = "3"

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
            | {"lorem_ipsum": True, "curly_bracket": True, "lorem_first": True},
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
            "Click { here\nThis line has no end mark[1]\nNor this...",
            NOTHING
            | {"cuts": [[38, 53, 1.0]], "lines": 3, "kept_lines": 2, "words": 9, "sentences": 2, "few_words": 1}
            | {"curly_bracket": True},
            options={"variant": "datatrove", "end_marks": False},
        ),
        Example(
            "This is a line. \u2028 And another one.\u2029Menu\nThis is the third.\r",
            NOTHING
            | {"cuts": [[15, 16, 1.0], [17, 18, 1.0], [34, 39, 1.0], [58, 59, 1.0]], "line_ends": [[16, 17, 1.0]]}
            | {"lines": 4, "kept_lines": 3, "words": 11, "sentences": 3, "no_end_mark": 1},
            options={"variant": "datatrove"},
        ),
    )

    variant: Literal["paper", "code", "datatrove"] = "paper"
    min_words: Annotated[int, msgspec.Meta(ge=0)] | None = None
    end_marks: bool = True
    max_word_chars: Annotated[int, msgspec.Meta(ge=1)] = 1000
    paragraph_chars: Annotated[int, msgspec.Meta(ge=0)] = 200
    bad_words: Files | None = None
    language: Label = None

    def tag_batch(self, documents: Sequence[Document]) -> list[Page]:
        batch = Batch.of(documents)
        languages = batch.given(self.language if self.bad_words else None)
        if self.variant == "paper":
            return self._of_paper(batch, languages)
        return [self._of_code(document.text, language) for document, language in zip(batch, languages, strict=True)]

    @property
    def _least(self) -> int:
        return self.min_words if self.min_words is not None else 3 if self.variant == "datatrove" else 5

    # --- paper --------------------------------------------------------------------------------------------------------

    def _of_paper(self, batch: Batch, languages: Sequence[str | None]) -> list[Page]:
        lines, words = batch.lines, batch.words()
        texts = [document.text for document in batch]
        measured = look(texts, lines, self.max_word_chars)
        n_words = np.diff(words.of_lines()) - measured.cited
        no_mark = NO_MARK if self.end_marks else 0
        reasons = np.select(
            [measured.bits & LONG > 0, measured.bits & no_mark > 0, n_words < self._least]
            + [measured.bits & bit > 0 for bit in (JAVASCRIPT, POLICY)],
            [1, 2, 3, 4, 5],
            0,
        )
        stays = reasons == 0
        lorem, curly = (_first_lines(lines, measured.bits & bit > 0) for bit in (LOREM, CURLY))
        columns = (
            _cuts(texts, lines, measured, stays),
            np.diff(lines.bounds).tolist(),
            lines.sums(stays).tolist(),
            lines.sums(np.where(stays, n_words, 0)).tolist(),
            lines.sums(np.where(stays, measured.sentences, 0)).tolist(),
            *(lines.sums(reasons == reason).tolist() for reason in (1, 2, 3, 4, 5)),
            (lorem < len(stays)).tolist(),
            (curly < len(stays)).tolist(),
            ((lorem < len(stays)) & (lorem <= curly)).tolist(),
            self._bad_words(words, languages),
            lines.sums(lines.chars >= self.paragraph_chars).tolist(),
        )
        return list(map(Page, *columns))

    def _bad_words(self, words: Words, languages: Sequence[str | None]) -> list[bool | None]:
        listed = [self._entries(language) for language in languages]
        indexes = [None if entries is None else _by_first_word(entries) for entries in listed]
        results = [None if item is None else False for item in indexes]
        places = places_among(words.folded, words.bounds, [item and item.hashes for item in indexes])
        hits = np.flatnonzero(places >= 0)
        texts = np.searchsorted(words.bounds, hits, side="right") - 1
        ends = words.bounds[texts + 1]
        for hit, place, text, end in zip(*(item.tolist() for item in (hits, places[hits], texts, ends)), strict=True):
            if (here := indexes[text]) and not results[text]:
                results[text] = any(
                    hit + n <= end and _stretch(words, hit, hit + n) == entry for n, entry in here.entries[place]
                )
        return results

    def _entries(self, language: str | None) -> frozenset[str] | None:
        """Return the bad words of a language, if there is a list."""
        path = for_language(self.bad_words, language, ("", ".txt")) if self.bad_words else None
        return _list(path) if path else None

    # --- code and datatrove -------------------------------------------------------------------------------------------

    def _of_code(self, text: str, language: str | None) -> Page:
        theirs = self.variant == "datatrove"
        listed = self._entries(language)
        is_bad = None if listed is None else _pattern(listed, anywhere=language in WITHOUT_SPACES).search
        lorem = curly = first = bad = False
        words = at = behind = 0  # behind the last line that is kept
        broken = Counter[str]()
        texts: list[str] = []
        left: list[tuple[int, int]] = []  # stretches of the text
        lines = text.splitlines(keepends=True)
        for raw in lines:
            body = raw.strip()
            line = CITATION.sub("", body)
            n_words = len((body if theirs else line).split())
            begin, at = at + len(raw) - len(raw.lstrip()), at + len(raw)
            rule = self._rule_broken(body, line, n_words)
            if rule in (None, "javascript", "policy"):
                here = not lorem and "lorem ipsum" in line.lower()
                lorem, first = lorem or here, first or (here and not curly)
            if rule in (None, "policy"):
                curly = curly or "{" in line
            if rule:
                broken[rule] += 1
                continue
            bad = bad or bool(is_bad and not theirs and is_bad(line.lower()))
            words += n_words
            if texts:
                left.append(_line_end(text, behind, begin))
            left += _between((match.span() for match in CITATION.finditer(body)), begin, begin + len(body))
            texts.append(line)
            behind = at
        if is_bad and theirs:
            bad = bool(is_bad(text.lower()))
        left = _without_margins(text, left)
        return Page(
            cuts=_rest(text, left),
            lines=len(lines),
            kept_lines=len(texts),
            words=words,
            sentences=sum(spacy_sentences(line, "en") for line in texts) if theirs else _sentences(texts),
            long_word=broken["long_word"],
            no_end_mark=broken["no_end_mark"],
            few_words=broken["few_words"],
            javascript=broken["javascript"],
            policy=broken["policy"],
            lorem_ipsum=lorem,
            curly_bracket=curly,
            lorem_first=first,
            bad_word=bad if is_bad else None,
            paragraphs=sum(len(line) >= self.paragraph_chars for line in text.split("\n")),
            line_ends=[Span(*stretch) for stretch in left if text[slice(*stretch)] in ODD_ENDS],
        )

    def _rule_broken(self, body: str, line: str, n_words: int) -> str | None:
        """Return why a line, `body` with citations, is removed."""
        if max(map(len, body.split()), default=0) > self.max_word_chars:
            return "long_word"
        if self.end_marks and (not line.endswith(ENDS[self.variant]) or line.endswith("...")):
            return "no_end_mark"
        if n_words < self._least:
            return "few_words"
        lower = line.lower()
        if "javascript" in lower:
            return "javascript"
        return "policy" if any(policy in lower for policy in POLICIES) else None


# --- what is cut ------------------------------------------------------------------------------------------------------


def _cuts(texts: Sequence[str], lines: LineTable, measured: LineFeatures, stays: Array) -> list[list[Span]]:
    """Return the cuts of each text; the other lines stay."""
    bases = measured.starts[lines.bounds[:-1]]
    ends = bases + np.array(list(map(len, texts)), dtype=np.int64)
    left = np.flatnonzero(stays)
    begins, stops, text = (
        measured.begins[left],
        measured.ends[left],
        np.searchsorted(lines.bounds, left, side="right") - 1,
    )
    first = np.diff(text, prepend=-1) > 0  # of the kept lines of a text
    last = np.roll(first, -1)
    line_feeds = measured.starts[left + 1] - 1
    none = np.flatnonzero(np.bincount(text, minlength=len(texts)) == 0)
    cited, cited_ends = measured.citation_starts, measured.citation_ends
    line = np.searchsorted(measured.starts, cited, side="right") - 1
    inside = stays[line] & (cited >= measured.begins[line]) & (cited < measured.ends[line])
    pairs = (
        (bases[none], ends[none]),
        (np.where(first, bases[text], np.roll(line_feeds, 1) + 1), begins),
        (stops, np.where(last, ends[text], line_feeds)),
        (cited[inside], cited_ends[inside]),
    )
    cuts = np.hstack([np.stack(pair) for pair in pairs])
    cuts = cuts[:, cuts[0] < cuts[1]]
    cuts = cuts[:, np.argsort(cuts[0])]
    bounds = np.append(np.searchsorted(cuts[0], bases), len(cuts[0]))
    cuts -= np.repeat(bases, np.diff(bounds))
    spans = list(map(Span, *cuts.tolist()))
    return [spans[begin:end] for begin, end in pairwise(bounds.tolist())]


def _without_margins(text: str, left: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return stretches of a text without the white space around them all."""
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
    return [(a, b) for a, b in stretches]


def _rest(text: str, left: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the spans between stretches of a text."""
    edges = [0, *(edge for stretch in left for edge in stretch), len(text)]
    return [Span(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def _first_lines(lines: LineTable, mask: Array) -> Array:
    """Return the first marked line of each text.

    Without one, it is a number behind all lines.
    """
    hits = np.flatnonzero(mask)
    first = np.full(len(lines.bounds) - 1, len(mask))
    np.minimum.at(first, np.searchsorted(lines.bounds, hits, side="right") - 1, hits)
    return first


def _line_end(text: str, behind: int, begin: int) -> tuple[int, int]:
    r"""Return the line end between two lines.

    It is that of the first, or another in between that is ``\n``.
    """
    at = behind - 1 if text[behind - 1] == "\n" else text.find("\n", behind, begin)
    at = at if at >= 0 else behind - 1
    return at, at + 1


def _between(spans: Iterable[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the stretches between spans, up to `end`.

    Spans are counted from `begin`.
    """
    edges = [begin, *(begin + edge for span in spans for edge in span), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


# --- sentences and bad words ------------------------------------------------------------------------------------------


def _sentences(lines: list[str]) -> int:
    table = LineTable.of(["\n".join(lines)])
    return int(look(["\n".join(lines)], table, 1000).sentences.sum())


@cached(64)
def _list(path: str) -> frozenset[str]:
    return frozenset(entry.lower() for entry in entries(path))


@functools.lru_cache(maxsize=64)
def _pattern(listed: frozenset[str], *, anywhere: bool) -> re.Pattern[str]:
    """Return the pattern for C4's search of bad words."""
    some = "|".join(map(re.escape, sorted(listed)))
    return re.compile(some if anywhere else rf"(?:\W|^)(?:{some})(?:\W|$)")


class _ListIndex(NamedTuple):
    """The entries of a list by the hash of their first word.

    Each has its number of words, and its text from the first word to the last.
    """

    hashes: Array
    entries: list[list[tuple[int, str]]]


@functools.lru_cache(maxsize=64)
def _by_first_word(listed: frozenset[str]) -> _ListIndex:
    words = Words.of(LineTable.of(sorted(listed)))
    results: dict[int, list[tuple[int, str]]] = {}
    for begin, end in pairwise(words.bounds.tolist()):
        if begin < end:
            results.setdefault(int(words.folded[begin]), []).append((end - begin, _stretch(words, begin, end)))
    return _ListIndex(np.array(list(results), dtype=np.uint64), list(results.values()))


def _stretch(words: Words, first: int, end: int) -> str:
    """Return the text from one word to another, in lower case."""
    return words.lines.utf8[words.starts[first] : words.ends[end - 1]].tobytes().decode().casefold()
