"""Common Crawl by the name of a crawl: which files it has, by its own lists of them.

Source: https://commoncrawl.org/get-started: ``<base>/crawl-data/<crawl>/<format>.paths.gz`` has a line for each file,
its path below the base.
"""

import re
from collections.abc import Iterator

from toolkit.errors import ConfigError, DataError, NothingThere
from toolkit.storage import store_of
from toolkit.storage.paths import fault_of_name, join
from toolkit.storage.reading import Lines

BASE = "https://data.commoncrawl.org/"
"""Where the files officially are."""

NAMES = re.compile(r"(?<![A-Za-z0-9])CC-(?:MAIN|NEWS)-\d{4}(?:-\d{2,4})?(?![0-9-]*[0-9])")
"""Names of crawls in a text, a path for one."""

FIELDS = ("crawl", "dump")
"""Keys of metadata that name a document's crawl."""

_FOLDER = "crawl-data/"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w-][\w.-]*)*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_LONGEST = 10_000  # bytes of a path


def check_name(name: str) -> None:
    """Raise ValueError for what can be no crawl's name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"expected the name of a crawl such as CC-MAIN-2024-10, got {name!r}")


Files = int | str | list[int | str] | None
"""Which files of a list, counted from 0: ``N``, ``A-B`` (with B), or a list of these; None for all."""


def chosen(files: Files) -> list[range] | None:
    """Return the numbers that are meant; None for all.

    Raises:
        ValueError: if it is nothing of this kind.
    """
    if files is None:
        return None
    found = []
    for part in files if isinstance(files, list) else [files]:
        match = _RANGE.fullmatch(str(part).strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise ValueError(f"expected N, A-B with A up to B, or a list of these, counted from 0; got {part!r}")
        found.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if not found:
        raise ValueError("expected at least one file, got an empty list")
    return found


def listed(crawl: str, format: str, base: str) -> list[str]:
    """Return the paths of a crawl's files, below its base, in the order of its list.

    Args:
        crawl: its name.
        format: of the files.
        base: where the folder of all crawls is; on the web, in a bucket, or on disk.

    Raises:
        ConfigError: if there is no such list.
        DataError: if it cannot be read, or is no list.
    """
    return list(_lines(join(base, _FOLDER, crawl, f"{format}.paths.gz")))


def choose(paths: list[str], files: Files) -> list[str]:
    """Return those paths that are meant, each once, in their order.

    Raises:
        ConfigError: if there are not so many.
    """
    parts = chosen(files) or [range(len(paths))]
    if (last := max(part[-1] for part in parts)) >= len(paths):
        raise ConfigError(f"expected files among 0-{len(paths) - 1}, which are all of the crawl's list; got {last}")
    return [paths[number] for number in sorted({number for part in parts for number in part})]


def place_of(path: str, base: str) -> tuple[str, str]:
    """Return where a file is, and its path below the folder of all crawls, which names its shard."""
    return join(base, store_of(base).quoted(path)), path.removeprefix(_FOLDER)


def _lines(path: str) -> Iterator[str]:
    try:
        stored = store_of(path).open(path)
    except FileNotFoundError:
        raise NothingThere(
            f"expected a crawl with a list of its files, got nothing at {path}; is that the crawl's name, and does it "
            "have files of this format?"
        ) from None
    except OSError as error:
        raise DataError(f"expected a readable file, got {error.strerror or error}", path=path) from None
    number = 0
    with Lines(path, _LONGEST, stored=stored, fixed=True) as lines:
        for line in lines:
            text = line.decode(errors="replace").strip()
            if not text:
                continue
            if fault_of_name(text):
                raise DataError(f"expected the path of a file, got {text[:200]!r}", path=path, line=lines.number)
            number += 1
            yield text
    if not number:
        raise DataError("expected paths of files, got none", path=path)
