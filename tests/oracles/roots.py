"""The filters of ROOTS, as data-juicer has them, beside the recipe.

Special characters are those of Unicode's categories here, and a list there. So this oracle says how many decisions that
changes. Chinese and Vietnamese pages are left out: ROOTS splits them with SentencePiece models of its own. To the real
pages come all Khmer, Lao, Thai and Burmese ones of the benchmark, whose words are those of dictionaries here.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.conftest import ROOT
from tests.oracles.frame import FOLDER, Oracle, Verdict, rows_of
from tests.oracles.languages import with_language
from tests.oracles.pages import BENCH, Page, of_wet, real_pages

WITH_MODELS = ("zh", "vi")
BY_DICTIONARY = ("km", "lo", "th", "my")


class Roots(Oracle):
    """Figures and decisions; nothing is recorded, as they are not all equal."""

    NAME = "roots"
    CONFIG = "roots.yaml"

    def pages(self) -> Iterable[Page]:
        for page in map(with_language, real_pages()):
            if page.metadata["language"] not in WITH_MODELS:
                yield page
        for page in map(with_language, of_wet(BENCH)):
            if page.metadata["language"] in BY_DICTIONARY:
                yield msgspec.structs.replace(page, id=f"{page.metadata['language']}:{page.id}")

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        verdicts, parameters = folder / "verdicts.jsonl", folder / "parameters.json"
        mix = yaml.safe_load((ROOT / "configs" / self.CONFIG).read_text(encoding="utf-8"))["mix"]
        parameters.write_text(json.dumps({key: mix[key] for key in ("parameters", "languages")}), encoding="utf-8")
        script = FOLDER / "peers" / "roots.py"
        subprocess.run([environment / "bin" / "python", script, pages, verdicts, parameters], check=True)
        with verdicts.open("rb") as lines:
            yield from (msgspec.json.decode(line, type=Verdict) for line in lines)

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        found = {verdict.id: verdict for verdict in super().ours(pages, folder)}
        for row in rows_of(folder / "dataset/attributes/roots-0"):
            yield msgspec.structs.replace(found[row["id"]], values=row["attributes"]["roots"])

    def same(self, one: Any, other: Any) -> bool:
        """Return True if two figures differ by less than 0.01, or 1 % of the words."""
        if one is None or other is None:
            return one is other
        return bool(abs(one - other) <= (0.01 * max(one, 1) if isinstance(one, int) else 0.01))
