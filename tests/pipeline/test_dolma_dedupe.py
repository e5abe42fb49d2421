"""Configurations of Dolma's deduper: what they become, in our form and in Dolma's; what is refused."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.marks import slow
from tests.pipeline.conftest import Folder, JsonRows, document, read_rows, write_rows

TEXTS = {
    "a": "one\ntwo\n\nthree",
    "b": "two\r\nfour\n \nnaïve 🙂",
    "c": "naïve 🙂\none\n \ntwo\nfive",
    "d": "one\ntwo\n\nthree",
    "e": "",
}


@pytest.fixture
def dolma(tmp_path: Path, run: Run) -> Folder:
    """Two files below two folders, and a configuration over both."""
    rows = [document(id, text, metadata={"url": f"u{len(text)}", "deep": {"er": id}}) for id, text in TEXTS.items()]
    rows[-1]["metadata"] = {}
    write_rows(tmp_path / "data" / "documents" / "x" / "0.jsonl.gz", rows[:2])
    write_rows(tmp_path / "data" / "documents" / "y" / "0.jsonl.gz", rows[2:])
    config = {
        "documents": [f"{tmp_path}/data/documents/*/*.gz"],
        "work_dir": {"input": "/tmp/in", "output": "/tmp/out"},
        "dedupe": {"name": "dups", "paragraphs": {"attribute_name": "dup_par"}, "skip_empty": True},
        "bloom_filter": {
            "file": f"{tmp_path}/filter.bin",
            "read_only": False,
            "estimated_doc_count": 60000000000,
            "desired_false_positive_rate": 1e-6,
        },
        "processes": 1,
    }
    return Folder(tmp_path, run, config)


def dedup(dolma: Folder, *arguments: str) -> Ran:
    path = dolma.root / "dedupe.json"
    path.write_text(json.dumps(dolma.config))
    return dolma.run("dedup", "-c", path, *arguments)


def rows(dolma: Folder, name: str = "dups") -> JsonRows:
    return [row for path in sorted((dolma.data / "attributes" / name).rglob("*.gz")) for row in read_rows(path)]


def values(dolma: Folder, key: str, name: str = "dups") -> dict[str, Any]:
    return {row["id"]: row["attributes"][key] for row in rows(dolma, name)}


def cut(id: str, spans: list[list[float]]) -> list[str]:
    return [TEXTS[id][int(a) : int(b)] for a, b, _ in spans]


def test_a_filter_of_spans_is_refused_where_the_set_has_our_form(dolma: Folder) -> None:
    """It would match nothing, and so keep all repeats."""
    dolma.config["dedupe"] = {"name": "dups", "documents": {"key": "$.text", "attribute_name": "dup"}}
    exclude = ["$.attributes[?(@.dup && @.dup[0] && @.dup[0][2] >= 1)]"]
    stream = {"name": "all", "documents": dolma.config["documents"], "filter": {"exclude": exclude}}
    mixer = dolma.root / "mixer.json"
    for form, name in (("own", "dups"), ("dolma", "spans")):
        dedup(dolma, f"form={form}", f"dedupe.name={name}").succeeds()
        output = {"path": f"{dolma.root}/{form}"}
        mixer.write_text(json.dumps({"streams": [stream | {"attributes": [name], "output": output}], "processes": 1}))
        ran = dolma.run("mix", "-c", mixer)
        if form == "own":
            ran.fails(
                2, "expected a pattern that can match the values (dup: {duplicate_of: list[str] | null, copies: int})"
            )
    mixed = [row["id"] for path in sorted((dolma.root / "dolma").rglob("*.gz")) for row in read_rows(path)]
    assert mixed == ["a", "b", "c", "e"]


def test_lines_in_both_forms(dolma: Folder) -> None:
    ran = dedup(dolma, "--json").succeeds()
    assert ran.json["sets"]["dups"]["kind"] == "exact"
    found = values(dolma, "dup_par")
    assert found["c"]["seen"] == [True, True, False, True, False]
    assert (found["a"]["spans"], found["d"]["chars_seen"]) == ([], len(TEXTS["d"]) - 1)
    dedup(dolma, "form=dolma", "dedupe.name=spans").succeeds()
    found = values(dolma, "dup_par", "spans")
    assert {id: cut(id, spans) for id, spans in found.items()} == {
        "a": [],
        "b": [],  # "two\r" is another line in Dolma
        "c": ["naïve 🙂\n", "one\n", "two\n"],
        "d": ["one\n", "two\n", "three"],
        "e": [],
    }
    assert {score for spans in found.values() for _, _, score in spans} == {1}
    assert rows(dolma, "spans")[1] == {"source": "s", "id": "b", "attributes": {"dup_par": []}}
    assert not (dolma.root / "filter.bin").exists()


def test_without_skip_empty_white_space_is_compared(dolma: Folder) -> None:
    dolma.config["dedupe"]["skip_empty"] = False
    assert dedup(dolma, "form=dolma").code == 0
    assert cut("c", values(dolma, "dup_par")["c"]) == ["naïve 🙂\n", "one\n", " \n", "two\n"]


@pytest.mark.parametrize(
    ("key", "copies"),
    [
        ("$.text", {"d": "a"}),
        ("$.source", {"b": "a", "c": "a", "d": "a", "e": "a"}),
        *slow(
            ("$.metadata.url", {"d": "a"}),
            ("$['metadata']['url']", {"d": "a"}),
            ("$.metadata.deep.er", {}),
            ("$.id", {}),
        ),
    ],
)
def test_documents_by_a_key(dolma: Folder, key: str, copies: dict[str, str]) -> None:
    dolma.config["dedupe"] = {"documents": {"attribute_name": "dup_doc", "key": key}}
    dedup(dolma).succeeds()
    found = {id: value["duplicate_of"] for id, value in values(dolma, "dup_doc", "dup_doc").items()}
    # with shard and row: ids need not be unique
    assert found == {id: ["s", copies[id], "x/0.jsonl.gz:1"] if id in copies else None for id in TEXTS}
    assert dedup(dolma, "form=dolma", "dedupe.name=form").code == 0
    sizes = {"$.text": len(TEXTS["d"]), "$.source": 1}
    assert values(dolma, "dup_doc", "form") == {
        id: [[0, sizes.get(key, 3), 1.0]] if id in copies else [] for id in TEXTS
    }


def test_a_read_only_filter_is_the_documents_of_which_it_was_made(dolma: Folder, tmp_path: Path) -> None:
    """What only its own documents repeat is no duplicate; the folders of documents may be several."""
    write_rows(tmp_path / "eval" / "documents" / "e.jsonl.gz", [document("e", "two\nfive")])
    write_rows(tmp_path / "more" / "documents" / "0.jsonl.gz", [document("m", "one\none\nfive")])
    dolma.config["documents"].append(f"{tmp_path}/more/documents/*.gz")
    dolma.config["bloom_filter"]["read_only"] = True
    dedup(dolma, "form=dolma", f"against={tmp_path}/eval/documents/*.gz").succeeds()
    found = {id: cut(id, spans) for id, spans in values(dolma, "dup_par").items()}
    assert found == {"a": ["two\n"], "b": [], "c": ["two\n", "five"], "d": ["two\n"], "e": []}
    (row,) = read_rows(tmp_path / "more/attributes/dups/0.jsonl.gz")
    assert row["attributes"] == {"dup_par": [[8, 12, 1.0]]}
    assert not (tmp_path / "eval" / "attributes").exists()


def test_a_mix_of_ours_finds_what_stays(dolma: Folder) -> None:
    """Its set names kept documents with shard and row, which a mix whose ids are unique does not need."""
    dolma.config["dedupe"] = {"documents": {"attribute_name": "dup_doc", "key": "$.text"}}
    assert dedup(dolma).code == 0
    mix = {"attributes": ["dup_doc"], "rules": [{"drop": "dup_doc.duplicate_of is not None"}]}
    mix["output"] = {"format": "dolma", "path": f"{dolma.root}/out"}
    (dolma.root / "mix.json").write_text(json.dumps({"dataset": str(dolma.data), "mix": mix}))
    ran = dolma.run("mix", "-c", dolma.root / "mix.json", "--json")
    assert (ran.code, ran.json["totals"]["kept"]) == (0, 4), ran.err


def test_a_mix_of_dolma_finds_what_stays_by_sets_of_ours(dolma: Folder) -> None:
    """They name kept documents by source and id alone."""
    ours = {"dataset": str(dolma.data), "dedup": {"exact-0": {"kind": "exact", "as": "exact"}}}
    (dolma.root / "ours.json").write_text(json.dumps(ours))
    assert dolma.run("dedup", "-c", dolma.root / "ours.json").code == 0
    mixer = {
        "streams": [
            {
                "name": "x",
                "documents": [f"{dolma.data}/documents/*/*.gz"],
                "attributes": ["exact-0"],
                "output": {"path": f"{dolma.root}/out", "max_size_in_bytes": 100000},
                "filter": {"exclude": ["$.attributes[?(@.exact.duplicate_of != null)]"]},
            }
        ],
        "processes": 1,
    }
    (dolma.root / "mix.json").write_text(json.dumps(mixer))
    ran = dolma.run("mix", "-c", dolma.root / "mix.json", "--json")
    assert (ran.code, ran.json["totals"]["kept"]) == (0, 4), ran.err


@pytest.mark.parametrize(("least", "spans"), [(14, [[0, 14, 1.0]]), (15, [])])
def test_short_texts_are_left_out(dolma: Folder, least: int, spans: JsonRows) -> None:
    dolma.config["dedupe"] = {"documents": {"attribute_name": "dup", "key": "$.text"}, "min_length": least}
    assert dedup(dolma, "form=dolma").code == 0
    assert values(dolma, "dup", "dup")["d"] == spans


def slowly(texts: list[str], length: int, stride: int, threshold: float, skip: bool) -> list[list[list[Any]]]:
    """The spans of texts of words that spaces part, one after the other; `skip_empty` is on."""
    known: set[tuple[str, ...]] = set()

    def was_known(key: tuple[str, ...]) -> bool:
        found = key in known
        known.add(key)
        return found

    spans: list[list[list[Any]]] = []
    for text in texts:
        spans.append([])
        start = 0
        for line in text.splitlines(keepends=True):
            words, end = line.split(), start + len(line)
            starts = [0, *range(1, len(words), max(stride, 1))]
            grams = [tuple(words[i : i + length]) for i in starts if i + length <= len(words)]
            repeated = [was_known(gram) for gram in grams]
            score = sum(repeated) / len(grams) if grams else -1.0
            if len(grams) < 2 and not skip and line.strip():
                score = float(was_known(("whole", line.removesuffix("\n"))))
            if score >= threshold and line.strip():
                spans[-1].append([start, end, pytest.approx(score, abs=1e-6)])
            start = end
    return spans


@pytest.mark.parametrize(
    ("length", "stride", "threshold", "skip"),
    [(2, 0, 0.4, False), (3, 2, 1.0, True), (2, 3, 0.5, False), (5, 1, 0.0, False), (1, 0, 0.7, True)],
)
def test_lines_by_their_ngrams(dolma: Folder, length: int, stride: int, threshold: float, skip: bool) -> None:
    chance = random.Random(length)
    lines = [" ".join(chance.choices("abcdefgh", k=chance.randint(0, 9))) for _ in range(40)]
    texts = ["\n".join(chance.choices(lines, k=chance.randint(0, 6))) for _ in range(300)]
    shutil.rmtree(dolma.data)
    for number, part in enumerate((texts[:100], texts[100:])):
        listed = [document(f"{number}-{i}", text) for i, text in enumerate(part)]
        write_rows(dolma.data / "documents" / "x" / f"{number}.jsonl.gz", listed)
    by = {"ngram_length": length, "stride": stride, "overlap_threshold": threshold, "skip_short_paragraphs": skip}
    dolma.config["dedupe"]["paragraphs"]["by_ngram"] = by
    dedup(dolma).succeeds()
    assert [row["attributes"]["dup_par"] for row in rows(dolma)] == slowly(texts, length, stride, threshold, skip)


def test_a_dry_run_writes_nothing(dolma: Folder) -> None:
    dolma.config["dryrun"] = True
    ran = dedup(dolma)
    assert (ran.code, "dups" in ran.out, (dolma.data / "attributes").exists()) == (0, True, False)


def test_a_glob_may_stand_for_the_folder_of_documents(dolma: Folder) -> None:
    dolma.config["documents"] = [f"{dolma.data}/doc*/*/0.jsonl.gz"]
    assert dedup(dolma).code == 0
    assert len(rows(dolma)) == len(TEXTS)


def test_the_mixer_takes_what_is_written(dolma: Folder) -> None:
    """A configuration of Dolma's mixer, as they stand in its repository."""
    assert dedup(dolma, "form=dolma").code == 0
    stream = {
        "name": "out",
        "documents": dolma.config["documents"],
        "attributes": ["dups"],
        "output": {"path": f"{dolma.root}/out", "min_text_length": 1},
        "span_replacement": [{"span": "$.attributes.dup_par", "min_score": 0.5, "replacement": ""}],
    }
    path = dolma.root / "mixer.json"
    path.write_text(json.dumps({"streams": [stream], "processes": 1}))
    dolma.run("mix", "-c", path).succeeds()
    texts = {row["id"]: row["text"] for file in dolma.out.glob("*.gz") for row in read_rows(file)}
    assert texts == {"a": TEXTS["a"], "b": TEXTS["b"], "c": " \nfive"}


@pytest.mark.parametrize("command", ["mix", "tag", "run"])
def test_other_commands_say_which_reads_it(dolma: Folder, command: str) -> None:
    dedup(dolma)
    dolma.run(command, "-c", dolma.root / "dedupe.json").fails(2, "run `toolkit dedup -c FILE`")
