"""What is given to users: an sdist, and a wheel that is made of it and has every file of the packages."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("toolkit", "taggers", "mixers", "configs")


@pytest.mark.slow
def test_a_wheel_of_the_sdist_has_every_file_and_runs(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="the extra test is not installed")
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: what belongs to the packages is not known")
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    tracked.remove("configs/sample/build.py")  # makes the sample, in a clone
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", clone],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (sdist,), (wheel,) = (tmp_path / "dist").glob("*.tar.gz"), (tmp_path / "dist").glob("*.whl")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert sorted(set(tracked) - inside) == []
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert sorted(set(tracked) - set(names)) == []
    assert not [name for name in names if name.startswith("tests/")]

    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
    )
    shutil.copytree(site / "configs", tmp_path / "configs")
    command = "run -c configs/quickstart.yaml processes=1 --quiet"
    subprocess.run(
        [sys.executable, "-m", "toolkit", *command.split()],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=True,
    )
    assert (tmp_path / "data" / "quickstart" / "oscar").is_dir()
