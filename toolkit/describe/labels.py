"""The labels by which the files of an output are cut, and where the label of a row is read from."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolkit.describe.look import Looked
from toolkit.describe.model import Label, PathField, Split
from toolkit.mix.publish import Manifest
from toolkit.mix.settings import REJECTED
from toolkit.mix.writer import Writer
from toolkit.text.languages.labels import is_known, label_of_path

ANY_LABEL = "LABEL"
"""Stands for a label in the stem of a path."""


def codes_of(name: str) -> str:
    """Return the field that lists the labels of an output, by what labels are."""
    return f"{name}s/code"


class Labelling(NamedTuple):
    """The labels of an output.

    Attributes:
        name: what labels are: ``language``, or ``label``.
        labels: by which files are cut, sorted; none if they are not cut by one.
        languages: labels of languages that documents have, sorted.
        places: the fields that read the label, and the split, from the path, if there are patterns for them.
        splits: by which files are parted, with their documents.
    """

    name: str
    labels: list[Label]
    languages: list[str]
    places: list[PathField]
    splits: list[Split]


def labelling(
    manifest: Manifest | None, writer: Writer, paths: Sequence[str], looked: Sequence[Looked], *, whole: bool
) -> Labelling:
    """Return the labels of an output: of its manifest, else those that rows say, else those of paths.

    Args:
        manifest: None of a release.
        writer: of the files.
        paths: of the files.
        looked: what was seen in each.
        whole: whether that is all rows of all of them.
    """
    labels = _of_manifest(manifest, writer) if manifest else _of_files(paths, looked, whole=whole)
    if manifest and manifest.splits:
        return _parted(manifest, writer, paths, labels)
    said = {label for each in looked for label in each.labels}
    if not _is_language(manifest, writer, labels):
        languages = sorted(said) if writer.READING.is_language else []
        return Labelling("label", labels, languages, _places("label", writer, paths, labels), [])
    languages = sorted({each.label for each in labels} if labels else said)
    return Labelling("language", labels, languages, _places("language", writer, paths, labels), [])


def _parted(manifest: Manifest, writer: Writer, paths: Sequence[str], labels: Sequence[Label]) -> Labelling:
    """Return the labels of files that lie in a folder for each split.

    The label is read from the file's name: readers take a field that refers to another one, as that of the split does,
    and any other by the same property of the file, for one.
    """
    merged: dict[str, list[Label]] = {}
    for each in labels:
        merged.setdefault(manifest.label_of_rows(each.label), []).append(each)
    found = [
        Label(label, sum(each.documents or 0 for each in some), [path for each in some for path in each.paths])
        for label, some in sorted(merged.items())
    ]
    splits = [
        Split(name, share, sum(t.documents for label, t in manifest.labels.items() if label.startswith(f"{name}/")))
        for name, share in manifest.splits.items()
    ]
    name = "language" if _is_language(manifest, writer, found) else "label"
    suffix = re.escape(_suffix(paths))
    before = re.escape(writer.stem(ANY_LABEL).partition(ANY_LABEL)[0])
    places = [
        PathField(
            "split", "The split that the file is of, from its path.", f"^{before}([^/]+)/.+{suffix}$", "splits/name"
        )
    ]
    pattern = rf"^([^/]+?)(?:_part_.+)?{suffix}$"
    by_name = {os.path.basename(path): each.label for each in found for path in each.paths}
    matches = ((re.match(pattern, base), label) for base, label in by_name.items())
    if found and all(match and match[1] == label for match, label in matches):
        about = f"The {name} that the file is of, from its name."
        places.append(PathField(name, about, pattern, property="filename"))
    return Labelling(name, found, [each.label for each in found] if name == "language" else [], places, splits)


def _of_manifest(manifest: Manifest, writer: Writer) -> list[Label]:
    given = writer.label()
    by_one = given is not None and given.startswith("'") and not manifest.relabels
    if by_one or (given is None and not writer.parts_documents()):
        return []
    return [
        Label(label, totals.documents, [part.path for part in manifest.parts if part.label == label])
        for label, totals in manifest.labels.items()
        if label != REJECTED
    ]


def _of_files(paths: Sequence[str], looked: Sequence[Looked], *, whole: bool) -> list[Label]:
    found: dict[str, list[tuple[str, int]]] = {}
    for path, each in zip(paths, looked, strict=True):
        label = _of_file(path, each)
        if label is None:
            return []
        found.setdefault(label, []).append((path, each.number))
    return [
        Label(label, sum(n for _, n in some) if whole else None, [path for path, _ in some])
        for label, some in sorted(found.items())
    ]


def _of_file(path: str, looked: Looked) -> str | None:
    """Return the one label of a file's rows, in the spelling of the path; None if there are several, or none."""
    by_path = label_of_path(path)
    if len(looked.labels) > 1:
        return None
    said = next(iter(looked.labels), None)
    return by_path if said is None or (by_path and by_path.lower() == said.lower()) else said


def _is_language(manifest: Manifest | None, writer: Writer, labels: Sequence[Label]) -> bool:
    if manifest is None:
        return not labels or any(is_known(each.label) for each in labels)
    by = manifest.settings["label"] or writer.label() or " ".join(wanted.path for wanted in writer.wants().values())
    return "language" in by and not manifest.routes


def _places(name: str, writer: Writer, paths: Sequence[str], labels: Sequence[Label]) -> list[PathField]:
    """Return the field that reads the label from the path; none if no pattern gives each file's."""
    suffix = _suffix(paths)
    by_path = {path: each.label for each in labels for path in each.paths}
    if not suffix or set(by_path) != set(paths):
        return []
    for pattern in _patterns(writer, re.escape(suffix), [each.label for each in labels]):
        expression = re.compile(pattern)
        matches = ((expression.match(path), label) for path, label in by_path.items())
        if all(match and match[1] == label for match, label in matches):
            about = f"the {name} that the file is of, from its path"
            return [PathField(name, about, pattern, codes_of(name))]
    return []


def _patterns(writer: Writer, suffix: str, labels: Sequence[str]) -> Iterator[str]:
    """Yield patterns with the label as their group, the plainest first.

    They are those of the format, of releases (``de_meta/de_meta_part_1``), of folders in folders, and with all labels.
    """
    before, _, behind = (re.escape(part) for part in writer.stem(ANY_LABEL).partition(ANY_LABEL))
    if any("/" in label for label in labels):
        yield f"^{before}(.+)" + ("/.+" if behind else r"(?:_part_\d+)?") + f"{suffix}$"
        return
    if behind:
        yield f"^{before}([^/]+)/.+{suffix}$"
    else:
        yield rf"^{before}([^/]+?)(?:_part_\d+)?{suffix}$"
    yield f"^{before}([^/]+?)(?:_meta)?/.+{suffix}$"
    yield f"^(?:.*/)?([^/]+?)(?:_meta)?/[^/]+{suffix}$"
    yield rf"^(?:.*/)?([^/]+?)(?:_meta)?(?:(?:_part)?_\d+)?{suffix}$"
    listed = "|".join(re.escape(label) for label in sorted(labels, key=lambda label: (-len(label), label)))
    yield rf"^{before}({listed})(?:_part_\d+)?{suffix}$"


def _suffix(paths: Sequence[str]) -> str:
    """Return the suffix that all data files have; empty if they have several."""
    found = {suffix_in(path) for path in paths}
    return found.pop() if len(found) == 1 else ""


def suffix_in(path: str) -> str:
    """Return the suffix of a data file, with that of its compression; empty if it has none that is known."""
    found = re.search(r"\.(jsonl|json|txt|parquet)(\.(gz|zst|zstd))?$", os.path.basename(path))
    return found[0] if found else ""
