"""Attribute sets joined to a dataset: configuration, keys, names for expressions."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import msgspec

from toolkit.config import settings as config
from toolkit.config.scale import Declared, declared_in
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, own_types, schema
from toolkit.data.dataset import Dataset
from toolkit.data.metadata_fields import DOCUMENT
from toolkit.errors import ConfigError, did_you_mean, errors_from
from toolkit.records import sets as records
from toolkit.rules import checker, compiling, expression_tree, expressions
from toolkit.storage.paths import fault_of_name


class JoinedOption(ConfigStruct):
    """A set among ``attributes:``, with other names for some of its keys.

    Attributes:
        set: the attribute set
        as_: {key: its name in the mix}
    """

    set: str
    as_: dict[str, str] = msgspec.field(name="as", default_factory=dict)


class Joined(JoinedOption):
    """A joined set with its place in the file, for messages."""

    place: str = ""


class JoinedDataset(ConfigStruct):
    """A dataset with its joined sets.

    Attributes:
        name: Name of the stream that it is of a mix; empty for the only one.
        same_keys: True if two sets may have one key, the value of the later counting where it has one.
        text: Text that is taken for that of its documents (see `toolkit.data.chosen_text`); None for their own.
        own: Types of the own fields of its documents, if they are known; they decide nothing but what rules may ask.
    """

    name: str
    dataset: Dataset
    attributes: list[Joined]
    same_keys: Literal["refuse", "later"] = "refuse"
    text: str | None = None
    own: own_types.OwnTypes | None = None

    @classmethod
    def over(cls, dataset: Dataset, sets: Iterable[str] = (), place: str = "") -> Self:
        """Return a dataset with sets as they are; `place` is for messages."""
        joined = [Joined(set=name, place=place) for name in sets]
        return cls(name="", dataset=dataset, attributes=joined, same_keys="later")


def read_joined(section: ConfigNode) -> list[Joined]:
    """Return the sets in ``attributes:`` of a section.

    Raises:
        ConfigError: if one is not written so.
    """
    joined = []
    for i, entry in enumerate(section.value.get("attributes", [])):
        place = section.at("attributes", i)
        joined_option = JoinedOption(entry) if isinstance(entry, str) else config.convert(place, JoinedOption)
        if wrong := [name for name in joined_option.as_.values() if not expressions.is_name(name)]:
            raise place.error(("as",), f"expected {expressions.A_NAME}, got {wrong[0]!r}")
        if (fault := fault_of_name(joined_option.set)) or "/" in joined_option.set:
            raise place.error(
                (), fault or f"expected the name of an attribute set, without `/`, got {joined_option.set!r}"
            )
        joined.append(Joined(set=joined_option.set, as_=joined_option.as_, place=place.where(())))
    return joined


class JoinedKey(ConfigStruct):
    """A key of a joined set.

    Attributes:
        key: Key in the file.
        name: Name in the mix.
        type: Type in the form of `toolkit.data.schema`.
        default: True if rows may lack it: spans are then none, other values null.
        present_type: Present type of the value where rows have it, if they may lack it.
        settings: Settings of its tagger, if we have its records.
        code: Digests of the tagger's code (see `toolkit.config.plugin_code`).
        descriptions: Descriptions of the value and its parts (see `toolkit.data.schema.descriptions`), if we have its
            records.
        models: Paths of the models of its tagger, by option, if we have its records.
        hidden: True if another set has the key too, so that rules cannot tell which is meant.
    """

    key: str
    name: str
    type: Any
    default: bool = False
    present_type: Any = None
    settings: dict[str, Any] | None = None
    code: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    models: dict[str, str] = {}
    hidden: bool = False

    @property
    def declared(self) -> schema.Type:
        return _declared(msgspec.json.encode(self.type), msgspec.json.encode(self.descriptions))

    @property
    def absent(self) -> Any:
        """Return the value of rows without the key."""
        return [] if self.default and self.declared.kind == "list" else None

    @property
    def present(self) -> schema.Type | None:
        return schema.from_json(self.present_type) if self.default else None


@functools.lru_cache(1024)  # each shard asks for it some times
def _declared(type_: bytes, descriptions: bytes) -> schema.Type:
    return schema.described(schema.from_json(msgspec.json.decode(type_)), msgspec.json.decode(descriptions))


class JoinedSet(ConfigStruct):
    """A set as it is joined.

    Attributes:
        set: Name.
        keys: Keys of it.
        ours: True if we have records of it.
        reads: Digests of the schemas of the sets it was made from, by name.
    """

    set: str
    keys: list[JoinedKey]
    ours: bool
    reads: dict[str, str] = {}


def scale_of(text: str, sets: Sequence[JoinedSet]) -> Declared:
    """Return the declared scale of `SET.KEY[.field]` or `KEY[.field]`; None of other expressions."""
    named = chosen_text.split_reference(text)
    results = [
        key.settings
        for joined in sets
        for key in joined.keys
        if named and ((joined.set, key.key) == named[:2] or (key.name == named.set and not key.hidden))
    ]
    return declared_in(results[0]) if results and results[0] else None


def set_hint(
    name: str, stream: JoinedDataset, joined: Iterable[JoinedSet], planned: Mapping[str, records.SetSchema]
) -> str:
    """Return the remedy for a rule with an unknown name, or nothing. A set may have the name.

    Args:
        name: Name in the rule.
        stream: JoinedDataset of the rule.
        joined: Sets that it joins.
        planned: Sets that will have been written before the mix.
    """
    if keys := next((item.keys for item in joined if item.set == name), None):
        return f", the name of a set; in rules, keys stand as names: {', '.join(key.name for key in keys)}"
    for set_name in sorted({*stream.dataset.sets(), *planned} - {item.set for item in joined}):
        set_schema = planned.get(set_name) or records.load_schema(stream.dataset, set_name)
        if set_name == name or (set_schema and name in set_schema.keys):
            return f"; the set {set_name} has it, so add {set_name} to `attributes:`"
    return ""


# --- rules over them --------------------------------------------------------------------------------------------------


def names_for_rules(sets: Iterable[JoinedSet], own: own_types.OwnTypes | None = None) -> dict[str, checker.Name]:
    """Return the names for expressions. The keys of set i are fields of the argument ``ri``; the last argument is
    ``document``.

    Args:
        sets: Sets that are joined.
        own: Types of the own fields of documents, if they are known.
    """
    names = {
        key.name: checker.Name(key.declared, f"r{i}.{schema.field_name(key.key)}", key.present)
        for i, joined in enumerate(sets)
        for key in joined.keys
        if not key.hidden
    }
    return expressions.of_document(own=own) | names


class ChosenText(NamedTuple):
    """The chosen text of a stream's documents.

    Attributes:
        of: Function that returns it from the values of a row in all sets, and the document; None where it is null.
        name: Name of its key in the mix.
        fields: Field of the value that it is in; empty if the value is the text.
    """

    of: Callable[..., str | None]
    name: str
    fields: set[str]


def chosen_text_of(stream: JoinedDataset, sets: list[JoinedSet]) -> ChosenText | None:
    """Return the chosen text of a stream; None for the documents' own.

    Raises:
        ConfigError: if there is no such value, or it is no text.
    """
    if stream.text is None:
        return None
    reference = chosen_text.parse_reference(stream.text)
    place = next((attribute.place for attribute in stream.attributes if attribute.set == reference.set), "")
    option = "" if place.endswith(f".{chosen_text.OPTION}") else f"{chosen_text.OPTION}: "
    where = f"{place}: {option}{stream.text!r}"
    keys = {key.key: key.name for joined in sets if joined.set == reference.set for key in joined.keys}
    if reference.key not in keys:
        hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
        raise ConfigError(f"{where}: expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    name, names = keys[reference.key], names_for_rules(sets, stream.own)
    path = ".".join((name, *reference.path))
    with errors_from(where, of=expression_tree.ExpressionError):
        expression = expressions.check(null_safe(path, names) or path, names)
    if expression.type.not_null != schema.STR:
        raise ConfigError(f"{where}: expected a text, or null, got a value of type {expression.type}")
    function = compiling.compile_function(expression.code, (*(f"r{i}" for i in range(len(sets))), "document"))
    return ChosenText(function, name, {*reference.path[:1]})


def null_safe(path: str | None, names: Mapping[str, checker.Name]) -> str | None:
    """Return a null-safe expression of a dotted path; None without such a path.

    A path that ends in ``.label`` may lead to a text, which is then the label. So may a top-level field, for which
    `toolkit.data.metadata_fields.label_of` has an expression of any type.
    """
    texts: list[str] = [path, path.removesuffix(".label")] if path else []
    is_own = bool(path and path.startswith(f"get({DOCUMENT}."))
    if is_own:
        field = texts[0][len("get(") : texts[0].index(",")]
        texts[1:] = [f"{field}.label", field]
    for text in texts:
        parts = text.split(".")
        around = [".".join(parts[:i]) for i in range(1 + is_own, len(parts))]
        tested = f"{text} if {' and '.join(f'{item} is not None' for item in around) or 'True'} else None"
        for expression in (text, tested):
            with contextlib.suppress(
                expression_tree.ExpressionError
            ):  # what the format wants is said where its values are bound
                if expressions.check(expression, names).type.not_null == schema.STR or text == path:
                    return expression
    return None
