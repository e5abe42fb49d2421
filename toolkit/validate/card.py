"""Check a card of ours: a new head, and the digest of its body."""

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode
from toolkit.describe import about, card, card_marks, card_numbers, croissant, model
from toolkit.errors import ToolkitError
from toolkit.pages import card as html
from toolkit.storage import store_of
from toolkit.storage.paths import exists, join, list_files, missing_reason
from toolkit.validate.croissant_reader import text_of

_HEAD = re.compile(r"---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)

_NAMED = {"configs": "config_name", "dataset_info": "config_name", "data_files": "split", "splits": "name"}
"""Lists of the head, and the keys that name their entries."""

_COUNTED = ("size_categories", "dataset_info")
"""Keys of the head that an output without its manifest does not tell."""

_OF_ABOUT = ("pretty_name", "license", "license_name", "license_link", "tags", "task_categories")
"""Keys of the head that the data do not say."""


def described_by(folder: str) -> Literal["dataset", "output"] | None:
    """Return the subject of a folder's card; None without a card by `toolkit card`."""
    text = _read(folder)
    if not card_marks.is_ours(text):
        return None
    return "dataset" if re.search(r"^- config_name: documents$", text, re.MULTILINE) else "output"


def check(folder: str, facts: model.Facts) -> Iterator[str]:
    """Yield the errors in a folder's card.

    Args:
        folder: Folder with a card of ours.
        facts: Facts about the data beside it.
    """
    text, path = _read(folder), join(folder, card.NAME)
    yield from _of_files_beside(folder, text)
    match = _HEAD.match(text)
    if match is None:
        yield f"{path}:1: expected a head between two lines ---, got none"
        return
    try:
        parts = card_marks.read(path, text, card.KEYS, ())
        source = settings.parse("\n" + match[1], path)
        if not card_marks.is_as_written(path, text):
            yield (
                f"{path}: expected the text that `toolkit card` wrote, got another outside of its marks; run it again, "
                "which keeps what is between a line `toolkit: keep NAME` and a line `toolkit: end NAME`"
            )
        configurations = card.configurations_of(facts, list_files(folder))
    except ToolkitError as error:
        yield str(error)
        return
    got = source.value if isinstance(source.value, dict) else {}
    only = got.get("configs")
    if facts.is_output and len(facts.labels) < 2 and isinstance(only, list) and len(only) == len(configurations) == 1:
        configurations = [configurations[0]._replace(name=_name(only[0], "configs"))]  # files alone do not tell it
    expected = card.head(facts, about.About(), configurations)
    stated = [key for key in ("language", "language_bcp47") if card.is_given("language", match[1])]
    for key in {**expected, **got}:
        # of some files alone, or of data that grow, other keys are not known
        if key not in got and key not in ("configs", "language"):
            continue
        if (
            (key in expected or key not in _COUNTED)
            and key in card.KEYS
            and key not in (*_OF_ABOUT, *stated, *parts.keys)
        ):
            yield from _differences(source, (key,), got.get(key), expected.get(key))


def _differences(source: ConfigNode, at: tuple[str | int, ...], got: Any, expected: Any) -> Iterator[str]:
    """Yield the differences of a value of the head; data that grow have no numbers there."""
    name = next((key for key in reversed(at) if isinstance(key, str)), "")
    got = [got] if at == ("dataset_info",) and isinstance(got, dict) else got
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in {**expected, **got} if at[0] == "configs" else got:
            if key != "features" or "splits" in got:
                yield from _differences(source, (*at, key), got.get(key), expected.get(key))
    elif name in _NAMED and isinstance(expected, list) and isinstance(got, list):
        entries = {_name(item, name): (number, item) for number, item in enumerate(got)}
        results = {_name(item, name): item for item in expected}
        for item in {**results, **entries}:
            number, value = entries.get(item, (len(got), None))
            if value is None and at[0] == "configs":
                yield f"{source.where(at)}: expected {item!r}, which the data have, got none"
            elif value is not None and item not in results:
                yield f"{source.where((*at, number))}: expected what the data have, got {item!r}, which they have not"
            elif value is not None:
                yield from _differences(source, (*at, number), value, results[item])
    elif got != expected:
        yield f"{source.where(at)}: expected {text_of(expected)}, got {text_of(got)}"


def _name(entry: Any, of: str) -> str:
    return str(entry.get(_NAMED[of], "default")) if isinstance(entry, dict) else str(entry)


def _of_files_beside(folder: str, text: str) -> Iterator[str]:
    """Yield faults of the files beside a card: a missing picture, or the page of another card."""
    picture = join(folder, card_numbers.PICTURE)
    if f"]({card_numbers.PICTURE})" in text and not exists(picture):
        number = text[: text.index(f"]({card_numbers.PICTURE})")].count("\n") + 1
        message = f"expected the picture {picture} beside it, got {missing_reason(picture)}; run `toolkit card`"
        yield f"{join(folder, card.NAME)}:{number}: {message}"
    path, described = join(folder, html.NAME), join(folder, croissant.NAME)
    if exists(path) and exists(described):
        data = store_of(path).read(path).decode(errors="replace")
        try:
            fault = html.fault_of(data, text, store_of(described).read(described))
        except msgspec.DecodeError:
            return  # whoever checks that file says so
        if fault:
            yield f"{path}: expected {fault} beside it, got another; run `toolkit card --html`"


def _read(folder: str) -> str:
    path = join(folder, card.NAME)
    return store_of(path).read(path).decode(errors="replace") if exists(path) else ""
