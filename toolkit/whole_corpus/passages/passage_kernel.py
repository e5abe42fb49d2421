"""Stretches of texts, and equal passages, in compiled code. Used by its neighbours alone."""

import functools
from typing import Any

import numba

from toolkit.text.kernels.intrinsics import high_product
from toolkit.text.kernels.mixing import mixed
from toolkit.whole_corpus.exact.pieces import Texts
from toolkit.whole_corpus.passages.chunks import Cut, Places, StretchBuffers
from toolkit.whole_corpus.passages.comparison import Compared, Spans

_inline = functools.partial(numba.njit, inline="always")
_u8, _u32, _i64, _u64 = numba.uint8, numba.uint32, numba.int64, numba.uint64

_FACTOR = 0x9E3779B97F4A7C15
_BASE = 0x0B57AB1E5EED1E55  # below the prime
_PRIME = (1 << 61) - 1


@_inline
def _begins(utf8: Any, at: Any) -> Any:
    """Return True if a character begins at a byte."""
    return (_u8(utf8[at]) & _u8(0xC0)) != _u8(0x80)


@_inline
def _least(ring: Any, oldest: Any, size: Any) -> Any:
    """Return the least number's distance from the oldest in a ring; of equal ones, the last."""
    result, at = _i64(0), oldest
    least = ring[oldest]
    for i in range(1, size):
        at = at + 1 if at + 1 < size else _i64(0)
        if ring[at] <= least:
            result, least = _i64(i), ring[at]
    return result


def stretches(texts: Texts, cut: Cut, ring: Any, result: StretchBuffers, room: Any) -> None:
    """Find the stretches of texts (see `toolkit.whole_corpus.passages.chunks`).

    Args:
        texts: Texts in one buffer.
        cut: Parameters of passages.
        ring: uint64 (`cut.runs`), to work in.
        result: filled, as far as there is room; its bounds say how many there are.
        room: Capacity of the result.
    """
    utf8, runs, n = texts.utf8, cut.runs, _i64(0)
    size = cut.length - runs + 1
    power = _u64(1)
    for _ in range(size):
        power *= _u64(_FACTOR)
    for text in range(texts.items):
        result.bounds[text] = n
        begin, end = texts.starts[text], texts.ends[text]
        if end - begin < cut.length:
            continue
        hash_, least = _u64(0), _u64(0)
        best, anchor = _i64(-1), _i64(-1)
        slot = _i64(0)
        for i in range(begin, end):
            hash_ = hash_ * _u64(_FACTOR) + _u64(_u8(utf8[i]))
            run = i - begin - size + 1
            if run > 0:
                hash_ -= _u64(_u8(utf8[i - size])) * power
            if run < 0:
                continue
            value = mixed(hash_)
            ring[slot] = value
            slot = slot + 1 if slot + 1 < runs else _i64(0)
            if best < 0 or value <= least:
                best, least = run, value
            elif best <= run - runs:  # it is in this passage no longer; what is oldest in the ring comes next
                best = run - runs + 1 + _least(ring, slot, runs)
                least = ring[(slot + best - run + runs - 1) % runs]
            if run < runs - 1:
                continue
            if best != anchor:
                anchor = best
                if n < room:
                    result.anchors[n], result.passages[n] = mixed(least), 0  # least ones are small
                n += 1
            result.passages[min(n, room) - 1] += _u32(1)
    result.bounds[texts.items] = n


def places(texts: Texts, cut: Cut, result: StretchBuffers, where: Places) -> None:
    """Find the code points of each stretch, and its cut characters."""
    utf8 = texts.utf8
    for text in range(texts.items):
        first, behind, last = texts.starts[text], texts.starts[text], texts.ends[text]
        front, back = _i64(0), _i64(0)  # characters that begin before `first`, and before `behind`
        at = first
        for i in range(result.bounds[text], result.bounds[text + 1]):
            end = at + result.passages[i] + cut.length - 1
            while first < at:
                front += _begins(utf8, first)
                first += 1
            while behind < end:
                back += _begins(utf8, behind)
                behind += 1
            skipped = _i64(0)
            while at + skipped < end and not _begins(utf8, at + skipped):
                skipped += 1
            over = _i64(0)
            if end < last and not _begins(utf8, end):
                over = 1
                while not _begins(utf8, end - over):
                    over += 1
            where.starts[i], where.ends[i] = front, back - (over > 0)
            where.skipped[i], where.over[i] = skipped, over
            at += result.passages[i]


def fingerprints(texts: Texts, cut: Cut, high: Any, low: Any) -> None:
    """Find two hashes of each passage of texts: polynomials of its bytes, modulo 2^64 and modulo 2^61 - 1."""
    utf8, length, n = texts.utf8, cut.length, _i64(0)
    power, other = _u64(1), _u64(1)
    for _ in range(length):
        power *= _u64(_FACTOR)
        other = _product(other, _u64(_BASE))
    for text in range(texts.items):
        begin, end = texts.starts[text], texts.ends[text]
        a, b = _u64(0), _u64(0)
        for i in range(begin, end):
            new = _u64(_u8(utf8[i]))
            a = a * _u64(_FACTOR) + new
            b = _product(b, _u64(_BASE)) + new
            if i - begin >= length:
                old = _u64(_u8(utf8[i - length]))
                a -= old * power
                b += _u64(2 * _PRIME) - _product(other, old)
            b = (b & _u64(_PRIME)) + (b >> _u64(61))
            if b >= _u64(_PRIME):
                b -= _u64(_PRIME)
            if i - begin >= length - 1:
                high[n], low[n] = mixed(a), mixed(b)
                n += 1


@_inline
def _product(a: Any, b: Any) -> Any:
    """Return the product of two numbers modulo 2^61 - 1, unreduced."""
    low, high = a * b, high_product(a, b)
    result = (low & _u64(_PRIME)) + ((low >> _u64(61)) | (high << _u64(3)))
    return (result & _u64(_PRIME)) + (result >> _u64(61))


def spans(texts: Texts, cut: Cut, compared: Compared, spans: Spans) -> None:
    """Find spans of whole characters in repeated passages: spans of each stretch, in order.

    Args:
        texts: Texts of the stretches.
        cut: Parameters of passages.
        compared: their passages.
        spans: Result.
    """
    utf8, passage, n = texts.utf8, _i64(0), _i64(0)
    for stretch in range(texts.items):
        begin, end = texts.starts[stretch], texts.ends[stretch]
        first, behind = begin, begin
        front = back = _i64(compared.starts[stretch])  # of the first character that begins at `first`, or later
        for i in range(begin, end - cut.length + 1):
            here = compared.is_repeat[passage] != 0
            if here and (i == begin or compared.is_repeat[passage - 1] == 0):
                while first < i:
                    front += _begins(utf8, first)
                    first += 1
                skipped = _i64(0)
                while i + skipped < end and not _begins(utf8, i + skipped):
                    skipped += 1
                spans.stretches[n], spans.begins[n], spans.starts[n] = stretch, i + skipped - begin, front
            passage += 1
            if here and i == end - cut.length:
                spans.behinds[n], spans.ends[n] = end - compared.over[stretch] - begin, compared.ends[stretch]
                n += 1
            elif here and compared.is_repeat[passage] == 0:
                while behind < i + cut.length:
                    back += _begins(utf8, behind)
                    behind += 1
                over = _i64(0)
                if not _begins(utf8, behind):
                    over = 1
                    while not _begins(utf8, behind - over):
                        over += 1
                spans.behinds[n], spans.ends[n] = behind - over - begin, back - (over > 0)
                n += 1
