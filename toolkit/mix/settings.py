"""The settings of a mix, and how a section ``mix:`` becomes them."""

import ast
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import xxhash
from msgspec.structs import replace

from toolkit.config import settings as config
from toolkit.config.plugin_code import recorded_code
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct, Description
from toolkit.data import chosen_text, line_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError
from toolkit.ingest.in_place import open_dataset
from toolkit.mix.budget import BudgetSettings, read_budget
from toolkit.mix.join import Joined, JoinedDataset, read_joined
from toolkit.mix.shuffle import HEAD, Shuffle
from toolkit.mix.writer import Writer, check_label, find_writer, part_name
from toolkit.plugins import errors_of
from toolkit.records import takedown
from toolkit.rules import rules_yaml
from toolkit.rules.expressions import is_name
from toolkit.rules.kinds import kind_called
from toolkit.rules.kinds.blocklist import Blocklist
from toolkit.rules.kinds.drop import Sample
from toolkit.rules.kinds.edits import EditText
from toolkit.rules.kinds.repeat import Budget
from toolkit.rules.rule import Role, Rule
from toolkit.rules.text_edits import EditForm, edits_in, read_edits
from toolkit.session import cached, cached_last
from toolkit.storage import store_of
from toolkit.storage.compression import COMPRESSORS
from toolkit.storage.globs import glob_regex
from toolkit.storage.models import digest
from toolkit.storage_options import Size
from toolkit.tag.tagger import model_name, model_options
from toolkit.text import editing

Compression = Literal["gzip", "gzip-fast", "zstd", "none"]
SUFFIXES: dict[str, str] = {"gzip": ".gz", "gzip-fast": ".gz", "zstd": ".zst", "none": ""}
assert SUFFIXES.keys() == COMPRESSORS.keys()

MEMBER = 1 << 20  # uncompressed bytes after which a member of an intermediate ends
SHUFFLED = 1 << 18  # the same, where the output is shuffled: a part takes few of a run


COPY = "copy"
"""The field of the metadata that numbers the copies of a document from 1, in a mix that repeats some."""

REJECTED = ""
"""The label of dropped documents; no writer can give it."""


class OutputSettings(ConfigStruct):
    """The options of ``output:`` shared by all formats. A format's own options stand beside them.

    Attributes:
        format: the output format
        path: the output folder
        part_size: uncompressed bytes of a part, exceeded only by a document that is larger
        compression: gzip: small; gzip-fast: larger, several times as fast; default: that of the format, usually gzip
        provenance: metadata.provenance of each document: shard, row, and the joined sets with the versions of their
            taggers and the digest of their values; `line`: the shard's name and the row, as Dolma has it
        shuffle: documents, or lines, of each label in the order of their hashes, in parts of equal size
        index: write the index of Modalities (`.idx`) beside each part, with offset and length of each line; needs lines
            of JSON and `compression: none`
        keep_empty: keep documents that have no text left after edits, which are otherwise dropped and counted
    """

    format: str
    path: str
    part_size: Size = Size(10**9)
    compression: Compression = "gzip"
    provenance: Literal["line"] | bool = False
    shuffle: Annotated[Shuffle | None, Description(title="{seed, unit: document | line, equal: bytes | documents}")] = (
        None
    )
    index: bool = False
    keep_empty: bool = False


class Stream(JoinedDataset):
    """A dataset with its rules.

    Attributes:
        weight: Share of the output's characters, relative to those of the other streams.
        share: Share of its documents that are left to come to that; known when all streams have been looked at.
        overlaps: Treatment of overlapping spans (see `toolkit.text.editing`): ``first``, as Dolma does.
        past_end: Treatment of spans past the end of the text (see `toolkit.text.editing`).
        order: Order of its shards in the output: numbers by globs over shards, the lowest first, and within one number
            by path; None for the order of their names.
        budget: Rule that the budget of the mix becomes; its bounds are known when all streams have been looked at.
    """

    rules: list[Rule] = []
    weight: float | None = None
    share: float | None = None
    overlaps: editing.Overlaps = "union"
    past_end: editing.PastEnd = "refuse"
    order: dict[str, int] | None = None
    budget: Budget | None = None

    def position(self, shard: str) -> tuple[int, tuple[str, ...]]:
        """Return the sort key of a shard: its number, and its path in listing order."""
        order, file = self.order or {}, self.dataset.file_of(shard)
        number = next((n for glob, n in order.items() if glob_regex(glob).match(file)), len(order))
        return number, tuple(shard.split("/")) if store_of(self.dataset.documents).is_local else (shard,)

    @property
    def seed(self) -> str:
        """Return the seed for streams with equal documents; empty for others."""
        return self.name if self.dataset.duplicate_ids == "allow" else ""

    @property
    def all_rules(self) -> list[Rule]:
        """Return the rules, with those of a weight and a budget."""
        rules = list(self.rules)
        if self.share is not None:
            rules.append(Sample(name=f"weight {self.weight:g}", share=self.share, seed="weight"))
        if self.budget is not None:
            rules.append(self.budget)
        return rules

    def recorded(self, rules: list[Rule]) -> dict[str, Any]:
        """Return the settings, with these rules, without paths."""
        return {
            "name": self.name,
            "attributes": [{"set": joined.set, "as": joined.as_} for joined in self.attributes],
            "rules": [rule.recorded() for rule in rules],
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
    """A ``mix:`` section, as data for workers.

    Attributes:
        streams: Streams, sorted by name.
        output: Options shared by all formats.
        options: Options of the format.
        label: Expression of a document's label, instead of that of the format.
        rejected: Folder for the documents that are dropped, None if they are not kept.
        unicode_words: True if the statistics have Unicode's words, too.
        budget: Budget; None for everything.
        allow_empty: True if an output without documents is published.
        orphans: ``allow`` publishes also if documents are dropped as copies of documents that are not kept.
        splits: Shares of the splits by which the files are parted; each is a folder of its own.
        deletes: True if the documents of a shard are deleted when it is mixed.
        place: Place of the output in the file, for messages.
        columns: Columns that documents bring, for a format with `COLUMNS`, once all shards are known.
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
        """Return True if written documents are noted. Row indexes do not tell which ids are in the output."""
        return (len(self.streams) > 1 or self.deletes) and self.streams[0].dataset.duplicate_ids == "refuse"

    @property
    def repeats(self) -> bool:
        """Return True if a rule may write documents repeatedly. Then all copies are numbered."""
        return any(rule.ROLE is Role.REPEATS for stream in self.streams for rule in stream.rules)

    @property
    def edits(self) -> bool:
        """Return True if a rule may change texts."""
        return any(rule.edits for stream in self.streams for rule in stream.all_rules)

    def writer(self) -> Writer:
        return writer_with(self.output.format, msgspec.json.encode(self.options, order="sorted"), self.columns)

    def position(self, key: str) -> tuple[int, tuple[str, ...], str]:
        """Return the sort key of a shard with this key."""
        name, _, shard = key.partition("/") if self.streams[0].name else ("", "", key)
        stream = next(stream for stream in self.streams if stream.name == name)
        return (-1, (), key) if stream.order is None else (*stream.position(shard), key)

    @property
    def needs_all_shards(self) -> str:
        """Return the setting dependent on all shards; empty for none."""
        return "weights" if self.streams[0].weight is not None else "a budget" if self.budget else ""

    def concatenates(self, label: str) -> bool:
        """Return True if a label's parts are its concatenated members."""
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
        results: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
        return results

    @staticmethod
    def added_fields(recorded: Mapping[str, Any]) -> list[str]:
        """Return the fields of the metadata added by recorded settings."""
        fields = {
            rule["field"].partition(".")[0]
            for s in recorded.get("streams", ())
            for rule in s["rules"]
            if "field" in rule
        }
        kinds = {str(rule.get("kind")) for s in recorded.get("streams", ()) for rule in s["rules"]}
        if any(kind_called(kind).ROLE is Role.REPEATS for kind in kinds):
            fields.add(COPY)
        return sorted(fields | ({"provenance"} if recorded.get("provenance") else set()))

    @cached_last
    def stage_digest(self) -> str:
        """Return the digest of everything but the inputs of the intermediates."""
        streams = [stream.recorded(stream.all_rules) for stream in self.streams]
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode(self._settings(streams)))


def _options(writer: Writer) -> dict[str, Any]:
    """Return the options of a format as they are recorded: of model files what they are called, and their digests."""
    named = model_options(writer)
    results = {"options": config.plain(writer) | {option: model_name(path) for option, path in named.items()}}
    return results | ({"models": {option: digest(path) for option, path in named.items()}} if named else {})


@cached(16)
def writer_with(format_: str, options: bytes, columns: str = "") -> Writer:
    class_ = find_writer(format_, "mix.output.format")
    writer = config.convert(ConfigNode(msgspec.json.decode(options)), class_, f"format {format_}")
    writer.__dict__["own_columns"] = columns
    return writer


def split_of(id: bytes, shares: Mapping[str, float]) -> str:
    """Return the split of an id: its xxh3-64 as a fraction of 2^64 lies in the share of one, in their order."""
    place, end = xxhash.xxh3_64_intdigest(id) / 2**64, 0.0
    for name, share in shares.items():
        end += share
        if place < end:
            return name
    return list(shares)[-1]


TAKEDOWN = "takedown list"
"""Name of the rule that drops what the takedown of a dataset lists."""

TOKENS = "tokens"
"""The output format of the section ``tokenize:``."""

_T = TypeVar("_T", bound=ConfigStruct)
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Flag = Annotated[bool, msgspec.Meta(title="true or false")]
_ROOTS = "ROOT, or {dataset: ROOT, documents: …, attributes: …, bookkeeping: …}"


class _Joining(ConfigStruct, kw_only=True):
    """The keys shared by a section and its streams."""

    attributes: list[Any] = []
    text: Annotated[_Text | list[EditForm] | None, msgspec.Meta(title="SET.KEY[.field], or the name of edits")] = None
    rules: Any = None
    parameters: Any = None
    languages: Any = None


class SectionForm(_Joining, kw_only=True):
    """A ``mix:`` section in YAML."""

    output: Any
    streams: Any = None
    label: Annotated[_Text | None, msgspec.Meta(title="an expression")] = None
    on_failed_shard: Literal["stop", "omit"] = "stop"
    rejected: Annotated[_Text | None, msgspec.Meta(title="a path")] = None
    unicode_words: _Flag = False
    budget: Annotated[dict[str, Any] | None, msgspec.Meta(title="{UNIT: AMOUNT, …}")] = None
    allow_empty: _Flag = False
    orphans: Literal["refuse", "allow"] = "refuse"
    editions: Annotated[dict[str, Any] | None, msgspec.Meta(title="`NAME: {…}`")] = None


class _Dataset(ConfigStruct):
    """A dataset of a stream with separate folders."""

    dataset: str | None = None
    documents: str | dict[str, Any] | None = None
    attributes: str | None = None
    bookkeeping: str = ""


class StreamForm(_Joining, kw_only=True):
    """A stream in YAML."""

    name: Any = None
    dataset: Annotated[str | _Dataset | None, msgspec.Meta(title=_ROOTS)] = None
    sample: Any = None
    weight: Annotated[Annotated[float, msgspec.Meta(gt=0)] | None, msgspec.Meta(title="a number above 0")] = None
    same_keys: Literal["refuse", "later"] = "refuse"
    overlaps: editing.Overlaps = "union"
    past_end: editing.PastEnd = "refuse"
    order: Annotated[list[str] | dict[str, int] | None, msgspec.Meta(title="globs over shards, or {GLOB: NUMBER}")] = (
        None
    )


OF_OUTPUT = tuple(f.encode_name for f in msgspec.structs.fields(OutputSettings))
_COMMON = ("label", "on_failed_shard", "rejected", "unicode_words", "allow_empty", "orphans")
_OF_MIX = tuple(f.encode_name for f in msgspec.structs.fields(SectionForm))


def _typed(place: ConfigNode, form: type[_T], title: str) -> _T:
    config.refuse_unknown(place, form, (), title)
    return config.convert(place, form)


def read_section(
    section: ConfigNode, base: str, dataset: Callable[[], Dataset], duplicate_ids: Literal["refuse", "allow"] = "refuse"
) -> MixSettings:
    """Return the settings of a ``mix:`` section.

    Args:
        section: Section.
        base: Folder of the configuration, which included rules are relative to.
        dataset: Function that returns the configuration's own dataset, for streams that name none.
        duplicate_ids: Option of the configuration, for the datasets of all streams.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict) or not section.value:
        raise section.error((), "expected `attributes:`, `rules:` and `output:`")
    if misplaced := next((key for key in section.value if key in OF_OUTPUT and key not in _OF_MIX), None):
        raise section.error((misplaced,), f"{misplaced!r} is an option of `output:`; write it there")
    form = _typed(section, SectionForm, "mix")
    output, options = _output(section.at("output"))
    writer_with.cache_clear()  # the file of a format may have been edited since
    budget = read_budget(section.at("budget")) if form.budget is not None else None
    streams = [
        msgspec.structs.replace(stream, dataset=replace(stream.dataset, duplicate_ids=duplicate_ids))
        for stream in _streams(section, base, dataset)
    ]
    own: list[str] = []
    with suppress(ConfigError):  # streams may name all datasets
        own = takedown.paths_of(dataset())
    streams = [msgspec.structs.replace(stream, rules=_with_takedown(stream, own)) for stream in streams]
    if budget:
        if streams[0].weight is not None:
            raise section.error(("budget",), "expected a budget or weights of streams, got both")
        for stream in streams:
            rules_yaml.check_names([*stream.rules, budget.rule()])
        streams = [msgspec.structs.replace(stream, budget=budget.rule(stream=stream.seed)) for stream in streams]
    return MixSettings(
        streams=streams,
        budget=budget,
        output=output,
        options=_with_names(output.format, options, [joined for stream in streams for joined in stream.attributes]),
        place=section.at("output").where(()),
        **{name: getattr(form, name) for name in _COMMON},
    )


def _with_takedown(stream: Stream, own: list[str]) -> list[Rule]:
    """Return the rules of a stream with one for takedown lists. They are those of its dataset and of the
    configuration's own.

    It follows the rule that drops documents without a chosen text, which must be the first.
    """
    lists = {os.path.basename(path).partition(".")[0]: path for path in [*own, *takedown.paths_of(stream.dataset)]}
    if not lists:
        return stream.rules
    digests = {path: digest for digest, path in sorted(lists.items())}
    at = 0 if stream.text is None else 1
    return [*stream.rules[:at], Blocklist(name=TAKEDOWN, files=digests, cleared=True), *stream.rules[at:]]


def _output(place: ConfigNode) -> tuple[OutputSettings, dict[str, Any]]:
    if not isinstance(place.value, dict):
        raise place.error((), "expected {format: …, path: …}")
    common, options = config.divide(place, OF_OUTPUT)
    output = config.convert(common, OutputSettings)
    with place.errors_at():
        class_ = find_writer(output.format, "format")
    config.refuse_unknown(place, class_, OF_OUTPUT, f"format {output.format}")
    writer = config.convert(options, class_, f"format {output.format}")
    with place.errors_at(), errors_of(writer):
        label, _ = writer.label(), {**writer.wants()}
    _check_one_label(place, label)
    if "compression" in common.value and not class_.CONCATENATES:
        raise place.error(
            ("compression",),
            f"expected none, {output.format} compresses inside its files; see the options of the format",
        )
    if output.shuffle and output.shuffle.unit == "line" and not writer.is_lines():
        raise place.error(
            ("shuffle",),
            f"expected a format whose files are lines of text and nothing else for `unit: line`, got {output.format}; "
            "the format text has such with `borders: false`",
        )
    if "compression" not in common.value and class_.CONCATENATES:
        output = msgspec.structs.replace(output, compression=class_.COMPRESSION)
    if output.index and (output.compression != "none" or not writer.has_json_lines()):
        got = output.format if output.compression == "none" else f"`compression: {output.compression}`"
        raise place.error(
            ("index",), f"expected lines of JSON with `compression: none`, which Modalities reads, got {got}"
        )
    if output.provenance and not class_.FIELDS:
        raise place.error(("provenance",), f"expected a format with a place for metadata, got {output.format}")
    return output, options.value


def _with_names(format_: str, options: dict[str, Any], sets: list[Joined]) -> dict[str, Any]:
    """Return the options of a format with names for ``SET.KEY[.field]``.

    A set whose name could also be that of a key is left as it is where its keys are not known to be others.
    """
    writer = writer_with(format_, msgspec.json.encode(options, order="sorted"))
    paths = {attribute.path for attribute in writer.wants().values()}
    results = dict(options)
    for option, value in options.items():
        set_name, _, path = value.partition(".") if isinstance(value, str) and value in paths else ("", "", "")
        joined = next((item for item in sets if path and item.set == set_name), None)
        if joined and not is_name(set_name):
            key, dot, fields = path.partition(".")
            results[option] = f"{joined.as_.get(key, key)}{dot}{fields}"
    return results


def _check_one_label(place: ConfigNode, label: str | None) -> None:
    """Raise ConfigError for a single label unfit as a file name."""
    if label is None or not label.startswith(("'", '"')):
        return
    try:
        check_label(ast.literal_eval(label))
    except DataError as error:
        raise place.error(("name",) if "name" in place.value else (), error.message) from None


# --- streams ----------------------------------------------------------------------------------------------------------


def _streams(section: ConfigNode, base: str, dataset: Callable[[], Dataset]) -> list[Stream]:
    shared = read_joined(section)
    scope = rules_yaml.read_scope(section, base)
    if "streams" not in section.value:
        shared, text, nulls = _chosen(section, shared, section.value.get(chosen_text.OPTION), base)
        rules = [*nulls, *_rules(section, base, scope)]
        rules_yaml.check_names(rules)
        rules_yaml.check_used(section, scope, rules)
        return [Stream(name="", dataset=dataset(), attributes=shared, rules=rules, text=text)]
    streams: dict[str, Stream] = {}
    for place in _entries(section.at("streams")):
        stream = _stream(place, section, base, scope, shared, dataset)
        if stream.name in streams:
            raise place.error((), f"expected each stream under a name of its own, got {stream.name!r} twice")
        streams[stream.name] = stream
    rules_yaml.check_used(section, scope, [rule for stream in streams.values() for rule in stream.rules])
    weighted = [stream.weight is not None for stream in streams.values()]
    if any(weighted) and not all(weighted):
        raise section.error(("streams",), "expected a `weight:` for each stream, or for none")
    return [streams[name] for name in sorted(streams)]


def _entries(place: ConfigNode) -> list[ConfigNode]:
    """Return the streams, each with its name: of a list, or of a mapping from names."""
    value = place.value
    if not isinstance(value, list | dict) or not value:
        raise place.error((), "expected streams: a list of {name: …, dataset: …}, or {NAME: {dataset: …}}")
    results = []
    for key in value if isinstance(value, dict) else range(len(value)):
        entry = place.at(key)
        if not isinstance(entry.value, dict):
            raise entry.error((), f"expected a stream such as {{dataset: ROOT, attributes: […]}}, got {entry.value!r}")
        if isinstance(key, str):
            if "name" in entry.value:
                raise entry.error(("name",), f"expected no `name` here, because {key!r} is the name of the stream")
            entry.value = {"name": key, **entry.value}
        results.append(entry)
    return results


def _stream(
    place: ConfigNode,
    section: ConfigNode,
    base: str,
    scope: rules_yaml.Scope,
    shared: list[Joined],
    dataset: Callable[[], Dataset],
) -> Stream:
    form = _typed(place, StreamForm, "a stream")
    if not isinstance(form.name, str) or not re.fullmatch(r"\w(?:[\w. -]*[\w.-])?", form.name):
        raise place.error(
            ("name",),
            "expected a name of letters, digits, _ . - and inner spaces that begins with one of the first three, got "
            f"{form.name!r}",
        )
    own = rules_yaml.read_scope(place, base)
    inner = rules_yaml.merged(scope, own)  # a stream knows better than the mix
    own_text = place.value.get(chosen_text.OPTION, section.value.get(chosen_text.OPTION))
    joined, text, nulls = _chosen(place, [*read_joined(place), *shared], own_text, base)
    rules = [*nulls, *_rules(place, base, inner), *_rules(section, base, inner)]
    if "sample" in place.value:
        sample = place.at()
        sample.value = [{"sample": form.sample}]
        rules += rules_yaml.read_rules(sample, base)
    rules_yaml.check_names(rules)
    rules_yaml.check_used(place, own, rules)
    parts = _Dataset(form.dataset) if isinstance(form.dataset, str) else form.dataset
    return Stream(
        name=form.name,
        dataset=open_dataset(place.at("dataset"), *msgspec.structs.astuple(parts)) if parts else dataset(),
        attributes=joined,
        rules=rules,
        text=text,
        order=_order(form.order),
        **{name: getattr(form, name) for name in ("weight", "same_keys", "overlaps", "past_end")},
    )


def _chosen(
    place: ConfigNode, joined: list[Joined], text: object, base: str
) -> tuple[list[Joined], str | None, list[Rule]]:
    """Return joined sets, chosen text, and the rule for its nulls."""
    if text is None:
        return joined, None, []
    if isinstance(text, list):
        return _edited(place, joined)
    with place.errors_at(chosen_text.OPTION):
        reference = chosen_text.parse_reference(text)
    if not any(item.set == reference.set for item in joined):
        joined = [*joined, Joined(set=reference.set, place=place.where((chosen_text.OPTION,)))]
    name = next(item.as_.get(reference.key, reference.key) for item in joined if item.set == reference.set)
    nulls = place.at()
    nulls.value = [{"drop": reference.expression(name), "name": chosen_text.NULL}]
    return joined, reference.text, rules_yaml.read_rules(nulls, base)


def _edited(place: ConfigNode, joined: list[Joined]) -> tuple[list[Joined], None, list[Rule]]:
    """Return joined sets with those of edits, and their rule."""
    where = place.where((chosen_text.OPTION,))
    edits = []
    for edit in edits_in(read_edits(place.at(chosen_text.OPTION))):
        if edit.spans:
            reference = chosen_text.parse_reference(edit.spans)
            if not any(item.set == reference.set for item in joined):
                joined = [*joined, Joined(set=reference.set, place=where)]
            name = next(item.as_.get(reference.key, reference.key) for item in joined if item.set == reference.set)
            edit = msgspec.structs.replace(edit, spans=".".join((name, *reference.path)))
        edits.append(edit)
    return joined, None, [EditText(name=chosen_text.OPTION, edited=edits, place=where)]


def _order(order: list[str] | dict[str, int] | None) -> dict[str, int] | None:
    """Return numbers by globs, lowest first; of a list its indexes."""
    numbers = {glob: i for i, glob in reversed(list(enumerate(order)))} if isinstance(order, list) else order
    return dict(sorted(numbers.items(), key=lambda item: item[1])) if numbers else None


def _rules(place: ConfigNode, base: str, scope: rules_yaml.Scope) -> list[Rule]:
    return rules_yaml.read_rules(place.at("rules"), base, scope) if place.value.get("rules") is not None else []
