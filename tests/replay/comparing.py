"""Differences between two recordings, and how they are printed."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.replay.recording import Contents, Recording, Step

SHOWN = 110
"""Characters that are shown of a line or value."""
MOST = 6
"""Cases that are named of a difference."""


class Difference(NamedTuple):
    """A difference between two checkouts.

    Attributes:
        kind: status, message, output, key, type, value, file, content.
        place: File, key of JSON, or stream that differs.
        old: Value of the base.
        new: Value of the other checkout.
    """

    kind: str
    place: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.kind} {self.place}\n    old: {self.old}\n    new: {self.new}"


class Expected(NamedTuple):
    """Differences that are meant.

    Attributes:
        matches: Pattern that is looked for in the case, the step and the difference, as they are printed.
        reason: Reason, such as the finding that asks for it.
    """

    matches: re.Pattern[str]
    reason: str


def read_expected(path: Path) -> list[Expected]:
    """Return the differences that a file says are meant: a list of ``{matches: PATTERN, reason: TEXT}``."""
    found = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [Expected(re.compile(each["matches"], re.DOTALL), each["reason"]) for each in found]


def type_of(value: Any) -> str:
    """Return the name that JSON has for the type of a value."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return "null" if value is None else names[type(value)]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


def of_json(old: Any, new: Any, path: str = "$") -> Iterator[Difference]:
    """Yield the differences of two values of JSON: keys, their order, types, lengths, values."""
    if type_of(old) != type_of(new):
        yield Difference("type", path, f"{type_of(old)} {_short(old)}", f"{type_of(new)} {_short(new)}")
    elif isinstance(old, dict):
        gone, more = [key for key in old if key not in new], [key for key in new if key not in old]
        for key in gone:
            yield Difference("key", f"{path}.{key}", f"{type_of(old[key])} {_short(old[key])}", "no such key")
        for key in more:
            yield Difference("key", f"{path}.{key}", "no such key", f"{type_of(new[key])} {_short(new[key])}")
        common = [key for key in old if key in new]
        if common != [key for key in new if key in old]:
            yield Difference("order of keys", path, " ".join(old), " ".join(new))
        for key in common:
            yield from of_json(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list):
        if len(old) != len(new):
            yield Difference("length", path, f"{len(old)} values", f"{len(new)} values")
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from of_json(one, other, f"{path}[{number}]")
    elif isinstance(old, str) and "\n" in old + new:
        yield from of_texts("value", path, old, new)
    elif old != new:
        yield Difference("value", path, _short(old), _short(new))


def of_texts(kind: str, place: str, old: str, new: str) -> Iterator[Difference]:
    """Yield the first line that differs, the number of such lines, and whether only their order does."""
    if old == new:
        return
    one, other = old.splitlines(), new.splitlines()
    differing = sum(a != b for a, b in zip(one, other, strict=False)) + abs(len(one) - len(other))
    if sorted(one) == sorted(other) and len(one) == len(other):
        kind = f"order of lines of {kind}"
    number = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = (lines[number] if number < len(lines) else "no such line" for lines in (one, other))
    at = max(0, next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))) - 40)
    before = "…" if at else ""
    place = f"{place}:{number + 1} ({differing} of {max(len(one), len(other))} lines)"
    if a == b:
        yield Difference(kind, f"{place}, ends of lines", repr(old[-20:]), repr(new[-20:]))
        return
    yield Difference(kind, place, f"{before}{_short(a[at:])}", f"{before}{_short(b[at:])}")


def of_contents(name: str, old: bytes | None, new: bytes | None) -> Iterator[Difference]:
    """Yield what differs in two contents of a file."""
    if old is None or new is None:
        yield Difference("content", name, "too large to be shown", "another")
        return
    try:
        yield from of_texts("content", name, old.decode(), new.decode())
    except UnicodeDecodeError:
        at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        first, second = (f"{len(data)} bytes, … {data[at : at + 16].hex(' ')} …" for data in (old, new))
        yield Difference("content", f"{name} byte {at}", first, second)


def of_steps(old: Step, new: Step, contents: Contents) -> Iterator[Difference]:
    """Yield what differs in what a step gave."""
    if old.status != new.status:
        yield Difference("status", "", str(old.status), str(new.status))
    if isinstance(old.output, str) and isinstance(new.output, str):
        yield from of_texts("output", "stdout", old.output, new.output)
    else:
        yield from of_json(old.output, new.output)
    yield from of_texts("message", "stderr", old.error, new.error)
    for name in sorted(old.files.keys() | new.files.keys()):
        if name not in new.files or name not in old.files:
            is_there, is_not = _written(old.files, name), _written(new.files, name)
            yield Difference("file", name, is_there, is_not)
        elif old.files[name] != new.files[name]:
            first, second = old.files[name], new.files[name]
            if first is None or second is None:
                yield Difference("file", name, _written(old.files, name), _written(new.files, name))
            else:
                yield from of_contents(name, contents.get(first), contents.get(second))


def _written(files: dict[str, str | None], name: str) -> str:
    return "not written" if name not in files else "deleted" if files[name] is None else "written"


def differences(old: Recording, new: Recording, contents: Contents) -> Iterator[tuple[str, str, Difference]]:
    """Yield all differences, each with its case and step."""
    for case in sorted(old.cases.keys() | new.cases.keys()):
        for one, other in zip(old.cases.get(case, []), new.cases.get(case, []), strict=True):
            for found in of_steps(one, other, contents):
                yield case, one.step, found


def _alike(found: Difference) -> Difference:
    """Return a difference without numbers of rows, and without the texts of one place: what many cases share."""
    place = re.sub(r"\[\d+\]", "[]", found.place)
    is_shape = found.kind in ("key", "type", "order of keys")
    return found._replace(
        place=place, old=found.old.partition(" ")[0] if is_shape else found.old,
        new=found.new if not is_shape or found.new == "no such key" else found.new.partition(" ")[0],
    )  # fmt: skip


def report(old: Recording, new: Recording, contents: Contents, expected: list[Expected]) -> tuple[str, int]:
    """Return the differences as a text, alike ones together, and how many nobody expected."""
    groups: dict[Difference, list[str]] = {}
    meant: Counter[str] = Counter()
    for case, step, found in differences(old, new, contents):
        where = f"{case}: {step}"
        reason = next((each.reason for each in expected if each.matches.search(f"{where}\n{found}")), None)
        if reason is not None:
            meant[reason] += 1
        else:
            groups.setdefault(_alike(found), []).append(where)
    lines = []
    for found, places in sorted(groups.items(), key=lambda pair: (pair[0].kind, -len(pair[1]))):
        lines.append(str(found))
        lines += [f"    in {place}" for place in places[:MOST]]
        lines += [f"    … and {len(places) - MOST} more"] * (len(places) > MOST)
    for each in expected:
        lines.append(f"expected: {each.reason}: {meant[each.reason] or 'did not occur'}")
    count = sum(map(len, groups.values()))
    steps = sum(map(len, old.cases.values()))
    lines.append(f"{len(old.cases)} cases, {steps} steps: {count} differences, {len(groups)} kinds")
    return "\n".join(lines), count


def closest(word: str, known: list[str]) -> str:
    """Return the known words that are closest to one, for messages."""
    return ", ".join(difflib.get_close_matches(word, known, 3, 0.4)) or ", ".join(known[:12])
