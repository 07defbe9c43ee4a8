"""Runtime values as TensorProto and back; the value of a DT_RESOURCE edge is a handle. Used by all RPC files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.framework import dtypes, errors, tensor_util
from tenfold_kernels.state import ResourceHandle

if TYPE_CHECKING:
    from tenfold_protos.tensor_pb2 import TensorProto

    from ..interfaces import Value


def encode_into(proto: TensorProto, value: Value) -> None:
    """Fills an empty TensorProto, which is part of a larger message, with a value.

    Numbers are copied once; making a message of their own and copying that would copy them three times.
    """
    array = np.asarray(value)
    if array.dtype == object:
        proto.CopyFrom(encode(value))
        return
    proto.dtype = dtypes.as_dtype(array.dtype).as_datatype_enum  # type: ignore[assignment]
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add().size = size
    proto.tensor_content = array.tobytes()


def encode(value: Value) -> TensorProto:
    """The TensorProto of a value. Raises UnimplementedError for what cannot leave its task."""
    if isinstance(value, ResourceHandle):
        value = value.as_array()
    array = np.asarray(value)
    if array.dtype == object and array.size and isinstance(array.flat[0], ResourceHandle):
        return tensor_util.tensor_to_proto(array, dtypes.resource)
    return tensor_util.tensor_to_proto(array)


def decode(proto: TensorProto, what: str) -> Value:
    """The read-only value of a TensorProto; `what` names it in the error. Raises InvalidArgumentError."""
    try:
        if proto.dtype == dtypes.resource.as_datatype_enum:
            return _decode_handles(proto)
        array = tensor_util.proto_to_tensor(proto)
    except errors.OpError as error:
        raise errors.from_code(error.code, f"{what}: {error.message}") from error
    except (ValueError, TypeError, OverflowError) as error:
        raise errors.InvalidArgumentError(None, None, f"{what}: {error}") from error
    array.flags.writeable = False
    return array


def _decode_handles(proto: TensorProto) -> np.ndarray[Any, np.dtype[Any]]:
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    handles = [ResourceHandle.from_proto(handle) for handle in proto.resource_handle_val]
    if int(np.prod(shape, dtype=np.int64)) != len(handles):
        raise ValueError(f"{len(handles)} resource handles do not fill shape {list(shape)}")
    array = np.empty(len(handles), dtype=object)
    array[:] = handles
    array = array.reshape(shape)
    array.flags.writeable = False
    return array
