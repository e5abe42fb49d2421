"""The attribute sets that a stream joins, with the types of their keys; and its rules, checked against them."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit import rules
from toolkit.config.scale import Declared, declared_in
from toolkit.config.settings import ConfigStruct
from toolkit.data import chosen_text, schema
from toolkit.data.own_types import OwnTypes
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, did_you_mean
from toolkit.mix.settings import COPY, MixSettings, Stream
from toolkit.records import sets as records
from toolkit.rules import expressions
from toolkit.rules.checker import Name
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import check
from toolkit.rules.running import compile_function
from toolkit.session import current


class Key(ConfigStruct):
    """A key of a joined set.

    Attributes:
        key: in the file.
        name: in the mix.
        type: in the form of `toolkit.data.schema`.
        default: whether rows may lack it: spans are then none, other values null.
        present_type: of the value where rows have it, if they may lack it.
        settings: of its tagger, if we have its records.
        code: digests of the tagger's code (see `toolkit.config.plugin_code`).
        descriptions: what the value and its parts are (see `toolkit.data.schema.descriptions`), if we have its records.
        models: where the models of its tagger were, by option, if we have its records.
        hidden: whether another set has the key too, so that rules cannot tell which is meant.
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
    def declared(self) -> Type:
        return _declared(msgspec.json.encode(self.type), msgspec.json.encode(self.descriptions))

    @property
    def absent(self) -> Any:
        """Return the value of rows that lack the key."""
        return [] if self.default and self.declared.kind == "list" else None

    @property
    def present(self) -> Type | None:
        return schema.from_json(self.present_type) if self.default else None


@functools.lru_cache(1024)  # each shard asks for it some times
def _declared(type_: bytes, descriptions: bytes) -> Type:
    return schema.described(schema.from_json(msgspec.json.decode(type_)), msgspec.json.decode(descriptions))


class JoinedSet(ConfigStruct):
    """A set as it is joined.

    Attributes:
        set: its name.
        keys: of it.
        ours: whether we have records of it.
        reads: for each set that it was made from, the digest of that set's schema.
    """

    set: str
    keys: list[Key]
    ours: bool
    reads: dict[str, str] = {}


def scale_of(text: str, sets: Sequence[JoinedSet]) -> Declared:
    """Return the scale that is declared for a value, `SET.KEY[.field]` or `KEY[.field]`; None of other expressions."""
    named = chosen_text.split_reference(text)
    found = [
        key.settings
        for joined in sets
        for key in joined.keys
        if named and ((joined.set, key.key) == named[:2] or (key.name == named.set and not key.hidden))
    ]
    return declared_in(found[0]) if found and found[0] else None


def set_hint(name: str, stream: Stream, joined: Iterable[JoinedSet], planned: Mapping[str, records.SetSchema]) -> str:
    """Return the way out of a rule that uses a name which no joined set has; empty if no set explains it.

    Args:
        name: Name in the rule.
        stream: Stream of the rule.
        joined: Sets that it joins.
        planned: Sets that will have been written before the mix.
    """
    if keys := next((each.keys for each in joined if each.set == name), None):
        return f", the name of a set; in rules, keys stand as names: {', '.join(key.name for key in keys)}"
    for set_name in sorted({*stream.dataset.sets(), *planned} - {each.set for each in joined}):
        found = planned.get(set_name) or records.load_schema(stream.dataset, set_name)
        if set_name == name or (found and name in found.keys):
            return f"; the set {set_name} has it, so add {set_name} to `attributes:`"
    return ""


# --- rules over them --------------------------------------------------------------------------------------------------


def names_for_rules(sets: Iterable[JoinedSet], own: OwnTypes | None = None) -> dict[str, Name]:
    """Return what expressions may use: the keys of set i are fields of the argument ``ri``; and ``document``.

    Args:
        sets: that are joined.
        own: types of the own fields of documents, if they are known.
    """
    names = {
        key.name: Name(key.declared, f"r{i}.{schema.field_name(key.key)}", key.present)
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


def chosen_text_of(stream: Stream, sets: list[JoinedSet]) -> ChosenText | None:
    """Return the chosen text of a stream; None for the documents' own.

    Raises:
        ConfigError: if there is no such value, or it is no text.
    """
    if stream.text is None:
        return None
    reference = chosen_text.parse_reference(stream.text)
    place = next((each.place for each in stream.attributes if each.set == reference.set), "")
    option = "" if place.endswith(f".{chosen_text.OPTION}") else f"{chosen_text.OPTION}: "
    where = f"{place}: {option}{stream.text!r}"
    keys = {key.key: key.name for joined in sets if joined.set == reference.set for key in joined.keys}
    if reference.key not in keys:
        hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
        raise ConfigError(f"{where}: expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    name, names = keys[reference.key], names_for_rules(sets, stream.own)
    path = ".".join((name, *reference.path))
    try:
        found = check(null_safe(path, names) or path, names)
    except ExpressionError as error:
        raise ConfigError(f"{where}: {error}") from None
    if found.type.not_null != schema.STR:
        raise ConfigError(f"{where}: expected a text, or null, got a value of type {found.type}")
    function = compile_function(found.code, (*(f"r{i}" for i in range(len(sets))), "document"))
    return ChosenText(function, name, {*reference.path[:1]})


def check_texts(settings: MixSettings, stream: Stream, sets: list[JoinedSet], wanted: Iterable[str]) -> None:
    """Check that spans and values of lines that edits and the writer use are places in the text of the stream.

    Args:
        settings: Settings of the mix.
        stream: Stream of the rules.
        sets: Sets that it joins.
        wanted: Keys, by their names in the mix, that the writer takes.

    Raises:
        ConfigError: if some are places in another text.
    """
    chosen_text_of(stream, sets)
    edits = [rule.expression for rule in stream.rules if rule.edits and rule.expression and not rule.foreign]
    used = {*wanted, *(key for text in edits for key in expressions.keys_in(text))}
    for key in (key for joined in sets for key in joined.keys if key.name in used):
        try:
            chosen_text.check_same(stream.text, chosen_text.text_of(key.settings), key.declared, repr(key.name))
        except ConfigError as error:
            raise ConfigError(f"{settings.place}: {error}") from None


def compile_rules(
    settings: MixSettings, stream: Stream, sets: list[JoinedSet], *, translates: bool = True
) -> rules.RuleSet:
    """Return a stream's rules, checked against the types of its sets and compiled; once in a process of the command.

    Args:
        settings: of the mix.
        stream: with the rules.
        sets: that it joins.
        translates: see `toolkit.rules.RuleSet`.
    """
    output = (settings.output.format, settings.options, settings.output.provenance, settings.label, settings.place)
    key = msgspec.msgpack.encode((output, stream.all_rules, stream.text, sets, stream.own, translates))
    found = current().kept((rules.RuleSet, key), lambda: _compile(settings, stream, sets, translates=translates))
    found.start_over()
    return found


def _rules_of(stream: Stream, sets: list[JoinedSet]) -> list[rules.Rule]:
    """Return the rules of a stream; that which drops documents without a chosen text proves other values, too.

    Taggers that saw the chosen text gave null exactly where it is null, so later rules need not test their values.
    """
    found = stream.all_rules
    if stream.text is None:
        return found
    same = [
        key.name
        for joined in sets
        for key in joined.keys
        if key.declared.kind == "nullable" and not key.hidden and _is_null_alike(stream.text, key.settings)
    ]
    proven = " or ".join((found[0].expression, *(f"{name} is None" for name in same)))
    return [msgspec.structs.replace(found[0], expression=proven), *found[1:]]


def _is_null_alike(text: str, settings: Mapping[str, Any] | None) -> bool:
    """Return whether a tagger's value is null where the chosen text is, and nowhere else because of an option."""
    return settings is not None and "tagger" in settings and settings.get("text") == text and "when" not in settings


def _compile(settings: MixSettings, stream: Stream, sets: list[JoinedSet], *, translates: bool) -> rules.RuleSet:
    arguments = (*(f"r{i}" for i in range(len(sets))), "document")
    names = names_for_rules(sets, stream.own)
    folder = null_safe(settings.writer().label(), names)
    found = rules.RuleSet(
        _rules_of(stream, sets), names, arguments, settings.label or folder, folder, translates=translates
    )
    roots = {field.partition(".")[0] for field in found.fields}
    if settings.output.provenance and "provenance" in roots:
        raise ConfigError(f"{settings.place}: expected `provenance` once, got the option and a `set` rule")
    if settings.repeats and COPY in roots:
        place = next(rule.place for rule in stream.rules if rule.field.partition(".")[0] == COPY)
        raise ConfigError(f"{place}: expected another field than {COPY}, which numbers the copies that `repeat` makes")
    if found.fields and not settings.writer().FIELDS:
        place = next(rule.place for rule in stream.rules if rule.field)
        raise ConfigError(
            f"{place}: expected `set` with a format that has a place for metadata, got {settings.output.format}"
        )
    return found


def null_safe(path: str | None, names: Mapping[str, Name]) -> str | None:
    """Return the expression of a dotted path that is null where a part of it is; None if there is no such path.

    A path that ends in ``.label`` may lead to a text, which is then the label.
    """
    for text in (path, path.removesuffix(".label")) if path else ():
        parts = text.split(".")
        around = [".".join(parts[:i]) for i in range(1, len(parts))]
        tested = f"{text} if {' and '.join(f'{each} is not None' for each in around) or 'True'} else None"
        for expression in (text, tested):
            with contextlib.suppress(ExpressionError):  # what the format wants is said where its values are bound
                if check(expression, names).type.not_null == schema.STR or text == path:
                    return expression
    return None
