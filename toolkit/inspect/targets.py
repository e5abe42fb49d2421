"""Resolution of a path on the command line: which of its files have documents, and in which format."""

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit.config.root import located_reference
from toolkit.config.settings import ConfigNode, convert
from toolkit.data.dataset import SHARD_SUFFIXES
from toolkit.errors import ConfigError, Forbidden, ToolkitError
from toolkit.interop import external_rows
from toolkit.mix import publication
from toolkit.mix.settings import REJECTED
from toolkit.mix.writer import WRITERS, Writer, find_writer
from toolkit.session import cached, current
from toolkit.storage import store_of
from toolkit.storage.paths import BOOKKEEPING, absolute, exists, is_folder, join, list_files, not_in, parent_of
from toolkit.storage.reading import Lines

Kind = Literal["dataset", "output", "release", "documents"]

DESCRIPTIONS = ("croissant.json", "README.md", "card.png", "card.html", "disclosure.json", "DISCLOSURE.md")
"""Files that describe a folder, and are none of its data."""

SPLIT = re.compile(r"splits/.+\.split\.gz")
"""Files that say which split the documents of a part are in, and are none of a folder's data."""

_CHECKSUM_FILE = re.compile(r"(_sha256\.txt|checksum\.sha(256|384)|\.sha256|\.sha384)$")
_METADATA = re.compile(r"_meta(_part_\d+)?\.jsonl?(\.\w+)?$")
_TEXT = re.compile(r"\.(txt|text)(\.\w+)?$")

_ASKED = 3
"""Files of a folder whose first lines are looked at, to know what it holds; the first may be damaged."""

LONGEST = 1 << 30
"""Bytes of a first line, at most."""


class Target(msgspec.Struct, frozen=True):
    """A path on the command line, and its content.

    Attributes:
        path: Path without a slash at its end.
        kind: ``dataset``, a folder with documents and attributes; ``output`` of a mix, with its manifest;
            ``release``, files of an output format without one; ``documents``, files of documents.
        files: those with documents, sorted, relative to `folder`; without those that a mix dropped. Of a dataset none.
        manifest: Manifest of an output.
    """

    path: str
    kind: Kind
    files: list[str]
    manifest: publication.Manifest | None = None
    is_file: bool = False

    @property
    def folder(self) -> str:
        """Return the folder of the relative paths of files."""
        return os.path.dirname(self.path) or "." if self.is_file else self.path


def expected(path: str) -> Target:
    """Return the target at a path.

    Raises:
        ConfigError: if nothing is there that has documents.
    """
    target, got = target_of(path), ""
    if target is None:
        got = f"none there{not_in(path)}"
    elif target.kind == "documents":
        home = home_of(path)
        if home.kind == "dataset" and not home.name(path).startswith("documents"):
            got = f"attributes of the dataset {home.root}: name that"
        elif target.is_file and is_description(target.files[0]):
            got = f"a description: name its folder, {target.folder}"
    if target is None or got:
        raise ConfigError(f"{path}: expected a dataset, an output or files of documents, got {got}")
    return target


def target_of(path: str) -> Target | None:
    """Return the target at a path; None if nothing is there that has documents.

    Raises:
        DataError: if its manifest cannot be read.
    """
    path = path.rstrip("/") or path
    if (manifest := publication.load_manifest(path)) is not None:
        return Target(path, "output", [part.path for part in manifest.parts if part.label != REJECTED], manifest)
    if is_folder(join(path, "documents")):
        return Target(path, "dataset", [])
    if is_folder(path):
        names = list(list_files(path))
        parts = _parts(names)
        if parts and (any(map(is_checksum_file, names)) or _is_of_a_format(path, parts)):
            return Target(path, "release", parts)
        files = [path for path in names if path.endswith(SHARD_SUFFIXES) and not is_description(path)]
        if not files:
            return None
        return Target(path, "release" if _is_of_a_format(path, files) else "documents", files)
    if not exists(path):
        return None
    name = os.path.basename(path)
    return Target(path, "documents" if format_of(path) is None else "release", [name], is_file=True)


def _is_of_a_format(folder: str, paths: list[str]) -> bool:
    return any(format_of(join(folder, path)) is not None for path in paths[:_ASKED])


def data_files(folder: str) -> list[str]:
    """Return the parts in an output folder, sorted: those of its manifest, and all that are called as parts are."""
    manifest = publication.load_manifest(folder)
    recorded = {part.path for part in manifest.parts} if manifest else set()
    return _parts(list(list_files(folder)), recorded)


def is_checksum_file(path: str) -> bool:
    """Return True for a file of checksums, by its name."""
    return _CHECKSUM_FILE.search(path) is not None


def is_description(path: str) -> bool:
    """Return True for a description below a folder."""
    return path in DESCRIPTIONS or SPLIT.fullmatch(path) is not None


def as_part(path: str) -> re.Match[str] | None:
    """Return the stem, number and suffix of a part, by its name.

    A file that is called exactly as its folder has no number: ``en_part_1/en_part_1.jsonl.gz`` has the label
    ``en_part_1``.
    """
    if is_checksum_file(path) or is_description(path):
        return None
    endings = "|".join(map(re.escape, sorted(suffixes())))
    ending = rf"(?P<suffix>(?:{endings})(?:\.gz|\.zst|\.zstd)?)"
    folder = re.escape(os.path.basename(os.path.dirname(path)))
    whole = re.fullmatch(rf"(?P<stem>(?:.*/)?{folder})(?P<number>){ending}", path) if folder else None
    return whole or re.fullmatch(rf"(?P<stem>.+?)(?:_part_(?P<number>\d+))?{ending}", path)


def _parts(paths: list[str], recorded: Iterable[str] = ()) -> list[str]:
    """Return files with names of parts; without the metadata that lie beside texts in the release 21.09."""
    results = set(recorded)
    parts = [path for path in paths if path in results or as_part(path)]
    texts = {os.path.dirname(path) for path in parts if _TEXT.search(path)}
    return [path for path in parts if not (os.path.dirname(path) in texts and _METADATA.search(path))]


class Home(NamedTuple):
    """A dataset, an output, or an external folder around a path.

    Attributes:
        root: Root of the dataset or the output; of other files their folder.
        kind: ``dataset``, ``output`` or ``files``.
    """

    root: str
    kind: str

    def name(self, path: str) -> str:
        """Return the path of a file relative to the root."""
        return absolute(path)[len(self.root) :].lstrip("/")


def home_of(path: str) -> Home:
    """Return the output or dataset around a path, else its folder."""
    path = absolute(path)
    if store_of(path).can_list:
        for root in _above(path):
            with suppress(Forbidden):  # what nobody may look at is not ours
                if exists(publication.manifest_path(root)):
                    return Home(root, "output")
                inside = path[len(root) + 1 :].partition("/")[0]
                if inside in ("documents", "attributes") and _is_dataset(root):
                    return Home(root, "dataset")
    return Home(path if is_folder(path) else parent_of(path), "files")


def _above(path: str) -> Iterator[str]:
    """Yield the path and its parent folders, without the store's root."""
    while path and not path.endswith(":/"):
        yield path
        path = path.rpartition("/")[0]


def _is_dataset(root: str) -> bool:
    """Return True for a folder of a dataset of ours; one with a folder `documents` alone may be anybody's."""
    return is_folder(join(root, "documents")) and any(
        is_folder(join(root, item)) for item in (BOOKKEEPING, "attributes")
    )


# --- formats ----------------------------------------------------------------------------------------------------------


class Format(NamedTuple):
    """An output format as it can be sent to a worker: what `find_writer` takes, and its options."""

    name: str
    options: dict[str, Any]

    def writer(self) -> Writer:
        """Return the writer.

        Raises:
            ConfigError: if the format, or such an option of it, is not here.
        """
        return _writer(self.name, msgspec.json.encode(self.options))


@cached(16)
def _writer(name: str, options: bytes) -> Writer:
    return convert(ConfigNode(msgspec.json.decode(options)), find_writer(name, "the format of an output"))


def recorded_format(settings: Mapping[str, Any]) -> Format:
    """Return the format in a manifest's settings."""
    return Format(located_reference(settings["format"]), settings["options"])


def format_of(path: str) -> Format | None:
    """Return the format of a file without a manifest; None if it has documents, or nothing that is known.

    The installed formats are asked in the order of their names, whether they take it for their own. One that cannot be
    imported here is passed over. External rows that have a text are of the last one, which is not installed.
    """
    if is_table(path) and (columns := external_rows.of_table(path)) is not None:
        return Format(_TABLE, columns)
    line = first_line(path)
    for name in () if current().columns[0] else WRITERS.names():
        with suppress(ConfigError):
            writer = WRITERS.find(name)
            if (result := writer.of_file(path, line)) is not None:
                return Format(name, _options(result))
    options = external_rows.of_line(line)
    return None if options is None else Format(_FOREIGN, options)


def is_table(path: str) -> bool:
    """Return True for a Parquet file, by its name."""
    return path.endswith((".parquet", ".parq", ".pq"))


_TABLE = f"{external_rows.__name__}:{external_rows.ForeignTable.__name__}"
_FOREIGN = f"{external_rows.__name__}:{external_rows.ForeignRows.__name__}"


def first_line(path: str) -> bytes:
    """Return the first line of a file, decompressed; nothing if there is none that can be read."""
    try:
        with Lines(path, LONGEST, fixed=True) as lines:
            return next(lines, b"")
    except ToolkitError:
        return b""


def suffixes() -> frozenset[str]:
    """Return the suffixes of parts of all formats, without compressions."""
    return _suffixes(tuple(WRITERS.names()))


@functools.lru_cache(4)
def _suffixes(names: tuple[str, ...]) -> frozenset[str]:
    results = set()
    for name in names:
        with suppress(ConfigError):
            results.add(WRITERS.find(name).SUFFIX)
    return frozenset(results)


def _options(writer: Writer) -> dict[str, Any]:
    """Return the options of a writer beside the defaults."""
    default = type(writer)()
    options = {
        field.encode_name: (getattr(writer, field.name), getattr(default, field.name))
        for field in msgspec.structs.fields(writer)
    }
    return {name: msgspec.to_builtins(value) for name, (value, usual) in options.items() if value != usual}
