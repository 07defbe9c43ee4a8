"""A step of word2vec by negative sampling: the rows of a batch's words are moved one pair after the other.

Each index is read once and checked then, as in rows.py; the first bad position is returned, −1 if all are good. Used by
nn_words.py, which draws the samples. Follows word2vec_kernels.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import once

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


@inline
def _pull(in_VD, out_VD, word, other, is_label, rate, moved_D):  # type: ignore[no-untyped-def]
    # log σ(±in · out), its gradients times the rate: that of `out` is applied, that of `in` added up.
    dot = rate * 0
    for d in range(in_VD.shape[1]):
        dot += in_VD[word, d] * out_VD[other, d]
    g = rate / (math.exp(dot) + 1) if is_label else -rate / (math.exp(-dot) + 1)
    for d in range(in_VD.shape[1]):
        moved_D[d] += g * out_VD[other, d]
        out_VD[other, d] += g * in_VD[word, d]


def _negative_sampling(in_VD, out_VD, examples_B, labels_B, samples_S, rate, moved_D):  # type: ignore[no-untyped-def]
    # V words, D dimensions, B pairs, S = B · samples of a pair.
    limit = in_VD.shape[0]
    each = samples_S.size // max(examples_B.size, 1)
    for b in range(examples_B.size):
        if examples_B[b] < 0 or examples_B[b] >= limit or labels_B[b] < 0 or labels_B[b] >= limit:
            return b
    for b in range(examples_B.size):
        word = once(examples_B, b)
        label = once(labels_B, b)
        if word < 0 or word >= limit or label < 0 or label >= limit:
            return b
        for d in range(moved_D.size):
            moved_D[d] = 0
        _pull(in_VD, out_VD, word, label, True, rate, moved_D)
        for s in range(b * each, (b + 1) * each):
            sample = once(samples_S, s)
            if sample < 0 or sample >= limit:
                return b
            if sample != label:
                _pull(in_VD, out_VD, word, sample, False, rate, moved_D)
        for d in range(moved_D.size):
            in_VD[word, d] += moved_D[d]
    return -1


def _in_python(
    in_VD: Array, out_VD: Array, examples_B: Array, labels_B: Array, samples_S: Array, rate: float, moved_D: Array
) -> int:
    limit = in_VD.shape[0]
    bad = np.flatnonzero((examples_B < 0) | (examples_B >= limit) | (labels_B < 0) | (labels_B >= limit))
    if bad.size:
        return int(bad[0])
    samples = samples_S.reshape(examples_B.size, -1) if examples_B.size else samples_S.reshape(0, 0)
    for word, label, row in zip(examples_B.tolist(), labels_B.tolist(), samples.tolist(), strict=True):
        moved_D[:] = 0
        for other, sign in [(label, 1), *((sample, -1) for sample in row if sample != label)]:
            g = np.float32(sign * rate / (np.exp(sign * np.dot(in_VD[word], out_VD[other])) + 1))
            moved_D += g * out_VD[other]
            out_VD[other] += g * in_VD[word]
        in_VD[word] += moved_D
    return -1


def negative_sampling() -> Callable[..., int]:
    """(float32: in_VD and out_VD, which are moved; int32: examples_B, labels_B, samples_S; rate, room for a row)."""
    return compile_loop(
        _negative_sampling, "w2 w2 i1 i1 i1 s w1", np.float32, np.int32, result="n", stand_in=_in_python, heavy=True
    )
