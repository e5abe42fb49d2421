"""Checks of all places that a configuration reads and writes against each other, before any is touched."""

from collections.abc import Iterable
from typing import Any

from toolkit.data.dataset import Dataset
from toolkit.data.places import Inside, Place, check_apart, is_within, normal
from toolkit.errors import ConfigError
from toolkit.ingest.plan import InputToIngest
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.stages.context import Context
from toolkit.storage import store_of


def of_dataset(dataset: Dataset, name: str = "") -> list[Place]:
    """Return the folders of a dataset: its documents, its attributes, and the records that lie outside both.

    Records that a stream keeps in the work folder of the output are part of that.
    """
    whose = f" of the stream {name}" if name else ""
    documents = Place(dataset.documents, f"the documents{whose}", is_flat=dataset.is_flat)
    found = [documents, Place(dataset.attributes, f"the attributes{whose}")]
    return found if dataset.notes else [*found, Place(dataset.bookkeeping, f"the records{whose}")]


def check_dataset(dataset: Dataset, where: str) -> None:
    """Check that documents and attributes are apart.

    Attributes may lie below documents where globs say which files are documents, or these are in place and lie flat.

    Raises:
        ConfigError: if one would be taken for the other.
    """
    documents, attributes = normal(dataset.documents), normal(dataset.attributes)
    chosen = bool(dataset.include or dataset.exclude or dataset.is_flat) and documents != attributes
    if is_within(documents, attributes) or (is_within(attributes, documents) and not chosen):
        raise ConfigError(
            f"{where}: expected separate folders for attributes and documents, got "
            f"{dataset.attributes} and {dataset.documents}"
        )


def check_mix(context: Context, settings: MixSettings) -> None:
    """Check where a mix writes: output and dropped documents, against each other and all datasets.

    Raises:
        ConfigError: naming both places.
    """
    output, rejected = settings.output.path, settings.rejected
    written = [Place(output, "the output", settings.place)]
    if rejected is not None:
        written.append(Place(rejected, "`rejected`", settings.place))
        check_apart([written[1]])
        if store_of(rejected).volume(rejected) != store_of(output).volume(output):
            raise ConfigError(
                f"{settings.place}: expected `rejected` in the same store (and bucket) as the output {output}, got "
                f"{rejected}"
            )
    datasets = [(stream.dataset, stream.name) for stream in settings.streams]
    if context.has_dataset and context.dataset not in [dataset for dataset, _ in datasets]:
        datasets.append((context.dataset, ""))
    for dataset, _ in datasets:
        if dataset.notes:
            _check_notes(dataset, settings)
        else:
            check_dataset(dataset, settings.place)
    check_apart(written, [place for dataset, name in datasets for place in of_dataset(dataset, name)])


def _check_notes(dataset: Dataset, settings: MixSettings) -> None:
    """Raise ConfigError for records of a stream that would lie among parts; its work folder has a place for them."""
    if is_within(normal(dataset.notes), normal(f"{work_folder(settings.output.path)}/inputs")):
        return
    check_apart(
        [Place(dataset.notes, "`bookkeeping`", settings.place)],
        [Place(settings.output.path, "the output"), Place(dataset.documents, "the documents")],
    )


def check_ingest(context: Context, works: Iterable[InputToIngest]) -> None:
    """Check that no input lies where this configuration writes: it would be read again and again.

    Raises:
        ConfigError: naming the input and the place.
    """
    dataset = context.dataset
    check_dataset(dataset, context.options.config or "")
    inside = Inside([*of_dataset(dataset), *_of_section(context.config.mix)])
    for where, file in ((work.entry.place, file) for work in works for file in work.files):
        if store_of(file.path).can_write and (place := inside.of(file.path)):
            raise ConfigError(
                f"{where}: expected inputs outside of {place.path} ({place.what}), which this configuration "
                f"writes, got {file.path}"
            )


def _of_section(mix: dict[str, Any]) -> list[Place]:
    """Return the folders that a ``mix:`` section names, as far as they can be told without reading it."""
    output = mix.get("output")
    named = [
        (output.get("path") if isinstance(output, dict) else None, "the output"),
        (mix.get("rejected"), "rejected"),
    ]
    return [Place(path, what) for path, what in named if isinstance(path, str) and path.strip() and "\0" not in path]
