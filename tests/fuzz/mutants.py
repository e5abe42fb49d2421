"""Files that are almost those of models: what is changed in them follows from a seed."""

import random
import struct
from collections.abc import Callable

from tests.fuzz.bases import Base, Field

RANGES = {"B": (0, 255), "i": (-(1 << 31), (1 << 31) - 1), "q": (-(1 << 63), (1 << 63) - 1)}
NUMBERS = [0, 1, -1, 2, 3, 4, 7, 8, 11, 12, 64, 99, 100, 101, 255, 256, 1000, 8192, 100_000, 1 << 24, 1 << 28, 1 << 30]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e12, 1.1e12, -1e13, 3e38, float("inf"), float("-inf"), float("nan")]
COUNTS = [0, 1, -1, 5, 10**14, 10**15 - 1, 10**15, 10**16, 1 << 62, -(1 << 63)]
TEXTS = [
    b"",
    b"</s>",
    b"__label__",
    b"__label__0",
    b"\xff\xfe",
    b"\xc3",
    b"a b",
    b"\n",
    b"x" * 300,
    b"alpha",
    b"<",
    b">",
]

Change = Callable[[random.Random, bytearray, Base], None]


def mutant(seed: int, bases: list[Base]) -> tuple[str, bytes]:
    """Return the kind of the model that was changed, and what became of it."""
    chance = random.Random(seed)
    base = bases[-1] if seed % 40 == 39 else bases[chance.randrange(len(bases) - 1)]
    if base.kind in ("cbow", "skipgram") and seed % 4:
        base = bases[chance.randrange(len(bases) - 3)]
    data = bytearray(base.data)
    if seed % 10 == 9:  # whatever comes
        chance.choice([_bytes, _truncated, _spliced, _noise])(chance, data, base)
    elif chance.random() < 0.4:
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            chance.choice(MILD)(chance, data, base)
    else:
        for _ in range(chance.choice([1, 1, 1, 1, 2, 3])):
            chance.choice(HARSH)(chance, data, base)
    return base.kind, bytes(data)


def _put(data: bytearray, at: int, form: str, value: float) -> None:
    """Write a number where it still has a place; an integer that is too large is cut."""
    if form in RANGES:
        value = int(value) & ((1 << (8 * struct.calcsize("<" + form))) - 1)
        form = {"i": "I", "q": "Q"}.get(form, form)
    if at + struct.calcsize("<" + form) <= len(data):
        struct.pack_into("<" + form, data, at, value)


# --- changes after which most files are damaged -----------------------------------------------------------------------


def _number(chance: random.Random, data: bytearray, base: Base) -> None:
    field = chance.choice([field for field in base.fields if field.name != "version" or chance.random() < 0.2])
    if field.form == "d":
        return _put(data, field.at, "d", chance.choice(FLOATS))
    (old,) = struct.unpack_from("<" + field.form, base.data, field.at)
    near = [old + 1, old - 1, 2 * old, old // 2, -old, old + 256, old + (1 << 31), *RANGES[field.form]]
    anything = chance.randint(*RANGES[field.form])
    return _put(data, field.at, field.form, chance.choice([*near, *near, *NUMBERS, anything]))


def _numbers(chance: random.Random, data: bytearray, base: Base) -> None:
    for _ in range(chance.randint(2, 4)):
        _number(chance, data, base)


def _kind_of_entry(chance: random.Random, data: bytearray, base: Base) -> None:
    _, end = chance.choice(base.entries)
    _put(data, end + 9, "B", chance.choice([0, 1, 2, 255]))


def _count_of_entry(chance: random.Random, data: bytearray, base: Base) -> None:
    for _, end in chance.choices(base.entries[-9:], k=chance.randint(1, 9)):
        _put(data, end + 1, "q", chance.choice(COUNTS))


def _pruned(chance: random.Random, data: bytearray, base: Base) -> None:
    at, size = base.stretches["pruned"]
    if not size:
        return _number(chance, data, base)
    for _ in range(chance.randint(1, 3)):
        value = chance.choice([*NUMBERS, chance.randrange(size // 8), -1, size // 8, chance.randint(*RANGES["i"])])
        _put(data, at + 4 * chance.randrange(size // 4), "i", value)


def _float(chance: random.Random, data: bytearray, base: Base) -> None:
    names = [name for name in base.stretches if name.endswith(("floats", "centroids", "norms")) and "codes" not in name]
    at, size = base.stretches[chance.choice(names)]
    if size:
        _put(data, at + 4 * chance.randrange(size // 4), "f", chance.choice(FLOATS[:-5] * 3 + FLOATS[-3:] + [1.1e12]))


def _bytes(chance: random.Random, data: bytearray, base: Base) -> None:
    first = chance.choice([8, 8, 8, 0])
    last = min(chance.choice([150, len(data), len(data)]), len(data))
    for _ in range(chance.choice([1, 2, 4, 16]) if last > first else 0):
        data[chance.randrange(first, last)] = chance.randrange(256)


def _truncated(chance: random.Random, data: bytearray, base: Base) -> None:
    places = [field.at for field in base.fields] + [len(data) - 1, chance.randrange(len(data))]
    del data[chance.choice(places) :]


def _longer(chance: random.Random, data: bytearray, base: Base) -> None:
    data += bytes(chance.choices(range(256), k=chance.choice([1, 4, 1000])))


def _shifted(chance: random.Random, data: bytearray, base: Base) -> None:
    """Bytes go or come anywhere behind the version."""
    at, n = chance.randrange(8, max(len(data), 9)), chance.choice([1, 4, 8, 24, 400])
    if chance.random() < 0.5:
        del data[at : at + n]
    else:
        data[at:at] = bytes(chance.choices(range(256), k=n))


def _spliced(chance: random.Random, data: bytearray, base: Base) -> None:
    """A part is written over another."""
    if len(data) > 8:  # else it has become so short before
        n = chance.choice([4, 8, 50, len(data) // 2])
        source, target = chance.randrange(len(data)), chance.randrange(8, len(data))
        data[target : target + n] = data[source : source + n]


def _noise(chance: random.Random, data: bytearray, base: Base) -> None:
    keep = chance.choice([0, 8, 56, 64, 92])
    data[keep:] = chance.randbytes(chance.choice([0, 50, 1000]))


# --- changes after which many files are models ------------------------------------------------------------------------


def _field(base: Base, name: str) -> Field:
    return next(field for field in base.fields if field.name == name)


def _of_training(chance: random.Random, data: bytearray, base: Base) -> None:
    name = chance.choice(["ws", "epoch", "minCount", "neg", "rate", "tokens"])
    field = _field(base, name)
    _put(data, field.at, field.form, chance.randint(*RANGES[field.form]))


def _loss(chance: random.Random, data: bytearray, base: Base) -> None:
    _put(data, _field(base, "loss").at, "i", chance.choice([1, 1, 3, 3, 4]))


def _ngrams(chance: random.Random, data: bytearray, base: Base) -> None:
    name = chance.choice(["minn", "maxn", "wordNgrams"])
    _put(data, _field(base, name).at, "i", chance.choice([0, 1, 2, 3, 5, 12, 100]))


def _text_of_entry(chance: random.Random, data: bytearray, base: Base) -> None:
    begin, end = chance.choice(base.entries)
    text = chance.choice([*TEXTS, chance.randbytes(chance.randint(1, 12)).replace(b"\0", b"1")])
    if len(data) == len(base.data):  # else it lies elsewhere
        data[begin:end] = text


def _small_counts(chance: random.Random, data: bytearray, base: Base) -> None:
    for _, end in base.entries:
        _put(data, end + 1, "q", chance.choice([1, 2, 3, 50, chance.randrange(10**6)]))


def _rows(chance: random.Random, data: bytearray, base: Base) -> None:
    """Fewer buckets, and fewer rows for them."""
    if "input floats" not in base.stretches or len(data) != len(base.data):
        return _loss(chance, data, base)
    bucket, rows, columns = (
        struct.unpack_from("<" + field.form, data, field.at)[0]
        for field in (_field(base, name) for name in ("bucket", "input rows", "input columns"))
    )
    fewer = chance.choice([n for n in (1, 7, bucket - 2, bucket - 1, bucket) if 0 <= n <= bucket] or [0])
    _put(data, _field(base, "bucket").at, "i", bucket - fewer)
    _put(data, _field(base, "input rows").at, "q", rows - fewer)
    at, size = base.stretches["input floats"]
    if fewer and 4 * fewer * columns <= size:
        del data[at + size - 4 * fewer * columns : at + size]
    return None


def _more_buckets(chance: random.Random, data: bytearray, base: Base) -> None:
    """Of a pruned model: most have no row."""
    if not base.stretches["pruned"][1]:
        return _ngrams(chance, data, base)
    return _put(data, _field(base, "bucket").at, "i", chance.choice([200, 2000, 1 << 20, 1 << 26]))


def _codes(chance: random.Random, data: bytearray, base: Base) -> None:
    names = [name for name in base.stretches if "codes" in name]
    at, size = base.stretches[chance.choice(names)] if names else (0, 0)
    if size:
        data[at : at + size] = chance.randbytes(size)[: max(0, len(data) - at)]


def _small_float(chance: random.Random, data: bytearray, base: Base) -> None:
    names = [name for name in base.stretches if name.endswith(("floats", "centroids"))]
    at, size = base.stretches[chance.choice(names)]
    for _ in range(chance.randint(1, 40) if size else 0):
        _put(data, at + 4 * chance.randrange(size // 4), "f", chance.uniform(-3, 3))


HARSH: list[Change] = [
    _number, _number, _number, _number, _numbers, _kind_of_entry, _count_of_entry, _pruned, _pruned, _float, _bytes,
    _truncated, _longer, _shifted, _spliced,
]  # fmt: skip
MILD: list[Change] = [
    _of_training, _loss, _ngrams, _text_of_entry, _text_of_entry, _small_counts, _rows, _more_buckets, _codes,
    _small_float,
]  # fmt: skip
