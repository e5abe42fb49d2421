"""Documents as they are shown: those of a dataset, and the first ones of inputs as they would be."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolkit.data.documents import DOCUMENT_DECODER, DocumentRow
from toolkit.data.excerpts import escaped
from toolkit.describe.ingest_counts import counted
from toolkit.errors import ToolkitError, amount, short
from toolkit.ingest.plan import InputToIngest
from toolkit.ingest.reading.preview import Preview, preview
from toolkit.stages.outcome import table
from toolkit.storage import store_of

TEXT_LINES = 12
TEXT_CHARS = 160
VALUE_CHARS = 400


def show_document(row: DocumentRow, attributes: Mapping[str, Mapping[str, Any]], place: str, line: bytes = b"") -> str:
    """Return a document as `head` shows it.

    Args:
        row: the document.
        attributes: of it, by set.
        place: of it.
        line: that has it, for its other fields.
    """
    names, dates = (("id", row.id), ("source", row.source)), (("added", row.added), ("created", row.created))
    lines = [place, *(f"  {name + ':':8} {escaped(value)}" for name, value in names if value)]
    lines += [f"  {name}: {escaped(date)}" for name, date in dates if date]
    for key, value in (msgspec.json.decode(row.metadata) or {}).items():
        lines.append(f"  {escaped(key)}: {short(value, VALUE_CHARS)}")
    others = msgspec.json.decode(line, type=dict[str, msgspec.Raw]) if line else {}
    for key, other in others.items():
        if key not in DocumentRow.__struct_fields__:
            lines.append(f"  document.{escaped(key)}: {short(msgspec.json.decode(other), VALUE_CHARS)}")
    for set_name, values in attributes.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            lines.append(f"  {f'[{set_name}] ' if set_name else ''}{key}: {short(value, VALUE_CHARS)}")
    text = row.text.split("\n")
    lines.append(f"  text ({len(row.text):,} characters):")
    lines += [f"    | {line[:TEXT_CHARS]}{'…' if len(line) > TEXT_CHARS else ''}" for line in text[:TEXT_LINES]]
    if len(text) > TEXT_LINES:
        lines.append(f"    … {len(text) - TEXT_LINES} more lines")
    return "\n".join(lines)


def first_documents(works: Iterable[InputToIngest], count: int) -> tuple[list[Preview], list[str]]:
    """Return the beginning of the first input of each entry, and the errors of those that cannot be read.

    Neither is the web read, nor are pages that an index selects.

    Args:
        works: the inputs.
        count: documents of each that are shown.
    """
    first: dict[str, InputToIngest] = {}
    for work in works:
        if store_of(work.path).can_list and not work.files[0].selected:
            first.setdefault(work.entry.name, work)
    found, failed = [], []
    for work in first.values():
        try:
            found.append(preview(work, count))
        except ToolkitError as error:
            failed.append(str(error))
    return found, failed


def show_preview(found: Preview) -> str:
    """Return the beginning of an input for people: its first documents, and a table of the fields that were found."""
    shown = [
        show_document(DOCUMENT_DECODER.decode(line), {}, f"{found.input}, document {i} as it would be", line)
        for i, line in enumerate(map(msgspec.json.encode, found.documents), 1)
    ]
    rows = [["field", "type", "documents"], *([f.name, f.type, f"{f.documents:,}"] for f in found.fields)]
    head = f"{found.input}: fields of the first {amount(found.looked_at, 'document')}, by `format: {found.format}`"
    told = f"\n\nthese had: {beside}" if (beside := counted(found.counts)) else ""
    return "\n\n".join([*shown, f"{head}\n\n{table(rows, right=[2])}{told}".rstrip()])
