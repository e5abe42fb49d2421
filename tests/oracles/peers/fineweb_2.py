"""datatrove's steps as FineWeb-2 runs them in a language, but ftfy; in an environment of its own.

fineweb_2.py PAGES VERDICTS NAME MODEL     the language is in the pages' metadata; MODEL is not looked at; a NAME
in `-minhash` removes near duplicates
"""

import csv
import functools
import gzip
import json
import sys
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parents[3] / "toolkit" / "text" / "tables"


def _rows(name: str) -> list[list[str]]:
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@functools.cache
def configuration(label: str) -> dict[str, Any]:
    """Return the released configuration of a language, in the form of its file."""
    names, *rows = _rows("fineweb-2-baedee4.tsv")
    row = next(dict(zip(names[1:], map(float, row[1:]), strict=True)) for row in rows if row[0] == label)
    words = next(words for each, *words in _rows("fineweb-2-baedee4-stop-words.tsv") if each == label)
    return row | {
        "top_n_grams": [(n, row[f"top_{n}gram"]) for n in (2, 3, 4)],
        "dup_n_grams": [(n, row[f"dup_{n}gram"]) for n in range(5, 11)],
        "stopwords": words,
    }


@functools.cache
def steps(label: str) -> list[Any]:
    """Return the filters of a language, as fineweb-2-pipeline.py makes them."""
    from datatrove.pipeline import filters  # type: ignore[import-not-found,unused-ignore]

    config = configuration(label)
    return [
        filters.GopherRepetitionFilter(
            language=label,
            dup_para_frac=0,
            dup_line_char_frac=0,
            dup_para_char_frac=0,
            dup_line_frac=config["dup_line_frac"],
            top_n_grams=config["top_n_grams"],
            dup_n_grams=config["dup_n_grams"],
        ),
        filters.FineWebQualityFilter(
            language=label,
            short_line_thr=999,
            char_duplicates_ratio=0.1,
            line_punct_thr=config["line_punct_thr"],
            new_line_ratio=config["new_line_ratio"],
        ),
        filters.GopherQualityFilter(
            language=label,
            max_avg_word_length=config["max_avg_word_length"],
            min_avg_word_length=config["min_avg_word_length"],
            stop_words=config["stopwords"],
            max_non_alpha_words_ratio=config["max_non_alpha_words_ratio"],
            min_stop_words=2,
        ),
    ]


def verdict(id: str, text: str, label: str) -> dict[str, str]:
    """Return what the filters say of a page."""
    from datatrove.data import Document  # type: ignore[import-not-found,unused-ignore]

    if not text:
        return {"id": id, "reason": "reader"}  # it reads no empty texts
    for step in steps(label):
        said = step.filter(Document(text=text, id=id))
        if said is not True:
            return {"id": id, "reason": said[1] if isinstance(said, tuple) else type(step).__name__}
    return {"id": id, "text": final(text)}


def final(text: str) -> str:
    """Return a text after FineWeb-2's last formatters."""
    from datatrove.pipeline.formatters import SymbolLinesFormatter  # type: ignore[import-not-found,unused-ignore]
    from of_datatrove import without_addresses  # type: ignore[import-not-found,unused-ignore]

    return str(SymbolLinesFormatter(symbols_to_remove=["|"], replace_char="\n").format(without_addresses(text)))


def duplicates(pages: list[dict[str, Any]], folder: Path) -> set[str]:
    """Return the ids of the near duplicates of each language by itself."""
    from of_datatrove import minhash

    found: set[str] = set()
    for label in sorted({page["metadata"]["language"] for page in pages}):
        documents = folder / label / "documents"
        documents.mkdir(parents=True)
        with gzip.open(documents / "0.jsonl.gz", "wt", encoding="utf-8") as out:
            for page in pages:
                if page["metadata"]["language"] == label:
                    out.write(json.dumps({"id": page["id"], "text": page["text"]}) + "\n")
        found.update(minhash(documents, folder / label, label))
    return found


def main(pages: str, verdicts: str, name: str) -> None:
    """Write a verdict for each page."""
    with open(pages, encoding="utf-8") as lines:
        given = list(map(json.loads, lines))
    folder = Path(verdicts).resolve().parent / "minhash"
    gone = duplicates(given, folder) if name.endswith("-minhash") else set()
    with open(verdicts, "w", encoding="utf-8") as out:
        for page in given:
            said = verdict(page["id"], page["text"], page["metadata"]["language"])
            out.write(json.dumps({"id": page["id"], "reason": "duplicate"} if page["id"] in gone else said) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
