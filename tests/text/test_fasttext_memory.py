"""What compiled predictions read, and how much memory processes need for a model."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz.guards import Guards
from tests.text.fasttext_models import KINDS, KNOWN, in_process, odd_line, trained
from tests.waiting import PATIENCE
from toolkit.text.fasttext.model import FastTextModel
from toolkit.text.line_table import PADDING, LineTable


def predict_between_guards(paths: list[str]) -> None:
    """With all arrays between memory that may not be touched; a process that does ends by a signal."""
    chance = random.Random(3)
    texts = [odd_line(chance) for _ in range(40)] + ["a" * 9000, "é" * 5000, "", "x", " ".join(KNOWN)]
    plain = LineTable.of(["\n".join(texts)])
    wanted = [FastTextModel(path)._found(plain, k=3, threshold=0.0) for path in paths]
    lines = plain._replace(utf8=plain.utf8[: len(plain.utf8) - PADDING + 8])  # what the compiled code asks for
    guards = Guards()
    guards.install()
    for guards.at_end in (True, False):
        for path, expected in zip(paths, wanted, strict=True):
            got = FastTextModel(path)._found(lines, k=3, threshold=0.0)
            assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, got, strict=True))
    assert guards.calls >= 4 * len(paths)


@pytest.mark.slow
def test_nothing_outside_the_arrays_is_read_or_written(tmp_path: Path) -> None:
    kinds = ["hs, pruned, of word n-grams, without norms", "softmax, long word n-grams", "ova", "words alone"]
    paths = [trained(tmp_path / f"{i}.bin", **KINDS[kind]) for i, kind in enumerate(kinds)]
    code = f"from {__name__} import predict_between_guards; import sys; predict_between_guards(sys.argv[1:])"
    ran = in_process(code, *paths)
    assert (ran.returncode, ran.stderr) == (0, "")


MEMORY = """
import json, re, sys
from toolkit.text.line_table import LineTable
from toolkit.text.fasttext.model import FastTextModel

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])

lines = LineTable.of([" ".join(f"{i + j:x}z{i + j:o}" for j in range(50)) for i in range(0, 150_000, 50)])
before = anonymous()
model = FastTextModel(sys.argv[1])
found = model.predict_lines(lines).raw()
print(anonymous() - before, flush=True)
sys.stdin.readline()
parts = re.split(r"\\n(?=[0-9a-f]+-)", open("/proc/self/smaps").read())
(part,) = [part for part in parts if part.partition("\\n")[0].endswith(sys.argv[1])]
keys = ["Size", "Rss", "Pss", "Private_Dirty"]
print(json.dumps({key: int(re.search(rf"\\n{key}:\\s+(\\d+)", part)[1]) for key in keys}), flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_processes_share_a_large_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """64 MB, of which each process has a few of its own."""
    path = trained(tmp_path / "large.bin", dim=16, minn=2, maxn=4, bucket=1_000_000, epoch=1)
    many = [
        subprocess.Popen(
            [sys.executable, "-c", MEMORY, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(4)
    ]

    def answers() -> Iterator[str]:
        for each in many:
            assert each.stdout
            yield each.stdout.readline()

    def go_on() -> None:
        for each in many:
            assert each.stdin
            each.stdin.write("\n")
            each.stdin.flush()

    own = [int(answer) for answer in answers()]
    go_on()
    maps = [json.loads(answer) for answer in answers()]
    go_on()
    assert [each.wait(PATIENCE) for each in many] == [0] * len(many)
    with capsys.disabled():
        print(
            f"\n{os.path.getsize(path) >> 20} MB model, {len(many)} processes: own memory {own} KB; "
            f"mapping (KB) {maps[0]}"
        )
    for each in many:
        assert each.stdin
        assert each.stdout
        each.stdin.close()
        each.stdout.close()
    assert max(own) < 12_000
    assert all(each["Rss"] > 40_000 and each["Pss"] < each["Rss"] / 2 and not each["Private_Dirty"] for each in maps)
