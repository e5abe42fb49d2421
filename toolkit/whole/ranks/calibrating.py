"""What the kinds of the section ``calibrate:`` have in common: groups, and what is kept of the scores of documents."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from toolkit.config.settings import Description
from toolkit.data.schema import Type
from toolkit.whole.kind import Asked, Block, Files, Kind, Signer
from toolkit.whole.ranks.runs import Layout, ScoresOutput

MANY = 20
"""Groups that a note names, at most."""


class Calibrating(Kind, kw_only=True):
    """A kind whose values are made of scores, group by group."""

    SECTION: ClassVar[str] = "calibrate"

    NAMED: ClassVar[bool] = True

    within: Annotated[
        str | list[str],
        Description(
            description="groups that are calibrated one by one, such as languages or sources: SET.KEY.field or an "
            "expression, or a list of such; none: all documents are one"
        ),
    ] = []

    @property
    def scores(self) -> list[str]:
        """Return the expressions of the scores."""
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """Return what is kept of each document."""
        raise NotImplementedError

    @property
    def groups(self) -> list[str]:
        """Return the expressions of the groups."""
        return [self.within] if isinstance(self.within, str) else self.within

    def asked(self) -> dict[str, Asked]:
        """Return the expressions of the options."""
        found = {
            name: Asked(text, "value") for name, text in zip(numbered("within", self.groups), self.groups, strict=True)
        }
        scores = zip(numbered("score", self.scores), self.scores, strict=True)
        return found | {name: Asked(text, "score") for name, text in scores}

    def signer(self, files: Files) -> Signer:
        """Return what writes the scores of a shard."""
        return _Scores(self, files)


class _Scores(Signer):
    """Writes the scores of a shard's documents."""

    kind: Calibrating

    def __init__(self, kind: Calibrating, files: Files) -> None:
        super().__init__(kind, files)
        self._runs = ScoresOutput(files, kind.layout)

    def add(self, block: Block) -> None:
        """Take the next documents."""
        within = [block.values[name] for name in numbered("within", self.kind.groups)]
        scores = [block.values[name] for name in numbered("score", self.kind.scores)]
        self._runs.add(block, within, scores, block.values.get("labels", []))

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {"ranked": sum(run.ranked for run in self._runs.runs)}, self._runs.runs


def numbered(option: str, texts: Sequence[str]) -> list[str]:
    """Return what each of an option's expressions is called: ``score``, or, of several, ``score[0]`` and so on."""
    return [option] if len(texts) == 1 else [f"{option}[{i}]" for i in range(len(texts))]


def may_be_null(type_: Type) -> bool:
    """Return whether a value of a type may be null."""
    return type_.kind in ("nullable", "null", "any")


def some(labels: Sequence[str]) -> str:
    """Return labels for people, the first of many."""
    more = f" and {len(labels) - MANY} more" if len(labels) > MANY else ""
    return ", ".join(labels[:MANY]) + more
