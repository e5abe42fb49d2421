"""The layers of the code: imports point one way, plugins see the top level only, and `import toolkit` is light."""

import ast
import functools
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolkit.text
from tests.sources import nodes
from toolkit.config import settings

ROOT = Path(__file__).parent.parent


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


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Imports for type checkers alone count, too: what they name can be moved to where both see it."""
    graph = {name: ours(path, top_only=True) - {"toolkit"} for name, path in MODULES.items() if name != "toolkit"}
    assert {*TopologicalSorter(graph).static_order()} >= {*graph}


def test_data_needs_neither_compiled_code_nor_models_nor_downloads() -> None:
    """Words are split by what `toolkit` passes in."""
    known = {name for module, path in MODULES.items() if module.startswith("toolkit.data") for name in ours(path)}
    others = {name for name in known if folder(name) not in ("data", "storage", "errors")}
    assert others <= {
        "toolkit.config.docstrings",
        "toolkit.storage.json_files",
        "toolkit.distribution",
        "toolkit.lazy_numpy",
        "toolkit.session",
    }


def test_executors_know_nothing_of_the_work() -> None:
    """A task is a function and its payload; an executor is read, as every plugin, by its name and its settings."""
    executors = [path for module, path in MODULES.items() if module.startswith("toolkit.execution.executors")]
    known = {name for path in executors for name in ours(path)}
    assert {name for name in known if folder(name) != "execution"} == {
        "toolkit.config.settings",
        "toolkit.storage_options",
        "toolkit.distribution",
        "toolkit.errors",
        "toolkit.interrupts",
        "toolkit.session",
    }


def test_plugins_import_public_names_only() -> None:
    """And what several of them share, or one of them keeps apart: private modules beside them."""
    private = {name for name in PLUGINS if name.rpartition(".")[2].startswith("_")}
    others = {module: ours(path) - {"toolkit", "toolkit.text"} - private for module, path in PLUGINS.items()}
    assert {module: names for module, names in others.items() if names} == {}


def test_the_toolkit_names_no_plugin() -> None:
    named = {name.partition(".")[0] for path in MODULES.values() for name in ours(path)}
    assert named == {"toolkit"}


@pytest.mark.parametrize("package", [toolkit, toolkit.text])
def test_the_public_names_are_those_listed(package: Any) -> None:
    """Each is imported when it is used; type checkers see the same imports."""
    blocks = [node for node in nodes(Path(package.__file__))[0].body if isinstance(node, ast.If)]  # type: ignore[attr-defined]
    imported = [alias.name for block in blocks for node in block.body for alias in node.names]  # type: ignore[attr-defined]
    assert sorted(imported) == sorted(package.__all__)
    for name in package.__all__:
        getattr(package, name)
    public = {name for name, value in vars(package).items() if not (name[0] == "_" or isinstance(value, ModuleType))}
    assert public - {"TYPE_CHECKING", "import_by_use"} <= {*package.__all__}


def test_no_name_is_public_twice() -> None:
    packages: list[Any] = [toolkit, toolkit.text]
    names = [name for package in packages for name in package.__all__]
    assert len(names) == len(set(names))


HEAVY = [
    "numba",
    "boto3",
    "azure",
    "google.cloud",
    "huggingface_hub",
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
    "duckdb",
]


@pytest.mark.parametrize(
    "statement", ["import toolkit", "from toolkit.command_options import parser; parser().format_help()"]
)
def test_importing_the_toolkit_imports_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print([name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_what_commands_import_needs_no_numpy() -> None:
    code = "import sys, toolkit.commands.run; print({'numpy', 'pickletools'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


NAMING = {
    "toolkit": "has the commands as functions",
    "toolkit.command_options": "lists the commands by group, for help",
    "toolkit.one_pass": "composes the stages of one pass",
    "toolkit.records.set_declaration": "tells which command makes a set again, for messages",
    "toolkit.records.sets": "tells which command makes a set, for messages",
    "toolkit.reference": "writes a page of all sections",
}
"""Modules that name stages, and why."""


def test_what_runs_stages_names_none_but_that_which_makes_documents() -> None:
    """A new stage is a section, and a file that declares it: none of this has a list of them, or a branch for one."""
    stages = {*settings.stages()}
    for module, path in MODULES.items():
        inner = module.count(".") > 1
        if module in NAMING or (
            inner and folder(module) not in ("stages", "execution", "records", "exchange", "storage")
        ):
            continue
        named = {node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        of_config = [node for node in nodes(path) if isinstance(node, ast.Attribute) and node.attr in stages]
        assert not named & stages, module
        assert not [node for node in of_config if "config" in ast.unparse(node.value)], module


def test_each_stage_is_declared_in_its_command() -> None:
    found = {name: importlib.import_module(f"toolkit.commands.{name}").STAGE for name in settings.stages()}
    assert {type(stage).__name__ for stage in found.values()} == {"Declaration"}
    assert len(stage_fields := next(iter(found.values())).__struct_fields__) <= 8, stage_fields


def test_no_record_is_a_dataclass() -> None:
    """Each takes a millisecond of every start; a Struct takes a tenth."""
    assert not [name for name, path in (MODULES | PLUGINS).items() if "dataclasses" in path.read_text()]


def test_a_command_imports_what_it_needs(tmp_path: Path) -> None:
    """A search for duplicates needs no rules and formats of a mix, and reads no inputs: few files to follow."""
    (tmp_path / "in.jsonl").write_text('{"id": "0", "text": "The library opens at nine."}\n')
    config = {
        "dataset": str(tmp_path / "data"),
        "ingest": [{"format": "jsonl", "from": [str(tmp_path / "in.jsonl")], "source": "s"}],
        "dedup": {"exact-0": {"kind": "exact"}},
    }
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    code = """
import sys
from toolkit.cli import main
for command in sys.argv[2:]:
    assert main([command, "-c", sys.argv[1]]) == 0
print(*(name for name in sys.modules if name.partition(".")[0] in ("toolkit", "taggers", "mixers")), file=sys.stderr)
"""
    for command in ("ingest", "dedup"):
        line = [sys.executable, "-c", code, str(tmp_path / "c.yaml"), command]
        ran = subprocess.run(line, capture_output=True, text=True, check=True)
    names = ran.stderr.splitlines()[-1].split()
    assert not {name for name in names if name.startswith(("toolkit.mix.settings", "toolkit.rules.kinds", "mixers"))}
    assert len(names) <= 144, sorted(names)  # 140 where compiled code is on disk already


def test_numpy_is_imported_with_the_first_rows(tmp_path: Path) -> None:
    """It takes a quarter of the start of a run; a command that reads no rows does without it."""
    code = """
import sys
from toolkit.cli import main
assert main(sys.argv[1:]) == 1  # there are no documents yet
assert "numpy" not in sys.modules
"""
    words = ["-c", "recipe:quickstart", f"dataset={tmp_path}/data", f"mix.output.path={tmp_path}/out"]
    subprocess.run([sys.executable, "-c", code, "status", *words], check=True)
