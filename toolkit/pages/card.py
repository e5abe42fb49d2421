"""The page of a dataset card: the card as HTML, with the Croissant description in it, which search engines read.

The page is a function of the card, its picture and the description, so it says what they say. HTML in the Markdown is
shown as text, styles stand in one place, and nothing runs.
"""

import base64
import hashlib
import html
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.pages import assets

if TYPE_CHECKING:
    from markdown_it.token import Token

NAME = "card.html"
"""Of the file, beside the card."""

LARGEST = 200_000
"""Bytes of a description that a page carries whole; of a larger one without its files and examples."""

_COMMENT = re.compile(r"^<!--\s*toolkit:.*?-->\s*?$", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r"\A---\s*\n.*?^---\s*$", re.MULTILINE | re.DOTALL)
_STYLES = ("static/base.css", "static/card.css")


def page_of(card: str, pictures: dict[str, bytes], croissant: bytes) -> str:
    """Return the page of a card.

    Args:
        card: README.md.
        pictures: PNG by the names that the card has for them.
        croissant: croissant.json.
    """
    from markupsafe import Markup

    tokens = _parser().parse(_COMMENT.sub("", _HEAD.sub("", card)))
    title, tokens = _title(tokens)
    sections = list(_headings(tokens))
    _finish(tokens, pictures)
    body = _parser().renderer.render(tokens, _parser().options, {})
    return assets.page(
        "card.html",
        _STYLES,
        (),
        more={"img_src": "data:"},
        title=title,
        sections=sections,
        body=Markup(body),  # noqa: S704 - made without HTML of the card
        linked=Markup(linked_data(croissant)),  # noqa: S704 - escaped by `embedded`
        of=digest(card),
    )


def linked_data(croissant: bytes) -> str:
    """Return a description as it stands in a ``<script>``: the same JSON-LD; of a large one the files are left out.

    Search engines refuse very long ones; the sets of files, which record sets refer to, stay.
    """
    results: dict[str, Any] = msgspec.json.decode(croissant)
    if len(croissant) > LARGEST:
        results["distribution"] = [
            item for item in results.get("distribution", []) if item.get("@type") != "cr:FileObject"
        ]
        for record in results.get("recordSet", []):
            record.pop("examples", None)
    return assets.embedded(msgspec.json.encode(results))


def digest(card: str) -> str:
    """Return the digest of a card in its page."""
    return hashlib.sha256(card.encode()).hexdigest()


def fault_of(page: str, card: str, croissant: bytes) -> str:
    """Return the outdated part of a page; empty if it is theirs, by whichever version it was made."""
    if digest(card) not in page:
        return "the card"
    return "" if linked_data(croissant) in page else "the Croissant file"


# --- Markdown ---------------------------------------------------------------------------------------------------------


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _title(tokens: "list[Token]") -> "tuple[str, list[Token]]":
    """Return the text of the card's heading, and the other tokens."""
    for i, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h1":
            text = "".join(child.content for child in tokens[i + 1].children or ())
            return text, [*tokens[:i], *tokens[i + 3 :]]
    return "Dataset card", tokens


def _headings(tokens: "Sequence[Token]") -> Iterator[tuple[str, str]]:
    """Set ids of headings; yield ids and texts of sections."""
    names: set[str] = set()
    for token, inner in itertools.pairwise(tokens):
        if token.type == "heading_open":
            name = base = re.sub(r"\W+", "-", inner.content.lower()).strip("-") or "section"
            number = 1
            while name in names:
                number += 1
                name = f"{base}-{number}"
            names.add(name)
            token.attrSet("id", name)
            if token.tag == "h2":
                yield name, inner.content


def _finish(tokens: "list[Token]", pictures: dict[str, bytes]) -> None:
    """Finish tables, code and pictures.

    Tables scroll and have heads of rows, code may run from the right, pictures are inside the page.
    """
    section = ""
    for i, token in enumerate(tokens):
        match token.type:
            case "heading_open":
                section = tokens[i + 1].content
            case "table_open":
                label = html.escape(f"Table: {section}")
                tokens[i] = _raw(f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">\n<table>\n')
            case "table_close":
                tokens[i] = _raw("</table>\n</div>\n")
            case "th_open" | "td_open":
                _finish_cell(tokens, i)
            case "fence":
                tokens[i] = _raw(f'<pre dir="auto" tabindex="0"><code>{html.escape(token.content)}</code></pre>\n')
            case "inline":
                for child in token.children or []:
                    name = str(child.attrs.get("src", ""))
                    if child.type == "image" and name in pictures:
                        data = base64.b64encode(pictures[name]).decode()
                        child.attrs |= {"src": f"data:image/png;base64,{data}", "class": "picture"}


def _finish_cell(tokens: "Sequence[Token]", place: int) -> None:
    """Make a row's first cell its head; replace styles by classes. The policy forbids styles."""
    token, attributes = tokens[place], dict[str, str | int | float]()
    if "right" in str(token.attrs.get("style", "")):
        attributes["class"] = "numeric"
    if token.type == "th_open" or tokens[place - 1].type == "tr_open":
        attributes["scope"] = "col" if token.type == "th_open" else "row"
        token.tag = _closing(tokens, place).tag = "th"
    token.attrs = attributes


def _closing(tokens: "Sequence[Token]", start: int) -> "Token":
    return next(token for token in tokens[start:] if token.type in ("th_close", "td_close"))


def _raw(text: str) -> "Token":
    from markdown_it.token import Token

    return Token("html_block", "", 0, content=text)
