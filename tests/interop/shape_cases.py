"""Nodes to infer static shapes for: generated from the op definitions, with rows by hand where chance would not hit.

A case is an op, its attrs and its inputs: a shape that is known, partly or not at all, or a small constant. Chance is
seeded with the op's name, so every run asks the same. Used by make_shape_table.py, which looks beside them, too.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.interop.shape_rows import MORE_ROWS, Value
from tests.interop.shape_rows import hand as _hand
from tests.support.shape_table import Input, ShapeCase, shape_of

from tenfold_core import dtypes, opdefs
from tenfold_core.node_signature import signature
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos.attr_value_pb2 import NameAttrList

if TYPE_CHECKING:
    from tests.support.shape_table import Shape

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import AttrDef, OpDef

#: How often an op is asked; many of these asks are refused by both sides.
TRIES = 40

SHAPES: tuple[Shape, ...] = (
    None,
    [],
    [1],
    [2],
    [3],
    [None],
    [2, 3],
    [3, 3],
    [None, 3],
    [2, None],
    [None, None],
    [2, 3, 4],
    [2, 3, 3],
    [None, 3, 3],
    [2, 8, 8, 4],
    [None, None, None, 4],
    [None, 8, 8, None],
    [2, 4, 4, 4, 3],
    [4, None, 4, 4, 3],
)

CONSTANTS: tuple[Any, ...] = (
    0,
    1,
    2,
    3,
    -1,
    [0],
    [1],
    [2, 3],
    [0, 1],
    [1, 0],
    [2, 2],
    [[0, 0], [1, 1]],
    [0, 1, 2],
    [4],
)

#: Attributes whose values cannot be drawn from their type alone, by name and then by op.
BY_NAME: dict[str, list[Any]] = {
    "ksize": [[1, 2, 2, 1], [1, 3, 2, 1]],
    "strides": [[1, 1, 1, 1], [1, 2, 2, 1]],
    "rates": [[1, 1, 1, 1]],
    "dilations": [[1, 1, 1, 1], [1, 2, 2, 1]],
    "block_size": [2, 4],
    "axis": [0, 1, -1],
    "N": [1, 2, 3],
    "num": [2, 3],
    "num_split": [1, 2, 3],
    "equation": [b"ab,bc->ac", b"...ij,...jk->...ik"],
    "data_format": [b"NHWC"],
    "tensor_format": [b"NHWC"],
    "file_type": [b""],
    "num_sampled": [5],
    "num_true": [1, 3],
    "k": [2],
    "num_bits": [8],
    "batch_dims": [0],
    "channels": [0, 1, 3],
    "DstT": [dtypes.int32],
    "out_type": [dtypes.int32, dtypes.int64],
    "component_index": [0],
    "num_batch_dims": [1],
}
BY_OP: dict[tuple[str, str], list[Any]] = {
    ("AvgPool3D", "ksize"): [[1, 2, 2, 2, 1]],
    ("AvgPool3D", "strides"): [[1, 2, 2, 2, 1]],
    ("AvgPool3DGrad", "ksize"): [[1, 2, 2, 2, 1]],
    ("AvgPool3DGrad", "strides"): [[1, 2, 2, 2, 1]],
    ("MaxPool3D", "ksize"): [[1, 2, 2, 2, 1]],
    ("MaxPool3D", "strides"): [[1, 2, 2, 2, 1]],
    ("MaxPool3DGrad", "ksize"): [[1, 2, 2, 2, 1]],
    ("MaxPool3DGrad", "strides"): [[1, 2, 2, 2, 1]],
    ("MaxPool3DGradGrad", "ksize"): [[1, 2, 2, 2, 1]],
    ("MaxPool3DGradGrad", "strides"): [[1, 2, 2, 2, 1]],
    **{(op, "strides"): [[1, 1, 1, 1, 1], [1, 2, 2, 2, 1]] for op in opdefs.names() if op.startswith("Conv3D")},
    **{(op, "dilations"): [[1, 1, 1, 1, 1]] for op in opdefs.names() if op.startswith("Conv3D")},
    ("ExtractVolumePatches", "ksizes"): [[1, 2, 2, 2, 1]],
    ("ExtractVolumePatches", "strides"): [[1, 2, 2, 2, 1]],
    ("ExtractImagePatches", "ksizes"): [[1, 2, 2, 1]],
    ("Dilation2D", "rates"): [[1, 1, 1, 1]],
    ("FractionalAvgPool", "pooling_ratio"): [[1.0, 1.4, 1.5, 1.0]],
    ("FractionalMaxPool", "pooling_ratio"): [[1.0, 1.4, 1.5, 1.0]],
}


def _value(kind: str, attr: AttrDef, chance: random.Random) -> Any:
    if kind == "type":
        return chance.choice(attr.allowed[:3]) if attr.allowed else dtypes.float32
    if kind == "int":
        return max(attr.minimum or 0, chance.choice((0, 1, 2)))
    if kind == "bool":
        return chance.choice((True, False))
    if kind == "string":
        return chance.choice(attr.allowed) if attr.allowed else b""
    if kind == "shape":
        return TensorShape(chance.choice((None, [], [2], [None, 3], [2, 3])))
    if kind == "func":
        return NameAttrList(name="f")
    if kind == "float":
        return 1.0
    raise KeyError(kind)


def _attrs(definition: OpDef, chance: random.Random) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    length = chance.choice((1, 2, 3))
    for attr in definition.attrs:
        name, kind = attr.name, attr.type
        choices = BY_OP.get((definition.name, name)) or BY_NAME.get(name)
        if name.startswith("_"):
            continue
        if choices is not None and (not kind.startswith("list(type") or name in ("DstT",)):
            allowed = [c for c in choices if not attr.allowed or c in attr.allowed]
            attrs[name] = chance.choice(allowed or list(attr.allowed))
        elif attr.has_default and (kind in ("int", "float", "string", "shape") or chance.random() < 0.5):
            attrs[name] = attr.default
        elif kind.startswith("list(") and kind != "list(tensor)":
            attrs[name] = [_value(kind[5:-1], attr, chance) for _ in range(length)]
        else:
            attrs[name] = _value(kind, attr, chance)
    return attrs


def _input(dtype: DType, chance: random.Random, shared: Shape | None, is_shared: bool) -> Input:
    if dtype.base_dtype in (dtypes.int32, dtypes.int64) and not dtype.is_ref_dtype and chance.random() < 0.5:
        value = chance.choice(CONSTANTS)
        return Input(dtype, shape_of(value), value)
    return Input(dtype, shared if is_shared else chance.choice(SHAPES))


def cases_of(op: str) -> list[ShapeCase]:
    """The cases of one op: by hand and generated."""
    definition, chance = opdefs.get(op), random.Random(op)
    found = {str(case): case for case in (*HAND, *MORE_ROWS) if case.op == op}
    if op in NOT_ASKED:
        return list(found.values())
    for attempt in range(TRIES):
        attrs = _attrs(definition, chance)
        types = signature(definition, attrs).input_types
        shared: Shape = SHAPES[attempt % len(SHAPES)]
        is_shared = attempt < len(SHAPES) or chance.random() < 0.2
        case = ShapeCase(op, attrs, tuple(_input(t, chance, shared, is_shared) for t in types))
        found.setdefault(str(case), case)
    return list(found.values())


#: Ops with a tensor in an attribute, and those of a variable whose handle must say its shape.
NOT_ASKED = (
    *("Const", "ImageSummary", "ResourceCountUpTo"),
    # their operands have ranks of their own, which random cases do not hit
    *("CSVDatasetV2", "CTCLoss", "FusedPadConv2D", "FusedResizeAndPadConv2D", "GatherTree", "ParallelBatchDataset"),
    *("RaggedFillEmptyRows", "SparseToSparseSetOperation"),
)

_F, _I, _S = dtypes.float32, dtypes.int64, dtypes.string
_SEQUENCE = {
    "context_sparse_keys": [b"a"],
    "context_dense_keys": [b"b"],
    "feature_list_sparse_keys": [b"c"],
    "feature_list_dense_keys": [b"d"],
}
_SEQUENCE_TYPES = {
    "context_sparse_types": [_I],
    "Tcontext_dense": [_F],
    "context_dense_shapes": [TensorShape([2])],
    "feature_list_sparse_types": [_S],
    "feature_list_dense_types": [_F],
    "feature_list_dense_shapes": [TensorShape([3])],
}
_COUNTS = {"Ncontext_sparse": 1, "Nfeature_list_sparse": 1, "Nfeature_list_dense": 1}

#: A size that is known, and one that is not.
_SIZES: tuple[Any, ...] = ([], Value(3))
_OPEN: Any = []

HAND: tuple[ShapeCase, ...] = (
    *(
        _hand("Dilation2D", image, [2, 2, 4], strides=[1, s, s, 1], rates=[1, r, r, 1], padding=p)
        for image in ([2, 8, 8, 4], [None, None, 8, 4], None)
        for p in (b"SAME", b"VALID")
        for s, r in ((1, 1), (2, 1), (1, 2))
    ),
    _hand("EditDistance", [4, 3], [4], [3], [5, 3], [5], [3]),
    _hand("EditDistance", [4, 3], [4], Value([2, 3, 4]), [5, 3], [5], Value([3, 1, 4])),
    _hand(
        "MapAndBatchDataset",
        [],
        [],
        [],
        [],
        f=NameAttrList(name="f"),
        Targuments=[],
        output_types=[_F],
        output_shapes=[TensorShape([None])],
    ),
    *(
        _hand(op, diagonal, Value(k), *size, [])
        for op in ("MatrixDiagV2", "MatrixDiagV3")
        for diagonal in ([2, 3], [None, 2, 3], None)
        for k, length in ((0, 1), (1, 1), (-1, 1), ([0, 1], 2))
        for size in ((Value(-1), Value(-1)), (Value(4), Value(-1)), (_OPEN, _OPEN))
        if length == 1 or diagonal != [2, 3] or k == [0, 1]
    ),
    *(
        _hand(op, matrix, Value(k), [])
        for op in ("MatrixDiagPartV2", "MatrixDiagPartV3")
        for matrix in ([3, 4], [2, 4, 3], [None, 3, 3], [3, None], None)
        for k in (0, 1, -1, [0, 0], [-1, 1], [0, 2])
    ),
    *(_hand("SetSize", [None, 3], [None], shape) for shape in ([3], Value([2, 3, 4]))),
    *(
        _hand("MaxPool3DGradGrad", i, i, i, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding=b"SAME")
        for i in ([2, 4, 4, 4, 3], [None, 4, 4, 4, 3], None)
    ),
    *(_hand("MaxPoolGradGradV2", i, i, i, [4], [4], padding=b"SAME") for i in ([2, 8, 8, 4], None)),
    *(
        _hand("MaxPoolV2", [2, 8, 8, 4], *w, padding=b"SAME")
        for w in ((Value([1, 2, 2, 1]), Value([1, 2, 2, 1])), ([4], [4]))
    ),
    *(_hand("NonMaxSuppression", [None, 4], [None], n) for n in _SIZES),
    *(_hand("NonMaxSuppressionV2", [None, 4], [None], n, []) for n in _SIZES),
    *(_hand("NonMaxSuppressionV3", [None, 4], [None], n, [], []) for n in _SIZES),
    _hand("ParallelConcat", [1, 3], [1, 3], N=2, shape=TensorShape([2, 3])),
    *(
        _hand(
            "ParseExample",
            batch,
            [None],
            [],
            [],
            [],
            [None],
            [None],
            Nsparse=1,
            Ndense=2,
            sparse_types=[_S],
            Tdense=[_F, _I],
            dense_shapes=[TensorShape([2]), TensorShape([None, 3])],
        )
        for batch in ([5], [None])
    ),
    *(
        _hand(
            "ParseExampleV2",
            batch,
            [None],
            [None],
            [None],
            [None],
            [2],
            num_sparse=1,
            sparse_types=[_S],
            Tdense=[_F],
            dense_shapes=[TensorShape([2])],
            ragged_value_types=[_F],
            ragged_split_types=[_I],
        )
        for batch in ([5], [None], [], None)
    ),
    *(
        _hand(
            "ParseSequenceExample",
            batch,
            [None],
            [2],
            **_SEQUENCE,
            **_SEQUENCE_TYPES,
            **_COUNTS,
            Ncontext_dense=1,
            feature_list_dense_missing_assumed_empty=[],
        )
        for batch in ([5], [None])
    ),
    *(
        _hand(
            "ParseSequenceExampleV2",
            batch,
            [None],
            [1],
            [1],
            [1],
            [1],
            [1],
            [1],
            [1],
            [2],
            **_SEQUENCE_TYPES,
            **_COUNTS,
            context_ragged_value_types=[_F],
            context_ragged_split_types=[_I],
            feature_list_ragged_value_types=[_F],
            feature_list_ragged_split_types=[_I],
        )
        for batch in ([5], [None], [], None)
    ),
    _hand(
        "ParseSingleSequenceExample",
        [],
        [0],
        [],
        [],
        [],
        [],
        [2],
        [],
        **_SEQUENCE_TYPES,
        **_COUNTS | {"Ncontext_dense": 1},
    ),
    _hand(
        "ParseSingleExample",
        [],
        [2],
        num_sparse=2,
        sparse_keys=[b"a", b"b"],
        sparse_types=[_F, _S],
        dense_keys=[b"c"],
        Tdense=[_F],
        dense_shapes=[TensorShape([2, 3])],
    ),
    _hand("ShardedFilename", [], [], []),
    _hand("FixedLengthRecordDataset", [None], [], [], [], []),
    _hand("FixedLengthRecordDatasetV2", [None], [], [], [], [], []),
    _hand("ShuffleAndRepeatDatasetV2", [], [], [], [], [], [], output_types=[_F], output_shapes=[TensorShape([])]),
    _hand("WindowDataset", [], [], [], [], [], output_types=[_F], output_shapes=[TensorShape([])]),
    *(_hand("SparseSegmentSumWithNumSegments", [None, 3], [None], [None], n) for n in _SIZES),
    _hand("ShuffleAndRepeatDataset", [], [], [], [], [], output_types=[_F], output_shapes=[TensorShape([])]),
    *(
        _hand("SpaceToBatch", image, pads, block_size=2)
        for image in ([2, 4, 8, 3], [None, 4, None, 3])
        for pads in (Value([[0, 0], [0, 0]]), Value([[1, 1], [0, 2]]), [2, 2])
    ),
    *(
        _hand("BatchToSpace", image, crops, block_size=2)
        for image in ([4, 4, 8, 3], [None, 4, None, 3])
        for crops in (Value([[0, 0], [0, 0]]), Value([[1, 1], [0, 2]]), [2, 2])
    ),
    *(
        _hand(op, shape, block, pads)
        for op in ("SpaceToBatchND", "BatchToSpaceND")
        for shape in ([4, 4, 6, 3], [None, 4, 6, None], None)
        for block, pads in ((Value([2, 2]), Value([[0, 0], [1, 1]])), ([2], [2, 2]), (Value([2]), [1, 2]))
    ),
    *(
        _hand(op, *[[4, 3]] * slots, *rest)
        for op, slots, rest in (
            ("SparseApplyAdadelta", 3, ([], [], [], [2, 3], [2])),
            ("SparseApplyAdagradDA", 3, ([2, 3], [2], [], [], [], [])),
            ("SparseApplyFtrl", 3, ([2, 3], [2], [], [], [], [])),
            ("SparseApplyProximalAdagrad", 2, ([], [], [], [2, 3], [2])),
        )
    ),
    *(
        _hand("SparseConcat", *i, *[[None]] * 2, *s, concat_dim=0, N=2)
        for i, s in (
            (([4, 3], [5, 3]), ([3], [3])),
            (([None, 3], [5, None]), ([3], [None])),
            ((None, None), (None, None)),
        )
    ),
    *(
        _hand(op, [None, 3], [None], [None], n)
        for op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNWithNumSegments")
        for n in _SIZES
    ),
    *(
        _hand(op, [None, 3], [None], [3], [None, 3], [None], [3])
        for op in ("SparseSparseMaximum", "SparseSparseMinimum")
    ),
    _hand("TensorArraySplitV3", [2], [4, 3], [2], []),
    *(_hand("DecodePaddedRaw", s, Value(8), out_type=_I) for s in ([], [None, 2])),
    *(
        _hand(
            "ExtractImagePatches",
            [2, 9, 9, 3],
            ksizes=[1, 3, 3, 1],
            strides=[1, 2, 2, 1],
            rates=[1, r, r, 1],
            padding=p,
        )
        for r in (1, 2)
        for p in (b"SAME", b"VALID")
    ),
    *(
        _hand("TensorListStack", [], s, element_dtype=_F, num_elements=n)
        for s in (Value([2, 3]), Value([-1, 3]), Value(-1), [2])
        for n in (-1, 4)
    ),
    *(
        _hand("Einsum", a, b, equation=e, N=2)
        for e, a, b in (
            (b"ij,jk->ik", [2, None], [4, 5]),
            (b"...ij,...jk->...ik", [7, 1, 2, 3], [6, 3, 4]),
            (b"ii,ij->j", [3, 3], [3, None]),
        )
    ),
    *(
        _hand("ReduceJoin", [2, 3, 4], axes, keep_dims=k)
        for axes in (Value([1]), Value([0, 2]), [1])
        for k in (True, False)
    ),
    *(
        _hand("Reshape", s, w)
        for s in ([2, 6], [None, 6])
        for w in (Value([3, -1]), Value([-1, 2, 3]), [2], Value([12]))
    ),
    *(_hand("OneHot", [2, None], d, [], [], axis=a) for d in _SIZES for a in (-1, 0, 1)),
    *(
        _hand("StridedSlice", [4, None, 6], Value([1, 0]), Value([3, 2]), Value([1, 1]), shrink_axis_mask=m)
        for m in (0, 1, 2)
    ),
    *(_hand(op, Value([2, 3]), [2], [2], [2], [2]) for op in ("ParameterizedTruncatedNormal",)),
    *(_hand("Multinomial", [3, 4], n) for n in _SIZES),
    *(_hand("RandomGamma", Value([2, 3]), alpha) for alpha in ([], [4], None)),
    *(_hand("TopKV2", [2, 9], k) for k in _SIZES),
    *(_hand("UnsortedSegmentJoin", [None, 3], [None], n) for n in _SIZES),
    *(
        _hand("IteratorGetNext", [], output_types=[_F, _I], output_shapes=[TensorShape([None, 8]), TensorShape(None)])
        for _ in (0,)
    ),
)
