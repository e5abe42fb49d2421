"""Configurations of the Dolma toolkit, beside what Dolma 1.2.1 itself wrote for them, and where we mean to differ."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.marks import slow
from tests.pipeline.conftest import JsonRows, attributes, document, read_rows, sha256sum_accepts, tree, write_rows
from tests.pipeline.dolma import SHARD, TEN, Dolma, files, filtered, outputs, refused
from toolkit.config.settings import ConfigNode, parse
from toolkit.errors import ConfigError
from toolkit.interop.dolma.mixer import read_mixer
from toolkit.interop.dolma.tagger import read_tagger

CASES = json.loads(Path(__file__).with_name("dolma_cases.json").read_text(encoding="utf-8"))
TAGS = json.loads(Path(__file__).with_name("dolma_tags.json").read_text(encoding="utf-8"))
"""Their first keys say where they come from."""
RECORDED = [each for each in CASES["cases"] if "expected" in each]


def in_any_order(found: dict[str, JsonRows]) -> dict[str, list[str]]:
    return {name: sorted(json.dumps(row, sort_keys=True) for row in rows) for name, rows in found.items()}


def write_data(root: Path, name: str, *, only_documents: bool = False) -> None:
    data = CASES["data"][name]
    for folder, shards in {
        "documents": data["documents"],
        **{f"attributes/{k}": v for k, v in data["attributes"].items()},
    }.items():
        if only_documents and folder != "documents":
            continue
        for shard, rows in shards.items():
            write_rows(root / folder / shard, [row.encode() if isinstance(row, str) else row for row in rows])


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in CASES["cases"] if each["name"] == name)
    return found


def prepared(dolma: Dolma, each: dict[str, Any], **changes: Any) -> Dolma:
    write_data(dolma.data, each["data"])
    dolma.config = {**each["config"], **changes}
    return dolma


# --- what is the same -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [*RECORDED[::2], *slow(*RECORDED[1::2])], ids=lambda each: each["name"])
def test_a_mix_gives_what_dolma_gives(dolma: Dolma, each: dict[str, Any]) -> None:
    prepared(dolma, each).ok()
    assert in_any_order(outputs(dolma.out)) == in_any_order(each["expected"])


@pytest.mark.parametrize("each", [c for c in CASES["cases"] if "lines" in c], ids=lambda each: each["name"])
def test_compat_strict_gives_the_bytes_and_files_that_dolma_gives(dolma: Dolma, each: dict[str, Any]) -> None:
    prepared(dolma, each).ok()
    found = {path.name: gzip.decompress(path.read_bytes()).decode().splitlines() for path in files(dolma.out)}
    assert found == each["lines"]


def with_values(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the keys that have no spans: Dolma leaves them out, we write ``[]``."""
    return row | {"attributes": {key: spans for key, spans in row["attributes"].items() if spans}}


@pytest.mark.parametrize("each", CASES["tagging"], ids=["experiment", "no-experiment"])
def test_taggers_write_what_dolmas_write(dolma: Dolma, each: dict[str, Any]) -> None:
    write_data(dolma.data, each["data"], only_documents=True)
    dolma.config = each["config"]
    dolma.ok(command="tag")
    for path, lines in each["attributes"].items():
        assert [with_values(row) for row in read_rows(dolma.data / "attributes" / path)] == list(map(json.loads, lines))
    if "mix" in each:
        dolma.config = each["mix"]
        dolma.ok()
        assert in_any_order(outputs(dolma.out)) == in_any_order(each["expected"])


def test_the_same_words_as_dolmas(dolma: Dolma) -> None:
    dolma.put([TEN], [{"s": [[0, 4, 1.0]]}])
    dolma.ok()
    assert json.loads(dolma.run("-c", dolma.root / "config.json", "mix", "--json").out)["already"]


def test_a_pattern_that_filters_and_selects(dolma: Dolma) -> None:
    dolma.put([TEN, "one"], [{}, {"s": [[0, 1, 1.0]]}])
    dolma.stream["filter"] = {"exclude": ["$.attributes.s"]}
    dolma.ok()
    assert dolma.texts() == {"d0": TEN}


def test_yaml_and_overrides(dolma: Dolma) -> None:
    dolma.put([TEN], [{"s": [[0, 4, 1.0]]}])
    dolma.ok("streams.0.span_replacement.0.replacement=_", "streams.0.name=t", suffix="yaml")
    assert outputs(dolma.out)["t"][0]["text"] == "_456789"
    text = "streams:\n- name: s\n  output: {path: out, max_size_in_bytes: 1_000_000_000}\n"
    with pytest.raises(ConfigError, match="expected `documents:`"):
        read_mixer(parse(text, "c.yaml"))


def test_the_page_for_users_of_dolma_shows_one_mix_twice(dolma: Dolma, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "dolma.md").read_text(encoding="utf-8")
    write_data(dolma.data / "web", "one")
    monkeypatch.chdir(dolma.root)
    rows = []
    for name, text in zip(
        ("mixed", "own"), re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE), strict=True
    ):
        Path(f"{name}.yaml").write_text(text)
        ran = dolma.run("mix", "-c", f"{name}.yaml", "processes=1").succeeds()
        rows.append(gzip.decompress((dolma.data / name / "web-0000.jsonl.gz").read_bytes()))
        if name == "mixed":
            assert re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0] in ran.err
    assert rows[0] == rows[1]
    assert rows[0].count(b"|||EMAIL|||") == 3


# --- numbers and spans ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ids"),
    [("strict: 1 is not 1.0", "d1 d2 d4 d6"), ("strict: >= of the deduper's 1 with 1.0", "d1 d3 d4 d5")],
)
def test_1_and_1_0_are_one_number(dolma: Dolma, name: str, ids: str) -> None:
    prepared(dolma, case(name), compat="meaning").ok()
    assert sorted(dolma.texts()) == ids.split()


def test_ends_past_the_text_are_clamped_where_dolma_is_obeyed(dolma: Dolma) -> None:
    """Its deduper compares bytes with code points, so it writes them for texts that are not ASCII."""
    text = "été 12"
    dolma.put([text, "plain"], [{"s": [[4, 9, 1.0]]}, {"s": [[5, 6, 1.0], [1, 2, 1.0]]}])
    ran = dolma()
    assert (ran.code, outputs(dolma.out)) == (1, {})
    assert "expected spans between 0 and 6, got [4, 9]; `past_end: clamp`" in ran.err
    dolma.config["compat"] = "strict"
    dolma.config["streams"][0]["name"] = "my stream"  # files are called like it
    edits = json.loads(dolma.ok("--dry-run", "--json").out)["rules"][0]
    assert (edits["spans"], edits["chars"]) == (3, 7)
    ran = dolma.ok("--json")
    assert [path.name for path in dolma.out.glob("*.gz")] == ["my stream-0000.json.gz"]
    assert dolma.texts() == {"d0": "été ", "d1": "pain"}
    assert "spans clamped to the end of the text" in ran.out
    counts = json.loads((dolma.out / ".toolkit" / "manifest.json").read_bytes())["counts"]
    assert counts["spans clamped to the end of the text"] == 2
    dolma.put([text], [{"s": [[7, 9, 1.0]]}])
    dolma().fails(1, "expected spans between 0 and 6, got [7, 9]")


def test_overlaps_are_one_span_and_empty_spans_none(dolma: Dolma) -> None:
    spans: dict[str, Any] = {
        "01<234567>89": [[[2, 6, 1.0], [4, 8, 1.0]], [[2, 8, 1.0], [4, 6, 1.0]], [[2, 6, 1.0], [2, 8, 1.0]]],
        "01<23>456789": [[[2, 4, 1.0], [2, 4, 1.0]]],
        "01234<56>789": [[[3, 3, 1.0], [5, 7, 1.0]]],
        TEN: [[[3, 3, 1.0]], [[10, 10, 1.0]]],
    }
    marked = [text for text, each in spans.items() for _ in each]
    dolma.put([TEN] * len(marked), [{"s": each} for values in spans.values() for each in values])
    dolma.ok()
    assert [*dolma.texts().values()] == [re.sub("<.*>", "", text) for text in marked]
    dolma.stream["span_replacement"][0]["replacement"] = "<{}>"
    dolma.ok()
    assert [*dolma.texts().values()] == marked


def test_what_is_no_span_of_the_text_is_an_error(dolma: Dolma) -> None:
    wrong: dict[str, Any] = {
        "expected spans between 0 and 10, got [8, 12]": [[8, 12, 1.0]],
        "got [12, 15]": [[12, 15, 1.0]],
        "got [6, 3]": [[6, 3, 1.0]],
        "got [-2, 4]": [[-2, 4, 1.0]],
        "got [[2.0, 4.0, 1.0]]": [[2.0, 4.0, 1.0]],
        "got [[2, 4, None]]": [[2, 4, None]],
        "got [[2, 4, True]]": [[2, 4, True]],
        "expected spans, a list of [start, end, score], got [[2, 4]]": [[2, 4]],
        "got [2, 4, 0.9]": [2, 4, 0.9],
        "got [['2', '4', 0.9]]": [["2", "4", 0.9]],
        "got 3": 3,
        "got 'x'": "x",
        "got {'a': 1}": {"a": 1},
    }
    for number, spans in enumerate(wrong.values()):
        dolma.put(["first", TEN], [{"s": []}, {"s": spans}], f"{number}.json.gz")
    by_jq = {"span": ".attributes.s | .", "min_score": 0, "syntax": "jq"}
    for how in ({}, {"span_replacement": [by_jq]}):
        dolma.stream.update(how)
        told = dolma().fails(1, f"{len(wrong) - bool(how)} failed").err.splitlines()
        for number, words in enumerate(wrong):
            lines = [line for line in told if f"/{number}.json.gz:2: " in line and "'d1'" in line]
            if how and words == "got [[2.0, 4.0, 1.0]]":  # jq knows one type of numbers
                assert lines == []
            else:
                assert [line for line in lines if how or words in line], (words, told)
        assert files(dolma.out) == []


def test_a_field_that_is_no_text_replaces_nothing(dolma: Dolma) -> None:
    dolma.put([TEN], [{"s": [[2, 4, 1.0]]}])
    dolma.stream["span_replacement"][0]["replacement"] = "$.metadata.name"
    refused(dolma(), dolma, "expected a text at '$.metadata.name', to replace spans by, got None", "'d0'")


# --- attributes and documents that are not what they should be --------------------------------------------------------


def broken(dolma: Dolma, how: str) -> None:
    rows = ["zero", "one", "two"]
    values: list[Any] = [{"s": []}] * 3
    path = dolma.put(rows, values)
    documents = dolma.data / "documents" / SHARD
    match how:
        case "missing":
            path.unlink()
        case "short":
            dolma.put(rows, values[:2])
        case "long":
            dolma.put(rows, [*values, {}])
        case "misaligned":
            lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
            path.write_bytes(gzip.compress(b"".join([lines[0], lines[2], lines[1]])))
        case "cut":
            path.write_bytes(path.read_bytes()[:-12])
        case "documents cut":
            documents.write_bytes(documents.read_bytes()[:-12])
        case "no attributes":
            write_rows(path, [{"id": f"d{i}", "source": "s"} for i in range(3)])


@pytest.mark.parametrize("other", [True, *slow(False)], ids=["beside-others", "alone"])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("missing", ["attributes/m/x.json.gz:1: ", "got no such file", "'d0'"]),
        ("short", ["attributes/m/x.json.gz:3: ", "got the end of the file", "'d2'"]),
        ("long", ["attributes/m/x.json.gz:4: ", "'d3'"]),
        ("misaligned", ["attributes/m/x.json.gz:2: ", "got those of 'd2'", "'d1'"]),
        ("cut", ["attributes/m/x.json.gz", "truncated"]),
        ("documents cut", ["documents/x.json.gz", "truncated"]),
        ("no attributes", ["attributes/m/x.json.gz:1: ", "attributes", "'d0'"]),
    ],
)
def test_attributes_that_do_not_fit_are_errors(dolma: Dolma, how: str, words: list[str], other: bool) -> None:
    broken(dolma, how)
    if other:
        dolma.put(["zero"], [{"s": [[0, 1, 1.0]]}], "a.json.gz")
    refused(dolma(), dolma, *words)


@pytest.mark.parametrize("rule", [{"include": ["$.attributes.s"]}, {"exclude": [".attributes.s"], "syntax": "jq"}])
@pytest.mark.parametrize("how", ["missing", "cut", "no attributes"])
def test_a_file_that_cannot_be_read_is_not_taken_for_a_key_that_is_not_there(
    dolma: Dolma, rule: dict[str, Any], how: str
) -> None:
    broken(dolma, how)
    filtered(dolma, **rule)
    refused(dolma(), dolma, "attributes/m/x.json.gz")


def test_the_dedupers_rows_without_attributes(dolma: Dolma) -> None:
    dolma.put(["zero", "one", "two"], [[], {}, {"s": [[0, 1, 1]]}])
    dolma.ok()
    assert dolma.texts() == {"d0": "zero", "d1": "one", "d2": "wo"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b'{"id": "d0", "text": "x"}', "expected field source"),
        (b'{"id": "d0", "text": "x", "source": "s", "metadata": "m"}', "$.metadata"),
        (b'{"id": "d0", "text": "x", "source": "s", "metadata": [1]}', "$.metadata"),
        (b'{"id": "d0", "source": "s"}', "text"),
        (b'{"id": "d0", "text": "x", "source": "s"', "truncated"),
    ],
)
def test_documents_that_are_none_are_errors(dolma: Dolma, row: bytes, words: str) -> None:
    dolma.put([row], [{"s": []}])
    refused(dolma(), dolma, f"documents/{SHARD}:1: ", words, "'d0'")


# --- filters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        (".attributes.k[0][2] > 0.5", "d1 d2"),  # an error to Dolma
        ("(.attributes.k[0]?[2]?) < 0.5", "d0"),  # `d0 d1` to Dolma, where null[0]? has no result
        ("[.attributes.k[]?[2]] | any(. < 0.5)", "d0 d1"),
        (".attributes.f", "d0 d2"),  # `d0` to Dolma, where 0.0 is true and 0 is false
    ],
)
def test_jq_is_that_of_jq(dolma: Dolma, pattern: str, ids: str) -> None:
    dolma.put(["zero", "one", "two"], [{"k": [[0, 1, 0.9]]}, {"f": 1.5}, {"k": [[0, 1, 0.1]], "f": 0.0}])
    filtered(dolma, exclude=[pattern], syntax="jq")
    dolma.ok()
    assert " ".join(sorted(dolma.texts())) == ids


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"include": ["$.attributes[?(@.k ~= 'x')]"]}, "`~=` is not supported; write it in jq (`syntax: jq`)"),
        ({"include": ["$.attributes[?(@.k == 9007199254740993)]"]}, "is not supported"),
        ({"include": ["$.attributes["]}, "expected a JSONPath"),
        ({"exclude": [".attributes ||"], "syntax": "jq"}, "expected a jq filter"),
    ],
)
def test_what_is_no_filter_here_is_refused(dolma: Dolma, how: dict[str, Any], words: str) -> None:
    dolma.put(["zero"], [{"k": 1}])
    filtered(dolma, **how)
    dolma().fails(2, words)


def test_how_filters_run_is_told(dolma: Dolma) -> None:
    dolma.put(["zero"], [{"k": 1}])
    filtered(dolma, exclude=["$.attributes[?(@.k > 1)]", "$..z"])
    assert dolma.ok().err.splitlines()[-4:-2] == [
        "1 of 2 patterns of the stream s run compiled",
        "runs in the library of its language, for each document: $..z",
    ]
    dolma.stream["filter"]["exclude"] = ["$.attributes[?(@.k > 2)]", "$..y"]
    assert dolma.ok("--quiet").err == ""


# --- what is written --------------------------------------------------------------------------------------------------


def test_numbers_and_the_order_of_keys_stay(dolma: Dolma) -> None:
    row = (
        b'{"z":1.10,"text":"0123456789","metadata":{"n":12345678901234567890123,"b":1E3,"a":2},"id":"d0","source":"s"}'
    )
    path = dolma.put([row], [{}])
    write_rows(path, [b'{"id":"d0","attributes":{"z":1.50,"s":[[2,4,1.0]],"a":123456789012345678901},"source":"s"}'])
    dolma.ok()
    assert [path.name for path in files(dolma.out)] == ["s-0000.jsonl.gz"]
    assert gzip.decompress((dolma.out / "s-0000.jsonl.gz").read_bytes()) == (
        b'{"z":1.10,"text":"01456789","metadata":{"n":12345678901234567890123,"b":1E3,"a":2,"provenance":"x.json.gz:1"},'
        b'"id":"d0","source":"s","attributes":{"z":1.50,"s":[[2,4,1.0]],"a":123456789012345678901}}\n'
    )


def test_the_text_is_trimmed_as_by_dolma(dolma: Dolma) -> None:
    dolma.put(["\x1f\x1c", "\u2003\x85\u3000"], [{}, {}])
    dolma.stream["output"]["min_text_length"] = 1
    ran = dolma.ok("--json")
    assert list(dolma.texts()) == ["d0"]
    assert ran.json["counts"]["documents below min_text_length"] == 1


def test_max_size_in_bytes_bounds_what_is_uncompressed(dolma: Dolma) -> None:
    dolma.put(["x" * 300] * 20, [{}] * 20)
    dolma.stream["output"]["max_size_in_bytes"] = 1000
    dolma.ok()
    sizes = [len(gzip.decompress(path.read_bytes())) for path in files(dolma.out)]
    assert len(sizes) == 10
    assert max(sizes) <= 1000
    assert [path.name for path in files(dolma.out)][-1] == "s-0009.jsonl.gz"


def test_beside_the_rows_there_are_a_checksum_file_and_bookkeeping(dolma: Dolma) -> None:
    dolma.put(["zero"], [{}])
    dolma.config["streams"].append({**dolma.stream, "name": "none", "filter": {"exclude": ["$.text"]}})
    dolma.ok()
    assert sorted(path.name for path in dolma.out.iterdir()) == [".toolkit", "s-0000.jsonl.gz", "s_sha256.txt"]
    assert sha256sum_accepts(dolma.out / "s_sha256.txt")


@pytest.mark.parametrize(
    ("compression", "names"),
    [
        ({"input": "infer", "output": "infer"}, ["s-0000.jsonl.gz"]),
        ({"input": "gz", "output": "gz"}, ["s-0000.jsonl.gz"]),
        ({"output": "zst"}, ["s-0000.jsonl.zst"]),
    ],
)
def test_compressions(dolma: Dolma, compression: dict[str, str], names: list[str]) -> None:
    dolma.put(["zero"], [{}])
    dolma.stream["compression"] = compression
    dolma.ok()
    assert [path.name for path in files(dolma.out)] == names
    assert dolma.texts() == {"d0": "zero"}


# --- reruns and looks -------------------------------------------------------------------------------------------------


def test_a_rerun_does_nothing_and_a_changed_filter_does_it_again(dolma: Dolma) -> None:
    dolma.put(["zero", "one"], [{"k": 1}, {"k": 2}])
    filtered(dolma, exclude=["$.attributes[?(@.k == 1)]"])
    dolma.ok()
    before = tree(dolma.out, bookkeeping=True)
    assert dolma.ok("--json").json["already"]
    assert tree(dolma.out, bookkeeping=True) == before
    dolma.stream["filter"]["exclude"] = ["$.attributes[?(@.k == 2)]"]
    dolma.ok()
    assert list(dolma.texts()) == ["d0"]
    dolma.config["compat"] = "strict"
    dolma.ok()
    assert [path.name for path in files(dolma.out)] == ["s-0000.json.gz"]


def test_a_dry_run_writes_nothing(dolma: Dolma) -> None:
    dolma.put(["zero", "one"], [{"k": 1}, {"k": 2}])
    filtered(dolma, exclude=["$.attributes[?(@.k == 1)]"])
    dolma.config["dryrun"] = True
    assert re.search(r"\$\.attributes\[\?\(@\.k == 1\)\] +drops +1  50\.0 %", dolma.ok().out)
    assert not dolma.out.exists()
    dolma.config = {"documents": ["DATA/documents/*.gz"], "taggers": ["char_length_v1"], "dryrun": True}
    assert "char_length_v1" in dolma.ok(command="tag").out
    assert not (dolma.data / "attributes" / "char_length_v1").exists()


def test_explain(dolma: Dolma) -> None:
    dolma.put(["zero", TEN], [{"k": 1, "s": []}, {"k": 2, "s": [[2, 4, 1.0]]}])
    dolma.stream["filter"] = {"exclude": ["$.attributes[?(@.k == 1)]"]}
    assert "dropped by '$.attributes[?(@.k == 1)]'" in dolma.ok("--explain", "d0").out
    shown = dolma.ok("--explain", "d1").out
    assert re.search(r"\$\.attributes\[\?\(@\.k == 1\)\] +does not drop it", shown)
    assert re.search(r"\$\.attributes\.s +edits 1 spans", shown)
    assert not dolma.out.exists()


# --- where things are -------------------------------------------------------------------------------------------------


def test_documents_in_several_folders(dolma: Dolma) -> None:
    for root in ("a", "b"):
        part = Dolma(dolma.root / root, dolma.run)
        part.put([document(f"{root}0", TEN)], None)
        write_rows(
            part.data / "attributes" / "m" / SHARD, [attributes(f"{root}0", {"s": [[0, 1 + (root == "b"), 1.0]]})]
        )
    dolma.stream["documents"] = [f"{dolma.root}/{root}/data/documents/*.gz" for root in "ab"]
    dolma.ok()
    assert dolma.texts() == {"a0": TEN[1:], "b0": TEN[2:]}
    dolma.stream["documents"] = [f"{dolma.root}/*/data/documents"]
    assert dolma.ok("--json").json["already"]


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that may not be written in, as far as can be asked; tests may be run by root."""
    monkeypatch.setattr(os, "access", lambda path, mode: "data" not in str(path).split("/") and bool(mode))


@pytest.mark.usefixtures("unwritable")
def test_inputs_that_may_not_be_written_to(dolma: Dolma) -> None:
    dolma.put([TEN], [{"s": [[0, 1, 1.0]]}])
    before = tree(dolma.data, bookkeeping=True)
    dolma.ok()
    assert dolma.texts() == {"d0": TEN[1:]}
    assert dolma.ok("--json").json["already"]
    assert tree(dolma.data, bookkeeping=True) == before
    assert (dolma.out / ".toolkit" / "inputs").is_dir()


def test_a_document_that_two_globs_match_comes_once(dolma: Dolma) -> None:
    dolma.put(["zero"], [{}])
    dolma.stream["documents"].append(f"DATA/documents/{SHARD}")
    dolma.ok()
    assert [row["id"] for row in outputs(dolma.out)["s"]] == ["d0"]


def test_documents_that_are_in_no_folder_of_that_name(dolma: Dolma) -> None:
    write_rows(dolma.data / "raw" / SHARD, [document("d0", "zero")])
    dolma.stream["documents"] = ["DATA/raw/*.gz"]
    dolma().fails(2, "expected a folder `documents` in the path")
    del dolma.stream["attributes"]
    filtered(dolma, include=["$.text"])
    dolma.ok()
    assert dolma.texts() == {"d0": "zero"}
    assert sorted(path.name for path in (dolma.data / "raw").iterdir()) == [SHARD]


def test_shuffle_false_with_inputs_of_one_name(dolma: Dolma) -> None:
    for root in ("a", "b"):
        write_rows(dolma.root / root / "documents" / SHARD, [document(f"{root}0", root)])
    filtered(dolma, include=["$.text"])
    dolma.stream.update({"documents": [f"{dolma.root}/{root}/documents/*.gz" for root in "ab"], "attributes": []})
    dolma.stream["name"] = "a name "  # which is that of no file here
    dolma.config["shuffle"] = False
    dolma().succeeds()
    assert dolma.texts() == {"a0": "a", "b0": "b"}


# --- configurations ---------------------------------------------------------------------------------------------------

MIXER = """streams:
  - name: web
    documents: ${d.glob:HERE/documents/*.gz}
    attributes: ["${oc.env:NOT_SET, tags}"]
    span_replacement:
      - {span: $.attributes.s, min_score: "${oc.env:SCORE}", replacement: "${oc.env:TEXT}"}
    output: {path: "HERE/${streams[0].name}/${SCORE}"}
processes: ${d.processes:1}
work_dir: {input: x}
"""


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORE", "0.5")
    monkeypatch.setenv("TEXT", "[x")
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


@pytest.mark.usefixtures("variables")
def test_interpolations(tmp_path: Path) -> None:
    (found,) = read_mixer(parse(MIXER.replace("HERE", str(tmp_path)), "c.yaml")).configs
    assert found["processes"] == 7
    assert found["mix"]["output"]["path"] == f"{tmp_path}/web/0.5"
    stream = found["mix"]["streams"]["web"]
    assert stream["attributes"] == ["tags"]
    assert stream["dataset"]["documents"] == {"path": f"{tmp_path}/documents", "include": ["*.gz"]}
    assert (stream["rules"][0]["min_score"], stream["rules"][0]["by"]) == (0.5, "[x")


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("streams[0].name", "streams[0].version", "c.yaml:7: streams[0].output.path: expected a key of this config"),
        ("streams[0].name", "streams[1].name", "expected a key of this configuration in ${…}, got 'streams[1].name'"),
        ("oc.env:NOT_SET, tags", "oc.env:NOT_SET", "c.yaml:4: streams[0].attributes[0]: expected the environment"),
        ("d.processes:1", "d.processes:x", "c.yaml:8: processes: expected a number of processes to leave, got 'x'"),
        ("input: x", "input: '${work_dir.input}'", "c.yaml:9: work_dir.input: expected a reference that ends"),
        ("d.processes:1", "d.cache:x", "expected oc.env, d.processes or d.glob in ${…}, got 'd.cache'"),
    ],
)
def test_interpolations_that_lead_nowhere(old: str, new: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read_mixer(parse(MIXER.replace(old, new), "c.yaml"))


@pytest.mark.usefixtures("unwritable")
def test_attributes_need_a_folder_that_may_be_written_in(dolma: Dolma) -> None:
    dolma.put(["zero"])
    source = ConfigNode(dolma.place({"documents": ["DATA/documents/*.gz"], "taggers": ["char_length_v1"]}), "c.yaml")
    with pytest.raises(ConfigError, match="expected a folder that may be written in"):
        read_tagger(source)


def test_ignore_existing_tags_again(dolma: Dolma) -> None:
    dolma.put(["zero"])
    dolma.config = {"documents": ["DATA/documents/*.gz"], "taggers": ["char_length_v1"], "experiment": "e"}
    dolma.ok(command="tag")
    dolma.config["taggers"].append("doc_count_v1")
    assert "settings" in dolma(command="tag").err
    dolma.config["ignore_existing"] = True
    dolma.ok(command="tag")
    assert read_rows(dolma.data / "attributes" / "e" / SHARD)[0]["attributes"] == {
        "e__char_length_v1__length": [[0, 4, 4.0]],
        "e__doc_count_v1__docs": [[0, 4, 1.0]],
    }


def test_each_command_takes_its_own_configuration(dolma: Dolma) -> None:
    dolma.put(["zero"])
    assert "expected a configuration of the tagger, with `taggers:`" in dolma(command="tag").err
    dolma.config = {"documents": ["DATA/documents/*.gz"], "taggers": ["char_length_v1"]}
    assert "expected a configuration of the mixer, with `streams:`" in dolma().err


# --- all taggers ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tagged(dolma: Dolma) -> Dolma:
    """The made-up documents, and a configuration with the taggers that Dolma itself ran on them."""
    for shard, rows in TAGS["documents"].items():
        write_rows(dolma.data / "documents" / f"{shard}.jsonl.gz", rows)
    (dolma.root / "bad.txt").write_text("\n".join(TAGS["bad_words"]))
    dolma.config = {
        "documents": ["DATA/documents/*.gz"],
        "taggers": TAGS["taggers"],
        "experiment": "my-exp",
        "bad_words": str(dolma.root / "bad.txt"),
    }
    return dolma


def as_dolma(values: dict[str, Any], taggers: list[str]) -> dict[str, Any]:
    """Our values of these taggers as Dolma has them: without empty lists, each licence of `cc_re` by itself."""
    values = values | {f"my_exp__cc_re__{name}": spans for name, spans in values.pop("my_exp__cc_re").items()}
    return {key: spans for key, spans in values.items() if spans and key.split("__")[1] in taggers}


def test_every_tagger_that_runs_without_a_model_writes_what_dolmas_writes(tagged: Dolma) -> None:
    assert "_v1__" not in tagged.ok(command="tag").err
    stops = {"a": set[str](), "b": {"pii_regex_v1", "pii_regex_with_counts_v2"}}
    for shard, expected in TAGS["attributes"].items():
        rows = read_rows(tagged.data / "attributes" / "my-exp" / f"{shard}.jsonl.gz")
        taggers = [name for name in TAGS["taggers"] if name not in stops[shard]]
        for row, made, values in zip(rows, TAGS["documents"][shard], expected, strict=True):
            found = as_dolma(row["attributes"], taggers)
            assert found == values, made
            assert json.dumps(found, sort_keys=True) == json.dumps(values, sort_keys=True), "floats as floats"


def test_dolmas_list_of_bad_words_is_fetched_unless_another_is_given(tagged: Dolma) -> None:
    del tagged.config["bad_words"]
    (found,) = read_tagger(ConfigNode(tagged.place(tagged.config), "c.yaml")).configs
    given = [entry["bad_words"] for entry in found["tag"]["my-exp"] if "bad_words" in entry]
    assert [url.rpartition("/")[0].rpartition("/")[2][:8] for url in given] == ["25e679f0"] * 2


def test_what_dolma_stops_at_has_values(tagged: Dolma) -> None:
    tagged.config["taggers"] = ["pii_regex_v1", "pii_regex_with_counts_v2", "pii_regex_v1", "cc_re", "cc_re_fast"]
    for row in TAGS["documents"]["b"]:
        row = {**row, "metadata": {}}
        write_rows(tagged.data / "documents" / "b.jsonl.gz", [row])
        tagged.ok("--overwrite", command="tag")
        (found,) = read_rows(tagged.data / "attributes" / "my-exp" / "b.jsonl.gz")
        values = {key: value for key, value in found["attributes"].items() if value}
        size = len(row["text"])
        assert values == {
            "my_exp__pii_regex_v1__doc": [[0, size, -1.0]],
            "my_exp__pii_regex_with_counts_v2__doc": [[0, size, -1.0]],
            "my_exp__pii_regex_with_counts_v2__doc_count": [[0, size, 0.0]],
        }


def test_random_numbers_are_those_of_the_documents(dolma: Dolma) -> None:
    dolma.config = {"documents": ["DATA/documents/*.gz"], "taggers": ["random_number_v1"]}
    found: list[dict[str, float]] = []
    for order in (1, -1):
        rows = [document(f"d{i}", "x" * order) for i in range(20)][::order]
        write_rows(dolma.data / "documents" / SHARD, rows)
        dolma.ok(command="tag")
        key = "random_number_v1__random_number_v1__random"
        written = read_rows(dolma.data / "attributes" / "random_number_v1" / SHARD)
        found.append({row["id"]: row["attributes"][key][0][2] for row in written})
    assert found[0] == found[1]
    assert len(set(found[0].values())) == 20
