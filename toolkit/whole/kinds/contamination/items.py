"""The items of evaluations that documents are held against: files, and the texts of each item in them."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import msgspec
import xxhash

from toolkit.data.documents import value_at
from toolkit.data.tables.footers import open_parquet
from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError, ToolkitError, did_you_mean
from toolkit.storage.paths import expand, is_folder, is_glob, join, lacking, list_files, not_in, stat, strip_suffix
from toolkit.storage.reading import READ, Decompressed, Lines, stored_digest

MAX_ITEM = 100_000_000
"""Bytes of an item's row, or text, at most."""

_ROWS = tuple(f".{form}{compressed}" for form in ("jsonl", "json", "ndjson") for compressed in ("", ".gz", ".zst"))
_TEXT_ENDS = (".gz", ".zst", ".txt", ".text", ".md")


class ItemsFile(NamedTuple):
    """A file of items.

    Attributes:
        benchmark: that they belong to.
        path: of the file.
        form: rows of JSON, a Parquet file, or a text that is one item.
        item: the name of that one.
    """

    benchmark: str
    path: str
    form: Literal["rows", "columns", "text"]
    item: str = ""


class Item(NamedTuple):
    """An item: its benchmark, its name there, its texts."""

    benchmark: str
    name: str
    texts: list[str]


def files_of(against: Sequence[str]) -> list[ItemsFile]:
    """Return the files that paths, globs and folders stand for, in their order; those of each sorted.

    The rows of a file belong to a benchmark that is called as the file; texts to one that is called as their folder.

    Raises:
        ConfigError: if there are none for one of them, or two benchmarks have one name.
    """
    found: dict[str, ItemsFile] = {}
    for each in against:
        folder = not is_glob(each) and is_folder(each)
        paths = sorted(join(each, name) for name in list_files(each)) if folder else sorted(p for p, _ in expand(each))
        if not paths:
            raise ConfigError(f"against: expected files of items, got none for {each}")
        for path in paths:
            relative = os.path.relpath(path, each) if folder else os.path.basename(path)
            top = each.rstrip("/") if folder else os.path.dirname(path)
            found.setdefault(path, _file(path, relative, os.path.basename(top)))
    _check_names(list(found.values()))
    return list(found.values())


def _file(path: str, relative: str, folder: str) -> ItemsFile:
    if path.endswith(".parquet"):
        return ItemsFile(strip_suffix(os.path.basename(path), (".parquet",)), path, "columns")
    if path.endswith(_ROWS):
        return ItemsFile(strip_suffix(os.path.basename(path), sorted(_ROWS, key=len, reverse=True)), path, "rows")
    name = relative
    for end in _TEXT_ENDS:
        name = name.removesuffix(end)
    return ItemsFile(folder or "items", path, "text", name)


def _check_names(found: list[ItemsFile]) -> None:
    rows = Counter(each.benchmark for each in found if each.form != "text")
    for name, times in rows.items():
        if times > 1:
            paths = [each.path for each in found if each.benchmark == name]
            raise ConfigError(
                f"against: expected a name of its own for each benchmark, got {name!r} for {paths[0]} and {paths[1]}; "
                "rename a file, or give them as two sets"
            )


def digest_of(files: Sequence[ItemsFile]) -> str:
    """Return a digest of names and contents of the files."""
    digest = xxhash.xxh3_128()
    for each in files:
        try:
            content = stored_digest(each.path, xxhash.xxh3_128())
        except (ToolkitError, FileNotFoundError):
            if stat(each.path) is None:
                what = f"against: {each.path}: expected a file of items, got {lacking(each.path)}"
                raise ConfigError(what + (not_in(each.path) or "; put it back, or leave it out")) from None
            raise
        digest.update(msgspec.json.encode([each.benchmark, each.item, content]))
    return digest.hexdigest()


def items_of(files: Sequence[ItemsFile], fields: Sequence[str], id_field: str | None) -> Iterator[Item]:
    """Yield the items of files, in order.

    Args:
        files: of items.
        fields: whose texts, or lists of texts, are looked for; dotted paths. Null, and an empty list, is nothing.
        id_field: that names the item; by default its row, from 1.

    Raises:
        DataError: naming the row in which a field is missing, or no text.
        MissingExtra: for Parquet without its package.
    """
    for each in files:
        if each.form == "text":
            yield Item(each.benchmark, each.item, [_text(each.path)])
            continue
        rows = _rows(each.path) if each.form == "rows" else _parquet(each.path, [*fields, *filter(None, [id_field])])
        for number, row in enumerate(rows, 1):
            texts = [text for field in fields for text in _texts(row, field, each.path, number)]
            name = number if id_field is None else value_at(row, id_field)
            if not isinstance(name, str | int):
                raise DataError(
                    f"expected a text or a number at {id_field!r}, got {name!r}", path=each.path, line=number
                )
            yield Item(each.benchmark, str(name), texts)


def _text(path: str) -> str:
    data = b""
    with Decompressed(path) as stream:
        while block := stream.read(READ):
            data += block
            if len(data) > MAX_ITEM:
                raise DataError(f"expected a text of at most {MAX_ITEM:,} bytes, got a longer one", path=path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"expected a text in UTF-8, got {error}", path=path) from None


def _rows(path: str) -> Iterator[Any]:
    with Lines(path, MAX_ITEM, fixed=True) as lines:
        for line in lines:
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(
                    f"expected an item as a JSON object, got {error}", path=path, line=lines.number
                ) from None
            if not isinstance(row, dict):
                got = type(row).__name__
                raise DataError(f"expected an item as a JSON object, got a {got}", path=path, line=lines.number)
            yield row


def _parquet(path: str, fields: Sequence[str]) -> Iterator[Any]:
    if find_spec("pyarrow") is None:
        raise missing_extra("parquet", "Parquet files", "pyarrow")
    import pyarrow as pa

    try:
        with open_parquet(path) as source:
            names = source.schema_arrow.names
            wanted = list(dict.fromkeys(field.partition(".")[0] for field in fields))
            if missing := [name for name in wanted if name not in names]:
                raise DataError(_lacks(missing[0], names), path=path)
            for batch in source.iter_batches(columns=wanted):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"expected a sound Parquet file, got: {error}", path=path) from None


def _texts(row: Any, field: str, path: str, number: int) -> list[str]:
    if field.partition(".")[0] not in row:
        raise DataError(_lacks(field, row), path=path, line=number)
    value = value_at(row, field)
    found = value if isinstance(value, list) else [value]
    texts = [each for each in found if each is not None]
    if wrong := [each for each in texts if not isinstance(each, str)]:
        message = f"expected a text, or a list of texts, at {field!r}, got {str(wrong[0])[:80]!r}"
        raise DataError(message, path=path, line=number)
    return texts


def _lacks(field: str, names: Any) -> str:
    hint = did_you_mean(field, names) or f"; there are: {', '.join(map(str, names))}"
    return f"expected an item with the field {field!r}, got none{hint}; say which have the texts: `fields: [NAME, …]`"
