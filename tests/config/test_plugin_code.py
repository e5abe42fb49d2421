"""The code of plugins from files: what of an edit changes its digest, and which modules belong to it."""

import ast
import importlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolkit.config.plugin_code import changes, code_of, code_of_module, digest_of_tree
from toolkit.config.syntax_trees import parse_expression
from toolkit.tag.tagger import TAGGERS

TAGGER = '''"""Module."""

import json  # which is no module of this folder

from typing import Annotated

import msgspec

from toolkit import Document, Tagger


class Good(Tagger):
    """Class."""

    factor: int = 2
    """Field."""
    times: Annotated[int, msgspec.Meta(ge=0, description="how often")] = 1

    def tag(self, document: Document) -> int:
        """Method."""
        return self.factor * len(document.text)  # comment
'''

SAME = [
    TAGGER.replace("# comment", "# another"),
    TAGGER.replace('"""Method."""', '"""Another\n\n        one."""'),
    TAGGER.replace('        """Method."""\n', ""),
    TAGGER.replace('"""Module."""\n', "# none\n\n\n"),
    TAGGER.replace('    """Field."""\n', ""),
    TAGGER.replace('"how often"', '"how many times"'),
    TAGGER.replace(', description="how often"', ""),
    TAGGER.replace("self.factor * len(document.text)", "(self.factor\n            * len( document.text ))"),
]
OTHER = [
    TAGGER.replace("= 2", "= 3"),
    TAGGER.replace("= 2", "= 2.0"),
    TAGGER.replace("= 2", "= True + 1"),
    TAGGER.replace("self.factor *", "self.factor +"),
    TAGGER.replace("ge=0", "ge=1"),
    TAGGER.replace("Meta(ge=0, description", "Meta(ge=0, title"),
    TAGGER.replace("document.text)", "document.id)"),
    TAGGER.replace("return self", 'return "" or self'),
    TAGGER.replace("return self", "return not self"),
]


def digest(code: str) -> str:
    return digest_of_tree(ast.parse(code))


def test_comments_docstrings_and_layout_do_not_count_and_all_else_does() -> None:
    assert {digest(code) for code in SAME} == {digest(TAGGER)}
    assert len({digest(code) for code in (TAGGER, *OTHER)}) == len(OTHER) + 1


def test_a_digest_is_the_same_in_every_version_of_python() -> None:
    """Golden: the machines of a cluster may have several versions, and sets outlive them."""
    code = """
async def f(a, /, *b, c=1.5e300, **d) -> int:
    return f"{a!r:>{c}} x" f"{c=}" "y" + rb"\\0"

@p
class A(B, metaclass=C):
    x: int = [*a, -1j, ...]
    y = lambda: (z := {**d})
"""
    assert digest(code) == "57c5670c8289d0f6ac13e4d53c49b96f"


def test_texts_that_stand_apart_are_not_one() -> None:
    assert digest("['a', 'b']") != digest("['ab']")
    assert digest("f'a' f'b'") == digest("f'ab'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(TAGGER)
    (tmp_path / "unused.py").write_text("x = 1\n")
    return tmp_path


def code(folder: Path) -> dict[str, str]:
    return code_of(TAGGERS.find(f"{folder}/good.py:Good"))


def test_plugins_of_the_toolkit_have_none_and_are_known_by_their_version() -> None:
    assert code_of(TAGGERS.find("noise")) == {}


def test_a_file_belongs_to_it_with_the_modules_of_its_folder_that_it_imports(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    alone = code(folder)
    assert list(alone) == ["good.py"]
    (folder / "own_helper.py").write_text("import own_words.lists\nFACTOR = 2\n")
    (folder / "own_words").mkdir()
    (folder / "own_words" / "__init__.py").write_text("")
    (folder / "own_words" / "lists.py").write_text("WORDS = ['a']\n")
    (folder / "good.py").write_text(TAGGER.replace("import json", "import json\nfrom own_helper import FACTOR"))
    whole = code(folder)
    assert list(whole) == ["good.py", "own_helper.py", "own_words/__init__.py", "own_words/lists.py"]
    assert changes(alone, whole) == ["good.py", "own_helper.py", "own_words/__init__.py", "own_words/lists.py"]
    (folder / "own_words" / "lists.py").write_text("WORDS = ['b']\n")
    code_of_module.cache_clear()
    assert changes(whole, code(folder)) == ["own_words/lists.py"]
    (folder / "moved").mkdir()
    for path in ("good.py", "own_helper.py"):
        (folder / path).rename(folder / "moved" / path)
    (folder / "own_words").rename(folder / "moved" / "own_words")
    assert code(folder / "moved")["good.py"] == whole["good.py"]
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_a_module_of_a_package_belongs_to_it_with_what_it_imports_of_the_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    inner = folder / "own_package" / "taggers"
    inner.mkdir(parents=True)
    for path in (inner.parent / "__init__.py", inner / "__init__.py", inner.parent / "unused.py"):
        path.write_text("")
    (inner.parent / "common.py").write_text("A = 1\n")
    (inner.parent / "base.py").write_text("from own_package.common import A\n")
    (inner / "beside.py").write_text("B = 1\n")
    more = "import json\nfrom own_package.base import A\nfrom . import beside\nfrom ..common import A as C"
    (inner / "good.py").write_text(TAGGER.replace("import json", more))
    found = code_of(importlib.import_module("own_package.taggers.good").Good)
    assert {"good.py", "beside.py", "../base.py", "../common.py"} <= set(found)
    assert not any("unused" in name for name in found)


def test_what_is_installed_beside_it_does_not_belong_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "own_single.py").write_text(TAGGER.replace("import json", "import json\nimport own_other"))
    (installed / "own_other.py").write_text("")
    monkeypatch.syspath_prepend(str(installed))
    assert list(code_of(importlib.import_module("own_single").Good)) == ["own_single.py"]


def test_an_edited_file_is_loaded_again(folder: Path) -> None:
    before = TAGGERS.find(f"{folder}/good.py:Good")
    code_before = code_of(before)
    (folder / "good.py").write_text(TAGGER.replace("= 2", "= 3"))
    after = TAGGERS.find(f"{folder}/good.py:Good")
    assert (before().factor, after().factor) == (2, 3)  # type: ignore[attr-defined]
    assert changes(code_before, code_of(after)) == ["good.py"]


def test_what_is_not_known_is_not_compared() -> None:
    assert changes({}, {"a.py": "1"}) == []
    assert changes({"a.py": "1"}, {}) == []
    assert changes({"a.py": "1"}, {"b.py": "1"}) == ["a.py", "b.py"]


def test_threads_make_trees_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 mixes up the depths of trees that are made at the same time, and raises a SystemError."""
    making: list[str] = []
    together: list[list[str]] = []

    def parse(source: str, mode: str) -> ast.Expression:
        making.append(source)
        time.sleep(0.01)
        together.append(making.copy())
        making.remove(source)
        return ast.Expression(ast.Name(source))

    with monkeypatch.context() as patched, ThreadPoolExecutor(4) as threads:
        patched.setattr(ast, "parse", parse)
        trees = list(threads.map(parse_expression, "abcd"))
    assert [tree.id for tree in trees if isinstance(tree, ast.Name)] == [*"abcd"]
    assert sorted(together) == [["a"], ["b"], ["c"], ["d"]]
