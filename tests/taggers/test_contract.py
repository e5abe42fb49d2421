"""Every tagger keeps the contract of `toolkit.testing`, shows three kinds of texts, and takes time by their length.

Options that must be given, and name no attribute, are those of the first example that has them. Files that examples
name are in ``tests/taggers/files``, from the folder of the project. A tagger whose extra is not installed is skipped.
"""

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from tests.conftest import ROOT
from toolkit import Document, MissingExtra, Tagger
from toolkit.errors import ConfigError
from toolkit.plugins import camel_case
from toolkit.tag import tagger_docs
from toolkit.tag.tagger import TAGGERS
from toolkit.testing import check_tagger
from toolkit.testing.plugin import NASTY
from toolkit.testing.taggers import check_in_new_process, check_values, configured_tagger, document_of

NAMES: list[str] = TAGGERS.names()

HOSTILE = {
    "words": "word, ",
    "spaces": " ",
    "one letter": "x",
    "lines of a letter": "a\n",
    "line ends": "\n",
    "numbers": "1.",
    "numbers apart": "12 345-",
    "at signs": "@",
    "addresses": "a.b@",
    "colons": "1:",
    "brackets": "({[<",
    "punctuation": "!?.,;'\"-…",
    "ideographs": "汉字仮名",
    "marks": "\u0301",
}
"""What long texts are made of that something could look at again and again."""


@pytest.fixture(autouse=True)
def in_the_folder_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def class_of(name: str) -> type[Tagger]:
    found: type[Tagger] = TAGGERS.find(name)
    return found


def variants_of(name: str) -> list[dict[str, str]]:
    """The options with which a tagger measures in other ways than it does by itself."""
    try:
        class_ = class_of(name)
    except ConfigError:
        return []
    default = {field.encode_name: field.default for field in msgspec.structs.fields(class_)}.get("variant")
    return [{"variant": variant} for variant in tagger_docs.choices(class_, "variant") if variant != default]


@pytest.mark.parametrize("name", NAMES)
def test_a_tagger_keeps_the_contract(name: str) -> None:
    with skipped_without_its_extra():
        check_tagger(class_of(name), new_process=False)


@pytest.mark.slow
def test_values_are_the_same_in_another_process() -> None:
    taggers = [configured_tagger(class_of(name)) for name in NAMES]
    check_in_new_process(*filter(is_installed, taggers))


def is_installed(tagger: Tagger) -> bool:
    try:
        tagger.tag(document_of(tagger, "text"))
    except MissingExtra:
        return False
    return True


@contextmanager
def skipped_without_its_extra() -> Iterator[None]:
    try:
        yield
    except MissingExtra as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_a_tagger_says_what_it_is_shows_three_kinds_of_texts_and_refuses_unknown_options(name: str) -> None:
    class_ = TAGGERS.find(name)
    assert class_.__name__ == camel_case(name)
    assert class_.__doc__
    assert class_.__module__ == f"taggers.{name}"
    assert "Source:" in (sys.modules[class_.__module__].__doc__ or ""), "the source comes first"
    texts = [example.text for example in class_.EXAMPLES]
    assert "" in texts
    assert any(text and text.isascii() for text in texts)
    assert any(not text.isascii() for text in texts)
    with pytest.raises(ConfigError, match="unknown option 'no_such_option'"):
        configured_tagger(class_of(name), {"no_such_option": 1})


VARIANTS = [
    pytest.param(name, options, id=f"{name}-{'-'.join(options.values())}")
    for name in NAMES
    for options in variants_of(name)
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_no_text_breaks_a_variant(name: str, options: dict[str, str]) -> None:
    tagger = configured_tagger(class_of(name), options)
    examples = {f"example {i}": example.text for i, example in enumerate(tagger.EXAMPLES)}
    with skipped_without_its_extra():
        check_values(tagger, examples | {about: text[:2000] for about, text in NASTY.items()})


# --- time -------------------------------------------------------------------------------------------------------------

SHORTEST, TIMES = 2_000, 4
MOST = 10
"""Times the seconds that so many times the text may take; in quadratic time it takes 16 times as many."""
ENOUGH = 0.15
"""Seconds that are so many that longer texts tell nothing new."""
SLOWEST = 20e-6
"""Seconds a character that no tagger takes, whatever the machine does meanwhile."""


def seconds_for(tagger: Tagger, piece: str, size: int) -> float:
    """Of the processor, for a text of so many bytes."""
    text = piece * (size // len(piece.encode()))
    document = document_of(tagger, text)
    gc.disable()  # how long it looks for garbage depends on all the tests before
    try:
        begin = time.process_time()
        with skipped_without_its_extra():
            msgspec.json.encode(tagger.tag_batch([document])[0])
        return time.process_time() - begin
    finally:
        gc.enable()


def check_time(tagger: Tagger, piece: str, longest: int) -> None:
    """Four times the text takes four times as long: not sixteen times, and not much more than four.

    Texts grow until one takes long enough to tell, so that a test of what hangs ends, too.
    """
    seconds_for(tagger, piece, 100)  # models are read, code is compiled
    size, before = SHORTEST, seconds_for(tagger, piece, SHORTEST)
    while before < ENOUGH and size * TIMES <= longest:
        size *= TIMES
        now = seconds_for(tagger, piece, size)
        if now > MOST * before + 0.03:  # the machine had something else to do, or
            before = max(before, *(seconds_for(tagger, piece, size // TIMES) for _ in range(2)))
            now = min(now, *(seconds_for(tagger, piece, size) for _ in range(2)))
        assert now <= MOST * before + 0.03, f"{size:,} bytes take {now:.3f} s, a quarter of them {before:.3f} s"
        assert now <= SLOWEST * size + 0.5
        before = now


class Quadratic(Tagger):
    """Looks at all of the text again for every 500 characters."""

    def tag(self, document: Document) -> int:
        return sum(document.text.count("y") for _ in range(len(document.text) // 500))


LONG_LINE = "Eine Zeile, one line, 一行; "


@pytest.mark.slow
def test_what_is_quadratic_is_found() -> None:
    """Not each time: a machine that is busy is given the benefit of the doubt."""

    def is_found() -> bool:
        try:
            check_time(Quadratic(), "x", 600_000)
        except AssertionError as error:
            return "a quarter of them" in str(error)
        return False

    assert any(is_found() for _ in range(8))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_time_grows_with_the_length_of_the_text(name: str) -> None:
    tagger = configured_tagger(class_of(name))
    for piece in HOSTILE.values():
        check_time(tagger, piece, 600_000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_time_of_variants_grows_with_the_length_of_the_text(name: str, options: dict[str, str]) -> None:
    tagger = configured_tagger(class_of(name), options)
    for piece in HOSTILE.values():
        check_time(tagger, piece, 150_000)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_line_of_ten_megabytes_is_no_trouble(name: str) -> None:
    """One of a megabyte for those that take more than a microsecond a character."""
    tagger = configured_tagger(class_of(name))
    seconds_for(tagger, LONG_LINE, 100)
    size = 10_000_000 if seconds_for(tagger, LONG_LINE, 100_000) < 0.1 else 1_000_000
    assert seconds_for(tagger, LONG_LINE, size) < SLOWEST * size
