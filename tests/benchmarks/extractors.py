"""Texts and speed of extractors, as a table: ``python -m tests.benchmarks.extractors CHECKOUT WARC [WARC …]``.

CHECKOUT is one of https://github.com/scrapinghub/article-extraction-benchmark, whose program judges the texts of its
pages; the speed is that on the HTML pages of WARC files, by processor time.
"""

import argparse
import gzip
import importlib.util
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType

from toolkit.ingest.formats.warc import HTML
from toolkit.ingest.web.extractor import ExtractorSpec, SentPage, page_reader
from toolkit.ingest.web.html import parse_content_type
from toolkit.ingest.web.http import TooLarge, UnknownCoding, decode_body, parse_response

CONTENT = {"main_content": True, "title": False}
SPECS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resiliparse", {}),
    ("resiliparse", CONTENT),
    ("resiliparse", CONTENT | {"comments": False}),
    ("trafilatura", {}),
    ("trafilatura", {"comments": False}),
    ("trafilatura", {"comments": False, "favor": "precision"}),
    ("justext", {}),
    ("justext", {"language": "English"}),
)
LARGEST = 100 << 20


def pages(paths: Sequence[Path]) -> Iterator[SentPage]:
    """Yield the HTML pages of WARC files."""
    for path in paths:
        with path.open("rb") as stream, suppress(Exception):  # damaged files end early
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=False):
                response = parse_response(record.reader.read())
                if response is None or response.status != 200:
                    continue
                kind, charset = parse_content_type(response.last("content-type"))
                with suppress(TooLarge, UnknownCoding):
                    if kind in HTML:
                        yield SentPage(decode_body(response, LARGEST)[0], charset, is_html=True)


def texts(spec: ExtractorSpec, sent: Sequence[SentPage]) -> tuple[list[str], float]:
    """Return the text of each page, empty where the extractor fails, and the seconds of processor time for all."""
    read, found = page_reader(spec), []
    begin = time.process_time()
    for page in sent:
        try:
            found.append(read(page).text)
        except Exception:
            found.append("")
    return found, time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.extractors", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("warc", type=Path, nargs="+")
    given = parser.parse_args()
    found = importlib.util.spec_from_file_location("evaluate", given.checkout / "evaluate.py")
    assert found
    assert found.loader
    judge = importlib.util.module_from_spec(found)
    found.loader.exec_module(judge)
    truth: dict[str, Any] = json.loads((given.checkout / "ground-truth.json").read_text(encoding="utf-8"))
    bodies = (gzip.decompress((given.checkout / "html" / f"{name}.html.gz").read_bytes()) for name in truth)
    news = [SentPage(body, "", is_html=True) for body in bodies]
    crawled = list(pages(given.warc))
    size = sum(len(page.body) for page in crawled)
    print(f"{len(news)} pages of news; {len(crawled)} of WARC files, {size / 1e6:.1f} MB\n")
    print("| extractor | F1 | precision | recall | MB of HTML a second |\n| --- | --- | --- | --- | --- |")
    for name, options in SPECS:
        spec = ExtractorSpec(name, options)
        extracted, _ = texts(spec, news)
        said = {key: {"articleBody": text} for key, text in zip(truth, extracted, strict=True)}
        scores = judge.evaluate(truth, said, 1)
        speed = size / 1e6 / texts(spec, crawled)[1]
        figures = [f"{scores[each]:.3f}" for each in ("f1", "precision", "recall")]
        print(f"| {' '.join([name, *map(str, options.items())])} | {' | '.join(figures)} | {speed:.1f} |", flush=True)


if __name__ == "__main__":
    main()
