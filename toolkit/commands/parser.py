"""The parser of the command line: commands, their options, and examples.

The reference pages and `toolkit.cli` read it.
"""

import argparse
from typing import NoReturn

from toolkit.storage.addresses import cleaned

COMMANDS = {
    "run": "ingest, tag and mix, as far as the configuration has these sections",
    "ingest": "make documents from WET, OSCAR, Dolma, JSON Lines or text files",
    "tag": "compute attributes of documents",
    "mix": "join documents and attributes under rules, and write an output format",
    "validate": "check documents, attribute sets and outputs",
    "stats": "count documents, lines, characters, bytes and words; show how attributes are distributed",
    "head": "show documents joined with their attributes",
    "taggers": "list the taggers that there are, or describe and measure some",
    "croissant": "describe a dataset or an output for others: croissant.json",
    "card": "write the dataset card of a dataset or an output: README.md, as the hub shows it",
    "features": "print how Hugging Face datasets reads an OSCAR output",
    "status": "show what is done, running, failed and missing, and why",
    "clean": "delete what killed runs have left behind; when no run is working there",
}

SHARED = ("run", "ingest", "tag", "mix", "validate", "status")
"""Commands whose work several runs can share."""

LOOKS = ("validate", "stats", "head", "croissant", "card", "features", "clean")
"""Commands that take paths, or a configuration."""

DOLMAS = ("tag", "mix")
"""Commands that Dolma has, too, with other options."""

NOT_HERE = ("dedupe", "tokens", "list", "stat", "warc")
"""Commands that only Dolma has."""

EXAMPLES = {
    "tag": [
        "toolkit tag -c configs/quickstart.yaml processes=2",
        "toolkit tag --try README.md line_shape noise line_shape.short_chars=80",
    ],
    "validate": ["toolkit validate data/quickstart/oscar --first 100"],
    "stats": [
        "toolkit stats data/quickstart/oscar",
        "toolkit stats -c configs/quickstart.yaml --by host --top 20",
        "toolkit stats -c configs/quickstart.yaml --histogram language.prob --output prob.svg",
    ],
    "head": ["toolkit head data/quickstart/documents/cc/sample-00000.jsonl.gz -n 1"],
    "taggers": ["toolkit taggers", "toolkit taggers line_shape"],
    "croissant": [
        "toolkit croissant -c my/corpus.yaml about.version=1.1.0",
        "toolkit croissant -c my/corpus.yaml --of dataset --dry-run",
    ],
    "card": ["toolkit card -c my/corpus.yaml", "toolkit card data/released about.name=released"],
    "features": ["toolkit features data/quickstart/oscar"],
    "status": ["toolkit status -c configs/quickstart.yaml"],
    "clean": ["toolkit clean data/quickstart"],
}


def examples(name: str) -> list[str]:
    """Command lines that show a command."""
    return EXAMPLES.get(name, [f"toolkit {name} -c configs/quickstart.yaml processes=2"])


class _Parser(argparse.ArgumentParser):
    """Quotes no secrets of addresses in its errors; nor do the parsers of the commands, which are of the same class."""

    def error(self, message: str) -> NoReturn:
        super().error(cleaned(message))


def parser(prog: str = "toolkit") -> argparse.ArgumentParser:
    """Return the parser of the whole command line; the reference pages are made from it.

    Args:
        prog: how it was called, for help and errors.
    """
    top = _Parser(
        prog=prog,
        description="Prepare text corpora for language models: documents, attributes beside them, rules for both.",
        epilog="Exit status: 0 done; 1 failed shards or findings; 2 bad usage or configuration; "
        "130 interrupted; 143 terminated.",
    )
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=help_,
            description=help_[0].upper() + help_[1:] + ".",
            epilog="Example: " + ", or ".join(examples(name)),
        )
        if name in LOOKS:
            _add_look(command, name)
        elif name == "taggers":
            _add_taggers(command)
        elif name == "status":
            _add_config(command)
        else:
            _add_work(command, name)
        if name == "mix":
            command.add_argument(
                "--explain", metavar="ID|N", help="why the rules keep or drop this document, or N documents a rule"
            )
            command.add_argument(
                "--compare", metavar="FILE", help="what would change with the mix of another configuration"
            )
            command.add_argument(
                "-n", dest="count", type=_positive, default=3, metavar="N", help="documents shown for each change (3)"
            )
        if name == "run":
            command.add_argument(
                "--per-shard",
                action="store_true",
                help="input by input; documents and attributes are deleted when mixed",
            )
        if name in SHARED:
            command.add_argument(
                "--shard", type=_share, metavar="I/N", help="only the share I of N, counted from 0: for array jobs"
            )
        if name not in ("taggers", "status", "clean", "croissant", "card"):
            command.add_argument("--limit", type=_positive, metavar="N", help="only the first N shards (or inputs)")
        command.add_argument("--json", action="store_true", help="results as JSON on standard output")
        command.add_argument("--quiet", action="store_true", help="no progress on standard error")
        command.add_argument("--debug", action="store_true", help="tracebacks of failures")
    return top


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)


def _share(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 0 to N - 1, got {text!r}")
    return int(index), int(count)


def _add_work(command: argparse.ArgumentParser, name: str) -> None:
    if name == "tag":
        _add_try(command, "show what taggers give for a text or a shard; writes nothing")
        command.add_argument("-n", dest="count", type=_positive, default=3, metavar="N", help="documents to try (3)")
        command.add_argument(
            "--accept-code",
            action="append",
            default=[],
            metavar="SET",
            help="the code of the set's taggers was edited and gives the same values: keep what was made",
        )
        command.add_argument(
            "-c", "--config", metavar="FILE", help="configuration (YAML); with --try, taggers may be named instead"
        )
        what = "with --try: names, path/file.py:Class, '{tagger: NAME, option: …}'; settings that override others"
        command.add_argument("arguments", nargs="*", metavar="TAGGER | KEY=VALUE", help=what)
    else:
        _add_config(command)
    command.add_argument(
        "--dry-run", action="store_true", help="print the settings and the plan, or what rules would do; write no data"
    )
    command.add_argument("--overwrite", action="store_true", help="replace what was made with other settings")


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument("-c", "--config", required=True, metavar="FILE", help="configuration (YAML)")
    command.add_argument("arguments", nargs="*", metavar="KEY=VALUE", help="settings that override the file's")


def _add_try(command: argparse.ArgumentParser, help_: str) -> None:
    command.add_argument("--try", dest="sample", metavar="FILE", help=f"{help_}; - is standard input")
    command.add_argument("--lines", action="store_true", help="each line of that text is a document")


def _add_taggers(command: argparse.ArgumentParser) -> None:
    what = "names, path/file.py, path/file.py:Class, package.module:Class; TAGGER.OPTION=VALUE"
    command.add_argument("arguments", nargs="*", metavar="TAGGER | KEY=VALUE", help=what)
    command.add_argument(
        "--file", dest="files", action="append", default=[], metavar="FILE", help="list its taggers, too"
    )
    _add_try(command, "measure on this text or shard, not on made-up pages")


def _add_look(command: argparse.ArgumentParser, name: str) -> None:
    what = {
        "validate": "datasets, outputs or files",
        "stats": "datasets, outputs or files",
        "head": "a shard",
        "croissant": "an output or a dataset",
        "card": "an output or a dataset",
        "features": "an output",
        "clean": "folders",
    }[name]
    command.add_argument("-c", "--config", metavar="FILE", help="configuration (YAML), if no path is given")
    command.add_argument("arguments", nargs="*", metavar="PATH | KEY=VALUE", help=f"{what}, or settings with -c")
    if name == "head":
        command.add_argument("-n", dest="count", type=_positive, default=3, metavar="N", help="so many documents (3)")
        command.add_argument("--id", metavar="ID", help="the document with this id")
    elif name == "clean":
        command.add_argument("--dry-run", action="store_true", help="only list them")
    elif name in ("croissant", "card"):
        _add_description(command, name)
    else:
        command.add_argument("--first", type=_positive, metavar="N", help="only the first N rows of each file")
    if name == "stats":
        _add_stats(command)
    elif name == "validate":
        command.add_argument(
            "--labels",
            choices=("known", "any"),
            default="known",
            help="labels that rows of an OSCAR release may have: known languages (lid.176's, GlotLID's), or any",
        )


def _add_description(command: argparse.ArgumentParser, name: str) -> None:
    command.add_argument(
        "--of", choices=("dataset", "output"), help="what to describe; by default the output, if there is a mix"
    )
    command.add_argument("--first", type=_positive, metavar="N", help="look at the first N rows of each file only")
    command.add_argument("--dry-run", action="store_true", help="print it, write nothing")
    stale = "write nothing; exit status 1 if it is out of date"
    if name == "croissant":
        stale += ", or not versioned"
        command.add_argument("--spec", choices=("1.0", "1.1"), help="version of the specification (1.0)")
    else:
        command.add_argument("--overwrite", action="store_true", help="replace a README.md that is no card of ours")
    command.add_argument("--check", action="store_true", help=stale)


def _add_stats(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="WHAT",
        help="label, source, crawl, host, or an expression as rules have it; a table for each (label)",
    )
    command.add_argument("--label", metavar="EXPRESSION", help="of the label, if not that of the mix or the output")
    command.add_argument(
        "--unicode-words",
        action="store_true",
        help="count words by Unicode's boundaries, too",
    )
    command.add_argument(
        "--attribute",
        dest="attributes",
        action="append",
        default=[],
        metavar="NAME",
        help="the distribution of an attribute, or of its values (language.prob), by label; `all` for every one",
    )
    command.add_argument(
        "--histogram", metavar="NAME", help="draw the distribution of a value, with the thresholds of the mix's rules"
    )
    command.add_argument("--mix", action="store_true", help="what the mix read and kept, from its manifest")
    command.add_argument("--top", type=_positive, metavar="N", help="groups shown, the largest (1000)")
    command.add_argument("--format", choices=("markdown", "csv", "json"), help="of tables (markdown)")
    command.add_argument(
        "--output", metavar="FILE", help="write .md, .csv or .json; with --histogram .png, .svg or .pdf"
    )
