"""The state of the attributes of a shard: whether they are what their inputs, as they are now, make of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError, StaleError
from toolkit.records import foreign
from toolkit.records.sets import ShardRecord, command_of, load_record, load_schema, missing_attributes, save_records
from toolkit.storage.artifact import FileRecord, State, state
from toolkit.storage.paths import exists

NOT_INDEXED = State("stale", "its documents are not indexed, or have changed")


@dataclass(frozen=True)
class ShardAttributes:
    """The attributes of a shard in a set, ours or an external one.

    Attributes:
        dataset: Dataset of the shard.
        set: Name of the set.
        shard: Shard of the dataset.
        documents: Documents as they are now; None if that is not known.
    """

    dataset: Dataset
    set: str
    shard: str
    documents: ShardState | None = None

    @property
    def path(self) -> str:
        """Return the path of the attributes in a set of ours."""
        return self.dataset.attribute_path(self.set, self.shard)

    @cached_property
    def record(self) -> ShardRecord | None:
        """Return the completion record; None if there is none."""
        return load_record(self.dataset, self.set, self.shard)

    def files(self, record: ShardRecord) -> list[FileRecord]:
        """Return the files of a completion record."""
        return [FileRecord(self.path, record.output.size, record.output.stamp, record.output.content)]

    def state(
        self,
        settings: Mapping[str, Any] | None = None,
        reads: Iterable[str] | None = None,
        *,
        quick: bool = False,
        learn: bool = False,
    ) -> State:
        """Return the state of attributes of ours.

        Args:
            settings: Settings that the set is to be made with; None if any will do.
            reads: Sets that it is to be made from; by default, those that it was made from.
            quick: As of `toolkit.storage.artifact.state`.
            learn: True if the record is to learn another stamp; those who only look write nothing.
        """
        record = self.record
        if record and self.documents is None:
            return NOT_INDEXED
        names = record.reads if record and reads is None else reads or ()
        found = state(record, self.inputs(names, quick=quick), settings, self.files, quick=quick)
        if record and learn and found.stamps:
            output = msgspec.structs.replace(record.output, stamp=found.stamps[self.path])
            save_records(self.dataset, self.shard, {self.set: msgspec.structs.replace(record, output=output)})
        return found

    def inputs(self, reads: Iterable[str], *, quick: bool = False) -> Iterator[tuple[str, str | None]]:
        """Yield the digests of the documents and of the shard in sets, for `toolkit.storage.artifact.state`."""
        yield "", self.documents.content if self.documents else None
        for name in reads:
            yield name, replace(self, set=name).digest(quick=quick)

    def digest(self, *, quick: bool = False) -> str | None:
        """Return the content digest; None if the attributes are not what their inputs make of them now.

        Raises:
            DataError: if there is no such file of an external set, or it is not one of attributes.
        """
        if load_schema(self.dataset, self.set) is None:
            look = foreign.seen_now if quick else foreign.look_at
            seen = look(self.dataset, self.set, self.shard)
            return seen.content if seen else None
        is_done = self.state(quick=quick).is_done
        return self.record.output.content if self.record and is_done else None

    def content(self, *, learn: bool = False) -> str:
        """Return the content digest, by the record or, of an external set, by what was seen.

        Without `documents` it does not matter what the attributes were made of.

        Args:
            learn: As of `state`.

        Raises:
            StaleError: if they were made from other documents, or other attributes, than there are now.
            DataError: if there is no such file, or it is not the one that its record describes.
        """
        if load_schema(self.dataset, self.set) is None:
            return foreign.look_at(self.dataset, self.set, self.shard).content
        path, record, run = self.path, self.record, f"run `toolkit {command_of(self.dataset, self.set)}`"
        if not exists(path):
            raise missing_attributes(self.dataset, self.set, self.shard)
        if record is None:
            raise DataError(f"expected a complete file, got one without its completion record; {run}", path=path)
        found = self.state(learn=learn) if self.documents else state(record, files=self.files)
        if found.is_done:
            return record.output.content
        if found.name == "missing":
            message = f"expected the file that its record describes, got one that was changed later; {run}"
            raise DataError(message, path=path)
        if found.error:
            raise found.error
        if found.changed:
            replace(self, set=found.changed).content()  # which raises where that is stale itself
        of = f"the set {found.changed}" if found.changed else self.dataset.shard_path(self.shard)
        made = "made from " if found.changed else "of "
        message = f"expected attributes {made}{of} as it is now, got those {made}an earlier version; {run}"
        raise StaleError(message, path=path)
