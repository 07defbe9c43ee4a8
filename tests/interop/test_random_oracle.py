"""The same seeds give TensorFlow's own random numbers: every distribution, type and size, call after call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, opdefs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable

#: Runs each case twice in one graph of TensorFlow's: a node's second run must go on where its first one stopped.
SCRIPT = """
import json, sys
import tensorflow as tf
tf1 = tf.compat.v1
out = []
for op, dtype, seed, seed2, size in json.loads(sys.argv[1]):
    with tf.Graph().as_default(), tf1.Session() as session:
        attrs = dict(seed=seed, seed2=seed2)
        if op == "RandomUniformInt":
            t = tf.raw_ops.RandomUniformInt(
                shape=[size], minval=tf.constant(-7, dtype), maxval=tf.constant(1000003, dtype), **attrs)
        elif op == "RandomShuffle":
            t = tf.raw_ops.RandomShuffle(value=tf.range(size), **attrs)
        elif op == "Multinomial":
            t = tf.raw_ops.Multinomial(logits=[[0.5, 1.0, -1.0, 0.0]], num_samples=size, **attrs)
        elif op == "LogUniformCandidateSampler":
            t = tf.raw_ops.LogUniformCandidateSampler(
                true_classes=[[1], [3]], num_true=1, num_sampled=size, unique=True, range_max=5 * size, **attrs)
        else:
            t = getattr(tf.raw_ops, op)(shape=[size], dtype=dtype, **attrs)
        runs = [session.run(t) for _ in range(2)]
        runs = [[x.tolist() for x in r] if isinstance(r, (tuple, list)) else r.tolist() for r in runs]
        out.append(runs)
print(json.dumps(out))
"""

DISTRIBUTIONS = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
CASES: list[tuple[str, str, int, int, int]] = [
    *(
        (op, dtype, 1, 2, size)
        for op in DISTRIBUTIONS
        for dtype in ("float32", "float64", "float16")
        for size in (1, 5, 4097)
    ),
    *(
        (op, "float32", seed, seed2, 9)
        for op in DISTRIBUTIONS
        for seed, seed2 in ((0, 1), (87654321, 0), (-3, 1 << 62))
    ),
    *(("RandomUniformInt", dtype, 5, 6, size) for dtype in ("int32", "int64") for size in (1, 50)),
    ("RandomShuffle", "int32", 3, 4, 50),
    ("Multinomial", "float32", 3, 4, 40),
    ("LogUniformCandidateSampler", "float32", 3, 4, 10),
]


def _ours(op: str, dtype: str, seed: int, seed2: int, size: int) -> list[Any]:
    """Two runs of one node here."""
    kind = dtypes.as_dtype(dtype)
    shape = np.array([size], np.int32)
    attrs: dict[str, Any] = {a.name: a.default for a in opdefs.get(op).attrs if a.has_default}
    attrs |= {"seed": seed, "seed2": seed2}
    inputs: list[Any]
    if op == "RandomUniformInt":
        inputs = [shape, np.array(-7, kind.as_numpy_dtype), np.array(1000003, kind.as_numpy_dtype)]
        attrs |= {"T": dtypes.int32, "Tout": kind}
    elif op == "RandomShuffle":
        inputs, attrs["T"] = [np.arange(size, dtype=np.int32)], dtypes.int32
    elif op == "Multinomial":
        inputs = [np.array([[0.5, 1.0, -1.0, 0.0]], np.float32), np.array(size, np.int32)]
        attrs["T"] = dtypes.float32
    elif op == "LogUniformCandidateSampler":
        inputs = [np.array([[1], [3]], np.int64)]
        attrs |= {"num_true": 1, "num_sampled": size, "unique": True, "range_max": 5 * size}
    else:
        inputs = [shape]
        attrs |= {"T": dtypes.int32, "dtype": kind}
    types = signature(opdefs.get(op), attrs)
    node = registry.KernelNode(
        "n", op, attrs, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
    )
    compute = registry.lookup(node, "CPU")(node)
    runs = [compute(*inputs) for _ in range(2)]
    return [list(r) if isinstance(r, tuple) else r for r in runs]


@pytest.fixture(scope="module")
def theirs(ask_tensorflow: Callable[..., Any]) -> dict[tuple[str, str, int, int, int], Any]:
    import json

    return dict(zip(CASES, ask_tensorflow(SCRIPT, json.dumps(CASES)), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_same_numbers(theirs: Any, case: tuple[str, str, int, int, int]) -> None:
    tolerance = 2e-3 if case[1] == "float16" else 2e-6 if case[1] == "float32" else 1e-12

    for ours, expected in zip(_ours(*case), theirs[case], strict=True):
        for a, b in zip(ours, expected, strict=True) if isinstance(ours, list) else [(ours, expected)]:
            np.testing.assert_allclose(
                np.asarray(a, np.float64), np.array(b, np.float64), rtol=tolerance, atol=tolerance
            )
