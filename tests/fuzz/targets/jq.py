"""jq filters: refused, or compiled; they are not run, because a filter may well run for ever."""

from tests.fuzz.targets._files import refuses
from toolkit.rules.filters import all_keys, guarded_keys, matcher, selected_key

SEEDS = [
    text.encode()
    for text in (
        "(.attributes.k // []) | length > 2",
        ".attributes.k[]? | .[2]? | . > 0.5",
        '.attributes["a b"]? ?// false',
        "select(.attributes.k == 1) | not",
        "[.attributes.k[]? | .[2]?] | any(. > 0.5)",
    )
]


def check(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    if not refuses(lambda: matcher(text, "jq")):
        all_keys(text, "jq")
        guarded_keys(text)
        selected_key(text, "jq")
