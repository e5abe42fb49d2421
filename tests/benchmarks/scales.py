"""How large the inputs are."""

from dataclasses import dataclass

MB = 1_000_000


@dataclass(frozen=True)
class Scale:
    """Sizes in bytes of text.

    Attributes:
        shards, shard: how many shards the common dataset has, and of what size.
        lines: for the predictions alone.
        slow: for what is slower than 1 MB/s a core.
        wet: how many WET files (of about 2 MB) goclassy's table has.
        memory: of shards, one after the other.
        processes: shards for the runs with one and two processes, and their size.
    """

    name: str
    shards: int
    shard: int
    lines: int
    slow: int
    wet: tuple[int, ...]
    memory: tuple[int, ...]
    processes: tuple[int, int]


SCALES = {
    "small": Scale("small", 2, 3 * MB, 4 * MB, MB // 4, (2, 4), (10 * MB, 50 * MB), (2, 10 * MB)),
    "full": Scale(
        "full",
        shards=8,
        shard=12 * MB,
        lines=24 * MB,
        slow=4 * MB,
        wet=(10, 100, 200),
        memory=(10 * MB, 100 * MB, 500 * MB, 1000 * MB, 2000 * MB),
        processes=(4, 100 * MB),
    ),
}
WET_FILE = 2 * MB
