"""Small fastText models of all kinds, and where each field of their files lies."""

import random
import struct
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.storage import models

WORDS = [
    a + b for a in ("alpha", "beta", "δέλτα", "эпсилон", "中文", "🙂", "a", "éé") for b in ("", "s", "en", "ом", "9")
]
SMALL: dict[str, Any] = {"dim": 6, "bucket": 150, "epoch": 25, "lr": 0.5}
CHARACTERS: dict[str, Any] = {**SMALL, "minn": 2, "maxn": 4}

KINDS: dict[str, dict[str, Any]] = {
    "softmax": {**CHARACTERS, "loss": "softmax"},
    "hs": {**CHARACTERS, "loss": "hs", "labels": 9},
    "ova": {**CHARACTERS, "loss": "ova", "wordNgrams": 2},
    "ns": {**SMALL, "loss": "ns"},
    "words alone": {**SMALL, "loss": "hs", "minn": 0, "maxn": 0},
    "word n-grams": {**SMALL, "loss": "softmax", "wordNgrams": 3},
    "one label": {**CHARACTERS, "loss": "softmax", "labels": 1},
    "hs, pruned, norms": {
        **CHARACTERS, "loss": "hs", "bucket": 500, "quantise": {"cutoff": 270, "dsub": 2, "qnorm": True},
    },
    "softmax, pruned": {**CHARACTERS, "bucket": 400, "wordNgrams": 2, "quantise": {"cutoff": 290, "dsub": 4}},
    "hs, quantised whole": {**CHARACTERS, "loss": "hs", "bucket": 300, "quantise": {"dsub": 3}},
    "ova, quantised output": {
        **CHARACTERS, "loss": "ova", "bucket": 300, "labels": 300, "quantise": {"dsub": 2, "qout": True, "qnorm": True},
    },
    "cbow": {**CHARACTERS, "vectors": "cbow"},
    "skipgram": {**CHARACTERS, "vectors": "skipgram"},
}  # fmt: skip
BUNDLED = "lid.176.ftz"


def make(folder: Path) -> None:
    """Train a model of each kind; the files are named by their place in `KINDS`."""
    import fasttext

    for number, options in enumerate(KINDS.values()):
        chance, options = random.Random(number), dict(options)
        labels, quantise, vectors = (options.pop(name, None) for name in ("labels", "quantise", "vectors"))
        text = folder / f"{number}.txt"
        lines = [chance.choices(WORDS, k=chance.randint(1, 9)) for _ in range(600)]
        names = [f"__label__{i % (labels or 5)} " if vectors is None else "" for i in range(len(lines))]
        text.write_text("".join(f"{a}{' '.join(b)}\n" for a, b in zip(names, lines, strict=True)), encoding="utf-8")
        # the library sets a tenth of its memory in each thread; with fewer than eleven it trains on what was there
        options = {"input": str(text), "thread": 12, "verbose": 0, **options}
        model = (
            fasttext.train_unsupervised(model=vectors, **options) if vectors else fasttext.train_supervised(**options)
        )
        if quantise:
            model.quantize(input=str(text), verbose=0, thread=12, **quantise)
        model.save_model(str(folder / f"{number}.bin"))
    (folder / f"{len(KINDS)}.bin").write_bytes(Path(models.resolve(BUNDLED)).read_bytes())


class Field(NamedTuple):
    """A number of a file: its name, offset and `struct` form."""

    name: str
    at: int
    form: str


class Base(NamedTuple):
    """A model file and what lies where.

    Attributes:
        kind: a key of `KINDS`.
        data: its bytes.
        fields: its numbers, in the order of the file; those of the dictionary's entries are not among them.
        entries: where each entry begins and where its NUL is.
        stretches: places and lengths of arrays by name.
    """

    kind: str
    data: bytes
    fields: list[Field]
    entries: list[tuple[int, int]]
    stretches: dict[str, tuple[int, int]]


HEADER = "version:i dim:i ws:i epoch:i minCount:i neg:i wordNgrams:i loss:i model:i bucket:i minn:i maxn:i rate:i t:d"
DICTIONARY = "size:i words:i labels:i tokens:q pruned:q"
QUANTISER = "dim:i nsubq:i dsub:i lastdsub:i"


def load(folder: Path) -> list[Base]:
    """Return the models of a folder that `make` has filled."""
    return [read(kind, (folder / f"{number}.bin").read_bytes()) for number, kind in enumerate([*KINDS, BUNDLED])]


def read(kind: str, data: bytes) -> Base:
    """Return where what lies in a model's file."""
    fields: list[Field] = []
    values: dict[str, Any] = {}
    at = 4

    def numbers(text: str, prefix: str = "") -> None:
        nonlocal at
        for name, _, form in (item.partition(":") for item in text.split()):
            fields.append(Field(prefix + name, at, form))
            (values[prefix + name],) = struct.unpack_from("<" + form, data, at)
            at += struct.calcsize("<" + form)

    def stretch(name: str, size: int) -> None:
        nonlocal at
        stretches[name] = at, size
        at += size

    stretches: dict[str, tuple[int, int]] = {}
    numbers(HEADER)
    numbers(DICTIONARY)
    entries = []
    for _ in range(values["size"]):
        entries.append((at, data.index(b"\0", at)))
        at = entries[-1][1] + 10
    stretch("pruned", 8 * max(values["pruned"], 0))
    for name in ("input ", "output "):
        numbers("quantised:B", name)
        quantised = values[name + "quantised"] and values["input quantised"]
        numbers(("norms:B " if quantised else "") + "rows:q columns:q" + (" codes:i" if quantised else ""), name)
        if not quantised:
            stretch(name + "floats", 4 * values[name + "rows"] * values[name + "columns"])
            continue
        stretch(name + "codes", values[name + "codes"])
        numbers(QUANTISER, name)
        stretch(name + "centroids", 4 * 256 * values[name + "dim"])
        if values[name + "norms"]:
            stretch(name + "codes of norms", values[name + "rows"])
            numbers(QUANTISER, name + "norms ")
            stretch(name + "norms", 4 * 256)
    assert at == len(data), f"{kind}: expected fields up to byte {len(data)}, got up to {at}"
    return Base(kind, data, fields, entries, stretches)
