"""``python -m tests.benchmarks``: see docs/benchmarks.md."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.benchmarks import cases, report
from tests.benchmarks.inputs import SCALES, Inputs
from tests.benchmarks.peers import Peers
from tests.benchmarks.race import Raced, race
from tests.conftest import SHARED


def main() -> int:
    """Runs what is asked for; 1 if a contender was left out."""
    given = _parser().parse_args()
    peers = Peers(given.work / "peers")
    if given.names == ["peers"]:
        made = peers.make()
        print("\n".join(made))
        return int(any(": not made" in line for line in made))
    if unknown := [name for name in given.names if name not in cases.BENCHMARKS]:
        raise SystemExit(f"expected some of {', '.join(cases.BENCHMARKS)}, or peers alone, got {', '.join(unknown)}")
    inputs = Inputs(given.data, given.work / "inputs", SCALES[given.scale], peers, given.old)
    described = {**report.describe(peers), "scale": given.scale}
    if not given.json:
        print(report.head(described) + "\n", flush=True)
    raced: list[Raced] = []
    for name in given.names or cases.BENCHMARKS:
        print(f"{name}: inputs", file=sys.stderr)
        for benchmark in cases.BENCHMARKS[name](inputs):
            raced.append(race(benchmark, given.rounds, given.work / "runs" / str(os.getpid())))
            if not given.json:
                print(report.section(raced[-1]) + "\n", flush=True)
            if given.out:  # so that what is interrupted has not been for nothing
                _write(given.out, described, raced)
    if given.json:
        print(_json(described, raced))
    return int(any(each.left_out for each in raced))


def _write(path: Path, described: dict[str, str], raced: list[Raced]) -> None:
    path.with_suffix(".md").write_text(report.markdown(described, raced), encoding="utf-8")
    path.with_suffix(".json").write_text(_json(described, raced) + "\n", encoding="utf-8")


def _json(described: dict[str, str], raced: list[Raced]) -> str:
    return json.dumps(report.as_json(described, raced), indent=1, ensure_ascii=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Benchmarks beside other programs, as Markdown on standard output.",
        epilog="`python -m tests.benchmarks peers` installs the other programs, each in an environment of its own.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(cases.BENCHMARKS)} (all), or peers")
    parser.add_argument(
        "--rounds", type=_positive, default=5, metavar="N", help="that count, behind one to warm up (5)"
    )
    parser.add_argument("--scale", choices=SCALES, default="full", help="size of the inputs (full)")
    parser.add_argument(
        "--data", type=_folder, default=SHARED, metavar="FOLDER", help="with WET files (../shared/data)"
    )
    work = Path(tempfile.gettempdir()) / "tagmix-benchmarks"
    parser.add_argument("--work", type=_folder, default=work, metavar="FOLDER", help="for inputs and peers; it is kept")
    parser.add_argument(
        "--old", type=_program, metavar="PROGRAM", help="`toolkit` of an earlier version, which some are compared with"
    )
    parser.add_argument("--json", action="store_true", help="JSON on standard output in place of Markdown")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write FILE.md and FILE.json too")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)


def _program(text: str) -> Path:
    path = Path(text).absolute()
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"expected a program, got {text!r}")
    return path


def _folder(text: str) -> Path:
    return Path(text).resolve()


if __name__ == "__main__":
    sys.exit(main())
