"""Documents in the Dolma format, optionally with the mix's attributes.

Source: Soldaini et al. 2024, arXiv:2402.00159; the mixer of the Dolma toolkit 1.2. The output folder is itself a
dataset: its documents are below ``documents/``.
"""

from collections.abc import Collection, Iterable
from typing import Any, Literal

import msgspec

from mixers._options import By, Labelling, Name
from toolkit import Document, Mixed, Writer

_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""White space as Dolma has it: that of Unicode, without the separators U+001C to U+001F that Python adds."""


class Dolma(Labelling, Writer):
    """Each document with all its keys and their order; with `attributes`, the mix's attributes under ``attributes``.

    If a document has annotations, they become ``metadata.annotation``.

    Attributes:
        attributes: merge the attributes into the documents; those already there are kept. `original`: also where rules
            edit the text, which the attributes then do not describe any more
        layout: `dataset`: `documents/NAME.jsonl.gz`; `mixer`: `NAME-0000.jsonl.gz`, as Dolma's mixer has it; `inputs`:
            an output for each shard, with the same name
        discard: top-level fields that are left out (`[attributes, created]`)
        min_text_length: leave out documents with less text: UTF-8 bytes, without white space around it
        sort_keys: keys in alphabetical order, the last part `.json.gz`, as Dolma's mixer writes them
    """

    FIELDS = True

    attributes: Literal["original"] | bool = False
    by: By = None
    name: Name = "documents"
    layout: Literal["dataset", "mixer", "inputs"] = "dataset"
    discard: tuple[str, ...] = ()
    min_text_length: int = 0
    sort_keys: bool = False

    def takes_all(self) -> bool:
        return bool(self.attributes)

    def takes_stale(self) -> bool:
        return self.attributes == "original"

    def copies_text(self) -> bool:
        return not (self.min_text_length or self.sort_keys or self.discard)

    def carries(self, fields: Collection[str]) -> Collection[str]:
        return [path for path in fields if path.partition(".")[0] not in self.discard]

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        if self.min_text_length and len(document.text.strip(_WHITE_SPACE).encode()) < self.min_text_length:
            mixed.counts["documents below min_text_length"] += 1
            return []
        return [(self.label_in(mixed), self._line(document, mixed) + b"\n")]

    def _line(self, document: Document, mixed: Mixed) -> bytes:
        added = dict(mixed.fields) | ({"annotation": mixed.annotations} if mixed.annotations else {})
        if not (mixed.attributes is not None or added or self.discard or self.sort_keys):
            return document.row
        fields = msgspec.json.decode(document.row, type=dict[str, msgspec.Raw])
        if mixed.attributes is not None:
            fields["attributes"] = Writer.merge_fields(fields.get("attributes"), mixed.attributes, "attributes")
        for name in self.discard:
            fields.pop(name, None)
        if added:
            fields["metadata"] = Writer.merge_fields(fields.get("metadata"), added)
        if not self.sort_keys:
            return msgspec.json.encode(fields)
        values: Any = {name: msgspec.json.decode(value) for name, value in fields.items()}
        return msgspec.json.encode(values, order="deterministic")

    def stem(self, label: str) -> str:
        if self.layout == "mixer":
            return label
        return f"documents/{super().stem(label)}" if self.by else f"documents/{label}"

    def part(self, label: str, number: int, parts: int, compression: str) -> str:
        if self.layout != "mixer":
            return super().part(label, number, parts, compression)
        last = self.sort_keys and number == parts
        return f"{self.stem(label)}-{number - 1:04d}{'.json' if last else self.SUFFIX}{compression}"

    def checksums(self, label: str) -> str:
        return f"{label}_sha256.txt" if self.layout != "inputs" else "documents_sha256.txt"
