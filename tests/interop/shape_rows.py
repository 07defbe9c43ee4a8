"""Rows by hand for shape_cases.py: nodes that make sense, whose operands chance would not hit, and limits."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.shape_table import Input, ShapeCase, plain_attrs, shape_of

from tenfold_core import dtypes, opdefs
from tenfold_core.node_signature import signature


class Value(NamedTuple):
    """A constant input."""

    value: Any


def hand(op: str, *inputs: Any, **given: Any) -> ShapeCase:
    """A case whose attributes are given, or the defaults, or the first types that are allowed."""
    definition = opdefs.get(op)
    attrs = plain_attrs(definition) | given
    types = signature(definition, attrs).input_types
    assert len(types) == len(inputs), f"{op} has {len(types)} inputs"
    return ShapeCase(
        op,
        attrs,
        tuple(
            Input(t, shape_of(i.value), i.value) if isinstance(i, Value) else Input(t, i)
            for t, i in zip(types, inputs, strict=True)
        ),
    )


V = Value
_IMAGES, _ONES = [2, 8, 8, 4], [1, 1, 1, 1]
_EDGES = V([[0, 0], [1, 2], [3, 4], [0, 0]])
_PADDED = {"mode": b"REFLECT", "strides": [1, 2, 3, 1]}
_CELLS = [2, 4]
_LSTM = ([5, 2, 3], _CELLS, _CELLS, [7, 16], [4], [4], [4], [16])
_SEQUENCES = [5, 2, 4]

MORE_ROWS: tuple[ShapeCase, ...] = (
    *(
        hand("StridedSlice", shape, begin, end, V(strides), **{f"{mask}_mask": bits})
        for shape in ([4, 5, 6], [4, None, 6])
        for begin, end, strides in (
            (V([1, -3]), V([3, -1]), [1, 2]),
            (V([3, 4]), V([0, 1]), [-1, -2]),
            ([2], V([3, 2]), [1, 1]),
            (V([1, 0]), [2], [1, 1]),
        )
        for mask in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        for bits in (1, 2, 3)
    ),
    *(
        hand("StridedSlice", [4, 5, 6, 7], V([1, 0, 2]), V([2, 0, 3]), V([1, 1, 1]), ellipsis_mask=2, **{mask: bits})
        for mask in ("new_axis_mask", "shrink_axis_mask")
        for bits in (1, 4, 5)
    ),
    *(hand("StridedSlice", [4], V([b]), V([4]), V([1]), shrink_axis_mask=1) for b in (-5, -4, 3, 4)),
    hand("StridedSlice", [4], V([0, 0]), V([1, 1]), V([1, 1])),
    hand("StridedSlice", [4], V([0]), V([4]), V([0])),
    *(
        hand("SplitV", shape, V(sizes), V(axis), num_split=count)
        for shape, axis in (([6, 4], 0), ([4, 6], 1), ([4, 6, 2], -2), ([None, 4], 0))
        for sizes, count in (
            ([2, 4], 2),
            ([2, -1], 2),
            ([6, -1], 2),
            ([7, -1], 2),
            ([2, 3], 2),
            ([3, 4], 2),
            ([0, 6], 2),
            ([2, 2, 2], 3),
            ([2, 4], 3),
        )
    ),
    *(hand("SplitV", [6, 4], [n], V(0), num_split=n) for n in (1, 2)),
    *(
        hand("GatherV2", [2, 3, 4], [2, 5], axis, batch_dims=batch)
        for axis in (V(1), V(2), V(-1), V(0), [])
        for batch in (0, 1)
    ),
    hand("GatherV2", [2, 3, 4], [2, 3, 5], V(2), batch_dims=2),
    *(hand("Concat", V(0), one, one, N=2) for one in ([], [3])),
    *(hand("Slice", [3, 4], *ends) for ends in ((V([1, 1]), [2]), ([2], V([1, -1])), (V([3, 4]), V([-1, -1])))),
    *(hand("Slice", [3, 4], V([b, 0]), V([n, 4])) for b, n in ((3, -1), (4, -1), (-1, 2), (0, -2))),
    *(
        hand("Conv2D", image, [3, 3, 4, 5], strides=_ONES, padding=b"EXPLICIT", explicit_paddings=edges, data_format=f)
        for image, f, edges in (
            ([2, 8, 8, 4], b"NHWC", [0, 0, 1, 2, 3, 4, 0, 0]),
            ([2, 4, 8, 8], b"NCHW", [0, 0, 0, 0, 1, 2, 3, 4]),
            ([2, 8, 8, 4], b"NHWC", [0, 0, 0, 0, 1, 2, 3, 4]),
            ([2, 8, 8, 4], b"NHWC", [1, 0, 1, 2, 3, 4, 0, 0]),
            ([2, 8, 8, 4], b"NHWC", [0, 1, 1, 2, 3, 4, 0, 0]),
            ([2, 8, 8, 4], b"NHWC", [0, 0, -1, 2, 3, 4, 0, 0]),
            ([2, 8, 8, 4], b"NHWC", [0, 0, 1, 2, 3, 4]),
        )
    ),
    hand("Conv2D", _IMAGES, [3, 3, 4, 5], strides=_ONES, padding=b"SAME", explicit_paddings=[0, 0, 1, 2, 3, 4, 0, 0]),
    *(
        hand("Conv2D", image, kernel, strides=[1, s, s, 1], dilations=[1, d, d, 1], padding=b"VALID")
        for image, kernel in (([2, 3, 9, 4], [3, 3, 4, 5]), ([2, 8, 8, 4], [3, 3, 2, 5]), ([2, 8, 8, 4], [3, 3, 2, 6]))
        for s, d in ((1, 1), (2, 1), (1, 2), (0, 1), (1, 0), (3, 3))
    ),
    *(
        hand("FusedPadConv2D", image, edges, kernel, padding=p, **_PADDED)
        for image, kernel in ((_IMAGES, [3, 2, 4, 5]), ([None, None, 8, 4], [3, 2, 4, 5]), (None, None))
        for edges in (_EDGES, [4, 2])
        for p in (b"SAME", b"VALID")
    ),
    *(
        hand("FusedResizeAndPadConv2D", image, size, edges, [3, 2, 4, 5], padding=p, **_PADDED)
        for image in (_IMAGES, [None, 8, 8, 4])
        for size in (V([6, 9]), [2])
        for edges in (_EDGES, [4, 2])
        for p in (b"SAME", b"VALID")
    ),
    *(
        hand("MaxPool", [2, 1, 8, 8, 4], ksize=k, strides=k, padding=b"SAME", data_format=b"NCHW_VECT_C")
        for k in ([1, 1, 2, 2],)
    ),
    *(
        hand(op, *[[None] * 4 if each is None else [2, 4, 6, 3] for each in (x, 1)], *vectors)
        for op in ("FusedBatchNormGrad",)
        for x in (None, 1)
        for vectors in (([3], [3], [3]), ([None], [3], [None]), ([4], [3], [3]))
    ),
    *(
        hand("FusedBatchNorm", x, [3], [None], *rest, is_training=training)
        for x in ([2, 4, 6, 3], [2, 4, 6, None], [2, 4, 6, 5])
        for rest, training in ((([0], [0]), True), (([3], [3]), False), (([3], [4]), False))
    ),
    *(
        hand("CropAndResize", [2, 8, 8, 3], boxes, numbers, V([3, 4]))
        for boxes, numbers in (([5, 4], [5]), ([None, 4], [5]), ([5, 4], [6]))
    ),
    *(hand("ResizeNearestNeighborGrad", [2, 3, 4, 5], V([6, 7])) for _ in (0,)),
    *(
        hand("CTCLoss", [5, 2, 6], indices, values, lengths)
        for indices, values, lengths in (
            ([4, 2], [4], [2]),
            ([4, 2], [5], [2]),
            ([4, 2], [4], [3]),
            ([None, 2], [None], [None]),
        )
    ),
    hand("CTCLoss", [5, None, 6], [4, 2], [4], [2]),
    *(hand("RaggedFillEmptyRows", [4], [4], rows, []) for rows in (V(3), [])),
    *(
        hand("SparseToSparseSetOperation", [None, 2], [None], one, [None, 2], [None], other, set_operation=b"union")
        for one, other in (([2], [2]), ([None], [3]), ([3], [None]), ([2], [3]), ([1], [1]), ([1], [None]))
    ),
    *(
        hand("DenseToDenseSetOperation", one, other, set_operation=b"union")
        for one, other in (([2, 3], [2, 4]), (None, [2, 4]), ([3, 2, 3], None), ([3], [3]))
    ),
    *(hand("SparseFillEmptyRows", [4, 2], [4], shape, []) for shape in (V([3, 2]), [2], [None], [0])),
    hand("SparseFillEmptyRows", [None, None], [4], [2], []),
    hand("SparseFillEmptyRows", [4, 2], [None], [2], []),
    *(
        hand("SparseTensorDenseMatMul", [None, 2], [None], shape, dense, adjoint_a=a, adjoint_b=b)
        for shape in (V([3, 4]), [2])
        for dense in ([4, 5], [3, 7], None)
        for a in (False, True)
        for b in (False, True)
    ),
    *(
        hand("Range", V(a), V(b), V(d), Tidx=dtypes.float32)
        for a, b, d in (
            (0.0, 3.0, 0.5),
            (0.5, 3.25, 1.0),
            (3.0, 0.0, -0.75),
            (2.0, 2.0, 1.0),
            (2.0, 2.0, -1.0),
            (3.0, 0.0, 1.0),
            (0.0, 3.0, -1.0),
            (0.0, 3.0, 0.0),
        )
    ),
    *(
        hand("Range", V(a), V(b), V(d))
        for a, b, d in ((2, 9, 3), (9, 2, -3), (2, 2, 1), (2, 2, -1), (2, 3, 0), (3, 2, 1))
    ),
    hand("BlockLSTM", [], *_LSTM),
    hand("BlockLSTM", [], [None, 2, 3], *_LSTM[1:-1], [18]),
    hand("BlockLSTMV2", [], *_LSTM),
    *(hand(op, [], *_LSTM, *[_SEQUENCES] * 9, use_peephole=True) for op in ("BlockLSTMGrad", "BlockLSTMGradV2")),
    hand("LSTMBlockCell", *_LSTM[0:0], [2, 3], *_LSTM[1:]),
    hand("LSTMBlockCellGrad", [2, 3], *_LSTM[1:], *[_CELLS] * 8, use_peephole=True),
    hand("GRUBlockCell", [2, 3], _CELLS, [7, 8], [7, 4], [8], [4]),
    hand("GRUBlockCellGrad", [2, 3], _CELLS, [7, 8], [7, 4], [8], [4], *[_CELLS] * 4),
    *(hand("TopKV2", [2, 3], V(k)) for k in (2, 3, 4)),
    *(hand("NthElement", [2, 3], V(n)) for n in (2, 3)),
    *(hand("InTopKV2", [2, 3], [n], []) for n in (2, 3, None)),
    *(hand("ExpandDims", [2, 3], V(axis)) for axis in ([0, 1], [1], 2, 3, -3, -4)),
    *(hand("Tile", [2, 3], [n]) for n in (1, 2, 3, None)),
    *(hand("Transpose", [2, 3], V(order)) for order in ([1, 0], [-1, 0], [-2, -1], [0, 2], [-3, 0], [0])),
    *(hand(op, [2, 3], V(axis)) for op in ("ArgMax", "ArgMin") for axis in (0, 1, -2, -3, 2)),
    *(hand("ArgMax", [3], V(axis)) for axis in (0, 1)),
    *(
        hand("DynamicStitch", *indices, *data, N=2)
        for indices, data in (
            ((V([0, 2]), V([1])), ([2, 5], [1, 5])),
            ((V(3), V([1, 0])), ([5], [2, 5])),
            ((V([0, 2]), [None]), ([2, None], [None, 5])),
            ((V([0, 2]), V([1])), (None, [1, 5])),
            (([None], [None]), (None, None)),
            ((V([0, 2]), V([1])), ([2, 5], [1, 6])),
        )
    ),
    *(
        hand("UnsortedSegmentSum", data, ids, count)
        for data, ids in (([4, 3], [4]), ([4, 3], [4, 3]), ([4, 3], [5]), (None, [4]), ([4, 3], None), ([4], [4, 3]))
        for count in (V(7), [], V(-1))
    ),
    *(
        hand("Bitcast", shape, T=dtypes.as_dtype(a), type=dtypes.as_dtype(b))
        for a, b in (("int64", "int16"), ("int16", "int64"), ("int32", "float32"))
        for shape in ([], [4], [3, 4], [3, 5], [3, None], None)
    ),
    *(
        hand("Reshape", s, V(w))
        for s, w in (([2, 6], [5, -1]), ([2, 6], [13]), ([None, 6], [13]), ([0, None], [-1, 3]))
    ),
    *(
        hand("BiasAdd", shape, bias, data_format=f)
        for f, shape in ((b"NHWC", [2, 3]), (b"NHWC", [2, 4, 5, 3]), (b"NCHW", [2, 3, 5]), (b"NCHW", [2, 3, 5, 6]))
        for bias in ([3], [4], [None])
    ),
    *(hand("BiasAdd", [2, None], [3]) for _ in (0,)),
    *(hand("BiasAddGrad", [2, 4, 5, 3], data_format=f) for f in (b"NHWC", b"NCHW")),
    *(hand("Conv2DBackpropInput", V([6, 7]), [3, 3, 4, 5], [2, 6, 7, 5], strides=_ONES, padding=b"SAME") for _ in (0,)),
    *(
        hand("SparseReduceSum", [None, 2], [None], V([3, 4]), axes, keep_dims=keep)
        for axes in (V([1]), V([0, -1]), V([]), V(-2), [1])
        for keep in (False, True)
    ),
    *(
        hand("SparseConcat", *i, *[[None]] * 2, *s, concat_dim=0, N=2)
        for i, s in (
            (([4, None], [5, 3]), ([None], [3])),
            (([4, None], [5, None]), ([None], [3])),
            (([4, None], [5, None]), ([3], [None])),
        )
    ),
    *(hand("Select", condition, [2, 3], [2, None]) for condition in ([], [2], [3], [2, 3], [2, 4], [None], None)),
    *(hand("BroadcastArgs", *s) for s in (([2], [3]), ([3], [2]), ([None], [3]), ([3], [None]))),
)
