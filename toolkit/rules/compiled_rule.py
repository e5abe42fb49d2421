"""A rule ready to run: what it does to a document, what it sees in it, and what it says of it."""

import ast
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolkit.data.documents import Document
from toolkit.errors import DataError, quoted
from toolkit.rules import filters
from toolkit.rules.blocklist import Watch
from toolkit.rules.checker import Name
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.expressions import check, everything_known, paths_in
from toolkit.rules.written import Written
from toolkit.text.editing import Edit, PastEnd

Function = Callable[..., Any]
Values = Sequence[Any]
"""The values of a document, one for each argument of functions, the document last."""


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """A rule ready to run. One that drops or annotates is just that; kinds that do more extend it.

    Attributes:
        rule: as written.
        names: that its expressions may use, its parameters among them.
        function: makes code a function of the values of a document.
        condition: the code of when it holds; empty if it always does.
    """

    rule: Written
    names: Mapping[str, Name]
    function: Callable[[str], Function]
    condition: str

    # --- what a kind does: `edits` and `preview` if it edits, `set` if it sets fields, `folder` if it routes ----------

    def edits(self, document: Document, values: Values, past_end: PastEnd) -> list[Edit]:
        """Return what it edits in a document's text."""
        return []

    def preview(self, values: Values) -> tuple[int, int | None]:
        """Return how many stretches it would edit, and their code points (None where only text could tell)."""
        return 0, None

    def set(self, fields: dict[str, Any], values: Values) -> None:
        """Add the field that it gives to these, as a JSON text, nested where its name is dotted."""

    def folder(self, label: str, values: Values) -> str:
        """Return the output folder of a document, or piece of one, that the format gives this label."""
        return label

    def takes_label(self) -> bool:
        """Return whether ``label`` in its expression is the label that the format gives, and not that of the rules."""
        return False

    def watches(self) -> Watch | None:
        """Return what notes the entries of a blocklist that documents match, for a kind that has one."""
        return None

    def verdict(self, values: Values) -> str:
        """Return what it does to a document that has come to it, for people."""
        verb = self.rule.ROLE.verb
        if self.holds(values):
            return f"{verb} it"
        return f"does not {verb.removesuffix('s')} it" if self.rule.decides else f"{verb} nothing"

    def watched(self, values: Values) -> dict[str, Any]:
        """Return the values that it sees in a document, by the text of the expression that has them."""
        found: dict[str, Any] = {}
        for path, function in self._paths.items():
            with contextlib.suppress(KeyError, IndexError, AttributeError, TypeError, ValueError):
                found[path] = function(*values)
        return found

    def part(self, text: str) -> Function | None:
        """Return a part of its expressions as a function of the values of a document; None if it cannot stand alone.

        Whatever the rule tests before it comes to this part is not tested: nulls are errors of the function.
        """
        tested = frozenset(ast.unparse(node) for node in ast.walk(parse(text)) if isinstance(node, ast.expr))
        try:
            return self.function(check(text, self.names, tested).code)
        except ExpressionError:
            return None

    # --- what kinds use -----------------------------------------------------------------------------------------------

    def holds(self, values: Values) -> bool:
        """Return True if the rule does something to a document."""
        return not self.condition or bool(self.run(self._holds, values))

    def rules_out(self, values: Values) -> bool:
        """Return True if the rule drops a document whatever is drawn."""
        return self.rule.drops and not self.rule.DRAWS and self.holds(values)

    def run(self, function: Function, values: Values) -> Any:
        """Return what one of its functions gives; a value that it cannot use is an error that names the rule."""
        try:
            return function(*values)
        except Exception as error:
            message = f"rule {quoted(self.rule.name)} ({self.rule.place}) failed: {_describe(error)}"
            raise DataError(message).about(self.keys) from None

    def fault(self, message: str) -> DataError:
        """Return the error of a value that is not what the rule needs."""
        return DataError(f"rule {quoted(self.rule.name)} ({self.rule.place}): {message}").about(self.keys)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Return the names of the attributes that it asks for."""
        foreign = self.rule.foreign
        asked = {key for text in foreign.texts for key in filters.all_keys(text, foreign.syntax)} if foreign else set()
        paths = (path for text in self.rule.expressions for path in paths_in(text, self.names))
        return frozenset(asked | {path.partition(".")[0] for path in paths})

    @cached_property
    def _holds(self) -> Function:
        return self.function(self.condition)

    @cached_property
    def _paths(self) -> dict[str, Function]:
        compiled: dict[str, Function] = {}
        for path in (path for text in self.rule.expressions for path in paths_in(text, self.names)):
            with contextlib.suppress(ExpressionError):
                compiled[path] = self.function(check(path, self.names, everything_known(path)).code)
        return compiled


def of_joined(function: Callable[[dict[str, Any]], Any]) -> Function:
    """Return a function of the whole document with its attributes as one of the values of a document."""
    return lambda *values: function(values[-1].joined)


def label_function(text: str, function: Function) -> Callable[..., str | None]:
    """Return the function of a label; its errors tell the label's expression."""

    def label(*values: Any) -> str | None:
        try:
            value = function(*values)
        except Exception as error:
            raise DataError(f"the label `{text}` failed: {_describe(error)}") from None
        if not isinstance(value, str | None):
            raise DataError(f"expected a text or null as label, got {value!r}")
        return value

    return label


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"expected the key {error}, got a map without it; use get(map, key, default)"
    if isinstance(error, IndexError):
        return "expected an element, got a list that is too short"
    if isinstance(error, DataError):
        return error.message
    if str(error).startswith("expected"):
        return str(error)
    return f"{type(error).__name__}: {error}"
