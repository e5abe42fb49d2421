"""How many syncs a command costs, and in which order: what lies together becomes durable together."""

import os
from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, document, sha256sum_accepts, strays, tree, write_rows
from toolkit.mix import assemble
from toolkit.mix.plan import PartPlan, Piece

LABELS = 40


class Calls:
    """The calls that make files durable, and give them their names, in their order, with paths."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.all: list[tuple[str, str]] = []
        sync, replace = os.fsync, os.replace

        def synced(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            self.synced.append(path)
            self.all.append(("sync", path))
            sync(descriptor)

        def replaced(source: str, target: str) -> None:
            self.all.append(("rename", os.path.abspath(target)))
            replace(source, target)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", replaced)


@pytest.fixture
def routed(project: Project) -> Project:
    """A mix with a part for each of many labels, which is not run yet; its first stage is done."""
    rows = [document(f"{i}", f"The text number {i} is here.\n") for i in range(LABELS)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.mixes({"route": "'label-' + document.id"})
    return project


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc, which says what a descriptor is")
def test_parts_of_many_labels_are_published_by_a_few_syncs_each(
    routed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part, a checksum file and their folders: each is synced once, records of all parts are one file."""
    calls = Calls(monkeypatch)
    routed.ok("mix")
    work, documents = str(routed.out / ".toolkit"), str(routed.out / "documents")
    parts = [path for path in calls.synced if path.startswith(work + "/parts/")]
    published = [path for path in calls.synced if path.startswith(str(routed.out)) and not path.startswith(work)]
    assert LABELS < len(parts) < LABELS + 10  # the part; for all of them their folder, and records
    assert sum(path.endswith(".tmp") for path in published) == LABELS  # a checksum file
    assert published.count(documents) == 1
    assert len(calls.synced) - len(published) - len(parts) < 40
    appeared = [
        path for call, path in calls.all if call == "rename" and path.startswith((documents, f"{routed.out}/l"))
    ]
    assert all(path.endswith(".jsonl.gz") for path in appeared[:LABELS])
    assert all(path.endswith("_sha256.txt") for path in appeared[LABELS:])
    assert len(appeared) == 2 * LABELS
    assert all(sha256sum_accepts(path) for path in routed.out.rglob("*_sha256.txt"))
    assert strays(routed.root) == []


def test_parts_lie_where_they_belong_however_they_are_grouped(routed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    routed.ok("mix")
    expected = tree(routed.out)
    monkeypatch.setattr(assemble, "LEAST", 1)
    monkeypatch.setattr(assemble, "GROUP", 100)
    routed.config["mix"]["output"]["path"] = str(routed.root / "other")
    routed.ok("mix")
    assert tree(routed.root / "other") == expected


def test_a_part_that_fails_takes_none_of_its_group_along(routed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is there of a group is not made again."""
    made: list[str] = []
    assembled, broken = assemble._assemble, ["documents/label-7.", "documents/label-8."]

    def watched(work: assemble.PartsToWrite, part: PartPlan, *rest: object) -> assemble.PartRecord:
        if work.record(part) is None:
            made.append(part.path)
        if part.path.startswith(tuple(broken)):
            part = PartPlan(part.label, part.path, part.pieces, part.size + 1, part.documents)
        return assembled(work, part, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(assemble, "_assemble", watched)
    ran = routed("mix")
    assert ran.code == 1
    told = [line for line in ran.err.splitlines() if "as planned, got" in line]
    assert all(any(f"{routed.out}/{label}" in line for line in told) for label in broken)
    assert tree(routed.out) == {}
    assert len(made) == LABELS
    made.clear()
    broken.clear()
    routed.ok("mix")
    assert len(made) == 2
    assert len(tree(routed.out)) == 2 * LABELS


def test_groups_are_of_parts_that_follow_one_another() -> None:
    def part(size: int) -> PartPlan:
        return PartPlan("x", str(size), [Piece([("a", 0, size)])], size, 1)

    def sizes(stored: list[int], processes: int) -> list[list[int]]:
        return [[each.stored for each in group] for group in assemble.in_groups(map(part, stored), processes)]

    least, most = assemble.LEAST, assemble.GROUP
    assert sizes([], 2) == []
    assert sizes([1] * 1000, 2) == [[1] * 1000]
    assert sizes([least, 1, least], 2) == [[least], [1], [least]]
    assert sizes([10 * most, 1, most - 1, 1], 2) == [[10 * most], [1, most - 1], [1]]
    assert len(sizes([least // 2] * 64, 4)) == 8
