"""The plan of a mix's output: which members make which part. A pure function of the indexes of stage 1.

The plan of a shuffled output: at which hashes parts end, so that they are of equal size.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.mix.budget.bounds import Drawn, find_bounds
from toolkit.mix.settings import REJECTED, MixSettings
from toolkit.mix.stage import Member, StageRecord, stage_path
from toolkit.rules.kinds.repeat import EVERYTHING
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
        for run in _cut_runs(stages, settings, {label for label, cuts in goals.items() if cuts}):
            yield Drawn(run.label, run.hashes, run.sizes.astype(float) if by_bytes else np.ones(len(run.hashes)))

    found = find_bounds(read, {label: cuts for label, cuts in goals.items() if cuts})
    nearest = {label: {around[0].hash for around in of_label} for label, of_label in found.items()}
    ends = {label: sorted({*nearest.get(label, ()), EVERYTHING} - {-1}) for label in goals}
    sums = {label: np.zeros((2, len(cuts)), dtype=np.int64) for label, cuts in ends.items()}
    for label, (size, documents) in totals.items():
        if len(ends[label]) == 1:
            sums[label][:, 0] = size, documents
    for run in _cut_runs(stages, settings, {label for label, cuts in ends.items() if len(cuts) > 1}):
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


def _cut_runs(stages: Mapping[str, StageRecord], settings: MixSettings, labels: set[str]) -> Iterator[_Run]:
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


TINY = 256 << 10
"""Members with fewer uncompressed bytes are joined with their like and compressed anew."""

JOINED = 1 << 20
"""Uncompressed bytes up to which tiny members are joined."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Members of one or more shards that become one member of a part: copied if it is one, else compressed anew."""

    members: list[tuple[str, int, int]]


class PartPlan(ConfigStruct):
    """One output file.

    Attributes:
        label: of its documents.
        path: below the output folder.
        pieces: in order.
        size: uncompressed bytes.
        documents: in it.
        low, high: of a shuffled output, the least and the greatest hash that may be in it.
        runs: of a shuffled output, in place of pieces, the members of which something is in it: key of the shard,
            offset and length in its intermediate. Members that stand one behind the other are read together.
    """

    label: str
    path: str
    pieces: list[Piece]
    size: int
    documents: int
    low: int = 0
    high: int = 0
    runs: list[tuple[str, int, int]] = []

    @property
    def stored(self) -> int:
        """Return the bytes of its members, as they are stored in the intermediates."""
        return sum(length for piece in self.pieces for _, _, length in piece.members) + sum(run[2] for run in self.runs)


def plan_parts(stages: Mapping[str, StageRecord], settings: MixSettings) -> list[PartPlan]:
    """Return the parts of all labels, sorted by label and number.

    A part is closed before a member that would take it over the part size.

    Args:
        stages: by key of the shard.
        settings: of the mix, which name the parts.

    Raises:
        ConfigError: if two labels would be written to one path.
    """
    is_divided = settings.writer().is_divided()
    by_label: dict[str, list[tuple[str, Member]]] = {}
    for shard in sorted(stages, key=settings.position):
        for label, members in stages[shard].members.items():
            by_label.setdefault(label, []).extend((shard, member) for member in members)
    parts: list[PartPlan] = []
    cuts = cuts_of(stages, settings) if settings.output.shuffle else {}
    for label in sorted(by_label):
        if label in cuts:
            parts += _shuffled(label, cuts[label], by_label.pop(label), settings)
            continue
        groups: list[list[tuple[str, Member]]] = []
        size = 0
        for shard, member in by_label.pop(label):
            if not groups or (is_divided and size + member.size > settings.output.part_size):
                groups.append([])
                size = 0
            groups[-1].append((shard, member))
            size += member.size
        for number, group in enumerate(groups, 1):
            parts.append(
                PartPlan(
                    label=label,
                    path=settings.part(label, number, len(groups)),
                    pieces=_pieces(group),
                    size=sum(member.size for _, member in group),
                    documents=sum(member.documents for _, member in group),
                )
            )
    _check_paths(parts, settings)
    return parts


def _shuffled(label: str, cuts: list[Cut], members: list[tuple[str, Member]], settings: MixSettings) -> list[PartPlan]:
    """Return the parts of a shuffled label, each with all members of which something may be in it."""
    return [
        PartPlan(
            label=label,
            path=settings.part(label, number, len(cuts)),
            pieces=[],
            size=cut.size,
            documents=cut.documents,
            low=cut.low,
            high=cut.high,
            runs=_runs(members, cut),
        )
        for number, cut in enumerate(cuts, 1)
    ]


def _runs(members: list[tuple[str, Member]], cut: Cut) -> list[tuple[str, int, int]]:
    """Return the places of what may have hashes of a part, about a MiB of pieces in each."""
    found: list[tuple[str, int, int]] = []
    size = JOINED
    for key, member in members:
        if member.low <= cut.high and member.high >= cut.low:
            if size + member.size <= JOINED and found[-1][0] == key and sum(found[-1][1:]) == member.offset:
                found[-1] = (key, found[-1][1], found[-1][2] + member.length)
                size += member.size
            else:
                found.append((key, member.offset, member.length))
                size = member.size
    return found


def _check_paths(parts: Iterable[PartPlan], settings: MixSettings) -> None:
    """Raise ConfigError if a part would be written over another, over a checksum file, or where a folder must be.

    Labels may share a checksum file, which then lists the parts of all of them.
    """
    labels: dict[str, str] = {}
    for part in parts:
        for path in (part.path, *settings.beside(part.label, part.path)):
            if path in labels:
                raise ConfigError(
                    f"expected a path of its own for each part, got {path} for the labels {labels[path]!r} and "
                    f"{part.label!r}; route one of them elsewhere"
                )
            labels[path] = part.label
    checksums = {settings.checksums(label): label for label in labels.values()}
    for path in checksums.keys() & labels.keys():
        raise ConfigError(
            f"expected a path of its own for each file, got {path} for a part of the label {labels[path]!r} and the "
            f"checksums of the label {checksums[path]!r}; route one of them elsewhere"
        )
    files = labels | checksums
    for path, label in files.items():
        for end in (i for i, letter in enumerate(path) if letter == "/"):
            if path[:end] in files:
                raise ConfigError(
                    f"expected a folder at {path[:end]} for the label {label!r}, got a file of the label "
                    f"{files[path[:end]]!r}; route one of them elsewhere"
                )


def _pieces(group: list[tuple[str, Member]]) -> list[Piece]:
    pieces: list[Piece] = []
    held: list[tuple[str, int, int]] = []
    size = 0
    for shard, member in group:
        tiny = member.size < TINY
        if held and (not tiny or size + member.size > JOINED):
            pieces.append(Piece(held))
            held, size = [], 0
        if tiny:
            held.append((shard, member.offset, member.length))
            size += member.size
        else:
            pieces.append(Piece([(shard, member.offset, member.length)]))
    if held:
        pieces.append(Piece(held))
    return pieces


Inputs = list[tuple[str, str, dict[str, str]]]
"""Key of the shard, content digest of its documents, and of its attributes by set; sorted."""


def plan_digest(stages: Mapping[str, StageRecord], stage_digest: str, part_size: int, omitted: list[str]) -> str:
    """Return the digest that tells two mixes apart: of inputs, settings, part size, omitted shards."""
    inputs = [(shard, found.documents, found.attributes) for shard in sorted(stages) for found in (stages[shard],)]
    return digest_of(inputs, stage_digest, part_size, omitted)


def digest_of(inputs: Inputs, stage_digest: str, part_size: int, omitted: list[str]) -> str:
    """Return `plan_digest` where the intermediates are not at hand."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode((stage_digest, int(part_size), inputs, sorted(omitted))))
