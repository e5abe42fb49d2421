"""`toolkit.tag` is a function whatever has been imported, in whatever order, though a folder is called so too."""

import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import toolkit
from tests.conftest import ROOT
from toolkit import Document, Mixed
from toolkit.mix.writer import WRITERS

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
