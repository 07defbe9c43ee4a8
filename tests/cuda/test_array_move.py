"""Ops that only move elements give on a GPU what they give on the CPU: every element size, every kind of place."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from support.kernel_runs import make_node
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._runtime import runtime
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from types import SimpleNamespace

#: The smallest elements, the usual ones, the largest, and those that stay in the host's memory.
SIZES = ("int8", "float32", "complex128", "int32")
TYPES = ("bool", "uint8", "int16", "uint16", "float16", "bfloat16", "int64", "float64", "complex64")


class D(tuple[int, ...]):
    """The shape of an input whose elements are moved."""


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    numbers = np.random.default_rng(seed).integers(0, 100, shape)
    return numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def inputs(case: tuple[Any, ...], dtype: str) -> list[Any]:
    return [data(each, dtype, seed) if isinstance(each, D) else each for seed, each in enumerate(case)]


def i32(*values: Any) -> Any:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


#: (op, inputs, attrs)
MOVES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Slice", (D((5, 4)), i32([1, 0]), i32([3, -1])), {}),
    ("Slice", (D((5, 4)), i32([1, 1]), i32([3, 2])), {}),
    ("Slice", (D((3, 5, 4)), i32([1, 2, 1]), i32([2, 2, 3])), {}),
    ("Slice", (D((5, 4)), i32([2, 0]), i32([0, 4])), {}),
    ("Slice", (D(()), i32([]), i32([])), {}),
    ("StridedSlice", (D((7,)), i32([5]), i32([0]), i32([-2])), {}),
    ("StridedSlice", (D((4, 6)), i32([1, 0]), i32([3, 6]), i32([1, 2])), {}),
    ("StridedSlice", (D((4, 6)), i32([0, -1]), i32([4, 0]), i32([2, -3])), {"end_mask": 3}),
    ("StridedSlice", (D((4, 3)), i32([2, 0]), i32([3, 0]), i32([1, 1])), {"shrink_axis_mask": 1, "end_mask": 2}),
    ("StridedSlice", (D((3, 4)), i32([0, 1]), i32([0, 2]), i32([1, 1])), {"new_axis_mask": 1}),
    ("StridedSliceGrad", (i32([4, 6]), i32([1, 0]), i32([3, 6]), i32([1, 2]), D((2, 3))), {}),
    ("StridedSliceGrad", (i32([7]), i32([5]), i32([0]), i32([-2]), D((3,))), {}),
    ("StridedSliceGrad", (i32([2, 3]), i32([0, 0]), i32([2, 3]), i32([1, 1]), D((2, 3))), {}),
    ("StridedSliceGrad", (i32([0, 3]), i32([0, 0]), i32([0, 3]), i32([1, 1]), D((0, 3))), {}),
    ("TensorStridedSliceUpdate", (D((4, 6)), i32([1, 0]), i32([3, 6]), i32([1, 2]), D((2, 3))), {}),
    ("TensorStridedSliceUpdate", (D((4, 3)), i32([1, 0]), i32([3, 3]), i32([1, 1]), D((3,))), {}),
    ("Split", (i32(0), D((6, 5))), {"num_split": 3}),
    ("Split", (i32(-1), D((3, 6))), {"num_split": 2}),
    ("Split", (i32(1), D((2, 6, 3))), {"num_split": 1}),
    ("SplitV", (D((7, 3)), i32([2, -1, 1]), i32(0)), {"num_split": 3}),
    ("SplitV", (D((3, 7)), i32([2, 0, 5]), i32(1)), {"num_split": 3}),
    ("Unpack", (D((3, 5)),), {"num": 3}),
    ("Unpack", (D((3, 4, 2)),), {"num": 4, "axis": 1}),
    ("Unpack", (D((3, 4)),), {"num": 4, "axis": -1}),
    ("Pack", (D((3,)), D((3,)), D((3,))), {}),
    ("Pack", (D((3, 2)), D((3, 2))), {"axis": 1}),
    ("Pack", (D((3, 2)), D((3, 2)), D((3, 2))), {"axis": -1}),
    ("Pack", (D(()), D(())), {}),
    ("Pack", (D((2, 3)),), {}),
    ("ConcatV2", (D((2, 3)), D((1, 3)), D((3, 3)), i32(0)), {}),
    ("ConcatV2", (D((2, 3)), D((2, 1)), D((2, 4)), i32(-1)), {}),
    ("ConcatV2", (D((2, 0)), D((2, 3)), i32(1)), {}),
    ("ConcatV2", (D((2, 0)), D((2, 0)), i32(1)), {}),
    ("ConcatV2", (D((2, 2, 3)), D((2, 1, 3)), i32(1)), {}),
    ("Concat", (i32(1), D((2, 3)), D((2, 2))), {}),
    ("Transpose", (D((3, 5)), i32([1, 0])), {}),
    ("Transpose", (D((7, 11)), i32([1, 0])), {}),
    ("Transpose", (D((2, 3, 4)), i32([0, 2, 1])), {}),
    ("Transpose", (D((2, 3, 4)), i32([2, 1, 0])), {}),
    ("Transpose", (D((2, 3, 4)), i32([1, 0, 2])), {}),
    ("Transpose", (D((2, 3, 1, 5)), i32([3, 2, 0, 1])), {}),
    ("Transpose", (D((2, 1, 2, 3, 2)), i32([0, 3, 1, 4, 2])), {}),
    ("Transpose", (D((0, 3)), i32([1, 0])), {}),
    ("ConjugateTranspose", (D((3, 5)), i32([1, 0])), {}),
    ("ReverseV2", (D((7,)), i32([0])), {}),
    ("ReverseV2", (D((3, 4)), i32([1])), {}),
    ("ReverseV2", (D((3, 2, 2)), i32([0, -1])), {}),
    ("ReverseV2", (D((3, 4)), i32([])), {}),
    ("Reverse", (D((3, 4)), np.array([True, False])), {}),
    ("ReverseSequence", (D((3, 4)), np.array([2, 4, 0])), {"seq_dim": 1, "batch_dim": 0}),
    ("ReverseSequence", (D((4, 2, 3)), i32([3, 1])), {"seq_dim": 0, "batch_dim": 1}),
    ("Roll", (D((5,)), i32(2), i32(0)), {}),
    ("Roll", (D((3, 4)), i32([1, -1]), i32([0, 1])), {}),
    ("Roll", (D((3, 4)), i32([1, 2, 3]), i32([1, 0, 1])), {}),
    ("Fill", (i32([2, 3]), D(())), {}),
    ("Fill", (i32([]), D(())), {}),
    ("Fill", (i32([0, 3]), D(())), {}),
    ("ZerosLike", (D((2, 3)),), {}),
    ("ZerosLike", (D((0,)),), {}),
    ("OnesLike", (D((2, 3)),), {}),
    ("Pad", (D((2, 3)), i32([[1, 0], [2, 1]])), {}),
    ("Pad", (D((2, 3)), i32([[0, 0], [0, 0]])), {}),
    ("Pad", (D((0, 3)), i32([[1, 0], [0, 0]])), {}),
    ("PadV2", (D((3,)), i32([[1, 2]]), D(())), {}),
    ("MirrorPad", (D((3, 4)), i32([[2, 1], [0, 3]])), {"mode": "REFLECT"}),
    ("MirrorPad", (D((3, 2)), i32([[3, 1], [2, 2]])), {"mode": "SYMMETRIC"}),
    ("Tile", (D((2, 3)), i32([2, 1])), {}),
    ("Tile", (D((2, 3)), i32([1, 2])), {}),
    ("Tile", (D((2, 1, 3)), i32([2, 3, 2])), {}),
    ("Tile", (D((2, 3)), i32([0, 2])), {}),
    ("Tile", (D(()), i32([])), {}),
    ("BroadcastTo", (D((3, 1)), i32([2, 3, 4])), {}),
    ("BroadcastTo", (D(()), i32([5])), {}),
    ("BroadcastTo", (D((2, 3)), i32([2, 3])), {}),
    ("OneHot", (i32([1, 0, 7, -1]), i32(3), D(()), D(())), {}),
    ("OneHot", (np.array([[1, 0], [2, 1]]), i32(3), D(()), D(())), {"axis": 0}),
    ("OneHot", (np.array([[1, 0], [2, 1]], np.uint8), i32(3), D(()), D(())), {"axis": 1}),
    ("OneHot", (i32(2), i32(4), D(()), D(())), {}),
    ("MatrixDiag", (D((3,)),), {}),
    ("MatrixDiag", (D((2, 3)),), {}),
    ("MatrixDiagPart", (D((2, 3, 4)),), {}),
    ("MatrixDiagPart", (D((4, 3)),), {}),
    ("MatrixSetDiag", (D((2, 4, 3)), D((2, 3))), {}),
    ("MatrixDiagV3", (D((2, 3)), i32(1), i32(-1), i32(-1), D(())), {}),
    ("MatrixDiagV3", (D((2, 3, 3)), i32([-1, 1]), i32(-1), i32(-1), D(())), {"align": "LEFT_RIGHT"}),
    ("MatrixDiagPartV3", (D((2, 3, 4)), i32([-1, 2]), D(())), {}),
    ("MatrixDiagPartV3", (D((3, 4)), i32(-1), D(())), {}),
    ("MatrixSetDiagV3", (D((3, 4)), D((2, 3)), i32([0, 1])), {}),
    ("MatrixSetDiagV3", (D((3, 4)), D((3,)), i32(0)), {}),
    ("MatrixBandPart", (D((2, 3, 4)), i32(1), i32(0)), {}),
    ("MatrixBandPart", (D((4, 3)), i32(-1), i32(1)), {}),
    ("SpaceToBatchND", (D((1, 4, 2, 2)), i32([2, 2]), i32([[0, 0], [2, 0]])), {}),
    ("SpaceToBatch", (D((1, 2, 4, 1)), i32([[0, 0], [0, 0]])), {"block_size": 2}),
    ("BatchToSpaceND", (D((4, 1, 2, 3)), i32([2, 2]), i32([[0, 0], [1, 0]])), {}),
    ("BatchToSpace", (D((4, 1, 2, 1)), i32([[0, 0], [0, 0]])), {"block_size": 2}),
    ("SpaceToDepth", (D((1, 2, 4, 3)),), {"block_size": 2}),
    ("DepthToSpace", (D((2, 1, 2, 8)),), {"block_size": 2}),
]


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("number", range(len(MOVES)), ids=lambda n: f"{MOVES[n][0]}{n}")
def test_a_move_gives_what_the_cpu_gives(gpu: SimpleNamespace, number: int, dtype: str) -> None:
    op, case, attrs = MOVES[number]
    if op == "ConjugateTranspose" and dtype.startswith("complex"):
        assert not registry.devices_with_kernel(op, {"T": dtypes.as_dtype(dtype)}, ["GPU"])
        return

    gpu.same(op, inputs(case, dtype), **attrs)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["Slice", "Pack", "ConcatV2", "Transpose", "Pad", "OneHot", "Fill", "OnesLike", "Tile"])
def test_elements_of_every_type_are_moved(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    case = next(case for name, case, _ in MOVES if name == op)

    gpu.same(op, inputs(case, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "int32"])
def test_diagonals_of_a_tensor(gpu: SimpleNamespace, dtype: str) -> None:
    gpu.same("Diag", [data((2, 3), dtype)])
    gpu.same("DiagPart", [data((2, 3, 2, 3), dtype)])
    gpu.same("Diag", [data((0,), dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "int32"])
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_borders_are_folded_back(gpu: SimpleNamespace, mode: str, dtype: str) -> None:
    gpu.same("MirrorPadGrad", [data((6, 7), dtype), i32([[2, 1], [0, 3]])], mode=mode)
    gpu.same("MirrorPadGrad", [data((5, 4, 2), dtype), i32([[1, 1], [1, 1], [0, 0]])], mode=mode)
    gpu.same("MirrorPadGrad", [data((3,), dtype), i32([[0, 0]])], mode=mode)


@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank_up_to_eight_is_turned_round(gpu: SimpleNamespace, rank: int) -> None:
    shape = (2, 3, 1, 2, 2, 1, 2, 3)[:rank]
    order = np.random.default_rng(rank).permutation(rank).astype(np.int32)
    x = data(shape, "float32")

    gpu.same("Transpose", [x, order])
    gpu.same("Tile", [x, i32([2] + [1] * (rank - 1))])
    gpu.same("ReverseV2", [x, i32(list(range(0, rank, 2)))])
    begin = [0] * rank
    gpu.same("StridedSlice", [x, i32(begin), i32(shape), i32([2] * rank)])


def test_bits_are_seen_as_another_type(gpu: SimpleNamespace) -> None:
    x = data((3, 2), "float32")

    gpu.same("Bitcast", [x], type=dtypes.int32)
    gpu.same("Bitcast", [x], type=dtypes.float64)
    gpu.same("Bitcast", [x], type=dtypes.uint8)
    gpu.same("Bitcast", [i32([1, 2, 3])], type=dtypes.float32)


def test_bits_that_are_not_aligned_are_copied(gpu: SimpleNamespace) -> None:
    host = data((9,), "uint8")
    part = _moves.take(runtime(0).to_device(host), _moves.Place((4,), (1,), 3))
    node = make_node("Bitcast", [host], {"type": dtypes.float32}, ResourceManager(), "cast", gpu.device)

    found = registry.lookup(node, "GPU")(node)(part)

    assert found.offset % 4 == 0
    np.testing.assert_array_equal(found.to_host().reshape(1).view(np.uint8), host[3:7])


def test_nchw_blocks_of_space_become_channels(gpu: SimpleNamespace) -> None:
    x = data((2, 3, 4, 2), "float32")

    found = gpu.run("SpaceToDepth", [x], block_size=2, data_format="NCHW")
    back = gpu.run("DepthToSpace", [found], block_size=2, data_format="NCHW")

    wanted = gpu.run("SpaceToDepth", [np.ascontiguousarray(x.transpose(0, 2, 3, 1))], block_size=2)
    np.testing.assert_array_equal(found, wanted.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(back, x)


def test_a_part_in_one_piece_is_a_view() -> None:
    device = runtime(0)
    x = device.to_device(data((4, 3), "float32"))

    rows = _moves.take(x, _moves.Place((2, 3), (12, 4), 12))
    columns = _moves.take(x, _moves.Place((4, 2), (12, 4), 4))

    assert rows.buffer is x.buffer
    assert columns.buffer is not x.buffer
    np.testing.assert_array_equal(rows.to_host(), x.to_host()[1:3])
    np.testing.assert_array_equal(columns.to_host(), x.to_host()[:, 1:])


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_unaligned_pieces_are_moved(dtype: str) -> None:
    device = runtime(0)
    host = data((9, 8), dtype)
    x = device.to_device(host)
    odd = _moves.take(x, _moves.Place((5, 8), _moves.whole(x).strides, 3 * host.itemsize))

    for columns in (2, 3, 4):
        part = _moves.take(odd, _moves.Place((5, columns), _moves.whole(odd).strides, host.itemsize))
        flat = host.reshape(-1)[3:43].reshape(5, 8)
        np.testing.assert_array_equal(part.to_host(), flat[:, 1 : 1 + columns])


@pytest.mark.parametrize("shape", list(itertools.product((1, 2, 5, 9), (2, 4, 7))), ids=str)
def test_a_swap_of_two_dimensions_of_any_size(gpu: SimpleNamespace, shape: tuple[int, int]) -> None:
    gpu.same("Transpose", [data(shape, "float32"), i32([1, 0])])


ERRORS: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Slice", [np.zeros((2, 3), np.float32), i32([0, 0]), i32([3, 3])], {}, r"Expected size\[0\] in \[0, 2\]"),
    ("Split", [i32(0), np.zeros((5,), np.float32)], {"num_split": 2}, "should evenly divide"),
    ("ConcatV2", [np.zeros((2, 3), np.float32), np.zeros((3, 3), np.float32), i32(1)], {}, "Dimension 0 in both"),
    ("Pack", [np.zeros(2, np.float32), np.zeros(3, np.float32)], {}, "Shapes of all inputs must match"),
    ("Transpose", [np.zeros((2, 3), np.float32), i32([0, 0])], {}, "1 is missing from"),
    ("Pad", [np.zeros(3, np.float32), i32([[-1, 0]])], {}, "Paddings must be non-negative"),
    ("Tile", [np.zeros(3, np.float32), i32([1, 2])], {}, "a vector of length 1 but got length 2"),
    ("BroadcastTo", [np.zeros(3, np.float32), i32([2])], {}, "Incompatible shapes"),
    ("OneHot", [i32([1]), i32(-1), np.float32(1), np.float32(0)], {}, "depth must be non-negative"),
    ("MirrorPad", [np.zeros(3, np.float32), i32([[3, 0]])], {"mode": "REFLECT"}, "less than the dimension size"),
    ("StridedSliceGrad", [i32([4]), i32([0]), i32([2]), i32([1]), np.zeros(3, np.float32)], {}, "shape of dy was"),
    ("MatrixSetDiag", [np.zeros((2, 2), np.float32), np.zeros(3, np.float32)], {}, "must have diagonal.shape"),
    ("Roll", [np.zeros(3, np.float32), i32(1), i32(1)], {}, "axis 1 is out of range"),
]


@pytest.mark.parametrize(("op", "given", "attrs", "message"), ERRORS, ids=[row[0] for row in ERRORS])
def test_an_error_has_the_cpus_words(
    gpu: SimpleNamespace, op: str, given: list[Any], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        gpu.run(op, given, **attrs)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128"])
def test_a_slice_of_a_variable_is_assigned(gpu: SimpleNamespace, dtype: str) -> None:
    resources = ResourceManager()
    value, new = data((4, 6), dtype), data((2, 3), dtype, 1)
    element = dtypes.as_dtype(value.dtype)
    bounds = [i32([1, 0]), i32([3, 6]), i32([1, 2])]
    made = gpu.run("VarHandleOp", [], resources=resources, dtype=element, shape=TensorShape(None), name="v")
    gpu.run("AssignVariableOp", [made, value], resources=resources)

    gpu.run("ResourceStridedSliceAssign", [made, *bounds, new], resources=resources)
    gpu.run("ResourceStridedSliceAssign", [made, *bounds, new[0]], resources=resources, begin_mask=2)

    found = gpu.run("ReadVariableOp", [made], resources=resources, dtype=element)
    value[1:3, 0:6:2] = new[0]
    np.testing.assert_array_equal(found, value)
    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot broadcast input shape \[4\] into final"):
        gpu.run("ResourceStridedSliceAssign", [made, *bounds, data((4,), dtype)], resources=resources)
