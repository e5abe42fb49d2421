"""``toolkit publish``: an output with its card and Croissant file, checked, without records and dropped documents."""

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.storage.conftest import bucket, seaweed
from toolkit.publish import folder
from toolkit.storage.paths import join, list_files

__all__ = ["bucket", "seaweed"]

ABOUT = {
    "name": "Letters", "description": "Letters of ours.", "version": "1.0.0", "date_published": "2026-05-18",
    "license": "https://creativecommons.org/publicdomain/zero/1.0/", "url": "https://example.org/letters",
    "creator": {"type": "Person", "name": "Somebody"},
}  # fmt: skip


@pytest.fixture
def mixed(project: Project) -> Project:
    """An output of two languages with descriptions, whose dropped documents are kept beside it."""
    rows = [document(f"{i}", "text " * 50, metadata={"language": ["fr", "de", None][i % 3]}) for i in range(60)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    project.config["about"] = ABOUT
    project.config["mix"] = {
        "rules": [{"drop": "metadata.language is None", "name": "none"}],
        "rejected": str(project.root / "dropped"),
        "output": {
            "format": "text", "path": str(project.out), "identification": "metadata.language", "layout": "folders",
            "part_size": "2 kB",
        },
    }  # fmt: skip
    project.ok("mix")
    project.ok("card")
    project.ok("croissant")
    return project


@pytest.mark.slow
def test_all_of_an_output_but_records_and_dropped_documents(mixed: Project, run: Run) -> None:
    to = mixed.root / "published"
    dry = mixed.ok("publish", "--to", to, "--dry-run", "--json").json
    assert not to.exists()
    mixed.ok("publish", "--to", to)
    assert tree(to, bookkeeping=True) == tree(mixed.out)
    assert sorted(dry["files"]) == sorted(tree(to))
    assert dry["files"][-1] == "README.md"
    assert not [name for name in tree(to, bookkeeping=True) if "rejected" in name or ".toolkit" in name]
    run("validate", to).succeeds()
    again = run("publish", mixed.out, "--to", to, "--json")
    assert set(again.json["became"].values()) == {"there"}
    run("fetch", to, "--label", "fr", "--to", mixed.root / "got").succeeds()


@pytest.mark.slow
def test_another_version_replaces_the_one_before(mixed: Project, run: Run) -> None:
    to = mixed.root / "published"
    mixed.ok("publish", "--to", to)
    (to / ".git").mkdir()
    (to / ".git" / "config").write_text("mine")
    (to / "LICENSE").write_text("mine")
    mixed.config["mix"]["rules"].append({"drop": "metadata.language == 'de'", "name": "de"})
    mixed.config["about"] = ABOUT | {"version": "2.0.0"}
    mixed.ok("mix")
    mixed.ok("card")
    mixed.ok("croissant")
    deleted = mixed.ok("publish", "--to", to, "--json").json["deleted"]
    assert deleted
    assert {name.partition("/")[0] for name in deleted} == {"de"}
    assert {name for name in tree(to) if name not in tree(mixed.out)} == {".git/config", "LICENSE"}


@pytest.mark.slow
def test_what_is_not_ready_is_not_published(mixed: Project, run: Run) -> None:
    to = mixed.root / "published"

    def refused(code: int = 2) -> str:
        ran = run("publish", mixed.out, "--to", to)
        assert (ran.code, to.exists()) == (code, False), ran.out + ran.err
        return ran.out + ran.err

    for name, command in (("README.md", "`toolkit card`"), ("croissant.json", "`toolkit croissant`")):
        text = (mixed.out / name).read_text()
        (mixed.out / name).unlink()
        assert f"{mixed.out / name}: expected this file, which is published" in (said := refused())
        assert command in said
        (mixed.out / name).write_text(text)
    card = (mixed.out / "README.md").read_text()
    (mixed.out / "README.md").write_text(card.replace("num_examples: 20", "num_examples: 21", 1))
    assert "num_examples: expected 20" in refused(1)
    (mixed.out / "README.md").write_text("# mine\n")
    assert "expected a card that `toolkit card` wrote" in refused()
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    (mixed.out / "README.md").write_text(card + f"\n<!-- toolkit: keep a -->\n{key}\n<!-- toolkit: end a -->\n")
    said = refused(1)
    assert "expected no credentials, got a key of AWS" in said
    assert key not in said
    (mixed.out / "README.md").write_text(card)
    (mixed.out / "card.html").write_text(f"<p>{key}</p>\n")
    assert f"{mixed.out / 'card.html'}:1: expected no credentials, got a key of AWS" in refused(1)
    (mixed.out / "card.html").unlink()
    part = next(mixed.out.rglob("*.txt.gz"))
    whole = part.read_bytes()
    part.write_bytes(whole + b"x")
    assert str(part) in refused(1)
    part.write_bytes(whole)
    (mixed.out / "fr" / "more.txt").write_text("more")
    assert "expected only files that the manifest lists" in refused(1)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("fr/fr_part_9.txt.gz", "expected only what was published here before"),
        (".toolkit/manifest.json", ""),
        *slow(("README.md", "expected none, or a card that `toolkit card` wrote")),
    ],
)
def test_what_others_have_there_stays(mixed: Project, run: Run, name: str, error: str) -> None:
    to = mixed.root / "published"
    (to / name).parent.mkdir(parents=True)
    (to / name).write_text("mine")
    before = tree(to, bookkeeping=True)
    ran = run("publish", mixed.out, "--to", to)
    assert ran.code in (1, 2)
    assert error in ran.err
    assert tree(to, bookkeeping=True) == before


def test_mistakes_are_told(mixed: Project, run: Run) -> None:
    for arguments, error in (
        ((mixed.out, "--to", mixed.out / "x"), "expected a path separate from"),
        ((mixed.data, "--to", mixed.root / "x"), "expected the output of a mix"),
        ((mixed.out, "--to", "https://example.org/x"), "expected a folder that may be written in"),
        ((mixed.out, "--to", "hf://me/x"), "expected hf://datasets/USER/NAME"),
    ):
        run("publish", *arguments).fails(2, error)


@pytest.mark.s3
@pytest.mark.slow
def test_in_a_bucket(mixed: Project, bucket: str, run: Run) -> None:
    mixed.ok("publish", "--to", join(bucket, "letters"))
    assert list(list_files(join(bucket, "letters"), hidden=True)) == sorted(tree(mixed.out))
    assert run("validate", join(bucket, "letters")).code == 0


@pytest.mark.parametrize(
    "text",
    [
        "hf_" + "a" * 34,
        "ghp_" + "A1" * 18,
        "-----BEGIN RSA PRIVATE KEY-----",
        "see https://me:sesame@example.org/x",
        "<https://example.org/x?X-Amz-Signature=abcdef12>",
        "the-secret-of-the-environment",
    ],
)
def test_credentials_are_found_with_their_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret-of-the-environment")
    assert [line for line, _ in folder.credentials_in(f"one\n{text}, and more\n")] == [2]


def test_what_only_looks_like_credentials_is_none() -> None:
    text = f"sha256: {'0f' * 32}\nhttps://example.org/x?page=2\nmailto:me@example.org\nhf_dataset\nhttps://…@host/x"
    assert list(folder.credentials_in(text)) == []
