"""The contract suite of output formats."""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolkit.data.document_fields import paths_in
from toolkit.data.documents import Document, value_at
from toolkit.data.tables.to_arrow import own_columns
from toolkit.errors import DataError
from toolkit.inspect.documents import FileDocuments
from toolkit.mix.writer import WRITERS, Mixed, MixedBatch, Writer, check_label
from toolkit.testing import plugin

LABELS = ("en", "multi", "zh-Hant", "x-eml", "1.0", "a_b")
BAD_LABELS = (
    "", ".", "..", "../en", "/etc/passwd", "en/fr", "en\\fr", ".en", "-en", "_en", "en\n", " en", "en ", "en\0", "é",
    "e" * 101, "~", "en:fr", "%2e%2e",
)  # fmt: skip

MAX_BYTES = 1 << 20
LOSSY = ("other line ends",)
"""Texts with characters that some formats have no place for."""


class EncodedPiece(NamedTuple):
    """Piece of a document, and the kind of its text."""

    about: str
    document: Document
    data: bytes


def check_writer(
    writer: Writer | type[Writer], options: Mapping[str, Any] | None = None, *, new_process: bool = True
) -> None:
    """Check the contract of an output format.

    It says what it is; no label leads out of the output's folder, and each has files of its own; documents give the
    same bytes again, one by one and in a batch, here and in another process; what is written is accepted by the
    format's own check, and is read back as the documents that it was made of; a damaged file is noticed where the
    format makes its files itself.

    Args:
        writer: a configured one, or a class.
        options: Options of the class; those without a default must be here.
        new_process: True if files are also made in a process of their own, which takes a second.

    Raises:
        AssertionError: with what is expected, what was got, and what to do.
        MissingExtra: if a package that it needs is not installed.
    """
    result = plugin.configured(writer, options, {})
    result.check_installed()
    plugin.check_configuration(result, WRITERS)
    check_places(result)
    check_encoding(result)
    with tempfile.TemporaryDirectory() as folder:
        for label, pieces in _by_label(result).items():
            check_reading(result, label, pieces, Path(folder))
    check_carried(result)
    if new_process:
        check_in_new_process(result)


def check_places(writer: Writer) -> None:
    """Check the paths of labels, and the refusal of bad labels.

    Paths are below the output's folder, and all different.
    """
    name = plugin.name_of(writer)
    places = [writer.part(label, number, 2, "") for label in LABELS for number in (1, 2)]
    for path in (*places, *map(writer.stem, LABELS), *map(writer.checksums, LABELS)):
        plugin.expect(
            not path.startswith("/") and not {"", ".", ".."} & set(path.split("/")),
            f"{name}: expected paths below the output's folder, got {path!r}; see `stem` and `checksums`",
        )
    plugin.expect(
        len(set(places)) == len(places),
        f"{name}: expected a file of its own for each part of each label, got {places}; use the label in `stem`",
    )
    document = document_of("text\n")
    for label in BAD_LABELS:
        for result in _labels_given(writer, document, label):
            plugin.expect(
                _is_label(result),
                f"{name}: expected a DataError for the label {label!r}, got the label {result!r}; pass labels through "
                "check_label",
            )


def _labels_given(writer: Writer, document: Document, label: str) -> list[str]:
    try:
        return [result for result, _ in writer.encode(document, mixed_of(writer, document, label))]
    except DataError:
        return []


def _is_label(label: str) -> bool:
    try:
        return check_label(label) == label
    except DataError:
        return False


def check_encoding(writer: Writer) -> None:
    """Compare the lines of documents with those encoded again.

    They must be whole lines.

    They are encoded one by one and in a batch, and stay as they are.
    """
    name = plugin.name_of(writer)
    documents = [document_of(text, i) for i, text in enumerate(plugin.SHORT.values())]
    counts = Counter[str]()
    alone: list[list[tuple[str, bytes]]] = []
    for document in documents:
        mixed = mixed_of(writer, document, counts=counts)
        before = (document.text, document.row, plugin.as_json(mixed.values))
        alone.append(list(writer.encode(document, mixed)))
        plugin.expect(
            (document.text, document.row, plugin.as_json(mixed.values)) == before,
            f"{name}: expected a document and values that stay as they are, got others; copy what you change",
        )
        again = list(writer.encode(document, mixed_of(writer, document)))
        plugin.expect(again == alone[-1], f"{name}: expected the same bytes again of {document.text!r}, got {again}")
        for label, data in alone[-1]:
            plugin.expect(
                all(map(_is_label, label.split("/"))),
                f"{name}: expected labels as check_label takes them, or several with slashes between, got {label!r}",
            )
            plugin.expect(
                isinstance(data, bytes) and data.endswith(b"\n"),
                f"{name}: expected bytes that end in a line feed, got {data[-40:]!r} of {document.text!r}",
            )
    batch_counts = Counter[str]()
    batch = MixedBatch(documents, [mixed_of(writer, document, counts=batch_counts) for document in documents])
    results = [list(pieces) for pieces in writer.encode_batch(batch)]
    plugin.expect(
        results == alone and +batch_counts == +counts,
        f"{name}: expected of encode_batch the pieces of each document that encode gives, in order, and the same "
        f"counts; got {results} and {dict(batch_counts)} in place of {alone} and {dict(counts)}",
    )


def check_carried(writer: Writer) -> None:
    """Check the declared fields in the output.

    Documents are a WARC record and another one.
    """
    if not writer.HAS_TEXT:
        return
    if writer.COLUMNS:
        writer.__dict__["own_columns"] = own_columns("", {}, ["own"], {})
    inside = {"url": "in-url", "date": "in-date", "n": {"deep": "in-deep"}, "corpus": "in-corpus"}
    for headers in ({"warc-record-id": "in-id", "warc-date": "in-added"}, None):
        metadata = inside | ({"warc_headers": headers} if headers else {})
        fields = {"id": "in-id", "text": "in-text", "source": "in-source", "added": "in-added", "own": "in-own"}
        row = msgspec.json.encode(fields | {"metadata": metadata})
        raw = msgspec.Raw(msgspec.json.encode(metadata))
        document = Document("in-text", id="in-id", source="in-source", metadata=raw, row=row)
        pieces = [EncodedPiece("", document, data) for _, data in writer.encode(document, mixed_of(writer, document))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, writer.part("en", 1, 1, ""))
            path.parent.mkdir(parents=True, exist_ok=True)
            data = file_of(writer, pieces, path)
            result = data if writer.CONCATENATES else msgspec.json.encode([*writer.read_rows(str(path))])
        if result == b"[]":
            return  # there is no way to see rows
        names = paths_in(row)
        for name in writer.carries(names):
            value = value_at(fields | {"metadata": metadata}, name)
            plugin.expect(
                not isinstance(value, str) or value.encode() in result,
                f"{plugin.name_of(writer)}: expected the field {name} in the output, as `carries` says, got "
                f"{result[:500]!r}",
            )


def check_reading(writer: Writer, label: str, pieces: Sequence[EncodedPiece], folder: Path) -> None:
    """Check a label's file by the format, and its documents."""
    name = plugin.name_of(writer)
    path = folder / writer.part(label, 1, 1, "")
    path.parent.mkdir(parents=True, exist_ok=True)
    data = file_of(writer, pieces, path)
    if writer.CONCATENATES:
        for line in data[:-1].split(b"\n"):
            fault = writer.check(line)
            plugin.expect(
                fault is None, f"{name}: expected lines that its own `check` takes, got {fault}: {line[:200]!r}"
            )
    else:
        faults = list(writer.check_file(str(path), len(pieces)))
        plugin.expect(not faults, f"{name}: expected a file that its own `check_file` takes, got {faults}")
    if not writer.HAS_TEXT:
        return
    if writer.COLUMNS:
        writer.__dict__["own_columns"] = own_columns("", {}, ["own"], {})
    try:
        results = [(document.text, document.id) for document, _ in FileDocuments(str(path), writer, MAX_BYTES, {})]
    except Exception as error:
        raise AssertionError(
            f"{name}: expected a file that can be read back ({_way_to_read(writer)}), got {type(error).__name__}: "
            f"{error}"
        ) from error
    plugin.expect(
        len(results) == len(pieces),
        f"{name}: expected {len(pieces)} documents when the file is read back ({_way_to_read(writer)}), got "
        f"{len(results)}",
    )
    for (text, id), piece in zip(results, pieces, strict=True):
        written = writer.text_of(piece.data).decode() if writer.parts_documents() else piece.document.text
        plugin.expect(
            piece.about in LOSSY or text.split() == written.split(),
            f"{name}: expected the text {written!r} when the file is read back ({_way_to_read(writer)}), got {text!r}",
        )
        plugin.expect(
            id in ("", piece.document.id),
            f"{name}: expected the id {piece.document.id!r}, or none, when the file is read back, got {id!r}; see `ID`",
        )


def file_of(writer: Writer, pieces: Sequence[EncodedPiece], path: Path) -> bytes:
    """Write the file of a label, and return its bytes; a format that makes its files itself must keep its promises."""
    if writer.CONCATENATES:
        path.write_bytes(b"".join(piece.data for piece in pieces))
        return path.read_bytes()
    name, results = plugin.name_of(writer), []
    files = [path, *map(Path, writer.beside(str(path)))]
    plugin.expect(
        len({*files}) == len(files) and all(file.parent == path.parent for file in files),
        f"{name}: expected files of their own beside a part, in its folder, got {files}; see `beside`",
    )
    for _ in range(2):
        remaining = iter([piece.data for piece in pieces])
        with ExitStack() as stack:
            opened = [stack.enter_context(file.open("wb")) for file in files]
            writer.assemble_files(remaining, opened)
            left_open = not any(out.closed for out in opened)
            plugin.expect(left_open, f"{name}: expected `assemble` to leave its files open, got one closed")
        plugin.expect(next(remaining, None) is None, f"{name}: expected `assemble` to take all pieces, got some left")
        results.append([file.read_bytes() for file in files])
    plugin.expect(
        results[0] == results[1], f"{name}: expected the same file of the same pieces, got another; write no time"
    )
    for file, data in zip(files, results[0], strict=True):
        file.write_bytes(data[:-1])
        noticed = list(writer.check_file(str(path)))
        plugin.expect(
            noticed, f"{name}: expected `check_file` to notice that the last byte of {file.name} is missing, it did not"
        )
        file.write_bytes(data)
    return b"".join(results[0])


def _way_to_read(writer: Writer) -> str:
    if not writer.CONCATENATES:
        return "by `read_file`"
    return "as `READING` and `ID` say" if writer.has_json_lines() else "by `read`"


def _by_label(writer: Writer) -> dict[str, list[EncodedPiece]]:
    """Return the pieces of some documents, in order, by their label."""
    results: dict[str, list[EncodedPiece]] = {}
    for i, (about, text) in enumerate(plugin.SHORT.items()):
        document = document_of(text, i)
        for label, data in writer.encode(document, mixed_of(writer, document, LABELS[i % 2])):
            results.setdefault(label, []).append(EncodedPiece(about, document, data))
    return results


def _digests(writer: Writer) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        files = {label: file_of(writer, item, Path(folder, "part")) for label, item in _by_label(writer).items()}
    return {label: hashlib.sha256(data).hexdigest() for label, data in files.items()}


def check_in_new_process(*writers: Writer) -> None:
    """Compare files with those made in another process.

    They depend neither on hashes nor on the time.
    """
    elsewhere = plugin.in_new_process(
        digests_of, [(plugin.reference_of(type(writer)), plugin.options_of(writer)) for writer in writers]
    )
    for writer, results in zip(writers, elsewhere, strict=True):
        plugin.expect(
            results == _digests(writer),
            f"{plugin.name_of(writer)}: expected the same files in another process, got others; sort what comes out of "
            "a set, and write neither the time nor a hash() of a text",
        )


def digests_of(writers: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, str]]:
    """Return the sha256 of each label's file by several writers.

    Writers come as names and options.
    """
    return [_digests(plugin.remade(WRITERS, reference, options)) for reference, options in writers]


def document_of(text: str, number: int = 0) -> Document:
    """Return a document with WARC headers, as the mix reads it."""
    id = f"<urn:uuid:{number}>"
    headers = msgspec.json.encode({"warc_headers": {"warc-record-id": id, "warc-target-uri": 'http://é.org/?a="b"'}})
    fields = {"id": id, "text": text, "source": "s", "metadata": msgspec.Raw(headers)}
    return Document(text, id=id, source="s", metadata=msgspec.Raw(headers), row=msgspec.json.encode(fields))


def mixed_of(writer: Writer, document: Document, label: str = "en", *, counts: Counter[str] | None = None) -> Mixed:
    """Return the mix's knowledge of a document, with plausible values."""
    values = {option: plugin.plausible(value.type, document, label=label) for option, value in writer.wants().items()}
    raw = {"x": msgspec.Raw(b'{"y":1}')} if writer.takes_all() else None
    return Mixed(values, ["tiny", "noisy"], raw, Counter() if counts is None else counts, shard="shard-0")
