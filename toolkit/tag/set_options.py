"""The options ``when`` and ``without`` of sets: which documents their taggers see, and of which texts.

``when`` is an expression over attributes that are made before, and fields of the document; other documents get null.
The sets that it reads are part of what the set is made from, and the expression is part of its settings.

With ``without``, taggers see texts of which some spans are removed, and with ``text: EDIT`` edited texts. The spans
that they find are mapped back to the whole text (see `toolkit.rules.text_edits`). A rule that replaces such spans and
cuts the removed ones therefore gives the same text as replacing them in the shorter text. Values for each line are
refused: a line of the edited text may come from several of the whole text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import chosen_text, metadata_fields, schema
from toolkit.data.documents import Document, Span
from toolkit.data.own_types import OwnTypes
from toolkit.errors import ConfigError, DataError, did_you_mean, short
from toolkit.rules import expressions
from toolkit.rules.checker import Facts, Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import Expression, check_condition
from toolkit.rules.text_edits import EditedDocument, PlaceMap, TextEdit, edited, in_whole
from toolkit.tag.tagger import Reference, Tagger, value_type
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
        if unknown := sorted(used - {*read, metadata_fields.METADATA}):
            names = sorted({key for of_set in (*keys.values(), *elsewhere().values()) for key in of_set})
            hint = did_you_mean(unknown[0], names) or f"; there are: {', '.join(names) or 'none'}"
            raise ExpressionError(f"expected a key of a set that is made before this one, got {unknown[0]!r}{hint}")
        read = {key: name for key, name in read.items() if key in used}
    reads = []
    for key, name in sorted(read.items()):
        type_ = None if name in here else schema.to_json(elsewhere()[name][key])
        reads.append(Read(set=name, key=key, type=type_))
    own_types = documents() if expressions.reads_document(expression) else None
    return When(text=when.text, sets=when.sets, expression=expression, reads=reads, own=own_types)


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
