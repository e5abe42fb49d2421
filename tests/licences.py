"""Licences of all that an installation brings: ``python -m tests.licences [EXTRA …]``, for the packages installed here.

A package says its licence in its metadata: as an expression (PEP 639), a text, or a classifier. Three kinds:

- permissive: MIT, BSD, Apache, PSF and the like
- files: changes to its own files must be published under the same licence (MPL); nothing is asked of what uses it
- copyleft: GPL, LGPL, AGPL and the like; and what says nothing, until somebody has looked

The exit status is 1 where one of the base installation is of the third kind.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from email.message import Message
from importlib import metadata
from typing import Literal, NamedTuple, cast

from packaging.requirements import Requirement

from toolkit import distribution

Kind = Literal["permissive", "files", "copyleft"]

_COPYLEFT = re.compile(r"\b(A?GPL|LGPL|GNU|EUPL|CC-BY-SA|CC BY-SA|SSPL|OSL|CDDL|EPL)\w*", re.IGNORECASE)
_FILES = re.compile(r"\bMPL|Mozilla", re.IGNORECASE)
_PERMISSIVE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|PSF|Python Software Foundation|ISC|Zlib|Unlicense|HPND|CC0|Boost|Public Domain)",
    re.IGNORECASE,
)
LOOKED_AT = {
    "detect-secrets": "Apache-2.0",
    "mlcroissant": "Apache-2.0",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}
"""Licences of packages whose metadata say none, by name: found in their own files."""


class Licence(NamedTuple):
    """What a package says of itself."""

    package: str
    version: str
    licence: str
    kind: Kind


def name_of(package: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def kind_of(licence: str) -> Kind:
    """Return the kind of a licence; of several that one may choose from, the one that asks least."""
    if " OR " in licence:
        found = [kind_of(each) for each in licence.split(" OR ")]
        return min(found, key=["permissive", "files", "copyleft"].index)
    if _COPYLEFT.search(licence):
        return "copyleft"
    if _FILES.search(licence):
        return "files"
    return "permissive" if _PERMISSIVE.search(licence) else "copyleft"


def _said(package: str, about: Message) -> str:
    named = about.get("License-Expression") or LOOKED_AT.get(package)
    if named:
        return str(named)
    text = " ".join((about.get("License") or "").split())
    classifiers = [
        each.rpartition("::")[2].strip() for each in about.get_all("Classifier") or () if each.startswith("License")
    ]
    return text if text and len(text) < 60 else ", ".join(classifiers) or text[:60] or "?"


def licences(extras: Iterable[str] = ()) -> list[Licence]:
    """Return what an installation with these extras brings, sorted; what is not installed here is left out."""
    found: dict[str, Licence] = {}
    asked: dict[str, set[str]] = {}
    todo = [(distribution.NAME, frozenset(extras))]
    while todo:
        name, wanted = todo.pop()
        package = name_of(name)
        new = wanted - asked.get(package, set()) if package in asked else wanted | {""}
        if not new:
            continue
        asked.setdefault(package, set()).update(new)
        try:
            installed = metadata.distribution(package)
        except metadata.PackageNotFoundError:
            continue
        licence = _said(package, cast("Message", installed.metadata))
        found[package] = Licence(package, installed.version, licence, kind_of(licence))
        for requirement in map(Requirement, installed.requires or ()):
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in new):
                todo.append((requirement.name, frozenset(requirement.extras)))
    return sorted(found.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.licences", description=__doc__.splitlines()[0])
    parser.add_argument("extra", nargs="*", help="of the project; none is what it always needs")
    given = parser.parse_args()
    base = {each.package for each in licences()}
    found = licences(given.extra)
    for each in found:
        mark = "" if each.kind == "permissive" else f"  [{each.kind}]"
        print(f"{each.package:28} {each.version:14} {each.licence}{mark}")
    return int(any(each.kind == "copyleft" and each.package in base for each in found))


if __name__ == "__main__":
    sys.exit(main())
