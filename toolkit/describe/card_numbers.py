"""Provide a card's tables and picture, and quote external texts.

Labels, hosts and samples are external texts. They stand in a card so that none of them is more than text: on one line
in code, or in a quoted block of code, whose lines begin neither a heading, nor a mark, nor HTML.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Literal

import msgspec
import xxhash

from toolkit.aggregate import drawing
from toolkit.aggregate.distributions import Distribution, merge_labels, numbers, summary
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.aggregate.samples import SampledDocument
from toolkit.aggregate.tables import LENGTHS, NONE, LengthsByLabel, Table, by_attribute, display, percent, size
from toolkit.aggregate.thresholds import Threshold, thresholds
from toolkit.data.excerpts import columns, escaped
from toolkit.describe.model import Facts
from toolkit.describe.provenance import names_key
from toolkit.rules.kinds import kind_called
from toolkit.rules.rule import Role, Rule
from toolkit.tag.tagger import says
from toolkit.text.languages.tables import language

Rows = list[list[str]]
"""Cells of a table, its head first."""

ROWS = 40
"""Languages and scores in a table; all others are one line more."""


class CardCounts(msgspec.Struct, frozen=True):
    """The counts.

    Attributes:
        labels, hosts: Largest groups of documents; None where that was not counted.
        lengths: Lengths by label.
        samples: Documents; none if none are wanted.
        distributions: Distributions of attributes, by label; of all documents that a mix read, or of the dataset.
        rules: Rules of the mix, whose thresholds are shown.
        notes: Notes for whoever asked for the card.
    """

    labels: Table | None = None
    hosts: Table | None = None
    lengths: LengthsByLabel = {}
    samples: list[SampledDocument] = []
    distributions: list[Distribution] = []
    rules: list[Rule] = []
    notes: list[str] = []

    @property
    def sizes(self) -> list[tuple[str | None, int]]:
        """Return labels with the bytes of their texts, the largest first."""
        return [(label, counts.bytes) for label, counts in self.labels.groups] if self.labels else []

    def lengths_of(self, labels: Sequence[str | None]) -> list[Histogram]:
        """Return the lengths of labels."""
        return [self.lengths.get(msgspec.json.encode(label).decode(), Histogram()) for label in labels]


def root(path: str) -> str:
    """Return the first attribute of a path: ``language`` of ``len(language.shares)``."""
    return path.removeprefix("len(").removesuffix(")").partition(".")[0].partition("[")[0]


def attributes_of(facts: Facts, kind: Literal["TOKENS", "PERSONAL"]) -> list[str]:
    """Return the attributes of taggers with a flag: ``TOKENS`` (their number) or ``PERSONAL`` data."""
    return [name for name, tagger in facts.taggers.items() if says(tagger, kind)]


# --- tables -----------------------------------------------------------------------------------------------------------


def lengths(numbers: CardCounts, facts: Facts) -> Rows:
    """Return how long documents are: by label, with names of languages, where there are several."""
    labels, whole = [label for label, _ in numbers.sizes], merged(numbers.lengths.values())
    head = ["documents", "least", "5 %", "25 %", "median", "75 %", "95 %", "greatest"]
    if len(labels) < 2:
        return [head, _length_row(whole)]
    is_language = facts.label_name == "language"
    rows = [[*(("language", "script", "label") if is_language else ("label",)), *head]]
    for label, length in zip(labels[:ROWS], numbers.lengths_of(labels), strict=False):
        title = NONE if label is None else code(display(label))
        rows.append([*((*named(label), title) if is_language else (title,)), *_length_row(length)])
    blank = ["", ""] if is_language else []
    if rest := labels[ROWS:]:
        rows.append([f"{len(rest):,} more", *blank, *_length_row(merged(numbers.lengths_of(rest)))])
    return [*rows, ["all", *blank, *_length_row(whole)]]


def _length_row(histogram: Histogram) -> list[str]:
    return [f"{n:,}" for n in (histogram.count, histogram.low, *map(histogram.quantile, LENGTHS), histogram.high)]


def hosts(numbers: CardCounts) -> Rows:
    """Return the hosts with most text; nothing if documents have none."""
    if numbers.hosts is None or not any(host is not None for host, _ in numbers.hosts.groups):
        return []
    number, rest = numbers.hosts.rest
    listed = [(NONE if host is None else code(host), counts) for host, counts in numbers.hosts.groups]
    listed += [*([(f"{number:,} more", rest)] if number else []), ("all", numbers.hosts.total)]
    total = numbers.hosts.total.documents
    rows = [
        [title, f"{counts.documents:,}", percent(counts.documents / total), size(counts.bytes)]
        for title, counts in listed
    ]
    return [["host", "documents", "of all", "size"], *rows]


def scores(numbers: CardCounts, facts: Facts) -> tuple[Rows, Rows, int]:
    """Return score distributions, rule thresholds, and the number of omitted scores.

    Tokens and personal data have their own tables.
    """
    excluded = {*attributes_of(facts, "TOKENS"), *attributes_of(facts, "PERSONAL")}
    listed, marks = list[list[str]](), list[list[str]]()
    for attribute, distributions in by_attribute(numbers.distributions).items():
        whole = merge_labels(distributions)
        if root(attribute) in excluded or whole.buckets is None or not whole.count:
            continue
        statistics = summary(whole)
        quantiles = (statistics["quantiles"][share] for share in ("0.05", "0.25", "0.5", "0.75", "0.95"))
        values = [_short(number) for number in (statistics["min"], *quantiles, statistics["max"])]
        listed.append([code(attribute), f"{statistics['values']:,}", percent(statistics["null_share"]), *values])
        of_rules = thresholds(numbers.rules, attribute)
        marks += [_mark(threshold, distributions, of_rules) for threshold in of_rules]
    head = ["score", "values", "without", "least", "5 %", "25 %", "median", "75 %", "95 %", "greatest"]
    of_marks = [["rule", "compares", "for", "values that meet it", "of all"], *marks] if marks else []
    return [head, *listed[:ROWS]] if listed else [], of_marks, max(len(listed) - ROWS, 0)


def _short(number: float) -> str:
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.0f}" if 1000 <= abs(number) < 1e15 else f"{number:.4g}"


def _mark(threshold: Threshold, listed: Sequence[Distribution], marks: Sequence[Threshold]) -> list[str]:
    """Return how many values meet a threshold: of its label, or of all that have no other of the same comparison."""
    labels_of_others = threshold.excluded_labels(marks)
    labels = [(distribution, msgspec.json.decode(distribution.label)) for distribution in listed]
    some = [
        distribution
        for distribution, label in labels
        if (label == threshold.label if threshold.label else label not in labels_of_others)
    ]
    values = [pair for distribution in some if distribution.count for pair in numbers(distribution)]
    met, of = sum(n for value, n in values if threshold.holds(value)), sum(n for _, n in values)
    label = named(threshold.label)[0] if threshold.label else "all"
    return [code(threshold.rule), code(threshold.text), label, f"{met:,}", percent(met / of if of else None)]


def tokens(numbers: CardCounts, facts: Facts) -> dict[str, int]:
    """Return how many tokens all documents have, by attribute."""
    grouped = by_attribute(numbers.distributions)
    sums = {name: merge_labels(grouped[name]).buckets for name in attributes_of(facts, "TOKENS") if name in grouped}
    return {name: round(sum_.total) for name, sum_ in sums.items() if sum_}


def personal_data(counts: CardCounts, facts: Facts) -> tuple[Rows, Rows, list[str]]:
    """Return spans by attribute, edits of rules, and the unreplaced attributes."""
    names, replaced, edited = attributes_of(facts, "PERSONAL"), list[list[str]](), set[str]()
    for effect, settings in facts.mixture.rules if facts.mixture else ():
        expression = str(settings.get("expression") or "")
        of_them = {name for name in names if names_key(expression, name)}
        if kind_called(effect.kind).ROLE is Role.EDITS and of_them:
            counted = [f"{number:,}" for number in (effect.documents, effect.spans, effect.chars)]
            replaced.append([code(effect.name), code(expression), *counted])
            edited |= of_them
    spans = []
    for name in names:
        for attribute, listed in by_attribute(counts.distributions).items():
            inner = attribute.removeprefix("len(").removesuffix(")")
            if inner != attribute and (inner == name or inner.startswith(f"{name}.")):
                whole = merge_labels(listed)
                documents = sum(count for value, count in numbers(whole) if value) if whole.count else 0
                spans.append(
                    [code(inner), f"{documents:,}", f"{round((whole.buckets and whole.buckets.total) or 0):,}"]
                )
    unreplaced = [code(name) for name in names if name not in edited] if spans and facts.is_output else []
    head = ["rule", "replaces", "documents", "spans", "characters"]
    found_head = ["found", "documents", "spans"]
    return [found_head, *spans] if spans else [], [head, *replaced] if replaced else [], unreplaced


# --- the picture ------------------------------------------------------------------------------------------------------

PICTURE = "card.png"
"""Name of the file, beside the card."""

_VERSION = 2
"""Version of how it is drawn; a picture of another version is drawn again."""

_NAMED = 5
"""Languages that the text in place of the picture names."""


class Picture(msgspec.Struct, frozen=True):
    """Size of the text and lengths of documents by language.

    Attributes:
        rows: Titles of labels and bytes of their texts, the largest first; none if there is but one label.
        lengths: Lengths of the same labels; without rows, of all documents.
        label_name: Name of the labels, for people.
    """

    rows: list[tuple[str, int]]
    lengths: list[Histogram]
    label_name: str

    @property
    def digest(self) -> str:
        """Return a digest of the drawn data. The file holds it, whatever the version of matplotlib."""
        counts = [sorted(length.cells.items()) for length in self.lengths]
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode((_VERSION, self.rows, counts)))

    def drawn(self) -> bytes:
        """Return the picture as PNG.

        Raises:
            MissingExtra: without matplotlib.
        """
        if self.rows:
            return drawing.sizes_and_lengths(self.rows, self.lengths, "png", note=self.digest)
        return drawing.lengths_of_all(self.lengths[0], "png", note=self.digest)

    def markdown(self) -> str:
        """Return the picture as Markdown, with a text in its place."""
        text = "How long documents are; the table of lengths has the numbers."
        if self.rows:
            largest = ", ".join(f"{title} {size(number)}" for title, number in self.rows[:_NAMED])
            more = f", {len(self.rows) - _NAMED:,} more" if len(self.rows) > _NAMED else ""
            text = f"Size of the text and length of documents by {self.label_name}: {largest}{more}."
            text += " The tables below have the numbers."
        plain = "".join(item if item.isalnum() or item in " .,:()’-" else " " for item in text)
        return f"![{plain}]({PICTURE})"


def picture_of(numbers: CardCounts, facts: Facts) -> Picture | None:
    """Return the picture of the counts; None without lengths."""
    if not numbers.lengths:
        return None
    if len(numbers.sizes) < 2:
        return Picture([], [merged(numbers.lengths.values())], facts.label_name)
    is_language = facts.label_name == "language"
    rows = [
        (NONE if label is None else language(label).title if is_language else display(label), number)
        for label, number in numbers.sizes
    ]
    return Picture(rows, numbers.lengths_of([label for label, _ in numbers.sizes]), facts.label_name)


# --- external texts ---------------------------------------------------------------------------------------------------

_WIDTH = 100
"""Columns of a line of a sample."""

_MARKING = re.compile(r"\s*<!--|#|---")
_SAFE = re.compile(r"[\w .()’'-]+")


def code(text: str) -> str:
    """Return a text of others on one line, as code in Markdown."""
    result = escaped(text) or " "
    fence = "`" * (max((len(item) for item in re.findall("`+", result)), default=0) + 1)
    edge = " " if "`" in (result[0], result[-1]) else ""
    return f"{fence}{edge}{result}{edge}{fence}"


def named(label: str | None) -> tuple[str, str]:
    """Return the name of a label's language, and its script."""
    if label is None:
        return NONE, ""
    result = language(label)
    return (result.title if _SAFE.fullmatch(result.title) else code(result.title)), result.script


def sample(sample: SampledDocument, label_name: str) -> str:
    """Return the beginning of a document as quoted code, below its description."""
    label: Any = msgspec.json.decode(sample.label)
    kind = named(label)[0] if label_name == "language" else code(str(label))
    about = [*([kind] if label is not None else []), f"{sample.chars:,} characters"]
    about += [*([code(sample.url)] if sample.url else []), *([f"id {code(sample.id)}"] if sample.id else [])]
    return f"{', '.join(about)}:\n\n{quoted(sample.text, more=sample.chars > len(sample.text))}"


def quoted(text: str, *, more: bool = False) -> str:
    """Return an external text as a quoted code block of bounded width. `more` marks a cut text."""
    lines = [piece for line in text.split("\n") for piece in _wrapped(escaped(line.rstrip("\r")))]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(f"> {line}".rstrip() for line in fenced([*lines, *(["…"] if more else [])], "text"))


def fenced(lines: Sequence[str], kind: str) -> list[str]:
    """Return lines as a block of code; those that would begin a heading or a mark of ours have a backslash before."""
    fence = "`" * max(3, *(len(item) + 1 for line in lines for item in re.findall("`+", line)), 0)
    return [f"{fence}{kind}", *("\\" + line if _MARKING.match(line) else line for line in lines), fence]


def _wrapped(line: str) -> Iterator[str]:
    """Yield the pieces of a line, cut at blanks if possible."""
    while (room := _room(line)) < len(line):
        blank = line.rfind(" ", room // 2, room + 1)
        cut = blank if blank > 0 else room
        yield line[:cut].rstrip()
        line = line[cut:].lstrip(" ")
    yield line


def _room(line: str) -> int:
    """Return the number of a text's characters on one line."""
    ends = accumulate(map(columns, line))
    return next((place for place, end in enumerate(ends) if end > _WIDTH), len(line))
