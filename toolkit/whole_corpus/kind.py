"""The contract of a kind of duplicates: what it says of itself, and its three steps (see `toolkit.whole_corpus`).

The options of kinds that compare documents with each other: which of equal ones stays, and what is compared.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, DataError
from toolkit.exchange.checksummed import SealedOutput
from toolkit.execution.executors import Run
from toolkit.lazy_numpy import np
from toolkit.plugins import Kind as KindOfPlugin
from toolkit.storage.outputs import Output
from toolkit.storage.paths import join
from toolkit.text.batch import Batch
from toolkit.whole_corpus import records

if TYPE_CHECKING:
    from contextlib import ExitStack

    from toolkit.text.kernels.signatures import Array

ValueKind = Literal["condition", "number", "order", "score", "spans", "text", "value"]

NUMBERS, TEXTS = "<f8", "S64"
"""Types of ranks: numbers; and keys of texts, whose bytes are compared."""


class Query(NamedTuple):
    """A query of a kind to each document.

    Attributes:
        text: an expression over the keys of earlier sets and `document` (which has `text` here, too); or, of the form
            ``SET[.KEY[.field]]`` with a known set, a value of it, null where a part of the path is.
        kind: ``condition``; ``number`` (never null); ``order`` (a number, a text, or null); ``score`` (a number,
            or null); ``spans`` (or null); ``text`` (or null); ``value`` (whatever JSON has, or null).
    """

    text: str
    kind: ValueKind


class TextBlock(NamedTuple):
    """Some documents of a shard, in order.

    Attributes:
        first: rows of the shard before them.
        documents: Documents with their texts, and views on all of these together.
        competes: True if each is compared: bool, in order. Others get a value all the same.
        values: Answers by name of the query; None for a document that does not compete.
        names: ``{"source":…,"id":…}`` of each.
        places: Place of each, where documents may have equal ids; else nothing.
    """

    first: int
    documents: Batch
    competes: Sequence[bool]
    values: dict[str, list[Any]]
    names: Sequence[bytes] = ()
    places: Sequence[str] = ()


class Files:
    """Writes the signature files of a shard atomically."""

    def __init__(self, folder: str, stack: "ExitStack") -> None:
        self._folder, self._stack = folder, stack
        self._outputs: dict[str, Output] = {}

    def open(self, name: str) -> SealedOutput:
        """Return a file, open until the last block; its name has no slash."""
        output = SealedOutput(self.path(name))
        self.add(name, output)
        return output

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return join(self._folder, name)

    def add(self, name: str, output: Output) -> None:
        """Enter an output under a name, such as a compressed `RowOutput`."""
        self._outputs[name] = self._stack.enter_context(output)

    def states(self) -> dict[str, records.FileState]:
        return {
            name: records.FileState(output.stat.size, output.stat.stamp, output.sha256)
            for name, output in self._outputs.items()
        }


class Signer:
    """Writes the signatures of one shard.

    Args:
        kind: configured.
        files: Files to write.
    """

    def __init__(self, kind: "Kind", files: Files) -> None:
        self.kind, self.files = kind, files

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        raise NotImplementedError

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the rest; return counts for people, and details for later steps: what can be written as JSON."""
        raise NotImplementedError


class ResolveJob(msgspec.Struct, dict=True):
    """The context of a kind's `resolve`.

    Attributes:
        shards: all, in their order: first those of other datasets, if the kind compares with any, then its own.
        folder: Folder of the decisions; an earlier attempt left the same content there.
        home: the folder of the set, in which what is fitted stays when there are other shards.
        settings: a digest of the settings, and of those of the sets that are read.
        refit: True if what was fitted is fitted anew.
        memory: bytes that each task may use above what a process has at its start.
        run: runs tasks on the executor: ``(what, function, tasks)``, the function at the top of a module, payloads
            `ConfigStruct`; returns their values in order. A failure of one raises.
    """

    shards: list[records.SignedShard]
    folder: str
    home: str
    settings: str
    refit: bool
    memory: int
    run: Run

    @cached_property
    def scratch(self) -> str:
        """Folder for scratch files below the decisions, deleted in the end; it has the shards, for tasks."""
        folder = join(self.folder, f"{records.SCRATCH}{self.memory}")
        records.save_shards(self.run, folder, self.shards)
        return folder

    def numbered(self, chosen: Collection[int] | None = None) -> list[tuple[str, records.NumberedShard]]:
        """Return our shards, or some by number, with names of tasks."""
        return [
            (f"{shard.shard} ({shard.number})", records.NumberedShard(shard.dataset, shard.number, self.scratch))
            for shard in self.shards
            if (shard.own if chosen is None else shard.number in chosen)
        ]

    def all(self) -> records.NumberedShards:
        """Return all shards, for kinds without `against`."""
        return records.NumberedShards(self.shards[0].dataset, 0, len(self.shards), self.scratch)


class Decisions(msgspec.Struct):
    """The result of `resolve`.

    Attributes:
        fates: Fates of each own shard, by its path, a digest of what became of its documents; it must not depend on
            memory, processes or partitions.
        counts: Counts for people, by name.
        notes: sentences for people.
        tables: Tables for people, by name: rows with the same fields, such as one for each group of documents.
        model: the file of what was fitted, and its digest, where something was.
    """

    fates: dict[str, str]
    counts: dict[str, int] = {}
    notes: list[str] = []
    tables: dict[str, list[dict[str, Any]]] = {}
    model: records.Model | None = None


class Kind(ConfigStruct, kw_only=True):
    """A kind of duplicates: a Struct of its options, beside those that all entries have (`kind as when attributes
    memory against`).
    """

    VERSION: ClassVar[int] = 1
    """Raised when the same documents and options give other values."""

    NEUTRAL: ClassVar[frozenset[str]] = frozenset()
    """Options that change no value."""

    SECTION: ClassVar[str] = "dedup"
    """The section of the configuration whose entries are of this kind."""

    NAMED: ClassVar[bool] = False
    """Whether the key of a set is the name of the set without its version, and not the name of the kind."""

    AGAINST: ClassVar[bool] = False
    """Whether other datasets can be compared with (`against:` of an entry)."""

    TEXTS: ClassVar[bool] = True
    """Whether signatures are made of texts; others come from attributes alone, if nothing else asks for documents."""

    FITTED: ClassVar[bool] = False
    """Whether something is fitted to the documents, which stays when there are others."""

    @property
    def disk_share(self) -> float:
        """Return the approximate bytes on disk for a byte of text: signatures, what they come to, attributes."""
        return 0.03

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""

    def value_type(self) -> Any:
        """Return the type of the values: a Struct whose docstring says what each field is."""
        raise NotImplementedError

    def typed(self, types: Mapping[str, Type]) -> Any:
        """Return the type of the values, given the types of the answers."""
        return self.value_type()

    def queries(self) -> dict[str, Query]:
        """Return the queries to each document, by name; `when` is asked by the framework."""
        return {}

    def label_expressions(self) -> Sequence[str]:
        """Return the expressions of labels, for the option `scale`."""
        return ()

    def facts(self) -> dict[str, Any]:
        """Return other facts behind the values, such as digests of named files; part of the settings."""
        return {}

    def signer(self, files: Files) -> Signer:
        """Return a writer of a shard's signatures."""
        raise NotImplementedError

    def resolve(self, work: ResolveJob) -> Decisions:
        """Write the fates of all documents; by default there are none, and values come from signatures alone."""
        return Decisions({signed.shard: "" for signed in work.shards if signed.own})

    def fitted(self, fates: str) -> str:
        """Return the digest of the fitted object in use, or None; `fates` is as for `values`."""
        return ""

    def values(self, signed: records.SignedShard, fates: str) -> Iterator[Any]:
        """Yield the value of each row of a shard, in order; `fates` is the folder that `resolve` has written."""
        raise NotImplementedError


KINDS: KindOfPlugin[Kind] = KindOfPlugin("kind of duplicates", "toolkit.whole_corpus.kinds", "toolkit.dedup", Kind)


def configured(name: str, options: dict[str, Any]) -> Kind:
    """Return a kind with checked options."""
    return msgspec.convert(options, KINDS.find(name))


class Best(ConfigStruct):
    """An expression: of equal ones that with the greatest, or the least, value stays.

    Attributes:
        texts: True if values may be texts, which are compared by code point; the type of the expression says so.
    """

    max: str | None = None
    min: str | None = None
    texts: bool = False


class Competing(Kind, kw_only=True):
    """Base of kinds with competing documents: of duplicates one stays.

    Attributes:
        keep: the duplicate that stays: the first by shard and row, or {max | min: EXPRESSION}
        scope: all; source; or SET.KEY.field: only documents with the same value are compared
    """

    AGAINST: ClassVar[bool] = True

    keep: Literal["first"] | Best = "first"
    scope: str = "all"

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
        if isinstance(self.keep, Best) and (self.keep.max is None) == (self.keep.min is None):
            raise ConfigError("keep: expected `first`, {max: EXPRESSION} or {min: EXPRESSION}")

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        results: dict[str, Query] = {}
        if isinstance(self.keep, Best):
            results["keep"] = Query(self.keep.max or self.keep.min or "", "order")
        if self.scope != "all":
            results["scope"] = Query("document.source" if self.scope == "source" else self.scope, "value")
        return results

    @property
    def descending(self) -> bool:
        """Return True if the greatest rank stays; keys of texts are made so that the least does."""
        return self.ranks == NUMBERS and isinstance(self.keep, Best) and self.keep.max is not None

    @property
    def ranks(self) -> str:
        """Return the type of the ranks; empty if there are none."""
        return "" if not isinstance(self.keep, Best) else TEXTS if self.keep.texts else NUMBERS

    def ranked(self, values: Sequence[float | str | None], *, ascending: bool = True) -> "Array":
        """Return the ranks of documents, of `ranks`, or zeros; `ascending`: of equal ones that with the least stays."""
        if isinstance(self.keep, Best) and self.keep.texts:
            return np.array([_text_key(value, greatest=self.keep.max is not None) for value in values], dtype=TEXTS)
        sign = -1 if ascending and self.descending else 1
        return np.array([0.0 if value is None else sign * float(value) for value in values], dtype=NUMBERS)


def _text_key(value: float | str | None, *, greatest: bool) -> bytes:
    """Return a sort key of bytes: the staying value has the least; null never stays where another value is.

    Raises:
        DataError: if a text is too long.
    """
    size = int(TEXTS[1:])
    if value is None:
        return b"\xff" * size
    if isinstance(value, str):
        key = b"\2" + value.encode()
    else:
        (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
        key = b"\1" + (bits ^ (1 << 63 if bits < 1 << 63 else (1 << 64) - 1)).to_bytes(8, "big")
    if len(key) > size:
        raise DataError(f"keep: expected a number, or a text of at most {size - 1} bytes, got {value!r:.30}…")
    return key.ljust(size, b"\0").translate(_INVERTED) if greatest else key


_INVERTED = bytes(range(255, -1, -1))


def seed_of(scope: Any) -> int:
    """Return the seed of hashes for a value of the scope."""
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(scope, order="sorted"))
