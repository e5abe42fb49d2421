"""Files of others in three formats, and configurations over each: one ingests them, one reads them in place."""

import gzip
import hashlib
import io
import json
from typing import Any

import pytest

from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files

OPTIONS: dict[str, dict[str, Any]] = {
    "wet": {"trim": {"min_chars": 12}},
    "jsonl": {"fields": {"text": "body"}, "metadata": ["lang"], "leave_out": ["noise"]},
    "parquet": {"fields": {"text": "body", "id": "key"}, "metadata": "rest", "trim": {"min_chars": 12}},
}
"""Of each format, some that change rows."""

NAMES = {"wet": "warc.wet.gz", "jsonl": "jsonl.gz", "parquet": "parquet"}


def rows_of(number: int, count: int = 40) -> list[dict[str, Any]]:
    """Return rows as another program has them; some are alike in all files, and some have only a short text."""
    texts = (
        "short" if i % 9 == 8 else f"menu\nThe text {i} with some words, ä and ö, {'again ' * (i % 7)}\nend"
        for i in range(count)
    )
    return [
        {
            "key": f"{number}-{i}",
            "body": text if i % 5 else f"the same long text {i}",
            "lang": "de" if i % 2 else None,
            "noise": i,
        }
        for i, text in enumerate(texts)
    ]


def wet(rows: list[dict[str, Any]]) -> bytes:
    """Return a WET file of rows, each record a gzip member."""
    infos = [b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 4\r\n\r\nnone\r\n\r\n"]
    for row in rows:
        text = row["body"].encode()
        head = f"WARC-Type: conversion\r\nWARC-Record-ID: <urn:{row['key']}>\r\nWARC-Date: 2024-05-18T00:00:00Z\r\n"
        infos.append(f"WARC/1.0\r\n{head}Content-Length: {len(text)}\r\n\r\n".encode() + text + b"\r\n\r\n")
    return b"".join(gzip.compress(info, mtime=0) for info in infos)


def parquet(rows: list[dict[str, Any]], group: int = 16) -> bytes:
    """Return a Parquet file of rows, in row groups of so many."""
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, row_group_size=group)
    return out.getvalue()


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def data_of(format_: str, rows: list[dict[str, Any]]) -> bytes:
    match format_:
        case "wet":
            return wet(rows)
        case "parquet":
            return parquet(rows)
    return gzip.compress(jsonl(rows), mtime=0)


def lay_out(root: str, format_: str) -> None:
    """Write three files below ``root/theirs``, one of them in a folder."""
    for number, name in enumerate(("a", "b", "more/c")):
        write_file(join(root, f"theirs/{name}.{NAMES[format_]}"), data_of(format_, rows_of(number)))


def config(root: str, format_: str, *, in_place: bool, **more: Any) -> str:
    """Write a configuration that tags, looks for duplicates, and mixes; return its path."""
    way, options = "in-place" if in_place else "ingested", {"format": format_, "source": "own", **OPTIONS[format_]}
    glob = join(root, f"theirs/**/*.{NAMES[format_]}")
    found: dict[str, Any] = {
        "dataset": join(root, way),
        **({"documents": {**options, "path": glob}} if in_place else {"ingest": [{**options, "from": glob}]}),
        "tag": {"length-0": "length", "shape-0": "line_shape"},
        "dedup": {"exact-0": {"kind": "exact"}},
        "mix": {
            "attributes": ["length-0", "shape-0", "exact-0"],
            "rules": [{"drop": "exact.duplicate_of is not None"}, {"drop": "length.words < 3"}],
            "output": {"format": "dolma", "path": join(root, f"out-{way}")},
        },
        **more,
    }
    path = join(root, f"{way}.yaml")
    write_file(path, json.dumps(found).encode())
    return path


def output(root: str, way: str) -> dict[str, str]:
    """Return the sha256 of all parts of an output."""
    store, folder = store_of(root), join(root, f"out-{way}")
    return {name: hashlib.sha256(store.read(join(folder, name))).hexdigest() for name in list_files(folder)}


def attributes(root: str, way: str, format_: str) -> dict[str, str]:
    """Return the sha256 of all attribute files, by set and file of others."""
    store, folder = store_of(root), join(root, way, "attributes")
    found = {}
    for name in list_files(folder):
        digest = hashlib.sha256(store.read(join(folder, name))).hexdigest()
        found[name.replace("/own/", "/").removesuffix(".jsonl.gz").removesuffix(f".{NAMES[format_]}")] = digest
    return found
