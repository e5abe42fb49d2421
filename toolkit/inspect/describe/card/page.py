"""A dataset card from facts, for people who read of a dataset or an output."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.aggregate.tables import markdown, mix_markdown, percent, size, without_html
from toolkit.data.excerpts import escaped
from toolkit.data.schema import ANY, Type
from toolkit.errors import amount
from toolkit.inspect.describe.about import About, Agent, listed
from toolkit.inspect.describe.card import counted, merge
from toolkit.inspect.describe.card.counted import Numbers
from toolkit.inspect.describe.card.head import (
    KEYS,
    Configuration,
    comments,
    documents_of,
    head,
    identifier,
    loaded_otherwise,
)
from toolkit.inspect.describe.croissant import responsible
from toolkit.inspect.describe.facts import Facts, Group, Mixture
from toolkit.inspect.describe.facts.fields import bare
from toolkit.inspect.describe.facts.splits import MEDIA_TYPES
from toolkit.text.languages.labels import tag_of

NAME = "README.md"

TITLES = (
    "What it is",
    "How it was made",
    "Statistics",
    "Rules",
    "Example",
    "Samples",
    "Limits",
    "Licence",
    "Citation",
)
"""Headings, in their order."""

EXAMPLE_CHARS = 300
"""Of a text in the example that are shown."""

EXAMPLE_ITEMS = 3
"""Of a list in the example that are shown."""

_SHOWN_KEYS = 4
"""Of an object whose keys are shown with their types."""


@dataclass(frozen=True)
class Shown:
    """How a card is told, beside what it tells.

    Attributes:
        path: of the file, for messages.
        picture: Markdown of the picture; empty without one.
        first: documents of each file that were counted; None for all.
    """

    path: str = NAME
    picture: str = ""
    first: int | None = None


def document(
    facts: Facts, about: About, configurations: Sequence[Configuration], found: Numbers, kept: merge.Kept, shown: Shown
) -> str:
    """Return the card, with what stays of the one before.

    Args:
        facts: about the data.
        about: what only people know.
        configurations: of the head.
        found: what was counted.
        kept: of the card before.
        shown: how it is told.

    Raises:
        ConfigError: if its head is no YAML with what stays.
    """
    made = {
        "What it is": what_it_is(facts, about, configurations),
        "How it was made": how_it_was_made(facts, about),
        "Statistics": "\n\n".join(
            part for part in (shown.picture, statistics(facts), counted.statistics(found, facts, shown.first)) if part
        ),
        "Rules": rules(facts.mixture) if facts.mixture and facts.mixture.rules else "",
        "Example": example(facts) if about.examples else "",
        "Samples": counted.samples(found, facts),
        "Limits": limits(facts, about),
        "Licence": licence(about),
        "Citation": citation(about),
    }
    title = without_html(about.name or facts.root.rstrip("/").rpartition("/")[2])
    sections = [("", introduction(about)), *((title, made[title]) for title in TITLES if made[title])]
    return merge.write(head(facts, about, configurations), title, sections, kept, shown.path, comments(about))


def read(path: str, text: str, about: About) -> merge.Kept:
    """Return the parts of a card of ours that stay.

    Raises:
        ConfigError: if its head is no YAML.
        DataError: if its marks are broken.
    """
    rai = (each for value in about.rai.given().values() for each in listed(value) if isinstance(each, str))
    given = [about.description or "", about.citation or "", *rai]
    return merge.read(path, text, KEYS, merge.headings("\n".join(given)) - set(TITLES))


# --- sections ---------------------------------------------------------------------------------------------------------


def introduction(about: About) -> str:
    """Return the description, and who made the data when."""
    dates = {"published": about.date_published, "created": about.date_created, "modified": about.date_modified}
    told = {
        "Version": about.version,
        "Dates": ", ".join(f"{what} {date}" for what, date in dates.items() if date),
        "Made by": _agents(about.creator),
        "Published by": _agents(about.publisher),
        "Page": about.url and f"<{about.url}>",
        "Also at": ", ".join(f"<{url}>" for url in listed(about.same_as)),
    }
    points = [f"- {what}: {text}" for what, text in told.items() if text]
    return "\n\n".join(part for part in (about.description or "", "\n".join(points)) if part)


def _agents(given: list[Agent] | Agent | None) -> str:
    texts = [
        (f"[{name}]({agent.url})" if agent.url else name) + (f" (<{agent.email}>)" if agent.email else "")
        for agent, name in ((agent, without_html(agent.name)) for agent in listed(given))
    ]
    return ", ".join(texts)


_GROWING = "The data still grow: all numbers here are those of the day when this card was written."


def what_it_is(facts: Facts, about: About, configurations: Sequence[Configuration]) -> str:
    """Return how much there is, what a row is, how it is loaded."""
    rows, stored = documents_of(facts), sum(file.size for file in facts.files)
    data = [path for group in facts.groups for path in group.paths]
    parts = ["" if rows is None else amount(rows, "document")]
    if facts.labels:
        labels = [each.label for each in facts.labels]
        others = [label for label in labels if tag_of(label) is None and facts.label_name == "language"]
        named = [amount(len(labels) - len(others), facts.label_name), *map(counted.code, others)]
        parts.append(f"in {' and '.join(named)}")
    parts.append(f"in {amount(len(data), 'file')}, {size(stored)} as stored" + (
        f"; format {counted.code(facts.mixture.format)}." if facts.mixture else "."
    ))  # fmt: skip
    text = " ".join(part for part in parts if part)
    found = [text[0].upper() + text[1:] + (f" {_GROWING}" if about.live else "")]
    for group in facts.groups:
        if group.columns:
            found += [*([group.description] if len(facts.groups) > 1 else []), _columns(facts, group)]
    if configurations:
        found.append(_loading(configurations))
    return "\n\n".join(found)


def _columns(facts: Facts, group: Group) -> str:
    told: dict[tuple[str, ...], str] = {}
    for record in facts.records:
        if record.group == group.name:
            told |= {(each.column, *each.keys): each.description for each in record.fields}
    rows = [["key", "type", "what it is"]]
    for name, type_ in group.columns.items():
        inner: list[tuple[tuple[str, ...], Type]]
        if group.media_type == MEDIA_TYPES[".parquet"]:
            inner = list(_nested((name,), type_))
        elif bare(type_).kind == "object" and (name,) not in told and len(bare(type_).fields) > 0:
            inner = [((name, key), each) for key, each in bare(type_).fields]
        else:
            inner = [((name,), type_)]
        rows += [
            [counted.code(".".join(keys)), _shown(each), told.get(keys) or each.description] for keys, each in inner
        ]
    return markdown(rows, left=3)


def _nested(keys: tuple[str, ...], type_: Type) -> Iterator[tuple[tuple[str, ...], Type]]:
    """Yield a column and the fields inside it, of objects in lists, too, with the keys that lead to them."""
    yield keys, type_
    inner = bare(type_)
    for name, each in (bare(inner.item or ANY) if inner.kind == "list" else inner).fields:
        yield from _nested((*keys, name), each)


_NAMES = {"str": "text", "digits": "text", "url": "text", "datetime": "time", "int": "integer", "float": "number"}
_NAMES |= {"bool": "true or false", "null": "null", "never": "nothing", "any": "any", "map": "object"}
_NAMES |= {"long": "integer", "huge": "integer", "span": "`[start, end, score]`", "decimal": "decimal number"}
_NAMES |= {"date": "date", "time": "time of day", "duration": "duration", "bytes": "bytes"}


def _shown(type_: Type) -> str:
    """Return the name of a type for people."""
    inner = bare(type_)
    if inner != type_:
        return f"{_shown(inner)}, or null"
    if inner.kind == "list":
        item = _shown(inner.item or ANY)
        return f"list of ({item})" if ", " in item else f"list of {item}"
    if inner.kind == "object":
        keys = ", ".join(counted.code(name) for name, _ in inner.fields[:_SHOWN_KEYS])
        more = len(inner.fields) - _SHOWN_KEYS
        return f"object with {keys or 'no keys'}" + (f", {more} more" if more > 0 else "")
    return _NAMES[inner.kind]


def _loading(configurations: Sequence[Configuration]) -> str:
    first = configurations[0].name
    name = f', "{first}"' if len(configurations) > 1 or first != "default" else ""
    lines = [
        "```python",
        "from datasets import load_dataset",
        "",
        f'data = load_dataset("path/to/this/folder"{name}, split="{configurations[0].parts[0].split}")',
        "```",
    ]
    if len(configurations) > 1:
        lines += ["", f"Configurations: {_listing(each.name for each in configurations)}."]
    return "\n".join(lines)


def how_it_was_made(facts: Facts, about: About) -> str:
    """Return collection, steps, taggers; what `about.rai` gives stands in place of what records tell."""
    terms = {name.removeprefix("rai:"): value for name, value in responsible.rai_terms(facts, about).items()}
    given = about.rai.given()
    terms = {
        name: listed(value) if name in given else [_plain(each) for each in listed(value)]
        for name, value in terms.items()
    }
    steps = listed(given.get("dataPreprocessingProtocol")) or list(map(_plain, responsible.steps(facts, rules=False)))
    tools = terms.get("machineAnnotationTools", [])
    dates = " to ".join(terms.get("dataCollectionTimeframe", []))
    collected = [
        *terms.get("dataCollection", []),
        *([f"Collected: {dates}."] if dates else []),
        *(text for name in ("Type", "RawData", "MissingData") for text in terms.get(f"dataCollection{name}", [])),
    ]
    steps += listed(given.get("dataManipulationProtocol"))
    parts = [
        ("Collection", "\n\n".join(collected)),
        ("Steps", "\n".join(f"{i}. {_line(step)}" for i, step in enumerate(steps, 1))),
        ("Taggers", "\n".join(f"- {_line(tool)}" for tool in tools)),
        ("Annotation", "\n\n".join(listed(given.get("dataAnnotationProtocol")))),
    ]
    found = "\n\n".join(f"### {title}\n\n{text}" for title, text in parts if text)
    return found or "There are no records of the runs beside these data: how they were made is not known."


def statistics(facts: Facts) -> str:
    """Return counts before and after the mix, from its manifest; without one those of each label."""
    if facts.mixture and facts.mixture.statistics:
        counted = mix_markdown(facts.mixture.statistics)
        return f"What the mix read and what it kept; words are what stands between white space.\n\n{counted}"
    files = {file.path: file for file in facts.files}
    groups = [(each.label, each.paths) for each in facts.labels] or [
        (g.name.removesuffix("-files"), g.paths) for g in facts.groups
    ]
    rows = [["", "documents", "files", "stored"]]
    for name, paths in groups:
        counts = [files[path].rows for path in paths]
        documents = "not counted" if None in counts else f"{sum(count or 0 for count in counts):,}"
        rows.append([name, documents, f"{len(paths):,}", size(sum(files[path].size for path in paths))])
    return markdown(rows)


def rules(mixture: Mixture) -> str:
    """Return a table of what each rule did, in order."""
    streams = any(effect.stream for effect, _ in mixture.rules)
    rows = [[*(["stream"] if streams else []), "rule", "kind", "condition", "documents", "of reached", "characters"]]
    for effect, settings in mixture.rules:
        condition = settings.get("expression")
        of_reached = percent(effect.documents / effect.reached if effect.reached else None)
        cells = [effect.name, effect.kind, counted.code(str(condition)) if condition else ""]
        numbers = [f"{effect.documents:,}", of_reached, f"{effect.chars:,}"]
        rows.append([*([effect.stream] if streams else []), *cells, *numbers])
    totals = mixture.totals
    kept = percent(totals.kept / totals.rows if totals.rows else None)
    were = "was" if totals.kept == 1 else "were"
    told = (
        "Applied in this order; a document that a rule drops comes to none after it. "
        f"Of {amount(totals.rows, 'document')} {totals.kept:,} {were} kept ({kept}), "
        f"of {amount(totals.chars, 'character')} {totals.kept_chars:,}{totals.repeated}."
    )
    left = "\n".join(f"- {name}: {count:,}" for name, count in mixture.counts.items() if count)
    return "\n\n".join(part for part in (told, markdown(rows, left=4 if streams else 3), left) if part)


def example(facts: Facts) -> str:
    """Return the first document, cut."""
    found = facts.example
    if found is None:
        return ""
    value = _cut(found.value)
    if isinstance(value, str):
        lines = counted.fenced([escaped(line) for line in value.split("\n")], "text")
    else:
        json = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        lines = counted.fenced(_unhidden(json).split("\n"), "json")
    return "\n".join([f"The first of `{found.path}`; long texts and lists are cut.", "", *lines])


def _unhidden(json: str) -> str:
    """Return JSON with escapes in place of characters that are not seen, or turn the direction of a line."""
    return "".join(each if each in "\n⏎" or escaped(each) == each else _escape(each) for each in json)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _cut(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= EXAMPLE_CHARS else value[:EXAMPLE_CHARS] + " …"
        case list():
            more = len(value) - EXAMPLE_ITEMS
            return [_cut(each) for each in value[:EXAMPLE_ITEMS]] + ([f"… {more:,} more"] if more > 0 else [])
        case dict():
            return {key: _cut(each) for key, each in value.items()}
    return value


_LOADED = {
    "huge": "Hugging Face datasets rounds large ones",
    "refused": "Hugging Face datasets cannot load these data",
}


def limits(facts: Facts, about: About) -> str:
    """Return the limits and uses that people know of, and what is missing by the records."""
    rai = about.rai
    terms = {
        "Known limits": rai.dataLimitations,
        "Biases": rai.dataBiases,
        "Personal and sensitive information": rai.personalSensitiveInformation,
        "Social impact": rai.dataSocialImpact,
        "Uses": rai.dataUseCases,
        "Maintenance": rai.dataReleaseMaintenancePlan,
    }
    points = [f"- {what}: {_line(' '.join(listed(text)))}" for what, text in terms.items() if text]
    if rai.hasSyntheticData is not None:
        points.append(f"- Synthetic data: {'yes' if rai.hasSyntheticData else 'no'}.")
    for how, told in _LOADED.items():
        if names := [name for name, kind in loaded_otherwise(facts) if kind == how]:
            points.append(f"- Integers that no 64 bits hold: {told}: {_listing(names)}.")
    if facts.mixture and facts.mixture.omitted:
        points.append(f"- Left out because they failed: {_listing(facts.mixture.omitted)}.")
    return "\n".join(points) or "Nothing is stated about limits."


def _listing(names: Iterable[str]) -> str:
    return ", ".join(map(counted.code, names))


def licence(about: About) -> str:
    """Return the licences, with links."""
    urls = [f"[{found}]({url})" if (found := identifier(url)) else f"<{url}>" for url in listed(about.license)]
    return f"{', '.join(urls)}." if urls else "No licence is stated."


def citation(about: About) -> str:
    """Return the citation as it is given; BibTeX as code."""
    text = (about.citation or "").strip()
    if not text:
        return ""
    return f"```bibtex\n{text}\n```" if text.startswith("@") else text


def _plain(text: str) -> str:
    """Return a text of records, its signs escaped that are marks in Markdown."""
    return re.sub(r"([<*`\\])", r"\\\1", _line(text))


def _line(text: str) -> str:
    return " ".join(text.split())
