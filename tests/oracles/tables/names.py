"""Write the English names of languages and scripts, the usual script of each language, and which run right to left.

    python tests/oracles/tables/names.py FOLDER

writes `languages-cldr-47.tsv` (subtag, name, ISO 15924 code of the usual script) and `scripts-cldr-47.tsv` (code, name,
direction). The names are Unicode CLDR's, as ICU 77 has them (Unicode License v3, see NOTICE); languages that CLDR does
not name, or calls as it calls another one (`arb` as `ar`), have the first name of the IANA registry of subtags
(2021-08-06, in the public domain). It needs PyICU 2.15 and langcodes, which brings the registry, and imports nothing of
this project but the table `lid.176-glotlid.tsv`.
"""

import importlib.resources
import re
import sys
from pathlib import Path

import icu

ENGLISH = icu.Locale("en")
SCRIPT_VARIANTS = {"Aran": "Arab", "Syre": "Syrc", "Syrj": "Syrc", "Syrn": "Syrc"}
"""Codes of a style of a script, to which Unicode gives no properties."""
NOT_THERE = "eml\tEmilian-Romagnol\tLatn\n"
"""Withdrawn from ISO 639-3 before the registry took it; lid.176 and FineWeb-2 have it."""
NEWER = ("tok",)
"""Languages of CLDR that the registry took later."""
PRIVATE = re.compile(r"Qa[a-b][a-x]")


def registry() -> list[dict[str, str]]:
    """Return the entries of the registry: the first value of each of their keys."""
    text = (importlib.resources.files("langcodes") / "data/language-subtag-registry.txt").read_text(encoding="utf-8")
    found = []
    for entry in re.sub(r"\n +", " ", text).split("%%\n")[1:]:
        pairs = [line.split(": ", 1) for line in entry.splitlines()]
        found.append(dict(reversed(pairs)))
    return found


def language_name(code: str, otherwise: str) -> str:
    """Return CLDR's name of a language, unless that is the name of another one."""
    canonical = icu.Locale.createCanonical(code).getLanguage()
    name = str(icu.Locale(code).getDisplayLanguage(ENGLISH))
    if name != code and (canonical in (code, "") or len(code) == 2):
        return name
    return re.sub(r" \((individual language|macrolanguage|[^()]*\d{3,4}[^()]*)\)$", "", otherwise)


def usual_script(code: str) -> str:
    """Return the script of the most likely locale of a language; empty if it is not known."""
    if code == "hif":
        return "Latn"  # as its Wikipedia is written, by which lid.176 and FineWeb-2 go
    locale = icu.Locale.createCanonical(code)
    locale.addLikelySubtags()
    found = str(locale.getScript())
    return "Hani" if found in ("Hans", "Hant") else found  # which of the two a label without a script does not say


def direction(code: str) -> str:
    """Return ``rtl`` or ``ltr``."""
    scripts = icu.Script.getCode(SCRIPT_VARIANTS.get(code, code))
    return "rtl" if any(icu.Script(each).isRightToLeft() for each in scripts) else "ltr"


def main() -> None:
    """Write both tables."""
    folder = Path(sys.argv[1])
    entries = registry()
    lid = [line.split("\t") for line in (folder / "lid.176-glotlid.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    known = {label: glotlid.partition("_")[2] for label, glotlid, _ in lid}
    lines = ["code\tname\tscript\n", NOT_THERE]
    for entry in entries:
        if entry["Type"] == "language" and ".." not in entry["Subtag"]:
            code = entry["Subtag"]
            script = "" if code in ("und", "mul", "zxx", "mis") else usual_script(code)
            script = script or entry.get("Suppress-Script") or known.get(code, "")
            lines.append(f"{code}\t{language_name(code, entry['Description'])}\t{script}\n")
    there = {line.partition("\t")[0] for line in lines}
    for code in NEWER:
        assert code not in there
        lines.append(f"{code}\t{language_name(code, code)}\t{usual_script(code)}\n")
    (folder / "languages-cldr-47.tsv").write_text("".join(lines), encoding="utf-8")
    lines = ["code\tname\tdirection\n"]
    for entry in entries:
        if entry["Type"] == "script" and ".." not in entry["Subtag"] and not PRIVATE.fullmatch(entry["Subtag"]):
            code = entry["Subtag"]
            name = icu.Locale(f"und_{code}").getDisplayScript(ENGLISH)
            lines.append(f"{code}\t{name if name != code else entry['Description']}\t{direction(code)}\n")
    (folder / "scripts-cldr-47.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
