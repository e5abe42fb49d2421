"""One kind of work at a time: starting, predicting, tagging, filtering, mixing, tokens, rows in Python, own data."""

import atexit
import csv
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks.cases.ours import Config, figure, ours, rows_in, told
from tests.benchmarks.inputs import SPANS, TAGGED, Input, Inputs, lend, open_gzip, rows_of, shards_of, write_config
from tests.benchmarks.measure import Usage, toolkit
from tests.benchmarks.peers import HERE
from tests.benchmarks.race import Benchmark, Command, Contender, Counts, Run, both, faster

SHELL = 'exec "$0" predict-prob "$1" "$2" > "$3"'
SIGNALS = ("statistics", "gopher_quality", "gopher_repetition", "c4", "fineweb", "redpajama")
SURE = 0.65
"""datatrove's default."""
LIMITS = {"bench__language__prob": 0.5, "bench__shape__chars": 300.0, "bench__shape__long": 0.2}
OWN_RULES = ["language.prob < 0.5", "line_shape.chars < 300", "line_shape.long_chars < 0.2 * line_shape.chars"]
OWN_SETS = ["language-0", "shape-0"]
TOKENS, LEARNT_FROM = 50_257, 20 << 20
END = "<|endoftext|>"
ASKED, WORDS = 5_000, 500
"""Documents that a language model is asked about, and words of each."""


def startup(inputs: Inputs) -> Sequence[Benchmark]:
    """What a command line takes before it does anything."""
    bare = Contender("python -c pass", lambda folder: [sys.executable, "-c", "pass"])
    helping = Contender("toolkit --help", lambda folder: toolkit("--help"))
    wall = figure("toolkit --help, wall", lambda run: run.wall, helping, at_most=0.15, unit=" s")
    return [Benchmark("Start-up", "Start-up, without any work.", (bare, helping), (wall,), rounds=20)]


def _fasttext(inputs: Inputs, lines: Path, text: int) -> Contender:
    """fastText's ``predict`` on lists of lines."""

    def command(folder: Path) -> Command:
        return [inputs.peers.python("fasttext"), "-I", HERE / "fasttext_batch.py", inputs.model, lines]

    return Contender("fastText predict, batches", command, text, _predicted)


def _predicted(folder: Path, usage: Usage) -> Counts:
    return {name: usage.told[name] for name in ("lines", "different") if name in usage.told}


def predict(inputs: Inputs) -> Sequence[Benchmark]:
    """Language identification of lines alone: our compiled predictions beside fastText's own."""
    given = inputs.lines(inputs.scale.lines)

    def binary(folder: Path) -> Command:
        return ["sh", "-c", SHELL, inputs.peers.fasttext_binary(), inputs.model, given.path, folder / "out" / "tags"]

    def tags(folder: Path, usage: Usage) -> Counts:
        return {"lines": (folder / "out" / "tags").read_bytes().count(b"\n")}

    def compiled(how: str) -> Contender:
        def command(folder: Path) -> Command:
            labels, script = inputs.labels(given.path), HERE.parent / "predict.py"
            return [sys.executable, "-I", script, how, inputs.model, given.path, *([labels] if labels else [])]

        return Contender(f"toolkit, {how}", command, given.text, _predicted)

    peer, texts, lines = _fasttext(inputs, given.path, given.text), compiled("texts"), compiled("lines")
    native = Contender("fastText command line", binary, given.text, tags, note="compiled for this machine")
    return [
        Benchmark(
            "Predictions",
            f"The best label of each of {given.facts['lines']:,} lines with {Path(inputs.model).name}. `texts` gives "
            "what fastText gives, a list for each line; `lines` is what taggers call. `different` counts labels that "
            "are not fastText's.",
            (peer, native, texts, lines),
            (
                faster("lines: fastText predict / toolkit", lines, peer, metrics=both("inner"), at_least=6.0),
                faster("texts: fastText predict / toolkit", texts, peer, metrics=both("inner")),
                faster("lines: fastText command line / toolkit", lines, native, metrics=both("inner")),
            ),
            same=("lines",),
        )
    ]


def tagging(name: str, given: Input, processes: int = 1, sets: Config | None = None) -> Contender:
    """Sets on a dataset without attributes; by default those that mixes join."""
    tag = sets or TAGGED
    return ours(
        name,
        "tag",
        lambda folder: {"processes": processes, "tag": tag},
        given,
        told(documents="documents"),
        output="data/attributes",
    )


def _dolma_tags(inputs: Inputs, name: str, note: str, how: Sequence[str], set_: str) -> Contender:
    """A tagger of Dolma on the smaller input."""
    given = inputs.slow

    def command(folder: Path) -> Command:
        documents = lend(given.path, folder / "data") / "documents" / "cc" / "*.gz"
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", *how, documents, set_]

    def counts(folder: Path, usage: Usage) -> Counts:
        written = (folder / "data" / "attributes").rglob("*.gz")
        return {"documents": sum(1 for path in written for row in rows_of(path) if row.attributes)}

    return Contender(name, command, given.text, counts, "data/attributes", note)


def tag(inputs: Inputs) -> Sequence[Benchmark]:
    """``toolkit tag`` beside fastText's predictions alone and Dolma's tagger of paragraphs."""
    dataset, slow, lines = inputs.dataset, inputs.slow, inputs.lines()
    peer, all_ = _fasttext(inputs, lines.path, dataset.text), tagging("toolkit tag", dataset)
    little = tagging("toolkit tag, Dolma's input", slow)
    note = f"smaller input, {slow.facts['documents']:,} documents; gives all labels of a paragraph, not the best"
    how = ("tag", inputs.model)
    dolma = _dolma_tags(inputs, "Dolma ft_lang_id_paragraph_v1", note, how, "dolma-0")

    def rate(theirs: Run, mine: Run, less: Run) -> float:
        """What more text takes more, so that start-up does not count."""
        return theirs.get("inner") / peer.text / ((mine.cpu - less.cpu) / (all_.text - little.text))

    return [
        Benchmark(
            "Tagging",
            f"`line_language`, `language` and `line_shape` on {dataset.facts['documents']:,} documents with "
            f"{dataset.facts['lines']:,} lines, beside fastText's predictions of these lines alone. {dataset.repeats}",
            (peer, dolma, little, all_),
            (
                faster("fastText predict alone / toolkit tag", all_, peer, at_least=4.0),
                faster("Dolma / toolkit tag", all_, dolma, at_least=100.0),
                faster("the same input: Dolma / toolkit tag", little, dolma),
                figure("fastText predict alone / toolkit tag without start-up", rate, peer, all_, little),
            ),
            same=("documents",),
        )
    ]


def _kept(folder: Path, usage: Usage) -> Counts:
    return {"kept": rows_in(folder / "out")}


def _datatrove(inputs: Inputs, name: str, filter_: str, given: Input, note: str = "") -> Contender:
    """A filter of datatrove between its reader and its writer."""

    def command(folder: Path) -> Command:
        cache = inputs.peers.folder / "datatrove-assets"
        python, documents = inputs.peers.python("datatrove"), given.path / "documents"
        return [python, "-I", HERE / "datatrove_run.py", filter_, documents, folder / "out", inputs.model, cache]

    return Contender(name, command, given.text, _kept, note=note)


def signals(inputs: Inputs) -> Sequence[Benchmark]:
    """All quality signals in one pass, beside a single filter of datatrove and a single tagger of Dolma."""
    dataset = inputs.dataset
    note = "smaller input; writes what it keeps"
    gopher = _datatrove(inputs, "datatrove GopherQualityFilter", "gopher", inputs.slow, note)
    dolma = _dolma_tags(inputs, "Dolma gopher_v2", "smaller input", ("run", "gopher_v2"), "gopher-0")
    six = tagging(f"toolkit tag: {len(SIGNALS)} taggers", dataset, sets={"signals-0": [*SIGNALS]})
    single = [tagging(f"toolkit tag: {name}", dataset, sets={"signals-0": [name]}) for name in SIGNALS]
    return [
        Benchmark(
            "Quality signals",
            f"{', '.join(f'`{name}`' for name in SIGNALS)} in one pass over {dataset.facts['documents']:,} documents, "
            f"and each by itself. {dataset.repeats}",
            (gopher, dolma, six, *single),
            (
                faster("datatrove's Gopher quality filter / all six", six, gopher, at_least=10.0),
                faster("Dolma gopher_v2 / all six", six, dolma, at_least=5.0),
            ),
        )
    ]


def documents(inputs: Inputs) -> Sequence[Benchmark]:
    """Filters of whole documents, beside datatrove's."""
    dataset = inputs.dataset

    def config(folder: Path) -> Config:
        output = {"format": "dolma", "path": str(folder / "out")}
        mix = {"attributes": ["text-0"], "rules": [{"keep": f"text_language.prob > {SURE}"}], "output": output}
        return {"tag": {"text-0": "text_language"}, "mix": mix}

    language = _datatrove(inputs, "datatrove LanguageFilter", "language", dataset)
    mine = ours("toolkit run: text_language, keep", "run", config, dataset, _kept)
    return [
        Benchmark(
            "Documents",
            f"The language of each document as a whole, with the same model; those with a probability above "
            f"{SURE} are written. {dataset.facts['documents']:,} documents, one process, gzip. {dataset.repeats}",
            (language, mine),
            (faster("LanguageFilter: datatrove / toolkit", mine, language),),
            same=("kept",),
        )
    ]


class _Mixed(msgspec.Struct):
    id: str
    text: str
    source: str
    metadata: Any


def _mixed(folder: Path, usage: Usage) -> Counts:
    """How many documents came out, and a digest of them: ids, texts, and all of the metadata."""
    decoder, digests = msgspec.json.Decoder(_Mixed), []
    for path in sorted((folder / "out").rglob("*.json*.gz")):
        if ".toolkit" in path.parts:
            continue
        with open_gzip(path) as stream:
            for line in stream:
                row = msgspec.json.encode(decoder.decode(line), order="deterministic")
                digests.append(hashlib.sha256(row).digest())
    return {"kept": len(digests), "rows": hashlib.sha256(b"".join(sorted(digests))).hexdigest()[:8]}


def mix(inputs: Inputs) -> Sequence[Benchmark]:
    """``toolkit mix`` with three rules, beside Dolma's mixer; our documents get the provenance that Dolma writes."""
    dataset = inputs.dataset
    spans = [f"any(span.score < {limit} for span in {key})" for key, limit in LIMITS.items()]

    def mixing(name: str, compression: str, rules: list[str], sets: list[str], there: Sequence[str]) -> Contender:
        def config(folder: Path) -> Config:
            layout = {"layout": "mixer", "name": "mixed", "provenance": "line", "compression": compression}
            output = {"format": "dolma", "path": str(folder / "out"), **layout}
            return {"mix": {"attributes": sets, "rules": [{"drop": rule} for rule in rules], "output": output}}

        return ours(f"toolkit mix, {name}{compression}", "mix", config, dataset, _mixed, sets=there)

    def theirs(folder: Path) -> Path:
        """The same in Dolma's own form."""
        root = lend(dataset.path, folder / "data", SPANS)
        exclude = [
            f"$.attributes[?(@.{key} && @.{key}[0] && @.{key}[0][2] < {limit})]" for key, limit in LIMITS.items()
        ]
        stream = {
            "name": "mixed",
            "documents": [f"{root}/documents/cc/*.gz"],
            "attributes": [SPANS],
            "filter": {"exclude": exclude},
            "output": {"path": str(folder / "out"), "discard_fields": ["attributes"]},
        }
        work = {name: str(folder / f"work-{name}") for name in ("input", "output")}
        return write_config(folder / "mix.json", {"streams": [stream], "work_dir": work, "processes": 1})

    def of_dolma(folder: Path) -> Command:
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "mix", theirs(folder)]

    def as_it_is(folder: Path) -> Command:
        return toolkit("mix", "-c", theirs(folder), "--quiet", "--json")

    dolma = Contender("Dolma mix", of_dolma, dataset.text, _mixed)
    fast, small = (mixing("", compression, spans, [SPANS], [SPANS]) for compression in ("gzip-fast", "gzip"))
    own, own_small = (
        mixing("own sets, ", compression, OWN_RULES, OWN_SETS, [*TAGGED]) for compression in ("gzip-fast", "gzip")
    )
    same = Contender("toolkit mix, Dolma's configuration", as_it_is, dataset.text, _mixed, note="gzip")
    return [
        Benchmark(
            "Mixing",
            f"Three rules drop documents by numbers that attributes have; {dataset.facts['documents']:,} documents. "
            f"Both mixers join the same set in Dolma's form; `own sets`: the sets that it was made from, as `toolkit "
            f"tag` writes them. `rows` is a digest of all that came out, provenance included. {dataset.repeats}",
            (dolma, fast, small, own, own_small, same),
            (
                faster("gzip-fast: Dolma / toolkit", fast, dolma, at_least=4.0),
                faster("gzip: Dolma / toolkit", small, dolma, at_least=2.0),
                faster("own sets, gzip-fast: Dolma / toolkit", own, dolma),
                faster("own sets, gzip: Dolma / toolkit", own_small, dolma),
                faster("Dolma's configuration: Dolma / toolkit", same, dolma),
                faster("size, gzip-fast: Dolma / toolkit", fast, dolma, metrics=both("output"), at_least=1 / 1.15),
                faster("size, gzip: Dolma / toolkit", small, dolma, metrics=both("output")),
            ),
            same=("kept", "rows"),
        )
    ]


def _written(folder: Path, usage: Usage) -> Counts:
    """How many rows there are, and MB of them."""
    rows = size = 0
    for path in sorted((folder / "out" / "documents").rglob("*.gz")):
        with open_gzip(path) as stream:
            for line in stream:
                rows += 1
                size += len(line)
    return {"rows": rows, "MB": size // 10**6}


def mixture(inputs: Inputs) -> Sequence[Benchmark]:
    """A mix with repeats, a budget and a shuffle, beside one of ours that writes as much without."""
    dataset = inputs.dataset
    kept: Config = {"drop": "document.chars < 1"}
    curve = {"repeat": {"score": "language.prob", "curve": [[0.0, 1.5], [0.8, 2], [1.0, 3]]}}
    budget = {"budget": {"bytes": dataset.text, "by": "label"}}

    def mixing(name: str, rules: list[Config], more: Config, output: Config) -> Contender:
        def config(folder: Path) -> Config:
            into = {"format": "dolma", "path": str(folder / "out"), **output}
            return {"mix": {"attributes": OWN_SETS, "label": "language.label", "rules": rules, **more, "output": into}}

        return ours(name, "mix", config, dataset, _written, sets=[*TAGGED])

    plain = mixing("one rule", [kept], {}, {})
    fields = mixing("one rule, provenance: line", [kept], {}, {"provenance": "line"})
    repeated = mixing("repeats and a budget", [kept, curve], budget, {})
    shuffled = mixing("one rule, shuffled", [kept], {}, {"shuffle": {"seed": 1}})
    return [
        Benchmark(
            "Repeats, budgets, shuffles",
            f"Documents are repeated by a score, and a budget of bytes by language takes about as much of them as the "
            f"plain mix writes; {dataset.facts['documents']:,} documents. Rows whose metadata get a field, as the "
            f"number of a copy or `provenance` is, are written anew. {dataset.repeats}",
            (plain, fields, repeated, shuffled),
            (
                faster("plain / repeats and a budget", repeated, plain, at_least=1 / 1.15),
                faster("provenance / repeats and a budget", repeated, fields, at_least=1 / 1.15),
                faster("plain / shuffled", shuffled, plain),
            ),
        )
    ]


def _learn_tokenizer(root: Path, folder: Path) -> tuple[int, dict[str, int]]:
    """A byte-level BPE like GPT-2's, learnt from the first documents, as a file that older versions read, too."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    texts, size = [], 0
    for path in shards_of(root):
        for row in rows_of(path):
            texts.append(row.text)
            size += len(texts[-1])
            if size > LEARNT_FROM:
                break
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learns = trainers.BpeTrainer(
        vocab_size=TOKENS, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, learns)
    file = json.loads(made.to_str())
    merges = file["model"]["merges"]
    file["model"]["merges"] = [each if isinstance(each, str) else " ".join(each) for each in merges]
    (folder / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
    return size, {}


def tokenizer(inputs: Inputs) -> str:
    """The file of the tokenizer."""
    root = inputs.dataset.path
    return str(inputs.made("tokenizer", lambda folder: _learn_tokenizer(root, folder)).path / "tokenizer.json")


def _tokens(folder: Path, usage: Usage) -> Counts:
    """How many tokens were written, and a digest of them in the order of their values: documents are shuffled."""
    import numpy as np

    paths = [path for path in (folder / "out").rglob("*") if path.suffix in (".npy", ".ds")]
    found = np.concatenate([np.fromfile(path, np.uint16) for path in paths])
    times = np.bincount(found, minlength=TOKENS)
    return {"tokens": len(found), "times": hashlib.sha256(times.tobytes()).hexdigest()[:8]}


def tokens(inputs: Inputs) -> Sequence[Benchmark]:
    """``toolkit tokenize`` beside ``dolma tokens`` and datatrove's ``DocumentTokenizer``: the same tokens."""
    dataset, file = inputs.dataset, tokenizer(inputs)

    def mine(processes: int) -> Contender:
        def config(folder: Path) -> Config:
            section = {"path": str(folder / "out"), "tokenizer": file, "eod": END, "files": "dolma"}
            return {"processes": processes, "tokenize": section}

        name = f"toolkit tokenize, {processes} process{'es' * (processes > 1)}"
        return ours(name, "tokenize", config, dataset, _tokens)

    def of_dolma(folder: Path) -> Command:
        lent = lend(dataset.path, folder / "data", SPANS)
        return [inputs.peers.python("dolma"), "-I", HERE / "dolma_run.py", "tokens", lent, folder / "out", file]

    def of_datatrove(folder: Path) -> Command:
        lent = lend(dataset.path, folder / "data", SPANS)
        python, places = inputs.peers.python("datatrove"), (lent / "documents", folder / "out")
        return [python, "-I", HERE / "datatrove_run.py", "tokens", *places, file, folder]

    one, two = mine(1), mine(2)
    dolma = Contender("dolma tokens", of_dolma, dataset.text, _tokens)
    datatrove = Contender("datatrove DocumentTokenizer", of_datatrove, dataset.text, _tokens)
    return [
        Benchmark(
            "Tokens",
            f"{dataset.facts['documents']:,} documents in more than a hundred languages become tokens of a byte-level "
            f"BPE of {TOKENS:,}, with the end of each document. `times` is a digest of how often each token is there. "
            f"{dataset.repeats}",
            (dolma, datatrove, one, two),
            (
                faster("Dolma / toolkit", one, dolma, metrics=both("cpu"), at_least=1.5),
                faster("datatrove / toolkit", one, datatrove, at_least=1.5),
                faster("2 processes: 1 / 2", two, one, metrics=both("wall")),
            ),
            same=("tokens", "times"),
        )
    ]


def annotate(inputs: Inputs) -> Sequence[Benchmark]:
    """What `toolkit annotate` itself takes for a request, of a server that answers at once."""
    process = subprocess.Popen([sys.executable, HERE.parent / "answering.py"], stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    assert process.stdout
    port = int(process.stdout.readline())
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(2_000)]
    texts = [" ".join(chance.choices(words, k=WORDS)) for _ in range(ASKED)]

    def command(folder: Path) -> Command:
        path = folder / "data/documents/a.jsonl"
        path.parent.mkdir(parents=True)
        rows = ({"id": str(i), "text": text, "source": "s"} for i, text in enumerate(texts))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        prompt = {"prompt_name": "p", "prompt": "Judge this text.\n{{ text }}"}
        entry = {"endpoint": f"http://127.0.0.1:{port}/v1", "model": "m", "prompt": prompt}
        config = {"dataset": str(folder / "data"), "annotate": {"edu-0": entry}}
        return toolkit("annotate", "-c", write_config(folder / "a.yaml", config), "--quiet")

    def counts(folder: Path, usage: Usage) -> Counts:
        (path,) = (folder / "data/.toolkit/answers").rglob("*.jsonl")
        return {"requests": path.read_bytes().count(b"\n")}

    mine = Contender("toolkit annotate", command, 0, counts)
    rate = figure("requests a second, wall", lambda a: a.counts["requests"] / a.wall, mine, at_least=200, unit="")
    each = figure("CPU a request", lambda a: 1000 * a.cpu / a.counts["requests"], mine, unit=" ms")
    about = (
        f"{ASKED:,} documents of about 3 kB, 32 requests at a time, answers durable, start-up and attributes counted; "
        "the server, on loopback, answers at once, and shares the cores."
    )
    return [Benchmark("Annotating", about, (mine,), (rate, each))]


def in_python(inputs: Inputs) -> Sequence[Benchmark]:
    """Rows of a dataset in Python, joined, beside the dry run of a mix that reads the same."""
    dataset = inputs.dataset

    def contender(name: str, how: str, *more: str) -> Contender:
        def command(folder: Path) -> Command:
            output = {"format": "dolma", "path": str(folder / "out")}
            lent = lend(dataset.path, folder / "data", *TAGGED)
            rules = [{"drop": rule} for rule in (*OWN_RULES, *more)]
            mix = {"attributes": OWN_SETS, "rules": rules, "output": output, "allow_empty": True}
            path = write_config(folder / "rows.yaml", {"dataset": str(lent), "processes": 1, "mix": mix})
            return [sys.executable, HERE.parent / "joined.py", how, path]

        return Contender(name, command, dataset.text, told(documents="documents"))

    quick = contender("dry run, attributes alone", "dry-run")
    whole = contender("dry run that reads documents", "dry-run", "metadata.warc_headers is None")
    facts = contender("joined(…, text=False)", "no-text")
    rows = contender("joined(…)", "text")
    arrow = contender("joined(…).to_arrow()", "arrow")
    return [
        Benchmark(
            "In Python",
            f"Joined rows of {dataset.facts['documents']:,} documents, two sets, one process, every attribute used; "
            "start-up not counted.",
            (quick, facts, whole, rows, arrow),
            (
                faster("dry run / rows, without texts", facts, quick, metrics=both("inner"), at_least=0.5),
                faster("dry run / rows, with documents", rows, whole, metrics=both("inner"), at_least=0.5),
                faster("dry run / record batches, with documents", arrow, whole, metrics=both("inner")),
            ),
            same=("documents",),
        )
    ]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the rows as a file of the format that its name ends with, once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, row_group_size=1000)
        case ".arrow":
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
                stream.write_table(table, max_chunksize=1000)
        case ".csv":
            with path.open("w", newline="", encoding="utf-8") as text:
                writer = csv.DictWriter(text, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        case _:
            path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))


def own_data(inputs: Inputs) -> Sequence[Benchmark]:
    """Documents made of external files: the same texts as Parquet, Arrow and CSV, beside JSON Lines."""
    dataset = inputs.dataset
    found = (row for path in shards_of(dataset.path) for row in rows_of(path))
    rows = [{"id": row.id, "text": row.text, "url": row.id, "n": i} for i, row in enumerate(found)]

    def contender(name: str) -> Contender:
        path = dataset.path.parent / "own-data" / f"rows.{name}"
        _write(path, rows)
        entry = {"format": name, "from": [str(path)], "source": "own", "metadata": "rest"}
        counts = told(documents="counts.documents")
        config = {"ingest": [entry]}
        return ours(f"format: {name}", "ingest", lambda folder: config, dataset, counts, sets=None, output="data")

    jsonl, *others = map(contender, ("jsonl", "parquet", "arrow", "csv"))
    return [
        Benchmark(
            "Own data",
            f"`ingest` of {len(rows):,} documents in one file, one process, fields gathered into the metadata.",
            (jsonl, *others),
            tuple(faster(f"jsonl / {each.name.removeprefix('format: ')}", each, jsonl) for each in others),
            same=("documents",),
        )
    ]
