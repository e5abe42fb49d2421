"""Render the dataset card from facts, for readers. Its text is in ``templates/card.md``.

The head of a dataset card: the keys that the Hugging Face hub, and its library datasets, read.

Source: the hub's documentation of dataset cards and of manual configuration; licences: its list of identifiers.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from glob import escape
from typing import Any, NamedTuple

import msgspec

from toolkit.aggregate.samples import CHARS
from toolkit.aggregate.tables import markdown, mix_markdown, percent, size, without_html
from toolkit.data.excerpts import escaped
from toolkit.data.schema import ANY, Type
from toolkit.describe import card_marks, card_numbers, provenance
from toolkit.describe.about import About, as_list
from toolkit.describe.card_numbers import CardCounts, code, fenced
from toolkit.describe.fields import bare
from toolkit.describe.model import DataFile, Facts, FileGroup, Mixture
from toolkit.describe.record_types import MEDIA_TYPES
from toolkit.errors import ConfigError, amount
from toolkit.text.languages.labels import NO_LANGUAGE, code_of, tag_of, tags_of

_DTYPES = {
    "bool": "bool",
    "int": "int64",
    "long": "json",  # the reader makes floats of larger integers before it makes unsigned ones of them
    "huge": "float64",
    "float": "float64",
    "str": "string",
    "digits": "string",
    "url": "string",
    "datetime": "timestamp[us, tz=UTC]",  # the reader makes times of such texts, whatever type is asked for
    "null": "null",
    "never": "null",
    "map": "json",
    "any": "json",
}

DEEPEST = 40
"""Objects and lists in each other that have features of their own; what is deeper is JSON. YAML has a limit, too."""


def features_of(columns: Mapping[str, Type]) -> list[dict[str, Any]]:
    """Return the features of rows with these columns, in their order."""
    rows = _shallow(Type("object", fields=tuple(columns.items())), DEEPEST + 1)
    has_huge = any(kind == "huge" for _, kind in _leaves("", rows))
    results: list[dict[str, Any]] = _feature(rows, _DTYPES | ({"long": _DTYPES["huge"]} if has_huge else {}))["struct"]
    return results


def otherwise(columns: Mapping[str, Type]) -> list[tuple[str, str]]:
    """Return dotted names of values with another loaded form, and the form.

    ``open`` and ``long`` are loaded as JSON, which older readers do not know. ``huge`` is rounded: the reader of JSON
    takes no integers of more than 64 bits. Where there must be JSON beside them it refuses the file: ``refused``.
    """
    rows = _shallow(Type("object", fields=tuple(columns.items())), DEEPEST + 1)
    leaves = [(name.removeprefix("."), "open" if kind in ("map", "any") else kind) for name, kind in _leaves("", rows)]
    results = [(name, kind) for name, kind in leaves if kind in ("open", "long", "huge")]
    kinds = {kind for _, kind in results}
    how = "refused" if "open" in kinds else "huge"
    return [(name, how if "huge" in kinds and kind != "open" else kind) for name, kind in results]


def _shallow(type_: Type, levels: int) -> Type:
    """Return a type with a bounded depth of objects and lists."""
    inner = bare(type_)
    if inner.kind not in ("object", "list"):
        return type_
    if not levels:
        return ANY
    if inner.kind == "list":
        return Type("list", _shallow(inner.item or ANY, levels - 1))
    return Type("object", fields=tuple((name, _shallow(type_, levels - 1)) for name, type_ in inner.fields))


def _feature(type_: Type, dtypes: Mapping[str, str]) -> dict[str, Any]:
    inner = bare(type_)
    if inner.kind == "span":
        return {"list": dtypes["float"]}
    if inner.kind == "object":
        return {"struct": [{"name": name, **_feature(type_, dtypes)} for name, type_ in inner.fields]}
    if inner.kind == "list":
        feature = _feature(inner.item or ANY, dtypes)
        return {"list": feature.get("dtype") or feature.get("struct") or feature}
    return {"dtype": dtypes[inner.kind]}


def _leaves(path: str, type_: Type) -> Iterator[tuple[str, str]]:
    """Yield the dotted names and kinds of all scalar values."""
    inner = bare(type_)
    if inner.kind == "object":
        for name, item in inner.fields:
            yield from _leaves(f"{path}.{name}", item)
    elif inner.kind == "list":
        yield from _leaves(f"{path}[]", inner.item or ANY)
    else:
        yield path, inner.kind


_IDENTIFIERS = (
    "apache-2.0 mit afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 "
    "cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 "
    "cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 "
    "cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl "
    "gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 odc-by odbl osl-3.0 postgresql ofl-1.1 "
    "ncsa unlicense zlib pddl lgpl-lr"
)
_KNOWN = frozenset(_IDENTIFIERS.split())

_OTHERS = {"odc-by-1.0": "odc-by", "odbl-1.0": "odbl", "pddl-1.0": "pddl", "lgpllr": "lgpl-lr"}
_OTHERS |= {f"gfdl-{version}": "gfdl" for version in ("1.1", "1.2", "1.3")}

_PLACES = (
    (re.compile(r"https?://(?:www\.)?spdx\.org/licenses/([\w.+-]+?)(?:\.html|\.json|\.txt)?/?"), "{}"),
    (re.compile(r"https?://(?:www\.)?creativecommons\.org/licenses/([a-z-]+/\d\.\d)(?:/.*)?"), "cc-{}"),
    (re.compile(r"https?://(?:www\.)?creativecommons\.org/publicdomain/zero/(1\.0)(?:/.*)?"), "cc0-{}"),
    (re.compile(r"https?://(?:www\.)?opendatacommons\.org/licenses/(by|odbl|pddl)(?:/.*)?"), "{}"),
    (re.compile(r"https?://(?:www\.)?opensource\.org/licenses?/([\w.+-]+?)(?:\.php)?/?", re.IGNORECASE), "{}"),
    (re.compile(r"https?://(?:www\.)?apache\.org/licenses/LICENSE-(2\.0)(?:\.\w+)?"), "apache-{}"),
)
"""Pages of licences, and what is made of their addresses."""


def identifier(url: str) -> str | None:
    """Return the hub's name of the licence at an address; None if it has none, or nobody knows the address."""
    for pattern, form in _PLACES:
        if match := pattern.fullmatch(url):
            name = form.format(match[1].replace("/", "-")).lower()
            name = "odc-by" if name == "by" else re.sub(r"-(only|or-later)$", "", name)
            name = _OTHERS.get(name, name)
            return name if name in _KNOWN else None
    return None


def identifiers(urls: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a head for the licences; a name and a link only where the hub has no word for one."""
    names = list(dict.fromkeys(identifier(url) or _OTHER for url in urls))
    if not names:
        return {}
    results: dict[str, Any] = {"license": names[0] if len(names) == 1 else names}
    if unknown := [url for url in urls if identifier(url) is None]:
        results |= {"license_name": "-and-".join(map(_name, unknown)), "license_link": unknown[0]}
    return results


_OTHER = "other"


def _name(url: str) -> str:
    """Return a name for a licence without one: the last part of its address."""
    last = re.sub(r"\.(html?|txt|md|php|pdf)$", "", re.sub(r"[?#].*", "", url).rstrip("/").rpartition("/")[2])
    return re.sub(r"[^a-z0-9.]+", "-", last.lower()).strip("-") or _OTHER


KEYS = (
    "pretty_name",
    "language",
    "language_bcp47",
    "license",
    "license_name",
    "license_link",
    "size_categories",
    "task_categories",
    "tags",
    "configs",
    "dataset_info",
)
"""The keys of a head, in their order."""

SPLIT = "train"
"""The name of the one split of a configuration whose files are not parted by split."""

GIVEN = "as `about:` gives it"
"""Stands above a key whose value the data do not say."""

_SIZES = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B"]
_SIZES += ["10B<n<100B", "100B<n<1T", "n>1T"]

_LOADED = re.compile(r"\.(jsonl|json|txt|parquet)(\.(gz|zst|bz2|xz))?$")
_NOT_IN_NAMES = re.compile(r'[<>:/\\|?*"]')
_NOT_IN_SPLITS = re.compile(r"[^\w.]")


class HubSplit(NamedTuple):
    """The files of one split of a configuration.

    Attributes:
        paths: globs that match its files and no others, or the paths.
    """

    split: str
    files: list[DataFile]
    paths: list[str]


class HubConfiguration(NamedTuple):
    """Files with one name for loading; the hub calls them a subset.

    Attributes:
        parts: its files by split; of files that are not parted by split, one.
        features: None where the reader finds them by itself.
    """

    name: str
    parts: list[HubSplit]
    features: list[dict[str, Any]] | None

    @property
    def files(self) -> list[DataFile]:
        return [file for part in self.parts for file in part.files]


def head(facts: Facts, about: About, configurations: Sequence[HubConfiguration]) -> dict[str, Any]:
    """Return the head in the order of writing; unknown keys are left out."""
    results: dict[str, Any] = {"pretty_name": about.name}
    results |= languages(facts, about) | identifiers(as_list(about.license))
    rows = documents_of(facts)
    results["size_categories"] = None if rows is None else [size_category(rows)]
    results["task_categories"] = ["text-generation"]
    results["tags"] = about.keywords
    results["configs"] = [_config(configuration) for configuration in configurations]
    results["dataset_info"] = [
        info
        for configuration in configurations
        if (info := _info(configuration, live=any(about.grows(file.path) for file in configuration.files)))
    ]
    return {name: results[name] for name in KEYS if results.get(name)}


def comments(about: About) -> dict[str, str]:
    """Return comments above keys of the head. A check without the settings needs them."""
    return {"language": GIVEN} if as_list(about.in_language) else {}


def is_given(key: str, head: str) -> bool:
    """Return true if `about:` or the user gives a head's key."""
    block = re.search(rf"^# toolkit: keep (\S+)$.*?^{key}:.*?^# toolkit: end \1$", head, re.MULTILINE | re.DOTALL)
    return block is not None or f"# {GIVEN}\n{key}:" in head


def documents_of(facts: Facts) -> int | None:
    """Return the number of documents; None if it is not known."""
    paths = set(facts.groups[0].paths)
    return total(file.rows for file in facts.files if file.path in paths)


def size_category(rows: int) -> str:
    """Return the hub's word for a number of rows."""
    return _SIZES[min(max(len(str(rows)) - 3, 0), len(_SIZES) - 1)]


def languages(facts: Facts, about: About) -> dict[str, list[str]]:
    """Return the hub's language codes, and whole tags with more detail."""
    tags = as_list(about.in_language) or tags_of(facts.languages)
    codes = list(dict.fromkeys(code for tag in tags if (code := code_of(tag)) and code not in NO_LANGUAGE))
    return {"language": codes, "language_bcp47": tags if any("-" in tag for tag in tags) else []}


# --- configurations ---------------------------------------------------------------------------------------------------


def configurations_of(facts: Facts, present: Iterable[str]) -> list[HubConfiguration]:
    """Return a configuration for each label; where there are none, one for each kind of rows.

    Args:
        facts: Facts of a dataset or an output.
        present: all files below the root that are not hidden.

    Raises:
        ConfigError: if two labels would have one name.
    """
    present, files = list(present), {file.path: file for file in facts.files}
    groups = [(label.label, label.paths, facts.groups[0]) for label in facts.labels]
    if not groups:
        names = ["default"] if facts.is_output else [group.name.removesuffix("-files") for group in facts.groups]
        groups = [(name, group.paths, group) for name, group in zip(names, facts.groups, strict=True)]
    results: dict[str, HubConfiguration] = {}
    for label, paths, group in groups:
        if not paths or not all(map(is_loaded, paths)):
            continue
        name = _NOT_IN_NAMES.sub("--", label)
        if name in results:
            raise ConfigError(
                f"{facts.root}: expected labels that differ in more than slashes, got {label!r} and another"
            )
        features = features_of(group.columns) if group.columns and _is_json(group) else None
        results[name] = HubConfiguration(name, _parts([files[p] for p in paths], facts, present), features)
    return list(results.values())


def _parts(files: Sequence[DataFile], facts: Facts, present: Sequence[str]) -> list[HubSplit]:
    """Return the files by split, the splits in their order."""
    by_split: dict[str, list[DataFile]] = {split.name: [] for split in facts.splits}
    for file in files:
        by_split.setdefault(file.split or SPLIT, []).append(file)
    return [
        HubSplit(_NOT_IN_SPLITS.sub("_", split), some, patterns([file.path for file in some], present))
        for split, some in by_split.items()
        if some
    ]


def is_loaded(path: str) -> bool:
    """Return true if Hugging Face datasets reads files of a name."""
    return _LOADED.search(path) is not None


def notes_of(facts: Facts, configurations: Sequence[HubConfiguration]) -> list[str]:
    """Return notes on loading the data by the head."""
    notes = [f"{name}: {_WHY[kind]}" for name, kind in loaded_otherwise(facts)]
    if not configurations:
        notes.append("no configurations: Hugging Face datasets has no reader for such files")
    return notes


_JSON = "the features say `json`, which older versions of Hugging Face datasets do not know"
_WHY = {
    "open": f"it has no fixed keys, or values of several types; {_JSON}",
    "long": f"it has integers of 2^63 and more; {_JSON}",
    "huge": "there are integers that no 64 bits hold; Hugging Face datasets makes floating-point numbers of large ones",
    "refused": "there are integers that no 64 bits hold, beside values of no type: Hugging Face datasets loads none",
}


def loaded_otherwise(facts: Facts) -> list[tuple[str, str]]:
    """Return the names of values with another loaded form. See `otherwise`."""
    return [pair for group in facts.groups if _is_json(group) for pair in otherwise(group.columns)]


def patterns(paths: Sequence[str], present: Iterable[str]) -> list[str]:
    """Return globs for exactly these files; a path in place of a missing glob.

    ``*`` spans no folders here, ``**`` does.
    """
    present, expected = list(present), set(paths)
    suffixes = {match[0] for path in paths if (match := re.search(r"(\.\w+)+$", path))}
    top = os.path.commonpath([posixpath.dirname(path) for path in paths])
    if len({posixpath.dirname(path) for path in paths}) > 1:
        deep = [posixpath.join(top, f"**/*{suffix}") for suffix in sorted(suffixes)]
        matched = {p for p in present if p.startswith(f"{top}/" if top else "") and p.endswith(tuple(suffixes))}
        if matched == expected:
            return deep
    results: list[str] = []
    folders: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        suffix = next((s for s in sorted(suffixes) if path.endswith(s)), "")
        folders.setdefault((posixpath.dirname(path), suffix), []).append(path)
    for (folder, suffix), some in folders.items():
        stem = os.path.commonprefix([posixpath.basename(path)[: -len(suffix) or None] for path in some])  # noqa: RUF071  # names, by letters
        here = [path for path in present if posixpath.dirname(path) == folder]
        globs = [f"*{suffix}", *([f"{stem}*{suffix}"] if len(some) > 1 else [])] if folder or len(some) > 1 else []
        for glob in globs:
            if {p for p in here if fnmatchcase(posixpath.basename(p), glob)} == set(some):
                results.append(posixpath.join(folder, glob))
                break
        else:
            results += [escape(path) for path in some]
    return results


def _config(configuration: HubConfiguration) -> dict[str, Any]:
    data = [
        {"split": part.split, "path": part.paths[0] if len(part.paths) == 1 else part.paths}
        for part in configuration.parts
    ]
    results: dict[str, Any] = {"config_name": configuration.name, "data_files": data}
    if any(re.search(r"\.txt(\.|$)", file.path) for file in configuration.files):
        results["sample_by"] = "paragraph"  # a blank line ends a document
    return results


def _info(configuration: HubConfiguration, *, live: bool) -> dict[str, Any]:
    """Return the known facts of a configuration. Data that grow have no numbers, because readers compare them."""
    results: dict[str, Any] = {"config_name": configuration.name}
    if configuration.features:
        results["features"] = configuration.features
    if not live and all(file.rows is not None for file in configuration.files):
        content = total(file.content_size for file in configuration.files)
        results["splits"] = [_split(part) for part in configuration.parts]
        results["download_size"] = sum(file.size for file in configuration.files)
        results |= {} if content is None else {"dataset_size": content}
    return results if len(results) > 1 else {}


def _split(part: HubSplit) -> dict[str, Any]:
    content, rows = (total(getattr(file, name) for file in part.files) for name in ("content_size", "rows"))
    split = {"name": part.split, "num_bytes": content, "num_examples": rows}
    return {name: value for name, value in split.items() if value is not None}


def _is_json(group: FileGroup) -> bool:
    return re.search(r"\.jsonl?(\.|$)", group.paths[0]) is not None


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of numbers; None if one is not known."""
    results = list(numbers)
    return None if None in results else sum(number or 0 for number in results)


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
    configurations: Sequence[HubConfiguration],
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
    for name, how in loaded_otherwise(facts):
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
    return card_marks.write(head(facts, about, configurations), title, sections, previous, extras.path, comments(about))


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
        "licence": lambda url: f"[{name}]({url})" if (name := identifier(url)) else f"<{url}>",
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
    return card_marks.read(path, text, KEYS, card_marks.headings("\n".join(texts)) - set(TITLES))


# --- values of the template -------------------------------------------------------------------------------------------


def _agents(agents: Any) -> str:
    texts = [
        (f"[{name}]({agent.url})" if agent.url else name) + (f" (<{agent.email}>)" if agent.email else "")
        for agent, name in ((agent, without_html(agent.name)) for agent in as_list(agents))
    ]
    return ", ".join(texts)


def _amounts(facts: Facts) -> str:
    """Return how much there is, in a sentence."""
    rows, stored = documents_of(facts), sum(file.size for file in facts.files)
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
