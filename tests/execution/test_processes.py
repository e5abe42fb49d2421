"""Set-up of a process."""

import os
import platform
import subprocess
import sys

import pytest

_CODE = """
import resource
from toolkit.execution.processes import set_up_malloc
set_up_malloc()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    blocks = [b"x" * (1 << 20) for _ in range(6)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems have other allocators")
@pytest.mark.parametrize(
    ("own", "least", "most"),
    [({}, 0, 10_000), ({"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_MMAP_THRESHOLD_": "65536"}, 100_000, 1 << 30)],
)
def test_pages_of_a_block_serve_the_next_one_unless_the_user_wants_otherwise(
    own: dict[str, str], least: int, most: int
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | own
    out = subprocess.run([sys.executable, "-c", _CODE], env=environment, capture_output=True, text=True, check=True)
    assert least <= int(out.stdout) <= most
