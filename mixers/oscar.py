"""OSCAR schema v2, as OSCAR 22.01 has it: one JSON object a document, in a folder a language.

Source: the OSCAR project's schema v2 and ungoliant 1.1, which wrote 22.01; key order, lower-case labels and compact
JSON are those of the released files. The published JSON schema spells labels ``Af``, ``Multi``; no file does.

    {"content": …, "warc_headers": {…}, "metadata": {
        "identification": {"label": "en", "prob": 0.9}, "annotation": ["short_sentences"] | null,
        "sentence_identifications": [{"label": "en", "prob": 0.9}, null, …]}}
"""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from toolkit import DataError, Document, Mixed, Prediction, Wanted, Writer, check_label, explain_bad_row


class _Metadata(msgspec.Struct):
    identification: Prediction
    annotation: list[str] | None
    sentence_identifications: list[Prediction | None]


class _Line(msgspec.Struct):
    content: str
    warc_headers: dict[str, str]
    metadata: _Metadata


class _CheckedMetadata(_Metadata, forbid_unknown_fields=True):
    pass


class _CheckedLine(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    warc_headers: dict[str, str]
    metadata: _CheckedMetadata


class _Headers(msgspec.Struct):
    warc_headers: dict[str, str] | None = None


_ENCODER = msgspec.json.Encoder()
_HEADERS = msgspec.json.Decoder(_Headers | None)
_CHECKED = msgspec.json.Decoder(_CheckedLine)


class Oscar(Writer):
    r"""``content`` is the document's lines joined by ``\n``, with exactly one sentence identification for each.

    ``warc_headers`` are those of the metadata. Documents without are counted; they get ``{}``, or what the option
    `warc_headers` maps: values that are no texts are written as JSON, fields that are not there are left out.
    """

    identification: Annotated[str, msgspec.Meta(description="the attribute with label and prob of the document")] = (
        "language"
    )
    sentence_identifications: Annotated[
        str, msgspec.Meta(description="the attribute with label and prob, or null, of each line")
    ] = "line_language"

    annotation: Annotated[
        str | None,
        msgspec.Meta(description="an attribute with a list of annotations (`oscar.annotation`); those of rules follow"),
    ] = None
    warc_headers: Annotated[
        dict[str, str],
        msgspec.Meta(description="for documents without: header name -> field of the document (`metadata.url`)"),
    ] = {}

    def wants(self) -> dict[str, Wanted]:
        wanted = {
            "identification": Wanted(self.identification, Prediction, not_null=("label",)),
            "sentence_identifications": Wanted(self.sentence_identifications, list[Prediction | None]),
        }
        if self.annotation is not None:
            wanted["annotation"] = Wanted(self.annotation, list[str] | None)
        return wanted

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        identification: Prediction = mixed.values["identification"]
        sentences: list[Prediction | None] = mixed.values["sentence_identifications"]
        lines = document.lines
        if len(sentences) != len(lines):
            raise DataError(
                f"expected one sentence identification for each of {len(lines)} lines, got {len(sentences)}"
            )
        label = check_label(identification.label)
        if label != label.lower():
            raise DataError(f"expected a lower-case label, as OSCAR's schema has them, got {label!r}")
        try:
            found = _HEADERS.decode(document.raw_metadata)
        except msgspec.DecodeError as error:
            raise DataError(f"metadata.warc_headers: {explain_bad_row(document.raw_metadata, error)}") from None
        headers = found.warc_headers if found else None
        if headers is None:
            headers = self._mapped(document)
            mixed.counts["documents without warc_headers"] += 1
        annotations = list(dict.fromkeys((*(mixed.values.get("annotation") or ()), *mixed.annotations)))
        metadata = _Metadata(identification, annotations or None, sentences)
        return [(label, _ENCODER.encode(_Line("\n".join(lines), headers, metadata)) + b"\n")]

    def _mapped(self, document: Document) -> dict[str, str]:
        fields: dict[str, Any] = msgspec.json.decode(document.row) if self.warc_headers else {}
        headers = {}
        for name, path in self.warc_headers.items():
            value: Any = fields
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                headers[name] = value if isinstance(value, str) else _ENCODER.encode(value).decode()
        return headers

    def check(self, line: bytes) -> str | None:
        try:
            found = _CHECKED.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return explain_bad_row(line, error)
        label = found.metadata.identification.label
        if label != label.lower() or not label:
            return f"expected a lower-case label, got {label!r} - at $.metadata.identification.label"
        for i, sentence in enumerate(found.metadata.sentence_identifications):
            if sentence and sentence.label != sentence.label.lower():
                return (
                    f"expected a lower-case label, got {sentence.label!r} - at "
                    f"$.metadata.sentence_identifications[{i}].label"
                )
        expected, got = found.content.count("\n") + 1, len(found.metadata.sentence_identifications)
        if got != expected and not (found.content == "" and got == 0):
            return f"expected one sentence identification for each of {expected} lines, got {got}"
        return None
