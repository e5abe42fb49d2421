"""Write FineWeb-2's thresholds and stop words of all its languages, from a checkout of huggingface/fineweb-2.

    python tests/oracles/tables/fineweb_2.py CHECKOUT COMMIT FOLDER

writes `fineweb-2-COMMIT.tsv` and `fineweb-2-COMMIT-stop-words.tsv`, a row for each file of `configs/` at that commit,
under its name, which is GlotLID's label. baedee4 is the release of December 2024; d331bee and later have the paper's
numbers, which are others. The repository is Apache-2.0 (a LICENSE since 680409b; the stop words are the same at all its
commits). It needs PyYAML and git, and imports nothing of this project.
"""

import csv
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PLAIN = (
    "language_score", "dup_line_frac", "line_punct_thr", "new_line_ratio", "min_avg_word_length",
    "max_avg_word_length", "max_non_alpha_words_ratio",
)  # fmt: skip
NGRAMS = {"top_n_grams": ("top_{}gram", (2, 3, 4)), "dup_n_grams": ("dup_{}gram", (5, 6, 7, 8, 9, 10))}


def configurations(checkout: str, commit: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the label and the content of each file of `configs/`."""

    line = ["git", "-C", checkout, "archive", commit, "configs"]  # the user's own checkout
    archive = subprocess.run(line, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for file in files:
            if (content := files.extractfile(file)) is not None:
                yield Path(file.name).stem, yaml.safe_load(content)


def numbers(config: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a configuration, under the names that they have here."""
    found = {name: config[name] for name in PLAIN}
    for key, (name, sizes) in NGRAMS.items():
        assert tuple(size for size, _ in config[key]) == sizes
        found |= {name.format(size): limit for size, limit in config[key]}
    return found


def main() -> None:
    """Write both tables."""
    checkout, commit, folder = sys.argv[1:]
    rows = sorted(configurations(checkout, commit), key=lambda row: row[0])
    with Path(folder, f"fineweb-2-{commit}.tsv").open("w", encoding="utf-8", newline="") as out:
        write = csv.writer(out, delimiter="\t", lineterminator="\n").writerow
        write(["label", *numbers(rows[0][1])])
        for label, config in rows:
            write([label, *numbers(config).values()])
    with Path(folder, f"fineweb-2-{commit}-stop-words.tsv").open("w", encoding="utf-8") as out:
        for label, config in rows:
            words = config["stopwords"]
            assert not any("\t" in word or "\n" in word or not word for word in words), label
            out.write("\t".join((label, *words)) + "\n")


if __name__ == "__main__":
    main()
