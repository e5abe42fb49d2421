"""Mutants of fastText models: the reader refuses them, or predicts what the fastText library predicts from them.

Each is read by a child process in which all arrays of compiled code lie between memory that may not be touched (see
`guards`), twice, at either end of it. What is accepted is then given to the library in another child. A crash, or a
process that does not end, names the mutant by its seed, and leaves its bytes in a file.
"""

import json
import random
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fuzz import bases, targets
from tests.waiting import PATIENCE
from toolkit.text.fasttext.model_file import NS, OVA, PRUNED_BUCKETS

BATCH = 2500  # mutants of a process
HANGS = 900  # seconds of a batch; a few are usual
WORK = 100
"""Work that a byte of a file may cost: calls in Python, and elements that are given to compiled code."""
LEAST_WORK = 1 << 20
BITS = 6 * PRUNED_BUCKETS // 64  # of buckets, given to three calls in two arrays
NEAR, STEP = 1e-4, 1e-2
"""Between probabilities; the second one where they are from a table, whose neighbours differ by 1/128."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of all kinds."""
    made = tmp_path_factory.mktemp("bases")
    bases.make(made)
    return made


def in_child(what: str, folder: Path, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """What became of mutants."""
    with Path(folder, f"{what}-{seeds[0]}.jsonl").open("w+") as out:
        child = [sys.executable, "-m", "tests.fuzz.worker", what, str(folder)]
        ran = subprocess.run(
            child, input=json.dumps(seeds), stdout=out, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=HANGS
        )
        out.seek(0)
        told = [json.loads(line) for line in out if line.endswith("\n")]
    assert ran.returncode == 0, f"{what}: status {ran.returncode} at {told[-1:]}: {ran.stderr[-2000:]}"
    found = [each for each in told if "kind" in each]
    assert [each["seed"] for each in found] == seeds
    yield from found


def batches(seeds: Iterable[int]) -> Iterator[list[int]]:
    todo = list(seeds)
    for begin in range(0, len(todo), BATCH):
        yield todo[begin : begin + BATCH]


def agree(ours: list[Any], library: list[Any], within: float) -> bool:
    """The same labels and probabilities, but for labels that are as probable."""
    if len(ours) != len(library) or any(abs(a - b) > within for (_, a), (_, b) in zip(ours, library, strict=True)):
        return False
    probs = dict(library)
    return all(abs(probs.get(label, prob) - prob) <= 2 * within for label, prob in ours)


def campaign(folder: Path, seeds: range) -> str:
    """Read mutants; what became of them, in words."""
    counts: Counter[str] = Counter()
    accepted: dict[int, dict[str, Any]] = {}
    for batch in batches(seeds):
        for found in in_child("ours", folder, batch):
            counts["pass magic and version"] += found["passes"]
            if "refused" in found:
                counts["refused"] += 1
            else:
                accepted[found["seed"]] = found
                assert found["twice"], f"expected the same predictions twice, got others: {found}"
            assert found["work"] <= LEAST_WORK + BITS + WORK * found["size"], found
    # the library fills a table of ten million numbers for each model of the loss `ns`
    asked = [seed for seed, found in accepted.items() if found["loss"] != NS or seed % 8 == 0]
    for batch in batches(asked):
        for found in in_child("library", folder, batch):
            ours = accepted[found["seed"]]
            within = STEP if ours["loss"] in (NS, OVA) else NEAR
            pairs = list(zip(ours["said"], found["said"], strict=True))
            assert all(agree(a, b, within) for a, b in pairs), (ours, found)
            counts["predictions that agree"] += len(pairs)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    assert 2 * counts["pass magic and version"] >= len(seeds)
    return (
        f"{len(seeds):,} mutants, {counts['pass magic and version']:,} with magic and version: {counts['refused']:,} "
        f"refused, {len(accepted):,} accepted, {len(asked):,} of them read by the library, "
        f"{counts['predictions that agree']:,} predictions that agree; at most {memory:,} MB"
    )


@pytest.mark.slow
def test_a_few_mutants(folder: Path) -> None:
    campaign(folder, range(60))


@pytest.mark.slow
def test_some_thousand_mutants(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = campaign(folder, range(1000, 5000))
    with capsys.disabled():
        print(f"\n{told}")


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_mutants(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = campaign(folder, range(10_000, 110_000))
    with capsys.disabled():
        print(f"\n{told}")


# --- what is measured with --------------------------------------------------------------------------------------------

OUTSIDE = """
import sys
import numpy as np
from pathlib import Path
from tests.fuzz.guards import Guards
from toolkit.text.fasttext import model as fasttext_model, model_file as fasttext_file
from toolkit.text.line_table import LineTable

guards = Guards()
guards.install()
guards.at_end = sys.argv[2] != "begin"
contents = fasttext_file.read(sys.argv[1])
if sys.argv[2] == "bucket":
    contents = contents._replace(bucket=2_000_000_000)
model = fasttext_model._Compiled(contents)
if sys.argv[2] != "bucket":
    words = model._model.words
    places = words.places + (-1 if sys.argv[2] == "begin" else 1) * len(contents.data)
    model._model = model._model._replace(words=words._replace(places=places))
print("loaded", flush=True)
model(LineTable.of(["alpha beta δέλτα\\nunseen"]), k=1, threshold=0.0)
print("predicted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["bucket", "begin", "end"])
def test_without_the_checks_the_guards_end_the_process(folder: Path, what: str) -> None:
    """A number that the reader would refuse, and places of words before and behind the file."""
    ran = subprocess.run(
        [sys.executable, "-c", OUTSIDE, str(folder / "0.bin"), what],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode < 0, (ran.stdout, ran.stderr)


# What is fuzzed by hand, on inputs that get far, on what once broke something, and on changes of both.

CHANGES = 40
NEEDS = {"parquet": "pyarrow", "tokenizer": "tokenizers", "jq": "jq", "jsonpath": "jsonpath"}


def changed(chance: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return an input with a few bytes changed, cut, doubled, or taken from another."""
    made = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, size = chance.randrange(len(made) + 1), chance.choice([1, 1, 2, 8, 40])
        how = chance.randrange(5)
        if how == 0:
            made[at : at + size] = chance.randbytes(size)
        elif how == 1:
            del made[at : at + size]
        elif how == 2:
            made[at:at] = made[at : at + size]
        elif how == 3:
            made[at : at + 1] = chance.choice([b"\0", b"\xff", b"\n", b'"', b"9" * 20, b"-", b"[", b"{", b"\xc3", b":"])
        else:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            made[at : at + size] = other[begin : begin + size]
    return bytes(made)


@pytest.mark.parametrize("name", targets.names())
def test_whatever_it_is_given_it_is_refused_or_read_right(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "json"))
    target = targets.find(name)
    inputs = [*target.SEEDS, *targets.crashers(name)]
    for data in inputs:
        target.check(data)
    chance = random.Random(name)
    for _ in range(CHANGES):
        target.check(changed(chance, chance.choice(inputs), inputs))
