"""What ``mix --explain`` and ``--compare`` show: documents of a rule, drawn or the first, with their texts."""

import json
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, write_rows
from toolkit.data import excerpts
from toolkit.data.row_index import row_hash
from toolkit.tag.sample import key_of

COUNT = 300


@pytest.fixture
def looked_at(project: Project) -> Project:
    """Two shards; a rule that drops, and two that edit the same documents."""
    for shard in ("a.jsonl.gz", "b.jsonl.gz"):
        rows = [
            document(
                f"{shard[0]}{i}",
                f"\x1b[31mtext\u202e {i}\nWrite to someone{i}@example.org, or not. " + "And so on. " * (i % 7),
            )
            for i in range(COUNT)
        ]
        write_rows(project.documents / shard, rows)
    project.config["tag"] = {"mail-0": ["emails", "length"]}
    project.mixes(
        {"drop": "length.chars > 90", "name": "long"},
        {"replace": "emails", "by": "MAIL", "name": "mail"},
        {"annotate": "short", "when": "length.chars < 80", "name": "short"},
        attributes=["mail-0"],
        output={"attributes": False},
    )
    project.ok("tag")
    return project


def explained(project: Project, *options: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.ok("mix", "--explain", *options, "--json").json["documents"]
    return found


def length(project: Project) -> dict[str, int]:
    return {row["id"]: len(row["text"]) for shard in ("a", "b") for row in project.shard(f"{shard}.jsonl.gz")}


def test_no_document_is_shown_twice(looked_at: Project) -> None:
    """Whatever number of rules it is a sample for."""
    for options in (["5"], ["-n", 5], ["5", "--seed", 3]):
        found = explained(looked_at, *options)
        assert [each["deciding"] for each in found] == [0] * 5 + [1] * 5 + [2] * 5
        assert len({each["id"] for each in found}) == 15


@pytest.mark.slow
def test_documents_of_a_rule_are_drawn_from_all_that_there_are(looked_at: Project) -> None:
    long = [id for id, chars in length(looked_at).items() if chars > 90]
    drawn = sorted(long, key=lambda each: key_of(row_hash("s", each), 4))[:20]
    found = explained(looked_at, "--rule", "long", "-n", 20, "--seed", 4)
    assert [each["id"] for each in found] == drawn
    assert {each["dropped"] for each in found} == {"long"}
    looked_at.config["executor"] = {"type": "local"}
    assert explained(looked_at, "--rule", "long", "-n", 20, "--seed", 4, "processes=2") == found
    assert [each["id"] for each in explained(looked_at, "--rule", "long", "-n", 2)] == long[:2]


def test_what_a_rule_is_about_is_shown(looked_at: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    (edited,) = explained(looked_at, "--rule", "mail", "-n", 1)
    (stretch,) = edited["stretches"]
    assert stretch["text"] == f"someone{edited['id'][1:]}@example.org"
    assert stretch["before"].endswith("Write to ")
    assert edited["text"].startswith("\x1b[31mtext\u202e")
    out = looked_at.ok("mix", "--explain", "1").out
    assert "[someone" in out
    assert not {"\x1b", "\u202e"} & set(out)
    texts = [line for line in out.splitlines() if line.startswith("    | ")]
    assert len(texts) == 3
    assert all(len(line) <= 50 for line in texts)
    assert texts[0].startswith(r"    | \x1b[31mtext\u{202e} 4⏎Write")


def test_a_comparison_shows_texts_too(looked_at: Project) -> None:
    looked_at.config["mix"]["rules"][0]["drop"] = "length.chars > 110"
    (looked_at.root / "other.yaml").write_text(json.dumps(looked_at.config))
    looked_at.config["mix"]["rules"][0]["drop"] = "length.chars > 90"
    gained = [id for id, chars in length(looked_at).items() if 90 < chars <= 110]
    other = looked_at.root / "other.yaml"
    told = looked_at.ok("mix", "--compare", other, "-n", 7, "--seed", 2, "--rule", "long", "--json").json
    assert told["gained"] == {"long": len(gained)}
    drawn = sorted(gained, key=lambda each: key_of(row_hash("s", each), 2))[:7]
    assert [each["id"] for each in told["samples"]] == drawn
    texts = {row["id"]: row["text"] for shard in ("a", "b") for row in looked_at.shard(f"{shard}.jsonl.gz")}
    assert [each["text"] for each in told["samples"]] == [texts[id] for id in drawn]
    first = looked_at.ok("mix", "--compare", other, "-n", 2, "--json").json["samples"]
    assert [each["id"] for each in first] == gained[:2]
    assert r"    | \x1b[31mtext\u{202e} " in looked_at.ok("mix", "--compare", other).out


def test_options_that_do_nothing_are_refused(looked_at: Project) -> None:
    for option in (["--rule", "long"], ["--seed", 1]):
        assert "only with --explain or --compare" in looked_at("mix", *option).err
    ran = looked_at("mix", "--explain", "3", "--rule", "lng")
    assert (ran.code, ran.out) == (2, "")
    assert "expected the name of a rule, got 'lng'; did you mean 'long'" in ran.err


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("plain", 10, "plain"),
        ("0123456789", 10, "0123456789"),
        ("0123456789a", 10, "012345678…"),
        ("a\nb\tc\r", 20, "a⏎b c\\x0d"),
        ("図書館は九時", 12, "図書館は九時"),
        ("図書館は九時", 11, "図書館は九…"),
        ("a\u2066b\u2069\x07\ud800", 40, "a\\u{2066}b\\u{2069}\\x07\\u{d800}"),
        ("می\u200cخواهم", 20, "می\u200cخواهم"),
        ("", 5, ""),
    ],
)
def test_a_text_is_shown_in_so_many_columns(text: str, room: int, shown: str) -> None:
    assert excerpts.head(text, room) == shown
    assert excerpts.columns(shown.replace("\u200c", "")) <= room


def test_stats_count_what_was_rejected_by_reason(looked_at: Project) -> None:
    """By a mix, of which the rule is the reason; and by an ingest."""
    rejected = looked_at.root / "rejected"
    looked_at.config["mix"]["rejected"] = str(rejected)
    looked_at.config["mix"]["rules"].insert(0, {"drop": "length.lines > 9", "name": "never"})
    looked_at.ok("mix")
    long = sum(chars > 90 for chars in length(looked_at).values())
    told = looked_at.run("stats", rejected, "--by", "reason", "--json").json
    assert [(row["group"], row["documents"]) for row in told["tables"][0]["groups"]] == [("long", long)]
    told = looked_at.ok("stats", "--mix", "--json").json
    assert told["rejected"] == {"never": 0, "long": long}
    assert f"long: {long:,}" in looked_at.ok("stats", "--mix").out
    lines = [{"id": str(i), "text": "some text", "source": "s"} for i in range(50)]
    write_rows(looked_at.root / "in.jsonl", [*lines, b"[]", b"no JSON", b"{}", b"{}"])
    looked_at.config = {"dataset": str(looked_at.root / "own"), "executor": {"type": "in_process"}}
    entry = {"format": "jsonl", "from": str(looked_at.root / "in.jsonl"), "source": "s", "on_error": "skip"}
    assert looked_at.ingest(entry).code == 0
    told = looked_at.ok("stats", "--json").json
    assert sum(told["rejected"].values()) == 4
    assert "rejected by ingest: 4 items: " in looked_at.ok("stats").out
