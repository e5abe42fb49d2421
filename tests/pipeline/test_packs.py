"""Small inputs share shards: with the ids that they would have alone, and with what else depends on inputs."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, inputs_of, read_rows, strays, tree
from tests.pipeline.test_one_pass import all_of
from tests.recipes import mix_of
from toolkit.data.dataset import open_dataset
from toolkit.records.ingested import save

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
    ran = project.ingest(entry(project.root, pack="1 kB"))
    assert ran.code == 2
    assert "expected one input for each shard, got" in ran.err
    assert "000.pack.txt" in ran.err


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
    assert [id for id, _ in documents(notes)] == [*ids(range(40)), *ids(range(50, 52))]


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
    ran = project.ingest(one)
    assert ran.code == 1
    assert [f"{project.root}/in/{i}.jsonl:{i + 1}: expected" in ran.err for i in range(3)] == [True] * 3
    assert project.ingest({**one, "on_error": "skip"}).code == 0
    kept = read_rows(project.data / ".toolkit" / "rejects" / "j" / "0.pack.jsonl.gz")
    assert [(row["input"], row["number"]) for row in kept] == [
        (f"{project.root}/in/{i}.jsonl", i + 1) for i in range(3)
    ]
    assert len(project.shard("j/0.pack.jsonl.gz")) == 120
    assert project.ingest({**one, "on_error": "skip", "max_rejected": 0.01}).code == 1


@pytest.mark.parametrize("before", [None, "1 kB", "64 MB"])
@pytest.mark.parametrize("after", [None, "2 kB"])
def test_another_pack_is_refused_as_other_settings_are(notes: Project, before: str | None, after: str | None) -> None:
    if before is None and after is None:
        return
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
