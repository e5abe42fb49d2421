"""How large the inputs are."""

from dataclasses import dataclass, replace

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
        one: of one large WET file.
        single: inputs of one document each.
        texts: text files of one line each.
    """

    name: str
    shards: int
    shard: int
    lines: int
    slow: int
    wet: tuple[int, ...]
    memory: tuple[int, ...]
    processes: tuple[int, int]
    one: int
    single: int
    texts: int


SCALES = {
    "small": Scale(
        "small", 2, 3 * MB, 4 * MB, MB // 4, (2, 4), (10 * MB, 50 * MB), (2, 10 * MB), one=4 * MB, single=100, texts=50
    ),
    "full": Scale(
        "full",
        shards=8,
        shard=12 * MB,
        lines=24 * MB,
        slow=4 * MB,
        wet=(10, 100, 200),
        memory=(10 * MB, 100 * MB, 500 * MB, 1000 * MB, 2000 * MB),
        processes=(4, 100 * MB),
        one=107 * MB,
        single=20_000,
        texts=1_000,
    ),
}
SCALES["large"] = replace(SCALES["full"], name="large")
"""For duplicates, whose inputs have 2 GB then; everything else as it is."""

WET_FILE = 2 * MB
