"""Real pages for oracles, from ../shared/data; nothing of them is kept in the project."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks.inputs import records
from tests.conftest import SHARED

WET = ("wet/htmlpool-real.warc.wet.gz", "wet/hplt-sample200.warc.wet.gz")
"""Files of real web pages, mostly English, and of many languages: 2,614 pages."""
BENCH = tuple(f"wet/bench/CC-TEST-0000{number}.warc.wet.gz" for number in range(4))
"""Files of documents in more than 100 languages, partly in real boilerplate: 22,000 pages."""
TEXTS = (
    "quality/dclm_majority_data.jsonl.gz",
    "quality/fineweb_edu_annotated_1000.jsonl.gz",
    "quality/fineweb2_spa_Latn_sampled_500k_0_to_600.jsonl.gz",
    "quality/fineweb2_srp_Cyrl_sampled_500k_0_to_600.jsonl.gz",
)
"""Files of extracted texts: 2,699 pages."""


class Page(msgspec.Struct, frozen=True):
    """A document, as `format: jsonl` reads it."""

    id: str
    text: str
    source: str = "oracle"
    metadata: dict[str, Any] = {}


def of_wet(names: Sequence[str]) -> Iterator[Page]:
    """Yield the pages of WET files; bytes that are no UTF-8 become U+FFFD."""
    for name in names:
        number = 0
        for record in records([SHARED / name]):
            if b"WARC-Type: conversion" in record.head:
                yield Page(f"{name}:{number}", record.block.decode(errors="replace"))
                number += 1


def of_texts(names: Sequence[str]) -> Iterator[Page]:
    """Yield the texts of JSON Lines, with their other keys as metadata."""
    for name in names:
        with gzip.open(SHARED / name, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                text = row.pop("text")
                yield Page(f"{name}:{number}", text, metadata={f"its_{key}": value for key, value in row.items()})


def real_pages() -> Iterator[Page]:
    """Yield 5,313 real pages, about half of them English."""
    yield from of_wet(WET)
    yield from of_texts(TEXTS)


def read_pages(path: Path) -> Iterator[Page]:
    """Yield the pages of a file that `write_pages` has written."""
    with path.open("rb") as lines:
        yield from (msgspec.json.decode(line, type=Page) for line in lines)
