"""Compiled functions: made once a machine, kept as machine code, made anew when their source changes; where they cannot
be kept or made, everything still works.
"""

import ctypes
import inspect
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.text.test_code_folder import open_folder
from tests.waiting import PATIENCE
from toolkit.text import normal_forms
from toolkit.text.kernels.compiling import Compiled, compiled, with_imports
from toolkit.text.kernels.machine_code import TESTED
from toolkit.text.kernels.signatures import Float32s, Int64s, UInt64
from toolkit.text.tokens import byte_level

LOOPS = """
import os

with open(os.environ["IMPORTED"], "a") as log:
    log.write("imported\\n")

def total(values, n, found):
    for i in range(n):
        found[0] += values[i] * 1
"""
MAIN = """
import sys
import numpy as np
from toolkit.text.kernels import compiling
compiling.SLOW = 0
total, found = compiling.Compiled("loops:total", "float64* int64 float64*"), np.zeros(1)
total(np.arange(5.0), 5, found)
print(found[0], "numba" in sys.modules)
"""
DAMAGED = """
import os, pathlib
import numpy as np
from toolkit.text.kernels.compiling import Compiled

HARM = [
    lambda data: b"",
    lambda data: data[:500],
    lambda data: data[:500] + data[-60:],
    lambda data: bytes(len(data)),
]
for damage in HARM:
    for _ in range(2):
        found = np.zeros(1)
        Compiled("loops:total", "float64* int64 float64*")(np.arange(5.0), 5, found)
        assert found[0] == 10
    (path,) = pathlib.Path(os.environ["TOOLKIT_CACHE"], "compiled").glob("*.o")
    path.write_bytes(damage(path.read_bytes()))
"""
LINES = "from toolkit.text.line_table import LineTable; print(LineTable.of(['a\\r\\nb']).ends)"
LANGUAGE = """
import sys
from toolkit.text.fasttext.model import load_fasttext
print(load_fasttext("lid.176.ftz").predict(["The library opens at nine.", ""], k=2), "numba" in sys.modules)
"""


class Place:
    """A folder with a module that is compiled, and one for what is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.imported = folder / "imported"
        self.write(LOOPS)

    def write(self, source: str) -> None:
        (self.folder / "loops.py").write_text(source)

    def start(self, code: str = MAIN, **more: Any) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "IMPORTED": str(self.imported),
            "TOOLKIT_CACHE": str(self.cache),
            "TMPDIR": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",  # or else a module that is changed within a second may stay as it was
            **more.pop("environment", {}),
        }
        options = {"cwd": self.folder, "env": environment, "text": True, **more}
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run(self, code: str = MAIN, **more: Any) -> tuple[int, str, str]:
        """Status, output, errors."""
        process = self.start(code, **more)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def kept(self) -> list[Path]:
        return sorted((self.cache / "compiled").glob("*.o"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- kept code --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_of_several_processes_compiles_and_later_ones_need_no_numba(place: Place) -> None:
    many = [place.start() for _ in range(3)]
    ran = [(*process.communicate(timeout=PATIENCE), process.returncode) for process in many]
    assert sorted(out for out, _, _ in ran) == ["10.0 False\n"] * 2 + ["10.0 True\n"]
    assert [code for _, _, code in ran] == [0, 0, 0]
    logs = sorted(err for _, err, _ in ran)
    assert logs[:2] == ["", ""]
    assert logs[2].startswith("compiled loops:total: ")
    assert logs[2].endswith(" s, kept for the next time\n")
    assert place.imported.read_text() == "imported\n"
    assert place.run() == (0, "10.0 False\n", "")
    assert place.imported.read_text() == "imported\n"

    place.write(LOOPS.replace("* 1", "* 2"))
    assert place.run()[:2] == (0, "20.0 True\n"), "the source has changed"
    assert len(place.kept()) == 2


@pytest.mark.slow
def test_other_modules_are_part_of_the_source(place: Place) -> None:
    (place.folder / "more.py").write_text("FACTOR = 3\n")
    place.write("from more import FACTOR\n" + LOOPS.replace("* 1", "* FACTOR"))
    main = MAIN.replace('float64*")', 'float64*", uses=["more"])')
    assert place.run(main)[:2] == (0, "30.0 True\n")
    (place.folder / "more.py").write_text("FACTOR = 4\n")
    assert place.run(main)[:2] == (0, "40.0 True\n")


def test_code_that_reads_characters_is_made_anew_for_another_unicode() -> None:
    decorated = inspect.getclosurevars(normal_forms._lower_decomposed).nonlocals["result"]
    for function in (byte_level._encode, byte_level._remember, decorated):
        assert "toolkit.text.unicode_table" in with_imports(function._modules)


def test_modules_that_others_import_are_part_of_the_source() -> None:
    assert {*with_imports(["toolkit.whole_corpus.near.near_kernel"])} >= {
        "toolkit.text.unicode_table",
        "toolkit.text.kernels.mixing",
        "toolkit.text.kernels.intrinsics",
        "toolkit.whole_corpus.near.comparison",
    }
    assert "toolkit.text.measures" in with_imports(["toolkit.text.kernels.measures"]), "from toolkit.text import …"


def drop_rights() -> None:
    """A process that this is done before has no more rights over files than their owner."""
    ctypes.CDLL(None).prctl(24, 1)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def unwritable(tmp_path: Path) -> Path:
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(0o555)
    code = f"import os; raise SystemExit(os.access({str(folder)!r}, os.W_OK))"
    if subprocess.run([sys.executable, "-c", code], preexec_fn=drop_rights).returncode:
        pytest.skip("this user may write everywhere")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("where", ["a folder without rights", "what is no folder"])
def test_where_code_cannot_be_kept_it_is_compiled_all_the_same(place: Place, where: str) -> None:
    cache = "/dev/null/cache" if "no" in where else str(unwritable(place.folder) / "cache")
    code, out, err = place.run(
        environment={"TOOLKIT_CACHE": cache, "TMPDIR": str(place.folder)}, preexec_fn=drop_rights
    )
    assert (code, out) == (0, "10.0 True\n")
    assert " s, kept for the next time" in err
    again = place.run(environment={"TOOLKIT_CACHE": cache, "TMPDIR": str(place.folder)}, preexec_fn=drop_rights)
    assert again == (0, "10.0 False\n", ""), "in the folder for what is temporary"


@pytest.mark.slow
def test_damaged_code_is_made_anew(place: Place) -> None:
    assert place.run(DAMAGED)[0] == 0


# --- where nothing can be compiled ------------------------------------------------------------------------------------


def test_without_numba_nothing_is_predicted(place: Place) -> None:
    code, out, err = place.run("import sys; sys.modules['numba'] = None\n" + LANGUAGE)
    assert (code, out) == (1, "")
    assert "expected predictions that numba compiles, got ModuleNotFoundError" in err


@pytest.mark.slow
def test_a_user_without_a_home_can_compile(place: Place) -> None:
    """As in containers that run with any number for a user."""
    no_home = "import pathlib\ndef home(): raise RuntimeError('no home')\npathlib.Path.home = home\n"
    assert place.run(no_home + LINES, environment={"TOOLKIT_CACHE": ""})[:2] == (0, "[2 5]\n")


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@compiled("int64* int64 float32 uint64 float64 float64*")
def add_up(values: Any, n: Any, a: Any, b: Any, c: Any, found: Any) -> None:
    """The sum of all."""
    for i in range(n):
        found[0] += values[i]
    found[0] += a + b + c


@compiled("int64 int64*")
def spin(n: Any, found: Any) -> None:
    """Takes long; what it finds depends on each step."""
    x = 1
    for _ in range(n):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        x ^= x >> 29
    found[0] = x


@compiled("int64 float64*")
def allocate(n: Any, found: Any) -> None:
    """Cannot be kept."""
    found[0] = np.zeros(n).sum()


@pytest.mark.slow
def test_numbers_and_arrays_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    found = np.zeros(1)
    add_up(np.array([2**40, -1]), np.int32(2), np.float32(0.5), 2**63, 0.25, found)
    assert found[0] == 2**40 - 1 + 0.5 + 2.0**63 + 0.25
    found[0] = 0
    add_up(np.empty(0, np.int64), 0, 1, True, np.float64(2), found)
    assert found[0] == 4
    assert add_up.__doc__ == "The sum of all."


class Pair(NamedTuple):
    """Two arrays of the same type."""

    first: Int64s
    second: Int64s


class Sum(NamedTuple):
    """Something of each kind, one record in the other."""

    n: int
    high: UInt64
    pair: Pair
    weights: Float32s


@compiled(Sum, "int64*", Pair, "float32")
def add_records(given: Sum, found: Any, more: Pair, x: Any) -> None:
    """The sums of a record's parts."""
    for i in range(given.n):
        found[0] += given.pair.first[i] + 2 * given.pair.second[i] + more.second[i]
    found[1] = int(given.weights[0] + x)
    found[2] = given.high


@pytest.mark.parametrize("is_tested", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_records_arrive_field_by_field(is_tested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.text.kernels.machine_code.numba_is_tested", lambda: is_tested)
    fresh = Compiled(f"{__name__}:add_records", Sum, "int64*", Pair, "float32")
    found, pair = np.zeros(3, np.int64), Pair(np.arange(3), np.arange(3, 6))
    fresh(Sum(3, 2**63 + 5, pair, np.array([5], np.float32)), found, pair, 2.0)
    assert found[:2].tolist() == [3 + 2 * 12 + 12, 7]
    assert int(found.view(np.uint64)[2]) == 2**63 + 5


def test_a_record_of_what_compiled_code_does_not_take_is_refused() -> None:
    class Wrong(NamedTuple):
        """A record with a text."""

        text: str

    with pytest.raises(TypeError, match=r"Wrong.text: expected a number, an array or a record, got <class 'str'>"):
        Compiled(f"{__name__}:add_records", Wrong)


def test_arrays_of_another_kind_are_refused() -> None:
    found, values = np.zeros(1), np.arange(6)
    for wrong in (values.astype(np.int32), values[::2], values.reshape(2, 3).T, values.astype(np.float64)):
        with pytest.raises(TypeError, match="expected a contiguous array of int64"):
            add_up(wrong, 1, 0, 0, 0, found)
    with pytest.raises(ValueError):
        add_up(values, 1, found)
    add_up(values[2:4], 2, 0, 0, 0, found)
    assert found[0] == 5


def test_code_that_needs_more_than_itself_is_refused() -> None:
    with pytest.raises(TypeError, match=r"allocate: expected code that needs nothing else, got one with \['NRT_"):
        allocate(3, np.zeros(1))
    with pytest.raises(AttributeError):
        Compiled(f"{__name__}:no_such_function", "int64")(1)


def test_several_threads_call_first() -> None:
    fresh, ready = Compiled(f"{__name__}:add_up", "int32* int64 float32 uint64 float64 float64*"), threading.Barrier(4)

    def call(i: int) -> float:
        ready.wait()
        found = np.zeros(1)
        fresh(np.array([i], np.int32), 1, 0, 0, 0, found)
        return float(found[0])

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call, range(4))) == [0, 1, 2, 3]


def test_other_threads_go_on_meanwhile() -> None:
    found = np.zeros(1, np.int64)
    spin(1, found)
    thread = threading.Thread(target=spin, args=(60_000_000, found))
    thread.start()
    steps = 0
    while thread.is_alive():
        steps += 1
    thread.join()
    assert steps > 1000


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_of_two_processes_compiles_predictions(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    ran = [process.communicate(timeout=PATIENCE) for process in [place.start(LANGUAGE) for _ in range(2)]]
    assert len({out.replace("True", "False") for out, _ in ran}) == 1
    assert "label='en'" in ran[0][0]
    logs = "".join(err for _, err in ran).splitlines()
    with capsys.disabled():
        print("\n" + "\n".join(logs))
    assert [line.partition(": ")[0] for line in logs].count(
        "compiled toolkit.text.fasttext.fasttext_kernel:predict"
    ) == 1
    assert all(line.endswith("kept for the next time") for line in logs)
    code, out, err = place.run(LANGUAGE)
    assert (code, err) == (0, "")
    assert out.endswith("False\n")


@pytest.mark.slow
def test_a_package_and_a_folder_that_are_read_only(place: Place) -> None:
    """As installed by an administrator, for users without a place of their own."""
    package = place.folder / "package"
    for name in ("toolkit", "taggers"):
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [package, *package.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    cache = str(unwritable(place.folder))
    temporary = place.folder / "temporary"
    temporary.mkdir()
    environment = {"TOOLKIT_CACHE": cache, "HOME": cache, "PYTHONPATH": str(package), "TMPDIR": str(temporary)}
    where = "import toolkit; print(toolkit.__file__)\n"
    code, out, err = place.run(where + LANGUAGE, environment=environment, preexec_fn=drop_rights)
    assert code == 0, err
    assert out.startswith(str(package))
    assert "label='en'" in out
    assert "compiled toolkit.text.fasttext.fasttext_kernel:predict" in err
    assert all("kept for the next time" in line for line in err.splitlines())
    assert list(temporary.glob("tagmix-*/*.o"))
    for path in [package, *package.rglob("*")]:
        path.chmod(0o755)


# --- versions of numba ------------------------------------------------------------------------------------------------

ANOTHER = """
import sys
from toolkit.text.kernels import machine_code
version = machine_code.version_of
machine_code.version_of = lambda package: sys.argv[1] if package == "numba" else version(package)
def private(*_):
    raise AssertionError("expected numba's public interface alone")
machine_code.compiled = machine_code.loaded = private
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.61.2", "0.69.0rc1", "1.0.0"])
def test_another_version_of_numba_serves_by_its_public_interface(place: Place, version: str) -> None:
    main = ANOTHER.replace("sys.argv[1]", repr(version)) + MAIN
    code, out, err = place.run(main)
    assert (code, out) == (0, "10.0 True\n")
    assert err.endswith(" s, by numba's own cache\n")
    kept = sorted(path.suffix for path in (place.cache / "compiled").glob("numba-*/**/*.nb*"))
    assert kept == [".nbc", ".nbi"]
    stamps = {path: path.stat().st_mtime_ns for path in (place.cache / "compiled").glob("numba-*/**/*.nb*")}
    assert place.run(main)[1] == "10.0 True\n"
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}, "taken, not made again"
    place.write(LOOPS.replace("* 1", "* 2"))
    assert place.run(main)[:2] == (0, "20.0 True\n"), "the source has changed"
    assert place.kept() == []


@pytest.mark.slow
def test_another_version_of_numba_keeps_nothing_where_others_may_write() -> None:
    with open_folder() as open_to_others:
        place = Place(open_to_others)
        for folder in (place.cache, place.cache / "compiled", temporary := place.folder / "temporary"):
            folder.mkdir()
        for folder in (place.cache / "compiled", temporary):
            folder.chmod(0o777)
        main = ANOTHER.replace("sys.argv[1]", repr("1.0.0")) + MAIN
        code, out, err = place.run(main, environment={"TMPDIR": str(temporary)})
        assert (code, out) == (0, "10.0 True\n")
        assert "compiled code is neither kept nor taken there" in err
        assert list((place.cache / "compiled").iterdir()) == []


@pytest.mark.slow
def test_another_version_of_numba_predicts_the_same(place: Place) -> None:
    _, wanted, _ = place.run(LANGUAGE)
    code, out, err = place.run(ANOTHER.replace("sys.argv[1]", repr("1.0.0")) + LANGUAGE)
    assert (code, out.replace("True", "False")) == (0, wanted.replace("True", "False")), err
    assert "by numba's own cache" in err


def test_the_tested_versions_are_those_that_can_be_installed() -> None:
    """The oldest that the distribution asks for is the first one that was tested."""
    (line,) = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if '"numba>' in line]
    assert f'"numba>={TESTED[0][0]}.{TESTED[0][1]},<1"' in line
