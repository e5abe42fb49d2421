"""The JSON Schemas in docs/schemas."""

import functools
import json
from collections.abc import Callable, Iterable
from typing import Any

import fastjsonschema

from mixers.oscar import Oscar
from tests.conftest import ROOT
from toolkit import Document, Mixed


@functools.cache
def _validator(release: str) -> Callable[[Any], Any]:
    schema = json.loads((ROOT / "docs" / "schemas" / f"oscar-{release}.json").read_bytes())
    found: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return found


def fault_of(line: Any, release: str) -> str | None:
    """Return what is wrong with a line of OSCAR by the schema of a release; None if nothing."""
    try:
        _validator(release)(line)
    except fastjsonschema.JsonSchemaValueException as error:
        return str(error)
    return None


def checked(encode: Callable[[Oscar, Document, Mixed], Iterable[tuple[str, bytes]]]) -> Any:
    """Return `Oscar.encode` with each line held against the schema of its release.

    Raises:
        AssertionError: if one is not valid.
    """

    @functools.wraps(encode)
    def encoded(self: Oscar, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        pieces = list(encode(self, document, mixed))
        for _, data in pieces:
            for line in data.removesuffix(b"\n").split(b"\n"):
                if fault := fault_of(json.loads(line), self.schema):
                    raise AssertionError(f"a line that is no OSCAR {self.schema}: {fault}: {line[:200]!r}")
        return pieces

    return encoded
