"""Parameters of rules: numbers under names, which may differ by language, beside rules, in files or in a table."""

import ast
import os
from collections.abc import Iterable, Mapping
from typing import Any

from toolkit.config import settings
from toolkit.config.settings import Source
from toolkit.data import schema
from toolkit.errors import ConfigError, did_you_mean
from toolkit.rules.compiling import parameter_type
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.expressions import is_name
from toolkit.rules.written import Written
from toolkit.storage.models import BUNDLED
from toolkit.storage.paths import expand
from toolkit.text.languages.tables import thresholds

Scope = dict[str, dict[str, Any]]
"""Parameters: for each name its value by label; under "" that for all other labels."""


def merged(inner: Scope, outer: Scope) -> Scope:
    """Return the parameters of both; where both give a value for a label, that from outside."""
    return {name: inner.get(name, {}) | outer.get(name, {}) for name in {**inner, **outer}}


def read_scope(place: Source, base: str = "") -> Scope:
    """Return the parameters beside rules: ``parameters: {NAME: VALUE}``, ``languages: {LABEL: {NAME: VALUE}}``.

    Args:
        place: a mapping in which both may stand.
        base: folder that ``languages: GLOB``, a file of values for each label, and ``languages: TABLE.tsv``, all of
            them, are relative to.

    Raises:
        ConfigError: if they are not of that form.
    """
    given = _values(place, ("parameters",), place.value.get("parameters", {}))
    scope: Scope = {name: {"": value} for name, value in given.items()}
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


def _of_table(place: Source, table: str, base: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters of each label in a table."""
    try:
        return thresholds(table if table in BUNDLED else os.path.join(base, table))
    except ConfigError as error:
        raise place.error(("languages",), str(error)) from None


def _of_files(place: Source, pattern: str, base: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters of each label, which have a file each."""
    try:
        paths = [path for path, _ in expand(os.path.join(base, pattern))]
    except ConfigError as error:
        raise place.error(("languages",), str(error)) from None
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        source = settings.load(path)
        label = os.path.basename(path).partition(".")[0]
        of_label = found.setdefault(label, {})
        for name, value in _values(source, (), source.value if source.value is not None else {}).items():
            if name in of_label:
                raise source.error((name,), f"expected one file for the label {label!r}, got a second one")
            of_label[name] = value
    return found


def is_table(languages: object) -> bool:
    """Return True for the name of a table of parameters by label, or a path of one."""
    return isinstance(languages, str) and (languages in BUNDLED or languages.endswith(".tsv"))


def _values(source: Source, path: tuple[str, ...], values: Any) -> dict[str, Any]:
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


def check_used(place: Source, scope: Scope, rules: Iterable[Written]) -> None:
    """Check that a rule uses each parameter: else it is a slip, and would be without effect; tables may have more.

    Raises:
        ConfigError: for a parameter that no rule uses.
    """
    listed = list(rules)
    tabled = is_table(place.value.get("languages"))
    used = {name: values for rule in listed for name, values in rule.parameters.items()}
    for name in scope:
        if name not in used and (name in place.value.get("parameters", {}) or not tabled):
            names = {each for rule in listed for text in rule.expressions for each in names_in(text)}
            hint = did_you_mean(name, sorted(names)) or f"; used are: {', '.join(sorted(used)) or 'none'}"
            at = ("parameters", name) if name in place.value.get("parameters", {}) else ("languages",)
            raise place.error(at, f"expected parameters that a rule uses, got {name!r}{hint}")


def names_in(text: str) -> set[str]:
    """Return the names that an expression has; none if it is not one."""
    try:
        return {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    except ExpressionError:
        return set()  # it is refused with a better message where it is compiled
