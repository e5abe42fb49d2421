"""The compiled predictions say what the fastText library says, of a million lines."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.text.fasttext_models import ODD, PROB, Pair, agree, odd_line, of_library, pair_of
from toolkit.data.lines import split_lines
from toolkit.storage import models
from toolkit.text.line_table import LineTable


@pytest.fixture(scope="module")
def languages() -> Pair:
    return pair_of(models.resolve("lid.176.ftz"))


MILLION = 1_000_000
CHUNK = 20_000


def real_texts(shared: Path) -> Iterator[str]:
    """All texts beside the project."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    for path in sorted([*shared.glob("*/*.jsonl.gz"), *shared.glob("*/*.jsonl")]):
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as rows:
            for row in map(json.loads, rows):
                yield row.get("text") or row["content"]
    for path in sorted(shared.glob("wet/**/*.wet.gz")):
        with gzip.open(path) as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.conversion):
                yield record.reader.read().decode(errors="replace")


def from_real_lines(lines: list[str]) -> Iterator[str]:
    """More lines: halves of the longer ones, and each with another."""
    for line in lines:
        if len(line) >= 80:
            yield line[: len(line) // 2]
            yield line[len(line) // 2 :]
    for one, other in zip(lines, lines[len(lines) // 2 :], strict=False):
        yield f"{one} {other}"


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [200_000, pytest.param(MILLION, marks=pytest.mark.long)])
def test_a_million_lines_get_the_labels_of_the_library(
    wanted: int, languages: Pair, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = sorted({line for text in real_texts(shared) for line in split_lines(text.replace("\0", "")) if line.split()})
    chance = random.Random(0)
    if wanted < MILLION:
        real = chance.sample(real, wanted // 2)
    lines = list(dict.fromkeys([*real, *(odd_line(chance) for _ in range(5000)), *ODD[5:]]))
    seen = set(lines)
    made = 0
    for line in from_real_lines(real):
        if len(seen) >= max(wanted, len(real)) + 10_000:
            break
        if line not in seen:
            seen.add(line)
            lines.append(line)
            made += 1
    number = {label: i for i, label in enumerate(languages.library.getLabels("strict")[0])}
    different = ties = missing = without = 0
    largest, names, wrong = 0.0, set[str](), []
    for begin in range(0, len(lines), CHUNK):
        some = lines[begin : begin + CHUNK]
        labels, probs = languages.ours._found(LineTable.of(["\n".join([*some, ""])]), k=2, threshold=0.0)
        assert len(labels) == len(some)
        found = languages.library.multilinePredict([line + "\n" for line in some], 2, 0.0, "strict")
        for line, row, ours, theirs, library in zip(some, labels.tolist(), probs.tolist(), *found, strict=True):
            if not line.strip(" \t\r\v\f\0"):
                without += 1
                assert row == [-1, -1]
                continue
            names.add(theirs[0])
            largest = max(largest, abs(ours[0] - library[0]))
            if len(theirs) == 2 and row[1] >= 0:
                largest = max(largest, abs(ours[1] - library[1]))
            else:
                missing += (len(theirs) == 2) != (row[1] >= 0)
            if row[0] != number[theirs[0]]:
                different += 1
                if len(theirs) == 2 and library[0] - library[1] <= PROB:
                    ties += 1
                else:
                    wrong.append(line)
    with capsys.disabled():
        print(
            f"\n{len(lines):,} distinct lines ({len(real):,} real, {made:,} made from real ones, "
            f"{len(lines) - len(real) - made:,} adversarial), {sum(map(len, lines)):,} code points, "
            f"{len(names)} languages: "
            f"{different} other labels, {ties} of them ties; largest difference of a probability {largest:.2g}; "
            f"{missing} second labels on one side only; {without} lines without a word"
        )
    assert wrong == []
    assert largest <= PROB
    assert len(lines) >= wanted
    assert len(names) >= 70


@pytest.mark.slow
def test_a_hundred_thousand_lines_get_the_labels_of_the_library_from_another_model(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of the user's own: not quantised, softmax, words and their pairs."""
    import fasttext

    text = tmp_path / "t.txt"
    with gzip.open(shared / "labelled" / "lingua_test.jsonl.gz", "rt", encoding="utf-8") as rows, text.open("w") as out:
        for row in map(json.loads, rows):
            out.write(f"__label__{row['lang1']} {' '.join(row['text'].split())}\n")
    model = fasttext.train_supervised(
        str(text),
        dim=24,
        minn=1,
        maxn=4,
        bucket=100_000,
        wordNgrams=2,
        lr=0.2,
        epoch=1,
        minCount=2,
        thread=12,  # with few it begins from memory that nobody has set
        verbose=0,
    )
    model.save_model(str(tmp_path / "m.bin"))
    pair = pair_of(str(tmp_path / "m.bin"))
    lines = sorted(
        {line for each in real_texts(shared) for line in split_lines(each.replace("\0", "")) if line.split()}
    )
    lines = random.Random(1).sample(lines, 100_000)
    ours, library = pair.ours.predict(lines, k=3), of_library(pair.library, lines, 3, 0.0)
    largest = max(
        abs(a.prob - b) for one, other in zip(ours, library, strict=True) for a, (_, b) in zip(one, other, strict=False)
    )
    different = [
        (line, a, b)
        for line, a, b in zip(lines, ours, library, strict=True)
        if not agree(a, b, PROB * max(1.0, len(line) / 300))  # float32 sums of tens of thousands of rows
    ]
    with capsys.disabled():
        print(
            f"\n{len(lines):,} real lines, {len(pair.ours.labels)} labels: "
            f"largest difference of a probability {largest:.2g}"
        )
    assert different == []
