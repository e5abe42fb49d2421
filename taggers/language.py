"""The language of a document, from those of its lines.

Source: ungoliant 1.1 to 2.0 (OSCAR 22.01, 23.01), ``pipelines/oscardoc/pipeline.rs`` (the vote by bytes) and
``identifiers/multilingual.rs`` (``StrictMultilingual``). OSCAR breaks ties by the order of a hash map; here the
alphabetically first label wins.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, cast

import msgspec

from toolkit import Attribute, Batch, Document, Example, Prediction, Tagger
from toolkit.text import Array, Float32s, Int64s, LinePredictions, LineTable, compiled, np, shortest_float32


class Share(msgspec.Struct, frozen=True):
    """The share of a language in a document: lines, bytes without line ends, bytes x probability / all bytes.

    Attributes:
        lines: Lines of the language.
        bytes: Bytes (UTF-8) of the lines of the language.
        prob: Mean probability of the lines of the language, weighted by their bytes.
    """

    lines: int
    bytes: int
    prob: float


class Vote(msgspec.Struct, frozen=True):
    """The value of `Language`; `shares` is by label, the label with most bytes first.

    Attributes:
        label: The language with most bytes, or `multi` for a multilingual document; null if most bytes have no
            language.
        prob: Certainty of the label, from 0 to 1.
        multilingual: True if the document is multilingual.
        shares: Share of each language in the identified lines.
    """

    label: str | None
    prob: float
    multilingual: bool
    shares: dict[str, Share]


EN, FR = {"label": "en", "prob": 0.9}, {"label": "fr", "prob": 1.0}


class Language(Tagger):
    r"""The language with most bytes of the lines, and its certainty.

    - ``label``: ``multi`` for a multilingual document, else the language with most UTF-8 bytes (the alphabetically
      first of several), null if the lines without language have more bytes than any.
    - ``prob``: 0.5 for ``multi``, else f32(sum of f32(bytes) x f32(prob)) / f32(all bytes) over the winner's lines, in
      their order; a line without language counts with probability 1 for the null label. 0 for a text without bytes.
      NUL characters are no bytes here.
    - ``multilingual``: with n lines in k languages (lines without language count as one more key, if there are any):
      n >= `min_lines`; more than `min_share` of the lines have a probability of at least `min_prob`;
      2 <= k <= `max_languages`; every language has at least t = floor(n / keys) lines, the lines without language are
      at most t.

    Attributes:
        lines: the set whose `line_language` is read
        min_lines: a multilingual document has at least this many lines
        min_share: a multilingual document has a larger share of sure lines than this
        min_prob: a line with at least this probability counts as sure
        max_languages: a multilingual document has at most this many languages
    """

    VERSION = "2"

    EXAMPLES = (
        Example("", Vote(None, 0.0, False, {}), attributes={"lines": []}),
        Example(
            "one line\nanother\nune",
            Vote("en", 0.75, False, {"en": Share(2, 15, 0.75), "fr": Share(1, 3, 0.16666667)}),
            attributes={"lines": [EN, EN, FR]},
        ),
        Example("été\n???", Vote("fr", 0.625, False, {"fr": Share(1, 5, 0.625)}), attributes={"lines": [FR, None]}),
        Example(
            "ab\n\0\0\0c",
            Vote("en", 0.59999996, False, {"en": Share(1, 2, 0.59999996), "fr": Share(1, 1, 0.33333334)}),
            attributes={"lines": [EN, FR]},
        ),
        Example(
            "a\n" * 10,
            Vote("multi", 0.5, True, {"en": Share(5, 5, 0.45), "fr": Share(5, 5, 0.5)}),
            attributes={"lines": [EN] * 5 + [FR] * 5},
        ),
    )

    lines: Annotated[str, Attribute("line_language", list[Prediction | None])]
    min_lines: Annotated[int, msgspec.Meta(ge=1)] = 10
    min_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8
    min_prob: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8
    max_languages: Annotated[int, msgspec.Meta(ge=2)] = 5

    def tag_batch(self, documents: Sequence[Document]) -> list[Vote]:
        batch = Batch.of(documents)
        lines, predictions = batch.lines, LinePredictions.of(batch.attribute(self.lines))
        counts = np.diff(lines.bounds).tolist()
        for expected, got in zip(counts, np.diff(predictions.bounds).tolist(), strict=True):
            if expected != got:
                raise ValueError(f"expected a value for each of {expected} lines, got {got}")
        keys, of_lines, of_bytes = np.zeros((3, len(predictions.numbers)), dtype=np.int64)
        added = _Added(
            keys=keys,
            lines=of_lines,
            bytes=of_bytes,
            shares=np.zeros(len(predictions.numbers), dtype=np.float32),
            ends=np.zeros(len(lines.bounds), dtype=np.int64),
        )
        place = np.full(len(predictions.labels) + 1, -1, dtype=np.int64)
        _add_up(
            predictions.numbers,
            predictions.probs,
            _sizes(lines),
            lines.bounds,
            len(batch),
            len(predictions.labels),
            place,
            added,
        )
        n = added.ends[-1]
        item = map(Share, added.lines[:n].tolist(), added.bytes[:n].tolist(), shortest_float32(added.shares[:n]))
        names = [*predictions.labels, None]
        shares = [(names[key], share) for key, share in zip(added.keys[:n].tolist(), item, strict=True)]
        sure = lines.sums((predictions.numbers >= 0) & (predictions.probs >= _least_float32(self.min_prob))).tolist()
        bounds = zip(added.ends.tolist(), added.ends[1:].tolist(), strict=False)
        return [self._vote(shares[a:b], *of) for (a, b), *of in zip(bounds, counts, sure, strict=True)]

    def _vote(self, shares: list[tuple[str | None, Share]], n: int, sure: int) -> Vote:
        shares.sort(key=_most_bytes)
        ranked = {label: share for label, share in shares if label is not None}
        if self._multilingual(shares, len(ranked), n, sure):
            return Vote("multi", 0.5, True, ranked)
        winner, prob = (shares[0][0], shares[0][1].prob) if shares else (None, 0.0)
        return Vote(winner, prob, False, ranked)

    def _multilingual(self, shares: list[tuple[str | None, Share]], languages: int, n: int, sure: int) -> bool:
        if n < self.min_lines or not 2 <= languages <= self.max_languages or sure / n <= self.min_share:
            return False
        t = n // len(shares)
        return all(share.lines <= t if label is None else share.lines >= t for label, share in shares)


def _sizes(lines: LineTable) -> Array:
    """Return each line's UTF-8 length without NUL characters.

    The original takes these out before it counts.
    """
    if lines.utf8.all():
        return lines.bytes
    before = np.cumsum(lines.utf8 == 0)
    return cast("Array", lines.bytes - (before[lines.ends - 1] - before[lines.starts - 1]))


def _most_bytes(item: tuple[str | None, Share]) -> tuple[int, bool, str]:
    """Return the place in the order of shares; no language comes after languages."""
    label, share = item
    return -share.bytes, label is None, label or ""


def _least_float32(number: float) -> "np.float32":
    """Return the least float32 with a shortest text not below a number."""
    near = np.float32(number)
    return near if shortest_float32([near])[0] >= number else np.nextafter(near, np.float32(np.inf))


class _Added(NamedTuple):
    """Shares of labels, one document behind the other.

    Attributes:
        keys: the labels of each document.
        lines: Lines of each.
        bytes: Bytes of these.
        shares: Shares of the document.
        ends: (documents + 1) the first label of each document, and the end of all.
    """

    keys: Int64s
    lines: Int64s
    bytes: Int64s
    shares: Float32s
    ends: Int64s


@compiled("int32* float32* int64* int64* int64 int64 int64*", _Added)
def _add_up(
    numbers: Array, probs: Array, sizes: Array, bounds: Array, documents: int, null: int, place: Array, added: _Added
) -> None:
    """Add up the lines of each label, in float32 and in order.

    So does the original.

    Args:
        numbers: label of each line, -1 for none.
        probs: Probs of each line.
        sizes: bytes of each line.
        bounds: the first line of each document, and the end.
        documents: Number of documents.
        null: the number that lines without label get.
        place: -1 for each number; room to work in.
        added: Result.
    """
    keys, n_lines, n_bytes, shares, ends = added
    at = 0
    for i in range(documents):
        begin, total = at, 0
        for line in range(bounds[i], bounds[i + 1]):
            number = numbers[line] if numbers[line] >= 0 else null
            prob = probs[line] if numbers[line] >= 0 else np.float32(1)
            if place[number] < begin:
                place[number] = at
                keys[at] = number
                at += 1
            j = place[number]
            n_lines[j] += 1
            n_bytes[j] += sizes[line]
            shares[j] += np.float32(sizes[line]) * prob
            total += sizes[line]
        for j in range(begin, at):
            shares[j] = shares[j] / np.float32(total) if total else np.float32(0)
        ends[i + 1] = at
