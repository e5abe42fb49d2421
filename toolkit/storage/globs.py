"""Globs as regular expressions; their time grows linearly with the length of a path.

`*` and `?` stay within a folder, `**` spans any number of folders (also none), `[ab]` `[!a]` are classes, `{a,b}` are
alternatives. A path with many `*` matches nothing in time that grows with a power of its length, if the first way to
match what stands between two of them is not final. It can be: what follows begins with a `*`, which takes the rest.
"""

import functools
import itertools
import re

from toolkit.errors import ConfigError

MAX_CHARS = 10_000
"""Of a glob; no path is as long."""

MAX_ALTERNATIVES = 1000
"""Globs without braces that one with braces may stand for."""

_CLASS = re.compile(r"\[.[^\]]*\]", re.DOTALL)


@functools.lru_cache(maxsize=256)
def glob_regex(pattern: str) -> re.Pattern[str]:
    """Return a glob as a regular expression over whole paths.

    Raises:
        ConfigError: if it is none, or has too many alternatives.
    """
    if len(pattern) > MAX_CHARS:
        raise ConfigError(
            f"{pattern[:200]}…: expected a glob of at most {MAX_CHARS:,} characters, got {len(pattern):,}"
        )
    try:
        return re.compile("|".join(rf"(?:{_path(alternative)})\Z" for alternative in _alternatives(pattern)), re.DOTALL)
    except (re.error, RecursionError) as error:
        raise ConfigError(f"{pattern[:200]}: expected a glob, got: {error}") from None


def _alternatives(pattern: str) -> list[str]:
    """Expand the braces of a glob."""
    waiting, results = [pattern], []
    while waiting:
        text = waiting.pop(0)
        inner = _innermost(text)
        if inner is None:
            results.append(text)
            continue
        start, end, commas = inner
        edges = [start, *commas, end]
        parts = [text[a + 1 : b] for a, b in itertools.pairwise(edges)]
        waiting += [text[:start] + part + text[end + 1 :] for part in parts]
        if len(waiting) + len(results) > MAX_ALTERNATIVES:
            raise ConfigError(f"{pattern[:200]}: expected at most {MAX_ALTERNATIVES} alternatives, got more")
    return list(dict.fromkeys(results))


def _innermost(text: str) -> tuple[int, int, list[int]] | None:
    """Return the first innermost pair of braces, and its commas; None if there is none."""
    opened: int | None = None
    commas: list[int] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == "[" and (match := _CLASS.match(text, i)):
            i = match.end()
            continue
        if c == "{":
            opened, commas = i, []
        elif c == "," and opened is not None:
            commas.append(i)
        elif c == "}" and opened is not None:
            return opened, i, commas
        i += 1
    return None


def _path(pattern: str) -> str:
    """Return the regular expression of a glob without braces."""
    *folders, name = _divided(pattern)
    runs: list[str] = [""]  # what stands between two `**/`
    for folder in folders:
        if folder == "**":
            runs.append("")
        else:
            runs[-1] += _part(folder) + "/"
    first, *rest = runs
    last = _part(name[:-2]) + ".*" if name.endswith("**") else _part(name)
    if not rest:
        return first + last
    *between, behind = rest
    passed = "".join(rf"(?>(?:[^/]+/)*?{run})" for run in between if run)
    return rf"{first}{passed}(?:[^/]+/)*{behind}{last}"


def _divided(pattern: str) -> list[str]:
    """Return the parts of a path, cut at slashes outside of classes."""
    results, start = [], 0
    for match in re.finditer(rf"{_CLASS.pattern}|/", pattern, re.DOTALL):
        if match[0] == "/":
            results.append(pattern[start : match.start()])
            start = match.end()
    return [*results, pattern[start:]]


def _part(text: str) -> str:
    """Return the regular expression of a part of a path, without slashes."""
    first, *rest = _stretches(text)
    if not rest:
        return first
    *between, last = rest
    return first + "".join(rf"(?>[^/]*?{item})" for item in between if item) + "[^/]*" + last


def _stretches(text: str) -> list[str]:
    """Return the regular expressions of the texts between stars."""
    results, i = [""], 0
    while i < len(text):
        c = text[i]
        if c == "*":
            results.append("")
        elif c == "?":
            results[-1] += "[^/]"
        elif c == "[" and (match := _CLASS.match(text, i)):
            inside = match[0][1:-1]
            not_, inside = ("^", inside[1:]) if inside.startswith("!") else ("", inside)
            ranges = re.findall(r"(.)(?:(-)(.))?", inside, re.DOTALL)
            results[-1] += f"(?!/)[{not_}{''.join(re.escape(a) + to + re.escape(b) for a, to, b in ranges)}]"
            i = match.end() - 1
        else:
            results[-1] += re.escape(c)
        i += 1
    return results
