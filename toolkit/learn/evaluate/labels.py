"""Labels that lie in files: rows with an id and a value, or lines of fastText, which are found by their text."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from toolkit.align.join import hash_of
from toolkit.align.section import Entry
from toolkit.config import settings as config
from toolkit.config.scale import ScaleOption, check
from toolkit.config.settings import ConfigStruct, Description
from toolkit.data.documents import value_at
from toolkit.errors import ConfigError, DataError, amount
from toolkit.ingest import folders
from toolkit.ingest.reader import Input
from toolkit.ingest.reading.input_bytes import InputBytes
from toolkit.learn.evaluate.metrics import Array
from toolkit.learn.evaluate.predictions import Column, Match, joined, part_of, text_hash
from toolkit.storage.paths import lacking, stat
from toolkit.storage.reading import Lines
from toolkit.text.fasttext.labelled import parted


class LabelFiles(ConfigStruct, kw_only=True):
    """Files of labels: rows of ``jsonl``, ``csv``, ``parquet`` … as ``align`` reads them, or fastText's lines."""

    files: Annotated[list[str] | str, Description(description="paths, globs or folders")]
    format: Annotated[
        str | None, Description(description="a format of `align:`, or fasttext; default: by the names of the files")
    ] = None
    id: Annotated[
        str | None, Description(description="the column with the id of the document; default: that of the format")
    ] = None
    source: Annotated[
        str | None, Description(description="the column with its source, if ids alone are not unique")
    ] = None
    shard: Annotated[
        str | None, Description(description="the column with its shard, or `SHARD:ROW`, where ids repeat")
    ] = None
    value: Annotated[str, Description(description="the column with the label")] = "label"
    duplicates: Annotated[
        Literal["error", "first", "mean", "majority"],
        Description(
            description="if a document has several rows: an error, the first, their mean, or the most frequent value"
        ),
    ] = "error"
    scale: ScaleOption = None

    @property
    def is_untyped(self) -> bool:
        """Return whether the files have texts alone."""
        return self.format != "fasttext" and _entry(self).format in ("csv", "tsv")


def _entry(spec: LabelFiles) -> Entry:
    options: dict[str, Any] = {"values": [spec.value.partition(".")[0]]}
    options |= {"id": spec.id} if spec.id else {}
    options |= {name: column for name in ("source", "shard") if (column := getattr(spec, name))}
    common = {"from": spec.files, **({"format": spec.format} if spec.format else {})}
    return Entry(set="labels", common=common, options=options, place="--against")


def _as_numbers(texts: list[Any]) -> list[Any]:
    """Return texts as numbers, if all are some; an empty one is null."""
    values = [None if text == "" else text for text in texts]
    try:
        return [None if value is None else float(value) for value in values]
    except ValueError:
        return values


def read_spec(text: str) -> LabelFiles:
    """Return what a mapping on the command line says, ``{files: …, id: …, value: …}``.

    Raises:
        ConfigError: if it is none.
    """
    found = config.convert(config.parse(text, "--against"), LabelFiles, "files of labels")
    check(found.scale)
    return found


class Labels:
    """Labels by keys of 16 bytes: a hash of the id, with the shard that a row names, or of the text.

    Args:
        spec: the files.
        limit: bytes of a row, at most.

    Attributes:
        match: by what documents are found.
        by_shard: whether rows name the shards of their documents, which then have three keys each.

    Raises:
        ConfigError: if there is no file, or the rows are not as the spec says.
        DataError: if one cannot be read.
    """

    def __init__(self, spec: LabelFiles, limit: int) -> None:
        is_text = spec.format == "fasttext"
        self.match: Match = "text" if is_text else "source and id" if spec.source else "id"
        self.by_shard = False
        keys, values, names = bytearray(), list[Any](), list[str]()
        for key, value, name, shard in _of_fasttext(spec, limit) if is_text else _of_rows(spec, limit):
            self.by_shard |= shard is not None
            keys += key
            values.append(value)
            names.append(name)
        values = _as_numbers(values) if spec.is_untyped else values
        if all(value is None for value in values):
            got = f"none in {len(values):,} rows" if values else "no rows"
            raise ConfigError(f"--against {spec.files}: expected labels in {spec.value!r} (`value:`), got {got}")
        codes, self._keys = _numbered(bytes(keys))
        self._column = joined([part_of(_one_each(values, codes, names, spec), str(spec.files))], str(spec.files))

    def column(self, keys: bytes) -> tuple[Column, int]:
        """Return the labels of documents, by their keys; and how many labels are of none of these."""
        asked, codes = np.frombuffer(keys, dtype="S16").reshape(-1, 3 if self.by_shard else 1), self._keys
        near = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        same = codes[near] == asked
        found, places = same.any(axis=1), near[np.arange(len(asked)), same.argmax(axis=1)]
        nothing: Any = np.nan if self._column.values.dtype.kind == "f" else -1
        values = np.where(found, self._column.values[places], nothing)
        unused = len(codes) - len(np.unique(places[found]))
        return Column(self._column.kind, values, self._column.table), unused


def _numbered(keys: bytes) -> tuple[Array, Array]:
    """Return the number of each key among the different ones, and these, sorted."""
    table, codes = np.unique(np.frombuffer(keys, dtype="S16"), return_inverse=True)
    return codes, table


def _one_each(values: list[Any], codes: Array, names: list[str], spec: LabelFiles) -> list[Any]:
    """Return one value for each different key, in their order."""
    grouped: list[list[int]] = [[] for _ in range(int(codes.max()) + 1)]
    for place, code in enumerate(codes.tolist()):
        grouped[code].append(place)
    twice = [places for places in grouped if len(places) > 1]
    if twice and spec.duplicates == "error":
        first = min(twice)
        raise ConfigError(
            f"--against {spec.files}: expected one label for each document, got {amount(len(twice), 'document')} with "
            f"several: {names[first[0]]} and {names[first[1]]}; say `duplicates: first`, `mean` or `majority`, or "
            "which column has the shard, if ids repeat (`shard:`)"
        )
    return [_one([values[place] for place in places], spec) for places in grouped]


def _one(values: list[Any], spec: LabelFiles) -> Any:
    if len(values) == 1 or spec.duplicates == "first":
        return values[0]
    there = [value for value in values if value is not None]
    if not there:
        return None
    if spec.duplicates == "majority":
        counted = Counter(msgspec.json.encode(value) for value in there)
        return msgspec.json.decode(min(counted, key=lambda each: (-counted[each], each)))
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in there):
        raise ConfigError(f"--against {spec.files}: expected numbers with `duplicates: mean`, got {there[0]!r}")
    return sum(there) / len(there)


_Row = tuple[bytes, Any, str, str | None]
"""Key and label of a document, the place of the row, and the shard that it names."""


def _of_rows(spec: LabelFiles, limit: int) -> Iterator[_Row]:
    entry = _entry(spec)
    reader = entry.reader()
    for path in entry.inputs():
        found = stat(path)
        if found is None:
            raise DataError(f"expected a file with labels, got {lacking(path)}", path=path)
        for batch in reader.read_batches(Input(path, None, limit, None, InputBytes(path, found).open)):
            for draft in batch:
                value = value_at(msgspec.json.decode(msgspec.json.encode(draft.extra)), spec.value)
                place = f"{path}:{draft.number} (id {draft.id!r})"
                key = hash_of(draft.source if spec.source else None, draft.id or "", draft.shard)
                yield key, value, place, draft.shard


def _of_fasttext(spec: LabelFiles, limit: int) -> Iterator[_Row]:
    for path in _paths([spec.files] if isinstance(spec.files, str) else spec.files):
        with Lines(path, limit) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    found, text = parted(line)
                except UnicodeDecodeError as error:
                    raise DataError(f"expected UTF-8, got {error.reason}", path=path, line=number) from None
                except DataError as error:
                    raise DataError(error.message, path=path, line=number) from None
                yield text_hash(text), found[0] if len(found) == 1 else found, f"{path}:{number}", None


def _paths(patterns: Iterable[str]) -> list[str]:
    return [path for pattern in patterns for path, _, _ in folders.named(pattern, ())]
