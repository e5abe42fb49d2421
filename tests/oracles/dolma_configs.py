"""All configurations of Dolma's mixer and tagger in a checkout of its repository, run by Dolma and by us, and compared.

    python -m tests.oracles.dolma_configs CHECKOUT --dolma VENV/bin/dolma [--only PART] [--keep FOLDER] [--mutate SEED]

Dolma 1.2.1 needs an environment of its own (tests/benchmarks/peers/dolma.txt). For each configuration a small corpus
is made where its globs look, with the attributes that its filters and spans ask for: scores around their thresholds,
those of the deduper integers, spans that overlap, keys that are missing. What lies in a bucket lies on disk then. It
prints a table in Markdown, as docs/comparisons.md has it; the exit status is 1 if `compat: strict` differs in anything.
"""

import argparse
import copy
import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.oracles.mutations import mutated_texts
from toolkit.rules.filters import Syntax, all_keys, matcher
from toolkit.storage.compression import compressor_for
from toolkit.storage.reading import Lines

MANY = 30
"""Globs of a configuration above which each gets one file only."""

WORDS = re.split(" ", "the quick brown fox jumps over a lazy dog; naïve café 日本語 text, line\n one two three four")


class Row(NamedTuple):
    """A line of the table."""

    config: str
    strict: str
    default: str


def configurations(checkout: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the configurations of the mixer and the tagger, by their paths."""
    for path in sorted(checkout.rglob("*")):
        if path.suffix in (".yaml", ".yml", ".json") and path.is_file() and not path.name.startswith("devcontainer"):
            try:
                value = yaml.safe_load(path.read_text(encoding="utf-8"))
            except yaml.YAMLError:
                continue
            if isinstance(value, dict) and value.keys() & {"streams", "taggers"}:
                yield path.relative_to(checkout).as_posix(), value


class Corpus:
    """A configuration's paths below a folder, and what must be there.

    Args:
        root: the folder, in place of the bucket, the home and the working directory.
        config: of the mixer.
        checkout: of Dolma's repository, whose own data is taken where a configuration names it.
        seed: of mutations of texts; None for none.
    """

    def __init__(self, root: Path, config: dict[str, Any], checkout: Path, seed: str | None = None) -> None:
        self.root, self.checkout, self.seed = root, checkout, seed
        self.config = self._placed(copy.deepcopy(config))
        self.config["work_dir"] = {"input": str(root / "work"), "output": str(root / "work")}
        self.config["processes"] = 1

    def _placed(self, value: Any) -> Any:
        if isinstance(value, dict):
            how: dict[str, Callable[[Any], Any]] = {"path": self._path, "documents": self._paths}
            return {key: how.get(key, self._placed)(each) for key, each in value.items()}
        return [self._placed(each) for each in value] if isinstance(value, list) else value

    def _paths(self, value: Any) -> list[str]:
        return [self._path(each) for each in ([value] if isinstance(value, str) else value)]

    def _path(self, path: str) -> str:
        path = path.replace("${oc.env:HOME}", str(self.root / "home")).replace("s3://", f"{self.root}/s3/")
        return path if path.startswith("/") else str(self.root / path)

    def make(self) -> int:
        """Write documents and attributes for all streams; how many documents there are."""
        rows = 0
        globs = sum(len(stream["documents"]) for stream in self.config["streams"])
        for stream in self.config["streams"]:
            for pattern in stream["documents"]:
                if self._copied(pattern):
                    continue
                for i in range(1 if globs > MANY else 3):
                    name = pattern.replace("**/", f"deep-{i}/").replace("*", f"{i:04d}")
                    rows += self._file(Path(name), stream, 4 if globs > MANY else 12)
        return rows

    def _copied(self, pattern: str) -> bool:
        """Copy the data of Dolma's own tests, if that is what a configuration is about."""
        above = Path(pattern.partition("/documents/")[0])
        source = self.checkout / above.relative_to(self.root) if above.is_relative_to(self.root) else None
        if source is None or not source.is_dir():
            return False
        shutil.copytree(source, above, dirs_exist_ok=True)
        return True

    def _file(self, path: Path, stream: dict[str, Any], count: int) -> int:
        if path.exists():
            return 0
        chance = random.Random(str(path.relative_to(self.root)))  # the same in both copies
        ids = [f"{path.relative_to(self.root)}:{i}" for i in range(count)]
        texts = mutated_texts([" ".join(chance.choices(WORDS, k=chance.randint(4, 60))) for _ in ids], self.seed)
        found = [_attributes(stream, text, chance) for text in texts]
        _write(path, [_document(each, text, chance) for each, text in zip(ids, texts, strict=True)])
        sets = stream.get("attributes") or []
        for name in sets:
            other = Path(str(path).replace("/documents/", f"/attributes/{name}/"))
            own = [{k: v for k, v in each.items() if _set_of(k, sets) == name} for each in found]
            _write(other, [{"id": i, "attributes": each, "source": "s"} for i, each in zip(ids, own, strict=True)])
        return count


def _document(id: str, text: str, chance: random.Random) -> dict[str, Any]:
    metadata = {"length": len(text), "language": chance.choice(["en", "de"])}
    return {"id": id, "text": text, "source": "s", "added": "2024-01-01", "created": "2023-01-01", "metadata": metadata}


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(compressor_for(str(path))(lines.encode()))


def _set_of(key: str, sets: list[str]) -> str:
    """Return the set that a key is in: the one that its name begins with, else the last."""
    return next((name for name in sets if key.startswith(name.replace("-", "_"))), sets[-1])


def _syntax(rule: dict[str, Any]) -> Syntax:
    return "jq" if rule.get("syntax") == "jq" else "jsonpath"


def _patterns(stream: dict[str, Any]) -> list[tuple[str, Syntax]]:
    rule = stream.get("filter") or {}
    syntax = _syntax(rule)
    return [(each, syntax) for kind in ("include", "exclude") for each in rule.get(kind) or []]


def _attributes(stream: dict[str, Any], text: str, chance: random.Random) -> dict[str, Any]:
    """Return attributes of a document: spans over it with scores near the thresholds of filters, spans to replace.

    Most of what filters ask for matches none that excludes, or else few documents would be left to be compared.
    """
    found: dict[str, Any] = {}
    patterns = _patterns(stream)
    hostile = chance.random() < 0.5
    for key, limits in sorted(_limits(patterns).items()):
        scores = [limit + by for limit in limits for by in (-40, -1, -0.01, 0, 0.01, 1, 40)]
        near: list[list[list[float]]] = [[[0, len(text), _score(key, score)]] for score in scores]
        harmless = [each for each in near if not _excludes(stream, key, each)] or [[]]
        some = chance.random()
        found[key] = (
            []
            if some < 0.1 and patterns[0][1] == "jsonpath"
            else chance.choice(near if hostile and some < 0.2 else harmless)
        )
    for rule in stream.get("span_replacement") or []:
        for key in sorted(_keys(rule["span"], _syntax(rule))):
            low, spans = rule.get("min_score") or 0.5, []
            for _ in range(chance.randint(0, 2)):
                start = chance.randrange(len(text))
                score = low + chance.choice([-0.1, 0, 0.1])
                spans.append([start, min(len(text), start + chance.randint(1, 9)), _score(key, score)])
            found[key] = spans
    return {key: spans for key, spans in found.items() if spans}


def _limits(patterns: list[tuple[str, Syntax]]) -> dict[str, list[float]]:
    """Return the numbers that patterns compare keys with."""
    limits: dict[str, list[float]] = {}
    for pattern, syntax in patterns:
        numbers = [float(each) for each in re.findall(r"(?:[<>]=?|==)\s*(-?\d+(?:\.\d+)?)", pattern)] or [1.0]
        for key in _keys(pattern, syntax):
            limits.setdefault(key, []).extend(numbers)
    return limits


@functools.cache
def _keys(pattern: str, syntax: Syntax) -> set[str]:
    return all_keys(pattern, syntax)


@functools.cache
def _matcher(pattern: str, syntax: Syntax, strict: bool) -> Callable[[dict[str, Any]], bool]:
    return matcher(pattern, syntax, strict=strict, exclude=True)


def _excludes(stream: dict[str, Any], key: str, spans: Any) -> bool:
    """Tell whether a filter excludes documents for a value, be 1 and 1.0 one number or two."""
    rule = stream.get("filter") or {}
    syntax = _syntax(rule)
    document = {"id": "", "text": "", "attributes": {key: spans}}
    return any(
        _matcher(pattern, syntax, strict)(document)
        for pattern in rule.get("exclude") or []
        if key in _keys(pattern, syntax)
        for strict in (False, True)
    )


def _score(key: str, score: float) -> float:
    """Return a score as Dolma writes it: its deduper integers, its taggers floats."""
    return round(score, 5) if "__" in key else max(0, round(score))


# --- running ----------------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What a program gave: exit status, standard output and error, rows by output."""

    code: int
    out: str
    err: str
    rows: dict[str, list[bytes]]


def run(program: list[str], config: dict[str, Any], root: Path) -> Ran:
    """Run a mix in a folder."""
    path = root / "config.json"
    path.write_text(json.dumps(config))
    line = [each.replace("CONFIG", str(path)) for each in program]
    environment = {**os.environ, "HOME": str(root / "home"), "ALPHA": "0.5", "RUST_LOG": "error"}
    ran = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True, check=False)
    rows: dict[str, list[bytes]] = {}
    for folder in sorted({stream["output"]["path"] for stream in config["streams"]}):
        for file in sorted(Path(folder.replace("${oc.env:HOME}", str(root / "home"))).rglob("*.json*.*")):
            if ".toolkit" not in file.parts:
                name = re.sub(r"(-\d{4})?\.jsonl?\.(gz|zstd?)$", "", str(file.relative_to(root)))
                with Lines(str(file), 1 << 30) as lines:
                    rows.setdefault(name, []).extend(lines)
    return Ran(ran.returncode, ran.stdout, ran.stderr, {k: v for k, v in rows.items() if v})


def compared(config: dict[str, Any], checkout: Path, dolma: str, folder: Path, seed: str | None) -> tuple[str, str]:
    """Return what becomes of a configuration of the mixer, by `compat: strict` and by default."""
    corpora = {name: Corpus(folder / name, config, checkout, seed) for name in ("dolma", "strict", "meaning")}
    for corpus in corpora.values():
        corpus.root.mkdir(parents=True)
        documents = corpus.make()
    theirs = run([dolma, "-c", "CONFIG", "mix"], corpora["dolma"].config, corpora["dolma"].root)
    command = [sys.executable, "-m", "toolkit.cli", "-c", "CONFIG", "mix", "--json", "--quiet"]
    found = []
    for compat in ("strict", "meaning"):
        ours = run(command, corpora[compat].config | {"compat": compat}, corpora[compat].root)
        found.append(_verdict(theirs, ours, compat, documents))
    return found[0], found[1]


def _verdict(theirs: Ran, ours: Ran, compat: str, documents: int) -> str:
    if ours.code != 0 and theirs.code != 0:
        return "both stop"
    if ours.code != 0:
        lines = (ours.err.strip() or ours.out.strip()).splitlines()
        return f"exit {ours.code}: {lines[-1].strip() if lines else ''}"
    if theirs.code != 0:
        return f"runs; Dolma exits {theirs.code}: {theirs.err.strip().splitlines()[-1][-200:]}"
    count = sum(map(len, theirs.rows.values()))
    if compat == "strict":
        if ours.rows == theirs.rows:
            return f"same bytes, same order ({count} rows)"
        ordered = {k: sorted(v) for k, v in ours.rows.items()} == {k: sorted(v) for k, v in theirs.rows.items()}
        return "DIFFERS in order" if ordered else f"DIFFERS in rows ({count})"
    one, other = (_by_id(each) for each in (theirs, ours))
    told = json.loads(ours.out)
    unlike = sum(run["unlike_dolma"] for run in told.get("runs", [told]))
    kept = len(one.keys() ^ other.keys())
    texts = sum(one[key] != other[key] for key in one.keys() & other.keys())
    if kept != unlike:
        return f"DIFFERS: {kept} kept or dropped otherwise, {unlike} told"
    parts = [f"{kept} of {documents or '?'} documents by 1 = 1.0"] * bool(kept)
    parts += [f"{texts} of {count} rows by overlaps"] * bool(texts)
    return "; ".join(parts) or "same rows"


def _by_id(ran: Ran) -> dict[tuple[str, str], Any]:
    rows = ((name, json.loads(line)) for name, lines in ran.rows.items() for line in lines)
    return {(name, f"{row['id']} {row['metadata'].get('provenance')}"): row for name, row in rows}


def of_tagger(config: dict[str, Any], folder: Path) -> str:
    """Return what becomes of a configuration of the tagger here."""
    root = folder / "tagger"
    corpus = Corpus(root, {"streams": [{"name": "s", "documents": config["documents"], "output": {}}]}, folder)
    root.mkdir(parents=True)
    corpus.make()
    path = root / "config.json"
    path.write_text(json.dumps(config | {"documents": corpus.config["streams"][0]["documents"]}))
    line = [sys.executable, "-m", "toolkit.cli", "-c", str(path), "tag", "--quiet"]
    ran = subprocess.run(line, cwd=root, capture_output=True, text=True, check=False)
    return "runs" if ran.returncode == 0 else f"exit {ran.returncode}: {ran.stderr.strip().splitlines()[-1]}"


def main() -> int:
    """Print the table; 1 if anything differs that should not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="of Dolma's repository")
    parser.add_argument("--dolma", required=True, help="its program, of version 1.2.1")
    parser.add_argument("--only", default="", help="configurations with this in their path")
    parser.add_argument("--keep", type=Path, help="folder for the corpora and outputs; else they are deleted")
    parser.add_argument("--mutate", metavar="SEED", help="texts with CRLF, NUL, other scripts and so on")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent.parent)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, config in configurations(given.checkout.resolve()):
            if given.only not in name:
                continue
            folder = (given.keep or Path(temporary)).resolve() / name.replace("/", "_")
            if "streams" in config:
                row = Row(name, *compared(config, given.checkout.resolve(), given.dolma, folder, given.mutate))
            else:
                row = Row(name, of_tagger(config, folder), "")
            row = Row(row.config, *(each.replace(str(folder), "…") for each in row[1:]))
            print(f"| `{row.config}` | {row.strict} | {row.default} |", flush=True)
            rows.append(row)
            if not given.keep:
                shutil.rmtree(folder, ignore_errors=True)
    bad = [row for row in rows if "DIFFERS" in row.strict + row.default]
    print(f"{len(rows)} configurations, {len(bad)} differ", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
