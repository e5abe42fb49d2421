"""``drop: E`` drops the documents for which E is true; with ``syntax:``, those that a pattern matches."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import msgspec

from toolkit.config.settings import ConfigNode, Description
from toolkit.errors import ConfigError
from toolkit.rules import filters
from toolkit.rules.checker import Name
from toolkit.rules.filters import Syntax
from toolkit.rules.rule import CompiledRule, Compiler, Foreign, Form, Role, Rule, of_joined, refused


class PatternForm(Form, kw_only=True):
    """The options in YAML that `drop` and `keep` share."""

    syntax: Annotated[Syntax | None, Description(description="the language of the patterns")] = None
    strict: Annotated[bool, Description(description="compare numbers as Dolma does, 1 unequal to 1.0")] = False

    def rule(self, kind: type["Drop"], given: str | list[str], place: ConfigNode) -> "Drop":
        """Return the rule of an expression, or with `syntax` of patterns."""
        if isinstance(given, list) and not (self.syntax and given):
            raise place.error((), f"expected an expression, or with `syntax:` a pattern or a list of them, got {given}")
        patterns = given if isinstance(given, list) else [given]
        shown = f"not ({' or '.join(patterns)})" if kind.KEEPS else " or ".join(patterns)
        return kind(
            name=self.name or shown + (f", when {self.when}" if self.when else ""),
            expression="" if self.syntax else patterns[0],
            patterns=patterns if self.syntax else [],
            syntax=self.syntax or "",
            strict=self.strict,
            when=self.when,
        )


class DropForm(PatternForm):
    """The entry in YAML."""

    drop: Annotated[
        str | list[str], Description(description="an expression; with `syntax` a pattern, or a list of patterns")
    ]

    KEY = "drop"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        return [self.rule(Drop, self.drop, place)]


class Drop(Rule):
    """The rule.

    Attributes:
        patterns: a document goes that one of them matches.
        syntax: of the patterns.
        strict: whether numbers are compared as Dolma does, 1 unequal to 1.0.
    """

    patterns: list[str] = []
    syntax: Literal["", "jsonpath", "jq"] = ""
    strict: bool = False

    FORM: ClassVar[type[Form]] = DropForm
    ROLE = Role.DROPS

    @property
    def foreign(self) -> Foreign | None:
        if not self.syntax:
            return None
        return Foreign(self.syntax, self.patterns, match=True, keeps=self.KEEPS, strict=self.strict)

    def strictly(self) -> Self:
        return msgspec.structs.replace(self, strict=True) if self.syntax == "jsonpath" else self

    def doubts(self, compiler: Compiler) -> list[str]:
        """Return where 1 and 1.0 make a difference, which are two numbers to Dolma's JSONPath."""
        if self.syntax != "jsonpath" or self.strict:
            return []
        keys = compiler.known_keys if compiler.translates else {}
        found = [each for pattern in self.patterns for each in filters.doubts(pattern, keys)]
        compiler.needs.joined |= bool(found)
        return [
            f"({compiler.checked(self, compiler.names, each).code})"
            if isinstance(each, str)
            else compiler.called(of_joined(each))
            for each in found
        ]

    def compile(self, compiler: Compiler) -> CompiledRule:
        if not self.syntax:
            return compiler.decision(self, f"not ({self.expression})" if self.KEEPS else self.expression)
        names = compiler.names_for(self)
        code = " or ".join(self._matched(compiler, names, pattern, self.syntax) for pattern in self.patterns)
        return compiler.decision_by_code(self, names, f"{'not ' if self.KEEPS else ''}({code})")

    def _matched(self, compiler: Compiler, names: dict[str, Name], pattern: str, syntax: Syntax) -> str:
        """Return the code that tells if a document matches: an expression of ours where one means the same."""
        try:
            own = compiler.translates and not self.strict
            text = filters.translate(pattern, syntax, compiler.known_keys) if own else None
            if text is not None:
                return f"({compiler.checked(self, names, text).code})"
            found = filters.matcher(pattern, syntax, strict=self.strict, exclude=not self.KEEPS)
        except ConfigError as error:
            raise refused(self, error) from None
        compiler.needs.run_by_library(pattern)
        return compiler.called(of_joined(found))
