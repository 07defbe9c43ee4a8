"""Sparse tensors kept under numbers, so that they pass through queues, as dense elements; ragged tensors as sparse.

A map belongs to the task and outlives steps; taking a tensor out removes it. Follows sparse_tensors_map_ops.cc and
ragged_tensor_to_sparse_kernel.cc.
"""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel

#: Tensors that one map holds at most: those that are never taken out would fill the memory.
MAX_TENSORS = 1 << 20


class _Sparse(NamedTuple):
    indices: Array
    values: Array
    shape: Array


class SparseTensorsMap:
    """Sparse tensors by number. Thread-safe."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._tensors: dict[int, _Sparse] = {}

    def add(self, tensors: list[_Sparse]) -> list[int]:
        """Keeps them; their numbers. Raises ResourceExhaustedError when there are too many."""
        with self._lock:
            if len(self._tensors) + len(tensors) > MAX_TENSORS:
                count = len(self._tensors) + len(tensors)
                text = f"{self.name} would hold {count} sparse tensors; {MAX_TENSORS} may be."
                raise errors.resource_exhausted(text)
            numbers = [next(self._numbers) for _ in tensors]
            self._tensors.update(zip(numbers, tensors, strict=True))
            return numbers

    def take(self, numbers: list[int]) -> list[_Sparse]:
        """Those of these numbers, which leave the map. Raises InvalidArgumentError for one that is not there."""
        with self._lock:
            found = []
            for number in numbers:
                tensor = self._tensors.pop(number, None)
                if tensor is None:
                    raise invalid(f"Unable to find SparseTensor: {number} in map: {self.name}")
                found.append(tensor)
            return found


def _map(node: KernelNode) -> SparseTensorsMap:
    name = text_attr(node, "shared_name") or node.name
    return node.resources.lookup_or_create(
        text_attr(node, "container"), name, SparseTensorsMap, lambda: SparseTensorsMap(name)
    )


@kernel("AddSparseToTensorsMap")
def build_add(node: KernelNode) -> Compute:
    """(indices [N, R], values [N], shape [R]) → its number."""

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        check_sparse(indices, values, shape)
        return np.array(_map(node).add([_Sparse(indices.copy(), values.copy(), shape.copy())])[0], dtype=np.int64)

    return compute


@kernel("AddManySparseToTensorsMap")
def build_add_many(node: KernelNode) -> Compute:
    """A batch, whose first dimension counts its B members → numbers [B]. The indices are sorted by member."""

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        dims = check_sparse(indices, values, shape)
        if len(dims) < 2:
            raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(dims)}")
        if dims[0] > MAX_TENSORS:
            raise errors.resource_exhausted(f"A batch of {dims[0]} members; {MAX_TENSORS} may be.")
        ends = np.searchsorted(indices[:, 0], np.arange(dims[0] + 1))
        # all members without entries are one tensor, which nobody changes
        empty = _Sparse(indices[:0, 1:].copy(), values[:0].copy(), shape[1:].copy())
        tensors = [empty] * dims[0]
        for member in np.flatnonzero(np.diff(ends)).tolist():
            part = slice(ends[member], ends[member + 1])
            tensors[member] = _Sparse(indices[part, 1:].copy(), values[part].copy(), shape[1:].copy())
        return np.array(_map(node).add(tensors), dtype=np.int64)

    return compute


@kernel("TakeManySparseFromTensorsMap")
def build_take_many(node: KernelNode) -> Compute:
    """numbers [B] → one sparse tensor, the members along its first dimension; sizes are the largest of theirs."""
    dtype = node.attrs["dtype"]

    def compute(handles: Array) -> tuple[Array, Array, Array]:
        if handles.ndim != 1:
            raise invalid(f"sparse_handles should be a vector but received shape {shape_text(handles.shape)}")
        if not handles.size:
            raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
        tensors = _map(node).take(handles.tolist())
        rank = len(tensors[0].shape)
        for i, tensor in enumerate(tensors):
            held = dtypes.as_dtype(tensor.values.dtype)
            if held is not dtype:
                raise invalid(
                    f"Requested SparseTensor of type {dtype.op_name} but SparseTensor[{i}].values.dtype() == "
                    f"{held.op_name}"
                )
            if len(tensor.shape) != rank:
                raise invalid(
                    f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{i}] was: {rank + 1} but rank "
                    f"of SparseTensor[{i}] is: {len(tensor.shape) + 1}"
                )
        indices = [np.insert(tensor.indices, 0, i, axis=1) for i, tensor in enumerate(tensors)]
        sizes = np.max([tensor.shape for tensor in tensors], axis=0)
        values = np.concatenate([tensor.values for tensor in tensors])
        return np.concatenate(indices), values, np.array([len(tensors), *sizes], dtype=np.int64)

    return compute


@kernel("RaggedTensorToSparse", views=True)
def build_ragged_to_sparse(node: KernelNode) -> Compute:
    """(splits of each ragged dimension, outermost first; values) → indices, values and shape of a sparse tensor."""

    def compute(*inputs: Array) -> tuple[Any, ...]:
        splits, values = [split.reshape(-1).astype(np.int64) for split in inputs[:-1]], inputs[-1]
        _check_splits(splits, values)
        # From the innermost dimension out: of each value its place in its row, and its row, which has a place itself.
        rows = np.arange(len(values))
        columns: list[Array] = []
        for split in reversed(splits):
            row = np.searchsorted(split, rows, side="right") - 1
            columns.append(rows - split[row])
            rows = row
        columns.append(rows)
        inner = values.shape[1:]
        width = math.prod(inner)
        outer = np.repeat(np.stack(columns[::-1], axis=1), width, axis=0)
        places = np.indices(inner).reshape(len(inner), width).T
        indices = np.concatenate([outer, np.tile(places, (len(values), 1))], axis=1)
        longest = [int(np.diff(split).max(initial=0)) for split in splits]
        shape = [len(splits[0]) - 1, *longest, *inner]
        return indices.astype(np.int64), values.reshape(-1), np.array(shape, dtype=np.int64)

    return compute


def _check_splits(splits: list[Array], values: Array) -> None:
    if not values.ndim:
        raise invalid("Final value of ragged splits must match the length the corresponding ragged values.")
    for i, split in enumerate(splits):
        if not split.size:
            raise invalid("ragged splits may not be empty.")
        if split[0] != 0:
            raise invalid("First value of ragged splits must be 0.")
        steps = np.diff(split)
        if (steps < 0).any():
            at = int((steps < 0).argmax())
            raise invalid(f"Ragged splits should be non decreasing, but we got {split[at]} followed by {split[at + 1]}")
        length = splits[i + 1].size - 1 if i + 1 < len(splits) else len(values)
        if split[-1] != length:
            raise invalid("Final value of ragged splits must match the length the corresponding ragged values.")
