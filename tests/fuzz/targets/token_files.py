"""Files of tokens and their indexes: ``.pbin``, Megatron's ``.bin`` and ``.idx``, Dolma's and NumPy's arrays.

An input is a kind (the first byte), the length of the first file (2 bytes), that file, and the one beside it.
"""

import io
import pickle
import pickletools
import struct

from mixers._token_files import KINDS, Entry
from tests.fuzz.targets._files import file_of, refuses

_NAMES = sorted(KINDS)


def _seed(number: int) -> bytes:
    kind = KINDS[_NAMES[number]]
    outs = [io.BytesIO() for _ in range(1 + len(kind.BESIDE))]
    entries = [Entry(b"\1\0\2\0", "1", "s"), Entry(b"\3\0", "2", "s"), Entry(b"", "3", "s")]
    kind.write(entries, 2, *outs)
    first, *rest = (out.getvalue() for out in outs)
    return bytes([number]) + struct.pack("<H", len(first)) + first + b"".join(rest)


SEEDS = [_seed(number) for number in range(len(_NAMES))]


def check(data: bytes) -> None:
    if len(data) < 3:
        return
    name = _NAMES[data[0] % len(_NAMES)]
    kind = KINDS[name]
    size = int.from_bytes(data[1:3], "little")
    stored, beside = data[3 : 3 + size], data[3 + size :]
    path, other = file_of(stored), file_of(beside, "beside")
    found: list[int] = []
    refused = refuses(lambda: found.append(kind.check(path, [other] * len(kind.BESIDE))))
    if refused or name != "pbin":
        return
    tokens, width = struct.unpack_from("<QI", stored)
    index = stored[12 + tokens :]
    assert all(each.name not in ("GLOBAL", "STACK_GLOBAL", "REDUCE") for each, _, _ in pickletools.genops(index))
    pairs = pickle.loads(index)  # what the training program does; the assertion before says it is data
    assert found == [len(pairs)]
    at = 0
    for offset, length in pairs:
        assert offset == at
        assert length % width == 0
        at += length
    assert at == tokens
