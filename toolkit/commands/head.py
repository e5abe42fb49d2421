"""``toolkit head``: documents joined with their attributes, to be read."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit.alignment import AttributeRows
from toolkit.commands import Context, Outcome
from toolkit.documents import DOCUMENT_DECODER, DocumentRow, Rows
from toolkit.errors import ConfigError
from toolkit.paths import Dataset, exists, is_folder, join, open_dataset
from toolkit.streams import Lines

TEXT_LINES = 12
TEXT_CHARS = 160
VALUE_CHARS = 400

Joined = tuple[DocumentRow, dict[str, dict[str, Any]], str]


def run(context: Context) -> Outcome:
    """The first documents of a shard (or of the dataset), or those with an id."""
    options = context.options
    dataset, shards = _places(context)
    wanted = options.count if options.id is None else sys.maxsize
    found: list[Joined] = []
    for shard in shards:
        for joined in _read(dataset, shard, context.config.max_document_bytes, options.id):
            found.append(joined)
            if len(found) >= wanted:
                break
        if len(found) >= wanted:
            break
    if options.id is not None and not found:
        raise ConfigError(f"expected a document with the id {options.id!r}, got none in {len(shards)} shards")
    return Outcome(
        text="\n\n".join(_show(*joined) for joined in found),
        data={
            "documents": [
                {"place": place, "id": row.id, "source": row.source, "text": row.text, "attributes": attributes}
                for row, attributes, place in found
            ]
        },
    )


def _places(context: Context) -> tuple[Dataset, list[str]]:
    targets = context.options.targets
    if context.options.config is None:
        if not targets:
            raise ConfigError("expected a shard's path, or a configuration (-c)")
        path = targets[0]
        if is_folder(join(path, "documents")):
            dataset = open_dataset(path, None, None)
            return dataset, dataset.shards()
        root, found, shard = path.rpartition("/documents/")
        if not found and path.startswith("documents/"):
            root, shard = ".", path.removeprefix("documents/")
        if not exists(path):
            raise ConfigError(f"{path}: expected a shard, got nothing there")
        if not root:
            folder, shard = os.path.split(path)
            return Dataset(folder or ".", ""), [shard]
        return Dataset(f"{root}/documents", f"{root}/attributes"), [shard]
    dataset = context.dataset
    if not targets:
        return dataset, dataset.shards()
    shards = [target.removeprefix(dataset.documents + "/") for target in targets]
    for shard in shards:
        if not exists(dataset.shard_path(shard)):
            raise ConfigError(f"{dataset.shard_path(shard)}: expected a shard, got nothing there")
    return dataset, shards


def _read(dataset: Dataset, shard: str, max_bytes: int, id: str | None) -> Iterator[Joined]:
    path = dataset.shard_path(shard)
    with ExitStack() as stack:
        sets: dict[str, AttributeRows] = {}
        for set_name in dataset.sets() if dataset.attributes else ():
            other = dataset.attribute_path(set_name, shard)
            if exists(other):
                sets[set_name] = stack.enter_context(AttributeRows(other, path, any_source=True))
        rows = Rows(stack.enter_context(Lines(path, max_bytes)), DOCUMENT_DECODER, path)
        for row, _ in rows:
            found = {name: others.take(row.id, row.source, rows.number)[0] for name, others in sets.items()}
            if id is None or row.id == id:
                attributes = {name: msgspec.json.decode(each.attributes) for name, each in found.items()}
                yield row, attributes, f"{path}:{rows.number}"


def _show(row: DocumentRow, attributes: dict[str, dict[str, Any]], place: str) -> str:
    lines = [f"{place}", f"  id:      {row.id}", f"  source:  {row.source}"]
    lines += [f"  {name}: {date}" for name, date in (("added", row.added), ("created", row.created)) if date]
    for key, value in (msgspec.json.decode(row.metadata) or {}).items():
        lines.append(f"  {key}: {_short(value)}")
    for set_name, values in attributes.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            lines.append(f"  [{set_name}] {key}: {_short(value)}")
    text = row.text.split("\n")
    lines.append(f"  text ({len(row.text):,} characters):")
    lines += [f"    | {line[:TEXT_CHARS]}{'…' if len(line) > TEXT_CHARS else ''}" for line in text[:TEXT_LINES]]
    if len(text) > TEXT_LINES:
        lines.append(f"    … {len(text) - TEXT_LINES} more lines")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_CHARS else text[:VALUE_CHARS] + "…"
