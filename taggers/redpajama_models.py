r"""The quality signals of RedPajama-V2 with trained models: importance weights, and scores of fastText's.

Source: Weber et al. 2024, arXiv:2411.12372; ``app/src/core/quality_signals`` of togethercomputer/RedPajama-Data at
855a8e0, whose names these are. Importance: Xie et al. 2023, arXiv:2302.03169 (DSIR). All others: `redpajama`.
"""

import math
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from toolkit import Batch, ConfigError, Document, Example, Model, Tagger, cached
from toolkit.text import Array, FastText, LineTable, Sequences, Words, load_fasttext, natural_logs, np, resolve

DECIMALS = 8
TARGETS = ("books", "openwebtext", "wikipedia")
EPSILON = 1e-8


class Signals(msgspec.Struct, frozen=True):
    """The value of `RedpajamaModels`.

    Attributes:
        rps_doc_books_importance: Log-likelihood ratio of the text's features between books and the source; null without
            such counts.
        rps_doc_books_importance_length_correction: The same for books, corrected by the likelihood of the text's
            length.
        rps_doc_openwebtext_importance: Log-likelihood ratio of the text's features between OpenWebText and the source;
            null without such counts.
        rps_doc_openwebtext_importance_length_correction: The same for OpenWebText, corrected by the likelihood of the
            text's length.
        rps_doc_wikipedia_importance: Log-likelihood ratio of the text's features between Wikipedia and the source; null
            without such counts.
        rps_doc_wikipedia_importance_length_correction: The same for Wikipedia, corrected by the likelihood of the
            text's length.
        rps_doc_ml_wikiref_score: Probability that the page is like one that Wikipedia refers to; null without the
            model.
        rps_doc_ml_palm_score: Probability that the page is like Wikipedia, OpenWebText or books, as for PaLM; null
            without the model.
        rps_doc_ml_wikipedia_score: Probability that the page is like an article of Wikipedia; null without the model.
    """

    rps_doc_books_importance: float | None
    rps_doc_books_importance_length_correction: float | None
    rps_doc_openwebtext_importance: float | None
    rps_doc_openwebtext_importance_length_correction: float | None
    rps_doc_wikipedia_importance: float | None
    rps_doc_wikipedia_importance_length_correction: float | None
    rps_doc_ml_wikiref_score: float | None
    rps_doc_ml_palm_score: float | None
    rps_doc_ml_wikipedia_score: float | None


NOTHING = dict.fromkeys(Signals.__struct_fields__)


class RedpajamaModels(Tagger):
    r"""The similarity of a document to target corpora, by each given model; rounded to 8 decimals.

    - ``rps_doc_books_importance``, ``…_openwebtext_…``, ``…_wikipedia_…``: the sum, over matches of ``\w+|[^\w\s]+``
      and over pairs of them, of ln(share of their bucket in the target + 1e-8) - ln(share in the source + 1e-8).
      ``…_length_correction``: the same plus ln(Poisson(code points; target) + 1e-8) - ln(Poisson(code points; source) +
      1e-8). Null without `importance`, and for an empty text.
    - ``rps_doc_ml_wikiref_score``, ``…_palm_…``, ``…_wikipedia_…``: the probability of the best label (if this is
      ``cc``: 1 minus its probability) for the text, with spaces in place of line ends. Null without the model, and for
      a text without words.

    An `importance` file has arrays of equal length, ``source`` and any of ``books``, ``openwebtext``, ``wikipedia``:
    how often each bucket occurs. It may also have ``source_length``, ``books_length`` … for all of them: the mean
    number of code points of a text. `feature_counts` makes such files. The tagger cannot use files that RedPajama made,
    because their buckets are those of Python's ``hash``.

    Attributes:
        importance: an .npz file of feature counts
        wikiref_model: fastText, for `ml_wikiref_score`
        palm_model: fastText, for `ml_palm_score`
        wikipedia_model: fastText, for `ml_wikipedia_score`
    """

    EXAMPLES = (Example("", NOTHING), Example("Say it once.", NOTHING), Example("Der Größe wegen…", NOTHING))

    importance: Model | None = None
    wikiref_model: FastText | None = None
    palm_model: FastText | None = None
    wikipedia_model: FastText | None = None

    def tag_batch(self, documents: Sequence[Document]) -> list[Signals]:
        batch = Batch.of(documents)
        texts = [document.text for document in batch]
        columns = {
            **_importance(self.importance, batch.words("word_punct"), texts),
            "rps_doc_ml_wikiref_score": _scores(self.wikiref_model, texts),
            "rps_doc_ml_palm_score": _scores(self.palm_model, texts),
            "rps_doc_ml_wikipedia_score": _scores(self.wikipedia_model, texts),
        }
        return list(map(Signals, *(columns[name] for name in Signals.__struct_fields__)))


def _scores(model: str | None, texts: Sequence[str]) -> list[float | None]:
    if model is None:
        return [None] * len(texts)
    predictions = load_fasttext(model).predict([" ".join(text.splitlines()).strip() for text in texts])
    probs = [(best[0].label, float(np.float32(best[0].prob))) if best else None for best in predictions]
    return [round(1 - of[1] if of[0] == "cc" else of[1], DECIMALS) if of else None for of in probs]


def feature_counts(texts: Iterable[str], buckets: int = 10_000) -> tuple[Array, float]:
    """How often raw words, and pairs of them, fall into each bucket; and the mean code points of a text.

    Args:
        texts: Texts of the source, or of a target; held in memory.
        buckets: Buckets of an `importance` file; all its counts have as many.
    """
    words = Sequences.of(Words.of(LineTable.of(every := list(texts)), "word_punct"))
    counts = np.zeros(buckets, dtype=np.int64)
    for features in (words, words.joined(2)):
        counts += np.bincount(_buckets(features.hashes, buckets), minlength=buckets)
    return counts, sum(map(len, every)) / max(len(every), 1)


def _buckets(hashes: Array, buckets: int) -> Array:
    return cast("Array", (hashes % np.uint64(buckets)).astype(np.int64))


def _importance(path: str | None, raw: Words, texts: Sequence[str]) -> dict[str, Sequence[float | None]]:
    counts = _feature_counts(path) if path else {}
    words = Sequences.of(raw)
    features = (words, words.joined(2)) if counts else ()
    columns: dict[str, Sequence[float | None]] = {}
    for target in TARGETS:
        results: list[float | None] = [None] * len(texts)
        corrected = results.copy()
        if target in counts:
            by_target, by_source = (
                natural_logs(counts[name] / counts[name].sum() + EPSILON) for name in (target, "source")
            )
            logs = by_target - by_source
            terms = [logs[_buckets(feature.hashes, len(logs))] for feature in features]
            for i, text in enumerate(texts):
                of_text = [part[slice(*of.bounds[i : i + 2])] for part, of in zip(terms, features, strict=True)]
                score = math.fsum(np.concatenate(of_text).tolist())
                results[i] = round(score, DECIMALS) if text else None
                if text and {f"{target}_length", "source_length"} <= counts.keys():
                    means = (float(counts[f"{name}_length"]) for name in (target, "source"))
                    of_target, of_source = (math.log(_poisson(len(text), mean) + EPSILON) for mean in means)
                    corrected[i] = round(score + of_target - of_source, DECIMALS)
        columns[f"rps_doc_{target}_importance"] = results
        columns[f"rps_doc_{target}_importance_length_correction"] = corrected
    return columns


def _poisson(n: int, mean: float) -> float:
    if mean <= 0:
        return 0.0
    return math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))


@cached(4)
def _feature_counts(path: str) -> dict[str, Array]:
    try:
        with np.load(resolve(path), allow_pickle=False) as arrays:
            results = {name: arrays[name] for name in arrays.files}
        sizes = {results[name].shape for name in ("source", *TARGETS) if name in results}
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise ConfigError(f"{path}: expected an .npz file of feature counts, got: {error}") from None
    if (
        "source" not in results
        or len(sizes) != 1
        or not all(results[name].sum() > 0 for name in {"source", *TARGETS} & {*results})
    ):
        raise ConfigError(
            f"{path}: expected counts, in arrays of one length, with `source` among them, got {sorted(results)}"
        )
    return results
