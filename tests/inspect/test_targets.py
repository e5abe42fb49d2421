"""What a folder is: `stats`, `card`, `croissant` and `validate` say the same of it, also with what the others wrote."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Ran, Run
from tests.inspect.conftest import ABOUT
from tests.pipeline.conftest import document, write_rows
from toolkit.inspect.targets import target_of
from toolkit.validate import croissant_reader

SETTINGS = [f"about.{key}={json.dumps(value)}" for key, value in ABOUT.items()]


@pytest.fixture
def run(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """As the fixture of all tests, in this process."""
    path = tmp_path_factory.mktemp("configuration") / "in_process.yaml"
    path.write_text("executor: {type: in_process}\n")
    return lambda command, *arguments: run(command, "-c", path, "--quiet", *arguments)


@pytest.fixture(autouse=True)
def _without_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """mlcroissant reads no text and takes its time; other tests ask it."""
    monkeypatch.setattr(croissant_reader, "is_installed", lambda: False)


def row(label: str, number: int = 0) -> dict[str, Any]:
    """A line of OSCAR 22.01."""
    found = {"label": label, "prob": 0.9}
    metadata = {"identification": found, "annotation": None, "sentence_identifications": [found]}
    headers = {"warc-record-id": f"<{label}{number}>"}
    return {"content": f"{label} {number}", "warc_headers": headers, "metadata": metadata}


def with_checksums(folder: Path, name: str) -> None:
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / name).write_text("".join(lines))


def published(root: Path) -> None:
    """As OSCAR 22.01 was published."""
    for label, parts in (("de", 2), ("als", 1), ("multi", 1)):
        folder = root / f"{label}_meta"
        for part in range(1, parts + 1):
            ending = f"_part_{part}" if parts > 1 else ""
            write_rows(folder / f"{label}_meta{ending}.jsonl.gz", [row(label, part), row(label, -part)])
        with_checksums(folder, "checksum.sha256")


def documented(root: Path) -> None:
    """As its documentation has it."""
    for label in ("de", "als", "multi"):
        for part in range(1, 3 if label == "de" else 2):
            name = f"{label}_part_{part}" if label == "de" else label
            write_rows(root / label / f"{name}.jsonl.gz", [row(label, part), row(label, -part)])
        with_checksums(root / label, f"{label}_sha256.txt")


def flat(root: Path) -> None:
    """As ungoliant wrote it."""
    for label, number in (("de", 4), ("als", 2), ("multi", 2)):
        write_rows(root / f"{label}_meta.jsonl", [row(label, i) for i in range(number)])


def deep(root: Path) -> None:
    published(root / "data" / "22.01")


def mixed(root: Path) -> None:
    """One file with rows of all languages."""
    write_rows(root / "sample.jsonl", [row(label, i) for i, label in enumerate(["de", "als", "multi", "de"] * 2)])


def text(root: Path) -> None:
    """As OSCAR 21.09: texts, and metadata beside them, which are no documents."""
    for label, number in (("de", 4), ("als", 2), ("multi", 2)):
        folder = root / label
        folder.mkdir(parents=True)
        (folder / f"{label}.txt").write_text("ein Satz\nnoch einer\n\n" * number)
        write_rows(folder / f"{label}_meta.jsonl.gz", [{"headers": {}, "offset": 0, "nb_sentences": 2}] * number)
        with_checksums(folder, f"{label}_sha256.txt")


def documents(root: Path) -> None:
    """Documents by language, as others publish them in Dolma's form."""
    for label, number in (("de", 4), ("als", 2), ("multi", 2)):
        write_rows(root / label / "0000.jsonl.gz", [document(f"{label}-{i}", "ein Text") for i in range(number)])


FOLDERS: dict[str, Callable[[Path], None]] = {
    make.__name__: make for make in (published, documented, flat, deep, mixed, text, documents)
}
COUNTS = {"de": 4, "als": 2, "multi": 2}


def ok(ran: Ran) -> Ran:
    assert ran.code == 0, ran.out + ran.err
    return ran


def head(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    return found


def croissant(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "croissant.json").read_text())
    return found


def described(run: Run, folder: Path) -> None:
    ok(run("card", folder))
    ok(run("croissant", folder, *SETTINGS))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.slow] if kind in ("documented", "flat", "deep") else [])
        for kind in FOLDERS
    ],
)
def test_all_commands_know_the_folder_and_its_languages(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "released"
    FOLDERS[kind](folder)
    described(run, folder)
    assert head(folder)["language"] == ["gsw", "de"]
    assert croissant(folder)["inLanguage"] == ["gsw", "de"]
    ok(run("card", folder, "--check"))  # beside what was written
    (table,) = ok(run("stats", folder, "--json")).json["tables"]
    assert {each["group"]: each["documents"] for each in table["groups"]} == COUNTS
    assert ": 0 findings" in ok(run("validate", folder)).out
    configurations = {each["config_name"] for each in head(folder)["configs"]}
    assert configurations == ({"default"} if kind == "mixed" else set(COUNTS))
    if kind not in ("mixed", "text"):
        rows = {each["config_name"]: each["splits"][0]["num_examples"] for each in head(folder)["dataset_info"]}
        assert rows == COUNTS
        (listed,) = [each for each in croissant(folder)["recordSet"] if each["@id"] == "languages"]
        assert {each["languages/code"]: each["languages/documents"] for each in listed["data"]} == COUNTS


def test_nothing_is_refused_by_all(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    for command in (["stats"], ["card"], ["croissant", *SETTINGS], ["validate"]):
        for target in (tmp_path, tmp_path / "nowhere"):
            ran = run(command[0], target, *command[1:])
            assert (ran.code, "Traceback" in ran.err) == (2, False)
            assert f"{target}: expected" in ran.err


def test_a_label_that_ends_as_parts_do_is_a_label(run: Run, tmp_path: Path) -> None:
    for label, names in {"en": ["en_part_1", "en_part_2"], "en_part_3": ["en_part_3"]}.items():
        for number, name in enumerate(names):
            write_rows(tmp_path / label / f"{name}.jsonl.gz", [row(label, number)])
        with_checksums(tmp_path / label, f"{label}_sha256.txt")
    described(run, tmp_path)
    (listed,) = [each for each in croissant(tmp_path)["recordSet"] if each["@id"] == "languages"]
    assert [each["languages/code"] for each in listed["data"]] == ["en", "en_part_3"]
    assert croissant(tmp_path)["inLanguage"] == head(tmp_path)["language"] == ["en"]
    ok(run("validate", tmp_path, "--labels", "any"))


def test_a_folder_of_an_output_is_one_by_itself(run: Run, tmp_path: Path) -> None:
    published(tmp_path)
    found = target_of(str(tmp_path / "de_meta"))
    assert found
    assert (found.kind, found.files) == ("release", ["de_meta_part_1.jsonl.gz", "de_meta_part_2.jsonl.gz"])
    assert ": 0 findings" in ok(run("validate", tmp_path / "de_meta")).out
    assert ": 0 findings" in ok(run("validate", tmp_path / "als_meta" / "als_meta.jsonl.gz")).out


# --- rows and their folder --------------------------------------------------------------------------------------------


def test_a_row_of_another_label_than_its_folder_is_found(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "de" / "de.jsonl.gz", [row("de"), row("fr"), row("de")])
    with_checksums(path.parent, "de_sha256.txt")
    for target in (tmp_path, path.parent, path):
        ran = run("validate", target, "--labels", "any").fails(1)
        place = "$.metadata.identification.label"
        assert f"{path}:2: expected the label 'de', as the path says it, got 'fr' - at {place}" in ran.out
        assert "1 finding" in ran.out


def test_an_unknown_label_is_found_once_a_file_unless_any_is_right(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "xx" / "xx.jsonl.gz", [row("xx", i) for i in range(3)])
    with_checksums(path.parent, "xx_sha256.txt")
    ran = run("validate", tmp_path).fails(1)
    assert f"{path}:1: expected a label of lid.176, or `multi`, got 'xx'" in ran.out
    assert "1 finding" in ran.out
    ok(run("validate", tmp_path, "--labels", "any"))


def test_labels_are_compared_without_regard_to_case(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "de" / "de.jsonl.gz", [row("De")])
    with_checksums(path.parent, "de_sha256.txt")
    out = run("validate", tmp_path).out
    assert "as the path says" not in out
    assert "of lid.176" not in out
    ok(run("card", tmp_path))
    assert head(tmp_path)["language"] == ["de"]


def test_every_folder_of_a_label_has_its_checksums(run: Run, tmp_path: Path) -> None:
    published(tmp_path)
    (tmp_path / "de_meta" / "checksum.sha256").unlink()
    ran = run("validate", tmp_path)
    assert (ran.code, "1 finding" in ran.out) == (1, True)
    assert f"{tmp_path}/de_meta: expected a checksum file that lists de_meta_part_1.jsonl.gz, got none" in ran.out


# --- the card ---------------------------------------------------------------------------------------------------------

Edit = Callable[[dict[str, Any]], object]
CARD_FAULTS: dict[str, tuple[Edit, str]] = {
    "rows": (
        lambda h: h["dataset_info"][1]["splits"][0].update(num_examples=5),
        "dataset_info[1].splits[0].num_examples: expected 4, got 5",
    ),
    "bytes": (lambda h: h["dataset_info"][1]["splits"][0].update(num_bytes=5), ", got 5"),
    "stored": (lambda h: h["dataset_info"][1].update(download_size=5), ", got 5"),
    "content": (lambda h: h["dataset_info"][1].update(dataset_size=5), ", got 5"),
    "size": (lambda h: h.update(size_categories=["1K<n<10K"]), 'expected ["n<1K"], got ["1K<n<10K"]'),
    "language missing": (lambda h: h["language"].remove("gsw"), 'language: expected ["gsw","de"], got ["de"]'),
    "language more": (lambda h: h["language"].append("als"), ', got ["gsw","de","als"]'),
    "configuration missing": (
        lambda h: (h["configs"].pop(1), h["dataset_info"].pop(1)),
        "configs: expected 'de', which the data have, got none",
    ),
    "configuration without files": (
        lambda h: h["configs"].append({"config_name": "x", "data_files": [{"split": "train", "path": "x/*"}]}),
        "expected what the data have, got 'x', which they have not",
    ),
    "configuration of others": (
        lambda h: h["configs"][0]["data_files"][0].update(path="de_meta/*.jsonl.gz"),
        "expected als_meta/*.jsonl.gz, got de_meta/*.jsonl.gz",
    ),
    "numbers of nothing": (
        lambda h: h["dataset_info"][1].update(config_name="x"),
        "dataset_info[1]: expected what the data have, got 'x', which they have not",
    ),
    "no list": (lambda h: h.update(configs=7), ", got 7"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", CARD_FAULTS)
def test_what_a_card_says_and_is_not_so_is_found(run: Run, tmp_path: Path, fault: str) -> None:
    edit, message = CARD_FAULTS[fault]
    published(tmp_path)
    ok(run("card", tmp_path))
    ok(run("validate", tmp_path))
    path = tmp_path / "README.md"
    changed = head(tmp_path)
    edit(changed)
    _, _, body = path.read_text().split("---\n", 2)
    path.write_text(f"---\n{yaml.safe_dump(changed, sort_keys=False)}---\n{body}")
    run("validate", tmp_path).fails(1).shows(message, f"{path}:")


def test_what_people_give_in_a_card_is_not_held_against_the_data(run: Run, tmp_path: Path) -> None:
    published(tmp_path)
    ok(run("card", tmp_path, 'about.in_language=["de-CH", "en"]'))
    assert head(tmp_path)["language"] == ["de", "en"]
    ok(run("validate", tmp_path))
    (tmp_path / "README.md").write_text("---\nlanguage: [xx]\n---\n# of others\n")
    ok(run("validate", tmp_path))


# --- files of others --------------------------------------------------------------------------------------------------


def test_rows_of_others_are_counted_described_and_checked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "others"
    odd = {"text": "ein Text", "id": 7, "source": None, "metadata": "x"}
    write_rows(folder / "de" / "train.00000.json.gz", [odd] * 2)
    write_rows(folder / "en" / "train.00000.json.gz", [{"text": "a text", "url": "https://example.org/"}] * 3)
    described(run, folder)
    assert head(folder)["language"] == croissant(folder)["inLanguage"] == ["de", "en"]
    (table,) = ok(run("stats", folder, "--json")).json["tables"]
    assert {each["group"]: each["documents"] for each in table["groups"]} == {"de": 2, "en": 3}
    assert ": 0 findings" in ok(run("validate", folder)).out
    path = write_rows(tmp_path / "content.jsonl", [{"content": "ein Text"}, {"content": None}, {"text": "x"}])
    ran = run("validate", path)
    assert (ran.code, f"{path}:2: expected" in ran.out, f"{path}:3: expected" in ran.out) == (1, True, True)


def test_rows_without_a_text_name_the_option_that_takes_them(run: Run, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [{"body": "x"}])
    for command in (["stats"], ["card"], ["croissant", *SETTINGS]):
        run(command[0], tmp_path, *command[1:]).fails(2, "fields: {text: KEY}")
    assert run("validate", tmp_path).code == 1


def test_parquet_of_others_is_counted_described_and_checked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "others"
    folder.mkdir()
    columns = {"content": ["ein Text", "x"], "id": ["1", "2"], "url": ["u", None]}
    pq.write_table(pa.table(columns), folder / "a.parquet")
    (table,) = ok(run("stats", folder, "--json")).json["tables"]
    assert (table["total"]["documents"], table["total"]["words"]) == (2, 3)
    assert "text: ein Text" not in ok(run("card", folder, "--dry-run")).out
    described = json.loads(ok(run("croissant", folder, *SETTINGS, "--dry-run")).out)
    assert {f["name"] for f in described["recordSet"][-1]["field"]} >= {"content", "id", "url"}
    ok(run("validate", folder))
    pq.write_table(pa.table({"body": ["a", None, "c"], "key": ["1", "2", "3"]}), folder / "a.parquet")
    named = (folder, "--text-field", "body", "--id-field", "key")
    broken = run("validate", *named)
    assert (broken.code, "a.parquet:2: expected a text in body, got null" in broken.out) == (1, True)
    pq.write_table(pa.table({"body": ["a", "b c"], "key": ["1", "2"]}), folder / "a.parquet")
    (table,) = ok(run("stats", *named, "--json")).json["tables"]
    assert table["total"]["words"] == 3
    assert ok(run("head", *named, "-n", "1", "--json")).json["documents"][0]["id"] == "1"
    run("stats", folder, "--text-field", "boddy").fails(2, "did you mean 'body'")


def test_json_lines_of_others_are_read_by_named_fields(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted by one field is not taken for what another has."""
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.jsonl"
    path.write_text('{"raw":"one","other":"one two","key":"k"}\n')
    words = [
        ok(run("stats", path, "--text-field", field, "--json")).json["tables"][0]["total"]["words"]
        for field in ("raw", "other")
    ]
    assert words == [1, 2]
    assert ok(run("head", path, "--text-field", "raw", "--id-field", "key", "--json")).json["documents"][0]["id"] == "k"
    ok(run("validate", path, "--text-field", "raw", "--id-field", "key"))
    slip = run("validate", path, "--text-field", "rwa")
    assert (slip.code, "did you mean 'raw'" in slip.out) == (1, True)
    assert run("stats", path, "--id-field", "key").code == 2
