"""How surprising a text is to an n-gram language model.

Source: ungoliant 2.0 (OSCAR 23.01, ``harmful_pp``), ``transformers/kenlm/adult_content.rs``: a model trained on harmful
text, so a low perplexity is bad; CCNet (Wenzek et al. 2020), ``perplexity.py`` and ``text_normalizer.py``: a model of
SentencePiece pieces of Wikipedia, so a high one is. Models are KenLM's, ARPA or binary.
"""

import functools
import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from taggers._options import Label
from toolkit import ConfigError, Document, Example, Files, Tagger, require_extra
from toolkit.text import for_language, shortest_float32

MODELS = (".arpa", ".binary", ".arpa.bin", ".bin")

MAX_LOG = math.log10(3.4028234e38)

_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f]")
_DIGITS = re.compile(r"\d")
_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("„”“«»１」「《》", '"'),
        **dict.fromkeys("´’", "'"),
        **dict.fromkeys("–━►", "-"),
        **dict(zip("，。、∶：？！（）；．～〈〉【】％", (*",.,::?!();", ". ", *"~<>[]%"), strict=True)),
        "—": " - ",
        "…": "...",
    }
)
"""As in CCNet, whose list has the full-width 1 among the quotation marks."""


class Perplexity(Tagger):
    """The perplexity of the text: 10 to the power of -(log10 of its probability) / (tokens + 1), where the 1 is the end
    of the text.

    The value is null for a text without tokens, if there is no model of its language, or if it is too large for
    float32.

    Without `sentencepiece`, the tagger computes as for OSCAR: tokens are the pieces between white space (line feeds
    included), and numbers are float32. With `sentencepiece`, it computes as CCNet: it strips the text, puts it in lower
    case, removes marks and accents, replaces digits by 0 and punctuation by that of ASCII, and deletes control
    characters. (Line feeds are control characters, so lines are glued together.) SentencePiece then cuts the text into
    pieces, and the result is rounded to one place.

    Attributes:
        model: a KenLM model, or a folder of such, each named by its language and `.arpa`, `.binary`, `.arpa.bin` or
            `.bin`
        sentencepiece: a SentencePiece model, or a folder of such, each named by its language and `.sp.model`:
            perplexity as in CCNet
        language: the language of the text; names the file in a folder
    """

    EXAMPLES = (
        Example("", None, options={"model": "tests/taggers/files/tiny.arpa"}),
        Example("a b\na", 2.660725, options={"model": "tests/taggers/files/tiny.arpa"}),
        Example("été", 25.118862, options={"model": "tests/taggers/files/tiny.arpa"}),
    )

    model: Files
    sentencepiece: Files | None = None
    language: Label = None

    def check(self) -> None:
        require_extra("kenlm", "perplexity", "kenlm")
        if self.sentencepiece:
            require_extra("kenlm", "perplexity of pieces", "sentencepiece")

    def tag(self, document: Document) -> float | None:
        score = self._score_for(document.given(self.language)) if document.text else None
        return score(document.text) if score else None

    def _score_for(self, language: str | None) -> Callable[[str], float | None] | None:
        if language not in self._loaded:
            self._loaded[language] = self._load(language)
        return self._loaded[language]

    @functools.cached_property
    def _loaded(self) -> dict[str | None, Callable[[str], float | None] | None]:
        return {}

    def _load(self, language: str | None) -> Callable[[str], float | None] | None:
        path = for_language(self.model, language, MODELS)
        pieces = for_language(self.sentencepiece, language, (".sp.model",)) if self.sentencepiece else None
        if not path or (self.sentencepiece and not pieces):
            return None
        model = _kenlm(path)
        if not pieces:
            return lambda text: _perplexity(model, text.split(), lambda value: shortest_float32([value])[0])
        cut = _sentencepiece(pieces)
        return lambda text: _perplexity(model, " ".join(cut(_normal(text))).split(), lambda value: round(value, 1))


def _perplexity(model: Any, tokens: list[str], rounded: Callable[[float], float]) -> float | None:
    log = -model.score(" ".join(tokens)) / (len(tokens) + 1) if tokens else math.inf
    return rounded(10.0**log) if log < MAX_LOG else None


def _normal(text: str) -> str:
    text = unicodedata.normalize("NFD", text.strip().lower())
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    return _CONTROLS.sub("", _DIGITS.sub("0", text).translate(_PUNCTUATION))


@functools.lru_cache(maxsize=128)
def _kenlm(path: str) -> Any:
    require_extra("kenlm", "perplexity", "kenlm")
    import kenlm

    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(path, config)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"{path}: expected a KenLM model, got: {error}") from None


@functools.lru_cache(maxsize=128)
def _sentencepiece(path: str) -> Callable[[str], list[str]]:
    require_extra("kenlm", "perplexity of pieces", "sentencepiece")
    import sentencepiece

    try:
        cut: Callable[[str], list[str]] = sentencepiece.SentencePieceProcessor(model_file=path).encode_as_pieces
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"{path}: expected a SentencePiece model, got: {error}") from None
    return cut
