"""The configurations that ship with the project run, on the sample that ships with it."""

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run
from tests.marks import slow
from toolkit.config import settings as config

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
SECOND = {"c4-lines": "c4", "c4-sentences": "c4", "fineweb-minhash": "fineweb", "refinedweb-dedup": "refinedweb"}
"""Those that take what another one has written."""
NO_WET = {"ml-filter-raw", *SECOND}
"""Those whose input is of another format."""
KEEP_ALL = {"goclassy", "oscar-2019"}
"""Those without rules that drop documents."""
LIBRARIES = {
    "training-mix": ("tokenizers",),
    "refinedweb-dedup": ("tokenizers",),
    "roots": ("sudachipy", "jieba", "pythainlp"),
    "fineweb-2": ("sudachipy", "jieba", "pyvi", "pythainlp", "kiwipiepy", "stanza"),
}
"""Those that need libraries for languages of the sample; their oracle's recorded pages need none."""
DOCUMENTS = 45
"""In the sample's web pages."""
OTHERS = {"training-mix": 18, "dolma-3-like": 18}
"""In the other files of the sample, for recipes that have more sources."""


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_first_line_says_what_it_is(path: Path) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith("# ")
    assert len(first) > 30


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.stem == "dolma-3-like" else ())
        for path in CONFIGS
        if path.stem not in NO_WET
    ],
    ids=lambda path: path.stem,
)
def test_it_runs_on_the_sample(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, sample: list[Path]
) -> None:
    for library in LIBRARIES.get(path.stem, ()):
        pytest.importorskip(library, reason=f"words of the sample's languages need {library}, an extra")
    monkeypatch.chdir(ROOT)
    out = tmp_path / "out"
    settings = [
        f"dataset={tmp_path / 'data'}",
        f"ingest.0.from=[{', '.join(map(str, sample))}]",
        f"mix.output.path={out}",
        "executor={type: in_process}",
    ]
    mix = config.load(str(path)).value["mix"]
    settings += [f"mix.editions.{name}.output.path={tmp_path / name}" for name in mix.get("editions", {})]
    if "rejected" in mix:
        settings.append(f"mix.rejected={tmp_path / 'rejected'}")
    ran = run("run", "-c", path, "--quiet", "--json", *settings).succeeds()
    totals: dict[str, int] = json.loads(ran.out)["mix"]["totals"]
    assert 0 < totals["kept"] <= totals["rows"] <= DOCUMENTS + OTHERS.get(path.stem, 0)
    assert totals["kept"] < DOCUMENTS or path.stem in KEEP_ALL
    run("validate", "-c", path, "--quiet", *settings).succeeds()
    again = run("tag", "-c", path, "--quiet", "--json", *settings).succeeds()
    assert set(json.loads(again.out)["written"].values()) == {0}, "nothing has changed"


@pytest.mark.parametrize("name", ["c4-lines", "fineweb-minhash", *slow("c4-sentences", "refinedweb-dedup")])
def test_a_second_step_takes_documents_as_the_first_writes_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, sample: list[Path]
) -> None:
    for library in LIBRARIES.get(name, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(ROOT)
    first, own = (config.load(f"configs/{recipe}.yaml").value for recipe in (SECOND[name], name))
    assert own["documents"] == first["mix"]["output"]["path"] + "/documents"
    pages = [*sample, *sample]  # each page twice
    inputs = ", ".join(f"{{format: wet, from: {path}, source: s{i}}}" for i, path in enumerate(pages))
    data = tmp_path / "data"
    run("ingest", "-c", f"configs/{SECOND[name]}.yaml", "--quiet", f"dataset={data}", f"ingest=[{inputs}]").succeeds()
    places = [
        f"documents={data / 'documents'}",
        f"attributes={tmp_path / 'own'}",
        f"mix.output.path={tmp_path / 'out'}",
    ]
    ran = run("run", "-c", f"configs/{name}.yaml", "--quiet", "--json", *places, "executor={type: in_process}")
    assert ran.code == 0, ran.err
    totals = json.loads(ran.out)["mix"]["totals"]
    assert totals["rows"] == 2 * DOCUMENTS
    assert 0 < totals["kept"] < 2 * DOCUMENTS
