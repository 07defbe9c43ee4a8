"""Rows and elements picked by index: Gather, GatherV2, GatherNd, DynamicPartition, DynamicStitch.

An index out of range gives 0, as on TensorFlow's GPUs: the indices are in the GPU's memory, and nobody waits for them.
What is given to DynamicPartition and DynamicStitch as indices decides shapes, and is read in the host's memory.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import output_type, remembering, text_attr
from tenfold_kernels.cpu._nd_places import good_rows
from tenfold_kernels.cpu.array_gather import (
    check_gather_nd,
    check_partitions,
    gather_axis,
    gather_batch,
    scalar_axis,
    stitched_rows,
)
from tenfold_kernels.cuda import _picks
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import INDICES, MOVED, ON_HOST
from tenfold_kernels.cuda.array_move import join
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Also those of GatherV2 and GatherNd that are half as wide.
MANY_INDICES = INDICES | {dtypes.int16}

shared_kernel("Gather", "GatherV2", "GatherNd", host=(EVERYTHING,), Tparams=ON_HOST)
shared_kernel("DynamicPartition", "DynamicStitch", "ParallelDynamicStitch", host=(EVERYTHING,), T=ON_HOST)
# How many there are is known when they have been looked at: their inputs come to the host, as do those who say so.
shared_kernel("Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "ListDiff", host=(EVERYTHING,),
              T=MOVED | ON_HOST)  # fmt: skip


@kernel("Gather", device="GPU", Tparams=MOVED, Tindices=INDICES)
def build_gather(node: KernelNode) -> Compute:
    def compute(params: DeviceArray, indices: DeviceArray) -> DeviceArray:
        gather_axis(params, 0)  # type: ignore[arg-type] # its shape is all that it reads
        return _picks.gather(params, indices, 0)

    return compute


@kernel("GatherV2", device="GPU", host=("axis",), Tparams=MOVED, Tindices=MANY_INDICES)
def build_gather_v2(node: KernelNode) -> Compute:
    """Along any axis, with leading batch dimensions that params and indices share."""
    batch_attr = int(node.attrs.get("batch_dims", 0))
    axis_of = remembering(scalar_axis)

    def compute(params: DeviceArray, indices: DeviceArray, axis: Array) -> DeviceArray:
        where, batch = gather_axis(params, axis_of(axis)), 0  # type: ignore[arg-type] # as above
        if batch_attr:
            batch = gather_batch(params, indices, where, batch_attr)  # type: ignore[arg-type] # as above
        return _picks.gather(params, indices, where, batch)

    return compute


@kernel("GatherNd", device="GPU", Tparams=MOVED, Tindices=MANY_INDICES)
def build_gather_nd(node: KernelNode) -> Compute:
    check_policy(node)
    return pick_nd


def pick_nd(params: DeviceArray, indices: DeviceArray) -> DeviceArray:
    """params[indices[n…]] for index tuples [N…, D]. Raises InvalidArgumentError for shapes that do not go together."""
    check_gather_nd(params, indices)  # type: ignore[arg-type] # as above
    depth = indices.shape[-1]
    rows = params.reshape((math.prod(params.shape[:depth]), *params.shape[depth:]))
    return _picks.gather(rows, _picks.row_numbers(indices, params.shape[:depth]), 0)


@kernel("DynamicPartition", device="GPU", views=True, host=("partitions",), replays=False, T=MOVED)
def build_dynamic_partition(node: KernelNode) -> Compute:
    """One gather of all rows in the order of the partitions; each output is a piece of it."""
    count, runtime = int(node.attrs["num_partitions"]), runtime_of(node.device)

    def compute(data: DeviceArray, partitions: Array) -> Any:
        check_partitions(data, partitions, count)  # type: ignore[arg-type] # as above
        flat = partitions.reshape(-1)
        order = np.argsort(flat, kind="stable").astype(np.int32)
        rows = data.reshape((flat.size, *data.shape[partitions.ndim :]))
        grouped = _picks.gather(rows, runtime.to_device(order), 0)
        ends = np.cumsum(np.bincount(flat, minlength=count)).tolist()
        parts = tuple([grouped.rows(begin, end) for begin, end in itertools.pairwise((0, *ends))])
        return parts[0] if count == 1 else parts

    return compute


@kernel("DynamicStitch", "ParallelDynamicStitch", device="GPU", host=("indices",), replays=False, T=MOVED)
def build_dynamic_stitch(node: KernelNode) -> Compute:
    """merged[indices[m][i]] = data[m][i]; of several, the last one wins. Rows that no index names are zero."""
    count, runtime = len(node.input_types) // 2, runtime_of(node.device)
    dtype: np.dtype[Any] = np.dtype(output_type(node))

    def compute(*inputs: Any) -> DeviceArray:
        indices, data = inputs[:count], inputs[count:]
        size, row = stitched_rows(indices, data)
        allow((size, *row), dtype)
        flat = [each.reshape((index.size, *row)) for index, each in zip(indices, data, strict=True)]
        joined = join(flat, 0)
        sources = np.full(size, -1, np.int32)
        begin = 0
        for index in indices:
            sources[index.reshape(-1)] = np.arange(begin, begin + index.size)
            begin += index.size
        return _picks.gather(joined, runtime.to_device(sources), 0)

    return compute


def check_policy(node: KernelNode) -> None:
    """Raises InvalidArgumentError for a `bad_indices_policy` that there is not, UnimplementedError for ERROR: to know
    of a bad index the host would have to wait.
    """
    good_rows(node)
    if text_attr(node, "bad_indices_policy") == "ERROR":
        raise errors.unimplemented(
            f"{node.op} on a GPU does not support bad_indices_policy ERROR: bad indices are ignored there."
        )
