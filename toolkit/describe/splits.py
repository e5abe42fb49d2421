"""Splits by hash of the id: files beside the data that say for each row of a data file what split it is in.

``splits/<data file>.split.gz`` has a line ``{"id": …, "split": …}`` for each row, in the same order. Which split a
document is in depends on its id and the shares alone, so it stays the same when other documents come and go.
"""

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import STR
from toolkit.describe.model import DataFile, ExampleRow, Facts, PathField, RecordField, RecordType, Split
from toolkit.describe.record_types import MEDIA_TYPES, apart, group_of, media_type, suffix_of
from toolkit.errors import ConfigError, DataError
from toolkit.execution.executors import Report
from toolkit.execution.progress import Position
from toolkit.inspect.documents import text_at
from toolkit.inspect.targets import Format
from toolkit.mix.settings import split_of
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join, list_files, remove_with_folders
from toolkit.storage.reading import Lines
from toolkit.storage.stores.local.scratch import scratch

FOLDER = "splits"
SUFFIX = ".split.gz"
_SUFFIXES = (*SHARD_SUFFIXES, ".parquet")
_SPLIT = (MEDIA_TYPES[".jsonl"], MEDIA_TYPES[".parquet"])
REFERENCES = "splits/name"
"""The field that lists the splits."""


class SplitJob(ConfigStruct):
    """A data file to split by rows.

    Attributes:
        path: Path of the file.
        target: Target of the split file; None to write it nowhere, for its checksum.
        id: keys that lead to a row's id; rows without are told apart by all their bytes.
        format: Format of a file of Parquet, which reads its rows; None for JSON Lines.
        shares: Shares of the splits, in order.
    """

    path: str
    target: str | None
    id: list[str]
    shares: dict[str, float]
    max_bytes: int
    examples: int = 0
    format: Format | None = None


class SplitFile(NamedTuple):
    """A split file: stored bytes, their checksum, documents by split, the first rows."""

    size: int
    sha256: str
    documents: dict[str, int]
    examples: list[dict[str, Any]]


class _SplitRow(msgspec.Struct):
    id: str | None
    split: str


def write(work: SplitJob, report: Report) -> SplitFile:
    """Write a split file."""
    if work.target is None:
        with scratch() as folder:
            return write(msgspec.structs.replace(work, target=join(folder, "rows.gz")), report)
    counts = dict.fromkeys(work.shares, 0)
    examples: list[dict[str, Any]] = []
    with RowOutput(work.target) as out, contextlib.closing(_identified(work, report)) as rows:
        for id_, data in rows:
            row = _SplitRow(id_, split_of(data if id_ is None else id_.encode(), work.shares))
            counts[row.split] += 1
            out.write_row(msgspec.json.encode(row))
            if len(examples) < work.examples:
                examples.append(msgspec.to_builtins(row))
    return SplitFile(out.stat.size, out.sha256, counts, examples)


def _identified(work: SplitJob, report: Report) -> Generator[tuple[str | None, bytes], None, None]:
    """Yield the id of each row, or None, and its bytes."""
    if work.format is None:
        with Lines(work.path, work.max_bytes) as lines:
            position = Position(report, lines.stored)
            for line in lines:
                try:
                    row_id = text_at(msgspec.Raw(line), work.id) if work.id else None
                except BAD_ROW as error:
                    message = f"expected an id at {'.'.join(work.id)}, got: {error}"
                    raise DataError(message, path=work.path, line=lines.number) from None
                yield row_id, line
                position(1)
        return
    with contextlib.closing(work.format.writer().read_rows(work.path)) as rows:
        for row in rows:
            id_: Any = row
            for key in work.id:
                id_ = id_.get(key) if isinstance(id_, dict) else None
            yield (None, msgspec.json.encode(row, enc_hook=repr)) if id_ is None else (str(id_), b"")
            report(1, 0)


def plan(facts: Facts, shares: dict[str, float], max_bytes: int, examples: int, *, dry_run: bool) -> list[SplitJob]:
    """Return the files to split.

    Raises:
        ConfigError: if the data have no rows that can be split.
    """
    group = facts.groups[0]
    if group.media_type not in _SPLIT or not facts.records:
        other = next((path for path in group.paths if media_type(path) not in _SPLIT), "none")
        raise ConfigError(
            "about.splits: expected data in JSON Lines or Parquet that Croissant's reader takes (.jsonl, .jsonl.gz, "
            f".parquet), got {other}; leave the splits out: about.splits={{}}"
        )
    targets = [join(facts.root, path) for path in _split_paths(facts)]
    return [
        SplitJob(
            path=join(facts.root, path),
            target=None if dry_run else target,
            id=list(facts.id_keys),
            shares=shares,
            max_bytes=max_bytes * 2,
            examples=examples,
            format=facts.format if group.media_type == MEDIA_TYPES[".parquet"] else None,
        )
        for path, target in zip(group.paths, targets, strict=True)
    ]


def _split_paths(facts: Facts) -> list[str]:
    """Return the paths of the split files of all data files."""
    paths = facts.groups[0].paths
    suffix = suffix_of(paths, _SUFFIXES)
    return [join(FOLDER, path.removeprefix(facts.prefix).removesuffix(suffix) + SUFFIX) for path in paths]


def added(facts: Facts, shares: dict[str, float], split_files: Sequence[SplitFile]) -> Facts:
    """Return the facts with the splits."""
    paths = _split_paths(facts)
    present = [*(path for path in list_files(facts.root, hidden=True) if not path.startswith(FOLDER + "/")), *paths]
    globs = [f"{FOLDER}/*{SUFFIX}"]
    media = MEDIA_TYPES[".jsonl"]
    group = group_of(
        "splits-files", "The split of each document, one a line, in the order of the data.", paths, globs, present
    )
    group = msgspec.structs.replace(group, media_type=media)
    record = RecordType(
        name="document-splits",
        description="The split of each document; file and row are those of the document.",
        group=group.name,
        key=["file", "row"],
        places=_places(rf"^{FOLDER}/(.+)\.split\.gz$"),
        fields=[
            RecordField("id", "id", (), STR, "The id of the document; null if it has none."),
            RecordField("split", "split", (), STR, "The split of the document, by hash of its id.", REFERENCES),
        ],
        examples=[
            ExampleRow(path, i, row)
            for path, item in zip(paths, split_files, strict=True)
            for i, row in enumerate(item.examples)
        ],
    )
    records = list(facts.records)
    if records and all(place.pattern for place in records[0].places):  # none says which row it is
        suffix = suffix_of(facts.groups[0].paths, _SUFFIXES).replace(".", r"\.")
        more = apart(_places(f"^(.+){suffix}$"), records[0].fields)
        own = [
            msgspec.structs.replace(place, references="") for place in records[0].places
        ]  # mlcroissant changes `file`
        records[0] = msgspec.structs.replace(records[0], places=[*own, *more])
    files = [DataFile(path, item.size, item.sha256, media) for path, item in zip(paths, split_files, strict=True)]
    results = [Split(name, share, sum(item.documents[name] for item in split_files)) for name, share in shares.items()]
    return msgspec.structs.replace(
        facts, groups=[*facts.groups, group], files=[*facts.files, *files], records=[*records, record], splits=results
    )


def _places(pattern: str) -> list[PathField]:
    return [
        PathField("file", "The data file without its suffix; the same for documents and their splits.", pattern),
        PathField("row", "Line in the file, from 0; the same for documents and their splits."),
    ]


def remove_others(root: str, facts: Facts) -> None:
    """Delete split files without a description."""
    described = {file.path for file in facts.files}
    for relative in list(list_files(join(root, FOLDER))):
        path = join(FOLDER, relative)
        if path not in described and path.endswith(SUFFIX):
            remove_with_folders(join(root, path), root)
