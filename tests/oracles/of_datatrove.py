"""What oracles have in common whose peer is datatrove: its script, its reasons, the model of both sides."""

import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar

import msgspec
import yaml

from tests.conftest import ROOT
from tests.oracles.frame import FOLDER, Oracle, Verdict
from tests.oracles.mutations import mutated
from tests.oracles.pages import Page
from tests.oracles.written_thresholds import web_pages
from toolkit.text import resolve

GOPHER = {
    "repetition: paragraphs": "dup_para_frac",
    "repetition: paragraph_chars": "dup_para_char_frac",
    "repetition: lines": "dup_line_frac",
    "repetition: line_chars": "dup_line_char_frac",
    **{f"repetition: top_{n}gram": f"top_{n}_gram" for n in (2, 3, 4)},
    **{f"repetition: {n}grams": f"duplicated_{n}_n_grams" for n in range(5, 11)},
    "quality: few_words": "gopher_short_doc",
    "quality: many_words": "gopher_long_doc",
    "quality: short_words": "gopher_below_avg_threshold",
    "quality: long_words": "gopher_above_avg_threshold",
    "quality: hashes": "gopher_too_many_hashes",
    "quality: ellipses": "gopher_too_many_ellipsis",
    "quality: bullets": "gopher_too_many_bullets",
    "quality: ellipsis_lines": "gopher_too_many_end_ellipsis",
    "quality: alphabetic": "gopher_below_alpha_threshold",
    "quality: stop_words": "gopher_enough_stop_words",
}
"""datatrove's reasons for Gopher's rules."""


class Datatrove(Oracle):
    """A configuration against steps of datatrove.

    Attributes:
        LEFT_OUT: rules, or groups of rules, of the configuration that neither side runs.
    """

    PEER = "of_datatrove"
    LEFT_OUT: ClassVar[tuple[str, ...]] = ()

    def written(self) -> Iterator[Page]:
        """Yield pages around the thresholds of web filters, and mutations of some."""
        yield from web_pages()
        yield from mutated(islice(web_pages(), 80), "recorded")

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        """Yield datatrove's verdicts; its language filter has the model that the configuration has."""
        verdicts = folder / "verdicts.jsonl"
        script = FOLDER / "peers" / f"{self.PEER}.py"
        model = resolve("lid.176.ftz")
        subprocess.run(
            [environment / "bin" / "python", script, pages, verdicts, self.NAME, model], cwd=folder, check=True
        )
        with verdicts.open("rb") as lines:
            yield from (msgspec.json.decode(line, type=Verdict) for line in lines)

    def run(self, folder: Path, *settings: str) -> None:
        """Run the configuration without the rules that are left out."""
        rules = yaml.safe_load((ROOT / "configs" / self.CONFIG).read_text())["mix"]["rules"]
        names = [rule.get("group") or rule.get("name") for rule in rules]
        off = [f"mix.rules.{names.index(name)}.when=document.chars < 0" for name in self.LEFT_OUT]
        super().run(folder, *settings, *off)
