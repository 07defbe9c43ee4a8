"""Distances of sequences and fingerprints of tensors: EditDistance, Fingerprint. Outputs are fresh.

Follows edit_distance_op.cc and fingerprint_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import Array, as_shape, invalid, shape_text
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.hashes import fingerprint64
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import ANY


@kernel("EditDistance")
def build_edit_distance(node: KernelNode) -> Compute:
    """Levenshtein distances of the sequences along the last dimension of two sparse tensors."""
    normalize = bool(node.attrs.get("normalize", True))

    def sequences(indices: Array, values: Array, depth: int) -> dict[tuple[int, ...], list[Any]]:
        found: dict[tuple[int, ...], list[Any]] = {}
        for row, value in zip(indices.tolist(), values.tolist(), strict=True):
            found.setdefault(tuple(row[: depth - 1]), []).append(value)
        return found

    def compute(hi: Array, hv: Array, hs: Array, ti: Array, tv: Array, ts: Array) -> Array:
        if hs.shape != ts.shape or hs.ndim != 1 or hs.size < 2:
            raise invalid("Expected hypothesis.shape[0] == truth.shape[0], and at least two dimensions")
        check_sparse(hi, hv, np.maximum(hs, ts))
        check_sparse(ti, tv, np.maximum(hs, ts))
        dims = as_shape(np.maximum(hs, ts)[:-1], dtype=np.float32)
        out = np.zeros(dims, np.float32)
        guesses, truths = sequences(hi, hv, hs.size), sequences(ti, tv, ts.size)
        for place in {*guesses, *truths}:
            guess, truth = guesses.get(place, []), truths.get(place, [])
            distance = float(_distance(guess, truth))
            if normalize:
                distance = distance / len(truth) if truth else (np.inf if guess else 0.0)
            out[place] = distance
        return out

    return compute


def _distance(a: list[Any], b: list[Any]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@kernel("Fingerprint", T=ANY - {dtypes.resource, dtypes.variant})
def build_fingerprint(node: KernelNode) -> Compute:
    """data [N, ...] → uint8 [N, 8]: FarmHash of the bytes of each row; of several strings, of their hashes' bytes."""

    def compute(data: Array, method: Array) -> Array:
        if method.ndim:
            raise invalid(f"`method` should be a scalar string: {shape_text(method.shape)}")
        if method.item() != b"farmhash64":
            raise invalid(f"Unsupported fingerprint method: {method.item().decode(errors='replace')}")
        if not data.ndim:
            raise invalid(f"`data` should have at least one dimension: {shape_text(data.shape)}")
        rows = data.reshape(len(data), -1) if data.size else data.reshape(len(data), 0)
        if data.dtype.hasobject and rows.shape[1] != 1:
            parts = [b"".join(_farmhash(item) for item in row) for row in rows.tolist()]
        elif data.dtype.hasobject:
            parts = rows[:, 0].tolist()
        else:
            parts = [row.tobytes() for row in rows]
        return np.frombuffer(b"".join(map(_farmhash, parts)), np.uint8).reshape(len(data), 8)

    return compute


def _farmhash(data: bytes) -> bytes:
    return fingerprint64(data).to_bytes(8, "little")
