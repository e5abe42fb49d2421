"""Tables of wrong configurations and command lines, with the message and the status of each.

``python -m tests.errors`` writes what they say now into the tables; read the difference.
"""

import contextlib
import functools
import gzip
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.pipeline.conftest import TEXTS, document, id_of, write_rows
from toolkit import cli

TABLES = sorted(Path(__file__).parent.glob("*.yaml"))
REFUSED = 2
"""The exit status of a refusal, where the table says no other."""


@functools.cache
def table(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def entries() -> list[tuple[Path, dict[str, Any]]]:
    """Return the entries of all tables, with the table of each."""
    return [(path, entry) for path in TABLES for entry in table(path)["refusals"]]


def configuration(path: Path, entry: dict[str, Any]) -> str:
    """Return the configuration of an entry, that of its table with a change; JSON, so that no change moves a line."""
    return json.dumps(patched(table(path)["configuration"], entry.get("with", {})))


def patched(base: Any, change: Any) -> Any:
    """Return values with a change in them: mappings are merged, null deletes a key."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    merged = {**base, **{key: patched(base.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in merged.items() if value is not None or key not in change}


def write_documents(folder: Path) -> None:
    """Write the documents of the small data set."""
    for shard, texts in TEXTS.items():
        rows = [document(id_of(shard, i), text, n=i) for i, text in enumerate(texts, 1)]
        write_rows(folder / "data/documents" / shard, rows)


def prepare(folder: Path) -> None:
    """Write the small data set, tagged."""
    write_documents(folder)
    (folder / "c.yaml").write_text(configuration(TABLES[-1], {}), encoding="utf-8")
    with contextlib.chdir(folder):
        assert cli.main(["tag", "-c", "c.yaml", "--quiet"]) == 0


@contextlib.contextmanager
def files_of(folder: Path, path: Path, entry: dict[str, Any]) -> Iterator[Path]:
    """Write the files of an entry, and delete them at the end; the current folder is the one that they are in.

    It is `folder`, which has the small data set, or an empty one where the table's configuration has no dataset.
    """
    if "dataset" not in table(path)["configuration"]:
        folder = folder / "empty"
    files = {"c.yaml": configuration(path, entry), **entry.get("files", {})}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        (folder / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    with contextlib.chdir(folder):
        yield folder
    if folder.name == "empty":
        shutil.rmtree(folder)
    else:
        for name in files:
            (folder / name).unlink()
            for parent in (folder / name).parents:
                if any(parent.iterdir()):
                    break
                parent.rmdir()


def message(err: str, folder: Path) -> str:
    """Return what was printed without the names of folders of this machine."""
    err = re.sub(r'"[^"]*/\.duckdb/[^"]*"', '"~/.duckdb"', err.replace(f"{folder}/", "").replace(str(folder), "."))
    return re.sub(r"\d+\.\d s\b", "0.0 s", err).strip()


def update(folder: Path) -> None:
    """Write the messages and statuses of now into the tables."""
    os.environ.update(COLUMNS="100", DATA=".")
    prepare(folder)
    for path in TABLES:
        head = path.read_text(encoding="utf-8").partition("refusals:\n")[0]
        lines = [f"{head}refusals:"]
        for entry in table(path)["refusals"]:
            err = io.StringIO()
            with files_of(folder, path, entry) as here, contextlib.redirect_stderr(err):
                try:
                    status = cli.main(shlex.split(entry["run"]))
                except SystemExit as exit_:
                    status = int(exit_.code or 0)
            fields = {key: entry[key] for key in ("run", "with", "files") if key in entry}
            fields |= {"status": status} if status != REFUSED else {}
            for number, (key, value) in enumerate((fields | {"message": message(err.getvalue(), here)}).items()):
                text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
                text = text.removesuffix("...\n").strip()
                lines.append(f"  {' ' if number else '-'} {key}: {text}")
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
