"""Checks of a Croissant document: ours by making it again, any other by mlcroissant, both against their files."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigNode
from toolkit.data.dataset import Dataset
from toolkit.describe import croissant
from toolkit.describe.about import About, as_list, read_about
from toolkit.describe.dataset import IN_PLACE, ROW
from toolkit.describe.model import Facts
from toolkit.describe.record_types import MEDIA_TYPES, Rows, json_rows, matching
from toolkit.describe.splits import FOLDER
from toolkit.errors import ConfigError, DataError, ToolkitError, did_you_mean
from toolkit.inspect import targets
from toolkit.lazy_numpy import np
from toolkit.mix import publication
from toolkit.records import identity
from toolkit.storage.paths import BOOKKEEPING, absolute, exists, is_folder, join
from toolkit.text.languages.labels import code_of, tag_of
from toolkit.validate import croissant_reader
from toolkit.validate.croissant_reader import Finding, Node, check_files, extract_of, kind_of, nodes, read, text_of

Describe = Callable[[Dataset | str, About, int | None], Facts]
"""Returns the facts about a dataset, or an output by its folder; the last argument limits the rows of each file."""

_TEXTS = ("@id", "name", "description")
"""Keys of files, record sets and fields whose texts are free."""

SHOWN = 20
"""Rows with a repeated key that are named."""


def check(
    path: str, describe: Describe, datasets: Sequence[Dataset], first: int | None, *, data: bool
) -> list[Finding]:
    """Return the findings about a Croissant document and its files.

    Args:
        path: Path of the document.
        describe: Makes the facts about a dataset or an output.
        datasets: Datasets of the configuration, one of which it may describe.
        first: Rows of each file that are read; None for all. With a number, types and counts are not compared.
        data: True if the files of an external description must be there, and all its records are read.
    """
    try:
        document, findings = read(path)
    except DataError as error:
        return [Finding(str(error))]
    if _is_ours(path, document):
        results, present = list(_check_ours(path, document, describe, datasets, first)), None
    else:
        results, present = check_files(path, document, first, data=data)
    return [*map(Finding, findings), *results, *croissant_reader.check(path, document, present, first, data=data)]


def _is_ours(path: str, document: Node) -> bool:
    """Return true for a document of ours beside its files or records."""
    folder, files = path.rpartition("/")[0] or ".", nodes(document, "distribution")
    if not any(node.get("@id") == "documents-files" and kind_of(node) == "FileSet" for node in files):
        return False
    urls = [str(node["contentUrl"]) for node in files if "contentUrl" in node]
    return not urls or any(exists(join(folder, url)) for url in urls) or is_folder(join(folder, BOOKKEEPING))


def _check_ours(
    path: str, document: Node, describe: Describe, datasets: Sequence[Dataset], first: int | None
) -> Iterator[Finding]:
    """Yield differences from a new description of the data, and repeated keys."""
    for fault in _about_faults(document):
        yield Finding(f"{path}: {fault}")
    folder = path.rpartition("/")[0] or "."
    splits = [node for node in nodes(document, "distribution") if str(node.get("contentUrl")).startswith(FOLDER + "/")]
    findings, _ = check_files(path, {**document, "distribution": splits}, first, data=True)
    yield from (finding for finding in findings if finding.severity != "advice")
    try:
        target = _target(folder, document, datasets)
        if target is None:
            yield from check_files(path, document, first, data=True)[0]
            message = (
                "rows not compared with it: only the configuration (-c) and records of the run say how to read them"
            )
            yield Finding(f"{path}: {message}", "advice")
            return
        recorded = isinstance(target, Dataset) or publication.load_manifest(target) is not None
        about = _about(path, document, recorded=recorded)
        facts = describe(target, about, first)
    except ToolkitError as error:
        yield from map(Finding, str(error).splitlines())
        return
    compared = _Comparison(document.get("isLiveDataset") is True, first, recorded)
    again = croissant.document(facts, about, about.croissant)
    for finding in (*compared.check(document, again), *map(Finding, _language_faults(document, facts))):
        yield Finding(f"{path}: {finding.message}", finding.severity)
    yield from (Finding(f"{path}: {note}", "advice") for note in facts.notes)
    if first is None and any(record.get("key") for record in _records(document, "documents")):
        yield from map(Finding, _repeated_keys(target, facts))


def _target(folder: str, document: Node, datasets: Sequence[Dataset]) -> Dataset | str | None:
    """Return the subject of a document: a dataset or the folder of an output; None if nothing tells how to read it.

    Its places are those that the globs of the document name.
    """
    if publication.load_manifest(folder) is not None:
        return folder
    for dataset in datasets:
        if absolute(dataset.documents).rpartition("/")[0] == absolute(folder):
            return dataset
    sets = {str(node.get("@id")): node for node in nodes(document, "distribution") if kind_of(node) == "FileSet"}
    documents, *set_nodes = [sets["documents-files"], *(sets[id_] for id_ in sets if id_.startswith("attributes-"))]
    if documents.get("description") == IN_PLACE:
        return None
    target = targets.target_of(folder)
    rows = [field.get("description") for record in nodes(document, "recordSet") for field in nodes(record, "field")]
    is_dataset = target is not None and target.kind == "dataset"
    if not (set_nodes or ROW in rows):
        if rows and is_dataset:
            return None  # a published output with its parts in `documents/`
        if not is_dataset:
            return folder
    name = _folder_of(documents) or "documents"
    result = Dataset(join(folder, name), join(folder, next(filter(None, map(_folder_of, set_nodes)), "attributes")))
    globs = [str(glob) for glob in as_list(documents.get("includes"))]
    shards = result.shards()
    urls = {str(node.get("contentUrl")) for node in nodes(document, "distribution")}
    chosen = [shard for shard in shards if (path := join(name, shard)) in urls or matching([path], globs)]
    if chosen and len(chosen) < len(shards):  # the configuration leaves others out
        return Dataset(result.documents, result.attributes, include=tuple(map(escape, chosen)))
    return result


def _folder_of(node: Node) -> str:
    """Return the first folder in the globs of a file set."""
    return next((str(glob).partition("/")[0] for glob in as_list(node.get("includes")) if "/" in str(glob)), "")


# --- the section `about:` ---------------------------------------------------------------------------------------------


def _about(path: str, document: Node, *, recorded: bool) -> About:
    """Return a document's settings, as far as its data depend on them."""
    files = [node for node in nodes(document, "distribution") if kind_of(node) == "FileObject"]
    growing = [str(node.get("contentUrl")) for node in files if not (node.get("contentSize") or node.get("sha256"))]
    examples = [len(as_list(record.get("examples"))) for record in nodes(document, "recordSet")]
    splits: dict[str, float | str] = {}
    for row in nodes(next(iter(_records(document, "splits")), {}), "data"):
        splits[str(row.get("splits/name"))] = row.get("splits/share", 0.0)
    if splits and not any(node.get("@id") == "splits-files" for node in nodes(document, "distribution")):
        splits = splits | {"by": "file"} if recorded else {}
    about = {"splits": splits, "url": str(document.get("url") or "")}
    result = msgspec.convert(about, About) if not splits else read_about(ConfigNode(about, path), required=())
    version = "1.1" if f"{croissant.BASE}1.1" in as_list(document.get("conformsTo")) else "1.0"
    live = list(map(escape, growing)) if document.get("isLiveDataset") is True else False
    return msgspec.structs.replace(result, live=live, examples=max(examples, default=0), croissant=version)


def _records(document: Node, id_: str) -> Iterator[Node]:
    return (record for record in nodes(document, "recordSet") if record.get("@id") == id_)


def _about_faults(document: Node) -> Iterator[str]:
    """Yield properties without an equivalent in the section `about:`."""
    for name in croissant.REQUIRED:
        if not document.get(name):
            yield f"expected {name}, which Croissant requires, got none"
    for name, key in croissant.PROPERTIES.items():
        value: Any = document.get(name)
        if name in ("creator", "publisher"):
            value = croissant.one_or_list([_agent(item) for item in as_list(value)])
        if value and name not in ("conformsTo", "isLiveDataset"):
            yield from _faults({key: value}, name)
    for name, value in document.items():
        if name.startswith("rai:"):
            yield from _faults({"rai": {name.removeprefix("rai:"): value}}, name)
    if not isinstance(document.get("isLiveDataset"), bool):
        yield f"expected true or false as isLiveDataset, got {document.get('isLiveDataset')!r}"
    versions = [f"{croissant.BASE}1.0", f"{croissant.BASE}1.1"]
    names = as_list(document.get("conformsTo"))
    if len([name for name in names if name in versions]) != 1 or {*map(str, names)} - {*versions, croissant.RAI}:
        yield f"expected conformsTo {' or '.join(versions)}, got {names[0] if len(names) == 1 else names!r}"


def _agent(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if key != "@type"} | {"type": kind_of(value)}


def _faults(about: dict[str, Any], name: str) -> Iterator[str]:
    (key,) = about
    try:
        read_about(ConfigNode(about, moved=((key,), (name.partition(":")[0],))), required=())
    except ConfigError as error:
        yield str(error)


def _language_faults(document: Node, facts: Facts) -> Iterator[str]:
    """Yield the languages without a label, and the labels without their language."""
    stated = {str(item): _language(str(item)) or str(item) for item in as_list(document.get("inLanguage"))}
    labels = {label: language for label in facts.languages if (language := _language(label))}
    if not stated or not labels:
        return
    for language, code in stated.items():
        if code not in labels.values():
            yield f"expected languages of its labels as inLanguage, got {language!r}"
    for label, code in labels.items():
        if code not in stated.values():
            yield f"expected the language of {label!r}, a label of its files, as inLanguage, too, got none"


def _language(label: str) -> str:
    """Return the language of a label without script and region; for private use its tag; empty for other labels."""
    tag = tag_of(label) or ""
    return code_of(tag) or tag


# --- comparison -------------------------------------------------------------------------------------------------------


class _Comparison(msgspec.Struct):
    """The comparison of two descriptions of the same data.

    Attributes:
        live: True for data that grow: new files and numbers are no faults.
        first: Rows of each file that were read for the new one; None for all.
        recorded: True if the records of the run are there, and not only its files.
        paths: Paths of the data files.
    """

    live: bool
    first: int | None
    recorded: bool
    paths: list[str] = []

    def check(self, old: Node, new: Node) -> Iterator[Finding]:
        """Yield the differences."""
        yield from map(Finding, _context_faults(old.get("@context"), new["@context"]))
        if old.get("@type") != new["@type"]:
            yield Finding(f"expected @type {new['@type']}, got {old.get('@type')!r}")
        keys = [*croissant.PROPERTIES, *new]
        for key in old.keys() - {*keys}:
            if not key.startswith(("rai:", "prov:")):
                hint = did_you_mean(key, keys)
                yield Finding(f"expected a key that `toolkit croissant` writes, got {key!r}{hint}")
        paths = [str(node["contentUrl"]) for node in nodes(new, "distribution") if "contentUrl" in node]
        globs = [node["includes"] for node in nodes(new, "distribution") if "includes" in node]
        self.paths = matching(paths, [glob for item in globs for glob in as_list(item)])
        yield from self._nodes("", old, new, "distribution")
        yield from self._nodes("", old, new, "recordSet")

    def _nodes(self, place: str, old: Node, new: Node, key: str) -> Iterator[Finding]:
        """Yield the differences of nodes with ids."""
        present = {str(node.get("@id")): node for node in nodes(old, key)}
        expected = {str(node["@id"]): node for node in nodes(new, key)}
        where = f"{place}: " if place else ""
        if strays := [item for item in as_list(old.get(key)) if not isinstance(item, dict)]:
            yield Finding(f"{where}expected objects in {key}, got {strays[0]!r:.80}")
        for id_, node in expected.items():
            if id_ in present:
                yield from self._node(id_, present[id_], node)
            elif key != "distribution":
                yield Finding(f"{where}expected {id_}, which the data have, in {key}, got none", "advice")
            elif not self.live:
                yield Finding(f"{where}expected {id_}, which is there, in {key}, got none")
        for id_, node in present.items():
            if id_ not in expected and not self._is_unknown(node):
                yield Finding(f"{id_}: expected only what the data have in {key}, got one that is not there")

    def _is_unknown(self, node: Node) -> bool:
        """Return true for a node beyond the known facts of the data."""
        from_path = "fileProperty" in extract_of(node)
        if self.first is not None and (
            kind_of(node) == "Field" or str(node.get("@id")).startswith(("splits", "document-splits"))
        ):
            return True  # splits are those of all rows
        listing = "data" in node or (kind_of(node) == "Field" and not node.keys() & {"source", "subField"})
        return not self.recorded and (listing or from_path)

    def _node(self, id_: str, old: Node, new: Node) -> Iterator[Finding]:
        for key in {**new, **old}:
            got, expected = old.get(key), new.get(key)
            if key in ("field", "subField"):
                yield from self._nodes(id_, old, new, key)
            elif key == "data":
                yield from self._rows(id_, old, new)
            elif key == "examples":
                yield from self._examples(id_, old, new)
            elif got != expected and not self._is_free(key, got, expected):
                if expected is None:
                    hint = did_you_mean(key, new)
                    yield Finding(f"{id_}: expected a key that `toolkit croissant` writes, got {key!r}{hint}")
                else:
                    yield Finding(f"{id_}: expected {key} {text_of(expected)}, got {text_of(got)}")

    def _is_free(self, key: str, got: Any, expected: Any) -> bool:
        if key in _TEXTS or (key in ("identifier", "key") and None in (got, expected)):
            return True
        if self.first is not None and key in ("dataType", "repeated", "isArray", "arrayShape", "references"):
            return True
        if self.live and key in ("contentSize", "sha256", "identifier"):
            return key == "identifier" or expected is None
        if self.recorded:
            return False
        if key == "includes":  # where a format writes its parts is an option of it
            return matching(self.paths, map(str, as_list(got))) == matching(self.paths, as_list(expected))
        if key == "source" and expected is not None and "fileProperty" in expected["extract"]:
            return self._parts(got) == self._parts(expected)
        return key in ("references", "key") and expected is None

    def _parts(self, source: Any) -> list[str]:
        """Return the matches of a source's expression in the paths of files."""
        try:
            pattern, property_ = re.compile(source["transform"]["regex"]), source["extract"]["fileProperty"]
        except (TypeError, KeyError, re.error):
            return []
        matches = [pattern.match(croissant.path_part(path, property_)) for path in self.paths]
        return [match[1] if match and pattern.groups else "" for match in matches]

    def _rows(self, id_: str, old: Node, new: Node) -> Iterator[Finding]:
        """Yield the differences of the rows with labels or splits."""
        if self.live or self.first is not None:
            return
        key = str(new.get("key", {}).get("@id"))
        present = {str(row.get(key)): row for row in nodes(old, "data")}
        expected = {str(row[key]): row for row in nodes(new, "data")}
        for label in present.keys() - expected.keys():
            yield Finding(f"{id_}: expected what there are files of, got {label!r}")
        for label, row in expected.items():
            if label not in present:
                yield Finding(f"{id_}: expected {label!r}, which files have, among its data, got none")
                continue
            for name, value in present[label].items():
                if name not in row and not name.endswith("/documents"):
                    yield Finding(f"{id_}: expected data with exactly its fields, got {name!r}")
                elif name in row and value != row[name]:
                    yield Finding(f"{name}: expected {text_of(row[name])} for {label!r}, got {text_of(value)}")

    def _examples(self, id_: str, old: Node, new: Node) -> Iterator[Finding]:
        """Yield the examples with other values than the first rows."""
        if self.live or self.first is not None or "examples" not in new:
            return  # parts of them depend on all rows; or the package that reads them is not installed
        for number, (got, expected) in enumerate(zip(as_list(old.get("examples")), new["examples"], strict=False), 1):
            if got != expected:
                wrong = f"expected the first rows of the data, got {_difference(got, expected)}"
                yield Finding(f"{id_}: example {number}: {wrong}")


def _context_faults(old: Any, new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the context's deviations from the specification."""
    if not isinstance(old, dict):
        yield f"expected an object as @context, got {old!r:.80}"
        return
    if lost := [term for term in new if term not in old]:
        yield f"expected {', '.join(lost)} in @context, got none"
    for term, meaning in new.items():
        if term in old and old[term] != meaning and term != "@language":
            yield f"expected {term} as {text_of(meaning)} in @context, got {text_of(old[term])}"


def _difference(got: Any, expected: Mapping[str, Any]) -> str:
    """Return the first differing value of an example."""
    if not isinstance(got, dict):
        return text_of(got)
    keys = [key for key in {**got, **expected} if got.get(key) != expected.get(key)]
    return f"{keys[0]} {text_of(got.get(keys[0]))}" if keys else "another order"


# --- keys -------------------------------------------------------------------------------------------------------------


def _repeated_keys(target: Dataset | str, facts: Facts) -> Iterator[str]:
    """Yield documents with the key of an earlier one. Attributes are aligned with them."""
    for record in facts.records:
        if record.name != "documents" or not record.key:
            continue
        group, fields = facts.groups[0], {field.name: field for field in record.fields}
        paths = []
        for name in record.key:
            field, part = fields[name.partition("/")[0]], name.split("/")[1:]
            paths.append((field.column, *field.keys, *part))
        read: Rows = json_rows(targets.LONGEST)
        if group.media_type != MEDIA_TYPES[".jsonl"]:
            manifest = publication.load_manifest(target) if isinstance(target, str) else None
            path = join(facts.root, group.paths[0])
            format_ = targets.recorded_format(manifest.settings) if manifest else targets.format_of(path)
            read = format_.writer().read_rows if format_ else read
        rows = {file.path: file.rows or 0 for file in facts.files}
        keyed = [_KeyedRows(join(facts.root, path), rows[path], read, tuple(paths)) for path in group.paths]
        for number, duplicate in enumerate(identity.find_duplicate_ids(keyed)):
            if number == SHOWN:
                yield f"{facts.root}: more rows have the key of an earlier one"
                return
            (first, place), (second, again) = duplicate
            rule = f"expected each ({', '.join(record.key)}) once, as the Croissant file says"
            yield f"{keyed[second].name}:{again + 1}: {rule}, got that of {keyed[first].name}:{place + 1} again"


_BLOCK = 1 << 12


class _KeyedRows(NamedTuple):
    """The rows of a file with their keys, as `identity.find_duplicate_ids` searches them.

    Attributes:
        name: Path of the file.
        rows: Number of rows.
        read: Reads the rows.
        paths: Keys that lead to each part of the key of a row.
    """

    name: str
    rows: int
    read: Callable[[str], Iterable[dict[str, Any]]]
    paths: tuple[tuple[str, ...], ...]

    def hashes(self) -> Iterator[identity.Array]:
        for block in self._blocks():
            yield np.ascontiguousarray(block["low"])

    def keys(self, places: identity.Array) -> identity.Array:
        return np.concatenate(list(self._blocks()))[places]

    def row(self, place: int) -> int:
        return place + 1

    def id(self, place: int) -> str | None:
        return None

    def _blocks(self) -> Iterator[identity.Array]:
        encoder = msgspec.json.Encoder()
        rows = iter(self.read(self.name))
        while block := list(islice(rows, _BLOCK)):
            digests = [xxhash.xxh3_128_digest(encoder.encode([_at(row, path) for path in self.paths])) for row in block]
            yield np.frombuffer(b"".join(digests), identity.KEY)


def _at(row: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row
