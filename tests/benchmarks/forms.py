"""``python -m tests.benchmarks.forms FOLDER``: corpora in the forms in which they are published, to OSCAR and Parquet.

Each form is an entry of one line. A configuration is run from the files to an output, with an ingest and in place; told
are the seconds of CPU time, and the bytes that are added for each byte of text. The outputs of both ways are compared.
"""

import argparse
import gzip
import json
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import toolkit
from tests.conftest import ROOT

Row = dict[str, Any]


def texts(count: int, chars: int = 2000) -> Iterator[str]:
    """Yield texts of lines that the sample has, drawn by a fixed seed."""
    raw = b"".join(gzip.decompress(path.read_bytes()) for path in sorted((ROOT / "configs/sample").glob("*.gz")))
    lines = [line for line in raw.decode(errors="replace").splitlines() if len(line) > 60]
    draw = random.Random(1)
    for _ in range(count):
        found: list[str] = []
        while sum(map(len, found)) < chars:
            found.append(draw.choice(lines))
        yield "\n".join(found)


def rows_of(form: str, listed: list[str]) -> list[Row]:
    """Return rows with the columns that a corpus has."""
    match form:
        case "fineweb":
            more: Row = {"dump": "CC-MAIN-2024-10", "date": "2024-02-21T04:35:52Z", "file_path": "s3://a/b.warc.gz"}
            return [
                {"text": text, "id": f"<urn:{i}>", "url": f"https://a{i}.example/"}
                | more
                | {"language": "en", "language_score": 0.65 + i % 35 / 100, "token_count": len(text) // 4}
                for i, text in enumerate(listed)
            ]
        case "rpv2":
            return [
                {"url": f"https://a{i}.example/", "digest": f"sha1:{i}", "raw_content": text, "line_ids": [0, i]}
                | {"language": "en", "language_score": 0.9, "perplexity": i / 7, "bucket": "head", "title": None}
                for i, text in enumerate(listed)
            ]
        case "culturax":
            more = {"timestamp": "2019/12/11 12:00:00"}
            return [
                {"text": text, "url": f"https://a{i}.example/", "source": ("mC4", "OSCAR-2301")[i % 2]} | more
                for i, text in enumerate(listed)
            ]
    return [
        {"f": "a.warc.gz", "u": f"https://a{i}.example/", "ts": "2021-01-01T00:00:00Z", "lang": ["eng_Latn"]}
        | {"prob": [0.98], "text": text, "seg_langs": ["eng_Latn"] * (text.count("\n") + 1), "id": str(i)}
        | {"filter": "keep", "pii": [[0, 5]], "doc_scores": [9.1, i / 10]}
        for i, text in enumerate(listed)
    ]


FORMS: dict[str, tuple[str, Row]] = {
    "fineweb": ("parquet", {"format": "parquet", "metadata": "rest", "source": "web"}),
    "rpv2": ("jsonl.gz", {"format": "jsonl", "fields": {"text": "raw_content"}, "metadata": "rest", "source": "web"}),
    "culturax": ("parquet", {"format": "parquet", "fields": {"added": "timestamp"}, "metadata": "rest"}),
    "hplt": ("jsonl.zst", {"format": "jsonl", "fields": {"added": "ts"}, "metadata": "rest", "source": "web"}),
}
"""How files end, and the entry that reads them."""


def write(folder: Path, form: str, listed: list[str], files: int = 4) -> Path:
    """Write the files of a corpus."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, suffix = rows_of(form, listed), FORMS[form][0]
    for number in range(files):
        path = folder / form / f"{number:05d}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        some = rows[number::files]
        if suffix == "parquet":
            pq.write_table(pa.Table.from_pylist(some), path, compression="zstd", row_group_size=1000)
            continue
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some).encode()
        codec = pa.Codec("zstd")
        path.write_bytes(gzip.compress(lines, mtime=0) if suffix.endswith("gz") else codec.compress(lines).to_pybytes())
    return folder / form


def cpu_of(config: Row, folder: Path) -> float:
    """Run a configuration, and return the seconds of CPU time."""
    path = folder / "forms.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*map(str, toolkit("run", "-c", path, "--quiet"))], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def bytes_in(*folders: Path) -> int:
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def measured(folder: Path, form: str, source: str | Path, entry: Row, size: int) -> list[str]:
    """Return the cells of a form's row: seconds to OSCAR and to Parquet, in place, bytes for each byte of text."""
    tag = {"lines-0": "line_language", "language-0": {"tagger": "language", "lines": "lines-0"}}
    found, stored = dict[str, float](), dict[str, float]()
    for way, output in (("ingest", "oscar"), ("ingest", "parquet"), ("in place", "oscar")):
        made, out = folder / "made", folder / f"out {way} {output}"
        shutil.rmtree(made, ignore_errors=True)
        rule = "language.label is None" if output == "oscar" else "length.words < 5"
        config: Row = {
            "dataset": str(made),
            "processes": 1,
            "tag": tag if output == "oscar" else {"length-0": "length"},
            "mix": {
                "attributes": ["language-0" if output == "oscar" else "length-0"]
                + (["lines-0"] if output == "oscar" else []),
                "rules": [{"drop": rule}],
                "output": {"format": output, "path": str(out)},
            },
        }
        files: Row = {"ingest": [{**entry, "from": str(source)}]}
        if way == "in place":
            files = {"documents": {**entry, "path": str(source)}}
        found[f"{way} {output}"] = cpu_of(config | files, folder)
        stored[way] = bytes_in(made) / size
    outputs = [
        {path.name: path.read_bytes() for path in (folder / f"out {way} oscar").glob("[!.]*/*.jsonl.gz")}
        for way in ("ingest", "in place")
    ]
    assert outputs[0] == outputs[1] != {}, f"{form}: outputs differ"
    seconds = [found[key] for key in ("ingest oscar", "ingest parquet", "in place oscar")]
    return [form, *(f"{each:.1f} s" for each in seconds), *(f"{stored[way]:.2f}" for way in ("ingest", "in place"))]


def main() -> int:
    """Measure all forms, and the files that are given beside them."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.forms", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="for files and outputs")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--jsonl", action="append", default=[], help="JSON Lines that have a text, too")
    given = parser.parse_args()
    listed = list(texts(given.documents))
    size = sum(len(text.encode()) for text in listed)
    print(f"{given.documents:,} documents, {size / 1e6:.1f} MB of text\n")
    heads = ["form", "to OSCAR", "to Parquet", "OSCAR in place", "ingest adds", "in place adds"]
    print(f"| {' | '.join(heads)} |\n| --- |{' ---: |' * 5}", flush=True)
    given.folder.mkdir(parents=True, exist_ok=True)
    for form, (_, entry) in FORMS.items():
        source = write(given.folder, form, listed)
        print(f"| {' | '.join(measured(given.folder, form, source, entry, size))} |", flush=True)
    for path in given.jsonl:
        with gzip.open(path) as lines:
            size = sum(len(json.loads(line)["text"].encode()) for line in lines)
        entry = {"format": "jsonl", "metadata": "rest", "source": "web", "fields": {"id": []}}
        print(f"| {' | '.join(measured(given.folder, Path(path).name, path, entry, size))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
