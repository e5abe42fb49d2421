"""What is at a path: its files, and the input format that reads them."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER
from toolkit.errors import ConfigError, DataError, NothingThere
from toolkit.ingest import folders
from toolkit.ingest.reader import READERS
from toolkit.ingest.recognised import LOOKED_AT, Recognised, look
from toolkit.ingest.tables.fields import FieldReader
from toolkit.storage.compression import SUFFIXES as COMPRESSIONS
from toolkit.storage.paths import exists, expand_listed, is_glob, join, list_files, strip_suffix
from toolkit.storage.reading import Decompressed, Lines

_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}
_BY_SUFFIX |= {".txt": "text", ".text": "text", ".md": "text"}
"""Formats of files whose first bytes do not tell."""

_FIRST_LINE = 16 << 20
"""Bytes in which a first line is looked for."""

_DOUBLED = re.compile(rb'[^\\,;\t|\n"]""|""[^,;\t|\r\n"]')
"""A doubled quote inside of a field of CSV; two quotes between delimiters are an empty field."""

_NO_DATA = ("README.md", "LICENSE", "LICENSE.txt", "dataset_infos.json", "dataset_info.json", "state.json")


class There(NamedTuple):
    """What is at a path.

    Attributes:
        pattern: of the files, as `from:` takes it.
        files: that it names.
        format: that reads them.
        options: of the format, that the files ask for.
        others: names of files in the folder that are not read.
        choices: of the options `config` and `split`, what else there is.
    """

    pattern: str
    files: Sequence[folders.Found]
    format: str
    options: dict[str, Any]
    others: list[str] = []
    choices: dict[str, list[str]] = {}


def there_at(path: str) -> There:
    """Return what is at a path: a file, a folder or a glob; on disk, in a bucket, or one file on the web.

    Raises:
        NothingThere: if there is no file.
        ConfigError: if no format reads what is there.
    """
    path = path.rstrip("/") or "/"
    if folders.is_listable(path):
        return _said_by_folder(path) or _in_folder(path)
    files = expand_listed(path)
    if is_glob(path) and len({suffix_of(relative) for _, relative, _ in files}) > 1:
        raise ConfigError(
            f"{path}: expected files of one kind, got {', '.join(sorted({relative for _, relative, _ in files})[:3])}; "
            "give a narrower glob"
        )
    return There(path, files, *_format(files[0][0]))


def is_dataset(path: str) -> bool:
    """Return whether a folder has documents in the form that needs no ingest."""
    folder = join(path.rstrip("/"), "documents")
    if not folders.is_listable(folder):
        return False
    first = next(iter(list_files(folder)), "")
    if not first.endswith(SHARD_SUFFIXES):
        return False
    try:
        with Lines(join(folder, first), _FIRST_LINE, fixed=True) as lines:
            DOCUMENT_DECODER.decode(next(lines, b""))
    except (*BAD_ROW, DataError):
        return False
    return True


def suffix_of(name: str) -> str:
    """Return what a file's name ends in, without that of a compression."""
    stem = strip_suffix(name.rpartition("/")[2], tuple(COMPRESSIONS)).lower()
    return "." + stem.rpartition(".")[2] if "." in stem else ""


def _said_by_folder(path: str) -> There | None:
    """Return what a folder says of itself, as `datasets` or the hub write it; None if it says nothing."""
    if any(exists(join(path, name)) for name in ("dataset_dict.json", "state.json")):
        splits = folders.splits_of(path)
        options = {"split": splits[0]} if len(splits) > 1 else {}
        files = folders.chosen(path, (), None, options.get("split"))
        return There(path, files, _format(files[0][0])[0], options, choices={"split": splits})
    if configs := folders.configs_of(path):
        usual = "default" if "default" in configs else next(iter(configs))
        options = {"config": usual} if len(configs) > 1 or usual != "default" else {}
        if len(configs[usual]) > 1:
            options["split"] = configs[usual][0]
        files = folders.chosen(path, (), usual, options.get("split"))
        format, more = _format(files[0][0])
        if issubclass(READERS.find(format), FieldReader):
            return There(path, files, format, options | more, choices={"config": [*configs], "split": configs[usual]})
    return None


def _in_folder(path: str) -> There:
    """Return the files of a folder of which there is most, by their bytes."""
    try:
        found = [each for each in expand_listed(join(path, "**")) if each[1].rpartition("/")[2] not in _NO_DATA]
    except NothingThere:
        found = []
    if not found:
        raise NothingThere(f"{path}: expected files, got none")
    sizes = Counter[str]()
    for _, relative, there in found:
        sizes[_kind(relative)] += (there.size if there else 0) + 1
    fault: ConfigError | None = None
    for kind, _ in sizes.most_common():
        files = [each for each in found if _kind(each[1]) == kind]
        try:
            format, options = _format(files[0][0])
        except ConfigError as error:
            fault = fault or error
            continue
        others = [relative for _, relative, _ in found if _kind(relative) != kind]
        class_ = READERS.find(format)
        is_all = {each[0] for each in files} == {each[0] for each in expand_below(path, class_.SUFFIXES)}
        return There(path if is_all else join(path, _glob(files)), files, format, options, others)
    raise fault or NothingThere(f"{path}: expected files, got none")


def _kind(name: str) -> str:
    """Return what files have in common that are read together, as far as their names tell."""
    suffix = suffix_of(name)
    return _BY_SUFFIX.get(suffix, suffix)


def _glob(files: Sequence[folders.Found]) -> str:
    """Return a glob for files in a folder of several kinds."""
    endings = {suffix_of(name) + name[len(strip_suffix(name, tuple(COMPRESSIONS))) :] for _, name, _ in files}
    return f"**/*{endings.pop()}" if len(endings) == 1 else "**/*{" + ",".join(sorted(endings)) + "}"


def expand_below(path: str, suffixes: Sequence[str]) -> Sequence[folders.Found]:
    """Return the files of a folder whose names end so, as `from:` with the folder takes them."""
    try:
        return folders.named(path, suffixes) if suffixes else []
    except NothingThere:
        return []


def _format(path: str) -> tuple[str, dict[str, Any]]:
    """Return the format that reads a file, and options that it needs.

    Raises:
        ConfigError: if there is none.
    """
    with Decompressed(path) as stream:
        head = stream.read(LOOKED_AT)
        while b"\n" not in head and len(head) < _FIRST_LINE and (more := stream.read(LOOKED_AT)):
            head += more
    suffix = suffix_of(path)
    found = look(head)
    if _BY_SUFFIX.get(suffix) == "text" and (found is None or found.formats[:1] in (("csv",), ("tsv",))):
        found = None  # commas stand in texts, too
    by_suffix = _BY_SUFFIX.get(suffix, "")
    if found is not None and found.formats:
        format = by_suffix if by_suffix in found.formats else found.formats[0]
        return format, _options(head, found)
    if found is not None and not (by_suffix == "jsonl" and found.what == "JSON"):
        raise ConfigError(f"{path}: expected a file that an input format reads, got {found}")
    if not by_suffix:
        names = ", ".join(READERS.names())
        raise ConfigError(f"{path}: expected a file of a known form, got another one; input formats are: {names}")
    return by_suffix, _options(head, found)


def _options(head: bytes, found: Recognised | None) -> dict[str, Any]:
    options: dict[str, Any] = {"delimiter": found.delimiter} if found and found.delimiter else {}
    if found and set(found.formats) & {"csv", "tsv"} and b'\\"' in head and not _DOUBLED.search(head):
        options["escape"] = "\\"
    try:
        head[: head.rfind(b"\n") + 1 or len(head)].decode()
    except UnicodeDecodeError:
        if found and set(found.formats) & {"csv", "tsv"}:
            options["encoding"] = "windows-1252"
    return options
