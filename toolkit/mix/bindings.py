"""Bindings of rules and writer to joined sets; shards with bindings."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import msgspec

from toolkit.config import settings as config
from toolkit.config.plugin_code import changes, code_of
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, row_index, schema
from toolkit.data.document_fields import NAMES, MetadataField, OwnTypes, label_of, path_of, value_of
from toolkit.data.documents import Document
from toolkit.errors import ConfigError, did_you_mean, errors_from
from toolkit.mix.join import JoinedKey, JoinedSet, JoinedShard, chosen_text_of, names_for_rules, null_safe, set_hint
from toolkit.mix.settings import COPY, MixSettings, Stream
from toolkit.mix.writer import Wanted
from toolkit.records.sets import SetSchema
from toolkit.rules import expressions
from toolkit.rules.rule import Rule, UnknownAttribute
from toolkit.rules.ruleset import RuleSet
from toolkit.session import cached, current
from toolkit.tag import plan, tagger

AfterEdits = Literal["kept", "by line", "recomputed"]


class Binding(ConfigStruct):
    """The place of a value for the writer.

    Attributes:
        set: Index of the set.
        key: Key in the set.
        path: Fields inside the value.
        after_edits: Treatment of the value in a document whose text rules have edited.
        is_label: True if it is a text, the label of the object that the writer wants.
    """

    set: int
    key: str
    path: list[str]
    after_edits: AfterEdits = "kept"
    is_label: bool = False


class ShardToMix(JoinedShard, kw_only=True):
    """One shard to mix.

    Attributes:
        bindings: Bindings of the writer's attributes, by option.
        set_bindings: Bindings of the attributes that `set` rules use, where rules edit the text.
    """

    stream: Stream
    settings: MixSettings
    bindings: dict[str, Binding] = {}
    set_bindings: list[Binding] = []

    def compile_rules(self, *, translates: bool | None = None) -> RuleSet:
        """Return the rules, checked against the types of sets and compiled; once in a process of the command.

        Args:
            translates: Option of `RuleSet`; by default True, unless patterns see attributes that documents, which have
                been indexed, have of their own.
        """
        settings, stream = self.settings, self.stream
        if translates is None:
            foreign = any(rule.foreign for rule in stream.rules)
            state = row_index.current(self.dataset, self.shard) if foreign else None
            translates = not (state and state.inline)
        output = (settings.output.format, settings.options, settings.output.provenance, settings.label, settings.place)
        key = msgspec.msgpack.encode((output, stream.all_rules, stream.text, self.sets, stream.own, translates))
        result = current().get_or_make((RuleSet, key), lambda: _compile(self, translates=translates))
        result.start_over()
        return result

    def bound(self, planned: Mapping[str, SetSchema] | None = None) -> Self:
        """Return the shard with the bindings of its rules and writer, checked.

        Args:
            planned: Sets that will have been written by then.

        Raises:
            ConfigError: for a rule or an option that cannot be used; for spans and values of lines that edits and the
                writer use, if they are places in another text than that of the stream.
        """
        try:
            rules = self.compile_rules(translates=True)
            bindings, set_bindings = _bind_writer(self, rules), _bind_rules(self, rules)
        except UnknownAttribute as error:
            hint = set_hint(error.name, self.stream, self.sets, planned or {})
            raise ConfigError(f"{error.message}{hint}" if hint else str(error)) from None
        chosen_text_of(self.stream, self.sets)
        keys = {_key(binding, self.sets).name for binding in (*bindings.values(), *set_bindings)}
        edits = [text for rule in self.stream.rules if rule.edits and not rule.foreign for text in rule.spans_named]
        keys |= {key for text in edits for key in expressions.keys_in(text)}
        for key in (key for joined in self.sets for key in joined.keys):
            if key.name in keys:
                text = chosen_text.text_of(key.settings)
                with errors_from(self.settings.place):
                    chosen_text.check_same(self.stream.text, text, key.declared, repr(key.name))
        return msgspec.structs.replace(self, bindings=bindings, set_bindings=set_bindings)


def _rules_of(stream: Stream, sets: list[JoinedSet]) -> list[Rule]:
    """Return the rules of a stream; that which drops documents without a chosen text proves other values, too.

    Taggers that saw the chosen text gave null exactly where it is null, so later rules need not test their values.
    """
    rules = stream.all_rules
    if stream.text is None:
        return rules
    same = [
        key.name
        for joined in sets
        for key in joined.keys
        if key.declared.kind == "nullable" and not key.hidden and _is_null_alike(stream.text, key.settings)
    ]
    proven = " or ".join((rules[0].expression, *(f"{name} is None" for name in same)))
    return [msgspec.structs.replace(rules[0], expression=proven), *rules[1:]]


def _is_null_alike(text: str, settings: Mapping[str, Any] | None) -> bool:
    """Return True for a value with the nulls of the chosen text. The value is a tagger's; no option may give other
    nulls.
    """
    return settings is not None and "tagger" in settings and settings.get("text") == text and "when" not in settings


def _compile(work: ShardToMix, *, translates: bool) -> RuleSet:
    settings, stream = work.settings, work.stream
    arguments = (*(f"r{i}" for i in range(len(work.sets))), "document")
    names = names_for_rules(work.sets, stream.own)
    folder = null_safe(settings.writer().label(), names)
    rules = _rules_of(stream, work.sets)
    result = RuleSet(rules, names, arguments, settings.label or folder, folder, translates=translates)
    roots = {field.partition(".")[0] for field in result.fields}
    if settings.output.provenance and "provenance" in roots:
        raise ConfigError(f"{settings.place}: expected `provenance` once, got the option and a `set` rule")
    if settings.repeats and COPY in roots:
        place = next(rule.place for rule in stream.rules if rule.field.partition(".")[0] == COPY)
        raise ConfigError(f"{place}: expected another field than {COPY}, which numbers the copies that `repeat` makes")
    if result.fields and not settings.writer().FIELDS:
        place = next(rule.place for rule in stream.rules if rule.field)
        raise ConfigError(
            f"{place}: expected `set` with a format that has a place for metadata, got {settings.output.format}"
        )
    return result


def _bind_rules(work: ShardToMix, rules: RuleSet) -> list[Binding]:
    """Return the attributes of `set` rules, with their treatment after edits.

    Raises:
        ConfigError: if one would be stale.
    """
    return [
        Binding(
            set=i, key=key.key, path=[], after_edits=_after_edits(work, key, f"{work.settings.place}: {key.name!r}")
        )
        for i, joined in enumerate(work.sets)
        for key in joined.keys
        if rules.edits and rules.fields and key.name in rules.needs.to_set
    ]


def _bind_writer(work: ShardToMix, rules: RuleSet) -> dict[str, Binding]:
    """Return the places of the writer's attributes in joined sets. Those in the metadata are left out: see
    `metadata_fields`.

    Raises:
        ConfigError: if one is not there, not of the wanted type, may be null, or depends on text that rules edit and
            can be neither cut along with its lines nor computed anew.
    """
    bindings, place, writer = {}, work.settings.place, work.settings.writer()
    if rules.edits and writer.takes_all() and not writer.takes_stale():
        raise ConfigError(
            f"{place}: expected `attributes: false` (or `original`, if the format has it), "
            f"got true: rules of this mix edit the text, so the attributes would describe another text"
        )
    for option, attribute in writer.wants().items():
        where = f"{place}: {option}: {attribute.path!r}"
        path = path_of(attribute.path)
        if path is not None and not any(key.name == path[0] for joined in work.sets for key in joined.keys):
            _check_metadata(where, attribute, path, rules, work.stream.own)
            continue
        binding = _bind(where, attribute, work.sets, rules.facts)
        if rules.edits:
            after_edits = _after_edits(work, _key(binding, work.sets), where)
            binding = msgspec.structs.replace(binding, after_edits=after_edits)
        bindings[option] = binding
    return bindings


def metadata_fields(wants: Mapping[str, Wanted], bindings: Mapping[str, Binding]) -> dict[str, MetadataField]:
    """Return the writer's fields of the metadata, by option. They are not bound to a set."""
    return {
        option: MetadataField(option, path, attribute.type)
        for option, attribute in wants.items()
        if option not in bindings and (path := path_of(attribute.path)) is not None
    }


def _check_metadata(where: str, attribute: Wanted, path: tuple[str, ...], rules: RuleSet, own: OwnTypes | None) -> None:
    if rules.edits and schema.is_per_line(schema.from_annotation(attribute.type, where)):
        raise ConfigError(
            f"{where}: expected an attribute of a set, got a field of the documents with a value "
            f"for each line: rules of this mix cut lines, and such a field would no longer fit"
        )
    for field in attribute.not_null:
        place, ways = (path, {label_of(attribute.path)}) if field == "label" else ((*path, field), set[str]())
        text = ".".join(place)
        if not {*rules.facts, *NAMES} & {value_of(place), text, *ways} and not _is_declared(path, field, own):
            rule = f"{text} is None" if all(map(str.isidentifier, place)) else f'"{value_of(place)} is None"'
            raise _nullable(where, text, rule)


def _is_declared(path: tuple[str, ...], field: str, own: OwnTypes | None) -> bool:
    """Return True if a field of a value is never null. A text is the label itself."""
    type_: schema.Type | None = schema.Type("map", fields=own.of(path[0])) if own else None
    for name in path[1:]:
        type_ = type_.get(name) if type_ else None
    inner = type_ and (type_ if field == "label" and type_ == schema.STR else type_.get(field))
    return inner is not None and inner.kind not in ("nullable", "any", "null")


def _nullable(where: str, path: str, rule: str) -> ConfigError:
    """Return the error of a nullable value, with the rule for it."""
    return ConfigError(
        f"{where}: {path} may be null here, and this format has no place for it; add the rule "
        f"{{drop: {rule}, name: unidentified}}"
    )


def _bind(where: str, attribute: Wanted, sets: list[JoinedSet], facts: frozenset[str]) -> Binding:
    name, *path = attribute.path.split(".")

    def not_null(type_: schema.Type, at: str, rule: str = "") -> schema.Type:
        """Return a type without null; known paths are not null in documents that stay."""
        if type_.kind == "nullable" and at not in facts:
            raise _nullable(where, at, rule or f"{at} is None")
        return type_.not_null

    for i, key in ((i, key) for i, joined in enumerate(sets) for key in joined.keys if key.name == name):
        expected = schema.from_annotation(attribute.type, where)
        type_, at = key.declared, name
        for field in path:
            outer = not_null(type_, at)
            if (inner := outer.get(field)) is None:
                names = [name for name, _ in outer.fields]
                hint = did_you_mean(field, names) or (f"; there are: {', '.join(names)}" if names else "")
                raise ConfigError(f"{where}: expected an attribute of type {expected}, got no such field{hint}")
            type_, at = inner, f"{at}.{field}"
        if type_.not_null == schema.STR and expected.get("label") is not None and _takes_label_alone(attribute.type):
            not_null(type_, attribute.path)
            return Binding(set=i, key=key.key, path=path, is_label=True)
        fields = {field: f"{attribute.path}.{field}" for field in attribute.not_null}
        if expected.kind != "nullable" and expected != schema.ANY:
            rule = " or ".join(f"{at} is None" for at in (attribute.path, *fields.values()))
            type_ = not_null(type_, attribute.path, rule)
        for field, at in fields.items():
            if inner := type_.get(field):
                not_null(inner, at)
        inside = tuple((name, t.not_null if name in fields else t) for name, t in type_.fields)
        if not schema.fits(schema.Type(type_.kind, type_.item, inside), expected):
            raise ConfigError(f"{where}: expected an attribute of type {expected}, got {type_}")
        return Binding(set=i, key=key.key, path=path)
    names = [key.name for joined in sets for key in joined.keys]
    keys = next((joined.keys for joined in sets if joined.set == name), [])
    message = f"{where}: expected an attribute of the mix, got {name!r}"
    if key_name := next((key.name for key in keys if path[:1] == [key.key]), None):
        raise ConfigError(f"{message}, the name of a set; write {'.'.join([key_name, *path[1:]])}")
    hint = did_you_mean(name, names) or f"; there are: {', '.join(names) or 'none'}"
    raise UnknownAttribute(name, message, f"{message}{hint}")


def _takes_label_alone(type_: Any) -> bool:
    """Return True if a type is satisfied with a label."""
    try:
        msgspec.convert({"label": ""}, type_)
    except msgspec.ValidationError as error:
        return "missing required field" not in str(error)
    return True


def _after_edits(work: ShardToMix, key: JoinedKey, where: str) -> AfterEdits:
    """Return the treatment of a value after edits of the text; a tagger's value about another text is kept.

    Raises:
        ConfigError: if it would be stale.
    """
    text = work.stream.text
    if _is_per_line(key, text):
        return "by line"
    stale = (
        f"{where}: rules of this mix edit the text, so this value must be computed again, and that is not possible: "
    )
    if key.settings is None:
        raise ConfigError(f"{stale}another program made its set")
    if "tagger" in key.settings and chosen_text.text_of(key.settings) != text:
        return "kept"
    if edits := key.settings.get(plan.WITHOUT):
        raise ConfigError(f"{stale}its set was made `without: {edits}`")
    if condition := key.settings.get(plan.WHEN):
        raise ConfigError(f"{stale}its set was made only for documents with `when: {condition}`")
    _tagger.cache_clear()  # the file of a tagger may have been edited since
    try:
        result = tagger_of(key)
    except ConfigError as error:
        raise ConfigError(f"{stale}{error}") from None
    for reference in tagger.references(result):
        read = next((k for s in work.sets if s.set == reference.set for k in s.keys if k.key == reference.key), None)
        if read is None:
            raise ConfigError(f"{stale}its tagger reads {reference.text}; add {reference.set} to `attributes:`")
        if not _is_per_line(read, text):
            raise ConfigError(f"{stale}its tagger reads {reference.text}, which does not have one value for each line")
    return "recomputed"


def _is_per_line(key: JoinedKey, text: str | None) -> bool:
    """Return True if each edited document has a value for each line. Documents without a text are dropped."""
    settings = key.settings or {}
    is_seen = text is not None and "tagger" in settings and settings.get(chosen_text.OPTION) == text
    return schema.is_per_line(key.declared.not_null if is_seen and plan.WHEN not in settings else key.declared)


def _key(binding: Binding, sets: list[JoinedSet]) -> JoinedKey:
    return next(key for key in sets[binding.set].keys if key.key == binding.key)


def tagger_of(key: JoinedKey) -> tagger.Tagger:
    """Return the tagger of a key.

    Raises:
        ConfigError: if it is not here, has another version or other code, or its model is not the one that was used.
    """
    return _tagger(msgspec.json.encode((key.settings, key.code, key.models)))


@cached(64)
def _tagger(encoded: bytes) -> tagger.Tagger:
    settings, code, places = msgspec.json.decode(encoded)
    if "tagger" not in settings:
        raise ConfigError("no tagger made its set")
    class_ = tagger.TAGGERS.find(places.pop("tagger", settings["tagger"]))
    options = places | {
        option: value
        for option, value in settings["options"].items()
        if not (isinstance(value, dict) and value.keys() == {"sha256"})  # a model
    }
    unknown = settings["options"].keys() - options.keys()
    for field in msgspec.structs.fields(class_):
        if field.required and field.encode_name in unknown:
            raise ConfigError(f"its set does not record where its {field.name} is; run `toolkit tag --overwrite`")
    result = config.convert(ConfigNode(options), class_, f"tagger {settings['tagger']}")
    now = tagger.settings(result, settings["tagger"], settings["as"])
    now |= {option: settings[option] for option in (chosen_text.OPTION,) if option in settings}
    if now != settings:
        raise ConfigError(
            f"the tagger {settings['tagger']} has another version or another model here than when the set was made"
        )
    if edited := changes(code, code_of(class_)):
        raise ConfigError(
            f"the code of the tagger {settings['tagger']} has changed since: {', '.join(edited)}; run `toolkit tag`"
        )
    return result


def recomputed(
    binding: Binding,
    sets: list[JoinedSet],
    document: Document,
    per_line: Mapping[tuple[str, str], list[Any]],
    type_: Any,
) -> Any:
    """Return the tagger's value for the edited document.

    Args:
        binding: Binding of the value.
        sets: Joined sets.
        document: Edited document.
        per_line: Values for each of its lines, by set and key.
        type_: Type of the result.
    """
    result = tagger_of(_key(binding, sets))
    for field in tagger.metadata_fields(result):
        document.give(field.text, field.of(document))
    for reference in tagger.references(result):
        values = msgspec.to_builtins(per_line[reference.set, reference.key])
        document.give(reference.text, msgspec.convert(values, reference.type))
    value: Any = msgspec.to_builtins(result.tag(document))
    for name in binding.path:
        value = value[name]
    return msgspec.convert({"label": value} if binding.is_label else value, type_)


def needed(binding: Binding, sets: list[JoinedSet]) -> list[tuple[int, str]]:
    """Return set index and key of the values needed by `recomputed`."""
    references = {(r.set, r.key) for r in tagger.references(tagger_of(_key(binding, sets)))}
    return [(i, key.key) for i, joined in enumerate(sets) for key in joined.keys if (joined.set, key.key) in references]
