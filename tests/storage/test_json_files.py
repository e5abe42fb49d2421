"""Records of ours, decoded by threads."""

import subprocess
import sys

PROGRAM = """
import sys, threading
import msgspec
from toolkit.storage.json_files import decoded

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
    together = threading.Barrier(8)

    def read():
        together.wait()
        decoded(b'{"a":{},"b":[{"a":[{}],"b":{"q":[1,{}]}}]}', names["C"])

    threads = [threading.Thread(target=read) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


def test_threads_decode_a_type_for_the_first_time_at_once() -> None:
    """With `msgspec.json.decode` the process ends by a segmentation fault, in nearly every run."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
