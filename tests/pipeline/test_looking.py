"""What ``mix --explain`` and ``--compare`` show: documents of a rule, drawn or the first, with their texts."""

import json
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.conftest import Run
from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from toolkit.data import excerpts
from toolkit.data.row_index import row_hash
from toolkit.rules.rule import sample_hash
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


# Samples, and why documents are kept or dropped.

SHARD = "a.jsonl.gz"


@pytest.fixture
def numbered(project: Project) -> Project:
    """2,000 documents with a number each, of which every fourth is null."""
    write_rows(project.documents / SHARD, (document(str(i), f"text {i}") for i in range(2000)))
    values = ({"n": None if i % 4 == 3 else i, "label": {"best": "en" if i % 2 else "de"}} for i in range(2000))
    write_rows(project.attributes / "exp" / SHARD, (attributes(str(i), v) for i, v in enumerate(values)))
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["exp"], "output": output, "allow_empty": True}
    return project


def ids(project: Project, *rules: dict[str, Any]) -> set[str]:
    project.config["mix"]["rules"] = list(rules)
    project.ok("mix")
    return {row["id"] for row in project.output()}


@pytest.mark.slow
def test_a_larger_sample_contains_the_smaller_and_both_are_about_their_size(numbered: Project) -> None:
    small, large = ids(numbered, {"sample": 0.1}), ids(numbered, {"sample": 0.3})
    assert small < large
    assert 150 < len(small) < 250
    assert 520 < len(large) < 680
    source = document("1", "x")["source"]
    assert small == {str(i) for i in range(2000) if sample_hash("", source, str(i)) < 0.1 * 2**64}
    assert ids(numbered, {"sample": 0}) == set()
    assert len(ids(numbered, {"sample": 1})) == 2000
    assert ids(numbered, {"sample": 0.1, "seed": 7}) != small


def test_a_sample_is_drawn_from_those_for_which_its_condition_holds(numbered: Project) -> None:
    found = ids(numbered, {"sample": 0.1, "when": 'label.best == "en"'})
    assert len([i for i in found if int(i) % 2 == 0]) == 1000
    assert 60 < len([i for i in found if int(i) % 2]) < 140
    effects = numbered.ok("mix", "--dry-run", "--json").json["rules"]
    assert effects[0]["documents"] == 2000 - len(found)


def test_a_document_is_explained_rule_by_rule(numbered: Project) -> None:
    numbered.config["mix"]["rules"] = [
        {"drop": "n is None", "name": "absent"},
        {"drop": "n > 1000", "name": "large"},
        {"annotate": "english", "when": 'label.best == "en"'},
    ]
    found = numbered.ok("mix", "--explain", "2", "--json").json["documents"]
    assert [each["deciding"] for each in found] == [0, 0, 1, 1, 2, 2]
    text = numbered.ok("mix", "--explain", "1").out
    assert f"{SHARD}:4\n  dropped by 'absent': `n is None` is true\n    with n = null\n" in text, "the first"
    assert "absent   drops it  (n = null)" in text
    assert "large    is not reached" in text
    assert "large    drops it  (n = 1001)" in text
    assert 'english  annotates it  (label.best = "en")' in text
    assert not numbered.out.exists(), "nothing is written"


@pytest.mark.parametrize(
    ("rule", "verdict", "values"),
    [
        ({"drop": "n is not None and (n < 0 or n > 5)"}, "`n is not None` is true and `n > 5` is true", {"n": 6}),
        ({"drop": "n is None or n < 0 or not n <= 1"}, "`n <= 1` is false", {"n": 2}),
        (
            {"keep": "n is None or n < 1", "when": "label.best == 'en'"},
            "`n is None` is false and `n < 1` is false",
            {"n": 1},
        ),
        ({"keep": "n is not None and n >= limit"}, "`n >= limit` is false", {"n": 0, "limit": 5}),
        ({"sample": 0.0}, "drops it", {}),
    ],
)
def test_an_explanation_begins_with_what_decided(
    numbered: Project, rule: dict[str, Any], verdict: str, values: dict[str, Any]
) -> None:
    if "limit" in values:
        numbered.config["mix"]["parameters"] = {"limit": values["limit"]}
    numbered.config["mix"]["rules"] = [{**rule, "name": "it"}]
    (found,) = numbered.ok("mix", "--explain", "1", "--json").json["documents"]
    assert found["reason"] == {"rule": "it", "verdict": verdict, "values": values}


def test_an_unknown_document_cannot_be_explained(numbered: Project) -> None:
    numbered.config["mix"]["rules"] = []
    numbered("mix", "--explain", "nobody").fails(2, "expected a document with the id or URL 'nobody'")


CONDITIONS = ["n is None", "n is not None and n % 3 == 0", "n is not None and n > 40", 'label.best == "en"', "1 > 2"]
RULES = st.one_of(
    st.builds(lambda c: {"drop": c}, st.sampled_from(CONDITIONS)),
    st.builds(lambda c: {"keep": c}, st.sampled_from(CONDITIONS)),
    st.builds(lambda share, seed: {"sample": share, "seed": seed}, st.sampled_from([0.2, 0.9]), st.integers(0, 3)),
    st.builds(lambda c: {"annotate": "a", "when": c}, st.sampled_from(CONDITIONS)),
)


@pytest.mark.slow
@given(st.lists(RULES, max_size=4), st.sampled_from([300, 3000, 10**9]))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_output_and_rejected_are_the_input_nothing_else_and_nothing_twice(
    numbered: Project, rules: list[dict[str, Any]], part_size: int
) -> None:
    rows = [document(str(i), f"text {i}") for i in range(60)]
    write_rows(numbered.documents / SHARD, rows)
    values = ({"n": None if i % 4 == 3 else i, "label": {"best": "en" if i % 2 else "de"}} for i in range(60))
    write_rows(numbered.attributes / "exp" / SHARD, (attributes(str(i), v) for i, v in enumerate(values)))
    rejected = numbered.root / "rejected"
    numbered.config["mix"] = {
        "attributes": ["exp"],
        "rules": [rule | {"name": str(i)} for i, rule in enumerate(rules)],
        "rejected": str(rejected),
        "allow_empty": True,
        "output": {"format": "dolma", "path": str(numbered.out), "part_size": part_size},
    }
    result = numbered.ok("mix", "--json").json
    output = numbered.output()
    dropped = [row for path in sorted(rejected.rglob("*.jsonl.gz")) for row in read_rows(path)]
    by_rule = Counter(row["rejected"]["rule"] for row in dropped)
    effects = {each["name"]: each["documents"] for each in result["rules"] if each["kind"] != "annotate"}
    assert by_rule == {name: n for name, n in effects.items() if n}
    found = [{k: v for k, v in row.items() if k not in ("rejected", "metadata")} for row in output + dropped]
    key = itemgetter("id")
    assert sorted(found, key=key) == sorted(({k: v for k, v in r.items() if k != "metadata"} for r in rows), key=key)
    assert result["totals"]["kept"] == len(output)


def test_rejected_documents_say_what_the_rule_saw_and_go_with_their_rule(numbered: Project) -> None:
    rejected = numbered.root / "rejected"
    numbered.config["mix"] |= {"rejected": str(rejected), "rules": [{"drop": "n is None", "name": "absent"}]}
    numbered.ok("mix")
    (path,) = rejected.rglob("*.jsonl.gz")
    first = read_rows(path)[0]
    assert first == document("3", "text 3") | {"rejected": {"rule": "absent", "values": {"n": None}}}
    numbered.config["mix"]["rules"] = []
    numbered.ok("mix")
    assert not list(rejected.rglob("*.gz")), "nothing is dropped any more"
    numbered.ok("validate")


# What a beginner writes, and the way out that each message names.


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["mix", "--dryrun", "-c", "c.yaml"], "did you mean '--dry-run'?"),
        (["ingset", "-c", "c.yaml"], "expected a command, got 'ingset'; did you mean 'ingest'?"),
        (["run", "c.yaml"], "write toolkit run -c c.yaml"),
        (["c.yaml"], "write toolkit run -c c.yaml"),
    ],
)
def test_a_command_line_that_is_refused_names_the_way_out(run: Run, words: list[str], way_out: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert way_out in ran.err


def test_options_may_stand_before_the_command(small: Project, run: Run) -> None:
    behind = small.ok("mix", "--dry-run", "--quiet")
    before = run("--quiet", "-c", small.yaml, "mix", "--dry-run")
    assert (before.code, before.out, before.err) == (0, behind.out, "")


def test_functions_of_texts_decide_over_attributes_and_fields(project: Project) -> None:
    urls = ["HTTP://A.org/x.PDF", "https://b.de/y.html", "ftp://b.de/zürich", None]
    rows = [document(f"d{i}", "text", url=url) for i, url in enumerate(urls)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    expected = {
        'document.url is not None and lower(document.url) == "http://a.org/x.pdf"': ["d0"],
        'document.url is not None and startswith(document.url, "http")': ["d1"],
        'document.url is not None and endswith(lower(document.url), ".pdf")': ["d0"],
        'document.url is not None and matches(document.url, "b[.]de/.*[ü]r")': ["d2"],
        'document.url is not None and matches(document.url, "(?i)^http.*(pdf|html)$")': ["d0", "d1"],
    }
    for rule, ids in expected.items():
        project.config["mix"] = {"rules": [{"keep": rule}], "output": {"format": "dolma", "path": str(project.out)}}
        project.ok("mix")
        assert [row["id"] for row in project.output()] == ids, rule


@pytest.mark.slow
def test_an_output_is_divided_by_a_text_and_by_the_full_name_of_a_key(pipeline: Project, tmp_path: Path) -> None:
    pipeline.config["mix"] |= {"rules": [{"drop": "language.label is None"}], "output": {}}
    pipeline.ok("ingest")
    pipeline.ok("tag")
    written: list[Any] = []
    for by in ("language", "language.label", "language-0.language.label", "language-0.language"):
        out = tmp_path / by
        pipeline.config["mix"]["output"] = {"format": "dolma", "path": str(out), "by": by}
        pipeline.ok("mix")
        written.append({path.name: path.read_bytes() for path in out.rglob("*.gz") if ".toolkit" not in path.parts})
    assert len(written[0]) > 10
    assert written[1:] == written[:1] * 3


def test_an_output_by_a_set_that_is_not_joined_is_refused(small: Project) -> None:
    small.config["tag"] = {"shape": "noise"}
    small.ok("tag", "--overwrite")
    small.config["mix"] |= {"attributes": ["shape"], "rules": []}
    small.config["mix"]["output"]["by"] = "shape.noise.noise"
    small("mix").fails(2, "got 'shape', the name of a set; write noise.noise")
