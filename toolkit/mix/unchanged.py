"""Tells if a mix of these shards, by these settings, is what is published already."""

from collections.abc import Callable, Sequence

import msgspec
import xxhash

from toolkit.mix import plan, publish
from toolkit.mix.join import ShardToMix
from toolkit.mix.publish import Manifest
from toolkit.mix.settings import MixSettings
from toolkit.mix.stage import inputs_now
from toolkit.storage.threads import for_each

Inputs = Callable[[ShardToMix], tuple[str, dict[str, str]] | None]
"""The content digests of a shard's documents, and of its attributes by set; None if they are not right."""


def whole(listed: Sequence[ShardToMix], inputs: Inputs = inputs_now) -> Manifest | None:
    """Return the manifest, if just this mix of just these inputs is published already."""
    settings = listed[0].settings
    output = settings.output.path
    manifest = publish.load_manifest(output)
    here = [(w.stream.name, w.shard) for w in listed]
    if manifest is None or manifest.omitted or [(e.stream, e.shard) for e in manifest.inputs] != here:
        return None
    pairs = list(zip(listed, manifest.inputs, strict=True))
    if not all(for_each(lambda pair: inputs(pair[0]) == (pair[1].documents, pair[1].attributes), pairs)):
        return None
    found: plan.Inputs = sorted((work.key, entry.documents, entry.attributes) for work, entry in pairs)
    digest = plan.digest_of(found, settings.stage_digest(), settings.output.part_size, [])
    is_ours = manifest.digest == digest and not publish.is_unfinished(output)
    return manifest if is_ours and not publish.fault_of(output, manifest) else None


class Published:
    """The published shards, as far as they were made by these settings.

    Attributes:
        shards: how many there are in it.
        fault: what is wrong with its files, if they are those of these settings.
    """

    def __init__(self, settings: MixSettings) -> None:
        output = self._output = settings.output.path
        manifest = publish.load_manifest(output)
        self._digest = manifest and manifest.digest
        self._is_unfinished = manifest is not None and publish.is_unfinished(output)
        if manifest and manifest.settings != settings.recorded():
            manifest = None
        self.fault = publish.fault_of(output, manifest) if manifest else ""
        if manifest and (self.fault or self._is_unfinished):
            manifest = None
        listed = manifest.inputs if manifest else []
        self._entries = {(e.stream, e.shard): _digest(e.documents, e.attributes) for e in listed}
        self.shards = len(self._entries)

    def has_changed(self) -> bool:
        """Return whether another mix has been published since: what it was made of is not there any more."""
        manifest = publish.load_manifest(self._output)
        if (manifest and manifest.digest) != self._digest:
            return True
        return self._is_unfinished and not publish.is_unfinished(self._output)

    def knows(self, work: ShardToMix) -> bool:
        """Return True if a shard is in it, as it was."""
        return (work.stream.name, work.shard) in self._entries

    def has(self, work: ShardToMix, inputs: tuple[str, dict[str, str]] | None) -> bool:
        """Return True if a shard is in it, as it is."""
        return inputs is not None and self._entries.get((work.stream.name, work.shard)) == _digest(*inputs)


def _digest(documents: str, attributes: dict[str, str]) -> bytes:
    """Return one digest of those of a shard: 100,000 shards have a million of them."""
    return xxhash.xxh3_128_digest(msgspec.json.encode((documents, attributes), order="sorted"))


def among(listed: Sequence[ShardToMix], inputs: Inputs = inputs_now) -> bool:
    """Return True if what is published was made by these settings, of these shards, among others, as they are."""
    if not listed:
        return True
    found = Published(listed[0].settings)
    return all(for_each(lambda work: found.has(work, inputs(work)), listed))
