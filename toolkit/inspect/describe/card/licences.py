"""Licences as the Hugging Face hub calls them.

Source: the identifiers of the hub's documentation ("Licenses"); the others of a licence: spdx.org/licenses.
"""

import re
from collections.abc import Sequence
from typing import Any

_IDENTIFIERS = (
    "apache-2.0 mit afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 "
    "cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 "
    "cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 "
    "cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl "
    "gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 odc-by odbl osl-3.0 postgresql ofl-1.1 "
    "ncsa unlicense zlib pddl lgpl-lr"
)
_KNOWN = frozenset(_IDENTIFIERS.split())

_OTHERS = {"odc-by-1.0": "odc-by", "odbl-1.0": "odbl", "pddl-1.0": "pddl", "lgpllr": "lgpl-lr"}
_OTHERS |= {f"gfdl-{version}": "gfdl" for version in ("1.1", "1.2", "1.3")}

_PLACES = (
    (re.compile(r"https?://(?:www\.)?spdx\.org/licenses/([\w.+-]+?)(?:\.html|\.json|\.txt)?/?"), "{}"),
    (re.compile(r"https?://(?:www\.)?creativecommons\.org/licenses/([a-z-]+/\d\.\d)(?:/.*)?"), "cc-{}"),
    (re.compile(r"https?://(?:www\.)?creativecommons\.org/publicdomain/zero/(1\.0)(?:/.*)?"), "cc0-{}"),
    (re.compile(r"https?://(?:www\.)?opendatacommons\.org/licenses/(by|odbl|pddl)(?:/.*)?"), "{}"),
    (re.compile(r"https?://(?:www\.)?opensource\.org/licenses?/([\w.+-]+?)(?:\.php)?/?", re.IGNORECASE), "{}"),
    (re.compile(r"https?://(?:www\.)?apache\.org/licenses/LICENSE-(2\.0)(?:\.\w+)?"), "apache-{}"),
)
"""Pages of licences, and what is made of their addresses."""


def identifier(url: str) -> str | None:
    """Return the hub's name of the licence at an address; None if it has none, or nobody knows the address."""
    for pattern, form in _PLACES:
        if found := pattern.fullmatch(url):
            name = form.format(found[1].replace("/", "-")).lower()
            name = "odc-by" if name == "by" else re.sub(r"-(only|or-later)$", "", name)
            name = _OTHERS.get(name, name)
            return name if name in _KNOWN else None
    return None


def identifiers(urls: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a head for the licences; a name and a link only where the hub has no word for one."""
    names = list(dict.fromkeys(identifier(url) or _OTHER for url in urls))
    if not names:
        return {}
    found: dict[str, Any] = {"license": names[0] if len(names) == 1 else names}
    if unknown := [url for url in urls if identifier(url) is None]:
        found |= {"license_name": "-and-".join(map(_name, unknown)), "license_link": unknown[0]}
    return found


_OTHER = "other"


def _name(url: str) -> str:
    """Return a name for a licence without one: the last part of its address."""
    last = re.sub(r"\.(html?|txt|md|php|pdf)$", "", re.sub(r"[?#].*", "", url).rstrip("/").rpartition("/")[2])
    return re.sub(r"[^a-z0-9.]+", "-", last.lower()).strip("-") or _OTHER
