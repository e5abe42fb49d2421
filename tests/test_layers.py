"""The layers of the code: imports point one way, plugins see the top level only, and `import toolkit` is light."""

import ast
import functools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolkit.text
from tests.sources import nodes, texts

ROOT = Path(__file__).parent.parent
MOST = 16
"""Modules of a folder, at most; so many can be read at a glance."""


def modules(package: str) -> dict[str, Path]:
    """All modules of a package by their dotted names."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules("toolkit")
PLUGINS = modules("taggers") | modules("mixers")


def imports(path: Path, *, top_only: bool = False) -> Iterator[str]:
    """The modules of ours that a file imports; ``from toolkit import x`` is ``toolkit.x`` if that is a module."""
    tree = nodes(path)[0]
    assert isinstance(tree, ast.Module)
    for_types = [inner for node in tree.body if isinstance(node, ast.If) for inner in node.body]
    for node in (*tree.body, *for_types) if top_only else nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: expected absolute imports"
            assert node.module
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


@functools.cache  # most tests here ask for all of them
def ours(path: Path, *, top_only: bool = False) -> set[str]:
    return {
        name for name in imports(path, top_only=top_only) if name.partition(".")[0] in ("toolkit", "taggers", "mixers")
    }


def folder(module: str) -> str:
    """Return the folder right below `toolkit`, or the module there, that a module is in."""
    return module.split(".")[1] if "." in module else module


def test_imports_between_folders_form_no_circle() -> None:
    """What a folder is made of can be read without what stands on it. Imports within functions count, too."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        here = folder(module)
        graph.setdefault(here, set()).update(there for name in ours(path) if (there := folder(name)) != here)
    assert {*TopologicalSorter(graph).static_order()} >= {*graph}


def test_folders_hold_what_can_be_read_at_a_glance() -> None:
    held = Counter(str(path.parent.relative_to(ROOT)) for path in MODULES.values())
    of_folders = {str(Path(name).parent) for name in held}
    least = {name: 0 if name in of_folders else 1 for name in held}
    assert {name: count for name, count in held.items() if not least[name] < count <= MOST} == {}


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Imports for type checkers alone count, too: what they name can be moved to where both see it."""
    graph = {name: ours(path, top_only=True) - {"toolkit"} for name, path in MODULES.items() if name != "toolkit"}
    assert {*TopologicalSorter(graph).static_order()} >= {*graph}


def test_data_needs_neither_compiled_code_nor_models_nor_downloads() -> None:
    """Words are split by what `toolkit` passes in."""
    known = {name for module, path in MODULES.items() if module.startswith("toolkit.data") for name in ours(path)}
    others = {name for name in known if folder(name) not in ("data", "storage", "errors")}
    assert others <= {"toolkit.config.docstrings", "toolkit.decoders", "toolkit.distribution"}


def test_executors_know_nothing_of_the_work() -> None:
    """A task is a function and its payload; an executor is read, as every plugin, by its name and its settings."""
    executors = [path for module, path in MODULES.items() if module.startswith("toolkit.runs.executors")]
    known = {name for path in executors for name in ours(path)}
    assert {name for name in known if folder(name) != "runs"} == {
        "toolkit.config.settings",
        "toolkit.config.sizes",
        "toolkit.distribution",
        "toolkit.errors",
        "toolkit.interrupts",
    }


@pytest.mark.parametrize("module", PLUGINS)
def test_plugins_import_public_names_only(module: str) -> None:
    """And what several of them share, or one of them keeps apart: private modules beside them."""
    private = {name for name in PLUGINS if name.rpartition(".")[2].startswith("_")}
    assert ours(PLUGINS[module]) <= {"toolkit", "toolkit.text"} | private


def test_the_toolkit_names_no_plugin() -> None:
    named = {name.partition(".")[0] for path in MODULES.values() for name in ours(path)}
    assert named == {"toolkit"}


@pytest.mark.parametrize("package", [toolkit, toolkit.text])
def test_the_public_names_are_those_listed(package: Any) -> None:
    public = {
        name for name, value in vars(package).items() if not (name.startswith("_") or isinstance(value, ModuleType))
    }
    assert sorted(public) == sorted(package.__all__)
    assert len(set(package.__all__)) == len(package.__all__)


def test_no_name_is_public_twice() -> None:
    assert set(toolkit.__all__) & set(toolkit.text.__all__) == set()


HEAVY = [
    "numba",
    "boto3",
    "ray",
    "fasttext",
    "numpy",
    "smart_open",
    "tqdm",
    "fastwarc",
    "isal",
    "multiprocessing",
    "pyarrow",
    "mlcroissant",
    "pandas",
    "matplotlib",
    "ddsketch",
    "duckdb",
]


@pytest.mark.parametrize(
    "statement", ["import toolkit", "from toolkit.commands.command_line.parser import parser; parser().format_help()"]
)
def test_importing_the_toolkit_imports_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print([name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


NAMED_FOR_A_REASON = {
    "toolkit/commands/making/init.py": "proposes the output format that loses nothing",
    "toolkit/whole/exact": "a normalisation is called after the program that has it",
    "toolkit/whole/near/signatures.py": "presets are called as the corpora that were made with them",
    "toolkit/interop/dolma": "translates another program's configurations into ours, tagger by tagger",
    "toolkit/train": "kinds of models are called as the taggers that load them",
    "toolkit/ingest/formats": "input formats carry attributes under the names that the taggers give them",
    "toolkit/ingest/recognised.py": "names the format that reads a file which is not of the one it should be",
    "toolkit/commands/steps/stats_files.py": "where documents without a mix usually have their label",
    "toolkit/annotate/annotator.py": "why an answer ended is called as servers call it",
    "toolkit/annotate/outcomes.py": "the same",
    "toolkit/text/languages/labels.py": "a form of labels is called as the corpus that has it",
    "toolkit/commands/looking/report.py": "without a mix documents are looked at for a format that asks nothing",
    "toolkit/mix/budget/settings.py": "a unit of budgets, and where it usually is, is called as a tagger",
    "toolkit/rules/kinds/budget.py": "the unit",
    "toolkit/text/encoders/static.py": "what sentence-transformers calls a table of vectors",
    "toolkit/commands/looking/sql.py": "results of queries can be Parquet, too",
    "toolkit/sql/printing.py": "writes them",
    "toolkit/commands/comparing/questions.py": "where documents usually have their language",
}
WORDS = {"text", "language", "agreement", "tokens", "head"}
"""Names of plugins that are also words of the engine's own: a document's key, what a label is, a command."""


def _names_of_plugins() -> set[str]:
    return {path.stem for path in PLUGINS.values() if not path.stem.startswith("_")} - WORDS


def _texts(path: Path) -> Iterator[str]:
    """The texts in a module that are no docstrings, and no extras of the distribution."""
    calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
    extras = [call for call in calls if ast.unparse(call.func).endswith(("missing_extra", "require_extra"))]
    return texts(path, besides=frozenset(id(argument) for call in extras for argument in call.args))


def test_the_engine_knows_no_tagger_and_no_format_by_name() -> None:
    names, places = _names_of_plugins(), tuple(str(ROOT / place) for place in NAMED_FOR_A_REASON)
    paths = [path for path in MODULES.values() if not str(path).startswith(places)]
    named = {str(path): [text for text in _texts(path) if text.partition(".")[0] in names] for path in paths}
    assert {path: found for path, found in named.items() if found} == {}


def test_what_is_named_for_a_reason_still_is() -> None:
    for place in NAMED_FOR_A_REASON:
        paths = [path for path in MODULES.values() if str(path.relative_to(ROOT)).startswith(place)]
        names = _names_of_plugins() | WORDS
        assert any(text.partition(".")[0] in names for path in paths for text in _texts(path)), place
