"""Marks of parameters."""

from typing import Any

import pytest


def slow(*values: object) -> list[Any]:
    """Return parameters that only the slow tests have; a tuple is the values of several names."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in values]
