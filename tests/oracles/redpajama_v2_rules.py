"""RedPajama-V2's own code beside `redpajama`, value by value, and the rules of its dataset card beside the recipe's.

The language is an input there, of CCNet; both get that of `text_language`.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tests.oracles.frame import FOLDER, Oracle, Verdict, rows_of, write_pages
from tests.oracles.languages import with_language
from tests.oracles.pages import Page, read_pages, real_pages
from tests.oracles.written import written_pages

BAD_WORDS = {
    "en": "day\nnew\nold bridge\nin the world\none of the most\nread more\nthe",
    "de": "tag\nund\nauf der\nin der welt\nalte brücke",
    "fr": "jour\nvoilà\nde la\nle pont\ndans le monde",
    "es": "día\nque\nde la\nen el mundo\nel puente",
    "it": "giorno\nperché\ndi un\nnel mondo\nil ponte",
}
"""Common words and phrases in place of bad ones, so that the count is seldom 0."""
STOP_WORDS = {
    "en": "the\na\nof\nand\nto\nis\nin\nit\nthat\ndon't",
    "de": "der\ndie\ndas\nund\nin\nist",
    "fr": "le\nla\nles\net\nde\nà",
    "es": "el\nla\ny\nde\nque",
    "it": "il\nla\ne\ndi\nche",
}
"""For the recorded pages; else the peer's own."""
HOSTS = 7
"""So many hosts have one after the other the categories 0, 1 …; the next as many have none."""


class Redpajama(Oracle):
    """All signals without models, and the decisions."""

    NAME = "redpajama-v2-rules"
    CONFIG = "redpajama-v2-rules.yaml"
    CHECKOUT = "togethercomputer/RedPajama-Data"

    def pages(self) -> Iterable[Page]:
        for page in real_pages():
            host = urlsplit(str(page.metadata.get("its_url", ""))).netloc
            yield msgspec.structs.replace(page, metadata={"source_domain": host} if host else {})

    def written(self) -> Iterable[Page]:
        for number, page in enumerate(written_pages(200)):
            yield msgspec.structs.replace(page, metadata={"source_domain": f"host-{number % 20}.example"})

    def peer(self, pages: Path, environment: Path, folder: Path) -> Iterator[Verdict]:
        _write_lists(pages, folder / "lists")
        guessed, verdicts = folder / "guessed.jsonl", folder / "verdicts.jsonl"
        write_pages(map(with_language, read_pages(pages)), guessed)
        script = FOLDER / "peers" / "redpajama_v2_rules.py"
        assert self.checkout
        line = [environment / "bin" / "python", script, guessed, verdicts, folder / "lists", self.checkout]
        subprocess.run(line, check=True, env={**os.environ, "PYTHONHASHSEED": "42"})
        with verdicts.open("rb") as lines:
            yield from (msgspec.json.decode(row, type=Verdict) for row in lines)

    def ours(self, pages: Path, folder: Path) -> Iterator[Verdict]:
        lists = folder / "lists"
        if not lists.exists():
            _write_lists(pages, lists)
        given = {"stop_words": "stop_words", "ldnoobw": "ldnoobw", "ut1": "domain_to_category_id.json"}
        lines = [f"tag.signals-0.{option}={lists / name}" for option, name in given.items()]
        self.run(
            folder,
            f"ingest=[{{format: jsonl, from: ['{pages}'], source: oracle}}]",
            f"mix.output.path={folder / 'out'}",
            f"mix.rejected={folder / 'rejected'}",
            *lines,
        )
        values = {row["id"]: row["attributes"]["redpajama"] for row in rows_of(folder / "dataset/attributes/signals-0")}
        for row in rows_of(folder / "out"):
            yield Verdict(row["id"], text=row["text"], values=values[row["id"]])
        for row in rows_of(folder / "rejected"):
            yield Verdict(row["id"], row["rejected"]["rule"].rpartition(": ")[2], values=values[row["id"]])


def _write_lists(pages: Path, lists: Path) -> None:
    """Write lists for the pages; those of stop words for pages that we wrote only."""
    found = [(page.id, page.metadata.get("source_domain")) for page in read_pages(pages)]
    folders = {"ldnoobw": BAD_WORDS}
    if all(id.startswith("written:") for id, _ in found):
        folders["stop_words"] = STOP_WORDS
    for folder, by_language in folders.items():
        (lists / folder).mkdir(parents=True)
        for language, entries in by_language.items():
            (lists / folder / f"{language}.txt").write_text(entries, encoding="utf-8")
    hosts = sorted({host for _, host in found if host})
    numbers = {host: place for place, host in enumerate(hosts) if place // HOSTS % 2 == 0}
    (lists / "domain_to_category_id.json").write_text(json.dumps(numbers), encoding="utf-8")
