"""Programs of one line over odd inputs, and what TensorFlow 2.21 answers: the table odd_inputs.txt, and what runs it.

A line of the table is an expression, `tf.argmax(F([nan, 1.]))`; the indented lines below it are its answers, one for
each fetch, or the class of its error and when it came. F(value, dtype, shape) is a placeholder of that static shape
(else none) that is fed the value, C(value) a constant, SP(indices, values, shape) a SparseTensor, G(function, *xs) the
gradients at xs. Run here by tests/kernels/test_odd_inputs.py and under TensorFlow by
tests/interop/test_odd_inputs_oracle.py, so it imports nothing but NumPy.
"""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Any

import numpy as np

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "odd_inputs.txt")
#: float32's; what is computed in another order differs by so much.
_TOLERANCE = 2e-5
#: What numbers may look like besides digits.
_WORDS = {"nan": math.nan, "inf": math.inf, "nanj": complex(0, math.nan), "infj": complex(0, math.inf)}


def cases() -> dict[str, list[str]]:
    """Expression → its answers."""
    found: dict[str, list[str]] = {}
    answers: list[str] = []
    with open(TABLE) as table:
        for line in table:
            if line.startswith("    "):
                answers.append(line.strip())
            elif line.strip() and not line.startswith("#"):
                found[line.strip()] = answers = []
    return found


class _Program:
    """The names that an expression may use, and what its placeholders are fed."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self.feeds: dict[Any, Any] = {}
        self.names = {
            "tf": tf, "np": np, "nan": math.nan, "inf": math.inf,
            "F": self._fed, "C": tf.constant, "SP": self._sparse, "G": self._gradients,
        }  # fmt: skip

    def _fed(self, value: Any, dtype: Any = None, shape: Any = "unknown") -> Any:
        if dtype is None:
            natural = np.asarray(value).dtype
            dtype = {"f": np.float32, "i": np.int32}.get(natural.kind, natural)
        kind = self._tf.as_dtype(dtype)
        placeholder = self._tf.placeholder(kind, None if shape == "unknown" else shape)
        self.feeds[placeholder] = np.asarray(value, kind.as_numpy_dtype)
        return placeholder

    def _sparse(self, indices: Any, values: Any, shape: Any) -> Any:
        places = np.array(indices, np.int64).reshape(-1, len(shape))
        return self._tf.SparseTensor(places, values, np.array(shape, np.int64))

    def _gradients(self, function: Any, *xs: Any, **options: Any) -> Any:
        return self._tf.gradients(function(*xs), list(xs), **options)


def _flat(value: Any) -> list[Any]:
    if type(value).__name__ == "SparseTensor":
        return [value.indices, value.values, value.dense_shape]
    if isinstance(value, (list, tuple)):
        return [item for each in value for item in _flat(each)]
    return [value]


def answer(tf: Any, expression: str) -> list[str]:
    """What `tf`, TensorFlow 1's API, makes of an expression."""
    phase = "built"
    with tf.Graph().as_default():
        program = _Program(tf)
        try:
            fetches = [tf.convert_to_tensor(each) for each in _flat(eval(expression, program.names))]
            phase = "run"
            with tf.Session() as session:
                return [_text(np.asarray(value)) for value in session.run(fetches, program.feeds)]
        except Exception as error:
            return [f"{type(error).__name__} when {phase}"]


def _text(value: np.ndarray) -> str:
    kind = "string" if value.dtype.kind in "SUO" else value.dtype.name
    return f"{kind}{list(value.shape)} {value.ravel().tolist()}"


def same(one: list[str], other: list[str], tolerance: float = _TOLERANCE) -> bool:
    """Whether two answers agree; floats may differ in their last digits, zeros in their sign."""
    return len(one) == len(other) and all(map(partial(_same, tolerance=tolerance), one, other))


def _same(one: str, other: str, tolerance: float) -> bool:
    if one == other:
        return True
    (head, _, left), (other_head, _, right) = one.partition("] "), other.partition("] ")
    if head != other_head or not head.startswith(("float", "complex")):
        return False
    a, b = (np.array(eval(text, dict(_WORDS))) for text in (left, right))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * 1e-2, equal_nan=True))
