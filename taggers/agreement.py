"""A label by vote: what several sets say of a document, and how far they agree.

Source: none; a plurality vote, as HPLT v4 keeps the labels of several identifiers of languages beside each other.
"""

from collections import Counter
from typing import Annotated, Literal

import msgspec

from toolkit import Attribute, ConfigError, Document, Example, Tagger

THREE = ["lid-0.text_language.label", "lid-1.text_language.label", "lid-2.text_language.label"]


class Agreed(msgspec.Struct, frozen=True):
    """The label with most votes; the votes for it, all votes, and its share.

    Attributes:
        label: The label with most votes; null if no set has one, or none has enough votes.
        votes: Sets that give the label with most votes.
        voters: Sets that give any label.
        agreement: Votes / voters, from 0 to 1; 0 if no set has a label.
    """

    label: str | None
    votes: int
    voters: int
    agreement: float


class Agreement(Tagger):
    """The label with most votes of several sets, and their agreement.

    A set whose label is null does not vote. If several labels have the most votes, the label of the set that comes
    first in `of` wins (``tie: first``), or no label wins (``tie: none``). If sets disagree, ``agreement`` is below 1.

    Attributes:
        of: labels of other sets, each `SET.KEY[.field]`
        min_votes: the fewest votes for a label; with fewer, the label is null
        tie: the winner if several labels have the most votes: the one that is first in `of`, or none
    """

    EXAMPLES = (
        Example(
            "", Agreed(None, 0, 0, 0.0), options={"of": THREE}, attributes={"of[0]": None, "of[1]": None, "of[2]": None}
        ),
        Example(
            "Das ist ein Satz.",
            Agreed("de", 2, 3, 0.6666666666666666),
            options={"of": THREE},
            attributes={"of[0]": "nl", "of[1]": "de", "of[2]": "de"},
        ),
        Example(
            "Žluťoučký kůň.",
            Agreed("sk", 1, 2, 0.5),
            options={"of": THREE},
            attributes={"of[0]": "sk", "of[1]": None, "of[2]": "cs"},
        ),
        Example(
            "Žluťoučký kůň.",
            Agreed(None, 1, 2, 0.5),
            options={"of": THREE, "tie": "none"},
            attributes={"of[0]": "sk", "of[1]": None, "of[2]": "cs"},
        ),
    )

    of: Annotated[list[Annotated[str, Attribute("label", str | None)]], msgspec.Meta(min_length=2)]
    min_votes: Annotated[int, msgspec.Meta(ge=1)] = 1
    tie: Literal["first", "none"] = "first"

    def check(self) -> None:
        if len({*self.of}) < len(self.of):
            raise ConfigError(f"of: expected each set once, got {', '.join(self.of)}")

    def tag(self, document: Document) -> Agreed:
        labels = [label for name in self.of if (label := document.attribute(name)) is not None]
        counts = Counter(labels)
        most = max(counts.values(), default=0)
        best = [label for label in counts if counts[label] == most]  # in the order of the sets
        wins = best and most >= self.min_votes and (len(best) == 1 or self.tie == "first")
        share = most / len(labels) if labels else 0.0
        return Agreed(best[0] if wins else None, most, len(labels), share)
