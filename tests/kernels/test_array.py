"""Array ops: shapes, slices, gathers, joins and splits, against NumPy or written-out answers; and their error texts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.op_values import ints
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import freeze, is_frozen
from tenfold_kernels.resources.state import Variable

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)
S = np.array([[b"a", b"bb"], [b"", b"d"]], dtype=object)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, F)


#: op, inputs, attrs, expected.
CASES: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("Identity", [X], {}, X),
    ("Identity", [S], {}, S),
    ("StopGradient", [X], {}, X),
    ("PlaceholderWithDefault", [X], {"shape": TensorShape([2, 3, 4])}, X),
    ("Fill", [ints(2, 0), F(7).reshape(())], {}, zeros(2, 0)),
    ("Fill", [np.zeros(0, np.int32), 7], {}, np.array(7, np.int32)),
    ("Fill", [ints(2), b"x"], {}, np.array([b"x", b"x"], object)),
    ("ZerosLike", [X], {}, np.zeros_like(X)),
    ("ZerosLike", [S], {}, np.full((2, 2), b"", object)),
    ("OnesLike", [ints(3, 4)], {}, ints(1, 1)),
    ("Shape", [X], {}, ints(2, 3, 4)),
    ("Shape", [X], {"out_type": dtypes.int64}, np.array([2, 3, 4])),
    ("Shape", [np.array(1)], {}, np.zeros(0, np.int32)),
    ("Size", [zeros(2, 0)], {}, np.array(0, np.int32)),
    ("Rank", [X], {}, np.array(3, np.int32)),
    ("Reshape", [X, ints(4, -1)], {}, X.reshape(4, 6)),
    ("Reshape", [zeros(0, 3), ints(3, -1)], {}, zeros(3, 0)),
    ("Reshape", [zeros(0, 3), ints(-1, 0)], {}, zeros(3, 0)),
    ("Reshape", [zeros(1), np.zeros(0, np.int32)], {}, np.array(0, F)),
    ("ExpandDims", [zeros(2), -1], {}, zeros(2, 1)),
    ("ExpandDims", [zeros(2), 0], {}, zeros(1, 2)),
    ("ExpandDims", [np.array(1, F), np.array([0], np.int32)], {}, np.ones(1, F)),
    ("Squeeze", [zeros(1, 2, 1)], {}, zeros(2)),
    ("Squeeze", [zeros(1, 2, 1)], {"squeeze_dims": [-1]}, zeros(1, 2)),
    ("Pack", [ints(1, 2), ints(3, 4)], {"axis": -1}, ints([1, 3], [2, 4])),
    ("Pack", [np.array(b"x", object), np.array(b"y", object)], {}, np.array([b"x", b"y"], object)),
    ("ConcatV2", [X, X, -1], {}, np.concatenate([X, X], 2)),
    ("ConcatV2", [zeros(0, 2), zeros(1, 2), 0], {}, zeros(1, 2)),
    ("ConcatV2", [S, S, 0], {}, np.concatenate([S, S])),
    ("Concat", [1, X, X], {}, np.concatenate([X, X], 1)),
    ("Tile", [ints([1, 2]), ints(2, 2)], {}, ints([1, 2, 1, 2], [1, 2, 1, 2])),
    ("Tile", [ints(1, 2), ints(0)], {}, np.zeros(0, np.int32)),
    ("Pad", [ints(1), ints([1, 2])], {}, ints(0, 1, 0, 0)),
    ("PadV2", [ints(1), ints([1, 0]), 9], {}, ints(9, 1)),
    ("MirrorPad", [ints(1, 2, 3), ints([2, 0])], {"mode": b"REFLECT"}, ints(3, 2, 1, 2, 3)),
    ("MirrorPad", [ints(1, 2, 3), ints([2, 0])], {"mode": b"SYMMETRIC"}, ints(2, 1, 1, 2, 3)),
    ("Transpose", [X, ints(2, 0, 1)], {}, X.transpose(2, 0, 1)),
    ("ReverseV2", [X, ints(0, -1)], {}, X[::-1, :, ::-1]),
    ("ReverseSequence", [ints([1, 2, 3], [4, 5, 6]), ints(2, 3)], {"seq_dim": 1}, ints([2, 1, 3], [6, 5, 4])),
    ("InvertPermutation", [ints(2, 0, 1)], {}, ints(1, 2, 0)),
    ("Slice", [X, ints(0, 1, 2), ints(-1, 1, 2)], {}, X[:, 1:2, 2:4]),
    ("Where", [np.array([[True, False], [False, True]])], {}, np.array([[0, 0], [1, 1]])),
    ("Where", [np.array(True)], {}, np.zeros((1, 0), np.int64)),
    ("Where", [zeros(0, 2)], {}, np.zeros((0, 2), np.int64)),
    ("OneHot", [np.array([1, 5, -1]), 3, F(2).reshape(()), F(1).reshape(())], {}, F([[1, 2, 1], [1, 1, 1], [1, 1, 1]])),
    ("OneHot", [np.array([0, 1]), 2, 1, 0], {"axis": 0}, ints([1, 0], [0, 1])),
    ("Gather", [X, ints(1, 0, 1)], {}, X[[1, 0, 1]]),
    ("Gather", [S, np.array([[1]])], {}, S[[[1]]]),
    ("GatherV2", [X, np.array([[1, 0]]), 0], {}, X[[[1, 0]]]),
    ("GatherV2", [X, ints(2, 2), -1], {}, X[..., [2, 2]]),
    ("GatherV2", [zeros(3, 0), ints(1, 1), 0], {}, zeros(2, 0)),
    ("GatherV2", [X, np.zeros((0, 2), np.int32), 0], {}, zeros(0, 2, 3, 4)),
    ("GatherV2", [X[::-1, ::2], ints(0), 0], {}, X[1:2, ::2]),
    ("GatherV2", [X, np.array([[1], [2]]), 1], {"batch_dims": 1}, np.stack([X[0, [1]], X[1, [2]]])),
    ("GatherNd", [X, np.array([[0, 1], [1, 2]])], {}, np.stack([X[0, 1], X[1, 2]])),
    ("ScatterNd", [ints([0], [2], [0]), F([1, 2, 3]), ints(4)], {}, F([4, 0, 2, 0])),
    ("TensorScatterUpdate", [ints(1, 2, 3), ints([1]), ints(9)], {}, ints(1, 9, 3)),
    ("DynamicStitch", [ints(0, 2), np.array(1, np.int32), ints(5, 7), np.array(6, np.int32)], {}, ints(5, 6, 7)),
    ("SparseToDense", [ints(0, 2), ints(4), F([5, 6]), F(1).reshape(())], {}, F([5, 1, 6, 1])),
    ("SparseToDense", [np.array([[0, 1]]), np.array([2, 2]), F([5]), F(0).reshape(())], {}, F([[0, 5], [0, 0]])),
    ("Diag", [ints(1, 2)], {}, ints([1, 0], [0, 2])),
    ("MatrixDiag", [ints([1, 2])], {}, ints([[1, 0], [0, 2]])),
    ("MatrixBandPart", [np.ones((2, 3), F), 0, -1], {}, F([[1, 1, 1], [0, 1, 1]])),
    ("SpaceToDepth", [ints([[[1], [2]], [[3], [4]]])], {"block_size": 2}, ints([[[1, 2, 3, 4]]])),
    ("EnsureShape", [X], {"shape": TensorShape([2, None, 4])}, X),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "expected"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_case(ops: Any, op: str, inputs: list[Any], attrs: dict[str, Any], expected: np.ndarray) -> None:
    result = ops.run(op, inputs, **attrs)

    if op == "Fill" and result.size and result.dtype == np.float32:
        expected = np.full(result.shape, 7, F)
    assert result.shape == expected.shape
    assert result.tolist() == expected.tolist()


#: op, inputs, attrs, several expected outputs.
SPLITS: list[tuple[str, list[Any], dict[str, Any], list[Any]]] = [
    ("Split", [0, ints(1, 2, 3, 4)], {"num_split": 2}, [[1, 2], [3, 4]]),
    ("Split", [-1, ints([1, 2])], {"num_split": 2}, [[[1]], [[2]]]),
    ("SplitV", [ints(1, 2, 3), ints(1, -1), 0], {"num_split": 2}, [[1], [2, 3]]),
    ("Unpack", [ints([1, 2], [3, 4])], {"num": 2, "axis": -1}, [[1, 3], [2, 4]]),
    ("Unique", [ints(3, 1, 3, 2)], {}, [[3, 1, 2], [0, 1, 0, 2]]),
    ("UniqueWithCounts", [ints(3, 1, 3)], {}, [[3, 1], [0, 1, 0], [2, 1]]),
    ("ListDiff", [ints(1, 2, 3, 2), ints(2)], {}, [[1, 3], [0, 2]]),
    ("DynamicPartition", [ints(1, 2, 3), ints(1, 0, 1)], {"num_partitions": 3}, [[2], [1, 3], []]),
    ("ShapeN", [zeros(2), zeros(0, 3)], {}, [[2], [0, 3]]),
    ("ConcatOffset", [1, ints(2, 3), ints(2, 5)], {}, [[0, 0], [0, 3]]),
    ("IdentityN", [ints(1), F([2])], {}, [[1], [2.0]]),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "expected"), SPLITS, ids=lambda v: v if isinstance(v, str) else "")
def test_several_outputs(ops: Any, op: str, inputs: list[Any], attrs: dict[str, Any], expected: list[Any]) -> None:
    assert [o.tolist() for o in ops.run(op, inputs, **attrs)] == expected


def test_single_output_of_a_split_is_no_tuple(ops: Any) -> None:
    assert ops.run("Split", [0, ints(1, 2)], num_split=1).tolist() == [1, 2]
    assert ops.run("Unpack", [ints([1, 2])], num=1).tolist() == [1, 2]
    assert ops.run("DynamicPartition", [ints(1, 2), ints(0, 0)], num_partitions=1).tolist() == [1, 2]


def sliced(ops: Any, x: np.ndarray, *spec: Any) -> np.ndarray:
    """Runs StridedSlice for a Python index, encoding it as tf.Tensor.__getitem__ does."""
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for i, part in enumerate(spec):
        b, e, s = 0, 0, 1
        if part is Ellipsis:
            masks["ellipsis_mask"] |= 1 << i
        elif part is None:
            masks["new_axis_mask"] |= 1 << i
        elif isinstance(part, slice):
            b, e, s = part.start or 0, part.stop or 0, part.step or 1
            masks["begin_mask"] |= (part.start is None) << i
            masks["end_mask"] |= (part.stop is None) << i
        else:
            b, e = part, part + 1
            masks["shrink_axis_mask"] |= 1 << i
        begin.append(b)
        end.append(e)
        strides.append(s)
    return ops.run("StridedSlice", [x, ints(*begin), ints(*end), ints(*strides)], **masks)  # type: ignore[no-any-return]


PARTS = [slice(None), slice(1, 3), slice(None, None, -1), slice(-5, 9, 2), slice(2, 0, -1), slice(2, 2), 1, -1, None]


def test_strided_slice_is_pythons_slicing(ops: Any) -> None:
    x = np.arange(60, dtype=F).reshape(3, 4, 5)
    specs = [*itertools.product(PARTS, repeat=2), (Ellipsis, 0), (0, Ellipsis, 1), (0, 1, 2), (None, Ellipsis, None)]

    for spec in specs:
        result = sliced(ops, x, *spec)
        assert result.shape == x[spec].shape, spec
        assert np.array_equal(result, x[spec]), spec


def test_strided_slice_grad_puts_the_gradient_back(ops: Any) -> None:
    dy = np.ones((2, 1), F)
    args = [ints(2, 3), ints(0, 1), ints(0, 2), ints(1, 1), dy]

    result = ops.run("StridedSliceGrad", args, begin_mask=1, end_mask=1)

    assert result.tolist() == [[0, 1, 0], [0, 1, 0]]


def test_const_is_one_read_only_array(ops: Any) -> None:
    compute, _ = ops.build("Const", [], {"value": np.array([1, 2], F), "dtype": dtypes.float32})

    assert compute() is compute()
    assert is_frozen(compute())


def test_a_view_of_what_others_write_to_is_not_frozen() -> None:
    memory = np.zeros(4, F)
    view = memory[1:]
    view.flags.writeable = False
    assert not is_frozen(view)
    assert is_frozen(np.frombuffer(b"abcd", np.uint8))
    freeze(view)
    assert is_frozen(view)
    assert is_frozen(memory)


def test_views_of_read_only_arrays_stay_read_only(ops: Any) -> None:
    for result in (
        ops.run("Identity", [X]),
        ops.run("Reshape", [X, ints(-1)]),
        ops.run("Transpose", [X, ints(0, 2, 1)]),
        sliced(ops, X, 0),
        ops.run("Split", [0, X], num_split=2)[0],
        ops.run("Unpack", [X], num=2)[0],
        ops.run("Slice", [X, ints(0, 0, 0), ints(1, 1, 1)]),
    ):
        assert not result.flags.writeable


#: op, inputs, attrs, text.
WRONG: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Placeholder", [], {"dtype": dtypes.float32, "shape": TensorShape([None, 3]), "name": "x"},
     r"^You must feed a value for placeholder tensor 'x' with dtype float and shape \[\?,3\]$"),
    ("Placeholder", [], {"dtype": dtypes.int32, "shape": TensorShape(None), "name": "y"},
     "^You must feed a value for placeholder tensor 'y' with dtype int32$"),
    ("Reshape", [zeros(2, 3), ints(4, -1)], {},
     "^Input to reshape is a tensor with 6 values, but the requested shape requires a multiple of 4$"),
    ("Reshape", [zeros(2, 3), ints(4)], {}, "is a tensor with 6 values, but the requested shape has 4$"),
    ("Reshape", [zeros(2, 3), ints(-1, -1)], {}, "^Only one input size may be -1, not both 0 and 1$"),
    ("Reshape", [zeros(2, 3), ints(-2, 3)], {}, "^Size 0 must be non-negative, not -2$"),
    ("Reshape", [zeros(2, 3), ints([1, 2])], {}, r"^sizes input must be 1-D, not \[1,2\]$"),
    ("ExpandDims", [zeros(2, 3), 4], {}, "^Tried to expand dim index 4 for tensor with 2 dimensions.$"),
    ("Squeeze", [zeros(2, 3)], {"squeeze_dims": [0]}, r"^Can not squeeze dim\[0\], expected a dimension of 1, got 2$"),
    ("Fill", [ints(-1), 1], {}, "^Dimension -1 must be >= 0"),
    ("Tile", [zeros(2, 3), ints(1)], {}, "^Expected multiples argument to be a vector of length 2 but got length 1$"),
    ("Tile", [zeros(2, 3), ints(1, -1)], {}, r"^Expected multiples\[1\] >= 0, but got -1$"),
    ("GatherV2", [zeros(5, 2), ints(0, 7), 0], {}, r"^indices\[1\] = 7 is not in \[0, 5\)$"),
    ("GatherV2", [zeros(5, 2), np.array([[0, 1], [9, 0]]), 0], {}, r"^indices\[1,0\] = 9 is not in \[0, 5\)$"),
    ("GatherV2", [zeros(5, 2), np.array(9), 1], {}, r"^indices = 9 is not in \[0, 2\)$"),
    ("GatherV2", [zeros(5, 2), ints(-1), 0], {}, r"^indices\[0\] = -1 is not in \[0, 5\)$"),
    ("GatherV2", [S, ints(2), 0], {}, r"^indices\[0\] = 2 is not in \[0, 2\)$"),
    ("GatherV2", [np.array(1, F), ints(0), 0], {}, "^params must be at least 1 dimensional$"),
    ("GatherV2", [zeros(2, 5), ints(1), 0], {"batch_dims": 1}, r"^batch_dims \(1\) must be less than or equal to axis"),
    ("Gather", [zeros(0, 2), ints(0)], {}, r"^indices\[0\] = 0 is not in \[0, 0\)$"),
    ("GatherNd", [zeros(5, 2), ints([0, 7])], {}, r"^indices\[0\] = \[0, 7\] does not index into param shape \[5,2\]"),
    ("ScatterNd", [ints([9]), zeros(1, 2), ints(5, 2)], {}, r"^indices\[0\] = \[9\] does not index into shape \[5,2\]"),
    ("ScatterNd", [ints([1]), zeros(1, 3), ints(5, 2)], {}, r"^Dimensions \[1,2\) of input\[shape=\[5,2\]\]"),
    ("Pack", [zeros(2), zeros(3)], {},
     r"^Shapes of all inputs must match: values\[0\]\.shape = \[2\] != values\[1\]\.shape = \[3\]$"),
    ("Pack", [zeros(2), zeros(2)], {"axis": 3}, r"^axis = 3 not in \[-2, 2\)$"),
    ("Unpack", [zeros(2, 3)], {"num": 3}, r"^Input shape axis 0 must equal 3, got shape \[2,3\]$"),
    ("ConcatV2", [zeros(2, 3), zeros(2, 4), 0], {},
     r"^ConcatOp : Dimension 1 in both shapes must be equal: shape\[0\] = \[2,3\] vs\. shape\[1\] = \[2,4\]$"),
    ("ConcatV2", [zeros(2, 3), zeros(2), 0], {}, "^ConcatOp : Ranks of all input tensors should match"),
    ("ConcatV2", [zeros(2, 3), zeros(2, 3), 2], {},
     r"^ConcatOp : Expected concatenating dimensions in the range \[-2, 2\), but got 2$"),
    ("ConcatV2", [np.array(1, F), np.array(1, F), 0], {}, "^ConcatOp : Can't concatenate scalars"),
    ("Slice", [zeros(2, 3), ints(0, 1), ints(2, 3)], {}, r"^Expected size\[1\] in \[0, 2\], but got 3$"),
    ("Slice", [zeros(2, 3), ints(0, 4), ints(2, 1)], {}, r"^Expected begin\[1\] in \[0, 3\], but got 4$"),
    ("StridedSlice", [zeros(2, 3), ints(0), ints(1), ints(0)], {}, r"^strides\[0\] must be non-zero$"),
    ("StridedSlice", [zeros(2, 3), ints(5), ints(6), ints(1)], {"shrink_axis_mask": 1},
     r"^slice index 5 of dimension 0 out of bounds\.$"),
    ("StridedSlice", [zeros(2), ints(0, 0), ints(1, 1), ints(1, 1)], {},
     "^Index out of range using input dim 1; input has only 1 dims$"),
    ("StridedSlice", [zeros(2), ints(0), ints(1), ints(-1)], {"shrink_axis_mask": 1}, "^only stride 1 allowed"),
    ("StridedSlice", [zeros(2), ints(0, 1), ints(1, 1), ints(1, 1)], {"ellipsis_mask": 3}, "^Multiple ellipses"),
    ("Split", [0, zeros(3, 2)], {"num_split": 2}, r"but got split_dim 0 \(size = 3\) and num_split 2$"),
    ("Split", [2, zeros(3, 2)], {"num_split": 2}, r"^-input rank\(-2\) <= split_dim < input rank \(2\), but got 2$"),
    ("SplitV", [zeros(3), ints(1, 1), 0], {"num_split": 2}, "^Determined shape must either match input shape"),
    ("SplitV", [zeros(3), ints(-1, -1), 0], {"num_split": 2}, "^There can only be one -1 in the input.$"),
    ("Transpose", [zeros(2, 3), ints(0)], {}, r"^transpose expects a vector of size 2\. But input\(1\)"),
    ("Transpose", [zeros(2, 3), ints(0, 0)], {}, r"^1 is missing from \{0,0\}\.$"),
    ("Pad", [zeros(2, 3), ints([0, -1], [0, 0])], {}, "^Paddings must be non-negative: 0 -1$"),
    ("InvertPermutation", [ints(0, 0)], {}, r"^0 is duplicated in the input\.$"),
    ("DynamicPartition", [zeros(2), ints(0, 2)], {"num_partitions": 2}, r"^partitions\[1\] = 2 is not in \[0, 2\)$"),
    ("DynamicStitch", [ints(0), ints(1), zeros(1), zeros(2)], {}, r"^data\[1\]\.shape = \[2\] does not start with"),
    ("SparseToDense", [ints(0, 7), ints(3), zeros(2), F(0).reshape(())], {}, r"^indices\[1\] = \[7\] is out of bounds"),
    ("SparseToDense", [ints(1, 0), ints(3), zeros(2), F(0).reshape(())], {}, r"^indices\[1\] = \[0\] is out of order"),
    ("OneHot", [np.array([1]), -1, 1, 0], {}, "^depth must be non-negative, got: -1$"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attrs", "text"), WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **attrs)


@pytest.mark.parametrize(
    ("indices", "dims", "says"),
    [
        (ints(2, 5), ints(3, 0), "dims cannot contain a dim of zero"),
        (ints(2, 5), ints(3, -1), "dims cannot be negative"),
        (ints(1), ints(1 << 20, 1 << 20), "Input dims product is causing integer overflow"),
        (ints(6), ints(2, 3), "index is out of bound as with dims"),
        (ints([1]), ints(2, 3), "can only be scalar or vector"),
    ],
)
def test_unravel_index_says_what_is_wrong(ops: Any, indices: Any, dims: Any, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run("UnravelIndex", [indices, dims])


def test_slices_of_a_variable_are_assigned(ops: Any) -> None:
    variable = Variable("v", dtypes.float32, TensorShape([2, 3]))
    variable.assign(zeros(2, 3))

    ops.run("StridedSliceAssign", [variable, ints(0, 1), ints(2, 3), ints(1, 1), np.array([7], F)])

    assert variable.value.tolist() == [[0, 7, 7], [0, 7, 7]]
    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot broadcast input shape \[2\] into"):
        ops.run("StridedSliceAssign", [variable, ints(0), ints(2), ints(1), np.array([1, 2], F)])


@pytest.mark.parametrize(("op", "expected"), [("ScatterNdMin", [1, 2, 0]), ("ScatterNdMax", [4, 2, 5])])
def test_scatter_nd_extremes(ops: Any, op: str, expected: list[float]) -> None:
    variable = Variable("v", dtypes.float32, TensorShape([3]))
    variable.assign(np.array([3, 2, 5], F))

    ops.run(op, [variable, ints([0], [0], [2]), np.array([1, 4, 0], F)])

    assert variable.value.tolist() == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [("TensorScatterAdd", [2, 1, 8]), ("TensorScatterUpdate", [1, 1, 7]), ("TensorScatterSub", [0, 1, -6])],
)
def test_bad_indices_are_passed_over_where_that_is_asked_for(ops: Any, op: str, expected: list[float]) -> None:
    inputs = [np.ones(3, F), ints([2], [3], [0], [-1]), np.array([7, 9, 1, 9], F)]

    assert ops.run(op, inputs, bad_indices_policy=b"IGNORE").tolist() == expected
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\] = \[3\] does not index into shape \[3\]"):
        ops.run(op, inputs)
    with pytest.raises(errors.InvalidArgumentError, match="it must be DEFAULT, ERROR or IGNORE"):
        ops.run(op, inputs, bad_indices_policy=b"SOMETIMES")


def test_one_element_is_gathered_as_an_array(ops: Any) -> None:
    texts = np.array([b"a", b"b"], object)

    for params, expected in ((np.array([True, False]), False), (texts, b"b"), (np.array([1, 2], F), 2)):
        assert ops.run("GatherNd", [params, ints(1)]).tolist() == expected


def test_fingerprints_of_rows(ops: Any) -> None:
    method = np.array(b"farmhash64", dtype=object)
    rows = ops.run("Fingerprint", [ints([1, 2], [1, 2], [3, 4]), method])
    texts = ops.run("Fingerprint", [np.array([b"a", b"b"], dtype=object), method])

    assert rows.shape == (3, 8)
    assert (rows[0] == rows[1]).all()
    assert not (rows[0] == rows[2]).all()
    # FarmHash's Fingerprint64 of "a" and "b", little-endian.
    assert texts.view("<u8").ravel().tolist() == [12917804110809363939, 11795596070477164822]


def test_a_resource_is_no_constant(ops: Any) -> None:
    handle = ops.run("VarHandleOp", [], dtype=dtypes.float32, shape=TensorShape([]))
    with pytest.raises(errors.InvalidArgumentError, match="cannot be a resource variable"):
        ops.run("GuaranteeConst", [handle])


def test_what_is_constant_is_its_input(ops: Any) -> None:
    x = np.float32([1, 2])

    assert np.shares_memory(ops.run("GuaranteeConst", [x]), x)


@pytest.mark.parametrize("op", ["Gather", "GatherV2"])
def test_one_string_gathered_is_no_text_of_numpy(ops: Any, op: str) -> None:
    inputs = [S[0], np.array(1, np.int32), *([np.array(0, np.int32)] if op == "GatherV2" else [])]

    out = ops.run(op, inputs)

    assert out.shape == ()
    assert out.item() == b"bb"


def test_mirrors_are_no_wider_than_what_they_show(ops: Any) -> None:
    x = ints(1, 2, 3)

    assert ops.run("MirrorPad", [x, ints([3, 0])], mode=b"SYMMETRIC").tolist() == [3, 2, 1, 1, 2, 3]
    assert ops.run("MirrorPad", [np.int32(7), np.zeros((0, 2), np.int32)], mode=b"REFLECT") == 7
    for mode, width, text in ((b"SYMMETRIC", 4, "no greater than"), (b"REFLECT", 3, "less than")):
        with pytest.raises(
            errors.InvalidArgumentError, match=f"^paddings must be {text} the dimension size: {width}, 0"
        ):
            ops.run("MirrorPad", [x, ints([width, 0])], mode=mode)


def test_updates_of_strings_and_of_nothing(ops: Any) -> None:
    words = np.array([b"a", b"b", b"c"], object)

    assert ops.run("ScatterNd", [ints([1], [1], [0]), words, ints(3)]).tolist() == [b"c", b"ab", b""]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Indices and updates specified for empty output\."):
        ops.run("ScatterNd", [ints([0]), zeros(1, 2), ints(0, 2)])


def test_an_axis_must_be_one_number(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^split_dim must be a scalar but has rank 1$"):
        ops.run("Split", [ints(0), zeros(4)], num_split=2)
    with pytest.raises(errors.InvalidArgumentError, match=r"^split_dim_tensor must have exactly one element"):
        ops.run("SplitV", [zeros(4), ints(2, 2), ints(0, 0)], num_split=2)
    with pytest.raises(errors.InvalidArgumentError, match=r"^input 1 should be a vector, but got shape \[\]$"):
        ops.run("ConcatOffset", [0, 3, ints(1)], N=2)


def test_empty_slices_are_alike(ops: Any) -> None:
    y, places, counts = ops.run("UniqueWithCountsV2", [np.zeros((3, 0), np.float32), np.int32([0])])
    assert (y.shape, places.tolist(), counts.tolist()) == ((1, 0), [0, 0, 0], [3])

    y, places = ops.run("UniqueV2", [np.zeros((0, 2), np.float32), np.int32([0])])
    assert (y.shape, places.tolist()) == ((0, 2), [])
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("UniqueV2", [np.zeros((1 << 45, 0), np.float32), np.int32([0])])
