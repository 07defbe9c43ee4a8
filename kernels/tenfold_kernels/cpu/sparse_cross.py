"""Every combination of the values of several features, row by row. Outputs are fresh.

A bucket number is part of a trained model: hashes are those of sparse_cross_op.cc and fingerprint.h, bit for bit.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels import hashes
from tenfold_kernels.arrays import Array, contiguous, invalid, shape_text
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_JOINT = b"_X_"
#: Up to here floating-point numbers count exactly.
_WHOLE = 1 << 53
_MASK, _MOST = (1 << 64) - 1, (1 << 63) - 1


@kernel("SparseCross")
def build_sparse_cross(node: KernelNode) -> Compute:
    """Inputs: N indices, N values, N shapes of sparse ones, then dense ones; as `node.attrs` say."""
    count, hashed = int(node.attrs["N"]), bool(node.attrs["hashed_output"])
    buckets = int(node.attrs["num_buckets"]) or _MOST
    key = int(node.attrs["hash_key"]) & _MASK
    if hashed == (node.attrs["out_type"] == dtypes.string):
        raise invalid(f"SparseCross gives {'int64' if hashed else 'string'} with hashed_output={hashed}")
    in_order = _InOrder(count, key, buckets) if hashed else None

    def compute(*inputs: Array) -> tuple[Array, Array, Array]:
        if in_order is None:
            return _crossed(_columns(count, inputs, _as_text, _as_text), _JOINT)
        found = in_order(inputs)
        if found is not None:
            return found
        columns = _columns(count, inputs, _as_number, _as_number)
        return _crossed(columns, lambda picked: _hash(key, picked) % buckets)

    return compute


class _InOrder:
    """SparseCross with hashes where the rows of each sparse input are in their order, as nearly all are."""

    def __init__(self, count: int, key: int, buckets: int) -> None:
        from tenfold_kernels.cpu._compiled import sparse_places

        self._count, self._key, self._buckets = count, np.uint64(key), np.uint64(buckets)
        self._end_rows, self._cross = sparse_places.end_rows(), sparse_places.cross()

    def __call__(self, inputs: tuple[Array, ...]) -> tuple[Array, Array, Array] | None:
        """None where a row is out of order, or there are no columns. Raises InvalidArgumentError as the other way."""
        sparse, dense = _sparse_and_dense(self._count, inputs)
        batch = _batch(sparse, dense)
        width = len(sparse) + len(dense)
        if not width or not batch:
            return None
        ends = np.empty((width, batch), np.int64)
        begins = np.empty_like(ends)
        features: list[Array] = []
        at = 0
        for number, (indices, values, _) in enumerate(sparse):
            if self._end_rows(contiguous(indices), ends[number]) >= 0:
                return None
            ends[number] += at
            features.append(_numbers(values))
            at += len(values)
        for number, matrix in enumerate(dense, len(sparse)):
            ends[number] = np.arange(1, batch + 1) * matrix.shape[1] + at
            features.append(_numbers(matrix.reshape(-1)))
            at += matrix.size
        begins[:, 1:] = ends[:, :-1]
        begins[0, 0] = 0
        begins[1:, 0] = ends[:-1, -1]
        counts = (ends - begins).prod(axis=0, dtype=np.float64)
        if not counts.sum() < _WHOLE:
            return None
        total, most = int(counts.sum()), int(counts.max())
        allow((total, 2), np.int64)
        places, crossed = np.empty((total, 2), np.int64), np.empty(total, np.int64)
        self._cross(np.concatenate(features), self._key, self._buckets, begins, ends, places, crossed)
        return places, crossed, np.array([batch, most], np.int64)


def _numbers(values: Array) -> Array:
    """What is hashed of each value, as `_as_number` says."""
    if values.dtype.hasobject:
        return np.fromiter(map(hashes.fingerprint64, values.tolist()), np.uint64, len(values))
    return values.astype(np.int64, copy=False).view(np.uint64)


@kernel("SparseCrossV2")
def build_sparse_cross_v2(node: KernelNode) -> Compute:
    """As SparseCross without hashing; what stands between the values is the last input."""
    count = int(node.attrs["N"])

    def compute(*inputs: Array) -> tuple[Array, Array, Array]:
        *features, joint = inputs
        if joint.ndim:
            raise invalid(f"Input separator should be a scalar. Received: {shape_text(joint.shape)}")
        return _crossed(_columns(count, tuple(features), _as_text, _as_text), bytes(joint[()]))

    return compute


@kernel("SparseCrossHashed")
def build_sparse_cross_hashed(node: KernelNode) -> Compute:
    """As SparseCross with hashing, by a keyed hash if that is asked for; numbers of dense features are themselves."""
    count = int(node.attrs["N"])

    def compute(*inputs: Array) -> tuple[Array, Array, Array]:
        *features, num_buckets, strong_hash, salt = inputs
        if num_buckets.ndim or strong_hash.ndim or salt.shape != (2,):
            raise invalid("num_buckets and strong_hash should be scalars, and salt a vector of two numbers.")
        buckets = int(num_buckets) if int(num_buckets) > 0 else _MOST
        keys = tuple(int(each) & _MASK for each in salt)

        def hashed(text: bytes) -> int:
            return hashes.siphash((keys[0], keys[1]), text) if strong_hash else hashes.fingerprint64(text)

        def of_sparse(value: Any) -> int:
            # TensorFlow takes the first four bytes of a number.
            return hashed(value if isinstance(value, bytes) else (value & 0xFFFFFFFF).to_bytes(4, "little"))

        def of_dense(value: Any) -> int:
            return of_sparse(value) if strong_hash or isinstance(value, bytes) else value & _MASK

        columns = _columns(count, tuple(features), of_sparse, of_dense)
        return _crossed(columns, lambda picked: _hash(picked[0], picked[1:]) % buckets)

    return compute


class _Columns(NamedTuple):
    """The features' values by row, and how many rows there are."""

    columns: list[dict[int, list[Any]]]
    batch: int


def _columns(count: int, inputs: tuple[Array, ...], of_sparse: _Feature, of_dense: _Feature) -> _Columns:
    """Raises InvalidArgumentError where inputs do not fit each other."""
    sparse, dense = _sparse_and_dense(count, inputs)
    batch = _batch(sparse, dense)
    columns = [_rows(indices, values, of_sparse) for indices, values, _ in sparse]
    columns += [_dense_rows(each, of_dense) for each in dense]
    return _Columns(columns, batch)


def _sparse_and_dense(count: int, inputs: tuple[Array, ...]) -> tuple[list[tuple[Array, ...]], tuple[Array, ...]]:
    """(indices, values and shape of each sparse one, the dense ones). Raises InvalidArgumentError if one is missing."""
    if len(inputs) < 3 * count:
        raise invalid(f"Expected indices, values and shapes of {count} sparse inputs, got {len(inputs)} tensors")
    return list(zip(*(inputs[count * i : count * (i + 1)] for i in range(3)), strict=True)), inputs[3 * count :]


def _crossed(features: _Columns, cross: bytes | Callable[[tuple[Any, ...]], int]) -> tuple[Array, Array, Array]:
    """The combinations of each row: texts with `cross` between them, or the numbers that it gives."""
    columns = features.columns
    # a row has combinations only if every column has values in it
    rows = sorted(set.intersection(*(set(column) for column in columns))) if columns else []
    counts = [math.prod(len(column[row]) for column in columns) for row in rows]
    total = sum(counts)
    allow((total, 2), np.int64)
    is_text = isinstance(cross, bytes)
    if isinstance(cross, bytes):
        size = sum(_text_size([column[row] for column in columns], len(cross)) for row in rows)
        allow((size,), np.uint8)
    places = np.empty((total, 2), np.int64)
    crossed = np.empty(total, object if is_text else np.int64)
    at = 0
    for row, crosses in zip(rows, counts, strict=True):
        places[at : at + crosses, 0] = row
        places[at : at + crosses, 1] = np.arange(crosses)
        for picked in itertools.product(*(column[row] for column in columns)):
            crossed[at] = cross.join(picked) if isinstance(cross, bytes) else cross(picked)
            at += 1
    return places, crossed, np.array([features.batch, max(counts, default=0)], np.int64)


def _text_size(columns: list[list[bytes]], joint: int) -> int:
    """How many bytes all combinations of a row's values have."""
    count = math.prod(map(len, columns))
    joints = joint * (len(columns) - 1) * count
    return joints + sum(count // len(column) * sum(map(len, column)) for column in columns)


def _hash(key: int, values: tuple[int, ...]) -> int:
    for value in values:
        key = hashes.concatenated(key, value)
    return key


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


_Feature: TypeAlias = "Callable[[Any], Any]"


def _as_text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _as_number(value: Any) -> int:
    """What is hashed: a string by its fingerprint, a number as it is."""
    return hashes.fingerprint64(value) if isinstance(value, bytes) else value & _MASK


def _rows(indices: Array, values: Array, feature: _Feature) -> dict[int, list[Any]]:
    rows: dict[int, list[Any]] = {}
    for row, value in zip(indices[:, 0].tolist(), values.tolist(), strict=True):
        rows.setdefault(row, []).append(feature(value))
    return rows


def _dense_rows(matrix: Array, feature: _Feature) -> dict[int, list[Any]]:
    if not matrix.shape[1]:
        return {}
    found, width = [feature(value) for value in matrix.reshape(-1).tolist()], matrix.shape[1]
    return {row: found[row * width : (row + 1) * width] for row in range(matrix.shape[0])}
