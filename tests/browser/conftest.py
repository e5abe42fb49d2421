"""One browser for the tests of this folder in a worker; it ends with them, as tests of processes look at children."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import chromium


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    """Headless Chromium."""
    with chromium.browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for pages."""
    return tmp_path_factory.mktemp("pages")
