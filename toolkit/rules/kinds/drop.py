"""Rules for dropping documents, and ``annotate``. They use an expression, a pattern or a draw.

``drop: E`` drops the documents for which E is true, ``keep: E`` those for which it is not; with ``syntax:``, the
documents that a pattern matches, or does not. ``sample: 0.1`` keeps a tenth of the documents, the same ones on every
machine; each label can have its own share. ``{annotate: short, when: E}`` adds an annotation where E is true.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec

from toolkit.config.settings import ConfigNode, Description
from toolkit.errors import ConfigError
from toolkit.rules import checker, filters, rule
from toolkit.rules.filters import Syntax

Patterns = Annotated[
    str | list[str], Description(description="an expression; with `syntax` a pattern, or a list of patterns")
]


class PatternForm(rule.Form, kw_only=True):
    """The common options of `drop` and `keep` in YAML.

    Attributes:
        syntax: the language of the patterns
        strict: compare numbers as Dolma does, 1 unequal to 1.0
    """

    syntax: Syntax | None = None
    strict: bool = False

    def rules(self, place: ConfigNode, base: str) -> Sequence[rule.Rule]:
        kind, option = (Keep if self.KEY == "keep" else Drop), getattr(self, self.KEY)
        if isinstance(option, list) and not (self.syntax and option):
            raise place.error(
                (), f"expected an expression, or with `syntax:` a pattern or a list of them, got {option}"
            )
        patterns = option if isinstance(option, list) else [option]
        title = f"not ({' or '.join(patterns)})" if kind.KEEPS else " or ".join(patterns)
        return [
            kind(
                name=self.named(title),
                expression="" if self.syntax else patterns[0],
                patterns=patterns if self.syntax else [],
                syntax=self.syntax or "",
                strict=self.strict,
                when=self.when,
            )
        ]


class DropForm(PatternForm):
    """``drop: E`` drops the documents for which E is true; with ``syntax:``, those that a pattern matches."""

    drop: Patterns

    KEY = "drop"


class KeepForm(PatternForm):
    """``keep: E`` drops the documents for which E is not true, the opposite of ``drop: E``."""

    keep: Patterns

    KEY = "keep"


class Drop(rule.Rule):
    """The rule `drop`.

    Attributes:
        patterns: Patterns, of which one matches the documents that go.
        syntax: Language of the patterns.
        strict: True if numbers are compared as Dolma does, 1 unequal to 1.0.
    """

    patterns: list[str] = []
    syntax: Literal["", "jsonpath", "jq"] = ""
    strict: bool = False

    FORM: ClassVar[type[rule.Form]] = DropForm
    ROLE = rule.Role.DROPS

    @property
    def foreign(self) -> rule.Foreign | None:
        if not self.syntax:
            return None
        return rule.Foreign(self.syntax, self.patterns, match=True, keeps=self.KEEPS, strict=self.strict)

    def strictly(self) -> Self:
        return msgspec.structs.replace(self, strict=True) if self.syntax == "jsonpath" else self

    def doubts(self, compiler: rule.Compiler) -> list[str]:
        """Return the conditions sensitive to 1 and 1.0. They are two numbers to Dolma's JSONPath."""
        if self.syntax != "jsonpath" or self.strict:
            return []
        keys = compiler.known_keys if compiler.translates else {}
        results = [doubt for pattern in self.patterns for doubt in filters.doubts(pattern, keys)]
        compiler.needs.joined |= bool(results)
        return [
            f"({compiler.checked(self, compiler.names, item).code})"
            if isinstance(item, str)
            else compiler.called(rule.of_joined(item))
            for item in results
        ]

    def compile(self, compiler: rule.Compiler) -> rule.CompiledRule:
        if not self.syntax:
            return compiler.decision(self, f"not ({self.expression})" if self.KEEPS else self.expression)
        names = compiler.names_for(self)
        code = " or ".join(self._matched(compiler, names, pattern, self.syntax) for pattern in self.patterns)
        return compiler.decision_by_code(self, names, f"{'not ' if self.KEEPS else ''}({code})")

    def _matched(self, compiler: rule.Compiler, names: dict[str, checker.Name], pattern: str, syntax: Syntax) -> str:
        """Return the code of a match, an expression if possible."""
        try:
            own = compiler.translates and not self.strict
            text = filters.translate(pattern, syntax, compiler.known_keys) if own else None
            if text is not None:
                return f"({compiler.checked(self, names, text).code})"
            result = filters.matcher(pattern, syntax, strict=self.strict, exclude=not self.KEEPS)
        except ConfigError as error:
            raise rule.refused(self, error) from None
        compiler.needs.run_by_library(pattern)
        return compiler.called(rule.of_joined(result))


class Keep(Drop):
    """The rule `keep`: as `Drop`, of the documents that the expression or the patterns do not tell."""

    FORM: ClassVar[type[rule.Form]] = KeepForm
    KEEPS = True


class AnnotateForm(rule.Form):
    """``{annotate: short, when: E}`` adds an annotation to the documents for which E is true.

    Attributes:
        annotate: the annotation to add
        when: an expression: which documents get the annotation
    """

    annotate: str
    when: str

    KEY = "annotate"

    def rules(self, place: ConfigNode, base: str) -> Sequence[rule.Rule]:
        return [Annotate(name=self.name or self.annotate, expression=self.when, annotation=self.annotate)]


class Annotate(rule.Rule):
    """The rule `annotate`: adds `annotation` where `expression` is true."""

    annotation: str

    FORM = AnnotateForm
    ROLE = rule.Role.ANNOTATES

    def compile(self, compiler: rule.Compiler) -> rule.CompiledRule:
        return compiler.decision(self, self.expression)


class SampleForm(rule.Form):
    """``sample: 0.1`` keeps a tenth of the documents, the same ones everywhere; each label can have its own share.

    Attributes:
        sample: a share; or {LABEL: SHARE}, where `default` is the share of all other labels
        seed: another seed draws other documents
    """

    sample: Annotated[int | float | dict[str, Any], Description(title="a share, or {LABEL: SHARE}")]
    seed: str | int = ""

    KEY = "sample"

    def rules(self, place: ConfigNode, base: str) -> Sequence[rule.Rule]:
        by_label = isinstance(self.sample, dict)
        shares = dict(self.sample) if isinstance(self.sample, dict) else {"default": self.sample}
        if not shares:
            raise place.error(("sample",), "expected a share, or {LABEL: SHARE}, got none")
        for label, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                at = ("sample", label) if by_label else ("sample",)
                raise place.error(at, f"expected a share between 0 and 1, got {share!r}")
        title = " ".join(f"{label}={share}" for label, share in shares.items()) if by_label else str(self.sample)
        name = self.name or f"sample {title}" + (f" of {self.when}" if self.when else "")
        share, seed = float(shares.pop("default", 1)), str(self.seed)
        of_labels = {label: float(share) for label, share in shares.items()}
        return [Sample(name=name, when=self.when, share=share, shares=of_labels, seed=seed)]


class Sample(rule.Rule):
    """The rule `sample`.

    Attributes:
        share: Share of the documents that stay.
        shares: Shares of some labels.
        seed: Seed of the draw.
    """

    share: float
    shares: dict[str, float] = {}
    seed: str = ""

    FORM = SampleForm
    ROLE = rule.Role.DROPS
    DRAWS = True

    def compile(self, compiler: rule.Compiler) -> rule.CompiledRule:
        names = compiler.names_for(self)
        label = compiler.label_code(self) if self.shares else "None"
        compiler.needs.source = True
        limits = {label: share * 2**64 for label, share in self.shares.items()}
        code = compiler.called(partial(_falls_out, self.seed, limits, self.share * 2**64), label)
        return compiler.decision_by_code(self, names, code)


def _falls_out(seed: str, limits: Mapping[str, float], limit: float, document: Any, label: str | None) -> bool:
    """Return True if a document is not in a sample: its hash is not below the limit of its label, or of all others."""
    if document.source is None:
        raise ValueError(
            "expected a document with a source, because source and id decide whether it is in the "
            "sample, got one without"
        )
    return rule.document_hash(seed, document) >= (limit if label is None else limits.get(label, limit))
