"""Static shapes of which TensorFlow 2.21 says nothing: ops that it no longer has, old graphs, and what only we refuse.

The others are compared with its own answers: test_inferred_shapes.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from support.inferred import shapes_of
from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs import shape_fns
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto

S: list[Any] = []  # a scalar
NORM, NORM_GRAD = "BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"
NORMED = {"variance_epsilon": 0.1, "scale_after_normalization": True}
SEQUENCES = {
    **dict.fromkeys(("Ncontext_sparse", "Nfeature_list_sparse", "Nfeature_list_dense"), 0),
    **{key: [] for key in ("context_sparse_types", "Tcontext_dense", "context_dense_shapes")},
    **{key: [] for key in ("feature_list_sparse_types", "feature_list_dense_types", "feature_list_dense_shapes")},
    **{key: [dtypes.float32] for key in ("context_ragged_value_types", "feature_list_ragged_value_types")},
    **{key: [dtypes.int64] for key in ("context_ragged_split_types", "feature_list_ragged_split_types")},
}
SEQUENCES_V2, BATCH = "ParseSequenceExampleV2", [[2], *[[1]] * 9]
X, C = [2, 4, 6, 3], [3]


@pytest.mark.parametrize(
    ("op", "inputs", "values", "attrs", "outputs"),
    [
        (NORM, [X, C, C, C, C], {}, NORMED, [X]),
        (NORM, [[2, 4, 6, None], [None], C, [None], [None]], {}, NORMED, [X]),
        (NORM, [[2, 4, 6, None], [None], [None], [None], C], {}, NORMED, [X]),
        (NORM, [None, [None], [None], [None], [None]], {}, NORMED, [[None] * 4]),
        (NORM_GRAD, [X, C, C, C, X], {}, NORMED, [X, C, C, C, C]),
        (NORM_GRAD, [[2, None, 6, None], C, [None], [None], [None, 4, 6, None]], {}, NORMED, [X, C, C, C, C]),
        (NORM_GRAD, [[2, 4, 6, None], [None], [None], C, [None] * 4], {}, NORMED, [X, C, C, C, C]),
        ("TileGrad", [[6, 4, None], [3]], {1: [2, 4, 3]}, {}, [[3, 1, None]]),
        ("TileGrad", [[6, 4], [2]], {1: [1, 0]}, {}, [[6, None]]),
        ("TileGrad", [[6, 4], [2]], {}, {}, [[None, None]]),
        ("TileGrad", [[6, 4], [3]], {1: [2, 4, 3]}, {}, [[None, None]]),
        ("TileGrad", [None, [2]], {1: [1, 2]}, {}, [None]),
        ("SelfAdjointEig", [[5, 3, 3]], {}, {}, [[5, 4, 3]]),
        ("SelfAdjointEig", [[None, 3]], {}, {}, [[4, 3]]),
        ("SelfAdjointEig", [[None, None]], {}, {}, [[None, None]]),
        ("SelfAdjointEig", [None], {}, {}, [None]),
        ("GatherTree", [[3, 2, 4], [3, 2, None], [2], S], {}, {}, [[3, 2, 4]]),
        ("GatherTree", [[3, None, None], None, [2], S], {}, {}, [[3, 2, None]]),
        ("GatherTree", [None, [3, None, 4], [None], None], {}, {}, [[3, None, 4]]),
        ("MirrorPadGrad", [[6, 5], [2, 2]], {1: [[1, 1], [0, 2]]}, {"mode": b"REFLECT"}, [[4, 3]]),
        ("MirrorPadGrad", [[6, None], [2, 2]], {1: [[1, 1], [0, 2]]}, {"mode": b"REFLECT"}, [[4, None]]),
        ("MirrorPadGrad", [None, [2, 2]], {1: [[1, 1], [0, 2]]}, {"mode": b"REFLECT"}, [[None, None]]),
        ("DecodePaddedRaw", [[3], S], {1: 1}, {"out_type": dtypes.uint8}, [[3, 1]]),
        ("DecodePaddedRaw", [[3], S], {1: 4}, {"out_type": dtypes.int16}, [[3, 2]]),
        ("Skipgram", [], {}, {"filename": b"f", "batch_size": 5}, [[None], [None], S, S, S, [5], [5]]),
        ("MaxPool", [None], {}, {"ksize": [1] * 4, "strides": [1] * 4, "data_format": b"NCHW_VECT_C"}, [None]),
    ],
)  # fmt: skip
def test_what_is_known(op: str, inputs: Any, values: Any, attrs: Any, outputs: Any) -> None:
    assert shapes_of(op, inputs, values, attrs) == outputs


@pytest.mark.parametrize(
    ("op", "inputs", "values", "attrs", "text"),
    [
        (NORM, [X, C, C, C, [4]], {}, NORMED, r"\(3,\) and \(4,\) are not compatible"),
        (NORM, [[2, 3], C, C, C, C], {}, NORMED, "must have rank 4"),
        (NORM_GRAD, [X, C, C, C, [2, 4, 5, 3]], {}, NORMED, "are not compatible"),
        ("SelfAdjointEig", [[3, 4]], {}, {}, "are 3 and 4 for a square matrix"),
        ("GatherTree", [[3, 2, 4], [3, 2, 5], [2], S], {}, {}, "are not compatible"),
        ("GatherTree", [[3, 2, 4], [3, 2, 4], [3], S], {}, {}, "are not compatible"),
        ("GatherTree", [[3, 2], [3, 2], [2], S], {}, {}, "must have rank 3"),
        ("GatherTree", [[3, 2, 4], [3, 2, 4, 5], [2], S], {}, {}, "must have rank 3"),
        ("GatherTree", [[3, 2, 4], [3, 2, 4], S, S], {}, {}, "must have rank 1"),
        ("GatherTree", [[3, 2, 4], [3, 2, 4], [2], [1]], {}, {}, "must have rank 0"),
        ("InitializeTableV2", [S, [3], [4]], {}, {}, "are not compatible"),
        (SEQUENCES_V2, BATCH, {}, {**SEQUENCES, "context_ragged_value_types": []}, "and 1"),
        (SEQUENCES_V2, BATCH, {}, {**SEQUENCES, "feature_list_ragged_split_types": []}, "and 0"),
        ("DecodePaddedRaw", [[3], S], {1: 0}, {"out_type": dtypes.uint8}, "must be greater than zero, got 0"),
        ("DecodePaddedRaw", [[3], S], {1: 3}, {"out_type": dtypes.int16}, "must be a multiple of"),
        ("ConcatV2", [S, S, S], {}, {"N": 2}, "at least rank 1 but is rank 0"),
        ("Concat", [S, S, S], {}, {"N": 2}, "at least rank 1 but is rank 0"),
        ("NthElement", [[4], [1]], {}, {}, "must be scalar but has rank 1"),
        ("Reshape", [[4, 3], [2]], {1: [-1, -1]}, {}, "only one size may be -1"),
        ("ResizeArea", [[1, 4, 4, 1], [2]], {1: [-1, 2]}, {}, r"got \[-1, 2\]"),
        ("ResizeArea", [[1, 4, 4, 1], [2]], {1: [2, -1]}, {}, r"got \[2, -1\]"),
    ],
)
def test_what_is_wrong_is_refused(op: str, inputs: Any, values: Any, attrs: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        shapes_of(op, inputs, values, attrs)


@pytest.mark.parametrize(
    ("matrices", "lengths", "columns"),
    [
        (([4, None], [5, None]), ([3], [None]), 3),
        (([4, None], [5, None]), ([None], [3]), 3),
        (([4, 3], [5, None]), ([None], [None]), 3),
        (([4, None], [5, None]), ([None], [None]), None),
    ],
)
def test_any_operand_of_a_join_of_sparse_tensors_says_how_many_axes(
    matrices: Any, lengths: Any, columns: int | None
) -> None:
    inputs = [TensorShape(shape) for shape in (*matrices, [7], [7], *lengths)]

    found = infer_shapes(opdefs.get("SparseConcat"), {"N": 2, "concat_dim": 0}, inputs, {}.get, 3)

    assert [shape.as_list() for shape in found] == [[9, columns], [9], [columns]]


@pytest.mark.parametrize(
    ("op", "attrs", "text"),
    [
        ("AvgPool", {"ksize": [1, 2, 2], "strides": [1] * 4}, "the ksize attribute to contain 4 values, but got: 3"),
        ("AvgPool", {"ksize": [1] * 4, "strides": [1] * 5}, "the stride attribute to contain 4 values, but got: 5"),
    ],
)
def test_a_list_has_a_value_for_each_axis(op: str, attrs: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        shapes_of(op, [[1, 4, 4, 1]], {}, {"padding": b"SAME", **attrs})


def test_a_list_that_is_left_out_is_of_ones() -> None:
    attrs = {"strides": [1, 2, 2, 1], "dilations": [], "padding": b"VALID"}

    assert shapes_of("Conv2D", [[1, 8, 8, 3], [3, 3, 3, 5]], {}, attrs) == [[1, 3, 3, 5]]


@pytest.mark.parametrize("numbers", [(0.0, 1e300, 1e-300), (0.0, -1e300, -1e-300), (0.0, math.nan, 1.0)])
def test_a_range_has_a_size(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        infer_shapes(opdefs.get("Range"), {}, [TensorShape([])] * 3, dict(enumerate(map(np.array, numbers))).get, 1)


@pytest.mark.parametrize(("producer", "rank"), [(21, None), (22, 0)])
def test_old_graphs_say_nothing_of_a_placeholder_with_a_scalars_shape(producer: int, rank: int | None) -> None:
    attrs = {"shape": TensorShape([])}
    (found,) = infer_shapes(opdefs.get("Placeholder"), attrs, [], {}.get, 1, producer=producer)
    assert found.ndims == rank
    attrs = {"shape": TensorShape([3])}
    (found,) = infer_shapes(opdefs.get("Placeholder"), attrs, [], {}.get, 1, producer=producer)
    assert found.as_list() == [3]


def test_a_constant_has_its_values_shape() -> None:
    attrs = {"value": tensor_to_proto(np.zeros((2, 0, 3), np.float32))}

    (found,) = infer_shapes(opdefs.get("Const"), attrs, [], {}.get, 1)

    assert found.as_list() == [2, 0, 3]


def test_a_functions_gradient_has_its_inputs_shapes() -> None:
    inputs = [TensorShape([2]), TensorShape([3, None]), TensorShape([])]
    definition = opdefs.get("SymbolicGradient")

    assert infer_shapes(definition, {}, inputs, {}.get, 2) == inputs[:2]
    assert infer_shapes(definition, {}, inputs, {}.get, 3) == inputs
    with pytest.raises(ValueError, match="3 vs 4"):
        infer_shapes(definition, {}, inputs, {}.get, 4)


def test_what_has_no_outputs_has_no_shapes() -> None:
    assert infer_shapes(opdefs.get("Assert"), {}, [TensorShape([])], {}.get, 0) == []
    assert infer_shapes(opdefs.get("NegTrain"), {}, [TensorShape(None)] * 5, {}.get, 0) == []
    assert shape_fns.no_outputs(None) == []  # type: ignore[arg-type]
