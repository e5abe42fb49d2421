"""``sample: 0.1`` keeps a tenth of the documents, the same ones on every machine; each label can have its own share."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from toolkit.config.settings import ConfigNode, Description
from toolkit.rules.rule import CompiledRule, Compiler, Form, Role, Rule, document_hash


class SampleForm(Form):
    """The entry in YAML."""

    sample: Annotated[
        int | float | dict[str, Any],
        Description(
            title="a share, or {LABEL: SHARE}",
            description="a share; or {LABEL: SHARE}, where `default` is the share of all other labels",
        ),
    ]
    seed: Annotated[str | int, Description(description="another seed draws other documents")] = ""

    KEY = "sample"

    def rules(self, place: ConfigNode, base: str) -> Sequence[Rule]:
        by_label = isinstance(self.sample, dict)
        shares = dict(self.sample) if isinstance(self.sample, dict) else {"default": self.sample}
        if not shares:
            raise place.error(("sample",), "expected a share, or {LABEL: SHARE}, got none")
        for label, share in shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                at = ("sample", label) if by_label else ("sample",)
                raise place.error(at, f"expected a share between 0 and 1, got {share!r}")
        shown = " ".join(f"{label}={share}" for label, share in shares.items()) if by_label else str(self.sample)
        share = float(shares.pop("default", 1))
        return [
            Sample(
                name=self.name or f"sample {shown}" + (f" of {self.when}" if self.when else ""),
                when=self.when,
                share=share,
                shares={label: float(each) for label, each in shares.items()},
                seed=str(self.seed),
            )
        ]


class Sample(Rule):
    """The rule.

    Attributes:
        share: of the documents that it leaves.
        shares: the same for some labels.
        seed: makes another sample.
    """

    share: float
    shares: dict[str, float] = {}
    seed: str = ""

    FORM = SampleForm
    ROLE = Role.DROPS
    DRAWS = True

    def compile(self, compiler: Compiler) -> CompiledRule:
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
    if label is not None:
        limit = limits.get(label, limit)
    return document_hash(seed, document) >= limit
