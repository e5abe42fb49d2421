"""What a dataset card says, and what stays of it when it is written anew."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.inspect.conftest import ABOUT
from tests.pipeline.conftest import Project, document, inputs_of, read_rows, write_rows
from toolkit.commands import _mix_preparation
from toolkit.describe import card as hub
from toolkit.describe.about import About
from toolkit.describe.card import identifiers, read
from toolkit.describe.card_numbers import Picture
from toolkit.describe.provenance import counted
from toolkit.errors import DataError
from toolkit.storage.compression import zstd

Head = dict[str, Any]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@pytest.fixture
def drawn() -> None:
    """Asks for pictures as they are."""


@pytest.fixture(autouse=True)
def _nothing_is_drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves pictures undrawn, unless a test asks for them: each takes as long as all the rest of a card."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(Picture, "drawn", lambda picture: b"\x89PNG " + picture.digest.encode())


def card(folder: Path) -> str:
    return (folder / "README.md").read_bytes().decode()


def head(folder: Path) -> Head:
    found: Head = yaml.load(card(folder).split("---\n")[1], LOADER)
    return found


def section(folder: Path, title: str) -> str:
    return card(folder).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def files_of(folder: Path, configuration: Head) -> list[Path]:
    paths = configuration["data_files"][0]["path"]
    globs = [paths] if isinstance(paths, str) else paths
    return sorted({path for glob in globs for path in folder.glob(glob)})


@pytest.mark.slow
def test_the_head_has_a_configuration_for_each_label(released: Project) -> None:
    released.ok("card")
    found = head(released.out)
    folders = sorted(path.name for path in released.out.iterdir() if path.is_dir() and path.name != ".toolkit")
    assert [each["config_name"] for each in found["configs"]] == folders
    infos = {each["config_name"]: each for each in found["dataset_info"]}
    for each in found["configs"]:
        files = files_of(released.out, each)
        assert files == sorted((released.out / each["config_name"]).glob("*.jsonl.gz"))
        content = [gzip.decompress(path.read_bytes()) for path in files]
        info = infos[each["config_name"]]
        sizes = {"num_bytes": sum(map(len, content)), "num_examples": sum(c.count(b"\n") for c in content)}
        assert info["splits"] == [{"name": "train", **sizes}]
        assert info["download_size"] == sum(path.stat().st_size for path in files)
        assert info["dataset_size"] == sizes["num_bytes"]
    assert "multi" in folders
    assert found["language"] == [folder for folder in folders if folder != "multi"]
    assert found["license"] == "cc0-1.0"
    assert found["size_categories"] == ["n<1K"]
    assert found["task_categories"] == ["text-generation"]
    assert found["pretty_name"] == "small"


@pytest.mark.slow
@pytest.mark.parametrize("output", [{"format": "oscar", "part_size": 5_000}, {"format": "dolma"}])
def test_files_that_are_parted_by_split_are_loaded_by_split(released: Project, output: Head) -> None:
    out = released.root / "parted"
    released.config["mix"]["output"] = {"path": str(out), **output}
    released.config["about"]["splits"] = {"train": 0.6, "dev-1": 0.2, "test": 0.2, "by": "file"}
    released.ok("mix")
    released.ok("card")
    configurations = {each["config_name"]: each for each in head(out)["configs"]}
    infos = {each["config_name"]: each for each in head(out)["dataset_info"]}
    loaded = []
    for name, each in configurations.items():
        sizes = []
        for part in each["data_files"]:
            folder = part["split"].replace("dev_1", "dev-1")  # as datasets takes a name
            files = files_of(out, {"data_files": [part]})
            assert files
            assert all(folder in path.relative_to(out).parts for path in files)
            content = [gzip.decompress(path.read_bytes()) for path in files]
            sizes.append((part["split"], sum(map(len, content)), sum(c.count(b"\n") for c in content)))
            loaded += files
        assert [tuple(split.values()) for split in infos[name]["splits"]] == sizes
        order = [split for split, *_ in sizes]
        assert order == [split for split in ("train", "dev_1", "test") if split in order]
    assert sorted(loaded) == sorted(out.rglob("*.jsonl.gz"))
    first = next(iter(configurations.values()))["data_files"][0]["split"]
    assert f'split="{first}")' in card(out)
    assert "0 findings" in released.ok("validate").out
    line = card(out).partition("- split: train")[0].count("\n") + 1
    (out / "README.md").write_text(card(out).replace("split: train", "split: test", 1))
    ran = released("validate").fails(1)
    assert re.search(rf"README.md:{line - 1}: \S+: expected 'train', which the data have, got none", ran.out), ran.out


@pytest.mark.slow
def test_the_body_is_told_from_the_manifest(released: Project) -> None:
    released.config["about"]["rai"] = {"dataLimitations": ["Few pages."]}
    released.ok("card", "about.examples=0")
    manifest = json.loads((released.out / ".toolkit" / "manifest.json").read_text())
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section(released.out, "Rules").splitlines()]
    rules = {row[0]: row[3] for row in rows if len(row) == 6}
    assert {rule["name"]: f"{rule['documents']:,}" for rule in manifest["rules"]} == {
        name: rules[name] for name in rules if name not in ("rule", "---------------")
    }
    statistics = released.ok("stats", "--mix").out
    assert statistics.partition("\ndropped by rule")[0].strip() in section(released.out, "Statistics")
    model = manifest["sets"]["lines-0"][0]["settings"]["options"]["model"]["sha256"]
    assert model in section(released.out, "How it was made")
    assert "Few pages." in section(released.out, "Limits")
    assert "@misc{small}" in section(released.out, "Citation")
    assert "\n## Example\n" not in card(released.out)
    assert "Documents made up for a test." in card(released.out)


@pytest.mark.slow
def test_the_example_is_the_first_record_cut(released: Project) -> None:
    released.ok("card")
    shown = json.loads(section(released.out, "Example").partition("```json\n")[2].partition("\n```")[0])
    first = min(path for path in released.out.glob("*/*.jsonl.gz"))
    row = json.loads(gzip.decompress(first.read_bytes()).split(b"\n")[0])
    assert shown["warc_headers"] == row["warc_headers"]
    assert len(row["content"]) > 300
    assert shown["content"] == row["content"][:300] + " …"
    assert shown["metadata"]["sentence_identifications"][:3] == row["metadata"]["sentence_identifications"][:3]


@pytest.mark.parametrize(("format_", "kind"), [("text", "text"), ("parquet", "json")])
def test_other_formats_have_an_example_too(released: Project, format_: str, kind: str) -> None:
    if format_ == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    released.config["mix"]["output"] = {"format": format_, "path": str(released.root / "o")}
    released.ok("mix")
    released.ok("card")
    text = section(released.root / "o", "Example").partition(f"```{kind}\n")[2].partition("\n```")[0]
    assert text.endswith(" …") if kind == "text" else json.loads(text)["text"]


@pytest.mark.slow
def test_what_nobody_says_is_not_made_up(released: Project) -> None:
    del released.config["about"]
    released.ok("card")
    assert not head(released.out).keys() & {"license", "license_name", "pretty_name", "tags"}
    assert "No licence is stated." in card(released.out)
    assert "Nothing is stated about limits." in card(released.out)
    assert "\n## Citation\n" not in card(released.out)


@pytest.mark.usefixtures("drawn")
@pytest.mark.slow
def test_the_same_data_give_the_same_card(small: Project) -> None:
    small.ok("mix")
    printed = small.ok("card", "--dry-run", "processes=2", "executor={type: local}").out
    assert not (small.out / "README.md").exists()
    assert small("card", "--check").code == 1
    small.ok("card")
    assert card(small.out) == printed
    small.ok("card")
    assert card(small.out) == printed
    small.ok("card", "--check")
    small.ok("validate")
    small.config["mix"]["rules"].append({"drop": "line_shape.lines == 0", "name": "empty"})
    small.ok("mix")
    small("card", "--check").fails(1).shows("run `toolkit card`")
    assert card(small.out) == printed


BLOCK = "<!-- toolkit: keep mine -->\r\n  Ünd   so\n\n## Rules\n```\n---\n```\n<!-- toolkit: end mine -->\n"
SECOND = "<!--toolkit: keep  two-->\n<!-- toolkit: end two -->\n"
ADDED = "# about the paper\npaper: https://example.org/paper   # kept\nannotations_creators:\n- no-annotation\n\n"
GIVEN = "# toolkit: keep own\nlicense: other   # ours\ntask_categories: [fill-mask]\n# toolkit: end own\n"


@pytest.mark.slow
def test_what_the_user_wrote_stays(released: Project) -> None:
    released.ok("card")
    text = card(released.out)
    text = text.replace("\n## Limits\n", f"\n{BLOCK}not kept\n\n## Limits\n\n{SECOND}", 1)
    text = text.replace("license: cc0-1.0\n", ADDED + GIVEN, 1)
    (released.out / "README.md").write_bytes(text.encode())
    released.config["about"] |= {"license": "https://creativecommons.org/licenses/by/4.0/", "name": "other"}
    released.ok("card", "about.examples=0")
    again = card(released.out)
    for kept in (BLOCK, SECOND, ADDED, GIVEN):
        assert kept in again
    assert "not kept" not in again
    assert SECOND in section(released.out, "Limits")
    assert again.endswith(BLOCK)  # its section is gone: the example is not shown
    assert again.count("\nlicense:") == again.count("\ntask_categories:") == 1
    assert head(released.out)["license"] == "other"
    assert head(released.out)["pretty_name"] == "other"
    released.ok("card", "about.examples=0")
    assert card(released.out) == again
    released.ok("card", "about.examples=0", "--check")


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        ("<!-- toolkit: keep a -->\ntext\n", 1, "expected <!-- toolkit: end a --> after it, got none"),
        ("x\n<!-- toolkit: end a -->\n", 2, "expected <!-- toolkit: keep a --> before, got <!-- toolkit: end a -->"),
        ("<!-- toolkit: keep -->\n", 1, "expected <!-- toolkit: keep NAME --> or <!-- toolkit: end NAME -->, got"),
        (SECOND + SECOND, 3, "expected each name once, got 'two' again"),
        ("<!-- toolkit: keep a -->\n<!-- toolkit: keep b -->\n", 2, "expected <!-- toolkit: end a --> before, got"),
        ("---\na: 1\n# toolkit: keep a\n---\n", 3, "expected # toolkit: end a after it, got none"),
        ("---\na: 1\n", 1, "expected a line --- that ends the head, got none"),
    ],
)
def test_broken_marks_are_told_with_their_line(written: str, line: int, said: str) -> None:
    with pytest.raises(DataError) as raised:
        read("README.md", written, About())
    assert str(raised.value).startswith(f"README.md:{line}: {said}")


def test_a_card_with_broken_marks_is_left_alone(small: Project) -> None:
    small.ok("mix")
    small.ok("card")
    text = card(small.out) + "<!-- toolkit: keep a -->\n"
    (small.out / "README.md").write_text(text)
    small("card", "--overwrite").fails(1, f"README.md:{text.count(chr(10))}: expected")
    assert card(small.out) == text


def test_a_body_that_is_not_as_it_was_written_is_a_finding(small: Project) -> None:
    small.ok("mix")
    small.ok("card")
    text = card(small.out)
    kept = f"{text}\n<!-- toolkit: keep a -->\nMine.\n<!-- toolkit: end a -->\n"
    for written, code in ((kept, 0), (text.replace("\n## ", "\n## x", 1), 1), (text[:-20], 1)):
        (small.out / "README.md").write_text(written)
        ran = small("validate", str(small.out))
        assert (ran.code, "outside of its marks" in ran.out) == (code, bool(code)), ran


def test_a_head_that_is_no_yaml_is_told(small: Project) -> None:
    small.ok("mix")
    small.ok("card")
    text = card(small.out).replace("---\n", "---\nown: [1\n", 1)
    (small.out / "README.md").write_text(text)
    small("card").fails(2, "README.md:")
    assert card(small.out) == text


@pytest.mark.slow
def test_broken_yaml_in_a_key_of_ours_is_told_with_its_line(released: Project) -> None:
    released.ok("card")
    text = card(released.out).replace("pretty_name: small\n", "pretty_name: [small\n", 1)
    (released.out / "README.md").write_text(text)
    released("card").fails(2, "README.md:3: expected YAML")
    assert card(released.out) == text


@pytest.mark.slow
def test_a_block_below_a_heading_of_the_users_own_goes_to_the_end(released: Project) -> None:
    released.config["about"]["description"] = "What it is.\n\n## Sources\n\nPages."
    released.ok("card")
    text = card(released.out).replace("\n## Statistics\n", f"\n## My notes\n\n{BLOCK}\n## Statistics\n", 1)
    text = text.replace("\n- Version: ", f"\n{SECOND}\n- Version: ", 1)
    (released.out / "README.md").write_bytes(text.encode())
    released.ok("card")
    again = card(released.out)
    assert again.endswith(BLOCK)
    assert "My notes" not in again
    assert SECOND in again.partition("\n## What it is\n")[0]  # a heading of the description begins no section
    released.ok("card", "--check")


def test_another_readme_is_not_overwritten(small: Project) -> None:
    small.ok("mix")
    (small.out / "README.md").write_text("# Mine\n")
    small("card").fails(2, "--overwrite")
    assert card(small.out) == "# Mine\n"
    small.ok("card", "--overwrite")
    assert head(small.out)["configs"]


def test_labels_that_yaml_takes_for_values_are_texts(small: Project) -> None:
    small.config["mix"]["output"] |= {"layout": "mixer"}
    small.config["mix"]["rules"] = [
        {"route": "'no'", "when": "line_shape.lines == 1", "name": "one"},
        {"route": "'a/b'", "when": "line_shape.lines != 1", "name": "more"},
    ]
    small.ok("mix")
    small.ok("card")
    names = [each["config_name"] for each in head(small.out)["configs"]]
    assert names == ["a--b", "no"]
    assert sum(each["splits"][0]["num_examples"] for each in head(small.out)["dataset_info"]) == 12


def test_rejected_documents_are_in_no_configuration(small: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    # outputs of earlier versions have them
    monkeypatch.setattr(_mix_preparation, "_check_places", lambda *_: None)
    small.config["mix"] |= {"rejected": str(small.out / "rejected")}
    small.ok("mix")
    small.ok("card")
    (only,) = head(small.out)["configs"]
    assert only["config_name"] == "default"
    files = files_of(small.out, only)
    assert files
    assert not any("rejected" in path.parts for path in files)


def test_a_dataset_has_a_configuration_for_its_documents_and_for_each_set(small: Project) -> None:
    small.ok("card", "--of", "dataset")
    found = {each["config_name"]: files_of(small.data, each) for each in head(small.data)["configs"]}
    assert found == {
        "documents": sorted(small.documents.rglob("*.jsonl.gz")),
        "attributes-shape-0": sorted((small.attributes / "shape-0").rglob("*.jsonl.gz")),
    }


@pytest.mark.slow
def test_a_release_without_records_has_a_card(released: Project) -> None:
    released.ok("card")
    before = head(released.out)
    (released.out / ".toolkit" / "manifest.json").unlink()
    assert released.run("card", released.out, "about.name=small", "executor={type: in_process}").code == 0
    after = head(released.out)
    for key in ("configs", "dataset_info", "language", "size_categories"):
        assert after[key] == before[key]
    assert "how they were made is not known" not in section(released.out, "How it was made")
    assert "Collected: 2024-" in section(released.out, "How it was made")


@pytest.mark.parametrize("output", [{"format": "dolma"}, {"format": "parquet"}])
def test_a_card_is_held_against_data_without_their_manifest(project: Project, output: dict[str, Any]) -> None:
    if output["format"] == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    rows = [document(f"d{i}", "text", metadata={"language": "de"}) for i in range(3)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    output |= {"path": str(project.out)} | ({"by": "document.source"} if output["format"] == "dolma" else {})
    rules = [{"drop": "document.source is None", "name": "none"}]
    project.config |= {"mix": {"rules": rules, "output": output}, "about": ABOUT}
    project.ok("mix")
    project.ok("card")
    shutil.rmtree(project.out / ".toolkit")
    assert "0 findings" in project.ok("validate", project.out).out
    path = project.out / "README.md"
    path.write_text(card(project.out).replace("split: train", "split: test", 1))
    assert "expected 'train', which the data have, got none" in project("validate", project.out).out


@pytest.mark.slow
def test_a_dataset_is_counted_whoever_made_it(described: Project) -> None:
    write_rows(described.documents / "empty.jsonl.gz", [])
    write_rows(described.attributes / "exp" / "empty.jsonl.gz", [])
    described.ok("tag")
    described.ok("card", "--of", "dataset")
    found = head(described.data)
    assert found["size_categories"] == ["n<1K"]
    counts = {each["config_name"]: each["splits"][0]["num_examples"] for each in found["dataset_info"]}
    assert counts == {"documents": 4, "attributes-exp": 4, "attributes-own-0": 4}
    assert "4 documents in 9 files" in section(described.data, "What it is")
    assert "not counted" not in section(described.data, "Statistics")


@pytest.mark.slow
def test_documents_that_only_the_index_counted(small: Project) -> None:
    """Croissant's reader takes no zstd, so their rows are not looked at."""
    shard = small.documents / "a.jsonl.gz"
    rows = read_rows(shard)
    shard.unlink()
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    (small.documents / "a.jsonl.zst").write_bytes(zstd().compress(content))
    small.ok("clean", "--forget", "a.jsonl.gz")
    small.ok("tag")
    small.ok("card", "--of", "dataset")
    assert head(small.data)["size_categories"] == ["n<1K"]
    assert "12 documents" in section(small.data, "What it is")


def test_documents_without_sets_are_called_so(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("x", "one")])
    project.ok("card")
    assert [each["config_name"] for each in head(project.data)["configs"]] == ["documents"]


LONG = [2**63 + 5, 0, -1, None]
HUGE = [2**64, 1, -(2**63) - 1, 2**70]


def test_integers_that_are_no_64_bits_are_told(project: Project) -> None:
    def described(**columns: list[Any]) -> tuple[str, dict[str, str]]:
        rows = [
            document(f"x-{i}", "one", **dict(zip(columns, row, strict=True)))
            for i, row in enumerate(zip(*columns.values(), strict=True))
        ]
        write_rows(project.documents / "a.jsonl.gz", rows)
        told = project.ok("card").out
        (info,) = head(project.data)["dataset_info"]
        return told, {each["name"]: each["dtype"] for each in info["features"] if each["name"] in columns}

    told, types = described(small=[2**63 - 1, -(2**63), 0, 1], long=LONG)
    assert "note: long: it has integers of 2^63 and more; the features say `json`" in told
    assert types == {"small": "int64", "long": "json"}
    told, types = described(long=LONG, huge=HUGE)
    assert "note: huge: there are integers that no 64 bits hold" in told
    assert types == {"long": "float64", "huge": "float64"}
    assert "datasets rounds large ones: `long`, `huge`." in section(project.data, "Limits")
    told, _ = described(huge=HUGE, mixed=[1, "x", 2, "y"])
    assert "note: huge: there are integers that no 64 bits hold, beside values of no type" in told
    assert "cannot load these data: `huge`." in section(project.data, "Limits")


def test_values_that_are_nested_deeply_are_json(project: Project) -> None:
    nested: Any = 1
    for _ in range(49):
        nested = {"a": [nested]}
    write_rows(project.documents / "a.jsonl.gz", [document("0", "A text.", metadata=nested)])
    said = project.ok("card")
    assert "the features say `json`" in said.out + said.err
    assert '"json"' in json.dumps(head(project.data)["dataset_info"])


@pytest.mark.slow
def test_what_was_counted_is_told_in_words(released: Project) -> None:
    released.ok("card")
    step = section(released.out, "How it was made").partition("\n1. ")[2].partition("\n")[0]
    assert "record.warcinfo" in next(iter(inputs_of(released).values())).counts
    assert "2 records of the type warcinfo left out" in step
    assert "1 document with bytes that are no UTF-8, replaced by U+FFFD" in step
    assert "2 documents without a long line left out" in step
    assert counted({"documents": 1, "lost.timeout": 1, "status.404": 2, "mine": 3, "binary": 0}) == (
        "1 page left out because the extractor took too long, 2 answers of the status 404 left out, mine: 3"
    )


def test_one_is_no_plural(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("x", "o")])
    project.config["mix"] = {"output": {"format": "dolma", "path": str(project.out)}, "attributes": []}
    project.config["mix"]["rules"] = [{"drop": "document.id == 'y'", "name": "never"}]
    project.ok("mix")
    project.ok("card")
    assert "mix: 1 of 1 document kept, 1 of 1 character" in card(project.out)
    assert "Of 1 document 1 was kept (100.0 %), of 1 character 1." in card(project.out)
    assert "1 documents" not in card(project.out)


@pytest.mark.slow
def test_a_live_card_pins_nothing(released: Project) -> None:
    released.ok("card", "about.live=true")
    assert all(each.keys() == {"config_name", "features"} for each in head(released.out)["dataset_info"])
    assert "The data still grow" in section(released.out, "What it is")
    released.ok("card")
    assert "The data still grow" not in card(released.out)


@pytest.mark.parametrize(
    ("rows", "category"),
    [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**9, "1B<n<10B"), (10**12 - 1, "100B<n<1T"), (10**15, "n>1T")],
)
def test_sizes_are_in_the_words_of_the_hub(rows: int, category: str) -> None:
    assert hub.size_category(rows) == category


@pytest.mark.parametrize(
    ("urls", "keys"),
    [
        (["https://spdx.org/licenses/CC-BY-4.0.html"], {"license": "cc-by-4.0"}),
        (["https://spdx.org/licenses/GPL-3.0-or-later"], {"license": "gpl-3.0"}),
        (["https://creativecommons.org/licenses/by-nc-sa/4.0/deed.de"], {"license": "cc-by-nc-sa-4.0"}),
        (["https://opendatacommons.org/licenses/by/1-0/"], {"license": "odc-by"}),
        (
            ["https://creativecommons.org/publicdomain/zero/1.0/", "https://spdx.org/licenses/ODbL-1.0.html"],
            {"license": ["cc0-1.0", "odbl"]},
        ),
        (
            ["https://example.org/terms-of-use.html"],
            {
                "license": "other",
                "license_name": "terms-of-use",
                "license_link": "https://example.org/terms-of-use.html",
            },
        ),
        (
            ["https://spdx.org/licenses/CC0-1.0.html", "https://example.org/lic"],
            {"license": ["cc0-1.0", "other"], "license_name": "lic", "license_link": "https://example.org/lic"},
        ),
        (
            ["https://example.org/lic", "https://example.org/terms"],
            {"license": "other", "license_name": "lic-and-terms", "license_link": "https://example.org/lic"},
        ),
        ([], {}),
    ],
)
def test_licences_are_in_the_words_of_the_hub(urls: list[str], keys: dict[str, Any]) -> None:
    assert identifiers(urls) == keys


def test_globs_match_the_files_and_no_others() -> None:
    assert hub.patterns(["de/a.jsonl.gz", "de/b.jsonl.gz"], ["de/a.jsonl.gz", "de/b.jsonl.gz"]) == ["de/*.jsonl.gz"]
    there = ["de.txt", "deu.txt", "de_part_1.txt", "de_part_2.txt"]
    assert hub.patterns(["de.txt"], there) == ["de.txt"]
    assert hub.patterns(["de_part_1.txt", "de_part_2.txt"], there) == ["de_part_*.txt"]
    assert hub.patterns(["d/x.jsonl", "d/e/y.jsonl"], ["d/x.jsonl", "d/e/y.jsonl"]) == ["d/**/*.jsonl"]
    assert hub.patterns(["d/x.jsonl", "d/e/y.jsonl"], ["d/x.jsonl", "d/e/y.jsonl", "d/f/z.jsonl"]) == [
        "d/*.jsonl",
        "d/e/*.jsonl",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_example_of_the_page_is_what_is_made(golden: Project) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    golden.ok("run")
    golden.ok("card")
    examples = Path(__file__).parent
    shown = (examples / "README-oscar.md").read_text(encoding="utf-8")
    assert _without_stored_sizes(card(golden.out)) == _without_stored_sizes(shown)
    drawn = [re.findall(rb"Description\0([0-9a-f]{32})", (f / "card.png").read_bytes()) for f in (golden.out, examples)]
    assert drawn[0]
    assert drawn[0] == drawn[1]


def _without_stored_sizes(text: str) -> list[str]:
    """The lines without the sizes of compressed bytes, which differ between machines, and so does the digest."""
    text = re.sub(r"toolkit: card \w+", "toolkit: card", text)
    lines = [line.partition(" files, ")[0] for line in text.splitlines()]
    return [line for line in lines if "download_size" not in line]


# --- as readers load it -----------------------------------------------------------------------------------------------

LOAD = """
import json, sys
import datasets

datasets.disable_progress_bars()
folder, cache, *only = sys.argv[1:]
found = {}
names = datasets.get_dataset_config_names(folder)
print(json.dumps(names))
for name in only or names:  # each takes a second or more
    data = datasets.load_dataset(folder, name, cache_dir=cache)
    assert list(data) == ["train"]
    found[name] = [row for row in data["train"]]
try:
    datasets.load_dataset(folder, cache_dir=cache)
    error = ""
except ValueError as raised:
    error = str(raised)
print(json.dumps([found, error], default=lambda time: time.strftime("%Y-%m-%dT%H:%M:%SZ")))
"""

FORMATS: dict[str, dict[str, Any]] = {
    "oscar": {"part_size": 5_000},
    "dolma": {"by": "language", "attributes": True},
    "parquet": {"by": "language"},
    "text": {},
}

Loads = Callable[..., tuple[dict[str, list[dict[str, Any]]], str]]


@pytest.fixture
def loads(tmp_path: Path) -> Loads:
    """Loads all configurations of a folder, or those that are named, with Hugging Face datasets, offline."""
    if find_spec("datasets") is None:
        pytest.skip("the package datasets is not installed")

    caches: list[str] = []  # what is loaded once, datasets takes from there

    def load(folder: Path, *only: str) -> tuple[dict[str, list[dict[str, Any]]], str]:
        environment = dict(os.environ, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(tmp_path / "hf"))
        caches.append(str(tmp_path / f"cache-{len(caches)}"))
        ran = subprocess.run(
            [sys.executable, "-c", LOAD, str(folder), caches[-1], *only],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        names, loaded = ran.stdout.splitlines()
        assert json.loads(names) == [each["config_name"] for each in head(folder)["configs"]]
        found, error = json.loads(loaded)
        return found, error

    return load


def loaded_as(raw: Any, loaded: Any) -> Any:
    """A raw value as datasets gives it: objects have the keys of all, null where they have none."""
    if isinstance(loaded, dict):
        assert raw is None or raw.keys() <= loaded.keys()
        return {key: loaded_as((raw or {}).get(key), value) for key, value in loaded.items()}
    if isinstance(loaded, list) and isinstance(raw, list):
        return [loaded_as(*pair) for pair in zip(raw, loaded, strict=True)]
    return pytest.approx(raw, rel=1e-15) if isinstance(raw, float) else raw


@pytest.mark.slow
@pytest.mark.parametrize("format_", [pytest.param("dolma", marks=pytest.mark.long), "oscar", "parquet", "text"])
def test_every_label_is_loaded_by_its_name(released: Project, loads: Loads, format_: str) -> None:
    released.config["mix"]["output"] = {"format": format_, "path": str(released.root / "o"), **FORMATS[format_]}
    released.ok("mix")
    released.ok("card")
    out = released.root / "o"
    found, error = loads(out, "en", "multi", "zh")
    configurations = {each["config_name"]: each for each in head(out)["configs"]}
    assert "multi" in configurations
    assert "'multi'" in error  # without a name: an error that says which there are
    for name, rows in found.items():
        files = files_of(out, configurations[name])
        if format_ == "text":
            texts = [t for path in files for t in gzip.decompress(path.read_bytes()).decode().split("\n\n") if t]
            assert [row["text"] for row in rows] == texts
        elif format_ == "parquet":
            assert {row["label"] for row in rows} == {name}
        else:
            check_rows(files, rows)


def check_rows(files: list[Path], rows: list[dict[str, Any]]) -> None:
    raw = [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).split(b"\n") if line]
    assert [loaded_as(*pair) for pair in zip(raw, rows, strict=True)] == rows


@pytest.mark.long
def test_real_pages_are_loaded_as_they_are(pipeline: Project, shared: Path, loads: Loads) -> None:
    if version("datasets").startswith("4."):
        pytest.skip("datasets 4 fails where Arrow reads lists wrongly that begin with a null")
    names = ("hplt-sample200.warc.wet.gz", "whirlwind.warc.wet.gz", "htmlpool-real.warc.wet.gz")
    pipeline.config["ingest"][0]["from"] = [f"{shared}/wet/{name}" for name in names]
    pipeline.config["mix"]["output"]["part_size"] = "1 MB"
    pipeline.ok("run")
    pipeline.ok("card")
    found, _ = loads(pipeline.out)
    for each in head(pipeline.out)["configs"]:
        check_rows(files_of(pipeline.out, each), found[each["config_name"]])
    assert sum(map(len, found.values())) > 500


@pytest.mark.slow
def test_documents_without_headers_are_loaded(project: Project, loads: Loads) -> None:
    rows = [document(f"x-{i}", "eins zwei", added=None if i % 2 else "2024-01-02T03:04:05.5Z") for i in range(4)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["mix"] = {"output": {"format": "dolma", "path": str(project.out)}, "rules": [], "attributes": []}
    project.ok("mix")
    project.ok("card")
    found, _ = loads(project.out)
    assert [row["id"] for row in found["default"]] == [row["id"] for row in rows]


@pytest.mark.slow
def test_large_integers_are_loaded(project: Project, loads: Loads) -> None:
    if version("datasets").startswith("4."):
        pytest.skip("datasets 4 does not know the type json")
    rows = [document(f"x-{i}", "one", long=n, inner={"long": n}, many=[n]) for i, n in enumerate(LONG)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.ok("card")
    assert loads(project.data)[0]["documents"] == rows
    rows = [document(f"x-{i}", "one", long=long, huge=n) for i, (long, n) in enumerate(zip(LONG, HUGE, strict=True))]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.ok("card")
    assert [(row["long"], row["huge"]) for row in loads(project.data)[0]["documents"]] == [
        (None if row["long"] is None else float(row["long"]), float(row["huge"])) for row in rows
    ]


@pytest.mark.long
def test_live_data_are_loaded_when_they_have_grown(released: Project, loads: Loads) -> None:
    released.ok("card", "about.live=true")
    before, _ = loads(released.out, "en", "zh")
    part = next(released.out.glob("en/*.jsonl.gz"))
    rows = read_rows(part)
    write_rows(part, [*rows, *rows])
    write_rows(released.out / "en" / "en_part_99.jsonl.gz", rows)
    after, _ = loads(released.out, "en", "zh")
    assert len(after["en"]) == len(before["en"]) + 2 * len(rows)
    assert after["zh"] == before["zh"]


@pytest.mark.slow
def test_duckdb_and_polars_read_the_same_files(released: Project) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the package duckdb is not installed")
    polars = pytest.importorskip("polars", reason="the package polars is not installed")
    released.ok("card")
    infos = {each["config_name"]: each["splits"][0]["num_examples"] for each in head(released.out)["dataset_info"]}
    for each in head(released.out)["configs"]:
        files = files_of(released.out, each)
        texts = [json.loads(line)["content"] for p in files for line in gzip.decompress(p.read_bytes()).splitlines()]
        glob = str(released.out / each["data_files"][0]["path"])
        query = f"select content from read_json('{glob}', format='newline_delimited')"
        assert sorted(row[0] for row in duckdb.sql(query).fetchall()) == sorted(texts)
        frames = [polars.read_ndjson(gzip.decompress(path.read_bytes())) for path in files]
        assert [text for frame in frames for text in frame["content"]] == texts
        assert infos[each["config_name"]] == len(texts)


def test_names_of_a_configuration_are_no_html(small: Project) -> None:
    evil = "<img src=x onerror=alert(1)>"
    small.config["about"] = {"name": f"A {evil}", "creator": {"type": "Person", "name": f"B {evil}"}}
    small.config["mix"]["rules"] = [{"drop": "document.source == '`<b>`'", "name": f"C {evil}"}]
    small.ok("mix")
    small.ok("card")
    text = card(small.out)
    body = text.partition("\n---\n")[2]
    assert re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", body).count("<img") == 0
    assert "A &lt;img" in body
    assert "C &lt;img" in body
