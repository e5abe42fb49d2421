"""The check of an output, or of a copy of it without its manifest, by a lock."""

import hashlib
from functools import partial

from toolkit.errors import ToolkitError
from toolkit.inspect.targets import data_files
from toolkit.mix import lock, publish
from toolkit.mix.lock import Lock, LockedPart
from toolkit.storage.paths import below, exists, lacking
from toolkit.storage.reading import content_digest, stored_digest
from toolkit.storage.threads import for_each


def check(folder: str, wanted: Lock) -> list[str]:
    """Return in what an output differs from a lock, a line each.

    The manifest, if there is one, tells what it was made of; the files are read, and tell what it holds.
    """
    manifest = publish.load_manifest(folder)
    if manifest is not None:
        found = lock.lock_of(manifest, concatenates=not any(part.files for part in wanted.parts.values()))
        lines = [*lock.differences(wanted, found), *lock.part_differences(wanted, found)]
        parts = {name: part for name, part in wanted.parts.items() if found.parts.get(name) == part}
    else:
        lines, parts = [], wanted.parts
        known = {*parts, *(name for part in parts.values() for name in part.files)}
        lines += [
            f"part {name}: expected none, it is not in the lock" for name in data_files(folder) if name not in known
        ]
    for faults in for_each(partial(_faults, folder), parts.items()):
        lines += faults
    return lines


def _faults(folder: str, given: tuple[str, LockedPart]) -> list[str]:
    """Return what is wrong with the files of a part."""
    name, part = given
    faults = []
    for file, digest in (part.files or {name: part.sha256}).items():
        path = below(folder, file)
        if not exists(path):
            faults.append(f"part {name}: expected {path}, got {lacking(path)}")
            continue
        try:
            got = stored_digest(path, hashlib.sha256()) if part.files else content_digest(path, hashlib.sha256())
        except ToolkitError as error:
            faults.append(f"part {name}: {error}")
            continue
        if got != digest:
            what = "" if part.files else " (uncompressed)"
            faults.append(f"part {name}: expected {path} with the sha256 {digest}{what}, got {got}")
    return faults
