"""Runtime values as TensorProto and back; the value of a DT_RESOURCE edge is a handle.

What tenfold_core.tensor_util does not know of: resource handles, tensor lists, and what a message can hold. Used by the
services' rpc/ and, for values that have no memory of a fixed form, by their exchange/step_frames.py.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from tenfold_core import dtypes, errors, tensor_util
from tenfold_core.memory_limits import allow, exhausted
from tenfold_kernels.arrays import invalid, objects
from tenfold_kernels.resources import tensor_lists, tensor_variants
from tenfold_kernels.resources.datasets import states
from tenfold_kernels.resources.state import ResourceHandle
from tenfold_protos.tensor_pb2 import TensorProto, VariantTensorDataProto

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from tenfold_core.dtypes import DType

    #: An array, or a ResourceHandle.
    Value: TypeAlias = Any

#: From so many bytes on, whether a tensor can be sent is looked at first: the copies for it take memory, too.
_LARGE, _MESSAGE = 16 << 20, (1 << 31) - 1


def encode(value: Value) -> TensorProto:
    """The TensorProto of a value. Raises as `encode_into`."""
    proto = TensorProto()
    encode_into(proto, value)
    return proto


#: Elements of arrays of objects that can be sent to another task.
_LEAVES = (
    *(bytes, str, ResourceHandle),
    *(tensor_lists.TensorList, states.IteratorState, tensor_variants.TensorVariant),
)


def encode_into(proto: TensorProto, value: Value) -> None:
    """Fills an empty TensorProto, which may be part of a larger message, with a value.

    Raises UnimplementedError for what cannot leave its task, ResourceExhaustedError for what no message holds.
    """
    array = value.as_array() if isinstance(value, ResourceHandle) else np.asarray(value)
    dtype = dtypes.as_dtype(array.dtype)
    if array.dtype != object:
        if array.nbytes > _LARGE:
            if array.nbytes > _MESSAGE:
                raise exhausted(array.shape, array.dtype, f"it takes {array.nbytes} bytes, and a message 2 GiB at most")
            allow(array.shape, array.dtype, 3)
    elif array.size:
        first = array.flat[0]
        if isinstance(first, ResourceHandle):
            dtype = dtypes.resource
        elif not isinstance(first, (bytes, str)):
            _encode_variants(proto, array)
            return
    tensor_util.fill(proto, array, dtype)


def _encode_variants(proto: TensorProto, array: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Fills in a DT_VARIANT tensor. Raises UnimplementedError for a variant that means something only in its task."""
    tensor_util.describe(proto, dtypes.variant, array.shape)
    for item in array.ravel().tolist():
        proto.variant_val.append(variant_to_proto(item))


def variant_to_proto(item: Any) -> VariantTensorDataProto:
    """The message of one variant. Raises UnimplementedError for one that means something only in its task."""
    if isinstance(item, tensor_lists.TensorList):
        return tensor_lists.to_proto(item, _encode_element)
    if isinstance(item, states.IteratorState):
        return states.to_proto(item.state)
    if isinstance(item, tensor_variants.TensorVariant):
        return VariantTensorDataProto(type_name=tensor_variants.TYPE_NAME, tensors=[encode(item.value)])
    raise errors.unimplemented(f"A variant of type {type(item).__name__} cannot leave its task.")


def that_stays(array: np.ndarray[Any, np.dtype[Any]]) -> Any:
    """The first element of an array of objects that means something in its task only; None if all may leave it. Looks
    at no more than the elements themselves, which are of one kind if they are strings."""
    if not array.size or isinstance(array.flat[0], (bytes, str)):
        return None
    return next((item for item in array.flat if not isinstance(item, _LEAVES)), None)


def _encode_element(array: np.ndarray[Any, np.dtype[Any]], dtype: DType) -> TensorProto:
    if dtype is not dtypes.variant:
        return tensor_util.tensor_to_proto(array, dtype)
    proto = TensorProto()
    _encode_variants(proto, array)
    return proto


def decode(proto: TensorProto, what: str, content: memoryview | None = None) -> Value:
    """The read-only value of a TensorProto; `what` names it in the error. Raises InvalidArgumentError.

    `content` is its tensor_content where that is not in it; the value is a view of that if it is aligned.
    """
    try:
        if proto.dtype not in dtypes.FIXED_SIZE:
            if content is not None:
                proto.tensor_content, content = bytes(content), None
            if proto.dtype == dtypes.resource.as_datatype_enum:
                return _objects(proto, "resource handles", proto.resource_handle_val, ResourceHandle.from_proto)
            if proto.dtype == dtypes.variant.as_datatype_enum:
                items = proto.variant_val or tensor_lists.split_content(proto.tensor_content)
                return _objects(proto, "variants", items, lambda item: _decode_variant(item, what))
        array = tensor_util.proto_to_tensor(proto, content)
    except errors.OpError as error:
        raise errors.from_code(error.code, f"{what}: {error.message}") from error
    except (ValueError, TypeError, OverflowError) as error:
        raise invalid(f"{what}: {error}") from error
    if not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return array


def _decode_variant(item: VariantTensorDataProto, what: str) -> Any:
    if item.type_name == states.TYPE_NAME:
        return states.IteratorState(states.from_proto(item))
    if item.type_name == tensor_variants.TYPE_NAME and len(item.tensors) == 1:
        return tensor_variants.TensorVariant(decode(item.tensors[0], what))
    if item.type_name != tensor_lists.TYPE_NAME:
        raise ValueError(f"a variant of type {item.type_name!r} is not known here")
    return tensor_lists.from_proto(item, lambda element: decode(element, what))


def variants_to_bytes(array: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """The messages of an array's variants, for a file. Raises UnimplementedError as `variant_to_proto`."""
    data = [variant_to_proto(item).SerializeToString() for item in array.reshape(-1).tolist()]
    return objects(data).reshape(array.shape)


def variants_from_bytes(array: np.ndarray[Any, np.dtype[Any]], what: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The variants of messages from a file, which `what` names. Raises DataLossError for others."""
    out = np.empty(array.size, object)
    for number, data in enumerate(array.reshape(-1).tolist()):
        proto = VariantTensorDataProto()
        try:
            proto.ParseFromString(data)
            out[number] = _decode_variant(proto, what)
        except (DecodeError, ValueError) as error:
            raise errors.data_loss(f"{what}: {error}") from None
    out = out.reshape(array.shape)
    out.flags.writeable = False
    return out


def _objects(
    proto: TensorProto, kind: str, items: Sequence[Any], made_of: Callable[[Any], Any]
) -> np.ndarray[Any, np.dtype[Any]]:
    """The read-only array of the proto's shape that holds what is made of `items`."""
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    if prod(shape) != len(items):
        raise ValueError(f"{len(items)} {kind} do not fill shape {list(shape)}")
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = made_of(item)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array
