"""`toolkit align`: values of others by id, whatever their order, form and number of files."""

import csv
import gzip
import json
import random
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Run
from toolkit.align import join
from toolkit.align.align_config import value_struct
from toolkit.data.schema import from_json
from toolkit.exchange import scatter
from toolkit.storage import json_files

DOCUMENTS = 40


def documents_of(folder: Path, ids: list[str] | None = None) -> None:
    ids = ids or [str(i) for i in range(DOCUMENTS)]
    for shard, part in (("a", ids[: len(ids) // 2]), ("b", ids[len(ids) // 2 :])):
        path = folder / f"data/documents/{shard}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"id": id, "text": f"text {id}", "source": "s"}) + "\n" for id in part))


def values_of(count: int = DOCUMENTS) -> list[dict[str, Any]]:
    found = [{"key": {"id": i}, "quality": i / 8, "label": f"l{i}" if i % 3 else None} for i in range(count)]
    random.Random(0).shuffle(found)
    return found


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def _config(folder: Path, align: str, rule: str = "quality is not None and quality > 1") -> Path:
    path = folder / "own.yaml"
    path.write_text(
        f"dataset: {folder}/data\nexecutor: {{type: in_process}}\nalign: {{v-0: {{{align}}}}}\n"
        f"mix: {{attributes: [v-0], rules: [{{keep: '{rule}'}}], output: {{format: dolma, path: {folder}/out}}}}\n"
    )
    return path


def _rows(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "data/attributes/v-0").iterdir())
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_values_come_to_theirdocuments_of(tmp_path: Path, run: Run) -> None:
    """From two files, by a nested id of integers, into a set that mix, validate and status know."""
    documents_of(tmp_path)
    rows = values_of()
    _jsonl(tmp_path / "v1.jsonl.gz", rows[:15])
    _jsonl(tmp_path / "v2.jsonl.gz", rows[15:])
    _jsonl(tmp_path / "v3.jsonl.gz", [])
    config = _config(tmp_path, f"from: {tmp_path}/v*.jsonl.gz, id: key.id, values: [quality, label]")
    planned = run("align", "-c", config, "--dry-run", "--json").json["plan"]["align"]["v-0"]
    assert planned["values"] == {"quality": "float | null", "label": "str | null"}
    made = run("align", "-c", config, "--json").succeeds()
    assert made.json["sets"]["v-0"] == {
        "documents": 40, "ids": 40, "missing": 0, "surplus": 0, "repeated": 0, "shared": 0, "written": 2,
    }  # fmt: skip
    by_id = {str(row["key"]["id"]): row for row in rows}
    for row in _rows(tmp_path):
        wanted = by_id[row["id"]]
        assert row["attributes"] == {"quality": wanted["quality"], "label": wanted["label"]}
    assert [row["id"] for row in _rows(tmp_path)] == [str(i) for i in range(DOCUMENTS)]
    assert not (tmp_path / "data/.toolkit/align/v-0").exists()
    mixed = run("mix", "-c", config, "--json")
    assert (mixed.code, mixed.json["totals"]["kept"]) == (0, 31), mixed.err
    assert run("validate", "-c", config).code == 0
    assert run("status", "-c", config).code == 0
    again = run("align", "-c", config, "--json")
    assert again.json["sets"]["v-0"]["written"] == 0


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_fields_inside_objects_are_taken_as_fields_of_objects(format: str, tmp_path: Path, run: Run) -> None:
    """Whatever else is in the objects, and where one of them is null."""
    documents_of(tmp_path)
    scores: list[Any] = [{"q": i / 8, "deep": {"n": i}, "not": "taken"} for i in range(DOCUMENTS - 1)]
    rows = [{"id": str(i), "scores": each, "plain": i} for i, each in enumerate([*scores, None])]
    path = tmp_path / f"v.{format}"
    if format == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), path)
    entry = f"from: {path}, values: [scores.q, scores.deep.n, plain]"
    config = _config(tmp_path, entry, "scores.q is not None and scores.q > 1")
    run("align", "-c", config, "--json").succeeds()
    for row, each in zip(_rows(tmp_path), [*scores, {"q": None, "deep": {"n": None}}], strict=True):
        wanted = {"q": each["q"], "deep": {"n": each["deep"]["n"]}}
        assert row["attributes"] == {"scores": wanted, "plain": int(row["id"])}
    mixed = run("mix", "-c", config, "--json").succeeds()
    assert mixed.json["totals"]["kept"] == 30
    run("align", "-c", _config(tmp_path, f"from: {path}, values: [scores.qq]"), "--overwrite").fails(
        2, "'scores.qq' of `values`"
    )


def test_what_is_missing_surplus_or_twice_is_refused_or_counted(tmp_path: Path, run: Run) -> None:
    documents_of(tmp_path, [*map(str, range(10)), "none", "7"])
    with (tmp_path / "v.csv").open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["id", "quality"])
        table.writerows([[i, i / 8] for i in range(11)])
        table.writerow([3, 99])
    entry = f"from: {tmp_path}/v.csv, typed: {{quality: float}}"
    refused = run("align", "-c", _config(tmp_path, entry)).fails(1)
    for said in (
        f"1 document has no values in {tmp_path}/v.csv: 'none' in ",
        "1 id is of no document: '10'",
        f"1 row repeats an id: '3' in {tmp_path}/v.csv:5 and {tmp_path}/v.csv:13",
        "1 document shares its id with another (`source:` or `shard:` names a field that distinguishes them): '7'",
    ):
        assert said in refused.err
    assert refused.out.startswith("0 sets made, 4 failures -> ")
    assert not (tmp_path / "data/attributes/v-0").exists()
    run("align", "-c", _config(tmp_path, entry + ", missing: null, surplus: ignore, duplicates: first")).succeeds()
    found = {row["id"]: row["attributes"]["quality"] for row in _rows(tmp_path)}
    assert (found["none"], found["3"], found["7"]) == (None, 0.375, 0.875)
    run("align", "-c", _config(tmp_path, entry)).fails(2, "made with other settings")


def test_changed_inputs_and_documents_make_a_set_stale(tmp_path: Path, run: Run) -> None:
    documents_of(tmp_path)
    _jsonl(tmp_path / "v.jsonl.gz", values_of())
    config = _config(tmp_path, f"from: {tmp_path}/v.jsonl.gz, id: key.id, values: [quality]")
    assert run("align", "-c", config).code == 0
    changed = values_of()
    changed[0]["quality"] = 77.0
    _jsonl(tmp_path / "v.jsonl.gz", changed)
    for command in ("mix", "validate"):
        stale = run(command, "-c", config)
        assert stale.code != 0
        assert "v.jsonl.gz as it is now, got those of an earlier version; run `toolkit align`" in stale.out + stale.err
    assert run("status", "-c", config).code == 1
    assert run("align", "-c", config).code == 0
    assert 77.0 in [row["attributes"]["quality"] for row in _rows(tmp_path)]
    assert run("mix", "-c", config).code == 0
    shard = tmp_path / "data/documents/a.jsonl"
    shard.write_text(shard.read_text().replace("text 0", "another text 0"))
    stale = run("mix", "-c", config)
    assert "run `toolkit align`" in stale.err
    assert run("align", "-c", config, "--json").json["sets"]["v-0"]["written"] == 1
    assert run("mix", "-c", config).code == 0


def test_slips_are_told_before_anything_is_read(tmp_path: Path, run: Run) -> None:
    documents_of(tmp_path)
    _jsonl(tmp_path / "v.jsonl.gz", values_of())
    for entry, said in [
        (f"from: {tmp_path}/v.jsonl.gz, id: key.id, values: [qualiti]", "expected the field 'qualiti' of `values`"),
        (f"from: {tmp_path}/v.jsonl.gz, id: kye, values: [quality]", "did you mean 'key'"),
        (f"from: {tmp_path}/w.jsonl.gz", "w.jsonl.gz"),
    ]:
        run("align", "-c", _config(tmp_path, entry)).fails(2, said)
    _jsonl(tmp_path / "v.jsonl.gz", [*values_of(), {"key": {"id": 1.5}, "quality": 1.0}])
    failed = run("align", "-c", _config(tmp_path, f"from: {tmp_path}/v.jsonl.gz, id: key.id, values: [quality]"))
    assert "expected a text or an integer in 'key.id' (`id:`), got 1.5" in failed.err


def test_the_bytes_do_not_depend_on_processes_or_interruptions(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended at each of its steps, with runs of few ids, and done again: the same files."""
    files = []
    for name in ("whole", "parts"):
        folder = tmp_path / name
        documents_of(folder)
        for i in range(3):
            _jsonl(folder / f"v{i}.jsonl.gz", values_of()[i::3])
        config = _config(folder, f"from: {folder}/v*.jsonl.gz, id: key.id, values: [quality, label]")
        if name == "parts":
            monkeypatch.setattr(scatter, "MEMORY", 8000)
            monkeypatch.setattr(scatter, "MOST", 2)
            monkeypatch.setattr(join, "BLOCK", 7)
            monkeypatch.setattr(join, "BLOCK", 7)
            for writes in (1, 4, 8, 6, 5):
                _interrupted(run, config, writes)
        assert run("align", "-c", config).code == 0
        files.append(sorted((path.name, path.read_bytes()) for path in (folder / "data/attributes/v-0").iterdir()))
    assert files[0] == files[1]


def _interrupted(run: Run, config: Path, writes: int) -> None:
    """Run it, and interrupt it when so many records have been written."""
    left = [writes]
    real = json_files.save

    def once(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_files, "save", once)
        assert run("align", "-c", config).code == 130


def test_run_aligns_between_ingest_and_mix(tmp_path: Path, run: Run) -> None:
    rows = "".join(json.dumps({"id": str(i), "text": f"text {i}"}) + "\n" for i in range(DOCUMENTS))
    (tmp_path / "in.jsonl").write_text(rows)
    _jsonl(tmp_path / "v.jsonl.gz", values_of())
    config = _config(
        tmp_path, f"from: {tmp_path}/v.jsonl.gz, id: key.id, values: [quality], not_null: [quality]", "quality > 1"
    )
    config.write_text(config.read_text() + f"ingest: [{{format: jsonl, from: {tmp_path}/in.jsonl, source: s}}]\n")
    made = run("run", "-c", config, "--json").succeeds()
    assert made.json["mix"]["totals"]["kept"] == 31
    run("mix", "-c", config, "mix.output.provenance=true").succeeds()
    (path,) = (tmp_path / "out/documents").glob("*.gz")
    assert (
        json.loads(gzip.decompress(path.read_bytes()).splitlines()[0])["metadata"]["provenance"]["sets"]["v-0"][
            "versions"
        ]
        == {}
    )
    tagged = config.with_name("tagged.yaml")
    tag = 'tag: {length-0: {tagger: length, when: "quality > 2"}}'
    text = config.read_text().replace(f"{tmp_path}/data", f"{tmp_path}/more").replace("/out}", "/more-out}")
    tagged.write_text(f"{text}{tag}\n")
    asked = run("run", "-c", tagged, "--json").json
    assert asked["tag"]["asked"] == {"length-0": sum(row["quality"] > 2 for row in values_of())}
    run("run", "-c", config, "--limit", 1).fails(2, "expected a run of all shards")


@pytest.mark.parametrize("command", ["align", "run"])
def test_shares_read_and_the_last_run_joins(command: str, tmp_path: Path, run: Run) -> None:
    """Each file and shard is read once, by one share; sets that read the values wait; then files are the same."""
    trees = []
    for name in ("whole", "shares"):
        folder = tmp_path / name
        documents_of(folder)
        for i in range(3):
            _jsonl(folder / f"v{i}.jsonl.gz", values_of()[i::3])
        config = _config(folder, f"from: {folder}/v*.jsonl.gz, id: key.id, values: [quality, label]")
        tag = 'tag: {length-0: {tagger: length, when: "quality is not None and quality > 2"}}'
        config.write_text(config.read_text().replace("[v-0]", "[v-0, length-0]") + tag + "\n")
        for i in range(2 if name == "shares" else 0):
            made = run(command, "-c", config, "--shard", f"{i}/2")
            assert (made.code, "the values and ids of v-0 are ready" in made.out) == (0, True), made.err
            assert not (folder / "data/attributes/length-0").exists()
        if name == "shares":
            assert len([*(folder / "data/.toolkit/align/v-0").glob("*.rows")]) == 5
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(join, "_read_input", None)
                patch.setattr(join, "_scatter_names", None)
                done = run(command, "-c", config)
        else:
            done = run(command, "-c", config)
        assert done.code == 0, done.err
        trees.append(sorted((path.name, path.read_bytes()) for path in (folder / "data/attributes/v-0").iterdir()))
        if command == "run":
            again = run("run", "-c", config, "--shard", "0/2")
            assert (again.code, "1 shard" in again.out) == (0, True), again.err
    assert trees[0] == trees[1]


def test_status_says_of_which_documents_the_ids_are_ready(tmp_path: Path, run: Run) -> None:
    documents_of(tmp_path)
    _jsonl(tmp_path / "v.jsonl.gz", values_of())
    config = _config(tmp_path, f"from: {tmp_path}/v.jsonl.gz, id: key.id, values: [quality]")

    def causes() -> list[str]:
        stages = run("status", "-c", config, "--json").json["stages"]
        return [item["cause"] for stage in stages if stage["stage"] == "align v-0" for item in stage["items"]]

    ready = "its ids are ready; which values belong to them depends on all shards"
    assert causes() == ["not begun"] * 2
    run("align", "-c", config, "--shard", "0/1").succeeds()
    assert causes() == [ready] * 2
    (tmp_path / "data/documents/a.jsonl").write_text('{"id": "0", "text": "another", "source": "s"}\n')
    assert causes() == ["not begun", ready]


def test_a_run_tells_why_there_is_no_set_that_later_stages_read(tmp_path: Path, run: Run) -> None:
    """Its other per-shard work is done, and what stopped `align` is not hidden by what lacks the set."""
    documents_of(tmp_path)
    _jsonl(tmp_path / "v.jsonl.gz", values_of(30))
    rule = "ranked.rank is not None and ranked.rank > 0.5"
    config = _config(tmp_path, f"from: {tmp_path}/v.jsonl.gz, id: key.id, values: [quality]", rule)
    config.write_text(
        config.read_text().replace("[v-0]", "[ranked-0]")
        + "dedup: {exact-0: {kind: exact}}\ncalibrate: {ranked-0: {kind: rank, score: v-0.quality}}\n"
    )
    broken = run("run", "-c", config).fails(1, "10 documents have no values", "`toolkit align` has not made v-0 yet")
    assert "not run: calibrate" in broken.out
    assert not (tmp_path / "out").exists()
    _jsonl(tmp_path / "v.jsonl.gz", values_of())
    run("run", "-c", config).succeeds()


def test_values_keep_keys_that_are_absent_as_null() -> None:
    types = {"a": from_json("int"), "b": from_json({"nullable": {"object": {"c": {"nullable": "str"}}}})}
    decoder = msgspec.json.Decoder(value_struct(types))
    assert msgspec.json.encode(decoder.decode(b'{"b":{},"a":1}')) == b'{"a":1,"b":{"c":null}}'
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        decoder.decode(b'{"a":1,"z":2}')
