"""Attributes that Dolma's filters ask for and that no row has: told before anything is mixed, whoever wrote them."""

from typing import Any

import pytest

from tests.pipeline.conftest import document, tree
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
    ran = dolma()
    assert (ran.code, words in ran.err) == (2, True), ran.err
    assert not dolma.out.exists()


@pytest.mark.parametrize("inline", [False, True], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("how", "ids"),
    [
        ({"include": [AT]}, ["d1"]),
        ({"exclude": [AT]}, ["d0", "d2"]),
        ({"include": [".attributes.test[0]?[2]? > 0.1", ".attributes.few"], "syntax": "jq"}, ["d0", "d1", "d2"]),
        ({"exclude": ['.text == ".attributes.zzz"'], "syntax": "jq"}, ["d0", "d1", "d2"]),
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
        ({"e__pii__EMAIL": [[0, 1, 1.0]]}, "e__pi__PHONE", False),
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
