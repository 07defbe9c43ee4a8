"""What fits the ops that read and write at places of an array, and those of sets of numbers. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]


def _slice(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 4)
    begin = [d.randint(0, size) for size in shape]
    sizes = [d.choice((-1, d.randint(0, size - at))) for size, at in zip(shape, begin, strict=True)]
    return [shape, begin, sizes]


def strides(d: Draw, a: Attrs) -> tuple[tuple[int, ...], list[list[int]], list[int]]:
    """A shape, begins, ends and strides with masks, and the shape of what they take."""
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    count = d.randint(0, len(shape))
    ends = []
    for at in range(count):
        step = d.choice((1, 1, 2, -1, -2, 3))
        size = shape[at]
        ends.append((d.randint(-size - 1, size + 1), d.randint(-size - 1, size + 1), step))
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for bit in range(count):
        kind = d.choice(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "", "", ""))
        if kind:
            masks[kind] |= 1 << bit
        if kind == "shrink_axis_mask":
            ends[bit] = (d.randint(-shape[bit], shape[bit] - 1 + d.maybe(0.1)), ends[bit][1], 1)
    if d.maybe(0.3):
        masks["ellipsis_mask"] = 1 << d.randint(0, count)
        ends.insert(masks["ellipsis_mask"].bit_length() - 1, (0, 0, 1))
    a.update(masks)
    return shape, [list(each) for each in zip(*ends, strict=True)] if ends else [[], [], []], _taken(shape, ends, masks)


def _taken(shape: tuple[int, ...], ends: list[tuple[int, int, int]], masks: dict[str, int]) -> list[int]:
    """As NumPy takes them; the shape itself where it refuses."""
    index: list[Any] = []
    for bit, (begin, end, step) in enumerate(ends):
        is_set = {name for name, mask in masks.items() if mask >> bit & 1}
        if "ellipsis_mask" in is_set:
            index.append(...)
        elif "new_axis_mask" in is_set:
            index.append(None)
        elif "shrink_axis_mask" in is_set:
            index.append(begin)
        else:
            index.append(slice(None if "begin_mask" in is_set else begin, None if "end_mask" in is_set else end, step))
    try:
        return list(np.empty(shape)[tuple(index)].shape)
    except IndexError:
        return list(shape)


def _strided_slice(d: Draw, a: Attrs) -> list[Any]:
    shape, ends, _ = strides(d, a)
    return [shape, *ends]


def _strided_slice_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, ends, taken = strides(d, a)
    return [list(shape), *ends, tuple(taken)]


def _strided_slice_update(d: Draw, a: Attrs) -> list[Any]:
    shape, ends, taken = strides(d, a)
    return [shape, *ends, tuple(taken) if d.maybe(0.7) else ()]


def gather(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    places = d.shape(0, 2)
    return [shape, np.array(d.ints(math.prod(places), 0, shape[0] - 1 + d.maybe(0.1))).reshape(places)]


def _gather_v2(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 4)
    axis = d.randrange(len(shape))
    batch = d.randint(0, axis) if d.maybe(0.5) else 0
    places = (*shape[:batch], *d.shape(0, 2))
    a["batch_dims"] = batch if d.maybe(0.8) or not batch else batch - len(places)
    at = np.array(d.ints(math.prod(places), 0, shape[axis] - 1 + d.maybe(0.1))).reshape(places)
    return [shape, at, d.choice((axis, axis, axis - len(shape)))]


def gather_nd(d: Draw, a: Attrs) -> list[Any]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    depth, rows = d.randint(0, len(shape)), d.shape(0, 2)
    at = [[d.randint(0, size - 1) for size in shape[:depth]] for _ in range(math.prod(rows))]
    if a.get("bad_indices_policy"):
        a["bad_indices_policy"] = b""
    return [shape, np.array(at).reshape(*rows, depth)]


def scatter(d: Draw, a: Attrs) -> tuple[tuple[int, ...], np.ndarray, tuple[int, ...]]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    depth, rows = d.randint(1, len(shape)), d.choice(((2,), (3,), (1, 2), (0,), ()))
    at = [[d.randint(0, size - 1) for size in shape[:depth]] for _ in range(math.prod(rows))]
    if at and d.maybe(0.1):
        at[0][-1] = d.choice((-1, shape[depth - 1]))
    if "bad_indices_policy" in a:
        a["bad_indices_policy"] = d.choice((b"", b"", b"DEFAULT", b"ERROR", b"IGNORE", b"odd"))
    return shape, np.array(at).reshape(*rows, depth), (*rows, *shape[depth:])


def _scatter_nd(d: Draw, a: Attrs) -> list[Any]:
    shape, at, updates = scatter(d, a)
    return [at, updates, list(shape)]


def _scatter_into(d: Draw, a: Attrs) -> list[Any]:
    shape, at, updates = scatter(d, a)
    return [shape, at, updates]


def _inplace(d: Draw, a: Attrs) -> list[Any]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    if d.maybe(0.3):
        return [shape, d.randint(-1, shape[0]), shape[1:]]
    count = d.randint(0, 3)
    return [shape, d.ints(count, 0, shape[0] - 1), (count, *shape[1:])]


def _sparse_to_dense(d: Draw, a: Attrs) -> list[Any]:
    shape = [max(1, size) for size in d.shape(1, 3)]
    every = [list(np.unravel_index(k, shape)) for k in range(math.prod(shape))]
    some = [each for each in every if d.maybe(0.4)]
    if d.maybe(0.2):
        some.reverse()
    if len(shape) == 1 and d.maybe():
        flat = [int(each[0]) for each in some]
        return [flat, shape, (len(flat),) if d.maybe(0.7) else (), ()]
    return [np.array(some).reshape(-1, len(shape)), shape, (len(some),) if d.maybe(0.7) else (), ()]


def _partition(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 2)
    a["num_partitions"] = d.choice((1, 2, 3))
    places = np.array(d.ints(math.prod(shape), 0, a["num_partitions"] - 1 + d.maybe(0.1))).reshape(shape)
    return [(*shape, *d.shape(0, 1)), places]


def _stitch(d: Draw, a: Attrs) -> list[Any]:
    a["N"], rest = d.choice((1, 2, 3)), d.shape(0, 1)
    shapes = [d.shape(0, 2) for _ in range(a["N"])]
    order = list(range(sum(math.prod(shape) for shape in shapes)))
    d.shuffle(order)
    if order and d.maybe(0.3):
        order[0] = d.choice((order[-1], len(order), 0))
    places = []
    for shape in shapes:
        size = math.prod(shape)
        places.append(np.array(order[:size]).reshape(shape))
        order = order[size:]
    return [*places, *[(*shape, *rest) for shape in shapes]]


def _one_hot(d: Draw, a: Attrs) -> list[Any]:
    shape, depth = d.shape(0, 2), d.randint(0, 4)
    a["axis"] = d.choice((-1, -1, *range(len(shape) + 1)))
    return [np.array(d.ints(math.prod(shape), -1, depth)).reshape(shape), depth, (), ()]


def _bounds(d: Draw, a: Attrs) -> list[Any]:
    rows = d.size()
    a["T"] = d.choice((dtypes.float32, dtypes.int32, dtypes.float64, dtypes.int64))
    return [np.sort(d.floats((rows, d.size())).round(), 1), d.floats((rows, d.size())).round()]


def _unique(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(0, 7)
    if a["T"] is dtypes.string:
        return [(count,)]
    if a["T"].is_floating and d.maybe(0.3):
        return [[d.choice((1.0, 2.0, math.nan, -0.0, 0.0)) for _ in range(count)]]
    return [d.ints(count, 0, 3)]


def _unique_v2(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    if len(shape) == 1 and d.maybe():
        return [np.array(d.ints(shape[0], 0, 2)), []]
    if a["T"] is dtypes.string:
        return [shape, [d.axis(len(shape))]]
    return [np.array(d.ints(math.prod(shape), 0, 1)).reshape(shape), [d.axis(len(shape))]]


def _list_diff(d: Draw, a: Attrs) -> list[Any]:
    if a["T"] is dtypes.string:
        return [(4,), (2,)]
    return [d.ints(d.randint(0, 6), 0, 4), d.ints(d.randint(0, 3), 0, 4)]


RECIPES = {
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_grad,
    "TensorStridedSliceUpdate": _strided_slice_update,
    "Gather": gather,
    "GatherV2": _gather_v2,
    "GatherNd": gather_nd,
    "ScatterNd": _scatter_nd,
    "SparseToDense": _sparse_to_dense,
    **dict.fromkeys(("InplaceAdd", "InplaceSub", "InplaceUpdate"), _inplace),
    **dict.fromkeys(
        (
            "TensorScatterMax",
            "TensorScatterMin",
            "TensorScatterSub",
            "TensorScatterAdd",
            "TensorScatterUpdate",
            "ScatterNdNonAliasingAdd",
        ),
        _scatter_into,
    ),
    "DynamicPartition": _partition,
    "DynamicStitch": _stitch,
    "ParallelDynamicStitch": _stitch,
    "OneHot": _one_hot,
    "LowerBound": _bounds,
    "UpperBound": _bounds,
    "Unique": _unique,
    "UniqueWithCounts": _unique,
    "UniqueV2": _unique_v2,
    "UniqueWithCountsV2": _unique_v2,
    "ListDiff": _list_diff,
}
