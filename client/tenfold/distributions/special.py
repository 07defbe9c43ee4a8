"""Functions of the normal and the Laplace distribution: their cumulative forms, logarithms and inverses.

Follows TensorFlow 1.15's python/ops/distributions/special_math.py; the rational approximation of the normal quantile
is that of the Cephes library (ndtri.c).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tenfold as tf

#: Where log_ndtr goes over to the asymptotic series, and to -ndtr(-x).
_LIMITS = {np.float64: (-20.0, 8.0), np.float32: (-10.0, 5.0)}

# Cephes' polynomials of the quantile, highest power first: numerator and denominator for the middle, for
# sqrt(-2 log p) between 2 and 8, and above 8.
_MIDDLE = (
    (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125),
    (
        *(1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937, 200.26021238006066),
        *(-82.03722561683334, 15.90562251262117, -1.1833162112133),
    ),
)
_OUTER = (
    (
        *(4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803),
        *(2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854),
    ),
    (
        *(1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075, 2.504649462083094),
        *(-0.14218292285478779, -0.03808064076915783, -0.0009332594808954574),
    ),
)
_FAR = (
    (
        *(3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908),
        *(0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09),
    ),
    (
        *(1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663),
        *(0.013420400608854318, 0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09),
    ),
)


def _float(x: Any, name: str) -> Any:
    x = tf.convert_to_tensor(x, name=name)
    if x.dtype.as_numpy_dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}.dtype={x.dtype} is not handled, see docstring for supported types.")
    return x


def _ndtr(x: Any) -> Any:
    limit = 0.5 * math.sqrt(2.0)
    w = x * tf.constant(limit, dtype=x.dtype)
    z = tf.abs(w)
    # Far from zero erfc keeps the digits that 1 + erf loses.
    tail = tf.where_v2(tf.greater(w, 0.0), 2.0 - tf.erfc(z), tf.erfc(z))
    return 0.5 * tf.where_v2(tf.less(z, tf.constant(limit, dtype=x.dtype)), 1.0 + tf.erf(w), tail)


def ndtr(x: Any, name: str = "ndtr") -> Any:
    """The cumulative function of the standard normal distribution. Raises TypeError but for float32 and float64."""
    with tf.name_scope(name):
        return _ndtr(_float(x, "x"))


def _ratio(x: Any, parts: tuple[Any, Any]) -> Any:
    """A quotient of two polynomials, highest power first."""
    values = []
    for coefficients in parts:
        value = tf.zeros_like(x)
        for each in coefficients:
            value = value * x + np.array(each, x.dtype.as_numpy_dtype)
        values.append(value)
    return values[0] / values[1]


def ndtri(p: Any, name: str = "ndtri") -> Any:
    """The inverse of ndtr. Raises TypeError but for float32 and float64."""
    with tf.name_scope(name):
        p = _float(p, "p")
        small = math.exp(-2.0)
        lower = tf.where_v2(p > 1.0 - small, 1.0 - p, p)
        # The gradient of what is not taken must be finite.
        lower = tf.where_v2(lower <= 0.0, tf.fill(tf.shape(p), np.array(0.5, p.dtype.as_numpy_dtype)), lower)
        w = lower - 0.5
        square = w**2
        middle = -math.sqrt(2.0 * math.pi) * (w + w * square * _ratio(square, _MIDDLE))
        z = tf.sqrt(-2.0 * tf.log(lower))
        first = z - tf.log(z) / z
        tail = tf.where_v2(z >= 8.0, first - _ratio(1.0 / z, _FAR) / z, first - _ratio(1.0 / z, _OUTER) / z)
        x = tf.where_v2(lower > small, middle, tail)
        x = tf.where_v2(p > 1.0 - small, x, -x)
        endless = tf.fill(tf.shape(p), tf.constant(np.inf, dtype=p.dtype))
        return tf.where_v2(p <= 0.0, -endless, tf.where_v2(p >= 1.0, endless, x))


def erfinv(x: Any, name: str = "erfinv") -> Any:
    """The inverse of the error function. Raises TypeError but for float32 and float64."""
    with tf.name_scope(name):
        return ndtri((_float(x, "x") + 1.0) / 2.0) / np.sqrt(2)


def log_ndtr(x: Any, series_order: int = 3, name: str = "log_ndtr") -> Any:
    """The logarithm of ndtr, by an asymptotic series far below zero.

    Raises TypeError but for float32 and float64 and for an order that is not an integer, ValueError for one not from 0
    to 30.
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        if x.dtype.as_numpy_dtype not in _LIMITS:
            raise TypeError(f"x.dtype={x.dtype} is not supported.")
        lower, upper = (np.array(each, x.dtype.as_numpy_dtype) for each in _LIMITS[x.dtype.as_numpy_dtype])
        between = tf.log(_ndtr(tf.maximum(x, lower)))
        below = _log_ndtr_below(tf.minimum(x, lower), series_order)
        return tf.where_v2(tf.greater(x, upper), -_ndtr(-x), tf.where_v2(tf.greater(x, lower), between, below))


def _log_ndtr_below(x: Any, series_order: int) -> Any:
    square = tf.square(x)
    total, power, factor = tf.ones_like(x), tf.ones_like(x), 1.0
    for n in range(1, series_order + 1):
        # The factors are the double factorials 1, 3, 15, …, with alternating signs.
        factor *= -(2 * n - 1)
        power = power * square
        total = total + np.array(factor, x.dtype.as_numpy_dtype) / power
    return -0.5 * square - tf.log(-x) - 0.5 * math.log(2.0 * math.pi) + tf.log(total)


def log_cdf_laplace(x: Any, name: str = "log_cdf_laplace") -> Any:
    """The logarithm of the cumulative function of the standard Laplace distribution."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        upper = tf.log1p(-0.5 * tf.exp(-tf.abs(x)))
        return tf.where_v2(x < 0.0, x - math.log(2.0), upper)
