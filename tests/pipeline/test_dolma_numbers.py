"""How many documents are kept or dropped otherwise than by Dolma, to whose JSONPath 1 and 1.0 are two numbers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.conftest import document
from tests.pipeline.dolma import Dolma, filtered
from toolkit.data.schema import FLOAT, SPANS
from toolkit.rules import RuleSet
from toolkit.rules.checker import Name
from toolkit.rules.filters import matcher
from toolkit.rules.kinds.drop import Drop, Keep

VALUES: list[Any] = [{"k": [[0, 1, 1]]}, {"k": [[0, 1, 1.0]]}, {"k": [[0, 1, 2]]}, {"k": [[0, 1, 0.5]]}, {}]


def numbers(dolma: Dolma, *, inline: bool = False) -> tuple[int, int, list[str]]:
    """Return the numbers that a dry run and a mix tell, which must agree with what they show; and who stays."""
    dry = dolma.ok("--dry-run", "--json").json["unlike_dolma"]
    shown = dolma.ok("--dry-run").out
    ran = dolma.ok().out
    told = f"warning: {dry} of 5 documents {'is' if dry == 1 else 'are'} kept or dropped otherwise than by Dolma"
    for text in (shown, ran, dolma.ok().out):
        assert (told in text, "`compat: strict`" in text) == (bool(dry), bool(dry))
    return dry, dolma.ok("--json").json["unlike_dolma"], sorted(dolma.texts())


@pytest.mark.parametrize("inline", [False, True], ids=["beside", "inline"])
@pytest.mark.parametrize(
    ("how", "unlike"),
    [
        ({"exclude": ["$@.attributes[?(@.k && @.k[0] && @.k[0][2] >= 1.0)]"]}, 1),
        ({"include": ["$.attributes[?(@.k[0][2] == 1)]"]}, 1),
        ({"exclude": ["$.attributes[?(@.k[0][2] != 1)]", "$.attributes[?(@.k[0][2] > 1.5)]"]}, 1),
        ({"exclude": ["$.attributes[?(@.k[0][2] >= 1.0)]", "$.attributes.k"]}, 0),  # another pattern drops it anyway
        ({"exclude": ["$.attributes[?(@.k[0][2] >= 0.5)]"]}, 0),
        ({"exclude": ["$.attributes[?(@.k[0][2] > 1.0)]"]}, 0),
        ({"exclude": ["$.attributes[?(@.k[0][2] in [1.0, 2.0])]"]}, 2),
        ({"exclude": ["$.attributes.k[?(@[2] <= 2.0)]"]}, 1),
        ({"exclude": ["$..k[?(@[2] >= 1.0)]"]}, 1),
        ({"exclude": [".attributes.k[0]?[2]? == 1.0"], "syntax": "jq"}, 0),
    ],
)
def test_the_number_is_that_of_documents_which_strict_decides_otherwise(
    dolma: Dolma, how: dict[str, Any], unlike: int, inline: bool
) -> None:
    if inline:
        dolma.put([document(f"d{i}", "text") | {"attributes": value} for i, value in enumerate(VALUES)])
        dolma.stream["attributes"] = []
    else:
        dolma.put(["text"] * len(VALUES), VALUES)
    filtered(dolma, **how)
    dry, mixed, kept = numbers(dolma)
    assert dry == mixed
    dolma.config["compat"] = "strict"
    assert numbers(dolma)[:2] == (0, 0)
    assert len(set(kept) ^ set(dolma.texts())) == dry == unlike


SCORES = st.sampled_from([0, 1, 1.0, 2, 2.0, 0.5, -1])
PATTERNS = st.sampled_from(
    [
        "$.attributes[?(@.k[0][2] {} {})]",
        "$.attributes.k[?(@[2] {} {})]",
        "$.attributes[?(!@.k || @.k[1][2] {} {})]",
        "$.attributes[?(!(@.f {} {}))]",
        "$.attributes[?(@.f {} {} && @.k[0])]",
    ]
)


@given(
    patterns=st.lists(
        st.builds(str.format, PATTERNS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), SCORES.map(json.dumps)),
        min_size=1,
        max_size=3,
    ),
    scores=st.lists(SCORES, max_size=2),
    f=SCORES | st.none(),
    kind=st.sampled_from([Keep, Drop]),
)
def test_doubts_miss_nothing(patterns: list[str], scores: list[float], f: float | None, kind: type[Drop]) -> None:
    values: dict[str, Any] = {"k": [[0, 1, score] for score in scores]} | ({} if f is None else {"f": f})
    names = {"k": Name(SPANS, "k"), "f": Name(FLOAT, "f", FLOAT)}
    rules = RuleSet([kind(name="r", patterns=patterns, syntax="jsonpath")], names, ("k", "f", "document"))

    class Joined:
        joined = {"attributes": values}

    def stays(*, strict: bool) -> bool:
        matches = any(matcher(p, "jsonpath", strict=strict)(Joined.joined) for p in patterns)
        return matches if kind is Keep else not matches

    document = Joined()
    outcome = rules.decide([tuple(span) for span in values["k"]], f, document)
    assert rules.differs(outcome, [tuple(span) for span in values["k"]], f, document) == (
        stays(strict=True) != stays(strict=False)
    )
