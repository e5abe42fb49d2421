"""mlcroissant, as we call it: silent, with errors in one line."""

import contextlib
import logging
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the log and the warnings of mlcroissant."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def first_line(error: BaseException) -> str:
    """Return the first line of an error, and that of what caused it; of a list of errors the first of these."""
    lines = [line.removeprefix("  -  ") for line in str(error).strip().splitlines()]
    lines = lines[1:] if lines and lines[0].startswith("Found the following") else lines
    text = lines[0] if lines else type(error).__name__
    return f"{text}: {first_line(error.__cause__)}" if error.__cause__ else text
