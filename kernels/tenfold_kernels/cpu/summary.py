"""Summaries: serialized Summary protos, ready for an event file. Outputs are scalars of bytes.

Histogram buckets are TensorFlow's: powers of 1.1 from 1e-12 to 1e20, and their negatives. Follows summary_op.cc,
summary_tensor_op.cc and histogram.cc.
"""

from __future__ import annotations

import contextlib
import functools

import numpy as np

from tenfold_core import tensor_util
from tenfold_kernels.arrays import Array, invalid, scalar_object, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL
from tenfold_protos import histogram_pb2, summary_pb2


def serialized(summary: summary_pb2.Summary) -> Array:
    """The scalar of bytes that a summary op gives."""
    return scalar_object(summary.SerializeToString())


def tag_of(value: Array) -> str:
    """The tag of a scalar input."""
    if value.ndim:
        raise invalid(f"tag must be scalar, got shape {shape_text(value.shape)}")
    return bytes(value[()]).decode("utf-8", "replace")


@kernel("ScalarSummary", T=REAL)
def build_scalar_summary(node: KernelNode) -> Compute:
    """One value a tag."""

    def compute(tags: Array, values: Array) -> Array:
        if tags.shape != values.shape and not (tags.size == 1 and values.size == 1):
            raise invalid(
                f"tags and values are not the same shape: {shape_text(tags.shape)} != {shape_text(values.shape)}"
            )
        summary = summary_pb2.Summary()
        for tag, value in zip(tags.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True):
            summary.value.add(tag=tag.decode("utf-8", "replace"), simple_value=float(value))
        return serialized(summary)

    return compute


def _bucket_limits() -> Array:
    positive = []
    limit = 1.0e-12
    while limit < 1.0e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(float(np.finfo(np.float64).max))
    return np.array([-v for v in reversed(positive)] + [0.0] + positive)


_LIMITS = _bucket_limits()
#: Bits of a float64 below its sign, its exponent and four bits of its mantissa, which are its prefix. Numbers of one
#: prefix differ by less than 1.1 times, so that at most one limit is between them.
_PREFIX_SHIFT = 48
#: Numbers that are looked at together: small enough to stay in a core's cache.
_BLOCK = 1 << 14


def _buckets_of_prefixes() -> Array:
    """Prefix → bucket of the smallest number that has it; those of infinities and NaNs mean nothing."""
    prefixes = np.arange(1 << 16, dtype=np.uint64) << np.uint64(_PREFIX_SHIFT)
    negative = prefixes >> np.uint64(63) == 1
    smallest = np.where(negative, prefixes | np.uint64((1 << _PREFIX_SHIFT) - 1), prefixes).view(np.float64)
    # Where denormals count as zero the table is the same: it is made once, by the first caller.
    smallest = np.where(negative, np.minimum(smallest, -np.finfo(np.float64).tiny), smallest)
    return np.searchsorted(_LIMITS, np.where(np.isfinite(smallest), smallest, 0.0), side="right").astype(np.int32)


class _Buckets:
    """Counts numbers by bucket, by a look at their bits in the place of a search for each."""

    def __init__(self) -> None:
        self._of_prefix = _buckets_of_prefixes()
        self._limits = np.append(_LIMITS, np.inf)

    def count(self, numbers: Array) -> Array:
        """How many of `numbers`, finite float64s [N], are in each bucket: int64 [buckets + 1]."""
        buckets = self._of_prefix[numbers.view(np.uint64) >> np.uint64(_PREFIX_SHIFT)]
        buckets += self._limits[buckets] <= numbers
        return np.bincount(buckets, minlength=self._limits.size)


@functools.cache
def _buckets() -> _Buckets:
    return _Buckets()


def histogram(values: Array) -> histogram_pb2.HistogramProto:
    """The histogram of finite values; runs of empty buckets are folded into one, as TensorFlow writes them."""
    flat = values.reshape(-1)
    proto = histogram_pb2.HistogramProto(
        min=float(flat.min()) if flat.size else float(np.finfo(np.float64).max),
        max=float(flat.max()) if flat.size else -float(np.finfo(np.float64).max),
        num=float(flat.size),
    )
    counts, buckets = np.zeros(_LIMITS.size + 1, np.int64), _buckets()
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(np.float64)
        counts += buckets.count(block)
        proto.sum += float(block.sum())
        proto.sum_squares += float(np.square(block).sum())
    at = 0
    while at < _LIMITS.size:
        end, count = _LIMITS[at], counts[at]
        at += 1
        if count <= 0:
            while at < _LIMITS.size and counts[at] <= 0:
                end = _LIMITS[at]
                at += 1
        proto.bucket_limit.append(float(end))
        proto.bucket.append(float(count))
    if not proto.bucket:
        proto.bucket_limit.append(float(np.finfo(np.float64).max))
        proto.bucket.append(0.0)
    return proto


@kernel("HistogramSummary", T=REAL)
def build_histogram_summary(node: KernelNode) -> Compute:
    def compute(tag: Array, values: Array) -> Array:
        name = tag_of(tag)
        if values.dtype.kind == "f" and values.size:
            # a NaN is the least and the greatest of all that it is among
            ends = values.min(), values.max()
            if np.isnan(ends).any():
                raise invalid(f"Nan in summary histogram for: {node.name}")
            if np.isinf(ends).any():
                raise invalid(f"Infinity in Histogram for: {node.name}")
        summary = summary_pb2.Summary()
        summary.value.add(tag=name, histo=histogram(values))
        return serialized(summary)

    return compute


@kernel("MergeSummary")
def build_merge_summary(node: KernelNode) -> Compute:
    """All values of all inputs. Raises InvalidArgumentError if two have one tag."""

    def compute(*inputs: Array) -> Array:
        merged = summary_pb2.Summary()
        tags: set[str] = set()
        for x in inputs:
            for item in x.reshape(-1).tolist():
                part = summary_pb2.Summary()
                try:
                    part.ParseFromString(item)
                except Exception:
                    raise invalid("Could not parse one of the summary inputs") from None
                for value in part.value:
                    if value.tag and value.tag in tags:
                        raise invalid(f"Duplicate tag {value.tag} found in summary inputs ")
                    tags.add(value.tag)
                    merged.value.add().CopyFrom(value)
        return serialized(merged)

    return compute


@kernel("TensorSummary", "TensorSummaryV2")
def build_tensor_summary(node: KernelNode) -> Compute:
    """A tensor under its tag, with metadata; the first version has the node's name instead."""

    def compute(tag: Array, tensor: Array, metadata: Array) -> Array:
        if metadata.ndim:
            raise invalid("serialized_summary_metadata must be scalar")
        summary = summary_pb2.Summary()
        value = summary.value.add(tag=tag_of(tag), tensor=tensor_util.tensor_to_proto(tensor))
        # What does not parse is left out, as TensorFlow does.
        with contextlib.suppress(Exception):
            value.metadata.ParseFromString(bytes(metadata[()]))
        value.metadata.SetInParent()
        return serialized(summary)

    def compute_first(tensor: Array) -> Array:
        summary = summary_pb2.Summary()
        summary.value.add(node_name=node.name, tensor=tensor_util.tensor_to_proto(tensor))
        return serialized(summary)

    return compute if node.op == "TensorSummaryV2" else compute_first
