"""Every output format keeps the contract of `toolkit.testing`; and the bytes of OSCAR's lines."""

import json
from typing import Any, get_origin

import msgspec
import pytest

from toolkit import DataError, Document, Mixed, Prediction, Writer
from toolkit.config.settings import convert, parse
from toolkit.errors import ConfigError, MissingExtra
from toolkit.mix.writer import WRITERS, part_name
from toolkit.plugins import camel_case
from toolkit.testing import check_writer
from toolkit.testing.plugin import SHORT
from toolkit.testing.writers import check_in_new_process

NAMES: list[str] = WRITERS.names()
NEEDED = {"tokens": {"tokenizer": "tests/taggers/files/tokenizer.json", "eod": "</s>", "files": "pbin"}}
"""Options without a default."""
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, NEEDED.get(name, {})) for name in NAMES),
    ("dolma", {"by": "language"}),
    ("dolma", {"attributes": True}),
    ("dolma", {"layout": "inputs"}),
    ("dolma", {"layout": "mixer", "by": "language"}),
    ("oscar", {"schema": "23.01"}),
    ("parquet", {"by": "language"}),
    ("parquet", {"attributes": True}),
    ("text", {"unit": "line"}),
    ("text", {"unit": "block"}),
    ("text", {"layout": "folders"}),
    *(("tokens", NEEDED["tokens"] | {"files": files}) for files in ("dolma", "megatron", "numpy")),
    ("tokens", NEEDED["tokens"] | {"by": "language", "literal": True, "bos": "<s>", "eod": None}),
    ("tokens", NEEDED["tokens"] | {"layout": "inputs", "sequence_length": 7}),
    ("tokens", NEEDED["tokens"] | {"files": "megatron", "sequence_length": 9, "packing": "fit", "pad": "<s>"}),
]
HEADERS = '{"warc-type":"conversion","warc-target-uri":"http://é.org/?a=\\"b\\"","x":"1, 2"}'

every_writer = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)


def writer_of(name: str, options: dict[str, Any]) -> Writer:
    class_: type[Writer] = WRITERS.find(name)
    return convert(parse(msgspec.json.encode(options).decode()), class_, f"output format {name}")


def document_of(text: str, metadata: str | None = None) -> Document:
    """A document as the mix reads it from a file."""
    row = msgspec.json.encode({"id": "a", "text": text, "source": "s"})
    if metadata is not None:
        row = row[:-1] + b',"metadata":' + metadata.encode() + b"}"
    return Document(text, id="a", source="s", metadata=msgspec.Raw(metadata) if metadata else None, row=row)


def mixed_of(writer: Writer, document: Document, label: str = "en", annotations: tuple[str, ...] = ()) -> Mixed:
    values = {
        option: [Prediction(label, 0.9) for _ in document.lines]
        if get_origin(wanted.type) is list
        else {"x": 1.5}
        if get_origin(wanted.type) is dict
        else Prediction(label, 0.75)
        for option, wanted in writer.wants().items()
    }
    raw = {"x": msgspec.Raw(b'{"y":1}')} if writer.takes_all() else None
    return Mixed(values, list(annotations), raw)


def encoded(writer: Writer, document: Document, *arguments: Any) -> list[tuple[str, bytes]]:
    return list(writer.encode(document, mixed_of(writer, document, *arguments)))


# --- every format -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_writer_is_found_described_and_refuses_unknown_options(name: str) -> None:
    class_ = WRITERS.find(name)
    assert class_.__name__ == camel_case(name)
    assert class_.__doc__
    with pytest.raises(ConfigError, match=f"unknown option 'no_such_option' of output format {name}"):
        writer_of(name, {"no_such_option": 1})


@every_writer
def test_a_format_keeps_the_contract(name: str, options: dict[str, Any]) -> None:
    try:
        check_writer(WRITERS.find(name), options, new_process=False)
    except MissingExtra as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_files_are_the_same_in_another_process() -> None:
    check_in_new_process(*filter(is_installed, (writer_of(name, options) for name, options in VARIANTS)))


def is_installed(writer: Writer) -> bool:
    try:
        writer.check_installed()
    except MissingExtra:
        return False
    return True


def test_the_one_label_of_a_format_is_checked_too() -> None:
    with pytest.raises(DataError, match="expected a label of letters"):
        encoded(writer_of("dolma", {"name": "../../etc"}), document_of("text"))


@every_writer
def test_a_format_accepts_what_it_writes(name: str, options: dict[str, Any]) -> None:
    writer = writer_of(name, options)
    refused = {
        line: found
        for text in SHORT.values()
        for metadata in (None, "null", "{}", f'{{"warc_headers":{HEADERS}}}')
        for _, data in encoded(writer, document_of(text, metadata), "en", ("tiny",))
        for line in data[:-1].split(b"\n")
        if (found := writer.check(line)) is not None
    }
    assert refused == {}


@every_writer
def test_formats_of_lines_refuse_documents_whose_lines_do_not_match(name: str, options: dict[str, Any]) -> None:
    writer = writer_of(name, options)
    lists = [option for option, wanted in writer.wants().items() if get_origin(wanted.type) is list]
    document = document_of("one\ntwo")
    for option in lists:
        for count in (0, 1, 3):
            mixed = mixed_of(writer, document)
            short = Mixed({**mixed.values, option: [Prediction("en", 0.9)] * count}, [], mixed.attributes)
            with pytest.raises(DataError, match=f"for each of 2 lines, got {count}"):
                list(writer.encode(document, short))


def test_parts_are_numbered_only_if_there_are_several() -> None:
    assert part_name("en/en", ".jsonl.gz", 1, 1) == "en/en.jsonl.gz"
    assert [part_name("en/en", ".jsonl.gz", i, 2) for i in (1, 2)] == ["en/en_part_1.jsonl.gz", "en/en_part_2.jsonl.gz"]


# --- OSCAR ------------------------------------------------------------------------------------------------------------

OSCAR = writer_of("oscar", {})


def oscar(document: Document, sentences: list[Prediction | None], annotations: list[str] | None = None) -> bytes:
    values = {"identification": Prediction("en", 0.6775619), "sentence_identifications": sentences}
    ((label, data),) = OSCAR.encode(document, Mixed(values, annotations or []))
    assert label == "en"
    return data


def test_a_line_of_oscar_is_exactly_this() -> None:
    document = document_of('Größe\r\n"two"\n日本 \U0001f600\n', f'{{"warc_headers":{HEADERS},"other":1}}')
    assert oscar(document, [Prediction("de", 0.9), None, Prediction("ja", 1.000088)]).decode() == (
        '{"content":"Größe\\n\\"two\\"\\n日本 \U0001f600",'
        f'"warc_headers":{HEADERS},'
        '"metadata":{"identification":{"label":"en","prob":0.6775619},'
        '"annotation":null,'
        '"sentence_identifications":[{"label":"de","prob":0.9},null,{"label":"ja","prob":1.000088}]}}\n'
    )


def test_annotations_keep_their_order_and_are_null_without_any() -> None:
    document = document_of("a")
    assert b'"annotation":["tiny","short_sentences"],' in oscar(document, [None], ["tiny", "short_sentences"])
    assert b'"annotation":null,' in oscar(document, [None])


def test_the_bytes_are_those_of_compact_json() -> None:
    document = document_of(SHORT["quotes"], f'{{"warc_headers":{HEADERS}}}')
    line = oscar(document, [Prediction("en", 0.9)])
    assert json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")).encode() + b"\n" == line


@pytest.mark.parametrize(
    ("text", "content", "lines"),
    [
        ("", "", 0),
        ("\n", "", 1),
        ("a", "a", 1),
        ("a\n", "a", 1),
        ("a\n\n", "a\n", 2),
        ("a\r\nb\r\n\r\n", "a\nb\n", 3),
        ("a\r\r\nb", "a\r\nb", 2),
        ("a\u2028b\x85c\x0cd", "a\u2028b\x85c\x0cd", 1),
    ],
)
def test_there_is_one_identification_for_each_line(text: str, content: str, lines: int) -> None:
    document = document_of(text)
    found = json.loads(oscar(document, [None] * lines))
    assert found["content"] == content
    assert found["metadata"]["sentence_identifications"] == [None] * lines
    assert OSCAR.check(oscar(document, [None] * lines).rstrip(b"\n")) is None
    with pytest.raises(DataError, match=f"one sentence identification for each of {lines} lines, got {lines + 1}"):
        oscar(document, [None] * (lines + 1))


@pytest.mark.parametrize("metadata", [None, "null", "{}", '{"warc_headers":null}', '{"other":{"warc_headers":{}}}'])
def test_documents_without_headers_get_an_empty_object_and_are_counted(metadata: str | None) -> None:
    document = document_of("a", metadata)
    mixed = mixed_of(OSCAR, document)
    ((_, data),) = OSCAR.encode(document, mixed)
    assert b'"warc_headers":{},' in data
    assert mixed.counts == {"documents without warc_headers": 1}
    with_headers = document_of("a", '{"warc_headers":{}}')
    list(OSCAR.encode(with_headers, mixed))
    assert mixed.counts.total() == 1


LINE = {
    "content": "a\nb",
    "warc_headers": {"a": "b"},
    "metadata": {
        "identification": {"label": "en", "prob": 0.9},
        "annotation": ["tiny"],
        "sentence_identifications": [{"label": "en", "prob": 0.9}, None],
    },
}


def changed(path: str, value: Any) -> bytes:
    line = json.loads(json.dumps(LINE))
    place = line
    *folders, last = path.split(".")
    for key in folders:
        place = place[key]
    if value is Ellipsis:
        del place[last]
    else:
        place[last] = value
    return json.dumps(line).encode()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("content", ..., "content"),
        ("content", 3, "$.content"),
        ("content", "a", "expected one sentence identification for each of 1 lines, got 2"),
        ("content", "a\nb\n", "for each of 3 lines, got 2"),
        ("warc_headers", None, "$.warc_headers"),
        ("warc_headers", {"a": 1}, "$.warc_headers"),
        ("id", "x", "unknown field id"),
        ("metadata.annotation", ..., "annotation"),
        ("metadata.annotation", "tiny", "$.metadata.annotation"),
        ("metadata.quality_warnings", [], "unknown field quality_warnings"),
        ("metadata.identification", None, "$.metadata.identification"),
        ("metadata.identification.label", "EN", "expected a lower-case label, got 'EN' - at $.metadata.identification"),
        ("metadata.identification.label", "", "expected a lower-case label, got ''"),
        ("metadata.identification.prob", "0.9", "$.metadata.identification.prob"),
        ("metadata.sentence_identifications", ..., "sentence_identifications"),
        ("metadata.sentence_identifications", [None], "for each of 2 lines, got 1"),
        ("metadata.sentence_identifications", [None, {"label": "FR", "prob": 1}], "sentence_identifications[1].label"),
        ("metadata.sentence_identifications", [None, {"label": "fr"}], "prob"),
    ],
)
def test_broken_lines_of_oscar_are_refused(path: str, value: Any, words: str) -> None:
    assert OSCAR.check(json.dumps(LINE).encode()) is None
    problem = OSCAR.check(changed(path, value))
    assert problem is not None
    assert words in problem


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", json.dumps(LINE).encode()[:-1], b'{"content":"\xff"}'])
def test_what_is_no_json_object_is_refused(line: bytes) -> None:
    assert OSCAR.check(line)


# --- text and Dolma ---------------------------------------------------------------------------------------------------


def test_text_leaves_out_blank_lines_and_counts_them() -> None:
    document = document_of("one\r\n\n  \ntwo\n\n")
    mixed = mixed_of(writer_of("text", {}), document)
    assert list(writer_of("text", {}).encode(document, mixed)) == [("en", b"one\ntwo\n\n")]
    assert mixed.counts["blank lines"] == 3
    assert encoded(writer_of("text", {}), document_of("\n \n")) == []


def test_text_by_line_gathers_the_lines_of_a_language() -> None:
    writer, document = writer_of("text", {"unit": "line"}), document_of("a\nb\nc\nd\n\n")
    found: list[Prediction | None] = [Prediction(label, 0.9) for label in ("en", "fr", "en")]
    mixed = Mixed({"lines": [*found, None, Prediction("fr", 0.8)]}, [])
    assert list(writer.encode(document, mixed)) == [("en", b"a\nc\n\n"), ("fr", b"b\n\n")]
    assert mixed.counts == {"lines without language": 1, "blank lines": 1}


def test_dolma_keeps_rows_as_they_are_unless_something_is_added() -> None:
    row = (
        b'{"zeta": 1.50, "id":"a","text":"t","source":"s","metadata":{"b": 2, "annotation": 1},"attributes":{"old":[]}}'
    )
    document = Document("t", id="a", source="s", metadata=msgspec.Raw(b'{"b": 2}'), row=row)
    assert encoded(writer_of("dolma", {}), document) == [("documents", row + b"\n")]
    ((_, merged),) = encoded(writer_of("dolma", {"attributes": True}), document, "en", ("tiny",))
    assert list(json.loads(merged)) == ["zeta", "id", "text", "source", "metadata", "attributes"]
    assert json.loads(merged)["attributes"] == {"old": [], "x": {"y": 1}}
    assert json.loads(merged)["metadata"] == {"b": 2, "annotation": ["tiny"]}
    assert b"1.50" in merged, "what is not changed keeps its spelling"
