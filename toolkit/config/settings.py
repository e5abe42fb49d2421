"""YAML to typed settings, with the line of the file in errors.

YAML as version 1.2 reads it where 1.1 surprises: only ``true`` and ``false`` are booleans (so that the language ``no``
stays a word), and a key given twice is an error.
"""

import functools
import re
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec

from toolkit.config.yaml_nodes import Path, explain, path_of
from toolkit.errors import ConfigError, DataError, Unreadable, did_you_mean, errors_from
from toolkit.storage import store_of
from toolkit.storage.addresses import has_secret, redact_text, redact_url
from toolkit.storage_options import Duration, Size, StorageOptions

T = TypeVar("T")

FROZEN: dict[str, Any] = {"frozen": True, "forbid_unknown_fields": True}
"""For Structs that hold settings. As ``**FROZEN`` type checkers do not ask subclasses to repeat it."""


class ConfigStruct(msgspec.Struct, **FROZEN):
    """Base of settings: immutable, unknown keys refused."""


Description = msgspec.Meta
"""``Annotated[int, Description(description="…")]``: the text that the reference pages show for an option.

A `title` says in an error what is expected, where the names of types say it badly.
"""


class ConfigNode(msgspec.Struct):
    """A value of a YAML file, with the lines of its parts.

    Attributes:
        value: dicts, lists and scalars.
        name: the file, for messages.
        lines: 1-based line of each part, by its path of keys and indexes; 0 of what the command line overrides.
        inside: keys that lead to the value, where it stands alone on the command line.
        moved: keys of a part, and those that the user has written it with, where these are others.
        root: Folder that relative paths are below; empty for the working directory.
    """

    value: Any
    name: str = ""
    lines: dict[Path, int] = {}
    inside: Path = ()
    moved: tuple[Path, Path] = ((), ())
    root: str = ""

    def place(self, path: Path) -> str:
        """Return ``file:line`` of a part, or of the nearest part around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                line = self.lines[path[:end]]
                return f"{self.name}:{line}" if line else "command line"
        return self.name

    def keys(self, path: Path) -> str:
        """Return the keys of a part, from the top of the file."""
        here, written = self.moved
        return show((*written, *path[len(here) :]) if path[: len(here)] == here else path)

    def where(self, path: Path) -> str:
        """Return ``file:line: keys`` of a part, for messages."""
        return ": ".join(part for part in (self.place(path), self.keys(path)) if part)

    def error(self, path: Path, message: str) -> ConfigError:
        """Return an error at a part of the configuration."""
        where = self.where(path)
        return ConfigError(f"{where}: {message}" if where else message)

    def errors_at(
        self, *path: str | int, of: type[Exception] | tuple[type[Exception], ...] = ConfigError, keeps: bool = False
    ) -> AbstractContextManager[None]:
        """Place the errors of a ``with`` block at a part. See `errors_from`."""
        return errors_from(self.where(path), of=of, keeps=keeps)

    def at(self, *path: str | int) -> "ConfigNode":
        """Return the same source, seen from a part."""
        value = self.value
        for key in path:
            value = value[key]
        lines = {p[len(path) :]: line for p, line in self.lines.items() if p[: len(path)] == path}
        return _NodePart(value, self.name, lines, root=self.root, parent=self, prefix=path)


class _NodePart(ConfigNode):
    parent: ConfigNode | None = None
    prefix: Path = ()

    def keys(self, path: Path) -> str:
        assert self.parent
        return self.parent.keys(self.prefix + path)

    def place(self, path: Path) -> str:
        assert self.parent
        return self.parent.place(self.prefix + path)


def show(path: Path) -> str:
    """Return keys as they are written: ``("tag", "a-0", 1)`` → ``tag.a-0[1]``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


# --- reading ----------------------------------------------------------------------------------------------------------


MAX_BYTES = 16_000_000
"""Of a configuration. Lists of inputs that are longer are written as globs."""


def _read(path: str) -> bytes:
    """Return a configuration, with one byte more if it is too large. It may be a pipe, so it is read once."""
    store = store_of(path)
    if not store.is_local:
        return store.read(path, 0, MAX_BYTES + 1)
    with open(path, "rb") as stream:
        return stream.read(MAX_BYTES + 1)


def load(path: str) -> ConfigNode:
    """Read a YAML (or JSON) file; ``${NAME}`` in its texts is replaced from the environment, ``recipe:…`` by a path.

    Raises:
        ConfigError: if there is no such file, or it is not YAML.
    """
    try:
        data = _read(path)
        text = data[:MAX_BYTES].decode()
    except (DataError, Unreadable) as error:
        raise ConfigError(str(error)) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: expected a readable YAML file, got: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: expected a readable YAML file, got: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: expected a configuration of at most {MAX_BYTES:,} bytes, got a larger file")
    return parse(text, path)


def parse(text: str, name: str = "", inside: Path = ()) -> ConfigNode:
    """Read a text as `load` reads a file; these keys lead to it."""
    from toolkit.config.yaml_loader import read  # with PyYAML: a third of `toolkit --help`

    return read(text, name, inside)


TEXTS = ("by", "replacement")
"""Keys of texts that go into documents."""


def without_secret(text: str, path: Path, source: ConfigNode) -> str:
    """Return a text as it is; an address without what nobody else should see, which its store knows."""
    keys = (*source.inside, *path)
    if keys[:1] == ("about",):
        if has_secret(text):
            raise source.error(path, "expected an address that may be published, got one with a user or a signature")
        return text
    if keys and keys[-1] in TEXTS:
        return text
    return redact_url(text, carry=not (keys[:1] == ("ingest",) and "from" in keys))


def override(source: ConfigNode, assignment: str) -> None:
    """Apply ``key.key=value`` from the command line; the value is read as YAML.

    Lists are indexed by number (``tag.shape-0.0.short_chars=80``).

    Raises:
        ConfigError: if it is not of that form, or leads through something that has no keys.
    """
    keys, equals, value = assignment.partition("=")
    if not equals or not keys:
        raise ConfigError(f"expected key=value, got {redact_text(assignment)!r}")
    parsed = parse(value, f"command line: {keys}", tuple(keys.split("."))).value
    assignment = redact_text(assignment)
    place: Any = source.value if source.value is not None else {}
    source.value = place
    path: list[str | int] = []
    parts = keys.split(".")
    for part in parts:
        if isinstance(place, list):
            if not part.isdigit() or int(part) >= len(place):
                raise ConfigError(f"{assignment!r}: expected an index below {len(place)} of {show(tuple(path))}")
        elif not isinstance(place, dict):
            raise ConfigError(f"{assignment!r}: expected {show(tuple(path))} to have keys, got {place!r}")
        key = int(part) if isinstance(place, list) else part
        path.append(key)
        if len(path) == len(parts):
            place[key] = parsed
            break
        inner = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
        if isinstance(inner, str) and isinstance(place, dict) and path[0] == "tag":
            inner = place[key] = {"tagger": inner}  # `SET: TAGGER` is short for it
        place = inner
    for paths in [p for p in source.lines if p[: len(path)] == tuple(path)]:
        del source.lines[paths]
    source.lines[tuple(path)] = 0


# --- typing -----------------------------------------------------------------------------------------------------------


def convert(source: ConfigNode, type_: type[T], subject: str = "") -> T:
    """Return the value as a typed setting.

    Args:
        source: Source of the value.
        type_: a msgspec type.
        subject: named in errors about unknown options, e.g. ``tagger line_shape``.

    Raises:
        ConfigError: with file, line, key path, what was expected and a suggestion.
    """
    if source.root:
        from toolkit.config.root import locate_options

        locate_options(source, type_)
    try:
        return msgspec.convert(source.value, type_, dec_hook=_dec_hook)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at ")
        path = path_of(place.strip("`"))
        message = explain(text, path, source.value, type_, subject)
        if m := re.match(r"Object contains unknown field `(.+)`", text):
            raise ConfigError(
                f"{': '.join(p for p in (source.place((*path, m[1])), source.keys(path)) if p)}: {message}"
            ) from None
        raise source.error(path, message) from None


def _dec_hook(type_: type[Any], value: Any) -> Any:
    if issubclass(type_, Size | Duration):
        return type_.parse(value)
    raise NotImplementedError(type_)


def divide(source: ConfigNode, keys: Collection[str]) -> tuple[ConfigNode, ConfigNode]:
    """Return two parts of a mapping: with these keys, and the others. Both know their place in the file."""
    if not isinstance(source.value, dict):
        raise source.error((), f"expected a mapping, got {source.value!r}")
    inside, rest = source.at(), source.at()
    inside.value = {key: value for key, value in source.value.items() if key in keys}
    rest.value = {key: value for key, value in source.value.items() if key not in keys}
    return inside, rest


def split(source: ConfigNode, keys: Mapping[str, Any]) -> tuple[dict[str, Any], ConfigNode]:
    """Return the values of some keys, with defaults, and the rest."""
    inside, rest = divide(source, keys)
    return {**keys, **inside.value}, rest


def refuse_unknown(source: ConfigNode, class_: type[msgspec.Struct], more: Collection[str], subject: str) -> None:
    """Raise ConfigError for a key of neither the class nor the others."""
    options = sorted({*(f.encode_name for f in msgspec.structs.fields(class_)), *more})
    for key in source.value:
        if key not in options:
            hint = did_you_mean(key, options) or f"; known: {', '.join(options)}"
            raise source.error((key,), f"unknown option {key!r} of {subject}{hint}")


# --- the whole file ---------------------------------------------------------------------------------------------------


_SETS, _WHOLE, _DATA = (msgspec.Meta(extra={"stage": stage}) for stage in ("sets", "whole", "data"))
"""Marks of stages of a run: sets of each shard, sets of the whole dataset, documents and outputs."""


class Config(ConfigStruct):
    """The top level of a configuration file. Each command reads its own section; stages stand in the order of a run.

    Attributes:
        root: the folder that relative paths of the configuration are below, itself relative to the folder of the file;
            default: the working directory
        dataset: ROOT: documents are in ROOT/documents, attributes in ROOT/attributes
        documents: another root (or glob) of the documents, or {path, include, exclude}; with `format`, external files,
            read in place
        attributes: another root of the attributes
        edits: edits of texts by name, which `text: NAME` of sets, duplicates and mixes takes
        duplicate_ids: documents with equal source and id: refuse them before sets of the whole dataset or outputs are
            made, or tell them apart by their shards
        processes: number of shards that are worked on at a time; default: the cores that may be used
        executor: {type: local}, {type: ray}, or {type: in_process} for debugging
        storage: settings of stores: access to s3://, patience with hosts, stores of your own
        max_document_bytes: a longer line of documents is an error, which limits memory
        compression: the compression of the documents that ingest writes, and of their attributes; default: gzip
        max_disk: bytes that documents, attributes, intermediates and output may take on disk together
        ingest: inputs to make documents from: an entry, or several
        align: attribute sets joined from external values, by id
        tag: attribute sets and their taggers
        make: attribute sets and new documents, and the stages that make them
        dedup: attribute sets that say what is a duplicate of what
        sample: attribute sets that say which documents are in which sample
        annotate: attribute sets of what language models say of documents
        calibrate: attribute sets made of scores: ranks, and maps of scores to others
        train: models that are trained on labels
        mix: attributes, rules, output
        tokenize: the documents of the mix, or all, as tokens: path, tokenizer, eod, files
        about: the description of the dataset, for Croissant and the dataset card
    """

    root: str | None = None
    dataset: str | None = None
    documents: str | dict[str, Any] | None = None
    attributes: str | None = None
    edits: dict[str, Any] = {}
    duplicate_ids: Literal["refuse", "allow"] = "refuse"
    processes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    executor: dict[str, Any] = {}
    storage: StorageOptions = StorageOptions()
    max_document_bytes: Size = Size(100_000_000)
    compression: Literal["gzip", "zstd"] | None = None
    max_disk: Size | None = None
    ingest: Annotated[list[Any] | dict[str, Any], _DATA] = []
    align: Annotated[dict[str, Any], _SETS] = {}
    tag: Annotated[dict[str, Any], _SETS] = {}
    make: Annotated[dict[str, Any], _SETS] = {}
    dedup: Annotated[dict[str, Any], _WHOLE] = {}
    sample: Annotated[dict[str, Any], _WHOLE] = {}
    annotate: Annotated[dict[str, Any], _SETS] = {}
    calibrate: Annotated[dict[str, Any], _WHOLE] = {}
    train: dict[str, Any] = {}
    mix: Annotated[dict[str, Any], _DATA] = {}
    tokenize: Annotated[dict[str, Any], _DATA] = {}
    about: dict[str, Any] = {}


@functools.cache
def stages(*marks: str) -> tuple[str, ...]:
    """Return the stages in the order of a run: all, or by mark."""
    hints = get_type_hints(Config, include_extras=True)
    extras = {name: getattr(hint, "__metadata__", (Description(),))[0].extra or {} for name, hint in hints.items()}
    return tuple(name for name, extra in extras.items() if extra.get("stage") in (marks or ("sets", "whole", "data")))


def sets_before(section: str) -> list[str]:
    """Return the sections with sets readable by a section. A section other than a stage of sets reads those of all."""
    results = [*stages("sets", "whole")]
    return results[: results.index(section) if section in results else len(results)]


def load_source(path: str, overrides: list[str]) -> ConfigNode:
    """Return a configuration file with overrides from the command line.

    Raises:
        ConfigError: if it says nothing.
    """
    source = load(path)
    for assignment in overrides:
        override(source, assignment)
    if source.value is None:
        raise ConfigError(f"{path}: expected settings, got an empty file")
    return source


def plain(value: Any) -> Any:
    """Return settings as dicts, lists and scalars, as after writing and reading."""
    return msgspec.json.decode(
        msgspec.json.encode(value, enc_hook=lambda value: int(value) if value == int(value) else float(value))
    )


def dump(value: Any) -> str:
    """Return YAML for people, keys in their order."""
    import yaml

    return yaml.safe_dump(plain(value), sort_keys=False, allow_unicode=True, width=120)
