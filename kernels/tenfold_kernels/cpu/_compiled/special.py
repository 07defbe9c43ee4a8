"""Scalar bodies of special functions, compiled in double: float results are rounded from it.

digamma by recurrence and an asymptotic series; zeta by Euler–Maclaurin; the incomplete gamma and beta functions by
series and continued fractions, each with a bound on its terms; Bessel functions by their series, far out by Hankel's.
Used by cpu/special.py and cpu/random_gradients.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_TERMS = 2000
_EPSILON = 1e-16
_TINY = 1e-300
#: Where the expansion of Bessel functions for large numbers takes over from their series.
_FAR = 30.0


@inline
def digamma(x):  # type: ignore[no-untyped-def]
    if x <= 0 and x == math.floor(x):
        return math.nan
    below = 0.0
    if x < 0:
        # reflection
        below = -math.pi / math.tan(math.pi * (x - math.floor(x)))
        x = 1 - x
    while x < 10:
        below -= 1 / x
        x += 1
    s = 1 / (x * x)
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * (691 / 32760 - s / 12))))))
    return below + math.log(x) - 0.5 / x - tail


@inline
def zeta(x, q):  # type: ignore[no-untyped-def]
    if x == 1:
        return math.inf
    if x < 1:
        return math.nan
    if q <= 0:
        if q == math.floor(q):
            return math.inf if x % 2 == 0 else math.nan  # of an odd power the sides of the pole differ
        if x != math.floor(x):
            return math.nan
    total = 0.0
    a = q
    for _ in range(20):
        total += a**-x
        a += 1
    # ∫ and the Bernoulli terms
    total += a ** (1 - x) / (x - 1) + 0.5 * a**-x
    rising = x * a ** (-x - 1)
    bernoulli = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
    for k in range(6):
        total += bernoulli[k] * rising
        rising *= (x + 2 * k + 1) * (x + 2 * k + 2) / (a * a)
    return total


@inline
def polygamma(n, x):  # type: ignore[no-untyped-def]
    if n < 0 or n != math.floor(n):
        return math.nan
    if n == 0:
        return digamma(x)
    sign = 1.0 if int(n) % 2 == 1 else -1.0
    return sign * math.exp(math.lgamma(n + 1)) * zeta(n + 1, x)


@inline
def _gamma_series(a, x):  # type: ignore[no-untyped-def]
    term = 1 / a
    total = term
    n = a
    for _ in range(_MOST_TERMS):
        n += 1
        term *= x / n
        total += term
        if term < total * _EPSILON:
            break
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))


@inline
def _gamma_fraction(a, x):  # type: ignore[no-untyped-def]
    b = x + 1 - a
    c = 1 / _TINY
    d = 1 / b
    h = d
    for i in range(1, _MOST_TERMS):
        an = -i * (i - a)
        b += 2
        d = an * d + b
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = b + an / c
        c = c if abs(c) > _TINY else _TINY
        step = d * c
        h *= step
        if abs(step - 1) < _EPSILON:
            break
    return h * math.exp(a * math.log(x) - x - math.lgamma(a))


@inline
def igamma(a, x):  # type: ignore[no-untyped-def]
    if x == 0 and a >= 0:
        return 0.0
    if math.isnan(a) or math.isnan(x) or x < 0 or a <= 0:
        return math.nan
    if math.isinf(a):
        return math.nan if math.isinf(x) else 0.0
    if math.isinf(x):
        return 1.0
    return _gamma_series(a, x) if x < a + 1 else 1 - _gamma_fraction(a, x)


@inline
def igammac(a, x):  # type: ignore[no-untyped-def]
    if math.isnan(a) or math.isnan(x) or x < 0 or a <= 0:
        return math.nan
    if x == 0:
        return 1.0
    if math.isinf(a):
        return math.nan if math.isinf(x) else 1.0
    if math.isinf(x):
        return 0.0
    return 1 - _gamma_series(a, x) if x < a + 1 else _gamma_fraction(a, x)


@inline
def igamma_grad_a(a, x):  # type: ignore[no-untyped-def]
    # d/da of Σ xⁿ⁺ᵃ e⁻ˣ / Γ(a+n+1), term by term.
    if math.isnan(a) or math.isnan(x) or x < 0 or a <= 0:
        return math.nan
    if x == 0:
        return 0.0
    log_x = math.log(x)
    term = math.exp(a * log_x - x - math.lgamma(a + 1))
    slope = log_x - digamma(a + 1)
    total = term * slope
    n = a
    for _ in range(_MOST_TERMS):
        n += 1
        term *= x / n
        slope -= 1 / n
        total += term * slope
        if n > x and term * (1 + abs(slope)) < abs(total) * _EPSILON + _TINY:
            break
    return total


@inline
def _beta_fraction(a, b, x):  # type: ignore[no-untyped-def]
    c = 1.0
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    h = d
    for m in range(1, _MOST_TERMS):
        for odd in range(2):
            if odd == 0:
                an = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
            else:
                an = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            d = 1 + an * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + an / c
            c = c if abs(c) > _TINY else _TINY
            step = d * c
            h *= step
        if abs(step - 1) < _EPSILON:
            break
    return h


@inline
def betainc(a, b, x):  # type: ignore[no-untyped-def]
    if math.isnan(a) or math.isnan(b) or math.isnan(x) or a <= 0 or b <= 0 or x < 0 or x > 1:
        return math.nan
    if x == 0 or x == 1:
        return x
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


@inline
def erf(x):  # type: ignore[no-untyped-def]
    return math.erf(x)


@inline
def erfinv(x):  # type: ignore[no-untyped-def]
    # A rational start (Winitzki), then Newton with erfc where the tail is thin.
    if x <= -1 or x >= 1 or math.isnan(x):
        return math.inf if x == 1 else -math.inf if x == -1 else math.nan
    if x == 0:
        return x
    size = abs(x)
    log = math.log1p(-size * size)
    half = 2 / (math.pi * 0.147) + log / 2
    y = math.sqrt(math.sqrt(half * half - log / 0.147) - half)
    for _ in range(4):
        error = math.erf(y) - size if size < 0.5 else (1 - size) - math.erfc(y)
        step = error / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        # Halley's correction makes it cubic.
        y -= step / (1 + y * step)
    return math.copysign(y, x)


@inline
def ndtri(p):  # type: ignore[no-untyped-def]
    if p == 0:
        return -math.inf
    if p == 1:
        return math.inf
    if not 0 < p < 1:
        return math.nan
    if p > 0.25:
        return math.sqrt(2.0) * erfinv(2 * p - 1)
    # The tail: Φ(y) = p by Newton on the logarithm, which is nearly straight.
    t = math.sqrt(-2 * math.log(p))
    y = -(t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3))
    for _ in range(5):
        phi = 0.5 * math.erfc(-y / math.sqrt(2.0))
        density = math.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)
        y -= (math.log(phi) - math.log(p)) * phi / density
    return y


@inline
def _bessel_series(quarter, order):  # type: ignore[no-untyped-def]
    # Σ (x²/4)ᵏ / (k! (k + order)!), all terms of one sign
    term = total = 1.0
    for k in range(1, _MOST_TERMS):
        term *= quarter / (k * (k + order))
        total += term
        if term < total * _EPSILON:
            break
    return total


@inline
def _bessel_far(size, order):  # type: ignore[no-untyped-def]
    # Hankel's expansion of exp(−x) I(x), until its terms are nothing; beyond _FAR they are before they grow again.
    term = total = 1.0
    for k in range(1, 30):
        term *= ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * size)
        total += term
        if abs(term) < _EPSILON:
            break
    return total / math.sqrt(2 * math.pi * size)


@inline
def bessel_i0e(x):  # type: ignore[no-untyped-def]
    size = abs(x)
    if size > _FAR:
        return _bessel_far(size, 0)
    return math.exp(-size) * _bessel_series(size * size / 4, 0)


@inline
def bessel_i1e(x):  # type: ignore[no-untyped-def]
    size = abs(x)
    value = _bessel_far(size, 1) if size > _FAR else math.exp(-size) * size / 2 * _bessel_series(size * size / 4, 1)
    return math.copysign(value, x)


@inline
def gamma_sample_slope(a, x):  # type: ignore[no-untyped-def]
    # How a sample of the gamma distribution moves with its parameter: its rank, igamma(a, x), stays.
    if x == 0:
        return 0.0
    density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    return -igamma_grad_a(a, x) / density


def _bessel_i0(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = bessel_i0e(x[i]) * math.exp(abs(x[i]))


def _bessel_i0e(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = bessel_i0e(x[i])


def _bessel_i1(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = bessel_i1e(x[i]) * math.exp(abs(x[i]))


def _bessel_i1e(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = bessel_i1e(x[i])


def _gamma_sample_slope(a, x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = gamma_sample_slope(a[i], x[i])


def _digamma(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = digamma(x[i])


def _erf(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = erf(x[i])


def _erfinv(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = erfinv(x[i])


def _ndtri(x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = ndtri(x[i])


def _igamma(a, x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = igamma(a[i], x[i])


def _igammac(a, x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = igammac(a[i], x[i])


def _igamma_grad_a(a, x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = igamma_grad_a(a[i], x[i])


def _zeta(x, q, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = zeta(x[i], q[i])


def _polygamma(n, x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = polygamma(n[i], x[i])


def _betainc(a, b, x, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = betainc(a[i], b[i], x[i])


_LOOPS: dict[str, tuple[Any, int]] = {
    "bessel_i0": (_bessel_i0, 1),
    "bessel_i0e": (_bessel_i0e, 1),
    "bessel_i1": (_bessel_i1, 1),
    "bessel_i1e": (_bessel_i1e, 1),
    "gamma_sample_slope": (_gamma_sample_slope, 2),
    "digamma": (_digamma, 1),
    "erf": (_erf, 1),
    "erfinv": (_erfinv, 1),
    "ndtri": (_ndtri, 1),
    "igamma": (_igamma, 2),
    "igammac": (_igammac, 2),
    "igamma_grad_a": (_igamma_grad_a, 2),
    "zeta": (_zeta, 2),
    "polygamma": (_polygamma, 2),
    "betainc": (_betainc, 3),
}


def loop(name: str) -> Callable[..., None]:
    """(inputs…, out), vectors of double of one size: the body `name` for every element."""
    body, count = _LOOPS[name]
    return compile_loop(body, "r1 " * count + "w1", np.float64)
