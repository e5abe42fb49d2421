"""Annotated records of Argilla: of version 2, `dataset.records.to_json`; of version 1, its `FeedbackRecord` as JSON.

Source: argilla 2.8, ``records/_resource.py`` (`Record.to_dict`); argilla 1.29, ``client/feedback/schemas/records.py``.

    [{"id": …, "fields": {"text": …}, "metadata": {"source": …}, "suggestions": {},
        "responses": {"quality": [{"value": "good", "user_id": …}]}}]
    {"external_id": …, "fields": {"text": …}, "metadata": {"source": …}, "suggestions": [],
        "responses": [{"user_id": …, "status": "submitted", "values": {"quality": {"value": "good"}}}]}
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolkit.annotations.people import Answer, PeopleReader, answer_of
from toolkit.errors import DataError
from toolkit.ingest.reader import Input

_SUBMITTED = ("submitted", None)


class _Value(msgspec.Struct):
    value: Any


class _OfQuestion(msgspec.Struct):
    value: Any
    user_id: str | None = None
    status: str | None = None


class _OfUser(msgspec.Struct):
    values: dict[str, _Value] | None = None
    user_id: str | None = None
    status: str | None = None


class _Record(msgspec.Struct):
    responses: dict[str, list[_OfQuestion]] | list[_OfUser] | None


class Argilla(PeopleReader):
    """Records of Argilla, version 1 or 2, as a list or a line each: labels, ratings and texts, a key a question.

    The id of the document is `id` (version 2), or `external_id`; where ids repeat, its shard is `metadata.shard`. An
    answer that is a text is a label; of a question among `texts`, a text. Responses that were discarded, or are drafts,
    are left out where the file says so, and so are answers of other kinds (rankings with ties, spans); both are
    counted.
    """

    SUFFIXES = (".json", ".jsonl")
    SHARD = "metadata.shard"

    def ids(self) -> Sequence[str]:
        """Return where it is if ids repeat, and where versions 1 and 2 have it."""
        return ("metadata.document_id", "external_id", "id")

    def answers(self, item: Mapping[str, Any], source: Input) -> list[Answer]:
        """Return the answers of a record."""
        if "responses" not in item:
            raise DataError("expected a record with `responses`, got none; export with `dataset.records.to_json(PATH)`")
        responses = msgspec.convert(item, _Record).responses or []
        given: list[tuple[str, Any, _OfQuestion | _OfUser]]
        if isinstance(responses, dict):
            given = [(name, each.value, each) for name, several in responses.items() for each in several]
        else:
            given = [(name, each.value, of) for of in responses for name, each in (of.values or {}).items()]
        found = []
        for name, value, of in given:
            if of.status not in _SUBMITTED:
                source.counts[f"answers that are {of.status}"] += 1
            elif (answer := answer_of(name, of.user_id or "", value)) is not None:
                found.append(answer)
            else:
                source.counts["left out: neither number nor labels"] += 1
        return found
