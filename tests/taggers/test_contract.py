"""What every tagger keeps: examples that hold, checked options, values of the declared type, no text that breaks it."""

import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

import msgspec
import pytest

from toolkit import Document, Example, Prediction, Tagger, schema
from toolkit.config import convert, parse
from toolkit.errors import ConfigError
from toolkit.plugins import camel_case
from toolkit.tagger import TAGGERS, references, value_annotation, value_type

NAMES: list[str] = TAGGERS.names()

NASTY = {
    "spaces": " " * 1_000_000,
    "one long line": "word, " * 170_000,
    "one long word": "x" * 1_000_000,
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


def configured(name: str, options: Mapping[str, Any] | None = None) -> Tagger:
    """With plausible values for the options that must be given: attributes of a set that is called ``set-0``."""
    class_: type[Tagger] = TAGGERS.find(name)
    given = dict(options or {})
    for field in msgspec.structs.fields(class_):
        if field.required and field.encode_name not in given:
            given[field.encode_name] = "set-0"
    return convert(parse(msgspec.json.encode(given).decode()), class_, f"tagger {name}")


def plausible(type_: Any, document: Document, i: int = 0) -> Any:
    """A value of a type as another tagger may have given it; lists have an element a line."""
    options = [t for t in get_args(type_) if t is not type(None)]
    if type_ is Prediction:
        return Prediction(("en", "fr", "de")[i % 3], 0.9)
    if get_origin(type_) is list:
        return [plausible(options[0], document, j) for j, _ in enumerate(document.lines)]
    if type(None) in get_args(type_):
        return None if i % 4 == 3 else plausible(options[0], document, i)
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
    pytest.param(name, example, id=f"{name}-{i}")
    for name in NAMES
    for i, example in enumerate(TAGGERS.find(name).EXAMPLES)
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_hold_exactly(name: str, example: Example) -> None:
    tagger = configured(name, example.options)
    assert as_json(tagger.tag(of_example(tagger, example))) == as_json(example.value)
    assert as_json(list(tagger.tag_batch([of_example(tagger, example)]))) == [as_json(example.value)]


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
def test_a_configured_tagger_travels_without_its_model(name: str) -> None:
    tagger = configured(name)
    example = Document("The library opens at nine.\nΗ βιβλιοθήκη ανοίγει.")
    before = as_json(tagger.tag(with_attributes(tagger, example)))
    sent = pickle.dumps(tagger)
    assert len(sent) < 10_000, "after use too"
    assert as_json(pickle.loads(sent).tag(example)) == before
    assert pickle.loads(sent) == configured(name)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_same_again_and_in_any_batch(name: str) -> None:
    tagger = configured(name)
    texts = [example.text for example in tagger.EXAMPLES] + [text[:3000] for text in NASTY.values()]
    batches: list[Sequence[str]] = [texts, texts[::-1], texts * 3]
    found = [
        as_json(list(tagger.tag_batch([with_attributes(tagger, Document(t)) for t in batch]))) for batch in batches
    ]
    one_by_one = [as_json(tagger.tag(with_attributes(tagger, Document(text)))) for text in texts]
    assert found == [one_by_one, one_by_one[::-1], one_by_one * 3]
    assert list(tagger.tag_batch([])) == []


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("name", NAMES)
def test_no_text_breaks_a_tagger_and_values_are_of_the_declared_type(name: str, text: str) -> None:
    tagger = configured(name)
    document = with_attributes(tagger, Document(NASTY[text]))
    stored = msgspec.json.encode(tagger.tag(document))
    msgspec.json.decode(stored, type=value_annotation(type(tagger)))
    msgspec.json.decode(stored, type=schema.to_python(value_type(type(tagger))))
    assert document.text == NASTY[text]
