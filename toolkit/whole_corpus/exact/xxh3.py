"""xxh3 of 128 bits in compiled code: the lines of a buffer at once. Used by its neighbours alone.

Source: XXH3_128bits of xxHash 0.8 (github.com/Cyan4973/xxHash, ``xxhash.h``; specification ``doc/xxhash_spec.md``), the
default secret, no seed.
"""

import functools
from typing import Any

import numba

from toolkit.text.kernels.intrinsics import eight_bytes, high_product
from toolkit.whole_corpus.exact.pieces import Texts

_compiled, _inline = functools.partial(numba.njit), functools.partial(numba.njit, inline="always")
_i64, _u8, _u64 = numba.int64, numba.uint8, numba.uint64

_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX1, _MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25


@_compiled
def _avalanche(hash_: Any) -> Any:
    hash_ = (hash_ ^ (hash_ >> _u64(37))) * _u64(_MX1)
    return hash_ ^ (hash_ >> _u64(32))


@_compiled
def _avalanche_64(hash_: Any) -> Any:
    """Return XXH64's."""
    hash_ = (hash_ ^ (hash_ >> _u64(33))) * _u64(_P2)
    hash_ = (hash_ ^ (hash_ >> _u64(29))) * _u64(_P3)
    return hash_ ^ (hash_ >> _u64(32))


@_compiled
def _swapped(word: Any) -> Any:
    """Return a 64-bit number with its bytes in reverse order."""
    word = ((word & _u64(0x00FF00FF00FF00FF)) << _u64(8)) | ((word >> _u64(8)) & _u64(0x00FF00FF00FF00FF))
    word = ((word & _u64(0x0000FFFF0000FFFF)) << _u64(16)) | ((word >> _u64(16)) & _u64(0x0000FFFF0000FFFF))
    return (word << _u64(32)) | (word >> _u64(32))


@_compiled
def _four(utf8: Any, at: Any) -> Any:
    return eight_bytes(utf8, at) & _u64(0xFFFFFFFF)


@_compiled
def _mix(utf8: Any, at: Any, secret: Any, key: Any) -> Any:
    a = eight_bytes(utf8, at) ^ eight_bytes(secret, key)
    b = eight_bytes(utf8, at + 8) ^ eight_bytes(secret, key + 8)
    return (a * b) ^ high_product(a, b)


@_compiled
def _sum(utf8: Any, at: Any) -> Any:
    return eight_bytes(utf8, at) + eight_bytes(utf8, at + 8)


@_compiled
def _short(utf8: Any, at: Any, size: Any, secret: Any) -> Any:
    """Return the hash of up to 16 bytes."""
    if size > 8:
        first, last = eight_bytes(utf8, at), eight_bytes(utf8, at + size - 8)
        flip = eight_bytes(secret, _i64(32)) ^ eight_bytes(secret, _i64(40))
        mixed = first ^ last ^ flip
        low, high = mixed * _u64(_P1), high_product(mixed, _u64(_P1))
        low += _u64(size - 1) << _u64(54)
        last ^= eight_bytes(secret, _i64(48)) ^ eight_bytes(secret, _i64(56))
        high += last + (last & _u64(0xFFFFFFFF)) * _u64(_P32_2 - 1)
        low ^= _swapped(high)
        new, more = low * _u64(_P2), high_product(low, _u64(_P2))
        return _avalanche(new), _avalanche(more + high * _u64(_P2))
    if size >= 4:
        word = _four(utf8, at) + (_four(utf8, at + size - 4) << _u64(32))
        keyed = word ^ eight_bytes(secret, _i64(16)) ^ eight_bytes(secret, _i64(24))
        by = _u64(_P1) + (_u64(size) << _u64(2))
        low, high = keyed * by, high_product(keyed, by)
        high += low << _u64(1)
        low ^= high >> _u64(3)
        low = (low ^ (low >> _u64(35))) * _u64(_MX2)
        return low ^ (low >> _u64(28)), _avalanche(high)
    first, middle, last = _u64(_u8(utf8[at])), _u64(_u8(utf8[at + (size >> 1)])), _u64(_u8(utf8[at + size - 1]))
    low = (first << _u64(16)) | (middle << _u64(24)) | last | (_u64(size) << _u64(8))
    swapped = _swapped(low) >> _u64(32)
    high = ((swapped << _u64(13)) | (swapped >> _u64(19))) & _u64(0xFFFFFFFF)
    low ^= _four(secret, _i64(0)) ^ _four(secret, _i64(4))
    high ^= _four(secret, _i64(8)) ^ _four(secret, _i64(12))
    return _avalanche_64(low), _avalanche_64(high)


@_compiled
def _ended(low: Any, high: Any, size: Any) -> Any:
    first = low + high
    second = low * _u64(_P1) + high * _u64(_P4) + _u64(size) * _u64(_P2)
    return _avalanche(first), _u64(0) - _avalanche(second)


@_compiled
def _medium(utf8: Any, at: Any, size: Any, secret: Any) -> Any:
    """Return the hash of 17 to 128 bytes."""
    low, high = _u64(size) * _u64(_P1), _u64(0)
    for i in range((size - 1) // 32, -1, -1):
        one, two = at + 16 * i, at + size - 16 * (i + 1)
        low = (low + _mix(utf8, one, secret, _i64(32 * i))) ^ _sum(utf8, two)
        high = (high + _mix(utf8, two, secret, _i64(32 * i + 16))) ^ _sum(utf8, one)
    return _ended(low, high, size)


@_compiled
def _longer(utf8: Any, at: Any, size: Any, secret: Any) -> Any:
    """Return the hash of 129 to 240 bytes."""
    low, high = _u64(size) * _u64(_P1), _u64(0)
    for i in range(size // 32):
        if i == 4:
            low, high = _avalanche(low), _avalanche(high)
        key = _i64(32 * i if i < 4 else 3 + 32 * (i - 4))
        one = at + 32 * i
        low = (low + _mix(utf8, one, secret, key)) ^ _sum(utf8, one + 16)
        high = (high + _mix(utf8, one + 16, secret, key + 16)) ^ _sum(utf8, one)
    if size < 160:
        low, high = _avalanche(low), _avalanche(high)
    one, two = at + size - 16, at + size - 32
    low = (low + _mix(utf8, one, secret, _i64(103))) ^ _sum(utf8, two)
    high = (high + _mix(utf8, two, secret, _i64(119))) ^ _sum(utf8, one)
    return _ended(low, high, size)


_STRIPE, _STRIPES = 64, 16
"""Bytes that are taken at once, and how often until the sums are scrambled."""
_SECRET = 192
"""Bytes of the secret."""


@_inline
def _lane(utf8: Any, at: Any, secret: Any, key: Any, mine: Any, other: Any) -> Any:
    """Mix eight bytes into a sum, and add them to its neighbour."""
    word = eight_bytes(utf8, at)
    keyed = word ^ eight_bytes(secret, key)
    return mine + (keyed & _u64(0xFFFFFFFF)) * (keyed >> _u64(32)), other + word


@_inline
def _scrambled(sum_: Any, secret: Any, key: Any) -> Any:
    return (sum_ ^ (sum_ >> _u64(47)) ^ eight_bytes(secret, key)) * _u64(_P32_1)


@_inline
def _folded(one: Any, two: Any, secret: Any, key: Any) -> Any:
    one, two = one ^ eight_bytes(secret, key), two ^ eight_bytes(secret, key + 8)
    return (one * two) ^ high_product(one, two)


@_inline
def _merged(sums: Any, secret: Any, key: Any, first: Any) -> Any:
    a, b, c, d, e, f, g, h = sums
    first += _folded(a, b, secret, key) + _folded(c, d, secret, key + 16)
    return _avalanche(first + _folded(e, f, secret, key + 32) + _folded(g, h, secret, key + 48))


@_compiled
def _longest(utf8: Any, at: Any, size: Any, secret: Any) -> Any:
    """Return the hash of more than 240 bytes."""
    a, b, c, d = _u64(_P32_3), _u64(_P1), _u64(_P2), _u64(_P3)
    e, f, g, h = _u64(_P4), _u64(_P32_2), _u64(_P5), _u64(_P32_1)
    whole = (size - 1) // _STRIPE
    for stripe in range(whole + 1):
        place, key = at + _STRIPE * stripe, _i64(8 * (stripe % _STRIPES))
        if stripe == whole:  # the last one ends with the text
            place, key = at + size - _STRIPE, _i64(_SECRET - _STRIPE - 7)
        a, b = _lane(utf8, place, secret, key, a, b)
        b, a = _lane(utf8, place + 8, secret, key + 8, b, a)
        c, d = _lane(utf8, place + 16, secret, key + 16, c, d)
        d, c = _lane(utf8, place + 24, secret, key + 24, d, c)
        e, f = _lane(utf8, place + 32, secret, key + 32, e, f)
        f, e = _lane(utf8, place + 40, secret, key + 40, f, e)
        g, h = _lane(utf8, place + 48, secret, key + 48, g, h)
        h, g = _lane(utf8, place + 56, secret, key + 56, h, g)
        if stripe < whole and stripe % _STRIPES == _STRIPES - 1:
            key = _i64(_SECRET - _STRIPE)
            a, b = _scrambled(a, secret, key), _scrambled(b, secret, key + 8)
            c, d = _scrambled(c, secret, key + 16), _scrambled(d, secret, key + 24)
            e, f = _scrambled(e, secret, key + 32), _scrambled(f, secret, key + 40)
            g, h = _scrambled(g, secret, key + 48), _scrambled(h, secret, key + 56)
    sums = (a, b, c, d, e, f, g, h)
    low = _merged(sums, secret, _i64(11), _u64(size) * _u64(_P1))
    return low, _merged(sums, secret, _i64(_SECRET - _STRIPE - 11), ~(_u64(size) * _u64(_P2)))


def hashes(texts: Texts, secret: Any, result: Any) -> None:
    """Write the hash of each text, two numbers: its upper half, and its lower one."""
    for i in range(texts.items):
        at, size = texts.starts[i], texts.ends[i] - texts.starts[i]
        low, high = _u64(0), _u64(0)
        if 0 < size <= 16:
            low, high = _short(texts.utf8, at, size, secret)
        elif 16 < size <= 128:
            low, high = _medium(texts.utf8, at, size, secret)
        elif 128 < size <= 240:
            low, high = _longer(texts.utf8, at, size, secret)
        elif size > 240:
            low, high = _longest(texts.utf8, at, size, secret)
        result[2 * i], result[2 * i + 1] = high, low
