"""Hold a configuration against the program that it names, by hand.

    python -m venv PEER && PEER/bin/pip install -r tests/oracles/peers/NAME.txt
    python -m tests.oracles NAME --peer PEER              the table, over real pages of ../shared/data
    python -m tests.oracles NAME --peer PEER --checkout COPY   where the peer is in no registry
    python -m tests.oracles NAME --peer PEER --mutate SEED     the same over mutations of these pages (mutations.py)
    python -m tests.oracles NAME --peer PEER --record     the recorded sample, made anew from the peer's output

Without NAME, the names. The exit status is 1 if a page is judged otherwise or a text differs.
"""

import argparse
import functools
import importlib
import itertools
import shutil
import sys
import tempfile
from pathlib import Path

from tests.oracles.frame import FOLDER, HEAD, Oracle, by_id, compare, record, write_pages
from tests.oracles.mutations import mutated


def names() -> list[str]:
    """Return the names of all oracles: of the modules here that have one."""
    return sorted(_kinds())


def oracle(name: str) -> Oracle:
    """Return an oracle by its name."""
    return _kinds()[name]()


@functools.cache
def _kinds() -> dict[str, type[Oracle]]:
    stems = (path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith(("_", "test_")))
    found: dict[str, type[Oracle]] = {}
    for stem in stems:
        kinds = _oracles(stem)
        found |= {(stem if kind is kinds[0] else kind.NAME).replace("_", "-"): kind for kind in kinds}
    return found


def _oracles(stem: str) -> list[type[Oracle]]:
    """Return the oracles that a module defines; bases of several have no NAME."""
    module = importlib.import_module(f"tests.oracles.{stem}")
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in found if issubclass(each, Oracle) and "NAME" in vars(each)]


def main() -> int:
    """Print the table, or record the sample; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="?", choices=names(), help="of the oracle; without it, the names")
    parser.add_argument("--peer", type=Path, help="environment (or build) of the peer")
    parser.add_argument("--checkout", type=Path, help="a copy of the repository of a peer that no registry has")
    parser.add_argument("--record", action="store_true", help="write the recorded sample")
    parser.add_argument("--pages", type=int, help="the first so many pages only")
    parser.add_argument("--mutate", metavar="SEED", help="the pages with CRLF, NUL, other scripts and so on")
    parser.add_argument("--keep", type=Path, help="an empty folder for all files; else they are deleted")
    parser.add_argument("--unlike", type=int, default=20, help="pages that differ to print (20)")
    given = parser.parse_args()
    if not given.name:
        print("\n".join(names()))
        return 0
    own = oracle(given.name)
    if not given.peer:
        parser.error(f"--peer: an environment made with tests/oracles/peers/{own.PEER or given.name}.txt")
    if own.CHECKOUT and not (given.checkout and given.checkout.is_dir()):
        parser.error(f"--checkout: expected the folder of a copy of {own.CHECKOUT}, got {given.checkout}")
    own.checkout = given.checkout and given.checkout.resolve()
    folder = (given.keep or Path(tempfile.mkdtemp())).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        pages = list(itertools.islice(own.written() if given.record else own.pages(), given.pages))
        if given.mutate:
            pages = list(mutated(pages, given.mutate))
        documents = folder / "pages.jsonl"
        write_pages(pages, documents)
        theirs = by_id(own.peer(documents, given.peer.resolve(), folder))
        if given.record:
            record(given.name, pages, theirs)
            print(f"{len(pages)} pages recorded, {sum(each.kept for each in theirs.values())} of them kept by the peer")
            return 0
        table = compare(theirs, by_id(own.ours(documents, folder)), own.same)
    finally:
        if not given.keep:
            shutil.rmtree(folder)
    print(HEAD, "|---" * HEAD.count(" |") + "|", table.row(f"`{own.CONFIG}`"), sep="\n")
    for name, (equal, of) in table.values_equal.items():
        print(f"{name}: {equal} of {of} equal")
    for id, told in itertools.islice(table.unlike.items(), given.unlike):
        print(f"{id}: {told}", file=sys.stderr)
    return 1 if table.unlike else 0


if __name__ == "__main__":
    sys.exit(main())
