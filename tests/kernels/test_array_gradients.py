"""Gradients of the array ops against finite differences, with known and with unknown static shapes."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.gradients import walker
from tenfold.gradients.checker import directional_error
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.graph import Graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


STRUCTURAL = [
    pytest.param(lambda x: apply_op("Identity", input=x), (2, 3), [], id="Identity"),
    pytest.param(lambda x: apply_op("Reshape", tensor=x, shape=[3, -1]), (2, 3), [], id="Reshape"),
    pytest.param(lambda x: apply_op("ExpandDims", input=x, dim=1), (2, 3), [], id="ExpandDims"),
    pytest.param(lambda x: apply_op("Squeeze", input=x, squeeze_dims=[1]), (2, 1, 3), [], id="Squeeze"),
    pytest.param(
        lambda x: apply_op("Transpose", x=x, perm=[2, 0, 1]), (2, 1, 3), ["InvertPermutation"], id="Transpose"
    ),
    pytest.param(lambda x: apply_op("Tile", input=x, multiples=[3, 2]), (2, 3), [], id="Tile"),
    pytest.param(lambda x: apply_op("Pack", values=[x, x, x * 2.0], axis=1), (2, 3), ["Unpack"], id="Pack"),
    pytest.param(lambda x: apply_op("Unpack", value=x, num=3, axis=1)[1], (2, 3), ["Unpack"], id="Unpack"),
    pytest.param(lambda x: apply_op("Split", split_dim=1, value=x, num_split=2)[1], (2, 4), [], id="Split"),
    pytest.param(lambda x: apply_op("Split", split_dim=1, value=x, num_split=1)[0], (2, 4), [], id="Split-one"),
    pytest.param(
        lambda x: apply_op("SplitV", value=x, size_splits=[4], split_dim=1, num_split=1)[0], (2, 4), [], id="SplitV-one"
    ),
    pytest.param(
        lambda x: apply_op("SplitV", value=x, size_splits=[1, 3], split_dim=1, num_split=2)[1],
        (2, 4),
        ["SplitV"],
        id="SplitV",
    ),
    pytest.param(lambda x: apply_op("Slice", input=x, begin=[0, 1], size=[-1, 2]), (2, 4), ["Pad"], id="Slice"),
    pytest.param(lambda x: x[:, 1:4:2], (2, 5), ["StridedSliceGrad"], id="StridedSlice"),
    pytest.param(lambda x: x[::-1, 0], (3, 5), ["StridedSliceGrad"], id="StridedSlice-shrink"),
    pytest.param(lambda x: x[..., None, 1], (3, 5), ["StridedSliceGrad"], id="StridedSlice-new-axis"),
    pytest.param(lambda x: apply_op("Pad", input=x, paddings=[[1, 0], [2, 1]]), (2, 3), ["Pad"], id="Pad"),
    pytest.param(lambda x: apply_op("ReverseV2", tensor=x, axis=[0]), (2, 3), ["ReverseV2"], id="ReverseV2"),
    pytest.param(
        lambda x: apply_op("BroadcastTo", input=x, shape=[4, 2, 3]), (2, 1), ["BroadcastTo"], id="BroadcastTo"
    ),
    pytest.param(
        lambda x: apply_op("GatherNd", params=x, indices=[[0, 1], [1, 2], [0, 1]]),
        (2, 3),
        ["GatherNd", "ScatterNd"],
        id="GatherNd",
    ),
    pytest.param(
        lambda x: apply_op("DynamicPartition", data=x, partitions=[1, 0, 1], num_partitions=2)[1],
        (3, 2),
        ["DynamicPartition", "ParallelDynamicStitch", "Range"],
        id="DynamicPartition",
    ),
    pytest.param(
        lambda x: apply_op("DynamicStitch", indices=[[2, 0], [1]], data=[x, x[:1]]),
        (2, 3),
        ["DynamicStitch"],
        id="DynamicStitch",
    ),
]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(("build", "shape", "needs"), STRUCTURAL)
def test_structural_op(build, shape, needs, static):
    assert directional_error(build, [normal(*shape)], static_shapes=static) < 1e-6


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis, static):
    def build(x, y, z):
        return apply_op("ConcatV2", values=[x, y, z], axis=axis)

    shapes = [(2, 3), (4, 3), (1, 3)] if axis == 0 else [(2, 3), (2, 1), (2, 2)]
    assert directional_error(build, [normal(*shape) for shape in shapes], static_shapes=static) < 1e-6


def test_fill_gives_the_sum_to_its_value():
    def build(value):
        return apply_op("Fill", dims=[2, 3], value=value)

    assert directional_error(build, [normal()]) < 1e-6


@pytest.mark.parametrize("op_type", ["Gather", "GatherV2"])
def test_gather_of_rows_gives_indexed_slices(op_type):
    with Graph().as_default():
        params = array_ops.placeholder(dtypes.float64, [5, 2])
        extra = {"axis": 0} if op_type == "GatherV2" else {}
        rows = apply_op(op_type, params=params, indices=[[0, 3], [3, 4]], **extra)
        (grad,) = walker.gradients(rows, [params])

    assert isinstance(grad, IndexedSlices)
    assert grad.values.get_shape().as_list() == [4, 2]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis):
    def build(x):
        return apply_op("GatherV2", params=x, indices=[[2, 0], [2, 1]], axis=axis)

    assert directional_error(build, [normal(3, 4, 3)]) < 1e-6


def test_sparse_and_dense_gradients_of_one_tensor_add_up():
    def build(x):
        rows = apply_op("GatherV2", params=x, indices=[1, 1, 0], axis=0)
        more = apply_op("GatherV2", params=x, indices=[2, 1], axis=0)
        return apply_op("ConcatV2", values=[rows, more, x * x], axis=0)

    assert directional_error(build, [normal(3, 2)]) < 1e-6


def test_stop_gradient_hides_a_path():
    with Graph().as_default():
        x = array_ops.placeholder(dtypes.float32, [])
        y = x * apply_op("StopGradient", input=x)
        (grad,) = walker.gradients(y, [x])
        dense = convert_to_tensor(grad)

        from tenfold.session.session import Session

        with Session("") as session:
            assert session.run(dense, {x: 3.0}) == 3.0


def test_prevent_gradient_refuses_by_name():
    with Graph().as_default():
        x = array_ops.placeholder(dtypes.float32, [])
        y = apply_op("PreventGradient", input=x, message="no way", name="guard")
        with pytest.raises(LookupError, match=r"no way.*guard"):
            walker.gradients(y, [x])


DIAGONALS_AND_BLOCKS = {
    "DiagPart": (lambda x: apply_op("DiagPart", input=x), [(3, 3)]),
    "MatrixDiag": (lambda x: apply_op("MatrixDiag", diagonal=x), [(2, 3)]),
    "MatrixSetDiag": (lambda x, d: apply_op("MatrixSetDiag", input=x, diagonal=d), [(2, 3, 4), (2, 3)]),
    "SpaceToDepth": (lambda x: apply_op("SpaceToDepth", input=x, block_size=2), [(1, 4, 2, 3)]),
    "ExtractVolumePatches": (
        lambda x: apply_op(
            "ExtractVolumePatches", input=x, ksizes=[1, 2, 2, 1, 1], strides=[1, 1, 2, 1, 1], padding="VALID"
        ),
        [(1, 3, 4, 2, 2)],
    ),
    "FusedBatchNorm of inference": (
        lambda x, scale, offset: apply_op(
            "FusedBatchNormV3",
            x=x,
            scale=scale,
            offset=offset,
            mean=np.float32([0.5, -1.0]),
            variance=np.float32([2.0, 3.0]),
            is_training=False,
        )[0],
        [(2, 3, 2, 2), (2,), (2,)],
    ),
}


@pytest.mark.parametrize("name", DIAGONALS_AND_BLOCKS)
def test_diagonals_blocks_and_what_inference_normalizes(name: str) -> None:
    function, shapes = DIAGONALS_AND_BLOCKS[name]
    generator = np.random.default_rng(5)
    narrow = "Norm" in name
    inputs = [generator.standard_normal(shape).astype(np.float32 if narrow else np.float64) for shape in shapes]

    assert directional_error(function, inputs) < (1e-2 if narrow else 1e-6)
