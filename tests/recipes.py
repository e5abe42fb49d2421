"""Sections of configurations for tests, and the configurations that ship, run on the sample."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from toolkit.storage import store_of
from toolkit.storage.paths import join, list_files

FROM_WET = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml") if "format: wet" in path.read_text())

_EVERYWHERE = ("dolma-3-like", "oscar-23.01", "training-mix")
EVERYWHERE = [recipe if recipe in _EVERYWHERE else pytest.param(recipe, marks=pytest.mark.long) for recipe in FROM_WET]
"""Those that have all commands run in a bucket and on nodes; any suite runs all of them on a disk."""


def mix_of(
    path: Path | str,
    *rules: Any,
    attributes: Sequence[Any] | None = None,
    format: Any = "dolma",
    output: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The section `mix:` of these rules, with an output at a path; `output` has further options of it."""
    sets = {} if attributes is None else {"attributes": attributes}
    return {**sets, "rules": [*rules], **more, "output": {"format": format, "path": str(path), **(output or {})}}


def path_of(recipe: str) -> Path:
    return ROOT / "configs" / f"{recipe}.yaml"


def places(recipe: str, root: str) -> list[str]:
    """What puts all that a recipe reads and writes below a root."""
    given = {
        "dataset": join(root, "data"),
        "ingest.0.from": f"[{ROOT}/configs/sample/*.warc.wet.gz]",
        "mix.output.path": join(root, "out"),
    }
    written = path_of(recipe).read_text()
    if "deduplicated:" in written:
        given["mix.editions.deduplicated.output.path"] = join(root, "deduplicated")
    if "rejected:" in written:
        given["mix.rejected"] = join(root, "rejected")
    return [f"{name}={place}" for name, place in given.items()]


def commands(recipe: str) -> list[str]:
    """The commands that do one after the other what `run` does with a recipe."""
    written = path_of(recipe).read_text()
    return [name for name in ("ingest", "tag", "dedup", "calibrate", "mix") if f"\n{name}:" in written]


def made(run: Run, recipe: str, root: str, *commands: str, processes: int = 1) -> dict[str, str]:
    """What commands make of the sample below a root, by `tree`; lists lie beside the configurations."""
    for command in commands:
        ran = run(command, "-c", path_of(recipe), "--quiet", *places(recipe, root), f"processes={processes}")
        said = ran.out + ran.err
        if "expected the package" in said:
            pytest.skip(f"{recipe} needs the package {said.rpartition('expected the package')[2].strip()}")
        assert ran.code == 0, said
    return tree(root)


def tree(root: str) -> dict[str, str]:
    """The sha256 of every file below a root that is no bookkeeping."""
    store = store_of(root)
    return {name: hashlib.sha256(store.read(join(root, name))).hexdigest() for name in list_files(root)}
