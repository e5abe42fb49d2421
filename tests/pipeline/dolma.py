"""A folder with documents, attributes and a configuration of Dolma's, for tests."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conftest import Ran
from tests.pipeline.conftest import Folder, JsonRows, attributes, document, read_rows, write_rows
from toolkit.storage.compression import zstd

TEN = "0123456789"
STREAM: dict[str, Any] = {
    "name": "s",
    "documents": ["DATA/documents/**/*.gz"],
    "attributes": ["m"],
    "span_replacement": [{"span": "$.attributes.s", "min_score": 0.5}],
    "output": {"path": "OUT"},
}
SHARD = "x.json.gz"


class Dolma(Folder):
    """With documents, attributes and a configuration of Dolma's."""

    @property
    def stream(self) -> dict[str, Any]:
        """The first stream of the configuration."""
        found: dict[str, Any] = self.config["streams"][0]
        return found

    def place(self, config: Any) -> Any:
        """The configuration with our folders in place of ``DATA`` and ``OUT``."""
        return json.loads(json.dumps(config).replace("DATA", str(self.data)).replace("OUT", str(self.out)))

    def put(
        self, rows: Iterable[Any], values: Iterable[Any] | None = None, shard: str = SHARD, name: str = "m"
    ) -> Path:
        """Writes documents, and their attributes as a set; of documents that are no rows, the texts are told."""
        listed = [row if isinstance(row, dict | bytes) else document(f"d{i}", row) for i, row in enumerate(rows)]
        write_rows(self.data / "documents" / shard, listed)
        path = self.data / "attributes" / name / shard
        return path if values is None else write_rows(path, [attributes(f"d{i}", v) for i, v in enumerate(values)])

    def __call__(self, *arguments: object, command: str = "mix", suffix: str = "json") -> Ran:
        path = self.root / f"config.{suffix}"
        path.write_text(json.dumps(self.place(self.config)))
        return self.run(command, "-c", path, *arguments)

    def ok(self, *arguments: object, command: str = "mix", suffix: str = "json") -> Ran:
        """As a call, for what must succeed."""
        return self(*arguments, command=command, suffix=suffix).succeeds()

    def texts(self) -> dict[str, str]:
        """What came out, by id."""
        return {row["id"]: row["text"] for rows in outputs(self.out).values() for row in rows}


def filtered(dolma: Dolma, **how: Any) -> None:
    """Makes a filter of what the stream does."""
    dolma.stream.pop("span_replacement", None)
    dolma.stream["filter"] = how


def files(root: Path) -> list[Path]:
    return [p for p in sorted(root.rglob("*")) if p.is_file() and ".toolkit" not in p.parts and p.suffix != ".txt"]


def outputs(root: Path) -> dict[str, JsonRows]:
    """The rows of an output by the name of a stream, be it in one file or several."""
    found: dict[str, JsonRows] = {}
    for path in files(root):
        name = re.sub(r"(-\d{4})?\.jsonl?(\.gz|\.zst)?$", "", str(path.relative_to(root)))
        data = zstd().decompress(path.read_bytes()).split(b"\n") if path.suffix == ".zst" else None
        rows = read_rows(path) if data is None else [json.loads(line) for line in data if line]
        found.setdefault(name, []).extend(rows)
    return found


def refused(ran: Ran, dolma: Dolma, *words: str) -> None:
    """Status 1, nothing published, and a message with these words."""
    assert ran.code == 1
    for word in words:
        assert word in ran.err
    assert files(dolma.out) == []
