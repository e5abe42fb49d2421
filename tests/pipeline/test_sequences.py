"""Random sequences of commands, changes, damage and kills, against a model in memory.

The model knows what was ingested and tagged last, and by which options. From that follows whether a command may
succeed, and what the output has then. Damage makes commands fail, or is mended; it never makes a wrong output.
"""

import contextlib
import io
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.conftest import ROOT
from tests.pipeline.conftest import read_rows, strays, write_rows
from tests.pipeline.test_kill import DiesAt, Killed
from toolkit import cli

TEXTS = st.lists(st.text(alphabet="ab \n", min_size=1, max_size=12), min_size=1, max_size=4)
NAMES = st.sampled_from(["x", "y/z", "w"])
DAMAGES = ("delete", "cut", "empty", "flip")


class Commands(RuleBasedStateMachine):
    """A dataset and its output, and what they should be."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="sequences-"))
        self.inputs: dict[str, list[str]] = {}
        self.ingested: dict[str, list[str]] = {}
        self.tagged: dict[str, list[str]] = {}
        self.letter, self.tagged_letter = "a", "a"
        self.most = 1
        self.is_sound = True  # nothing was damaged, and no command was killed, since all was last made

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    # --- commands -----------------------------------------------------------------------------------------------------

    def call(self, *arguments: str) -> tuple[int, str]:
        """Run a command line; its status, and what it said."""
        config = {
            "dataset": str(self.root / "data"),
            "ingest": [{"format": "jsonl", "from": [f"{self.root}/in/**/*.jsonl.gz"], "source": "s"}],
            "tag": {"counted-0": {"tagger": f"{ROOT}/tests/pipeline/counting.py:Counted", "letter": self.letter}},
            "mix": {
                "attributes": ["counted-0"],
                "rules": [{"drop": f"counted > {self.most}", "name": "many"}],
                "allow_empty": True,
                "output": {"format": "dolma", "path": str(self.root / "out"), "part_size": "300"},
            },
        }
        path = self.root / "c.yaml"
        path.write_text(json.dumps(config))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = cli.main([*arguments, "-c", str(path)])
        assert code in (0, 1, 2), said.getvalue()
        return code, said.getvalue()

    def expected(self) -> list[tuple[str, str]]:
        """Ids and texts of the output: of what was ingested, by the letter that was counted."""
        return [
            (f"{name}-{i}", text)
            for name in sorted(self.ingested)
            for i, text in enumerate(self.ingested[name])
            if text.count(self.tagged_letter) <= self.most
        ]

    def found(self) -> list[tuple[str, str]]:
        parts = [path for path in (self.root / "out").rglob("*.jsonl.gz") if ".toolkit" not in path.parts]
        return sorted((row["id"], row["text"]) for path in parts for row in read_rows(path))

    @initialize(texts=TEXTS)
    def begin(self, texts: list[str]) -> None:
        self.change_input("x", texts)

    @rule(name=NAMES, texts=TEXTS)
    def change_input(self, name: str, texts: list[str]) -> None:
        rows = [{"id": f"{name}-{i}", "text": text} for i, text in enumerate(texts)]
        write_rows(self.root / "in" / f"{name}.jsonl.gz", rows)
        self.inputs[name] = texts

    @rule(letter=st.sampled_from("ab"))
    def change_tagger(self, letter: str) -> None:
        self.letter = letter

    @rule(most=st.integers(0, 3))
    def change_rule(self, most: int) -> None:
        self.most = most

    @rule()
    def ingest(self) -> None:
        code, said = self.call("ingest")
        assert code == 0 or not self.is_sound, said
        if code == 0:
            self.ingested = dict(self.inputs)

    @precondition(lambda self: self.ingested)
    @rule(overwrite=st.booleans())
    def tag(self, overwrite: bool) -> None:
        """Another option under the same name of a set is refused, but for `--overwrite`."""
        code, said = self.call("tag", *(["--overwrite"] if overwrite else []))
        if self.is_sound:
            refused = bool(self.tagged) and self.letter != self.tagged_letter and not overwrite
            assert code == (2 if refused else 0), said
        if code == 0:
            self.tagged, self.tagged_letter = dict(self.ingested), self.letter

    @precondition(lambda self: self.ingested)
    @rule()
    def mix(self) -> None:
        """What is not tagged, or was tagged otherwise, is refused; and the output that is there stays."""
        before = self.found()
        code, said = self.call("mix")
        may = self.tagged == self.ingested and self.letter == self.tagged_letter
        if code == 0:
            assert may, said
            assert self.found() == sorted(self.expected())
        else:
            assert not self.is_sound or not may, said
            assert not self.is_sound or self.found() == before

    @rule()
    def run(self) -> None:
        refused = bool(self.tagged) and self.letter != self.tagged_letter
        code, said = self.call("run")
        if self.is_sound:
            assert code == (2 if refused else 0), said
        if code == 0:
            self.made()

    def made(self) -> None:
        """All was made of what there is."""
        self.ingested = self.tagged = dict(self.inputs)
        self.tagged_letter = self.letter
        assert self.found() == sorted(self.expected())

    @rule()
    def look(self) -> None:
        for command in ("status", "validate"):
            self.call(command)

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    @rule(command=st.sampled_from(["ingest", "tag", "mix", "run"]), calls=st.integers(0, 12), after=st.booleans())
    def kill(self, command: str, calls: int, after: bool) -> None:
        """At a step by which something becomes visible; what was made until then may be there or not."""
        self.is_sound = False
        with mock.patch.object(os, "replace", DiesAt(os.replace, calls, after=after)), contextlib.suppress(Killed):
            self.call(command)
        self.mend()

    @rule(data=st.data(), how=st.sampled_from(DAMAGES))
    def damage(self, data: st.DataObject, how: str) -> None:
        """A file of ours; a command that succeeds nevertheless has made what it should."""
        roots = [self.root / name for name in ("data", "out")]
        files = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
        if not files:
            return
        path = data.draw(st.sampled_from(range(len(files))).map(files.__getitem__))
        content = path.read_bytes()
        if how == "delete":
            path.unlink()
        else:
            path.write_bytes({
                "cut": content[: len(content) // 2],
                "empty": b"",
                "flip": content[:-9] + bytes([*content[-9:-8]]).translate(bytes(range(255, -1, -1))) + content[-8:],
            }[how])  # fmt: skip
        self.is_sound = False
        before = self.ingested, self.tagged
        if self.ingested and self.call("mix")[0] == 0 and self.tagged == self.ingested:
            assert self.letter == self.tagged_letter
            assert self.found() == sorted(self.expected())
        assert (self.ingested, self.tagged) == before
        path.unlink(missing_ok=True)
        self.mend()

    def mend(self) -> None:
        """One more run makes all that is missing; what was tagged otherwise is made anew."""
        code, said = self.call("run", "--overwrite")
        assert code == 0, said
        self.made()
        assert strays(self.root / "data") == []
        assert strays(self.root / "out") == []
        self.is_sound = True


def search(examples: int, steps: int) -> type:
    """Return the test of so many sequences."""
    found: Any = Commands.TestCase
    found = type("TestSequences", (found,), {})
    found.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
    return found  # type: ignore[no-any-return]


TestFew = search(5, 8)
TestMany = pytest.mark.long(pytest.mark.timeout(4 * 3600)(search(400, 30)))
