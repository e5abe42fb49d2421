r"""Edits of texts: ``edits: {NAME: […]}``, named by ``text: NAME``. Taggers, duplicates and a mix see the edited texts.

Nothing copies a text: each user of an edited text computes it from the document and the spans that the edits name.
Places in it are mapped back. A span keeps its score and stays one span: it begins at its first code point in the whole
text and ends behind its last one. Text that was removed inside the span is part of it, text that was removed before or
behind it is not. A place inside a replacement is all of what was replaced.

``without: SET.KEY`` beside a tagger is short for ``text: [{cut: SET.KEY}]``.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from toolkit.config import settings as config
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.data import chosen_text, schema
from toolkit.data.documents import Document, Span
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, DataError
from toolkit.rules.compiling import compiled_pattern
from toolkit.text import editing
from toolkit.text.editing import Edit

SECTION = "edits"
_USERS = ("tag", "dedup", "annotate", "mix")
_What = str | dict[str, str] | None


class EditForm(ConfigStruct):
    """One of ``cut``, ``replace``, ``cut_lines``: of spans, or of a pattern in the text after the edits above.

    Attributes:
        cut: removes spans, `SET.KEY[.field]`; or matches, `{regex: PATTERN}` of RE2
        replace: replaces them by the text `by`
        cut_lines: removes lines with a span, or a match, in them
        by: the text; `{}` is the original
    """

    cut: _What = None
    replace: _What = None
    cut_lines: _What = None
    by: str | None = None


class TextEdit(ConfigStruct):
    """An edit: of the spans of a reference, or of what a pattern matches; `lines` says whether whole lines go."""

    spans: str = ""
    regex: str = ""
    lines: bool = False
    by: str = ""


def read_edits(place: ConfigNode) -> str:
    """Return the edits of ``text: […]``, checked, as the text that `edits_in` reads.

    Raises:
        ConfigError: naming the place in the file.
    """
    results = []
    for i in range(len(place.value)):
        form = config.convert(place.at(i), EditForm)
        options = {
            name: target for name in ("cut", "replace", "cut_lines") if (target := getattr(form, name)) is not None
        }
        if len(options) != 1 or (form.by is None) == ("replace" in options):
            raise place.error((i,), "expected one of `cut`, `replace` (with `by`) and `cut_lines`")
        ((name, target),) = options.items()
        with place.errors_at(i, name, of=(ConfigError, ValueError)):
            if isinstance(target, str):
                chosen_text.parse_reference(target, "the spans of an edit")
            elif [*target] != ["regex"]:
                raise ValueError(f"expected SET.KEY[.field] or {{regex: PATTERN}}, got {target!r}")
            else:
                target = {"regex": f"(?m){target['regex']}" if name == "cut_lines" else target["regex"]}
                compiled_pattern(target["regex"])
            by = editing.check_replacement(form.by or "")
        where = {"spans": target} if isinstance(target, str) else target
        results.append(TextEdit(**where, lines=name == "cut_lines", by=by))
    return msgspec.json.encode(results).decode()


def edits_in(text: str | None) -> list[TextEdit]:
    """Return the edits of an option `text`; none if it names a text of a set, or is not given."""
    return msgspec.json.decode(text, type=list[TextEdit]) if text and text.startswith("[") else []


def name_edits(source: ConfigNode) -> None:
    """Replace names of edits by their lists, wherever ``text: NAME`` stands.

    Raises:
        ConfigError: if one is not what it should be.
    """
    named = source.value.get(SECTION) if isinstance(source.value, dict) else None
    if named is None:
        return
    if not isinstance(named, dict):
        raise source.error((SECTION,), f"expected `NAME: [{{cut: SET.KEY}}, …]`, got {named!r}")
    for name, listed in named.items():
        if not isinstance(listed, list):
            raise source.error((SECTION, name), f"expected a list of edits, `[{{cut: SET.KEY}}, …]`, got {listed!r}")
        read_edits(source.at(SECTION, name))

    def put(value: Any) -> None:
        text = value.get(chosen_text.OPTION) if isinstance(value, dict) else None
        if isinstance(text, str) and text in named:
            value[chosen_text.OPTION] = named[text]
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            put(inner)

    for section in _USERS:
        put(source.value.get(section))


class EditedDocument(Document):
    """A document with an edited text; id, source, metadata and attributes are those of the whole one.

    Attributes:
        edits: Edits of the text of the whole document, disjoint and in order.
    """

    def __init__(self, whole: Document, edits: Sequence[Edit]) -> None:
        self._whole, self.edits = whole, editing.merge(edits)
        text = text_after(whole.text, self.edits)
        metadata = whole.raw_metadata
        super().__init__(text, id=whole.id, source=whole.source, metadata=metadata, row=whole.row)

    def attribute(self, path: str) -> Any:
        return self._whole.attribute(path)


def pieces_of(text: str, edits: Sequence[Edit]) -> Iterable[tuple[Edit | int, str]]:
    """Yield the pieces of an edited text: each with the edit that replaces a part, or with its place in the text."""
    end = 0
    for edit in edits:
        yield end, text[end : edit.start]
        yield edit, edit.by.replace(editing.ORIGINAL, text[edit.start : edit.end])
        end = edit.end
    yield end, text[end:]


def text_after(text: str, edits: Sequence[Edit]) -> str:
    """Return a text after disjoint edits in order."""
    return "".join(piece for _, piece in pieces_of(text, edits))


class PlaceMap:
    """Maps places of an edited text to the whole text.

    Args:
        edits: Edits, disjoint and in order.
        end: Code points of the whole text, if they are known.
    """

    def __init__(self, edits: Sequence[Edit], end: int | None = None) -> None:
        self._begins: list[int] = []  # of each piece in the edited text; and its stretch of the whole text
        self._pieces: list[tuple[int, int, bool]] = []
        length = behind = 0
        for edit in edits:
            length = self._add(length, behind, edit.start, edit.start - behind, is_original=True)
            size = len(edit.by) + edit.by.count(editing.ORIGINAL) * (edit.end - edit.start - len(editing.ORIGINAL))
            length = self._add(length, edit.start, edit.end, size, is_original=False)
            behind = edit.end
        self._end = None if end is None else self._add(length, behind, end, end - behind, is_original=True)
        if end is None:
            self._add(length, behind, behind, 1, is_original=True)

    def _add(self, length: int, start: int, end: int, size: int, *, is_original: bool) -> int:
        if size:
            self._begins.append(length)
            self._pieces.append((start, end, is_original))
        return length + size

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        """Return begin and end of an edited text's span in the whole.

        Raises:
            DataError: if it is out of range.
        """
        if not 0 <= start <= end or (self._end is not None and end > self._end):
            raise DataError(f"expected spans between 0 and {self._end}, got [{start}, {end}]")
        if start < end:
            return self._origin(start)[0], self._origin(end - 1)[1]
        is_end = start == self._end and start > 0
        at = self._origin(start - 1)[1] if is_end else self._origin(start)[0] if self._pieces else 0
        return at, at

    def _origin(self, at: int) -> tuple[int, int]:
        """Return begin and end of a code point in the whole text."""
        piece = bisect_right(self._begins, at) - 1
        start, end, is_original = self._pieces[piece]
        if is_original:
            start += at - self._begins[piece]
        return start, start + 1 if is_original else end


def edited(
    whole: Document,
    edits: Sequence[TextEdit],
    spans: Iterable[Iterable[Any] | None],
    past_end: editing.PastEnd | None = None,
) -> EditedDocument:
    """Return a document after edits.

    Args:
        whole: Document.
        edits: Edits in order: a pattern looks at the text after those before it.
        spans: Spans of each edit that names some, in order.
        past_end: See `toolkit.text.editing.edits_of_spans`.

    Raises:
        DataError: if a span is out of range.
    """
    results: list[Edit] = []
    span_lists = iter(spans)
    for edit in edits:
        if edit.spans:
            listed = [span if isinstance(span, Span) else Span(*span) for span in next(span_lists) or ()]
            own = editing.edits_of_spans(listed, edit.by, whole.text, past_end)
            if edit.lines:
                own = [Edit(*_lines_of(whole.text, edit.start, edit.end), edit.by, edit.clamped) for edit in own]
            results = [*own, *results]
            continue
        now = EditedDocument(whole, results)
        text, pattern = now.text, compiled_pattern(edit.regex)
        places = [match.span() for match in pattern.finditer(text) if match.end() > match.start()]
        if edit.lines:
            places = [_lines_of(text, start, end) for start, end in places]
        places = list(map(PlaceMap(now.edits, len(whole.text)), *zip(*places, strict=True))) if places else []
        results = [*(Edit(start, end, edit.by) for start, end in places), *results]
    return EditedDocument(whole, results)


def _lines_of(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the whole lines of a place; one that is empty, because its end was clamped, has none."""
    return (text.rfind("\n", 0, start) + 1, text.find("\n", end - 1) + 1 or len(text)) if start < end else (start, end)


def in_whole(value: Any, type_: Type, places: PlaceMap) -> Any:
    """Return a value with its spans as of the whole text. It is plain data."""
    if value is None or not schema.has_spans(type_):
        return value
    if type_.kind == "span":
        return [*places(value[0], value[1]), *value[2:]]
    if type_.kind == "object":
        return value | {name: in_whole(value[name], t, places) for name, t in type_.fields if name in value}
    assert type_.item
    if type_.kind == "list":
        return [in_whole(item, type_.item, places) for item in value]
    if type_.kind == "map":
        return {name: in_whole(item, type_.item, places) for name, item in value.items()}
    return in_whole(value, type_.item, places)
