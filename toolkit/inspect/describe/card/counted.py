"""What was counted for a card, in Markdown: languages and lengths, hosts, scores, tokens, personal data, samples.

Labels, hosts and samples are texts of others. They stand in a card so that none of them is more than text: on one line
in code, or in a quoted block of code, whose lines begin neither a heading, nor a mark, nor HTML.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from toolkit.aggregate.distributions import Distribution, numbers, summary, together
from toolkit.aggregate.histogram import Histogram, merged
from toolkit.aggregate.samples import CHARS, Sample
from toolkit.aggregate.tables import (
    LENGTHS,
    NONE,
    LengthsByLabel,
    Table,
    by_attribute,
    markdown,
    percent,
    shown,
    size,
)
from toolkit.aggregate.thresholds import Threshold, thresholds
from toolkit.data.excerpts import columns, escaped
from toolkit.inspect.describe.facts import Facts, Mixture
from toolkit.inspect.describe.facts.lineage import names_key
from toolkit.rules import Role, Rule, kind_called
from toolkit.tag.tagger import says
from toolkit.text.languages.tables import language


@dataclass(frozen=True)
class Numbers:
    """What was counted.

    Attributes:
        labels, hosts: the largest groups of documents; None where that was not counted.
        lengths: by label.
        samples: documents; none if none are wanted.
        distributions: of attributes, by label; of all documents that a mix read, or of the dataset.
        rules: of the mix, whose thresholds are shown.
        notes: what whoever asked for the card should know.
    """

    labels: Table | None = None
    hosts: Table | None = None
    lengths: LengthsByLabel = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Met:
    """A threshold, and how many values meet the comparison: of a label, if it is for one."""

    threshold: Threshold
    values: int
    of: int


@dataclass(frozen=True)
class Score:
    """The distribution of a number in all documents, and the thresholds that rules have for it."""

    distribution: Distribution
    met: list[Met]


@dataclass(frozen=True)
class Spans:
    """Spans of an attribute: documents that have some, and how many there are in all."""

    attribute: str
    documents: int
    spans: int


def scores(found: Numbers, facts: Facts) -> list[Score]:
    """Return the distributions of numbers, but those of tokens and of personal data, each with its thresholds."""
    others = {*tokens_of(facts), *personal_of(facts)}
    result = []
    for attribute, listed in by_attribute(found.distributions).items():
        whole = together(listed)
        if root(attribute) not in others and whole.buckets is not None and whole.count:
            marks = thresholds(found.rules, attribute)
            result.append(Score(whole, [_met(each, listed, marks) for each in marks]))
    return result


def _met(threshold: Threshold, listed: Sequence[Distribution], marks: Sequence[Threshold]) -> Met:
    """Return how many values meet a threshold: of its label, or of all that have no other of the same comparison."""
    others = threshold.others(marks)
    labels = [(each, msgspec.json.decode(each.label)) for each in listed]
    some = [each for each, label in labels if (label == threshold.label if threshold.label else label not in others)]
    values = [pair for each in some if each.count for pair in numbers(each)]
    return Met(threshold, sum(n for value, n in values if threshold.holds(value)), sum(n for _, n in values))


def root(path: str) -> str:
    """Return the attribute that a path begins with: ``language`` of ``len(language.shares)``."""
    return path.removeprefix("len(").removesuffix(")").partition(".")[0].partition("[")[0]


def tokens_of(facts: Facts) -> list[str]:
    """Return the attributes that are numbers of tokens."""
    return [name for name, tagger in facts.taggers.items() if says(tagger, "TOKENS")]


def personal_of(facts: Facts) -> list[str]:
    """Return the attributes that are personal data."""
    return [name for name, tagger in facts.taggers.items() if says(tagger, "PERSONAL")]


def tokens(found: Numbers, facts: Facts) -> dict[str, int]:
    """Return how many tokens all documents have, by attribute."""
    grouped, totals = by_attribute(found.distributions), dict[str, int]()
    for name in tokens_of(facts):
        sums = together(grouped[name]).buckets if name in grouped else None
        if sums and sums.total is not None:
            totals[name] = round(sums.total)
    return totals


def personal(found: Numbers, facts: Facts) -> list[Spans]:
    """Return the spans of personal data that taggers found."""
    grouped, result = by_attribute(found.distributions), []
    for name in personal_of(facts):
        for attribute, listed in grouped.items():
            inner = attribute.removeprefix("len(").removesuffix(")")
            if inner != attribute and (inner == name or inner.startswith(f"{name}.")):
                whole = together(listed)
                with_spans = sum(count for value, count in numbers(whole) if value) if whole.count else 0
                result.append(Spans(inner, with_spans, round((whole.buckets and whole.buckets.total) or 0)))
    return result


ROWS = 40
"""Languages and scores in a table; all others are one line more."""

_WIDTH = 100
"""Columns of a line of a sample."""

_MARKING = re.compile(r"\s*<!--|#|---")
_SAFE = re.compile(r"[\w .()’'-]+")


def code(text: str) -> str:
    """Return a text of others on one line, as code in Markdown."""
    found = escaped(text) or " "
    fence = "`" * (max((len(each) for each in re.findall("`+", found)), default=0) + 1)
    edge = " " if "`" in (found[0], found[-1]) else ""
    return f"{fence}{edge}{found}{edge}{fence}"


def named(label: str | None) -> tuple[str, str]:
    """Return the name of a label's language, and its script."""
    if label is None:
        return NONE, ""
    found = language(label)
    return (found.title if _SAFE.fullmatch(found.title) else code(found.title)), found.script


# --- statistics -------------------------------------------------------------------------------------------------------


def statistics(found: Numbers, facts: Facts, first: int | None) -> str:
    """Return the sections on what was counted; first: rows of each file that were read, None for all."""
    parts = [
        ("Lengths", lengths(found, facts)),
        ("Hosts", hosts(found)),
        ("Scores", scored(found, facts)),
        ("Tokens", counted_tokens(found, facts)),
        ("Personal data", personal_data(found, facts)),
    ]
    of = f"Counted in the first {first:,} documents of each file.\n\n" if first is not None else ""
    return "\n\n".join(f"### {title}\n\n{of}{text}" for title, text in parts if text)


def by_size(found: Numbers) -> list[tuple[str | None, int]]:
    """Return labels with the bytes of their texts, the largest first."""
    return [(label, counts.bytes) for label, counts in found.labels.groups] if found.labels else []


def lengths_of(found: Numbers, labels: Sequence[str | None]) -> list[Histogram]:
    """Return the lengths of labels."""
    return [found.lengths.get(msgspec.json.encode(label).decode(), Histogram()) for label in labels]


_COLUMNS = ["documents", "least", "5 %", "25 %", "median", "75 %", "95 %", "greatest"]


def lengths(found: Numbers, facts: Facts) -> str:
    """Return how long documents are: by label, with names of languages, where there are several."""
    if not found.lengths:
        return ""
    whole = merged(found.lengths.values())
    labels = [label for label, _ in by_size(found)]
    if len(labels) < 2:
        return "Characters of a document.\n\n" + markdown([_COLUMNS, _row(whole)], left=0)
    is_language = facts.label_name == "language"
    rows = [[*(("language", "script", "label") if is_language else ("label",)), *_COLUMNS]]
    for label, each in zip(labels[:ROWS], lengths_of(found, labels), strict=False):
        title = NONE if label is None else code(shown(label))
        rows.append([*((*named(label), title) if is_language else (title,)), *_row(each)])
    blank = ["", ""] if is_language else []
    if others := labels[ROWS:]:
        rows.append([f"{len(others):,} more", *blank, *_row(merged(lengths_of(found, others)))])
    rows.append(["all", *blank, *_row(whole)])
    by = "language, those with most text first" if is_language else "label, those with most text first"
    return f"Characters of a document, by {by}.\n\n" + markdown(rows, left=len(blank) + 1)


def _row(found: Histogram) -> list[str]:
    numbers = [found.count, found.low, *map(found.quantile, LENGTHS), found.high]
    return [f"{number:,}" for number in numbers]


def hosts(found: Numbers) -> str:
    """Return the hosts with most text; nothing if documents have none."""
    if found.hosts is None or not any(host is not None for host, _ in found.hosts.groups):
        return ""
    number, others = found.hosts.others
    rows = [["host", "documents", "of all", "size"]]
    listed = [(NONE if host is None else code(host), counts) for host, counts in found.hosts.groups]
    listed += [(f"{number:,} more", others)] if number else []
    for title, counts in [*listed, ("all", found.hosts.total)]:
        share = percent(counts.documents / found.hosts.total.documents)
        rows.append([title, f"{counts.documents:,}", share, size(counts.bytes)])
    return "The hosts with most text, of the URLs that documents have.\n\n" + markdown(rows)


# --- attributes -------------------------------------------------------------------------------------------------------


def scored(found: Numbers, facts: Facts) -> str:
    """Return the distributions of scores, and the thresholds that rules have for them."""
    listed = scores(found, facts)
    if not listed:
        return ""
    rows = [["score", "values", "without", "least", "5 %", "25 %", "median", "75 %", "95 %", "greatest"]]
    rows += [[code(each.distribution.attribute), *_score_row(each)] for each in listed[:ROWS]]
    of = "all documents that the mix read, before its rules" if facts.is_output else "all documents"
    parts = [f"Of {of}; quantiles of more than 256 different values are right to 0.5 %.", markdown(rows)]
    if more := len(listed) - ROWS:
        parts += [f"{more:,} more are not shown; `toolkit stats --attribute all` has them."] if more > 0 else []
    if marks := [_mark(met) for each in listed for met in each.met]:
        head = ["rule", "compares", "for", "values that meet it", "of all"]
        parts += ["Thresholds of the rules, each by itself.", markdown([head, *marks], left=3)]
    return "\n\n".join(parts)


def _score_row(each: Score) -> list[str]:
    told = summary(each.distribution)
    quantiles = (told["quantiles"][share] for share in ("0.05", "0.25", "0.5", "0.75", "0.95"))
    numbers = [_short(number) for number in (told["min"], *quantiles, told["max"])]
    return [f"{told['values']:,}", percent(told["null_share"]), *numbers]


def _short(number: float) -> str:
    return f"{number:,.0f}" if 1000 <= abs(number) < 1e15 else f"{number:.4g}"


def _mark(met: Met) -> list[str]:
    threshold = met.threshold
    of = named(threshold.label)[0] if threshold.label else "all"
    return [code(threshold.rule), code(threshold.text), of, f"{met.values:,}", percent(_share(met.values, met.of))]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def counted_tokens(found: Numbers, facts: Facts) -> str:
    """Return how many tokens documents have, by the attributes that count them."""
    of = "the documents that the mix read" if facts.is_output else "the documents"
    listed = [f"- {code(name)}: {number:,} tokens in {of}" for name, number in tokens(found, facts).items()]
    return "\n".join(listed)


def personal_data(found: Numbers, facts: Facts) -> str:
    """Return the personal data that taggers found, and what edits have replaced of it."""
    names = personal_of(facts)
    replaced = _replaced(facts.mixture, names) if facts.mixture else []
    spans = personal(found, facts)
    of = "in the documents that the mix read" if facts.is_output else "in the documents"
    parts = []
    if spans:
        rows = [["found", "documents", "spans"]]
        rows += [[code(each.attribute), f"{each.documents:,}", f"{each.spans:,}"] for each in spans]
        parts.append(f"What taggers found {of}.\n\n{markdown(rows)}")
    if replaced:
        head = ["rule", "replaces", "documents", "spans", "characters"]
        parts.append("What the mix replaced in the documents that it kept.\n\n" + markdown([head, *replaced], left=2))
    edited = {name for name in names for _, expression, *_ in replaced if names_key(expression, name)}
    if spans and facts.is_output and (left := [code(name) for name in names if name not in edited]):
        parts.append(f"Not replaced: {', '.join(left)}.")
    return "\n\n".join(parts)


def _replaced(mixture: Mixture, names: Sequence[str]) -> list[list[str]]:
    rows = []
    for effect, settings in mixture.rules:
        expression = str(settings.get("expression") or "")
        if kind_called(effect.kind).ROLE is Role.EDITS and any(names_key(expression, name) for name in names):
            numbers = [f"{number:,}" for number in (effect.documents, effect.spans, effect.chars)]
            rows.append([code(effect.name), code(expression), *numbers])
    return rows


# --- samples ----------------------------------------------------------------------------------------------------------


def samples(found: Numbers, facts: Facts) -> str:
    """Return the beginnings of some documents, as quoted code."""
    parts = []
    for each in found.samples:
        label = msgspec.json.decode(each.label)
        kind = named(label)[0] if facts.label_name == "language" else code(str(label))
        about = [kind] if label is not None else []
        about += [f"{each.chars:,} characters"]
        about += [code(each.url)] if each.url else []
        about += [f"id {code(each.id)}"] if each.id else []
        parts.append(f"{', '.join(about)}:\n\n{quoted(each.text, more=each.chars > len(each.text))}")
    if not parts:
        return ""
    several = f", of different {facts.label_name}s" if len({each.label for each in found.samples}) > 1 else ""
    told = f"Chosen by a hash of their ids{several}, and by nothing else; cut after {CHARS} characters."
    return "\n\n".join([told, *parts])


def quoted(text: str, *, more: bool = False) -> str:
    """Return a text of others as a quoted block of code, in lines of bounded width; more: whether it goes on."""
    lines = [piece for line in text.split("\n") for piece in _wrapped(escaped(line.rstrip("\r")))]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(f"> {line}".rstrip() for line in fenced([*lines, *(["…"] if more else [])], "text"))


def fenced(lines: Sequence[str], kind: str) -> list[str]:
    """Return lines as a block of code; those that would begin a heading or a mark of ours have a backslash before."""
    fence = "`" * max(3, *(len(each) + 1 for line in lines for each in re.findall("`+", line)), 0)
    return [f"{fence}{kind}", *("\\" + line if _MARKING.match(line) else line for line in lines), fence]


def _wrapped(line: str) -> Iterator[str]:
    """Yield the pieces of a line, cut at blanks where there are some."""
    while (room := _room(line)) < len(line):
        blank = line.rfind(" ", room // 2, room + 1)
        cut = blank if blank > 0 else room
        yield line[:cut].rstrip()
        line = line[cut:].lstrip(" ")
    yield line


def _room(line: str) -> int:
    """Return how many characters of a text are not too wide for a line."""
    used = 0
    for place, character in enumerate(line):
        used += columns(character)
        if used > _WIDTH:
            return place
    return len(line)
