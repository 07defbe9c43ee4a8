"""Shapes that broadcast, the axes that their gradients sum over, and tensors that are broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

BFLOAT16 = dtypes.bfloat16.as_numpy_dtype
#: Two shapes, what they give, the axes of each that were broadcast, 1 with 1 too.
SHAPES: list[tuple[list[int], list[int], list[int], list[int], list[int]]] = [
    ([2, 3], [2, 3], [2, 3], [], []),
    ([], [], [], [], []),
    ([1, 1], [1, 1], [1, 1], [], []),
    ([2, 3], [1, 3], [2, 3], [], [0]),
    ([2, 1], [2, 3], [2, 3], [1], []),
    ([4, 1, 3], [3], [4, 1, 3], [1], [0, 1]),
    ([3], [4, 1, 3], [4, 1, 3], [0, 1], [1]),
    ([], [2, 1], [2, 1], [0, 1], [1]),
    ([1], [], [1], [0], [0]),
    ([1, 5], [7, 1], [7, 5], [0], [1]),
    ([0, 1], [1, 2], [0, 2], [1], [0]),
    ([2, 1, 1], [2, 1, 4], [2, 1, 4], [1, 2], [1]),
]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("a", "b", "both", "first", "second"), SHAPES)
def test_two_shapes(
    ops: Any, dtype: Any, a: list[int], b: list[int], both: list[int], first: list[int], second: list[int]
) -> None:
    x, y = np.array(a, dtype), np.array(b, dtype)

    for one, other in ((x, y), (y, x)):
        found = ops.run("BroadcastArgs", [one, other])
        assert (found.tolist(), found.dtype) == (both, dtype)
    axes = ops.run("BroadcastGradientArgs", [x, y])
    assert [each.tolist() for each in axes] == [first, second]
    assert {each.dtype for each in axes} == {np.dtype(dtype)}


@pytest.mark.parametrize("op", ["BroadcastArgs", "BroadcastGradientArgs"])
@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ([2, 3], [2], "Incompatible shapes: [2,3] vs. [2]"),
        (3, [3], "In[0] must be a vector, got shape []"),
        ([[3]], [3], "In[0] must be a vector, got shape [1,1]"),
        ([3], 3, "In[1] must be a vector, got shape []"),
        ([3], [[3]], "In[1] must be a vector, got shape [1,1]"),
    ],
)
def test_what_two_shapes_refuse(ops: Any, op: str, a: Any, b: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, [np.array(a, np.int32), np.array(b, np.int32)])
    assert refused.value.message == text


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex64, np.bool_, BFLOAT16])
@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((), ()), ((), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1, 3), (2, 3)), ((2, 3), (2, 3)), ((1,), (0,)),
        ((2, 1), (4, 2, 3)), ((1, 1), (2, 2)), ((0, 2), (3, 0, 2)),
    ],
)  # fmt: skip
def test_a_tensor_in_a_larger_shape(ops: Any, dtype: Any, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)

    for index in (np.int32, np.int64):
        found = ops.run("BroadcastTo", [x, np.array(wanted, index)])
        assert found.tolist() == np.broadcast_to(x, wanted).tolist()
        assert found.shape == wanted
        assert shape == wanted or found.flags.writeable


def test_what_no_larger_shape_is_made_of(ops: Any) -> None:
    def refused(shape: tuple[int, ...], wanted: Any, text: str) -> None:
        with pytest.raises(errors.InvalidArgumentError) as error:
            ops.run("BroadcastTo", [np.zeros(shape, np.float32), np.array(wanted, np.int32)])
        assert error.value.message == text

    refused((2, 3), [3], "Rank of input (2) must be no greater than rank of output shape (1).")
    refused((1,), [], "Rank of input (1) must be no greater than rank of output shape (0).")
    refused((2, 3), [4, 3], "Incompatible shapes: [2,3] vs. [4,3]")
    refused((2, 3), [2, 1], "Incompatible shapes: [2,3] vs. [2,1]")
    refused((2, 3), [5, 3, 3], "Incompatible shapes: [2,3] vs. [5,3,3]")
    refused((0,), [2], "Incompatible shapes: [0] vs. [2]")
    refused((2,), [0], "Incompatible shapes: [2] vs. [0]")
    refused((1,), [-2], "Dimension -2 must be >= 0: shape[0] of [-2]")
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("BroadcastTo", [np.float32([1]), np.int64([1 << 50])])
