"""Steps of datatrove over documents, as its executor runs them, in an environment of its own.

of_datatrove.py PAGES VERDICTS NAME MODEL     NAME is that of an oracle; MODEL a fastText model on this machine
"""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any


def steps(name: str, model: str, dropped: Path) -> list[Any]:
    """Return the filters of a pipeline; each writes what it drops into a folder that is called as its number."""
    from datatrove.pipeline import filters  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found,unused-ignore]

    name = name.removesuffix("-minhash")
    kinds: dict[str, list[tuple[Any, dict[str, Any]]]] = {
        "gopher": [(filters.GopherQualityFilter, {}), (filters.GopherRepetitionFilter, {})],
        "c4": [(filters.C4QualityFilter, {})],
        "c4-sentences": [],
        "fineweb": [  # examples/fineweb.py; its LanguageFilter took English by default when FineWeb was made
            (filters.LanguageFilter, {"languages": "en"}),
            (filters.GopherRepetitionFilter, {}),
            (filters.GopherQualityFilter, {}),
            (filters.C4QualityFilter, {"filter_no_terminal_punct": False}),
            (filters.FineWebQualityFilter, {}),
        ],
    }
    found = []
    for number, (kind, options) in enumerate(kinds[name]):
        step = kind(exclusion_writer=JsonlWriter(str(dropped / str(number)), compression="gzip"), **options)
        if kind is filters.LanguageFilter:
            step.model.MODEL_URL = model
        found.append(step)
    return found


def minhash(documents: Path, out: Path, language: str) -> list[str]:
    """Return the ids of the near duplicates that FineWeb's MinHash removes from the documents of a folder."""
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline import dedup  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.dedup.minhash import HashConfig, MinhashConfig  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.readers import JsonlReader  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found,unused-ignore]

    config = MinhashConfig(
        hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8, n_grams=5
    )  # examples/fineweb.py, fineweb-2-pipeline.py
    signatures, buckets, remove, removed = (str(out / name) for name in ("signatures", "buckets", "remove", "removed"))
    reader = JsonlReader(str(documents), doc_progress=False)
    stages = [
        (1, [reader, dedup.MinhashDedupSignature(signatures, config=config, language=language)]),
        (14, [dedup.MinhashDedupBuckets(signatures, buckets, config=config)]),
        (1, [dedup.MinhashDedupCluster(buckets, remove, config=config)]),
        (1, [reader, dedup.MinhashDedupFilter(remove, exclusion_writer=JsonlWriter(removed))]),
    ]
    for number, (tasks, pipeline) in enumerate(stages):
        log = str(out / f"log-{number}")
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=log, skip_completed=False).run()
    return [row["id"] for row in rows(Path(removed))]


def sentences(documents: Path, out: Path) -> dict[str, str]:
    """Return by id the texts of the documents of a folder without spans of three sentences that came before."""
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline import dedup  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.readers import JsonlReader  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found,unused-ignore]

    config = dedup.SentDedupConfig(min_doc_words=0, min_num_sentences=0)
    signatures, repeats, kept = (str(out / name) for name in ("signatures", "repeats", "kept"))
    reader = JsonlReader(str(documents), doc_progress=False)
    stages = [
        [reader, dedup.SentenceDedupSignature(signatures, config=config)],
        [dedup.SentenceFindDedups(signatures, repeats, config=config)],
        [reader, dedup.SentenceDedupFilter(repeats, config=config), JsonlWriter(kept)],
    ]
    for number, pipeline in enumerate(stages):
        log = str(out / f"log-{number}")
        LocalPipelineExecutor(pipeline, tasks=1, workers=1, logging_dir=log, skip_completed=False).run()
    return {row["id"]: row["text"].strip() for row in rows(Path(kept))}


def without_addresses(text: str) -> str:
    """Return a text after PIIFormatter, with one text a kind, whose texts take turns by default."""
    from datatrove.pipeline.formatters import PIIFormatter  # type: ignore[import-not-found,unused-ignore]

    made = PIIFormatter(email_replacement="email@example.com", ip_replacement="22.214.171.124").format(text)
    return str(made)


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the documents that a writer wrote into a folder."""
    found = []
    for path in sorted(folder.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += [json.loads(line) for line in lines]
    return found


def main(pages: str, verdicts: str, name: str, model: str) -> None:
    """Write a verdict for each page."""
    folder = Path(verdicts).parent.resolve() / "datatrove"
    os.environ["HF_ASSETS_CACHE"] = str(folder / "assets")  # read when datatrove is imported
    from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.readers import JsonlReader  # type: ignore[import-not-found,unused-ignore]
    from datatrove.pipeline.writers import JsonlWriter

    filters = steps(name, model, folder / "dropped")
    reader = JsonlReader(str(Path(pages).parent), paths_file=None, glob_pattern=Path(pages).name, doc_progress=False)
    pipeline = [reader, *filters, JsonlWriter(str(folder / "kept"), compression="gzip")]
    LocalPipelineExecutor(pipeline, tasks=1, workers=1, logging_dir=str(folder / "log"), skip_completed=False).run()
    found = {row["id"]: {"id": row["id"], "text": row["text"]} for row in rows(folder / "kept")}
    for number, step in enumerate(filters):
        for row in rows(folder / "dropped" / str(number)):
            reason = row["metadata"].get("filter_reason") or type(step).__name__
            found[row["id"]] = {"id": row["id"], "reason": reason}
    if name.endswith("-minhash"):
        for verdict in found.values():
            if "text" in verdict:
                verdict["text"] = without_addresses(verdict["text"])
        for id in minhash(folder / "kept", folder / "minhash", "eng_Latn"):
            found[id] = {"id": id, "reason": "duplicate"}
    if name == "c4-sentences":
        left = sentences(folder / "kept", folder / "sentences")
        found = {id: {"id": id, "text": left[id]} if left.get(id) else {"id": id, "reason": "empty"} for id in found}
    with open(pages, encoding="utf-8") as lines, open(verdicts, "w", encoding="utf-8") as out:
        for line in lines:
            id = json.loads(line)["id"]
            if id not in found:  # an empty text, for one
                raise SystemExit(f"{id}: datatrove neither kept nor dropped it")
            out.write(json.dumps(found[id]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
