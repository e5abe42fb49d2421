"""The whole path, from the sample's WET files to an OSCAR corpus."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mixers.oscar import Oscar
from tests.conftest import ROOT, Run
from tests.pipeline.conftest import (
    Project,
    attributes,
    document,
    read_bytes,
    sha256sum_accepts,
    strays,
    tree,
    write_rows,
)
from toolkit.records import ingested
from toolkit.storage import record_log
from toolkit.storage.json_files import decode
from toolkit.storage.record_log import RecordLog

PARTS = "*.jsonl.gz"


def test_the_whole_path_gives_an_oscar_corpus_that_checks(pipeline: Project) -> None:
    ran = pipeline.ok("run")
    checksums = sorted(pipeline.out.rglob("*_sha256.txt"))
    parts = sorted(pipeline.out.rglob(PARTS))
    assert len(parts) == len(checksums) >= 15
    for path in checksums:
        assert path.name == f"{path.parent.name}_sha256.txt"
        assert sha256sum_accepts(path)
        assert all(line[64:66] == "  " for line in path.read_text().splitlines())
    writer = Oscar()
    for path in parts:
        assert path.name == f"{path.parent.name}.jsonl.gz"
        data = read_bytes(path)
        assert data.endswith(b"\n")
        for line in data[:-1].split(b"\n"):
            assert writer.check(line) is None
            row = json.loads(line)
            assert list(row) == ["content", "warc_headers", "metadata"]
            assert list(row["metadata"]) == ["identification", "annotation", "sentence_identifications"]
            assert len(row["metadata"]["sentence_identifications"]) == row["content"].count("\n") + 1
            assert row["metadata"]["identification"]["label"] == path.parent.name
            assert row["warc_headers"]["warc-type"] == "conversion"
            assert json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() == line
    for name in ("short_lines", "unidentified", "unsure", "short_sentences"):
        assert name in ran.out
    assert strays(pipeline.root) == []
    pipeline.ok("validate").shows("0 findings")


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum here")
def test_the_real_sha256sum_accepts_the_checksum_files(pipeline: Project) -> None:
    pipeline.ok("run")
    for path in sorted(pipeline.out.rglob("*_sha256.txt")):
        subprocess.run(["sha256sum", "--strict", "-c", path.name], cwd=path.parent, check=True, capture_output=True)


def test_every_document_is_counted_once(pipeline: Project) -> None:
    found = pipeline.ok("run", "--json").json
    counts, mixed = found["ingest"]["counts"], found["mix"]
    assert counts["record.warcinfo"] == 2
    totals = mixed["totals"]
    assert totals["rows"] == counts["documents"] == found["tag"]["documents"]
    dropped = sum(rule["documents"] for rule in mixed["rules"] if rule["kind"] == "drop")
    assert totals["kept"] + dropped == totals["rows"]
    assert totals["kept"] == sum(len(read_bytes(p).splitlines()) for p in pipeline.out.rglob(PARTS))
    assert totals["kept"] == sum(label["documents"] for label in mixed["labels"].values())
    assert [rule["name"] for rule in mixed["rules"]] == ["short_lines", "unidentified", "unsure", "short_sentences"]


def test_a_second_run_does_nothing_and_says_so(pipeline: Project) -> None:
    pipeline.ok("run")
    before, times = tree(pipeline.root, bookkeeping=True), _times(pipeline.root)
    ran = pipeline.ok("run")
    assert tree(pipeline.root, bookkeeping=True) == before
    assert {path: time for path, time in _times(pipeline.root).items() if path != "config.yaml"} == {
        path: time for path, time in times.items() if path != "config.yaml"
    }
    assert "2 done (2 before)" in ran.out
    assert "nothing has changed" in ran.out
    found = pipeline.ok("run", "--json").json
    assert found["ingest"]["skipped"] == 2
    assert set(found["tag"]["written"].values()) == {0}
    assert found["mix"]["already"] is True


def test_a_second_run_asks_about_each_input_and_shard_a_few_times(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return counted

    monkeypatch.setattr(RecordLog, "_read", counting("logs", RecordLog._read))
    monkeypatch.setattr(ingested, "decode", counting("scanned", decode))
    monkeypatch.setattr(record_log, "decode", counting("loaded", decode))

    def asked(inputs: range) -> Counter[str]:
        for i in inputs:
            write_rows(project.root / f"in/{i:03}.jsonl", [document(f"{i}", "text")])
        project.config["ingest"] = {"format": "jsonl", "from": str(project.root / "in/*.jsonl"), "source": "s"}
        project.config["tag"] = {"shape-0": "line_shape", "noise-0": "noise"}
        project.mixes({"drop": "line_shape.lines > 5"}, attributes=["shape-0", "noise-0"])
        project.ok("run")
        counts.clear()
        project.ok("run")
        return counts.copy()

    few, many = asked(range(3)), asked(range(3, 13))
    assert (few["logs"], many["logs"]) == (2, 2)  # of the inputs and of the dataset
    assert {name: (many[name] - few[name]) / 10 for name in ("scanned", "loaded")} == {"scanned": 1, "loaded": 3}


def test_single_commands_give_what_run_gives(pipeline: Project, tmp_path: Path, run: Run) -> None:
    pipeline.ok("run")
    root = tmp_path / "other"
    root.mkdir()
    config = json.loads(json.dumps(pipeline.config).replace(str(pipeline.root), str(root)))
    other = Project(root, run, config)
    for command in ("ingest", "tag", "mix"):
        other.ok(command)
    assert tree(other.data) == tree(pipeline.data)
    assert tree(other.out) == tree(pipeline.out)


def test_a_dry_run_writes_nothing(pipeline: Project) -> None:
    for command in ("run", "ingest"):
        pipeline.ok(command, "--dry-run").shows("sample-00000")
        assert not pipeline.data.exists()
        assert not pipeline.out.exists()
    pipeline.ok("ingest")
    before = tree(pipeline.root, bookkeeping=True)
    assert "lines-0" in pipeline.ok("tag", "--dry-run").out
    assert tree(pipeline.root, bookkeeping=True) == before
    pipeline.ok("tag")
    before = tree(pipeline.root, bookkeeping=True)
    assert "short_lines" in pipeline.ok("mix", "--dry-run").out
    assert tree(pipeline.root, bookkeeping=True) == before


def test_a_dry_run_of_two_sections_has_a_plan(pipeline: Project) -> None:
    del pipeline.config["mix"]
    assert list(pipeline.ok("run", "--dry-run", "--json").json["plan"])[:2] == ["ingest", "tag lines-0"]


def test_a_dry_run_lists_what_every_stage_has_to_do(pipeline: Project) -> None:
    """Also what follows from an earlier stage, before there are any documents."""

    def planned() -> dict[str, tuple[int, int]]:
        plan = pipeline.ok("run", "--dry-run", "--json").json["plan"]
        return {name: (each["to_do"], each["of"]) for name, each in plan.items()}

    first = planned()
    inputs = first["ingest"][0]
    assert inputs
    assert all(to_do == of == inputs for to_do, of in first.values())
    pipeline.ok("ingest", "--limit", "1")
    found = planned()
    assert found["ingest"] == (inputs - 1, inputs)
    assert all(found[name] == (inputs, inputs) for name in found if name not in ("ingest", "publish"))
    pipeline.ok("run")
    assert all(to_do == 0 for to_do, _ in planned().values())


def test_a_dry_run_shows_what_nodes_would_do(pipeline: Project) -> None:
    """Each node has the shards of its share, and the largest task bounds what more nodes can save."""
    pipeline.config["calibrate"] = {"rank-0": {"kind": "rank", "score": "language-0.language.prob"}}

    def stages(nodes: int, cores: int) -> dict[str, Any]:
        found = pipeline.ok("run", "--dry-run", "--nodes", nodes, "--cores", cores, "--json").json["cluster"]
        assert (found["nodes"], found["cores"]) == (nodes, cores)
        return dict(found["stages"])

    ahead = stages(1, 1)
    inputs = [path.stat().st_size for path in (ROOT / "configs/sample").glob("*.wet.gz")]
    assert ahead["ingest"]["tasks"] == len(inputs) > 1
    assert ahead["ingest"]["read"] == ahead["ingest"]["busiest"] == sum(inputs)
    assert ahead["ingest"]["longest"] == max(inputs)
    assert all(each["written"] > 0 and each["idle"] == 0 for each in ahead.values())
    pipeline.ok("ingest")
    documents = [path.stat().st_size for path in pipeline.documents.rglob("*.gz")]
    found = stages(len(documents), 2)
    assert found["ingest"]["tasks"] == found["ingest"]["read"] == 0
    assert found["tag"]["read"] == sum(documents)
    assert found["tag"]["busiest"] == found["tag"]["longest"] == max(documents)
    assert found["tag"]["idle"] == len(documents)
    assert found["mix"]["read"] > found["tag"]["read"], "it joins attributes"
    assert found["calibrate"]["read"] < found["tag"]["read"] / 2, "it reads attributes alone"
    assert "busiest core" in pipeline.ok("run", "--dry-run", "--nodes", 2).out
    assert "expected --nodes with --dry-run" in pipeline("run", "--nodes", 2).err


def test_a_dry_run_of_a_mix_counts_what_the_mix_then_drops(pipeline: Project) -> None:
    pipeline.ok("ingest")
    pipeline.ok("tag")
    foreseen = pipeline.ok("mix", "--dry-run", "--json").json
    done = pipeline.ok("mix", "--json").json
    assert foreseen["totals"] == done["totals"]
    for expected, got in zip(foreseen["rules"], done["rules"], strict=True):
        for key in ("name", "kind", "documents", "chars", "reached"):
            assert expected[key] == got[key]


@pytest.mark.slow
def test_one_and_two_processes_give_the_same_bytes_in_small_parts(pipeline: Project, tmp_path: Path, run: Run) -> None:
    part_size = 3000
    pipeline.config["mix"]["output"]["part_size"] = "3 kB"
    pipeline.ok("run")
    root = tmp_path / "two"
    root.mkdir()
    config = json.loads(json.dumps(pipeline.config).replace(str(pipeline.root), str(root)))
    del config["executor"]
    other = Project(root, run, config | {"processes": 2})
    other.ok("run")
    assert tree(other.data) == tree(pipeline.data)
    assert tree(other.out) == tree(pipeline.out)
    assert (other.out / ".toolkit/manifest.json").read_bytes() == (pipeline.out / ".toolkit/manifest.json").read_bytes()
    by_label: dict[str, list[Path]] = {}
    for path in pipeline.out.rglob(PARTS):
        by_label.setdefault(path.parent.name, []).append(path)
        data = read_bytes(path)
        assert len(data) <= part_size or data.count(b"\n") == 1
    assert any(len(parts) > 2 for parts in by_label.values())
    for label, parts in by_label.items():
        numbered = {f"{label}_part_{n}.jsonl.gz" for n in range(1, len(parts) + 1)}
        assert {path.name for path in parts} == (numbered if len(parts) > 1 else {f"{label}.jsonl.gz"})
        assert sha256sum_accepts(pipeline.out / label / f"{label}_sha256.txt")
        listed = (pipeline.out / label / f"{label}_sha256.txt").read_text().splitlines()
        assert len(listed) == len(parts)
        assert listed == sorted(listed, key=lambda line: line[66:])


@pytest.mark.slow
def test_small_parts_hold_the_documents_of_the_single_one_in_order(pipeline: Project) -> None:
    pipeline.ok("run")
    whole = {path.parent.name: read_bytes(path) for path in pipeline.out.rglob(PARTS)}
    pipeline.config["mix"]["output"]["part_size"] = 3000
    pipeline.ok("mix")
    for label, data in whole.items():
        parts = sorted((pipeline.out / label).glob(PARTS), key=lambda p: (len(p.name), p.name))
        assert b"".join(map(read_bytes, parts)) == data
    assert "0 findings" in pipeline.ok("validate").out


def test_a_failed_input_is_status_1_and_the_others_are_worked_on_but_not_published(pipeline: Project) -> None:
    bad = pipeline.root / "bad.warc.wet.gz"
    bad.write_bytes(b"")
    pipeline.config["ingest"][0]["from"].append(str(bad))
    ran = pipeline("run").fails(1, str(bad), "1 failed")
    assert len(list(pipeline.documents.rglob("*.jsonl.gz"))) == 2
    assert len(list(pipeline.attributes.rglob("*.jsonl.gz"))) % 2 == 0
    assert "nothing was published in" in ran.out
    assert tree(pipeline.out) == {}
    bad.unlink()
    pipeline.config["ingest"][0]["from"].pop()
    pipeline.ok("run")


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("run",), ("mix", "-c", "nowhere.yaml")])
def test_bad_usage_is_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2


def test_standard_output_holds_the_result_and_standard_error_the_rest(pipeline: Project) -> None:
    ran = pipeline.ok("run", "--json")
    assert msgspec.json.decode(ran.out)["mix"]["published"] is True
    assert ran.out.count("\n") == 1
    assert "documents" in ran.err
    assert pipeline.ok("run", "--quiet").err == ""


def _times(root: Path) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}


def test_rules_over_a_set_of_another_program_are_checked_before_anything_is_tagged(tmp_path: Path, run: Run) -> None:
    """Where inputs are read first, their files may have other keys, and the mix checks them."""
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "tag": {"a": "length"}})
    write_rows(project.documents / "s.jsonl", [document("1", "text", "s")])
    write_rows(project.attributes / "ext" / "s.jsonl", [attributes("1", {"q": 1})])
    rules = [{"keep": "quality > 0", "name": "good"}]
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["a", "ext"], "rules": rules, "output": output}
    for option in ((), ("--dry-run",)):
        project("run", *option).fails(2, "rule 'good'", "'quality'")
        assert [path.name for path in project.attributes.iterdir()] == ["ext"]
    rules[0]["keep"] = "q > 0"
    assert project.ok("run", "--json").json["mix"]["totals"]["kept"] == 1
