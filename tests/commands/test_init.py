"""Recipes by name, from any folder: written to a file by `toolkit init`, run as they are, included by others."""

import gzip
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run
from toolkit.config import recipes, settings
from toolkit.errors import ConfigError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_name_the_recipes_are_listed(run: Run) -> None:
    ran = run("init", "--json").succeeds()
    assert ran.json["recipes"].keys() == {path.stem for path in (ROOT / "configs").glob("*.yaml")}
    assert all(10 < len(about) < 90 and about[-1] not in ".:," for about in ran.json["recipes"].values())
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", recipes.names())
def test_each_recipe_is_written_as_it_is(name: str, run: Run) -> None:
    run("init", name).succeeds().shows(f"toolkit run -c {name}.yaml")
    assert Path(f"{name}.yaml").read_bytes() == (ROOT / "configs" / f"{name}.yaml").read_bytes()


@pytest.mark.parametrize("there", ["a file", "a folder", "a link that leads nowhere"])
def test_nothing_is_written_over(there: str, run: Run) -> None:
    path = Path("c4.yaml")
    if there == "a file":
        path.write_text("mine")
    elif there == "a folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    run("init", "c4").fails(2, "c4.yaml: expected a file that is not there yet, got one; choose another: `-o FILE`")
    assert path.is_dir() or os.path.lexists(path)
    assert not path.is_file() or path.read_text() == "mine"
    assert not Path("nowhere").exists()


@pytest.mark.slow
def test_a_recipe_is_a_configuration_of_all_commands(run: Run) -> None:
    """Its own files are found wherever it is, the data is here; overrides come on top."""
    recipe = ("-c", "recipe:quickstart", "processes=1", "--quiet")
    for command in ("ingest", "tag", "mix", "run", "status", "validate", "stats"):
        run(command, *recipe, "mix.output.path=data/other").succeeds()
    assert sorted(each.name for each in Path("data").iterdir()) == ["other", "quickstart"]
    assert run("init", "quickstart", "-o", "copy.yaml").code == 0
    ran = run("run", "-c", "copy.yaml", "processes=1", "--quiet", "--json", "mix.output.path=data/other")
    assert (ran.code, ran.json["ingest"]["skipped"]) == (0, 2), ran.err

    Path("own.yaml").write_text(
        "dataset: data/quickstart\n"
        "mix:\n"
        "  attributes: [lines-0, language-0, shape-0]\n"
        "  rules: [{include: recipe:quickstart}]\n"
        "  output: {format: oscar, path: data/own}\n"
    )
    assert run("mix", "-c", "own.yaml", "processes=1", "--quiet").code == 0
    own, other = (sorted(Path("data", name).rglob("*.jsonl.gz")) for name in ("own", "other"))
    assert [path.read_bytes() for path in own] == [path.read_bytes() for path in other]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("recipe:sample/none.gz", "own.yaml:1: dataset: recipe:sample/none.gz: expected a file that a recipe brings"),
        ("recipe:../pyproject.toml", "got a path that leads elsewhere"),
        ("recipe:quikstart", "own.yaml:1: dataset: no recipe is called 'quikstart'; did you mean 'quickstart'? There"),
    ],
)
def test_what_no_recipe_brings_is_refused_with_its_place(setting: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings.parse(f"dataset: {setting}", "own.yaml")
    assert said in str(error.value)


def test_texts_are_left_as_they_are() -> None:
    given = {"about": {"description": "recipe:none"}, "mix": {"rules": [{"replace": "emails", "by": "recipe:none"}]}}
    written = "{about: {description: 'recipe:none'}, mix: {rules: [{replace: emails, by: 'recipe:none'}]}}"
    assert settings.parse(written).value == given


@pytest.mark.slow
def test_a_wheel_has_the_recipes_and_what_they_bring(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "77", reason="wheels are built by setuptools")
    source, made = tmp_path / "source", tmp_path / "made"
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("what belongs to the project is told by git")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if name.startswith(("toolkit", "taggers", "mixers", "configs")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(made)
    (tmp_path / "here").mkdir()
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolkit.cli import entry; entry()"
    arguments = ["run", "-c", "recipe:quickstart", "processes=1", "--quiet", "executor={type: in_process}"]
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, str(made), *arguments],
        cwd=tmp_path / "here", capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "43 documents, 40 kept" in ran.stdout
    assert (made / "configs/prompts/register.de.yaml").exists()
    (records,) = (tmp_path / "here/data/quickstart/.toolkit/inputs").glob("*.gz")
    assert str(made) in gzip.decompress(records.read_bytes()).decode(), "the sample of the wheel"
