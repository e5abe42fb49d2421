"""Rules as they are written in YAML: their forms, groups, included files, and parameters that differ by language."""

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from toolkit.config import settings
from toolkit.config.settings import Source
from toolkit.errors import ConfigError, did_you_mean
from toolkit.rules.rule import Entries, Rule, Syntax
from toolkit.rules.scopes import Scope, check_used, merged, names_in, read_scope
from toolkit.storage.paths import expand
from toolkit.storage.reading import content_digest
from toolkit.text import editing

_OPTIONS: dict[str, tuple[str, ...]] = {
    "drop": ("name", "when", "syntax", "strict", "files", "entries", "url"),
    "keep": ("name", "when", "syntax", "strict"),
    "sample": ("when", "seed", "name"),
    "annotate": ("name", "when"),
    "set": ("to", "when", "name"),
    "route": ("when", "name"),
    "replace": ("by", "min_score", "max_score", "when", "name", "syntax"),
    "cut": ("min_score", "max_score", "when", "name", "syntax"),
    "group": ("rules", "when", "parameters", "languages"),
    "include": ("when", "parameters", "languages"),
}
"""The keys of a rule, by the one that says what it does."""

BLOCKLIST = "blocklist"

MAX_INCLUDES = 500
"""Files that a list of rules includes, those of included files counted: two in each of 40 files would be 2^40."""

_NUMBERS = ("min_score", "max_score")
_NOT_EMPTY = ("when", "name", "group", "include")
_FREE = ("sample", "to", "files", "rules", "parameters", "languages", "set")
"""Keys whose values are checked where they are used; those of all others are texts, or numbers."""


@dataclass(frozen=True)
class _Around:
    """What surrounds a rule.

    Attributes:
        base: folder that paths are relative to.
        included: the files that led here.
        files: all that have been included so far.
        group: its name.
        when: conditions, as written.
        scope: parameters.
    """

    base: str
    included: tuple[str, ...] = ()
    files: list[str] = field(default_factory=list)
    group: str = ""
    when: tuple[str, ...] = ()
    scope: Scope = field(default_factory=dict)


def read_rules(source: Source, base: str = "", scope: Scope | None = None) -> list[Rule]:
    """The rules of a list in a configuration, with those that it includes.

    Args:
        source: the list.
        base: folder that the paths of files are relative to.
        scope: parameters that the rules may use.

    Raises:
        ConfigError: if a rule is not of a known form, or a name is used twice.
    """
    rules = _read(source, _Around(base, scope=scope or {}))
    check_names(rules)
    return rules


def check_names(rules: Iterable[Rule]) -> None:
    """Raises ConfigError if two rules that are applied together have one name."""
    seen: dict[str, str] = {}
    for rule in rules:
        if rule.name in seen:
            raise ConfigError(
                f"{rule.place}: expected each rule under a name of its own, got {rule.name!r} also at "
                f"{seen[rule.name]}; give it a `name:`"
            )
        seen[rule.name] = rule.place


def _read(source: Source, around: _Around) -> list[Rule]:
    if not isinstance(source.value, list):
        raise source.error((), "expected a list of rules")
    rules: list[Rule] = []
    for i in range(len(source.value)):
        place = source.at(i)
        value = place.value
        if not isinstance(value, dict):
            raise place.error((), f"expected a rule such as `drop: EXPRESSION`, got {value!r}")
        kind = _kind(place)
        for key, option in value.items():
            _check_option(place, kind, key, option)
        if kind == "include":
            rules += _include(place, around)
        elif kind == "group":
            rules += _group(place, around)
        else:
            rules += [_within(rule, around) for rule in _rules(kind, value, place, around)]
    return rules


def _kind(place: Source) -> str:
    value: dict[str, Any] = place.value
    kinds = [key for key in value if key in _OPTIONS]
    if len(kinds) == 1:
        return kinds[0]
    known = {option for options in _OPTIONS.values() for option in options}
    unknown = [key for key in value if key not in _OPTIONS and key not in known]
    hint = did_you_mean(unknown[0], _OPTIONS) if unknown else ""
    raise place.error((), f"expected one of {', '.join(_OPTIONS)} in a rule, got {list(value)}{hint}")


def _check_option(place: Source, kind: str, key: str, option: Any) -> None:
    if key not in (kind, *_OPTIONS[kind]):
        hint = did_you_mean(key, _OPTIONS[kind]) or f"; known: {', '.join(_OPTIONS[kind]) or 'none'}"
        if option is None:  # what YAML makes of {drop: get(a, b, 1) > 2}
            hint += "; between braces, an expression that has commas stands in quotes"
        raise place.error((key,), f"unknown option {key!r} of the rule {kind!r}{hint}")
    if key in _FREE or (key == "seed" and isinstance(option, int)):
        return
    if key == kind and "syntax" in place.value and isinstance(option, list):
        if option and all(isinstance(each, str) for each in option):
            return
        raise place.error((key,), f"expected a pattern, or a list of patterns, got {option!r}")
    if key == "strict" and isinstance(option, bool):
        return
    number = key in _NUMBERS
    if not isinstance(option, int | float if number else str) or isinstance(option, bool):
        wanted = "a number" if number else "a text; put an expression that YAML reads otherwise between quotes"
        raise place.error((key,), f"expected {wanted}, got {option!r}")
    if key in _NOT_EMPTY and not str(option).strip():
        raise place.error((key,), "expected a text that is not empty")


def _rules(kind: str, value: dict[str, Any], place: Source, around: _Around) -> list[Rule]:
    """The rules that one entry stands for: as many as the fields that `set` gives, else one."""
    if kind == "set":
        return _set(value, place)
    if kind == "drop" and value[kind] == BLOCKLIST:
        return [_blocklist(value, place, around.base)]
    if kind == "drop" and (stray := [key for key in ("files", "entries", "url") if key in value]):
        raise place.error((stray[0],), f"expected {stray[0]!r} only beside `drop: {BLOCKLIST}`")
    return [_rule(kind, value, place)]


def _rule(kind: str, value: dict[str, Any], place: Source) -> Rule:
    where = place.place(())
    when = value.get("when", "")
    if kind == "annotate":
        if "when" not in value:
            raise place.error((), "expected `when: EXPRESSION` beside annotate")
        name = value.get("name", value[kind])
        return Rule(kind="annotate", name=name, expression=when, annotation=value[kind], place=where)
    if kind == "cut" and value[kind] == "lines":
        if "when" not in value or "min_score" in value or "max_score" in value:
            raise place.error((), "expected `cut: lines` with `when: EXPRESSION` and no scores")
        return Rule(kind="cut lines", name=value.get("name", f"cut lines: {when}"), expression=when, place=where)
    if kind in ("replace", "cut"):
        return _span_rule("replace" if kind == "replace" else "cut", value, place)
    if kind == "sample":
        return _sample(value, place)
    if kind == "route":
        name = value.get("name", f"route {value[kind]}")
        return Rule(kind="route", name=name, expression=value[kind], when=when, place=where)
    syntax = _syntax(value, place)
    patterns = [value[kind]] if isinstance(value[kind], str) else value[kind]
    shown = " or ".join(patterns)
    name = value.get("name", (f"not ({shown})" if kind == "keep" else shown) + (f", when {when}" if when else ""))
    return Rule(
        kind="keep" if kind == "keep" else "drop",
        name=name,
        expression="" if syntax else value[kind],
        patterns=patterns if syntax else [],
        syntax=syntax,
        strict=value.get("strict", False),
        when=when,
        place=where,
    )


def _syntax(value: dict[str, Any], place: Source) -> Syntax:
    found = value.get("syntax", "")
    if found not in ("", "jsonpath", "jq"):
        raise place.error(("syntax",), f"expected jsonpath or jq, got {found!r}")
    return found  # type: ignore[no-any-return]


def _sample(value: dict[str, Any], place: Source) -> Rule:
    given = value["sample"]
    shares = {str(label): share for label, share in given.items()} if isinstance(given, dict) else {"default": given}
    if not shares:
        raise place.error(("sample",), "expected a share, or {LABEL: SHARE}, got none")
    for label, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            at = ("sample", label) if isinstance(given, dict) else ("sample",)
            raise place.error(at, f"expected a share between 0 and 1, got {share!r}")
    default = float(shares.pop("default", 1))
    when = value.get("when", "")
    shown = " ".join([str(given)] if not isinstance(given, dict) else [f"{k}={v}" for k, v in given.items()])
    return Rule(
        kind="sample",
        name=value.get("name", f"sample {shown}" + (f" of {when}" if when else "")),
        when=when,
        share=default,
        shares={label: float(share) for label, share in shares.items()},
        seed=str(value.get("seed", "")),
        place=place.place(()),
    )


def _set(value: dict[str, Any], place: Source) -> list[Rule]:
    given = value["set"]
    if isinstance(given, str):
        given = {given: value.get("to")}
    elif "to" in value:
        raise place.error(("to",), "expected `set: FIELD` beside `to:`, or `set: {FIELD: EXPRESSION}` without")
    if not isinstance(given, dict) or not given:
        raise place.error(("set",), "expected `set: FIELD` with `to: EXPRESSION`, or `set: {FIELD: EXPRESSION}`")
    rules = []
    for name, expression in given.items():
        path = str(name).removeprefix("metadata.")
        if isinstance(expression, int | float):
            expression = repr(expression)
        if not isinstance(expression, str) or not all(path.split(".")):
            raise place.error(
                (),
                f"expected a field of the metadata and an expression (a text has quotes of its own: '\"web\"'), got "
                f"{name!r}: {expression!r}",
            )
        shown = f"set {path}" if len(given) > 1 or "name" not in value else value["name"]
        when = value.get("when", "")
        rules.append(Rule(kind="set", name=shown, field=path, expression=expression, when=when, place=place.place(())))
    return rules


def _span_rule(kind: Literal["replace", "cut"], value: dict[str, Any], place: Source) -> Rule:
    if kind == "replace" and "by" not in value:
        raise place.error((), "expected `by: TEXT` beside replace (or `cut:`)")
    name = value.get("name", value[kind])
    by, syntax = value.get("by", ""), _syntax(value, place)
    if not syntax:
        try:
            by = editing.check_replacement(by).replace(editing.TAG, name)
        except ValueError as error:
            raise place.error(("by",), str(error)) from None
    return Rule(
        kind=kind,
        name=name,
        expression=value[kind],
        syntax=syntax,
        by=by,
        when=value.get("when", ""),
        min_score=value.get("min_score"),
        max_score=value.get("max_score"),
        place=place.place(()),
    )


def _blocklist(value: dict[str, Any], place: Source, base: str) -> Rule:
    given = value.get("files")
    patterns = [given] if isinstance(given, str) else given
    if not isinstance(patterns, list) or not patterns or not all(isinstance(each, str) for each in patterns):
        raise place.error((), f"expected `files: PATH` (or a list of paths) beside `drop: {BLOCKLIST}`")
    entries: Entries = value.get("entries", "any")
    if entries not in ("any", "ids", "hosts", "urls"):
        raise place.error(("entries",), f"expected any, ids, hosts or urls, got {entries!r}")
    url = value.get("url", "")
    if url and not (url.startswith("metadata.") and all(url.split("."))):
        raise place.error(("url",), f"expected a field of the metadata (`metadata.url`), got {url!r}")
    files: dict[str, str] = {}
    for pattern in patterns:
        near = pattern if os.path.isabs(pattern) else os.path.join(base, pattern)
        try:
            found = expand(near)
        except ConfigError as error:
            if near == pattern or not base:
                raise place.error(("files",), str(error)) from None
            try:
                found = expand(pattern)
            except ConfigError:
                raise place.error(("files",), str(error)) from None
        files |= {path: content_digest(path) for path, _ in found}
    return Rule(
        kind="blocklist",
        name=value.get("name", BLOCKLIST),
        files=files,
        entries=entries,
        url=url,
        when=value.get("when", ""),
        place=place.place(()),
    )


def _within(rule: Rule, around: _Around) -> Rule:
    """The rule with what surrounds it."""
    conditions = [*around.when, *([rule.when] if rule.when else [])]
    when = " and ".join(f"({each})" for each in conditions) if len(conditions) > 1 else "".join(conditions)
    used = names_in(when) | (names_in(rule.expression) if not rule.syntax else set())
    return msgspec.structs.replace(
        rule,
        name=f"{around.group}: {rule.name}" if around.group else rule.name,
        group=around.group,
        when=when,
        parameters={name: values for name, values in sorted(around.scope.items()) if name in used},
    )


# --- groups and included files ----------------------------------------------------------------------------------------


def _group(place: Source, around: _Around) -> list[Rule]:
    name = place.value["group"]
    if "rules" not in place.value:
        raise place.error((), "expected `rules:` beside group")
    inner = dataclasses.replace(
        around, group=f"{around.group}/{name}" if around.group else name, when=_whens(place, around)
    )
    return _scoped(place, place.at("rules"), inner, around.scope)


def _include(place: Source, around: _Around) -> list[Rule]:
    path = place.value["include"]
    found = next((p for p in (os.path.join(around.base, path), path) if os.path.isfile(p)), None)
    if found is None:
        raise place.error((), f"expected a file of rules, got nothing at {os.path.join(around.base, path)}")
    if os.path.abspath(found) in around.included:
        raise place.error((), f"expected includes that end, got {path} including itself")
    if len(around.files) >= MAX_INCLUDES:
        raise place.error((), f"expected at most {MAX_INCLUDES} includes in all, got more")
    around.files.append(found)
    source = settings.load(found)
    if isinstance(source.value, dict) and "mix" in source.value:
        source = source.at("mix")
    given = read_scope(place, around.base)
    scope = merged(given, around.scope)
    inner = _Around(
        os.path.dirname(found),
        (*around.included, os.path.abspath(found)),
        around.files,
        around.group,
        _whens(place, around),
        scope,
    )
    if not isinstance(source.value, dict):
        rules = _read(source, inner)
    elif "rules" not in source.value:
        raise place.error((), f"expected rules in {found}, got none")
    else:
        rules = _scoped(source, source.at("rules"), inner, scope)
    check_used(place, given, rules)
    return rules


def _whens(place: Source, around: _Around) -> tuple[str, ...]:
    own = place.value.get("when", "")
    return (*around.when, own) if own else around.when


def _scoped(place: Source, rules: Source, inner: _Around, outer: Scope) -> list[Rule]:
    """Rules with the parameters that are given beside them; those from outside go before."""
    own = read_scope(place, inner.base)
    found = _read(rules, dataclasses.replace(inner, scope=merged(own, outer)))
    check_used(place, own, found)
    return found
