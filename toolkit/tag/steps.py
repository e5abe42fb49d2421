"""The taggers of a plan, run over a batch of documents one after the other; what later ones read is given to them."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from toolkit.data.documents import Document
from toolkit.data.metadata_fields import MetadataField
from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.tag.plan import Step
from toolkit.tag.tagger import Reference
from toolkit.tag.without import Shorter
from toolkit.text.batch import Batch, Column

CHECKED_ROWS = 64  # rows of a shard whose values are checked against the declared type

Numbered = tuple[Document, int]
"""A document, and its number in its file."""

_ENCODER = msgspec.json.Encoder()


def run_steps(
    batch: Batch, numbered: Sequence[Numbered], steps: Sequence[Step], path: str
) -> Iterator[tuple[Step, Sequence[Any]]]:
    """Yield the values of each tagger in turn; what later ones read is given to the documents.

    Args:
        batch: of the documents.
        numbered: the same with the number of each in its file; values of the first rows are checked.
        steps: each after those that it reads.
        path: of the file, for messages.
    """
    values: dict[tuple[str, str], Sequence[Any]] = {}
    shorter: dict[str, Shorter] = {}
    for step in steps:
        for reference in step.references:
            if (produced := values.get((reference.set, reference.key))) is not None:
                annotation = next(s.annotation for s in steps if (s.set, s.key) == (reference.set, reference.key))
                batch.give(reference.text, _delivered(produced, annotation, reference))
        for field in step.fields:
            batch.give(field.text, _of_metadata(field, step, numbered, path))
        if step.without is None:
            found = _run(step, batch, numbered, path)
        else:
            text = step.without.text
            seen = shorter[text] = shorter.get(text) or Shorter(numbered, step.without, path)
            found = seen.in_whole(_run(step, seen.batch, seen.numbered, path), step.type, step.annotation, step.key)
        values[step.set, step.key] = found
        yield step, found


def encodable(values: Sequence[Any]) -> Sequence[Any]:
    """Return values as they are encoded to JSON: those of a `Column` as the texts that it gives."""
    return values.raw() if isinstance(values, Column) else values


def _run(step: Step, batch: Batch, numbered: Sequence[Numbered], path: str) -> Sequence[Any]:
    try:
        values = step.tagger.tag_batch(batch)
    except (ConfigError, Unreadable):
        raise
    except Exception as error:
        raise _blame(step, numbered, path, error) from error
    if len(values) != len(batch):
        raise DataError(f"tagger {step.key}: expected {len(batch)} values of tag_batch, got {len(values)}", path=path)
    if numbered[0][1] <= CHECKED_ROWS:
        for value, (document, number) in zip(encodable(values), numbered, strict=True):
            try:
                msgspec.json.decode(_ENCODER.encode(value), type=step.annotation)
            except (msgspec.MsgspecError, TypeError, ValueError) as error:
                raise DataError(
                    f"tagger {step.key}: expected a value of its declared type {step.type}, got {value!r}: {error}",
                    path=path,
                    line=number,
                    id=document.id,
                ) from None
    return values


def _blame(step: Step, batch: Sequence[Numbered], path: str, error: Exception) -> DataError:
    for document, number in batch:
        try:
            step.tagger.tag_batch([document])
        except Exception as own:
            message = f"tagger {step.key} failed: {type(own).__name__}: {own}"
            return DataError(message, path=path, line=number, id=document.id)
    message = f"tagger {step.key} failed on a batch of {len(batch)} documents: {type(error).__name__}: {error}"
    return DataError(message, path=path, line=batch[0][1])


def _of_metadata(field: MetadataField, step: Step, numbered: Sequence[Numbered], path: str) -> list[Any]:
    """Return the values of a field of the documents' metadata."""
    values = []
    for document, number in numbered:
        try:
            values.append(field.of(document))
        except DataError as error:
            message = f"tagger {step.key}: {error.message}"
            raise DataError(message, path=path, line=number, id=document.id) from None
    return values


def _delivered(values: Sequence[Any], annotation: Any, reference: Reference) -> Sequence[Any]:
    """Values made in this pass, as the tagger that reads them would find them in the file."""
    if not reference.path and annotation == reference.type:
        return values
    found = []
    for value in values:
        plain = msgspec.json.decode(_ENCODER.encode(value))
        for name in reference.path:
            plain = None if plain is None else plain[name]
        found.append(msgspec.convert(plain, reference.type))
    return found
