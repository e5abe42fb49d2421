"""``toolkit tokenize`` beside ``dolma tokens`` and datatrove's ``DocumentTokenizer``: the same tokens."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.datasets import SPANS
from tests.benchmarks.files import open_gzip
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, both, faster

TOKENS, LEARNT_FROM = 50_257, 20 << 20
END = "<|endoftext|>"


def _tokenizer(root: Path, folder: Path) -> tuple[int, dict[str, int]]:
    """A byte-level BPE like GPT-2's, learnt from the first documents, as a file that older versions read, too."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    texts, size = [], 0
    for path in sorted((root / "documents").rglob("*.gz")):
        with open_gzip(path) as stream:
            for line in stream:
                texts.append(json.loads(line)["text"])
                size += len(texts[-1])
                if size > LEARNT_FROM:
                    break
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learns = trainers.BpeTrainer(
        vocab_size=TOKENS, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, learns)
    file = json.loads(made.to_str())
    merges = file["model"]["merges"]
    file["model"]["merges"] = [each if isinstance(each, str) else " ".join(each) for each in merges]
    (folder / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
    return size, {}


def made_tokenizer(inputs: Inputs) -> Path:
    """The file of the tokenizer."""
    root = inputs.dataset.path
    return inputs.made("tokenizer", lambda folder: _tokenizer(root, folder)).path / "tokenizer.json"


def _counts(folder: Path, usage: Usage) -> Counts:
    """How many tokens were written, and a digest of them in the order of their values: documents are shuffled."""
    import numpy as np

    paths = [path for path in (folder / "out").rglob("*") if path.suffix in (".npy", ".ds")]
    found = np.concatenate([np.fromfile(path, np.uint16) for path in paths])
    times = np.bincount(found, minlength=TOKENS)
    return {"tokens": len(found), "times": hashlib.sha256(times.tobytes()).hexdigest()[:8]}


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset = inputs.dataset
    root, text = dataset.path, dataset.text
    tokenizer = made_tokenizer(inputs)

    def ours(processes: int) -> Contender:
        def command(folder: Path) -> Command:
            section = {"path": str(folder / "out"), "tokenizer": str(tokenizer), "eod": END, "files": "dolma"}
            lent = datasets.lend(root, folder / "data")
            config = {"dataset": str(lent), "processes": processes, "tokenize": section}
            return toolkit("tokenize", "-c", datasets.write_config(folder / "t.yaml", config), "--quiet")

        return Contender(f"toolkit tokenize, {processes} process{'es' * (processes > 1)}", command, text, _counts)

    def of_dolma(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", SPANS)
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "tokens", str(lent), str(folder / "out"),
                str(tokenizer)]  # fmt: skip

    def of_datatrove(folder: Path) -> Command:
        lent = datasets.lend(root, folder / "data", SPANS)
        return [inputs.peers.python("datatrove"), "-I", HERE / "datatrove_run.py", "tokens",
                str(lent / "documents"), str(folder / "out"), str(tokenizer), str(folder)]  # fmt: skip

    one, two = ours(1), ours(2)
    dolma = Contender("dolma tokens", of_dolma, text, _counts)
    datatrove = Contender("datatrove DocumentTokenizer", of_datatrove, text, _counts)
    return [
        Benchmark(
            "Tokens",
            f"{dataset.facts['documents']:,} documents in more than a hundred languages become tokens of a byte-level "
            f"BPE of {TOKENS:,}, with the end of each document. `times` is a digest of how often each token is there. "
            f"{dataset.repeats}",
            (dolma, datatrove, one, two),
            (
                faster("Dolma / toolkit", one, dolma, metrics=both("cpu"), at_least=1.5),
                faster("datatrove / toolkit", one, datatrove, at_least=1.5),
                faster("2 processes: 1 / 2", two, one, metrics=("wall", "wall")),
            ),
            same=("tokens", "times"),
        )
    ]
