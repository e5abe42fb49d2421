"""Numbers as text and as logarithms, the same on every machine."""

from typing import Any, cast

from toolkit.lazy_numpy import np

_FEW = 16  # for fewer numbers, numpy's own formatting is faster than arrays
_PLACES = 12  # decimals that are tried; 10^12 times a number below 1000 is exact enough in float64


def shortest_float32(values: "np.ndarray[Any, Any] | list[Any]") -> list[float]:
    """Return the shortest float for each float32.

    Its text reads back as that float32.

    Source: OSCAR's files, written by Rust's float32 formatting.

    >>> shortest_float32([0.8999999761581421])
    [0.9]
    """
    exact = np.asarray(values, dtype=np.float32)
    if len(exact) < _FEW:
        return [float(str(value)) for value in exact]
    result = exact.astype(np.float64)
    usual = (np.abs(exact) >= 1e-3) & (np.abs(exact) < 1e3)
    rows = np.flatnonzero(usual)
    for places in range(_PLACES, 0, -1):  # what fits in fewer decimals fits in more, too
        scale = 10.0**places
        rounded = np.rint(exact[rows].astype(np.float64) * scale) / scale
        fits = rounded.astype(np.float32) == exact[rows]
        rows = rows[fits]
        result[rows] = rounded[fits]
        if not len(rows):
            break
    for i in np.flatnonzero(~usual):
        result[i] = float(str(exact[i]))
    return result.tolist()  # type: ignore[no-any-return]


_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)


def natural_logs(values: "np.ndarray[Any, Any] | list[Any]") -> "np.ndarray[Any, Any]":
    """Return natural logarithms as float64.

    They are the same on every machine.

    numpy's own differ in the last digit between processors. Each step here is an addition, a multiplication or a
    division, which all processors round alike; the error is less than one unit in the last place.

    Source: fdlibm's ``e_log.c`` (Sun Microsystems 1993).

    >>> natural_logs([1.0, 10.0]).tolist()
    [0.0, 2.302585092994046]
    """
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    is_low = mantissa < 0.7071067811865476
    f = np.where(is_low, 2 * mantissa, mantissa) - 1
    k = exponent - is_low.astype(np.float64)
    s = f / (2 + f)
    z = s * s
    w = z * z
    even = w * (_EVEN[0] + w * (_EVEN[1] + w * _EVEN[2]))
    odd = z * (_ODD[0] + w * (_ODD[1] + w * (_ODD[2] + w * _ODD[3])))
    half = 0.5 * f * f
    return cast("np.ndarray[Any, Any]", k * _LN2_HIGH - ((half - (s * (half + (odd + even)) + k * _LN2_LOW)) - f))
