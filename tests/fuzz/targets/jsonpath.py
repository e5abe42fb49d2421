"""Dolma's JSONPaths: refused, or evaluated; and a translation matches the same documents."""

from typing import Any

import msgspec

from tests.fuzz.targets._files import refuses
from toolkit.data.schema import infer, to_python
from toolkit.rules.checker import Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expressions import check_condition
from toolkit.rules.filters import all_keys, doubts, matcher, selected_key, selection, translate
from toolkit.rules.filters.translation import KeyInfo

_VALUES: dict[str, Any] = {"n": 3, "s": "x", "xs": [1, 2], "b": True, "o": {"a": 1, "b": "y"}, "f": 0.5, "ys": ["x"]}
_KEYS = {name: KeyInfo(infer(value), optional=False) for name, value in _VALUES.items()}
_NAMES = {name: Name(info.type, f"a_{name}") for name, info in _KEYS.items()}
_DECODED = [msgspec.convert(value, to_python(_KEYS[name].type)) for name, value in _VALUES.items()]
_DOCUMENT = {"id": "1", "text": "t", "attributes": _VALUES}
SEEDS = [
    text.encode()
    for text in (
        "$.attributes[?(@.n > 2 && @.s == 'x')]",
        "$@.attributes['xs'][0]",
        "$.attributes.o[?(@.a >= 1.0 || !@.b)]",
        "$..a",
        "$.attributes[?(@.s in ['x', 'y'])]",
        "$.attributes.xs[-1:5:2,0]",
        "$.attributes[?(1 in @.xs)]",
        "$.attributes[?(@.f < 0.7)].o['a','b'].*",
        "$.attributes[?($.attributes.n == 3)]",
    )
]


def check(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    if refuses(lambda: matcher(text, "jsonpath")):
        return
    matched = matcher(text, "jsonpath")(_DOCUMENT)
    matcher(text, "jsonpath", strict=True)(_DOCUMENT)
    assert (selection(text, "jsonpath")(_DOCUMENT) is not None) <= matched
    all_keys(text, "jsonpath")
    selected_key(text, "jsonpath")
    doubts(text, _KEYS)
    expression = translate(text, "jsonpath", _KEYS)
    if expression is not None:
        found = check_condition(expression, _NAMES)
        assert compile_function(found.code, tuple(f"a_{name}" for name in _VALUES))(*_DECODED) is matched
