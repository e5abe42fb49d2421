"""Files of tokenizers, whose library is in Rust: refused, or our code encodes as the library does."""

import json
from itertools import pairwise
from pathlib import Path

from tests.fuzz.targets._files import file_of, refuses
from toolkit.text.tokens.tokenizer import Tokenizer

_BYTE_LEVEL = {
    "version": "1.0",
    "added_tokens": [{
        "id": 6, "content": "<e>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": True,
    }],
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "post_processor": None,
    "decoder": {"type": "ByteLevel"},
    "model": {
        "type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False,
        "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120a": 4, "aba": 5},
        "merges": [["a", "b"], ["\u0120", "a"], ["ab", "a"]],
    },
}  # fmt: skip
TEXTS = ["", "ab aba a", "abab<e>ab", "ab  \n a's"]
SEEDS = [json.dumps(_BYTE_LEVEL).encode(), json.dumps(_BYTE_LEVEL | {"normalizer": {"type": "NFC"}}).encode()]
for _path in (Path(__file__).parents[2] / "taggers" / "files").glob("tokenizer.json"):
    SEEDS += [_path.read_bytes()] if _path.stat().st_size < 20_000 else []


def check(data: bytes) -> None:
    path, found = file_of(data, "tokenizer.json"), list[Tokenizer]()
    if refuses(lambda: found.append(Tokenizer(path))):
        return
    tokenizer = found[0]
    try:
        wanted = [tokenizer.library.encode(text, add_special_tokens=False).ids for text in TEXTS]
    except Exception:  # the library itself fails: its kinds are its own
        refuses(lambda: tokenizer.encode(TEXTS))
        return
    tokens, bounds = tokenizer.encode(TEXTS)
    assert [tokens[a:b].tolist() for a, b in pairwise(bounds)] == wanted
