"""Whole runs and their stages: from WET files to an output, on slow disks, buckets, several processes, large shards."""

import atexit
import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tests.benchmarks.cases.ours import Config, core_hours, figure, ours, told, wet
from tests.benchmarks.cases.parts import END, SIGNALS, tagging, tokenizer
from tests.benchmarks.inputs import MB, TAGGED, Input, Inputs, open_gzip, write_config
from tests.benchmarks.measure import Usage, cores, toolkit
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Figure, both, faster
from tests.benchmarks.slow_disk import SlowDisk
from tests.conftest import ROOT

RULES = [
    {"drop": "language.label is None", "name": "unidentified"},
    {"drop": "language.prob < 0.6 and not language.multilingual", "name": "unsure"},
    {"annotate": "short_sentences", "when": "line_shape.short > line_shape.lines // 2"},
]
SIGNAL_RULES = [
    {"drop": "gopher_quality.words < 50", "name": "few_words"},
    {"drop": "gopher_repetition.top_2gram_char_share > 0.2", "name": "repeated"},
    {"drop": "fineweb.short_line_ratio > 0.67", "name": "short_lines"},
]
PLAIN = "mix.output.compression=none"
PIPELINE = """ls "$0"/*.gz | xargs -P "$1" -n 1 sh "$2" "$3" "$4" "$5" "$6" """
"""A process for each file, as many at a time as there are cores."""
RATE, SEEKS, DISK = 50 * MB, 100, 6000 * MB
SYNCED = 'disk="$0"; "$@" && sync -f "$disk"'
"""What is not on the disk yet when a command ends is written before it counts as done."""
TWICE, SHARE = 1.85, 0.95
AT_ONCE = (
    'for name in 0 1; do sh "$0/$name.sh" & jobs="$jobs $!"; done; for job in $jobs; do wait "$job" || exit 1; done'
)
"""Two commands, and the status of each."""
BUCKET = "benchmark"
ASKING = ("status", "ingest", "tag", "mix", "run")
SMALLER_PEAK = 0.9


def whole(root: Path | str, entry: Mapping[str, Any], **output: str) -> Config:
    """The sections of a run from inputs to an OSCAR corpus."""
    mix = {"attributes": [*TAGGED], "rules": RULES, "output": {"format": "oscar", "path": f"{root}/out"} | output}
    return {"ingest": [dict(entry)], "tag": TAGGED, "mix": mix}


def oscar(given: Input, *, name: str = "toolkit mix", processes: int = 1) -> Contender:
    """An OSCAR corpus from a dataset with attributes."""

    def config(folder: Path) -> Config:
        return {"processes": processes, "mix": whole(folder, {})["mix"]}

    return ours(name, "mix", config, given, told(kept="labels.*.documents"), sets=[*TAGGED])


def stages(inputs: Inputs) -> Sequence[Benchmark]:
    """Each command by itself, on the same data: what a terabyte costs."""
    crawl, dataset = inputs.crawl, inputs.dataset
    given = Input(crawl.path, dataset.text, crawl.facts)

    def running(name: str, program: Path | None = None) -> Contender:
        def config(folder: Path) -> Config:
            return whole(folder, wet(crawl.path))

        return ours(name, "run", config, given, told(kept="mix.labels.*.documents"), sets=None, program=program)

    entry = {"ingest": [wet(crawl.path)]}
    ingest = ours(
        "toolkit ingest", "ingest", lambda folder: entry, given, told(documents="counts.documents"),
        sets=None, output="data/documents",
    )  # fmt: skip

    def checked(folder: Path, usage: Usage) -> Counts:
        return {"sets and datasets": len(usage.told["checked"])}

    validate = ours(
        "toolkit validate", "validate", lambda folder: {}, dataset, checked, sets=[*TAGGED]
    )  # fmt: skip
    tag, mix, run = tagging("toolkit tag", dataset), oscar(dataset), running("toolkit run")
    before = [running("before, run", inputs.old)] if inputs.old else []
    return [
        Benchmark(
            "Commands",
            f"{crawl.facts['files']} WET files with {crawl.facts['documents']:,} documents to an OSCAR corpus: the "
            f"taggers `line_language`, `language` and `line_shape`, three rules, schema 22.01, `gzip`. {crawl.repeats}",
            (ingest, tag, mix, *before, run, validate),
            (
                core_hours("ingest, tag and mix", given.text, (ingest, tag, mix)),
                core_hours("run", given.text, (run,), at_most=10.0),
                *(faster("CPU: before / run", run, each) for each in before),
            ),
            same=("documents", "kept"),
        )
    ]


def recipe(
    name: str, config: str, given: Input, *options: str, program: Path | None = None, processes: int = 1
) -> Contender:
    """A ready configuration, a file of ``configs``, from WET files to its output."""

    def command(folder: Path) -> Command:
        places = [f"dataset={folder / 'data'}", f"mix.output.path={folder / 'out'}", f"processes={processes}"]
        source, path = f"ingest.0.from=[{given.path}/*.warc.wet.gz]", ROOT / "configs" / config
        return toolkit("run", "-c", path, source, *places, *options, "--quiet", "--json", program=program)

    counts = _lines_of_texts if config == "goclassy.yaml" else told(documents_kept="mix.labels.*.documents")
    return Contender(name, command, given.text, counts)


def _lines_of_texts(folder: Path, usage: Usage) -> Counts:
    """How many lines stand in the outputs."""
    paths = [path for path in sorted((folder / "out").glob("*.txt*")) if not path.name.endswith("_sha256.txt")]
    lines = (line for path in paths for line in (open_gzip(path) if path.suffix == ".gz" else path.open("rb")))
    return {"lines kept": sum(bool(line.strip()) for line in lines)}


def _lines_of_pipeline(folder: Path) -> tuple[int, int]:
    """How many lines were kept, and how many were classified."""
    kept = sum(path.read_bytes().count(b"\n") for path in (folder / "out").glob("*.txt"))
    return kept, sum(int(path.read_text()) for path in folder.glob("out.lines.*"))


def _pipeline_command(inputs: Inputs, given: Path, how: str, processes: int, out: Path) -> Command:
    """fastText's pipeline on a folder of WET files, so many at a time."""
    script, binary = HERE / "fasttext_pipeline.sh", inputs.peers.fasttext_binary()
    return ["sh", "-c", PIPELINE, given, str(processes), script, how, binary, inputs.model, out]


def _pipeline(inputs: Inputs, given: Input, processes: int, how: str, name: str, note: str = "") -> Contender:
    def command(folder: Path) -> Command:
        return _pipeline_command(inputs, given.path, how, processes, folder / "out")

    def counts(folder: Path, usage: Usage) -> Counts:
        kept, classified = _lines_of_pipeline(folder)
        among = " in all" * (how == "all")  # not the same work, so not the same count
        return {f"lines kept{among}": kept, f"lines classified{among}": classified}

    return Contender(name, command, given.text, counts, note=note)


def _goclassy_program(inputs: Inputs, given: Input) -> Contender:
    """goclassy's own program, with fastText's command line; its own lines."""

    def command(folder: Path) -> Command:
        program, fasttext = inputs.peers.goclassy(), inputs.peers.fasttext_binary()
        for name in ("wet", "data", "tmp", "classified", "fastText"):
            (folder / name).mkdir()
        (folder / "fastText" / "fasttext").symlink_to(fasttext)
        (folder / "fastText" / "lid.176.bin").symlink_to(inputs.model)
        for path in sorted(given.path.glob("*.warc.wet.gz")):  # it follows no links
            (folder / "wet" / path.name).hardlink_to(path)
        return ["sh", "-c", 'cd "$0" && exec "$1" wet', folder, program]

    def counts(folder: Path, usage: Usage) -> Counts:
        texts = (path.open("rb") for path in sorted((folder / "classified").glob("*.txt")))
        return {"lines of goclassy": sum(bool(line.strip()) for text in texts for line in text)}

    note = "its last lines of pages without a line feed are lost, so it has a few less"
    return Contender("goclassy", command, given.text, counts, "classified", note)


def one_pass(inputs: Inputs) -> Sequence[Benchmark]:
    """``toolkit run`` on one large WET file, beside goclassy, fastText's pipeline, an earlier version."""
    given = inputs.large(1, inputs.scale.one)
    about = f"One process, one WET file with {given.facts['documents']:,} documents. {given.repeats}"

    def signals(name: str, program: Path | None = None) -> Contender:
        def config(folder: Path) -> Config:
            output = {"format": "dolma", "path": str(folder / "out")}
            mix = {"attributes": ["signals-0"], "rules": SIGNAL_RULES, "output": output}
            return {"ingest": [wet(given.path)], "tag": {"signals-0": [*SIGNALS]}, "mix": mix}

        counts = told(documents_kept="mix.labels.*.documents")
        return ours(name, "run", config, given, counts, sets=None, program=program)

    plain = recipe("toolkit run, goclassy.yaml, plain text", "goclassy.yaml", given, PLAIN)
    corpus = recipe("toolkit run, oscar-22.01.yaml", "oscar-22.01.yaml", given)
    six = signals("toolkit run, six taggers")
    shell = _pipeline(inputs, given, 1, "long", "fastText pipeline, same lines")
    program = _goclassy_program(inputs, given)
    before: dict[Contender, list[Contender]] = {plain: [], corpus: [], six: []}
    if inputs.old:
        before[plain] = [recipe("before, goclassy.yaml", "goclassy.yaml", given, PLAIN, program=inputs.old)]
        before[corpus] = [recipe("before, oscar-22.01.yaml", "oscar-22.01.yaml", given, program=inputs.old)]
        before[six] = [signals("before, six taggers", inputs.old)]

    def gain(of: Contender, at_least: float | None = None) -> list[Figure]:
        return [faster("CPU: before / run", of, each, at_least=at_least) for each in before[of]]

    return [
        Benchmark(
            "One WET file, goclassy",
            about,
            (shell, program, *before[plain], plain),
            (
                faster("CPU: fastText pipeline, same lines / run", plain, shell, at_least=4.5),
                faster("CPU: goclassy / run", plain, program, at_least=3.5),
                faster("wall: fastText pipeline, same lines / run", plain, shell, metrics=both("wall")),
                faster("wall: goclassy / run", plain, program, metrics=both("wall")),
                *gain(plain),
            ),
            same=("lines kept",),
        ),
        Benchmark(
            "One WET file, OSCAR 22.01",
            about,
            (*before[corpus], corpus),
            (*gain(corpus, 2.2), core_hours("WET to OSCAR", given.text, (corpus,), at_most=10.0)),
            same=("documents kept",),
        ),
        Benchmark(
            "One WET file, six taggers of quality signals",
            f"{', '.join(f'`{name}`' for name in SIGNALS)}, three rules, Dolma's format. {about}",
            (*before[six], six),
            tuple(gain(six, 1.5)),
            same=("documents kept",),
        ),
    ]


def goclassy(inputs: Inputs) -> Sequence[Benchmark]:
    """Table 1 of goclassy's paper in small: WET files to a text file for each language, beside fastText's pipeline."""
    return [_goclassy(inputs, count) for count in inputs.scale.wet]


def _goclassy(inputs: Inputs, count: int) -> Benchmark:
    given = inputs.wet(count)
    plain = recipe("toolkit, goclassy.yaml, plain text", "goclassy.yaml", given, PLAIN, processes=cores())
    packed = recipe("toolkit, goclassy.yaml", "goclassy.yaml", given, processes=cores())
    corpus = recipe("toolkit, oscar-22.01.yaml", "oscar-22.01.yaml", given, processes=cores())
    note = "classifies every line, drops short ones after it"
    all_lines = _pipeline(inputs, given, cores(), "all", "fastText pipeline", note)
    same = _pipeline(inputs, given, cores(), "long", "fastText pipeline, same lines")
    user = both("user")
    return Benchmark(
        f"goclassy's table, {count} files",
        f"{count} WET files with {given.facts['documents']:,} documents to a file for each language, "
        f"{cores()} processes at a time. {given.repeats}",
        (all_lines, same, plain, packed, corpus),
        (
            faster(
                "user: fastText pipeline, same lines / goclassy.yaml, plain text",
                plain,
                same,
                metrics=user,
                at_least=3.0,
            ),
            faster("user: fastText pipeline, same lines / goclassy.yaml", packed, same, metrics=user),
            faster("user: fastText pipeline / goclassy.yaml, plain text", plain, all_lines, metrics=user),
            faster("user: fastText pipeline / oscar-22.01.yaml", corpus, all_lines, metrics=user),
            faster("real: fastText pipeline, same lines / plain text", plain, same, metrics=both("wall"), at_least=2.0),
        ),
        same=("lines kept",),
        paper=True,
    )


class _Place:
    """The slow disk, with the input on it; made when the first contender asks."""

    def __init__(self, given: Input) -> None:
        self._given = given

    @cached_property
    def disk(self) -> SlowDisk:
        disk = SlowDisk(DISK, RATE, SEEKS)
        shutil.copytree(self._given.path, disk.path / "wet")
        return disk

    def cleared(self) -> Path:
        """Return an empty folder of the disk, which has nothing of its files in memory."""
        work = self.disk.path / "work"
        shutil.rmtree(work, ignore_errors=True)
        (work / "out").mkdir(parents=True)
        self.disk.forget()
        return work


def throttled(inputs: Inputs) -> Sequence[Benchmark]:
    """goclassy's table once more, on a disk as slow as the paper's: 50 MB/s, 10 ms a seek."""
    return [_throttled(inputs, count) for count in inputs.scale.wet]


def _throttled(inputs: Inputs, count: int) -> Benchmark:
    given = inputs.wet(count)
    place = _Place(given)

    def synced(command: Command) -> Command:
        return ["sh", "-c", SYNCED, place.disk.path, *command]

    def pipeline(folder: Path) -> Command:
        work = place.cleared()
        return synced(_pipeline_command(inputs, place.disk.path / "wet", "long", cores(), work / "out"))

    def kept(folder: Path, usage: Usage) -> Counts:
        return {"lines kept": _lines_of_pipeline(place.disk.path / "work")[0]}

    def run(folder: Path) -> Command:
        work, there = place.cleared(), Input(place.disk.path / "wet", given.text, given.facts)
        return synced(recipe("", "goclassy.yaml", there, PLAIN, processes=cores()).command(work))

    def lines(folder: Path, usage: Usage) -> Counts:
        return _lines_of_texts(place.disk.path / "work", usage)

    shell = Contender("fastText pipeline, same lines", pipeline, given.text, kept)
    plain = Contender("toolkit run, goclassy.yaml, plain text", run, given.text, lines)
    return Benchmark(
        f"goclassy's table on a slow disk, {count} files",
        f"{count} WET files, {cores()} processes, to text files, on a file system of its own that reads and writes "
        f"{RATE // MB} MB and {SEEKS} requests a second, until all is on it. {given.repeats}",
        (shell, plain),
        (
            faster("real: fastText pipeline, same lines / run", plain, shell, metrics=both("wall"), at_least=2.0),
            faster("user: fastText pipeline, same lines / run", plain, shell, metrics=both("user")),
        ),
        same=("lines kept",),
        paper=True,
    )


def processes(inputs: Inputs) -> Sequence[Benchmark]:
    """One process and two, and two independent runs at once: what these reach is what the machine gives."""
    count, size = inputs.scale.processes
    given, part = inputs.large(count, size), inputs.large(count // 2, size)
    one, two = (recipe(f"toolkit run, {n}", "oscar-22.01.yaml", given, processes=n) for n in (1, 2))
    halves = _at_once(recipe("toolkit run", "oscar-22.01.yaml", part))
    runs = Benchmark(
        f"Processes, {count} WET files",
        f"`oscar-22.01.yaml` with one and with two processes, {count} WET files of {size // MB} MB; and two runs with "
        f"one process at once, each on {count // 2} of them. {given.repeats}",
        (one, two, halves),
        _gains("run", one, two, halves),
        same=("documents kept",),
    )
    return [runs, _several(inputs, count, size), _several(inputs, 1, count * size)]


def _at_once(half: Contender) -> Contender:
    """Two runs of a contender with one process, each on half of the text, begun at once."""

    def command(folder: Path) -> Command:
        for name in ("0", "1"):
            place = folder / name
            (place / "out").mkdir(parents=True)
            words = " ".join(shlex.quote(str(word)) for word in half.command(place))
            (folder / f"{name}.sh").write_text(f"exec {words} > {shlex.quote(str(place / 'stdout'))}\n")
        return ["sh", "-c", AT_ONCE, folder]

    return Contender(f"{half.name}, two at once", command, 2 * half.text, output="0/out")


def _twice(what: str, one: Contender, two: Contender) -> Figure:
    return faster(f"{what}, wall: one process / two", two, one, metrics=both("wall"), at_least=TWICE)


def _gains(what: str, one: Contender, two: Contender, halves: Contender) -> tuple[Figure, ...]:
    """By how much two processes are faster, and what part of two independent runs at once they reach."""
    return (
        _twice(what, one, two),
        faster(f"{what}, wall: one process / two runs at once", halves, one, metrics=both("wall")),
        figure(
            f"{what}: speed of two processes / of two runs at once",
            lambda both, apart: (apart.wall / halves.text) / (both.wall / two.text),
            two,
            halves,
            at_least=SHARE,
        ),
    )


def _several(inputs: Inputs, count: int, size: int) -> Benchmark:
    given = inputs.repeated(count, size)
    tags = [tagging(f"toolkit tag, {n}", given, n) for n in (1, 2)]
    mixes = [oscar(given, name=f"toolkit mix, {n}", processes=n) for n in (1, 2)]
    halves: tuple[Contender, ...] = ()
    figures = [_twice("tag", *tags), _twice("mix", *mixes)]
    if count > 1:
        half = inputs.repeated(count // 2, size)
        halves = _at_once(tagging("toolkit tag", half)), _at_once(oscar(half))
        figures = [*_gains("tag", tags[0], tags[1], halves[0]), *_gains("mix", mixes[0], mixes[1], halves[1])]
    shards = f"{count} shards" if count > 1 else "one shard"
    return Benchmark(
        f"Processes, {shards}",
        f"The same with one and with two processes: {shards} of {size // MB} MB, documents repeated under other ids.",
        (*tags, *mixes, *halves),
        tuple(figures),
        same=("documents", "kept"),
    )


@cache
def _served() -> tuple[Any, list[Any]]:
    """Start an S3 server behind a proxy, until this process ends: a client, with a bucket, and the log of requests."""
    from tests.storage.faults import environment
    from tests.storage.servers import Faults, Seaweed, proxy
    from toolkit import storage

    folder = Path(tempfile.mkdtemp())
    server, faults, stack = Seaweed(folder / "server"), Faults(), contextlib.ExitStack()
    server.start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    os.environ |= environment(stack.enter_context(proxy(lambda: server.port, faults)))
    atexit.register(stack.close)
    store: Any = storage.store_of("s3://x")
    store.client.create_bucket(Bucket=BUCKET)
    return store.client, faults.log


def storage(inputs: Inputs) -> Sequence[Benchmark]:
    """The whole path on disk, and with everything on an S3 server on this machine, which takes part of its cores."""
    crawl, text = inputs.crawl, inputs.dataset.text
    client, _ = _served()
    for path in sorted(crawl.path.glob("*.warc.wet.gz")):
        client.upload_file(str(path), BUCKET, f"wet/{path.name}")

    def running(name: str, source: str, remote: bool) -> Contender:
        def config(folder: Path) -> Config:
            root = f"s3://{BUCKET}/{uuid.uuid4().hex}" if remote else str(folder)
            entry = {"format": "wet", "from": [f"{source}/*.warc.wet.gz"], "source": "cc"}
            return {"dataset": f"{root}/data", **whole(root, entry, compression="gzip-fast")}

        counts = told(kept="mix.labels.*.documents")
        return ours(name, "run", config, Input(crawl.path, text, crawl.facts), counts, sets=None)

    local = running("toolkit run, on disk", str(crawl.path), False)
    s3 = running("toolkit run, on S3", f"s3://{BUCKET}/wet", True)
    rates = (
        figure(f"{each.name}, text by wall time", lambda run: text / run.wall / MB, each, unit=" MB/s")
        for each in (local, s3)
    )
    return [
        Benchmark(
            "Storage",
            f"{crawl.facts['files']} WET files to an OSCAR corpus with one process, on disk and with input, documents, "
            f"attributes and output in a bucket of a server (SeaweedFS) on the same machine. {crawl.repeats}",
            (local, s3),
            (
                *rates,
                faster("CPU of the toolkit: on disk / on S3", s3, local, metrics=both("cpu")),
                faster("wall: on disk / on S3", s3, local, metrics=both("wall")),
            ),
            same=("kept",),
        )
    ]


def requests(inputs: Inputs) -> Sequence[Benchmark]:
    """What there is asked of an S3 server where nothing is to be done: requests a shard, counted by a proxy."""
    shards = inputs.texts.facts["files"]
    _, log = _served()
    entry = {"format": "text", "from": [f"{inputs.texts.path}/*.txt"], "source": "texts"}
    root = f"s3://{BUCKET}/requests"
    config = write_config(
        Path(tempfile.mkdtemp()) / "run.yaml", {"dataset": f"{root}/data", "processes": 1, **whole(root, entry)}
    )
    subprocess.run(toolkit("run", "-c", config, "--quiet"), check=True)

    def asking(name: str) -> Contender:
        before = 0

        def command(folder: Path) -> Command:
            nonlocal before
            before = len(log)
            return toolkit(name, "-c", config, "--json", *([] if name == "status" else ["--quiet"]))

        def counts(folder: Path, usage: Usage) -> Counts:
            return {"requests": len(log) - before}

        return Contender(f"toolkit {name}", command, 0, counts)

    asked = {name: asking(name) for name in ASKING}
    figures = (
        figure(
            f"{name}: requests a shard",
            lambda run: run.counts["requests"] / shards,
            each,
            at_most=0.05 if name == "status" else None,
            unit="",
        )
        for name, each in asked.items()
    )
    about = f"A dataset in a bucket, of {shards:,} text files, of which nothing is to be done again."
    return [Benchmark("Requests", about, tuple(asked.values()), tuple(figures))]


def many_inputs(inputs: Inputs) -> Sequence[Benchmark]:
    """Many small inputs: what a shard costs beside its text."""
    single, texts = inputs.single, inputs.texts
    shards = single.facts["files"]
    text = {"format": "text", "from": [f"{texts.path}/*.txt"], "source": "texts"}
    kept = told(documents="ingest.counts.documents", documents_kept="mix.labels.*.documents")

    def counts(folder: Path, usage: Usage) -> Counts:
        left = sum(len(files) for place in ("data", "out") for _, _, files in os.walk(folder / place))
        return {**kept(folder, usage), "files left": left}

    def running(name: str, entry: Config, given: Input, program: Path | None = None) -> Contender:
        return ours(name, "run", lambda folder: whole(folder, entry), given, counts, sets=None, program=program)

    mine, files = running("toolkit run", wet(single.path), single), running("toolkit run, text files", text, texts)
    before = [running("before", wet(single.path), single, inputs.old)] if inputs.old else []
    files_before = [running("before, text files", text, texts, inputs.old)] if inputs.old else []
    wall = both("wall")
    return [
        Benchmark(
            "Text files of one line",
            f"{texts.facts['files']:,} of them, one process, to an OSCAR corpus.",
            (*files_before, files),
            (
                figure("wall", lambda run: run.wall, files, at_most=3.0, unit=" s"),
                figure(
                    "files left in dataset and output", lambda run: run.counts["files left"], files, at_most=60, unit=""
                ),
                *(faster("wall: before / run", files, each, metrics=wall) for each in files_before),
            ),
            same=("documents", "documents kept"),
        ),
        Benchmark(
            "Shards of one document",
            f"{shards:,} WET files of one page each, one process, to an OSCAR corpus. {single.repeats}",
            (*before, mine),
            (
                *(faster("wall: before / run", mine, each, metrics=wall, at_least=4.0) for each in before),
                *(faster("CPU: before / run", mine, each) for each in before),
                figure("wall of a shard", lambda run: run.wall / shards * 1000, mine, at_most=6.0, unit=" ms"),
            ),
            same=("documents", "documents kept"),
            rounds=1,
            warm=False,
        ),
    ]


def memory(inputs: Inputs) -> Sequence[Benchmark]:
    """Memory against the size of a shard."""
    shards = {size: inputs.repeated(1, size) for size in inputs.scale.memory}
    tags = [tagging(f"toolkit tag, {size // MB} MB", each) for size, each in shards.items()]
    mixes = [oscar(each, name=f"toolkit mix, {size // MB} MB") for size, each in shards.items()]
    what, peak = f"peak: {min(shards) // MB} MB / {max(shards) // MB} MB", both("peak")
    return [
        Benchmark(
            "Memory",
            "One process, one shard of the size that is said, documents repeated under other ids.",
            (*tags, *mixes),
            (
                faster(f"tag, {what}", tags[-1], tags[0], metrics=peak, at_least=SMALLER_PEAK),
                faster(f"mix, {what}", mixes[-1], mixes[0], metrics=peak, at_least=SMALLER_PEAK),
            ),
            rounds=2,  # peaks hardly vary
        )
    ]


def training(inputs: Inputs) -> Sequence[Benchmark]:
    """Memory of a training mix against the size of the dataset: repeats, a budget and a shuffle, in files of tokens."""
    file, size = tokenizer(inputs), inputs.scale.processes[1]
    made = [inputs.repeated(count, size, tagged=False) for count in (2, 10, 40)]

    def mixing(given: Input, processes: int) -> Contender:
        """A mix of as many bytes of text as there are, of documents of which some are repeated and some are dropped."""

        def config(folder: Path) -> Config:
            output = {"format": "tokens", "path": str(folder / "out"), "tokenizer": file, "eod": END, "files": "pbin"}
            mix = {
                "rules": [{"repeat": {"score": "document.chars", "curve": [[0, 0], [1000, 1], [100_000, 3]]}}],
                "budget": {"bytes": given.text},
                "output": {**output, "shuffle": {"seed": 1}},
            }
            return {"processes": processes, "mix": mix}

        return ours(f"{given.text // MB:,} MB, {processes} process{'es' * (processes > 1)}", "mix", config, given)

    first, middle, last = (mixing(each, 1) for each in made)
    what = f"peak: {first.name} / {last.name}"
    return [
        Benchmark(
            "Training mixes",
            f"Shards of {size // MB} MB of text, documents repeated under other ids; a curve of repeats, a budget of "
            "as many bytes as there are, a shuffle, tokens of a byte-level BPE in `.pbin`.",
            (first, middle, last, mixing(made[1], 2)),
            (faster(what, last, first, metrics=both("peak"), at_least=SMALLER_PEAK),),
            rounds=1,
            warm=False,
        )
    ]
