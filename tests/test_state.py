"""The state of a command is in its session: no module holds any, and no variable of the environment carries it."""

import ast
from collections.abc import Iterator

import pytest

from tests.sources import nodes
from tests.test_layers import ROOT

REASONS = {
    "toolkit/execution/processes.py environ": "OMP_NUM_THREADS and the like: processes are what is parallel",
    "toolkit/execution/node.py environ": "credentials of the caller, on another machine",
    "toolkit/text/tokens/tokenizer.py environ": "TOKENIZERS_PARALLELISM: processes are what is parallel",
    "toolkit/interrupts.py _process": "signals, which come to a process",
    "toolkit/cli.py processes": "whether the process is the command line's",
    "toolkit/cli.py _closed": "standard streams that the caller has closed, of the process",
    "toolkit/text/kernels/machine_code.py _ENGINES": "compiled code, which must stay in memory",
    "toolkit/text/kernels/signatures.py CALLED": "compiled functions, for those who compile all",
    "toolkit/storage/models.py _sha256": "digests of files, by path and version",
    "toolkit/text/fasttext/model.py _check": "the check of a model, by path and digest",
    "toolkit/storage/stores/local/scratch.py machine": "the name of this machine",
    "toolkit/text/kernels/compiling.py _source_of": "source of an installed module",
    "toolkit/text/languages/spacy_words.py _table": "an installed file",
    "toolkit/plugins.py _modules_of": "installed modules",
    "toolkit/command_options.py _files": "installed modules",
}
"""What may be kept in a process: each is the same for all commands in it."""

OURS = ("toolkit.", "taggers.", "mixers.")

CHANGES = {
    "append", "add", "update", "clear", "pop", "popitem", "setdefault", "extend", "remove", "discard", "insert", "sort",
    "appendleft", "popleft", "reverse",
}  # fmt: skip

LOOKS = {
    "open", "open_stored", "read_list", "resolve", "stat", "exists", "environ", "time", "monotonic",
    "getenv", "read_text", "read_bytes", "is_file", "listdir", "find_spec", "uname", "store_of", "is_folder",
    "Path", "getpid",
}  # fmt: skip
"""Names in a function that looks at a store, the environment or the clock."""

PATHS = [path for package in ("toolkit", "taggers", "mixers") for path in sorted((ROOT / package).rglob("*.py"))]


def state(module: tuple[ast.AST, ...]) -> Iterator[str]:
    """Yield what holds state among nodes of a module: variables and functions, ``environ``, ``global NAME``."""
    tree = module[0]
    assert isinstance(tree, ast.Module)
    targets = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(OURS)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in module:
        match node:
            case ast.Global():
                yield f"global {', '.join(node.names)}"
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in CHANGES:
                yield from _changed(value, names)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="putenv" | "unsetenv")):
                yield "environ"
            case ast.Assign() | ast.AugAssign() | ast.Delete() | ast.AnnAssign():
                ends = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
                for end in ends:
                    if isinstance(end, ast.Subscript | ast.Attribute):
                        yield from _changed(end, names if node in tree.body else names | imported)
            case ast.FunctionDef():
                caches = [ast.unparse(each) for each in node.decorator_list if "cached" not in ast.unparse(each)]
                if any(
                    "cache" in each and not each.startswith(("cached(", "cached_p", "functools.cached_p"))
                    for each in caches
                ):
                    inside = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                    inside |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
                    if inside & LOOKS:
                        yield node.name


def _changed(value: ast.AST, names: set[str]) -> Iterator[str]:
    """Yield what a change of a part of it changes: an object of a module, of this one or of another of ours."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        if isinstance(value, ast.Attribute) and value.attr == "environ":
            yield "environ"
        value = value.value
    if isinstance(value, ast.Name) and value.id in names:
        yield value.id


def test_no_module_holds_state_of_a_command() -> None:
    found = {f"{path.relative_to(ROOT)} {name}" for path in PATHS for name in state(nodes(path))}
    assert found == REASONS.keys()
    assert len(REASONS) <= 15


def test_threads_are_begun_in_the_session_of_their_caller() -> None:
    """Those of `toolkit.storage.threads` are; what watches processes, and tests of stores, need no session."""
    begun = {
        str(path.relative_to(ROOT))
        for path in PATHS
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("threading.Thread", "ThreadPoolExecutor")
    }
    assert begun == {"toolkit/execution/pool.py", "toolkit/execution/node.py", "toolkit/testing/stores.py"}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f():\n    global x", ["global x"]),
        ("x = {}\ndef f(): x['a'] = 1", ["x"]),
        ("x: list[int] = []\ndef f(): x.append(1)", ["x"]),
        ("x = []\ndef f(): x[:] = [1]", ["x"]),
        ("x = Y()\ndef f(): x.a = 1", ["x"]),
        ("x = Y()\ndef f(): x.a['b'].append(1)", ["x"]),
        ("from toolkit import x\ndef f(): x.a = 1", ["x"]),
        ("import os\ndef f(): os.environ['A'] = 'b'", ["environ"]),
        ("import os\ndef f(): os.environ.pop('A')", ["environ"]),
        ("@functools.lru_cache(4)\ndef f(p): return open(p).read()", ["f"]),
        ("@cache\ndef f(): return os.environ.get('A')", ["f"]),
        ("@cached(4)\ndef f(p): return open(p).read()", []),
        ("@functools.cache\ndef f(x): return x + 1\ny = {}\ndef g(): return y['a']", []),
    ],
)
def test_each_kind_of_state_is_found(code: str, found: list[str]) -> None:
    assert sorted({*state(tuple(ast.walk(ast.parse(code))))}) == found
