"""Pages of Python: their blocks are run in order, as the cells of a notebook, and print what is shown."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.pages import assert_shown, blocks

pytestmark = pytest.mark.slow

PAGE = "docs/in-python.md"
OTHERS = ("polars", "duckdb", "datasets")


def _is_there(code: str) -> bool:
    needs = [name for name in OTHERS if re.search(rf"import {name}\b", code)]
    needs += ["datasets"] if "to_iterable_dataset" in code else []
    for name in needs:
        try:
            __import__(name)
        except ImportError:
            return False
    return True


@pytest.mark.filterwarnings("ignore")  # other people's
@pytest.mark.parametrize(("page", "cells_of_page"), [(PAGE, 9), ("docs/notebook.md", 7)])
def test_the_cells_run_in_order(
    page: str, cells_of_page: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", reason="the page shows record batches")
    if page != PAGE:
        pytest.importorskip("polars")
        pytest.importorskip("matplotlib").use("Agg")
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    cells, printed, ran, shown = dict[str, Any](), "", 0, 0
    for block in blocks(page):
        if block.language == "python" and _is_there(block.text):
            exec(compile(block.text, page, "exec"), cells)
            printed, ran = capsys.readouterr().out, ran + 1
            (tmp_path / "printed.txt").open("a").write(f"{block.text}\n--> {printed}\n")
        elif block.language == "python":
            printed = ""
        elif printed:
            assert_shown(block.text.splitlines(), printed)
            shown += 1
    assert ran >= cells_of_page
    assert shown >= cells_of_page - 3


def test_each_public_name_of_notebooks_is_on_the_page() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    names = {
        "Dataset",
        "Failed",
        "try_tagger",
        "compare",
        "dedup",
        "ingest",
        "mix",
        "run",
        "sample",
        "calibrate",
        "stats",
    }
    assert {name for name in names | {"status", "tag", "validate", "Row", "Rows"} if name not in text} == set()
