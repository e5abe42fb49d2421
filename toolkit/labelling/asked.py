"""What is asked of each document that is written: the value of a set, and whether it is among them."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Document
from toolkit.errors import DataError
from toolkit.evaluating.rows import WHERE, Asking, Question
from toolkit.mix.join import JoinedShard, at_document, inputs_of, joint_rows


class ShardAsked(ConfigStruct):
    """A shard with the sets that are read, and what is asked; the question `WHERE` says which documents count."""

    work: JoinedShard
    questions: list[Question]

    def made_of(self) -> list[str]:
        """Return the digests of the documents, and of their attributes in each set.

        Raises:
            DataError: if one is not there, not whole, or stale.
        """
        state, digests = inputs_of(self.work)
        return [state.content, *(digests[joined.set] for joined in self.work.sets)]

    def answers(self) -> Iterator[tuple[int, Document, list[Any]]]:
        """Yield the documents that count: the number of the row, from 1, and what was asked, as plain values."""
        asking = [Asking(question, self.work) for question in self.questions]
        where = next((each for each in asking if each.question.name == WHERE), None)
        others = [each for each in asking if each is not where]
        used = {name for each in asking for name in each.used}
        with ExitStack() as stack:
            for document, number, _, values in joint_rows(self.work, stack, used):
                try:
                    if where is None or where.holds(document, values):
                        found = [each.of(document, values) for each in others]
                        yield number, document, [msgspec.to_builtins(each) for each in found]
                except DataError as error:
                    raise at_document(error, self.work, number, document.id) from None
