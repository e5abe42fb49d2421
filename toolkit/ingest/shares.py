"""Ownership of the shares of a job: for all commands, this decides ``--shard I/N``.

The shares of a job run at once and begin at different moments, while others write documents. What a share owns must be
the same whenever it looks, so it is told from what the job does not change:

- the inputs of ``ingest:`` are dealt, by their stored bytes where they are listed, else by their number; a pack of
  inputs is dealt whole, as one input;
- all shards that an input becomes belong to its owner. Their names tell which these are, before they are there;
- other documents beside them have the owner that a hash of their name gives: they may come and go meanwhile;
- where no input is known, shards are dealt by their stored bytes: the job writes none.

Inputs that come, go or grow between the beginnings of two shares may be owned by two or by none. Two do the same work;
what none has done is left for the run without ``--shard``.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import xxhash

from toolkit.data.dataset import SHARD_SUFFIXES, Dataset
from toolkit.errors import amount
from toolkit.ingest.plan import InputToIngest, makers
from toolkit.storage.paths import absolute, strip_suffix


class Dealer:
    """Deals each thing to the share with the least so far."""

    def __init__(self, count: int) -> None:
        self._bytes = [0] * count
        self._things = [0] * count
        self._unsized = [0] * count

    def deal(self, sizes: Mapping[str, int | None]) -> dict[str, int]:
        """Return the share of each thing, by its name; the order of the things changes nothing.

        The largest thing is dealt first, to the share with the fewest bytes, so that two shares differ by at most the
        bytes of the largest thing. Things without size are dealt after them, in the order of their names, to the share
        with the fewest of these, so that their numbers differ by at most one. Equals go to the first share.
        """
        sized = sorted((-size, name) for name, size in sizes.items() if size is not None)
        unsized = sorted(name for name, size in sizes.items() if size is None)
        results = self._deal([name for _, name in sized], sizes, self._bytes, self._things)
        return results | self._deal(unsized, sizes, self._unsized, self._bytes, self._things)

    def _deal(self, names: Sequence[str], sizes: Mapping[str, int | None], *by: list[int]) -> dict[str, int]:
        """Deal things in order, each to the share with the lowest numbers."""
        results: dict[str, int] = {}
        least = [(*(numbers[i] for numbers in by), i) for i in range(len(self._bytes))]
        heapq.heapify(least)
        for name in names:
            results[name] = i = least[0][-1]
            if (size := sizes[name]) is None:
                self._unsized[i] += 1
            else:
                self._bytes[i] += size
                self._things[i] += 1
            heapq.heapreplace(least, (*(numbers[i] for numbers in by), i))
        return results


class Share:
    """One of several shares of a job.

    Attributes:
        index: Index of it, from 0.
        count: Count of all.
        inputs: Inputs that it owns, sorted by shard.
    """

    def __init__(self, index: int, count: int, own: Dataset | None, inputs: Sequence[InputToIngest]) -> None:
        """Deals the inputs.

        Args:
            index: Index of the share, from 0.
            count: Count of all shares.
            own: the dataset of the configuration.
            inputs: Inputs that its documents are made from; empty if there is no `ingest:` section, or nothing of it is
                there.
        """
        self.index, self.count = index, count
        self._own = own
        self._dealer = Dealer(count)
        self._dealt: list[tuple[str, Mapping[str, int | None], dict[str, int]]] = []
        self._documents: dict[Dataset, dict[str, int]] = {}
        self._is_of_inputs: dict[Dataset, bool] = {}
        self._of_inputs = self._deal("input", {work.shard: work.size for work in inputs}) if inputs else {}
        self._maker = makers(inputs)
        self._input = "pack" if any(work.is_pack for work in inputs) else "input"
        self.inputs = [work for work in inputs if self.owns_input(work)]

    def owns_input(self, work: InputToIngest) -> bool:
        """Return True if an input is in the share."""
        return self._of_inputs[work.shard] == self.index

    def is_of_inputs(self, dataset: Dataset) -> bool:
        """Return True if the inputs become the documents of a dataset."""
        if dataset not in self._is_of_inputs:
            own = self._own if self._of_inputs else None
            self._is_of_inputs[dataset] = own is not None and absolute(dataset.documents) == absolute(own.documents)
        return self._is_of_inputs[dataset]

    def owns(self, dataset: Dataset, shard: str) -> bool:
        """Return True if a shard of a dataset is in the share."""
        if self.is_of_inputs(dataset):
            work = self._maker(shard)
            owner = None if work is None else self._of_inputs[work.shard]
        else:
            owner = self._listed(dataset).get(shard)
        return (self._by_name(shard) if owner is None else owner) == self.index

    def owned(self, kind: str, sizes: Mapping[str, int | None]) -> list[str]:
        """Deal other things, once; return the names of those that are in the share, in their order.

        Args:
            kind: they are, in the singular.
            sizes: their stored bytes, by name.
        """
        dealt = self._deal(kind, sizes)
        return [name for name in sizes if dealt[name] == self.index]

    def _deal(self, kind: str, sizes: Mapping[str, int | None]) -> dict[str, int]:
        dealt = self._dealer.deal(sizes)
        self._dealt.append((kind, sizes, dealt))
        return dealt

    def _listed(self, dataset: Dataset) -> dict[str, int]:
        """Return the owners of a dataset's shards without input; the configuration's own is dealt first."""
        if self._own and dataset != self._own and not self._of_inputs:
            self._listed(self._own)
        if dataset not in self._documents:
            self._documents[dataset] = self._deal("shard", dataset.sizes())
        return self._documents[dataset]

    def _by_name(self, shard: str) -> int:
        return xxhash.xxh3_64_intdigest(strip_suffix(shard, SHARD_SUFFIXES).encode()) % self.count

    # --- what is said of it -------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self.index} of {self.count}"

    @property
    def is_empty(self) -> bool:
        """Return True if nothing was dealt to this share."""
        return not any(self.index in dealt.values() for _, _, dealt in self._dealt)

    def nothing(self) -> str:
        """Return the message of a share without things."""
        kinds: dict[str, int] = {"input" if self._of_inputs else "shard": 0}
        for kind, sizes, _ in self._dealt:
            kinds[kind] = kinds.get(kind, 0) + len(sizes)
        words = {kind: self._input if kind == "input" else kind for kind in kinds}
        has = " and ".join(f"no {words[kind]}" for kind in kinds)
        totals = " and ".join(amount(number, words[kind]) for kind, number in kinds.items())
        are = "is" if list(kinds.values()) == [1] else "are"
        return f"this share ({self}) has {has}: there {are} {totals} for {amount(self.count, 'share')}"

    def plan(self) -> dict[str, Any]:
        """Return the numbers of dealt things, for dry runs.

        Returns:
            For each kind of things, and for their stored bytes where those are listed: how many are here, how many
            there are, and how many the shares with the fewest and with the most have.
        """
        results: dict[str, Any] = {"share": f"{self.index}/{self.count}"}
        bytes_by_share = [0] * self.count
        largest = None
        for kind in dict.fromkeys(kind for kind, _, _ in self._dealt):
            numbers = [0] * self.count
            for sizes, dealt in ((sizes, dealt) for item, sizes, dealt in self._dealt if item == kind):
                for name, size in sizes.items():
                    numbers[dealt[name]] += 1
                    bytes_by_share[dealt[name]] += size or 0
                    largest = largest if size is None else max(size, largest or 0)
            results[kind + "s"] = self._of(numbers)
        if largest is not None:
            results["bytes"] = {**self._of(bytes_by_share), "largest": largest}
        return results

    def _of(self, numbers: Sequence[int]) -> dict[str, int]:
        least, most = min(numbers), max(numbers)
        return {"here": numbers[self.index], "all": sum(numbers), "least": least, "most": most}
