"""FineWeb's configuration against datatrove's filters, in the order and with the settings of its examples/fineweb.py.

Both sides start from the text (neither from WARC files), and take lid.176.ftz for the language, where FineWeb had
lid.176.bin. URLFilter is left out, for its lists.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.oracles.frame import DUPLICATE, Verdict, rows_of, run_config
from tests.oracles.of_datatrove import GOPHER, Datatrove


class Fineweb(Datatrove):
    """FineWeb."""

    NAME = "fineweb"
    CONFIG = "fineweb.yaml"
    REASONS = GOPHER | {
        "language": "LanguageFilter",
        "c4: lorem_ipsum": "lorem_ipsum",
        "c4: curly_bracket": "curly_bracket",
        "c4: few_sentences": "too_few_sentences",
        "fineweb: empty": "empty",
        "fineweb: line_ends": "line_punct_ratio",
        "fineweb: short_lines": "short_line_ratio",
        "fineweb: repeated_lines": "char_dup_ratio",
        "fineweb: list": "list_ratio",
    }


class FinewebMinhash(Fineweb):
    """FineWeb to its end: what its filters leave, without near duplicates and addresses."""

    NAME = "fineweb-minhash"

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        yield from (verdict for verdict in super().ours(pages, folder) if not verdict.kept)
        run_config(
            "fineweb-minhash.yaml",
            f"documents={folder / 'out/documents'}",
            f"attributes={folder / 'minhash'}",
            f"mix.output.path={folder / 'final'}",
            f"mix.rejected={folder / 'duplicates'}",
        )
        yield from (Verdict(row["id"], text=row["text"]) for row in rows_of(folder / "final"))
        yield from (Verdict(row["id"], DUPLICATE) for row in rows_of(folder / "duplicates"))
