"""Table 1 of goclassy's paper in small: WET files to a text file for each language, beside fastText's pipeline."""

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.commands import cores, toolkit
from tests.benchmarks.files import open_gzip
from tests.benchmarks.inputs import Inputs
from tests.benchmarks.measure import Usage
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, both, faster
from tests.conftest import ROOT

PIPELINE = """ls "$0"/*.gz | xargs -P "$1" -n 1 sh "$2" "$3" "$4" "$5" "$6" """
"""A process for each file, as many at a time as there are cores."""


def recipe(name: str, inputs: Inputs, wet: Path) -> Command:
    """The arguments of a recipe of ours, on these files."""
    return [*toolkit("run", "-c", ROOT / "configs" / name), f"ingest.0.from=[{wet}/*.warc.wet.gz]", "--quiet", "--json"]


def lines_of_texts(folder: Path, usage: Usage) -> Counts:
    """How many lines stand in the outputs."""
    lines = (line for path in _texts(folder) for line in (open_gzip(path) if path.suffix == ".gz" else path.open("rb")))
    return {"lines kept": sum(bool(line.strip()) for line in lines)}


def _texts(folder: Path) -> list[Path]:
    found = sorted((folder / "out").glob("*.txt*"))
    return [path for path in found if not path.name.endswith("_sha256.txt")]


def lines_of_pipeline(folder: Path) -> tuple[int, int]:
    """How many lines were kept, and how many were classified."""
    kept = sum(path.read_bytes().count(b"\n") for path in (folder / "out").glob("*.txt"))
    return kept, sum(int(path.read_text()) for path in folder.glob("out.lines.*"))


def pipeline_command(inputs: Inputs, wet: Path, how: str, processes: int, out: Path) -> Command:
    """fastText's pipeline on a folder of WET files, so many at a time."""
    script, binary = HERE / "fasttext_pipeline.sh", inputs.peers.fasttext_binary()
    return ["sh", "-c", PIPELINE, wet, str(processes), script, how, binary, inputs.model, out]


def benchmarks(inputs: Inputs) -> Sequence[Benchmark]:
    return [_benchmark(inputs, count) for count in inputs.scale.wet]


def _benchmark(inputs: Inputs, count: int) -> Benchmark:
    wet = inputs.wet(count)

    def ours(name: str, compression: str = "gzip") -> Contender:
        def command(folder: Path) -> Command:
            places = [f"dataset={folder / 'data'}", f"mix.output.path={folder / 'out'}", f"processes={cores()}"]
            return [*recipe(f"{name}.yaml", inputs, wet.path), *places, f"mix.output.compression={compression}"]

        def counts(folder: Path, usage: Usage) -> Counts:
            if name == "goclassy":
                return {**lines_of_texts(folder, usage), "lines classified": wet.facts["long_lines"]}
            return {"documents kept": sum(each["documents"] for each in usage.told["mix"]["labels"].values())}

        what = "" if compression == "gzip" else ", plain text"
        return Contender(f"toolkit, {name}.yaml{what}", command, wet.text, counts)

    def pipeline(how: str, name: str, note: str = "") -> Contender:
        def command(folder: Path) -> Command:
            return pipeline_command(inputs, wet.path, how, cores(), folder / "out")

        def counts(folder: Path, usage: Usage) -> Counts:
            kept, classified = lines_of_pipeline(folder)
            whole = " in all" * (how == "all")  # not the same work, so not the same count
            return {f"lines kept{whole}": kept, f"lines classified{whole}": classified}

        return Contender(name, command, wet.text, counts, note=note)

    plain, goclassy, oscar = ours("goclassy", "none"), ours("goclassy"), ours("oscar-22.01")
    whole = pipeline("all", "fastText pipeline", "classifies every line, drops short ones after it")
    same = pipeline("long", "fastText pipeline, same lines")
    return Benchmark(
        f"goclassy's table, {count} files",
        f"{count} WET files with {wet.facts['documents']:,} documents to a file for each language, "
        f"{cores()} processes at a time. {wet.repeats}",
        (whole, same, plain, goclassy, oscar),
        (
            faster(
                "user: fastText pipeline, same lines / goclassy.yaml, plain text",
                plain,
                same,
                metrics=both("user"),
                at_least=3.0,
            ),
            faster("user: fastText pipeline, same lines / goclassy.yaml", goclassy, same, metrics=both("user")),
            faster("user: fastText pipeline / goclassy.yaml, plain text", plain, whole, metrics=both("user")),
            faster("user: fastText pipeline / oscar-22.01.yaml", oscar, whole, metrics=both("user")),
            faster("real: fastText pipeline, same lines / plain text", plain, same, metrics=both("wall"), at_least=2.0),
        ),
        same=("lines kept", "lines classified"),
        paper=True,
    )
