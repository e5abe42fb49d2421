"""Checks of sets that are made of the whole dataset: made as the section says, resolved over the shards there are."""

from collections.abc import Collection, Iterable, Mapping

from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import Dataset
from toolkit.data.own_types import OwnTypes
from toolkit.errors import StaleError
from toolkit.records import sets
from toolkit.records.foreign import External
from toolkit.tag.declared import differences, made_otherwise
from toolkit.whole import section as dedup_section
from toolkit.whole.records import load_resolution, load_resolved


def check_made(
    section: ConfigNode,
    dataset: Dataset,
    names: Iterable[str],
    planned: Mapping[str, sets.SetSchema],
    name: str,
    own: OwnTypes | None,
    *,
    external: External,
) -> None:
    """Check that sets were made as a section says now; those that are not in it are not looked at.

    Args:
        section: of the configuration.
        dataset: that it is about.
        names: of the sets that are to be used.
        planned: sets that are there before.
        name: of the section.
        own: types of the own fields of documents, if they are known.
        external: as of `toolkit.whole.section.read_section`.

    Raises:
        ConfigError: if one was made otherwise, or the section is not one.
    """
    plan = dedup_section.read_section(section, dataset, planned, name, own, external=external)
    for each in names:
        made = sets.load_schema(dataset, each)
        if made and each in plan.schemas and (found := differences(made, plan.schemas[each])):
            raise made_otherwise(each, "settings", found, name)


def check_resolved(dataset: Dataset, set_name: str, shards: Collection[str], *, whole: bool) -> None:
    """Check that a set made of the whole was resolved over the shards that are there now; other sets are fine.

    Args:
        dataset: of the set.
        set_name: of any set.
        shards: that are to be used with it.
        whole: whether these are all that there are.

    Raises:
        StaleError: if it was resolved over others, so that a document may count as a copy of one that is gone, or not
            as one of a document that is new.
    """
    if load_resolution(dataset, set_name) is None:
        return
    resolved = load_resolved(dataset, set_name)
    path, command = dataset.attribute_path(set_name, ""), sets.command_of(dataset, set_name)
    found, run = _FOUND[command], f"; run `toolkit {command}`"
    if new := sorted({*shards} - resolved.keys()):
        raise StaleError(f"expected {found} of all shards, got one without {_some(new)}{run}", path=path)
    if whole and (gone := sorted(resolved.keys() - {*shards})):
        what = f"expected {found} of the present shards, got one with {_some(gone)}, which no longer exist"
        raise StaleError(what + run, path=path)


_FOUND = {"dedup": "a search for duplicates", "sample": "a sample", "calibrate": "a calibration"}


def _some(shards: list[str]) -> str:
    return shards[0] + (f" and {len(shards) - 1} others" if shards[1:] else "")
