"""The base of stages of strangers: a stage is its configuration, and makes values or documents of documents."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, get_args, get_type_hints

import msgspec

from toolkit.config.settings import FROZEN
from toolkit.data.documents import Document
from toolkit.plugins import Kind, errors_of


class Stage(msgspec.Struct, dict=True, **FROZEN):
    """A stage of a run: extend it by ``make``, and annotate the result.

    A stage is its configuration: the fields are its options. ``make`` gets some documents of a shard, in order, and
    returns either a value for each of them, which become an attribute set, or new documents, which become a dataset of
    their own; its annotation says which: ``Sequence[int]``, or ``Sequence[Document]``.

    A stage that needs all documents has ``extract``, ``combine`` and ``finish`` in place of ``make``, each annotated.
    """

    VERSION: ClassVar[str] = "1"
    """Part of the recorded settings; change it whenever results change."""

    def check(self) -> None:
        """Raise ConfigError if it cannot run here with these options; called before anything is written."""

    def make(self, documents: Sequence[Document]) -> Sequence[Any]:
        """Return a value for each document, or new documents, however many.

        Args:
            documents: At most 256 documents of a shard, in order. What it returns may depend on nothing else.
        """
        raise NotImplementedError(type(self).__name__)

    def extract(self, documents: Sequence[Document]) -> Sequence[Any]:
        """Return a value for each document: all that the next steps need of it; documents as of `make`."""
        raise NotImplementedError(type(self).__name__)

    def combine(self, values: Iterable[Any]) -> Any:
        """Combine the values of all documents into one, held in memory.

        Args:
            values: Extracted values of all documents, by shard and row; read on demand.
        """
        raise NotImplementedError(type(self).__name__)

    def finish(self, values: Sequence[Any], whole: Any) -> Sequence[Any]:
        """Return the value of each document in the attribute set.

        Args:
            values: Extracted values of at most 256 documents of a shard, in order.
            whole: Result of `combine`.
        """
        raise NotImplementedError(type(self).__name__)

    @classmethod
    def needs_all(cls) -> bool:
        """Return True if it needs all documents."""
        return cls.combine is not Stage.combine


def result_of(function: Callable[..., Any]) -> Any:
    """Return the annotation of a function's result; None if it declares nothing."""
    with errors_of(function):
        return get_type_hints(function, include_extras=True).get("return")


def made_of_each(stage: type[Stage]) -> Any:
    """Return the annotation of a stage's values; None if nothing is declared.

    Of a stage that needs all documents, all three functions must be annotated.
    """
    if stage.needs_all() and None in (item_of(stage.extract), result_of(stage.combine)):
        return None
    return item_of(stage.finish if stage.needs_all() else stage.make)


def item_of(function: Callable[..., Any]) -> Any:
    """Return the annotation of a function's result items; None if it declares nothing."""
    return next(iter(get_args(result_of(function))), None)


STAGES: Kind[Stage] = Kind("stage", "toolkit.make.kinds", "toolkit.stages", Stage)
