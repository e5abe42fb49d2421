"""The settings of a ``mix:`` section, and how they are read."""

import ast
import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
import xxhash

from toolkit import rules
from toolkit.config import settings as config
from toolkit.config.plugin_code import recorded_code
from toolkit.config.settings import ConfigStruct, Description, Source
from toolkit.config.sizes import Size
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.errors import ConfigError, DataError, did_you_mean
from toolkit.mix.writer import Writer, check_label, find_writer, part_name
from toolkit.rules import Rule
from toolkit.rules.expressions import is_name
from toolkit.rules.kinds.sample import Sample
from toolkit.storage import store_of
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.globs import glob_regex
from toolkit.storage.paths import fault_of_name, join
from toolkit.text import editing

Compression = Literal["gzip", "gzip-fast", "zstd", "none"]
SUFFIXES: dict[str, str] = {"gzip": ".gz", "gzip-fast": ".gz", "zstd": ".zst", "none": ""}
assert SUFFIXES.keys() == COMPRESSORS.keys()

MEMBER = 1 << 20  # uncompressed bytes after which a member of an intermediate ends


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
        Compression, Description(description="gzip: small; gzip-fast: larger, several times as fast")
    ] = "gzip"
    provenance: Annotated[
        Literal["line"] | bool,
        Description(
            description="metadata.provenance of each document: shard, row, and the joined sets with the versions of "
            "their taggers and the digest of their values; `line`: the shard's name and the row, as Dolma has it"
        ),
    ] = False
    keep_empty: Annotated[
        bool, Description(description="documents that have no text left after edits stay, instead of being counted out")
    ] = False


class Stream(ConfigStruct):
    """A dataset with the sets that are joined to it and the rules that decide over it.

    Attributes:
        name: empty for the only one of a mix without ``streams:``.
        weight: its share of the output's characters, relative to those of the other streams.
        share: of its documents that are left to come to that; known when all streams have been looked at.
        same_keys: whether two sets may have one key, the value of the later counting where it has one.
        overlaps: what spans that overlap become (see `toolkit.text.editing`): ``first``, as Dolma does.
        order: of its shards in the output: numbers by globs over shards, the lowest first, and within one number by
            path; None for the order of their names.
    """

    name: str
    dataset: Dataset
    attributes: list[Joined]
    rules: list[Rule]
    weight: float | None = None
    share: float | None = None
    same_keys: Literal["refuse", "later"] = "refuse"
    overlaps: editing.Overlaps = "union"
    order: dict[str, int] | None = None

    def position(self, shard: str) -> tuple[int, tuple[str, ...]]:
        """Return what a shard is sorted by: its number, and its path as a folder (in a bucket, its key) is listed."""
        order = self.order or {}
        number = next((n for glob, n in order.items() if glob_regex(glob).match(shard)), len(order))
        return number, tuple(shard.split("/")) if store_of(self.dataset.documents).is_local else (shard,)

    @property
    def all_rules(self) -> list[Rule]:
        """Return the rules, and the sample that a weight comes to."""
        if self.share is None:
            return self.rules
        weighted = Sample(name=f"weight {self.weight:g}", share=self.share, seed="weight")
        return [*self.rules, weighted]

    def recorded(self, found: list[Rule]) -> dict[str, Any]:
        """Return the settings, with these rules, without the places where things are."""
        return {
            "name": self.name,
            "attributes": [{"set": joined.set, "as": joined.as_} for joined in self.attributes],
            "rules": [rule.recorded() for rule in found],
            "same_keys": self.same_keys,
            "overlaps": self.overlaps,
        } | {
            key: value
            for key, value in (("weight", self.weight), ("order", self.order and list(self.order.items())))
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
        allow_empty: whether an output without documents is published.
        splits: shares of the splits by which the files are parted; each is a folder of its own.
        place: of the output in the file, for messages.
    """

    streams: list[Stream]
    output: OutputSettings
    options: dict[str, Any]
    label: str | None = None
    on_failed_shard: Literal["stop", "omit"] = "stop"
    rejected: str | None = None
    unicode_words: bool = False
    allow_empty: bool = False
    splits: dict[str, float] = {}
    place: str = ""

    def writer(self) -> Writer:
        return _writer(self.output.format, msgspec.json.encode(self.options, order="sorted"))

    def position(self, key: str) -> tuple[int, tuple[str, ...], str]:
        """Return what the shards of a label are sorted by, of the shard with this key."""
        name, _, shard = key.partition("/") if self.streams[0].name else ("", "", key)
        stream = next(stream for stream in self.streams if stream.name == name)
        return (-1, (), key) if stream.order is None else (*stream.position(shard), key)

    def concatenates(self, label: str) -> bool:
        """Return True if a label's parts are its members one behind the other."""
        return label == REJECTED or self.writer().CONCATENATES

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

    def checksums(self, label: str) -> str:
        """Return the path of a label's checksum file below the output folder."""
        if label == REJECTED and self.rejected is not None:
            return os.path.join(os.path.relpath(self.rejected, self.output.path), "rejected_sha256.txt")
        return self.writer().checksums(label)

    @property
    def member_size(self) -> int:
        """Return the size of members: small beside that of parts, so that parts come close to theirs."""
        return max(1, min(MEMBER, self.output.part_size // 8))

    def _settings(self, streams: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "streams": streams,
            "label": self.label,
            "format": self.output.format,
            "version": self.writer().VERSION,
            **recorded_code(type(self.writer())),
            "options": config.plain(self.writer()),
            "compression": self.output.compression,
            "provenance": self.output.provenance,
            "keep_empty": self.output.keep_empty,
            "member_size": self.member_size,
            "rejected": self.rejected is not None,
        } | {
            name: value
            for name, value in (("unicode_words", self.unicode_words), ("splits", list(self.splits.items())))
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
        return sorted(given | ({"provenance"} if recorded.get("provenance") else set()))

    def stage_digest(self) -> str:
        """Return the digest of all that determines the intermediates but the inputs."""
        streams = [stream.recorded(stream.all_rules) for stream in self.streams]
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode(self._settings(streams)))


_JOIN_KEYS = ("attributes", "rules", "parameters", "languages")
_KEYS = (*_JOIN_KEYS, "streams", "label", "output", "on_failed_shard", "rejected", "unicode_words", "allow_empty")
_STREAM_KEYS = ("name", "dataset", *_JOIN_KEYS, "sample", "weight", "same_keys", "overlaps", "order")


@functools.lru_cache(16)
def _writer(format_: str, options: bytes) -> Writer:
    class_ = find_writer(format_, "mix.output.format")
    return config.convert(Source(msgspec.json.decode(options)), class_, f"format {format_}")


def read_section(section: Source, base: str, dataset: Callable[[], Dataset]) -> MixSettings:
    """Return the settings of a ``mix:`` section.

    Args:
        section: the section.
        base: folder of the configuration, which included rules are relative to.
        dataset: gives the configuration's own, for streams that name none.

    Raises:
        ConfigError: naming the place in the file.
    """
    value = section.value
    if not isinstance(value, dict) or not value:
        raise section.error((), "expected `attributes:`, `rules:` and `output:`")
    _refuse_unknown(section, _KEYS)
    if "output" not in value:
        raise section.error((), "expected `output: {format: …, path: …}`")
    omit = value.get("on_failed_shard", "stop")
    if omit not in ("stop", "omit"):
        raise section.error(("on_failed_shard",), f"expected stop or omit, got {omit!r}")
    for key, what in (("rejected", "a path"), ("label", "an expression")):
        if not isinstance(value.get(key), str | None) or value.get(key) == "":
            raise section.error((key,), f"expected {what}, got {value[key]!r}")
    for key in ("unicode_words", "allow_empty"):
        if not isinstance(value.get(key, False), bool):
            raise section.error((key,), f"expected true or false, got {value[key]!r}")
    output, options = _output(section.at("output"))
    _writer.cache_clear()  # the file of a format may have been edited since
    return MixSettings(
        streams=_streams(section, base, dataset),
        output=output,
        options=options,
        label=value.get("label"),
        on_failed_shard=omit,
        rejected=value.get("rejected"),
        unicode_words=value.get("unicode_words", False),
        allow_empty=value.get("allow_empty", False),
        place=section.at("output").where(()),
    )


def _refuse_unknown(place: Source, known: tuple[str, ...]) -> None:
    for key in place.value:
        if key not in known:
            hint = did_you_mean(key, known) or f"; known: {', '.join(known)}"
            raise place.error((key,), f"unknown option {key!r}{hint}")


def _output(place: Source) -> tuple[OutputSettings, dict[str, Any]]:
    keys = tuple(f.encode_name for f in msgspec.structs.fields(OutputSettings))
    if not isinstance(place.value, dict):
        raise place.error((), "expected {format: …, path: …}")
    common, options = config.divide(place, keys)
    output = config.convert(common, OutputSettings)
    try:
        class_ = find_writer(output.format, "format")
    except ConfigError as error:
        raise place.error((), str(error)) from None
    config.refuse_unknown(place, class_, keys, f"format {output.format}")
    writer = config.convert(options, class_, f"format {output.format}")
    _check_one_label(place, writer.label())
    if "compression" in common.value and not class_.CONCATENATES:
        raise place.error(
            ("compression",),
            f"expected none, {output.format} compresses inside its files; see the options of the format",
        )
    if output.provenance and not class_.FIELDS:
        raise place.error(("provenance",), f"expected a format with a place for metadata, got {output.format}")
    return output, options.value


def _check_one_label(place: Source, label: str | None) -> None:
    """Raise ConfigError if a format gives all documents one label, a text in quotes, that cannot be a file's name."""
    if label is None or not label.startswith(("'", '"')):
        return
    try:
        check_label(ast.literal_eval(label))
    except DataError as error:
        raise place.error(("name",) if "name" in place.value else (), error.message) from None


# --- streams ----------------------------------------------------------------------------------------------------------


def _streams(section: Source, base: str, dataset: Callable[[], Dataset]) -> list[Stream]:
    shared = _joined(section)
    scope = rules.read_scope(section, base)
    if "streams" not in section.value:
        found = _rules(section, base, scope)
        rules.check_names(found)
        rules.check_used(section, scope, found)
        return [Stream(name="", dataset=dataset(), attributes=shared, rules=found)]
    streams: dict[str, Stream] = {}
    for place in _entries(section.at("streams")):
        stream = _stream(place, section, base, scope, shared, dataset)
        if stream.name in streams:
            raise place.error((), f"expected each stream under a name of its own, got {stream.name!r} twice")
        streams[stream.name] = stream
    rules.check_used(section, scope, [rule for stream in streams.values() for rule in stream.rules])
    weighted = [stream.weight is not None for stream in streams.values()]
    if any(weighted) and not all(weighted):
        raise section.error(("streams",), "expected a `weight:` for each stream, or for none")
    return [streams[name] for name in sorted(streams)]


def _entries(place: Source) -> list[Source]:
    """Return the streams, each with its name: of a list, or of a mapping from names."""
    value = place.value
    if not isinstance(value, list | dict) or not value:
        raise place.error((), "expected streams: a list of {name: …, dataset: …}, or {NAME: {dataset: …}}")
    found = []
    for key in value if isinstance(value, dict) else range(len(value)):
        entry = place.at(key)
        if not isinstance(entry.value, dict):
            raise entry.error((), f"expected a stream such as {{dataset: ROOT, attributes: […]}}, got {entry.value!r}")
        if isinstance(key, str):
            if "name" in entry.value:
                raise entry.error(("name",), f"expected the stream's name once, it is {key!r} already")
            entry.value = {"name": key, **entry.value}
        found.append(entry)
    return found


def _stream(
    place: Source, section: Source, base: str, scope: rules.Scope, shared: list[Joined], dataset: Callable[[], Dataset]
) -> Stream:
    _refuse_unknown(place, _STREAM_KEYS)
    name = place.value.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise place.error(
            ("name",),
            f"expected a name of letters, digits, _ . and - that begins with one of the first three, got {name!r}",
        )
    weight = place.value.get("weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0):
        raise place.error(("weight",), f"expected a number above 0, got {weight!r}")
    own = rules.read_scope(place, base)
    inner = rules.merged(scope, own)  # a stream knows better than the mix
    found = [*_rules(place, base, inner), *_rules(section, base, inner)]
    if "sample" in place.value:
        sample = place.at()
        sample.value = [{"sample": place.value["sample"]}]
        found += rules.read_rules(sample, base)
    rules.check_names(found)
    rules.check_used(place, own, found)
    return Stream(
        name=name,
        dataset=_dataset(place, dataset),
        attributes=[*_joined(place), *shared],
        rules=found,
        weight=None if weight is None else float(weight),
        same_keys=_choice(place, "same_keys", ("refuse", "later")),
        overlaps=_choice(place, "overlaps", ("union", "first")),
        order=_order(place),
    )


def _choice(place: Source, key: str, choices: tuple[str, ...]) -> Any:
    value = place.value.get(key, choices[0])
    if value not in choices:
        raise place.error((key,), f"expected {' or '.join(choices)}, got {value!r}")
    return value


def _order(place: Source) -> dict[str, int] | None:
    """Return numbers by globs, lowest first; of a list its indexes."""
    value = place.value.get("order")
    numbers = {glob: i for i, glob in reversed(list(enumerate(value)))} if isinstance(value, list) else value
    if numbers is not None and not (
        isinstance(numbers, dict) and all(isinstance(g, str) and type(n) is int for g, n in numbers.items())
    ):
        raise place.error(("order",), f"expected globs over shards, or {{GLOB: NUMBER}}, got {value!r}")
    return dict(sorted(numbers.items(), key=lambda item: item[1])) if numbers else None


def _dataset(place: Source, default: Callable[[], Dataset]) -> Dataset:
    value = place.value.get("dataset")
    if value is None:
        return default()
    options = {"dataset": value} if isinstance(value, str) else value
    if not isinstance(options, dict) or not options.keys() <= {"dataset", "documents", "attributes", "bookkeeping"}:
        raise place.error(
            ("dataset",), "expected ROOT, or {dataset: ROOT, documents: …, attributes: …, bookkeeping: …}"
        )
    try:
        return open_dataset(
            options.get("dataset"), options.get("documents"), options.get("attributes"), options.get("bookkeeping", "")
        )
    except ConfigError as error:
        raise place.error(("dataset",), str(error)) from None


def _rules(place: Source, base: str, scope: rules.Scope) -> list[Rule]:
    return rules.read_rules(place.at("rules"), base, scope) if place.value.get("rules") is not None else []


def _joined(section: Source) -> list[Joined]:
    listed = section.value.get("attributes", [])
    if not isinstance(listed, list):
        raise section.error(("attributes",), "expected a list of attribute sets")
    joined = []
    for i, entry in enumerate(listed):
        place = section.at("attributes", i)
        found = JoinedOption(entry) if isinstance(entry, str) else config.convert(place, JoinedOption)
        if wrong := [name for name in found.as_.values() if not is_name(name)]:
            raise place.error(("as",), f"expected names that rules can use, of letters, digits and _, got {wrong[0]!r}")
        if (fault := fault_of_name(found.set)) or "/" in found.set:
            raise place.error((), fault or f"expected the name of an attribute set, without `/`, got {found.set!r}")
        joined.append(Joined(set=found.set, as_=found.as_, place=place.where(())))
    return joined


def work_folder(output: str) -> str:
    """Return the folder in which a mix keeps what is not published yet, and its records."""
    return join(output, ".toolkit")
