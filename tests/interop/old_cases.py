"""Cases of operations that graphs of 2015 to 2017 have, for the comparison with TensorFlow: see nn_cases.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from nn_cases import Case, D, F, scalar

_RNG = np.random.default_rng(2016)
CASES: list[Case] = []


def _normal(*shape: int, dtype: Any) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(dtype)


def _add(op: str, *inputs: np.ndarray, slack: float = 1.0, magnitude: bool = False, **attrs: Any) -> None:
    CASES.append(Case(op, inputs, attrs, slack=slack, magnitude=magnitude))


def _of(dtype: Any) -> None:
    volume, cube, back = (_normal(*shape, dtype=dtype) for shape in ((2, 4, 5, 6, 3), (2, 3, 2, 3, 4), (2, 2, 5, 3, 4)))
    _add("Conv3DBackpropInput", volume, cube, back, strides=[1, 2, 1, 2, 1], padding="SAME", slack=4)
    _add("Conv3DBackpropFilter", volume, cube, back, strides=[1, 2, 1, 2, 1], padding="SAME", slack=4)

    x, backprop = _normal(2, 3, 4, 5, dtype=dtype), _normal(2, 3, 4, 5, dtype=dtype)
    mean, variance, gamma, beta = (_RNG.uniform(0.5, 2, 5).astype(dtype) for _ in range(4))
    for scaled in (False, True):
        attrs: dict[str, Any] = {"variance_epsilon": 2.0**-7, "scale_after_normalization": scaled}
        _add("BatchNormWithGlobalNormalization", x, mean, variance, beta, gamma, slack=16, **attrs)
        _add("BatchNormWithGlobalNormalizationGrad", x, mean, variance, gamma, backprop, slack=16, **attrs)

    tall, right = _normal(2, 5, 3, dtype=dtype), _normal(2, 5, 2, dtype=dtype)
    _add("BatchMatrixSolveLs", tall, right, scalar(0.1, D), slack=32)
    _add("BatchMatrixSolveLs", tall, right, scalar(0, D), fast=False, slack=32)
    _add("BatchMatrixSolveLs", tall.swapaxes(1, 2).copy(), right[:, :3], scalar(0.1, D), slack=32)
    low = np.linalg.cholesky(np.matmul(tall.swapaxes(1, 2), tall) + np.eye(3, dtype=dtype))
    _add("BatchCholeskyGrad", low, np.tril(_normal(2, 3, 3, dtype=dtype)), slack=32)
    both = _normal(2, 4, 4, dtype=dtype)
    both += both.swapaxes(-1, -2)
    _add("SelfAdjointEig", both[0], magnitude=True, slack=64)
    _add("BatchSelfAdjointEig", both, magnitude=True, slack=64)

    numbers = _normal(20, dtype=dtype)
    _add("QuantizeAndDequantize", numbers, slack=4)
    _add("QuantizeAndDequantize", numbers, signed_input=False, num_bits=5, slack=4)
    _add("QuantizeAndDequantize", numbers, range_given=True, input_min=-1.0, input_max=1.5, slack=4)
    # the range is as wide as the numbers or as given, and may hold zero or nothing but it
    for given, low, high in ((False, 0, 0), (True, -1, 1.5), (True, 0, 0), (True, -2, -1), (True, 1, 2)):
        for signed in (False, True):
            for narrow in (False, True):
                ends = scalar(low, dtype), scalar(high, dtype)
                attrs = {"range_given": given, "signed_input": signed, "narrow_range": narrow}
                _add("QuantizeAndDequantizeV2", numbers, *ends, slack=4, **attrs)
    _add("QuantizeAndDequantizeV2", -np.abs(numbers), *ends, signed_input=False, slack=4)
    _add("QuantizeAndDequantizeV2", 0 * numbers, *ends, slack=4)
    for signed in (False, True):
        rows = _normal(3, 5, dtype=dtype)
        _add("QuantizeAndDequantizeV2", rows, rows.min(0), rows.max(0), axis=1, signed_input=signed, slack=4)


for _dtype in (F, D):
    _of(_dtype)
