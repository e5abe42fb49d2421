"""Reads rules as they are written in YAML: entries of all kinds, groups, included files, and parameters."""

import ast
import glob
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import schema
from toolkit.errors import ConfigError, did_you_mean
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.expressions import is_name
from toolkit.rules.kinds import all_forms
from toolkit.rules.rule import Form, Rule, parameter_type
from toolkit.storage.models import BUNDLED
from toolkit.storage.paths import expand, where_looked
from toolkit.text.languages.tables import thresholds

Scope = dict[str, dict[str, Any]]
"""Parameters: for each name its value by label; under "" that for all other labels."""


def merged(inner: Scope, outer: Scope) -> Scope:
    """Return the parameters of both; where both give a value for a label, that from outside."""
    return {name: inner.get(name, {}) | outer.get(name, {}) for name in {**inner, **outer}}


def read_scope(place: ConfigNode, base: str = "") -> Scope:
    """Return the parameters beside rules: ``parameters: {NAME: VALUE}``, ``languages: {LABEL: {NAME: VALUE}}``.

    Args:
        place: Mapping in which both may stand.
        base: Folder that ``languages: GLOB``, a file of values for each label, and ``languages: TABLE.tsv``, all of
            them, are relative to.

    Raises:
        ConfigError: if they are not of that form.
    """
    parameters = _values(place, ("parameters",), place.value.get("parameters", {}))
    scope: Scope = {name: {"": value} for name, value in parameters.items()}
    languages = place.value.get("languages", {})
    if isinstance(languages, str):
        by_label = _of_table(place, languages, base) if is_table(languages) else _of_files(place, languages, base)
    elif isinstance(languages, dict):
        by_label = {label: _values(place, ("languages", label), values) for label, values in languages.items()}
    else:
        raise place.error(
            ("languages",), "expected {LABEL: {PARAMETER: VALUE}}, a table, or a glob of files, one a label"
        )
    for label, values in by_label.items():
        for name, value in values.items():
            scope.setdefault(name, {})[label] = value
    return scope


def _of_table(place: ConfigNode, table: str, base: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters of each label in a table."""
    with place.errors_at("languages"):
        return thresholds(table if table in BUNDLED else _near(place, table, base))


def _of_files(place: ConfigNode, pattern: str, base: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters of labels, read from a file each."""
    with place.errors_at("languages"):
        paths = [path for path, _ in expand(_near(place, pattern, base))]
    results: dict[str, dict[str, Any]] = {}
    for path in paths:
        source = settings.load(path)
        label = os.path.basename(path).partition(".")[0]
        of_label = results.setdefault(label, {})
        for name, value in _values(source, (), source.value if source.value is not None else {}).items():
            if name in of_label:
                raise source.error((name,), f"expected one file for the label {label!r}, got a second one")
            of_label[name] = value
    return results


def _near(place: ConfigNode, pattern: str, base: str) -> str:
    """Return the path of files beside the rules, or below the root."""
    beside, below = (os.path.join(folder, pattern) for folder in (base, place.root))
    return below if glob.glob(below) and not glob.glob(beside) else beside


def is_table(languages: object) -> bool:
    """Return True for name or path of a table of parameters."""
    return isinstance(languages, str) and (languages in BUNDLED or languages.endswith(".tsv"))


def _values(source: ConfigNode, path: tuple[str, ...], values: Any) -> dict[str, Any]:
    """Return values by the names of parameters, checked."""
    if not isinstance(values, dict):
        raise source.error(path, f"expected a mapping of parameters, got {values!r}")
    for name, value in values.items():
        if not is_name(name) or name == "label":
            raise source.error((*path, name), f"expected a name that expressions can use, got {name!r}")
        if parameter_type(value) == schema.ANY:
            raise source.error(
                (*path, name), f"expected a number, a text, true, false, or a list of such of one type, got {value!r}"
            )
    return values


def check_used(place: ConfigNode, scope: Scope, rules: Iterable[Rule]) -> None:
    """Check the use of each parameter by a rule. An unused one is a slip; tables may have more.

    Raises:
        ConfigError: for a parameter that no rule uses.
    """
    listed = list(rules)
    tabled = is_table(place.value.get("languages"))
    used = {name: values for rule in listed for name, values in rule.parameters.items()}
    for name in scope:
        if name not in used and (name in place.value.get("parameters", {}) or not tabled):
            names = {name for rule in listed for text in rule.expressions for name in names_in(text)}
            hint = did_you_mean(name, sorted(names)) or f"; used are: {', '.join(sorted(used)) or 'none'}"
            at = ("parameters", name) if name in place.value.get("parameters", {}) else ("languages",)
            raise place.error(at, f"expected parameters that a rule uses, got {name!r}{hint}")


def names_in(text: str) -> set[str]:
    """Return the names in an expression; none if invalid."""
    try:
        return {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    except ExpressionError:
        return set()  # it is refused with a better message where it is compiled


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


class _Around(msgspec.Struct, frozen=True):
    """The surroundings of a rule.

    Attributes:
        base: Folder that paths are relative to.
        included: Files that led here.
        files: All files included so far.
        group: Name.
        when: Conditions, as written.
        scope: Parameters.
    """

    base: str
    included: tuple[str, ...] = ()
    files: list[str] = []
    group: str = ""
    when: tuple[str, ...] = ()
    scope: Scope = {}


def read_rules(source: ConfigNode, base: str = "", scope: Scope | None = None) -> list[Rule]:
    """Return the rules of a list, with included ones.

    Args:
        source: List.
        base: Folder that the paths of files are relative to.
        scope: Parameters that the rules may use.

    Raises:
        ConfigError: if a rule is not of a known form, or a name is used twice.
    """
    rules = _read(source, _Around(base, scope=scope or {}))
    check_names(rules)
    return rules


def check_names(rules: Iterable[Rule]) -> None:
    """Raise ConfigError if two rules of a stream share a name."""
    places: dict[str, str] = {}
    for rule in rules:
        if rule.name in places:
            raise ConfigError(
                f"{rule.place}: expected each rule under a name of its own, got {rule.name!r} also at "
                f"{places[rule.name]}; give it a `name:`"
            )
        places[rule.name] = rule.place


def _read(source: ConfigNode, around: _Around) -> list[Rule]:
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


def _entry(place: ConfigNode) -> Form | GroupForm | IncludeForm:
    """Return an entry of the list with its typed options."""
    forms = all_forms()
    containers: list[type[ConfigStruct]] = [GroupForm, IncludeForm]
    keys = list(dict.fromkeys([*sorted(form.KEY for form in forms), "group", "include"]))
    key = _key(place, keys, {name for form in [*forms, *containers] for name in form.__struct_fields__})
    if key == "group":
        return _typed(place, GroupForm, key)
    if key == "include":
        return _typed(place, IncludeForm, key)
    sharing = [form for form in forms if key == form.KEY]
    form = next((item for item in sharing if item.WORD and place.value[key] == item.WORD), None)
    if form:
        return _typed(place, form, f"{key}: {form.WORD}")
    plain = next(item for item in sharing if not item.WORD)
    for other in sharing:
        stray = [
            option for option in place.value if option in set(other.__struct_fields__) - set(plain.__struct_fields__)
        ]
        if stray:
            raise place.error((stray[0],), f"expected {stray[0]!r} only beside `{key}: {other.WORD}`")
    return _typed(place, plain, key)


def _key(place: ConfigNode, keys: list[str], options: set[str]) -> str:
    """Return the option for the kind of an entry."""
    value: dict[str, Any] = place.value
    results = [key for key in value if key in keys]
    if len(results) == 1:
        return results[0]
    unknown = [key for key in value if key not in options]
    hint = did_you_mean(unknown[0], keys) if unknown else ""
    raise place.error((), f"expected one of {', '.join(keys)} in a rule, got {list(value)}{hint}")


def _typed(place: ConfigNode, form: type[_Entry], title: str) -> _Entry:
    """Return an entry as its form; the errors name the option."""
    value: dict[str, Any] = place.value
    fields = msgspec.structs.fields(form)
    try:
        settings.refuse_unknown(place, form, (), f"the rule {title!r}")
        if missing := [field.name for field in fields if field.required and field.name not in value]:
            raise place.error((), f"expected `{missing[0]}:` beside `{title}`")
        entry = settings.convert(place, form)
    except ConfigError as error:
        hint = ""
        if None in (value[key] for key in value.keys() - {field.name for field in fields}):  # {drop: get(a, b, 1) > 2}
            hint = "; inside of braces, write quotes around an expression that has commas"
        elif any(isinstance(option, dict) and "regex" in option for option in value.values()):
            hint = "; edits by a pattern stand in the section `edits:`, and `text: NAME` under `mix:` takes their text"
        elif "expected a text" in str(error):
            hint = "; write quotes around an expression that YAML would read in another way"
        raise ConfigError(f"{error}{hint}") from None
    for key in _NOT_EMPTY:
        if key in value and not value[key].strip():
            raise place.error((key,), "expected a text that is not empty")
    return entry


def _within(rule: Rule, place: ConfigNode, around: _Around) -> Rule:
    """Return the rule with its surroundings."""
    conditions = [*around.when, *([rule.when] if rule.when else [])]
    when = " and ".join(f"({condition})" for condition in conditions) if len(conditions) > 1 else "".join(conditions)
    name = f"{around.group}: {rule.name}" if around.group else rule.name
    result = msgspec.structs.replace(rule, name=name, group=around.group, when=when, place=place.place(()))
    used = {name for text in result.expressions for name in names_in(text)}
    parameters = {item: values for item, values in sorted(around.scope.items()) if item in used}
    return msgspec.structs.replace(result, parameters=parameters)


# --- groups and included files ----------------------------------------------------------------------------------------


def _group(entry: GroupForm, place: ConfigNode, around: _Around) -> list[Rule]:
    group = f"{around.group}/{entry.group}" if around.group else entry.group
    inner = msgspec.structs.replace(around, group=group, when=(*around.when, *filter(None, [entry.when])))
    return _scoped(place, place.at("rules"), inner, around.scope)


def _include(entry: IncludeForm, place: ConfigNode, around: _Around) -> list[Rule]:
    path = entry.include
    result = next(
        (p for p in (os.path.join(around.base, path), os.path.join(place.root, path)) if os.path.isfile(p)), None
    )
    if result is None:
        where = os.path.join(around.base, path)
        raise place.error((), f"expected a file of rules, got nothing at {where}{where_looked(path)}")
    if os.path.abspath(result) in around.included:
        raise place.error((), f"expected includes that end, got {path} including itself")
    if len(around.files) >= MAX_INCLUDES:
        raise place.error((), f"expected at most {MAX_INCLUDES} includes in all, got more")
    around.files.append(result)
    source = settings.load(result)
    source.root = place.root
    if isinstance(source.value, dict) and "mix" in source.value:
        source = source.at("mix")
    own = read_scope(place, around.base)
    inner = msgspec.structs.replace(
        around,
        base=os.path.dirname(result),
        included=(*around.included, os.path.abspath(result)),
        when=(*around.when, *filter(None, [entry.when])),
        scope=merged(own, around.scope),
    )
    if not isinstance(source.value, dict):
        rules = _read(source, inner)
    elif "rules" not in source.value:
        raise place.error((), f"expected rules in {result}, got none")
    else:
        rules = _scoped(source, source.at("rules"), inner, inner.scope)
    check_used(place, own, rules)
    return rules


def _scoped(place: ConfigNode, rules: ConfigNode, inner: _Around, outer: Scope) -> list[Rule]:
    """Return rules with their own parameters. Those from outside go before."""
    own = read_scope(place, inner.base)
    results = _read(rules, msgspec.structs.replace(inner, scope=merged(own, outer)))
    check_used(place, own, results)
    return results
