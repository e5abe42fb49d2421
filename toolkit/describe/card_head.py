"""The head of a dataset card: the keys that the Hugging Face hub, and its library datasets, read.

Source: the hub's documentation of dataset cards and of manual configuration; licences: its list of identifiers.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, NamedTuple

from toolkit.data.schema import ANY, Type
from toolkit.describe.about import About, as_list
from toolkit.describe.fields import bare
from toolkit.describe.model import DataFile, Facts, FileGroup
from toolkit.errors import ConfigError
from toolkit.text.languages.labels import NO_LANGUAGE, code_of, tags_of

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
