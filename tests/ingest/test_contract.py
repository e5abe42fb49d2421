"""Every input format keeps the contract of `toolkit.testing`; batches of columns give what documents give."""

import json
from collections.abc import Iterator, Sequence

import pytest

from toolkit import DataError, Draft, DraftColumns, Input, Reader
from toolkit.ingest.reader import READERS
from toolkit.testing import check_reader
from toolkit.testing.readers import input_of

TEXTS = ["The library opens at nine.\nIt closes at six.", "Η βιβλιοθήκη ανοίγει.", "no line end"]
DAY = "2024-02-29T00:00:00Z"
PAGE = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><body><pre>{}</pre></body></html>"


def warc(type_: str, blocks: Sequence[str]) -> bytes:
    """A WARC file with a record of each block."""
    found = b""
    for i, block in enumerate(blocks):
        data = block.encode()
        head = f"WARC/1.0\r\nWARC-Type: {type_}\r\nWARC-Record-ID: <urn:uuid:{i}>\r\nWARC-Date: {DAY}\r\n"
        found += f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data + b"\r\n\r\n"
    return found


def rows(*objects: object) -> bytes:
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in objects)


def oscar(text: str) -> object:
    sentences = [{"label": "en", "prob": 0.5}, None][: text.count("\n") + 1]
    metadata = {"identification": {"label": "en", "prob": 0.5}, "annotation": None}
    headers = {"warc-record-id": f"<{len(text)}>", "warc-date": DAY}
    return {"content": text, "warc_headers": headers, "metadata": metadata | {"sentence_identifications": sentences}}


SAMPLES = {
    "dolma": rows(*({"id": text[:3], "text": text, "source": "s"} for text in TEXTS)),
    "jsonl": rows(*({"text": text, "url": "x"} for text in TEXTS)),
    "oscar": rows(*map(oscar, TEXTS)),
    "text": "\n\n".join([*TEXTS, ""]).encode(),
    "warc": warc("response", [PAGE.format(text) for text in TEXTS]),
    "wet": warc("conversion", TEXTS),
}


@pytest.mark.parametrize("name", READERS.names())
def test_a_format_keeps_the_contract(name: str) -> None:
    check_reader(READERS.find(name), SAMPLES[name], TEXTS)


class Columns(Reader):
    """A document a line, all of them in columns."""

    def read(self, source: Input) -> Iterator[Draft]:
        for batch in self.read_batches(source):
            yield from batch

    def read_batches(self, source: Input) -> Iterator[DraftColumns]:
        with source.stream() as stream:
            lines = stream.read().splitlines()
        bounds = [0]
        for line in lines:
            bounds.append(bounds[-1] + len(line))
        yield DraftColumns(b"".join(lines), bounds, number=range(1, len(lines) + 1), id=[f"#{len(x)}" for x in lines])


def test_columns_are_documents() -> None:
    (batch,) = Columns().read_batches(input_of("one\nGröße\n\n".encode()))
    wanted = [Draft(text="one", number=1, id="#3"), Draft(text="Größe", number=2, id="#7")]
    assert len(batch) == 3
    assert list(batch) == [*wanted, Draft(text="", number=3, id="#0")]
    assert batch[:2] == wanted
    assert batch[-2] == wanted[1]
    with pytest.raises(IndexError):
        batch[3]


def test_a_default_batch_is_a_document_so_that_bad_items_keep_their_order() -> None:
    """What the reader finds bad behind a document is found after the document was taken."""
    batches = READERS.find("dolma")().read_batches(input_of(SAMPLES["dolma"] + b"{}\n"))
    assert [len(next(batches)) for _ in TEXTS] == [1, 1, 1]
    with pytest.raises(DataError, match="expected field id"):
        next(batches)
