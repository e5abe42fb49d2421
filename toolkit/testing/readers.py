"""The contract suite of input formats."""

import functools
import gzip
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.documents import BAD_ROW
from toolkit.errors import ToolkitError
from toolkit.ingest.reader import READERS, Draft, Input, Reader
from toolkit.testing import plugin

MAX_BYTES = 1 << 20


def check_reader(
    reader: Reader | type[Reader],
    content: bytes,
    texts: Sequence[str],
    options: Mapping[str, Any] | None = None,
    *,
    new_process: bool = True,
) -> None:
    """Check the contract of an input format, on a small file's bytes.

    It says what it is; it takes the file from `Input`, compressed or not; it gives all documents, in order, the same
    again, in batches and in another process, with ids that depend neither on the run nor on the path; a file that is
    cut off, empty or something else is a DataError, or has fewer documents.

    Args:
        reader: a configured one, or a class.
        content: Bytes of a sound file, with at least two documents.
        texts: Texts of its documents, in order.
        options: Options of the class; those without a default must be here.
        new_process: True if it is also read in a process of its own, which takes a second.

    Raises:
        AssertionError: with what is expected, what was got, and what to do.
        MissingExtra: if a package that it needs is not installed.
    """
    result = plugin.configured(reader, options, {})
    name = plugin.name_of(result)
    plugin.check_configuration(result, READERS)
    plugin.expect(len(texts) > 1, f"{name}: expected a file with at least two documents, got {len(texts)}")
    drafts = check_documents(result, content, texts)
    check_fields(result, drafts)
    check_attributes(result, drafts)
    check_damage(result, content)
    if new_process:
        check_in_new_process((result, content))


def check_documents(reader: Reader, content: bytes, texts: Sequence[str]) -> list[Draft]:
    """Check the documents in order, in any compression.

    Return them.
    """
    name = plugin.name_of(reader)
    drafts = _read(reader, content)
    results = [draft.text for draft in drafts]
    plugin.expect(
        results == list(texts),
        f"{name}: expected {len(texts)} documents with the texts {_short(texts)}, got {len(results)}: "
        f"{_short(results)}; is the last one given when the file ends?",
    )
    fields = list(map(_fields, drafts))
    again = list(map(_fields, _read(reader, content, "elsewhere/other.name")))
    plugin.expect(
        again == fields,
        f"{name}: expected the same documents again, by another path, got {_different(again, fields)}; take nothing "
        "from the path, the time or the documents before, and keep nothing from one file to the next",
    )
    packed = list(map(_fields, _read(reader, gzip.compress(content, mtime=0))))
    plugin.expect(
        packed == fields, f"{name}: expected the same documents of the file in gzip, got others; read source.stream()"
    )
    ends = content.removesuffix(b"\n")
    if content.count(b"\n") == len(texts) and ends != content:  # a document a line
        unended = list(map(_fields, _read(reader, ends)))
        plugin.expect(
            unended == fields, f"{name}: expected the last document without a line feed behind it, too, got others"
        )
    batches = [_fields(draft) for batch in reader.read_batches(input_of(content)) for draft in batch]
    plugin.expect(
        batches == fields,
        f"{name}: expected of read_batches the documents that read gives, in order, got {_different(batches, fields)}",
    )
    return drafts


def check_fields(reader: Reader, drafts: Sequence[Draft]) -> None:
    """Check the documents' numbers, ids, and rows of JSON."""
    name = plugin.name_of(reader)
    numbers = [draft.number for draft in drafts]
    plugin.expect(
        numbers == sorted(set(numbers)) and numbers[:1] > [0],
        f"{name}: expected numbers that grow from 1, got {numbers[:9]}; Draft.number is the item's place in the input, "
        "and makes the id of a document without one",
    )
    ids = [(draft.source, draft.id) for draft in drafts if draft.id is not None]
    plugin.expect(
        len(set(ids)) == len(ids), f"{name}: expected an id of its own for each document, or None, got {ids[:9]}"
    )
    for draft in drafts:
        try:
            row = msgspec.json.encode(draft)
            msgspec.json.decode(row, type=Draft)
            msgspec.json.decode(draft.raw if draft.raw is not None else row, type=dict[str, msgspec.Raw])
        except BAD_ROW as error:
            raise AssertionError(
                f"{name}: expected drafts whose fields are of their types and can be written as JSON, got: {error}"
            ) from error


def check_attributes(reader: Reader, drafts: Sequence[Draft]) -> None:
    """Check documents for exactly the declared attributes, with their types."""
    name, types, sets = plugin.name_of(reader), reader.types(), reader.attribute_sets()
    plugin.expect(types or not sets, f"{name}: expected `TYPES` beside `attribute_sets`, got none")
    for draft in drafts:
        results = draft.attributes or {}
        plugin.expect(
            results.keys() == {*sets} and all(values.keys() == types.keys() for values in results.values()),
            f"{name}: expected the attributes {', '.join(types) or 'none'} of each document in the sets "
            f"{', '.join(sets) or 'none'}, got { {key: [*values] for key, values in results.items()} }",
        )
        for key, value in (item for values in results.values() for item in values.items()):
            try:
                msgspec.json.decode(value, type=schema.to_python(types[key]))
            except msgspec.DecodeError as error:
                raise AssertionError(f"{name}: expected {key} of its type in TYPES, {types[key]}: {error}") from error


def check_damage(reader: Reader, content: bytes) -> None:
    """Check damaged files.

    One that is cut off, empty or something else is a DataError, or has fewer documents.
    """
    name = plugin.name_of(reader)
    damaged = {
        "an empty file": b"",
        "a file that is cut off": content[: len(content) // 2],
        "a file of zeros": bytes(100),
        "a file of other bytes": bytes(range(256)) * 4,
        "JSON": b'[{"a":\n',
    }
    for about, data in damaged.items():
        try:
            _read(reader, data)
        except ToolkitError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{name}: expected a DataError (or source.bad) for {about}, got {type(error).__name__}: {error}; "
                "source.items turns errors of libraries into bad items"
            ) from error


def input_of(content: bytes, path: str = "folder/input") -> Input:
    """Return the bytes of a file as a reader sees them; there is no file at the path."""
    return Input(path, "source", MAX_BYTES, None, functools.partial(io.BytesIO, content))


def check_in_new_process(*cases: tuple[Reader, bytes]) -> None:
    """Compare the documents of readers with those in another process."""
    elsewhere = plugin.in_new_process(
        fields_of,
        [(plugin.reference_of(type(reader)), plugin.options_of(reader), content) for reader, content in cases],
    )
    for (reader, content), results in zip(cases, elsewhere, strict=True):
        plugin.expect(
            results == list(map(_fields, _read(reader, content))),
            f"{plugin.name_of(reader)}: expected the same documents in another process, got others; ids and dates come "
            "from the input, not from the run: no hash(), no time, no random numbers",
        )


def fields_of(cases: Sequence[tuple[str, Mapping[str, Any], bytes]]) -> list[list[dict[str, Any]]]:
    """Return the documents of a file's bytes by several readers.

    Readers come as names and options.
    """
    results = []
    for reference, options, content in cases:
        reader = plugin.remade(READERS, reference, options)
        results.append(list(map(_fields, _read(reader, content))))
    return results


def _read(reader: Reader, content: bytes, path: str = "folder/input") -> list[Draft]:
    try:
        return list(reader.read(input_of(content, path)))
    except FileNotFoundError as error:
        raise AssertionError(
            f"{plugin.name_of(reader)}: expected the bytes of source.stream() or source.lines() to be read, got "
            f"{error}; inputs are compressed, in buckets and on the web, too"
        ) from error


def _fields(draft: Draft) -> dict[str, Any]:
    """Return the fields of a draft as plain data."""
    raw = None if draft.raw is None else draft.raw.decode()
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.structs.replace(draft, raw=None)))
    return fields | {"raw": raw}


def _different(results: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]]) -> str:
    """Return the first different fields."""
    for got, expected in zip(results, references, strict=False):
        if fields := [name for name in expected if got[name] != expected[name]]:
            return f"{fields[0]} {got[fields[0]]!r} and {expected[fields[0]]!r}"
    return f"{len(results)} and {len(references)} documents"


def _short(texts: Sequence[str]) -> str:
    return ", ".join(repr(text[:30]) for text in texts[:5])
