"""``toolkit stats`` and what a mix notes: the numbers of a slow reference, however they are counted."""

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows
from toolkit.aggregate import columns
from toolkit.commands import _mix_preparation
from toolkit.data.documents import split_lines
from toolkit.inspect import counting as stats_cache
from toolkit.records.failures import FailureRecords

Counts = dict[str, int]
TEXTS = [
    "one two\nthree", "", "a\u00a0b\u0085c\u2028d\re f", "\0 nul", "ünï  cødé\n\n", "名前 です\u3000ね", "\n",
    "x" * 500, "tab\tand\x1cseparator", "🙂 \u1680 \u205f",
]  # fmt: skip
LABELS = ["en", "fr", None]
HOSTS = ["A.example", "b.example", "b.example:8080"]
CRAWLS = ["CC-MAIN-2021-49", "CC-MAIN-2022-05"]


def slowly(texts: Iterable[str]) -> Counts:
    """The reference."""
    found = dict.fromkeys(("documents", "lines", "chars", "bytes", "words"), 0)
    for text in texts:
        numbers = (1, len(split_lines(text)), len(text), len(text.encode()), len(text.split()))
        for name, number in zip(found, numbers, strict=True):
            found[name] += number
    return found


def grouped(rows: Iterable[tuple[Any, str]]) -> dict[Any, Counts]:
    texts: dict[Any, list[str]] = {}
    for key, text in rows:
        texts.setdefault(key, []).append(text)
    return {key: slowly(found) for key, found in texts.items()}


def groups(table: dict[str, Any]) -> dict[Any, Counts]:
    return {row.pop("group"): row for row in map(dict, table["groups"])}


@pytest.fixture
def labelled(project: Project) -> Project:
    """Three shards with a set of another program that says language and score, and a mix that edits and drops."""
    for s in range(3):
        shard = f"{CRAWLS[s % 2]}/s{s}.jsonl.gz"
        rows, values = [], []
        for i in range(40):
            text = TEXTS[(i + s) % len(TEXTS)] + f" {i}"
            metadata = {"url": f"http://{HOSTS[i % 3]}/{i}"} if i % 4 else None
            rows.append(document(f"{s}-{i}", text, f"src{i % 2}", metadata=metadata))
            label = {"language": {"label": LABELS[(i + s) % 3], "prob": i / 40}, "spans": [[0, min(2, len(text)), 1.0]]}
            values.append(attributes(f"{s}-{i}", label, f"src{i % 2}"))
        write_rows(project.documents / shard, rows)
        write_rows(project.attributes / "said" / shard, values)
    project.mixes({"drop": "language.prob < 0.25", "name": "unsure"}, attributes=["said"], label="language.label")
    return project


def joined(project: Project) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        (row, values["attributes"])
        for path in sorted(project.documents.rglob("*.gz"))
        for row, values in zip(
            read_rows(path), read_rows(project.attributes / "said" / path.relative_to(project.documents)), strict=True
        )
    ]


GROUPS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "label": lambda row, values: values["language"]["label"],
    "source": lambda row, values: row["source"],
    "host": lambda row, values: urlsplit(row["metadata"]["url"]).hostname if row["metadata"] else None,
    "language.prob * 40 // 10": lambda row, values: values["language"]["prob"] * 40 // 10,
    "document.chars > 20": lambda row, values: len(row["text"]) > 20,
    "len(spans) if label is not None else None": lambda row, values: 1 if values["language"]["label"] else None,
}


def test_groups_are_those_of_a_slow_reference(labelled: Project) -> None:
    asked = [argument for by in GROUPS for argument in ("--by", by)]
    found = labelled.ok("stats", "--json", *asked).json
    rows = joined(labelled)
    for table, (by, key) in zip(found["tables"], GROUPS.items(), strict=True):
        assert table["by"] == by
        assert groups(table) == grouped((key(*each), each[0]["text"]) for each in rows)
        assert table["total"] == slowly(row["text"] for row, _ in rows)
        assert table["others"] == {"groups": 0, **slowly([])}


@pytest.mark.slow
def test_numbers_are_those_of_polars(labelled: Project) -> None:
    """Sums of labels, and the distribution of a score by label: least, greatest, mean and quantiles."""
    pl = pytest.importorskip("polars", reason="polars is another program")
    found = labelled.ok("stats", "--json", "--by", "label", "--attribute", "language.prob").json
    text = pl.col("text")
    said = [{**values["language"], "text": row["text"]} for row, values in joined(labelled)]
    frame = pl.DataFrame(said, schema={"label": pl.String, "prob": pl.Float64, "text": pl.String})
    sums = frame.group_by("label").agg(
        pl.len().alias("documents"),
        text.str.len_chars().sum().alias("chars"),
        text.str.len_bytes().sum().alias("bytes"),
    )
    shown = groups(found["tables"][0])
    for row in sums.iter_rows(named=True):
        assert {name: shown[row["label"]][name] for name in ("documents", "chars", "bytes")} == {
            name: row[name] for name in ("documents", "chars", "bytes")
        }
    (of_prob,) = found["attributes"]
    assert len(of_prob["labels"]) == 3
    for each in of_prob["labels"]:
        prob = frame.filter(pl.col("label").eq_missing(each["label"]))["prob"]
        assert (each["values"], each["min"], each["max"]) == (len(prob), prob.min(), prob.max())
        assert each["mean"] == pytest.approx(prob.mean(), rel=1e-12)
        assert each["quantiles"] == {share: prob.quantile(float(share), "equiprobable") for share in each["quantiles"]}


def test_the_crawl_is_in_the_path(labelled: Project) -> None:
    (table,) = labelled.ok("stats", "--by", "crawl", "--json").json["tables"]
    assert {name: counts["documents"] for name, counts in groups(table).items()} == {CRAWLS[0]: 80, CRAWLS[1]: 40}


def test_only_the_largest_groups_are_shown_and_none_is_lost(labelled: Project) -> None:
    (table,) = labelled.ok("stats", "--by", "document.id", "--top", 5, "--json").json["tables"]
    assert (len(table["groups"]), table["others"]["groups"]) == (5, 115)
    whole = slowly(row["text"] for row, _ in joined(labelled))
    assert table["total"] == whole
    assert {n: sum(g[n] for g in table["groups"]) + table["others"][n] for n in whole} == whole
    shown = labelled.ok("stats", "--by", "document.id", "--top", 5).out
    assert "| 115 more" in shown


def test_unicode_words_are_counted_on_request(labelled: Project) -> None:
    (table,) = labelled.ok("stats", "--json", "--unicode-words").json["tables"]
    assert table["total"]["unicode_words"] > table["total"]["words"] / 2


# --- once ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_bytes_with_any_number_of_processes_and_only_what_changed_is_read(labelled: Project) -> None:
    labelled.config["executor"] = {"type": "local"}
    asked = ("--json", "--by", "host", "--by", "label", "--attribute", "all")
    one = labelled.ok("stats", "processes=1", *asked)
    kept = tree(labelled.data / ".toolkit" / "stats", bookkeeping=True)
    for path in (labelled.data / ".toolkit" / "stats").rglob("*.counts"):
        path.unlink()
    two = labelled.ok("stats", "processes=2", *asked)
    assert (one.out, kept) == (two.out, tree(labelled.data / ".toolkit" / "stats", bookkeeping=True))
    assert one.json["inputs"] == {"files": 3, "read": 3}
    again = labelled.ok("stats", *asked).json
    assert again.pop("inputs") == {"files": 3, "read": 0}
    assert again == {key: value for key, value in one.json.items() if key != "inputs"}
    changed = sorted(labelled.documents.rglob("*.gz"))[0]
    os.utime(changed, (0, 0))
    assert labelled.ok("stats", *asked).json["inputs"]["read"] == 0  # the content is the same
    attribute_file = labelled.attributes / "said" / changed.relative_to(labelled.documents)
    write_rows(changed, read_rows(changed)[:-1])
    write_rows(attribute_file, read_rows(attribute_file)[:-1])
    found = labelled.ok("stats", *asked).json
    assert found["inputs"]["read"] == 1
    assert found["tables"][0]["total"] == slowly(row["text"] for row, _ in joined(labelled))


def test_a_changed_attribute_is_counted_anew(labelled: Project) -> None:
    labelled.ok("stats", "--json")
    path = sorted((labelled.attributes / "said").rglob("*.gz"))[0]
    rows = read_rows(path)
    for row in rows:
        row["attributes"]["language"]["label"] = "de"
    write_rows(path, rows)
    (table,) = labelled.ok("stats", "--json").json["tables"]
    assert groups(table) == grouped((v["language"]["label"], row["text"]) for row, v in joined(labelled))


# --- mixes --------------------------------------------------------------------------------------------------------


def noted(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.out / ".toolkit" / "manifest.json").read_bytes())
    return found


def numbers(counts: dict[str, Any]) -> Counts:
    assert counts["unicode_words"] is None
    return {name: number for name, number in counts.items() if name != "unicode_words"}


@pytest.mark.slow
def test_a_mix_notes_what_it_read_and_what_it_kept(labelled: Project) -> None:
    labelled.config["mix"]["rules"].append({"replace": "spans", "by": "…\u2028"})
    labelled.config["executor"] = {"type": "local"}
    labelled.ok("mix", "processes=1")
    manifest = noted(labelled)
    rows = joined(labelled)
    before = grouped((v["language"]["label"] or "", row["text"]) for row, v in rows)
    texts = {row["id"]: row["text"] for row in labelled.output()}
    assert any("…" in text for text in texts.values())
    after = grouped((v["language"]["label"] or "", texts[row["id"]]) for row, v in rows if row["id"] in texts)
    found = manifest["statistics"]
    assert {label: numbers(each["before"]) for label, each in found.items()} == before
    assert {label: numbers(each["after"]) for label, each in found.items() if each["after"]["documents"]} == after
    assert sum(each["before"]["chars"] for each in found.values()) == manifest["totals"]["chars"]
    assert sum(each["after"]["chars"] for each in found.values()) == manifest["totals"]["kept_chars"]
    labelled.config["mix"]["output"]["path"] = str(labelled.root / "two")
    labelled.ok("mix", "processes=2")
    assert json.loads((labelled.root / "two" / ".toolkit" / "manifest.json").read_bytes()) == manifest


def test_before_and_after_side_by_side(labelled: Project) -> None:
    assert "run `toolkit mix`" in labelled("stats", "--mix").err
    labelled.ok("mix")
    rows = [line.split("|") for line in labelled.ok("stats", "--mix").out.splitlines() if line.startswith("|")]
    head = [cell.strip() for cell in rows[0][1:-1]]
    assert head[:3] == ["label", "documents, original", "documents, kept"]
    assert [cell.strip() for cell in rows[-1][1:4]] == ["all", "120", "90"]
    listed = list(csv.DictReader(io.StringIO(labelled.ok("stats", "--mix", "--format", "csv").out)))
    assert listed[-1]["words_before"] == str(slowly(row["text"] for row, _ in joined(labelled))["words"])
    found = labelled.ok("stats", str(labelled.out), "--mix", "--json").json
    assert {each["label"]: each["after"] for each in found["labels"]}["fr"]["documents"] > 0


def test_unicode_words_of_a_mix_are_an_option(labelled: Project) -> None:
    labelled.config["mix"]["unicode_words"] = True
    labelled.ok("mix")
    words = [each["before"]["unicode_words"] for each in noted(labelled)["statistics"].values()]
    (table,) = labelled.ok("stats", "--unicode-words", "--json").json["tables"]
    assert sum(words) == table["total"]["unicode_words"] > 0


@pytest.mark.parametrize("unit", ["line", "block"])
def test_pieces_count_by_their_own_label(project: Project, unit: str) -> None:
    text = "eins zwei\nune ligne\n\nnoch eine\nno label"
    labels = [{"label": label} if label else None for label in ("de", "fr", "de", "de", None)]
    write_rows(project.documents / "a.jsonl.gz", [document("1", text)])
    write_rows(project.attributes / "lines" / "a.jsonl.gz", [attributes("1", {"line_language": labels})])
    output = {"format": "text", "unit": unit, "path": str(project.out)}
    project.config["mix"] = {"attributes": ["lines"], "output": output}
    project.ok("mix")
    found = noted(project)["statistics"]
    pieces = {"line": [["eins zwei\nnoch eine"], ["une ligne"]], "block": [["eins zwei", "noch eine"], ["une ligne"]]}
    assert numbers(found[""]["before"]) == slowly([text])
    assert [numbers(found[label]["after"]) for label in ("de", "fr")] == [slowly(each) for each in pieces[unit]]
    (table,) = project.run("stats", project.out, "--json").json["tables"]
    assert groups(table) == {label: numbers(found[label]["after"]) for label in ("de", "fr")}


# --- outputs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def mixable(project: Project) -> Project:
    texts = ["one two\nthree", "uno dos\n\ntres", "vier fünf", "x\u0085y"]
    shard, rows, values = "a.jsonl.gz", [], []
    for i, text in enumerate(texts):
        label = {"label": "en" if i % 2 else "es", "prob": 0.5 + i / 10}
        rows.append(document(str(i), text, metadata={"warc_headers": {"warc-target-uri": f"http://{i}.example/"}}))
        values.append(attributes(str(i), {"language": label, "line_language": [label for _ in text.split("\n")]}))
    write_rows(project.documents / shard, rows)
    write_rows(project.attributes / "said" / shard, values)
    return project


@pytest.mark.parametrize(
    "output",
    [
        {"format": "oscar"},
        {"format": "parquet", "by": "language"},
        *slow(
            {"format": "oscar", "schema": "23.01", "compression": "zstd"},
            {"format": "dolma", "by": "language"},
            {"format": "text", "layout": "folders"},
        ),
    ],
    ids=lambda output: f"{output['format']} {output.get('schema', '')}",
)
def test_outputs_of_all_formats_are_counted(mixable: Project, output: dict[str, Any]) -> None:
    if output["format"] == "parquet":
        pytest.importorskip("pyarrow")
    mixable.config["mix"] = {"attributes": ["said"], "output": {**output, "path": str(mixable.out)}}
    mixable.ok("mix")
    (table,) = mixable.run("stats", mixable.out, "--json").json["tables"]
    rows = [(v["language"]["label"], row["text"]) for row, v in joined(mixable)]
    if output["format"] == "text":  # which leaves blank lines out
        rows = [(label, text.replace("\n\n", "\n")) for label, text in rows]
    assert groups(table) == grouped(rows)
    mixable.ok("validate")  # what is counted is kept where nobody takes it for data
    if output["format"] in ("oscar", "dolma", "parquet"):
        (table,) = mixable.run("stats", mixable.out, "--by", "host", "--json").json["tables"]
        assert {name: counts["documents"] for name, counts in groups(table).items()} == {
            f"{i}.example": 1 for i in range(4)
        }


def test_fields_of_oscar_can_be_grouped_by_and_have_distributions(mixable: Project) -> None:
    mixable.config["mix"] = {"attributes": ["said"], "output": {"format": "oscar", "path": str(mixable.out)}}
    mixable.ok("mix")
    ran = mixable.run("stats", mixable.out, "--by", "identification.prob > 0.6", "--attribute", "all", "--json").json
    assert {name: row["documents"] for name, row in groups(ran["tables"][0]).items()} == {True: 2, False: 2}
    found = {each["attribute"]: each["all"] for each in ran["attributes"]}
    assert found["sentence_identifications[].label"]["values"] == 7
    assert (found["annotation[]"]["nulls"], found["annotation[]"]["null_lists"]) == (0, 4)


def test_lines_of_oscar_are_joined_by_line_feeds(project: Project) -> None:
    line = {
        "content": "a\n\n",
        "warc_headers": {},
        "metadata": {"identification": {"label": "en", "prob": 1}, "annotation": None},
    }
    path = write_rows(project.root / "en.jsonl", [line])
    (table,) = project.run("stats", path, "--json").json["tables"]
    assert (table["groups"][0]["group"], table["total"]["lines"], table["total"]["bytes"]) == ("en", 3, 3)


@pytest.mark.slow
def test_attributes_that_a_mix_merged_into_documents_are_counted(labelled: Project) -> None:
    labelled.config["mix"]["output"]["attributes"] = True
    labelled.ok("mix")
    rows = labelled.output()
    found = labelled.run("stats", labelled.out, "--by", "language.prob < 0.5", "--json").json["tables"][0]
    assert groups(found) == grouped((row["attributes"]["language"]["prob"] < 0.5, row["text"]) for row in rows)
    other = write_rows(labelled.root / "other" / "documents" / "a.jsonl.gz", [document("x", "y")]).parent.parent
    mix = labelled.config["mix"]
    labelled.config["mix"] = {
        "streams": {
            "a": {"dataset": str(labelled.data), "attributes": mix["attributes"]},
            "b": {"dataset": str(other)},
        },
        "output": mix["output"],
    }
    labelled.ok("mix")
    rows = labelled.output()
    asked = ("--by", "language.prob", "--attribute", "all", "--json")
    ran = labelled.run("stats", labelled.out, *asked).json
    values = [row.get("attributes", {}).get("language", {}).get("prob") for row in rows]
    assert values.count(None) == 1
    assert groups(ran["tables"][0]) == grouped(zip(values, (row["text"] for row in rows), strict=True))
    listed = {each["attribute"]: each["all"] for each in ran["attributes"]}
    assert (listed["language.prob"]["values"], listed["language.prob"]["nulls"]) == (len(rows) - 1, 1)
    assert listed["spans[].score"]["null_lists"] == 1


@pytest.mark.parametrize("format_", ["parquet", *slow("dolma", "oscar", "text")])
def test_an_output_of_which_nothing_was_kept_has_zeros(mixable: Project, format_: str) -> None:
    if format_ == "parquet":
        pytest.importorskip("pyarrow")
    rules = [{"drop": "True", "name": "all"}]
    output = {"format": format_, "path": str(mixable.out)}
    mixable.config["mix"] = {"attributes": ["said"], "rules": rules, "output": output, "allow_empty": True}
    mixable.ok("mix")
    ran = mixable.run("stats", mixable.out, "--by", "label", "--by", "host").succeeds()
    assert [line.split("|")[2].strip() for line in ran.out.splitlines() if line.startswith("| all")] == ["0", "0"]
    assert "there are no documents" in ran.out
    tables = mixable.run("stats", mixable.out, "--json", "--unicode-words").json["tables"]
    assert (tables[0]["total"], tables[0]["groups"]) == (slowly([]) | {"unicode_words": 0}, [])
    assert "there are no documents" in mixable.run("stats", mixable.out, "--attribute", "all").out
    mixable.run("stats", mixable.out, "--histogram", "language.prob").fails(2, "expected values, got no documents")
    compared = mixable.run("stats", mixable.out, "--mix", "--json").json["total"]
    assert (compared["before"]["documents"], compared["after"]) == (4, slowly([]))


def test_dropped_documents_in_the_output_are_not_counted_with_it(
    mixable: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # outputs of earlier versions have them
    monkeypatch.setattr(_mix_preparation, "_check_places", lambda *_: None)
    rules = [{"drop": "True", "name": "all"}]
    output = {"format": "oscar", "path": str(mixable.out)}
    rejected = str(mixable.out / "dropped")
    mixable.config["mix"] = {"attributes": ["said"], "rules": rules, "output": output, "rejected": rejected}
    mixable.config["mix"]["allow_empty"] = True
    mixable.ok("mix")
    for target, number in ((mixable.out, 0), (rejected, 4)):
        (table,) = mixable.run("stats", target, "--json").json["tables"]
        assert table["total"]["documents"] == number


@pytest.mark.parametrize("rows", [[], None])
def test_a_dataset_without_documents_says_so(project: Project, rows: list[Any] | None) -> None:
    (project.documents).mkdir(parents=True)
    if rows is None:
        assert "expected documents, got none" in project("stats").err
        return
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["tag"] = {"shape-0": "line_shape"}
    project.ok("tag")
    assert project.ok("stats", "--attribute", "all").out.strip() == "there are no documents"
    assert "there are no documents" in project.ok("stats").out
    assert "there are no documents" not in project.ok("stats", "--format", "csv").out
    assert "expected values, got no documents" in project("stats", "--histogram", "line_shape.lines").err


# --- how it is shown ----------------------------------------------------------------------------------------------


def test_groups_of_any_text_are_lines_of_a_table(project: Project) -> None:
    names = ["a\nb|c", "", None, "\x1b[31m\t", "ünï"]
    rows = [document(str(i), "x" * i, metadata={"crawl": "", "n": name}) for i, name in enumerate(names, 1)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    values = [attributes(str(i), {"n": name}) for i, name in enumerate(names, 1)]
    write_rows(project.attributes / "said" / "a.jsonl.gz", values)
    shown = project.ok("stats", "--by", "n").out.splitlines()
    cells = [line.split(" | ")[0].removeprefix("| ").rstrip() for line in shown[2:]]
    assert cells == ["ünï", r"\x1b[31m\t", "(none)", '""', r"a\nb\|c", "all"]
    listed = list(csv.reader(io.StringIO(project.ok("stats", "--by", "n", "--format", "csv").out)))
    assert [row[0] for row in listed[1:]] == ["ünï", r"\x1b[31m" + "\t", "", '""', "a\nb|c", "all"]
    drawn = project.ok("stats", "--histogram", "n").out.splitlines()
    assert len(drawn) == 2 + 4
    assert drawn[0] == "n: 4 values, 1 null (20.0 %)"
    assert any(line.startswith(r"a\nb|c") for line in drawn)


def test_what_has_no_host_has_none(project: Project) -> None:
    urls = {
        "http://a.example/x": "a.example", "HTTPS://user:pw@B.example:8080?q": "b.example", "c.example/p": "c.example",
        "http://[::1]:80/": "::1", "http://localhost": "localhost", "not a url": None, "mailto:x@y.example": None,
        "http:///path": None, "http://not a host/": None, "urn:uuid:1": None, "": None, "file:///x": None, "word": None,
    }  # fmt: skip
    rows = [document(url, url, metadata={"url": url}) for url in urls]
    write_rows(project.documents / "a.jsonl.gz", rows)
    (table,) = project.ok("stats", "--by", "host", "--json").json["tables"]
    assert groups(table) == grouped((host, url) for url, host in urls.items())


def test_an_attribute_whose_values_cannot_be_counted_is_named_with_its_type(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("1", ""), document("2", "")])
    values = [attributes("1", {"mixed": 1, "n": 1}), attributes("2", {"mixed": [{}], "n": 1})]
    write_rows(project.attributes / "said" / "a.jsonl.gz", values)
    project("stats", "--attribute", "mixed").fails(2, "got 'mixed', of type any; there are: n")


def test_one_document_is_not_documents(project: Project) -> None:
    write_rows(project.documents / "a.jsonl.gz", [document("1", "")])
    assert "1/1 shards, 1 document, " in project.ok("stats").err


# --- what is wrong ------------------------------------------------------------------------------------------------


def test_a_bad_row_is_named_and_no_numbers_are_shown(project: Project) -> None:
    for bad, message in (
        (b'{"id": "2", "source": "s", "text": 5}', "expected a text in UTF-8"),
        (b'{"id": "2", "source": "s", "text": "\xff"}', "expected a text in UTF-8"),
        (b'{"id": "2", "source": "s"}', "expected field text"),
        (b'{"id": "2", "source": "s", "text": "", "metadata": 1}', "expected an object or null - at $.metadata"),
    ):
        write_rows(project.documents / "a.jsonl.gz", [document("1", "x"), bad])
        ran = project("stats").fails(1, f"a.jsonl.gz:2: {message}")
        assert "| all" not in ran.out


def test_after_a_failure_only_what_failed_is_read_again(labelled: Project) -> None:
    bad = sorted(labelled.documents.rglob("*.gz"))[1]
    sound = bad.read_bytes()
    bad.write_bytes(sound[:-20])
    labelled("stats", "--by", "source", "--json").fails(1, f"{bad}:")
    bad.write_bytes(sound)
    found = labelled.ok("stats", "--by", "source", "--json").json
    assert found["inputs"] == {"files": 3, "read": 1}
    assert found["tables"][0]["total"]["documents"] == 120


def test_expressions_are_checked_before_anything_is_read(labelled: Project) -> None:
    for arguments, message in (
        (("--by", "langage.label"), "did you mean 'language'"),
        (("--by", "language"), None),
        (("--by", "(language)"), "got a value of type"),
        (("--by", "1 / 0 > 'a'"), "expected"),
        (("--attribute", "langage"), "did you mean 'language'"),
        (("--histogram", "language"), "expected one value"),
        (("--attribute", "all", "--top", 3, "--by", "label"), None),
    ):
        ran = labelled("stats", *arguments)
        assert (ran.code == 0) == (message is None), ran.err
        assert (message or "") in ran.err
        assert "Traceback" not in ran.err


def test_a_value_that_an_expression_cannot_use_names_its_document(labelled: Project) -> None:
    labelled("stats", "--by", "1 / (language.prob * 0)").fails(1, "s0.jsonl.gz:1: ", "division")


def test_a_histogram_has_the_thresholds_of_the_mix(labelled: Project) -> None:
    labelled.ok("stats", "--histogram", "language.prob").shows("language.prob < 0.25: unsure")
    found = labelled.ok("stats", "--histogram", "language.prob", "--json").json
    assert sum(each["count"] for each in found["bins"]) == 120


@pytest.mark.parametrize("suffix", ["md", "csv", "json"])
def test_a_table_goes_to_a_file(labelled: Project, suffix: str) -> None:
    path = labelled.root / f"t.{suffix}"
    assert labelled.ok("stats", "--output", path).out.strip() == str(path)
    assert "120" in path.read_text()


# --- real data ----------------------------------------------------------------------------------------------------


def test_a_release_is_counted_as_by_a_slow_reference(run: Run, shared: Path, tmp_path: Path) -> None:
    released = shared / "oscar-22.01" / "real-22.01-sample.jsonl"
    path = tmp_path / "sample.jsonl"
    path.write_bytes(released.read_bytes())
    (table,) = run("stats", path, "--json").json["tables"]
    rows = [json.loads(line) for line in released.read_bytes().splitlines()]
    assert groups(table) == grouped((row["metadata"]["identification"]["label"], row["content"]) for row in rows)


@pytest.mark.slow
def test_real_pages_are_counted_as_by_a_slow_reference(project: Project, shared: Path) -> None:
    project.config["ingest"] = [{"format": "wet", "from": [f"{shared}/wet/*.wet*"], "source": "cc"}]
    project.ok("ingest")
    (table,) = project.ok("stats", "--by", "source", "--json").json["tables"]
    texts = [row["text"] for path in project.documents.rglob("*.gz") for row in read_rows(path)]
    assert len(texts) > 500
    assert table["total"] == slowly(texts)


def test_csv_has_no_formulas_and_moves_no_cursor(project: Project) -> None:
    names = ["=cmd()", "@x", "\x1b[2Jred", "plain"]
    rows = [document(f"{i}", "text", metadata={"n": name}) for i, name in enumerate(names)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["dataset"] = str(project.data)
    out = project.ok("stats", "--by", "metadata.n", "--format", "csv").out
    groups = {row[0] for row in csv.reader(io.StringIO(out))}
    assert {"'=cmd()", "'@x", "\\x1b[2Jred", "plain"} <= groups
    assert "\x1b" not in out


# ``toolkit stats``: where counts are kept, and that nobody takes them for data.

GLOBS = ["*/*.jsonl.gz", "**/*.jsonl*", "*.jsonl.gz", "*.gz", "*.txt", "*.parquet", "*.zst", "*.json.gz", "*.jsonl"]
SHARDS = ("cc/a.jsonl.gz", "cc/b.jsonl.gz")


@pytest.fixture
def mixed(project: Project) -> Project:
    """A dataset of two shards with a set, mixed into OSCAR."""
    for shard in SHARDS:
        ids = [f"{shard}-{i}" for i in range(4)]
        write_rows(project.documents / shard, [document(id, f"one {id}\ntwo") for id in ids])
        language = {"label": "en", "prob": 0.5}
        values = [attributes(id, {"language": language, "line_language": [language] * 2}) for id in ids]
        write_rows(project.attributes / "said" / shard, values)
    project.config["mix"] = {"attributes": ["said"], "output": {"format": "oscar", "path": str(project.out)}}
    project.ok("mix")
    return project


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache; not by the environment, by which all that is compiled would be compiled again."""
    monkeypatch.setattr(stats_cache, "cache_folder", lambda: str(tmp_path / "cache"))
    return tmp_path / "cache"


def matched(root: Path, below: str = ".toolkit/") -> list[str]:
    """Our records that a glob for data matches as Croissant has it: ``*`` over folders."""
    ours = (path for path in tree(root, bookkeeping=True) if below in path)
    return [path for path in ours if any(fnmatch(path, glob) for glob in GLOBS)]


def kept(root: Path) -> set[str]:
    """The folders in which counts are."""
    return {str(path.relative_to(root)).partition("/v5/")[0] for path in root.rglob("*.counts")}


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("data/documents/cc/a.jsonl.gz", "data/.toolkit/stats"),
        ("out/en", "out/.toolkit/stats"),
        *slow(
            ("data", "data/.toolkit/stats"),
            ("data/documents", "data/.toolkit/stats"),
            ("data/documents/cc", "data/.toolkit/stats"),
            ("out", "out/.toolkit/stats"),
            ("out/en/en.jsonl.gz", "out/.toolkit/stats"),
        ),
    ],
)
def test_counts_are_with_the_dataset_or_the_output(
    mixed: Project, target: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(mixed.root)
    counted = mixed.run("stats", mixed.root / target, "--by", "source", "--by", "host", "--json").json
    assert counted["tables"][0]["total"]["documents"] == (4 if target.endswith("a.jsonl.gz") else 8)
    assert kept(mixed.root) == {place}
    assert (tree(mixed.root), matched(mixed.root, ".toolkit/stats/")) == (before, [])
    assert matched(mixed.out) == matched(mixed.documents) == []
    monkeypatch.chdir(mixed.root)  # however the path is written
    again = mixed.run("stats", target, "--by", "source", "--by", "host", "--json").json
    assert again["inputs"]["read"] == 0
    assert again["tables"] == counted["tables"]


def test_what_was_counted_once_is_there_for_every_command(mixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mixed.ok("stats", "--by", "label", "--by", "host", "--lengths", "--json").json
    for asked in (("--by", "host"), ("--lengths",), ("--by", "host", "--lengths", "--by", "label")):
        found = mixed.ok("stats", *asked, "--json").json
        assert found["inputs"]["read"] == 0
    assert found["tables"] == first["tables"][::-1]
    assert found["lengths"] == first["lengths"]
    mixed.config["executor"] = {"type": "local"}
    monkeypatch.setattr(columns, "_count", None)  # texts are not read again, whatever is grouped by, nor for a report
    by_rule = mixed.ok("stats", "processes=1", "--by", "crawl", "--by", "language.prob > 0.4", "--json").json["tables"]
    assert [table["total"] for table in by_rule] == [first["tables"][0]["total"]] * 2
    mixed.ok("report", "processes=1", "-o", mixed.root / "report.json")


@pytest.mark.parametrize("target", ["", "a/en.jsonl.gz", "b", "documents"])
def test_nothing_is_written_beside_files_of_others(run: Run, tmp_path: Path, cache: Path, target: str) -> None:
    foreign = tmp_path / "foreign"
    for name in ("a/en.jsonl.gz", "b/en.jsonl.gz", "documents/en.jsonl.gz"):
        write_rows(foreign / name, [document("1", name)])
    if not target:
        shutil.rmtree(foreign / "documents")  # with it, it is a dataset
    before = tree(foreign, bookkeeping=True)
    for read in (1 + (not target), 0):
        found = run("stats", foreign / target if target else foreign, "--json").json
        assert found["inputs"]["read"] == read
    assert tree(foreign, bookkeeping=True) == before
    assert kept(cache) == {"stats"}


def test_without_a_home_nothing_is_kept(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> str:
        raise RuntimeError

    monkeypatch.setattr(stats_cache, "cache_folder", no_home)
    path = write_rows(tmp_path / "en.jsonl", [document("1", "x")])
    ran = run("stats", path)
    assert (ran.code, "what is counted is not kept: expected a home folder" in ran.err) == (0, True)
    assert list(tree(tmp_path, bookkeeping=True)) == ["en.jsonl"]


def test_files_of_one_name_are_told_apart(run: Run, tmp_path: Path, cache: Path) -> None:
    paths = [write_rows(tmp_path / name / "en.jsonl", [document("1", name)] * n) for n, name in enumerate("abc", 1)]
    for _ in range(2):
        (table,) = run("stats", *paths, "--by", "source", "--json").json["tables"]
        assert table["total"]["documents"] == 6


@pytest.mark.slow
def test_no_record_of_a_mix_is_taken_for_data(mixed: Project) -> None:
    """Neither intermediates nor what failed, nor entries of blocklists that matched nothing."""
    mixed.config["tag"] = {"shape": "line_shape"}
    mixed.ok("tag")
    mixed.config["mix"]["attributes"] = ["said", "shape"]
    path = mixed.attributes / "shape" / SHARDS[1]
    sound = path.read_bytes()
    path.write_bytes(sound[:-9])
    (mixed.root / "list.txt").write_text("nobody\n")
    mixed.config["mix"]["rules"] = [{"drop": "blocklist", "files": str(mixed.root / "list.txt")}]
    assert mixed("mix").code == 1
    records = [path for path in tree(mixed.out, bookkeeping=True) if "/stage/" in path]
    assert len(records) == 2
    assert matched(mixed.out) == []
    assert list(FailureRecords(str(mixed.out / ".toolkit"), "mix").load()) == [SHARDS[1]]
    path.write_bytes(sound)
    mixed.ok("mix")
    assert (mixed.out / ".toolkit" / "unmatched.tsv").exists()
    assert matched(mixed.out) == []


@pytest.mark.slow
def test_a_description_stays_true_when_somebody_counts(mixed: Project) -> None:
    about: dict[str, Any] = {"name": "x", "description": "y", "license": "https://spdx.org/licenses/CC0-1.0.html"}
    about |= {"url": "https://example.org/", "creator": {"type": "Organization", "name": "z"}, "version": "1.0.0"}
    mixed.config["about"] = about | {"date_published": "2026-01-31", "citation": "@misc{x}"}
    mixed.ok("croissant")
    described = (mixed.out / "croissant.json").read_bytes()
    mixed.run("stats", mixed.out)
    assert mixed.run("validate", mixed.out / "croissant.json").code == 0
    mixed.ok("croissant")
    assert (mixed.out / "croissant.json").read_bytes() == described
