"""The section ``mix:`` of a configuration, with what `about.splits` says of the files of the output."""

import msgspec

from toolkit.commands.steps.context import Context
from toolkit.inspect.describe.about import read_splits
from toolkit.mix.section import read_section
from toolkit.mix.settings import MixSettings


def read(context: Context) -> MixSettings:
    """Return the settings of a configuration's mix.

    Raises:
        ConfigError: naming the place in the file.
    """
    found = read_section(context.section("mix"), context.folder, lambda: context.dataset)
    splits = read_splits(context.section("about")) if context.has("about") else None
    return msgspec.structs.replace(found, splits=splits.shares) if splits and splits.by == "file" else found
