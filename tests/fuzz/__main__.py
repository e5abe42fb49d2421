"""Fuzz a target, guided by coverage: ``python -m tests.fuzz TARGET --seconds 600`` (extra ``fuzz``).

Without a target, lists them; ``all`` takes one after the other. What breaks is told once for each place, its input is
written to the folder of findings, and fuzzing goes on. Move such an input to ``tests/fuzz/crashers/TARGET/`` with the
fix: `tests/fuzz/test_models.py` runs it from then on. A corpus folder keeps what reached new code, for the next time.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.fuzz import targets

_HANG = 25
"""Seconds of an input."""
_MEMORY = 3000
"""Megabytes of the process."""
_DONE = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERED = re.compile(r"cov: (\d+) ft: (\d+)")


def fuzz(name: str, seconds: int, corpus: Path, findings: Path) -> bool:
    """Fuzz a target in a child process; print what became of it, and return whether nothing broke."""
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    before = {*findings.iterdir()}
    command = [
        sys.executable, "-m", "tests.fuzz.guided", name, str(findings), str(corpus), f"-max_total_time={seconds}",
        f"-timeout={_HANG}", f"-rss_limit_mb={_MEMORY}", "-max_len=8192", "-print_final_stats=1",
        f"-artifact_prefix={findings}/{name}-",
    ]  # fmt: skip
    ran = subprocess.run(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, errors="replace"
    )
    done, covered = _DONE.findall(ran.stdout), _COVERED.findall(ran.stdout)
    found = sorted({*findings.iterdir()} - before)
    inputs, edges = done[-1] if done else "?", covered[-1][0] if covered else "?"
    print(f"{name}: {inputs} inputs, {edges} edges covered, {len(found)} findings", flush=True)
    for path in found:
        print(f"  {path}")
    if ran.returncode:
        print(ran.stdout[-3000:])
    return not ran.returncode and not found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="*", help="or `all`; none lists them")
    parser.add_argument("--seconds", type=int, default=300, help="of each target (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, help="folder whose folders are the corpora of the targets")
    parser.add_argument("--findings", type=Path, help="folder for inputs that break something")
    given = parser.parse_args()
    if not given.target:
        print("\n".join(targets.names()))
        return 0
    try:
        import atheris  # noqa: F401
    except ImportError:
        parser.error("atheris is not installed: pip install 'tagmix[fuzz]'")
    names = targets.names() if given.target == ["all"] else given.target
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus, findings = given.corpus or scratch / "corpus", given.findings or scratch / "findings"
    sound = [fuzz(name, given.seconds, corpus / name, findings / name) for name in names]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
