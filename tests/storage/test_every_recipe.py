"""Every configuration that ships: one pass gives the bytes of single commands, on disk and in a bucket."""

from pathlib import Path

import pytest

from tests import recipes
from tests.conftest import ROOT, Run
from toolkit.storage.paths import join


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes.FROM_WET)
def test_a_recipe_gives_the_same_bytes_in_one_pass_wherever_it_is(
    recipe: str, bucket: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    expected = recipes.made(run, recipe, str(tmp_path / "singly"), *recipes.commands(recipe))
    assert any(name.startswith("out/") for name in expected)
    for processes in (1, 2):
        assert recipes.made(run, recipe, str(tmp_path / f"run-{processes}"), "run", processes=processes) == expected
    assert recipes.made(run, recipe, join(bucket, recipe), "run") == expected
