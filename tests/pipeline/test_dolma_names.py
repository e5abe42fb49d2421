"""Attributes that Dolma's filters ask for and that no row has: told before anything is mixed, whoever wrote them."""

from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, tree, write_rows
from tests.pipeline.dolma import Dolma, filtered

AT = "$@.attributes[?(@.test && @.test[0] && @.test[0][2] >= 0.5)]"
UNKNOWN = [
    ({"include": ["$.attributes.toxi"]}, "got 'toxi'; did you mean 'toxic'?"),
    ({"include": ["$.attributes[?(@.toxi[0][2] > 0.5)]"]}, "got 'toxi'; did you mean 'toxic'?"),
    ({"include": ["$.attributes.zzz"]}, "got 'zzz'; there are: s, toxic"),
    ({"include": ["$.attributes.toxi", "$.attributes.toxic"]}, "got 'toxi'; did you mean 'toxic'?"),
    ({"exclude": ["$@.attributes[?(@.toxi > 0)]"]}, "did you mean 'toxic'?; if no document has it, leave"),
    ({"exclude": [".attributes.toxi > 1"], "syntax": "jq"}, "if documents may lack it, write `toxi?`"),
    ({"include": ['.["attributes"].toxi[0]'], "syntax": "jq"}, "write `toxi?`"),
    ({"include": [".attributes | (.toxi)"], "syntax": "jq"}, "write `toxi?`"),
    ({"include": ['.attributes."toxi"[0][-1] > 1'], "syntax": "jq"}, "write `toxi?`"),
]


def put(dolma: Dolma, values: list[Any], *, inline: bool) -> None:
    """Writes documents with these attributes, beside them or in them."""
    if not inline:
        dolma.put([f"text {i}" for i in range(len(values))], values)
        return
    dolma.put([document(f"d{i}", f"text {i}") | {"attributes": value} for i, value in enumerate(values)])
    dolma.stream["attributes"] = []


@pytest.mark.parametrize("inline", [False, True], ids=["beside", "inline"])
@pytest.mark.parametrize(("how", "words"), UNKNOWN)
def test_an_attribute_that_no_row_has_is_refused(dolma: Dolma, how: dict[str, Any], words: str, inline: bool) -> None:
    put(dolma, [{"s": [], "toxic": 1}], inline=inline)
    filtered(dolma, **how)
    dolma().fails(2, words)
    assert not dolma.out.exists()


@pytest.mark.parametrize("inline", [False, True], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("how", "ids"),
    [
        ({"include": [AT]}, ["d1"]),
        ({"exclude": [AT]}, ["d0", "d2"]),
        ({"include": [".attributes.test[0]?[2]? > 0.1", ".attributes.few"], "syntax": "jq"}, ["d0", "d1", "d2"]),
        ({"exclude": ['.text == ".attributes.zzz" # .attributes.zz'], "syntax": "jq"}, ["d0", "d1", "d2"]),
        ({"exclude": [".attributes.toxi? > 1", "(.attributes.toxi // 0) > 1"], "syntax": "jq"}, ["d0", "d1", "d2"]),
    ],
)
def test_attributes_that_some_row_has_are_known(
    dolma: Dolma, how: dict[str, Any], ids: list[str], inline: bool
) -> None:
    put(dolma, [{"test": [[0, 1, 0.25]]}, {"test": [[0, 1, 0.5]]}, {"few": 1}], inline=inline)
    filtered(dolma, **how)
    ran = dolma.ok()
    assert list(dolma.texts()) == ids
    assert "expected an attribute" not in ran.err


@pytest.mark.parametrize("inline", [False, True], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("values", "asked", "warns"),
    [
        ({"e__pii__EMAIL": [[0, 1, 1.0]]}, "e__pii__PHONE", True),  # a tagger that found no number
        ({"e__hosts_porn__url": [[0, 1, 1.0]]}, "e__hosts_games__url", True),  # a tagger that found nothing
        ({"exp__pii__EMAIL": [[0, 1, 1.0]]}, "xp__pii__EMAIL", False),  # a slip
        ({"toxic": 0.1}, "toxi", False),
        ({"toxicity": 0.1}, "dummy", True),  # as one of Dolma's own tests has it
        ({}, "dup_par", True),  # a deduper that found nothing
    ],
)
def test_a_key_that_may_be_rare_only_warns(
    dolma: Dolma, values: dict[str, Any], asked: str, warns: bool, inline: bool
) -> None:
    put(dolma, [values], inline=inline)
    warns = warns and not (inline and not values)
    for how in ({"exclude": [f"$.attributes.{asked}"]}, None):
        if how:
            filtered(dolma, **how)
        else:
            dolma.stream.pop("filter")
            dolma.stream["span_replacement"] = [{"span": f"$.attributes.{asked}", "min_score": 0.5}]
        ran = dolma()
        assert ran.code == (0 if warns else 2), ran.err
        assert ("warning: " in ran.err) == warns
        assert f"got {asked!r}" in ran.err
    filtered(dolma, include=[f"$.attributes.{asked}"])  # which would drop everything
    dolma.stream.pop("span_replacement", None)
    assert dolma().code == 2


def test_a_share_that_lacks_an_attribute_leaves_the_error_to_the_whole(dolma: Dolma) -> None:
    for shard, value in (("a.json.gz", {"toxic": 1}), ("b.json.gz", {"s": 1})):
        dolma.put(["zero"], [value], shard)
    filtered(dolma, include=["$.attributes.toxic"])
    dolma.ok("--shard", "0/2")
    dolma.ok("--shard", "1/2")
    dolma.ok()
    assert list(dolma.texts()) == ["d0"]
    dolma.stream["filter"]["include"] = ["$.attributes.toxi"]
    before = tree(dolma.out)
    assert dolma().code == 2
    assert tree(dolma.out) == before


# --- rows that are none, values that a rule cannot use ----------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["--dry-run"], ["--explain", "d1"]], ids=["mix", "dry-run", "explain"])
@pytest.mark.parametrize(
    ("rule", "bad", "words"),
    [
        ({"drop": "k > 1"}, {"k": "x"}, "TypeError: '>' not supported between"),
        ({"drop": "k > 1", "when": "document.chars > 0"}, {"k": [1]}, "TypeError"),
        ({"drop": ".attributes.k > 1 and .attributes.k[0]", "syntax": "jq"}, {"k": "x"}, "Cannot index string"),
        ({"replace": "k", "by": "_"}, {"k": "x"}, "expected spans, a list of [start, end, score]"),
        ({"cut": "$.attributes.k", "syntax": "jsonpath"}, {"k": {"a": 1}}, "expected spans"),
    ],
)
def test_a_wrong_value_in_a_foreign_file_names_that_file_and_row(
    project: Project, rule: dict[str, Any], bad: Any, words: str, arguments: list[str]
) -> None:
    good = {"k": [[0, 1, 1.0]]} if rule.keys() & {"replace", "cut"} else {"k": 1}
    foreign(project, [attributes("d0", good), attributes("d1", bad)], rule)
    ran = project("mix", *arguments).fails(1, f"{project.attributes}/m/x.jsonl.gz:2: ")
    assert (words in ran.err, "(document 'd1')" in ran.err) == (True, True), ran.err


@pytest.mark.parametrize("row", [{"id": "d1", "source": "s"}, attributes("d1", "none"), attributes("d1", None)])
def test_a_foreign_row_without_attributes_is_named(project: Project, row: dict[str, Any]) -> None:
    foreign(project, [attributes("d0", {"k": 1}), row], {"drop": "k > 1"})
    for arguments in ([], ["--dry-run"]):
        ran = project("mix", *arguments).fails(1, f"{project.attributes}/m/x.jsonl.gz:2: expected ")
        assert ("attributes" in ran.err.rpartition(":2: ")[2], "'d1'" in ran.err) == (True, True), ran.err
    assert not project.out.exists()


def foreign(project: Project, rows: list[Any], rule: dict[str, Any]) -> None:
    """Lays out two documents, a set that another program made, and a mix with a rule."""
    write_rows(project.documents / "x.jsonl.gz", [document("d0", "zero"), document("d1", "one")])
    write_rows(project.attributes / "m" / "x.jsonl.gz", rows)
    output = {"format": "dolma", "path": str(project.out)}
    project.config = {"dataset": str(project.data), "mix": {"attributes": ["m"], "rules": [rule], "output": output}}
