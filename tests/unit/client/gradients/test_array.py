"""Gradients of array ops where shapes, ranks and axes are known, and where only the step knows them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(41)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def unranked(x: Any) -> Any:
    """The same, whose rank the graph does not know."""
    return tf.placeholder_with_default(x, None)


def late(value: Any, dtype: Any = np.int32) -> Any:
    """A number or numbers that the graph does not know."""
    return tf.placeholder_with_default(np.array(value, dtype), None)


def error_of(build: Any, *inputs: np.ndarray) -> float:
    """Of the known shapes, of unknown sizes, and of unknown ranks: the worst."""
    return max(
        directional_error(build, inputs),
        directional_error(build, inputs, static_shapes=False),
        directional_error(lambda *x: build(*map(unranked, x)), inputs),
    )


def strided(x: Any, begin: Any, end: Any, strides: Any, **masks: int) -> Any:
    return apply_op("StridedSlice", input=x, begin=begin, end=end, strides=strides, **masks)


MOVES: dict[str, tuple[Any, list[np.ndarray]]] = {
    "GuaranteeConst": (lambda x: apply_op("GuaranteeConst", input=x), [normal(2)]),
    "IdentityN": (lambda x, y: x * apply_op("IdentityN", input=[x, y])[1], [normal(2), normal(2)]),
    "Fill": (lambda x: apply_op("Fill", dims=late([2, 3]), value=x), [normal()]),
    "Fill of a known shape": (lambda x: apply_op("Fill", dims=[2, 3, 2], value=x), [normal()]),
    "Tile": (lambda x: apply_op("Tile", input=x, multiples=[2, 1, 3]), [normal(2, 3, 2)]),
    "Tile by longs": (lambda x: apply_op("Tile", input=x, multiples=np.int64([3, 2])), [normal(2, 3)]),
    "Pack": (lambda x, y: apply_op("Pack", values=[x, y, x * y], axis=-1), [normal(2, 3), normal(2, 3)]),
    "Concat": (
        lambda x, y: apply_op("Concat", concat_dim=1, values=[x, y, x]), [normal(2, 3), normal(2, 1)],
    ),
    "ConcatV2 at the end": (
        lambda x, y: apply_op("ConcatV2", values=[x, y], axis=-1), [normal(2, 3, 2), normal(2, 3, 1)],
    ),
    "ConcatV2 at a late axis": (
        lambda x, y: apply_op("ConcatV2", values=[x, y], axis=late(-2)), [normal(2, 3, 2), normal(2, 1, 2)],
    ),
    "Split": (lambda x: apply_op("Split", split_dim=-1, value=x, num_split=3)[2], [normal(2, 6)]),
    "SplitV": (
        lambda x: apply_op("SplitV", value=x, size_splits=[1, 3, 2], split_dim=0, num_split=3)[1], [normal(6, 2)],
    ),
    "Slice": (lambda x: apply_op("Slice", input=x, begin=[1, 2, 0], size=[2, 1, 2]), [normal(4, 5, 3)]),
    "Slice by longs": (
        lambda x: apply_op("Slice", input=x, begin=np.int64([2, 1]), size=np.int64([1, -1])), [normal(4, 5)],
    ),
    "StridedSlice": (lambda x: strided(x, [1, 4], [4, 1], [2, -1]), [normal(5, 6)]),
    "StridedSlice by longs": (
        lambda x: strided(x, np.int64([1, 0]), np.int64([3, 2]), np.int64([1, 1])), [normal(4, 3)],
    ),
    "StridedSlice, begin": (lambda x: strided(x, [2, 2], [3, 3], [1, 1], begin_mask=2), [normal(4, 5)]),
    "StridedSlice, end": (lambda x: strided(x, [2, 2], [3, 3], [1, 1], end_mask=1), [normal(4, 5)]),
    "StridedSlice, dots": (lambda x: strided(x, [0, 1], [0, 2], [1, 1], ellipsis_mask=1), [normal(2, 3, 4)]),
    "StridedSlice, new": (lambda x: strided(x, [0, 1], [0, 2], [1, 1], new_axis_mask=1), [normal(3, 4)]),
    "StridedSlice, shrunk": (lambda x: strided(x, [0, 1], [2, 2], [1, 1], shrink_axis_mask=2), [normal(3, 4)]),
    "StridedSliceGrad": (
        lambda g: apply_op(
            "StridedSliceGrad", shape=[5, 4, 3], begin=[1, 0, 2], end=[4, 0, 0], strides=[2, 1, 1], dy=g,
            end_mask=2, shrink_axis_mask=4,
        ),
        [normal(2, 4)],
    ),
    "StridedSliceGrad, new": (
        lambda g: apply_op(
            "StridedSliceGrad", shape=[5, 4], begin=[0, 1, 0], end=[0, 2, 3], strides=[1, 1, 1], dy=g,
            begin_mask=4, new_axis_mask=1, ellipsis_mask=0,
        ),
        [normal(1, 1, 3)],
    ),
    "StridedSliceGrad, dots": (
        lambda g: apply_op(
            "StridedSliceGrad", shape=[2, 5, 4], begin=[0, 1], end=[0, 3], strides=[1, 1], dy=g, ellipsis_mask=1
        ),
        [normal(2, 5, 2)],
    ),
    "Pad": (lambda x: apply_op("Pad", input=x, paddings=np.int64([[1, 0], [0, 2]])), [normal(2, 3)]),
    "PadV2": (
        lambda x: apply_op("PadV2", input=x, paddings=[[2, 1], [1, 3]], constant_values=np.float64(7)), [normal(2, 3)],
    ),
    "ReverseV2": (lambda x: apply_op("ReverseV2", tensor=x, axis=[-1, 0]), [normal(2, 3, 4)]),
    "GatherNd": (
        lambda x: apply_op("GatherNd", params=x, indices=np.int64([[[2, 1]], [[0, 0]]])), [normal(3, 2, 2)],
    ),
    "ScatterNd": (lambda u: apply_op("ScatterNd", indices=[[3], [1], [3]], updates=u, shape=[5, 2]), [normal(3, 2)]),
    "DynamicPartition of a matrix of parts": (
        lambda x: tf.concat(
            [
                part * factor
                for factor, part in zip(
                    (1.0, -2.0, 5.0),
                    apply_op("DynamicPartition", data=x, partitions=[[2, 0, 1], [0, 0, 2]], num_partitions=3),
                    strict=True,
                )
            ],
            0,
        ),
        [normal(2, 3, 2)],
    ),
    "ParallelDynamicStitch": (
        lambda x, y: apply_op("ParallelDynamicStitch", indices=[[3, 0], [[1], [2]]], data=[x, y]),
        [normal(2, 2), normal(2, 1, 2)],
    ),
    "DynamicStitch of several at one place": (
        # of those that meet at one place the last counts, but each has its gradient, as in TensorFlow
        lambda x, y: apply_op("DynamicStitch", indices=[[0, 2], [1]], data=[x, y]), [normal(2, 3), normal(1, 3)],
    ),
    "MatrixBandPart": (
        lambda x: apply_op("MatrixBandPart", input=x, num_lower=np.int64(1), num_upper=np.int64(0)), [normal(2, 4, 3)],
    ),
    "SparseToDense": (
        lambda v, d: apply_op(
            "SparseToDense", sparse_indices=[[0, 1], [2, 2]], output_shape=[3, 4], sparse_values=v, default_value=d
        ),
        [normal(2), normal()],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_elements(name: str) -> None:
    build, inputs = MOVES[name]
    assert error_of(build, *inputs) < 1e-6


#: axis, batch_dims, shape of the indices
GATHERS = [
    (0, 0, (3,)), (1, 0, (2, 2)), (2, 0, (4,)), (-1, 0, ()), (-3, 0, (2,)),
    (1, 1, (3, 2)), (2, 1, (3, 2, 2)), (2, 2, (3, 4, 5)), (1, -1, (3, 2)), (-1, -2, (3, 4, 2)), (3, 1, (3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("knows", ["all", "no axis", "no rank"])
@pytest.mark.parametrize(("axis", "batch_dims", "shape"), GATHERS)
def test_gathers_along_any_axis(axis: int, batch_dims: int, shape: tuple[int, ...], knows: str) -> None:
    """Some places are read twice, and some never."""
    params = normal(3, 4, 3, 2) if axis == 3 else normal(3, 4, 3)
    indices = np.random.default_rng(5).integers(0, params.shape[axis] - 1, shape).astype(np.int64)

    def build(x: Any) -> Any:
        return apply_op(
            "GatherV2",
            params=unranked(x) if knows == "no rank" else x,
            indices=indices,
            axis=late(axis) if knows == "no axis" else axis,
            batch_dims=batch_dims,
        )

    assert directional_error(build, [params]) < 1e-6


def test_a_gather_at_indices_of_unknown_rank() -> None:
    def build(batch_dims: int) -> Any:
        return lambda x: apply_op("GatherV2", params=x, indices=late([[1, 1], [0, 2]]), axis=1, batch_dims=batch_dims)

    for batch_dims in (0, 1):
        assert directional_error(build(batch_dims), [normal(2, 3, 2)]) < 1e-6
    with pytest.raises(ValueError, match=r"Cannot differentiate 'GatherV2' \(GatherV2\): batch_dims -1 of an unknown"):
        directional_error(build(-1), [normal(2, 3, 2)])


def added(build: Any, *shapes: list[int]) -> list[str]:
    """The types of the ops that the gradient adds, but for constants."""
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(tf.float32, shape) for shape in shapes]
        y = build(*inputs)
        before = len(graph.get_operations())
        tf.gradients(y, inputs)
        return [op.type for op in graph.get_operations()[before:] if op.type not in ("Const", "Fill", "Shape")]


def test_what_is_known_is_not_computed_in_every_step() -> None:
    """A graph of known shapes has no ranges, offsets and sums over batches for them."""
    assert "Range" not in added(lambda x: apply_op("Fill", dims=[2, 3], value=x), [])
    assert "Range" not in added(lambda x: apply_op("Tile", input=x, multiples=[2, 2]), [2, 3])
    assert added(lambda x, y: tf.concat([x, y], -1), [2, 3], [2, 1]) == ["SplitV"]
    assert added(lambda x: apply_op("Concat", concat_dim=0, values=[x, x]), [2, 3]) == ["SplitV", "AddN"]
    assert "FloorMod" not in added(lambda x: tf.gather(x, [1], axis=1), [2, 3])
    assert added(lambda x: tf.slice(x, [0, 1], [1, 1]), [2, 3]).count("Cast") == 0
    only_first = added(lambda x, y: tf.concat([x, y], 1), [2, None], [2, 1])
    assert "ConcatOffset" in only_first


def test_rows_of_a_gather() -> None:
    """IndexedSlices of the rows that were read, in their order, with the shape of the whole."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [5, 2])
        for axis in (0, tf.constant(0, tf.int64)):
            found = tf.gradients(
                tf.gather(x, [[3, 1], [3, 0]], axis=axis), x, grad_ys=tf.reshape(tf.range(8.0), [2, 2, 2])
            )
            assert isinstance(found[0], tf.IndexedSlices)
            values, indices, shape = session.run([found[0].values, found[0].indices, found[0].dense_shape])
            assert indices.tolist() == [3, 1, 3, 0]
            assert values.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
            assert shape.tolist() == [5, 2]


@pytest.mark.parametrize("message", ["no way", b"no way"])
def test_a_path_without_gradient_says_why(message: Any) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        y = apply_op("PreventGradient", input=x, message=message, name="guard")
        with pytest.raises(LookupError, match=re.escape("Reason: no way (operation 'guard')")):
            tf.gradients(y, x)
