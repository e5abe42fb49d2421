"""The places of a dataset: its documents, its attribute sets, and our records of both."""

import os
from dataclasses import dataclass

from toolkit.errors import ConfigError, DataError, NoDocuments
from toolkit.storage import store_of
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import (
    BOOKKEEPING,
    check_names,
    fault_of_name,
    fixed_part,
    is_data,
    is_glob,
    join,
    list_files,
    listing,
    no_folder,
    sized,
)
from toolkit.storage.roots import note_roots

SHARD_SUFFIXES = (".jsonl.gz", ".json.gz", ".gz", ".jsonl", ".json", ".jsonl.zst", ".jsonl.zstd", ".json.zst")
"""What a shard of documents, and so its attributes, may end in: the one table; what a suffix says of the compression is
in `toolkit.storage.compression`. Where we choose the name it is ``.jsonl.gz`` or ``.jsonl.zst``."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The places of a dataset.

    Attributes:
        documents: root of the documents.
        attributes: root of the attribute sets.
        include, exclude: globs over shard paths.
        notes: where our records are, if not where they belong (see `bookkeeping`).
    """

    documents: str
    attributes: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    notes: str = ""

    @property
    def bookkeeping(self) -> str:
        """The folder of records and row indexes: ``ROOT/.toolkit`` beside ``ROOT/attributes``, else below that root."""
        if self.notes:
            return self.notes
        parent, name = os.path.split(self.attributes)
        return os.path.join(parent if name == "attributes" else self.attributes, BOOKKEEPING)

    def shard_path(self, shard: str) -> str:
        return join(self.documents, shard)

    def attribute_path(self, set_name: str, shard: str) -> str:
        return join(self.attributes, set_name, shard)

    def sets(self) -> list[str]:
        """Return the names of the attribute sets on disk."""
        return [name for name in store_of(self.attributes).folders(self.attributes) if not name.startswith(".")]

    def admits(self, shard: str) -> bool:
        """Return whether the globs let a path below the documents root be a shard."""
        if self.include and not any(glob_regex(pattern).match(shard) for pattern in self.include):
            return False
        return not any(glob_regex(pattern).match(shard) for pattern in self.exclude)

    def shards(self) -> list[str]:
        """Return the relative paths of all shards, sorted.

        Raises:
            NoDocuments: if there are none.
            DataError: if a file below the root is no shard and no glob excludes it.
        """
        found: list[str] = []
        for relative in list_files(self.documents):
            if not self.admits(relative):
                continue
            if not relative.endswith(SHARD_SUFFIXES):
                raise DataError(
                    f"expected a file ending in {' '.join(SHARD_SUFFIXES)}; move it, or exclude it with "
                    f"`documents: {{path: {self.documents}, exclude: [{relative!r}]}}`",
                    path=join(self.documents, relative),
                )
            if fault := fault_of_name(relative):
                raise DataError(f"{fault}; rename it, or exclude it", path=join(self.documents, relative))
            found.append(relative)
        check_names(self.documents, found)
        if not found:
            what = "no shard that the globs admit" if self.include or self.exclude else "none"
            more = " There is no such folder: should it be mounted?" if no_folder(self.documents) else ""
            raise NoDocuments(f"{self.documents}: expected documents, got {what}; run `toolkit ingest` first?{more}")
        return found

    def sizes(self) -> dict[str, int]:
        """Return the stored bytes of each shard, sorted by path; nothing if there are no documents."""
        listed = listing(self.documents)
        return dict(sized(self.documents, (each for each in listed if is_data(each[0]) and self.admits(each[0]))))


def open_dataset(
    dataset: str | None, documents: str | dict[str, object] | None, attributes: str | None, notes: str = ""
) -> Dataset:
    """Return the dataset that a configuration names.

    Args:
        dataset: ``ROOT`` of ``ROOT/documents`` and ``ROOT/attributes``.
        documents: another root or glob of the documents, or ``{path, include, exclude}``.
        attributes: another root of the attributes.
        notes: another place for our records.
    """
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    inside = documents.get("path") if isinstance(documents, dict) else documents
    for key, given in (("dataset", dataset), ("documents", inside), ("attributes", attributes)):
        if isinstance(given, str) and (not given.strip() or "\0" in given):
            raise ConfigError(f"{key}: expected a folder, got {given!r}; `.` is the current one")
    if isinstance(documents, dict):
        options = dict(documents)
        path = options.pop("path", None)
        include = _globs(options.pop("include", ()), "documents.include")
        exclude = _globs(options.pop("exclude", ()), "documents.exclude")
        if options or not isinstance(path, str | None):
            raise ConfigError("documents: expected a path or {path, include, exclude}")
        documents = path
    if documents is not None and is_glob(documents):
        base = fixed_part(documents) or "."
        include = (*include, documents[len(base) :].lstrip("/") if base != "." else documents)
        documents = base
    if documents is None and dataset is None:
        raise ConfigError("expected `dataset: ROOT` or `documents: ROOT`, got neither")
    if attributes is None and dataset is None:
        raise ConfigError("expected `attributes: ROOT` beside `documents:`, or `dataset: ROOT`")
    found = Dataset(
        _folder(documents or os.path.join(dataset or "", "documents")),
        _folder(attributes or os.path.join(dataset or "", "attributes")),
        include,
        exclude,
        notes,
    )
    note_roots((*([dataset] if dataset else []), found.documents, found.attributes, found.bookkeeping))
    return found


def _folder(path: str) -> str:
    return path.rstrip("/") or "/"


def _globs(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return tuple(value)
    raise ConfigError(f"{where}: expected a list of globs, got {value!r}")
