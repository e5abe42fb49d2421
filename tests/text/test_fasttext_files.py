"""Files that are models, or not: what is refused, and what becomes of a model where nothing is compiled."""

import gzip
import math
import os
import struct
import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.fuzz import bases
from tests.text.fasttext_models import KINDS, KNOWN, ODD, check, pair_of, trained, training
from toolkit.errors import ConfigError, DataError
from toolkit.storage import models
from toolkit.text.fasttext.model import FastTextModel


def test_without_compiled_code_nothing_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    def model_of(_: object) -> None:
        raise ImportError("no numba")

    monkeypatch.setattr("toolkit.text.fasttext.arrays.model_of", model_of)
    with pytest.raises(ConfigError, match="expected predictions that numba compiles, got ImportError: no numba; try"):
        FastTextModel(models.resolve("lid.176.ftz"))


@pytest.mark.parametrize("data", [b"", b"no model", b"\xba\x16\x4f\x2f\x0c\0\0\0"])
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="expected a fastText model"):
        FastTextModel(str(path))


def test_a_model_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    whole = Path(models.resolve("lid.176.ftz")).read_bytes()
    for size in (100, 5000, 200_000, len(whole) - 1):
        (tmp_path / "x.ftz").write_bytes(whole[:size])
        with pytest.raises(ConfigError, match=r"x\.ftz: expected"):
            FastTextModel(str(tmp_path / "x.ftz"))


def test_a_model_of_word_vectors_is_refused(tmp_path: Path) -> None:
    import fasttext

    text = str(training(tmp_path / "t.txt", ["0", "1"]))
    made = fasttext.train_unsupervised(text, dim=4, bucket=100, epoch=1, thread=12, verbose=0)
    made.save_model(str(tmp_path / "v.bin"))
    with pytest.raises(ConfigError, match="expected a supervised fastText model"):
        FastTextModel(str(tmp_path / "v.bin"))


# --- what files say of themselves -------------------------------------------------------------------------------------


class File:
    """A model's file whose numbers can be changed by their names."""

    def __init__(self, path: str) -> None:
        self.path, self.data = path, bytearray(Path(path).read_bytes())
        self.base = bases.read("", bytes(self.data))
        self.fields = {field.name: field for field in self.base.fields}

    def put(self, name: str, value: float) -> "File":
        field = self.fields[name]
        struct.pack_into("<" + field.form, self.data, field.at, value)
        return self

    def save(self) -> str:
        Path(self.path).write_bytes(self.data)
        return self.path


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("originals")
    kinds = {"dense": "hs", "pruned": "hs, pruned and quantised"}
    return {name: Path(trained(folder / name, **KINDS[kind])).read_bytes() for name, kind in kinds.items()}


@pytest.fixture
def dense(originals: dict[str, bytes], tmp_path: Path) -> File:
    (tmp_path / "m.bin").write_bytes(originals["dense"])
    return File(str(tmp_path / "m.bin"))


@pytest.fixture
def pruned(originals: dict[str, bytes], tmp_path: Path) -> File:
    (tmp_path / "m.bin").write_bytes(originals["pruned"])
    return File(str(tmp_path / "m.bin"))


@pytest.fixture(params=["compiled", "library"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numba is, and where it is not; the library itself is out of bounds for what is refused."""
    if request.param == "library":
        monkeypatch.setitem(sys.modules, "toolkit.text.fasttext.arrays", None)

    def never(_: str) -> None:
        raise AssertionError("expected that the library does not get this file")

    monkeypatch.setattr("fasttext.load_model", never)


def refused(file: File, field: str) -> None:
    with pytest.raises(ConfigError) as told:
        FastTextModel(file.save())
    assert str(told.value).startswith(f"{file.path}: ")
    assert f": {field}: expected " in str(told.value) or str(told.value).startswith(f"{file.path}: expected {field}")
    assert ", got " in str(told.value)


WRONG = [
    *[("dense", {"version": value}, "version") for value in (0, 10, 13)],
    *[("dense", {"dim": value}, "dim") for value in (0, -1)],
    ("dense", {"dim": 17}, "input"),
    *[("dense", {name: value}, name) for name in ("minn", "maxn", "wordNgrams") for value in (-1, 101, 100_000)],
    *[("dense", {"loss": value}, "loss") for value in (0, 5)],
    *[("dense", {"model": value}, "model") for value in (0, 4)],
    *[("dense", {"model": value}, "a supervised fastText model") for value in (1, 2)],
    *[("dense", {"bucket": value}, "bucket") for value in (0, -5)],
    *[("dense", {"bucket": value}, "input") for value in (1, 1999, 2001, 2**31 - 1)],
    *[("pruned", {"bucket": value}, "bucket") for value in (0, 50_000_000, 2**28 + 1)],
    ("pruned", {"bucket": 10}, "pruned bucket"),
    *[("dense", {"words": value}, "number of words") for value in (-1, -(2**31))],
    *[("dense", {"labels": value}, "number of labels") for value in (0, -1)],
    *[("dense", {name: 2**31 - 1}, "number of entries") for name in ("words", "labels", "size")],
    ("dense", {"size": 2**31 - 1, "words": 2**31 - 8}, "a fastText model, got one that ends"),
    ("dense", {"pruned": -2}, "pruneidx_size"),
    ("dense", {"pruned": 0}, "input"),
    ("dense", {"pruned": 2**60}, "a fastText model, got one that ends"),
    *[("dense", {"input quantised": value}, "mark of a quantised input") for value in (2, 255)],
    ("pruned", {"input quantised": 0}, "input"),
    *[("dense", {name: -1}, "input") for name in ("input rows", "input columns")],
    *[("dense", {name: 2**62}, "output") for name in ("output rows", "output columns")],
    *[("pruned", {"input codes": value}, "codes of the input") for value in (-1, 0)],
    ("pruned", {"input norms": 2}, "mark of norms of the input"),
    *[("pruned", {"input dim": value}, "quantiser of the input: dim") for value in (0, 15, 2**31 - 1)],
    *[("pruned", {"input dsub": value}, "quantiser of the input: dsub") for value in (0, -1)],
    ("pruned", {"input dsub": 3}, "quantiser of the input: nsubq"),
    ("pruned", {"input nsubq": 7}, "quantiser of the input: nsubq"),
    *[("pruned", {"input lastdsub": value}, "quantiser of the input: lastdsub") for value in (0, 1, 3, 2**31 - 1)],
    ("pruned", {"input norms dim": 2}, "quantiser of the norms of the input: dim"),
    ("pruned", {"input norms nsubq": 2}, "quantiser of the norms of the input: nsubq"),
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("kind", "values", "field"), WRONG, ids=str)
def test_a_number_that_does_not_fit_is_named(
    request: pytest.FixtureRequest, kind: str, values: dict[str, int], field: str
) -> None:
    file: File = request.getfixturevalue(kind)
    for name, value in values.items():
        file.put(name, value)
    refused(file, field)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.1e12, -3e38])
@pytest.mark.parametrize("kind", ["dense", "pruned"])
def test_numbers_that_no_training_finds_are_refused(request: pytest.FixtureRequest, kind: str, value: float) -> None:
    file: File = request.getfixturevalue(kind)
    name = "input floats" if kind == "dense" else "input centroids"
    at, size = file.base.stretches[name]
    struct.pack_into("<f", file.data, at + size - 4, value)
    refused(file, "input" if kind == "dense" else "centroids of the input")


@pytest.mark.usefixtures("way")
def test_the_length_is_that_which_the_fields_say(dense: File) -> None:
    dense.data += b"\0"
    refused(dense, "file length")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("entry", [0, -1])
@pytest.mark.parametrize(("at", "form", "value"), [(1, "q", -1), (1, "q", 10**15), (9, "B", 2), (9, "B", None)])
def test_entries_are_words_and_then_labels_with_counts(
    dense: File, entry: int, at: int, form: str, value: int | None
) -> None:
    _, end = dense.base.entries[entry]
    number = len(dense.base.entries) - 1 if entry else 0
    struct.pack_into("<" + form, dense.data, end + at, value if value is not None else int(entry == 0))
    refused(dense, f"entry {number}" if at == 9 else "count of an entry")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("entry", [5, -2])
def test_words_and_labels_are_there_once(dense: File, entry: int) -> None:
    """The texts have the same length, so that nothing else is moved."""
    entries = dense.base.entries
    begin, end = entries[entry]
    other = next(b for b, e in entries[:: 1 if entry > 0 else -1] if b != begin and e - b == end - begin)
    dense.data[begin:end] = dense.data[other : other + end - begin]
    number = max(i for i, (b, _) in enumerate(entries) if b in (begin, other))
    refused(dense, f"entry {number}")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", [b"\xff_label__0", b"__label__\xc3"])
def test_labels_are_utf8(dense: File, text: bytes) -> None:
    begin, end = dense.base.entries[-1]
    dense.data[begin:end] = text
    refused(dense, "label 6")


@pytest.mark.usefixtures("way")
def test_no_label_is_the_end_of_a_line_or_another_with_the_prefix(dense: File) -> None:
    begin, end = dense.base.entries[-1]
    dense.data[begin:end] = b"</s>"
    eos, behind = dense.base.entries[0]
    assert dense.data[eos:behind] == b"</s>"
    dense.data[eos:behind] = b"wxyz"
    refused(dense, "label 6")
    begin, _ = dense.base.entries[-2]
    name = bytes(dense.data[begin : dense.base.entries[-2][1]]).removeprefix(b"__label__")
    at = dense.base.entries[-1][0]
    dense.data[at : at + 4] = name
    refused(dense, "labels")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("value", [-1, 2000, None])
def test_pruned_buckets_and_their_rows_are_in_range_and_there_once(
    pruned: File, column: int, value: int | None
) -> None:
    at, _ = pruned.base.stretches["pruned"]
    (other,) = struct.unpack_from("<i", pruned.data, at + 8 + 4 * column)
    struct.pack_into("<i", pruned.data, at + 4 * column, other if value is None else value)
    refused(pruned, ["pruned bucket", "row of a pruned bucket"][column])


@pytest.mark.usefixtures("way")
def test_a_tree_is_no_list(tmp_path: Path) -> None:
    """Labels that never occurred are chained; the library would descend by as many calls."""
    file = File(trained(tmp_path / "m.bin", labels=200, loss="hs", dim=4))
    for _, end in file.base.entries:
        struct.pack_into("<q", file.data, end + 1, 0)
    refused(file, "counts of labels")


@pytest.mark.usefixtures("way")
def test_counts_of_labels_come_to_less_than_the_bound(dense: File) -> None:
    *_, last = labels = [end for begin, end in dense.base.entries if dense.data[begin:end].startswith(b"__label__")]
    for bound in (10**15 - 1, 10**15):
        for end in labels:
            struct.pack_into("<q", dense.data, end + 1, 1 if end != last else bound - len(labels) + 1)
        if bound < 10**15:
            FastTextModel(dense.save())
    refused(dense, "counts of labels")


def test_words_that_lie_in_each_others_way_are_refused(dense: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.text.fasttext.arrays.PROBES", 0)
    refused(dense, "words")


def test_words_need_not_be_utf8(dense: File) -> None:
    begin, end = next((b, e) for b, e in dense.base.entries if e - b == 4 and dense.data[b:e] != b"</s>")
    dense.data[begin:end] = b"\xff\xfe\x80\xc3"
    check(pair_of(dense.save()), ODD, 2)


@pytest.mark.parametrize("limit", [1, 1 << 40])
def test_rows_that_are_not_added_up_before_give_the_same(
    dense: File, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("toolkit.text.fasttext.arrays.SUMS", limit)
    check(pair_of(dense.save()), [*ODD, " ".join(KNOWN)], 2)


def test_a_mapped_model_that_is_cut_is_noticed(dense: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.text.fasttext.model_file.COPIED", 1000)
    model = FastTextModel(dense.save())
    assert model.predict(["alpha beta"])[0]
    os.truncate(dense.path, 500)
    with pytest.raises(DataError, match=r"m\.bin: expected the fastText model of .* put a model in place by renaming"):
        model.predict(["alpha beta"])


def test_a_small_model_does_not_depend_on_its_file(dense: File) -> None:
    model = FastTextModel(dense.save())
    before = model.predict(KNOWN[:50], k=3)
    Path(dense.path).write_bytes(b"")
    assert model.predict(KNOWN[:50], k=3) == before


def test_a_damaged_model_is_refused_before_anything_is_written(pruned: File, tmp_path: Path, run: Run) -> None:
    documents = tmp_path / "data" / "documents" / "a.jsonl.gz"
    documents.parent.mkdir(parents=True)
    documents.write_bytes(gzip.compress(b'{"id":"1","text":"one line","source":"s"}\n'))
    path = pruned.put("bucket", 10).save()
    config = tmp_path / "c.yaml"
    config.write_text(f"dataset: {tmp_path}/data\ntag:\n  a-0: {{tagger: line_language, model: {path}}}\n")
    before = sorted(tmp_path.rglob("*"))
    for command in (["tag"], ["run"], ["tag", "--dry-run"]):
        ran = run(*command, "-c", config).fails(2, f"{path}: pruned bucket: expected from 0 to 9, got")
        assert "Traceback" not in ran.err
    assert sorted(tmp_path.rglob("*")) == before
