"""Documents made of files of others: the same texts as Parquet, Arrow and CSV, beside JSON Lines."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import datasets
from tests.benchmarks.commands import toolkit
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, faster


def _rows(dataset: Path) -> list[dict[str, Any]]:
    shards = sorted((dataset / "documents").rglob("*.jsonl.gz"))
    rows = (row for path in shards for row in datasets.rows(path))
    return [{"id": row.id, "text": row.text, "url": row.id, "n": i} for i, row in enumerate(rows)]


def _write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    """Write the rows as a file of a format, once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"rows.{name}"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if name == "parquet":
        pq.write_table(table, path, row_group_size=1000)
    elif name == "arrow":
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table, max_chunksize=1000)
    elif name == "csv":
        with path.open("w", newline="", encoding="utf-8") as text:
            writer = csv.DictWriter(text, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
    return path


def _documents(folder: Path, usage: Usage) -> Counts:
    return {"documents": usage.told["counts"]["documents"]}


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    dataset = inputs.dataset
    rows = _rows(dataset.path)

    def contender(name: str) -> Contender:
        path = _write(dataset.path.parent / "own-data", name, rows)

        def command(folder: Path) -> Command:
            entry = {"format": name, "from": [str(path)], "source": "own", "metadata": "rest"}
            config = {"dataset": str(folder / "data"), "processes": 1, "ingest": [entry]}
            return toolkit("ingest", "-c", datasets.write_config(folder / "own.yaml", config), "--quiet", "--json")

        return Contender(f"format: {name}", command, dataset.text, _documents, output="data")

    jsonl, *others = map(contender, ("jsonl", "parquet", "arrow", "csv"))
    return [
        Benchmark(
            "Own data",
            f"`ingest` of {len(rows):,} documents in one file, one process, fields gathered into the metadata.",
            (jsonl, *others),
            tuple(faster(f"jsonl / {each.name.removeprefix('format: ')}", each, jsonl) for each in others),
            same=("documents",),
        )
    ]
