"""`toolkit.tag` is a function whatever has been imported, in whatever order, though a folder is called so too."""

import importlib
import inspect
import json
import operator
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import toolkit
import toolkit.api.dataset
from tests.conftest import ROOT
from tests.pipeline.conftest import Project, strays
from tests.waiting import PATIENCE, wait_until
from toolkit import Document, Mixed
from toolkit.mix.writer import WRITERS

SHARED = ("align", "ingest", "mix", "tag")

ORDERS = [
    "toolkit.tag.tagger",
    "toolkit.mix.join, toolkit.tag.run",
    "toolkit.ingest.ingest_config, toolkit.whole_corpus.corpus_config",
    "toolkit.whole_corpus, toolkit.mix, toolkit.ingest, toolkit.tag",
    "toolkit.align.align_config",
    "taggers.noise, mixers.parquet, toolkit.cli",
]


@pytest.mark.slow
def test_functions_have_their_names_in_all_orders_of_imports() -> None:
    code = (
        "import sys\n"
        f"for order in {ORDERS!r}:\n"
        "    for name in [name for name in sys.modules if name.startswith(('toolkit', 'taggers', 'mixers'))]:\n"
        "        del sys.modules[name]\n"
        "    exec(f'import {order}')\n"
        "    from toolkit import dedup, ingest, mix, tag\n"
        "    import toolkit\n"
        "    from toolkit.tag.run import tag_shard\n"
        "    from toolkit.mix import join\n"
        f"    for name in {SHARED!r}:\n"
        "        assert getattr(toolkit, name).__name__ == name, (order, name)\n"
        "    assert [tag, mix] == [toolkit.tag, toolkit.mix]\n"
        "    assert tag.__module__ == 'toolkit.api.commands' and join.__name__ == 'toolkit.mix.join'\n"
        "print('all')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("all\n", "")


@pytest.mark.parametrize("name", SHARED)
def test_folders_are_there_for_those_who_name_them_in_full(name: str) -> None:
    assert inspect.isfunction(getattr(toolkit, name))
    assert isinstance(importlib.import_module(f"toolkit.{name}"), ModuleType)


def test_nobody_imports_a_folder_by_a_name_that_is_a_function() -> None:
    """``import toolkit.tag.run as x`` would look for `run` in the function."""
    wrong = re.compile(rf"^\s*import toolkit\.({'|'.join(SHARED)})\b", re.MULTILINE)
    paths = [path for name in ("toolkit", "taggers", "mixers", "tests") for path in (ROOT / name).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in paths if wrong.search(path.read_text(encoding="utf-8"))}
    assert not found


def test_an_earlier_name_says_the_new_one() -> None:
    """By the table in the changelog, which has all of them; `mix` takes an argument in place of two functions."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `toolkit\.(\w+)` \| `([^`]+)` \|$", text, re.MULTILINE))
    assert table == toolkit._RENAMED
    for name, new in table.items():
        assert callable(operator.attrgetter(new.removeprefix("toolkit.").partition("(")[0])(toolkit))
        with pytest.raises(ImportError, match=re.escape(f"toolkit.{name} is {new} now")):
            exec(f"from toolkit import {name}")
    with pytest.raises(ImportError, match="cannot import name 'nobody'"):
        exec("from toolkit import nobody")


EARLIER = '''
"""A tagger and an output format, as they were written before names moved."""

import msgspec
import toolkit
import toolkit.api.dataset
from toolkit import Document, Files, Mixed, Tagger, Writer


class Listed(Tagger):
    """Counts lines that a list has."""

    names: Files

    def tag(self, document: Document) -> int:
        listed = toolkit.entries(toolkit.for_language(self.names, None))
        return sum(line in listed for line in toolkit.split_lines(document.text))


class Hosts(Writer):
    """Ids, by host."""

    def encode(self, document: Document, mixed: Mixed) -> list[tuple[str, bytes]]:
        fields = msgspec.json.decode(toolkit.merge_fields(document.raw_metadata, mixed.fields))
        host = toolkit.host_of(toolkit.url_of({"metadata": fields}) or toolkit.value_at(fields, "warc.url"))
        return [(toolkit.check_label(host), document.id.encode() + b"\\n")]
'''


def test_a_plugin_is_ported_by_the_table_alone(tmp_path: Path) -> None:
    ported = re.sub(r"toolkit\.(\w+)", lambda match: toolkit._RENAMED.get(match[1], match[0]), EARLIER)
    (tmp_path / "ported.py").write_text(ported)
    (tmp_path / "names.txt").write_text("a\n\n# no\nb\n")
    (found,) = toolkit.try_tagger(f"{tmp_path}/ported.py:Listed", ["a\nc\nb"], names=str(tmp_path / "names.txt"))
    assert found == 2
    writer = WRITERS.find(f"{tmp_path}/ported.py:Hosts")()
    document = Document("", id="7", source="s", metadata={"url": "https://Example.org/x"})
    assert list(writer.encode(document, Mixed({}, []))) == [("example.org", b"7\n")]


def test_a_method_that_has_another_name_now_is_named() -> None:
    """A reader's attributes went nowhere, and nothing said so."""
    with pytest.raises(ImportError, match=r"attribute_set of Rated is toolkit\.Reader\.attribute_sets"):
        exec("class Rated(toolkit.Reader):\n    def attribute_set(self): return 'rated-0'")


# Calls with worker processes: from a script without a guard, from standard input, and interrupted.

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
    [
        ("script", "tag()"),
        pytest.param("standard input", LOOP, marks=pytest.mark.slow),
        pytest.param("script", THREAD, marks=pytest.mark.slow),
    ],
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="children are listed in /proc")
def test_workers_have_what_was_set_after_an_earlier_call_and_none_is_left(small: Project) -> None:
    (small.root / "key.py").write_text(KEY)
    config = {**small.config, "executor": {"type": "local"}, "processes": 2}
    code = AFTERWARDS.format(config=config, data=str(small.data), tagger=f"{small.root}/key.py:Key")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (ran.stdout, ran.stderr) == ("{'one'}\n{'two'}\n[]\n", "")


@pytest.mark.parametrize(
    ("name", "result"),
    [("align", "Alignment"), ("dedup", "SetsOfWhole"), ("ingest", "IngestResult"), ("train", "TrainResult")],
)
def test_the_signature_of_a_function_says_its_result(name: str, result: str) -> None:
    assert inspect.signature(getattr(toolkit, name)).return_annotation in (result, f'"{result}"')
