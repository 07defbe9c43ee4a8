"""Sorting and searching: `tf.sort`, `tf.argsort`, `tf.searchsorted`, `tf.unique_with_counts`.

Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array, math, slicing
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The values in order along `axis`. Raises ValueError for a direction that is neither ASCENDING nor DESCENDING."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, positions=False)


def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The positions that put the values in order along `axis`; always stable."""
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, positions=True)


def _sorted(values: Any, axis: Any, direction: str, *, positions: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{direction} should be one of ASCENDING, DESCENDING")
    along = axis if isinstance(axis, int) else known_value(convert_to_tensor(axis, name="axis"))
    if along is None or np.ndim(along) != 0:
        raise ValueError("axis must be a constant scalar")
    along = int(along)
    values = convert_to_tensor(values, name="values")
    rank = values.shape.ndims
    order: Any = None
    if rank is None:
        if along != -1:
            order = _last_exchanged(along, array.rank(values))
    else:
        if not -rank <= along < rank:
            raise ValueError(f"axis = {along} not in [{-rank}, {rank})")
        order = [*range(rank)]
        order[along % rank], order[-1] = order[-1], order[along % rank]
        order = None if order == [*range(rank)] else order
    moved = values if order is None else array.transpose(values, order)
    ascending = direction == "ASCENDING"
    # top_k gives the largest first: ascending order is that of the negated values, without overflow for integers.
    keys = moved
    if ascending:
        kind = values.dtype.base_dtype
        if kind.is_unsigned:
            keys = math.subtract(array.constant(kind.max, kind), moved)
        elif kind.is_integer:
            keys = math.subtract(array.constant(-1, kind), moved)
        else:
            keys = math.negative(moved)
    found = apply_op("TopKV2", None, input=keys, k=array.shape(moved)[-1], sorted=True)
    if positions:
        result: Tensor = found.indices
    else:
        result = found.values
        if ascending:
            if kind.is_unsigned:
                result = math.subtract(array.constant(kind.max, kind), result)
            elif kind.is_integer:
                result = math.subtract(array.constant(-1, kind), result)
            else:
                result = math.negative(result)
    result = result if order is None else array.transpose(result, order)
    result.set_shape(values.shape)
    return result


def _last_exchanged(axis: int, rank: Tensor) -> Tensor:
    """The permutation of `rank` dimensions that exchanges `axis` with the last one; it is its own inverse."""
    place = math.floormod(array.constant(axis), rank)
    every = math.range(rank)
    last = rank - 1
    swapped = slicing.where(math.equal(every, place), array.zeros_like(every) + last, every)
    return slicing.where(math.equal(every, last), array.zeros_like(every) + place, swapped)


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Where each value would go into its sorted row, before ("left") or after ("right") its equals."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    width = array.shape(sorted_sequence, out_type=dtypes.int32)[-1]
    count = array.shape(values, out_type=dtypes.int32)[-1]
    rows = array.reshape(sorted_sequence, array.stack([-1, width]))
    wanted = array.reshape(values, array.stack([-1, count]))
    found = tensor_op(
        "LowerBound" if side == "left" else "UpperBound", name, sorted_inputs=rows, values=wanted, out_type=out_type
    )
    return array.reshape(found, array.shape(values))


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """`(y, idx, count)`: as `unique`, and how often each element appears."""
    return apply_op("UniqueWithCounts", name, x=x, out_idx=out_idx)
