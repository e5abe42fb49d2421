"""Plugin stages over all documents: their three functions, in place of the files and tasks of a kind.

documents/X ──extract──> .toolkit/dedup/SET/signatures/X ──combine──> decisions-KEY/whole ──finish──> attributes/SET/X
"""

import sys
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, ClassVar

import msgspec
import xxhash

from toolkit.config.plugin_code import recorded_code
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct, convert
from toolkit.data import schema
from toolkit.errors import ConfigError, DataError, Unreadable, in_words
from toolkit.exchange.checksummed import read_sealed, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.make.stage import STAGES, Stage, item_of, made_of_each, result_of
from toolkit.records.takedown import empty
from toolkit.storage.json_files import decoder_of
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines
from toolkit.tag.tagger import metadata_fields, references
from toolkit.text.batch import BLOCK_ROWS
from toolkit.whole_corpus.kind import Decisions, Files, Kind, Query, ResolveJob, Signer, TextBlock
from toolkit.whole_corpus.records import NumberedShards, SignedShard

EXTRACTED, WHOLE = "extracted.jsonl.gz", "whole"
"""Files of a shard's signatures, and of decisions."""

_ENCODER = msgspec.json.Encoder()


class Make(Kind, kw_only=True):
    """A stage of the section ``make:`` over all documents.

    Attributes:
        stage: Reference by which its class is found.
        options: Options of the class.
    """

    SECTION: ClassVar[str] = "make"
    NEUTRAL: ClassVar[frozenset[str]] = frozenset({"stage"})
    KEPT: ClassVar[float] = 0.03

    stage: str
    options: dict[str, Any] = {}

    def configured(self) -> Stage:
        """Return the configured stage."""
        return convert(ConfigNode(self.options), STAGES.find(self.stage), f"stage {self.stage}")

    def check(self) -> None:
        """Raise ConfigError if it cannot run here."""
        self.configured().check()

    def value_type(self) -> Any:
        """Return the declared type of the values."""
        return made_of_each(STAGES.find(self.stage))

    def queries(self) -> dict[str, Query]:
        """Return the attributes in the options."""
        return {reference.option: Query(reference.text, "value") for reference in references(self.configured())}

    def facts(self) -> dict[str, Any]:
        """Return the name of the stage, and the versions of its code."""
        class_ = STAGES.find(self.stage)
        return {"stage": recorded_reference(self.stage), "stage_version": class_.VERSION, **recorded_code(class_)}

    def signer(self, files: Files) -> Signer:
        """Return a writer of extracted values."""
        return _Extracting(self, files)

    def resolve(self, work: ResolveJob) -> Decisions:
        """Combine the values of all documents in one task."""
        payload = _ToCombine(stage=self, shards=work.all(), path=join(work.folder, WHOLE))
        (digest,) = work.run("combining what is needed of all documents", combine_values, [Task("combine", payload)])
        own = {shard.shard: shard.record.files[EXTRACTED].sha256 for shard in work.shards if shard.own}
        return Decisions({shard: f"{digest} {extracted}" for shard, extracted in own.items()})

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the value of each document."""
        stage, type_ = self.configured(), self.value_type()
        whole = decoder_of(result_of(stage.combine)).decode(read_sealed(join(fates, WHOLE)))
        none = empty(schema.from_annotation(type_, signed.shard))
        rows = enumerate(_extracted(stage, signed), 1)
        while some := [*islice(rows, BLOCK_ROWS)]:
            numbers = [number for number, (counts, _) in some if counts]
            own = [value for _, (counts, value) in some if counts]
            try:
                results = checked(stage, "finish", type_, _finished(stage, own, whole), len(own)) if own else []
            except DataError as error:
                path = signed.dataset.shard_path(signed.shard)
                raise DataError(error.message, path=path, line=numbers[(error.line or 1) - 1]) from error
            values = dict(zip(numbers, results, strict=True))
            yield from (values.get(number, none) for number, _ in some)


def _finished(stage: Stage, values: list[Any], whole: Any) -> list[Any]:
    try:
        return list(stage.finish(values, whole))
    except (ConfigError, Unreadable):
        raise
    except Exception as error:
        raise _failed(stage, "finish", error) from error


def checked(stage: Stage, function: str, type_: Any, values: list[Any], count: int) -> list[Any]:
    """Return a stage function's values, checked in number and type.

    Raises:
        DataError: with the number of the first value that is not, from 1.
    """
    name = f"stage {type(stage).__name__}"
    if len(values) != count:
        raise DataError(f"{name}: expected {count} values of `{function}`, got {len(values)}")
    for number, value in enumerate(values, 1):
        try:
            decoder_of(type_).decode(_ENCODER.encode(value))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            message = f"{name}: expected values of `{function}` of its declared type, got {value!r:.200}: "
            raise DataError(message + in_words(str(error)), line=number) from None
    return values


class _Extracting(Signer):
    """Writes the extracted value of each document; null for one of the takedown lists, which does not compete."""

    def __init__(self, kind: Make, files: Files) -> None:
        super().__init__(kind, files)
        self._stage = kind.configured()
        self._output = RowOutput(files.path(EXTRACTED))
        files.add(EXTRACTED, self._output)
        self._references, self._fields = references(self._stage), metadata_fields(self._stage)
        self._type = item_of(self._stage.extract)

    def add(self, block: TextBlock) -> None:
        documents = list(block.documents)
        competing = [number for number, competes in enumerate(block.competes) if competes]
        for number in competing:
            document = documents[number]
            try:
                for field in self._fields:
                    document.give(field.text, field.of(document))
                for reference in self._references:
                    document.give(
                        reference.text, msgspec.convert(block.values[reference.option][number], reference.type)
                    )
            except (DataError, msgspec.ValidationError) as error:
                message = f"stage {type(self._stage).__name__}: {in_words(str(error))}"
                raise DataError(message, line=block.first + number + 1, id=document.id) from None
        by_number: dict[int, Any] = {}
        for first in range(0, len(competing), BLOCK_ROWS):
            numbers = competing[first : first + BLOCK_ROWS]
            some = [documents[number] for number in numbers]
            try:
                values = checked(self._stage, "extract", self._type, self._extract(some), len(some))
            except DataError as error:
                number = numbers[(error.line or 1) - 1]
                raise DataError(error.message, line=block.first + number + 1, id=documents[number].id) from error
            by_number |= dict(zip(numbers, values, strict=True))
        self._output.write_rows([_ENCODER.encode((i in by_number, by_number.get(i))) for i in range(len(documents))])

    def _extract(self, documents: list[Any]) -> list[Any]:
        """Return the values of some documents; an error is that of the first document with which it fails."""
        try:
            return list(self._stage.extract(documents))
        except (ConfigError, Unreadable):
            raise
        except Exception as error:
            for number, document in enumerate(documents, 1):
                try:
                    self._stage.extract([document])
                except Exception as own:
                    raise _failed(self._stage, "extract", own, number) from own
            raise _failed(self._stage, "extract", error) from error

    def finish(self) -> tuple[dict[str, int], Any]:
        return {}, None


def _failed(stage: Stage, function: str, error: Exception, line: int | None = None) -> DataError:
    return DataError(f"stage {type(stage).__name__}: `{function}` failed: {type(error).__name__}: {error}", line=line)


class _ToCombine(ConfigStruct):
    """The values of all shards, and the path of the result."""

    stage: Make
    shards: NumberedShards
    path: str


def combine_values(work: _ToCombine, report: Report) -> str:
    """Combine the values of all documents into a file; return its digest."""
    stage = work.stage.configured()
    values = (value for signed in work.shards.load() for counts, value in _extracted(stage, signed) if counts)
    try:
        result = stage.combine(values)
    except (ConfigError, DataError, Unreadable):
        raise
    except Exception as error:
        raise _failed(stage, "combine", error) from error
    encoded = _ENCODER.encode(*checked(stage, "combine", result_of(stage.combine), [result], 1))
    write_sealed(work.path, encoded)
    return xxhash.xxh3_128_hexdigest(encoded)


def _extracted(stage: Stage, signed: SignedShard) -> Iterator[tuple[bool, Any]]:
    """Yield the extracted value of each document, and if it has one."""
    pair: Any = tuple
    type_ = pair[bool, item_of(stage.extract) | None]
    with Lines(signed.path(EXTRACTED), sys.maxsize) as lines:
        yield from map(decoder_of(type_).decode, chain.from_iterable(lines.blocks()))
