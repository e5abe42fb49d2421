"""datatrove's MinHash and ours without verification on the same pages: do they find the same pairs?

    python -m tests.oracles.near_duplicates DOCUMENTS --peer ENV [--bytes N] [--mutate SEED]

DOCUMENTS is a folder with shards of documents, `ENV` an environment with datatrove (tests/benchmarks/peers/
datatrove.txt). Copies with other words are added to the first pages. All pairs whose sets of word 5-grams have a
Jaccard similarity of at least 0.8 are found by brute force, with words of `\\w+` in lower case, which are those of
neither program. A program has found a pair if it does not keep both. It prints a table by similarity, and each pair of
at least 0.9 about which the programs disagree; the exit status is 1 if these are more than 1 of 200.
"""

import argparse
import math
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path

import msgspec

from tests.benchmarks.inputs import WORDS, Row, changed, dedup_config, open_gzip, rows_of, run_command
from tests.benchmarks.peers import HERE
from tests.conftest import ROOT
from tests.oracles.mutations import mutated_texts

LEAST = 0.8
BELOW = (0.8, 0.85, 0.9, 0.95, 1.01)
COPIED = 0.15
"""The share of pages that come again."""
ALLOWED = 1 / 200

_WORD = re.compile(r"\w+")


def corpus(documents: Path, size: int, seed: str | None) -> list[Row]:
    """The first pages of a number of bytes, and copies of some with other words, in no order; ids are numbers."""
    texts: list[str] = []
    left = size
    for shard in sorted(documents.rglob("*.jsonl.gz")):
        for row in rows_of(shard):
            if left > 0:
                texts.append(row.text)
                left -= len(row.text.encode())
    chance, texts = random.Random(4), mutated_texts(texts, seed)
    long = [text for text in texts if text.count(" ") >= WORDS]
    texts += [changed(text, chance) for text in chance.sample(long, round(COPIED * len(long)))]
    chance.shuffle(texts)
    return [Row(str(number), "s", text) for number, text in enumerate(texts)]


def similar(sets: Sequence[frozenset[int]], least: float) -> Iterator[tuple[int, int, float]]:
    """Yield all pairs of at least this Jaccard similarity.

    Of two such sets, each has one of the shingles of the other among its own rarest ones, if these are so many that
    what is left is less than what both must share.
    """
    frequent = Counter(shingle for each in sets for shingle in each)
    holders: dict[int, list[int]] = {}
    for number, each in enumerate(sets):
        ordered = sorted(each, key=lambda shingle: (frequent[shingle], shingle))
        rarest = ordered[: len(each) - math.ceil(least * len(each)) + 1]
        for other in {other for shingle in rarest for other in holders.get(shingle, ())}:
            common = len(each & sets[other])
            if common / (len(each) + len(sets[other]) - common) >= least:
                yield other, number, common / (len(each) + len(sets[other]) - common)
        for shingle in rarest:
            holders.setdefault(shingle, []).append(number)


def shingles(texts: Sequence[str]) -> list[frozenset[int]]:
    """The sets of word 5-grams of texts; each 5-gram is a number."""
    numbers, known = count(), dict[tuple[str, ...], int]()
    found = []
    for text in texts:
        words = _WORD.findall(text.lower())
        grams = {tuple(words[i : i + 5]) for i in range(len(words) - 4)}
        found.append(
            frozenset(known[gram] if gram in known else known.setdefault(gram, next(numbers)) for gram in grams)
        )
    return found


def theirs(folder: Path, python: Path) -> set[int]:
    """What datatrove keeps."""
    command: list[str | Path] = [python, "-I", HERE / "datatrove_minhash.py", folder / "documents", folder / "out"]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return {int(row.id) for path in (folder / "out" / "kept").rglob("*.gz") for row in rows_of(path)}


def ours(folder: Path) -> set[int]:
    """What we keep."""
    run_command("dedup", dedup_config(folder, folder, {"kind": "near", "preset": "fineweb", "verify": False}))
    (path,) = (folder / "attributes" / "set-0").rglob("*.gz")
    return {int(row.id) for row in rows_of(path) if row.attributes["near"]["duplicate_of"] is None}


def main() -> int:
    """Print the table; 1 if they agree about too few pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("documents", type=Path, help="a folder with shards")
    parser.add_argument("--peer", type=Path, required=True, help="environment of datatrove")
    parser.add_argument("--bytes", type=int, default=16_000_000, help="of text, without copies")
    parser.add_argument("--mutate", metavar="SEED", help="texts with CRLF, NUL, other scripts and so on")
    given = parser.parse_args()
    rows = corpus(given.documents, given.bytes, given.mutate)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "documents").mkdir()
        with open_gzip(folder / "documents" / "00000.jsonl.gz", "wb") as out:
            for row in rows:
                out.write(msgspec.json.encode({"id": row.id, "text": row.text, "source": row.source}) + b"\n")
        kept = {"datatrove": theirs(folder, given.peer / "bin" / "python"), "toolkit": ours(folder)}
    sets = shingles([row.text for row in rows])
    pairs = list(similar(sets, LEAST))
    found = {program: [not (a in keeps and b in keeps) for a, b, _ in pairs] for program, keeps in kept.items()}
    print(f"{len(rows):,} documents; kept: " + ", ".join(f"{name} {len(keeps):,}" for name, keeps in kept.items()))
    print("| Jaccard | pairs | datatrove | toolkit | disagree |\n| --- | ---: | ---: | ---: | ---: |")
    for low, high in pairwise(BELOW):
        chosen = [i for i, (_, _, similarity) in enumerate(pairs) if low <= similarity < high]
        both = [sum(found[name][i] for i in chosen) for name in kept]
        unlike = sum(found["datatrove"][i] != found["toolkit"][i] for i in chosen)
        print(f"| {low} to {min(high, 1)} | {len(chosen):,} | {both[0]:,} | {both[1]:,} | {unlike} |")
    high_ones = [i for i, (_, _, similarity) in enumerate(pairs) if similarity >= BELOW[2]]
    unlike_ones = [i for i in high_ones if found["datatrove"][i] != found["toolkit"][i]]
    for i in unlike_ones:
        a, b, similarity = pairs[i]
        who = next(name for name in kept if found[name][i])
        print(f"{similarity:.3f}, {len(sets[a])} and {len(sets[b])} shingles, only {who}: {rows[a].text[:60]!r} …")
    print(f"agreement from {BELOW[2]} on: {1 - len(unlike_ones) / max(1, len(high_ones)):.2%} of {len(high_ones):,}")
    return int(len(unlike_ones) > ALLOWED * len(high_ones))


if __name__ == "__main__":
    sys.exit(main())
