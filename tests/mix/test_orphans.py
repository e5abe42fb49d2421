"""Which documents nothing stands for, against a slow count of them."""

import struct
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.mix.orphans import COPY, ELSEWHERE, GONE, Noted, Orphan, judge

SPREAD = 0x9E3779B97F4A7C15

documents = st.lists(
    st.tuples(
        st.booleans(),  # stays
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=2
        ),  # rule, of; 2 is against another dataset
        st.booleans(),  # no other rule drops it
    ),
    max_size=30,
)


def wrote(folder: Path, name: str, kept: bytes, copies: bytes) -> Noted:
    """Writes what is noted of a shard."""
    (folder / f"{name}.kept").write_bytes(kept)
    (folder / f"{name}.copies").write_bytes(copies)
    return Noted(f"{folder}/{name}.kept", f"{folder}/{name}.copies", len(kept + copies))


@given(documents, st.integers(1, 4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_stands_for_what(
    tmp_path: Path, found: list[tuple[bool, list[tuple[int, int]], bool]], shards: int
) -> None:
    noted: list[Noted | None] = []
    standing = {i for i, (stays, _, _) in enumerate(found) if stays}
    for shard in range(shards):
        mine = [(i, *each) for i, each in enumerate(found) if i % shards == shard]
        kept = b"".join(struct.pack("<Q", i * SPREAD % 2**64) for i, stays, _, _ in mine if stays)
        copies = b"".join(
            COPY.pack(i * SPREAD % 2**64, of * SPREAD % 2**64, i + 1, rule, 0, flags)
            for i, stays, named, only in mine
            for rule, of, flags in [*((r, of, only | ELSEWHERE * (r == 2)) for r, of in named), (0, i, GONE)]
            if not stays
        )
        noted += [wrote(tmp_path, f"{shard}", kept, copies), None]
    here = set(range(len(found)))
    standing |= {
        i for i, (_, named, _) in enumerate(found) for rule, of in named if rule == 2 and (of == i or of not in here)
    }
    edges = [(i, of) for i, (stays, named, _) in enumerate(found) if not stays for _, of in named]
    while more := {i for i, of in edges if of in standing} - standing:
        standing |= more
    lost = [
        Orphan(2 * (i % shards), i + 1, named[0][0], 0)
        for i, (stays, named, only) in enumerate(found)
        if named and only and not stays and i not in standing
    ]
    judged = judge(noted)
    assert judged.counts == Counter((each.shard, each.rule, each.set) for each in lost)
    assert judged.first == sorted(lost)[:3]


def test_long_chains(tmp_path: Path) -> None:
    for last in (0, 1):
        copies = b"".join(COPY.pack(i * SPREAD % 2**64, (i + 1) * SPREAD % 2**64, i + 1, 0, 0, 1) for i in range(200))
        kept = struct.pack("<Q", 200 * SPREAD % 2**64) * last
        assert judge([wrote(tmp_path, "0", kept, copies)]).counts.total() == 200 * (not last)
