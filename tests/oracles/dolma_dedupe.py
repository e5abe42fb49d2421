"""All configurations of Dolma's deduper in a checkout of its repository, run by Dolma and by us, and compared.

    python -m tests.oracles.dolma_dedupe CHECKOUT --dolma VENV/bin/dolma [--only PART] [--mutate SEED]

Dolma 1.2.1 needs an environment of its own (tests/benchmarks/peers/dolma.txt). For each configuration a small corpus in
several scripts with repeated documents and lines is made where its globs look. Sizes of Bloom filters are made small
enough for any machine. Where a filter is only read, Dolma makes it first of other documents, which are `against` here.
Compared are places, scores and first lines of what each calls repeated, without empty lines: Dolma's ends are not right
in all texts. It prints a table in Markdown, as docs/comparisons.md has it; the exit status is 1 if something differs.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.oracles.dolma_configs import Corpus, _write
from tests.oracles.mutations import mutated_texts
from toolkit.storage.reading import Lines

FILES, ROWS = 3, 20
EVALUATION = "evaluation/documents/e.jsonl.gz"
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "naïve", "слово", "漢字", "🙂"]
SMALL = {"estimated_doc_count": 100_000, "desired_false_positive_rate": 1e-9, "size_in_bytes": 0}


def configurations(checkout: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the configurations of the deduper, by their paths."""
    for path in sorted(checkout.rglob("*")):
        if path.suffix in (".yaml", ".yml", ".json") and path.is_file():
            try:
                value = yaml.safe_load(path.read_text(encoding="utf-8"))
            except (yaml.YAMLError, UnicodeDecodeError):
                continue
            if isinstance(value, dict) and "dedupe" in value:
                yield path.relative_to(checkout).as_posix(), value


def made(config: dict[str, Any], root: Path, seed: str | None = None) -> dict[str, Any]:
    """Write documents where a configuration looks; return it with its paths there."""
    corpus = Corpus(root, {"streams": [{"documents": config["documents"], "output": {}}]}, root)
    chance = random.Random(str(sorted(config["documents"])))
    lines = [" ".join(chance.choices(WORDS, k=n % 9)) for n in range(60)]
    patterns = corpus.config["streams"][0]["documents"]
    texts = mutated_texts(["\n".join(chance.choices(lines, k=chance.randint(0, 9))) for _ in range(30)], seed)
    for pattern in patterns:
        for i in range(FILES):
            name = pattern.replace("**/", "").replace("doc*", "documents").replace("*", f"{i:04d}")
            rows = [
                {"id": f"{name}-{n}", "text": text, "source": "s", "metadata": {"url": f"http://x/{hash(text) % 40}"}}
                for n, text in enumerate(chance.choices(texts, k=ROWS))
            ]
            _write(Path(name), rows)
    bloom = {**config["bloom_filter"], **SMALL, "file": str(root / "filter.bin")}
    if bloom.get("read_only"):
        rows = [{"id": str(n), "text": text, "source": "s", "metadata": {}} for n, text in enumerate(texts[::3])]
        _write(root / EVALUATION, rows)
    return {**config, "documents": patterns, "bloom_filter": bloom, "work_dir": None, "processes": 1}


def spans_of(root: Path, name: str) -> dict[str, set[tuple[int, str, float]]]:
    """Return, by document, what is called repeated: where it begins, the text, and the score."""
    found: dict[str, set[tuple[int, str, float]]] = {}
    for path in sorted(root.rglob("*")):
        if f"/attributes/{name}/" not in str(path) or not path.is_file() or "/evaluation/" in str(path):
            continue
        documents = Path(str(path).replace(f"/attributes/{name}/", "/documents/"))
        with Lines(str(path), 1 << 30) as rows, Lines(str(documents), 1 << 30) as texts:
            for row, document in zip(map(json.loads, rows), map(json.loads, texts), strict=True):
                assert row["id"] == document["id"]
                values = row["attributes"].values() if isinstance(row["attributes"], dict) else [[]]
                text = document["text"]
                pieces = {
                    (a, text[a:].partition("\n")[0], round(score, 5)) for spans in values for a, _, score in spans
                }
                found[row["id"]] = {each for each in pieces if each[1].strip()}
    return found


def verdict(config: dict[str, Any], dolma: str, folder: Path, seed: str | None = None) -> str:
    """Return what becomes of a configuration; with a seed, of mutated texts."""
    os.environ["PYTHONHASHSEED"] = "0"
    roots = {name: folder / name for name in ("ours", "theirs")}
    programs = {
        "theirs": [dolma, "-c", "CONFIG", "dedupe"],
        "ours": [sys.executable, "-m", "toolkit.cli", "-c", "CONFIG", "dedup", "form=dolma", "--quiet"],
    }
    found = {}
    section = config["dedupe"]
    set_name = section.get("name") or (section.get("documents") or section["paragraphs"])["attribute_name"]
    for name, root in roots.items():
        root.mkdir(parents=True)
        path = root / "config.json"
        own = made(config, root, seed)
        path.write_text(json.dumps(own))
        environment = {**os.environ, "HOME": str(root / "home"), "RUST_LOG": "error"}
        if own["bloom_filter"].get("read_only") and name == "theirs":
            bloom = own["bloom_filter"] | {"read_only": False}
            first = own | {"documents": [str(root / EVALUATION)], "bloom_filter": bloom}
            (root / "first.json").write_text(json.dumps(first))
            subprocess.run(
                [dolma, "-c", root / "first.json", "dedupe"], env=environment, capture_output=True, check=True
            )
        elif own["bloom_filter"].get("read_only"):
            programs["ours"].append(f"against={root / EVALUATION}")
        line = [each.replace("CONFIG", str(path)) for each in programs[name]]
        ran = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode:
            last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1]
            key = last.partition("config.json:")[2].split(": ")
            return f"refused for `{key[1]}`" if name == "ours" and len(key) > 1 else f"{name}: {last[-160:]}"
        found[name] = {key.partition(str(root))[2]: value for key, value in spans_of(root, set_name).items()}
    repeated = sum(map(bool, found["theirs"].values()))
    if found["ours"] == found["theirs"]:
        return f"same ({repeated} of {len(found['ours'])} documents)"
    unlike = [key for key in found["theirs"] if found["theirs"][key] != found["ours"].get(key)]
    return f"DIFFERS in {len(unlike)} of {len(found['theirs'])} documents ({repeated} with repeats)"


def main() -> int:
    """Print the table; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="of Dolma's repository")
    parser.add_argument("--dolma", required=True, help="its program, of version 1.2.1")
    parser.add_argument("--only", default="", help="configurations with this in their path")
    parser.add_argument("--mutate", metavar="SEED", help="texts with CRLF, NUL, other scripts and so on")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent.parent)
    bad = 0
    for name, config in configurations(given.checkout.resolve()):
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            said = verdict(config, given.dolma, Path(temporary).resolve(), given.mutate)
        bad += "DIFFERS" in said
        print(f"| `{name}` | {said} |", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
