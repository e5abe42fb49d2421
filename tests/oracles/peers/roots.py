"""The figures of ROOTS' filters, and what its limits say of them, with data-juicer's words and special characters.

    PEER/bin/python roots.py PAGES VERDICTS PARAMETERS

data-juicer has these filters from ROOTS' code. Its words, refinement and list of special characters are its own, loaded
from its files; the formulas of its operators, which need all of its dependencies, are written down again. PARAMETERS is
a JSON object with the limits: `parameters`, and those of `languages`.
"""

import importlib.util
import json
import math
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import stopwordsiso

CHARS, SEQUENCE = 10, 5


def load(name: str) -> ModuleType:
    """Return a module of data-juicer's, without the package around it."""
    path = Path(sysconfig.get_path("purelib")) / "data_juicer" / "ops" / "common" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HELPERS = load("helper_func")
SPECIAL = load("special_characters").SPECIAL_CHARACTERS


def figures(text: str, language: str | None) -> dict[str, Any]:
    """Return what the filters look at."""
    plain = HELPERS.get_words_from_document(text)
    words = HELPERS.words_refinement(plain, lower_case=True, strip_chars=SPECIAL)
    grams = Counter(text[i : i + CHARS] for i in range(len(text) - CHARS + 1))
    counts = sorted(grams.values(), reverse=True)
    frequent = min(int(math.sqrt(len(counts))), sum(count > 1 for count in counts))
    sequences = Counter(" ".join(words[i : i + SEQUENCE]) for i in range(len(words) - SEQUENCE + 1))
    stop = stopwordsiso.stopwords(language) if language and stopwordsiso.has_lang(language) else None
    return {
        "words": len(words),
        "char_repetition": sum(counts[:frequent]) / sum(counts) if counts else 0.0,
        "word_repetition": sum(c for c in sequences.values() if c > 1) / max(sum(sequences.values()), 1),
        "special_chars": sum(c in SPECIAL for c in text) / len(text) if text else 0.0,
        "stop_words": None if stop is None else sum(word in stop for word in words) / max(len(words), 1),
    }


def reason(found: dict[str, Any], language: str | None, prob: float, limits: dict[str, float]) -> str:
    """Return the first filter that drops a page."""
    if language is None:
        return "unidentified"
    if not limits["min_words"] <= found["words"] <= limits["max_words"]:
        return "words"
    if found["char_repetition"] > limits["max_chars"]:
        return "characters"
    if found["word_repetition"] > limits["max_sequences"]:
        return "sequences"
    if found["special_chars"] > limits["max_special"]:
        return "special"
    if found["stop_words"] is not None and found["stop_words"] < limits["min_stop"]:
        return "stop_words"
    return "unsure" if prob < limits["min_prob"] else ""


def main(pages: str, verdicts: str, parameters: str) -> None:
    """Write a verdict for each page."""
    given = json.loads(Path(parameters).read_text(encoding="utf-8"))
    with open(pages, encoding="utf-8") as rows, open(verdicts, "w", encoding="utf-8") as out:
        for row in rows:
            page = json.loads(row)
            language, prob = page["metadata"]["language"], page["metadata"]["language_score"]
            found = figures(page["text"], language)
            limits = given["parameters"] | given["languages"].get(language, {})
            verdict = {"id": page["id"], "reason": reason(found, language, prob, limits), "values": found}
            if not verdict["reason"]:
                verdict["text"] = page["text"]
            out.write(json.dumps(verdict) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
