"""The same seeds give TensorFlow's own numbers: rejection samplers, stateless ops, candidate samplers, big outputs."""

# ruff: noqa: E501 (a case stays on one line)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.oracle import Case, ask, difference

if TYPE_CHECKING:
    from collections.abc import Callable

_SEEDS = "seed=3, seed2=4"
_HALF, _SINGLE, _DOUBLE = np.float16, np.float32, np.float64
#: Functions of a math library are not correctly rounded alike.
_LOOSE = {_HALF: 2e-3, _SINGLE: 3e-6, _DOUBLE: 1e-12}


def shape(*dims: int) -> Any:
    return np.array(dims, np.int32)


REJECTION = [
    *(
        Case("RandomGamma", {"shape": shape(n), "alpha": np.array([0.3, 1.0, 4.5, 20.0], t)}, _SEEDS, 2, _LOOSE[t])
        for t in (_HALF, _SINGLE, _DOUBLE)
        for n in (1, 7, 500)
    ),
    Case("RandomGamma", {"shape": shape(2, 3), "alpha": np.array([[0.5], [2.0]], _SINGLE)}, _SEEDS, 2, 3e-6),
    Case("RandomGamma", {"shape": shape(0), "alpha": np.array([1.0], _SINGLE)}, _SEEDS),
    *(
        Case("RandomPoissonV2", {"shape": shape(n), "rate": np.array([0.0, 0.7, 5.0, 9.9, 10.0, 60.0, 1000.0], t)},
             f"{_SEEDS}, dtype=tf.{out}", 2)
        for t in (_SINGLE, _DOUBLE)
        for out in ("int32", "int64", "float32", "float64")
        for n in (1, 100)
    ),
    *(
        Case(
            "ParameterizedTruncatedNormal",
            {"shape": shape(*dims), "means": np.array(m, t), "stdevs": np.array(s, t),
             "minvals": np.array(low, t), "maxvals": np.array(high, t)},
            _SEEDS, 2, _LOOSE[t] * 10,
        )
        for t in (_SINGLE, _DOUBLE)
        for dims, m, s, low, high in (
            ((3, 5), [0.0, 1.0, 2.0], [1.0, 2.0, 0.5], [-2.0, 0.9, 4.0], [2.0, 1.1, 9.0]),
            ((30,), 0.0, 1.0, -3.0, 3.0),
            ((2, 40), [0.0, 5.0], [1.0, 1.0], [3.0, -np.inf], [np.inf, 2.0]),
            ((4, 4), 0.0, 1.0, 0.1, 0.2),
        )
    ),
    Case(
        "ParameterizedTruncatedNormal",
        {"shape": shape(2), "means": np.array(0, _SINGLE), "stdevs": np.array(-1, _SINGLE),
         "minvals": np.array(0, _SINGLE), "maxvals": np.array(1, _SINGLE)},
        _SEEDS,
    ),
]  # fmt: skip

SEEDS = (np.array([1, 2], np.int32), np.array([-5, 1 << 40], np.int64))
_KEY = {
    "key": np.array([123456789], np.uint64),
    "counter": np.array([5, 1 << 60], np.uint64),
    "alg": np.array(1, np.int32),
}
STATELESS = [
    *(
        Case(op, {"shape": shape(n), "seed": seed}, f"dtype=tf.{np.dtype(t).name}", 2, _LOOSE[t])
        for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
        for seed in SEEDS
        for t in (_HALF, _SINGLE, _DOUBLE)
        for n in (1, 9, 1000)
    ),
    *(
        Case(f"{op}V2", {"shape": shape(7), **_KEY}, f"dtype=tf.{np.dtype(t).name}", 1, _LOOSE[t])
        for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
        for t in (_HALF, _SINGLE, _DOUBLE)
    ),
    *(
        Case("StatelessRandomUniformInt", {"shape": shape(9), "seed": SEEDS[0], "minval": np.array(-3, t), "maxval": np.array(1000, t)})
        for t in (np.int32, np.int64)
    ),
    *(
        Case("StatelessRandomUniformIntV2", {"shape": shape(9), **_KEY, "minval": np.array(-3, t), "maxval": np.array(m, t)})
        for t in (np.int32, np.int64)
        for m in (2, -3)
    ),
    *(
        Case("StatelessRandomUniformFullInt", {"shape": shape(9), "seed": SEEDS[1]}, f"dtype=tf.{t}")
        for t in ("int32", "int64", "uint32", "uint64")
    ),
    *(
        Case("StatelessRandomUniformFullIntV2", {"shape": shape(9), **_KEY}, f"dtype=tf.{t}")
        for t in ("int32", "int64", "uint32", "uint64")
    ),
    Case("StatelessMultinomial", {"logits": np.array([[0.5, 1, 2], [0, 0, -9]], _SINGLE), "num_samples": 9, "seed": SEEDS[0]}),
    Case("StatelessShuffle", {"value": np.arange(20), **_KEY}),
    Case("StatelessRandomGammaV2", {"shape": shape(5, 2), "seed": SEEDS[0], "alpha": np.array([0.5, 2.0], _SINGLE)}, "", 1, 3e-6),
    Case("StatelessRandomPoisson", {"shape": shape(5, 2), "seed": SEEDS[0], "lam": np.array([0.5, 20.0], _SINGLE)}, "dtype=tf.int32"),
    *(Case(op, {"seed": seed}) for op in ("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg") for seed in SEEDS),
    Case("StatelessRandomGetKeyCounter", {"seed": np.array([1], np.int32)}),
]  # fmt: skip

_TRUE = np.array([[0, 3], [2, 9]], np.int64)
SAMPLERS = [
    *(
        Case(f"{kind}CandidateSampler", {"true_classes": _TRUE},
             f"{_SEEDS}, num_true=2, num_sampled={n}, unique={unique}, range_max={limit}", 3, 3e-6)
        for kind in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram")
        for unique in (True, False)
        for n, limit in ((5, 10), (8, 16), (20, 1000), (11, 10))
    ),
    *(
        Case("FixedUnigramCandidateSampler", {"true_classes": _TRUE},
             f"{_SEEDS}, num_true=2, num_sampled=6, unique={unique}, range_max=10, distortion={d}, "
             f"num_reserved_ids={r}, unigrams={[float(i + 1) for i in range(10 - r)]}", 3, 3e-6)
        for unique in (True, False)
        for d in (1.0, 0.75)
        for r in (0, 2)
    ),
    Case("AllCandidateSampler", {"true_classes": _TRUE}, f"{_SEEDS}, num_true=2, num_sampled=10, unique=True"),
    Case("AllCandidateSampler", {"true_classes": _TRUE}, f"{_SEEDS}, num_true=2, num_sampled=9, unique=True"),
    Case("UniformCandidateSampler", {"true_classes": _TRUE}, f"{_SEEDS}, num_true=3, num_sampled=1, unique=True, range_max=9"),
]  # fmt: skip

BIG = [
    *(
        Case(op, {"shape": shape(n)}, f"{_SEEDS}, dtype=tf.float32", 2, 3e-6)
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
        for n in (100_003,)
    ),
    Case("RandomUniformInt", {"shape": shape(50_001), "minval": np.array(0, np.int32), "maxval": np.array(97, np.int32)}, _SEEDS, 2),
    Case("RandomShuffle", {"value": np.arange(5000)}, _SEEDS, 2),
    Case("Multinomial", {"logits": np.log(np.array([[1, 2, 3], [3, 0.1, 1]], _SINGLE)), "num_samples": 33}, _SEEDS, 2),
]  # fmt: skip

CASES = [*REJECTION, *STATELESS, *SAMPLERS, *BIG]


@pytest.mark.thorough
def test_same_numbers(ask_tensorflow: Callable[..., Any], tmp_path: Any) -> None:
    answers = ask(ask_tensorflow, tmp_path, CASES)

    different = {
        f"{i}: {case}": found
        for i, (case, answer) in enumerate(zip(CASES, answers, strict=True))
        if (found := difference(case, answer)) is not None
    }
    assert different == {}
