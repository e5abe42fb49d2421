"""What every tagger keeps: examples that hold, checked options, values of the declared type, no text that breaks it.

Options that must be given, and name no attribute, are those of the first example that has them. Files that examples
name are in ``tests/taggers/files``, from the folder of the project. A tagger whose extra is not installed is skipped.
"""

import gc
import pickle
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

import msgspec
import pytest

from tests.conftest import ROOT
from toolkit import Batch, Document, Example, MissingExtra, Prediction, Span, Tagger
from toolkit.config.settings import convert, parse
from toolkit.data import schema
from toolkit.errors import ConfigError
from toolkit.plugins import camel_case
from toolkit.tag import describe
from toolkit.tag.tagger import TAGGERS, references, value_annotation, value_type

NAMES: list[str] = TAGGERS.names()

NASTY = {
    "spaces": " " * 100_000,
    "one long line": "word, " * 17_000,
    "one long word": "x" * 100_000,
    "only newlines": "\n" * 20_000,
    "only carriage returns": "\r" * 1000,
    "windows": "one\r\ntwo\r\n\r\nthree\r\r\n",
    "nuls": "a\0b\n\0\n\0\0c",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff",
    "emoji": "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea\n" * 50,
    "combining": "a" + "\u0301" * 5000 + "\ne\u0308\n\u0301",
    "right to left": "\u202eمرحبا بالعالم\u202c\nשלום עולם\n",
    "noncharacters": "\ufffe\uffff\U0010ffff\n\ue000",
    "no line end": "last line",
    "markup": "<p>" * 1000 + "\\u0000 %s {} $&\n[[",
}


HOSTILE = {
    "words": "word, ",
    "spaces": " ",
    "one letter": "x",
    "lines of a letter": "a\n",
    "line ends": "\n",
    "numbers": "1.",
    "numbers apart": "12 345-",
    "at signs": "@",
    "addresses": "a.b@",
    "colons": "1:",
    "brackets": "({[<",
    "punctuation": "!?.,;'\"-…",
    "ideographs": "汉字仮名",
    "marks": "\u0301",
}
"""What long texts are made of that something could look at again and again."""


@pytest.fixture(autouse=True)
def in_the_folder_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def class_of(name: str) -> type[Tagger]:
    found: type[Tagger] = TAGGERS.find(name)
    return found


def examples_of(name: str) -> Sequence[Example]:
    """None of a tagger that cannot be imported: its tests fail, not those of all others."""
    try:
        return class_of(name).EXAMPLES
    except ConfigError:
        return ()


def variants_of(name: str) -> list[dict[str, str]]:
    """The options with which a tagger measures in other ways than it does by itself."""
    try:
        class_ = class_of(name)
    except ConfigError:
        return []
    default = {field.encode_name: field.default for field in msgspec.structs.fields(class_)}.get("variant")
    return [{"variant": variant} for variant in describe.variants(class_) if variant != default]


def configured(name: str, options: Mapping[str, Any] | None = None) -> Tagger:
    """With plausible values for the options that must be given: attributes of a set that is called ``set-0``."""
    class_ = class_of(name)
    given = dict(options or {})
    attributes = {read.option for read in describe.reads(class_)}
    for field in msgspec.structs.fields(class_):
        option = field.encode_name
        if field.required and option not in given:
            examples = (e.options[option] for e in class_.EXAMPLES if option in e.options)
            value = "set-0" if option in attributes else next(examples, None)
            assert value is not None, f"an example must give the option {option}, which has no default"
            given[option] = value
    return convert(parse(msgspec.json.encode(given).decode()), class_, f"tagger {name}")


def tag(tagger: Tagger, documents: Sequence[Document]) -> list[Any]:
    """The values; skips the test where the tagger needs an extra that is not installed."""
    try:
        return list(tagger.tag_batch(documents))
    except MissingExtra as error:
        pytest.skip(str(error))


def plausible(type_: Any, document: Document, i: int = 0) -> Any:
    """A value of a type as another tagger may have given it; lists have an element a line."""
    options = [t for t in get_args(type_) if t is not type(None)]
    if type_ is Prediction:
        return Prediction(("en", "fr", "de")[i % 3], 0.9)
    if type_ is Span:
        return Span(*(document.line_spans[i] if document.lines else (0, 0)))
    if get_origin(type_) is list:
        return [plausible(options[0], document, j) for j, _ in enumerate(document.lines)]
    if type(None) in get_args(type_):
        return None if i % 4 == 3 else plausible(options[0], document, i)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        fields = msgspec.structs.fields(type_)
        return type_(**{field.name: plausible(field.type, document, i) for field in fields if field.required})
    simple = {bool: bool(i % 2), int: i, float: i / 8, str: f"value {i}"}
    return simple[type_] if type_ in simple else msgspec.convert({}, type_)


def with_attributes(tagger: Tagger, document: Document, given: Mapping[str, Any] | None = None) -> Document:
    for reference in references(tagger):
        if given is None:
            document.give(reference.text, plausible(reference.type, document))
        else:
            document.give(reference.text, msgspec.convert(given[reference.option], reference.type))
    return document


def of_example(tagger: Tagger, example: Example) -> Document:
    document = Document(example.text, id="id", source="source", metadata=example.metadata)
    return with_attributes(tagger, document, example.attributes)


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


EXAMPLES = [
    pytest.param(name, example, id=f"{name}-{i}") for name in NAMES for i, example in enumerate(examples_of(name))
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_hold_exactly(name: str, example: Example) -> None:
    tagger = configured(name, example.options)
    assert as_json(tag(tagger, [of_example(tagger, example)])) == [as_json(example.value)]
    assert as_json(tagger.tag(of_example(tagger, example))) == as_json(example.value)


@pytest.mark.parametrize("name", NAMES)
def test_examples_show_an_empty_an_ordinary_and_a_non_ascii_text(name: str) -> None:
    texts = [example.text for example in TAGGERS.find(name).EXAMPLES]
    assert "" in texts
    assert any(text and text.isascii() for text in texts)
    assert any(not text.isascii() for text in texts)


@pytest.mark.parametrize("name", NAMES)
def test_a_tagger_says_what_it_is(name: str) -> None:
    class_ = TAGGERS.find(name)
    assert class_.__name__ == camel_case(name)
    assert class_.__doc__
    assert class_.__module__ == f"taggers.{name}"
    assert "Source:" in (sys.modules[class_.__module__].__doc__ or ""), "the source comes first"


@pytest.mark.parametrize("name", NAMES)
def test_unknown_options_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option 'no_such_option' of tagger {name}"):
        configured(name, {"no_such_option": 1})


@pytest.mark.parametrize("name", NAMES)
def test_options_have_descriptions_and_cannot_be_changed(name: str) -> None:
    tagger = configured(name)
    properties = msgspec.json.schema(type(tagger))["$defs"][type(tagger).__name__]["properties"]
    assert [option for option, about in properties.items() if not about.get("description")] == []
    for field in msgspec.structs.fields(tagger):
        with pytest.raises(AttributeError):
            setattr(tagger, field.name, None)


@pytest.mark.parametrize("name", NAMES)
def test_each_value_has_a_description_of_one_sentence(name: str) -> None:
    """The value as a whole, and each field of each object in it."""
    for place, type_ in schema.walk(value_type(class_of(name))):
        about = type_.description
        if place and place.endswith(("[]", "{}")):
            continue  # what a list or map holds is said of the list or map
        assert re.fullmatch(r"[A-Z0-9`].{5,}[^.]\.", about), f"{place}: expected a sentence, got {about!r}"
        assert not re.search(r"TODO|\n|\. [A-Z]", about), f"{place}: expected one sentence, got {about!r}"


@pytest.mark.parametrize("name", NAMES)
def test_a_configured_tagger_travels_without_its_model(name: str) -> None:
    tagger = configured(name)
    example = Document("The library opens at nine.\nΗ βιβλιοθήκη ανοίγει.", id="id", source="source")
    before = as_json(tag(tagger, [with_attributes(tagger, example)])[0])
    sent = pickle.dumps(tagger)
    assert len(sent) < 10_000, "after use too"
    assert as_json(pickle.loads(sent).tag(example)) == before
    assert pickle.loads(sent) == configured(name)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_same_again_and_in_any_batch(name: str) -> None:
    tagger = configured(name)
    texts = [example.text for example in tagger.EXAMPLES] + [text[:3000] for text in NASTY.values()]
    documents = [Document(text, id=str(i), source="source") for i, text in enumerate(texts)]
    batches: list[Sequence[Document]] = [documents, documents[::-1], documents * 3]

    def fresh(document: Document) -> Document:
        return with_attributes(tagger, Document(document.text, id=document.id, source=document.source))

    found = [as_json(tag(tagger, [fresh(document) for document in batch])) for batch in batches]
    one_by_one = [as_json(tagger.tag(fresh(document))) for document in documents]
    assert found == [one_by_one, one_by_one[::-1], one_by_one * 3]
    assert as_json(tag(tagger, Batch([fresh(document) for document in documents]))) == one_by_one
    assert list(tagger.tag_batch([])) == []


def check_value(tagger: Tagger, text: str) -> None:
    """It is of the declared type, and the text stays as it is."""
    document = with_attributes(tagger, Document(text, id="id", source="source"))
    stored = msgspec.json.encode(tag(tagger, [document])[0])
    msgspec.json.decode(stored, type=value_annotation(type(tagger)))
    msgspec.json.decode(stored, type=schema.to_python(value_type(type(tagger))))
    assert document.text == text


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("name", NAMES)
def test_no_text_breaks_a_tagger_and_values_are_of_the_declared_type(name: str, text: str) -> None:
    check_value(configured(name), NASTY[text])


VARIANTS = [
    pytest.param(name, options, id=f"{name}-{'-'.join(options.values())}")
    for name in NAMES
    for options in variants_of(name)
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_no_text_breaks_a_variant(name: str, options: dict[str, str]) -> None:
    tagger = configured(name, options)
    for text in (*(example.text for example in tagger.EXAMPLES), *(text[:2000] for text in NASTY.values())):
        check_value(tagger, text)


# --- time -------------------------------------------------------------------------------------------------------------

SHORTEST, TIMES = 2_000, 4
MOST = 10
"""Times the seconds that so many times the text may take; in quadratic time it takes 16 times as many."""
ENOUGH = 0.15
"""Seconds that are so many that longer texts tell nothing new."""
SLOWEST = 20e-6
"""Seconds a character that no tagger takes, whatever the machine does meanwhile."""


def seconds_for(tagger: Tagger, piece: str, size: int) -> float:
    """Of the processor, for a text of so many bytes."""
    text = piece * (size // len(piece.encode()))
    document = with_attributes(tagger, Document(text, id="id", source="source"))
    gc.disable()  # how long it looks for garbage depends on all the tests before
    try:
        begin = time.process_time()
        msgspec.json.encode(tag(tagger, [document])[0])
        return time.process_time() - begin
    finally:
        gc.enable()


def check_time(tagger: Tagger, piece: str, longest: int) -> None:
    """Four times the text takes four times as long: not sixteen times, and not much more than four.

    Texts grow until one takes long enough to tell, so that a test of what hangs ends, too.
    """
    seconds_for(tagger, piece, 100)  # models are read, code is compiled
    size, before = SHORTEST, seconds_for(tagger, piece, SHORTEST)
    while before < ENOUGH and size * TIMES <= longest:
        size *= TIMES
        now = seconds_for(tagger, piece, size)
        if now > MOST * before + 0.03:  # the machine had something else to do, or
            before = max(before, *(seconds_for(tagger, piece, size // TIMES) for _ in range(2)))
            now = min(now, *(seconds_for(tagger, piece, size) for _ in range(2)))
        assert now <= MOST * before + 0.03, f"{size:,} bytes take {now:.3f} s, a quarter of them {before:.3f} s"
        assert now <= SLOWEST * size + 0.5
        before = now


class Quadratic(Tagger):
    """Looks at all of the text again for every 500 characters."""

    def tag(self, document: Document) -> int:
        return sum(document.text.count("y") for _ in range(len(document.text) // 500))


LONG_LINE = "Eine Zeile, one line, 一行; "


def test_what_is_quadratic_is_found() -> None:
    """Not each time: a machine that is busy is given the benefit of the doubt."""

    def is_found() -> bool:
        try:
            check_time(Quadratic(), "x", 600_000)
        except AssertionError as error:
            return "a quarter of them" in str(error)
        return False

    assert any(is_found() for _ in range(8))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_time_grows_with_the_length_of_the_text(name: str) -> None:
    tagger = configured(name)
    for piece in HOSTILE.values():
        check_time(tagger, piece, 600_000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_time_of_variants_grows_with_the_length_of_the_text(name: str, options: dict[str, str]) -> None:
    tagger = configured(name, options)
    for piece in HOSTILE.values():
        check_time(tagger, piece, 150_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_line_of_ten_megabytes_is_no_trouble(name: str) -> None:
    """One of a megabyte for those that take more than a microsecond a character."""
    tagger = configured(name)
    seconds_for(tagger, LONG_LINE, 100)
    size = 10_000_000 if seconds_for(tagger, LONG_LINE, 100_000) < 0.1 else 1_000_000
    assert seconds_for(tagger, LONG_LINE, size) < SLOWEST * size
