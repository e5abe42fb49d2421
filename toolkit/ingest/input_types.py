"""The types of the own fields of documents, before and after ingest.

``.toolkit/types/<number of the entry>.json``  a `StoredTypes`
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import xxhash

from toolkit.data.dataset import Dataset
from toolkit.data.own_types import OwnTypes, together
from toolkit.data.tables.to_arrow import arrow_schema, to_text
from toolkit.errors import DataError, NoDocuments, errors_from
from toolkit.ingest.ingest_config import Entry
from toolkit.ingest.plan import InputFile, PlannedInputs, listed_stats, makers
from toolkit.ingest.reader import Input, Reader, Sample
from toolkit.records.ingested import summary
from toolkit.storage import freshness, json_files, paths, store_of


class StoredTypes(freshness.Artifact, frozen=True, kw_only=True):
    """The types of an entry of ``ingest:``; the stamp is a digest of its options and the stamps of all inputs."""

    entry: str
    stamp: str
    types: OwnTypes | None

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.stamp}


class InputTypes(msgspec.Struct, frozen=True):
    """The types of inputs' documents.

    Attributes:
        by_entry: Types by the identity of the entry, if they are known.
        stored: Types to store, by path.
    """

    by_entry: dict[int, OwnTypes | None]
    stored: dict[str, StoredTypes]

    def store(self) -> None:
        """Store the types; equal files stay as they are."""
        for path, stored_types in self.stored.items():
            if json_files.load(path, StoredTypes) != stored_types:
                json_files.save(path, stored_types)


def types_of_inputs(works: PlannedInputs, dataset: Dataset) -> InputTypes:
    """Return the types of inputs' documents; nothing is written.

    They are those of an entry: of all its inputs, by the schemas of all or the first rows. Where nobody can list the
    inputs, on the web, they are not known.

    Args:
        works: all inputs of the section.
        dataset: Dataset that they become.

    Raises:
        ConfigError: for a declared type that cannot be.
    """
    result = InputTypes({}, {})
    for number, entry in enumerate(work.entry for work in works.templates.values()):
        if type(entry.reader()).own_types is Reader.own_types:
            continue
        path = paths.join(dataset.bookkeeping, "types", f"{number}.json")
        of_entry = [work for work in works if work.entry is entry]
        files = sorted((file for work in of_entry for file in work.files), key=lambda file: file.relative)
        if stored := of_files(entry, files, of_entry[0].max_document_bytes, path):
            result.stored[path] = stored
            result.by_entry[id(entry)] = stored.types
    return result


def of_files(entry: Entry, files: Sequence[InputFile], limit: int, path: str) -> StoredTypes | None:
    """Return the types of the documents of files; stored ones if nothing has changed.

    Args:
        entry: Entry of the files.
        files: all of them, in order.
        limit: bytes of a document, at most.
        path: Path of the stored types.

    Returns:
        None if they cannot be told: of other formats, and where nothing lists files, on the web.

    Raises:
        ConfigError: for a declared type that cannot be.
    """
    reader = entry.reader()
    if type(reader).own_types is Reader.own_types or not all(store_of(file.path).can_list for file in files):
        return None
    digest = xxhash.xxh3_128(msgspec.json.encode((entry.common.get("format"), entry.options), order="sorted"))
    for file, stat in zip(files, listed_stats(files), strict=True):
        digest.update(f"{file.key}\0{stat}\n".encode())
    stamp = digest.hexdigest()
    stored = json_files.load(path, StoredTypes)
    if stored is not None and freshness.state(stored, [("", stamp)]).is_done:
        return stored
    from toolkit.ingest.input_rows.preview import UnwrittenRejects  # which most commands do not need

    source = entry.settings().source
    sample = Sample()
    inputs = [Input(file.path, source, limit, UnwrittenRejects(), sample=sample) for file in files]
    with errors_from(entry.place, of=DataError):
        types = reader.own_types(inputs)
    if types and types.arrow and entry.settings().qualifies:
        fields = [field for field in arrow_schema(types.arrow) if field.name != "id"]
        types = msgspec.structs.replace(types, arrow=to_text(fields))
    return StoredTypes(entry=entry.name, stamp=stamp, types=types)


def is_stored(dataset: Dataset) -> bool:
    """Return True if the dataset has stored types."""
    return any(paths.list_files(paths.join(dataset.bookkeeping, "types"), hidden=True))


def after_ingest(works: PlannedInputs, types: Mapping[int, OwnTypes | None], dataset: Dataset) -> OwnTypes | None:
    """Return the types of all documents after an ingest of these inputs; None if one's are unknown.

    Args:
        works: all inputs of the section.
        types: Types of their documents, by the identity of the entry.
        dataset: Dataset that may have documents of other inputs, and of earlier ingests of these.
    """
    results = [types.get(entry) for entry in works.templates]
    if not any(results):
        return None
    maker = makers(works)
    existing = set(paths.list_files(dataset.documents))
    result, inputs = set[str](), summary(dataset)
    for input_ in inputs.inputs.values():
        result.update(input_.shards)
        own = inputs.types[input_.types]
        if own in results or existing.isdisjoint(input_.shards):
            continue
        if own is None or not any(map(maker, input_.shards)):
            results.append(own)
    if any(maker(shard) is None for shard in existing - result):
        return None
    return together(results)


def of_documents(dataset: Dataset, shards: Iterable[str]) -> OwnTypes | None:
    """Return the types of existing documents, by the records of their inputs; None if one's are unknown.

    Those of documents in place are told by the files.
    """
    if dataset.in_place:
        return dataset.in_place.own_types()
    if not is_stored(dataset):
        return None
    remaining, results, inputs, types = set(shards), set[str](), summary(dataset), dict[int, None]()
    for input_ in inputs.inputs.values():
        if not remaining.isdisjoint(input_.shards):
            results.update(input_.shards)
            types[input_.types] = None
    return together(inputs.types[number] for number in types) if remaining <= results else None


def of_all(dataset: Dataset) -> OwnTypes | None:
    """Return the types of all existing documents; None if there are none, or one's are unknown."""
    if dataset.in_place or not is_stored(dataset):
        return of_documents(dataset, ())
    try:
        return of_documents(dataset, dataset.shards())
    except NoDocuments:
        return None
