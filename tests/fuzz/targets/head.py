"""Heads of encoders: their file, and what they say of vectors."""

from itertools import pairwise

import numpy as np

from tests.fuzz.targets._files import file_of, refuses
from toolkit.text.encoders.heads import Layer, LoadedHead, packed, read
from toolkit.text.linear.model import Predicts


def _seed(*sizes: int, about: Predicts) -> bytes:
    layers = [Layer(np.full((a, b), 0.5, np.float32), np.zeros(b, np.float32)) for a, b in pairwise(sizes)]
    return packed(about, layers)


def _of_others() -> bytes:
    text = b'{"w.weight":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}}'
    return len(text).to_bytes(8, "little") + text + b"\0<\0<"


SEEDS = [
    _seed(3, 1, about=Predicts(task="regression")),
    _seed(3, 2, 3, about=Predicts(task="classes", labels=["a", "b", "c"])),
    _of_others(),
]


def check(data: bytes) -> None:
    path, found = file_of(data), list[LoadedHead]()
    if refuses(lambda: found.append(read(path))):
        return
    head = found[0]
    assert 0 < head.inputs <= len(data)
    refuses(lambda: head.predict([[0.0] * head.inputs, [1.0] * head.inputs]))
    assert refuses(lambda: head.predict([[0.0] * (head.inputs + 1)]))
