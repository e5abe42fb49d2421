"""Tiny classifiers, as folders. ``python -m tests.text.encoders.classifiers`` makes those of examples."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import ROOT

FILES = ROOT / "tests/taggers/files"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
VOCABULARY = len(SPECIAL) + 256


def write_tokenizer(folder: Path, words: Sequence[str] = ()) -> None:
    """A token for each byte, or for each of some words; and those of RoBERTa around a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    known = words or sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *known])}
    if words:
        made = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens([*SPECIAL])
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(json.loads(made.to_str()), ensure_ascii=False))


def write_encoder(
    folder: Path, *, head: bool = True, hidden: int = 8, words: Sequence[str] = (), **config: Any
) -> Path:
    """A RoBERTa of two layers with random weights: with a head for what `config` says, or without one."""
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    given = {"num_labels": 1, **config}
    made = transformers.RobertaConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=2 * hidden, max_position_embeddings=66, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        type_vocab_size=1, initializer_range=0.5, **given,
    )  # fmt: skip
    class_ = transformers.RobertaForSequenceClassification if head else transformers.RobertaModel
    class_(made).save_pretrained(folder)
    write_tokenizer(folder, words)
    return folder


def write_onnx(
    folder: Path,
    width: int = 1,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "logits",
    shape: Sequence[Any] | None = None,
    **config: Any,
) -> Path:
    """A model that gives the mean over tokens of eighths that each has: the same on all machines."""  # fmt: skip
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    table = np.random.default_rng(7).integers(-32, 33, (VOCABULARY, width)).astype(np.float32) / 8
    axes = numpy_helper.from_array(np.array([1], np.int64), "axes")
    last = numpy_helper.from_array(np.array([2], np.int64), "last")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["there"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["there", "last"], ["each"]),
        helper.make_node("Mul", ["rows", "each"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axes"], ["sums"], keepdims=0),
        helper.make_node("ReduceSum", ["there", "axes"], ["counts"], keepdims=1),
        helper.make_node("Div", ["sums", "counts"], [output]),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, list(shape or ["texts", width]))],
        [numpy_helper.from_array(table, "table"), axes, last],
    )
    folder.mkdir(parents=True, exist_ok=True)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(folder / "model.onnx"))
    write_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(config or {"id2label": {"0": "score"}}))
    return folder


def main() -> None:
    write_encoder(FILES / "hf_classifier")
    write_onnx(FILES / "onnx_classifier")
    for path in sorted([*(FILES / "hf_classifier").iterdir(), *(FILES / "onnx_classifier").iterdir()]):
        sys.stdout.write(f"{path.relative_to(ROOT)} {path.stat().st_size:,}\n")


if __name__ == "__main__":
    main()
