"""OSCAR as released from 22.01 on: one JSON object a document, in a folder a language.

Source: the OSCAR project's schema v2 and ungoliant 1.1, which wrote 22.01; key order, lower-case labels and compact
JSON are those of the released files. The published JSON schema spells labels ``Af``, ``Multi``; no file does, but such
labels are read. 23.01: oscar-io 0.4 (``v3/types/document.rs``) and the documentation's "Layout"; labels: ungoliant 2.0,
``tag_convert.rs``. JSON Schemas of both: docs/schemas.

    22.01  {"content": …, "warc_headers": {…}, "metadata": {
               "identification": {"label": "en", "prob": 0.9}, "annotation": ["short_sentences"] | null,
               "sentence_identifications": [{"label": "en", "prob": 0.9}, null, …]}}
    23.01  {"content": …, "warc_headers": {…}, "metadata": {
               "identification": {"label": "en", "prob": 0.9}, "harmful_pp": 4063.1814 | null,
               "tlsh": "tlsh:T125…" | null, "quality_warnings": ["short_sentences"] | null,
               "categories": ["blog"] | null, "sentence_identifications": [{"label": "en", "prob": 0.9}, null, …]}}
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Generic, Literal, Self, TypeVar

import msgspec

from toolkit import DataError, Document, Mixed, MixedBatch, Pieces, Prediction, Reading, Wanted, Writer
from toolkit.text import LinePredictions, explain_bad_row, joined_lines, value_at, without_capitals


class _Metadata2201(msgspec.Struct, forbid_unknown_fields=True):
    identification: Prediction
    annotation: list[str] | None
    sentence_identifications: list[Prediction | None]


class _Metadata2301(msgspec.Struct, forbid_unknown_fields=True):
    identification: Prediction
    harmful_pp: float | None
    tlsh: str | None
    quality_warnings: list[str] | None
    categories: list[str] | None
    sentence_identifications: list[Prediction | None]


_Metadata = TypeVar("_Metadata", _Metadata2201, _Metadata2301)


class _Line(msgspec.Struct, Generic[_Metadata], forbid_unknown_fields=True):
    content: str
    warc_headers: dict[str, str]
    metadata: _Metadata


class _Headers(msgspec.Struct):
    warc_headers: dict[str, str] | None = None


class _Keys(msgspec.Struct):
    metadata: dict[str, msgspec.Raw]


_ENCODER = msgspec.json.Encoder()
_HEADERS = msgspec.json.Decoder(_Headers | None)
_KEYS = msgspec.json.Decoder(_Keys)
_LINES: dict[str, Any] = {"22.01": _Line[_Metadata2201], "23.01": _Line[_Metadata2301]}
_CHECKED = {schema: msgspec.json.Decoder(line) for schema, line in _LINES.items()}

_TYPES: dict[str, Any] = {
    "annotation": list[str] | None,
    "harmful_pp": float | None,
    "tlsh": str | None,
    "categories": list[str] | None,
}
_ONLY_2301 = ("harmful_pp", "tlsh", "categories")

_RENAMED_2301 = {"als": "gsw", "eml": "x-eml"}
"""lid.176 says ``als``, which is Albanian, for Swiss German; and ``eml``, which is no language code any more."""


class Oscar(Writer):
    r"""``content`` has the document's lines, joined by ``\n``. Each line has exactly one sentence identification.

    ``warc_headers`` are those of the metadata. Documents without headers are counted. They get ``{}``, or the fields
    that the option `warc_headers` maps; values other than texts are written as JSON, and missing fields are left out.

    With `schema` 23.01 the annotations are ``quality_warnings``; ``harmful_pp``, ``tlsh`` and ``categories`` are null
    unless the options name attributes for them. In ``metadata``, the fields of `set` rules follow.

    Attributes:
        schema: the release (in quotes) whose fields are written
        identification: the attribute with label and prob of the document
        sentence_identifications: the attribute with label and prob, or null, of each line
        annotation: an attribute with a list of annotations (`oscar.annotation`); those of rules follow
        harmful_pp: an attribute with a number (`oscar.harmful_pp`), for 23.01
        tlsh: an attribute with a text (`oscar.tlsh`), for 23.01
        categories: an attribute with a list of texts (`oscar.categories`), for 23.01
        labels: label -> the label to write instead; default: for 23.01 `{als: gsw, eml: x-eml}`, as released
        warc_headers: header name -> field of the document (`metadata.url`), for documents without headers
    """

    FIELDS = True

    ID = ("warc_headers", "warc-record-id")

    READING = Reading(
        text="content",
        joined=True,
        headers="warc_headers",
        values="metadata",
        types={  # of 22.01, 23.01 and what followed; a file has some of them
            "identification": Prediction,
            "sentence_identifications": list[Prediction | None] | None,
            "annotation": list[str] | None,
            "quality_warnings": list[str] | None,
            "categories": list[str] | None,
            "tlsh": str | None,
            "harmful_pp": float | None,
            "harmful_ppl": float | None,
        },
        label="identification.label",
        is_language=True,
    )

    ABOUT = {
        "content": "the document: its lines, joined by a line feed",
        "warc_headers": "headers of the WARC record, names in lower case, values untouched",
        "identification": "language of the document; `multi` if it has several",
        "annotation": "what rules found to be wrong with the document; null if nothing",
        "quality_warnings": "what rules found to be wrong with the document; null if nothing",
        "harmful_pp": "perplexity under a model of harmful text; null if it was not computed",
        "tlsh": "locality-sensitive hash of the document; null if it was not computed",
        "categories": "of the document's URL in lists of such; null if there are none",
        "sentence_identifications": "language of each line of the content; null where it is not certain",
    }

    schema: Literal["22.01", "23.01"] = "22.01"
    identification: str = "language"
    sentence_identifications: str = "line_language"

    annotation: str | None = None
    harmful_pp: str | None = None
    tlsh: str | None = None
    categories: str | None = None
    labels: dict[str, str] | None = None
    warc_headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        for option in _ONLY_2301:
            if self.schema != "23.01" and getattr(self, option) is not None:
                raise ValueError(f"expected schema 23.01 with the option {option}, got schema {self.schema}")

    def label(self) -> str | None:
        return Writer.label_of(self.identification)

    def wants(self) -> dict[str, Wanted]:
        attributes = {
            "identification": Wanted(self.identification, Prediction, not_null=("label",)),
            "sentence_identifications": Wanted(self.sentence_identifications, list[Prediction | None]),
        }
        optional = {option: getattr(self, option) for option in _TYPES}
        return attributes | {
            option: Wanted(path, _TYPES[option]) for option, path in optional.items() if path is not None
        }

    def carries(self, fields: Collection[str]) -> Collection[str]:
        results = ["text", "metadata.warc_headers"]
        if "metadata.warc_headers" not in fields:
            results += self.warc_headers.values()
        paths = [f"{self.identification}.{name}" for name in ("label", "prob")]
        paths += [self.sentence_identifications, *(getattr(self, option) or "" for option in _TYPES)]
        return [*results, *Writer.own_fields(paths)]

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        sentences: list[Prediction | None] = mixed.values["sentence_identifications"]
        if renamed := self._renamed():
            sentences = [sentence and _rename(sentence, renamed) for sentence in sentences]
        return [self._encoded(document, mixed, sentences, len(sentences))]

    def encode_batch(self, batch: MixedBatch) -> Sequence[Pieces]:
        sentences = batch.values("sentence_identifications")
        if not isinstance(sentences, LinePredictions):
            return super().encode_batch(batch)
        if renamed := self._renamed():
            sentences = sentences.renamed(lambda label: renamed.get(label, label))
        counts = (sentences.bounds[1:] - sentences.bounds[:-1]).tolist()
        result = zip(batch, sentences.raw(), counts, strict=True)
        return [[self._encoded(document, mixed, raw, got)] for (document, mixed), raw, got in result]

    def _encoded(
        self, document: Document, mixed: Mixed, sentences: list[Prediction | None] | msgspec.Raw, got: int
    ) -> tuple[str, bytes]:
        """Return the label and the line of a document.

        Args:
            document: Document that is written.
            mixed: Values and annotations of the document.
            sentences: Identifications of its lines, or their JSON.
            got: Number of these.
        """
        identification: Prediction = mixed.values["identification"]
        content = joined_lines(document.text)
        lines = content.count("\n") + 1 if document.text else 0
        if got != lines:
            raise DataError(f"expected one sentence identification for each of {lines} lines, got {got}")
        if renamed := self._renamed():
            identification = _rename(identification, renamed)
        label = Writer.check_label(identification.label)
        if label != label.lower() or " " in label:
            raise DataError(f"expected a lower-case label, as OSCAR's schema has them, got {label!r}")
        try:
            result = _HEADERS.decode(document.raw_metadata)
        except msgspec.DecodeError as error:
            raise DataError(f"metadata.warc_headers: {explain_bad_row(document.raw_metadata, error)}") from None
        headers = result.warc_headers if result else None
        if headers is None:
            headers = self._mapped(document)
            mixed.counts["documents without warc_headers"] += 1
        metadata: Any = self._metadata(identification, sentences, mixed)
        if mixed.fields:
            if reserved := [name for name in mixed.fields if name in type(metadata).__struct_fields__]:
                raise DataError(f"expected fields beside those of the schema, got {reserved[0]!r} of a `set` rule")
            metadata = Writer.merge_fields(msgspec.Raw(_ENCODER.encode(metadata)), mixed.fields)
        return label, _ENCODER.encode(_Line(content, headers, metadata)) + b"\n"

    def _renamed(self) -> dict[str, str]:
        if self.labels is not None:
            return self.labels
        return _RENAMED_2301 if self.schema == "23.01" else {}

    def _metadata(self, identification: Prediction, sentences: Any, mixed: Mixed) -> _Metadata2201 | _Metadata2301:
        values = mixed.values
        annotations = list(dict.fromkeys((*(values.get("annotation") or ()), *mixed.annotations))) or None
        if self.schema == "22.01":
            return _Metadata2201(identification, annotations, sentences)
        return _Metadata2301(
            identification,
            harmful_pp=values.get("harmful_pp"),
            tlsh=values.get("tlsh"),
            quality_warnings=annotations,
            categories=values.get("categories") or None,
            sentence_identifications=sentences,
        )

    def _mapped(self, document: Document) -> dict[str, str]:
        fields: dict[str, Any] = msgspec.json.decode(document.row) if self.warc_headers else {}
        headers = {}
        for name, path in self.warc_headers.items():
            value = value_at(fields, path)
            if value is not None:
                headers[name] = value if isinstance(value, str) else _ENCODER.encode(value).decode()
        return headers

    def line(self) -> Any:
        return _LINES[self.schema]

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        if b'"content"' not in line or not (b'"warc_headers"' in line or b'"identification"' in line):
            return None
        return cls(schema="23.01") if _is_2301(line) else cls()

    def respelled(self, line: bytes) -> bytes:
        return without_capitals(line)

    def check(self, line: bytes) -> str | None:
        line = self.respelled(line)
        try:
            result = _CHECKED[self.schema].decode(line)
        except (ValueError, RecursionError) as error:
            # a release has no record of its schema: its lines are checked with the default options
            if self.schema == "22.01" and _is_2301(line):
                return Oscar(schema="23.01").check(line)
            return explain_bad_row(line, error)
        label = result.metadata.identification.label
        if label != label.lower() or not label:
            return f"expected a lower-case label, got {label!r} - at $.metadata.identification.label"
        for i, sentence in enumerate(result.metadata.sentence_identifications):
            if sentence and sentence.label != sentence.label.lower():
                return (
                    f"expected a lower-case label, got {sentence.label!r} - at "
                    f"$.metadata.sentence_identifications[{i}].label"
                )
        expected, got = result.content.count("\n") + 1, len(result.metadata.sentence_identifications)
        if got != expected and not (result.content == "" and got == 0):
            return f"expected one sentence identification for each of {expected} lines, got {got}"
        return None


def _rename(prediction: Prediction, labels: dict[str, str]) -> Prediction:
    return Prediction(labels[prediction.label], prediction.prob) if prediction.label in labels else prediction


def _is_2301(line: bytes) -> bool:
    """Return True if a line has the keys of 23.01."""
    try:
        keys = _KEYS.decode(line).metadata
    except (ValueError, RecursionError):
        return False
    return "quality_warnings" in keys and "annotation" not in keys
