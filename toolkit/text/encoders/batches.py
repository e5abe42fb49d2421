"""Batches of what a large model computes at once: texts, or pieces of texts, of about the same length.

A tagger of a model is asked of a *group* of rows at a time: the rows of a shard from its first one, 256 of them, or
fewer where their documents have 512 KiB as JSON (`toolkit.runs.blocks`); with ``when`` of those of the group that are
asked. Groups are a function of the rows of the shard, whatever the number of processes, the executor and the command
(``tag``, or ``run`` in one pass), and a shard that is done again is done whole. `Batches.of` divides a group by the
lengths of its texts alone. So the same batches are computed again, each with one thread: the same bytes on one machine
with the same versions.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from toolkit.config.settings import ConfigStruct, Description


class Batches(ConfigStruct):
    """How many texts a model gets at once.

    Attributes:
        documents: texts, or pieces of texts, at most.
        tokens: of all of them together, padded to the longest, at most; a longer text is a batch of its own.
    """

    documents: Annotated[int, msgspec.Meta(ge=1)] = 64
    tokens: Annotated[int, msgspec.Meta(ge=1)] = 16384

    def of(self, lengths: Sequence[int]) -> list[list[int]]:
        """Return the batches of some texts, as their indexes: the longest texts first, equal ones in their order.

        Args:
            lengths: tokens of each text, as the model gets it.
        """
        found: list[list[int]] = []
        room = 0
        for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            if not room:
                found.append([])
                room = max(1, min(self.documents, self.tokens // max(1, lengths[i])))
            found[-1].append(i)
            room -= 1
        return found


BatchOption = Annotated[
    Batches,
    Description(
        description="{documents: N, tokens: M}: so many texts are computed at once, at most, and so many tokens with "
        "those that fill them up to the longest"
    ),
]

Device = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$",
        title="auto, cpu, cuda, cuda:N or mps",
        description="where the model runs; auto: an accelerator if there is one, else the cpu",
    ),
]
"""Type of an option that names a device; a tagger marks it `Neutral`: what a set has may be computed on several, which
agree but for rounding, and a corpus that was begun on one machine is finished on another."""
