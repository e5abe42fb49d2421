"""Calls with worker processes: from a script without a guard, from standard input, and interrupted."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, strays
from tests.waiting import PATIENCE, wait_until

CODE = """
import sys, toolkit
print("begun", flush=True)
def tag():
    global done
    done = toolkit.tag({config!r}, overwrite=True)
{call}
print(done.documents, [row["noise"]["chars"] for row in toolkit.Dataset({data!r}).joined("shape-0")][:2], flush=True)
"""


def code_of(small: Project, call: str) -> str:
    config = {**small.config, "executor": {"type": "local"}, "processes": 2}
    return CODE.format(config=config, data=str(small.data), call=call)


THREAD = "import threading; thread = threading.Thread(target=tag); thread.start(); thread.join()"
LOOP = "import asyncio\nasync def cell(): tag()\nasyncio.run(cell())"
"""A notebook calls from a coroutine, while a loop runs."""


@pytest.mark.parametrize(
    ("how", "call"),
    [("script", "tag()"), ("standard input", LOOP), pytest.param("script", THREAD, marks=pytest.mark.slow)],
)
def test_a_script_needs_no_guard(how: str, call: str, small: Project) -> None:
    """A worker imports no main module: the script would begin again in it."""
    code = code_of(small, call)
    script = small.root / "script.py"
    script.write_text(code)
    arguments, given = ([str(script)], "") if how == "script" else (["-"], code)
    ran = subprocess.run(
        [sys.executable, *arguments], input=given, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (ran.stdout, ran.stderr) == ("begun\n12 [7, 8]\n", "")


SLOW = """
from pathlib import Path
import time
from toolkit import Document, Tagger

class Slow(Tagger):
    def tag(self, document: Document) -> int:
        Path(self.begun).touch()
        time.sleep(600)
        return 1
    begun: str = ""
"""


@pytest.mark.slow
def test_ctrl_c_is_a_keyboard_interrupt_and_leaves_nothing(small: Project) -> None:
    (small.root / "slow.py").write_text(SLOW)
    begun = small.root / "begun"
    tagger = {"tagger": f"{small.root}/slow.py:Slow", "begun": str(begun)}
    config = {**small.config, "tag": {"slow-0": tagger}, "executor": {"type": "local"}, "processes": 2}
    code = (
        "import multiprocessing, toolkit\n"
        "try:\n"
        f"    toolkit.tag({json.dumps(config)!r} + '\\n')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', len(multiprocessing.active_children()))\n"
        f"print(toolkit.Dataset({str(small.data)!r}).sets)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert wait_until(begun.exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert out.splitlines()[0] == "interrupted 0"
    assert process.returncode == 0
    assert [each for each in strays(Path(small.data)) if "leases" in each or each.endswith(".tmp")] == []


AFTERWARDS = """
import os, sys, toolkit
from pathlib import Path
for profile in ("one", "two"):
    os.environ["AWS_PROFILE"] = profile
    toolkit.tag({config!r} | {{"tag": {{profile: {tagger!r}}}}})
    print({{row["key"] for row in toolkit.Dataset({data!r}).joined(profile)}}, flush=True)
pids = Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
print([line for pid in pids if b"resource_tracker" not in (line := Path(f"/proc/{{pid}}/cmdline").read_bytes())])
"""

KEY = """
import os
from toolkit import Document, Tagger

class Key(Tagger):
    def tag(self, document: Document) -> str:
        return os.environ["AWS_PROFILE"]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed in /proc")
def test_workers_have_what_was_set_after_an_earlier_call_and_none_is_left(small: Project) -> None:
    (small.root / "key.py").write_text(KEY)
    config = {
        **small.config,
        "executor": {"type": "local"},
        "processes": 2,
    }
    code = AFTERWARDS.format(config=config, data=str(small.data), tagger=f"{small.root}/key.py:Key")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (ran.stdout, ran.stderr) == ("{'one'}\n{'two'}\n[]\n", "")
