"""``python -m tests.errors``: write what wrong configurations say now into their tables."""

import tempfile
from pathlib import Path

from tests.errors import update

with tempfile.TemporaryDirectory() as folder:
    update(Path(folder))
