"""`toolkit.publish` and `toolkit.fetch`: what the commands do, from Python."""

import pytest

import toolkit
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.pipeline.test_publish import ABOUT


@pytest.fixture
def mixed(project: Project) -> Project:
    """An output with its descriptions."""
    write_rows(project.documents / "a.jsonl.gz", [document(f"a{i}", "some text " * 20) for i in range(9)])
    output = {"format": "dolma", "path": str(project.out), "part_size": "300 B"}
    project.config |= {"about": ABOUT, "mix": {"rules": [], "output": output}}
    for command in ("mix", "card", "croissant"):
        project.ok(command)
    return project


def test_an_output_is_published_and_fetched(mixed: Project) -> None:
    to, got = mixed.root / "published", mixed.root / "got"
    preview = toolkit.publish(mixed.config, to, dry_run=True)
    assert not preview.became
    assert not to.exists()
    published = toolkit.publish(mixed.out, to)
    assert set(published.files) == set(tree(to))
    assert set(published.became.values()) == {"fetched"}
    assert set(toolkit.publish(mixed.config, str(to)).became.values()) == {"there"}
    (path, *_) = parts = sorted(path for path in published.files if path.endswith(".gz"))
    assert len(parts) > 1
    fetched = toolkit.fetch(to, "documents", to=got, most=(to / path).stat().st_size, storage={"give_up": "10s"})
    assert (fetched.labels, fetched.files) == ({"documents": [path]}, {path: "fetched"})
    assert fetched.bytes == (got / path).stat().st_size
    assert str(fetched).endswith("all 1 match their checksums")
    assert toolkit.fetch(to, ["documents"], to=got, dry_run=True).labels == {"documents": parts}


def test_what_is_wrong_is_raised(mixed: Project) -> None:
    to = mixed.root / "published"
    with pytest.raises(toolkit.ConfigError, match="most: expected"):
        toolkit.fetch(to, "documents", most="much")
    with pytest.raises(toolkit.ConfigError, match="--public: expected --to hf://"):
        toolkit.publish(mixed.out, to, public=True)
    part = next(mixed.out.rglob("*.gz"))
    part.write_bytes(part.read_bytes() + b"x")
    with pytest.raises(toolkit.Failed) as failed:
        toolkit.publish(mixed.out, to)
    assert any(str(part) in finding for finding in failed.value.failures)
    assert (failed.value.result.findings, to.exists()) == (failed.value.failures, False)
