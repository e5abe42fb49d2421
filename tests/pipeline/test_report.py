"""Reports: their numbers are those of an oracle of this file, of `stats --mix`, of dry runs and of what was written."""

import itertools
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import toolkit
from tests.conftest import Run
from tests.pipeline.conftest import Project, attributes, document, tree, write_rows
from toolkit.report import facts
from toolkit.storage import record_log

SHARDS, DOCUMENTS = 3, 120
LANGUAGES = ("en", "en", "en", "fi", "fi", "ar", None)
LEAST = {"": 0.3, "fi": 0.6}
EMAIL = "me@example.org"


def _text(chance: random.Random, words: int, emails: int) -> str:
    parts = [chance.choice(("wört", "sana", "كلمة", "日本語")) for _ in range(words)] + [EMAIL] * emails
    return "".join(part + chance.choice((" ", " ", "\n")) for part in parts)


class Row(msgspec.Struct):
    """A document, with what the test knows of it."""

    id: str
    text: str
    source: str
    url: str
    values: dict[str, Any]

    @property
    def label(self) -> str:
        return self.values["lang"] or ""

    def drops(self) -> list[str]:
        """The rules that would drop it, in order."""
        found = ["unidentified"] if self.values["lang"] is None else []
        q = self.values["q"]
        found += ["unsure"] if q is None or not q >= LEAST.get(self.label, LEAST[""]) else []
        found += ["sizes: short"] if self.values["shape"]["words"] < 5 else []
        return found + (["rare"] if self.values["shape"]["words"] * 3 > 100 and q and q < 0.5 else [])


RULES = [
    {"drop": "lang is None", "name": "unidentified"},
    {"keep": "q is not None and q >= least", "name": "unsure"},
    {"group": "sizes", "rules": [{"drop": "shape.words < 5", "name": "short"}]},
    {"drop": "3 * shape.words > 100 and q < 0.5", "name": "rare"},
    {"annotate": "tiny", "when": "shape.words < 10"},
    {"replace": "emails", "by": "|||"},
    {"repeat": "2", "when": "q > 0.9", "name": "twice"},
]


@pytest.fixture
def rows() -> dict[str, list[Row]]:
    """Documents by shard: several languages, nulls, spans, one source with two hosts, another without addresses."""
    chance = random.Random(5)
    found: dict[str, list[Row]] = {}
    for shard in range(SHARDS):
        listed = found.setdefault(f"{shard}.jsonl.gz", [])
        for i in range(DOCUMENTS if shard else 7):
            words, emails = chance.randint(0, 60), chance.choice((0, 0, 0, 1, 2))
            text = _text(chance, words, emails)
            begins = [at for at in range(len(text)) if text.startswith(EMAIL, at)]
            q = chance.choice((None, *[round(chance.random(), 3) for _ in range(9)]))
            values = {
                "lang": chance.choice(LANGUAGES),
                "q": q,
                "shape": {"words": words, "odd": bool(words % 2)},
                "emails": [[at, at + len(EMAIL), 1.0] for at in begins],
                "tokens": 2 * words + 1,
            }
            url = f"https://{chance.choice(('a.example.fi', 'b.example'))}/{i}" if i % 3 else ""
            listed.append(Row(f"{shard}-{i}", text, "web" if url else "books", url, values))
    return found


@pytest.fixture
def reported(project: Project, rows: dict[str, list[Row]]) -> Project:
    """These documents with a set of another program, and a mix that does all that rules can."""
    for shard, listed in rows.items():
        write_rows(
            project.documents / shard,
            [document(r.id, r.text, r.source, metadata={"url": r.url} if r.url else {}) for r in listed],
        )
        write_rows(project.attributes / "set-0" / shard, [attributes(r.id, r.values, r.source) for r in listed])
    project.config["mix"] = {
        "attributes": ["set-0"],
        "label": "lang",
        "parameters": {"least": LEAST[""]},
        "languages": {"fi": {"least": LEAST["fi"]}},
        "rules": RULES,
        "output": {"format": "dolma", "path": str(project.out)},
    }
    return project


def made(project: Project, *arguments: object) -> facts.Report:
    """The facts of a report, of which the page is made."""
    path = project.root / "report.json"
    project.ok("report", "-o", path, *arguments)
    return msgspec.json.decode(path.read_bytes(), type=facts.Report)


def only(project: Project, *arguments: object) -> facts.Run:
    """The only run of a report."""
    (run,) = made(project, *arguments).runs
    return run


def every(rows: dict[str, list[Row]]) -> Iterator[Row]:
    for listed in rows.values():
        yield from listed


# --- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixed", [False, True])
def test_effects_by_label_are_those_of_an_oracle(reported: Project, rows: dict[str, list[Row]], mixed: bool) -> None:
    if mixed:
        reported.ok("mix")
    run = only(reported)
    assert run.mixed is mixed
    expected: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    for row in every(rows):
        drops = row.drops()
        counts = [(drops[0], len(row.text), len(drops) == 1)] if drops else []
        if not drops:
            counts += [("tiny", len(row.text), False)] if row.values["shape"]["words"] < 10 else []
            counts += (
                [("emails", sum(b - a for a, b, _ in row.values["emails"]), False)] if row.values["emails"] else []
            )
        for name, chars, unique in counts:
            for i, number in enumerate((1, chars, unique)):
                expected[name][row.label][i] += number
    found = {rule.name: {label: list(numbers) for label, numbers in rule.labels.items()} for rule in run.rules}
    assert {name: labels for name, labels in found.items() if labels} == expected
    assert {rule.name: rule.unique for rule in run.rules if rule.role == "drops"} == {
        name: sum(numbers[2] for numbers in expected[name].values())
        for name in ("unidentified", "unsure", "sizes: short", "rare")
    }
    twice = [row for row in every(rows) if not row.drops() and row.values["q"] > 0.9]
    assert (run.rules[-1].repeated, run.rules[-1].copies) == (len(twice), 2 * len(twice))
    reached = sum(map(len, rows.values()))
    for rule in run.rules[:4]:
        assert rule.reached == reached
        reached -= rule.documents
    assert run.totals.kept == reached
    assert run.totals.copies == len(twice)


def test_sizes_are_those_of_the_mix_and_of_what_was_read(reported: Project, rows: dict[str, list[Row]]) -> None:
    before = only(reported)
    reported.ok("mix")
    run = only(reported)
    told = reported.ok("stats", "--mix", "--json").json["labels"]
    for when in ("before", "after"):
        listed = {each.label: getattr(each, when) for each in run.labels}
        assert {label: sizes.documents for label, sizes in listed.items()} == {
            each["label"]: each[when]["documents"] for each in told
        }
        for each in told:
            assert {name: getattr(listed[each["label"]], name) for name in each[when]} == each[when]
    assert [each.before for each in before.labels] == [each.before for each in run.labels]
    assert (
        sum(each.before.tokens or 0 for each in run.labels) == 0
    )  # the set is of another program, its key no tagger's
    assert not before.mixed
    assert "has not been made" in before.notes[0]
    written = Counter(row["metadata"].get("url", "").split("/")[2:3][0] if row["metadata"].get("url") else None
                      for row in reported.output())  # fmt: skip
    groups = {each.by: each for each in run.groups}
    assert {each.value: each.after.documents for each in groups["host"].top} == written
    read = Counter(row.url.split("/")[2] if row.url else None for row in every(rows))
    assert {each.value: each.before.documents for each in groups["host"].top} == read
    assert {each.value: each.before.chars for each in groups["source"].top} == {
        source: sum(len(row.text) for row in every(rows) if row.source == source) for source in ("web", "books")
    }
    assert {each.value for each in groups["tld"].top} == {"fi", "example", None}


def test_distributions_have_each_document_in_its_bin_and_thresholds_hold_exactly(
    reported: Project, rows: dict[str, list[Row]]
) -> None:
    run = only(reported)
    scores = {score.field: score for score in run.scores}
    assert {*scores} == {"q", "shape.words", "3 * shape.words", "tokens"}
    for label in ("en", "fi", "ar", ""):
        mine = [row for row in every(rows) if row.label == label]
        for score, values in (
            (scores["q"], [row.values["q"] for row in mine]),
            (scores["shape.words"], [row.values["shape"]["words"] for row in mine]),
        ):
            numbers = [value for value in values if value is not None]
            assert score.nulls.get(label, 0) == len(values) - len(numbers)
            assert score.counts[label] == _binned(numbers, score.edges)
        stay = [row.values["q"] for row in mine if not row.drops()]
        assert scores["q"].after.get(label, []) == _binned(stay, scores["q"].edges)
        assert run.lengths
        assert run.lengths.before[label] == _binned([len(row.text) for row in mine], run.lengths.edges)
    marks = {(mark.rule, mark.label): mark for mark in scores["q"].marks}
    assert {key: (mark.value, mark.sign, mark.drops) for key, mark in marks.items()} == {
        ("unsure", ""): (0.3, ">=", "below"), ("unsure", "fi"): (0.6, ">=", "below"),
        ("rare", ""): (0.5, "<", "below"), ("twice", ""): (0.9, ">", ""),
    }  # fmt: skip
    above = Counter(row.label for row in every(rows) if (row.values["q"] or 0) >= LEAST.get(row.label, 0.3))
    assert marks["unsure", ""].holds == {label: above[label] for label in above if label != "fi"}
    assert marks["unsure", "fi"].holds == {"fi": above["fi"]}
    assert [(mark.rule, mark.drops) for mark in scores["shape.words"].marks] == [
        ("sizes: short", "below"),
        ("tiny", ""),
    ]
    (spans,) = run.spans
    assert spans.field == "emails"
    assert spans.labels == {
        label: (
            sum(bool(row.values["emails"]) for row in every(rows) if row.label == label),
            sum(len(row.values["emails"]) for row in every(rows) if row.label == label),
            sum(b - a for row in every(rows) if row.label == label for a, b, _ in row.values["emails"]),
        )
        for label in ("", "ar", "en", "fi")
    }


@pytest.mark.parametrize(
    ("rule", "sign", "drops"),
    [
        ({"drop": "shape.words < 0.45 * tokens"}, "<", "below"),
        ({"drop": "not (tokens * 0.45 < shape.words)"}, ">", "below"),
        ({"keep": "shape.words / tokens <= 0.45"}, "<=", "above"),
    ],
)
def test_a_threshold_of_a_ratio_is_one_of_a_score(
    reported: Project, rows: dict[str, list[Row]], rule: dict[str, str], sign: str, drops: str
) -> None:
    mix = reported.config["mix"]
    mix["rules"] = [{**rule, "name": "ratio"}]
    del mix["parameters"], mix["languages"]
    run = only(reported)
    score = next(score for score in run.scores if score.field == "shape.words / tokens")
    ratios = [row.values["shape"]["words"] / row.values["tokens"] for row in every(rows) if row.label == "en"]
    assert score.counts["en"] == _binned(ratios, score.edges)
    (mark,) = score.marks
    assert (mark.sign, mark.value, mark.drops, mark.text) == (sign, 0.45, drops, f"shape.words / tokens {sign} 0.45")
    dropped = {label: numbers[0] for label, numbers in run.rules[0].labels.items()}
    every_one = Counter(row.label for row in every(rows))
    stay = {label: every_one[label] - dropped.get(label, 0) for label in every_one}
    assert mark.holds == (dropped if "not" not in str(rule) and "keep" not in rule else stay)
    near = next(each for each in run.of_rules if each.field == score.field)
    distances = sorted(abs(ratio - 0.45) for ratio in _all_ratios(rows) if (ratio < 0.45) == (drops == "below"))[:5]
    shown = [run.samples[i].values for i in near.dropped]
    assert [abs(each["shape.words"] / each["tokens"] - 0.45) for each in shown] == distances
    assert [abs(each["shape.words / tokens"] - 0.45) for each in shown] == distances


def test_what_rules_compute_or_take_from_the_metadata_are_scores(reported: Project, rows: dict[str, list[Row]]) -> None:
    grades = {row.id: (None, len(row.text) % 7, row.values["q"])[i % 3] for i, row in enumerate(every(rows))}
    for shard, listed in rows.items():
        texts = [document(r.id, r.text, r.source, metadata={"grade": grades[r.id]}) for r in listed]
        write_rows(reported.documents / shard, texts)
    mix = reported.config["mix"]
    mix["rules"] = [
        {"keep": "metadata.grade is None or metadata.grade >= least", "name": "grade"},
        {"drop": "not (3 * shape.words <= 100)", "name": "many"},
        {"drop": "12 // shape.words > 1", "when": "shape.words > 0", "name": "few"},
        {"drop": "shape.words < tokens // 3", "name": "less"},
        {"annotate": "half", "when": "shape.words > tokens // 2 - 0 and shape.words >= tokens / 2.5"},
    ]
    run = only(reported)
    scores = {score.field: score for score in run.scores}
    words = {row.id: row.values["shape"]["words"] for row in every(rows)}
    computed: dict[str, dict[str, Any]] = {
        "metadata.grade": grades,
        "3 * shape.words": {key: 3 * value for key, value in words.items()},
        "12 // shape.words": {key: 12 // value if value else None for key, value in words.items()},
    }
    assert {*scores} == {*computed, "q", "shape.words", "tokens", "shape.words / tokens"}
    for field, values in computed.items():
        for label in ("en", "fi", "ar", ""):
            found = [values[row.id] for row in every(rows) if row.label == label]
            numbers = [value for value in found if value is not None]
            assert scores[field].counts[label] == _binned(numbers, scores[field].edges)
            assert scores[field].nulls.get(label, 0) == len(found) - len(numbers)
    assert all(edge.is_integer() for edge in scores["12 // shape.words"].edges)
    marks = {(mark.rule, mark.label): mark for score in run.scores for mark in score.marks}
    assert {key: (mark.value, mark.sign, mark.drops) for key, mark in marks.items()} == {
        ("grade", ""): (0.3, ">=", "below"), ("grade", "fi"): (0.6, ">=", "below"), ("many", ""): (100, "<=", "above"),
        ("few", ""): (1, ">", "above"), ("less", ""): (1 / 3, "<", "below"), ("half", ""): (1 / 2.5, ">=", ""),
    }  # fmt: skip
    tests: dict[tuple[str, str], Callable[[Row], Any]] = {
        ("grade", ""): lambda row: row.label != "fi" and (grades[row.id] or -1) >= 0.3,
        ("grade", "fi"): lambda row: row.label == "fi" and (grades[row.id] or -1) >= 0.6,
        ("many", ""): lambda row: 3 * words[row.id] <= 100,
        ("few", ""): lambda row: bool(words[row.id]) and 12 // words[row.id] > 1,
        ("less", ""): lambda row: words[row.id] < row.values["tokens"] // 3,
        ("half", ""): lambda row: words[row.id] >= row.values["tokens"] / 2.5,
    }
    for key, test in tests.items():
        assert marks[key].holds == Counter(row.label for row in every(rows) if test(row)), key
    near = next(each for each in run.of_rules if (each.rule, each.value) == ("grade", 0.3))
    below = [grade for row in every(rows) if row.label != "fi" and (grade := grades[row.id]) is not None]
    distances = sorted(0.3 - grade for grade in below if grade < 0.3)[:5]
    assert [0.3 - run.samples[i].values["metadata.grade"] for i in near.dropped] == distances


def test_lengths_with_thresholds_are_scores(reported: Project, rows: dict[str, list[Row]]) -> None:
    mix = reported.config["mix"]
    mix["rules"] = [
        {"drop": "document.chars < least", "name": "short"},
        {"drop": "200 < document.chars and shape.words > 0.17 * document.chars", "name": "dense"},
    ]
    mix["parameters"], mix["languages"] = {"least": 20}, {"fi": {"least": 100}}
    run = only(reported)
    score = next(score for score in run.scores if score.field == "document.chars")
    for label in ("en", "fi", "ar", ""):
        lengths = [float(len(row.text)) for row in every(rows) if row.label == label]
        assert score.counts[label] == _binned(lengths, score.edges)
    held = {(mark.rule, mark.label, mark.drops): mark for mark in score.marks}
    assert {*held} == {("short", "", "below"), ("short", "fi", "below"), ("dense", "", "above")}
    short = Counter(row.label for row in every(rows) if len(row.text) < (100 if row.label == "fi" else 20))
    assert held["short", "fi", "below"].holds == {"fi": short.pop("fi")}
    assert held["short", "", "below"].holds == short
    near = next(each for each in run.of_rules if (each.rule, each.value) == ("dense", 200))
    assert all(run.samples[i].values["document.chars"] > 200 for i in near.dropped)
    (ratio,) = next(score for score in run.scores if score.field == "shape.words / document.chars").marks
    assert ratio.holds == Counter(
        row.label for row in every(rows) if row.values["shape"]["words"] > 0.17 * len(row.text)
    )


def _all_ratios(rows: dict[str, list[Row]]) -> list[float]:
    return [row.values["shape"]["words"] / row.values["tokens"] for row in every(rows)]


def _binned(numbers: list[float], edges: list[float]) -> list[int]:
    found = [sum(low <= n < high or n == high == edges[-1] for n in numbers) for low, high in itertools.pairwise(edges)]
    while found and not found[-1]:
        found.pop()
    assert sum(found) == len(numbers)
    return found


def test_samples_are_the_nearest_to_each_threshold_with_their_values(
    reported: Project, rows: dict[str, list[Row]]
) -> None:
    run = only(reported)
    known = {(f"{shard}", i): row for shard, listed in rows.items() for i, row in enumerate(listed, 1)}
    for sample in run.samples:
        row = known[sample.shard, sample.row]
        assert (sample.id, sample.source, sample.url, sample.label) == (row.id, row.source, row.url, row.label)
        assert row.text.startswith(sample.text)
        assert sample.chars == len(row.text)
        drops = row.drops()
        assert [sample.dropped_by, *sample.would_drop] == (drops or [""])
        assert [[s.start, s.end] for s in sample.spans] == [
            s[:2] for s in row.values["emails"] if s[0] < len(sample.text)
        ]
        if "unsure" in sample.for_rules:
            assert sample.values["q"] == row.values["q"]
    found = {(each.rule, each.field, each.value): each for each in run.of_rules}
    near = found["unsure", "q", 0.3]
    others = [row for row in every(rows) if row.label != "fi" and row.values["q"] is not None]
    dropped = sorted(abs(row.values["q"] - 0.3) for row in others if row.drops()[:1] == ["unsure"])[:5]
    kept = sorted(abs(row.values["q"] - 0.3) for row in others if not row.drops())[:5]
    for listed, expected in ((near.dropped, dropped), (near.kept, kept)):
        assert [abs(run.samples[i].values["q"] - 0.3) for i in listed] == expected
    costliest = Counter(row.drops()[0] for row in every(rows) if row.drops() and row.label == "fi").most_common(1)[0][0]
    shown = [each.labels["fi"] for each in run.of_rules if each.rule == costliest and "fi" in each.labels]
    lost = [row for row in every(rows) if row.label == "fi" and row.drops()[:1] == [costliest]]
    assert [len(each) for each in shown] == [min(10, len(lost))]
    assert {run.samples[i].dropped_by for each in shown for i in each} == {costliest}


# --- other mixes ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_a_budget_and_streams_numbers_are_those_of_dry_run_and_manifest(reported: Project) -> None:
    config = reported.config
    other = {"dataset": str(reported.root / "other"), "rules": [{"drop": "q is None", "name": "none"}]}
    write_rows(reported.root / "other/documents/x.jsonl.gz", [document(f"x{i}", "a b " * i, "x") for i in range(40)])
    values = {"lang": "fi", "shape": {"words": 7, "odd": True}, "emails": [], "tokens": 1}
    write_rows(
        reported.root / "other/attributes/set-0/x.jsonl.gz",
        [attributes(f"x{i}", {**values, "q": i / 40 if i % 7 else None}, "x") for i in range(40)],
    )
    mix = config["mix"]
    mix["streams"] = {"main": {"dataset": config.pop("dataset"), "rules": mix.pop("rules")}, "other": other}
    mix["budget"] = {"documents": 60, "by": "lang"}
    mix["rules"] = []
    shown = reported.ok("mix", "--dry-run", "--json").json
    before = only(reported)
    mixed = reported.ok("mix", "--json").json
    run = only(reported)
    for found in (before, run):
        rules = [{name: getattr(rule, name) for name in ("stream", "name", "documents", "chars", "reached", "copies")}
                 for rule in found.rules]  # fmt: skip
        assert rules == [{name: each[name] for name in rules[0]} for each in shown["rules"]]
        assert [rule.unique for rule in found.rules] == [each["only"] for each in shown["rules"]]
        assert found.budget
        assert [(each.group, each.available, each.wanted, each.taken, each.documents, each.copies)
                for each in found.budget.groups] == [
            tuple(each[name] for name in ("group", "available", "target", "taken", "documents", "copies"))
            for each in shown["budget"]["groups"]
        ]  # fmt: skip
    assert (before.mixed, run.mixed) == (False, True)
    assert msgspec.to_builtins(before.totals) == shown["totals"]
    assert msgspec.to_builtins(run.totals) == mixed["totals"]  # with texts as edits have left them
    assert {sample.stream for sample in run.samples} == {"main", "other"}


@pytest.mark.slow
def test_an_output_of_other_rules_is_told_and_its_numbers_are_not_shown(reported: Project) -> None:
    reported.ok("mix")
    written = only(reported)
    reported.config["mix"]["parameters"]["least"] = 0.8
    run = only(reported)
    assert not run.mixed
    (note,) = run.notes
    assert "was made with other settings (rules)" in note
    assert run.totals.kept < written.totals.kept
    assert sum(each.after.documents for each in run.labels) == run.totals.kept + run.totals.copies
    reported.config["mix"]["parameters"]["least"] = LEAST[""]
    part = next(path for path in sorted(reported.out.rglob("*.jsonl.gz")) if ".toolkit" not in path.parts)
    part.write_bytes(b"")
    path = reported.root / "damaged.json"
    reported("report", "-o", path).fails(1, "bytes by the manifest")
    (damaged,) = msgspec.json.decode(path.read_bytes(), type=facts.Report).runs
    assert not damaged.mixed
    assert "bytes by the manifest" in damaged.notes[0]
    with pytest.raises(toolkit.Failed, match="bytes by the manifest") as caught:
        toolkit.report(reported.config)
    assert caught.value.result.runs[0].totals == damaged.totals


def test_an_output_alone_has_what_its_manifest_says_and_tells_what_is_missing(reported: Project) -> None:
    reported.ok("mix")
    whole = only(reported)
    path = reported.root / "alone.json"
    told = reported.run("report", reported.out, "-o", path).succeeds()
    (run,) = msgspec.json.decode(path.read_bytes(), type=facts.Report).runs
    assert run.totals == whole.totals
    assert [(each.label, each.after.words) for each in run.labels] == [(e.label, e.after.words) for e in whole.labels]
    assert [(r.name, r.role, r.expression, r.documents, r.reached) for r in run.rules] == [
        (r.name, r.role, r.expression, r.documents, r.reached) for r in whole.rules
    ]
    assert {*run.missing} >= {"samples", "scores", "groups", "lengths"}
    assert (run.samples, run.scores, run.rules[0].unique, run.rules[0].labels) == ([], [], None, {})
    assert "-c" in told.out


def test_a_dataset_without_rules_has_its_distributions(reported: Project, rows: dict[str, list[Row]]) -> None:
    del reported.config["mix"]
    run = only(reported)
    path = reported.root / "dataset.json"
    assert reported.run("report", reported.data, "-o", path).code == 0
    (alone,) = msgspec.json.decode(path.read_bytes(), type=facts.Report).runs
    for found in (run, alone):
        assert found.rules == []
        assert found.totals.kept == found.totals.rows == sum(map(len, rows.values()))
        assert {score.field for score in found.scores} == {"q", "shape.words", "tokens"}
        assert found.notes == ["There are no rules: all documents stay."]
        assert not any(name.startswith("nowhere") for name in tree(reported.root))


@pytest.mark.slow
def test_two_runs_stand_side_by_side(reported: Project) -> None:
    reported.ok("mix")
    other = reported.root / "other.yaml"
    changed = json.loads(json.dumps(reported.config))
    changed["mix"]["rules"] = RULES[:2]
    changed["mix"]["output"]["path"] = str(reported.root / "out2")
    other.write_text(json.dumps(changed))
    both = made(reported, "--compare", other)
    assert [run.name for run in both.runs] == ["config", "other"]
    assert [len(run.rules) for run in both.runs] == [7, 2]
    assert [run.mixed for run in both.runs] == [True, False]
    assert made(reported, "--compare", reported.out).runs[1].rules[0].documents == both.runs[0].rules[0].documents
    assert reported.run("mix", "-c", other).code == 0
    path = reported.root / "two.json"
    assert reported.run("report", reported.out, reported.root / "out2", "-o", path).code == 0
    assert [len(run["rules"]) for run in json.loads(path.read_bytes())["runs"]] == [7, 2]


# --- as all commands --------------------------------------------------------------------------------------------------


def test_a_report_has_the_same_bytes_for_any_processes_and_reads_only_what_changed(
    reported: Project, rows: dict[str, list[Row]]
) -> None:
    first = reported.root / "report.json"
    only(reported)
    data = first.read_bytes()
    before = tree(reported.data)
    only(reported, "processes=2")
    assert first.read_bytes().replace(b"# processes=2\\n", b"") == data
    assert tree(reported.data) == before
    kept = {path: path.stat().st_mtime_ns for path in reported.data.rglob("*.counts")}
    columns = {path: path.stat().st_mtime_ns for path in reported.data.rglob("*.columns")}
    assert (len(kept), len(columns)) == (SHARDS, SHARDS)
    reported.config["mix"]["rules"] = RULES[:2]  # no text is read for other rules
    only(reported)
    assert {path: path.stat().st_mtime_ns for path in reported.data.rglob("*.columns")} == columns
    reported.config["mix"]["rules"] = RULES
    changed = rows["0.jsonl.gz"]
    changed[0].text += "more"
    write_rows(reported.documents / "0.jsonl.gz", [document(r.id, r.text, r.source) for r in changed])
    assert only(reported).totals.chars == sum(len(row.text) for row in every(rows))
    again = {path for path in kept if path.stat().st_mtime_ns != kept[path]}
    assert {path.name for path in again} == {"0.jsonl.gz.counts"} or len(again) == 1
    for path in reported.data.rglob("*.counts"):
        path.write_bytes(b"damaged")
    assert only(reported).totals.chars == sum(len(row.text) for row in every(rows))


def test_a_damaged_shard_is_named_and_no_report_is_written(reported: Project, rows: dict[str, list[Row]]) -> None:
    path = reported.attributes / "set-0" / "1.jsonl.gz"
    listed = rows["1.jsonl.gz"]
    write_rows(path, [attributes(r.id if i else "other", r.values, r.source) for i, r in enumerate(listed)])
    reported("report", "-o", reported.root / "none.json").fails(1, "1.jsonl.gz")
    assert not (reported.root / "none.json").exists()


def test_what_cannot_be_is_said(reported: Project, run: Run) -> None:
    for arguments, said in (
        (("-o", "report.pdf"), "expected a file that ends in .html or .json"),
        (("--compare", reported.documents / "0.jsonl.gz"), "expected a dataset, or the output of a mix"),
    ):
        reported("report", *arguments).fails(2, said)
    run("report", reported.root / "nothing", "-o", reported.root / "x.json").fails(2)
    assert run("report").code == 2


def test_a_part_of_the_shards_is_not_called_changed_inputs(reported: Project) -> None:
    reported.ok("mix")
    shown = reported.ok("report", "--limit", "1", "-o", reported.root / "x.json").out
    assert "was made from more shards than these" in shown
    assert "other inputs" not in shown


def test_secrets_of_a_configuration_are_not_shown(reported: Project) -> None:
    path = reported.root / "secret.yaml"
    reported.config.pop("processes", None)
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in reported.config.items())
    path.write_text("# password: hidden1\n#   access_key_id: hidden2\n" + lines)
    out = reported.root / "report.json"
    assert reported.run("report", "-c", path, "-o", out).code == 0
    assert b"hidden" not in out.read_bytes()


@pytest.mark.slow
def test_the_page_is_one_file_and_python_gives_the_facts(reported: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    page = reported.root / "report.html"
    found = toolkit.report(reported.config, output=page)
    assert found.runs[0].rules[0].name == "unidentified"
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert '"unidentified"' in html
    (empty := reported.root / "empty").mkdir()
    monkeypatch.chdir(empty)
    (alone,) = toolkit.report(reported.config).runs
    assert alone.totals == found.runs[0].totals
    assert not [*empty.iterdir()], "without `output` there is no page"


def test_the_page_carries_the_croissant_of_its_output(reported: Project) -> None:
    page, described = reported.root / "report.html", b'{"@type":"sc:Dataset","name":"</script><script>alert(1)"}'
    reported.ok("mix")
    (reported.out / "croissant.json").write_bytes(described)
    reported.ok("report", "-o", page)
    html = page.read_text()
    (carried,) = re.findall(r'<script type="application/ld\+json"[^>]*>(.*?)</script>', html, re.S)
    assert json.loads(carried) == json.loads(described)


@pytest.mark.slow
def test_labels_without_end_and_endless_names_take_no_room(reported: Project, rows: dict[str, list[Row]]) -> None:
    reported.config["mix"]["label"] = "document.id"
    del reported.config["mix"]["languages"]
    for i, row in enumerate(every(rows)):
        row.id, row.source = (
            f"{row.id}-{'x' * 100_000}" if i % 50 == 0 else row.id,
            "y" * 10_000 if i % 60 == 0 else "s",
        )
    for shard, listed in rows.items():
        more = [{"url": f"https://{'z' * 5000}.example/"} if i % 40 == 0 else {} for i in range(len(listed))]
        write_rows(
            reported.documents / shard,
            [document(r.id, r.text, r.source, metadata=m) for r, m in zip(listed, more, strict=True)],
        )
        write_rows(reported.attributes / "set-0" / shard, [attributes(r.id, r.values, r.source) for r in listed])
    run = only(reported)
    assert run.labels[-1].label == "*"
    assert len(run.labels) == 201
    assert sum(each.before.documents for each in run.labels) == run.totals.rows
    for rule in run.rules:
        assert sum(numbers[0] for numbers in rule.labels.values()) == rule.documents
    assert len(run.rules[0].labels) <= 201
    assert (reported.root / "report.json").stat().st_size < 1_500_000
    assert max(len(sample.id) for sample in run.samples) <= 300


@pytest.mark.slow
def test_texts_are_cut_to_a_bounded_size(reported: Project, rows: dict[str, list[Row]]) -> None:
    listed = rows["1.jsonl.gz"]
    for row in listed:
        row.text = "日本語" * 40_000
    write_rows(reported.documents / "1.jsonl.gz", [document(r.id, r.text, r.source) for r in listed])
    run = only(reported)
    assert {len(sample.text.encode()) for sample in run.samples if sample.chars == 120_000} == {1500}


def test_files_that_are_looked_at_are_recorded_in_groups(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report on many small shards writes a segment for many of them, not one for each."""
    for i in range(40):
        write_rows(project.documents / f"{i:02d}.jsonl.gz", [document(str(i), "text")])
        write_rows(project.attributes / "said" / f"{i:02d}.jsonl.gz", [attributes(str(i), {"score": i / 40})])
    written: list[str] = []
    write = record_log._write_entries

    def counting(path: str, *rest: Any, **more: Any) -> None:
        written.append(path)
        write(path, *rest, **more)

    monkeypatch.setattr(record_log, "_write_entries", counting)
    project.config["mix"] = {"attributes": ["said"], "output": {"format": "dolma", "path": str(project.out)}}
    project.ok("report", "-o", project.root / "report.json")
    assert 2 <= len(written) <= 6


# The page that `toolkit report` writes: whole, escaped, with the description of the output that lies beside it.

HOSTILE = "</script><script>globalThis.canary = true</script>\u2028\u202e"


@pytest.fixture
def reported_report_page(project: Project) -> Project:
    """A mix of documents that attack the page."""
    rows = [(f"{HOSTILE}{row}", row / 10) for row in range(10)]
    write_rows(project.documents / "0.jsonl.gz", [document(name, HOSTILE * 3, HOSTILE) for name, _ in rows])
    write_rows(project.attributes / "set-0/0.jsonl.gz", [attributes(name, {"q": q}, HOSTILE) for name, q in rows])
    rules = [{"drop": "q < 0.5", "name": HOSTILE}]
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["set-0"], "label": "'en'", "rules": rules, "output": output}
    return project


def embedded(page: str, kind: str) -> str:
    (found,) = re.findall(rf'<script type="{re.escape(kind)}"[^>]*>(.*?)</script>', page, re.DOTALL)
    return str(found)


def test_the_page_has_the_facts_and_the_description_and_nothing_else_that_runs(reported_report_page: Project) -> None:
    reported_report_page.ok("mix")
    described = {"@type": "sc:Dataset", "name": HOSTILE}
    (reported_report_page.out / "croissant.json").write_text(json.dumps(described), encoding="utf-8")
    reported_report_page.ok("report", "-o", reported_report_page.root / "report.json")
    reported_report_page.ok("report", "-o", reported_report_page.root / "report.html")
    page = (reported_report_page.root / "report.html").read_text(encoding="utf-8")
    assert json.loads(embedded(page, "application/ld+json")) == described
    found = msgspec.json.decode(embedded(page, "application/json"), type=facts.Report)
    assert found == msgspec.json.decode((reported_report_page.root / "report.json").read_bytes(), type=facts.Report)
    assert found.runs[0].rules[0].documents == 5
    assert "<script>globalThis.canary" not in page
    assert not re.search("[\u2028\u202e]", page)
    assert not re.search(r"<(img|link|script|iframe)\b[^>]*\b(src|href)=", page), "nothing is loaded"


def test_a_broken_description_is_told(reported_report_page: Project) -> None:
    reported_report_page.ok("mix")
    (reported_report_page.out / "croissant.json").write_text("{", encoding="utf-8")
    failed = reported_report_page("report", "-o", reported_report_page.root / "report.html")
    assert "croissant.json: expected JSON, got: " in failed.err
    assert not (reported_report_page.root / "report.html").exists()
