"""Names and docstrings of the code: names are nouns of the field or verbs, docstrings begin with the fact."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import toolkit
import toolkit.text
from tests.sources import nodes
from tests.test_layers import MODULES, PLUGINS

RIDDLES = frozenset(
    {
        *(
            "asked",
            "done",
            "found",
            "given",
            "gone",
            "held",
            "kept",
            "known",
            "lacking",
            "made",
            "meant",
            "noted",
            "said",
        ),
        *("seen", "shown", "taken", "told", "wanted"),
        *("each", "others", "them", "there", "these", "they", "those", "what", "which", "whoever", "whose"),
    }
)
"""Participles and pronouns: a loop variable is the singular of its iterable, a result has the noun of its type."""

_RELATIVE = re.compile(r"\b(that|which|who|whose|whom|what|where|whatever|whoever|whether)\b", re.IGNORECASE)
_NO_NOUN = re.compile(r"(of|what|that|by|whether|which|where|if|how|from|in|for|to|with|as)\b", re.IGNORECASE)
_MOST_WORDS = 12
_ENTRY = re.compile(r"    ([*\w]+): (.*)")

SOURCES = sorted({*MODULES.values(), *PLUGINS.values()})


def test_identifiers_are_nouns_or_verbs() -> None:
    names = [place for path in SOURCES for place in [(path.stem, f"{path}"), *_names(path)]]
    assert [f"{place}: {name}" for name, place in names if name.strip("_") in RIDDLES] == []


def _names(path: Path) -> Iterator[tuple[str, str]]:
    public = _public(path)
    for node in nodes(path):
        if id(node) in public:
            continue
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()) if not name.startswith("_"):
                continue  # a public field of some class
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, f"{path}:{node.lineno}"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name.lower(), f"{path}:{node.lineno}"


def _public(path: Path) -> set[int]:
    """Return exported classes, and public fields and methods: keys on disk and of ``--json``, and names for plugins."""
    classes = [node for node in nodes(path) if isinstance(node, ast.ClassDef)]
    members = [member for class_ in classes for member in class_.body]
    fields = {id(member.target) for member in members if isinstance(member, ast.AnnAssign)}
    methods = (member for member in members if isinstance(member, ast.FunctionDef))
    exported = {id(class_) for class_ in classes if class_.name in {*dir(toolkit), *dir(toolkit.text)}}
    return exported | fields | {id(member) for member in methods if not member.name.startswith("_")}


def test_first_sentences_are_short() -> None:
    assert [f"{place}: {text}" for place, text in _first_sentences() if len(text.split()) > _MOST_WORDS] == []


def test_first_sentences_have_no_relative_clause() -> None:
    assert [f"{place}: {text}" for place, text in _first_sentences() if _RELATIVE.search(text)] == []


def test_entries_begin_with_a_noun() -> None:
    entries = [(place, entry) for place, text in _docstrings() for entry in _entries(text)]
    assert [f"{place}: {name}: {text}" for place, (name, text) in entries if _NO_NOUN.match(text)] == []


def _docstrings() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        for node in nodes(path):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if text := ast.get_docstring(node):
                yield f"{path}:{getattr(node, 'lineno', 1)}", text


def _first_sentences() -> Iterator[tuple[str, str]]:
    for place, text in _docstrings():
        paragraph = " ".join(text.split("\n\n")[0].split())
        yield place, re.split(r"(?<=[.:;])\s", paragraph)[0]


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of `Args` and `Attributes`, as names and texts."""
    section = ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"(\w+):", line):
            section = heading[1]
        elif section in ("Args", "Attributes") and (entry := _ENTRY.match(line)):
            yield entry[1], entry[2]
