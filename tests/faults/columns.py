"""Columns of the matrix: commands, what is there before, and the kinds of files that they have to do with."""

from dataclasses import dataclass
from typing import Any

from tests.conftest import ROOT


@dataclass(frozen=True)
class Column:
    """A command.

    Attributes:
        name: of the column.
        command: its arguments beside the configuration; ``{root}`` is that of the corpus.
        before: a name of `STATES`.
        touches: kinds of files that it asks for, or writes, in a bucket or in a folder.
        more: of the configuration, beside that of the corpus; ``mix`` is merged into the section.
        without: sections that the configuration has not.
        lacks: files, by a glob, or a folder (with a `/` behind it), that are not there before, though in that state.
        configured: whether it is given the configuration.
        verifies: kinds of files of which it must find, or make again, each that is damaged; others may do without it.
        sweeps: whether it deletes what killed runs have left, and merges records; others leave that to the next run, or
            to `toolkit clean`.
        finds: what it says of damaged files, beside what their rows say, and that it names their shards: an expression.
        decides: kinds of files whose content is part of the settings of a set that is there before: another content is
            told as other settings, and names the set.
        passes: a name of `STATES`, if it makes what is there then, and deletes it.
        constants: of modules, by their dotted names, which are others than for users.
        change: a function ``module:name`` that changes the toolkit first, so that nothing depends on the time.
        code: its exit status when nothing disturbs it.
    """

    name: str
    command: str
    before: str
    touches: str
    more: tuple[tuple[str, Any], ...] = ()
    without: tuple[str, ...] = ()
    lacks: str = ""
    configured: bool = True
    verifies: str = ""
    sweeps: bool = True
    finds: str = ""
    decides: str = ""
    passes: str = ""
    constants: tuple[tuple[str, Any], ...] = ()
    change: str = ""
    code: int = 0


STATES = {
    "laid out": ("", ""),
    "ingested": ("laid out", "ingest"),
    "tagged": ("ingested", "tag"),
    "mixed": ("tagged", "mix"),
    "compared": ("mixed", "dedup"),
    "ranked": ("compared", "calibrate"),
    "drawn": ("ranked", "sample"),
    "embedded": ("drawn", "tag"),
    "annotated": ("ingested", "annotate"),
    "pictured": ("mixed", "croissant"),
    "described": ("pictured", "card"),
    "locked": ("mixed", "mix --lock {root}/locks/mix.json"),
}
"""What is there before a command: the state before that, and the command that makes it of it."""

_ABOUT = (
    ("about", {
        "name": "c", "description": "d", "creator": {"type": "Person", "name": "E"}, "license": "https://example.org/l",
        "date_published": "2026-01-31", "url": "https://example.org/", "version": "1.0.0",
    }),
)  # fmt: skip
_DEDUP = (
    ("dedup", {
        "exact-0": {"kind": "exact", "of": "tongue.label", "attributes": ["tongue-0"]},
        "lines-0": {"kind": "exact", "unit": "line", "normalize": "ccnet", "as": "lines",
                    "when": "exact.duplicate_of is None"},
        "again-0": {"kind": "exact", "unit": "line", "approximate": "bloom", "false_positive_rate": 0.01,
                    "as": "again"},
        "paragraphs-0": {"kind": "exact", "unit": "paragraph", "keep": {"max": "document.chars"}, "as": "paragraphs"},
        "near-0": {"kind": "near", "ngram": 1, "jaccard": 0.2, "language": "tongue-0.tongue.label"},
        "items-0": {"kind": "contamination", "against": ["{root}/items/*"]},
        "passages-0": {"kind": "passages", "length": 40},
    }),
)  # fmt: skip
_CALIBRATE = (
    ("calibrate", {
        "quality-0": {"kind": "rank", "score": "1 if document.id > '0-3' else 0", "within": "tongue-0.tongue.label"},
        "edu-0": {"kind": "map", "method": "isotonic", "score": "1 if document.id > '0-3' else 0",
                  "labels": "2 if document.id > '1-1' else 1"},
    }),
)  # fmt: skip
_SAMPLE = (
    ("sample", {
        "drawn-0": {"documents": 6, "by": "tongue-0.tongue.label", "splits": {"train": 0.5, "test": 0.5},
                    "ids": "{root}/drawn/ids.jsonl", "copy": {"path": "{root}/drawn/copy.jsonl.gz"}},
    }),
)  # fmt: skip
_TRAIN = (
    ("train", {
        "grade-1": {"labels": "1 if document.id > '0-3' else 0", "task": "classes", "split_by": "tongue.label",
                    "splits": {"train": 1.0}, "buckets": 256, "minimum": 1},
    }),
)  # fmt: skip
_FILES = f"{ROOT}/tests/taggers/files"
_EMBED = (
    ("tag", {
        "vectors-0": {"tagger": "embedding", "model": f"{_FILES}/encoder"},
        "scored-0": {"tagger": "head", "model": f"{_FILES}/head.safetensors", "embedding": "vectors-0"},
    }),
)  # fmt: skip
_TRAIN_HEAD = (
    *_EMBED,
    ("train", {
        "edu-1": {"kind": "head", "embeddings": "vectors-0.embedding", "labels": "2 if document.id > '1-1' else 1",
                  "task": "regression", "split": "'valid' if document.id > '1-3' else 'train'", "minimum": 1,
                  "epochs": 3},
    }),
)  # fmt: skip
CLOCK = "tests.faults.annotating:stop_the_clock"
BROWSED = "tests.faults.viewing:browse"
_ANNOTATE = (
    ("annotate", {
        "edu-0": {"endpoint": "{endpoint}", "model": "m", "answers": "{answers}", "concurrency": 2, "backoff": 0.01,
                  "prompt": {"prompt_name": "edu", "language": "en", "prompt": "Judge this.\n{{ text }}",
                             "score": {"regex": r"score:\s*(\d+)", "min": 0, "max": 5}}},
    }),
)  # fmt: skip
_TOKENIZE = (
    ("mix", {"output": {"format": "dolma", "path": "{root}/mixed"}}),
    ("tokenize", {"path": "{root}/out", "tokenizer": f"{_FILES}/tokenizer.json", "eod": "</s>", "files": "megatron",
                  "part_size": "2 kB"}),
)  # fmt: skip
_RECIPE = (
    ("mix", {
        "rules": [{"drop": "document.id == '0-1'", "name": "one"}, {"repeat": 1.5}],
        "budget": {"documents": 8, "by": "tongue.label", "temperature": 0.3},
        "output": {"format": "dolma", "by": "tongue", "path": "{root}/out", "part_size": "2 kB",
                   "shuffle": {"seed": "s"}},
    }),
)  # fmt: skip
MORE = {
    "compared": _DEDUP,
    "ranked": _CALIBRATE,
    "drawn": _SAMPLE,
    "embedded": _EMBED,
    "annotated": _ANNOTATE,
    "pictured": _ABOUT,
    "described": _ABOUT,
}
"""Of the configuration, where a state needs it."""

_ALIGN = (("align", {"grades-0": {"from": "{root}/values/*.jsonl", "id": "id"}}),)
_ANNOTATIONS = (("align", {"people-0": {"from": "{root}/values/*.jsonl", "format": "annotations"}}),)
_IN_PLACE = (("documents", {"format": "jsonl", "path": "{root}/in/a/*.jsonl.gz", "source": "s"}),)
"""The files of one folder, in which no row is bad."""

_SELECT = (
    ("ingest", [
        {"format": "warc", "crawl": "CC-MAIN-2025-30", "base_url": "{root}/in/crawl", "source": "s", "pack": "1 kB",
         "where": '"bre" in content_languages and fetch_status == 200'},
    ]),
)  # fmt: skip
"""Pages of a crawl by its index."""

_OTHER_RULE = (("rules", [{"drop": "document.id == '0-2'", "name": "other"}, {"drop": "tongue.label == 'de'"}]),)

_INGESTED = "selected documents attributes shard_records row_indexes ingest_records"
_DATA = "documents attributes schemas shard_records row_indexes ingest_records"
_OUT = "intermediates staged_parts manifest checksums parts"
_ALL = f"selected inputs rejects {_DATA} {_OUT} resolution leases failures others"

_GROUPED = (("toolkit.execution.grouped.LEAST", 2),)
"""Shards that there are few of are made in groups, too, as many are."""

_IN_ONE_REQUEST = (("toolkit.storage.objects.SMALL", 100_000),)
"""Objects that are made of several writes, each of which would be too small for a part of an upload."""

_SHARD = "data/documents/s/b/1.jsonl.gz"

_MIXING = f"inputs {_DATA} {_OUT} resolution rejects leases failures others"
_DESCRIBED = (
    "documents attributes shard_records row_indexes manifest parts checksums ingest_records descriptions others"
)
_STATUS = f"inputs {_DATA} resolution manifest checksums leases failures parts others"
_VALIDATED = f"{_DATA} resolution manifest checksums parts descriptions others"
_VERIFIED = "documents attributes schemas shard_records row_indexes manifest checksums parts"
_COMPARED = f"inputs {_DATA} hashes signatures resolution items rejects parts leases failures others"
_RANKED = f"inputs {_DATA} signatures resolution map rejects parts leases failures others"
_ALIGNED = f"inputs {_DATA} values aligning rejects parts leases failures others"
_ANNOTATED = f"inputs {_DATA} resolution annotation_files annotation_records parts leases others"
_PLACED = f"inputs {_DATA} {_OUT} resolution leases failures others"
_DRAWN = f"inputs {_DATA} signatures resolution drawn rejects parts leases failures others"
_SAMPLED = f"inputs {_DATA} sample rejects parts leases failures others"
_TRAINED = f"inputs {_DATA} hashes signatures resolution models rejects parts leases failures others"
_LOCKED = f"locks {_MIXING}"
_ASKED = f"inputs {_DATA} answers ledger rejects parts leases failures others"
_FETCHED = "fetched manifest parts others"
_PUBLISHED = "published manifest checksums parts descriptions others"
_RESOLVED = "data/.toolkit/dedup/exact-0/decisions-*"
_HEAD = "head {root}/data/documents/s/a/0.jsonl.gz"
_QUERY = """sql 'SELECT id, text, tongue FROM joined, (SELECT count(*) FROM "known-0") ORDER BY ALL'"""
_EXPORTED = f"inputs {_DATA} resolution exported export_records rejects parts leases failures others"
_EXPORT = "export --parquet {root}/exported"
_WRITTEN = "annotate --from known-0 --output {root}/exp"
_REPORTED = f"inputs {_DATA} report_counts resolution manifest checksums parts others"
_REPORT = "report -o {root}/report.json"
_EVALUATE = "evaluate known --against known --by tongue.label"

COLUMNS = (
    Column("ingest", "ingest", "laid out", f"inputs rejects {_INGESTED} parts leases failures others"),
    Column("select", "ingest", "laid out", f"inputs {_INGESTED} parts leases failures others", _SELECT),
    Column("tag", "tag", "ingested", f"inputs {_DATA} parts rejects leases failures others"),
    Column("mix", "mix", "tagged", _MIXING),
    Column("remix", "mix", "mixed", _MIXING, (("mix", dict(_OTHER_RULE)),)),
    Column("mix-gone-shard", "mix", "tagged", f"{_DATA} rejects manifest parts others", lacks=_SHARD, code=1),
    Column("mix-recipe", "mix", "tagged", _MIXING, _RECIPE),
    Column("lock", "mix --lock {root}/locks/mix.json", "tagged", _LOCKED, sweeps=False),
    Column("locked", "mix --locked {root}/locks/mix.json", "locked", _LOCKED, lacks="out/", decides="locks"),
    Column("tokenize", "tokenize", "tagged", _MIXING, _TOKENIZE, constants=_IN_ONE_REQUEST),
    Column("run", "run", "laid out", _ALL),
    Column("run-grouped", "run", "laid out", _ALL, constants=_GROUPED),
    Column("again", "run", "mixed", _ALL),
    Column("per-shard", "run --per-shard", "laid out", _ALL, passes="tagged"),
    Column("dedup", "dedup", "mixed", _COMPARED, _DEDUP),
    Column("dedup-again", "dedup", "compared", _COMPARED, _DEDUP, lacks=_RESOLVED, decides="items"),
    Column("calibrate", "calibrate", "mixed", _RANKED, _CALIBRATE),
    Column("calibrate-again", "calibrate", "ranked", f"{_RANKED} hashes", _CALIBRATE,
           lacks="data/.toolkit/dedup/edu-0/map.json"),
    Column("sample", "sample", "mixed", _DRAWN, _SAMPLE),
    Column("sample-again", "sample", "drawn", f"{_DRAWN} hashes", _SAMPLE,
           lacks="data/.toolkit/dedup/drawn-0/decisions-*"),
    Column("train", "train", "mixed", _TRAINED, _TRAIN),
    Column("embed", "tag", "tagged", f"inputs {_DATA} parts rejects leases failures others", _EMBED),
    Column("train-head", "train", "embedded", _TRAINED, _TRAIN_HEAD),
    Column("align", "align", "ingested", _ALIGNED, _ALIGN),
    Column("align-annotations", "align", "ingested", _ALIGNED, _ANNOTATIONS),
    Column("annotate-files", _WRITTEN, "tagged", _ANNOTATED),
    Column("annotate", "annotate", "ingested", _ASKED, _ANNOTATE, change=CLOCK),
    Column("annotate-again", "annotate", "annotated", _ASKED, _ANNOTATE, lacks="data/attributes/edu-0/", change=CLOCK),
    Column("in-place", "run", "laid out", _PLACED, _IN_PLACE, ("ingest",)),
    Column("tag-sample", "tag --sample 4", "ingested", _SAMPLED),
    Column("status", "status", "mixed", _STATUS, finds="changed|not indexed|gone|damaged"),
    Column("validate", "validate", "mixed", _VALIDATED, verifies=_VERIFIED, sweeps=False),
    Column("head", _HEAD, "mixed", "documents attributes schemas shard_records others", configured=False),
    Column("stats", "stats {root}/out", "mixed", "manifest parts others", configured=False),
    Column("compare", "compare known-0 known-0", "tagged", f"inputs {_DATA} resolution parts others"),
    Column("evaluate", _EVALUATE, "tagged", f"inputs {_DATA} resolution models sample parts others", sweeps=False),
    Column("sql", _QUERY, "tagged", f"inputs {_DATA} resolution manifest parts others", sweeps=False),
    Column("view", "view --labels {labels}", "tagged", f"inputs {_DATA} resolution manifest parts leases labels others",
           sweeps=False, change=BROWSED),
    Column("export", _EXPORT, "tagged", _EXPORTED, constants=_IN_ONE_REQUEST),
    Column("dry-mix", "mix --dry-run", "tagged", f"inputs {_DATA} intermediates resolution manifest parts others",
           sweeps=False),
    Column("report", _REPORT, "mixed", _REPORTED, sweeps=False),
    Column("croissant", "croissant", "mixed", _DESCRIBED, _ABOUT, sweeps=False),
    Column("card", "card", "mixed", _DESCRIBED, _ABOUT, sweeps=False),
    Column("fetch", "fetch {root}/out --label en --to {root}/fetched", "mixed", _FETCHED, configured=False),
    Column("publish", "publish {root}/out --to {root}/published", "described", _PUBLISHED, configured=False,
           decides="descriptions"),
    Column("clean", "clean {root}", "mixed", f"inputs items values rejects {_DATA} parts others", configured=False),
)  # fmt: skip
