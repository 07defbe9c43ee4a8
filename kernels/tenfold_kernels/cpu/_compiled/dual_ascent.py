"""One pass of stochastic dual coordinate ascent over a batch of examples. Used by sdca.py, which sorts its inputs.

Each example's dual variable is set to what is best while all others stay, and the weights follow at once: the next
example sees them. The steps of the losses are those of Shalev-Shwartz and Zhang, JMLR 14 (2013), as TensorFlow's
sdca_internal.cc and the losses beside it take them.

# B examples, D dense features of all groups side by side, N entries of sparse features, S sparse weights
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

#: The op's names of losses; a loop is told the place in this row.
LOSSES = (b"logistic_loss", b"squared_loss", b"hinge_loss", b"smooth_hinge_loss", b"poisson_loss")
_NEWTON_STEPS = 10
_LARGEST = np.finfo(np.float64).max


@inline
def _shrunk(weight, shrinkage):  # type: ignore[no-untyped-def]
    size = abs(weight) - shrinkage
    return math.copysign(size, weight) if size > 0.0 else 0.0


@inline
def _over(numerator, denominator):  # type: ignore[no-untyped-def]
    # an example without weight or features: IEEE's quotient, in Python too
    return numerator / denominator if denominator != 0.0 else numerator * math.inf


@inline
def _clipped(dual, label):  # type: ignore[no-untyped-def]
    return 0.0 if label * dual < 0.0 else label if label * dual > 1.0 else dual


@inline
def _logistic_dual(label, dual, wx, step):  # type: ignore[no-untyped-def]
    x = 0.0
    for _ in range(_NEWTON_STEPS):
        t = math.tanh(x)
        numerator = -2.0 * label * x - wx - step * (0.5 * (1.0 + t) / label - dual)
        x -= numerator / (-2.0 * label - step * (1.0 - t * t) * 0.5 / label)
    return 0.5 * (1.0 + math.tanh(x)) / label


@inline
def _poisson_dual(label, dual, wx, step):  # type: ignore[no-untyped-def]
    x = math.log(label - dual) if label > dual else 0.0
    for _ in range(_NEWTON_STEPS):
        power = np.exp(x)
        x -= (x - wx - step * (label - dual - power)) / (1.0 + step * power)
    return label - np.exp(x)


@inline
def _best_dual(loss, label, dual, wx, step):  # type: ignore[no-untyped-def]
    # step: partitions * the example's norm / l2 * its weight
    if loss == 0:
        return _logistic_dual(label, dual, wx, step)
    if loss == 1:
        return dual + (label - dual - wx) / (1.0 + step)
    if loss == 2:
        return _clipped(dual + _over(label - wx, step), label)
    if loss == 3:
        return _clipped(dual + (label - wx - dual) / (step + 1.0), label)
    return _poisson_dual(label, dual, wx, step)


@inline
def _primal_loss(loss, label, wx):  # type: ignore[no-untyped-def]
    margin = label * wx
    if loss == 0:
        return math.log1p(math.exp(-margin)) if margin > 0.0 else math.log1p(math.exp(margin)) - margin
    if loss == 1:
        return (wx - label) * (wx - label) * 0.5
    if loss == 2:
        return max(0.0, 1.0 - margin)
    if loss == 3:
        return 0.0 if margin >= 1.0 else 0.5 - margin if margin <= 0.0 else (1.0 - margin) * (1.0 - margin) * 0.5
    return np.exp(wx) - margin


@inline
def _dual_loss(loss, label, dual):  # type: ignore[no-untyped-def]
    product = dual * label
    if loss == 0:
        entropy = product * math.log(product) if product > 0.0 else 0.0
        return entropy + (1.0 - product) * math.log(1.0 - product) if product < 1.0 else entropy
    if loss == 1:
        return dual * (0.5 * dual - label)
    if loss == 4:
        rest = label - dual
        return 0.0 if rest == 0.0 else _LARGEST if rest < 0.0 else rest * (math.log(rest) - 1.0)
    if product < 0.0 or product > 1.0:
        return _LARGEST
    return 0.5 * dual * dual - product if loss == 3 else -product


def _ascend(  # type: ignore[no-untyped-def]
    loss, partitions, l2, shrinkage, order_B, labels_B, weights_B, norms_B, ends_B, slots_N, values_N,
    sparse_S, sparse_deltas_S, features_BD, dense_D, dense_deltas_D, state_B4,
):  # fmt: skip
    for place in range(order_B.size):
        b = order_B[place]
        start = ends_B[b - 1] if b > 0 else 0
        wx = 0.0
        before = 0.0
        for n in range(start, ends_B[b]):
            weight = sparse_S[slots_N[n]]
            before += values_N[n] * _shrunk(weight, shrinkage)
            wx += values_N[n] * _shrunk(weight + sparse_deltas_S[slots_N[n]] * partitions, shrinkage)
        for d in range(dense_D.size):
            before += features_BD[b, d] * _shrunk(dense_D[d], shrinkage)
            wx += features_BD[b, d] * _shrunk(dense_D[d] + dense_deltas_D[d] * partitions, shrinkage)
        label = labels_B[b]
        dual = state_B4[b, 0]
        best = _best_dual(loss, label, dual, wx, partitions * norms_B[b] / l2 * weights_B[b])
        moved = (best - dual) * weights_B[b] / l2
        for n in range(start, ends_B[b]):
            sparse_deltas_S[slots_N[n]] += values_N[n] * moved
        for d in range(dense_D.size):
            dense_deltas_D[d] += features_BD[b, d] * moved
        state_B4[b, 0] = best
        state_B4[b, 1] = _primal_loss(loss, label, before) * weights_B[b]
        state_B4[b, 2] = _dual_loss(loss, label, dual) * weights_B[b]
        state_B4[b, 3] = weights_B[b]


def ascend() -> Callable[..., None]:
    """(loss, partitions, l2, shrinkage, order_B, labels_B, weights_B, norms_B, ends_B, slots_N, values_N, sparse_S,
    sparse_deltas_S, features_BD, dense_D, dense_deltas_D, state_B4) → None. Numbers are float64, places int64.

    Example b has the entries from ends_B[b - 1] to ends_B[b]; labels are -1 and 1 where a loss knows two classes.
    Deltas are added to, and `state_B4` becomes (dual, loss before the step, dual loss before it, weight).
    """
    codes = "n s s s i1 r1 r1 r1 i1 i1 r1 r1 w1 r2 r1 w1 w2"
    return compile_loop(_ascend, codes, np.float64, np.int64, stand_in=_ascend, heavy=True)
