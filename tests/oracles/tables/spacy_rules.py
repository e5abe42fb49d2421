"""Write the rules by which spaCy's blank pipelines split words, as `spacy_words.py` reads them.

    PEER/bin/python tests/oracles/tables/spacy_rules.py toolkit/text/tables/spacy-3.8.json.gz

PEER is an environment with spaCy 3.8 (tests/oracles/peers/fineweb-2.txt); nothing of this project is imported. The
patterns are spaCy's own (MIT, see NOTICE). Two things are written otherwise, with the same meaning: prefixes stand
without their `^`, so that they can be looked for anywhere in a text; of the French pattern of whole words, what 270
alternatives have in common stands once (it takes 10 s to be compiled as it is).
"""

import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

CODES = (
    "af am ar az bg ca cs da de dsb el en es et eu fa fi fo fr ga grc he hr hsb hu hy id is it ky la lb lg lij lt lv "
    "mk ms nb nl pl pt ro ru sk sl sq sr sv ti tl tn tr tt uk xx yo"
)
"""The languages whose tokenizer is spaCy's own and to which datatrove 0.10 assigns languages."""
MARGIN = 8
"""Code points before a suffix that its pattern looks at, at most."""


def alternatives(pattern: str) -> Iterator[str]:
    """Yield what stands between the `|` of a pattern that are in no brackets."""
    depth = start = at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = pattern.index("]", at + (3 if pattern[at + 1] == "^" else 2))
            while pattern[at - 1] == "\\":
                at = pattern.index("]", at + 1)
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and not depth:
            yield pattern[start:at]
            start = at + 1
        at += 1
    yield pattern[start:]


def width(pattern: str) -> int:
    """Return how many code points a pattern matches at most; a number beyond all texts if there is no end."""
    import re._parser  # type: ignore[import-not-found]  # there is no public way to ask

    return int(re._parser.parse(pattern).getwidth()[1])


def prefixes(pattern: str) -> tuple[str, str]:
    """Return prefixes without `^`, and those which spaCy finds in the middle of a word, too (they lack it)."""
    anchored, loose = list[str](), list[str]()
    for each in alternatives(pattern):
        if each.startswith("^"):
            anchored.append(each[1:])
        else:
            anchored.append(each)
            loose.append(each)
    assert "(?<" not in pattern, "a prefix that looks behind itself"
    return "|".join(anchored), "|".join(loose)


def window(pattern: str) -> int:
    """Return how many code points at a word's end decide which suffix it has; 0: all of them. `..` may be longer."""
    parts = [each for each in alternatives(pattern) if each != r"\.\.+$"]
    assert all(each.endswith("$") for each in parts)
    widest = max(map(width, parts))
    return widest + MARGIN if widest < 1000 else 0


def shorter(pattern: str) -> str:
    """Return a pattern of whole words in which alternatives that begin or end alike are one."""
    if len(pattern) < 100_000:
        return pattern
    flags, _, rest = pattern.partition(")")
    groups = defaultdict[tuple[str, str], list[str]](list)
    for each in alternatives(rest):
        inside = re.fullmatch(r"\(\?:\^(.*)\$\)", each, re.DOTALL)
        assert inside
        text, before = inside.group(1), ""
        if text.startswith("[A-Z"):  # any word before
            end = text.index("]+") + 2
            before, text = text[:end], text[end:]
        end = text.rindex("(?:l[") if before else text.index("[a-z")
        groups[before, text[end:]].append(text[:end])
    found = (f"(?:^{before}(?:{'|'.join(heads)}){tail}$)" for (before, tail), heads in groups.items())
    return f"{flags}){'|'.join(found)}"


def rules() -> dict[str, Any]:
    """Return the rules of all languages."""
    import spacy
    from spacy.lang import char_classes
    from spacy.symbols import ORTH

    patterns = list[str]()
    known = dict[str, int]()

    def number(pattern: str) -> int:
        if pattern not in known:
            known[pattern] = len(patterns)
            patterns.append(pattern)
        return known[pattern]

    languages = dict[str, Any]()
    tables = dict[str, dict[str, list[str]]]()
    for code in CODES.split():
        tokenizer = spacy.blank(code).tokenizer
        assert type(tokenizer) is spacy.tokenizer.Tokenizer
        prefix, loose = prefixes(tokenizer.prefix_search.__self__.pattern)
        suffix = tokenizer.suffix_search.__self__.pattern
        whole = tokenizer.token_match.__self__.pattern if tokenizer.token_match else None
        languages[code] = {
            "prefix": number(prefix),
            "loose": number(loose) if loose else None,
            "suffix": number(suffix),
            "window": window(suffix),
            "infix": number(tokenizer.infix_finditer.__self__.pattern),
            "whole": number(shorter(whole)) if whole else None,
        }
        tables[code] = {text: [token[ORTH] for token in tokens] for text, tokens in tokenizer.rules.items()}
        assert all("".join(words) == text for text, words in tables[code].items()), code
    base = tables["xx"]
    for code, table in tables.items():
        languages[code]["dropped"] = sorted(text for text in base if table.get(text) != base[text])
        languages[code]["added"] = sorted(words for text, words in table.items() if base.get(text) != words)
    return {
        "spacy": spacy.__version__,
        "licence": "MIT, see NOTICE",
        "lower": char_classes.ALPHA_LOWER,
        "patterns": patterns,
        "exceptions": sorted(base.values()),
        "languages": languages,
    }


if __name__ == "__main__":
    found = json.dumps(rules(), ensure_ascii=False, separators=(",", ":")).encode()
    with open(sys.argv[1], "wb") as out:
        out.write(gzip.compress(found, mtime=0))
