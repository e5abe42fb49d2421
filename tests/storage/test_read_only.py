"""Whoever may only read can look: no command that shows something needs permission to write where it reads."""

from pathlib import Path

import pytest

from tests.conftest import Run
from tests.storage.conftest import use
from tests.storage.servers import Faults, Seaweed, proxy
from tests.storage.test_outcomes import lay_out, tree
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files

WRITES = "^(PUT|POST|DELETE) "


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize("lost", ["rows", ""])
def test_commands_that_only_show_write_nothing_where_they_may_not(
    lost: str, bucket: str, seaweed: Seaweed, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = lay_out(bucket, tmp_path, shards=2), join(bucket, "data")
    for stage in ("ingest", "tag", "mix"):
        assert run(stage, "-c", path, "--quiet").code == 0
    folder = join(data, ".toolkit", lost)  # indexes, or all records: then the sets are those of others
    for name in list_files(folder, hidden=True):
        store_of(data).remove(join(folder, name))
    before = tree(bucket)
    of_sets = ("shape-0.line_shape.chars", "noise-0.noise.chars")
    commands: list[tuple[object, ...]] = [
        ("validate", data), ("stats", data), ("head", "-c", path), ("sql", "select count(*) from documents", data),
        ("compare", "-c", path, *of_sets), ("report", data, "-o", tmp_path / "r.html"), ("card", data, "--dry-run"),
        ("run" if lost else "ingest", "-c", path, "--dry-run"),
    ]  # fmt: skip
    if lost:
        commands += [("mix", "-c", path, "--dry-run"), ("validate", "-c", path)]
    with proxy(lambda: seaweed.port, Faults({"403": 1.0}, only=WRITES)) as url:
        use(monkeypatch, url)
        for command in commands:
            run(*command, "--quiet").succeeds()
        use(monkeypatch, seaweed.url)
        shard = join(data, "documents", next(iter(list_files(join(data, "documents")))))
        write_file(shard.replace("/0.", "/copy."), store_of(data).read(shard))
        use(monkeypatch, url)
        ran = run("validate", data, "--quiet")
        assert "expected each (source, id) once" in ran.out, "what needs all indexes is looked at, too"
    use(monkeypatch, seaweed.url)
    store_of(data).remove(shard.replace("/0.", "/copy."))
    assert tree(bucket) == before
