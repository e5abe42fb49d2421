"""Files as they are described: their media types, globs that match them and no others, notes about their names."""

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from glob import escape
from urllib.parse import quote

from toolkit.inspect.describe.facts import Group
from toolkit.storage.paths import strip_suffix

MEDIA_TYPES = {".jsonl": "application/jsonlines", ".json": "application/jsonlines", ".txt": "text/plain"}
MEDIA_TYPES |= {".parquet": "application/x-parquet", ".zst": "application/zstd", ".zstd": "application/zstd"}
"""By the last suffix, that of gzip taken off: readers find gzip by itself."""

_ANY_TYPE = "application/octet-stream"


def media_type(path: str) -> str:
    suffix = os.path.splitext(path.removesuffix(".gz"))[1]
    return MEDIA_TYPES.get(suffix or (".jsonl" if path.endswith(".gz") else ""), _ANY_TYPE)


def matches(path: str, pattern: str) -> bool:
    """Return whether a path matches, as mlcroissant does it: ``*`` spans folders."""
    return fnmatch.fnmatchcase(path, pattern)


def matching(paths: Iterable[str], globs: Iterable[str]) -> list[str]:
    """Return the paths that some glob matches."""
    listed = list(globs)
    plain = {glob for glob in listed if not re.search(r"[*?\[]", glob)}
    others = [glob for glob in listed if glob not in plain]
    return [path for path in paths if path in plain or any(matches(path, glob) for glob in others)]


def group_of(name: str, description: str, paths: Sequence[str], globs: Iterable[str], there: Sequence[str]) -> Group:
    """Return files as globs, if these match no others of those that are there; else each by its path."""
    includes = [glob for glob in globs if any(matches(path, glob) for path in paths)]
    if set(matching(there, includes)) != set(paths):
        includes = [escape(path) for path in paths]
    types = {media_type(path) for path in paths}
    return Group(name, description, types.pop() if len(types) == 1 else _ANY_TYPE, includes, list(paths))


def suffix_of(paths: Sequence[str], suffixes: Sequence[str]) -> str:
    """Return the suffix that all paths have; empty if they have several."""
    found = suffixes_of(paths, suffixes)
    return found[0] if len(found) == 1 else ""


def suffixes_of(paths: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return the suffixes, out of some, that paths have, in the order of the paths."""
    return list(dict.fromkeys(path[len(strip_suffix(path, suffixes)) :] for path in paths))


def not_read(what: str, paths: Sequence[str]) -> str:
    """Return why there is no record set of these files, by the first one that is not read."""
    others = [path for path in paths if media_type(path) != MEDIA_TYPES[".jsonl"]]
    more = f" and {len(others) - 1:,} more" if others[1:] else ""
    return (
        f"{what}: no record set, because Croissant's reader does not take files such as {others[0]}{more}; they are "
        "listed"
    )


def odd_paths_note(paths: Iterable[str]) -> list[str]:
    """Return a note that a path is no URL, if one is not: readers take ``contentUrl`` for a path as it is."""
    odd = [path for path in paths if quote(path, safe="/~!$&'()*+,;=:@") != path]
    more = f" (and {len(odd) - 1:,} more)" if odd[1:] else ""
    text = "has signs that a URL may not have; Croissant's reader wants it as it is, other programs may not take it"
    return [f"{odd[0]}: its path {text}{more}"] if odd else []
