"""Gopher's configuration, counted as datatrove counts, against datatrove's two Gopher filters with their defaults.

The paper leaves open how words and repetitions are counted: `gopher-paper` is the configuration as it stands.
"""

from tests.oracles.of_datatrove import GOPHER, Datatrove


class Gopher(Datatrove):
    """Gopher's rules with `variant: datatrove`."""

    NAME = "gopher"
    CONFIG = "gopher.yaml"
    REASONS = GOPHER
    SETTINGS = (
        "tag.gopher-0=[{tagger: gopher_quality, variant: datatrove}, {tagger: gopher_repetition, variant: datatrove}]",
    )
