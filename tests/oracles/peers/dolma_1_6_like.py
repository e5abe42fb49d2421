"""Dolma's own taggers and mixer, in the two steps of Dolma 1.6's Common Crawl part.

    PEER/bin/python dolma_1_6_like.py PAGES VERDICTS

Step 1 cuts the lines that C4 cuts for their end (the input of the published cc-head.yaml is called v1-c4-cleaned),
step 2 has the filters and replacements of cc-head.yaml, without those that need its models.
Between them are the duplicates of doc_dedupe/cc_en_head.yaml. What
is no English page with at least 0.5 is left out first, as it is in CCNet's output. `repetitions_v1`, by characters,
stands for `tokenizer_repetitions_v2r2`, which downloads its tokenizer. The mixer decides; it gives no reasons, so the
reason is the first of the filters that is true of the taggers' values.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOPHER = "gopher_v1__gopher_v1__"
PII = "pii_regex_with_counts_fast_v2"
PII_KEY = f"{PII}__{PII}__"
DUPLICATE = "bff_duplicate_docs"
REPETITIONS = "repetitions_v1__repetitions_v1__doc_max_score_repetition"
NO_ENDING = "c4_v1__c4_v1__lines_with_no_ending_punctuation"
FILTERS = [
    (GOPHER + "word_count", "<", 50, "few_words"),
    (GOPHER + "word_count", ">", 100000, "many_words"),
    (GOPHER + "median_word_length", "<", 3, "short_words"),
    (GOPHER + "median_word_length", ">", 10, "long_words"),
    (GOPHER + "symbol_to_word_ratio", ">", 0.1, "symbols"),
    (GOPHER + "fraction_of_words_with_alpha_character", "<", 0.8, "alphabetic"),
    (GOPHER + "required_word_count", "<", 2, "stop_words"),
    (GOPHER + "fraction_of_lines_starting_with_bullet_point", ">", 0.9, "bullets"),
    (GOPHER + "fraction_of_lines_ending_with_ellipsis", ">", 0.3, "ellipsis_lines"),
    (GOPHER + "fraction_of_duplicate_lines", ">", 0.3, "lines"),
    (GOPHER + "fraction_of_characters_in_duplicate_lines", ">", 0.3, "line_chars"),
    (GOPHER + "fraction_of_characters_in_most_common_2gram", ">", 0.2, "top_2gram"),
    (GOPHER + "fraction_of_characters_in_most_common_3gram", ">", 0.18, "top_3gram"),
    (GOPHER + "fraction_of_characters_in_most_common_4gram", ">", 0.16, "top_4gram"),
    (GOPHER + "fraction_of_characters_in_duplicate_5grams", ">", 0.15, "5grams"),
    (GOPHER + "fraction_of_characters_in_duplicate_6grams", ">", 0.14, "6grams"),
    (GOPHER + "fraction_of_characters_in_duplicate_7grams", ">", 0.13, "7grams"),
    (GOPHER + "fraction_of_characters_in_duplicate_8grams", ">", 0.12, "8grams"),
    (GOPHER + "fraction_of_characters_in_duplicate_9grams", ">", 0.11, "9grams"),
    (GOPHER + "fraction_of_characters_in_duplicate_10grams", ">", 0.1, "10grams"),
    (PII_KEY + "doc_count", ">", 5, "pii"),
    (REPETITIONS, ">=", 100, "repetitions"),
]
"""Attribute, comparison, number, and what it is called here; in the order of cc-head.yaml."""


def holds(attributes: dict[str, Any], key: str, sign: str, limit: float) -> bool:
    """Tell whether a filter excludes a document: `@.key && @.key[0] && @.key[0][2] < limit`."""
    spans = attributes.get(key)
    if not spans:
        return False
    score = spans[0][2]
    return bool({"<": score < limit, ">": score > limit, ">=": score >= limit}[sign])


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of all files of a folder."""
    for path in sorted(folder.rglob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def dolma(command: str, config: dict[str, Any], folder: Path) -> None:
    """Run a command of Dolma with a configuration."""
    path = folder / f"{command}-{len(list(folder.glob('*.json')))}.json"
    path.write_text(json.dumps(config))
    program = Path(sys.executable).parent / "dolma"
    subprocess.run([program, "-c", path, command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tag(root: Path, taggers: list[str], folder: Path) -> None:
    """Tag a dataset, a folder of attributes for each tagger."""
    dolma("tag", {"documents": [f"{root}/documents/*.gz"], "taggers": taggers, "processes": 1}, folder)


def dedupe(root: Path, folder: Path) -> set[str]:
    """Note the copies of whole texts in a dataset, and return their ids."""
    config = {
        "documents": [f"{root}/documents/*.gz"],
        "dedupe": {"name": "docs", "documents": {"attribute_name": DUPLICATE, "key": "$.text"}, "skip_empty": True},
        "bloom_filter": {
            "file": str(folder / "bloom"), "read_only": False, "estimated_doc_count": 100_000,
            "desired_false_positive_rate": 1e-6,
        },
        "processes": 1,
    }  # fmt: skip
    dolma("dedupe", config, folder)
    return {row["id"] for row in rows(root / "attributes" / "docs") if row["attributes"].get(DUPLICATE)}


def mix(
    root: Path, attributes: list[str], out: Path, replaced: dict[str, str], exclude: list[str], least: int, folder: Path
) -> None:
    """Mix a dataset into a folder."""
    stream: dict[str, Any] = {
        "name": "cc",
        "documents": [f"{root}/documents/*.gz"],
        "attributes": attributes,
        "output": {"path": str(out), "max_size_in_bytes": 1 << 34, "min_text_length": least},
        "span_replacement": [
            {"span": f"$.attributes.{key}", "min_score": 0.5, "replacement": by} for key, by in replaced.items()
        ],
    }
    if exclude:
        stream["filter"] = {"include": [], "exclude": exclude}
    dolma("mix", {"streams": [stream], "processes": 1}, folder)


def main(pages: str, verdicts: str) -> None:
    """Write a verdict for each page."""
    folder = Path(verdicts).resolve().parent / "dolma"
    first, second, out = folder / "v1", folder / "v1-c4-cleaned", folder / "out"
    for root in (first / "documents", second / "documents", out):
        root.mkdir(parents=True)
    found: dict[str, dict[str, Any]] = {}
    with open(pages, encoding="utf-8") as lines, gzip.open(first / "documents" / "p.jsonl.gz", "wt") as documents:
        for line in lines:
            page = json.loads(line)
            label, prob = page["metadata"]["language"], page["metadata"]["language_score"]
            found[page["id"]] = {"id": page["id"]}
            if label != "en":
                found[page["id"]]["reason"] = "not_english"
            elif prob < 0.5:
                found[page["id"]]["reason"] = "unsure"
            else:
                documents.write(json.dumps({key: page[key] for key in ("id", "text", "source")}) + "\n")
    tag(first, ["c4_v1"], folder)
    mix(first, ["c4_v1"], second / "documents", {NO_ENDING: ""}, [], 0, folder)
    duplicates = dedupe(second, folder)
    taggers = ["gopher_v1", PII, "repetitions_v1"]
    tag(second, taggers, folder)
    exclude = [
        f"$.attributes[?(@.{key} && @.{key}[0] && @.{key}[0][2] {sign} {limit})]" for key, sign, limit, _ in FILTERS
    ]
    kinds = ("EMAIL_ADDRESS", "PHONE_NUMBER", "IP_ADDRESS")
    replaced = {PII_KEY + kind: f" |||{kind}||| " for kind in kinds}
    mix(second, [*taggers, "docs"], out, replaced, [f"$.attributes[?(@.{DUPLICATE})]", *exclude], 1, folder)
    kept = {row["id"]: row["text"] for row in rows(out)}
    attributes: dict[str, dict[str, Any]] = {}
    for name in taggers:
        for row in rows(second / "attributes" / name):
            attributes.setdefault(row["id"], {}).update(row["attributes"])
    for id, values in attributes.items():
        reason = next((name for key, sign, limit, name in FILTERS if holds(values, key, sign, limit)), "")
        reason = "duplicate" if id in duplicates else reason
        if id in kept:
            found[id]["text"] = kept[id]
        found[id]["reason"] = f"kept in spite of {reason}" * bool(reason) if id in kept else reason or "min_text_length"
    with open(verdicts, "w", encoding="utf-8") as written:
        for verdict in found.values():
            written.write(json.dumps(verdict) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
