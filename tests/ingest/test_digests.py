"""Digests of WARC records: a block of other bytes is an error, or is kept aside and counted."""

import base64
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from tests.conftest import Run

TEXT = "Ein Text über Brot, und länger als hundert Zeichen, damit ihn niemand für zu kurz hält. " * 2
PAGE = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>{TEXT}</p>".encode()


def _digest(data: bytes, algorithm: str, form: str) -> str:
    digest = hashlib.new(algorithm, data).digest()
    text = digest.hex() if form == "hex" else base64.b32encode(digest).decode()
    return f"{algorithm}:{text.lower() if form == 'lower' else text.rstrip('=')}"


def _record(number: int, type_: str, block: bytes, **headers: str) -> bytes:
    fields = {
        "WARC-Type": type_,
        "WARC-Record-ID": f"<urn:uuid:00000000-0000-0000-0000-00000000000{number}>",
        "WARC-Date": "2024-05-05T05:05:05Z",
        "WARC-Target-URI": f"https://example.org/{number}",
        "Content-Length": str(len(block)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return b"WARC/1.0\r\n" + head.encode() + b"\r\n" + block + b"\r\n\r\n"


def _config(folder: Path, form: str, records: list[bytes], **more: object) -> Path:
    name = "x.warc.wet.gz" if form == "wet" else "x.warc.gz"
    (folder / name).write_bytes(b"".join(gzip.compress(record, mtime=0) for record in records))
    entry = {"format": form, "from": [str(folder / name)], "source": "x", **more}
    path = folder / "config.yaml"
    path.write_text(json.dumps({"dataset": str(folder / "data"), "ingest": [entry]}))
    return path


@pytest.mark.parametrize("name", ["SHA-1", "sha-256", "sha384", "Sha512"])
def test_algorithms_have_the_names_of_all_crawlers(tmp_path: Path, run: Run, name: str) -> None:
    right = _digest(TEXT.encode(), name.lower().replace("-", ""), "hex").replace(name.lower().replace("-", ""), name)
    blocks = [TEXT.encode(), TEXT.replace("Brot", "Brod").encode()]
    records = [_record(i, "conversion", block, WARC_Block_Digest=right) for i, block in enumerate(blocks)]
    ran = run("ingest", "-c", _config(tmp_path, "wet", records, on_error="skip", max_rejected=0.5), "--json")
    (stage,) = (ran.code, ran.json["counts"]["rejected.digest"])[:1]
    assert stage == 0


@pytest.mark.parametrize("form", ["wet", "warc"])
def test_a_block_of_other_bytes_than_its_digest_is_told_or_kept_aside(tmp_path: Path, run: Run, form: str) -> None:
    type_, block = ("conversion", TEXT.encode()) if form == "wet" else ("response", PAGE)
    kinds = [(algorithm, spelled) for algorithm in ("sha1", "sha256", "md5") for spelled in ("base32", "lower", "hex")]
    sound = [_record(i, type_, block, WARC_Block_Digest=_digest(block, *kind)) for i, kind in enumerate(kinds)]
    bad = _record(9, type_, block.replace(b"Brot", b"Brod"), WARC_Block_Digest=_digest(block, "sha1", "base32"))
    config = _config(tmp_path, form, [*sound[:4], bad, *sound[4:]])
    run("ingest", "-c", config).fails(1, f"{tmp_path}/x.warc", "expected a block of WARC-Block-Digest sha1:")
    run(
        "ingest", "-c", _config(tmp_path, form, [*sound[:4], bad, *sound[4:]], on_error="skip", max_rejected=0.5)
    ).succeeds().shows("rejected.digest")
    (rejects,) = (tmp_path / "data/.toolkit/rejects").rglob("*.gz")
    (row,) = map(json.loads, gzip.decompress(rejects.read_bytes()).splitlines())
    assert (row["number"], row["reason"], "WARC-Block-Digest" in row["message"]) == (5, "digest", True)
    (shard,) = (tmp_path / "data/documents").rglob("*.gz")
    assert len(gzip.decompress(shard.read_bytes()).splitlines()) == len(sound)


def test_a_digest_of_the_payload_counts_where_there_is_no_other(tmp_path: Path, run: Run) -> None:
    """Of a chunked answer, of a truncated one and in an unknown form nothing can be said."""
    body = PAGE.partition(b"\r\n\r\n")[2]
    wrong = _digest(b"another", "sha1", "base32")
    chunked = PAGE.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % len(body), 1)
    records = [
        _record(0, "response", PAGE, WARC_Payload_Digest=_digest(body, "sha1", "base32")),
        _record(1, "response", PAGE, WARC_Payload_Digest=_digest(PAGE, "sha1", "base32")),
        _record(2, "response", chunked + b"\r\n0\r\n\r\n", WARC_Payload_Digest=wrong),
        _record(3, "response", PAGE, WARC_Payload_Digest=wrong, WARC_Truncated="length"),
        _record(4, "response", PAGE, WARC_Block_Digest="sha1:none", WARC_Payload_Digest="blake3:abc"),
        _record(5, "response", PAGE, WARC_Block_Digest=_digest(PAGE, "sha1", "hex"), WARC_Payload_Digest=wrong),
    ]
    run("ingest", "-c", _config(tmp_path, "warc", records), "--json").succeeds()
    (shard,) = (tmp_path / "data/documents").rglob("*.gz")
    assert len(gzip.decompress(shard.read_bytes()).splitlines()) == len(records)
    records.append(_record(6, "response", PAGE, WARC_Payload_Digest=wrong))
    run("ingest", "-c", _config(tmp_path, "warc", records)).fails(1, "WARC-Payload-Digest")
