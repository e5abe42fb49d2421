"""Exact duplicates: documents that are equal, or have equal lines or paragraphs."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import ConfigStruct, Description
from toolkit.dedup.kind import Asked, Block, Files, Kind, Resolved, Signer, Work
from toolkit.dedup.records import SignedShard
from toolkit.runs.executors import Report, Task
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored


class Copies(msgspec.Struct, frozen=True):
    """What a document is an exact duplicate of.

    Attributes:
        duplicate_of: source and id of the document that is kept in its place; null if it is the one, or not compared.
        copies: documents that are equal, itself among them; 0 if it is not compared.
    """

    duplicate_of: list[str] | None
    copies: int


class Exact(Kind, kw_only=True):
    """Exact duplicates."""

    unit: Annotated[Literal["document"], Description(description="what is compared")] = "document"
    of: Annotated[str, Description(description="an expression: the text that is compared")] = "document.text"

    def value_type(self) -> Any:
        return Copies

    def asked(self) -> dict[str, Asked]:
        return {"of": Asked(self.of, "text")}

    def signer(self, files: Files) -> Signer:
        return _Signer(self, files)

    def resolve(self, work: Work) -> Resolved:
        (found,) = work.run("resolve", _resolve, [Task("resolve", _ToResolve(work.shards, work.folder))])
        return Resolved(found[0], found[1])

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        with open_stored(join(fates, signed.shard + ".json")) as stream:
            yield from msgspec.json.decode(stream.read(), type=list[Copies])


class _Signer(Signer):
    def __init__(self, kind: Kind, files: Files) -> None:
        super().__init__(kind, files)
        self._out = files.open("hashes.bin")
        self._names = files.open("names.json")
        self._all: list[tuple[str, str]] = []

    def add(self, block: Block) -> None:
        for document, text in zip(block.documents, block.values["of"], strict=True):
            self._out.write(b"\0" * 16 if text is None else xxhash.xxh3_128_digest(text.encode()))
            self._all.append((document.source, document.id))

    def finish(self) -> tuple[dict[str, int], Any]:
        self._names.write(msgspec.json.encode(self._all))
        return {}, None


class _ToResolve(ConfigStruct):
    shards: list[SignedShard]
    folder: str


def _resolve(work: _ToResolve, report: Report) -> tuple[dict[str, str], dict[str, int]]:
    groups: dict[bytes, list[tuple[int, int]]] = {}
    names = []
    for n, signed in enumerate(work.shards):
        with open_stored(signed.path("hashes.bin")) as stream:
            data = np.frombuffer(stream.read(), dtype="V16")
        with open_stored(signed.path("names.json")) as stream:
            names.append(msgspec.json.decode(stream.read()))
        for row, each in enumerate(data):
            if bytes(each) != b"\0" * 16:
                groups.setdefault(bytes(each), []).append((n, row))
    values = [[Copies(None, 0)] * signed.record.rows for signed in work.shards]
    duplicates = 0
    for members in groups.values():
        (n, row), *others = members
        values[n][row] = Copies(None, len(members))
        for i, other in others:
            values[i][other] = Copies(list(names[n][row]), len(members))
            duplicates += 1
    fates = {}
    for signed, found in zip(work.shards, values, strict=True):
        data_ = msgspec.json.encode(found)
        write_file(join(work.folder, signed.shard + ".json"), data_)
        fates[signed.shard] = xxhash.xxh3_128_hexdigest(data_)
    return fates, {"duplicates": duplicates}
