"""Checks of an output, a release or a dataset as a whole: checksums, numbers of parts, manifest, lock."""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from typing import IO

from toolkit.data import line_index, row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DAMAGED, DataError, ToolkitError
from toolkit.exporting.shard import raw_file_of
from toolkit.inspect.targets import as_part, data_files, is_checksum_file, is_description
from toolkit.mix import lock, publication
from toolkit.mix.lock import Lock, LockedPart
from toolkit.records import identity, ingested
from toolkit.records.ingested import lost_shards
from toolkit.storage.compression import compression_in, decompress
from toolkit.storage.paths import absolute, below, exists, join, list_files, missing_reason, stat
from toolkit.storage.reading import Lines, content_digest, open_stored, stored_digest
from toolkit.storage.threads import for_each
from toolkit.text.languages.labels import label_of_path
from toolkit.validate import checksums
from toolkit.validate.file_checks import Findings

_OF = (".jsonl", ".json", ".gz", ".zst", ".zstd")

_MAGIC_BYTES = 16


def check(path: str, first: int | None, limit: int) -> list[str]:
    """Return the faults of a line index: other lines than its file has, or another content.

    Args:
        path: Path of the index.
        first: only so many lines are looked at; None for all.
        limit: bytes of a line, at most.
    """
    result = Findings()
    if not exists(path):
        return [f"{path}: expected an index, got none"]
    base = path.removesuffix(line_index.SUFFIX)
    of = next((base + suffix for suffix in _OF if exists(base + suffix)), None) or raw_file_of(absolute(path))
    if of is None:
        return [f"{path}: expected the file that it is of beside it ({base}{f' or {base}'.join(_OF)}), got none"]
    if not exists(of):
        return [f"{path}: expected the raw file that it is of, {of}, got {missing_reason(of)}"]
    pairs = islice(line_index.read(path), first)
    try:
        with open_stored(of) as stream:
            compression = compression_in(stream.read(_MAGIC_BYTES))
            stream.seek(0)
            if compression:
                findings = _of_members(pairs, stream, compression, limit, whole=first is None)
            else:
                findings = _of_lines(pairs, islice(_lines(stream, limit), first))
            for number, finding in findings:
                result.add(f"{path}: line {number} of {of}: {finding}")
    except ToolkitError as error:
        result.add(error)
    return result.as_list(path)


def _of_lines(pairs: Iterable[tuple[int, int]], lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
    """Yield the differences, with the number of the line."""
    for number, (pair, line) in enumerate(zip_longest(pairs, lines), 1):
        if line is None:
            yield number, f"expected no entry, because there is no such line, got {pair}"
            continue
        is_ = line[0], len(line[1])
        if pair != is_:
            chars = len(line[1].decode("utf-8", "replace"))
            by_chars = pair is not None and pair[1] == chars
            hint = "; it counts characters, as Modalities did up to 0.3.2; make it again" if by_chars else ""
            yield number, f"expected {is_}, got {pair or 'no entry'}{hint}"


def _of_members(
    pairs: Iterable[tuple[int, int]], stream: IO[bytes], compression: str, limit: int, *, whole: bool
) -> Iterator[tuple[int, str]]:
    """Yield the first wrong entry. The offsets of later ones are unknown then."""
    at, number = 0, 0
    for number, (offset, length) in enumerate(pairs, 1):
        if offset != at:
            yield number, f"expected the offset {at}, where the one before ends, got {offset}"
            return
        if not _is_line(stream.read(min(length, limit)), compression):
            yield number, f"expected {length} bytes at {offset} to be a {compression} member with one line, got others"
            return
        at += length
    if whole and stream.read(1):
        yield number + 1, f"expected an entry for what is at {at}, got none"


def _is_line(member: bytes, compression: str) -> bool:
    try:
        data = decompress(member, compression)
    except (zlib.error, EOFError, ValueError, OSError):
        return False
    return data.find(b"\n") == len(data) - 1


def _lines(stream: IO[bytes], limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of each line, without its end."""
    offset = 0
    while line := stream.readline(limit + 1):
        if len(line) > limit:
            raise DataError(f"expected lines of at most {limit} bytes, got a longer one at byte {offset}")
        yield offset, line.removesuffix(b"\n")
        offset += len(line)


def extra_files(dataset: Dataset, set_name: str, shards: Iterable[str]) -> list[str]:
    """Return the files of a set without a shard."""
    ways = (dataset.attribute_path, dataset.attribute_table)
    expected = {way(set_name, shard) for shard in shards for way in ways}
    folder = join(dataset.attributes, set_name)
    return [path for path in list_files(folder) if join(folder, path) not in expected]


def check_ingested(dataset: Dataset, shards: Sequence[str]) -> list[str]:
    """Return findings about missing shards, and differences from ingest's records."""
    inputs = ingested.summary(dataset)
    deleted = {shard for input_ in inputs.inputs.values() if input_.deleted for shard in input_.shards}
    lost = lost_shards(dataset, shards, inputs.inputs.items())
    findings = [*inputs.damaged, *(fault for shard, fault in lost.items() if shard not in deleted)]
    for record in ingested.load_undamaged(dataset):
        for shard, output in record.shards.items() if not record.deleted else ():
            state = row_index.current(dataset, shard)
            if state and state.content != output.content:
                expected = "expected the documents as they were ingested, they were changed"
                findings.append(f"{dataset.shard_path(shard)}: {expected}")
    return findings


def duplicates(dataset: Dataset, shards: list[str]) -> Iterator[Callable[[], DataError]]:
    """Yield a function for the error of each repeated (source, id). It may be in another shard.

    Shards without index (those in which something else was found) are left out.
    """
    states = {shard: state for shard in shards if (state := row_index.current(dataset, shard))}
    indexed = [identity.IndexedDocuments(dataset, shard, state.rows) for shard, state in states.items()]
    for duplicate in identity.find_duplicate_ids(indexed) if dataset.duplicate_ids == "refuse" else ():
        yield partial(duplicate.error, indexed)


def check_lock(folder: str, expected: Lock) -> list[str]:
    """Return the differences of an output from a lock, a line each.

    The manifest, if there is one, tells what it was made of; the files are read, and tell what it holds.
    """
    manifest = publication.load_manifest(folder)
    if manifest is not None:
        result = lock.lock_of(manifest, concatenates=not any(part.files for part in expected.parts.values()))
        lines = [*lock.differences(expected, result), *lock.part_differences(expected, result)]
        parts = {name: part for name, part in expected.parts.items() if result.parts.get(name) == part}
    else:
        lines, parts = [], expected.parts
        names = {*parts, *(name for part in parts.values() for name in part.files)}
        lines += [
            f"part {name}: expected none, it is not in the lock" for name in data_files(folder) if name not in names
        ]
    for faults in for_each(partial(_faults, folder), parts.items()):
        lines += faults
    return lines


def _faults(folder: str, item: tuple[str, LockedPart]) -> list[str]:
    """Return the faults of a part's files."""
    name, part = item
    faults = []
    for file, digest in (part.files or {name: part.sha256}).items():
        path = below(folder, file)
        if not exists(path):
            faults.append(f"part {name}: expected {path}, got {missing_reason(path)}")
            continue
        try:
            got = stored_digest(path, hashlib.sha256()) if part.files else content_digest(path, hashlib.sha256())
        except ToolkitError as error:
            faults.append(f"part {name}: {error}")
            continue
        if got != digest:
            note = "" if part.files else " (uncompressed)"
            faults.append(f"part {name}: expected {path} with the sha256 {digest}{note}, got {got}")
    return faults


def check_folder(folder: str) -> list[str]:
    """Return findings about an output as a whole: checksums, parts, manifest."""
    manifest = publication.load_manifest(folder)
    findings = list(_check_checksums(folder, has_manifest=manifest is not None))
    if manifest is None:  # which lists the parts, and knows labels that look like parts (`en_part_1`) from those
        findings += _check_numbers(folder)
    if exists(path := publication.intent_path(folder)):
        findings.append(f"{path}: expected a finished publication; run `toolkit mix` again to finish it")
    return [*findings, *(_check_manifest(folder, manifest) if manifest else ())]


def _check_checksums(folder: str, *, has_manifest: bool) -> Iterator[str]:
    """Check checksum files. A manifest lists them, and is checked itself."""
    listed: set[str] = set()
    folders: set[str] = set()
    for relative in list_files(folder):
        if not is_checksum_file(relative):
            continue
        path, base = join(folder, relative), os.path.dirname(relative)
        folders.add(base)
        with Lines(path, 1 << 20) as lines:
            for line in lines:
                parsed = checksums.parsed(line.decode(errors="replace"))
                if parsed is None:
                    yield f"{path}:{lines.number}: expected a checksum and a file name, got {line[:80]!r}"
                    continue
                digest, name = parsed
                target = os.path.normpath(join(base, name))
                listed.add(target)
                file = join(folder, target)
                if not exists(file):
                    yield f"{path}:{lines.number}: expected the file {name}, got {missing_reason(file)}; {DAMAGED}"
                elif (got := checksums.stored(file, digest)) != digest:
                    expected = f"expected the checksum {digest} of {path}:{lines.number}, got {got}"
                    yield f"{file}: {expected}; {DAMAGED}"
    bare: set[str] = set()
    for name in data_files(folder):
        base = os.path.dirname(name)
        if base in folders and name not in listed:
            yield f"{join(folder, name)}: expected a checksum file that lists it, got none"
        elif base not in folders | bare and _is_of_label(name) and not has_manifest:
            bare.add(base)
            yield f"{join(folder, base)}: expected a checksum file that lists {os.path.basename(name)}, got none"


def _is_of_label(path: str) -> bool:
    """Return true for a file in its label's folder, as in releases.

    Parts of releases are counted from 1, without zeros before the number; others (CulturaX) have no checksums.
    """
    if "_part_0" in os.path.basename(path):
        return False
    folder = os.path.basename(os.path.dirname(path))
    label = label_of_path(path)
    return label is not None and folder.removesuffix("_meta") == label and os.path.basename(path).startswith(label)


def _check_numbers(folder: str) -> Iterator[str]:
    parts: dict[tuple[str, str], list[int | None]] = {}
    for path in data_files(folder):
        match = as_part(path)
        if not match:
            continue
        parts.setdefault((match["stem"], match["suffix"]), []).append(int(match["number"]) if match["number"] else None)
    for (stem, suffix), numbers in sorted(parts.items()):
        numbered = sorted(n for n in numbers if n is not None)
        if None in numbers and numbered:
            yield f"{join(folder, stem + suffix)}: expected one file or numbered parts, got both"
        missing = sorted(set(range(1, (numbered or [0])[-1] + 1)) - set(numbered))
        if missing:
            path = f"{join(folder, stem)}_part_{missing[0]}{suffix}"
            yield f"{path}: expected the parts 1 to {numbered[-1]}, got none of this number"


def _check_manifest(folder: str, manifest: publication.Manifest) -> Iterator[str]:
    paths = manifest.paths
    for file in (file for part in manifest.parts for file in part.files):
        path = below(folder, file.path)
        result = stat(path)
        if result is None:
            yield f"{path}: expected a part that the manifest lists, got {missing_reason(path)}; {DAMAGED}"
        elif result.size != file.size:
            yield f"{path}: expected {file.size} bytes by the manifest, got {result.size}; {DAMAGED}"
        elif (got := stored_digest(path, hashlib.sha256())) != file.sha256:
            yield f"{path}: expected sha256 {file.sha256} by the manifest, got {got}; {DAMAGED}"
    for name, text in manifest.files.items():
        path = below(folder, name)
        if not exists(path):
            yield f"{path}: expected a checksum file that the manifest lists, got {missing_reason(path)}; {DAMAGED}"
        else:
            with open_stored(path) as stream:
                if stream.read() != text.encode():
                    yield f"{path}: expected the checksums of the manifest, got others; {DAMAGED}"
    for name in list_files(folder):
        if name not in paths and not is_description(name):
            yield f"{join(folder, name)}: expected only files that the manifest lists, got another"
