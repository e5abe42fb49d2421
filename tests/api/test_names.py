"""`toolkit.tag` is a function whatever has been imported, in whatever order, though a folder is called so too."""

import inspect
import re
import subprocess
import sys
from types import ModuleType

import pytest

import toolkit
from tests.conftest import ROOT

SHARED = ("align", "ingest", "mix", "tag")

ORDERS = [
    "toolkit.tag.tagger",
    "toolkit.mix.join, toolkit.tag.run",
    "toolkit.ingest.section, toolkit.whole.section",
    "toolkit.whole, toolkit.mix, toolkit.ingest, toolkit.tag",
    "toolkit.align.section",
    "taggers.noise, mixers.parquet, toolkit.cli",
]


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
    assert isinstance(sys.modules[f"toolkit.{name}"], ModuleType)


def test_nobody_imports_a_folder_by_a_name_that_is_a_function() -> None:
    """``import toolkit.tag.run as x`` would look for `run` in the function."""
    wrong = re.compile(rf"^\s*import toolkit\.({'|'.join(SHARED)})\b", re.MULTILINE)
    paths = [path for name in ("toolkit", "taggers", "mixers", "tests") for path in (ROOT / name).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in paths if wrong.search(path.read_text(encoding="utf-8"))}
    assert found == {"toolkit/__init__.py"}
