"""Tokens of texts: those of the library, whatever of it is compiled."""

import json
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from toolkit.errors import ConfigError
from toolkit.text import Tokenizer
from toolkit.text.tokens.byte_level import EXPRESSIONS, LIKE_S, LONG

tokenizers = pytest.importorskip("tokenizers")

FILE = Path(__file__).parents[1] / "taggers" / "files" / "tokenizer.json"
WORDS = (
    "the cat that's I'll we've 'S 12345 1234 ٣٤ über größe 图书馆 हिन्दी ελληνικά a\u0301 x\u200dy \u017fs '\u017f DON'T"
)
TEXTS = [
    "",
    " ",
    "\n\n",
    " \n \t x  y\r\n\r\n  end  ",
    WORDS,
    f"{WORDS}\n{WORDS}  \n",
    "a" * (LONG + 1) + " " * (2 * LONG) + "é" * LONG,
    "<s> text </s> that looks like <|end|> tokens",
    "".join(map(chr, [*range(1, 0x180), 0x2028, 0x3000, 0x1F600, 0xE0001, 0x10FFFF, 0x0378])),
    "!!x ..\n\n?y\t\tz \xa0w\u2003v",
]
"""Texts in which every alternative of the expressions matches, and those that are left to the library."""

SIGNS = st.sampled_from([*" \n\r\t'.!-12aAsStTlLvVeEéß中\u0301\u00a0\u017f\u2003\U0001f600", "'ll", "<s>", "ab"])


def divided(expression: str | None) -> Any:
    """How a tokenizer divides texts: by an expression, or as GPT-2."""
    if expression is None:
        return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    split = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, divided(None) | {"use_regex": False}]}


def made(folder: Path, name: str = "t.json", **changed: Any) -> Tokenizer:
    """The tokenizer of the tests with something else, as a file and loaded."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    model = changed.pop("model", {})
    found |= changed
    found["model"] |= model
    (folder / name).write_text(json.dumps(found), encoding="utf-8")
    return Tokenizer(str(folder / name))


def variants(folder: Path) -> list[Tokenizer]:
    """Tokenizers of each expression, with normal forms and merges that are ignored."""
    expressions = [None, *EXPRESSIONS]
    found = [made(folder, f"{i}.json", pre_tokenizer=divided(each)) for i, each in enumerate(expressions)]
    found.append(made(folder, "nfc.json", normalizer={"type": "NFC"}))
    found.append(made(folder, "ignore.json", model={"ignore_merges": True}, pre_tokenizer=divided(expressions[-1])))
    return found


def by_library(tokenizer: Tokenizer, text: str) -> list[int]:
    found: list[int] = tokenizer.library.encode(text, add_special_tokens=False).ids
    return found


def encoded(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    tokens, bounds = tokenizer.encode(texts)
    return [tokens[a:b].tolist() for a, b in pairwise(bounds)]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    return variants(tmp_path_factory.mktemp("tokenizers"))


def test_tokens_are_those_of_the_library(loaded: list[Tokenizer]) -> None:
    for tokenizer in loaded:
        assert tokenizer.is_compiled
        wanted = [by_library(tokenizer, text) for text in TEXTS]
        for _ in range(2):  # with pieces that are not known yet, and that are
            assert encoded(tokenizer, TEXTS) == wanted
        assert tokenizer.counts(TEXTS) == list(map(len, wanted))


@given(st.lists(st.lists(SIGNS, max_size=12).map("".join), max_size=4))
@settings(max_examples=60)
def test_tokens_of_any_texts_are_those_of_the_library(loaded: list[Tokenizer], texts: list[str]) -> None:
    for tokenizer in loaded:
        assert encoded(tokenizer, texts) == [by_library(tokenizer, text) for text in texts]


ADDED = ("<s>", "<s><s>", "s>x", "<x>", "<x> ", " y", "\u00e9", "e\u0301", "x<s")
"""Added tokens that begin and end with each other."""


def with_added(folder: Path, name: str, normalizer: str | None, **flags: bool) -> Tokenizer:
    """A tokenizer with more added tokens, every other one of which is looked for in the normal form of a text."""
    listed = [
        {"id": 300 + i, "content": each, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": bool(i % 2), "special": i < 3, **flags}
        for i, each in enumerate(ADDED)
    ]  # fmt: skip
    given = {"type": normalizer} if normalizer else None
    return made(folder, name, added_tokens=listed, normalizer=given)


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> list[Tokenizer]:
    folder = tmp_path_factory.mktemp("added")
    return [
        with_added(folder, "plain.json", None),
        with_added(folder, "composed.json", "NFC"),
        with_added(folder, "stripped.json", None, lstrip=True),
        with_added(folder, "words.json", "NFC", single_word=True),
    ]


@given(st.lists(st.lists(SIGNS | st.sampled_from([*ADDED, "<", "s", ">", "x"]), max_size=12).map("".join), max_size=4))
def test_added_tokens_are_found_as_the_library_finds_them(added: list[Tokenizer], texts: list[str]) -> None:
    for tokenizer in added:
        assert encoded(tokenizer, texts) == [by_library(tokenizer, text) for text in texts]


def test_a_large_text_with_added_tokens_is_never_given_to_the_library(
    loaded: list[Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library needs more than 100 bytes for each of the text's."""
    text = "".join(f"{WORDS.replace(LIKE_S, '')}{i}<s>{'</s>' * (i % 3)} " for i in range(200))
    text = unicodedata.normalize("NFC", text)
    wanted = [by_library(tokenizer, text) for tokenizer in loaded]
    monkeypatch.setattr(Tokenizer, "_by_library", lambda self, texts: [] if not texts else pytest.fail("given"))
    assert [encoded(tokenizer, [text])[0] for tokenizer in loaded] == wanted


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_large_vocabularies_are_compiled(tmp_path: Path, ignored: bool) -> None:
    """Qwen has 151,643 tokens, and others more: here 140,000; where merges are ignored, each is one piece."""
    listed = json.loads(FILE.read_text(encoding="utf-8"))["model"]["vocab"]
    rare = ["".join("qxzjkvwy"[n >> 3 * i & 7] for i in range(7)) * 5 for n in range(140_000)]
    vocab = listed | {word: len(listed) + i for i, word in enumerate(rare)}
    division = divided(list(EXPRESSIONS)[2])
    large = made(tmp_path, pre_tokenizer=division, model={"vocab": vocab, "ignore_merges": ignored})
    assert large.is_compiled
    texts = [*TEXTS, *rare[::100], rare[-1]]
    assert encoded(large, texts) == [by_library(large, text) for text in texts]
    assert (len(large.encode([rare[-1]])[0]) == 1) is ignored


def test_what_is_not_byte_level_is_left_to_the_library(tmp_path: Path) -> None:
    other = made(tmp_path, pre_tokenizer={"type": "Whitespace"})
    assert not other.is_compiled
    assert encoded(other, TEXTS) == [by_library(other, text) for text in TEXTS]
    assert encoded(other, []) == []


def test_special_tokens_are_given_where_they_are_wanted() -> None:
    plain, special, literal = (Tokenizer(str(FILE), **o) for o in ({}, {"special": True}, {"literal": True}))
    first, last = (plain.number_of(each) for each in plain.added_tokens)
    assert encoded(special, ["the"]) == [[first, *encoded(plain, ["the"])[0], last]]
    assert encoded(plain, ["<s>"]) == [[first]]
    assert first not in encoded(literal, ["<s>"])[0]
    assert literal.decode(encoded(literal, ["<s>é"])[0]) == "<s>é"
    assert plain.number_of("no such token") is None


def test_what_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tokenizer\.json: expected a file of a tokenizer, got: "):
        Tokenizer(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ConfigError, match="expected a model file, got nothing"):
        Tokenizer(str(tmp_path / "none.json"))
