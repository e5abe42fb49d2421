"""The option ``when`` of a set: its taggers are asked of some documents only; the others get null.

The expression is over attributes that are made before, and fields of the document. The sets that it reads are part of
what the set is made from, and the expression is part of its settings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.chosen_text import TextDocument
from toolkit.data.documents import Document
from toolkit.data.metadata_fields import METADATA
from toolkit.data.own_types import OwnTypes
from toolkit.data.schema import Type
from toolkit.errors import DataError, did_you_mean, short
from toolkit.rules import expressions
from toolkit.rules.checker import Facts, Name
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import Expression, check_condition
from toolkit.rules.running import compile_function
from toolkit.tag.tagger import Reference
from toolkit.text.batch import Batch

OPTION = "when"
SETS = "attributes"
"""The option that names the sets which the expression reads, where a key of it is in several."""

Numbered = tuple[Document, int]
"""A document, and its number in its file."""


class Read(ConfigStruct):
    """An attribute that an expression reads.

    Attributes:
        set, key: where it is.
        type: of its values, in the form of `toolkit.data.schema`; None of a set of the same plan.
    """

    set: str
    key: str
    type: Any = None


class When(ConfigStruct):
    """The condition of a set in a configuration, as data.

    Attributes:
        text: as written.
        sets: that the configuration names beside it.
        expression: over keys.
        reads: the attributes that it reads, in the order of their names.
        own: types of the own fields of documents, if it uses some and they are known.
    """

    text: str
    sets: list[str] = []
    expression: str = ""
    reads: list[Read] = []
    own: OwnTypes | None = None


def resolved(
    when: When,
    own: tuple[str, str],
    here: Mapping[str, Sequence[str]],
    there: Callable[[], Mapping[str, Mapping[str, Type]]],
    documents: Callable[[], OwnTypes | None],
) -> When:
    """Return a condition that knows which attributes it reads.

    Args:
        when: as it is written.
        own: set and key of the tagger, which it cannot read.
        here: the keys of each set of the section.
        there: gives the types of each key of the other sets.
        documents: gives the types of the own fields of documents, if they are known.

    Raises:
        ExpressionError: if it is no expression, reads what is not there, or it is not clear in which set that is.
    """
    keys = {name: [key for key in of_set if (name, key) != own] for name, of_set in here.items()}

    def elsewhere() -> Mapping[str, Mapping[str, Type]]:
        return {name: types for name, types in there().items() if name not in here}

    def keys_of(set_name: str) -> Sequence[str]:
        found = keys[set_name] if set_name in keys else [*elsewhere().get(set_name, ())]
        if not found:
            known = sorted({*keys, *elsewhere()})
            hint = did_you_mean(set_name, known) or f"; there are: {', '.join(known) or 'none'}"
            raise ExpressionError(f"expected an attribute set, got {set_name!r}{hint}")
        return found

    named = {name: keys_of(name) for name in when.sets}
    found = expressions.sets_read(when.text, named, keys, elsewhere)
    expression, read = when.text.strip(), dict[str, str]()
    if found and next(iter(found.values())) is None:  # SET[.KEY[.field]] as a whole
        set_name, _, path = expression.partition(".")
        key, _, fields = path.partition(".")
        key = expressions.key_of(set_name, key, keys_of(set_name))
        expression, read = f"{key}.{fields}" if fields else key, {key: set_name}
    else:
        read = {key: name for name, of_set in named.items() for key in of_set}
        read |= {key: name for name in found for key in keys_of(name)}
        used = expressions.keys_in(expression)
        if unknown := sorted(used - {*read, METADATA}):
            known = sorted({key for of_set in (*keys.values(), *elsewhere().values()) for key in of_set})
            hint = did_you_mean(unknown[0], known) or f"; there are: {', '.join(known) or 'none'}"
            raise ExpressionError(f"expected a key of a set that is made before this one, got {unknown[0]!r}{hint}")
        read = {key: name for key, name in read.items() if key in used}
    reads = []
    for key, name in sorted(read.items()):
        type_ = None if name in here else schema.to_json(elsewhere()[name][key])
        reads.append(Read(set=name, key=key, type=type_))
    own_types = documents() if expressions.reads_document(expression) else None
    return When(text=when.text, sets=when.sets, expression=expression, reads=reads, own=own_types)


class Condition:
    """A condition that can be asked of documents.

    Args:
        when: resolved.
        types: of the attributes that taggers of the same plan make, by set and key.

    Attributes:
        text: as written.
        references: what documents must have been given before.
        known: what is not null where it is true, as keys with fields: ``language``, ``language.label``.

    Raises:
        ExpressionError: if it is no condition over these types.
    """

    def __init__(self, when: When, types: Mapping[tuple[str, str], Type]) -> None:
        self.text = when.text
        self._reads = {read.key: read for read in when.reads}
        declared = {
            key: types[read.set, key] if read.type is None else schema.from_json(read.type)
            for key, read in self._reads.items()
        }
        names = expressions.of_document(text=True, own=when.own)
        names |= {key: Name(type_, f"a{i}") for i, (key, type_) in enumerate(declared.items())}
        found: Expression = check_condition(when.expression, names)
        self.known: Facts = found.if_true
        self.references = tuple(
            Reference(OPTION, f"{OPTION}:{read.set}.{key}", read.set, key, (), schema.to_python(declared[key]))
            for key, read in self._reads.items()
        )
        self._function = compile_function(found.code, (*(f"a{i}" for i in range(len(declared))), "document"))

    def proven(self, reference: Reference) -> Facts:
        """Return what is known of an attribute that a tagger reads, in a document of which it is asked."""
        read = self._reads.get(reference.key)
        return self.known if read and read.set == reference.set else frozenset()

    def rows(self, numbered: Sequence[Numbered], path: str) -> list[int]:
        """Return which of some documents the taggers are asked of, as indexes in order.

        Args:
            numbered: the documents, which have been given the attributes that it reads.
            path: of the file, for messages.

        Raises:
            DataError: if the expression cannot be computed of a document, which the error names.
        """
        texts = [reference.text for reference in self.references]
        found = []
        for i, (document, number) in enumerate(numbered):
            try:
                given = [document.attribute(text) for text in texts]
                value = expressions.ask(self._function, (*given, document), f"{OPTION}: `{self.text}`")
                if not isinstance(value, bool):
                    raise DataError(f"{OPTION}: `{self.text}`: expected true or false, got {short(value)}")
            except DataError as error:
                raise DataError(error.message, path=path, line=number, id=document.id) from None
            if value:
                found.append(i)
        return found


class Asked(NamedTuple):
    """The documents of a batch of which a tagger is asked.

    Attributes:
        batch: of them.
        numbered: the same with the number of each in its file.
        rows: their indexes in the whole batch; None if they are all.
        of: how many the whole batch has.
    """

    batch: Batch
    numbered: Sequence[Numbered]
    rows: Sequence[int] | None
    of: int

    @classmethod
    def everything(cls, batch: Batch, numbered: Sequence[Numbered]) -> "Asked":
        """Return a whole batch."""
        return cls(batch, numbered, None, len(batch))

    @classmethod
    def some(cls, batch: Batch, numbered: Sequence[Numbered], rows: Sequence[int]) -> "Asked":
        """Return the documents with these indexes."""
        if len(rows) == len(batch):
            return cls.everything(batch, numbered)
        few = [numbered[i] for i in rows]
        return cls(Batch([document for document, _ in few]), few, rows, len(batch))

    def with_texts(self, reference: str) -> "Asked":
        """Return the documents with the text that they have been given, without those of which it is null."""
        texts = [document.attribute(reference) for document, _ in self.numbered]
        rows = [i for i, text in enumerate(texts) if text is not None]
        few = [(TextDocument(self.numbered[i][0], texts[i]), self.numbered[i][1]) for i in rows]
        whole = rows if self.rows is None else [self.rows[i] for i in rows]
        return Asked(Batch([document for document, _ in few]), few, whole, self.of)

    def taken(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values of these documents, given those of the whole batch."""
        return values if self.rows is None else [values[i] for i in self.rows]

    def spread(self, values: Iterable[Any]) -> list[Any]:
        """Return values of these documents in their places of the whole batch, null in all others."""
        if self.rows is None:
            return list(values)
        found: list[Any] = [None] * self.of
        for i, value in zip(self.rows, values, strict=True):
            found[i] = value
        return found
