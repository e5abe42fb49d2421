"""Values of JSON, decoded by threads."""

import subprocess
import sys

import pytest

from tests.marks import slow

PROGRAM = """
import sys, threading
import msgspec
from toolkit.storage.json_files import decode, decoder_of, know_types

sys.setswitchinterval(1e-6)
for i in range(300):
    names = {}
    for name, fields in (
        ("A", [("x", dict[str, list[int]], {})]),
        ("B", [("a", "list[A]", []), ("b", "dict[str, tuple[int, A]]", {})]),
        ("C", [("a", "A"), ("b", "list[B]", []), ("c", "C | None", None)]),
    ):
        names[name] = msgspec.defstruct(name, fields, module=__name__)
        setattr(sys.modules[__name__], name, names[name])
    BEFORE
    together = threading.Barrier(8)

    def read():
        together.wait()
        READ

    threads = [threading.Thread(target=read) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


LINE = """b'{"a":{},"b":[{"a":[{}],"b":{"q":[1,{}]}}]}'"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "read"),
    [
        ("", f"decode({LINE}, names['C'])"),
        *slow(
            ("", "decoder_of(names['BC'[threading.get_ident() % 2]])"),
            ("know_types()", "msgspec.convert({'a': {}, 'b': [{'a': [{}]}]}, names['C'])"),
        ),
    ],
    ids=["decode", "decoder_of", "know_types"],
)
def test_threads_decode_a_type_for_the_first_time_at_once(before: str, read: str) -> None:
    """With msgspec's own functions the process ends by a segmentation fault, in nearly every run."""
    program = PROGRAM.replace("BEFORE", before or "pass").replace("READ", read)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
