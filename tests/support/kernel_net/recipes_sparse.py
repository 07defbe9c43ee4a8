"""What fits the ops of sparse tensors, sets, crosses and dual ascent. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw

Attrs = dict[str, Any]


def places(d: Draw, shape: list[int], share: float = 0.45) -> np.ndarray:
    """Ordered indices of a part of the elements."""
    every = [np.unravel_index(k, shape) for k in range(math.prod(shape))]
    return np.array([each for each in every if d.maybe(share)], np.int64).reshape(-1, len(shape))


def _shape(d: Draw, least: int = 1, most: int = 3) -> list[int]:
    return [max(1, size) for size in d.shape(least, most)]


def tensor(d: Draw, shape: list[int]) -> list[Any]:
    at = places(d, shape)
    if len(at) and d.maybe(0.04):
        at = at.copy()
        at[-1, -1] = d.choice((-1, shape[-1], 0))
    return [at, (len(at),), shape]


def _one(d: Draw, a: Attrs) -> list[Any]:
    at, values, shape = tensor(d, _shape(d))
    return [at[d.sample(range(len(at)), len(at))], values, shape]


def _two_deep(d: Draw, a: Attrs) -> list[Any]:
    return tensor(d, _shape(d, 2, 3))


def _matmul(d: Draw, a: Attrs) -> list[Any]:
    m, k, n = (max(1, size) for size in d.sizes(3))
    first = [k, m] if a["adjoint_a"] else [m, k]
    second = (n, k) if a["adjoint_b"] else (k + d.maybe(0.06), n)
    return [*tensor(d, first), second]


def _plus_dense(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    return [*tensor(d, shape), tuple(shape)]


def _cwise(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    dense = [1 if d.maybe(0.3) else size for size in shape][d.choice((0, 0, len(shape) // 2)) :]
    return [*tensor(d, shape), np.array(d.ints(math.prod(dense), 1, 5)).reshape(dense)]


def _reshape(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    count = math.prod(shape)
    new = d.choice(([count], [1, count], [-1, shape[-1]], [shape[0], -1], [-1], [count, 1, 1], [-1, -1], [count + 1]))
    return [places(d, shape), shape, new]


def _concat(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((2, 2, 3))
    shape = _shape(d)
    axis = d.randrange(len(shape))
    a["concat_dim"] = d.choice((axis, axis - len(shape)))
    parts = []
    for _ in range(a["N"]):
        shape = [*shape]
        shape[axis] = d.randint(1, 3)
        parts.append(tensor(d, shape))
    return [item for kind in zip(*parts, strict=True) for item in kind]


def _slice(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    return [*tensor(d, shape), d.ints(len(shape), 0, 2), d.ints(len(shape), 0, 4)]


def _slice_grad(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    at = places(d, shape)
    start = d.ints(len(shape), 0, 1)
    kept = [each - np.array(start) for each in at if (each >= start).all() and d.maybe(0.9)]
    return [(len(kept),), at, start, np.array(kept).reshape(-1, len(shape))]


def _split(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    axis = d.randrange(len(shape))
    a["num_split"] = d.randint(1, shape[axis] + d.maybe(0.1))
    return [axis, *tensor(d, shape)]


def _fill_rows(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d, 2, 2)
    return [*tensor(d, shape), ()]


def _fill_ragged(d: Draw, a: Attrs) -> list[Any]:
    rows, count = d.randint(0, 4), d.randint(0, 4)
    return [sorted(d.ints(count, 0, rows - 1 + d.maybe(0.1))), (count,), rows, ()]


def _fill_grad(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(1, 5)
    return [sorted(d.sample(range(count), d.randint(0, count))), (count,)]


def _add(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    real = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
    a["Treal"] = real.get(a["T"], a["T"])
    return [*tensor(d, shape), *tensor(d, shape), d.choice((0, 0, 2))]


def _add_grad(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    first, second = places(d, shape), places(d, shape)
    both = sorted({tuple(each) for each in (*first, *second)})
    both = [each for each in both if d.maybe(0.9)]
    return [(len(both),), first, second, np.array(both).reshape(-1, len(shape))]


def _pair(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    return [*tensor(d, shape), *tensor(d, shape)]


def _reduce(d: Draw, a: Attrs) -> list[Any]:
    shape = _shape(d)
    axes = d.sample(range(len(shape)), d.randint(0, len(shape)))
    return [*tensor(d, shape), [axis - len(shape) if d.maybe(0.3) else axis for axis in axes]]


def _set(d: Draw, a: Attrs, rows: int, deep: bool) -> list[Any]:
    """A sparse tensor whose last dimension holds sets, small numbers."""
    shape = [2, rows, 3] if deep else [rows, 3]
    at = np.array([each for each in places(d, shape, 0.6)]).reshape(-1, len(shape))
    return [at, _members(d, a, (len(at),)), shape]


def _members(d: Draw, a: Attrs, shape: tuple[int, ...]) -> Any:
    if a["T"] is dtypes.string:
        return shape
    return np.array(d.ints(math.prod(shape), 0, 4)).reshape(shape)


def _operation(d: Draw, a: Attrs) -> None:
    a["set_operation"] = d.choice(
        (b"a-b", b"b-a", b"intersection", b"union", b"union", b"odd" if d.maybe(0.2) else b"a-b")
    )


def _set_size(d: Draw, a: Attrs) -> list[Any]:
    return _set(d, a, d.randint(1, 3), d.maybe(0.3))


def _dense_sets(d: Draw, a: Attrs) -> list[Any]:
    _operation(d, a)
    rows = d.shape(1, 2)
    return [_members(d, a, (*rows, d.randint(0, 3))), _members(d, a, (*rows, d.randint(0, 3)))]


def _dense_and_sparse_sets(d: Draw, a: Attrs) -> list[Any]:
    _operation(d, a)
    rows, deep = d.randint(1, 3), d.maybe(0.3)
    return [_members(d, a, (*((2,) if deep else ()), rows, d.randint(0, 3))), *_set(d, a, rows, deep)]


def _sparse_sets(d: Draw, a: Attrs) -> list[Any]:
    _operation(d, a)
    rows, deep = d.randint(1, 3), d.maybe(0.3)
    return [*_set(d, a, rows, deep), *_set(d, a, rows, deep)]


def _cross(kind: str) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        a["N"], batch = d.choice((0, 1, 2)), d.randint(1, 2)
        whole = kind == "" and d.maybe()
        types = (dtypes.int64,) if whole else (dtypes.int64, dtypes.string)
        a["sparse_types"] = [d.choice(types) for _ in range(a["N"])]
        a["dense_types"] = [d.choice(types) for _ in range(d.choice((1, 2) if a["N"] < 2 else (0, 1)))]
        sparse = [tensor(d, [batch, 2]) for _ in range(a["N"])]
        dense = [(batch, d.randint(1, 2)) for _ in a["dense_types"]]
        items = [item for kind in zip(*sparse, strict=True) for item in kind] + dense
        if kind == "":
            a["hashed_output"], a["num_buckets"], a["hash_key"] = whole, d.choice((0, 100)), d.choice((956888297470, 7))
            a["out_type"], a["internal_type"] = (dtypes.int64 if whole else dtypes.string), d.choice(types)
            if a["internal_type"] is dtypes.string and d.maybe(0.9):
                a["sparse_types"], a["dense_types"] = (
                    [dtypes.string] * len(a[k]) for k in ("sparse_types", "dense_types")
                )
                items = items[: a["N"]] + [
                    each.shape[:1] if isinstance(each, np.ndarray) else each for each in items[a["N"] :]
                ]
            return items
        if kind == "hashed":
            return [*items, d.choice((0, 100)), False, d.ints(2, 1, 999)]
        return [*items, d.choice((b"_X_", b"", b"&"))]

    return make


def _to_sparse(d: Draw, a: Attrs) -> list[Any]:
    a["RAGGED_RANK"] = d.choice((1, 1, 2))
    splits: list[Any] = []
    count = d.randint(1, 3)
    for _ in range(a["RAGGED_RANK"]):
        lengths = d.ints(count, 0, 2)
        splits.append([0, *np.cumsum(lengths).tolist()])
        count = sum(lengths)
    return [*splits, (count + d.maybe(0.06), *d.shape(0, 1))]


def _serialize(d: Draw, a: Attrs) -> list[Any]:
    a["out_type"] = dtypes.string
    return tensor(d, _shape(d, 1, 2))


def _serialize_many(d: Draw, a: Attrs) -> list[Any]:
    a["out_type"] = dtypes.string
    return tensor(d, _shape(d, 2, 3))


def _serialized(d: Draw, a: Attrs) -> np.ndarray:
    from tenfold_core.tensor_util import tensor_to_proto

    at, shape = places(d, [3]), [3]
    dtype = a["dtype"] if d.maybe(0.95) else dtypes.bool_
    rows = [at, d.array(dtype, (len(at),)), np.array(shape, np.int64)]
    made = np.empty(3, object)
    made[:] = [tensor_to_proto(each).SerializeToString(deterministic=True) for each in rows]
    if d.maybe(0.05):
        made[1] = b"odd"
    return made


def _deserialize(d: Draw, a: Attrs) -> list[Any]:
    a["Tserialized"] = dtypes.string
    rows = [_serialized(d, a) for _ in range(d.randint(1, 3))]
    return [rows[0] if d.maybe(0.3) else np.stack(rows)]


def _deserialize_many(d: Draw, a: Attrs) -> list[Any]:
    return [np.stack([_serialized(d, a) for _ in range(d.randint(1, 3))])]


def _ascent(d: Draw, a: Attrs) -> list[Any]:
    sparse, dense, count = d.choice(((0, 1), (1, 1), (2, 0), (1, 0), (1, 2))), 0, 1
    few, dense = sparse
    a["num_sparse_features"], a["num_dense_features"] = few, dense
    a["num_sparse_features_with_values"] = d.randint(0, few)
    a["l1"], a["l2"] = d.choice((0.0, 0.25)), d.choice((1.0, 2.0))
    a["num_loss_partitions"], a["num_inner_iterations"] = d.choice((1, 2)), d.choice((1, 2))
    a["adaptative" if "adaptative" in a else "adaptive"] = False
    label = d.choice((0.0, 1.0, 1.0, 3.0 if a["loss_type"] == b"poisson_loss" else 1.0))
    return [
        *[[0]] * few, *[[5]] * few, *[[d.choice((0.5, 2.0))]] * a["num_sparse_features_with_values"],
        *[d.floats((count, 2))] * dense, [1.5], [label], *[[5]] * few, *[[0.25]] * few, *[d.floats((2,))] * dense,
        [[d.choice((0.0, 0.25)), 0.0, 0.0, 0.0]],
    ]  # fmt: skip


def _names(d: Draw, a: Attrs) -> list[Any]:
    return [(d.randint(0, 3),)]


RECIPES = {
    "SparseReorder": _one, "SparseSoftmax": _two_deep, "SparseTensorDenseMatMul": _matmul,
    "SparseTensorDenseAdd": _plus_dense, **dict.fromkeys(("SparseDenseCwiseAdd", "SparseDenseCwiseMul",
                                                          "SparseDenseCwiseDiv"), _cwise),
    "SparseReshape": _reshape, "SparseConcat": _concat, "SparseSlice": _slice, "SparseSliceGrad": _slice_grad,
    "SparseSplit": _split, "SparseFillEmptyRows": _fill_rows, "RaggedFillEmptyRows": _fill_ragged,
    "SparseFillEmptyRowsGrad": _fill_grad, "RaggedFillEmptyRowsGrad": _fill_grad, "SparseAdd": _add,
    "SparseAddGrad": _add_grad, "SparseSparseMinimum": _pair, "SparseSparseMaximum": _pair,
    **dict.fromkeys(("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"), _reduce),
    "SetSize": _set_size, "DenseToDenseSetOperation": _dense_sets, "DenseToSparseSetOperation": _dense_and_sparse_sets,
    "SparseToSparseSetOperation": _sparse_sets, "SparseCross": _cross(""), "SparseCrossHashed": _cross("hashed"),
    "SparseCrossV2": _cross("v2"), "RaggedTensorToSparse": _to_sparse, "SerializeSparse": _serialize,
    "SerializeManySparse": _serialize_many, "DeserializeSparse": _deserialize,
    "DeserializeManySparse": _deserialize_many, "SdcaOptimizer": _ascent, "SdcaOptimizerV2": _ascent,
    "SdcaFprint": _names,
}  # fmt: skip
