"""What fits the ops of random numbers; seeds are never 0, which would draw others at each run. See cases.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw

Attrs = dict[str, Any]


def _seeded(d: Draw, a: Attrs) -> None:
    for name in ("seed", "seed2"):
        if name in a:
            a[name] = d.randint(1, 99)


def _size(d: Draw) -> list[int]:
    return d.choice(([], [d.randint(1, 7)], d.sizes(2), [300] if d.maybe(0.1) else [5]))


def _sized(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    return [_size(d)]


def _between(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    low = d.randint(-5, 5)
    return [_size(d), low, low + d.choice((1, 3, 100, 0))]


def _multinomial(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    return [(d.size(), d.randint(1, 4)), d.choice((1, 3, 0))]


def _shuffled(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    return [d.shape(0, 2)]


def _crop(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    shape = d.choice(((5, 6, 3), (4, 4, 1)))
    return [shape, [d.randint(1, shape[0]), d.randint(1, shape[1]), shape[2]]]


def _gamma(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    return [_size(d), d.floats(d.shape(0, 1), 0.2, 6)]


def _truncated(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    rows = d.randint(1, 3)
    low = d.choice(((-1.0, 1.0), (0.5, 3.0), (-9.0, 9.0), (2.0, 2.5), (1.0, -1.0)))
    means, stdevs = d.floats((rows,), -1, 1), d.floats((rows,), 0.5, 2)
    if d.maybe():
        return [[rows, d.randint(0, 4)], means, stdevs, [low[0]] * rows, [low[1]] * rows]
    return [[rows, d.randint(1, 4)], 0.5, 1.0, *low]


def _candidates(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    a["num_true"], a["num_sampled"] = d.randint(1, 2), d.randint(1, 5)
    if "range_max" in a:
        a["range_max"] = d.choice((5, 9, 100, 1))
    return [np.array(d.ints(d.randint(1, 3) * a["num_true"], 0, 4)).reshape(-1, a["num_true"])]


def _hits(d: Draw, a: Attrs) -> list[Any]:
    _seeded(d, a)
    a["num_true"] = d.randint(1, 3)
    return [np.array(d.ints(d.size() * a["num_true"], 0, 4)).reshape(-1, a["num_true"]), d.ints(d.size(), 0, 4)]


def _seed(d: Draw) -> list[int]:
    return d.ints(2, 0, 1 << 20)


def _stateless(d: Draw, a: Attrs) -> list[Any]:
    return [_size(d), _seed(d)]


def _stateless_between(d: Draw, a: Attrs) -> list[Any]:
    low = d.randint(-5, 5)
    return [_size(d), _seed(d), low, low + d.choice((1, 3, 100, 0))]


def _keyed(d: Draw) -> list[Any]:
    return [d.ints(1, 0, 1 << 30), d.ints(2, 0, 1 << 30), d.choice((1, 1, 1, 2, 3, 5 if d.maybe(0.2) else 1))]


def _stateless_v2(d: Draw, a: Attrs) -> list[Any]:
    return [_size(d), *_keyed(d)]


def _stateless_between_v2(d: Draw, a: Attrs) -> list[Any]:
    low = d.randint(0, 5)
    return [_size(d), *_keyed(d), low, low + d.choice((1, 3, 100, 0))]


def _stateless_multinomial(d: Draw, a: Attrs) -> list[Any]:
    return [(d.size(), d.randint(1, 4)), d.choice((1, 3, 0)), _seed(d)]


def _stateless_shuffle(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(0, 2), *_keyed(d)]


def _stateless_gamma(d: Draw, a: Attrs) -> list[Any]:
    alpha = d.shape(0, 1)
    return [[*d.shape(0, 1), *alpha], _seed(d), d.floats(alpha, 0.2, 6)]


def _stateless_gamma_v3(d: Draw, a: Attrs) -> list[Any]:
    alpha = d.shape(0, 1)
    return [[*d.shape(0, 1), *alpha], *_keyed(d), d.floats(alpha, 0.2, 6)]


def _stateless_poisson(d: Draw, a: Attrs) -> list[Any]:
    rates = d.shape(0, 1)
    a["Rtype"] = dtypes.float32
    return [[*d.shape(0, 1), *rates], _seed(d), d.floats(rates, 0.2, 20)]


def _only_seed(d: Draw, a: Attrs) -> list[Any]:
    return [_seed(d)]


def _nothing(d: Draw, a: Attrs) -> list[Any]:
    return []


RECIPES = {
    **dict.fromkeys(("RandomUniform", "RandomStandardNormal", "TruncatedNormal"), _sized), "RandomUniformInt": _between,
    "Multinomial": _multinomial, "RandomShuffle": _shuffled, "RandomCrop": _crop,
    **dict.fromkeys(("RandomGamma", "RandomPoisson", "RandomPoissonV2"), _gamma),
    "ParameterizedTruncatedNormal": _truncated, "ComputeAccidentalHits": _hits,
    **dict.fromkeys(("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
                     "ThreadUnsafeUnigramCandidateSampler", "AllCandidateSampler"), _candidates),
    **dict.fromkeys(("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
                     "StatelessRandomUniformFullInt"), _stateless),
    **dict.fromkeys(("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
                     "StatelessRandomUniformFullIntV2"), _stateless_v2),
    "StatelessRandomUniformInt": _stateless_between, "StatelessRandomUniformIntV2": _stateless_between_v2,
    "StatelessMultinomial": _stateless_multinomial, "StatelessShuffle": _stateless_shuffle,
    "StatelessRandomGammaV2": _stateless_gamma, "StatelessRandomGammaV3": _stateless_gamma_v3,
    "StatelessRandomPoisson": _stateless_poisson, "StatelessRandomGetKeyCounter": _only_seed,
    "StatelessRandomGetKeyCounterAlg": _only_seed, "StatelessRandomGetAlg": _nothing,
}  # fmt: skip
