"""Runtime values as TensorProto and back; the value of a DT_RESOURCE edge is a handle. Used by all RPC files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors, tensor_util
from tenfold_core.memory_limits import allow, exhausted
from tenfold_kernels.resources import tensor_lists
from tenfold_kernels.resources.state import ResourceHandle
from tenfold_protos.tensor_pb2 import TensorProto

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType

    from ..interfaces import Value

#: Types whose contents are more than elements side by side.
_NO_NUMBERS = frozenset(int(dtype.as_datatype_enum) for dtype in (dtypes.string, dtypes.resource, dtypes.variant))
#: From so many bytes on, whether a tensor can be sent is looked at first: the copies for it take memory, too.
_LARGE, _MESSAGE = 16 << 20, (1 << 31) - 1


def encode_into(proto: TensorProto, value: Value) -> None:
    """Fills an empty TensorProto, which is part of a larger message, with a value.

    Numbers are copied once; making a message of their own and copying that would copy them three times.
    """
    array = np.asarray(value)
    if array.dtype == object:
        proto.CopyFrom(encode(value))
        return
    if array.nbytes > _LARGE:
        if array.nbytes > _MESSAGE:
            raise exhausted(array.shape, array.dtype, f"it takes {array.nbytes} bytes, and a message 2 GiB at most")
        allow(array.shape, array.dtype, 3)
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
    if array.dtype == object and array.size:
        first = array.flat[0]
        if isinstance(first, ResourceHandle):
            return tensor_util.tensor_to_proto(array, dtypes.resource)
        if not isinstance(first, (bytes, str)):
            return _encode_variants(array)
    return tensor_util.tensor_to_proto(array)


def _encode_variants(array: np.ndarray[Any, np.dtype[Any]]) -> TensorProto:
    """A DT_VARIANT tensor. Raises UnimplementedError for a variant that only means something where it was made."""
    proto = TensorProto(dtype=dtypes.variant.as_datatype_enum)  # type: ignore[arg-type]
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add().size = size
    for item in array.ravel().tolist():
        if not isinstance(item, tensor_lists.TensorList):
            raise errors.UnimplementedError(
                None, None, f"A variant of type {type(item).__name__} cannot leave its task."
            )
        proto.variant_val.append(tensor_lists.to_proto(item, _encode_element))
    return proto


def _encode_element(array: np.ndarray[Any, np.dtype[Any]], dtype: DType) -> TensorProto:
    if dtype is dtypes.variant:
        return _encode_variants(array)
    return tensor_util.tensor_to_proto(array, dtype)


def decode(proto: TensorProto, what: str, content: memoryview | None = None) -> Value:
    """The read-only value of a TensorProto; `what` names it in the error. Raises InvalidArgumentError.

    `content` is its tensor_content where that is not in it; the value is a view of that if it is aligned.
    """
    try:
        if content is not None and proto.dtype in _NO_NUMBERS:
            proto.tensor_content, content = bytes(content), None
        if proto.dtype == dtypes.resource.as_datatype_enum:
            return _decode_handles(proto)
        if proto.dtype == dtypes.variant.as_datatype_enum:
            return _decode_variants(proto, what)
        array = tensor_util.proto_to_tensor(proto, content)
    except errors.OpError as error:
        raise errors.from_code(error.code, f"{what}: {error.message}") from error
    except (ValueError, TypeError, OverflowError) as error:
        raise errors.InvalidArgumentError(None, None, f"{what}: {error}") from error
    if not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return array


def _decode_variants(proto: TensorProto, what: str) -> np.ndarray[Any, np.dtype[Any]]:
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    items = proto.variant_val or tensor_lists.split_content(proto.tensor_content)
    if int(np.prod(shape, dtype=np.int64)) != len(items):
        raise ValueError(f"{len(items)} variants do not fill shape {list(shape)}")
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        if item.type_name != tensor_lists.TYPE_NAME:
            raise ValueError(f"a variant of type {item.type_name!r} is not known here")
        array[index] = tensor_lists.from_proto(item, lambda element: decode(element, what))
    array = array.reshape(shape)
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
