"""What a ``mix:`` section says, and the attribute sets that it joins."""

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
import xxhash

from toolkit import config, records, rules, schema
from toolkit.config import ConfigStruct, Description, Source
from toolkit.errors import ConfigError, did_you_mean
from toolkit.expressions import Name, is_name
from toolkit.paths import Dataset
from toolkit.streams import COMPRESSORS, Size
from toolkit.writer import Writer, find_writer

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
    """As read, with its place in the file, for messages."""

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


class MixSettings(ConfigStruct):
    """A ``mix:`` section, as data that can be sent to a worker.

    Attributes:
        attributes: the sets that are joined.
        rules: in order.
        output: what all formats share.
        options: of the format.
        rejected: folder for the documents that are dropped, None if they are not kept.
        place: of the output in the file, for messages.
    """

    attributes: list[Joined]
    rules: list[rules.Rule]
    output: OutputSettings
    options: dict[str, Any]
    on_failed_shard: Literal["stop", "omit"] = "stop"
    rejected: str | None = None
    place: str = ""

    def writer(self) -> Writer:
        class_ = find_writer(self.output.format, "mix.output.format")
        return config.convert(Source(self.options), class_, f"format {self.output.format}")

    def suffix(self, label: str) -> str:
        """Of the parts of a label."""
        return (".jsonl" if label == REJECTED else self.writer().SUFFIX) + SUFFIXES[self.output.compression]

    def stem(self, label: str) -> str:
        """Path of a label's parts below the output folder, without suffix and number."""
        if label == REJECTED and self.rejected is not None:
            return os.path.join(os.path.relpath(self.rejected, self.output.path), "documents", "rejected")
        return self.writer().stem(label)

    def checksums(self, label: str) -> str:
        """Path of a label's checksum file below the output folder."""
        if label == REJECTED and self.rejected is not None:
            return os.path.join(os.path.relpath(self.rejected, self.output.path), "rejected_sha256.txt")
        return self.writer().checksums(label)

    @property
    def member_size(self) -> int:
        """Members are small beside parts, so that parts come close to their size."""
        return max(1, min(MEMBER, self.output.part_size // 8))

    def stage_settings(self) -> dict[str, Any]:
        """What determines the intermediate of a shard."""
        return {
            "attributes": [{"set": joined.set, "as": joined.as_} for joined in self.attributes],
            "rules": rules.settings(self.rules),
            "format": self.output.format,
            "version": self.writer().VERSION,
            "options": msgspec.to_builtins(self.writer()),
            "compression": self.output.compression,
            "member_size": self.member_size,
            "rejected": self.rejected is not None,
        }

    def stage_digest(self) -> str:
        return xxhash.xxh3_128_hexdigest(msgspec.json.encode(self.stage_settings()))


_KEYS = ("attributes", "rules", "output", "on_failed_shard", "rejected")


def read_section(section: Source, base: str = "") -> MixSettings:
    """The settings of a ``mix:`` section.

    Args:
        section: the section.
        base: folder of the configuration, which included rules are relative to.

    Raises:
        ConfigError: naming the place in the file.
    """
    value = section.value
    if not isinstance(value, dict) or not value:
        raise section.error((), "expected `attributes:`, `rules:` and `output:`")
    for key in value:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or f"; known: {', '.join(_KEYS)}"
            raise section.error((key,), f"unknown option {key!r}{hint}")
    if "output" not in value:
        raise section.error((), "expected `output: {format: …, path: …}`")
    omit = value.get("on_failed_shard", "stop")
    if omit not in ("stop", "omit"):
        raise section.error(("on_failed_shard",), f"expected stop or omit, got {omit!r}")
    rejected = value.get("rejected")
    if not isinstance(rejected, str | None):
        raise section.error(("rejected",), f"expected a path, got {rejected!r}")
    listed = value.get("attributes", [])
    if not isinstance(listed, list):
        raise section.error(("attributes",), "expected a list of attribute sets")
    joined = []
    for i, entry in enumerate(listed):
        place = section.at("attributes", i)
        found = JoinedOption(entry) if isinstance(entry, str) else config.convert(place, JoinedOption)
        if wrong := [name for name in found.as_.values() if not is_name(name)]:
            raise place.error(("as",), f"expected names that rules can use, of letters, digits and _, got {wrong[0]!r}")
        joined.append(Joined(set=found.set, as_=found.as_, place=place.where(())))
    output_keys = tuple(f.encode_name for f in msgspec.structs.fields(OutputSettings))
    place = section.at("output")
    if not isinstance(place.value, dict):
        raise place.error((), "expected {format: …, path: …}")
    common, options = config.divide(place, output_keys)
    output = config.convert(common, OutputSettings)
    try:
        class_ = find_writer(output.format, "format")
    except ConfigError as error:
        raise place.error((), str(error)) from None
    config.refuse_unknown(place, class_, output_keys, f"format {output.format}")
    config.convert(options, class_, f"format {output.format}")
    found_rules = rules.read_rules(section.at("rules"), base) if value.get("rules") else []
    return MixSettings(
        attributes=joined,
        rules=found_rules,
        output=output,
        options=options.value,
        on_failed_shard=omit,
        rejected=rejected,
        place=place.where(()),
    )


# --- the sets that are joined -----------------------------------------------------------------------------------------


class Key(ConfigStruct):
    """A key of a joined set.

    Attributes:
        key: in the file.
        name: in the mix.
        type: in the form of `toolkit.schema`.
        default: whether rows may lack it: spans are then none, other values null.
        settings: of its tagger, if we have its records.
    """

    key: str
    name: str
    type: Any
    default: bool = False
    settings: dict[str, Any] | None = None

    @property
    def declared(self) -> schema.Type:
        return schema.from_json(self.type)


class JoinedSet(ConfigStruct):
    """A set as it is joined: its keys, and whether we have records of it."""

    set: str
    keys: list[Key]
    ours: bool


def resolve_sets(
    settings: MixSettings,
    dataset: Dataset,
    planned: Mapping[str, records.SetSchema],
    seen: Mapping[str, Iterable[records.Seen]],
) -> list[JoinedSet]:
    """The joined sets with the types of their keys.

    Args:
        settings: of the mix.
        dataset: where the sets are.
        planned: sets that will be written before the mix, so need not be on disk yet.
        seen: for each set that another program made, what its files hold.

    Raises:
        ConfigError: if a set does not exist, or two have the same key.
    """
    result: list[JoinedSet] = []
    names: dict[str, str] = {}
    for joined in settings.attributes:
        declared = planned.get(joined.set) or records.load_schema(dataset, joined.set)
        if declared is not None:
            keys, ours = {key: (t, False) for key, t in declared.types().items()}, True
            made = {key: found.settings for key, found in declared.keys.items()}
        elif joined.set in seen:
            keys, ours, made = _foreign_keys(seen[joined.set]), False, {}
        else:
            known = sorted({*dataset.sets(), *planned})
            hint = did_you_mean(joined.set, known) or f"; there are: {', '.join(known) or 'none'}"
            raise ConfigError(
                f"{joined.place}: expected an attribute set in {dataset.attributes}, got {joined.set!r}{hint}"
            )
        for key in joined.as_:
            if key not in keys:
                raise ConfigError(
                    f"{joined.place}: {joined.set}: expected a key of the set under `as:`, got {key!r}"
                    + (did_you_mean(key, keys) or f"; there are: {', '.join(keys)}")
                )
        listed = []
        for key, (type_, default) in keys.items():
            name = joined.as_.get(key, key)
            if name in names:
                raise ConfigError(
                    f"{joined.place}: expected each key once, got {name!r} in {names[name]} and {joined.set}; "
                    f"rename one: {{set: {joined.set}, as: {{{key}: NEW_NAME}}}}"
                )
            names[name] = joined.set
            listed.append(Key(key=key, name=name, type=schema.to_json(type_), default=default, settings=made.get(key)))
        result.append(JoinedSet(set=joined.set, keys=listed, ours=ours))
    return result


def foreign_sets(settings: MixSettings, dataset: Dataset, planned: Mapping[str, records.SetSchema]) -> list[str]:
    """The joined sets that another program made."""
    return [
        joined.set
        for joined in settings.attributes
        if joined.set in dataset.sets()
        and joined.set not in planned
        and records.load_schema(dataset, joined.set) is None
    ]


def _foreign_keys(seen: Iterable[records.Seen]) -> dict[str, tuple[schema.Type, bool]]:
    types: dict[str, schema.Type] = {}
    files = [found for found in seen if found.rows]
    for found in files:
        for key, value in found.types.items():
            type_ = schema.from_json(value)
            types[key] = schema.union(types[key], type_) if key in types else type_
    result = {}
    for key, type_ in types.items():
        optional = not all(key in found.everywhere for found in files)
        if type_ == schema.list_of(schema.NEVER):
            type_ = schema.SPANS
        if optional and type_ != schema.SPANS:
            type_ = schema.nullable(type_)
        result[key] = (type_, optional)
    return result


def names_for_rules(sets: Iterable[JoinedSet]) -> dict[str, Name]:
    """What expressions may use: the keys of set i are fields of the argument ``ri``; ``document`` has id and source."""
    names = {
        key.name: Name(key.declared, f"r{i}.{schema.field_name(key.key)}")
        for i, joined in enumerate(sets)
        for key in joined.keys
    }
    document = schema.Type("object", fields=(("id", schema.STR), ("source", schema.STR)))
    names.setdefault("document", Name(document, "document"))
    return names


def compile_rules(settings: MixSettings, sets: list[JoinedSet]) -> rules.RuleSet:
    """The rules, checked against the sets' types and compiled."""
    arguments = (*(f"r{i}" for i in range(len(sets))), "document")
    return rules.RuleSet(settings.rules, names_for_rules(sets), arguments)


def work_folder(output: str) -> str:
    """Where a mix keeps what is not published yet, and its records."""
    return os.path.join(output, ".toolkit")
