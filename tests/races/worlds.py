"""What races are run over: inputs of several shapes, the configuration of all steps, and what one process makes."""

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.recipes import mix_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join

WORDS = (
    "the",
    "of",
    "library",
    "opens",
    "at",
    "nine",
    "closed",
    "on",
    "Sundays",
    "because",
    "people",
    "read",
    "letters",
)

SHAPES = ("plain", "many", "cut", "packed")
"""Few inputs, each a shard; so many that they are done in groups; inputs that are cut; small ones in packs."""

FINDS = ("nothing", "copies", "all")
"""What is looked for over the whole dataset: nothing, duplicates, or also similar ones, a sample and ranks."""

CHANGES = ("", "rule", "input", "tagger")
"""What is changed before the second act: nothing, a rule of the mix, the inputs, the options of a tagger."""


OUTPUTS = ("", "", "rejected", "shuffled", "budget", "zstd", "editions", "per shard")
"""How the output is made: also dropped documents, shuffled, to a budget, by zstd, twice, input by input."""


@dataclass(frozen=True)
class World:
    """A corpus and its configuration, from which one process always makes the same bytes.

    Attributes:
        shape: of the inputs.
        finds: what is looked for over the whole dataset.
        change: that has been made; empty for none.
        output: how it is made, one of `OUTPUTS`.
    """

    shape: str
    finds: str
    change: str = ""
    output: str = ""

    @property
    def is_per_shard(self) -> bool:
        """Whether `run` deletes what was made of an input when it is mixed, which nothing of the whole may need."""
        return self.output == "per shard" and self.finds == "nothing"

    @property
    def sections(self) -> list[str]:
        """The commands that do one after the other what `run` does."""
        whole = {"nothing": [], "copies": ["dedup"], "all": ["dedup", "sample", "calibrate"]}[self.finds]
        return ["ingest", "tag", *whole, "mix"]

    def lay_out(self, root: str, processes: int) -> str:
        """Write inputs and configuration below a root; return the path of the configuration."""
        for name, data in self._inputs().items():
            write_file(join(root, name), data)
        path = join(root, "c.yaml")
        write_file(path, json.dumps(self._config(root, processes)).encode())
        return path

    def _inputs(self) -> dict[str, bytes]:
        count = 18 if self.shape == "many" else 8
        found = {f"in/{'abc'[i % 3]}/{i:02}.jsonl": _rows(i, 4 + i % 5) for i in range(count)}
        if self.change == "input":
            found["in/a/00.jsonl"] = _rows(100, 3)
            found["in/b/new.jsonl"] = _rows(101, 4)
        return found

    def _config(self, root: str, processes: int) -> dict[str, Any]:
        entry: dict[str, Any] = {"format": "jsonl", "from": f"{root}/in/**/*.jsonl", "source": "s"}
        entry |= {"cut": {"shard_size": "600 B"}, "packed": {"pack": "3 kB"}}.get(self.shape, {})
        rules: list[dict[str, Any]] = [{"drop": "length.words < 6", "name": "short"}]
        if self.change == "rule":
            rules.append({"drop": "length.words > 40", "name": "long"})
        shape = {"tagger": "line_shape", "short_chars": 30 if self.change == "tagger" else 20}
        found: dict[str, Any] = {
            "dataset": join(root, "data"),
            "processes": processes,
            "ingest": [entry],
            "tag": {"length-0": "length", "shape-0": shape},
            "mix": mix_of(join(root, "out"), *rules, attributes=["length-0", "shape-0"], output={"part_size": "2 kB"}),
        }
        if self.finds != "nothing":
            found["dedup"] = {"exact-0": {"kind": "exact", "as": "exact"}}
            rules.append({"drop": "exact.duplicate_of is not None", "name": "copies"})
            found["mix"]["attributes"].append("exact-0")
        if self.finds == "all":
            found["dedup"]["near-0"] = {"kind": "near", "ngram": 2, "jaccard": 0.5}
            found["sample"] = {"drawn-0": {"documents": 12}}
            found["calibrate"] = {"rank-0": {"kind": "rank", "score": "length.words"}}
            found["mix"]["attributes"] += ["near-0", "rank-0"]
        mix = found["mix"]
        if self.output == "rejected":
            mix["rejected"] = join(root, "out-rejected")
        elif self.output == "shuffled":
            mix["output"]["shuffle"] = {"seed": 1}
        elif self.output == "budget" and self.finds == "nothing":  # else the stages that it needs are not there yet
            mix["budget"] = {"documents": 20}
        elif self.output == "zstd":
            found["compression"] = "zstd"
        elif self.output == "editions":
            edition = {"rules": [{"drop": "length.words < 12", "name": "shorter"}]}
            mix["editions"] = {"long": {**edition, "output": {"path": join(root, "out-long")}}}
        return found


def _rows(seed: int, count: int) -> bytes:
    """Documents, of which some are in several inputs."""
    rows = []
    for number in range(count):
        chance = random.Random(number if number % 4 == 3 else seed * 100 + number)
        text = " ".join(chance.choices(WORDS, k=chance.randrange(3, 50)))
        rows.append({"id": f"{seed}-{number}", "text": text.replace(" at ", "\n")})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
