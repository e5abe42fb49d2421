"""Documents of 100 MB through every command: ``python -m tests.endurance.deep --megabytes 100 [--only tag]``.

The inputs have one such document of each shape (`SHAPES`), in JSON Lines, WET, WARC, Parquet, and as files of text,
each beside a small one. The table has a line for each command: its exit status, CPU seconds, and the most memory that
one of its processes held. Exit status 1: a command failed.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from isal import igzip

from tests.conftest import ROOT

WORDS = ("the", "library", "opens", "at", "nine", "and", "it", "is", "closed", "on", "Sundays", "because", "nobody")
SHAPES = ("line", "lines", "ideographs", "escapes")
FILES = ROOT / "tests" / "taggers" / "files"
OPTIONS: dict[str, dict[str, Any]] = {
    "fasttext_spans": {"model": "lid.176.ftz", "unit": "line"},
    "fasttext_label": {"model": "lid.176.ftz", "k": 1},
    "linear": {"model": f"{FILES}/linear.safetensors"},
    "tokens": {"tokenizer": "recipe:sample/tokenizer.json"},
    "language": {"lines": "line_language-0"},
    "word_list": {"lists": f"{FILES}/words.txt"},
}
"""Of taggers that cannot be configured without."""
TOKENIZER = {"tokenizer": "recipe:sample/tokenizer.json", "eod": "</s>"}
MIXED = ("length", "line_language", "language", "emails", "statistics", "text_language")
"""Taggers whose sets the mix reads."""
OTHERS = (
    "c4", "dolma_c4", "dolma_gopher", "dolma_pii", "dolma_repetitions", "fasttext_label", "fasttext_spans", "fineweb",
    "gopher_quality", "gopher_repetition", "ip_addresses", "length_spans", "license_notice", "line_shape", "linear",
    "noise", "phone_numbers", "punctuation_lines", "random", "redpajama", "refinedweb_lines", "repeated_lines",
    "repeated_ngrams", "roots", "secrets", "tlsh", "tokens", "word_list",
)  # fmt: skip


def text(shape: str, size: int) -> str:
    """Return a text whose UTF-8, or JSON if that is longer, has about so many bytes; a function of its arguments."""
    chance = random.Random(shape)
    if shape == "ideographs":  # without a space or a line end
        ideographs = [chr(code) for code in range(0x4E00, 0x9FA5)]
        block = "".join("".join(chance.choices(ideographs, k=24)) + "。" for _ in range(400))
        return block * (size // 30_000)
    if shape == "escapes":  # nearly each code point takes two bytes of JSON
        block = "".join(chance.choices('"\\\t\n{}[]:', k=10_000))
        return block * (size // 16_000)
    end = {"line": " ", "lines": "\n"}[shape]
    found: list[str] = []
    length = 0
    while length < size:
        found.append(" ".join(chance.choices(WORDS, k=20)) + f" {len(found)}.{end}")
        length += len(found[-1])
    return "".join(found)


def inputs(folder: Path, size: int) -> list[dict[str, Any]]:
    """Write the inputs, and return the entries of ``ingest:`` that read them."""
    import pyarrow as pa
    import pyarrow.parquet

    small = "A small document.\nIt has two lines."
    rows: dict[str, list[dict[str, Any]]] = {}
    for shape in SHAPES:
        rows[shape] = [{"id": f"{shape}-0", "text": text(shape, size)}, {"id": f"{shape}-1", "text": small}]
    nested: Any = "x"
    for _ in range(50):
        nested = {"a": [nested], "b": '"\\\n' * (size // 500)}
    rows["metadata"] = [{"id": "m-0", "text": small, "metadata": {"deep": nested}}, {"id": "m-1", "text": small}]
    for name in ("jsonl", "parquet", "text", "web"):
        (folder / name).mkdir(parents=True)
    (folder / "items.jsonl").write_text(json.dumps({"text": text("line", 1000)}) + "\n")
    for shape, each in rows.items():
        lines = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in each)
        (folder / "jsonl" / f"{shape}.jsonl.gz").write_bytes(igzip.compress(lines, 1, mtime=0))
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows["lines"]), folder / "parquet" / "lines.parquet")
    for shape in SHAPES:
        (folder / "text" / f"{shape}.txt").write_text(rows[shape][0]["text"])
    plain = rows["lines"][0]["text"].encode()
    (folder / "web" / "1.warc.wet.gz").write_bytes(_warc("conversion", "text/plain", [plain, small.encode()]))
    pages = [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body><p>" + each for each in (plain, small.encode())
    ]
    (folder / "web" / "1.warc.gz").write_bytes(_warc("response", "application/http; msgtype=response", pages))
    return [
        {"format": "jsonl", "from": f"{folder}/jsonl/*.jsonl.gz", "source": "jsonl"},
        {"format": "parquet", "from": f"{folder}/parquet/*.parquet", "source": "parquet"},
        {"format": "text", "from": f"{folder}/text/*.txt", "source": "text", "documents": "file"},
        {"format": "wet", "from": f"{folder}/web/*.wet.gz", "source": "wet"},
        {"format": "warc", "from": f"{folder}/web/1.warc.gz", "source": "warc", "max_html": "1 GB", "timeout": 600},
    ]  # fmt: skip


def _warc(kind: str, media: str, blocks: list[bytes]) -> bytes:
    found = b""
    for number, block in enumerate(blocks):
        head = (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
            f"WARC-Date: 2026-01-31T00:00:00Z\r\nWARC-Target-URI: http://example.org/{number}\r\n"
            f"Content-Type: {media}\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        found += gzip.compress(head.encode() + block + b"\r\n\r\n", 1, mtime=0)
    return found


def configuration(work: Path, size: int) -> dict[str, Any]:
    """Return the configuration, without the inputs."""
    given: dict[str, Any] = {f"{name}-0": {"tagger": name, **OPTIONS.get(name, {})} for name in MIXED}
    return {
        "dataset": str(work / "data"),
        "processes": 1,
        "max_document_bytes": 4 * size,
        "tag": given,
        "dedup": {
            "exact-0": {"kind": "exact"},
            "lines-0": {"kind": "exact", "unit": "line", "as": "seen_lines"},
            "near-0": {"kind": "near"},
            "passages-0": {"kind": "passages"},
            "contamination-0": {"kind": "contamination", "against": [f"{work}/in/items.jsonl"]},
        },
        "calibrate": {"rank-0": {"kind": "rank", "score": "length.chars"}},
        "sample": {"sample-0": {"documents": 4}},
        "mix": {
            "attributes": ["length-0", "line_language-0", "language-0", "emails-0", "exact-0"],
            "rules": [{"drop": "language.label is None", "name": "unidentified"}],
            "output": {"format": "dolma", "path": str(work / "out")},
        },
        "about": {
            "name": "c", "description": "d", "creator": {"type": "Person", "name": "E"},
            "license": "https://example.org/l", "date_published": "2026-01-31", "url": "https://example.org/",
            "version": "1.0.0",
        },
        "tokenize": {"path": str(work / "tokens"), **TOKENIZER, "files": "megatron"},
    }  # fmt: skip


OUTPUTS: dict[str, dict[str, Any]] = {
    "dolma": {},
    "dolma attributes": {"format": "dolma", "attributes": True},
    "ml_filter": {"statistics": None},
    "dolma shuffled": {"format": "dolma", "shuffle": {"seed": 1}},
    "dolma lines": {"format": "dolma", "provenance": "line"},
    "dolma zstd": {"format": "dolma", "compression": "zstd"},
    "oscar": {},
    "oscar 23.01": {"format": "oscar", "schema": "23.01"},
    "text": {},
    "text lines": {"format": "text", "unit": "line"},
    "text shuffled": {"format": "text", "unit": "line", "borders": False, "shuffle": {"seed": 1, "unit": "line"}},
    "parquet": {},
    "tokens": {**TOKENIZER, "files": "pbin"},
}


def commands(config: dict[str, Any], work: Path) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """Yield a name, a command line, and the configuration of each command."""
    yield "ingest", ["ingest"], {**config, "ingest": config["ingest"][:1]}
    yield "ingest others", ["ingest"], {**config, "ingest": config["ingest"][1:], "dataset": str(work / "others")}
    config = {**config, "ingest": config["ingest"][:1]}
    yield "ingest limited", ["ingest"], {**config, "dataset": str(work / "none"), "max_document_bytes": "10 MB"}
    for step in ("tag", "dedup", "calibrate", "sample", "mix --dry-run"):
        yield step, step.split(), config
    for name, output in OUTPUTS.items():
        output = {"format": name, "path": f"{work}/{name.replace(' ', '-')}", **output}
        needs_label = output["format"] in ("oscar", "text", "ml_filter")
        mix = {**config["mix"], "output": output, "rules": config["mix"]["rules"] if needs_label else []}
        yield f"mix {name}", ["mix"], {**config, "mix": mix}
    for step in (
        "mix",
        "tokenize",
        "validate",
        "status",
        "card",
        "croissant",
        f"report -o {work}/report.html",
        f"export --parquet {work}/exported",
    ):
        yield step.partition(f" {work}")[0], step.split(), config
    yield "stats", ["stats", str(work / "dolma")], {}
    yield "stats oscar", ["stats", str(work / "oscar")], {}
    yield "validate oscar", ["validate", str(work / "oscar")], {}
    yield "validate parquet", ["validate", str(work / "parquet")], {}
    yield "head", ["head", f"{work}/data/documents/jsonl/lines.jsonl.gz"], config
    yield "sql", ["sql", "SELECT source, sum(length(text)), sum(length.chars) FROM joined GROUP BY ALL"], config
    yield "sql text", ["sql", "SELECT * FROM documents"], config
    yield "compare", ["compare", "length-0", "length-0"], config
    yield "fetch", ["fetch", str(work / "oscar"), "--label", "en", "--to", str(work / "fetched")], {}
    yield "run", ["run"], config
    others = {f"{name}-0": {"tagger": name, **OPTIONS.get(name, {})} for name in OTHERS}
    yield "tag others", ["tag"], {**config, "tag": others}
    few = ("length-0", "line_language-0", "language-0")
    output = {"format": "oscar", "path": f"{work}/oscar-per-shard"}
    yield (
        "run per-shard",
        ["run", "--per-shard"],
        {
            **{name: config[name] for name in ("ingest", "processes", "max_document_bytes")},
            "dataset": f"{work}/per-shard",
            "tag": {name: config["tag"][name] for name in few},
            "mix": {"attributes": few, "rules": config["mix"]["rules"], "output": output},
        },
    )


def measured(command: list[str], log: Path) -> tuple[int, float, int]:
    """Run a command; return its exit status, CPU seconds, and MB of the process that held most.

    The system counts what this process holds, too, so it must hold little.
    """
    with log.open("wb") as messages:
        process = subprocess.Popen(command, stdout=messages, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss // 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.deep", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100, help="of each document")
    parser.add_argument("--only", help="commands whose names begin so")
    parser.add_argument("--work", type=Path, help="a folder, which is kept, and used again if it is there")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp())
    size, failed = int(given.megabytes * 10**6), 0
    (work / "in").parent.mkdir(parents=True, exist_ok=True)
    known = work / "inputs.json"
    if not known.exists():
        with ProcessPoolExecutor(1) as another:
            known.write_text(json.dumps(another.submit(inputs, work / "in", size).result()))
    config = {**configuration(work, size), "ingest": json.loads(known.read_text())}
    print("| command | status | CPU, s | MB of memory | seconds |\n|---|---:|---:|---:|---:|", flush=True)
    for name, command, of in commands(config, work):
        if given.only and not name.startswith(given.only):
            continue
        path, log = work / "config.yaml", work / f"{name.replace(' ', '_').replace('/', '_')}.log"
        path.write_text(json.dumps(of))
        begin = time.monotonic()
        arguments = [sys.executable, "-m", "toolkit", *command, *(["-c", str(path)] if of else [])]
        status, cpu, memory = measured(arguments, log)
        print(f"| {name} | {status} | {cpu:.1f} | {memory:,} | {time.monotonic() - begin:.1f} |", flush=True)
        if status:
            failed += 1
            print(f"  {log.read_text(errors='replace')[-1500:]}", flush=True)
    if not given.work:
        shutil.rmtree(work)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
