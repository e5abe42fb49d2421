"""The section ``train:``: its entries, each a model, how it is made, and its folder, whose files appear together.

``card.json``    a `Card`, written last: without it, and with another model than it says, nothing is loaded
``SHA256SUMS``   of it and the model, for ``sha256sum -c``
"""

import hashlib
import importlib.metadata
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec
import xxhash

from toolkit import distribution
from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import current
from toolkit.errors import ConfigError, DataError, ToolkitError, UnknownPlugin, amount
from toolkit.exchange.checksummed import read_sealed
from toolkit.execution.executors import Report, Task
from toolkit.execution.grouped import tasks_of
from toolkit.learn.train.examples import DECODER, EXAMPLES, Example, Examples, measured
from toolkit.learn.train.trainer import TRAINERS, Trainer, TrainingInput
from toolkit.mix.join import JoinedShard, at_document, joint_rows
from toolkit.records import origins
from toolkit.records.external_sets import External
from toolkit.records.sets import SetSchema, ShardAttributes
from toolkit.storage import json_files, store_of
from toolkit.storage.freshness import Artifact, FileRecord, State, state, stored_sha256
from toolkit.storage.models import CARD, ModelFile, digest_of_files
from toolkit.storage.outputs import Output, OutputBatch
from toolkit.storage.paths import is_set_name, join, remove, remove_tree
from toolkit.text.batch import Batch
from toolkit.whole_corpus import corpus_config, resolve, sign
from toolkit.whole_corpus.corpus_config import Entry, Plan
from toolkit.whole_corpus.expressions import Evaluator
from toolkit.whole_corpus.records import set_folder

SUMS = "SHA256SUMS"


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a model: its kind, its training, its metrics.

    Attributes:
        version: Version of the form of the card.
        name: Name of the model.
        kind, task, labels: What it predicts, and how.
        licence: Licence of the model, if one was given.
        made_from: Digest of documents, labels and settings.
        settings, chosen: Settings with which it was trained, and those chosen by valid.
        documents: Number of documents of each split, by label.
        left_out: Number of documents that were not used, by reason.
        metrics: Metrics of valid and test, each beside its baseline.
        versions: Versions of the packages that trained it.
        files: Files of the model, with size and sha256.
    """

    version: int = 1
    name: str
    kind: str
    task: str
    labels: list[str]
    licence: str | None
    made_from: str
    settings: dict[str, Any]
    chosen: dict[str, Any]
    documents: dict[str, dict[str, int]]
    left_out: dict[str, int]
    metrics: dict[str, dict[str, Any]]
    versions: dict[str, str]
    files: dict[str, ModelFile]


class Card(Artifact, ModelFacts, frozen=True, kw_only=True):
    """The card of a model.

    Attributes:
        learnt_from: Digests of the attributes of each set that it learnt from, by digests of shards (see `labels_of`).
    """

    learnt_from: dict[str, dict[str, str]] = {}

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.made_from}

    @property
    def digest(self) -> str:
        """Return the identifying sha256 of the model."""
        return digest_of_files({name: file.sha256 for name, file in self.files.items()})


def labels_of(dataset: Dataset, set_name: str, shards: Iterable[str]) -> dict[str, str]:
    """Return the digests of a set's attributes, by digests of shards; shards without attributes are left out.

    The digest of a shard is of its path and of its documents, so that no other dataset has the same.
    """
    results: dict[str, str] = {}
    for shard in shards:
        state = current(dataset, shard)
        with suppress(DataError):
            if state is not None:
                key = xxhash.xxh3_64_hexdigest(f"{shard} {state.content}".encode())
                results[key] = ShardAttributes(dataset, set_name, shard).content()[:16]
    return results


def models_folder(dataset: Dataset) -> str:
    """Return the default folder of a dataset's models: beside its attributes."""
    parent, _, name = dataset.attributes.rstrip("/").rpartition("/")
    return join(parent, "models") if name == "attributes" and parent else "models"


def with_files(dataset: Dataset, digests: Collection[str]) -> list[Card]:
    """Return the cards of the dataset's models with one of these sha256."""
    root = models_folder(dataset)
    cards = [load(join(root, name)) for name in store_of(root).folders(root)]
    return [card for card in cards if card and card.digest in digests]


def state_of(folder: str, card: Card | None, made_from: str | None) -> State:
    """Return the state of a model by the content of its files."""

    def files(card: Card) -> list[FileRecord]:
        listed = card.files.items()
        return [FileRecord(join(folder, name), file.size, "", file.sha256, stored_sha256) for name, file in listed]

    return state(card, [("", made_from)], files=files)


def load(folder: str) -> Card | None:
    """Return the card in a folder; None if there is none, or a damaged one."""
    return json_files.load(join(folder, CARD), Card)


def check_free(
    folder: str, name: str, made_from: str | None, card: Card | None, dataset: Dataset, *, overwrite: bool
) -> None:
    """Check the folder for a model: nothing is there, or the same model, or it may be replaced.

    Raises:
        ConfigError: if it may not.
    """
    if card is None or state(card, [("", made_from)]).is_done:
        return
    learnt = sum(card.documents.get("train", {}).values())
    goes = f"the model {card.name} ({amount(learnt, 'document')} to learn from)"
    if replaced := origins.check(folder, origins.load(*_split(folder)), [dataset], goes, overwrite=overwrite):
        print(replaced, file=sys.stderr)
    if overwrite:
        return
    raise ConfigError(
        f"{folder}: expected no model, or one made from the same labels with the same settings, got another one; give "
        f"the new one a name of its own ({name} stays, and sets that were made with it), or add --overwrite"
    )


def _split(folder: str) -> tuple[str, str]:
    """Return the parent folder of a model, and its name there. The parent has the records about it."""
    parent, _, name = folder.rstrip("/").rpartition("/")
    return parent or ("/" if folder.startswith("/") else "."), name


def write(folder: str, model: Mapping[str, bytes], card: Card, dataset: Dataset) -> None:
    """Write the files of a model, its card and checksums; `files` of the card are set here."""
    files = {name: ModelFile(size=len(data), sha256=hashlib.sha256(data).hexdigest()) for name, data in model.items()}
    text = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(card, files=files)), indent=1) + b"\n"
    digests = {name: file.sha256 for name, file in files.items()} | {CARD: hashlib.sha256(text).hexdigest()}
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    remove(join(folder, CARD))  # what is not complete has none
    with OutputBatch() as together:
        for name, content in {**model, SUMS: sums.encode()}.items():
            with Output(join(folder, name), together) as output:
                output.write(content)
    parent, name = _split(folder)
    origins.save(parent, {name: origins.origin_of([dataset])})
    with Output(join(folder, CARD)) as output:
        output.write(text)


DEFAULT = "linear"
"""The kind of a model where none is named."""

_OF_ALL = {"when", "attributes"}


def read_section(section: ConfigNode, dataset: Dataset, schemas: Mapping[str, SetSchema], external: External) -> Plan:
    """Return the plan of the section: of each entry what `toolkit.whole_corpus` gathers for it.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not isinstance(section.value, dict):
        raise section.error((), "expected `MODEL: {labels: …, task: …}`")
    entries = section.at()
    entries.value = {name: as_whole(section.at(name), name) for name in section.value}
    plan = corpus_config.read_section(entries, dataset, schemas, "train", external=external)
    folders: dict[str, str] = {}
    for entry in plan.entries:
        folder = folder_of(dataset, entry)
        if folder in folders:
            raise section.error((entry.set,), f"expected a folder of its own, got that of {folders[folder]}: {folder}")
        folders[folder] = entry.set
    return plan


def as_whole(place: ConfigNode, name: str) -> dict[str, object]:
    """Return an entry as `toolkit.whole_corpus` takes it, its options checked.

    Raises:
        ConfigError: naming the place in the file.
    """
    if not is_set_name(name):
        raise place.error((), f"expected a name of letters, digits, - and _, got {name!r}")
    own, rest = config.divide(place, {"kind", *_OF_ALL})
    kind = own.value.get("kind", DEFAULT)
    try:
        class_ = TRAINERS.find(str(kind))
    except UnknownPlugin as error:
        raise UnknownPlugin(str(place.error(("kind",), str(error)))) from None
    config.refuse_unknown(rest, class_, {"kind", *_OF_ALL}, f"kind {kind}")
    config.convert(rest, class_, f"kind {kind}")
    return {**place.value, "kind": f"{class_.__module__}:{class_.__name__}", "as": "model"}


def trainer_of(entry: Entry) -> Trainer:
    """Return the kind of a model with its options."""
    kind = entry.configured()
    assert isinstance(kind, Trainer)
    return kind


def folder_of(dataset: Dataset, entry: Entry) -> str:
    """Return the folder of a model: beside the folder of the attributes, if no path is given."""
    path = trainer_of(entry).path
    if path is not None:
        if not path.strip():
            raise ConfigError(f"{entry.place}: path: expected a folder, got none")
        return path.rstrip("/")
    return join(models_folder(dataset), entry.set)


def made_from(dataset: Dataset, entry: Entry, shards: Sequence[str]) -> str | None:
    """Return a digest of all inputs of a model; None if that is not known without reading the documents.

    Raises:
        DataError: if attributes that are read are missing, damaged or stale.
    """
    digest = xxhash.xxh3_128(msgspec.json.encode(entry.recorded, order="sorted"))
    for shard in shards:
        state = current(dataset, shard)
        if state is None:
            return None
        reads = {name: ShardAttributes(dataset, name, shard, state).content() for name in entry.reads}
        digest.update(msgspec.json.encode([shard, state.content, reads]))
    return digest.hexdigest()


_TOGETHER = 256


class Making(msgspec.Struct):
    """Makes models.

    Attributes:
        dataset: Dataset whose documents are labelled.
        shards: Shards of it.
        max_document_bytes: Maximum bytes of a document.
        run: tasks, as `toolkit.stages.context.Context.run` does.
    """

    dataset: Dataset
    shards: Sequence[str]
    max_document_bytes: int
    run: Callable[..., list[Any]]

    def count(self, entry: Entry) -> tuple[Examples, Counter[str]]:
        """Return the examples, and reasons for left-out documents; nothing is written."""
        limit = self.max_document_bytes
        works = [JoinedShard.of(self.dataset, entry.joined, shard, limit) for shard in self.shards]
        tasks = tasks_of(works, [LabelCountTask(entry, work) for work in works])
        examples: list[Example] = []
        reasons = Counter[str]()
        for data, counts in self._run(f"counting the labels of {entry.set}", count_shard, tasks):
            examples += map(DECODER.decode, data.splitlines())
            reasons.update(counts)
        trainer = trainer_of(entry)
        return Examples.of(trainer.task, examples, trainer.scale), reasons

    def make(self, entry: Entry, where: str) -> Card:
        """Train a model, and write its folder."""
        trainer = trainer_of(entry)
        tasks = sign.works(self.dataset, [entry], self.shards, self.max_document_bytes)
        self._run(f"gathering the texts of {entry.set}", sign.sign_shard, tasks)
        signed = resolve.signed_shards(self.dataset, entry, self.shards)
        results = [
            DECODER.decode(line)
            for signed_shard in signed
            for line in read_sealed(signed_shard.path(EXAMPLES)).splitlines()
        ]
        examples = Examples.of(trainer.task, results, trainer.scale)
        examples.check(trainer.minimum)
        reasons = Counter[str]()
        for signed_shard in signed:
            reasons.update(signed_shard.record.counts)
        shards = [join(signed_shard.folder, signed_shard.shard) for signed_shard in signed]
        work = TrainingInput(shards, examples, join(set_folder(self.dataset, entry.set), "fit"), entry.set, self._run)
        fitted = trainer.fit(work)
        digest = made_from(self.dataset, entry, self.shards)
        if digest is None:
            raise DataError(
                "expected documents that do not change while a model is trained, got some that have changed; run again"
            )
        card = Card(
            name=entry.set,
            kind=entry.kind.rpartition(":")[0].rpartition(".")[2],
            task=trainer.task,
            labels=examples.names,
            licence=trainer.licence,
            made_from=digest,
            settings=entry.settings,
            chosen=fitted.chosen,
            documents=examples.counts(),
            left_out=dict(reasons),
            metrics=measured(examples, fitted.values),
            versions={name: importlib.metadata.version(name) for name in (distribution.NAME, *trainer.PACKAGES)},
            files={},
            learnt_from={name: labels_of(self.dataset, name, self.shards) for name in entry.reads},
        )
        write(where, {trainer.file: fitted.model, **fitted.beside}, card, self.dataset)
        found_card = load(where)
        assert found_card
        return found_card

    def clear(self, entry: Entry) -> None:
        """Delete the intermediate files of a finished training; also what an earlier run could not delete."""
        remove_tree(set_folder(self.dataset, entry.set))

    def _run(self, title: str, function: Callable[[Any, Report], Any], tasks: Sequence[Task[Any]]) -> list[Any]:
        unit = "shards" if tasks and tasks[0].key in self.shards else "tasks"
        results = self.run(title, function, tasks, unit, spreads=unit == "tasks")
        if broken := [result.failure for result in results if result.failure]:
            more = f"\nand {len(broken) - 1} more failures" if len(broken) > 1 else ""
            raise ToolkitError(broken[0].message + more)
        return [result.value for result in results]


class LabelCountTask(ConfigStruct):
    """A shard with labels to count."""

    entry: Entry
    work: JoinedShard


def count_shard(job: LabelCountTask, report: Report) -> tuple[bytes, dict[str, int]]:
    """Return the examples of a shard, and reasons for left-out documents. Examples are JSON Lines."""
    entry, whole, trainer = job.entry, job.work, trainer_of(job.entry)
    checked = entry.checked()
    evaluator = Evaluator(checked, len(entry.joined))
    keys = {name for item in checked for name in item.expression.names if name != "document"}
    result: list[bytes] = []
    reasons = Counter[str]()
    rows = joint_rows(whole, keys)
    first = 0
    while some := list(islice(rows, _TOGETHER)):
        try:
            documents = Batch([document for document, _, _, _ in some])
            examples, why = trainer.examples(evaluator.block(first, documents, [values for *_, values in some]))
        except DataError as error:
            raise at_document(error, whole, error.line or first + 1, error.id) from None
        result += [msgspec.json.encode(example) for example in examples if example]
        reasons.update(why)
        first += len(some)
        report(len(some), 0)
    return b"\n".join(result), dict(reasons)
