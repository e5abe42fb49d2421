"""The contract suite of stages."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from toolkit.data.documents import Document
from toolkit.make.stage import STAGES, Stage, item_of, made_of_each, result_of
from toolkit.tag import tagger_docs
from toolkit.tag.tagger import references
from toolkit.testing import plugin


def check_stage(
    stage: Stage | type[Stage], options: Mapping[str, Any] | None = None, *, new_process: bool = True
) -> None:
    """Check the contract of a stage.

    It says what it is and what it makes; what it makes is of the declared type, whatever the text, and depends on each
    document alone, not on those beside it or on the process; documents stay as they are.

    Args:
        stage: a configured one, or a class.
        options: Options of the class. Those without a default must be here, unless they name attributes.
        new_process: True to call it also in a process of its own, a second or two.

    Raises:
        AssertionError: with what is expected, what was got, and what to do.
    """
    class_ = stage if isinstance(stage, type) else type(stage)
    result = plugin.configured(stage, options, {read.option: "set-0" for read in tagger_docs.reads(class_)})
    plugin.check_configuration(result, STAGES)
    texts = [*plugin.SHORT.values(), *(text[: plugin.LONGEST] for text in plugin.NASTY.values())]
    name, alone = plugin.name_of(result), [_results_of(result, [text]) for text in texts]
    together = [item for results in alone for item in results]
    backwards = [item for results in alone[::-1] for item in results]
    plugin.expect(
        _results_of(result, texts) == together and _results_of(result, texts[::-1]) == backwards,
        f"{name}: expected the same of documents alone and together, in any order; keep nothing of other documents",
    )
    plugin.expect(_results_of(result, []) == [], f"{name}: expected nothing of no documents, got something")
    if result.needs_all():
        _check_whole(result, together)
    plugin.check_travels(result)
    if new_process:
        elsewhere = plugin.in_new_process(made_of, plugin.reference_of(class_), plugin.options_of(result), texts)
        plugin.expect(
            elsewhere == together, f"{name}: expected the same in another process; use neither hash() nor the time"
        )


def made_of(reference: str, options: Mapping[str, Any], texts: Sequence[str]) -> list[bytes]:
    """Return a stage's results for texts, by its name and options."""
    return _results_of(plugin.remade(STAGES, reference, options), texts)


def _results_of(stage: Stage, texts: Sequence[str]) -> list[bytes]:
    """Return a stage's results for texts, as stored and checked."""
    name, documents = plugin.name_of(stage), [Document(text, id=f"{len(text)}", source="source") for text in texts]
    for document in documents:
        for reference in references(stage):
            document.give(reference.text, plugin.plausible(reference.type, document))
    type_ = made_of_each(type(stage))
    plugin.expect(
        type_ is not None, f"{name}: expected `make` with a declared result, such as `-> Sequence[int]`, got none"
    )
    type_ = item_of(stage.extract) if stage.needs_all() else type_
    try:
        results = list(stage.extract(documents) if stage.needs_all() else stage.make(documents))
    except Exception as error:
        message = f"{name}: expected a result for every text, got {type(error).__name__}: {error}"
        raise AssertionError(message) from error
    plugin.expect(
        all(document.text == text for document, text in zip(documents, texts, strict=True)),
        f"{name}: expected documents that stay as they are, got another text; copy what you change",
    )
    if type_ is Document:
        expectation = f"{name}: expected documents with id, source and text"
        for item in results:
            plugin.expect(isinstance(item, Document) and item.id and item.source, f"{expectation}, got {item!r}")
        return [msgspec.json.encode((item.id, item.source, item.text, item.metadata)) for item in results]
    return _stored(name, "extract" if stage.needs_all() else "make", results, type_, len(texts))


def _check_whole(stage: Stage, extracted: Sequence[bytes]) -> None:
    """Check the combination of extracted values.

    Values must be the same in other portions.
    """
    name, type_ = plugin.name_of(stage), made_of_each(type(stage))
    values = [msgspec.json.decode(item, type=item_of(stage.extract)) for item in extracted]
    (stored,) = _stored(name, "combine", [stage.combine(iter(values))], result_of(stage.combine), 1)
    whole = msgspec.json.decode(stored, type=result_of(stage.combine))
    together = _stored(name, "finish", list(stage.finish(values, whole)), type_, len(values))
    alone = [*chain.from_iterable(_stored(name, "finish", list(stage.finish([v], whole)), type_, 1) for v in values)]
    plugin.expect(
        alone == together, f"{name}: expected the same of `finish` in other portions; keep nothing of other values"
    )


def _stored(name: str, function: str, items: Sequence[Any], type_: Any, count: int) -> list[bytes]:
    """Return values as they are stored; check them."""
    plugin.expect(len(items) == count, f"{name}: expected a value for each of {count} documents, got {len(items)}")
    stored = [msgspec.json.encode(item) for item in items]
    try:
        for value in stored:
            msgspec.json.decode(value, type=type_)
    except msgspec.ValidationError as error:
        raise AssertionError(f"{name}: expected values of the type that `{function}` declares, got: {error}") from None
    return stored
