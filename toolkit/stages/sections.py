"""The stages of a run, each a section of the configuration and a command; and which commands write records."""

MAKING = ("align", "tag", "make", "dedup", "sample", "annotate", "calibrate")
"""The sections that make attribute sets, which are commands as well, in the order of a run: documents of a sample are
annotated, and scores of annotations calibrated."""

WHOLE = ("dedup", "sample", "calibrate")
"""The sections whose sets are made of the whole dataset."""

STAGES = ("ingest", *MAKING, "mix", "tokenize")
"""The stages of a run, in order."""

WRITES = ("run", *STAGES, "train", "validate", "evaluate", "export", "clean", "takedown")
"""Commands that write records of datasets."""

REMAKES = ("ingest", "align", "tag", "make", "annotate", "run")
"""Those that have made again, or will, what was lost with damaged records of row indexes and sets."""


def before(section: str) -> list[str]:
    """Return the sections whose sets a section may read; models read those of all."""
    return [*MAKING[: MAKING.index(section) if section in MAKING else len(MAKING)]]
