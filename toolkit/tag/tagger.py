"""The contract of a tagger.

A tagger is its configuration: a frozen Struct whose fields are its options. Parts of a tagger's file, in order:
source, one sentence and the edge cases, examples, options, ``tag``. It imports ``from toolkit``, nothing else of ours.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import msgspec

from toolkit.config.docstrings import first_line
from toolkit.config.settings import FROZEN
from toolkit.data import schema
from toolkit.data.document_fields import ROOTS, MetadataField
from toolkit.data.documents import Document, is_reference
from toolkit.errors import ConfigError, ToolkitError
from toolkit.plugins import Kind, errors_of
from toolkit.storage import models, store_of


class Example(msgspec.Struct, frozen=True):
    """Example for documentation and test.

    Attributes:
        text: Text of the document.
        value: Value that the tagger gives with the options, or its JSON as Python data; it becomes the latter.
        options: Options of the tagger.
        attributes: values given for the attributes that it reads, by option name.
        metadata: Metadata of the document.
    """

    text: str
    value: Any
    options: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}
    metadata: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "value", msgspec.to_builtins(self.value))


class _AttributeMark(msgspec.Struct, frozen=True):
    key: str
    type: Any
    or_value: bool


Neutral = msgspec.Meta(extra={"neutral": True})
"""Marks an option that cannot change values: how many threads, which device. It is not recorded or compared."""

Added = msgspec.Meta(extra={"added": True})
"""Marks an option that came later: it is not recorded where it has its default, so sets that are there stay."""


def Attribute(key: str, type: Any, *, or_value: bool = False) -> msgspec.Meta:  # noqa: N802  # reads as a type in annotations
    """Mark an option for an attribute of another set.

    The configuration has it as ``SET[.KEY[.field]]``.

    ``lines: Annotated[str, Attribute("line_language", list[Prediction | None])]``; in ``tag`` the value is
    ``document.attribute(self.lines)``. ``metadata.field`` names a field of the document's metadata instead: null where
    it is absent or null, an error that names the document where it is not of the type.

    Args:
        key: the key when the configuration names only the set.
        type: Type of the decoded values; the set's declared type must fit it.
        or_value: the option may be the value itself, the same for all documents: ``en`` instead of
            ``language-0.language.label``. What has no dot is a value; ``document.given(self.language)`` has it.
    """
    return msgspec.Meta(extra={"attribute": _AttributeMark(key, type, or_value)})


class Tagger(msgspec.Struct, dict=True, **FROZEN):
    """Computes one attribute of a document: extend it by ``tag`` or ``tag_batch``, annotate the result, give examples.

    The annotation of what ``tag`` returns, else of the elements of what ``tag_batch`` does, is the declared type of the
    values: bool, int, float, str, `Span`, and lists, dicts, Structs and ``| None`` of them. The first line of the
    docstring says in a sentence what the value is, the section ``Attributes:`` of a Struct's docstring what each of its
    fields is.
    """

    VERSION: ClassVar[str] = "1"
    """Part of the recorded settings; change it whenever values change."""

    EXAMPLES: ClassVar[Sequence[Example]] = ()

    PERSONAL: ClassVar[bool] = False
    """Its spans are personal data, which reports and cards count."""

    TOKENS: ClassVar[bool] = False
    """Its value is the number of tokens of the text, which reports and cards add up."""

    PER_LINE: ClassVar[Sequence[str]] = ()
    """Fields of the value, where it is an object, that are lists with an element for each line of the text."""

    def check(self) -> None:
        """Raise ConfigError if it cannot run here with these options; called before anything is written."""

    def tag(self, document: Document) -> Any:
        """Return the attribute's value for one document."""
        if type(self).tag_batch is Tagger.tag_batch:
            raise NotImplementedError(type(self).__name__)
        return self.tag_batch([document])[0]

    def tag_batch(self, documents: Sequence[Document]) -> Sequence[Any]:
        """Return the values for some documents, in order. Give it in place of `tag` where a batch is faster."""
        return [self.tag(document) for document in documents]

    def tallied(self, values: Sequence[Any]) -> Mapping[str, int]:
        """Return counts of values by reason for the shard's record.

        There are none by default.
        """
        return {}


TAGGERS: Kind[Tagger] = Kind("tagger", "taggers", "toolkit.taggers", Tagger)


def says(tagger: str, flag: Literal["TOKENS", "PERSONAL"]) -> bool:
    """Return a flag of a tagger's class.

    It is false for a tagger that is not installed here.
    """
    try:
        return bool(tagger) and bool(getattr(TAGGERS.find(tagger), flag))
    except ToolkitError:
        return False


class Reference(msgspec.Struct, frozen=True):
    """Attribute in an option of a tagger.

    Attributes:
        option: Option of the tagger, that names it.
        text: the option's value, ``SET[.KEY[.field]]``.
        set, key: where the value is.
        path: fields inside the value.
        type: Type of the decoded values.
        proven: the key, and fields inside it, that are not null in documents of which the tagger is asked.
    """

    option: str
    text: str
    set: str
    key: str
    path: tuple[str, ...]
    type: Any
    proven: frozenset[str] = frozenset()

    @property
    def nullable_type(self) -> Any:
        """Return the type for all documents, also those without a value."""
        return self.type | None if self.proven else self.type


def value_type(tagger: type[Tagger]) -> schema.Type:
    """Return the declared type of a tagger's values; what they are as a whole is the first line of its docstring."""
    type_ = schema.from_annotation(value_annotation(tagger), f"tagger {tagger.__name__}")
    return schema.about(type_, type_.description or first_line(tagger).replace("``", "`"))


@functools.cache
def value_annotation(tagger: type[Tagger]) -> Any:
    """Return the annotation of ``tag``'s result.

    Without ``tag`` it is that of an element of ``tag_batch``'s.
    """
    with errors_of(tagger):  # a name may be unknown in it
        if tagger.tag is not Tagger.tag:
            return get_type_hints(tagger.tag, include_extras=True).get("return")
        return next(iter(get_args(get_type_hints(tagger.tag_batch, include_extras=True).get("return"))), None)


@functools.cache
def markers(tagger: type[msgspec.Struct], name: str) -> dict[str, Any]:
    """Return the marks of options by name, by option.

    Names are `attribute`, `model`, `check`, `neutral` and `added`.
    """
    return {option: meta.extra[name] for option, meta in _marked(tagger) if meta.extra and name in meta.extra}


@functools.cache
def _marked(tagger: type[msgspec.Struct]) -> list[tuple[str, msgspec.Meta]]:
    with errors_of(tagger):
        hints = get_type_hints(tagger, include_extras=True)  # which takes its time
    return [(option, meta) for option in hints for meta in _metas(hints[option]) if isinstance(meta, msgspec.Meta)]


def _metas(hint: Any) -> Iterator[Any]:
    """Yield the annotations of a type, and of types inside it."""
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
    for inner in get_args(hint):
        if not isinstance(inner, msgspec.Meta):
            yield from _metas(inner)


def references(tagger: msgspec.Struct) -> list[Reference]:
    """Return the attributes of other sets in a tagger's or stage's options.

    Raises:
        ConfigError: if an option is neither ``SET[.KEY[.field]]`` nor ``metadata.field``.
    """
    return [
        Reference(option, ".".join((name, *rest)), name, rest[0] if rest else mark.key, tuple(rest[1:]), mark.type)
        for option, mark, (name, *rest) in _named(tagger)
        if name not in ROOTS
    ]


def metadata_fields(tagger: msgspec.Struct) -> list[MetadataField]:
    """Return the document fields in a configured tagger's options.

    Raises:
        ConfigError: as `references`.
    """
    return [MetadataField(option, tuple(path), mark.type) for option, mark, path in _named(tagger) if path[0] in ROOTS]


def _named(tagger: msgspec.Struct) -> Iterator[tuple[str, _AttributeMark, list[str]]]:
    """Yield options with names of attributes or document fields.

    With each come its mark and the name's parts.

    Of an option with a list of names each is one: ``of[0]``, ``of[1]``.
    """
    marked = markers(type(tagger), "attribute")
    values = {option: getattr(tagger, option) for option in marked}
    listed = [
        (f"{option}[{i}]" if isinstance(texts, list) else option, marked[option], text)
        for option, texts in values.items()
        for i, text in enumerate(texts if isinstance(texts, list) else [texts])
    ]
    for option, mark, text in listed:
        if text is None or (mark.or_value and not is_reference(text)):
            continue
        parts = str(text).split(".")
        if not all(parts) or (len(parts) == 1 and parts[0] in ROOTS):
            wanted_form = " or ".join(("SET[.KEY[.field]]", *(f"{root}.field" for root in ROOTS)))
            raise ConfigError(f"{option}: expected {wanted_form}, got {text!r}")
        yield option, mark, parts


def model_options(tagger: msgspec.Struct) -> dict[str, str]:
    """Return the options for model files, with their values.

    The Struct is a tagger or another plugin.
    """
    values = {option: getattr(tagger, option) for option in markers(type(tagger), "model")}
    return {option: value for option, value in values.items() if value is not None}


def check_models(tagger: Tagger) -> None:
    """Check the model files and the tagger itself.

    Options are checked by the check of their type, such as `toolkit.FastText`.

    Raises:
        ConfigError: if one is not what it should be.
    """
    for option, check in markers(type(tagger), "check").items():
        if (model := getattr(tagger, option)) is not None:
            check(model)
    with errors_of(tagger):
        tagger.check()


def model_names(tagger: msgspec.Struct) -> dict[str, str]:
    """Return the names of its models, by sha256.

    See `model_name`.
    """
    return {models.digest(model): model_name(model) for model in model_options(tagger).values()}


def model_name(model: str) -> str:
    """Return the name of a model.

    It is the address on the web, or the last part of another path.
    """
    return store_of(model).name_of(model)


def _unchanged(tagger: msgspec.Struct, options: Iterable[str]) -> list[str]:
    """Return the options with default values."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(tagger)}
    return [option for option in options if getattr(tagger, option) == defaults[option]]


def settings(tagger: Any, reference: str, key: str, digest: Callable[[str], str] = models.digest) -> dict[str, Any]:
    """Return the settings behind a tagger's values, for records.

    Args:
        tagger: configured; or another plugin with a `VERSION`.
        reference: Reference to its class.
        key: Key that it writes.
        digest: Digest of a model, so that a moved file changes nothing.
    """
    options = msgspec.json.decode(msgspec.json.encode(tagger))  # as they are when they are read back: no tuples
    class_: type[msgspec.Struct] = type(tagger)
    unsaid = {*markers(class_, "neutral"), *_unchanged(tagger, markers(class_, "added"))}
    recorded = {option: value for option, value in options.items() if option not in unsaid}
    digests = {option: {"sha256": digest(model)} for option, model in model_options(tagger).items()}
    return {"tagger": reference, "as": key, "version": tagger.VERSION, "options": recorded | digests}
