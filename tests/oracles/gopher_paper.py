"""Gopher's configuration as it stands, our reading of the paper, against datatrove's: readings, which differ."""

from tests.oracles.of_datatrove import GOPHER, Datatrove


class GopherPaper(Datatrove):
    """Gopher's rules with `variant: paper`."""

    NAME = "gopher"
    CONFIG = "gopher.yaml"
    REASONS = GOPHER
