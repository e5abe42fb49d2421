"""The contract of extractors, and a reader of pages with one.

Extractors are native code that pages can send into minutes of work (resiliparse 2.0: 200,000 attributes of one element,
or as many end tags that close nothing), so `page_reader` is called in a process of its own (`toolkit.execution.pool`).
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from toolkit.config.plugin_code import recorded_code
from toolkit.config.root import recorded_reference
from toolkit.config.settings import FROZEN, ConfigNode, ConfigStruct, convert, plain
from toolkit.ingest.web.html import DecodedPage, decode_page, stated
from toolkit.plugins import Kind

DEFAULT = "resiliparse"


class Page(msgspec.Struct):
    """An HTML page as a server sent it.

    Attributes:
        html: Body without HTTP's codings.
        url: Address; None if the record names none.
        headers: Values of HTTP headers, in order, by lower-case name; empty if no server sent the page.
        decoded: The same body as text, decoded as browsers do, with U+FFFD for invalid bytes.
    """

    html: bytes
    url: str | None
    headers: Mapping[str, Sequence[str]]
    decoded: str


class Extracted(msgspec.Struct):
    r"""The text of a page.

    Attributes:
        text: Text of the page, lines joined by ``\n``; a page with blank text becomes no document.
        title: Title, for ``metadata.page``; None if it is unknown, or part of the text.
        metadata: Other facts, for ``metadata.page``; values of JSON.
    """

    text: str
    title: str | None = None
    metadata: Mapping[str, Any] | None = None


class Extractor(msgspec.Struct, dict=True, **FROZEN):
    """Extracts the text of HTML pages: extend it. Its fields are its options, written beside ``extractor:``.

    It runs in a process of its own: a page that crashes it, raises an exception, or takes too long costs only itself.
    """

    VERSION: ClassVar[str] = "1"
    """Part of the recorded settings; change it whenever texts change."""

    def check(self) -> None:
        """Raise ConfigError if it cannot run here with these options; called before anything is read."""

    def extract(self, page: Page) -> Extracted:
        """Return the text of a page, with title and metadata if known."""
        raise NotImplementedError(type(self).__name__)


EXTRACTORS: Kind[Extractor] = Kind("extractor", "toolkit.ingest.extractors", "toolkit.extractors", Extractor)


class ExtractorSpec(ConfigStruct):
    """An extractor in a configuration, as data for a process.

    Attributes:
        reference: Name, entry point or ``path/file.py:Class``.
        options: Its options, as JSON has them.
    """

    reference: str
    options: dict[str, Any] = {}

    def build(self) -> Extractor:
        """Return the configured extractor.

        Raises:
            ConfigError: if there is no such extractor, or an option is not what it should be.
        """
        return convert(ConfigNode(self.options), EXTRACTORS.find(self.reference), f"extractor {self.reference}")

    def settings(self) -> dict[str, Any]:
        """Return the recorded settings of the extractor: all options, and code or a version where there is one."""
        built = self.build()
        version = {} if built.VERSION == Extractor.VERSION else {"extractor_version": built.VERSION}
        reference = recorded_reference(self.reference)
        return {"extractor": reference, **plain(built), **version, **recorded_code(type(built))}


class SentPage(msgspec.Struct):
    """A page, as it is sent to the process of an extractor.

    Attributes:
        body: Body without HTTP's codings.
        charset: Label of the encoding by HTTP, or empty.
        is_html: False for plain text, which stays as it is.
        url: Address.
        headers: HTTP headers.
    """

    body: bytes
    charset: str
    is_html: bool
    url: str | None = None
    headers: dict[str, list[str]] = {}


class ReadPage(DecodedPage):
    """The extracted text of a decoded page.

    Attributes:
        page: Title and metadata, by key; None if the extractor gives neither.
        meta: Elements of the page about its use (see `stated`).
    """

    page: dict[str, Any] | None = None
    meta: dict[str, list[str]] = {}


def page_reader(spec: ExtractorSpec) -> Callable[[SentPage], ReadPage]:
    """Return a function for decoding a page and extracting its text; all that it needs is imported.

    Raises:
        ConfigError: if the extractor cannot run here.
    """
    extractor = spec.build()
    extractor.check()

    def read(sent: SentPage) -> ReadPage:
        decoded = decode_page(sent.body, sent.charset, declares=sent.is_html)
        result = Extracted(decoded.text)
        if sent.is_html:
            result = extractor.extract(Page(sent.body, sent.url, sent.headers, decoded.text))
            check_extracted(result)
        about = ({} if result.title is None else {"title": result.title}) | dict(result.metadata or {})
        meta = stated(decoded.text) if sent.is_html else {}
        return ReadPage(**msgspec.structs.asdict(decoded) | {"text": result.text}, page=about or None, meta=meta)

    with contextlib.suppress(Exception):  # it may expect more of a page; this only imports what it needs
        read(SentPage(b"<title>t</title><p>\xfcber", "", is_html=True))
    return read


def check_extracted(result: object) -> None:
    """Raise TypeError or ValueError unless a result can become a document."""
    if not isinstance(result, Extracted):
        raise TypeError(f"expected toolkit.Extracted, got {type(result).__name__}")
    msgspec.convert(msgspec.json.decode(msgspec.json.encode(result)), Extracted)
