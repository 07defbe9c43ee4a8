"""Sparse tensors as strings and back: three serialized TensorProtos each, indices, values and shape; or as variants.

So they pass through queues and files, where each element must be a dense tensor. Follows serialize_sparse_op.cc and
deserialize_sparse_string_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from tenfold_core import dtypes, tensor_util
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu.sparse import check_sizes, check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.handles import kept
from tenfold_kernels.resources.tensor_variants import TensorVariant, vector_of
from tenfold_protos import tensor_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType


@kernel("SerializeSparse")
def build_serialize_sparse(node: KernelNode) -> Compute:
    """indices [N, R], values [N], shape [R] → strings, or variants, [3]. No index is looked at, as in TensorFlow."""
    pack = _packer(node)

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        check_sizes(indices, values, shape)
        return pack(indices, values, shape)

    return compute


@kernel("SerializeManySparse")
def build_serialize_many_sparse(node: KernelNode) -> Compute:
    """A batch, whose first dimension counts its B members → strings, or variants, [B, 3]. The indices are sorted by
    member."""
    pack = _packer(node)

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        dims = check_sparse(indices, values, shape)
        if len(dims) < 2:
            raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(dims)}")
        allow((dims[0], 3), np.int64)
        out = np.empty((dims[0], 3), object)
        _check_order(indices)
        ends = np.searchsorted(indices[:, 0], np.arange(dims[0] + 1))
        for member in range(dims[0]):
            own = slice(ends[member], ends[member + 1])
            out[member] = pack(indices[own, 1:], values[own], shape[1:])
        return out

    return compute


def _check_order(indices: Array) -> None:
    """Raises InvalidArgumentError for the first index that does not come after the one before it."""
    moves = np.diff(indices, axis=0)
    steps = moves[np.arange(len(moves)), (moves != 0).argmax(axis=1)]  # in the first dimension that differs
    wrong = np.flatnonzero(steps <= 0)
    if wrong.size:
        at = int(wrong[0]) + 1
        if not steps[at - 1]:
            raise invalid(f"indices[{at}] = {shape_text(indices[at])} is repeated")
        raise invalid(
            f"indices[{at}] = {shape_text(indices[at])} is out of order. Many sparse ops require sorted indices.\n"
            "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"
        )


@kernel("DeserializeSparse", "DeserializeManySparse")
def build_deserialize_sparse(node: KernelNode) -> Compute:
    """strings, or variants, [..., 3] → one sparse tensor, with the leading dimensions before those of each member.

    The members have one rank; the sizes of the result are their largest.
    """
    dtype = node.output_types[1].base_dtype

    def compute(serialized: Array) -> tuple[Array, Array, Array]:
        if serialized.ndim < 1 or serialized.shape[-1] != 3:
            raise invalid(f"Serialized sparse should have 3 as the last dimension, got {shape_text(serialized.shape)}")
        batch = serialized.shape[:-1]
        if not serialized.size:
            raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
        indices: list[Array] = []
        values: list[Array] = []
        shapes: list[Array] = []
        for place in np.ndindex(batch):
            of_one, found, shape = _parsed(serialized[place], dtype, len(shapes))
            if shapes and len(shape) != len(shapes[0]):
                raise invalid(
                    "Inconsistent shape across SparseTensors: rank prior to SparseTensor"
                    f"[{len(shapes)}] was: {len(shapes[0])} but rank of SparseTensor[{len(shapes)}] is: {len(shape)}"
                )
            prefix = np.broadcast_to(np.array(place, np.int64), (len(of_one), len(batch)))
            indices.append(np.concatenate([prefix, of_one], axis=1))
            values.append(found)
            shapes.append(shape)
        sizes = np.concatenate([np.array(batch, np.int64), np.max(shapes, axis=0)])
        return np.concatenate(indices), np.concatenate(values), sizes

    return compute


def _packer(node: KernelNode) -> Callable[[Array, Array, Array], Array]:
    """Makes one vector of a sparse tensor's parts. Variants hold copies: the parts may be a step's own."""
    if node.output_types[0] is dtypes.variant:
        return lambda *parts: vector_of(*map(kept, parts))
    dtype = node.input_types[1].base_dtype
    return lambda indices, values, shape: _strings(indices, values, shape, dtype)


def _strings(indices: Array, values: Array, shape: Array, dtype: DType) -> Array:
    out = np.empty(3, object)
    for i, (part, kind) in enumerate(((indices, dtypes.int64), (values, dtype), (shape, dtypes.int64))):
        out[i] = tensor_util.tensor_to_proto(np.ascontiguousarray(part), kind).SerializeToString()
    return out


def _parsed(strings: Array, dtype: DType, number: int) -> tuple[Array, Array, Array]:
    """Raises InvalidArgumentError for what is no sparse tensor of `dtype`."""
    parts = []
    expectations = (("indices", dtypes.int64), ("values", dtype), ("shape", dtypes.int64))
    for text, (part, expected) in zip(strings.tolist(), expectations, strict=True):
        if isinstance(text, TensorVariant):
            if text.value.dtype != expected.as_numpy_dtype:
                raise invalid(f"Requested SparseTensor of type {dtype.op_name} but {part} is {text.value.dtype}")
            parts.append(text.value)
            continue
        proto = tensor_pb2.TensorProto()
        try:
            proto.ParseFromString(text)
            value = tensor_util.proto_to_tensor(proto)
        except (DecodeError, ValueError, TypeError):
            raise invalid("Could not parse serialized proto") from None
        if int(proto.dtype) != expected.as_datatype_enum:
            found = dtypes.as_dtype(int(proto.dtype)).op_name
            text = f"SparseTensor[{number}].{part}.dtype() == {found}"
            raise invalid(f"Requested SparseTensor of type {expected.op_name} but {text}")
        parts.append(value)
    check_sizes(*parts)
    indices, values, shape = parts
    return indices, values, shape
