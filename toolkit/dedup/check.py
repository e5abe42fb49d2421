"""Checks of sets of duplicates that somebody is about to use: made as the section says, resolved over these shards."""

from collections.abc import Collection, Iterable, Mapping

from toolkit.config.settings import Source
from toolkit.data.dataset import Dataset
from toolkit.dedup import section as dedup_section
from toolkit.dedup.records import load_resolution, resolution_path
from toolkit.errors import StaleError
from toolkit.records import sets
from toolkit.tag.declared import differences, made_otherwise

RUN = "; run `toolkit dedup`"


def check_made(section: Source, dataset: Dataset, names: Iterable[str], planned: Mapping[str, sets.SetSchema]) -> None:
    """Check that sets were made as the section ``dedup:`` says now; those that are not in it are not looked at.

    Args:
        section: of the configuration.
        dataset: that it is about.
        names: of the sets that are to be used.
        planned: sets that are there before.

    Raises:
        ConfigError: if one was made otherwise, or the section is not one.
    """
    plan = dedup_section.read_section(section, dataset, planned)
    for name in names:
        made = sets.load_schema(dataset, name)
        if made and name in plan.schemas and (found := differences(made, plan.schemas[name])):
            raise made_otherwise(name, "settings", found, "dedup")


def check_resolved(dataset: Dataset, set_name: str, shards: Collection[str], *, whole: bool) -> None:
    """Check that a set of duplicates was resolved over the shards that are there now; other sets are fine.

    Args:
        dataset: of the set.
        set_name: of any set.
        shards: that are to be used with it.
        whole: whether these are all that there are.

    Raises:
        StaleError: if it was resolved over others, so that a document may count as a copy of one that is gone, or not
            as one of a document that is new.
    """
    resolution = load_resolution(dataset, set_name)
    if resolution is None:
        return
    path = resolution_path(dataset, set_name)
    if new := sorted({*shards} - resolution.shards.keys()):
        raise StaleError(f"expected duplicates of all shards, got those without {_some(new)}{RUN}", path=path)
    if whole and (gone := sorted(resolution.shards.keys() - {*shards})):
        what = f"expected duplicates of the shards that there are, got those with {_some(gone)}, which are gone"
        raise StaleError(what + RUN, path=path)


def _some(shards: list[str]) -> str:
    return shards[0] + (f" and {len(shards) - 1} others" if shards[1:] else "")
