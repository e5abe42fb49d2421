"""The compiled predictions say what the fastText library says: for every loss, quantised or not, and odd texts."""

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import ROOT
from tests.fuzz.guards import Guards
from tests.marks import slow
from tests.text.fasttext_models import (
    KINDS,
    KNOWN,
    LONGEST,
    ODD,
    PROB,
    WORDS,
    Pair,
    agree,
    broken_lines,
    check,
    in_process,
    mixed_words,
    odd_line,
    of_library,
    pair_of,
    table,
    trained,
)
from tests.waiting import PATIENCE
from toolkit.data.documents import Prediction, split_lines
from toolkit.storage import models
from toolkit.text.fasttext.model import FastTextModel, load_fasttext
from toolkit.text.line_table import PADDING, LineTable


@pytest.fixture(scope="module", params=[*list(KINDS)[::2], *slow(*list(KINDS)[1::2])])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    path = trained(tmp_path_factory.mktemp("model") / "model.bin", **KINDS[request.param])
    return pair_of(path, request.param)


@pytest.fixture(scope="module")
def languages() -> Pair:
    return pair_of(models.resolve("lid.176.ftz"))


# --- texts ------------------------------------------------------------------------------------------------------------


def test_texts_get_the_labels_of_the_library(pair: Pair) -> None:
    chance = random.Random(1)
    usual = [*WORDS, "unseen", "ungesehen"]
    some = [" ".join(chance.choices(usual, k=chance.randint(1, 12))) for _ in range(300)]
    texts = [*ODD, *some, *(odd_line(chance) for _ in range(200))]
    for k, threshold in ((1, 0.0), (1, 0.8), (3, 0.0), (50, 0.05)):
        check(pair, texts, k, threshold)


def test_words_of_all_lengths_are_found_wherever_they_lie(pair: Pair) -> None:
    known = KNOWN[-4 * LONGEST :]
    almost = [w[:-1] + chr(ord(w[-1]) ^ 1) for w in known] + [w + "a" for w in known] + [w[:-1] for w in known]
    texts = [
        " " * (i % 9) + word + "\t\r"[: i % 3] for i, word in enumerate([*known, *almost]) if word.split() == [word]
    ]
    check(pair, texts, 2)


def test_long_words_are_read_in_pieces_without_a_seam(pair: Pair) -> None:
    """Pieces have 16384 // (2 * maxn) bytes, with the word's `<`."""
    maxn = KINDS[pair.kind].get("maxn", 0) or 6
    piece = (1 << 13) // maxn
    for wide in ("é", "文", "\U0001f600", "a"):
        code_points = piece // len(wide.encode())
        tails = [wide * n for n in (code_points - 1, code_points, code_points + 1, 2 * code_points + 3)]
        check(pair, ["ab1 " + "abcd"[:n] + tail + "xy"[: n % 3] for n in range(5) for tail in tails], 1)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")), max_size=5))
def test_any_text_gets_the_label_of_the_library(languages: Pair, texts: list[str]) -> None:
    check(languages, texts, 2)


@given(st.lists(st.text(st.sampled_from("ab é\n\r\u2028\0"), max_size=30), max_size=5), st.integers(0, 4))
def test_lines_are_those_of_documents(texts: list[str], min_chars: int) -> None:
    model = load_fasttext("lid.176.ftz")
    found = list(model.predict_lines(LineTable.of(texts), min_chars=min_chars))
    lines = [[line if len(line) >= min_chars else "" for line in split_lines(text)] for text in texts]
    assert found == [[next(iter(row), None) for row in model.predict(each)] for each in lines]


def exact(path: Path, **options: Any) -> Pair:
    """A model of -1, -0.5 … 1, whose sums are the same in any order, however many they are of."""
    import fasttext

    model = fasttext.load_model(trained(path, **options))
    rows, output = model.get_input_matrix(), model.get_output_matrix()
    chance = np.random.default_rng(1)
    model.set_matrices(chance.integers(-2, 3, rows.shape) / np.float32(2), output)
    model.save_model(str(path))
    return pair_of(str(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"minn": 1, "maxn": 5, "bucket": 5000},
        {"wordNgrams": 3, "bucket": 5000},
        {"minn": 2, "maxn": 4, "wordNgrams": 5, "bucket": 9000},
    ],
    ids=str,
)
def test_lines_with_more_rows_than_are_noted_at_once(tmp_path: Path, options: dict[str, Any]) -> None:
    """16384 known words or n-grams; a line ends before, at, and behind a full store."""
    sizes = [*range(4090, 4100), *range(5458, 5464), *range(8188, 8196), *range(16_380, 16_388), 40_000]
    pair = exact(tmp_path / "m.bin", dim=18, **options)
    check(pair, [mixed_words(n) for n in sizes[:: 1 if "maxn" not in options else 3]], 3)
    check(pair, [" ".join(KNOWN[:1] * n) for n in sizes], 3)
    check(pair, list(LONG.values()), 3)


LONG = {
    "a": "a" * 1_000_000,
    "é": "é" * 500_000,
    "emoji": "\U0001f600" * 250_000,
    "scripts": "aé文\U0001f600ж" * 80_000,
}


@pytest.mark.parametrize("name", LONG)
def test_a_megabyte_without_a_space_gets_its_label(languages: Pair, name: str) -> None:
    (found,) = languages.ours.predict([LONG[name]], k=1)
    ((expected,),) = of_library(languages.library, [LONG[name]], 1, 0.0)
    assert found[0].label == expected[0]
    assert found[0].prob == pytest.approx(expected[1], abs=5e-3)


@pytest.mark.parametrize("name", LONG)
def test_a_megabyte_without_a_space_gets_its_probability(languages: Pair, name: str) -> None:
    check(languages, [LONG[name]], 3)


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_bytes_that_are_no_utf8_get_the_labels_of_the_library(languages: Pair) -> None:
    lines = broken_lines(400)
    numbers, found_probs = languages.ours._predict(table(lines), k=3, threshold=0.0)
    labels, probs = languages.library.multilinePredict([line + b"\n" for line in lines], 3, 0.0, "strict")
    for line, row, ours, *library in zip(lines, numbers.tolist(), found_probs.tolist(), labels, probs, strict=True):
        found = [Prediction(languages.ours.labels[i], p) for i, p in zip(row, ours, strict=True) if i >= 0]
        expected = [(label.removeprefix("__label__"), p) for label, p in zip(*library, strict=True)]
        assert agree(found, expected if line.strip(b" \t\r\v\f\0") else []), line


def test_a_line_gets_the_same_bits_alone_and_amid_others_whatever_lies_around(pair: Pair) -> None:
    chance = random.Random(5)
    lines = [odd_line(chance).encode() for _ in range(60)] + broken_lines(10)
    together = pair.ours._predict(table(lines), k=2, threshold=0.0)
    backwards = pair.ours._predict(table(lines[::-1], b"\x80" * PADDING), k=2, threshold=0.0)
    for i, line in enumerate(lines):
        behind = bytes(chance.choices(range(256), k=PADDING))
        alone = pair.ours._predict(table([line], behind), k=2, threshold=0.0)
        for a, b, c in zip(together, backwards, alone, strict=True):
            assert a[i].tobytes() == b[len(lines) - 1 - i].tobytes() == c[0].tobytes(), line


def test_the_buffer_is_left_as_it_was(pair: Pair) -> None:
    lines = table([*broken_lines(20), *(text.encode() for text in ODD)])
    before = lines.utf8.tobytes()
    pair.ours._predict(lines, k=1, threshold=0.0)
    assert lines.utf8.tobytes() == before


def test_several_threads_share_a_model(languages: Pair) -> None:
    texts = [mixed_words(n) for n in range(200, 300)]
    wanted = languages.ours.predict(texts, k=3)
    with ThreadPoolExecutor(4) as threads:
        assert all(found == wanted for found in threads.map(lambda _: languages.ours.predict(texts, k=3), range(12)))


# --- other models -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"dim": 4}, {"dim": 20, "minn": 2, "maxn": 4, "bucket": 5000}], ids=str)
def test_a_dictionary_of_hundreds_of_thousands_of_words(tmp_path: Path, options: dict[str, Any]) -> None:
    import fasttext

    chance = random.Random(2)
    letters = "abcdefghijé文ж"
    words = list({"".join(chance.choices(letters, k=chance.randint(1, 20))) for _ in range(400_000)})
    text = tmp_path / "t.txt"
    text.write_text("".join(f"__label__{i % 5} {' '.join(words[i : i + 20])}\n" for i in range(0, len(words), 20)))
    model = fasttext.train_supervised(str(text), lr=2, epoch=3, thread=12, verbose=0, **options)
    model.save_model(str(tmp_path / "m.bin"))
    assert len(model.get_words()) > 300_000
    texts = [" ".join(chance.choices(words, k=9)) for _ in range(20_000)]
    texts += ["".join(chance.choices(letters, k=chance.randint(1, 20))) for _ in range(20_000)]
    texts += words[:20_000]
    check(pair_of(str(tmp_path / "m.bin")), texts, 2)


@pytest.mark.slow
def test_a_model_with_one_bucket(tmp_path: Path) -> None:
    path = trained(tmp_path / "m.bin", minn=2, maxn=3, bucket=1, dim=8)
    ran = in_process(f"import sys; from {__name__} import *; check(pair_of(sys.argv[1]), ODD, 2)", path)
    assert ran.returncode == 0


def test_a_model_whose_labels_had_another_prefix(tmp_path: Path) -> None:
    """The file does not say which; what is a label is known by its kind, unknown words by ``__label__``."""
    path = trained(tmp_path / "m.bin", label="__class__", minn=2, maxn=3, bucket=500, dim=8, lr=1.0)
    check(pair_of(path), ["alpha beta", "alpha __class__0 beta", "__class__3", "__class__99", "alpha __label__x"], 3)


@pytest.mark.slow
def test_a_model_whose_end_of_line_is_rarer_than_most_words(tmp_path: Path) -> None:
    import fasttext

    words = [f"w{i}" for i in range(70_000)]
    text = tmp_path / "t.txt"
    text.write_text("".join(f"__label__{i} {' '.join(words + words)}\n" for i in range(2)))
    model = fasttext.train_supervised(str(text), dim=4, lr=2.0, epoch=2, thread=12, verbose=0)
    assert model.get_words().index("</s>") == 70_000
    model.save_model(str(tmp_path / "m.bin"))
    check(pair_of(str(tmp_path / "m.bin")), [*words[:50], "w1 </s> w2", "</s>"], 2)


@pytest.mark.parametrize("loss", ["ns", "ova"])
def test_labels_of_which_a_model_knows_little_get_their_even_probabilities(tmp_path: Path, loss: str) -> None:
    """Of output that is almost 0, from below."""
    pair = pair_of(trained(tmp_path / "m.bin", loss=loss, labels=200, lr=1e-7, dim=16, epoch=1))
    check(pair, KNOWN[:500], 200)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ns", "ova"])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 31, 64, 199, 200])
def test_labels_of_equal_probability_are_in_the_order_of_the_library(tmp_path: Path, loss: str, k: int) -> None:
    """Their sigmoid is a table, so that outputs which differ little are equal."""
    pair = pair_of(trained(tmp_path / "m.bin", loss=loss, labels=200, lr=0.02, dim=16, epoch=1))
    texts = KNOWN[:100]
    library = of_library(pair.library, texts, k, 0.0)
    assert k < 10 or any(len({prob for _, prob in row}) < len(row) for row in library)
    ours = pair.ours.predict(texts, k=k)
    different = [text for text, a, b in zip(texts, ours, library, strict=True) if [p.label for p in a] != list(dict(b))]
    assert len(different) <= 2  # see `check`


# The compiled predictions say what the fastText library says, of a million lines.

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
        labels, probs = languages.ours._predict(LineTable.of(["\n".join([*some, ""])]), k=2, threshold=0.0)
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


# What compiled predictions read, and how much memory processes need for a model.


def predict_between_guards(paths: list[str]) -> None:
    """With all arrays between memory that may not be touched; a process that does ends by a signal."""
    chance = random.Random(3)
    texts = [odd_line(chance) for _ in range(40)] + ["a" * 9000, "é" * 5000, "", "x", " ".join(KNOWN)]
    plain = LineTable.of(["\n".join(texts)])
    wanted = [FastTextModel(path)._predict(plain, k=3, threshold=0.0) for path in paths]
    lines = plain._replace(utf8=plain.utf8[: len(plain.utf8) - PADDING + 8])  # what the compiled code asks for
    guards = Guards()
    guards.install()
    for guards.at_end in (True, False):
        for path, expected in zip(paths, wanted, strict=True):
            got = FastTextModel(path)._predict(lines, k=3, threshold=0.0)
            assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, got, strict=True))
    assert guards.calls >= 4 * len(paths)


@pytest.mark.slow
def test_nothing_outside_the_arrays_is_read_or_written(tmp_path: Path) -> None:
    kinds = ["hs, pruned, of word n-grams, without norms", "softmax, long word n-grams", "ova", "words alone"]
    paths = [trained(tmp_path / f"{i}.bin", **KINDS[kind]) for i, kind in enumerate(kinds)]
    code = f"from {__name__} import predict_between_guards; import sys; predict_between_guards(sys.argv[1:])"
    ran = in_process(code, *paths)
    assert (ran.returncode, ran.stderr) == (0, "")


MEMORY = """
import json, re, sys
from toolkit.text.line_table import LineTable
from toolkit.text.fasttext.model import FastTextModel

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1])

lines = LineTable.of([" ".join(f"{i + j:x}z{i + j:o}" for j in range(50)) for i in range(0, 150_000, 50)])
before = anonymous()
model = FastTextModel(sys.argv[1])
found = model.predict_lines(lines).raw()
print(anonymous() - before, flush=True)
sys.stdin.readline()
parts = re.split(r"\\n(?=[0-9a-f]+-)", open("/proc/self/smaps").read())
(part,) = [part for part in parts if part.partition("\\n")[0].endswith(sys.argv[1])]
keys = ["Size", "Rss", "Pss", "Private_Dirty"]
print(json.dumps({key: int(re.search(rf"\\n{key}:\\s+(\\d+)", part)[1]) for key in keys}), flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_processes_share_a_large_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """64 MB, of which each process has a few of its own."""
    path = trained(tmp_path / "large.bin", dim=16, minn=2, maxn=4, bucket=1_000_000, epoch=1)
    many = [
        subprocess.Popen(
            [sys.executable, "-c", MEMORY, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(4)
    ]

    def answers() -> Iterator[str]:
        for each in many:
            assert each.stdout
            yield each.stdout.readline()

    def go_on() -> None:
        for each in many:
            assert each.stdin
            each.stdin.write("\n")
            each.stdin.flush()

    own = [int(answer) for answer in answers()]
    go_on()
    maps = [json.loads(answer) for answer in answers()]
    go_on()
    assert [each.wait(PATIENCE) for each in many] == [0] * len(many)
    with capsys.disabled():
        print(
            f"\n{os.path.getsize(path) >> 20} MB model, {len(many)} processes: own memory {own} KB; "
            f"mapping (KB) {maps[0]}"
        )
    for each in many:
        assert each.stdin
        assert each.stdout
        each.stdin.close()
        each.stdout.close()
    assert max(own) < 12_000
    assert all(each["Rss"] > 40_000 and each["Pss"] < each["Rss"] / 2 and not each["Private_Dirty"] for each in maps)
