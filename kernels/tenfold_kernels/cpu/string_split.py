"""Strings to pieces, and many strings to one: StringSplit, StringNGrams, ReduceJoin, UnsortedSegmentJoin.

Outputs are fresh. Follows string_split_op.cc, string_ngrams_op.cc, reduce_join_op.cc, unsorted_segment_join_op.cc.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid, objects, output_type, shape_text
from tenfold_kernels.cpu._strings import Room, bytes_attr, scalar_bytes
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

#: More n-grams than this would not fit an index of TensorFlow's.
_MAX_NGRAMS = (1 << 31) - 1


@kernel("StringSplit")
def build_string_split(node: KernelNode) -> Compute:
    """Each byte of the delimiter splits; an empty delimiter splits into single bytes. Gives a sparse matrix."""
    skip_empty = bool(node.attrs["skip_empty"])

    def split(value: bytes, delimiter: bytes) -> list[bytes]:
        if not value:
            return []
        if not delimiter:
            return [value[i : i + 1] for i in range(len(value))]
        parts = re.split(b"[" + re.escape(delimiter) + b"]", value)
        return [p for p in parts if p] if skip_empty else parts

    return lambda x, delimiter: _sparse(x, lambda v: split(v, scalar_bytes(delimiter, "delimiter")))


@kernel("StringSplitV2")
def build_string_split_v2(node: KernelNode) -> Compute:
    """As Python's str.split: the whole separator, or runs of white space where it is empty."""
    most = int(node.attrs["maxsplit"])

    def compute(x: Array, sep: Array) -> tuple[Array, Array, Array]:
        if sep.ndim:
            raise invalid(f"sep must be a scalar, got shape: {shape_text(sep.shape)}")
        separator = bytes(sep[()])

        def split(value: bytes) -> list[bytes]:
            if most == 0:
                return [value]
            parts = value.split(separator or None, most)
            if not separator and len(parts) == most:
                parts.append(b"")  # the rest that TensorFlow adds whenever it has split often enough
            return parts

        return _sparse(x, split)

    return compute


def _sparse(x: Array, split: Callable[[bytes], list[bytes]]) -> tuple[Array, Array, Array]:
    if x.ndim != 1:
        raise invalid(f"input must be a vector, got shape: {shape_text(x.shape)}")
    rows = [split(v) for v in x.tolist()]
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = objects([part for row in rows for part in row])
    shape = np.array([len(rows), max((len(row) for row in rows), default=0)], dtype=np.int64)
    return np.array(indices, dtype=np.int64).reshape(-1, 2), values, shape


@kernel("ReduceJoin")
def build_reduce_join(node: KernelNode) -> Compute:
    """Joins along the given axes, one after the other in their order; no axes at all joins nothing."""
    separator, keep = bytes_attr(node, "separator"), bool(node.attrs["keep_dims"])

    def compute(x: Array, indices: Array) -> Array:
        axes = [int(d) for d in indices.reshape(-1).tolist()]
        for d in axes:
            if not -x.ndim <= d < x.ndim:
                raise errors.out_of_range(f"Invalid reduction dimension {d} for input with {x.ndim} dimension(s)")
        axes = [d % x.ndim for d in axes]
        if len(set(axes)) != len(axes):
            raise invalid(f"Duplicate reduction dimension {next(d for d in axes if axes.count(d) > 1)}")
        rest = [d for d in range(x.ndim) if d not in axes]
        moved = x.transpose(rest + axes[::-1])
        lead = [x.shape[d] for d in rest]
        rows = moved.reshape(int(np.prod(lead)), -1) if x.size else np.empty((int(np.prod(lead)), 0), dtype=object)
        out, room = np.empty(len(rows), dtype=object), Room(node.op)
        for i, row in enumerate(rows.tolist()):
            room.take(sum(map(len, row)) + len(separator) * max(len(row) - 1, 0))
            out[i] = separator.join(row)
        shape = [1 if d in axes else x.shape[d] for d in range(x.ndim)] if keep else lead
        return as_array(out.reshape(shape))

    return compute


@kernel("UnsortedSegmentJoin")
def build_unsorted_segment_join(node: KernelNode) -> Compute:
    """inputs of shape segment_ids.shape + rest → [num_segments] + rest, the strings of a segment joined in order."""
    separator = bytes_attr(node, "separator")

    def compute(x: Array, segment_ids: Array, num_segments: Array) -> Array:
        if num_segments.ndim:
            raise invalid("Number of segments must be a scalar")
        count = int(num_segments)
        if count < 0:
            raise invalid(f"Number of segments must be non-negative but got {count}")
        if not segment_ids.ndim:
            raise invalid("Segment_id cannot have rank 0")
        if segment_ids.ndim > x.ndim:
            raise errors.out_of_range(
                f"Invalid segment_id rank {segment_ids.ndim} for input with {x.ndim} dimension(s)"
            )
        for i, (a, b) in enumerate(zip(segment_ids.shape, x.shape, strict=False)):
            if a != b:
                raise invalid(f"Segment dimension is {a} while input dimension is {x.ndim} in rank {i}")
        ids = segment_ids.reshape(-1).tolist()
        if any(not 0 <= i < count for i in ids):
            raise invalid("segment_ids are not allowed to exceed num_segments or to have negative values.")
        rest = x.shape[segment_ids.ndim :]
        rows = x.reshape(len(ids), math.prod(rest))
        allow((count, rows.shape[1]), object)
        out, room = np.full((count, rows.shape[1]), b"", dtype=object), Room(node.op)
        # joined once for each segment: piece by piece takes the square of their number
        pieces: defaultdict[int, list[list[bytes]]] = defaultdict(list)
        for row, segment in zip(rows.tolist(), ids, strict=True):
            room.take(sum(map(len, row)) + len(separator) * len(row))
            pieces[segment].append(row)
        for segment, together in pieces.items():
            for j, column in enumerate(zip(*together, strict=True)):
                # a separator stands behind what there is, which is nothing while all before are empty
                first = next((i for i, value in enumerate(column) if value), len(column))
                out[segment, j] = separator.join(column[first:])
        return out.reshape(count, *rest)

    return compute


@kernel("StringNGrams")
def build_string_ngrams(node: KernelNode) -> Compute:
    """Rows of tokens (data, data_splits) → rows of n-grams, for each width in turn, padded at both ends."""
    separator = bytes_attr(node, "separator")
    left, right = bytes_attr(node, "left_pad"), bytes_attr(node, "right_pad")
    widths = [int(w) for w in node.attrs["ngram_widths"]]
    pad, preserve = int(node.attrs["pad_width"]), bool(node.attrs["preserve_short_sequences"])
    splits_type = output_type(node, 1)

    def grams(tokens: list[bytes], width: int) -> list[bytes]:
        padding = width - 1 if pad < 0 else min(pad, width - 1)
        count = max(0, len(tokens) + 2 * padding - width + 1)
        if count > _MAX_NGRAMS // 2:
            raise invalid(f"Pad width could lead to integer overflow, got pad_width = {padding}")
        allow((count, width), np.uint8)
        allow((2, padding), object)
        padded = [left] * padding + tokens + [right] * padding
        return [separator.join(padded[i : i + width]) for i in range(count)]

    def compute(data: Array, splits: Array) -> tuple[Array, Array]:
        if any(width <= 0 for width in widths):
            raise invalid("ngram_widths must contain positive values")
        tokens, ends = data.reshape(-1).tolist(), splits.reshape(-1).tolist()
        _check_splits(ends, len(tokens))
        out: list[bytes] = []
        out_ends = [0] * len(ends)
        for i in range(1, len(ends)):
            row = tokens[ends[i - 1] : ends[i]]
            made = [gram for width in widths for gram in grams(row, width)] if tokens else []
            if preserve and row and not made:
                if pad < 0:
                    raise invalid(
                        "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not "
                        f"provided, got {pad}"
                    )
                # Padding is never wider than the n-gram allows: this one holds everything.
                allow((2, pad, max(1, len(left), len(right))), object)
                made = [separator.join([left] * pad + row + [right] * pad)]
            out += made
            out_ends[i] = len(out)
        return objects(out), np.array(out_ends, splits_type)

    return compute


def _check_splits(ends: list[int], size: int) -> None:
    if not ends:
        return
    if ends[0] != 0:
        raise invalid(f"First split value must be 0, got {ends[0]}")
    last = 0
    for end in ends[1:]:
        if not last <= end <= size:
            raise invalid(f"Invalid split value {end}, must be in [{last}, {size}]")
        last = end
    if last != size:
        raise invalid(f"Last split value must be data size. Expected {size}, got {last}")
