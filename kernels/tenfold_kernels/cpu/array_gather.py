"""Picking rows by index: Gather, GatherNd, the dynamic partition and stitch.

Every index is checked, as TensorFlow's CPU kernels do, and the error names the first bad one. Row gathers of floats
and integers run compiled (_compiled/rows.py). Outputs are fresh. Follows gather_op.cc and gather_nd_op.cc.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import (
    Array,
    as_array,
    canonical_axis,
    contiguous,
    input_type,
    invalid,
    output_type,
    remembering,
    shape_text,
)
from tenfold_kernels.cpu._nd_places import good_rows, nd_index
from tenfold_kernels.parallel import first_in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import ANY, COMPILED, INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Bytes of rows that are worth a part of their own, 50 to 100 µs.
_PART = 1 << 17


def index_error(indices: Array, flat_position: int, limit: int) -> Exception:
    """`indices[1] = 7 is not in [0, 5)`: which one, by its coordinates."""
    where = ",".join(str(int(i)) for i in np.unravel_index(flat_position, indices.shape)) if indices.ndim else ""
    at = f"[{where}]" if indices.ndim else ""
    return invalid(f"indices{at} = {indices.reshape(-1)[flat_position]} is not in [0, {limit})")


def check_indices(indices: Array, limit: int) -> None:
    """Raises InvalidArgumentError naming the first index outside [0, limit)."""
    if indices.size and (indices.min() < 0 or indices.max() >= limit):
        bad = (indices < 0) | (indices >= limit)
        raise index_error(indices, int(bad.reshape(-1).argmax()), limit)


def _gather_rows(node: KernelNode) -> Callable[[Array, Array], Array]:
    """(params, indices) → rows, by the compiled loop where there is one for the types, else by np.take."""
    params_type, index_type = node.input_types[0].base_dtype, node.input_types[1]
    if params_type not in COMPILED | INDEX or index_type not in INDEX:

        def take(params: Array, indices: Array) -> Array:
            check_indices(indices, params.shape[0])
            return as_array(params.take(indices, axis=0))

        return take

    from tenfold_kernels.cpu._compiled import rows

    gather = rows.gather_rows(params_type.as_numpy_dtype, index_type.as_numpy_dtype)

    def compute(params: Array, indices: Array) -> Array:
        limit, *row = params.shape
        rows_NW = out = np.empty((*indices.shape, *row), params.dtype)
        table_LW = contiguous(params)
        indices_N = contiguous(indices)
        if len(row) != 1:
            table_LW = table_LW.reshape(limit, math.prod(row))
        if indices_N.ndim != 1 or len(row) != 1:
            indices_N = indices_N.reshape(-1)
            rows_NW = out.reshape(indices_N.size, table_LW.shape[1])
        if rows_NW.nbytes < 2 * _PART:
            bad = gather(table_LW, indices_N, rows_NW)
        else:
            bad = first_in_parts(
                lambda first, last: gather(table_LW, indices_N[first:last], rows_NW[first:last]),
                indices_N.size,
                _PART // rows_NW[0].nbytes,
            )
        if bad >= 0:
            raise index_error(indices, bad, limit)
        return out

    return compute


@kernel("Gather", Tparams=ANY)
def build_gather(node: KernelNode) -> Compute:
    gather = _gather_rows(node)

    def compute(params: Array, indices: Array) -> Array:
        if not params.ndim:
            gather_axis(params, 0)
        return gather(params, indices)

    return compute


def gather_axis(params: Array, axis: int) -> int:
    """The axis from the front. Raises InvalidArgumentError."""
    if params.ndim < 1:
        raise invalid("params must be at least 1 dimensional")
    return canonical_axis(
        axis, params.ndim, f"Expected axis in the range [{-params.ndim}, {params.ndim}), but got {axis}"
    )


def scalar_axis(axis: Array) -> int:
    if axis.ndim:
        raise invalid("axis must be scalar")
    return int(axis)


@kernel("GatherV2", Tparams=ANY)
def build_gather_v2(node: KernelNode) -> Compute:
    """Along any axis, with leading batch dimensions that params and indices share."""
    gather = _gather_rows(node)
    batch_attr = int(node.attrs.get("batch_dims", 0))
    axis_of = remembering(scalar_axis)

    def compute(params: Array, indices: Array, axis: Array) -> Array:
        number = axis_of(axis)
        if number == 0 == batch_attr and params.ndim:
            return gather(params, indices)
        where = gather_axis(params, number)
        if batch_attr == 0:
            if where == 0:
                return gather(params, indices)
            check_indices(indices, params.shape[where])
            return as_array(np.take(params, indices, axis=where))
        return _gather_batched(params, indices, where, batch_attr)

    return compute


def gather_batch(params: Array, indices: Array, axis: int, batch_dims: int) -> int:
    """How many leading dimensions params and indices share. Raises InvalidArgumentError."""
    if not -indices.ndim <= batch_dims <= indices.ndim:
        raise invalid(f"Expected batch_dims in the range [{-indices.ndim}, {indices.ndim}], but got {batch_dims}")
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if batch >= params.ndim:
        raise invalid(f"batch_dims ({batch}) must be less than rank(params) ({params.ndim}).")
    if axis < batch:
        raise invalid(f"batch_dims ({batch}) must be less than or equal to axis ({axis}).")
    for i in range(batch):
        if params.shape[i] != indices.shape[i]:
            raise invalid(
                f"params.shape[{i}]: {params.shape[i]} should be equal to indices.shape[{i}]: {indices.shape[i]}"
            )
    return batch


def _gather_batched(params: Array, indices: Array, axis: int, batch_dims: int) -> Array:
    # P batch and middle dims of params up to the axis; the batch dims are shared, the middle ones are not indexed.
    batch = gather_batch(params, indices, axis, batch_dims)
    check_indices(indices, params.shape[axis])
    lead, rest = params.shape[:batch], indices.shape[batch:]
    count = math.prod(lead)
    moved = params.reshape((count, *params.shape[batch:]))
    picked = indices.reshape(count, math.prod(indices.shape[batch:]))
    parts = [np.take(moved[i], picked[i], axis=axis - batch) for i in range(count)]
    shape = (*lead, *params.shape[batch:axis], *rest, *params.shape[axis + 1 :])
    return np.stack(parts).reshape(shape) if parts else np.empty(shape, dtype=params.dtype)


@kernel("GatherNd", Tparams=ANY)
def build_gather_nd(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import sparse_places

    good = good_rows(node)
    number_places = sparse_places.number_places(input_type(node, 1)) if node.input_types[1] in INDEX else None

    def elements(params: Array, indices: Array) -> Array | None:
        """What index tuples that name elements give; None for others, and where one is wrong."""
        depth = params.ndim
        if number_places is None or indices.shape[-1] != depth or not params.flags.c_contiguous:
            return None
        places = contiguous(indices).reshape(-1, depth)
        numbers = np.empty(len(places), np.int64)
        if number_places(places, np.array(params.shape, np.int64), numbers, False) >= 0:
            return None
        return np.asarray(params.reshape(-1).take(numbers).reshape(indices.shape[:-1]))

    def compute(params: Array, indices: Array) -> Array:
        check_gather_nd(params, indices)
        if good is not None:
            inside = good(indices, params.shape)
            shape = (*indices.shape[:-1], *params.shape[indices.shape[-1] :])
            allow(shape, params.dtype)
            out = np.full(shape, b"" if params.dtype.hasobject else 0, params.dtype)
            out[inside] = params[nd_index(indices[inside], params.shape, "param shape")]
            return out
        found = elements(params, indices)
        if found is not None:
            return found
        index = nd_index(indices, params.shape, "param shape")
        if not index:
            return np.broadcast_to(params, (*indices.shape[:-1], *params.shape)).copy()
        found = params[index]
        # one tuple that names an element gives that, of strings bytes: not an array
        return found if type(found) is np.ndarray else np.full((), found, params.dtype)

    return compute


def check_gather_nd(params: Array, indices: Array) -> None:
    """Whether the two shapes go together. Raises InvalidArgumentError."""
    if params.ndim < 1:
        raise invalid("params must be at least a vector")
    if indices.ndim < 1:
        raise invalid("indices must be at least a vector")
    if indices.shape[-1] > params.ndim:
        raise invalid(
            f"index innermost dimension length must be <= params rank; saw: {indices.shape[-1]} vs. {params.ndim}"
        )
    if math.prod(indices.shape[:-1]) and not params.size:
        raise invalid(f"Requested more than 0 entries, but params is empty.  Params shape: {shape_text(params.shape)}")


@kernel("DynamicPartition", T=ANY, views=True)
def build_dynamic_partition(node: KernelNode) -> Compute:
    count = int(node.attrs["num_partitions"])
    dtype, split = node.input_types[0].base_dtype, None
    if dtype in COMPILED | INDEX:
        from tenfold_kernels.cpu._compiled import rows

        split = rows.split_rows(dtype.as_numpy_dtype)

    def split_rows(data: Array, partitions: Array) -> list[Array] | None:
        """The parts, views of one array; None where some partition is not there."""
        assert split is not None
        row = data.shape[partitions.ndim :]
        number = partitions.size
        out, ends = np.empty((number, *row), data.dtype), np.empty(count, np.int32)
        width = data.size // number
        flat = contiguous(data).reshape(number, width), contiguous(partitions).reshape(-1)
        if split(*flat, ends, out.reshape(number, width)) >= 0:
            return None
        return [out[begin:end] for begin, end in itertools.pairwise((0, *ends.tolist()))]

    def compute(data: Array, partitions: Array) -> Any:
        check_partition_shape(data, partitions)
        if split is not None and data.size:
            found = split_rows(data, partitions)
            if found is not None:
                return found[0] if count == 1 else tuple(found)
        check_partitions(data, partitions, count)
        parts = tuple(data[partitions == i] for i in range(count))
        return parts[0] if count == 1 else parts

    return compute


def check_partition_shape(data: Array, partitions: Array) -> None:
    """Raises InvalidArgumentError unless there is a partition for each row of data."""
    if data.shape[: partitions.ndim] != partitions.shape:
        raise invalid(
            "data.shape must start with partitions.shape, got data.shape = "
            f"{shape_text(data.shape)}, partitions.shape = {shape_text(partitions.shape)}"
        )


def check_partitions(data: Array, partitions: Array, count: int) -> None:
    """As `check_partition_shape`, and all partitions are there. Reads no element of data."""
    check_partition_shape(data, partitions)
    flat = partitions.reshape(-1)
    bad = (flat < 0) | (flat >= count)
    if bad.any():
        at = int(bad.argmax())
        where = ",".join(str(int(i)) for i in np.unravel_index(at, partitions.shape)) if partitions.ndim else ""
        raise invalid(f"partitions{f'[{where}]' if where else ''} = {flat[at]} is not in [0, {count})")


@kernel("DynamicStitch", "ParallelDynamicStitch", T=ANY, views=True)
def build_dynamic_stitch(node: KernelNode) -> Compute:
    """merged[indices[m][i]] = data[m][i]; of several, the last one wins. Rows that no index names are zero."""
    count = len(node.input_types) // 2
    dtype, zero = output_type(node), b"" if node.output_types[0].name == "string" else 0
    put = None
    if node.output_types[0] in COMPILED | INDEX:
        from tenfold_kernels.cpu._compiled import rows

        put = rows.scatter_update(dtype, np.int32)

    def compute(*inputs: Array) -> Array:
        indices, data = inputs[:count], inputs[count:]
        size, row = stitched_rows(indices, data)
        allow((size, *row), dtype)
        if put is not None and size and math.prod(row):
            merged = np.zeros((size, *row), dtype)
            table = merged.reshape(size, -1)
            for index, values in zip(indices, data, strict=True):
                if index.size:
                    put(table, contiguous(index).reshape(-1), contiguous(values).reshape(index.size, -1))
            return merged
        merged = np.full((size, *row), zero, dtype=dtype)
        for index, values in zip(indices, data, strict=True):
            # bytes in an array of no dimensions would be taken for a sequence
            merged[index.reshape(-1)] = values.reshape(index.size, *row)
        return merged

    return compute


def stitched_rows(indices: Sequence[Array], data: Sequence[Array]) -> tuple[int, tuple[int, ...]]:
    """(how many rows a DynamicStitch gives, the shape of each). Raises InvalidArgumentError. Reads indices only."""
    row = data[0].shape[indices[0].ndim :]
    size = 0
    for i, (index, values) in enumerate(zip(indices, data, strict=True)):
        if values.shape[: index.ndim] != index.shape:
            raise invalid(
                f"data[{i}].shape = {shape_text(values.shape)} does not start with "
                f"indices[{i}].shape = {shape_text(index.shape)}"
            )
        if values.shape[index.ndim :] != row:
            raise invalid(
                "Need data[0].shape[indices[0].ndim:] = "
                f"data[{i}].shape[indices[{i}].ndim:], got data[0].shape = {shape_text(data[0].shape)}, "
                f"data[{i}].shape = {shape_text(values.shape)}, indices[0].shape = "
                f"{shape_text(indices[0].shape)}, indices[{i}].shape = {shape_text(index.shape)}"
            )
        if index.size:
            if index.min() < 0:
                raise invalid(f"indices[{i}] is out of range")
            size = max(size, int(index.max()) + 1)
    return size, row
