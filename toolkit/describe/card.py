"""Render the dataset card from facts, for readers. Its text is in ``templates/card.md``."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from toolkit.aggregate.samples import CHARS
from toolkit.aggregate.tables import markdown, mix_markdown, percent, size, without_html
from toolkit.data.excerpts import escaped
from toolkit.data.schema import ANY, Type
from toolkit.describe import card_head, card_marks, card_numbers, provenance
from toolkit.describe.about import About, as_list
from toolkit.describe.card_numbers import CardCounts, code, fenced
from toolkit.describe.fields import bare
from toolkit.describe.model import Facts, FileGroup, Mixture
from toolkit.describe.record_types import MEDIA_TYPES
from toolkit.errors import amount
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
    "Disclosure",
    "Licence",
    "Citation",
)
"""Headings, in their order."""

EXAMPLES = ("Example", "Samples")
"""Headings of sections with texts of documents."""

_NOTHING = {
    "How it was made": "There are no records of the runs beside these data: how they were made is not known.",
    "Limits": "Nothing is stated about limits.",
    "Licence": "No licence is stated.",
}
"""Texts of sections of which nothing is known; others are left out."""

EXAMPLE_CHARS = 300
"""Limit of a text in the example."""

EXAMPLE_ITEMS = 3
"""Limit of a list in the example."""

_SHOWN_KEYS = 4
"""Keys of an object that are shown with their types."""


class CardExtras(msgspec.Struct, frozen=True):
    """Inputs of a card beside its facts and numbers.

    Attributes:
        path: Path of the file, for messages.
        picture: Markdown of the picture; empty without one.
        first: Documents of each file that were counted; None for all.
        disclosure: Markdown of the disclosure beside the card; empty without one.
    """

    path: str = NAME
    picture: str = ""
    first: int | None = None
    disclosure: str = ""


def document(
    facts: Facts,
    about: About,
    configurations: Sequence[card_head.HubConfiguration],
    numbers: CardCounts,
    previous: card_marks.UserParts,
    extras: CardExtras,
) -> str:
    """Return the card, with the user's parts of the previous one.

    Args:
        facts: Facts about the data.
        about: Section `about:`.
        configurations: Configurations of the head.
        numbers: Counts of documents and attributes.
        previous: Parts of the card before.
        extras: Picture, disclosure and other inputs.

    Raises:
        ConfigError: if its head is no YAML with what stays.
    """
    counted = {
        name: partial(getattr(card_numbers, name), numbers, facts)
        for name in ("lengths", "scores", "tokens", "personal_data")
    }
    dates = {"published": about.date_published, "created": about.date_created, "modified": about.date_modified}
    otherwise: dict[str, list[str]] = {}
    for name, how in card_head.loaded_otherwise(facts):
        otherwise.setdefault(how, []).append(name)
    render = _renderer(
        {
            **counted,
            **_how_it_was_made(facts, about),
            "facts": facts,
            "about": about,
            "mixture": facts.mixture,
            "configurations": configurations,
            "found": numbers,
            "picture": extras.picture,
            "first_rows": extras.first,
            "disclosed": extras.disclosure,
            "dates": [f"{event} {date}" for event, date in dates.items() if date],
            "amounts": _amounts(facts),
            "columns": partial(_columns, facts),
            "files": partial(_files, facts),
            "hosts": partial(card_numbers.hosts, numbers),
            "effects": lambda: _effects(facts.mixture) if facts.mixture else [],
            "otherwise": otherwise,
        }
    )
    texts = {title: render(title.lower().replace(" ", "_")) or _NOTHING.get(title, "") for title in TITLES}
    title = without_html(about.name or facts.root.rstrip("/").rpartition("/")[2])
    sections = [("", render("introduction")), *((title, text) for title, text in texts.items() if text)]
    return card_marks.write(
        card_head.head(facts, about, configurations), title, sections, previous, extras.path, card_head.comments(about)
    )


def _renderer(values: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function to render a block of the template.

    Line ends of values are kept apart from those of the template, where several are one blank line.
    """
    template = _environment().get_template("card.md")

    def render(name: str) -> str:
        text = "".join(template.blocks[name](template.new_context(dict(values))))
        return re.sub(r"\n{3,}", "\n\n", text).replace("\0", "\n").strip()

    return render


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("toolkit.describe"),
        autoescape=select_autoescape(()),  # it is Markdown
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value.replace("\n", "\0") if isinstance(value, str) else value,
    )
    environment.globals |= {"percent": percent, "example": _example, "sample_chars": CHARS}
    environment.filters |= {
        "agents": _agents,
        "addresses": lambda urls: ", ".join(f"<{url}>" for url in as_list(urls)),
        "amount": amount,
        "code": code,
        "codes": lambda names: ", ".join(map(code, names)),
        "line": _line,
        "licence": lambda url: f"[{name}]({url})" if (name := card_head.identifier(url)) else f"<{url}>",
        "as_list": as_list,
        "mix_table": mix_markdown,
        "sample": card_numbers.sample,
        "table": markdown,
    }
    return environment


def read(path: str, text: str, about: About) -> card_marks.UserParts:
    """Return the user's parts of a card of ours.

    Raises:
        ConfigError: if its head is no YAML.
        DataError: if its marks are broken.
    """
    rai = (item for value in about.rai.terms().values() for item in as_list(value) if isinstance(item, str))
    texts = [about.description or "", about.citation or "", *rai]
    return card_marks.read(path, text, card_head.KEYS, card_marks.headings("\n".join(texts)) - set(TITLES))


# --- values of the template -------------------------------------------------------------------------------------------


def _agents(agents: Any) -> str:
    texts = [
        (f"[{name}]({agent.url})" if agent.url else name) + (f" (<{agent.email}>)" if agent.email else "")
        for agent, name in ((agent, without_html(agent.name)) for agent in as_list(agents))
    ]
    return ", ".join(texts)


def _amounts(facts: Facts) -> str:
    """Return how much there is, in a sentence."""
    rows, stored = card_head.documents_of(facts), sum(file.size for file in facts.files)
    parts = ["" if rows is None else amount(rows, "document")]
    if facts.labels:
        labels = [label.label for label in facts.labels]
        codes = [label for label in labels if tag_of(label) is None and facts.label_name == "language"]
        named = [amount(len(labels) - len(codes), facts.label_name), *map(code, codes)]
        parts.append(f"in {' and '.join(named)}")
    files = amount(sum(len(group.paths) for group in facts.groups), "file")
    format_ = f"; format {code(facts.mixture.format)}" if facts.mixture else ""
    text = " ".join(filter(None, [*parts, f"in {files}, {size(stored)} as stored{format_}."]))
    return text[0].upper() + text[1:]


def _columns(facts: Facts, group: FileGroup) -> list[list[str]]:
    texts: dict[tuple[str, ...], str] = {}
    for record in facts.records:
        if record.group == group.name:
            texts |= {(field.column, *field.keys): field.description for field in record.fields}
    rows = [["key", "type", "what it is"]]
    for name, type_ in group.columns.items():
        inner: list[tuple[tuple[str, ...], Type]] = [((name,), type_)]
        if group.media_type == MEDIA_TYPES[".parquet"]:
            inner = list(_nested((name,), type_))
        elif bare(type_).kind == "object" and (name,) not in texts and bare(type_).fields:
            inner = [((name, key), type_) for key, type_ in bare(type_).fields]
        rows += [[code(".".join(keys)), _type(type_), texts.get(keys) or type_.description] for keys, type_ in inner]
    return rows


def _nested(keys: tuple[str, ...], type_: Type) -> Iterator[tuple[tuple[str, ...], Type]]:
    """Yield a column and its nested fields, with their keys. Objects in lists count, too."""
    yield keys, type_
    inner = bare(type_)
    for name, item in (bare(inner.item or ANY) if inner.kind == "list" else inner).fields:
        yield from _nested((*keys, name), item)


_NAMES = {"str": "text", "digits": "text", "url": "text", "datetime": "time", "int": "integer", "float": "number"}
_NAMES |= {"bool": "true or false", "null": "null", "never": "nothing", "any": "any", "map": "object"}
_NAMES |= {"long": "integer", "huge": "integer", "span": "`[start, end, score]`", "decimal": "decimal number"}
_NAMES |= {"date": "date", "time": "time of day", "duration": "duration", "bytes": "bytes"}


def _type(type_: Type) -> str:
    """Return the name of a type for people."""
    inner = bare(type_)
    if inner != type_:
        return f"{_type(inner)}, or null"
    if inner.kind == "list":
        item = _type(inner.item or ANY)
        return f"list of ({item})" if ", " in item else f"list of {item}"
    if inner.kind == "object":
        keys = ", ".join(code(name) for name, _ in inner.fields[:_SHOWN_KEYS])
        more = len(inner.fields) - _SHOWN_KEYS
        return f"object with {keys or 'no keys'}" + (f", {more} more" if more > 0 else "")
    return _NAMES[inner.kind]


def _how_it_was_made(facts: Facts, about: About) -> dict[str, list[str]]:
    """Return collection, steps, taggers; what `about.rai` gives stands in place of what records tell."""
    stated = about.rai.terms()
    terms = {
        name: as_list(value) if name in stated else list(map(_plain, as_list(value)))
        for name, value in ((n.removeprefix("rai:"), v) for n, v in provenance.rai_terms(facts, about).items())
    }
    dates = " to ".join(terms.get("dataCollectionTimeframe", []))
    collected = [*terms.get("dataCollection", []), *([f"Collected: {dates}."] if dates else [])]
    collected += [
        text for name in ("Type", "RawData", "MissingData") for text in terms.get(f"dataCollection{name}", [])
    ]
    steps = as_list(stated.get("dataPreprocessingProtocol")) or list(map(_plain, provenance.steps(facts, rules=False)))
    steps += as_list(stated.get("dataManipulationProtocol"))
    return {"collected": collected, "steps": steps, "tools": terms.get("machineAnnotationTools", [])}


def _files(facts: Facts) -> list[list[str]]:
    """Return documents and files of each label, or else of each group."""
    files = {file.path: file for file in facts.files}
    groups = [(label.label, label.paths) for label in facts.labels]
    rows = [["", "documents", "files", "stored"]]
    for name, paths in groups or [(group.name.removesuffix("-files"), group.paths) for group in facts.groups]:
        counts = [files[path].rows for path in paths]
        documents = "not counted" if None in counts else f"{sum(count or 0 for count in counts):,}"
        rows.append([name, documents, f"{len(paths):,}", size(sum(files[path].size for path in paths))])
    return rows


def _effects(mixture: Mixture) -> list[list[str]]:
    """Return the effect of each rule, in order."""
    streams = any(effect.stream for effect, _ in mixture.rules)
    head_ = ["rule", "kind", "condition", "documents", "of reached", "characters"]
    rows = [[*(["stream"] if streams else []), *head_]]
    for effect, settings in mixture.rules:
        condition = settings.get("expression")
        share = percent(effect.documents / effect.reached if effect.reached else None)
        cells = [effect.name, effect.kind, code(str(condition)) if condition else ""]
        cells += [f"{effect.documents:,}", share, f"{effect.chars:,}"]
        rows.append([*([effect.stream] if streams else []), *cells])
    return rows


def _example(value: Any) -> str:
    """Return the first document, cut, as a block of code."""
    value = _cut(value)
    if isinstance(value, str):
        return "\n".join(fenced([escaped(line) for line in value.split("\n")], "text"))
    json = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    printable = "".join(item if item in "\n⏎" or escaped(item) == item else _escape(item) for item in json)
    return "\n".join(fenced(printable.split("\n"), "json"))


def _escape(character: str) -> str:
    """Return the JSON escape of an invisible or direction-changing character."""
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _cut(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= EXAMPLE_CHARS else value[:EXAMPLE_CHARS] + " …"
        case list():
            more = len(value) - EXAMPLE_ITEMS
            return [_cut(item) for item in value[:EXAMPLE_ITEMS]] + ([f"… {more:,} more"] if more > 0 else [])
        case dict():
            return {key: _cut(item) for key, item in value.items()}
    return value


def _plain(text: str) -> str:
    """Return a text of records with Markdown's marks escaped."""
    return re.sub(r"([<*`\\])", r"\\\1", _line(text))


def _line(text: str) -> str:
    return " ".join(text.split())
