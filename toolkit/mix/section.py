"""Reads a ``mix:`` section: forms as they stand in YAML become the settings of a mix."""

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from toolkit import rules
from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError
from toolkit.ingest.in_place import open_dataset
from toolkit.mix.budget.settings import read_budget
from toolkit.mix.settings import Joined, JoinedOption, MixSettings, OutputSettings, Stream, writer_with
from toolkit.mix.writer import check_label, find_writer
from toolkit.rules import Rule
from toolkit.rules.expressions import A_NAME, is_name
from toolkit.storage.paths import fault_of_name
from toolkit.text import editing

TOKENS = "tokens"
"""The output format of the section ``tokenize:``."""

_T = TypeVar("_T", bound=ConfigStruct)
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Flag = Annotated[bool, msgspec.Meta(title="true or false")]
_ROOTS = "ROOT, or {dataset: ROOT, documents: …, attributes: …, bookkeeping: …}"


class _Joining(ConfigStruct, kw_only=True):
    """The keys that a section and its streams share."""

    attributes: list[Any] = []
    text: Annotated[_Text | None, msgspec.Meta(title="SET.KEY[.field]")] = None
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
    """A dataset of a stream whose parts lie apart."""

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


_OF_OUTPUT = tuple(f.encode_name for f in msgspec.structs.fields(OutputSettings))
_OF_MIX = tuple(f.encode_name for f in msgspec.structs.fields(SectionForm))


def _typed(place: ConfigNode, form: type[_T], what: str) -> _T:
    config.refuse_unknown(place, form, (), what)
    return config.convert(place, form)


def read_section(
    section: ConfigNode, base: str, dataset: Callable[[], Dataset], duplicate_ids: Literal["refuse", "allow"] = "refuse"
) -> MixSettings:
    """Return the settings of a ``mix:`` section.

    Args:
        section: the section.
        base: folder of the configuration, which included rules are relative to.
        dataset: gives the configuration's own, for streams that name none.
        duplicate_ids: of the configuration, which counts for the datasets of all streams.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict) or not section.value:
        raise section.error((), "expected `attributes:`, `rules:` and `output:`")
    if misplaced := next((key for key in section.value if key in _OF_OUTPUT and key not in _OF_MIX), None):
        raise section.error((misplaced,), f"{misplaced!r} is an option of `output:`; write it there")
    given = _typed(section, SectionForm, "mix")
    output, options = _output(section.at("output"))
    writer_with.cache_clear()  # the file of a format may have been edited since
    budget = read_budget(section.at("budget")) if given.budget is not None else None
    streams = [
        msgspec.structs.replace(stream, dataset=replace(stream.dataset, duplicate_ids=duplicate_ids))
        for stream in _streams(section, base, dataset)
    ]
    if budget:
        if streams[0].weight is not None:
            raise section.error(("budget",), "expected a budget or weights of streams, got both")
        for stream in streams:
            rules.check_names([*stream.rules, budget.rule()])
        streams = [msgspec.structs.replace(stream, budget=budget.rule(stream=stream.seed)) for stream in streams]
    return MixSettings(
        streams=streams,
        budget=budget,
        output=output,
        options=_with_names(output.format, options, [joined for stream in streams for joined in stream.attributes]),
        label=given.label,
        on_failed_shard=given.on_failed_shard,
        rejected=given.rejected,
        unicode_words=given.unicode_words,
        allow_empty=given.allow_empty,
        orphans=given.orphans,
        place=section.at("output").where(()),
    )


def _output(place: ConfigNode) -> tuple[OutputSettings, dict[str, Any]]:
    if not isinstance(place.value, dict):
        raise place.error((), "expected {format: …, path: …}")
    common, options = config.divide(place, _OF_OUTPUT)
    output = config.convert(common, OutputSettings)
    try:
        class_ = find_writer(output.format, "format")
    except ConfigError as error:
        raise place.error((), str(error)) from None
    config.refuse_unknown(place, class_, _OF_OUTPUT, f"format {output.format}")
    writer = config.convert(options, class_, f"format {output.format}")
    _check_one_label(place, writer.label())
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
    """Return the options of a format with each ``SET.KEY[.field]`` as the name that the key has in the mix.

    A set whose name could also be that of a key is left as it is where its keys are not known to be others.
    """
    writer = writer_with(format_, msgspec.json.encode(options, order="sorted"))
    paths = {wanted.path for wanted in writer.wants().values()}
    found = dict(options)
    for option, value in options.items():
        set_name, _, path = value.partition(".") if isinstance(value, str) and value in paths else ("", "", "")
        joined = next((each for each in sets if path and each.set == set_name), None)
        if joined and not is_name(set_name):
            key, dot, fields = path.partition(".")
            found[option] = f"{joined.as_.get(key, key)}{dot}{fields}"
    return found


def _check_one_label(place: ConfigNode, label: str | None) -> None:
    """Raise ConfigError if a format gives all documents one label, a text in quotes, that cannot be a file's name."""
    if label is None or not label.startswith(("'", '"')):
        return
    try:
        check_label(ast.literal_eval(label))
    except DataError as error:
        raise place.error(("name",) if "name" in place.value else (), error.message) from None


# --- streams ----------------------------------------------------------------------------------------------------------


def _streams(section: ConfigNode, base: str, dataset: Callable[[], Dataset]) -> list[Stream]:
    shared = read_joined(section)
    scope = rules.read_scope(section, base)
    if "streams" not in section.value:
        shared, text, nulls = _chosen(section, shared, section.value.get(chosen_text.OPTION), base)
        found = [*nulls, *_rules(section, base, scope)]
        rules.check_names(found)
        rules.check_used(section, scope, found)
        return [Stream(name="", dataset=dataset(), attributes=shared, rules=found, text=text)]
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


def _entries(place: ConfigNode) -> list[ConfigNode]:
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
                raise entry.error(("name",), f"expected no `name` here, because {key!r} is the name of the stream")
            entry.value = {"name": key, **entry.value}
        found.append(entry)
    return found


def _stream(
    place: ConfigNode,
    section: ConfigNode,
    base: str,
    scope: rules.Scope,
    shared: list[Joined],
    dataset: Callable[[], Dataset],
) -> Stream:
    given = _typed(place, StreamForm, "a stream")
    if not isinstance(given.name, str) or not re.fullmatch(r"\w[\w.-]*", given.name):
        raise place.error(
            ("name",),
            "expected a name of letters, digits, _ . and - that begins with one of the first three, got "
            f"{given.name!r}",
        )
    own = rules.read_scope(place, base)
    inner = rules.merged(scope, own)  # a stream knows better than the mix
    own_text = place.value.get(chosen_text.OPTION, section.value.get(chosen_text.OPTION))
    joined, text, nulls = _chosen(place, [*read_joined(place), *shared], own_text, base)
    found = [*nulls, *_rules(place, base, inner), *_rules(section, base, inner)]
    if "sample" in place.value:
        sample = place.at()
        sample.value = [{"sample": given.sample}]
        found += rules.read_rules(sample, base)
    rules.check_names(found)
    rules.check_used(place, own, found)
    return Stream(
        name=given.name,
        dataset=dataset() if given.dataset is None else _opened(place, given.dataset),
        attributes=joined,
        rules=found,
        text=text,
        weight=given.weight,
        same_keys=given.same_keys,
        overlaps=given.overlaps,
        past_end=given.past_end,
        order=_order(given.order),
    )


def _chosen(
    place: ConfigNode, joined: list[Joined], given: object, base: str
) -> tuple[list[Joined], str | None, list[Rule]]:
    """Return the joined sets with that of the chosen text, the text, and the rule that drops documents without it."""
    if given is None:
        return joined, None, []
    try:
        reference = chosen_text.parse_reference(given)
    except ConfigError as error:
        raise place.error((chosen_text.OPTION,), str(error)) from None
    if not any(each.set == reference.set for each in joined):
        joined = [*joined, Joined(set=reference.set, place=place.where((chosen_text.OPTION,)))]
    name = next(each.as_.get(reference.key, reference.key) for each in joined if each.set == reference.set)
    nulls = place.at()
    nulls.value = [{"drop": reference.expression(name), "name": chosen_text.NULL}]
    return joined, reference.text, rules.read_rules(nulls, base)


def _order(given: list[str] | dict[str, int] | None) -> dict[str, int] | None:
    """Return numbers by globs, lowest first; of a list its indexes."""
    numbers = {glob: i for i, glob in reversed(list(enumerate(given)))} if isinstance(given, list) else given
    return dict(sorted(numbers.items(), key=lambda item: item[1])) if numbers else None


def _opened(place: ConfigNode, given: str | _Dataset) -> Dataset:
    parts = _Dataset(given) if isinstance(given, str) else given
    return open_dataset(place.at("dataset"), parts.dataset, parts.documents, parts.attributes, parts.bookkeeping)


def _rules(place: ConfigNode, base: str, scope: rules.Scope) -> list[Rule]:
    return rules.read_rules(place.at("rules"), base, scope) if place.value.get("rules") is not None else []


def read_joined(section: ConfigNode) -> list[Joined]:
    """Return the sets that a section has among ``attributes:``.

    Raises:
        ConfigError: if one is not written so.
    """
    joined = []
    for i, entry in enumerate(section.value.get("attributes", [])):
        place = section.at("attributes", i)
        found = JoinedOption(entry) if isinstance(entry, str) else config.convert(place, JoinedOption)
        if wrong := [name for name in found.as_.values() if not is_name(name)]:
            raise place.error(("as",), f"expected {A_NAME}, got {wrong[0]!r}")
        if (fault := fault_of_name(found.set)) or "/" in found.set:
            raise place.error((), fault or f"expected the name of an attribute set, without `/`, got {found.set!r}")
        joined.append(Joined(set=found.set, as_=found.as_, place=place.where(())))
    return joined
