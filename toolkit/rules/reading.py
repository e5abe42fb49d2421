"""Reads rules as they are written in YAML: entries of all kinds, groups, included files, and parameters around them."""

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigStruct, Source
from toolkit.errors import ConfigError, did_you_mean
from toolkit.rules.kinds import all_forms
from toolkit.rules.rule import Form, Rule
from toolkit.rules.scopes import Scope, check_used, merged, names_in, read_scope
from toolkit.storage.paths import where_looked

_Entry = TypeVar("_Entry", bound=ConfigStruct)

MAX_INCLUDES = 500
"""Files that a list of rules includes, those of included files counted: two in each of 40 files would be 2^40."""


class _Common(ConfigStruct, kw_only=True):
    """A condition and parameters for several rules."""

    when: str = ""
    parameters: Any = None
    languages: Any = None


class GroupForm(_Common, kw_only=True):
    """Rules under a common name and condition, with parameters for them."""

    group: str
    rules: Any


class IncludeForm(_Common, kw_only=True):
    """The rules of another file."""

    include: str


_NOT_EMPTY = ("when", "name", "group", "include")


@dataclass(frozen=True)
class _Around:
    """The surroundings of a rule.

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
    """Return the rules of a list in a configuration, with those that it includes.

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
    """Raise ConfigError if two rules that are applied together have one name."""
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
        if not isinstance(place.value, dict):
            raise place.error((), f"expected a rule such as `drop: EXPRESSION`, got {place.value!r}")
        entry = _entry(place)
        if isinstance(entry, IncludeForm):
            rules += _include(entry, place, around)
        elif isinstance(entry, GroupForm):
            rules += _group(entry, place, around)
        else:
            rules += [_within(rule, place, around) for rule in entry.rules(place, around.base)]
    return rules


def _entry(place: Source) -> Form | GroupForm | IncludeForm:
    """Return an entry of the list with its typed options."""
    forms = all_forms()
    others: list[type[ConfigStruct]] = [GroupForm, IncludeForm]
    keys = list(dict.fromkeys([*sorted(form.KEY for form in forms), "group", "include"]))
    key = _key(place, keys, {name for form in [*forms, *others] for name in form.__struct_fields__})
    if key == "group":
        return _typed(place, GroupForm, key)
    if key == "include":
        return _typed(place, IncludeForm, key)
    sharing = [form for form in forms if key == form.KEY]
    form = next((each for each in sharing if each.WORD and place.value[key] == each.WORD), None)
    if form:
        return _typed(place, form, f"{key}: {form.WORD}")
    plain = next(each for each in sharing if not each.WORD)
    for other in sharing:
        stray = [
            option for option in place.value if option in set(other.__struct_fields__) - set(plain.__struct_fields__)
        ]
        if stray:
            raise place.error((stray[0],), f"expected {stray[0]!r} only beside `{key}: {other.WORD}`")
    return _typed(place, plain, key)


def _key(place: Source, keys: list[str], known: set[str]) -> str:
    """Return the option that tells what kind of rule an entry is."""
    value: dict[str, Any] = place.value
    found = [key for key in value if key in keys]
    if len(found) == 1:
        return found[0]
    unknown = [key for key in value if key not in known]
    hint = did_you_mean(unknown[0], keys) if unknown else ""
    raise place.error((), f"expected one of {', '.join(keys)} in a rule, got {list(value)}{hint}")


def _typed(place: Source, form: type[_Entry], shown: str) -> _Entry:
    """Return an entry as its form; the errors name the option."""
    value: dict[str, Any] = place.value
    known = [each.name for each in msgspec.structs.fields(form)]
    try:
        settings.refuse_unknown(place, form, (), f"the rule {shown!r}")
        if missing := [each.name for each in msgspec.structs.fields(form) if each.required and each.name not in value]:
            raise place.error((), f"expected `{missing[0]}:` beside `{shown}`")
        entry = settings.convert(place, form)
    except ConfigError as error:
        hint = ""
        if any(option is None for key, option in value.items() if key not in known):  # {drop: get(a, b, 1) > 2}
            hint = "; inside of braces, write quotes around an expression that has commas"
        elif "expected a text" in str(error):
            hint = "; write quotes around an expression that YAML would read in another way"
        raise ConfigError(f"{error}{hint}") from None
    for key in _NOT_EMPTY:
        if key in value and not value[key].strip():
            raise place.error((key,), "expected a text that is not empty")
    return entry


def _within(rule: Rule, place: Source, around: _Around) -> Rule:
    """Return the rule with what surrounds it."""
    conditions = [*around.when, *([rule.when] if rule.when else [])]
    when = " and ".join(f"({each})" for each in conditions) if len(conditions) > 1 else "".join(conditions)
    name = f"{around.group}: {rule.name}" if around.group else rule.name
    found = msgspec.structs.replace(rule, name=name, group=around.group, when=when, place=place.place(()))
    used = {each for text in found.expressions for each in names_in(text)}
    parameters = {each: values for each, values in sorted(around.scope.items()) if each in used}
    return msgspec.structs.replace(found, parameters=parameters)


# --- groups and included files ----------------------------------------------------------------------------------------


def _group(entry: GroupForm, place: Source, around: _Around) -> list[Rule]:
    group = f"{around.group}/{entry.group}" if around.group else entry.group
    inner = dataclasses.replace(around, group=group, when=_whens(entry.when, around))
    return _scoped(place, place.at("rules"), inner, around.scope)


def _include(entry: IncludeForm, place: Source, around: _Around) -> list[Rule]:
    path = entry.include
    found = next(
        (p for p in (os.path.join(around.base, path), os.path.join(place.root, path)) if os.path.isfile(p)), None
    )
    if found is None:
        where = os.path.join(around.base, path)
        raise place.error((), f"expected a file of rules, got nothing at {where}{where_looked(path)}")
    if os.path.abspath(found) in around.included:
        raise place.error((), f"expected includes that end, got {path} including itself")
    if len(around.files) >= MAX_INCLUDES:
        raise place.error((), f"expected at most {MAX_INCLUDES} includes in all, got more")
    around.files.append(found)
    source = settings.load(found)
    source.root = place.root
    if isinstance(source.value, dict) and "mix" in source.value:
        source = source.at("mix")
    given = read_scope(place, around.base)
    inner = dataclasses.replace(
        around,
        base=os.path.dirname(found),
        included=(*around.included, os.path.abspath(found)),
        when=_whens(entry.when, around),
        scope=merged(given, around.scope),
    )
    if not isinstance(source.value, dict):
        rules = _read(source, inner)
    elif "rules" not in source.value:
        raise place.error((), f"expected rules in {found}, got none")
    else:
        rules = _scoped(source, source.at("rules"), inner, inner.scope)
    check_used(place, given, rules)
    return rules


def _whens(own: str, around: _Around) -> tuple[str, ...]:
    return (*around.when, own) if own else around.when


def _scoped(place: Source, rules: Source, inner: _Around, outer: Scope) -> list[Rule]:
    """Return rules with the parameters that are given beside them; those from outside go before."""
    own = read_scope(place, inner.base)
    found = _read(rules, dataclasses.replace(inner, scope=merged(own, outer)))
    check_used(place, own, found)
    return found
