"""Findings of checks, with their severities."""

from typing import Literal

import msgspec

Severity = Literal["specification", "reader", "advice"]
"""What a finding is about: data or a description that break their specification, or contradict each other; a program
that cannot read them; something that is right, and may be meant otherwise."""


class Finding(msgspec.Struct, frozen=True):
    """A result of a check.

    Attributes:
        message: Text ``place: expected …, got …``.
        severity: Kind of the finding; `advice` is no fault.
    """

    message: str
    severity: Severity = "specification"

    def __str__(self) -> str:
        return self.message if self.severity == "specification" else f"{self.severity}: {self.message}"
