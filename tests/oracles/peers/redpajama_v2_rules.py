"""RedPajama-V2's signals of pages, and what the rules of its dataset card and of the papers say of them.

    PYTHONHASHSEED=42 PEER/bin/python redpajama_v2_rules.py PAGES VERDICTS LISTS CHECKOUT

The signals are those of its own code, in CHECKOUT, a copy of togethercomputer/RedPajama-Data. It publishes no program
for rules: those of the
dataset card are functions in its text, written down again here. LISTS has `ldnoobw/LANGUAGE.txt`,
`domain_to_category_id.json` and perhaps `stop_words/LANGUAGE.txt`; if not, RedPajama's own stop words are written
there.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(sys.argv[4]) / "app" / "src"))

from core.document import Document  # type: ignore[import-not-found]
from core.quality_signals import content, lines, natural_language, repetitions  # type: ignore[import-not-found]
from core.quality_signals.utils.stop_words import stop_words  # type: ignore[import-not-found]

LANGUAGES = ("en", "de", "fr", "es", "it")


def signals(language: str | None, lists: Path) -> list[Any]:
    """Return the callables for a language; without words of a language those that need none."""
    known = language in LANGUAGES
    found = content.register_content_callables(language if known else "en", lists, lists / "ldnoobw")
    if not known:
        found = [f for f in found if f.field_name not in ("rps_doc_stop_word_fraction", "rps_doc_ldnoobw_words")]
    found += repetitions.register_repetitions_callables()
    found += natural_language.register_natural_language_callables()
    return [*found, *lines.register_lines_callables()]


def value(name: str, spans: list[tuple[int, int, Any]]) -> Any:
    """Return the scores of a line signal, or the one of a document.

    Of a document without lines one of the line signals gives a null, the others nothing.
    """
    scores = [score for _, _, score in spans]
    if name.startswith("rps_lines"):
        return [score for score in scores if score is not None]
    return scores[0] if scores else None


def reason(page: dict[str, Any], v: dict[str, Any]) -> str:
    """Return the first rule that drops a page."""
    label, prob = page["metadata"]["language"], page["metadata"]["language_score"]
    bullets = v["rps_lines_start_with_bulletpoint"]
    if label not in LANGUAGES:
        return "language"
    if prob < 0.5:
        return "unsure"
    # gopher_rules_pass
    if v["rps_doc_word_count"] < 50:
        return "few_words"
    if v["rps_doc_word_count"] > 100_000:
        return "many_words"
    if v["rps_doc_mean_word_length"] is None or not 3 <= v["rps_doc_mean_word_length"] <= 10:
        return "word_length"
    if v["rps_doc_symbol_to_word_ratio"] is None or v["rps_doc_symbol_to_word_ratio"] > 0.1:
        return "symbols"
    if sum(bullets) / len(bullets) > 0.9:
        return "bullets"
    if v["rps_doc_frac_chars_top_2gram"] > 0.2:
        return "top_2gram"
    # "rule 5: ..."; Rae et al. 2021
    if v["rps_doc_frac_lines_end_with_ellipsis"] > 0.3:
        return "ellipsis_lines"
    for n, limit in ((3, 0.18), (4, 0.16)):
        if v[f"rps_doc_frac_chars_top_{n}gram"] > limit:
            return f"top_{n}gram"
    for n, limit in zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.1), strict=True):
        if v[f"rps_doc_frac_chars_dupe_{n}grams"] > limit:
            return f"{n}grams"
    # c4_rules_pass
    if v["rps_doc_num_sentences"] < 3:
        return "few_sentences"
    if v["rps_doc_lorem_ipsum"] > 0:
        return "lorem_ipsum"
    return "curly_bracket" if v["rps_doc_curly_bracket"] > 0 else ""


def main(pages: Path, verdicts: Path, lists: Path) -> None:
    """Write a verdict for each page."""
    own = lists / "stop_words"
    if own.exists():
        for path in own.iterdir():
            stop_words[path.stem] = set(path.read_text(encoding="utf-8").split("\n")) - {""}
    else:
        own.mkdir()
        for language in LANGUAGES:
            (own / f"{language}.txt").write_text("\n".join(sorted(stop_words[language])), encoding="utf-8")
    by_language: dict[str | None, list[Any]] = {}
    with open(pages, encoding="utf-8") as rows, open(verdicts, "w", encoding="utf-8") as out:
        for row in rows:
            page = json.loads(row)
            language = page["metadata"]["language"]
            if language not in by_language:
                by_language[language] = signals(language, lists)
            document = Document(page["text"], domain=page["metadata"].get("source_domain"), precompute_ngrams=True)
            values = {f.field_name: value(f.field_name, f(document)) for f in by_language[language]}
            found = {"id": page["id"], "reason": reason(page, values), "values": values}
            if not found["reason"]:
                found["text"] = page["text"]
            out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
