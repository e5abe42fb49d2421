"""Small inputs share shards: with the ids that they would have alone, and with what else depends on inputs."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import Project, inputs_of, read_bytes, read_rows, strays, tree
from tests.pipeline.test_one_pass import all_of
from tests.pipeline.test_rerun import Calls
from tests.recipes import mix_of
from tests.waiting import PATIENCE
from toolkit.data.dataset import open_dataset
from toolkit.execution import grouped
from toolkit.ingest import attempts
from toolkit.records.ingested import save
from toolkit.storage.compression import COMPRESSORS, compress_small
from toolkit.storage.record_log import RecordLog

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "into", "mills"]


def text(i: int) -> str:
    return " ".join(WORDS[: 3 + i % 10]) + f" {i}\n\nsecond of {i}\n"


def write(root: Path, numbers: range) -> None:
    for i in numbers:
        (root / "in").mkdir(exist_ok=True)
        (root / "in" / f"{i:03d}.txt").write_text(text(i))


def entry(root: Path, **more: Any) -> dict[str, Any]:
    return {"format": "text", "from": f"{root}/in/**/*.txt", "source": "n", **more}


@pytest.fixture
def notes(project: Project) -> Project:
    """Forty small inputs, in a few packs, tagged and mixed."""
    write(project.root, range(40))
    project.config |= {
        "ingest": [entry(project.root, pack="2 kB")],
        "tag": {"shape-0": "line_shape"},
        "mix": mix_of(project.out, {"drop": "line_shape.chars < 14", "name": "short"}, attributes=["shape-0"]),
    }
    return project


def told(project: Project, command: str, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(project.ok(command, "--json", *arguments).out)
    return found


def shards(project: Project) -> list[str]:
    return sorted(str(path.relative_to(project.documents)) for path in project.documents.rglob("*.gz"))


def documents(project: Project) -> list[tuple[str, str]]:
    """Ids and texts, in the order of shards and rows."""
    return [(row["id"], row["text"]) for name in shards(project) for row in project.shard(name)]


def ids(numbers: range) -> list[str]:
    return [f"{i:03d}.txt:{n}" for i in numbers for n in (1, 2)]


def test_small_inputs_share_shards_with_the_ids_that_they_would_have_alone(notes: Project) -> None:
    data = told(notes, "ingest")
    packed = documents(notes)
    assert (data["inputs"], data["done"]) == (40, 40)
    assert 1 < data["packs"] <= len(shards(notes)) < 20
    assert shards(notes)[0] == "n/000.pack.jsonl.gz"
    assert [id for id, _ in packed] == ids(range(40))
    notes.data.rename(f"{notes.data}-packed")
    notes.config["ingest"] = [entry(notes.root, pack=None)]
    assert told(notes, "ingest")["packs"] == 0
    assert shards(notes)[:2] == ["n/000.jsonl.gz", "n/001.jsonl.gz"]
    assert documents(notes) == packed


def test_a_pack_is_the_default_of_text_and_an_option_of_others(project: Project) -> None:
    write(project.root, range(3))
    for i in range(2):
        (project.root / "in" / f"{i}.jsonl").write_text(json.dumps({"id": str(i), "text": "x"}) + "\n")
    rows = {"format": "jsonl", "from": f"{project.root}/in/*.jsonl"}
    assert project.ingest(entry(project.root), {**rows, "source": "j"}).code == 0
    assert shards(project) == ["j/0.jsonl.gz", "j/1.jsonl.gz", "n/000.pack.jsonl.gz"]
    assert project.ingest(entry(project.root), {**rows, "source": "k", "pack": "1 MB"}).code == 0
    assert [row["id"] for row in project.shard("k/0.pack.jsonl.gz")] == ["0", "1"]


@pytest.mark.slow
def test_large_inputs_and_one_alone_have_their_own_names_and_shard_size_cuts_packs(project: Project) -> None:
    write(project.root, range(4))
    (project.root / "in" / "001.txt").write_text("long\n\n" * 1000)
    big = entry(project.root, pack="5 kB")
    assert project.ingest(big).code == 0
    assert shards(project) == ["n/000.pack.jsonl.gz", "n/001.jsonl.gz"]
    assert [row["id"] for row in project.shard("n/000.pack.jsonl.gz")] == [*ids(range(1)), *ids(range(2, 4))]
    assert project.ingest({**big, "source": "cut", "shard_size": "200 B"}).code == 0
    found = [name for name in shards(project) if name.startswith("cut/000.")]
    assert found[:2] == ["cut/000.pack.00000.jsonl.gz", "cut/000.pack.00001.jsonl.gz"]
    told(project, "ingest")


def test_names_of_inputs_and_of_packs_do_not_meet(project: Project) -> None:
    write(project.root, range(2))
    (project.root / "in" / "000.pack.txt").write_text("long\n\n" * 1000)
    project.ingest(entry(project.root, pack="1 kB")).fails(2, "expected one input for each shard, got", "000.pack.txt")


@pytest.mark.slow
def test_an_input_that_comes_changes_or_goes_costs_its_pack(notes: Project) -> None:
    told(notes, "run")
    before = shards(notes)
    sizes = {name: len(read_rows(notes.documents / name)) // 2 for name in before}
    (notes.root / "in" / "001.txt").write_text("another\n")
    (notes.root / "in" / "005-more.txt").write_text("one more\n")
    (notes.root / "in" / "039.txt").unlink()
    data = told(notes, "run")["ingest"]
    assert data["lost"] == [f"{notes.root}/in/039.txt"]
    assert data["gone"] == []
    assert 40 - data["skipped"] <= 2 + sum(sizes[name] for name in (before[0], before[1], before[-1]))
    found = [id for id, _ in documents(notes)]
    assert found == ["000.txt:1", "000.txt:2", "001.txt:1", *ids(range(2, 5)), "005-more.txt:1", *ids(range(5, 39))]
    notes.ok("validate")
    assert told(notes, "status")["done"]
    assert strays(notes.data) == []
    same = tree(notes.data) | tree(notes.out)
    for path in (notes.data, notes.out):
        path.rename(f"{path}-before")
    told(notes, "run")
    assert tree(notes.data) | tree(notes.out) == same


@pytest.mark.slow
def test_a_pack_that_begins_with_another_input_leaves_nothing_under_its_former_name(notes: Project) -> None:
    told(notes, "run")
    (notes.root / "in" / "000.txt").unlink()
    data = told(notes, "run")["ingest"]
    assert data["lost"] == [f"{notes.root}/in/000.txt"]
    assert not [path for path in notes.root.rglob("*") if "000.pack" in path.name or "000=2Epack" in path.name]
    assert [id for id, _ in documents(notes)] == ids(range(1, 40))
    notes.ok("validate")
    (notes.root / "in" / "001.txt").write_text(text(1) * 100)  # as large as no pack is
    told(notes, "run")
    assert shards(notes)[:2] == ["n/001.jsonl.gz", "n/002.pack.jsonl.gz"]
    (notes.root / "in" / "001.txt").write_text(text(1))
    told(notes, "run")
    assert "n/001.jsonl.gz" not in shards(notes)
    assert [id for id, _ in documents(notes)] == ids(range(1, 40))
    notes.ok("validate")


def test_packs_of_which_no_input_is_left_stay_as_inputs_do(notes: Project) -> None:
    told(notes, "ingest")
    for path in (notes.root / "in").iterdir():
        path.unlink()
    write(notes.root, range(50, 52))
    data = told(notes, "ingest")
    assert (len(data["gone"]), data["lost"]) == (40, [])
    assert data["gone"] == [*data["gone_names"]]
    assert [id for id, _ in documents(notes)] == [*ids(range(40)), *ids(range(50, 52))]
    notes.ok("clean", *(word for name in data["gone_names"].values() for word in ("--forget", name)))
    assert [id for id, _ in documents(notes)] == ids(range(50, 52))
    assert told(notes, "ingest")["gone"] == []


def test_packs_made_anew_in_part_are_not_used(notes: Project) -> None:
    """As after a kill between what takes inputs over, and what gives them away."""
    notes.config["ingest"] = [entry(notes.root, pack="1 MB")]
    write(notes.root, range(40, 41))
    told(notes, "ingest")
    assert shards(notes) == ["n/000.pack.jsonl.gz"]
    kept, rows = inputs_of(notes)["n/000.pack"], (notes.documents / "n" / "000.pack.jsonl.gz").read_bytes()
    (notes.root / "in" / "000.txt").unlink()
    told(notes, "ingest")
    save(open_dataset(str(notes.data), None, None), "n/000.pack", kept)
    (notes.documents / "n" / "000.pack.jsonl.gz").write_bytes(rows)
    notes("tag").fails(
        1, "expected the documents of each input once, got those of n/001.txt here and in", "run `toolkit ingest`"
    )
    told(notes, "run")
    notes.ok("validate")


def test_damage_is_told_of_all_inputs_of_a_pack_and_the_others_wait(notes: Project) -> None:
    files = [f"{notes.root}/in/*.txt", f"{notes.root}/in/*.gz"]
    notes.config["ingest"] = [entry(notes.root, pack="1 MB") | {"from": files}]
    whole = gzip.compress(b"a line\n" * 1000)
    (notes.root / "in" / "010a.txt.gz").write_bytes(whole[:-9])
    (notes.root / "in" / "020a.txt.gz").write_bytes(whole[:30])
    (notes.root / "in" / "030a.txt.gz").write_bytes(whole)
    notes("run", "--json").fails(
        1,
        f"{notes.root}/in/010a.txt.gz:1: expected",
        f"{notes.root}/in/020a.txt.gz:1: expected",
        "(43 inputs) wait until that is corrected: they share a shard",
    )
    assert not list(notes.documents.rglob("*.gz"))
    assert strays(notes.attributes) == []
    for name in ("010a", "020a"):
        (notes.root / "in" / f"{name}.txt.gz").write_bytes(whole)
    told(notes, "run")
    assert len(documents(notes)) == 83


def test_bad_items_are_kept_aside_with_the_input_that_they_are_in(project: Project) -> None:
    (project.root / "in").mkdir()
    for i in range(3):
        rows = [json.dumps({"id": f"{i}-{j}", "text": "x"}) for j in range(40)]
        (project.root / "in" / f"{i}.jsonl").write_text("\n".join([*rows[:i], "{bad", *rows[i:]]) + "\n")
    one = {"format": "jsonl", "from": f"{project.root}/in/*.jsonl", "source": "j", "pack": "1 MB"}
    ran = project.ingest(one).fails(1)
    assert [f"{project.root}/in/{i}.jsonl:{i + 1}: expected" in ran.err for i in range(3)] == [True] * 3
    assert project.ingest({**one, "on_error": "skip"}).code == 0
    kept = read_rows(project.data / ".toolkit" / "rejects" / "j" / "0.pack.jsonl.gz")
    assert [(row["input"], row["number"]) for row in kept] == [
        (f"{project.root}/in/{i}.jsonl", i + 1) for i in range(3)
    ]
    assert len(project.shard("j/0.pack.jsonl.gz")) == 120
    assert project.ingest({**one, "on_error": "skip", "max_rejected": 0.01}).code == 1


@pytest.mark.parametrize(("before", "after"), [("1 kB", "2 kB"), *slow((None, "2 kB"), ("64 MB", None))])
def test_another_pack_is_refused_as_other_settings_are(notes: Project, before: str | None, after: str | None) -> None:
    notes.config["ingest"] = [entry(notes.root, pack=before)]
    told(notes, "run")
    data = tree(notes.data, bookkeeping=True)
    notes.config["ingest"] = [entry(notes.root, pack=after)]
    for command in ("ingest", "run", "tag"):
        ran = notes(command)
        assert ran.code in (1, 2)
        assert "with other settings" in ran.err
        assert "pack: " in ran.err
    assert tree(notes.data, bookkeeping=True) == data
    told(notes, "run", "--overwrite")
    assert [id for id, _ in documents(notes)] == ids(range(40))
    notes.ok("validate")


@pytest.mark.slow
def test_shares_own_whole_packs_and_make_the_same_bytes(notes: Project) -> None:
    told(notes, "run")
    whole = tree(notes.data) | tree(notes.out)
    for path in (notes.data, notes.out):
        path.rename(f"{path}-whole")
    plans = [told(notes, "run", "--shard", f"{i}/3", "--dry-run")["ingest"]["plan"] for i in range(3)]
    dealt = [shard for plan in plans for shard in set(plan["ingest"].values())]
    assert sorted(f"documents/{shard}.jsonl.gz" for shard in dealt) == [n for n in whole if "documents/n/" in n]
    assert sum(len(plan["ingest"]) for plan in plans) == 40
    for i in range(3):
        told(notes, "run", "--shard", f"{i}/3")
    told(notes, "run")
    assert tree(notes.data) | tree(notes.out) == whole


@pytest.mark.slow
def test_two_processes_and_per_shard_make_the_same_bytes(notes: Project) -> None:
    told(notes, "run")
    data, out = tree(notes.data), tree(notes.out)
    for changes, arguments in (({"executor": {"type": "local"}, "processes": 2}, ()), ({}, ("--per-shard",))):
        for path in (notes.data, notes.out):
            path.rename(f"{path}-{len(arguments)}")
        config = notes.config | changes
        ran = Project(notes.root, notes.run, config).ok("run", *arguments)
        assert tree(notes.out) == out, ran.err
        assert arguments or tree(notes.data) == data


def test_limit_counts_packs(notes: Project) -> None:
    data = told(notes, "ingest", "--limit", "1")
    assert len(shards(notes)) == 1
    assert data["packs"] == 1
    assert data["inputs"] == len(documents(notes)) // 2


KILLER = '''
import os, signal
from collections.abc import Iterator
from toolkit.ingest.formats.text import Text
from toolkit.ingest.reader import Draft, Input

class Killer(Text):
    """Text; ends the process with the input that a file names, the first time."""
    MARK = MARK_PATH

    def read(self, source: Input) -> Iterator[Draft]:
        if os.path.exists(self.MARK) and open(self.MARK).read() in source.path:
            os.unlink(self.MARK)
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().read(source)
'''


@pytest.mark.slow
def test_killed_within_a_pack_and_run_again(notes: Project) -> None:
    mark, code = notes.root / "mark", notes.root / "killer.py"
    code.write_text(KILLER.replace("MARK_PATH", repr(str(mark))))
    notes.config["ingest"][0]["format"] = f"{code}:Killer"
    told(notes, "run")
    whole = all_of(notes)
    for name in ("016", "038"):
        for path in (notes.data, notes.out):
            shutil.rmtree(path)
        mark.write_text(f"/{name}.txt")
        command = [sys.executable, "-m", "toolkit.cli", "run", "-c", str(notes.yaml)]
        assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
        assert not mark.exists()
        told(notes, "run")
        assert all_of(notes) == whole


def test_the_bound_on_disk_counts_packs(notes: Project) -> None:
    notes.config["max_disk"] = "1 kB"
    notes("run").fails(2, "max_disk: expected room for about")
    notes.config["max_disk"] = "10 MB"
    told(notes, "run")


# Small shards are made in groups: by few calls, to the same bytes, and each for itself where something is wrong.

SHARDS = 40


@pytest.fixture
def many(project: Project) -> Project:
    """Many inputs of one document, in two folders, tagged and mixed."""
    for i in range(SHARDS):
        path = project.root / "in" / str(i % 2) / f"{i:02d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"id": f"{i}", "text": f"The text {i}\nis here.\n" * (1 + i % 3)}) + "\n")
    project.config |= {
        "processes": 1,
        "ingest": [{"format": "jsonl", "from": [f"{project.root}/in/**/*.jsonl"], "source": "s"}],
        "tag": {"shape-0": "line_shape", "noise-0": "noise"},
        "mix": mix_of(project.out, {"drop": "line_shape.lines > 5", "name": "long"}, attributes=["shape-0", "noise-0"]),
    }
    return project


@pytest.mark.slow
def test_each_byte_of_an_output_is_compressed_at_its_level_once(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def compress(data: bytes) -> bytes:
        sizes.append(len(data))
        return compress_small(data)

    monkeypatch.setitem(COMPRESSORS, "gzip", compress)
    many.ok("run")
    parts = [path for path in many.out.rglob("*.jsonl.gz") if ".toolkit" not in path.parts]
    assert sum(sizes) == sum(len(read_bytes(path)) for path in parts) > 0


def made(project: Project) -> dict[str, Any]:
    """All that a run leaves, and what the records of inputs say."""
    records = {key: (found.shards.keys(), found.rows) for key, found in inputs_of(project).items()}
    return tree(project.data) | tree(project.out) | records


def each_by_itself(project: Project, monkeypatch: pytest.MonkeyPatch, *commands: str) -> dict[str, Any]:
    """Return what commands leave that group nothing, and delete it."""
    with monkeypatch.context() as patch:
        patch.setattr(grouped, "LEAST", SHARDS + 1)
        for command in commands:
            project.ok(command)
    found = made(project)
    shutil.rmtree(project.data)
    shutil.rmtree(project.out)
    return found


@pytest.mark.slow
def test_groups_come_to_the_same_as_each_shard_by_itself(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = each_by_itself(many, monkeypatch, "ingest", "tag", "mix")
    for processes in (1, 2):
        many.ok("run", f"processes={processes}")
        assert made(many) == expected
        assert strays(many.root) == []
        assert "0 shards written" not in many.ok("run").out
        shutil.rmtree(many.data)
        shutil.rmtree(many.out)
    for command in ("ingest", "tag", "mix"):
        many.ok(command)
    assert made(many) == expected


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc, which says what a descriptor is")
@pytest.mark.parametrize("commands", [["run"], ["ingest", "tag", "mix"]])
def test_a_group_has_one_attempt_and_one_segment_of_each_kind_and_syncs_each_folder_once(
    many: Project, monkeypatch: pytest.MonkeyPatch, commands: list[str]
) -> None:
    monkeypatch.setattr("toolkit.execution.grouped.SECONDS", 600.0)  # a group ends by its size, however slow it is
    calls = Calls(monkeypatch)
    for command in commands:
        many.ok(command)
    renamed = [path for call, path in calls.all if call == "rename"]
    segments = Counter(os.path.dirname(path) for path in renamed if "/segments/" in path)
    assert len(segments) == 4  # of inputs, the dataset, intermediates, parts
    assert max(segments.values()) <= 3  # rows, sets and that ids are unique, where these are three commands
    folders = Counter(path for path in calls.synced if os.path.isdir(path) and "/documents/" in path)
    assert set(folders.values()) == {1}
    assert len(calls.synced) < 7 * SHARDS + 60 * len(commands)  # documents, index, two sets, intermediate; tables


@pytest.mark.slow
def test_what_fails_in_a_group_fails_alone(many: Project) -> None:
    broken = many.root / "in" / "1" / "17.jsonl"
    whole = broken.read_text()
    broken.write_text("no document\n")
    ran = many("run").fails(1)
    assert f"{broken}:1" in ran.out + ran.err
    assert "39 done" in ran.out
    assert "1 failed" in ran.out
    assert "1 input is not in this: its ingest failed or was interrupted" in ran.out
    inputs = RecordLog(str(many.data / ".toolkit/inputs"))
    assert [key for key, record in inputs.items("ingest") if b"begun" in record] == ["s/1/17.jsonl"]
    many("status").shows("17.jsonl")
    broken.write_text(whole)
    assert "40 done (39 before)" in many.ok("run").out
    assert strays(many.root) == []


def test_an_input_that_failed_is_made_again_by_itself_and_keeps_its_shard(
    many: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shard is there from before, without a record: the note of its attempt says whose it is."""
    many.ok("run")
    changed = many.root / "in" / "1" / "17.jsonl"
    whole = changed.read_text()
    changed.write_text("no document\n")
    assert many("ingest").code == 1
    changed.write_text(whole)
    monkeypatch.setattr(grouped, "LEAST", 1)
    many.ok("run")
    assert strays(many.root) == []


def test_a_file_that_is_nobody_s_is_not_replaced_by_a_group(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = many.documents / "s" / "0" / "08.jsonl.gz"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    for before in (0, 39):  # no note of an attempt, which the next run believes, names what is not the input's
        ran = many("ingest").fails(1)
        assert "expected no file here yet" in ran.out + ran.err
        assert theirs.read_bytes() == b"theirs"
        assert f"39 done ({before} before)" in ran.out
    shutil.rmtree(many.data / ".toolkit")
    for path in many.documents.rglob("*.gz"):
        if path != theirs:
            path.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(attempts.BatchedIngest, "of", _interrupted)
        assert many("ingest").code == 130
    assert many("ingest").code == 1
    assert theirs.read_bytes() == b"theirs"


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


WORKER = """
import os, signal, sys
call, number = sys.argv[1], int(sys.argv[2])
function = getattr(os, call)
def called(*arguments, **named):
    global number
    if "/.toolkit/leases/" not in str(arguments[-1]):
        number -= 1
        if number < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **named)
setattr(os, call, called)
from toolkit.cli import main
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("call", "number"), [("replace", n) for n in (2, 5, 60, 150, 210, 214)] + [("fsync", 100)])
def test_a_run_goes_on_after_a_kill_anywhere_in_a_group(
    many: Project, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    expected = each_by_itself(many, monkeypatch, "run")
    arguments = [sys.executable, "-c", WORKER, call, str(number), "run", "-c", str(many.yaml), "--quiet"]
    killed = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if number % 2:
        many.ok("run")
    else:  # other groups than before
        monkeypatch.setattr(grouped, "MOST", 7)
        for command in ("ingest", "tag", "mix"):
            many.ok(command)
    assert made(many) == expected
    assert strays(many.root) == []
