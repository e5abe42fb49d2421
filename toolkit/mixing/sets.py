"""The attribute sets that a stream joins, with the types of their keys; and its rules, checked against them."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolkit import records, rules, schema
from toolkit.config import ConfigStruct
from toolkit.errors import ConfigError, did_you_mean
from toolkit.expressions import ExpressionError, Name, check
from toolkit.mixing.settings import MixSettings, Stream
from toolkit.schema import ANY, INT, STR, Type


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
    def declared(self) -> Type:
        return schema.from_json(self.type)


class JoinedSet(ConfigStruct):
    """A set as it is joined: its keys, and whether we have records of it."""

    set: str
    keys: list[Key]
    ours: bool


def resolve_sets(
    stream: Stream, planned: Mapping[str, records.SetSchema], seen: Mapping[str, Iterable[records.Seen]]
) -> list[JoinedSet]:
    """The joined sets with the types of their keys.

    Args:
        stream: that joins them.
        planned: sets that will be written before the mix, so need not be on disk yet.
        seen: for each set that another program made, what its files hold.

    Raises:
        ConfigError: if a set does not exist, or two have the same key.
    """
    dataset = stream.dataset
    result: list[JoinedSet] = []
    names: dict[str, str] = {}
    for joined in stream.attributes:
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


def foreign_sets(stream: Stream, planned: Mapping[str, records.SetSchema]) -> list[str]:
    """The joined sets that another program made."""
    there = stream.dataset.sets()
    return [
        joined.set
        for joined in stream.attributes
        if joined.set in there and joined.set not in planned and records.load_schema(stream.dataset, joined.set) is None
    ]


def _foreign_keys(seen: Iterable[records.Seen]) -> dict[str, tuple[Type, bool]]:
    types: dict[str, Type] = {}
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


# --- rules over them --------------------------------------------------------------------------------------------------

_DOCUMENT = Type("object", fields=(("id", STR), ("source", STR), ("chars", INT), ("metadata", Type("map", ANY))))


def names_for_rules(sets: Iterable[JoinedSet]) -> dict[str, Name]:
    """What expressions may use: the keys of set i are fields of the argument ``ri``; ``document`` is the document."""
    names = {
        key.name: Name(key.declared, f"r{i}.{schema.field_name(key.key)}")
        for i, joined in enumerate(sets)
        for key in joined.keys
    }
    names.setdefault("document", Name(_DOCUMENT, "document"))
    return names


def compile_rules(settings: MixSettings, stream: Stream, sets: list[JoinedSet]) -> rules.RuleSet:
    """A stream's rules, checked against the types of its sets and compiled."""
    arguments = (*(f"r{i}" for i in range(len(sets))), "document")
    names = names_for_rules(sets)
    found = rules.RuleSet(
        stream.all_rules, names, arguments, settings.label or _label(settings.writer().label(), names)
    )
    if found.fields and not settings.writer().FIELDS:
        place = next(rule.place for rule in stream.rules if rule.field)
        raise ConfigError(
            f"{place}: expected `set` with a format that has a place for metadata, got {settings.output.format}"
        )
    return found


def _label(path: str | None, names: Mapping[str, Name]) -> str | None:
    """The expression of the format's label: null where a part of its path is."""
    if path is None:
        return None
    try:
        check(path, names)
    except ExpressionError:
        parts = path.split(".")
        around = [".".join(parts[:i]) for i in range(1, len(parts))]
        path = f"{path} if {' and '.join(f'{each} is not None' for each in around) or 'True'} else None"
        try:
            check(path, names)
        except ExpressionError:  # what the format wants is not there: that is said where its values are bound
            return None
    return path
