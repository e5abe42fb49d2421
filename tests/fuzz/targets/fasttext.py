"""fastText models: refused, or compiled code predicts the same twice. `test_models` asks the library, too."""

import struct

import numpy as np

from tests.fuzz.targets._files import file_of, refuses
from toolkit.text.fasttext import model_file
from toolkit.text.fasttext.model import _Compiled
from toolkit.text.line_table import LineTable

_WORDS = [b"</s>", b"alpha", b"beta", "é".encode()]
_LABELS = [b"__label__a", b"__label__b", b"__label__c"]


def _seed(loss: int, minn: int = 2, maxn: int = 3, ngrams: int = 2, dim: int = 2, bucket: int = 4) -> bytes:
    """A model as fastText writes it, of a few hundred bytes."""
    entries = [(word, 0) for word in _WORDS] + [(label, 1) for label in _LABELS]
    head = struct.pack("<14i", 793712314, 12, dim, 5, 5, 1, 5, ngrams, loss, 3, bucket, minn, maxn, 100)
    words = struct.pack("<3iqq", len(entries), len(_WORDS), len(_LABELS), 20, -1)
    words += b"".join(text + b"\0" + struct.pack("<qb", 9 - i, kind) for i, (text, kind) in enumerate(entries))
    rows = len(_WORDS) + bucket
    numbers = [((i * 7) % 11 - 5) / 10 for i in range(dim * (rows + len(_LABELS)))]
    inner = struct.pack(f"<?qq{dim * rows}f", False, rows, dim, *numbers[: dim * rows])
    outer = struct.pack(f"<?qq{dim * len(_LABELS)}f", False, len(_LABELS), dim, *numbers[dim * rows :])
    return head + struct.pack("<d", 1e-4) + words + inner + outer


SEEDS = [_seed(3), _seed(1, minn=0, maxn=0, ngrams=1), _seed(4, dim=3), _seed(2)]
TEXTS = LineTable.of(["alpha beta é unseen\n\na" + "b" * 200])


def check(data: bytes) -> None:
    path, found = file_of(data), list[_Compiled]()
    if refuses(lambda: found.append(_Compiled(model_file.read(path)))):
        return
    (labels, probs), again = (found[0](TEXTS, k=2, threshold=0.0) for _ in range(2))
    assert np.isfinite(probs).all()
    assert (labels.tobytes(), probs.tobytes()) == (again[0].tobytes(), again[1].tobytes())
