"""The plan of a shuffled output: at which hashes parts end, so that they are of equal size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from toolkit.mix.budget.bounds import Drawn, find_bounds
from toolkit.mix.settings import REJECTED, MixSettings
from toolkit.mix.stage import StageRecord, stage_path
from toolkit.rules.kinds.budget import EVERYTHING
from toolkit.storage import store_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Cut(NamedTuple):
    """A part: the hashes that are in it, from `low` to `high`; the bytes of its pieces, and how many there are."""

    low: int
    high: int
    size: int
    documents: int


class _Run(NamedTuple):
    """The pieces of a run of a label: their hashes, sorted, and their sizes."""

    label: str
    hashes: "NDArray[np.uint64]"
    sizes: "NDArray[np.uint32]"


def cuts_of(stages: Mapping[str, StageRecord], settings: MixSettings) -> dict[str, list[Cut]]:
    """Return the parts of each label: as few as the part size allows, of sizes that differ by a piece.

    Args:
        stages: by key of the shard.
        settings: of the mix.
    """
    import numpy as np

    shuffle = settings.output.shuffle
    assert shuffle
    totals: dict[str, list[int]] = {}
    for stage in stages.values():
        for label, members in stage.members.items() if stage.members else ():
            total = totals.setdefault(label, [0, 0])
            total[0] += sum(member.size - member.documents * settings.frame for member in members)
            total[1] += sum(member.documents for member in members)
    totals.pop(REJECTED, None)
    is_divided = settings.writer().is_divided()
    by_bytes = shuffle.equal == "bytes"
    goals: dict[str, Sequence[float]] = {}
    for label, (size, documents) in totals.items():
        parts = max(1, -(-size // settings.output.part_size)) if is_divided else 1
        whole = size if by_bytes else documents
        goals[label] = [whole * i / parts for i in range(1, parts)]

    def read() -> Iterator[Drawn]:
        for run in _runs(stages, settings, {label for label, cuts in goals.items() if cuts}):
            yield Drawn(run.label, run.hashes, run.sizes.astype(float) if by_bytes else np.ones(len(run.hashes)))

    found = find_bounds(read, {label: cuts for label, cuts in goals.items() if cuts})
    nearest = {label: {around[0].hash for around in of_label} for label, of_label in found.items()}
    ends = {label: sorted({*nearest.get(label, ()), EVERYTHING} - {-1}) for label in goals}
    sums = {label: np.zeros((2, len(cuts)), dtype=np.int64) for label, cuts in ends.items()}
    for label, (size, documents) in totals.items():
        if len(ends[label]) == 1:
            sums[label][:, 0] = size, documents
    for run in _runs(stages, settings, {label for label, cuts in ends.items() if len(cuts) > 1}):
        numbers = np.searchsorted(np.array(ends[run.label], dtype=np.uint64), run.hashes)
        parts = len(ends[run.label])
        sums[run.label][0] += np.bincount(numbers, weights=run.sizes, minlength=parts).astype(np.int64)
        sums[run.label][1] += np.bincount(numbers, minlength=parts)
    return {
        label: [
            Cut(low, high, int(size), int(documents))
            for low, high, size, documents in zip(
                [0, *(end + 1 for end in cuts[:-1])], cuts, *sums[label].tolist(), strict=True
            )
            if documents
        ]
        for label, cuts in sorted(ends.items())
    }


def _runs(stages: Mapping[str, StageRecord], settings: MixSettings, labels: set[str]) -> Iterator[_Run]:
    """Yield the runs of labels, one in memory at a time."""
    import numpy as np

    for key in sorted(stages) if labels else ():
        record = stages[key]
        path = stage_path(settings.output.path, record.settings, key)
        wanted = [(label, sizes) for label in sorted(labels & record.sizes.keys()) for sizes in record.sizes[label]]
        if not wanted:
            continue
        file = store_of(path).pieces(path)
        try:
            for label, (offset, count) in wanted:
                data = file.read(offset, 12 * count)
                hashes = np.frombuffer(data, dtype="<u8", count=count)
                yield _Run(label, hashes, np.frombuffer(data, dtype="<u4", count=count, offset=8 * count))
        finally:
            file.close()
