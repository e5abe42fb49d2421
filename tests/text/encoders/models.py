"""Tiny encoders with random numbers, as folders. ``python -m tests.text.encoders.models`` makes the one of examples."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import ROOT
from toolkit.text.encoders import tensors

TOKENIZER = ROOT / "tests/taggers/files/tokenizer.json"
LONGEST = 24
"""Tokens that the transformer takes by its folder."""
EXAMPLE = ROOT / "tests/taggers/files/encoder"


def vocabulary() -> int:
    return len(json.loads(TOKENIZER.read_text())["model"]["vocab"])


def write(folder: Path, arrays: dict[str, Any], files: dict[str, Any]) -> Path:
    """Write a folder of a model: its arrays, the tokenizer, and files of JSON by their names."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    (folder / "model.safetensors").write_bytes(tensors.packed(arrays, {"format": "pt"}))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def static(folder: Path, dimension: int = 3, **config: Any) -> Path:
    """Write a folder as model2vec saves it."""
    table = np.random.default_rng(1).integers(-8, 9, (vocabulary(), dimension)).astype(np.float32) / 8
    return write(folder, {"embeddings": table}, {"config.json": {"model_type": "model2vec", **config}})


def bert(
    folder: Path, modules: tuple[str, ...] = ("Transformer", "Pooling", "Normalize"), pooling: str = "mean", **more: Any
) -> Path:
    """Write a folder of sentence-transformers with a transformer of two layers."""
    config = {
        "model_type": "bert", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 32, "vocab_size": vocabulary(), "type_vocab_size": 2,
        "hidden_act": "gelu", **more,
    }  # fmt: skip
    chance = np.random.default_rng(2)

    def drawn(*shape: int) -> Any:
        return chance.normal(0, 0.4, shape).astype(np.float32)

    hidden, wide = 8, 16
    arrays = {
        "embeddings.word_embeddings.weight": drawn(vocabulary(), hidden),
        "embeddings.position_embeddings.weight": drawn(32, hidden),
        "embeddings.token_type_embeddings.weight": drawn(2, hidden),
        "embeddings.LayerNorm.weight": 1 + drawn(hidden),
        "embeddings.LayerNorm.bias": drawn(hidden),
    }
    for layer in range(2):
        for name, inner, outer in (
            ("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", hidden, wide), ("output.dense", wide, hidden),
        ):  # fmt: skip
            arrays[f"encoder.layer.{layer}.{name}.weight"] = drawn(outer, inner)
            arrays[f"encoder.layer.{layer}.{name}.bias"] = drawn(outer)
        for name in ("attention.output", "output"):
            arrays[f"encoder.layer.{layer}.{name}.LayerNorm.weight"] = 1 + drawn(hidden)
            arrays[f"encoder.layer.{layer}.{name}.LayerNorm.bias"] = drawn(hidden)
    files: dict[str, Any] = {
        "config.json": config,
        "sentence_bert_config.json": {"max_seq_length": LONGEST, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": 8,
            **{f"pooling_mode_{name}_tokens": name == pooling for name in ("mean", "max")},
            "pooling_mode_cls_token": pooling == "cls",
        },
    }
    files["modules.json"] = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(modules)
    ]
    return write(folder, arrays, files)


if __name__ == "__main__":
    static(EXAMPLE)
