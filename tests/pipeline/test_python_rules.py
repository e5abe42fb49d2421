"""Rules that are a function in Python: what they decide, what their errors name, and that an edit counts."""

from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, tree
from toolkit.describe.made import mixed_sets
from toolkit.inspect.targets import recorded_format
from toolkit.mix.publish import load_manifest

FUNCTION = """
def short(document, attributes):
    return len(document.text) < 10 and attributes["noise"]["chars"] >= 0 and document.source == "s"
"""


@pytest.fixture
def ruled(small: Project) -> Project:
    """The small data set with a rule by a function beside the configuration."""
    (small.root / "my.py").write_text(FUNCTION)
    small.config["mix"]["rules"] = [{"drop": "python", "function": "my.py:short", "name": "brief"}]
    return small


def test_a_function_drops_or_keeps(ruled: Project) -> None:
    texts = {
        row["text"]
        for path in ruled.documents.rglob("*.gz")
        for row in ruled.shard(str(path.relative_to(ruled.documents)))
    }
    ruled.ok("mix")
    dropped = {row["text"] for row in ruled.output()}
    assert dropped == {text for text in texts if len(text) >= 10}
    ruled.config["mix"]["rules"] = [{"keep": "python", "function": "my.py:short", "when": "noise.chars > 0"}]
    ruled.ok("mix")
    assert {row["text"] for row in ruled.output()} == {text for text in texts if not text or len(text) < 10}


def test_the_same_bytes_from_run_and_from_two_processes(ruled: Project, tmp_path: Path) -> None:
    ruled.ok("mix")
    one = tree(ruled.out)
    ruled.config |= {"executor": {"type": "local"}, "processes": 2}
    ruled.config["mix"]["output"]["path"] = str(tmp_path / "two")
    ruled.ok("mix")
    assert tree(tmp_path / "two") == one


def test_an_edited_function_is_run_again_and_a_comment_is_none(ruled: Project) -> None:
    ruled.ok("mix")
    (ruled.root / "my.py").write_text("# a comment\n" + FUNCTION)
    before = len(ruled.output())
    written = {path: path.stat().st_ino for path in ruled.out.rglob("*.gz")}
    ruled.ok("mix")
    assert {path: path.stat().st_ino for path in ruled.out.rglob("*.gz")} == written
    (ruled.root / "my.py").write_text(FUNCTION.replace("< 10", "< 20"))
    ruled.ok("mix")
    assert len(ruled.output()) < before


def test_a_dry_run_says_that_it_reads_the_text(ruled: Project) -> None:
    ran = ruled.ok("mix", "--dry-run")
    assert "so the documents were read with their text" in ran.out
    assert "brief" in ran.out


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 // 0 > 0", "my.py:3: ZeroDivisionError"),
        ("return len(document.text)", "my.py:2: expected True or False from"),
        ("return __import__('json').loads(document.id)", "my.py:3: JSONDecodeError"),
        ("return document.adress", "my.py:3: AttributeError"),
        ("import sys; sys.exit(3)", "my.py:3: SystemExit: 3"),
    ],
)
def test_an_error_names_file_row_and_document(ruled: Project, body: str, message: str) -> None:
    (ruled.root / "my.py").write_text(f"\ndef short(document, attributes):\n    {body}\n")
    ruled("mix").fails(1, "rule 'brief'", message, "b.jsonl.gz:1: ", "(document 'b-1')")
    assert ruled.output() == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("my.py:shrt", "expected a function shrt in"),
        ("your.py:short", "expected a Python file, got none there"),
        ("odd.py:one", "odd.py:1: expected a function of (document, attributes), got (document): too many"),
        ("odd.py:three", "odd.py:3: expected a function of (document, attributes), got (a, b, c): missing a"),
        (
            "odd.py:later",
            "odd.py:5: expected a function of (document, attributes) that returns True or False, got a co",
        ),
        ("my.py", "expected the file and its function, such as my.py:function"),
    ],
)
def test_a_function_that_is_not_there_or_cannot_be_called_is_refused(
    ruled: Project, function: str, message: str
) -> None:
    odd = ("def one(document):", "def three(a, b, c):", "async def later(document, attributes):")
    (ruled.root / "odd.py").write_text("".join(f"{head}\n    return True\n" for head in odd))
    ruled.config["mix"]["rules"] = [{"drop": "python", "function": function}]
    ruled("mix", "--dry-run").fails(2, "mix.rules[0].function", message)


def test_the_lineage_has_all_sets_that_a_function_may_read(ruled: Project) -> None:
    ruled.ok("mix")
    manifest = load_manifest(str(ruled.out))
    assert manifest
    assert {each.set for each in mixed_sets(manifest, recorded_format(manifest.settings).writer())} == {"shape-0"}
