"""The settings of a ``mix:`` section, and how they are read.

Which split a document is in: by hash of its id.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import msgspec
import xxhash

from toolkit.config import settings as config
from toolkit.config.plugin_code import recorded_code
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.config.sizes import Size
from toolkit.data import chosen_text, line_index
from toolkit.data.dataset import Dataset
from toolkit.data.own_types import OwnTypes
from toolkit.mix.budget.settings import BudgetSettings
from toolkit.mix.shuffle import HEAD, Shuffle
from toolkit.mix.writer import Writer, find_writer, part_name
from toolkit.rules import Role, Rule, kind_called
from toolkit.rules.kinds.drop import Sample
from toolkit.rules.kinds.repeat import Budget
from toolkit.session import cached
from toolkit.storage import store_of
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.globs import glob_regex
from toolkit.storage.models import digest
from toolkit.storage.paths import join
from toolkit.tag.tagger import model_name, model_options
from toolkit.text import editing

Compression = Literal["gzip", "gzip-fast", "zstd", "none"]
SUFFIXES: dict[str, str] = {"gzip": ".gz", "gzip-fast": ".gz", "zstd": ".zst", "none": ""}
assert SUFFIXES.keys() == COMPRESSORS.keys()

MEMBER = 1 << 20  # uncompressed bytes after which a member of an intermediate ends
SHUFFLED = 1 << 18  # likewise, where the output is shuffled: a part takes few of a run


COPY = "copy"
"""The field of the metadata that numbers the copies of a document from 1, in a mix that repeats some."""

REJECTED = ""
"""The label of dropped documents; no writer can give it."""


class JoinedOption(ConfigStruct):
    """A set among ``attributes:``, with other names for some of its keys."""

    set: Annotated[str, Description(description="the attribute set")]
    as_: Annotated[dict[str, str], Description(description="{key: its name in the mix}")] = msgspec.field(
        name="as", default_factory=dict
    )


class Joined(JoinedOption):
    """A joined set with its place in the file, for messages."""

    place: str = ""


class OutputSettings(ConfigStruct):
    """The options of ``output:`` that all formats share; a format's own stand beside them."""

    format: Annotated[str, Description(description="the output format")]
    path: Annotated[str, Description(description="the output folder")]
    part_size: Annotated[
        Size, Description(description="uncompressed bytes of a part, exceeded only by a document that is larger")
    ] = Size(10**9)
    compression: Annotated[
        Compression,
        Description(
            description="gzip: small; gzip-fast: larger, several times as fast; default: that of the format, "
            "usually gzip"
        ),
    ] = "gzip"
    provenance: Annotated[
        Literal["line"] | bool,
        Description(
            description="metadata.provenance of each document: shard, row, and the joined sets with the versions of "
            "their taggers and the digest of their values; `line`: the shard's name and the row, as Dolma has it"
        ),
    ] = False
    shuffle: Annotated[
        Shuffle | None,
        Description(
            title="{seed, unit: document | line, equal: bytes | documents}",
            description="documents, or lines, of each label in the order of their hashes, in parts of equal size",
        ),
    ] = None
    index: Annotated[
        bool,
        Description(
            description="write the index of Modalities (`.idx`) beside each part, with offset and length of each "
            "line; needs lines of JSON and `compression: none`"
        ),
    ] = False
    keep_empty: Annotated[
        bool,
        Description(
            description="keep documents that have no text left after edits, which are otherwise dropped and counted"
        ),
    ] = False


class Stream(ConfigStruct):
    """A dataset with the sets that are joined to it and the rules that decide over it.

    Attributes:
        name: empty for the only one of a mix without ``streams:``.
        weight: its share of the output's characters, relative to those of the other streams.
        share: of its documents that are left to come to that; known when all streams have been looked at.
        same_keys: whether two sets may have one key, the value of the later counting where it has one.
        overlaps: what spans that overlap become (see `toolkit.text.editing`): ``first``, as Dolma does.
        past_end: what a span becomes whose end is past the text (see `toolkit.text.editing`).
        text: the text that is taken for that of its documents (see `toolkit.data.chosen_text`); None for their own.
        order: of its shards in the output: numbers by globs over shards, the lowest first, and within one number by
            path; None for the order of their names.
        budget: the rule that the budget of the mix becomes; its bounds are known when all streams have been looked at.
        own: types of the own fields of its documents, if they are known; they decide nothing but what rules may ask.
    """

    name: str
    dataset: Dataset
    attributes: list[Joined]
    rules: list[Rule]
    weight: float | None = None
    share: float | None = None
    same_keys: Literal["refuse", "later"] = "refuse"
    overlaps: editing.Overlaps = "union"
    past_end: editing.PastEnd = "refuse"
    text: str | None = None
    order: dict[str, int] | None = None
    own: OwnTypes | None = None
    budget: Budget | None = None

    @classmethod
    def over(cls, dataset: Dataset, sets: Iterable[str] = (), place: str = "") -> Self:
        """Return a stream that joins sets of a dataset as they are, and has no rules; `place` is named in messages."""
        joined = [Joined(set=name, place=place) for name in sets]
        return cls(name="", dataset=dataset, attributes=joined, rules=[], same_keys="later")

    def position(self, shard: str) -> tuple[int, tuple[str, ...]]:
        """Return what a shard is sorted by: its number, and its path as a folder (in a bucket, its key) is listed."""
        order, file = self.order or {}, self.dataset.file_of(shard)
        number = next((n for glob, n in order.items() if glob_regex(glob).match(file)), len(order))
        return number, tuple(shard.split("/")) if store_of(self.dataset.documents).is_local else (shard,)

    @property
    def seed(self) -> str:
        """Return what tells its documents from equal ones of other streams, where there may be such."""
        return self.name if self.dataset.duplicate_ids == "allow" else ""

    @property
    def all_rules(self) -> list[Rule]:
        """Return the rules, the sample that a weight comes to, and what a budget comes to."""
        found = list(self.rules)
        if self.share is not None:
            found.append(Sample(name=f"weight {self.weight:g}", share=self.share, seed="weight"))
        if self.budget is not None:
            found.append(self.budget)
        return found

    def recorded(self, found: list[Rule]) -> dict[str, Any]:
        """Return the settings, with these rules, without the places where things are."""
        return {
            "name": self.name,
            "attributes": [{"set": joined.set, "as": joined.as_} for joined in self.attributes],
            "rules": [rule.recorded() for rule in found],
            "same_keys": self.same_keys,
            "overlaps": self.overlaps,
            **self.dataset.lineage,
        } | {
            key: value
            for key, value in (
                ("weight", self.weight),
                (chosen_text.OPTION, self.text),
                ("order", self.order and list(self.order.items())),
                ("duplicate_ids", None if self.dataset.duplicate_ids == "refuse" else "allow"),
                ("past_end", None if self.past_end == "refuse" else self.past_end),
            )
            if value is not None
        }


class MixSettings(ConfigStruct):
    """A ``mix:`` section, as data that can be sent to a worker.

    Attributes:
        streams: what is mixed, sorted by name.
        output: what all formats share.
        options: of the format.
        label: expression of a document's label, instead of that of the format.
        rejected: folder for the documents that are dropped, None if they are not kept.
        unicode_words: whether the statistics have Unicode's words, too.
        budget: how much is taken; None for everything.
        allow_empty: whether an output without documents is published.
        orphans: ``allow`` publishes also if documents are dropped as copies of documents that are not kept.
        splits: shares of the splits by which the files are parted; each is a folder of its own.
        deletes: whether the documents of a shard are deleted when it is mixed.
        place: of the output in the file, for messages.
        columns: that documents bring, for a format with `COLUMNS`, once all shards are known.
    """

    streams: list[Stream]
    output: OutputSettings
    options: dict[str, Any]
    label: str | None = None
    on_failed_shard: Literal["stop", "omit"] = "stop"
    rejected: str | None = None
    unicode_words: bool = False
    budget: BudgetSettings | None = None
    allow_empty: bool = False
    orphans: Literal["refuse", "allow"] = "refuse"
    splits: dict[str, float] = {}
    deletes: bool = False
    place: str = ""
    columns: str = ""

    @property
    def notes_ids(self) -> bool:
        """Return whether written documents are noted, because row indexes do not tell which ids are in the output."""
        return (len(self.streams) > 1 or self.deletes) and self.streams[0].dataset.duplicate_ids == "refuse"

    @property
    def repeats(self) -> bool:
        """Return whether a rule may write a document more than once: then all copies are numbered."""
        return any(rule.ROLE is Role.REPEATS for stream in self.streams for rule in stream.rules)

    def writer(self) -> Writer:
        return writer_with(self.output.format, msgspec.json.encode(self.options, order="sorted"), self.columns)

    def position(self, key: str) -> tuple[int, tuple[str, ...], str]:
        """Return what the shards of a label are sorted by, of the shard with this key."""
        name, _, shard = key.partition("/") if self.streams[0].name else ("", "", key)
        stream = next(stream for stream in self.streams if stream.name == name)
        return (-1, (), key) if stream.order is None else (*stream.position(shard), key)

    @property
    def needs_all_shards(self) -> str:
        """Return what of the mix depends on all shards, so that these are looked at first; empty for nothing."""
        return "weights" if self.streams[0].weight is not None else "a budget" if self.budget else ""

    def concatenates(self, label: str) -> bool:
        """Return True if a label's parts are its members one behind the other."""
        return label == REJECTED or self.writer().CONCATENATES

    @property
    def frame(self) -> int:
        """Return the bytes before each piece in an intermediate: those of its hash, where the output is shuffled."""
        return HEAD if self.output.shuffle else 0

    def shuffles(self, label: str) -> bool:
        """Return True if a label is shuffled: all are then, but dropped documents."""
        return self.output.shuffle is not None and label != REJECTED

    def staged(self, label: str) -> Compression:
        """Return the compression of a label's members in intermediates; those of shuffled ones nobody else sees."""
        return "gzip-fast" if self.shuffles(label) else self.compression(label)

    def compression(self, label: str) -> Compression:
        """Return the compression of a label's members; nobody sees those of which a format makes files of its own."""
        return self.output.compression if self.concatenates(label) else "gzip-fast"

    def part(self, label: str, number: int, parts: int) -> str:
        """Return the path of a label's part below the output folder; parts are numbered from 1."""
        compression = SUFFIXES[self.output.compression] if self.concatenates(label) else ""
        if label == REJECTED and self.rejected is not None:
            stem = os.path.join(os.path.relpath(self.rejected, self.output.path), "documents", "rejected")
            return part_name(stem, ".jsonl" + compression, number, parts)
        return self.writer().part(label, number, parts, compression)

    def beside(self, label: str, path: str) -> Sequence[str]:
        """Return the paths of the files beside a part of a label."""
        if not self.concatenates(label):
            return self.writer().beside(path)
        return [line_index.path_of(path)] if self.output.index and label != REJECTED else []

    def checksums(self, label: str) -> str:
        """Return the path of a label's checksum file below the output folder."""
        if label == REJECTED and self.rejected is not None:
            return os.path.join(os.path.relpath(self.rejected, self.output.path), "rejected_sha256.txt")
        return self.writer().checksums(label)

    @property
    def member_size(self) -> int:
        """Return the size of members: small beside that of parts, so that parts come close to theirs."""
        return max(1, min(MEMBER, self.output.part_size // 8)) if not self.output.shuffle else SHUFFLED

    def _settings(self, streams: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "streams": streams,
            "label": self.label,
            "format": recorded_reference(self.output.format),
            "version": self.writer().VERSION,
            **recorded_code(type(self.writer())),
            **_options(self.writer()),
            "compression": self.output.compression,
            "provenance": self.output.provenance,
            "keep_empty": self.output.keep_empty,
            "member_size": self.member_size,
            "rejected": self.rejected is not None,
        } | {
            name: value
            for name, value in (
                ("unicode_words", self.unicode_words),
                ("splits", list(self.splits.items())),
                ("index", self.output.index),
                ("shuffle", self.output.shuffle and config.plain(self.output.shuffle)),
                ("budget", self.budget and self.budget.recorded()),
            )
            if value
        }

    def recorded(self) -> dict[str, Any]:
        """Return the settings as the manifest holds them."""
        streams = [stream.recorded(stream.rules) for stream in self.streams]
        settings = {**self._settings(streams), "part_size": int(self.output.part_size)}
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
        return found

    @staticmethod
    def added_fields(recorded: Mapping[str, Any]) -> list[str]:
        """Return the fields of the metadata that a mix with these settings, as its manifest holds them, added."""
        given = {
            rule["field"].partition(".")[0]
            for s in recorded.get("streams", ())
            for rule in s["rules"]
            if "field" in rule
        }
        kinds = {str(rule.get("kind")) for s in recorded.get("streams", ()) for rule in s["rules"]}
        if any(kind_called(kind).ROLE is Role.REPEATS for kind in kinds):
            given.add(COPY)
        return sorted(given | ({"provenance"} if recorded.get("provenance") else set()))

    def stage_digest(self) -> str:
        """Return the digest of all that determines the intermediates but the inputs."""
        streams = [stream.recorded(stream.all_rules) for stream in self.streams]
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode(self._settings(streams)))


def work_folder(output: str) -> str:
    """Return the folder in which a mix keeps what is not published yet, and its records."""
    return join(output, ".toolkit")


def _options(writer: Writer) -> dict[str, Any]:
    """Return the options of a format as they are recorded: of model files what they are called, and their digests."""
    named = model_options(writer)
    found = {"options": config.plain(writer) | {option: model_name(path) for option, path in named.items()}}
    return found | ({"models": {option: digest(path) for option, path in named.items()}} if named else {})


@cached(16)
def writer_with(format_: str, options: bytes, columns: str = "") -> Writer:
    class_ = find_writer(format_, "mix.output.format")
    found = config.convert(ConfigNode(msgspec.json.decode(options)), class_, f"format {format_}")
    found.__dict__["own_columns"] = columns
    return found


def split_of(id: bytes, shares: Mapping[str, float]) -> str:
    """Return the split of an id: its xxh3-64 as a fraction of 2^64 lies in the share of one, in their order."""
    place, end = xxhash.xxh3_64_intdigest(id) / 2**64, 0.0
    for name, share in shares.items():
        end += share
        if place < end:
            return name
    return list(shares)[-1]
