"""What is fuzzed by hand, on inputs that get far, on what once broke something, and on changes of both."""

import random

import pytest

from tests.fuzz import targets

CHANGES = 40
NEEDS = {"parquet": "pyarrow", "tokenizer": "tokenizers", "jq": "jq", "jsonpath": "jsonpath"}


def changed(chance: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return an input with a few bytes changed, cut, doubled, or taken from another."""
    made = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, size = chance.randrange(len(made) + 1), chance.choice([1, 1, 2, 8, 40])
        how = chance.randrange(5)
        if how == 0:
            made[at : at + size] = chance.randbytes(size)
        elif how == 1:
            del made[at : at + size]
        elif how == 2:
            made[at:at] = made[at : at + size]
        elif how == 3:
            made[at : at + 1] = chance.choice([b"\0", b"\xff", b"\n", b'"', b"9" * 20, b"-", b"[", b"{", b"\xc3", b":"])
        else:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            made[at : at + size] = other[begin : begin + size]
    return bytes(made)


@pytest.mark.parametrize("name", targets.names())
def test_whatever_it_is_given_it_is_refused_or_read_right(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "json"))
    target = targets.find(name)
    inputs = [*target.SEEDS, *targets.crashers(name)]
    for data in inputs:
        target.check(data)
    chance = random.Random(name)
    for _ in range(CHANGES):
        target.check(changed(chance, chance.choice(inputs), inputs))
