"""Bindings of rules and writer of a stream to its joined sets, checked; and the shard that is mixed so."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from toolkit.config import settings as config
from toolkit.config.plugin_code import changes, code_of
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, row_index, schema
from toolkit.data.documents import Document
from toolkit.data.metadata_fields import MetadataField, label_of, path_of, value_of
from toolkit.errors import ConfigError, did_you_mean
from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet, Key, chosen_text_of, names_for_rules, null_safe
from toolkit.mix.settings import COPY, MixSettings, Stream
from toolkit.mix.writer import Wanted
from toolkit.rules import expressions
from toolkit.rules.rule import Rule
from toolkit.rules.ruleset import RuleSet
from toolkit.session import cached, current
from toolkit.tag import tagger
from toolkit.tag.set_options import WHEN, WITHOUT
from toolkit.tag.tagger import TAGGERS, Tagger


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
    edits = [text for rule in stream.rules if rule.edits and not rule.foreign for text in rule.spans_named]
    used = {*wanted, *(key for text in edits for key in expressions.keys_in(text))}
    for key in (key for joined in sets for key in joined.keys if key.name in used):
        try:
            chosen_text.check_same(stream.text, chosen_text.text_of(key.settings), key.declared, repr(key.name))
        except ConfigError as error:
            raise ConfigError(f"{settings.place}: {error}") from None


def compile_rules(settings: MixSettings, stream: Stream, sets: list[JoinedSet], *, translates: bool = True) -> RuleSet:
    """Return a stream's rules, checked against the types of its sets and compiled; once in a process of the command.

    Args:
        settings: Settings of the mix.
        stream: with the rules.
        sets: Sets that it joins.
        translates: see `toolkit.rules.ruleset.RuleSet`.
    """
    output = (settings.output.format, settings.options, settings.output.provenance, settings.label, settings.place)
    key = msgspec.msgpack.encode((output, stream.all_rules, stream.text, sets, stream.own, translates))
    result = current().get_or_make((RuleSet, key), lambda: _compile(settings, stream, sets, translates=translates))
    result.start_over()
    return result


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
    """Return whether a tagger's value is null where the chosen text is, and nowhere else because of an option."""
    return settings is not None and "tagger" in settings and settings.get("text") == text and "when" not in settings


def _compile(settings: MixSettings, stream: Stream, sets: list[JoinedSet], *, translates: bool) -> RuleSet:
    arguments = (*(f"r{i}" for i in range(len(sets))), "document")
    names = names_for_rules(sets, stream.own)
    folder = null_safe(settings.writer().label(), names)
    result = RuleSet(_rules_of(stream, sets), names, arguments, settings.label or folder, folder, translates=translates)
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


class Binding(ConfigStruct):
    """The place that a value comes from which the writer wants.

    Attributes:
        set: by index.
        key, path: in the set, and fields inside the value.
        after_edits: what becomes of it in a document whose text rules have edited.
        is_label: True if it is a text, the label of the object that the writer wants.
    """

    set: int
    key: str
    path: list[str]
    after_edits: Literal["kept", "by line", "recomputed"] = "kept"
    is_label: bool = False


def bind_rules(settings: MixSettings, sets: list[JoinedSet], found: RuleSet, text: str | None = None) -> list[Binding]:
    """Return what becomes of the attributes that `set` rules use in a document whose text other rules edit.

    Args:
        settings: Settings of the mix.
        sets: Sets that are joined.
        found: the rules.
        text: the chosen text of the documents (see `toolkit.data.chosen_text`).

    Raises:
        ConfigError: if one would be stale.
    """
    if not (found.edits and found.fields):
        return []
    return [
        Binding(
            set=i, key=key.key, path=[], after_edits=_after_edits(key, sets, f"{settings.place}: {key.name!r}", text)
        )
        for i, joined in enumerate(sets)
        for key in joined.keys
        if key.name in found.needs.to_set
    ]


def bind_writer(
    settings: MixSettings, sets: list[JoinedSet], found: RuleSet, text: str | None = None
) -> dict[str, Binding]:
    """Return where the writer's attributes come from, but for those from the metadata (see `metadata_fields`).

    Args:
        settings: Settings of the mix.
        sets: Sets that are joined.
        found: the rules.
        text: the chosen text of the documents (see `toolkit.data.chosen_text`).

    Raises:
        ConfigError: if one is not there, not of the wanted type, may be null, or depends on text that rules edit and
            can be neither cut along with its lines nor computed anew.
    """
    bindings = {}
    known = found.known
    if found.edits and settings.writer().takes_all() and not settings.writer().takes_stale():
        raise ConfigError(
            f"{settings.place}: expected `attributes: false` (or `original`, if the format has it), "
            f"got true: rules of this mix edit the text, so the attributes would describe another text"
        )
    for option, wanted in settings.writer().wants().items():
        where = f"{settings.place}: {option}: {wanted.path!r}"
        if (path := _of_metadata(wanted, sets)) is not None:
            _check_metadata(where, wanted, path, found)
            continue
        binding = _bind(where, wanted, sets, known)
        if found.edits:
            after = _after_edits(_key(binding, sets), sets, where, text)
            binding = msgspec.structs.replace(binding, after_edits=after)
        bindings[option] = binding
    return bindings


def metadata_fields(wants: Mapping[str, Wanted], bindings: Mapping[str, Binding]) -> dict[str, MetadataField]:
    """Return the fields of the metadata that a writer takes, by option: what is not bound to a set."""
    return {
        option: MetadataField(option, path, wanted.type)
        for option, wanted in wants.items()
        if option not in bindings and (path := path_of(wanted.path)) is not None
    }


def _of_metadata(wanted: Wanted, sets: list[JoinedSet]) -> tuple[str, ...] | None:
    """Return the keys that lead to a field of the metadata; None of an attribute, which may be called ``metadata``."""
    result = path_of(wanted.path)
    is_key = result is not None and any(key.name == result[0] for joined in sets for key in joined.keys)
    return None if is_key else result


def _check_metadata(where: str, wanted: Wanted, path: tuple[str, ...], found: RuleSet) -> None:
    if found.edits and schema.is_per_line(schema.from_annotation(wanted.type, where)):
        raise ConfigError(
            f"{where}: expected an attribute of a set, got a field of the documents with a value "
            f"for each line: rules of this mix cut lines, and such a field would no longer fit"
        )
    if wanted.not_null and not found.known & {value_of(path), label_of(wanted.path), wanted.path}:
        raise ConfigError(
            f"{where}: {wanted.path} may be null here, and this format has no place for it; add the rule "
            f"{{drop: {_null_rule(path)}, name: unidentified}}"
        )


def _null_rule(path: tuple[str, ...]) -> str:
    if all(key.isidentifier() for key in path):
        return f"{'.'.join(path)} is None"
    return f'"{value_of(path)} is None"'


def _bind(where: str, wanted: Wanted, sets: list[JoinedSet], known: frozenset[str]) -> Binding:
    name, *path = wanted.path.split(".")
    for i, joined in enumerate(sets):
        for key in joined.keys:
            if key.name != name:
                continue
            expected = schema.from_annotation(wanted.type, where)
            type_ = key.declared
            for depth, field in enumerate(path, 1):
                at = ".".join(wanted.path.split(".")[:depth])
                outer = _not_null(type_, at, f"{at} is None", known, where)
                if (inner := outer.get(field)) is None:
                    names = [name for name, _ in outer.fields]
                    hint = did_you_mean(field, names) or (f"; there are: {', '.join(names)}" if names else "")
                    raise ConfigError(f"{where}: expected an attribute of type {expected}, got no such field{hint}")
                type_ = inner
            if type_.not_null == schema.STR and expected.get("label") is not None:
                _not_null(type_, wanted.path, f"{wanted.path} is None", known, where)
                return Binding(set=i, key=key.key, path=path, is_label=True)
            if expected.kind != "nullable" and expected != schema.ANY:
                fields = [f"{wanted.path}.{field}" for field in wanted.not_null]
                rule = " or ".join(f"{at} is None" for at in (wanted.path, *fields))
                type_ = _not_null(type_, wanted.path, rule, known, where)
            for field in wanted.not_null:
                if inner := type_.get(field):
                    _not_null(inner, at := f"{wanted.path}.{field}", f"{at} is None", known, where)
            if not schema.fits(_without_nulls(type_, wanted.not_null), expected):
                raise ConfigError(f"{where}: expected an attribute of type {expected}, got {type_}")
            return Binding(set=i, key=key.key, path=path)
    names = [key.name for joined in sets for key in joined.keys]
    of_set = next((joined for joined in sets if joined.set == name), None)
    meant = next((key.name for key in of_set.keys if path[:1] == [key.key]), None) if of_set else None
    if meant:
        hint = f", the name of a set; write {'.'.join([meant, *path[1:]])}"
    else:
        hint = did_you_mean(name, names) or f"; there are: {', '.join(names) or 'none'}"
    raise ConfigError(f"{where}: expected an attribute of the mix, got {name!r}{hint}")


def _not_null(type_: schema.Type, path: str, rule: str, known: frozenset[str], where: str) -> schema.Type:
    """Return a type without null.

    Args:
        type_: Type of the value.
        path: Path of the value, among the attributes of the mix.
        rule: the condition under which a document has to be dropped.
        known: the paths that are not null in documents that stay.
        where: for the message.

    Raises:
        ConfigError: if the value may be null in a document that stays.
    """
    if type_.kind == "nullable" and path not in known:
        raise ConfigError(
            f"{where}: {path} may be null here, and this format has no place for it; add the rule "
            f"{{drop: {rule}, name: unidentified}}"
        )
    return type_.not_null


def _without_nulls(type_: schema.Type, fields: Iterable[str]) -> schema.Type:
    wanted = set(fields)
    changed = tuple(
        (name, t.item if name in wanted and t.kind == "nullable" and t.item else t) for name, t in type_.fields
    )
    return schema.Type(type_.kind, type_.item, changed)


def _after_edits(
    key: Key, sets: list[JoinedSet], where: str, text: str | None
) -> Literal["kept", "by line", "recomputed"]:
    """Return what becomes of a value after edits of the chosen text; a tagger's value about another text is kept.

    Raises:
        ConfigError: if it would be stale.
    """
    if _is_per_line(key, text):
        return "by line"
    stale = (
        f"{where}: rules of this mix edit the text, so this value must be computed again, and that is not possible: "
    )
    if key.settings is None:
        raise ConfigError(f"{stale}another program made its set")
    if "tagger" in key.settings and chosen_text.text_of(key.settings) != text:
        return "kept"
    if removed := key.settings.get(WITHOUT):
        raise ConfigError(f"{stale}its set was made `without: {removed}`")
    if asked := key.settings.get(WHEN):
        raise ConfigError(f"{stale}its set was made only for documents with `when: {asked}`")
    _tagger.cache_clear()  # the file of a tagger may have been edited since
    try:
        result = tagger_of(key)
    except ConfigError as error:
        raise ConfigError(f"{stale}{error}") from None
    for reference in tagger.references(result):
        read = next((k for s in sets if s.set == reference.set for k in s.keys if k.key == reference.key), None)
        if read is None:
            raise ConfigError(f"{stale}its tagger reads {reference.text}; add {reference.set} to `attributes:`")
        if not _is_per_line(read, text):
            raise ConfigError(f"{stale}its tagger reads {reference.text}, which does not have one value for each line")
    return "recomputed"


def _is_per_line(key: Key, text: str | None) -> bool:
    """Return whether all documents that are edited have a value for each line: those without a text are dropped."""
    given = key.settings or {}
    is_seen = text is not None and "tagger" in given and given.get(chosen_text.OPTION) == text
    return schema.is_per_line(key.declared.not_null if is_seen and WHEN not in given else key.declared)


def _key(binding: Binding, sets: list[JoinedSet]) -> Key:
    return next(key for key in sets[binding.set].keys if key.key == binding.key)


def tagger_of(key: Key) -> Tagger:
    """Return the tagger that made the values of a key.

    Raises:
        ConfigError: if it is not here, has another version or other code, or its model is not the one that was used.
    """
    return _tagger(msgspec.json.encode((key.settings, key.code, key.models)))


@cached(64)
def _tagger(encoded: bytes) -> Tagger:
    settings, code, places = msgspec.json.decode(encoded)
    if "tagger" not in settings:
        raise ConfigError("no tagger made its set")
    class_ = TAGGERS.find(places.pop("tagger", settings["tagger"]))
    options = places | {option: value for option, value in settings["options"].items() if not _is_model(value)}
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


def _is_model(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"sha256"}


def recomputed(
    binding: Binding,
    sets: list[JoinedSet],
    document: Document,
    per_line: Mapping[tuple[str, str], list[Any]],
    type_: Any,
) -> Any:
    """Return the value that the tagger gives for the edited document, as it is wanted.

    Args:
        binding: Binding of the value.
        sets: Sets that are joined.
        document: edited.
        per_line: values for each of its lines, by set and key.
        type_: Type that is wanted.
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
    """Return the values for each line, by index of the set and key, that computing anew needs."""
    wanted = {(r.set, r.key) for r in tagger.references(tagger_of(_key(binding, sets)))}
    return [(i, key.key) for i, joined in enumerate(sets) for key in joined.keys if (joined.set, key.key) in wanted]


class ShardToMix(JoinedShard, kw_only=True):
    """One shard to mix.

    Attributes:
        bindings: Bindings of the writer's attributes, by option.
        set_bindings: Set bindings of the attributes that `set` rules use, where rules edit the text.
    """

    stream: Stream
    settings: MixSettings
    bindings: dict[str, Binding]
    set_bindings: list[Binding]

    def compile_rules(self) -> RuleSet:
        """Return the stream's rules, compiled for this shard."""
        foreign = any(rule.foreign for rule in self.stream.rules)
        return compile_rules(self.settings, self.stream, self.sets, translates=not (foreign and self.has_inline()))

    def has_inline(self) -> bool:
        """Return True if the documents, which have been indexed, have attributes of their own: patterns see them."""
        state = row_index.current(self.dataset, self.shard)
        return state is not None and state.inline
