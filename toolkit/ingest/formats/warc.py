"""WARC files as crawlers write them: the text of the web pages that servers sent.

Source: WARC 1.0/1.1 (ISO 28500); HTTP by RFC 9110 and 9112; character encodings by the WHATWG standards.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Annotated, Any, Literal

import msgspec

from toolkit.config.settings import plain
from toolkit.errors import ConfigError, DataError
from toolkit.execution.pool import Isolated, Lost
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.ingest.web import html, http, records
from toolkit.ingest.web.extractor import DEFAULT, EXTRACTORS, ExtractorSpec, ReadPage, SentPage, page_reader
from toolkit.storage_options import Size

HTML = ("text/html", "application/xhtml+xml")
PRESETS = {"dolma": {"main_content": True, "title": False, "layout": "formatted", "list_bullets": True}}
"""Options of resiliparse with which texts are those of other programs, by the name of the preset."""
KEPT = ("x-robots-tag", "tdm-reservation", "tdm-policy", "link", "content-signal", "content-usage")
"""Headers that documents have, by lower-case name."""

EXTRACTED = "extracted"
"""Key of the texts of other extractors."""


class _LeftOut(Exception):
    """A record without a document; its argument is the reason."""


class ExtractedText(msgspec.Struct):
    """The text of a page by an additional extractor.

    Attributes:
        text: The text; empty if the extractor finds none.
        chars: Its code points.
    """

    text: str
    chars: int


class Warc(Reader):
    """Web pages of ``response`` records; their text by an extractor.

    ``id`` is WARC-Record-ID, ``added`` WARC-Date, ``metadata.warc_headers`` all headers of the record, as in a WET
    file. ``created`` is the ``Date`` that the server sent, in UTC, or else WARC-Date. ``metadata.http`` has the
    ``content_type`` as the server sent it and the ``charset`` that was used; its ``headers`` and ``meta`` have what the
    server and the page say about the use of the page, for the taggers of rights, by name. ``metadata.page`` has the
    title and other facts of the page, if the extractor gives them apart from the text.

    The reader counts everything that becomes no document: other records by type, responses by status and content type,
    empty pages. If the extractor needs too long for a page (``lost.timeout``) or crashes on it (``lost.crash``), only
    this page is lost; with ``on_error: skip`` it is kept aside. A record that is shorter or longer than it says is bad,
    and so is one that is read and whose block is not that of its digest; with ``on_error: skip`` the reader goes on at
    the next record. A page that ``extract`` loses stays a document: the value in that set is null, and counted.

    Attributes:
        extractor: the extractor of a page's text: a built-in [extractor](extractors.md), `package.module:Class` or
            `path/file.py:Class`; its options stand beside it
        extract: texts of other extractors, as attribute sets with the key `extracted`: {SET: NAME}, or {SET:
            {extractor: NAME, option: …}}
        preset: `dolma`: resiliparse with the options that give the texts of `dolma warc`: `main_content: true, title:
            false, layout: formatted, list_bullets: true`
        content_types: types of the responses to read; all except HTML count as plain text
        status: HTTP statuses of the responses to read
        resources: read `resource` records too: files that no server sent, also crawlers' logs
        max_html: larger pages are left out (`too_large`); a page can need 100 times its size
        timeout: seconds of processor time for a page
    """

    VERSION = "3"  # since 2: `created`; since 3: `http.headers` and `http.meta`
    SUFFIXES = (".warc",)
    MEMBERS = True
    RECORDS = True

    PLUGIN = ("extractor", EXTRACTORS, DEFAULT)
    TYPES = {
        EXTRACTED: Annotated[
            ExtractedText | None,
            msgspec.Meta(description="The text that another extractor gives; null if it crashed or took too long."),
        ]
    }

    extractor: str = DEFAULT
    extract: dict[str, str | dict[str, Any]] = {}
    preset: Literal["dolma"] | None = None
    content_types: tuple[str, ...] = (*HTML, "text/plain")
    status: tuple[int, ...] = (200,)
    resources: bool = False
    max_html: Size = Size(8_000_000)
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 20.0

    @property
    def _spec(self) -> ExtractorSpec:
        options = {name: value for name, value in plain(self).items() if name in self.OPTIONS}
        return ExtractorSpec(self.extractor, options | PRESETS.get(self.preset or "", {}))

    def attribute_sets(self) -> Sequence[str]:
        return tuple(self.extract)

    def set_settings(self, name: str) -> dict[str, Any]:
        return super().set_settings(name) | self._other(name).settings()

    def _other(self, name: str) -> ExtractorSpec:
        """Return the extractor of a set."""
        value = self.extract[name]
        options = {"extractor": value} if isinstance(value, str) else dict(value)
        reference = options.pop("extractor", None)
        if not isinstance(reference, str):
            raise ConfigError("expected the name of an extractor, or {extractor: NAME, option: …}")
        return ExtractorSpec(reference, options)

    def check(self) -> None:
        if self.preset and self.extractor != DEFAULT:
            raise ConfigError(f"preset: expected it only with `extractor: {DEFAULT}`, got {self.extractor!r}")
        self._spec.build().check()
        for name in self.extract:
            try:
                self._other(name).build().check()
            except ConfigError as error:
                raise type(error)(f"extract.{name}: {str(error).removeprefix(': ')}") from None

    def settings(self) -> dict[str, Any]:
        settings = {name: self._other(name).settings() for name in self.extract}
        results = super().settings() | self._spec.settings() | {"extract": settings}
        return {name: value for name, value in results.items() if name != "preset" and (settings or name != "extract")}

    def read(self, source: Input) -> Iterator[Draft]:
        limit = min(self.max_html, source.max_bytes)
        number = 0
        with ExitStack() as stack:
            specs = [self._spec, *map(self._other, self.extract)]
            extract, *extras = [
                stack.enter_context(Isolated(functools.partial(page_reader, spec), self.timeout)) for spec in specs
            ]
            for record in records.sound_records(source, large=True):
                number += 1
                url = record.url
                try:
                    answer = self._answer(record, source.counts)
                    if answer is None or not records.is_sound(record, number, source):
                        continue
                    page = self._page(answer, limit, source.counts, url)
                    result = extract(page)
                    for name in ("disbelieved", "guessed", "replaced"):
                        source.counts[f"charset.{name}"] += getattr(result, name)
                    if not result.text.strip():
                        raise _LeftOut("no_text")
                except _LeftOut as fault:
                    source.leave_out(str(fault), number, id=record.id, url=url)
                    continue
                except Lost as lost:
                    source.lose(lost.reason, str(lost), record.block or b"", number, record.id, url)
                    continue
                if reason := record.fields.get("warc-truncated"):
                    source.counts[f"truncated.{reason}"] += 1
                texts = {
                    name: _text_of(item, page, source, name) for name, item in zip(self.extract, extras, strict=True)
                }
                yield Draft(
                    attributes={name: {EXTRACTED: text} for name, text in texts.items()} or None,
                    text=result.text,
                    number=number,
                    id=record.id,
                    added=record.date,
                    created=http.http_date(answer.last("date"), record.date) or record.date,
                    metadata={
                        "warc_headers": record.headers,
                        "http": {
                            "content_type": answer.last("content-type") or None,
                            "charset": result.charset,
                            "headers": {name: values for name in KEPT if (values := answer.headers.get(name))},
                            "meta": result.meta,
                        },
                        **({"page": result.page} if result.page else {}),
                    },
                )
        source.counts += Counter()  # which drops those that are 0
        if not number:
            raise DataError("expected WARC records, got none that is valid", path=source.path)
        if (pages := source.counts["record.conversion"]) and pages + source.counts["record.warcinfo"] == number:
            message = (
                f"expected responses of servers, got {pages} texts made of them; is it a WET file (`format: wet`)?"
            )
            raise DataError(message, path=source.path)

    def _answer(self, record: records.Record, counts: Counter[str]) -> http.Response | None:
        """Return the answer of a server, or a crawler's file; None for a record of another type.

        Raises:
            _LeftOut: if it is not to be read.
        """
        if record.type != "response" and not (record.type == "resource" and self.resources):
            counts[f"record.{record.type}"] += 1
            return None
        if record.block is None:
            raise _LeftOut("too_large")
        if record.type == "resource":
            return http.Response(0, {"content-type": [record.fields.get("content-type", "")]}, record.block)
        answer = http.parse_response(record.block)
        if answer is None:
            raise _LeftOut("not_http")
        if answer.status not in self.status:
            raise _LeftOut(f"status.{answer.status}")
        return answer

    def _page(self, answer: http.Response, limit: int, counts: Counter[str], url: str | None) -> SentPage:
        """Return the page in an answer.

        Raises:
            _LeftOut: if there is none.
        """
        kind, charset = html.parse_content_type(answer.last("content-type"))
        if kind and kind not in self.content_types:
            raise _LeftOut(f"content_type.{kind}")
        try:
            body, notes = http.decode_body(answer, limit)
        except http.TooLarge:
            raise _LeftOut("too_large") from None
        except http.UnknownCoding as coding:
            raise _LeftOut(f"content_encoding.{coding}") from None
        counts.update(f"http.{note}" for note in notes)
        if not kind:
            counts["content_type.missing"] += 1
            kind = html.sniff_type(body)
            if kind not in self.content_types:
                raise _LeftOut(f"content_type.{kind}")
        if not body:
            raise _LeftOut("empty")
        if html.is_binary(body, charset):
            raise _LeftOut("binary")
        return SentPage(body, charset, kind in HTML, url, answer.headers)


def _text_of(extract: "Isolated[SentPage, ReadPage]", page: SentPage, source: Input, name: str) -> msgspec.Raw:
    """Return the value of a set for a page; null, and counted, if the extractor needs too long or crashes."""
    try:
        text = extract(page).text
    except Lost as lost:
        source.counts[f"extract.{name}.{lost.reason}"] += 1
        return msgspec.Raw(b"null")
    return msgspec.Raw(msgspec.json.encode(ExtractedText(text, len(text))))
