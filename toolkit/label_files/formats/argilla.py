"""Records of Argilla 2: those that `dataset.records.from_json` takes, and that `dataset.records.to_json` writes.

Source: argilla 2.8, ``records/_resource.py`` (`Record.to_dict`, `Record.from_dict`).

    [{"id": …, "fields": {"text": …}, "metadata": {"source": …}, "suggestions": {},
        "responses": {"quality": [{"value": "good", "user_id": …}]}}]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.ingest.reader import Input
from toolkit.label_files.reader import HumanAnswer, PeopleReader, Suggestion, answer_of, names_of

_SUBMITTED = ("submitted", None)


class _OfQuestion(msgspec.Struct):
    value: Any
    user_id: str | None = None
    status: str | None = None


class _ArgillaRecord(msgspec.Struct):
    responses: dict[str, list[_OfQuestion]] | None


def record_of(document: Document, suggestion: Suggestion | None) -> dict[str, Any]:
    """Return a document as a record for people; Argilla has one record with each id, so a shard is part of it."""
    names, id_ = names_of(document), document.id
    if document.place:
        id_, names = f"{document.place}:{document.id}", names | {"document_id": document.id}
    suggested = {suggestion.question: {"value": suggestion.value, "agent": suggestion.model}} if suggestion else {}
    return {
        "id": id_,
        "fields": {"text": document.text},
        "metadata": names,
        "suggestions": suggested,
        "responses": {},
        "vectors": {},
        "status": "pending",
    }


class Argilla(PeopleReader):
    """Records of Argilla 2, as a list or a line each: labels, ratings and texts, a key a question.

    The id of the document is `id`; where ids repeat, its shard is `metadata.shard`. An answer that is a text is a
    label; of a question among `texts`, a text. Responses that were discarded, or are drafts, are left out where the
    file says so, and so are answers of other kinds (rankings with ties, spans); both are counted.
    """

    SUFFIXES = (".json", ".jsonl")
    SHARD = "metadata.shard"

    def ids(self) -> Sequence[str]:
        """Return the places of the id: for repeated ids, then otherwise."""
        return ("metadata.document_id", "id")

    def answers(self, item: Mapping[str, Any], source: Input) -> list[HumanAnswer]:
        """Return the answers of a record."""
        if "responses" not in item:
            raise DataError("expected a record with `responses`, got none; export with `dataset.records.to_json(PATH)`")
        if isinstance(item["responses"], list):
            raise DataError(
                "expected `responses` by question, as Argilla 2 has them, got those of Argilla 1; move the dataset to "
                "Argilla 2, and export with `dataset.records.to_json(PATH)`"
            )
        responses = msgspec.convert(item, _ArgillaRecord).responses or {}
        listed = [(name, item) for name, several in responses.items() for item in several]
        results = []
        for name, of in listed:
            if of.status not in _SUBMITTED:
                source.counts[f"answers that are {of.status}"] += 1
            elif (answer := answer_of(name, of.user_id or "", of.value)) is not None:
                results.append(answer)
            else:
                source.counts["left out: neither number nor labels"] += 1
        return results
