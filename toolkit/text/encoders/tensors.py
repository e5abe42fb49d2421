"""Files of numbers in the form ``safetensors``: the header's length (uint64), the header (JSON), then the arrays.

Source: https://github.com/huggingface/safetensors. Written and read here, because arrays of numpy are all that is
needed; nothing in such a file is code.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import NoReturn

import msgspec

from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.text.kernels.signatures import Array

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U8": "u1", "BOOL": "?",
}  # fmt: skip
_HEADER = 1 << 26
_METADATA = "__metadata__"


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def packed(tensors: Mapping[str, Array], metadata: Mapping[str, str], digest: str = "") -> bytes:
    """Return the content of a file with float arrays.

    They are float32 or float64, in order.

    Args:
        tensors: Tensors by name.
        metadata: Metadata of the file.
        digest: the name under which the metadata get sha256 of the arrays; none without.
    """
    header: dict[str, object] = {}
    parts: list[bytes] = []
    end = 0
    for name, array in tensors.items():
        form = "F32" if array.dtype.itemsize == 4 else "F64"
        parts.append(array.astype(_TYPES[form]).tobytes())
        header[name] = _Tensor(form, list(array.shape), (end, end + len(parts[-1])))
        end += len(parts[-1])
    own = {digest: hashlib.sha256(b"".join(parts)).hexdigest()} if digest else {}
    text = msgspec.json.encode({**header, _METADATA: dict(metadata) | own})
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def read(
    path: str,
    is_selected: Callable[[str], bool] = bool,
    *,
    kind_of_file: str = "a file of the form safetensors",
    digest: str = "",
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays of a file by name, and its metadata. Half floats come as float32.

    Args:
        path: local.
        is_selected: says of a name whether the array is read.
        kind_of_file: it is, for messages.
        digest: the name under which the metadata have sha256 of the arrays, which is checked if it is there.

    Raises:
        ConfigError: if it is no whole file of this form.
    """

    def wrong(got: object) -> NoReturn:
        raise ConfigError(f"{path}: expected {kind_of_file}, whole, got {got}; train or copy it again")

    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= min(_HEADER, size - 8):
            wrong("a file of another kind, or the beginning of one")
        try:
            header = msgspec.json.decode(stream.read(length), type=dict[str, msgspec.Raw])
            metadata = msgspec.json.decode(header.pop(_METADATA, msgspec.Raw(b"{}")), type=dict[str, str])
            described = {name: msgspec.json.decode(raw, type=_Tensor) for name, raw in header.items()}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            wrong(error)
        begin = 8 + length
        end = max((tensor.data_offsets[1] for tensor in described.values()), default=0)
        if size != begin + end:
            wrong(f"{size:,} bytes where its header says {begin + end:,}")
        if digest in metadata:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            if sha256 != metadata[digest]:
                wrong("numbers that are not those that were written")
        results = {}
        for name, tensor in described.items():
            if not is_selected(name):
                continue
            count, at = int(np.prod(tensor.shape)), tensor.data_offsets
            if tensor.dtype not in _TYPES:
                wrong(f"{name} of type {tensor.dtype}")
            kind = np.dtype(_TYPES[tensor.dtype])
            if count < 0 or not 0 <= at[0] <= at[1] or count * kind.itemsize != at[1] - at[0]:
                wrong(f"{name} with {at[1] - at[0]:,} bytes for the shape {tensor.shape}")
            stream.seek(begin + at[0])
            array = np.frombuffer(stream.read(at[1] - at[0]), kind).reshape(tensor.shape)
            if tensor.dtype == "BF16":
                array = (array.astype(np.uint32) << 16).view(np.float32)
            results[name] = array.astype(np.float32) if tensor.dtype == "F16" else array
    return results, metadata
