"""Keep the user's parts of a card: text between marks, and keys that are not ours.

In the body, under the heading where it stands::

    <!-- toolkit: keep NAME -->
    …
    <!-- toolkit: end NAME -->

In the head the marks are comments, ``# toolkit: keep NAME`` and ``# toolkit: end NAME``; keys between them stand in
place of ours. Keys that a card of ours never has stay without marks. All else of the body is ours: its digest stands in
the first mark, by which damage, and what people wrote elsewhere, is found before it is published or lost.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from toolkit.config import settings
from toolkit.errors import DataError

MARK = "<!-- toolkit: card"
"""Prefix of the first mark of a generated card."""

_NOTICE = (
    f"{MARK}. Made by `toolkit card`, which writes it anew. To keep what you write, put it between a line\n"
    '"toolkit: keep NAME" and a line "toolkit: end NAME", each a comment like this one; in the head, behind a #. -->'
)

_DIGEST = re.compile(rf"{MARK} (\S+?)\. Made")

_ANY = {"body": re.compile(r"\s*<!--\s*toolkit:(?!\s*card\b)"), "head": re.compile(r"\s*#\s*toolkit:")}
_FORM = {
    "body": re.compile(r"\s*<!--\s*toolkit:\s*(keep|end)\s+([\w.-]+)\s*-->\s*"),
    "head": re.compile(r"\s*#\s*toolkit:\s*(keep|end)\s+([\w.-]+)\s*"),
}
_SHOWN = {"body": "<!-- toolkit: {} {} -->", "head": "# toolkit: {} {}"}
_KEY = re.compile(r"""(['"]?)([^\s#'"\[\]{}-][^:'"]*)\1\s*:(\s|$)""")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"---\s*")
_HEADING = re.compile(r"## (.+?)\s*")

Line = tuple[int, str]


class UserParts(msgspec.Struct):
    """Parts of a card to keep.

    Attributes:
        head: lines of YAML.
        keys: Keys of the head that are given there.
        blocks: Blocks of the body, from mark to mark, with the heading that each stood under; empty before the first.
    """

    head: list[str] = []
    keys: set[str] = set()
    blocks: list[tuple[str, str]] = []


def is_ours(text: str) -> bool:
    """Return true for a replaceable card of ours."""
    return f"\n{MARK}" in f"\n{text}"


def headings(text: str) -> set[str]:
    """Return the headings of possible sections in a text."""
    return {match[1] for line in _LINE.findall(text) if (match := _HEADING.fullmatch(line))}


def read(path: str, text: str, ours: Collection[str], inner: Collection[str]) -> UserParts:
    """Return the user's parts of a card of ours.

    Args:
        path: Path of the file, for messages.
        text: Text of the card.
        ours: keys of the head that are written anew.
        inner: headings in texts of the sections; all others begin a section, be it of the user's own.

    Raises:
        ConfigError: if the head is no YAML.
        DataError: if a mark has no other, or is none.
    """
    parts = UserParts()
    head, body = _divided(path, text)
    _read_head(path, head, ours, parts)
    section = ""
    names: set[str] = set()
    for name, some in _parts(path, body, "body", names):
        if name:
            parts.blocks.append((section, "".join(line for _, line in some)))
        elif (match := _HEADING.fullmatch(some[0][1])) and match[1] not in inner:
            section = match[1]
    return parts


def _divided(path: str, text: str) -> tuple[list[Line], list[Line]]:
    """Return the lines of the head and of the body."""
    lines = list(enumerate(_LINE.findall(text), 1))
    if not (lines and _FENCE.fullmatch(lines[0][1])):
        return [], lines
    end = next((i for i, (_, line) in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        raise DataError("expected a line --- that ends the head, got none", path=path, line=1)
    return lines[1:end], lines[end + 1 :]


def _digest(path: str, text: str) -> str:
    """Return the digest of our part of a card's body. Blank lines do not count."""
    parts = _parts(path, _divided(path, _DIGEST.sub(f"{MARK}. Made", text))[1], "body", set())
    ours = (line.strip() for name, some in parts if not name for _, line in some)
    return hashlib.sha256("\n".join(filter(None, ours)).encode()).hexdigest()[:16]


def is_as_written(path: str, text: str) -> bool:
    """Return true if our part of a card's body is unchanged."""
    match = _DIGEST.search(text)
    return match is None or match[1] == _digest(path, text)


def without(path: str, text: str, empty: Collection[str], titles: Collection[str]) -> str:
    """Return a card of ours with empty sections; the user's parts stay.

    Args:
        path: Path of the file, for messages.
        text: Text of the card.
        empty: Headings of the sections to empty.
        titles: Headings of all sections of ours.

    Raises:
        DataError: if a mark has no other, or is none.
    """
    section, dropped = "", set[int]()
    for name, some in _parts(path, _divided(path, text)[1], "body", set()):
        match = None if name else _HEADING.fullmatch(some[0][1])
        if match and match[1] in titles:
            section = match[1]
        elif not name and section in empty:
            dropped.add(some[0][0])
    rest = "".join(line for number, line in enumerate(_LINE.findall(text), 1) if number not in dropped)
    return _DIGEST.sub(f"{MARK} {_digest(path, rest)}. Made", rest, count=1)


def write(
    head: dict[str, Any],
    title: str,
    sections: Sequence[tuple[str, str]],
    previous: UserParts,
    name: str,
    comments: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a card.

    Args:
        head: keys of ours.
        title: heading of the card.
        sections: headings and texts; the first, without heading, is what stands below the title.
        previous: Parts of the previous card to keep.
        name: Name of the file, for messages.
        comments: Comments that stand above keys of ours.

    Raises:
        ConfigError: if the head is no YAML with what was kept.
    """
    ours = {key: value for key, value in head.items() if key not in previous.keys}
    yaml = settings.dump(ours) if ours else ""
    for key, comment in comments.items():
        yaml = re.sub(rf"^{key}:", f"# {comment}\n{key}:", yaml, flags=re.MULTILINE)
    yaml += "".join(_ended(line) for line in previous.head)
    settings.parse("\n" + yaml, name)  # the first line is ---
    placed = {section for section, _ in sections}
    parts = [f"---\n{yaml}---\n", f"# {title}\n", f"{_NOTICE}\n"]
    for section, text in sections:
        parts += [f"## {section}\n"] if section else []
        parts += [f"{text.strip()}\n"] if text.strip() else []
        parts += [_ended(block) for where, block in previous.blocks if where == section]
    parts += [_ended(block) for where, block in previous.blocks if where not in placed]
    text = "\n".join(parts)
    return text.replace(f"{MARK}. Made", f"{MARK} {_digest(name, text)}. Made", 1)


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _read_head(path: str, lines: Sequence[Line], ours: Collection[str], previous: UserParts) -> None:
    waiting: list[str] = []  # comments, which belong to the key behind them
    keeping = False
    parts = list(_parts(path, lines, "head", set()))
    _check_yaml(path, [line for name, some in parts for line in some if not name])
    _check_yaml(path, [line for name, some in parts for line in some if name])
    for name, some in parts:
        texts = [line for _, line in some]
        keys = [match[2].strip() for line in texts if (match := _KEY.match(line))]
        if not name and texts[0].startswith("#"):
            waiting += texts
            continue
        if name or keys:
            keeping = bool(name) or keys[0] not in ours
        if keeping:
            previous.head += [*waiting, *texts]
            previous.keys.update(keys)
        if keeping or keys:
            waiting = []
        keeping = keeping and not name
    previous.head += waiting


def _check_yaml(path: str, lines: Sequence[Line]) -> None:
    """Raise ConfigError for invalid YAML, with the card's line numbers.

    Lines between marks are checked apart from the others, because they may give a key again.
    """
    texts = dict(lines)
    settings.parse("".join(_ended(texts.get(number, "")) for number in range(1, max(texts, default=0) + 1)), path)


def _parts(path: str, lines: Sequence[Line], where: str, names: set[str]) -> Iterator[tuple[str, list[Line]]]:
    """Yield marked blocks with names, and other lines singly without names."""
    name, block = "", list[Line]()
    for number, line in lines:
        mark = _mark(path, number, line, where)
        if mark is None:
            if name:
                block.append((number, line))
            else:
                yield "", [(number, line)]
        elif not name and mark[0] == "keep":
            name, block = mark[1], [(number, line)]
            if name in names:
                raise DataError(f"expected each name once, got {name!r} again", path=path, line=number)
            names.add(name)
        elif name and mark == ("end", name):
            yield name, [*block, (number, line)]
            name, block = "", []
        else:
            missing = _SHOWN[where].format(*(("end", name) if name else ("keep", mark[1])))
            raise DataError(f"expected {missing} before, got {line.strip()}", path=path, line=number)
    if name:
        raise DataError(f"expected {_SHOWN[where].format('end', name)} after it, got none", path=path, line=block[0][0])


def _mark(path: str, number: int, line: str, where: str) -> tuple[str, str] | None:
    if not _ANY[where].match(line):
        return None
    match = _FORM[where].fullmatch(line)
    if match is None:
        forms = " or ".join(_SHOWN[where].format(action, "NAME") for action in ("keep", "end"))
        raise DataError(f"expected {forms}, got {line.strip()}", path=path, line=number)
    return match[1], match[2]
