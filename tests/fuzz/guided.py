"""A target in a process of its own: ``python -m tests.fuzz.guided TARGET FINDINGS CORPUS OPTION …``.

The code of the project is instrumented while it is imported; compiled functions and libraries are not.
"""

import hashlib
import sys
import traceback
from pathlib import Path

import atheris


def place_of(error: BaseException) -> str:
    """Return the kind of an error, and the line that it comes from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {Path(last.filename).name}:{last.lineno}"


def main(name: str, findings: Path, corpus: Path, *options: str) -> None:
    with atheris.instrument_imports(include=["toolkit", "mixers", "taggers"], exclude=["toolkit.text", "numba"]):
        from tests.fuzz import targets

        target = targets.find(name)
    for seed in [*target.SEEDS, *targets.crashers(name)]:
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    known: set[str] = set()

    def one_input(data: bytes) -> None:
        try:
            target.check(data)
        except (Exception, SystemExit) as error:
            place = place_of(error)
            if place not in known:
                known.add(place)
                digest = hashlib.sha1(data).hexdigest()[:8]
                (findings / f"{place.replace(' ', '-').replace(':', '-')}-{digest}").write_bytes(data)
                print(f"FOUND {place}\n{traceback.format_exc()}", flush=True)

    atheris.Setup([name, *options, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
