"""Orders of training programs when reading tokens.

They are pure functions of seed, epoch and ranks.

Sources: Modalities 0.5, ``samplers.py`` and ``dataset.py``; OLMo-core 2, ``data_loader.py`` and ``numpy_dataset.py``;
Megatron-LM core 0.16, ``gpt_dataset.py``, ``helpers.cpp`` and ``data_samplers.py``.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from toolkit.config.settings import ConfigStruct
from toolkit.errors import ConfigError
from toolkit.lazy_numpy import np
from toolkit.text.kernels.signatures import Array


class Read(NamedTuple):
    """Tokens of a rank: a stretch of a file, by the file's number."""

    rank: int
    sample: int
    file: int
    first: int
    end: int


class FileOfTokens(NamedTuple):
    """Tokens of a file, and the lengths of its entries.

    Megatron calls these documents.
    """

    tokens: int
    lengths: Callable[[], Array]


class Order(ConfigStruct, kw_only=True):
    """The file of ``--of``: how a training program reads files of tokens.

    Attributes:
        reader: the program
        files: files of tokens, in the order of the program
        sequence_length: tokens of a sample; `block_size` of Modalities (its `sequence_length` + 1)
        batch: samples of a step, over all ranks
        seed: the seed of the data: `random_seed`, `data_loader.seed`, sampler `seed`
        epoch: OLMo-core (from 1) and Modalities (from 0); null: the first
        ranks: data parallel ranks
        micro_batch: Megatron: samples of a rank at a time; null: all of its step at once
        samples: Megatron: samples that the data set was built for; null: one epoch
        share: Megatron: part of the documents that train, the first
        shuffle: OLMo-core and Modalities: whether samples are shuffled
        drop_last: Modalities: whether the last incomplete round goes
        skip: Modalities: `skip_num_global_samples`
        reuse_last_target: Modalities: whether samples overlap by one token
    """

    reader: Literal["megatron", "olmo_core", "modalities"]
    files: list[str]
    sequence_length: int
    batch: int
    seed: int = 0
    epoch: int | None = None
    ranks: int = 1
    micro_batch: int | None = None
    samples: int | None = None
    share: float = 1.0
    shuffle: bool = True
    drop_last: bool = True
    skip: int = 0
    reuse_last_target: bool = True

    def step(self, number: int, files: Sequence[FileOfTokens]) -> list[Read]:
        """Return the reads of all ranks in a step.

        Steps count from 1.

        Raises:
            ConfigError: If there is no such step, or the batch cannot be divided.
        """
        local = self.batch // self.ranks
        if self.batch < 1 or self.batch % self.ranks or local % (self.micro_batch or local):
            raise ConfigError(f"batch: expected a multiple of ranks × micro_batch, got {self.batch}")
        order, pieces = getattr(self, f"_{self.reader}")(files)
        begin, results = (number - 1) * local, list[Read]()
        for rank, samples in enumerate(order):
            if begin < 0 or begin + local > len(samples):
                steps = len(samples) // local
                raise ConfigError(f"--step: expected a step from 1 to {steps:,}, got {number:,}")
            for sample in samples[begin : begin + local].tolist():
                results += [Read(rank, sample, *piece) for piece in pieces(sample)]
        return results

    def _modalities(self, files: Sequence[FileOfTokens]) -> tuple[list[Array], Callable[[int], list[Any]]]:
        size = self.sequence_length
        stride = size - 1 if self.reuse_last_target else size
        counts = [(file.tokens - size) // stride + 1 for file in files]
        order = modalities_order(
            sum(counts), self.seed, self.epoch or 0, self.ranks, self.shuffle, self.drop_last, self.skip
        )
        return order, _chunks(counts, stride, size)

    def _olmo_core(self, files: Sequence[FileOfTokens]) -> tuple[list[Array], Callable[[int], list[Any]]]:
        counts = [file.tokens // self.sequence_length for file in files]
        epoch = 1 if self.epoch is None else self.epoch
        order = olmo_core_order(sum(counts), self.seed, epoch, self.ranks, self.batch, self.shuffle)
        return order, _chunks(counts, self.sequence_length, self.sequence_length)

    def _megatron(self, files: Sequence[FileOfTokens]) -> tuple[list[Array], Callable[[int], list[Any]]]:
        if len(files) != 1:
            raise ConfigError(f"files: expected one file: blends of Megatron are not known here, got {len(files)}")
        lengths = files[0].lengths()
        begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        trained = lengths[: round(self.share * len(lengths))]
        documents, order = megatron_order(trained, self.sequence_length, self.seed, self.samples)
        ends = np.cumsum(lengths[documents])

        def pieces(sample: int) -> list[tuple[int, int, int]]:
            first = sample * self.sequence_length
            last = min(first + self.sequence_length + 1, int(ends[-1]))
            results = []
            while first < last:
                i = int(np.searchsorted(ends, first, "right"))
                length = int(lengths[documents[i]])
                at = int(begins[documents[i]]) + first - (int(ends[i]) - length)
                count = min(int(ends[i]), last) - first
                results.append((0, at, at + count))
                first += count
            return results

        rows = order[: len(order) // self.batch * self.batch]
        rows = rows.reshape(-1, self.ranks, self.micro_batch or self.batch // self.ranks)
        return [rows[:, rank].reshape(-1) for rank in range(self.ranks)], pieces


def _chunks(counts: Sequence[int], stride: int, size: int) -> Callable[[int], list[Any]]:
    bounds = np.cumsum([0, *counts])

    def pieces(sample: int) -> list[tuple[int, int, int]]:
        file = int(np.searchsorted(bounds, sample, "right")) - 1
        first = (sample - int(bounds[file])) * stride
        return [(file, first, first + size)]

    return pieces


def modalities_order(  # the arguments of their sampler
    samples: int, seed: int, epoch: int, ranks: int, shuffle: bool, drop_last: bool = True, skip: int = 0
) -> list[Array]:
    """Return the samples of each rank, as `ResumableDistributedSampler` of Modalities has them."""
    full = torch_randperm(samples, seed + epoch) if shuffle else np.arange(samples)
    left = full[skip:]
    if drop_last:
        left = left[: len(left) // ranks * ranks]
    elif samples:
        left = np.concatenate([left, np.resize(full, -len(left) % ranks)])
    return [left[rank::ranks] for rank in range(ranks)]


def olmo_core_order(  # the arguments of their loader
    samples: int, seed: int, epoch: int, ranks: int, batch: int, shuffle: bool = True
) -> list[Array]:
    """Return the samples of each rank, as `NumpyFSLDataLoader` of OLMo-core has them."""
    indices = np.arange(samples, dtype=np.uint32)
    if shuffle:
        np.random.Generator(np.random.PCG64(seed=seed + epoch)).shuffle(indices)
    rows = indices[: samples // batch * batch].reshape(-1, batch)
    return [rows[:, rank::ranks].reshape(-1) for rank in range(ranks)]


def megatron_order(lengths: Array, size: int, seed: int, samples: int | None = None) -> tuple[Array, Array]:
    """Return the order of documents, and the order of samples.

    Documents are cut into samples; samples are trained on in their order.

    As `GPTDataset` of Megatron has them (`document_index` and `shuffle_index`), with one more token for each sample.

    Args:
        lengths: Tokens of each document.
        size: Tokens of a sample.
        seed: Seed.
        samples: Samples that are asked for; None for one epoch.
    """
    tokens = int(np.sum(lengths))
    epochs = 1 if samples is None else max(1, -(-(samples * size + 1) // tokens))
    before = ((epochs - 1) * tokens - 1) // size if epochs > 1 else 0
    is_apart = epochs > 1 and (samples or 0) - before < int(0.80 * ((tokens - 1) // size))
    state = np.random.RandomState(seed)

    def shuffled(times: int) -> Array:
        documents = np.tile(np.arange(len(lengths), dtype=np.int32), times)
        state.shuffle(documents)
        return documents

    documents = np.concatenate([shuffled(epochs - 1), shuffled(1)]) if is_apart else shuffled(epochs)
    total = (epochs * tokens - 1) // size
    order = list[Array]()
    for first, end in pairwise([0, before, total] if is_apart else [0, total]):
        order.append(np.arange(first, end, dtype=np.uint32))
        state.shuffle(order[-1])
    return documents, np.concatenate(order)


def torch_randperm(items: int, seed: int) -> Array:
    """Return ``torch.randperm`` of a seed, on a CPU."""
    random = np.random.RandomState(seed & 0xFFFFFFFF)._bit_generator.random_raw(items).astype(np.int64)  # noqa: SLF001
    steps = (random % np.arange(items, 0, -1)).tolist()
    results = list(range(items))
    for i, step in enumerate(steps):
        results[i], results[i + step] = results[i + step], results[i]
    return np.array(results, np.int64)
