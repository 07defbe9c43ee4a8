"""Every combination of the values of several features, row by row. Outputs are fresh.

A bucket number is part of a trained model: hashes are those of sparse_cross_op.cc and fingerprint.h, bit for bit.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels import hashes
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel

_JOINT = b"_X_"
_MASK, _MOST = (1 << 64) - 1, (1 << 63) - 1


@kernel("SparseCross")
def build_sparse_cross(node: KernelNode) -> Compute:
    """Inputs: N indices, N values, N shapes of sparse ones, then dense ones; as `node.attrs` say."""
    count, hashed = int(node.attrs["N"]), bool(node.attrs["hashed_output"])
    buckets = int(node.attrs["num_buckets"]) or _MOST
    key = int(node.attrs["hash_key"]) & _MASK
    as_text = not hashed

    def compute(*inputs: Array) -> tuple[Array, Array, Array]:
        if len(inputs) < 3 * count:
            raise invalid(f"Expected indices, values and shapes of {count} sparse inputs, got {len(inputs)} tensors")
        sparse = list(zip(*(inputs[count * i : count * (i + 1)] for i in range(3)), strict=True))
        dense = inputs[3 * count :]
        batch = _batch(sparse, dense)
        columns = [_rows(indices, values, as_text) for indices, values, _ in sparse]
        columns += [_dense_rows(each, as_text) for each in dense]
        # a row has combinations only if every column has values in it
        rows = sorted(set.intersection(*(set(column) for column in columns))) if columns else []
        counts = [math.prod(len(column[row]) for column in columns) for row in rows]
        total = sum(counts)
        allow((total, 2), np.int64)
        if as_text:
            allow((sum(_text_size([column[row] for column in columns]) for row in rows),), np.uint8)
        places = np.empty((total, 2), np.int64)
        crossed = np.empty(total, np.int64 if hashed else object)
        at = 0
        for row, crosses in zip(rows, counts, strict=True):
            places[at : at + crosses, 0] = row
            places[at : at + crosses, 1] = np.arange(crosses)
            for picked in itertools.product(*(column[row] for column in columns)):
                crossed[at] = _hash(key, picked) % buckets if hashed else _JOINT.join(picked)
                at += 1
        return places, crossed, np.array([batch, max(counts, default=0)], np.int64)

    return compute


def _text_size(columns: list[list[bytes]]) -> int:
    """How many bytes all combinations of a row's values have."""
    count = math.prod(map(len, columns))
    joints = len(_JOINT) * (len(columns) - 1) * count
    return joints + sum(count // len(column) * sum(map(len, column)) for column in columns)


def _hash(key: int, values: tuple[int, ...]) -> int:
    for value in values:
        key = concatenated(key, value)
    return key


def concatenated(first: int, second: int) -> int:
    """FingerprintCat64: one fingerprint of two."""
    multiplier = 0xC6A4A7935BD1E995
    mixed = second * multiplier & _MASK
    result = first ^ multiplier ^ ((mixed ^ mixed >> 47) * multiplier & _MASK)
    result = result * multiplier & _MASK
    result = (result ^ result >> 47) * multiplier & _MASK
    return result ^ result >> 47


def _batch(sparse: list[tuple[Array, ...]], dense: tuple[Array, ...]) -> int:
    """How many rows all inputs have. Raises InvalidArgumentError."""
    sizes = []
    for indices, values, shape in sparse:
        dims = check_sparse(indices, values, shape)
        if len(dims) != 2:
            raise invalid(f"shape should imply a 2D tensor, but got shape {shape_text(dims)}")
        sizes.append(dims[0])
    for each in dense:
        if each.ndim != 2:
            raise invalid(f"Dense inputs should be a matrix but received shape {shape_text(each.shape)}")
        sizes.append(each.shape[0])
    for size in sizes:
        if size != sizes[0]:
            raise invalid(f"Expected batch size {sizes[0]}, got {size}")
    return sizes[0] if sizes else 0


def _features(values: Array, as_text: bool) -> list[Any]:
    """What is hashed or joined: a number as it is or as text, a string by its fingerprint or as it is."""
    found = values.tolist()
    if values.dtype == dtypes.string.as_numpy_dtype:
        return found if as_text else [hashes.fingerprint64(each) for each in found]
    return [str(each).encode() for each in found] if as_text else [each & _MASK for each in found]


def _rows(indices: Array, values: Array, as_text: bool) -> dict[int, list[Any]]:
    rows: dict[int, list[Any]] = {}
    for row, value in zip(indices[:, 0].tolist(), _features(values, as_text), strict=True):
        rows.setdefault(row, []).append(value)
    return rows


def _dense_rows(matrix: Array, as_text: bool) -> dict[int, list[Any]]:
    if not matrix.shape[1]:
        return {}
    found, width = _features(matrix.reshape(-1), as_text), matrix.shape[1]
    return {row: found[row * width : (row + 1) * width] for row in range(matrix.shape[0])}
