"""Fine-tuned encoders: a model of a folder with a head for the task, trained by PyTorch (extra ``torch``).

Source: FineWeb-Edu's classifier (Penedo et al. 2024, arXiv:2406.17557), which trains the head of an encoder that stays
as it is; ml_filter's training of annotators, which trains both. AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101.
Bytes are not promised: sums depend on the device, the number of threads and the versions.
"""

import msgspec
import numpy as np

from toolkit.exchange.sealed import read_sealed
from toolkit.execution.executors import Task
from toolkit.learn.train.kinds.encoder.training import ROWS, TOKENS, EncoderOptions, ToTrain, train_encoder
from toolkit.learn.train.trainer import Fitted, Gatherer, Work
from toolkit.storage.paths import join
from toolkit.text.encoders.config import Outputs
from toolkit.text.encoders.torch_models import WEIGHTS
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.kind import Files, Signer


class Encoder(EncoderOptions, kw_only=True):
    """Fine-tuned encoders."""

    def signer(self, files: Files) -> Signer:
        """Return what writes the tokens of a shard."""
        return _Cutting(self, files)

    def fit(self, work: Work) -> Fitted:
        """Train in one task, which has the executor's device."""
        examples = work.examples
        outputs = Outputs(self.task, examples.names)
        task = Task(
            f"{work.name}: {self.epochs} epochs",
            ToTrain(
                kind=msgspec.json.encode(self),
                shards=work.shards,
                folder=work.folder,
                examples=msgspec.json.encode([examples.labels, examples.splits.tolist(), examples.pieces.tolist()]),
                weights=self.weights_of(examples).tobytes(),
            ),
            processes=self.threads,
            key="0",
        )
        (result,) = work.run(f"training {work.name}", train_encoder, [task])
        computed = np.frombuffer(result.values, np.float32).reshape(-1, outputs.width)
        values = np.full((len(computed), len(examples.names) or 1), np.nan)
        asked = ~np.isnan(computed).any(axis=1)
        values[asked] = outputs.outcomes(computed[asked])
        values = self.window.together(values, examples.rows_of) if self.window else values
        files = {name: read_sealed(join(work.folder, name)) for name in result.files}
        return Fitted(files.pop(WEIGHTS), values, result.chosen, files)


class _Cutting(Gatherer):
    """Writes the tokens of a shard's rows."""

    kind: Encoder

    def __init__(self, kind: Encoder, files: Files) -> None:
        super().__init__(kind, files)
        self._tokens = kind.tokens()
        self._numbers, self._rows = files.open(TOKENS), files.open(ROWS)

    def take(self, texts: list[str]) -> None:
        results = self._tokens.of(texts)
        numbers: Array = np.array([number for item in results for number in item], "<u4")
        self._numbers.write(numbers.tobytes())
        self._rows.write(np.array([*map(len, results)], "<u4").tobytes())
