"""jq, run by its library."""

import re
from collections.abc import Callable
from typing import Any

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError

_STRING_OR_ALTERNATIVE = re.compile(r'"(?:\\.|[^"\\])*"|\?//')


def finder(text: str) -> Callable[[Any], list[Any]]:
    """Return a function that gives all values that a filter yields.

    Args:
        text: the filter.

    Returns:
        A function of a document. It raises DataError where the filter fails.

    Raises:
        ConfigError: if it is no jq.
        MissingExtra: if jq is not installed.
    """
    try:
        import jq
    except ImportError:
        raise missing_extra("dolma", "jq filters", "jq") from None
    # `.a?//0` is `.a? // 0` in Dolma; jq has an operator `?//`, of destructuring, which Dolma has not.
    program = _STRING_OR_ALTERNATIVE.sub(lambda match: "? //" if match[0] == "?//" else match[0], text)
    try:
        compiled = jq.compile(program)
    except ValueError as error:
        raise ConfigError(f"expected a jq filter, got {text!r}: {str(error).splitlines()[0]}") from None

    def find(document: Any) -> list[Any]:
        try:
            return list(compiled.input_value(document))
        except ValueError as error:
            raise DataError(f"the jq filter {text!r} failed: {error}") from None

    return find
