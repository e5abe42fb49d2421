"""What the figures were measured on, and with."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

from tests.benchmarks.commands import cores
from tests.benchmarks.peers import Peers
from tests.conftest import ROOT
from toolkit import __version__

PACKAGES = ("numba", "numpy", "msgspec", "isal", "zlib-ng", "FastWARC")
OF_PEERS = {
    "fasttext": ("fasttext-numpy2", "numpy"),
    "dolma": ("dolma", "fasttext-wheel"),
    "datatrove": ("datatrove", "fasttext-numpy2-wheel", "orjson", "spacy"),
}


def describe(peers: Peers) -> dict[str, str]:
    """The machine and the versions, a line each."""
    ours = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_processor()}, {cores()} cores",
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "toolkit": f"{__version__}{_commit()}; {ours}",
        **{
            name: ", ".join(f"{each} {versions.get(each, 'none')}" for each in OF_PEERS[name])
            for name, versions in peers.versions.items()
        },
        "fastText command line": peers.compiled or "none",
        "awk": Path(shutil.which("awk") or "none").resolve().name,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    """Of the working tree; a star if it has changes."""
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    if found.returncode:
        return ""
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout
    return f" ({found.stdout.strip()}{'*' if changed.strip() else ''})"
