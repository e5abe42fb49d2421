"""The base of stages of strangers: a stage is its configuration, and makes values or documents of documents."""

from collections.abc import Sequence
from typing import Any, ClassVar, get_args, get_type_hints

import msgspec

from toolkit.config.settings import FROZEN
from toolkit.data.documents import Document
from toolkit.plugins import Kind


class Stage(msgspec.Struct, dict=True, **FROZEN):
    """A stage of a run: extend it by ``make``, and annotate the result.

    A stage is its configuration: the fields are its options. ``make`` gets some documents of a shard, in order, and
    returns either a value for each of them, which become an attribute set, or new documents, which become a dataset of
    their own; its annotation says which: ``Sequence[int]``, or ``Sequence[Document]``.
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


def made_of_each(stage: type[Stage]) -> Any:
    """Return the annotation of what a stage makes of a document; None if `make` declares nothing."""
    hint = get_type_hints(stage.make, include_extras=True).get("return")
    return next(iter(get_args(hint)), None)


STAGES: Kind[Stage] = Kind("stage", "toolkit.make.stages", "toolkit.stages", Stage)
