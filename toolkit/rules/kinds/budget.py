"""What a budget leaves of documents and their copies: those with the least hashes of their group, up to its bound.

It stands in no list of rules: the section ``budget:`` of a mix becomes one, once the bounds of its groups are known.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import msgspec

from toolkit.rules.repeating import Takes
from toolkit.rules.rule import CompiledRule, Compiler, Role, Rule, refused

Unit = Literal["documents", "bytes", "characters", "words", "tokens"]

EVERYTHING = 2**64 - 1
"""The bound with which all copies are taken."""

NO_GROUP = "(none)"
"""The group of documents for which the expression gives null."""


class Budget(Rule):
    """The rule: `expression` gives the group of a document; without one all are in the group "".

    Attributes:
        unit: that amounts are in.
        of: the expression of the words or tokens of a document.
        bounds: by group, the greatest hash that is taken; -1 for none. None while they are looked for.
        seed: of the hashes.
        draws_documents: True if it takes all copies of a document or none.
    """

    unit: Unit
    of: str = ""
    bounds: dict[str, int] | None = None
    seed: str = "budget"
    draws_documents: bool = False

    FORM = None
    ROLE = Role.DROPS
    DRAWS = True

    @property
    def expressions(self) -> list[str]:
        """Return the texts that are expressions of ours."""
        return [text for text in (self.expression, self.of) if text]

    def compile(self, compiler: Compiler) -> CompiledRule:
        names = compiler.names_for(self)
        group = "''"
        if self.expression:
            found = compiler.value(self, names, self.expression)
            if found.type.not_null.kind not in ("str", "int", "float", "bool", "any"):
                raise refused(self, f"by: expected a text, a number, true or false, got a value of type {found.type}")
            group = compiler.called(_group, found.code)
        amount = ""
        if self.of:
            found = compiler.value(self, names, self.of)
            if found.type.kind not in ("int", "float", "any"):
                null = found.type.not_null.kind in ("int", "float", "any")
                tested = f"a value that may be null; write `0 if {self.of} is None else {self.of}`"
                got = tested if null else f"a value of type {found.type}"
                raise refused(self, f"of: expected a number, the {self.unit} of a document, got {got}")
            amount = found.code
        bound = "None" if self.bounds is None else compiler.called(partial(_bound, self.bounds), group)
        return Takes(
            self, names, compiler.function, "", bound, group, amount, self.unit, self.seed, self.draws_documents
        )


def group_text(value: Any) -> str:
    """Return a group as text; NO_GROUP of null."""
    if value is None:
        return NO_GROUP
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _group(document: Any, value: Any) -> str:
    return group_text(value)


def _bound(bounds: Mapping[str, int], document: Any, group: str) -> int:
    if group not in bounds:  # nothing else was met when the bounds were found
        raise ValueError(f"expected one of the groups {', '.join(sorted(bounds))}, got {group!r}")
    return bounds[group]
