"""The contract suite of taggers."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import eq
from typing import Any

import msgspec

from toolkit.config.settings import convert, parse
from toolkit.data import schema
from toolkit.data.documents import Document, spans_in, split_lines
from toolkit.errors import MissingExtra
from toolkit.tag import tagger_docs
from toolkit.tag.tagger import TAGGERS, Example, Tagger, references, value_annotation, value_type
from toolkit.testing import plugin
from toolkit.text.batch import Batch
from toolkit.text.encoders.tokens import Batches


def check_tagger(
    tagger: Tagger | type[Tagger], options: Mapping[str, Any] | None = None, *, new_process: bool = True
) -> None:
    """Check the contract of a tagger.

    It says what it is and what its values are; its examples are true; values are of the declared type, whatever the
    text; they depend on the document alone, not on those before it, on the batch or on the process; documents stay as
    they are.

    Args:
        tagger: a configured one, or a class.
        options: Options of the class. Those without a default must be here, or in an example, unless they name
            attributes.
        new_process: True to tag some documents also in a process of their own, a second or two.

    Raises:
        AssertionError: with what is expected, what was got, and what to do.
        MissingExtra: if a package that it needs is not installed.
    """
    result = configured_tagger(tagger, options)
    plugin.check_configuration(result, TAGGERS)
    check_descriptions(result)
    check_examples(result)
    check_values(result)
    check_independence(result)
    if new_process:
        check_in_new_process(result)


def configured_tagger(tagger: Tagger | type[Tagger], options: Mapping[str, Any] | None = None) -> Tagger:
    """Return a tagger with its options; those that name attributes are of a set that is called ``set-0``."""
    class_ = tagger if isinstance(tagger, type) else type(tagger)
    values = {name: value for example in reversed(class_.EXAMPLES) for name, value in example.options.items()}
    return plugin.configured(tagger, options, values | {read.option: "set-0" for read in tagger_docs.reads(class_)})


def check_descriptions(tagger: Tagger) -> None:
    """Check the descriptions of the value and all its fields.

    Each is one sentence.
    """
    for place, type_ in schema.walk(value_type(type(tagger))):
        if place and place.endswith(("[]", "{}")):
            continue  # what a list or map holds is said of the list or map
        about = type_.description
        plugin.expect(
            re.fullmatch(r"[A-Z0-9`].{5,}[^.]\.", about) and not re.search(r"TODO|\n|\. [A-Z]", about),
            f"{plugin.name_of(tagger)}: expected a sentence with a full stop that says what {place or 'the value'} is, "
            f"got {about!r}; write it as the first line of the class's docstring, or of a field under `Attributes:`",
        )


def check_examples(tagger: Tagger) -> None:
    """Check the examples with `tag` and `tag_batch`."""
    for example in type(tagger).EXAMPLES:
        required = {f.encode_name for f in msgspec.structs.fields(type(tagger)) if f.required}
        options = {name: value for name, value in plugin.options_of(tagger).items() if name in required}
        node = parse(msgspec.json.encode(options | dict(example.options)).decode())
        result = convert(node, type(tagger), plugin.name_of(tagger))
        for call in (result.tag, lambda document, result=result: result.tag_batch([document])[0]):
            json = plugin.as_json(_computed(result, call, _of_example(result, example)))
            plugin.expect(
                _sameness(result)(json, plugin.as_json(example.value)),
                f"{plugin.name_of(tagger)}: expected the value {example.value!r} as the example of {example.text!r} "
                f"says, got {json!r}; correct the example or the tagger",
            )


def check_values(tagger: Tagger, texts: Mapping[str, str] = plugin.NASTY) -> None:
    """Check the type of values for unusual texts.

    Documents must stay as they are.
    """
    class_ = type(tagger)
    for about, text in texts.items():
        document = document_of(tagger, text)
        value = _computed(tagger, lambda document: tagger.tag_batch([document])[0], document)
        stored = msgspec.json.encode(value)
        try:
            typed = msgspec.json.decode(stored, type=value_annotation(class_))
            msgspec.json.decode(stored, type=schema.to_python(value_type(class_)))
        except msgspec.ValidationError as error:
            raise AssertionError(
                f"{plugin.name_of(tagger)}: expected a value of the type that `tag` declares, {value_type(class_)}, "
                f"got {stored[:100].decode(errors='replace')} ({error}) for a text of {about}"
            ) from None
        for span in spans_in(typed):
            plugin.expect(
                0 <= span.start <= span.end <= len(text),
                f"{plugin.name_of(tagger)}: expected spans of code points of the text, from 0 to {len(text)}, got "
                f"{span.start} to {span.end} for a text of {about}",
            )
        for field in class_.PER_LINE:
            result = len(plugin.as_json(value)[field])
            plugin.expect(
                result == len(document.lines),
                f"{plugin.name_of(tagger)}: expected an element of {field} for each of {len(document.lines)} lines, "
                f"got {result} for a text of {about}; lines are those of document.lines",
            )
        plugin.expect(
            (document.text, document.id, document.source, dict(document.metadata)) == (text, "id", "source", {})
            and document.lines == split_lines(text),
            f"{plugin.name_of(tagger)}: expected a document that stays as it is, got another text, id, source, "
            "metadata or lines; other taggers see the same document, so copy what you change",
        )


def check_independence(tagger: Tagger) -> None:
    """Compare values of documents alone, in batches and in other orders.

    They must depend on the document alone.

    Order and batch do not matter; and the tagger can still be sent.

    One that keeps what it has seen, or whose `tag_batch` differs from `tag`, gives other values for one process than
    for two. Numbers of one that computes `Batches` may differ by rounding with the batch, which rows alone decide.
    """
    name, is_near = plugin.name_of(tagger), _sameness(tagger) is _near
    texts = [
        *(example.text for example in tagger.EXAMPLES),
        *plugin.SHORT.values(),
        *(text[: plugin.LONGEST] for text in plugin.NASTY.values()),
    ]

    def fresh(order: Sequence[int]) -> list[Document]:
        return [document_of(tagger, texts[i], str(i)) for i in order]

    places = list(range(len(texts)))
    alone = [plugin.as_json(_computed(tagger, tagger.tag, document)) for document in fresh(places)]
    for order in (places[::-1], places):
        again = [plugin.as_json(tagger.tag(document)) for document in fresh(order)]
        message = f"{name}: expected the same values again, in any order; keep nothing of other documents"
        _expect_same(again, [alone[i] for i in order], [texts[i] for i in order], message)
    for order in (places, places[::-1], places * 3):
        for batch in (fresh(order), Batch(fresh(order))):
            _check_batch(tagger, batch, [alone[i] for i in order], is_near=is_near)
    plugin.expect(not list(tagger.tag_batch([])), f"{name}: expected no values of tag_batch for no documents, got some")
    plugin.check_travels(tagger)


def _check_batch(tagger: Tagger, batch: Sequence[Document], expectations: list[Any], *, is_near: bool) -> None:
    json = plugin.as_json(list(tagger.tag_batch(batch)))
    name, texts = plugin.name_of(tagger), [document.text for document in batch]
    plugin.expect(len(json) == len(batch), f"{name}: expected {len(batch)} values of tag_batch, got {len(json)}")
    message = f"{name}: expected the same values of tag_batch as of tag, in order"
    _expect_same(json, expectations, texts, message, _near if is_near else eq)
    if is_near:
        again = plugin.as_json(list(tagger.tag_batch(batch)))
        _expect_same(again, json, texts, f"{name}: expected the same values of the same documents again")


def _sameness(tagger: Tagger) -> Callable[[Any, Any], bool]:
    """Return how values are compared: numbers of one that computes `Batches` differ by rounding on other machines."""
    return _near if any(isinstance(value, Batches) for value in msgspec.structs.astuple(tagger)) else eq


def _near(one: Any, other: Any) -> bool:
    """Return True if JSON values are equal but for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_near, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=2e-3, abs_tol=2e-4)
    return bool(one == other)


def _expect_same(
    results: list[Any],
    expectations: list[Any],
    texts: Sequence[str],
    message: str,
    is_same: Callable[[Any, Any], bool] = eq,
) -> None:
    for got, expected, text in zip(results, expectations, texts, strict=True):
        plugin.expect(is_same(got, expected), f"{message}; for the text {text[:40]!r} got {got!r} and {expected!r}")


def check_in_new_process(*taggers: Tagger) -> None:
    """Compare values with those in another process.

    They depend neither on hashes nor on the time.
    """
    texts = [text[: plugin.LONGEST] for text in plugin.NASTY.values()]
    here = [_values_of(tagger, texts) for tagger in taggers]
    elsewhere = plugin.in_new_process(
        values_of, [(plugin.reference_of(type(tagger)), plugin.options_of(tagger)) for tagger in taggers], texts
    )
    for tagger, results, expectations in zip(taggers, elsewhere, here, strict=True):
        message = (
            f"{plugin.name_of(tagger)}: expected the same values in another process; sort what comes out of a set, "
            "take no hash() of a text, and draw at random from a generator that is seeded with the document's id"
        )
        _expect_same(results, expectations, texts, message)


def values_of(taggers: Sequence[tuple[str, Mapping[str, Any]]], texts: Sequence[str]) -> list[list[Any]]:
    """Return values of texts by several taggers.

    Taggers come as names and options.
    """
    return [_values_of(plugin.remade(TAGGERS, reference, options), texts) for reference, options in taggers]


def _values_of(tagger: Tagger, texts: Sequence[str]) -> list[Any]:
    return [plugin.as_json(tagger.tag(document_of(tagger, text))) for text in texts]


def document_of(tagger: Tagger, text: str, id: str = "id") -> Document:
    """Return a document with the attributes for a tagger."""
    document = Document(text, id=id, source="source")
    for reference in references(tagger):
        value = plugin.plausible(reference.type, document)
        attribute = next(
            (e.attributes[reference.option] for e in tagger.EXAMPLES if reference.option in e.attributes), None
        )
        if reference.type == list[float] and attribute:  # a vector, whose length the model knows
            value = [(i + len(text)) % 8 / 8 for i, _ in enumerate(attribute)]
        document.give(reference.text, value)
    return document


def _of_example(tagger: Tagger, example: Example) -> Document:
    document = Document(example.text, id="id", source="source", metadata=example.metadata)
    for reference in references(tagger):
        document.give(reference.text, msgspec.convert(example.attributes[reference.option], reference.type))
    return document


def _computed(tagger: Tagger, call: Callable[[Document], Any], document: Document) -> Any:
    try:
        return call(document)
    except MissingExtra:
        raise
    except Exception as error:
        raise AssertionError(
            f"{plugin.name_of(tagger)}: expected a value for every text, got {type(error).__name__}: {error} for "
            f"{document.text[:40]!r}"
        ) from error
