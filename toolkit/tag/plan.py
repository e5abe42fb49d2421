"""The section ``tag:``: sets, their taggers in the order of what they read, and the schemas on disk.

The options ``when`` and ``without`` of sets: which documents their taggers see, and of which texts.

``when`` is an expression over attributes that are made before, and fields of the document; other documents get null.
The sets that it reads are part of what the set is made from, and the expression is part of its settings.

With ``without``, taggers see texts of which some spans are removed, and with ``text: EDIT`` edited texts. The spans
that they find are mapped back to the whole text (see `toolkit.rules.text_edits`). A rule that replaces such spans and
cuts the removed ones therefore gives the same text as replacing them in the shorter text. Values for each line are
refused: a line of the edited text may come from several of the whole text.
"""

import functools
import graphlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolkit.config import scale as scales, settings as config
from toolkit.config.plugin_code import changes, code_of
from toolkit.config.root import recorded_reference
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, document_fields, schema
from toolkit.data.chosen_text import parse_reference
from toolkit.data.document_fields import ROOTS, MetadataField, OwnTypes
from toolkit.data.documents import Document, Span
from toolkit.errors import ConfigError, DataError, MissingExtra, UnknownPlugin, did_you_mean, errors_from, short
from toolkit.plugins import default_name
from toolkit.rules import expression_tree, expressions, text_edits
from toolkit.rules.checker import Facts, Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import Expression, check_condition
from toolkit.rules.text_edits import EditedDocument, PlaceMap, TextEdit, edited, in_whole
from toolkit.session import cached
from toolkit.storage.json_files import decoder_of
from toolkit.storage.paths import is_set_name
from toolkit.tag import tagger
from toolkit.tag.tagger import TAGGERS, Reference, Tagger, value_type
from toolkit.text.batch import Batch

WHEN, WITHOUT = "when", "without"
SETS = "attributes"
"""The option that names the sets which the expression reads, where a key of it is in several."""

Numbered = tuple[Document, int]
"""A document, and its number in its file."""


class Read(ConfigStruct):
    """Attribute in an expression.

    Attributes:
        set, key: where it is.
        type: Type of its values, in the form of `toolkit.data.schema`; None of a set of the same plan.
    """

    set: str
    key: str
    type: Any = None


class When(ConfigStruct):
    """The condition of a set in a configuration, as data.

    Attributes:
        text: Text as written.
        sets: Sets that the configuration names beside it.
        expression: over keys.
        reads: the attributes that it reads, in the order of their names.
        own: types of the own fields of documents, if it uses some and they are known.
    """

    text: str
    sets: list[str] = []
    expression: str = ""
    reads: list[Read] = []
    own: OwnTypes | None = None


def resolve_condition(
    when: When,
    own: tuple[str, str],
    here: Mapping[str, Sequence[str]],
    elsewhere_types: Callable[[], Mapping[str, Mapping[str, schema.Type]]],
    documents: Callable[[], OwnTypes | None],
) -> When:
    """Return a condition with its attributes resolved.

    Args:
        when: Condition as written.
        own: set and key of the tagger, which it cannot read.
        here: the keys of each set of the section.
        elsewhere_types: gives the types of each key of the other sets.
        documents: gives the types of the own fields of documents, if they are known.

    Raises:
        ExpressionError: if it is no expression, reads what is not there, or it is not clear in which set that is.
    """
    keys = {name: [key for key in of_set if (name, key) != own] for name, of_set in here.items()}

    def elsewhere() -> Mapping[str, Mapping[str, schema.Type]]:
        return {name: types for name, types in elsewhere_types().items() if name not in here}

    def keys_of(set_name: str) -> Sequence[str]:
        results = keys[set_name] if set_name in keys else [*elsewhere().get(set_name, ())]
        if not results:
            names = sorted({*keys, *elsewhere()})
            hint = did_you_mean(set_name, names) or f"; there are: {', '.join(names) or 'none'}"
            raise ExpressionError(f"expected an attribute set, got {set_name!r}{hint}")
        return results

    named = {name: keys_of(name) for name in when.sets}
    results = expressions.sets_read(when.text, named, keys, elsewhere)
    expression, read = when.text.strip(), dict[str, str]()
    if results and next(iter(results.values())) is None:  # SET[.KEY[.field]] as a whole
        (set_name,) = results
        reference = expressions.resolve_reference(expression, {set_name: keys_of(set_name)})
        assert reference
        expression, read = ".".join((reference.key, *reference.path)), {reference.key: set_name}
    else:
        read = {key: name for name, of_set in named.items() for key in of_set}
        read |= {key: name for name in results for key in keys_of(name)}
        used = expressions.keys_in(expression)
        if unknown := sorted(used - {*read, document_fields.METADATA}):
            names = sorted({key for of_set in (*keys.values(), *elsewhere().values()) for key in of_set})
            hint = did_you_mean(unknown[0], names) or f"; there are: {', '.join(names) or 'none'}"
            raise ExpressionError(f"expected a key of a set that is made before this one, got {unknown[0]!r}{hint}")
        read = {key: name for key, name in read.items() if key in used}
    reads = []
    for key, name in sorted(read.items()):
        type_ = None if name in here else schema.to_json(elsewhere()[name][key])
        reads.append(Read(set=name, key=key, type=type_))
    typed = documents() if expressions.reads_document(expression) else None
    return When(text=when.text, sets=when.sets, expression=expression, reads=reads, own=typed)


class Condition:
    """Condition over documents.

    Args:
        when: resolved.
        types: Types of the attributes that taggers of the same plan make, by set and key.

    Attributes:
        text: Text as written.
        references: Attributes that documents need before.
        facts: Keys and fields that are not null if it is true: ``language``, ``language.label``.

    Raises:
        ExpressionError: if it is no condition over these types.
    """

    def __init__(self, when: When, types: Mapping[tuple[str, str], schema.Type]) -> None:
        self.text = when.text
        self._reads = {read.key: read for read in when.reads}
        declared = {
            key: types[read.set, key] if read.type is None else schema.from_json(read.type)
            for key, read in self._reads.items()
        }
        names = expressions.of_document(text=True, own=when.own)
        names |= {key: Name(type_, f"a{i}") for i, (key, type_) in enumerate(declared.items())}
        expression: Expression = check_condition(when.expression, names)
        self.facts: Facts = expression.if_true
        self.references = tuple(
            Reference(WHEN, f"{WHEN}:{read.set}.{key}", read.set, key, (), schema.to_python(declared[key]))
            for key, read in self._reads.items()
        )
        self._function = compile_function(expression.code, (*(f"a{i}" for i in range(len(declared))), "document"))

    def proven(self, reference: Reference) -> Facts:
        """Return the facts about an attribute in selected documents."""
        read = self._reads.get(reference.key)
        return self.facts if read and read.set == reference.set else frozenset()

    def rows(self, numbered: Sequence[Numbered], path: str) -> list[int]:
        """Return the indexes of the selected documents, in order.

        Args:
            numbered: the documents, which have been given the attributes that it reads.
            path: Path of the file, for messages.

        Raises:
            DataError: if the expression cannot be computed of a document, which the error names.
        """
        texts = [reference.text for reference in self.references]
        results = []
        for i, (document, number) in enumerate(numbered):
            try:
                values = [document.attribute(text) for text in texts]
                value = expressions.ask(self._function, (*values, document), f"{WHEN}: `{self.text}`")
                if not isinstance(value, bool):
                    raise DataError(f"{WHEN}: `{self.text}`: expected true or false, got {short(value)}")
            except DataError as error:
                raise DataError(error.message, path=path, line=number, id=document.id) from None
            if value:
                results.append(i)
        return results


class Selection(NamedTuple):
    """Documents of a batch for a tagger.

    Attributes:
        batch: Batch of them.
        numbered: the same with the number of each in its file.
        rows: their indexes in the whole batch; None if they are all.
        of: Number of documents of the whole batch.
    """

    batch: Batch
    numbered: Sequence[Numbered]
    rows: Sequence[int] | None
    of: int

    @classmethod
    def some(cls, batch: Batch, numbered: Sequence[Numbered], rows: Sequence[int]) -> "Selection":
        """Return the documents with these indexes."""
        if len(rows) == len(batch):
            return cls(batch, numbered, None, len(batch))
        few = [numbered[i] for i in rows]
        return cls(Batch([document for document, _ in few]), few, rows, len(batch))

    def with_texts(self, reference: str) -> "Selection":
        """Return the documents with the text of a reference.

        Those with null are left out.
        """
        texts = [document.attribute(reference) for document, _ in self.numbered]
        rows = [i for i, text in enumerate(texts) if text is not None]
        few = [(chosen_text.TextDocument(self.numbered[i][0], texts[i]), self.numbered[i][1]) for i in rows]
        whole = rows if self.rows is None else [self.rows[i] for i in rows]
        return Selection(Batch([document for document, _ in few]), few, whole, self.of)

    def select(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values of these documents, given those of the whole batch."""
        return values if self.rows is None else [values[i] for i in self.rows]

    def spread(self, values: Iterable[Any]) -> list[Any]:
        """Return values in their places of the whole batch.

        All other places are null.
        """
        if self.rows is None:
            return list(values)
        results: list[Any] = [None] * self.of
        for i, value in zip(self.rows, values, strict=True):
            results[i] = value
        return results


def spans_reference(text: object) -> Reference:
    """Return the attribute in ``without``.

    Raises:
        ConfigError: if it is not ``SET.KEY[.field]``.
    """
    return Reference(WITHOUT, str(text), *chosen_text.parse_reference(text, "the spans to remove"), list[Span])


def check_values(class_: type[Tagger], name: str) -> None:
    """Check the values of an edited text: they must apply to the whole one.

    Args:
        class_: Class of the tagger.
        name: Name of the tagger, for the message.

    Raises:
        ConfigError: if it gives a value for each line, or does not declare what it gives.
    """
    type_ = value_type(class_)
    got = str(type_) if schema.is_per_line(type_) else ""
    if class_.PER_LINE:
        got = f"values of lines ({', '.join(class_.PER_LINE)})"
    if not got and schema.has_any(type_):
        got = f"{type_}, a type that does not say where spans are"
    if got:
        raise ConfigError(
            "expected a tagger whose value is about the whole text, or has spans, got "
            f"{name} with {got}: "
            "without the spans, the text has other lines than the document. Leave `without` (or the edits in `text`) "
            "out, or cut the spans by a mix (rule `cut`) and tag its output"
        )


def check_read(reference: Reference, type_: schema.Type) -> None:
    """Check an attribute beside ``without``: it must describe the whole document.

    Raises:
        ConfigError: if it has spans or a value for each line, which are places in the whole text.
    """
    if reference.option != WITHOUT and (schema.is_per_line(type_) or schema.has_spans(type_)):
        raise ConfigError(
            f"expected an attribute of the whole document, got {type_}, which is about lines or "
            f"spans of the whole text: because of `{WITHOUT}`, the tagger sees only a part of this "
            f"text. Leave `{WITHOUT}` out, or name another attribute"
        )


class EditedBatch:
    """The documents of a batch with edited texts.

    Args:
        numbered: the whole documents, to which the spans were given, with the number of each in its file.
        edits: Edits of the texts.
        path: Path of the file, for messages.

    Attributes:
        numbered: the edited documents, with the same numbers.
        batch: Batch of the edited documents.

    Raises:
        DataError: if a span is out of range.
    """

    def __init__(self, numbered: Sequence[tuple[Document, int]], edits: Sequence[TextEdit], path: str) -> None:
        self._path = path
        self._sizes: list[int] = []
        self.numbered: list[tuple[EditedDocument, int]] = []
        texts = [edit.spans for edit in edits if edit.spans]
        for document, number in numbered:
            self._sizes.append(len(document.text))
            try:
                spans = [document.attribute(text) for text in texts]
                self.numbered.append((edited(document, edits, spans), number))
            except DataError as error:
                message = f"{WITHOUT}: {', '.join(texts)}: {error.message}"
                raise DataError(message, path=path, line=number, id=document.id) from None
        self.batch = Batch([document for document, _ in self.numbered])

    def in_whole(self, values: Sequence[Any], type_: schema.Type, annotation: Any, key: str) -> Sequence[Any]:
        """Return values with their spans mapped to the whole texts.

        Args:
            values: one for each document.
            type_: declared.
            annotation: the same in Python.
            key: Key of the tagger, for messages.

        Raises:
            DataError: if a span is out of range.
        """
        if not schema.has_spans(type_):
            return values
        results = []
        for value, size, (document, number) in zip(values, self._sizes, self.numbered, strict=True):
            try:
                mapped = in_whole(msgspec.to_builtins(value), type_, PlaceMap(document.edits, size))
            except DataError as error:
                message = f"tagger {key}: {error.message}"
                raise DataError(message, path=self._path, line=number, id=document.id) from None
            results.append(msgspec.convert(mapped, annotation))
        return results


T = TypeVar("T")


class Entry(ConfigStruct):
    """A tagger in a configuration, as data.

    Attributes:
        key: the top-level key that it writes.
        reference: Reference to the class.
        options: Options in the configuration.
        without: the spans that its texts are given without (see `toolkit.tag.plan`).
        text: the text that it sees in place of the documents' (see `toolkit.data.chosen_text`).
        when: When of which documents it is asked (see `toolkit.tag.plan`).
        scale: Scale of its values.
        place: file, line and key, for messages.
        code: digests of the class's code when the plan was read (see `toolkit.config.plugin_code`).
        recorded: Reference in records.
        files: Paths of files, by option, whose content an option has.
    """

    key: str
    reference: str
    options: dict[str, Any]
    without: str | None = None
    text: str | None = None
    when: When | None = None
    scale: scales.Declared = None
    place: str = ""
    code: dict[str, str] = {}
    recorded: str = ""
    files: dict[str, str] = {}

    @property
    def edits(self) -> list[text_edits.TextEdit]:
        """Return the edits of its text."""
        return [text_edits.TextEdit(spans=self.without)] if self.without else text_edits.edits_in(self.text)

    @property
    def chosen(self) -> str | None:
        """Return the text of a set in place of the documents'.

        None if there is none.
        """
        return None if self.edits else self.text

    @property
    def tagger(self) -> Tagger:
        """Return the tagger with its options."""
        return _configured(self.reference, msgspec.json.encode(self.options))

    @property
    def place_of_tagger(self) -> dict[str, str]:
        """Return the class's place as an option `tagger`.

        It is empty unless the reference is recorded relative to the root.
        """
        return {"tagger": self.reference} if self.recorded not in ("", self.reference) else {}


@cached(256)
def _configured(reference: str, options: bytes) -> Tagger:
    config_node = ConfigNode(msgspec.json.decode(options))
    return config.convert(config_node, TAGGERS.find(reference), f"tagger {reference}")


class Plan(ConfigStruct):
    """Work of `toolkit tag`, as data for a worker."""

    sets: dict[str, list[Entry]]


class Step(msgspec.Struct, frozen=True, dict=True):
    """A configured tagger in its place.

    Attributes:
        set, key: where its value goes.
        entry: Entry of the configuration.
        tagger: configured.
        references: the attributes that it reads, and those of `without`, `text` and `when`.
        fields: Fields of the documents' metadata that it reads.
        text: the text that it sees in place of the documents'.
        when: the condition under which it is asked of a document.
        type: declared; of the values that it gives.
        annotation: Annotation of the values, in Python.
    """

    set: str
    key: str
    entry: Entry
    tagger: Tagger
    references: tuple[Reference, ...]
    fields: tuple[MetadataField, ...]
    text: Reference | None
    when: Condition | None
    type: schema.Type
    annotation: Any

    @property
    def stored(self) -> schema.Type:
        """Return the type of the stored values.

        Null stands for documents without the tagger's value.
        """
        return schema.nullable(self.type) if self.is_partial else self.type

    @property
    def stored_annotation(self) -> Any:
        """Return `stored` in Python."""
        return self.annotation | None if self.is_partial else self.annotation

    @property
    def is_partial(self) -> bool:
        """Return True if some documents may get no value.

        The reason is `when`, or a text that is null.
        """
        return self.when is not None or self.text is not None

    @functools.cached_property
    def decoder(self) -> msgspec.json.Decoder[list[Any]]:
        """Return the decoder of a batch's values.

        It accepts only the declared type.
        """
        return decoder_of(list[self.annotation])  # type: ignore[name-defined]

    @functools.cached_property
    def takes_null_for_float(self) -> bool:
        """Return True if null may stand for a number.

        NaN is encoded as null.
        """
        kinds = {(part.kind, part.item and part.item.kind) for _, part in schema.walk(schema.Type("list", self.type))}
        return ("nullable", "float") in kinds or schema.has_any(self.type)


Others = Callable[[], Mapping[str, Mapping[str, schema.Type]]]
"""Gives the types of the keys of sets that the section does not make; called if an expression asks for one."""


Own = Callable[[], OwnTypes | None]
"""Gives the types of the own fields of documents, if they are known; called if an option or expression names one."""


def read_section(section: ConfigNode, elsewhere: Others = dict, own: Own = lambda: None) -> Plan:
    """Return the plan of a ``tag:`` section.

    Options are checked; nothing is loaded.

    Args:
        section: Section of the configuration.
        elsewhere: Types of sets for ``when:``.
        own: Types of the documents' own fields.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `SET: TAGGER | [TAGGER, …]`")
    return Plan(sets={set_name: _read_set(section, set_name, elsewhere, own) for set_name in section.value})


def read_sets(section: ConfigNode, names: Iterable[str], elsewhere: Others = dict, own: Own = lambda: None) -> Plan:
    """Return the plan of some sets, and of the sets they read.

    All are sets of the section.

    Raises:
        ConfigError: as `read_section`; what other sets say is not looked at.
    """
    sets: dict[str, list[Entry]] = {}
    todo = [name for name in names if name in section.value]
    while todo:
        name = todo.pop()
        if name not in sets:
            sets[name] = _read_set(section, name, elsewhere, own)
            todo += [read for entry in sets[name] for read in _reads(entry) if read in section.value]
    return Plan(sets={name: sets[name] for name in section.value if name in sets})


def _read_set(section: ConfigNode, set_name: str, elsewhere: Others, own: Own) -> list[Entry]:
    if not is_set_name(set_name):
        raise section.error((set_name,), "expected a set name of letters, digits, - and _")
    if set_name in ROOTS:
        reason = f"`{set_name}.field` in an option is a field of the document"
        raise section.error((set_name,), f"expected another set name than {set_name!r}: {reason}")
    entries: list[Entry] = []
    shared = _of_all(section, set_name)
    for place in places_of(section, set_name):
        entry = _with_fields_checked(_spelled_out(_read_entry(place, shared), section), own)
        if entry.when:
            here = {name: [*references_in(section, name)] for name in section.value}
            with errors_from(f"{entry.place}: {WHEN}", of=expression_tree.ExpressionError):
                when = resolve_condition(entry.when, (set_name, entry.key), here, elsewhere, own)
            entry = msgspec.structs.replace(entry, when=when)
        if any(entry.key == other.key for other in entries):
            raise place.error((), f"expected each key of a set once, got {entry.key!r} twice; give one an `as:`")
        entries.append(entry)
    if not entries:
        raise section.error((set_name,), "expected at least one tagger, got none")
    return entries


def _spelled_out(entry: Entry, section: ConfigNode) -> Entry:
    """Return an entry with full references.

    A set of one key gets that key, if its `as:` is another.

    A set of the section with one key leaves no doubt, whatever its `as:` is.
    """
    with suppress(ConfigError):  # which is raised with its place where the tagger is made
        for read in tagger.references(entry.tagger):
            keys = [*references_in(section, read.set)] if read.set in section.value and read.text == read.set else []
            if len(keys) == 1 and keys != [read.key] and read.option in entry.options:
                entry = msgspec.structs.replace(entry, options={**entry.options, read.option: f"{read.set}.{keys[0]}"})
    return entry


def _with_fields_checked(entry: Entry, own: Own) -> Entry:
    """Return an entry; raise ConfigError if an option names a field that no document has, null in all of them."""
    fields: list[MetadataField] = []
    with suppress(ConfigError):  # which is raised with its place where the tagger is made
        fields = tagger.metadata_fields(entry.tagger)
    for field in (field for field in fields if field.option.partition("[")[0] in entry.options):
        if fault := expressions.absent(field.path, expressions.of_document(own=own())):
            raise ConfigError(f"{entry.place}: {field.option}: {fault}")
    return entry


def references_in(section: ConfigNode, set_name: str) -> dict[str, str]:
    """Return the references to a set's taggers, by key.

    The rest of the section is ignored.
    """
    listed = [reference_of(place)[:2] for place in places_of(section, set_name)]
    return {key or default_name(reference): reference for reference, key in listed}


def _reads(entry: Entry) -> list[str]:
    """Return the sets of an entry's references."""
    with errors_from(entry.place):
        results = [reference.set for reference in tagger.references(entry.tagger)]
    results += [parse_reference(text).set for text in (entry.chosen, *(edit.spans for edit in entry.edits)) if text]
    return results + [read.set for read in entry.when.reads] if entry.when else results


def _of_all(section: ConfigNode, set_name: str) -> ConfigNode:
    """Return a set's options for all its taggers.

    The form is ``{taggers: […], option: …}``.
    """
    place = section.at(set_name)
    if not _is_long(place.value):
        place.value = {}
        return place
    shared = config.divide(place, {"taggers"})[1]
    for key in shared.value:
        if key not in OF_SETS:
            raise shared.error((key,), f"expected {', '.join(OF_SETS)} beside `taggers`, got {key!r}")
    return shared


def _is_long(value: Any) -> bool:
    return isinstance(value, dict) and "taggers" in value


def places_of(section: ConfigNode, set_name: str) -> list[ConfigNode]:
    """Return the entries of a set as the section has them."""
    place = section.at(set_name)
    if _is_long(place.value):
        place = place.at("taggers")
    return [place.at(i) for i in range(len(place.value))] if isinstance(place.value, list) else [place]


OF_SETS = {WITHOUT: None, chosen_text.OPTION: None, WHEN: None, SETS: None, scales.OPTION: None}
"""Options of any set, by name with their defaults. They stand beside a tagger, or beside `taggers` for all of a set."""


def reference_of(place: ConfigNode) -> tuple[str, str | None, ConfigNode]:
    """Return reference, alias and options of an entry.

    Options of any set are among them.

    Raises:
        ConfigError: if it is not of the form of one.
    """
    if isinstance(place.value, str):
        reference, key, options = place.value, None, place.at()
        options.value = {}
    else:
        fields, options = config.split(place, {"tagger": None, "as": None})
        reference, key = fields["tagger"], fields["as"]
    if not isinstance(reference, str) or not isinstance(key, str | None):
        raise place.error((), "expected a tagger's name, or {tagger: NAME, as: ALIAS, option: …}")
    return reference, key, options


def _read_entry(place: ConfigNode, shared: ConfigNode) -> Entry:
    reference, key, options = reference_of(place)
    if key is not None and not expressions.is_name(key):
        raise place.error(("as",), f"expected {expressions.A_NAME}, got {key!r}")
    try:
        class_ = TAGGERS.find(reference)
        code = code_of(class_)
    except (UnknownPlugin, MissingExtra) as error:
        raise type(error)(str(place.error((), str(error)))) from None
    except ConfigError as error:
        raise place.error((), str(error)) from None
    fields = {field.encode_name for field in msgspec.structs.fields(class_)}
    of_sets = [name for name in OF_SETS if name != scales.OPTION or name not in fields]  # language models have it, too
    if reserved := fields & {"tagger", "as", "taggers", *of_sets}:
        reason = "because this word has another meaning beside a tagger"
        raise place.error((), f"expected a tagger without an option {min(reserved)!r}, {reason}")
    own, options = config.divide(options, of_sets)
    if twice := own.value.keys() & shared.value.keys():
        raise own.error((min(twice),), f"expected {min(twice)} once, got it beside `taggers`, too")
    config.convert(options, class_, f"tagger {reference}")

    return Entry(
        key=key or default_name(reference),
        reference=reference,
        options=options.value,
        **_set_options(own, shared, class_, reference),
        place=": ".join(part for part in (place.place(()), f"tagger {reference}") if part),
        code=code,
        recorded=recorded_reference(reference),
    )


def _set_options(own: ConfigNode, shared: ConfigNode, class_: type[Tagger], reference: str) -> dict[str, Any]:
    """Return an entry's options of sets, checked.

    `when` stays as written.
    """

    def value_of(option: str) -> Any:
        return (own if option in own.value else shared).value.get(option)

    option = WITHOUT
    try:
        if (removed := value_of(WITHOUT)) is not None:
            check_values(class_, f"the tagger {reference}")
            spans_reference(removed)
        option = chosen_text.OPTION
        if (text := value_of(option)) is not None:
            if removed is not None:
                got = "got both: the spans of `without` are places in the documents' own text"
                raise ConfigError(f"expected `text` or `without`, {got}")
            if isinstance(text, list):
                check_values(class_, f"the tagger {reference}")
                text = text_edits.read_edits((own if option in own.value else shared).at(option))
            else:
                parse_reference(text)
        option, condition, sets = SETS, value_of(WHEN), value_of(SETS)
        if condition is None and sets is not None:
            raise ConfigError(f"expected `{SETS}` only beside `{WHEN}`")
        if condition is not None and (not isinstance(condition, str) or not condition.strip()):
            option = WHEN
            raise ConfigError(f'expected an expression, such as `language.label == "en"`, got {condition!r}')
        if not isinstance(sets, list | None) or not all(isinstance(item, str) for item in sets or ()):
            raise ConfigError(f"expected a list of sets that the expression reads, got {sets!r}")
        option = scales.OPTION
        scale = scales.parse(ConfigNode(value_of(option)))
    except ConfigError as error:
        message = str(error).removeprefix(f"{option}: ")
        raise (own if option in own.value else shared).error((option,), message) from None
    when = None if condition is None else When(text=condition, sets=sets or [])
    return {WITHOUT: removed, chosen_text.OPTION: text, WHEN: when, scales.OPTION: scale}


@cached(4)
def _build(encoded: bytes) -> tuple[Step, ...]:
    plan = msgspec.json.decode(encoded, type=Plan)
    entries = {(set_name, entry.key): entry for set_name, listed in plan.sets.items() for entry in listed}
    types = {
        name: schema.nullable(type_) if entry.when or entry.chosen else type_
        for name, entry in entries.items()
        for type_ in [tagger.value_type(TAGGERS.find(entry.reference))]
    }
    steps = {name: _step(name, entry, entries, types) for name, entry in entries.items()}
    sets: dict[str, list[str]] = {set_name: [] for set_name, _ in steps}
    keys: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for (set_name, key), step in steps.items():
        keys[set_name, key] = [(r.set, r.key) for r in step.references if (r.set, r.key) in steps]
        sets[set_name] += [r.set for r in step.references if r.set in sets and r.set != set_name]
    order = {set_name: i for i, set_name in enumerate(_sorted(sets))}
    ordered = [steps[name] for name in _sorted(keys)]
    return tuple(sorted(ordered, key=lambda step: order[step.set]))


def _step(
    name: tuple[str, str],
    entry: Entry,
    entries: Mapping[tuple[str, str], Entry],
    types: Mapping[tuple[str, str], schema.Type],
) -> Step:
    """Return the step of an entry.

    Given are all entries of the plan, and the types of their values.
    """
    class_ = TAGGERS.find(entry.reference)
    if edited := changes(entry.code, code_of(class_)):
        raise ConfigError(
            f"{entry.place}: expected the same code for the whole run, got other code in {', '.join(edited)}; "
            "do not edit it during a run, and have the same code on all machines; then run again"
        )
    try:
        references, fields = tuple(tagger.references(entry.tagger)), tuple(tagger.metadata_fields(entry.tagger))
        condition = Condition(entry.when, types) if entry.when else None
    except (ConfigError, expression_tree.ExpressionError) as error:
        option = f"{WHEN}: " if isinstance(error, expression_tree.ExpressionError) else ""
        raise ConfigError(f"{entry.place}: {option}{error}") from None
    references += tuple(spans_reference(edit.spans) for edit in entry.edits if edit.spans)
    if entry.chosen:
        chosen = Reference(chosen_text.OPTION, entry.chosen, *parse_reference(entry.chosen), str | None)
        references = tuple(_proven_by_text(reference, entry, entries) for reference in (*references, chosen))
    if condition and entry.when:
        references = (
            tuple(_proven(reference, condition, entry.when, entries) for reference in references) + condition.references
        )
    by_option = {reference.option: reference for reference in references}
    text = by_option.get(chosen_text.OPTION) if entry.chosen else None
    type_, annotation = tagger.value_type(class_), tagger.value_annotation(class_)
    return Step(*name, entry, entry.tagger, references, fields, text, condition, type_, annotation)


def _proven_by_text(reference: Reference, own: Entry, entries: Mapping[tuple[str, str], Entry]) -> Reference:
    """Return a reference, proven if its tagger sees the same text.

    Then its values are null only where the text is.
    """
    other = entries.get((reference.set, reference.key))
    same = other is not None and other.text == own.text and other.when is None
    return msgspec.structs.replace(reference, proven=reference.proven | {reference.key}) if same else reference


def _proven(
    reference: Reference, condition: Condition, own: When, entries: Mapping[tuple[str, str], Entry]
) -> Reference:
    """Return a reference with the facts of the condition.

    A set with the same condition has no null for it.
    """
    result = condition.proven(reference) | reference.proven
    other = entries.get((reference.set, reference.key))
    if other and other.when and (other.when.expression, other.when.reads) == (own.expression, own.reads):
        result |= {reference.key}
    return msgspec.structs.replace(reference, proven=result)


def _sorted(reads: Mapping[T, Iterable[T]]) -> list[T]:
    try:
        return list(graphlib.TopologicalSorter(reads).static_order())
    except graphlib.CycleError as error:
        cycle = " -> ".join(n if isinstance(n, str) else ".".join(n) for n in error.args[1])
        raise ConfigError(f"tag: expected sets and taggers that do not read each other, got {cycle}") from None


def build(plan: Plan) -> list[Step]:
    """Return the configured taggers in order of their reads.

    Those of a set are together.

    Raises:
        ConfigError: if two read each other.
    """
    return list(_build(msgspec.json.encode(plan)))
