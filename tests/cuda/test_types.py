"""Every type that a kernel of a GPU is there for: what it gives is what the CPU gives. One small call for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels import registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from tenfold_core.dtypes import DType

pytestmark = pytest.mark.thorough


def i(value: Any) -> Any:
    return np.array(value, np.int32)


def j(value: Any) -> Any:
    return np.array(value, np.int64)


BOUNDS = [i([3, 0]), i([0, 3]), i([-2, 1])]
MASKS = {f"{name}_mask": 0 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
ROWS, TWICE = j([[2], [0]]), j([[2], [0], [2]])
SEGMENTS = i([0, 0, 2, 2])

#: Op → its inputs, of which `v` makes those of the type in question, and its attributes.
CASES: dict[str, tuple[Callable[[Any], list[Any]], dict[str, Any]]] = {
    "BatchToSpaceND": (lambda v: [v(4, 1, 2, 1), i([2, 2]), i([[0, 0], [0, 1]])], {}),
    "SpaceToBatchND": (lambda v: [v(1, 2, 3, 1), i([2, 2]), i([[0, 0], [0, 1]])], {}),
    "BatchToSpace": (lambda v: [v(4, 1, 1, 1), i([[0, 0], [0, 0]])], {"block_size": 2}),
    "SpaceToBatch": (lambda v: [v(1, 2, 2, 1), i([[0, 0], [0, 0]])], {"block_size": 2}),
    "SpaceToDepth": (lambda v: [v(1, 2, 2, 1)], {"block_size": 2}),
    "DepthToSpace": (lambda v: [v(1, 1, 1, 4)], {"block_size": 2}),
    "BroadcastTo": (lambda v: [v(1, 3), i([2, 3])], {}),
    "Concat": (lambda v: [i(0), v(1, 2), v(2, 2)], {"N": 2}),
    "ConcatV2": (lambda v: [v(2, 1), v(2, 2), i(1)], {"N": 2}),
    "DynamicPartition": (lambda v: [v(3, 2), i([0, 1, 0])], {"num_partitions": 2}),
    "DynamicStitch": (lambda v: [i([0, 2]), i([1]), v(2, 2), v(1, 2)], {"N": 2}),
    "ParallelDynamicStitch": (lambda v: [i([0, 2]), i([1]), v(2, 2), v(1, 2)], {"N": 2}),
    "MatrixBandPart": (lambda v: [v(3, 3), j(1), j(0)], {}),
    "MatrixDiag": (lambda v: [v(2)], {}),
    "MatrixDiagPart": (lambda v: [v(3, 3)], {}),
    "MatrixSetDiag": (lambda v: [v(3, 3), v(3)], {}),
    "Diag": (lambda v: [v(3)], {}),
    "DiagPart": (lambda v: [v(3, 3)], {}),
    "MirrorPad": (lambda v: [v(2, 3), i([[1, 1], [0, 2]])], {"mode": b"REFLECT"}),
    "Pad": (lambda v: [v(2, 3), i([[1, 0], [0, 2]])], {}),
    "PadV2": (lambda v: [v(2, 3), i([[1, 0], [0, 2]]), v()], {}),
    "ReverseV2": (lambda v: [v(2, 3), i([1])], {}),
    "Reverse": (lambda v: [v(2, 3), np.array([False, True])], {}),
    "ReverseSequence": (lambda v: [v(2, 3), j([2, 3])], {"seq_dim": 1}),
    "Roll": (lambda v: [v(3, 2), i([1]), i([0])], {}),
    "Split": (lambda v: [i(1), v(2, 4)], {"num_split": 2}),
    "SplitV": (lambda v: [v(2, 3), j([1, 2]), i(1)], {"num_split": 2}),
    "StridedSlice": (lambda v: [v(4, 3), *BOUNDS], MASKS),
    "StridedSliceGrad": (lambda v: [i([4, 3]), *BOUNDS, v(2, 3)], MASKS),
    "TensorStridedSliceUpdate": (lambda v: [v(4, 3), *BOUNDS, v(2, 3)], MASKS),
    "Slice": (lambda v: [v(3, 3), i([1, 0]), i([2, 2])], {}),
    "Pack": (lambda v: [v(2), v(2)], {"N": 2, "axis": 1}),
    "Unpack": (lambda v: [v(2, 3)], {"num": 3, "axis": 1}),
    "ZerosLike": (lambda v: [v(2, 3)], {}),
    "OnesLike": (lambda v: [v(2, 3)], {}),
    "Fill": (lambda v: [i([2, 3]), v()], {}),
    "OneHot": (lambda v: [j([0, 2]), i(3), v(), v()], {"axis": -1}),
    "Gather": (lambda v: [v(3, 2), j([2, 0])], {}),
    "GatherV2": (lambda v: [v(3, 2), j([1, 0]), i(1)], {}),
    "GatherNd": (lambda v: [v(3, 2), j([[2, 0], [0, 1]])], {}),
    "Tile": (lambda v: [v(2, 3), i([2, 1])], {}),
    "Transpose": (lambda v: [v(2, 3), i([1, 0])], {}),
    "ConjugateTranspose": (lambda v: [v(2, 3), i([1, 0])], {}),
    "TensorScatterUpdate": (lambda v: [v(4, 2), ROWS, v(2, 2)], {}),
    "TensorScatterAdd": (lambda v: [v(4, 2), ROWS, v(2, 2)], {}),
    "TensorScatterSub": (lambda v: [v(4, 2), ROWS, v(2, 2)], {}),
    "TensorScatterMax": (lambda v: [v(4, 2), ROWS, v(2, 2)], {}),
    "TensorScatterMin": (lambda v: [v(4, 2), ROWS, v(2, 2)], {}),
    "ScatterNd": (lambda v: [TWICE, v(3, 2), j([4, 2])], {}),
    "ScatterNdNonAliasingAdd": (lambda v: [v(4, 2), TWICE, v(3, 2)], {}),
    "Select": (lambda v: [np.array([True, False]), v(2), v(2) * v(2)], {}),
    "SelectV2": (lambda v: [np.array([True, False]), v(3, 2), v(2)], {}),
    "AddN": (lambda v: [v(2, 3), v(2, 3)], {"N": 2}),
    "SegmentSum": (lambda v: [v(4, 2), SEGMENTS], {}),
    "SegmentProd": (lambda v: [v(4, 2), SEGMENTS], {}),
    "SegmentMax": (lambda v: [v(4, 2), SEGMENTS], {}),
    "SegmentMin": (lambda v: [v(4, 2), SEGMENTS], {}),
    "UnsortedSegmentSum": (lambda v: [v(4, 2), SEGMENTS, i(4)], {}),
    "UnsortedSegmentProd": (lambda v: [v(4, 2), SEGMENTS, i(4)], {}),
    "UnsortedSegmentMax": (lambda v: [v(4, 2), SEGMENTS, i(4)], {}),
    "UnsortedSegmentMin": (lambda v: [v(4, 2), SEGMENTS, i(4)], {}),
    "SparseSegmentSum": (lambda v: [v(4, 2), i([3, 0]), i([0, 0])], {}),
    "SparseSegmentSqrtN": (lambda v: [v(4, 2), i([3, 0]), i([0, 0])], {}),
    "BiasAdd": (lambda v: [v(2, 3), v(3)], {}),
    "BiasAddV1": (lambda v: [v(2, 3), v(3)], {}),
    "BiasAddGrad": (lambda v: [v(2, 3)], {}),
    "Cumsum": (lambda v: [v(2, 3), i(1)], {}),
    "Cumprod": (lambda v: [v(2, 3), i(0)], {}),
    "Sum": (lambda v: [v(2, 3), i([1])], {}),
    "Prod": (lambda v: [v(2, 3), i([0])], {}),
    "Mean": (lambda v: [v(2, 3), i([1])], {}),
    "Max": (lambda v: [v(2, 3), i([0])], {}),
    "Min": (lambda v: [v(2, 3), i([1])], {}),
    "ArgMax": (lambda v: [v(2, 3), i(1)], {}),
    "ArgMin": (lambda v: [v(2, 3), i(0)], {}),
    "TopK": (lambda v: [v(2, 5)], {"k": 2}),
    "TopKV2": (lambda v: [v(2, 5), i(2)], {}),
    "MaxPoolV2": (lambda v: [v(1, 3, 3, 1), i([1, 2, 2, 1]), i([1, 1, 1, 1])], {"padding": b"SAME"}),
    "Softmax": (lambda v: [v(2, 3)], {}),
    "LogSoftmax": (lambda v: [v(2, 3)], {}),
    "BatchMatMul": (lambda v: [v(2, 2, 3), v(2, 3, 1)], {}),
    "BatchMatMulV2": (lambda v: [v(2, 3), v(2, 3, 1)], {}),
    "MatMul": (lambda v: [v(2, 3), v(3, 1)], {}),
}


def types_of(op: str) -> list[DType]:
    """Those that a kernel of the op takes on a GPU, of what `v` makes."""
    rows = [row for row in registry._rows_of(op, "GPU") if registry.EVERYTHING not in row.host]
    name = {"Gather": "Tparams", "GatherV2": "Tparams", "GatherNd": "Tparams", "Fill": "T"}.get(op, "T")
    return sorted({dtype for row in rows for dtype in row.types.get(name, ())}, key=lambda dtype: dtype.name)


@pytest.mark.parametrize("op", CASES)
def test_a_type_that_there_is_a_kernel_for(gpu: SimpleNamespace, op: str) -> None:
    inputs, attrs = CASES[op]
    types = types_of(op)
    assert types, "no type is named"
    for dtype in types:
        kind: Any = dtype.as_numpy_dtype

        def v(*shape: int, kind: Any = kind) -> Any:
            # some twice, so that equal ones meet
            numbers = (np.arange(np.prod(shape, dtype=int)) * 7 % 5).reshape(shape)
            return (numbers * (1 + 2j) if np.dtype(kind).kind == "c" else numbers).astype(kind)

        rtol = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype.name, 1e-5)
        gpu.same(op, inputs(v), rtol=rtol, atol=rtol, **attrs)
