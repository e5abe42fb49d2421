"""Documents in the Dolma format, with the mix's attributes merged in if wanted.

Source: Soldaini et al. 2024, arXiv:2402.00159. The output folder is itself a dataset: its documents are below
``documents/``.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from toolkit import Document, Mixed, Prediction, Wanted, Writer, check_label, merge_fields


class Dolma(Writer):
    """Each document with all its keys and their order; with `attributes`, the mix's attributes under ``attributes``.

    Annotations become ``metadata.annotation``, where there are any.
    """

    FIELDS = True

    attributes: Annotated[
        bool, msgspec.Meta(description="merge the attributes into the documents; those already there are kept")
    ] = False
    by: Annotated[
        str | None, msgspec.Meta(description="an attribute with a label, for an output a label (`language`)")
    ] = None
    name: Annotated[str, msgspec.Meta(description="of the one output, without `by`")] = "documents"

    def label(self) -> str | None:
        return f"{self.by}.label" if self.by else repr(self.name)

    def wants(self) -> dict[str, Wanted]:
        return {"by": Wanted(self.by, Prediction, not_null=("label",))} if self.by else {}

    def takes_all(self) -> bool:
        return self.attributes

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        label = check_label(mixed.values["by"].label if self.by else self.name)
        line = document.row
        added = dict(mixed.fields) | ({"annotation": mixed.annotations} if mixed.annotations else {})
        if self.attributes or added:
            fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            if self.attributes:
                fields["attributes"] = merge_fields(fields.get("attributes"), mixed.attributes or {})
            if added:
                fields["metadata"] = merge_fields(fields.get("metadata"), added)
            line = msgspec.json.encode(fields)
        return [(label, line + b"\n")]

    def stem(self, label: str) -> str:
        return f"documents/{super().stem(label)}" if self.by else f"documents/{label}"

    def checksums(self, label: str) -> str:
        return f"{label}_sha256.txt"
