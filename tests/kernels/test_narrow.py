"""bfloat16 and float8: computed with in float32 and rounded back, moved about as they are, updated in place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import narrow, registry
from tenfold_kernels.resources.state import ResourceManager, Variable

BFLOAT16 = ml_dtypes.bfloat16


def sample(*shape: int) -> Any:
    return np.random.default_rng(7).uniform(-2, 2, shape).astype(BFLOAT16)


@pytest.mark.parametrize("op", ["AddV2", "Mul", "RealDiv", "Maximum", "SquaredDifference", "Pow"])
def test_arithmetic_is_floats_rounded(ops: Any, op: str) -> None:
    x, y = np.abs(sample(3, 4)), np.abs(sample(4)) + BFLOAT16(1)

    out = ops.run(op, [x, y])

    assert out.dtype == BFLOAT16
    np.testing.assert_array_equal(out, ops.run(op, [x.astype(np.float32), y.astype(np.float32)]).astype(BFLOAT16))


def test_a_sum_is_rounded_once(ops: Any) -> None:
    ones = np.ones(1000, BFLOAT16)  # adding one by one would stop at 256

    assert float(ops.run("Sum", [ones, np.array([0], np.int32)])) == 1000


def test_what_is_not_narrow_stays(ops: Any) -> None:
    x = np.array([1, np.nan, np.inf], BFLOAT16)

    assert ops.run("IsNan", [x]).tolist() == [False, True, False]
    assert ops.run("Less", [x, np.zeros(3, BFLOAT16)]).dtype == np.bool_
    assert int(ops.run("ArgMax", [x[::2], np.array(0, np.int32)], output_type=dtypes.int64)) == 1


def test_matrices_and_convolutions(ops: Any) -> None:
    a, b = sample(5, 6), sample(6, 3)
    wide = (a.astype(np.float32) @ b.astype(np.float32)).astype(BFLOAT16)
    np.testing.assert_array_equal(ops.run("MatMul", [a, b]), wide)

    image, window = sample(1, 5, 5, 2), sample(3, 3, 2, 4)
    out = ops.run("Conv2D", [image, window], strides=[1, 1, 1, 1], padding=b"SAME")
    assert out.shape == (1, 5, 5, 4)
    assert out.dtype == BFLOAT16


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_casts_both_ways(ops: Any, dtype: Any) -> None:
    x = np.array([0.1, -1.5, 3], np.float32)

    narrowed = ops.run("Cast", [x], DstT=dtypes.as_dtype(dtype))
    back = ops.run("Cast", [narrowed], DstT=dtypes.float32)

    np.testing.assert_array_equal(back, x.astype(dtype).astype(np.float32))


def test_movers_take_the_type_as_it_is(ops: Any) -> None:
    x = sample(4, 3).astype(ml_dtypes.float8_e5m2)

    assert ops.run("Gather", [x, np.array([2, 0], np.int32)]).tolist() == x[[2, 0]].tolist()
    assert ops.run("Transpose", [x, np.array([1, 0], np.int32)]).shape == (3, 4)
    assert ops.run("Pack", [x, x]).dtype == x.dtype


def test_a_variable_is_updated_in_its_own_type(ops: Any) -> None:
    variable = Variable("v", dtypes.bfloat16, TensorShape([3]))
    variable.assign(np.array([1, 2, 3], BFLOAT16))

    ops.run("ScatterAdd", [variable, np.array([0, 0, 2], np.int32), np.array([1, 1, 4], BFLOAT16)])
    ops.run("AssignSub", [variable, np.array([1, 1, 1], BFLOAT16)])
    ops.run("ApplyGradientDescent", [variable, np.array(0.5, BFLOAT16), np.array([2, 2, 2], BFLOAT16)])

    assert variable.value.dtype == BFLOAT16
    assert variable.value.tolist() == [1, 0, 5]


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_random_numbers(ops: Any, op: str) -> None:
    out = ops.run(op, [np.array([1000], np.int32)], dtype=dtypes.bfloat16, seed=3, seed2=4)

    assert out.dtype == BFLOAT16
    if op == "RandomUniform":
        assert float(out.min()) >= 0
        assert float(out.max()) < 1


def test_references_are_left_to_their_own_kernels() -> None:
    assert narrow.wide_attrs("Add", {"T": dtypes.bfloat16}) == {"T": dtypes.float32}
    assert narrow.wide_attrs("Add", {"T": dtypes.float64}) is None
    assert narrow.wide_attrs("AssignAdd", {"T": dtypes.bfloat16}) is None
    assert "CPU" in registry.devices_with_kernel("Tanh", {"T": dtypes.bfloat16})


def test_attributes_are_widened_alone_and_in_lists() -> None:
    narrow_type, other, wide = dtypes.bfloat16, dtypes.int32, dtypes.float32
    attrs = {"T": narrow_type, "Ts": (other, narrow_type), "n": 3, "sizes": [1, 2], "types": [other]}

    found = narrow.wide_attrs("Add", attrs)

    assert found == {"T": wide, "Ts": (other, wide), "n": 3, "sizes": [1, 2], "types": [other]}
    assert narrow.wide_attrs("Add", {"Ts": [narrow_type]}) == {"Ts": [wide]}
    assert narrow.wide_attrs("Add", {"T": wide, "Ts": (other,), "sizes": [1]}) is None
    assert narrow.wide_attrs("ReadVariableOp", {"dtype": narrow_type}) is None
    assert narrow.wide_attrs("Assign", {"T": narrow_type}) is None


def test_only_what_is_narrow_is_widened_and_rounded_back() -> None:
    """Inputs and outputs of a kernel of float32, each by its own type."""
    wide, half, integer = dtypes.float32, dtypes.bfloat16, dtypes.int32
    seen: list[Any] = []

    def made(inputs: Any, outputs: Any, results: Any) -> Any:
        def builder(node: registry.KernelNode) -> Any:
            seen.append((dict(node.attrs), node.input_types, node.output_types))
            return lambda *values: seen.append([value.dtype for value in values]) or results

        node = registry.KernelNode("n", "Op", {"T": half}, inputs, outputs, "d", ResourceManager())
        return narrow.around(builder, {"T": wide})(node)

    x, i, y = np.ones(2, BFLOAT16), np.arange(2, dtype=np.int32), np.float32([1.00390625, 3])
    one = made((half, integer), (half,), y)(x, i)
    assert (one.dtype, one.tolist()) == (BFLOAT16, [1, 3])
    assert seen == [({"T": wide}, (wide, integer), (wide,)), [np.float32, np.int32]]
    assert made((half,), (integer,), i)(x) is i
    both = made((half,), (half, integer), (y, i))(x)
    assert (both[0].dtype, both[1] is i) == (BFLOAT16, True)
    assert made((half,), (), None)(x) is None
    with pytest.raises(ValueError, match="zip"):
        made((half,), (half, half), (y,))(x)
    with pytest.raises(ValueError, match="zip"):
        made((half, half), (half,), y)(x)
