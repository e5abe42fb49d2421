"""A program that forgets what it has begun ends after its last line, and leaves nothing: no process, no file, no word.

What only the collector would end is found so: it collects nothing here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pipeline.conftest import Project
from tests.waiting import PATIENCE

BEGUN = {
    "documents": "iter(data.documents())",
    "joined": "iter(data.joined('shape-0'))",
    "arrow": "data.joined('shape-0').to_arrow()",
    "sql": "data.sql('SELECT * FROM joined')",
}
"""Iterators."""

PROGRAM = """
import gc, json, sys, threading
gc.disable()
import toolkit
given = json.loads(sys.argv[1])
kept = []
def work():
    data = toolkit.Dataset(given)
    for is_begun in (False, True):
        left = {begun}
        kept.append(left)
        if is_begun:
            next(iter(left))
    try:
        toolkit.tag({{**given, "tag": {{"other-0": "nobody"}}}})
    except toolkit.ToolkitError as error:
        kept.append(error)
    print("worked")
if {threaded}:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
"""


@pytest.mark.parametrize("threaded", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["main", "thread"])
@pytest.mark.parametrize(
    "what", ["sql", *(pytest.param(each, marks=pytest.mark.slow) for each in BEGUN if each != "sql")]
)
def test_a_program_ends_that_leaves_an_iterator_unfinished(
    what: str, threaded: bool, small: Project, tmp_path: Path
) -> None:
    given = {"processes": 2, "dataset": str(small.data)}
    (temporary := tmp_path / "temporary").mkdir()
    program = PROGRAM.format(begun=BEGUN[what], threaded=threaded)
    ran = subprocess.run(
        [sys.executable, "-c", program, json.dumps(given)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "worked\n", "")
    assert not [*temporary.iterdir()]
