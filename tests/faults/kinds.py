"""Kinds of files of a dataset and its output, told by their paths."""

import re

KINDS = {
    "inputs": r"in(/.*)?",
    "documents": r"data/documents(/.*)?",
    "attributes": r"data/attributes(/.*)?",
    "schemas": r"data/\.toolkit/sets/[^/]+/(schema|models)\.json",
    "leases": r"(data|out|exp|exported)/\.toolkit/(samples\.)?leases(/.*)?|\.labels\.jsonl\.lock",
    "hashes": r"data/\.toolkit/dedup/exact[^/]*/signatures(/.*)?",
    "signatures": r"data/\.toolkit/dedup/[^/]+/signatures(/.*)?",
    "map": r"data/\.toolkit/dedup/[^/]+/map\.json",
    "resolution": r"data/\.toolkit/dedup(/.*)?",
    "items": r"items(/.*)?",
    "values": r"values(/.*)?",
    "answers": r"data/\.toolkit/answers(/.*)?",
    "ledger": r"data/\.toolkit/ledger(/.*)?",
    "locks": r"locks(/.*)?",
    "labels": r"labels\.jsonl",
    "fetched": r"fetched(/.*)?",
    "published": r"published(/.*)?",
    "drawn": r"drawn(/.*)?",
    "models": r"data/models(/.*)?",
    "aligning": r"data/\.toolkit/align(/.*)?",
    "sample": r"data/\.toolkit/samples(/.*)?",
    "shard_records": r"data/\.toolkit/(sets|record-log)(/.*)?",
    "row_indexes": r"data/\.toolkit/rows(/.*)?",
    "report_counts": r"data/\.toolkit/report(/.*)?",
    "rejects": r"data/\.toolkit/rejects(/.*)?",
    "ingest_records": r"data/\.toolkit/(ingest|inputs)(/.*)?",
    "selected": r"data/\.toolkit/selected(/.*)?",
    "failures": r"(out|exported)/\.toolkit/record-log(/.*)?",
    "intermediates": r"out/\.toolkit/stage(/.*)?",
    "staged_parts": r"out/\.toolkit/parts(/.*)?",
    "manifest": r"out/\.toolkit/(manifest|publishing)\.json",
    "descriptions": r"(data|out)/(croissant\.json|README\.md)",
    "export_records": r"exported/\.toolkit(/.*)?",
    "exported": r"exported(/.*)?",
    "annotation_records": r"exp/\.toolkit(/.*)?",
    "annotation_files": r"exp(/.*)?",
    "checksums": r"out/.*_sha256\.txt",
    "parts": r"out(/(?!\.toolkit).*)?",
    "others": r".*",
}
"""The first expression that a path below the root matches says its kind; folders are of the kind of their files."""

_TEMPORARY = re.compile(r"\.(.+)\.[^.]+\.\d+-\d+\.\d+\.tmp", re.DOTALL)


def kind_of(path: str) -> str:
    """The kind of a path below the root; one that is being written is what it will be."""
    folder, _, name = path.strip("/").rpartition("/")
    if written := _TEMPORARY.fullmatch(name):
        name = written[1]
    whole = f"{folder}/{name}" if folder else name
    return next(kind for kind, expression in KINDS.items() if re.fullmatch(expression, whole, re.DOTALL))


def is_shown(path: str) -> bool:
    """Whether users, and other programs, take the file for data or for what describes it."""
    if _TEMPORARY.fullmatch(path.rpartition("/")[2]):
        return False
    return kind_of(path) in (
        "documents",
        "attributes",
        "parts",
        "checksums",
        "descriptions",
        "drawn",
        "models",
        "labels",
        "annotation_files",
        "locks",
        "fetched",
        "published",
        "exported",
    ) or path.endswith("out/.toolkit/manifest.json")
