"""How far a set of duplicates is: what a run would do, without doing it."""

from collections.abc import Sequence

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import ToolkitError
from toolkit.storage.paths import looking
from toolkit.storage.threads import for_each
from toolkit.whole import resolve, sign, write
from toolkit.whole.records import fates_folder, load_resolution
from toolkit.whole.section import Entry

UNSIGNED = "its signatures are missing, or what they were made from has changed"
UNRESOLVED = "it has signatures; the set has not been resolved over all shards"
UNWRITTEN = "it is resolved; its attributes are missing, or what they were made from has changed"


def look(dataset: Dataset, entry: Entry, shards: Sequence[str], *, whole: bool = True) -> dict[str, str]:
    """Return why each shard of a set is not done; nothing for one that is.

    Args:
        dataset: of the set.
        entry: of the section.
        shards: to look at.
        whole: whether these are all that are resolved together; else it is believed that nothing else has changed.
    """
    with dataset.looking({entry.set, *entry.reads}), looking(sign.folder_of(dataset, entry)):
        return _look(dataset, entry, shards, whole=whole)


def _look(dataset: Dataset, entry: Entry, shards: Sequence[str], *, whole: bool) -> dict[str, str]:
    folder = sign.folder_of(dataset, entry)
    resolution = load_resolution(dataset, entry.set)

    def is_signed(shard: str) -> bool:
        try:
            return sign.is_signed(dataset, entry, folder, shard, row_index.current(dataset, shard))
        except ToolkitError:
            return False

    found = {
        shard: "" if is_signed else UNSIGNED
        for shard, is_signed in zip(shards, for_each(is_signed, shards), strict=True)
    }
    if resolution is None or any(found.values()):
        return {shard: why or UNRESOLVED for shard, why in found.items()}
    try:
        signed = resolve.signed_shards(dataset, entry, shards)
    except ToolkitError:
        return dict.fromkeys(shards, UNRESOLVED)
    fates = fates_folder(dataset, entry.set, resolution.key)
    if whole:
        resolved = resolve.is_current(entry, resolution, resolve.key_of(entry, signed), fates)
    else:
        resolved = all(resolution.shards.get(each.shard) == each.record.input.content for each in signed if each.own)
    if not resolved:
        return dict.fromkeys(shards, UNRESOLVED)
    works = [write.ShardToWrite(entry=entry, signed=each, fates=fates) for each in signed if each.own]
    late = for_each(write.outdated, works)
    return {work.signed.shard: UNWRITTEN if is_late else "" for work, is_late in zip(works, late, strict=True)}
