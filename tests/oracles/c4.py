"""C4's configurations, with datatrove's numbers and sentences, against datatrove's C4QualityFilter with its defaults.

datatrove has neither C4's language nor its limit on the length of pages in this filter: both are left out.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.oracles.frame import Verdict, rows_of, run_config
from tests.oracles.of_datatrove import Datatrove


class C4(Datatrove):
    """C4's rules for lines and pages."""

    NAME = "c4"
    CONFIG = "c4.yaml"
    LEFT_OUT = ("language", "long")
    REASONS = {"lorem_ipsum": "lorem_ipsum", "curly_bracket": "curly_bracket", "few_sentences": "too_few_sentences"}
    SETTINGS = (
        "tag.c4-0={tagger: c4, variant: datatrove, min_words: 3, max_word_chars: 1000}",
        "mix.parameters.min_sentences=5",
    )


class C4Sentences(Datatrove):
    """C4's second step: pages without spans of three sentences that came before; not more than that of their ends."""

    NAME = "c4-sentences"
    CONFIG = "c4-sentences.yaml"

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        (folder / "documents").mkdir()
        (folder / "documents/pages.jsonl").symlink_to(pages)
        run_config(
            self.CONFIG,
            f"documents={folder / 'documents'}",
            f"attributes={folder / 'attributes'}",
            f"mix.output.path={folder / 'out'}",
            f"mix.rejected={folder / 'rejected'}",
        )
        yield from (Verdict(row["id"], text=row["text"].strip()) for row in rows_of(folder / "out"))
        yield from (Verdict(row["id"], "empty") for row in rows_of(folder / "rejected"))
