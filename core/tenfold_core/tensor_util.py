"""Tensors on the wire: NumPy arrays to TensorProto and back.

`tensor_to_proto` and `proto_to_tensor` are the runtime's fast pair (raw little-endian bytes in tensor_content);
`make_tensor_proto` and `make_ndarray` are the client's, with type inference and every encoding that TensorFlow uses:
the typed `*_val` fields, a last value that repeats, strings in string_val or, for feeds, as lengths and bytes in
tensor_content. Follows tensor_util.py and tensor.cc.
"""

from __future__ import annotations

import math
import sys
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.memory_limits import allow
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos import tensor_pb2

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType

TensorProto = tensor_pb2.TensorProto

#: A proto may promise a shape that it does not fill (a repeated last value); no tensor of ours is larger than this.
MAX_TENSOR_BYTES = 1 << 40
#: Constants of that many bytes are held as one element where they are one element repeated.
HELD_ONCE_BYTES = 1 << 16

if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("tensor_content is little-endian, and so must the machine be")


def describe(proto: TensorProto, dtype: DType, shape: tuple[int, ...]) -> None:
    """Gives an empty TensorProto its type and shape."""
    proto.dtype = dtype.as_datatype_enum  # type: ignore[assignment]
    proto.tensor_shape.SetInParent()
    for size in shape:
        proto.tensor_shape.dim.add().size = size


def fill(proto: TensorProto, array: np.ndarray, dtype: DType) -> None:
    """Gives an empty TensorProto the array: numbers as tensor_content, strings as string_val, resources as handles.

    Copies once, also where the proto is part of a larger message.
    """
    describe(proto, dtype, array.shape)
    if dtype is dtypes.string:
        proto.string_val.extend(_as_bytes(item) for item in array.ravel().tolist())
    elif dtype is dtypes.resource:
        proto.resource_handle_val.extend(item.to_proto() for item in array.ravel().tolist())
    elif dtype is dtypes.variant:
        items = array.ravel().tolist()
        if not all(isinstance(item, tensor_pb2.VariantTensorDataProto) for item in items):
            raise errors.UnimplementedError(None, None, "a variant tensor cannot leave its task")
        proto.variant_val.extend(items)
    else:
        proto.tensor_content = array.tobytes()


def tensor_to_proto(value: Any, dtype: DType | None = None) -> TensorProto:
    """The TensorProto of a runtime value, as `fill` makes it.

    `value` is an ndarray; `dtype` is needed only for object arrays that hold no strings.
    """
    array = np.asarray(value)
    proto = TensorProto()
    fill(proto, array, dtypes.as_dtype(array.dtype) if dtype is None else dtype.base_dtype)
    return proto


def proto_to_tensor(
    proto: TensorProto, content: bytes | memoryview | None = None, held_once: bool = False
) -> np.ndarray:
    """The array of a TensorProto; one that came as tensor_content is a view of the message's bytes.

    `content` stands for tensor_content where that is kept elsewhere. With `held_once`, a large number repeated is a
    read-only array that holds it once: its strides are 0, so code that takes contiguous arrays cannot take it.

    Raises InvalidArgumentError saying what is wrong: unknown type, absurd shape, wrong number of elements.
    """
    plain = dtypes.FIXED_SIZE.get(proto.dtype)
    if plain is not None:
        if content is None:
            content = proto.tensor_content  # each look at the field is a copy of it
        if content:
            extents = proto.tensor_shape
            shape = tuple([extent.size for extent in extents.dim])
            fits = len(content) == prod(shape) * plain.itemsize and min(shape, default=1) > 0
            if fits and len(shape) <= 32 and not extents.unknown_rank:
                return np.frombuffer(content, plain).reshape(shape)
    dtype = _dtype_of(proto)
    shape = _shape_of(proto, dtype)
    count = prod(shape)
    if plain is not None:
        if not content:
            return _decode_values(proto, dtype, plain, shape, count, held_once)
        raise errors.InvalidArgumentError(
            None,
            None,
            f"tensor_content has {len(content)} bytes; shape {list(shape)} of {dtype.op_name} needs "
            f"{count * plain.itemsize}",
        )
    if dtype is dtypes.string:
        return _decode_strings(proto, shape, count)
    if dtype is dtypes.variant and len(proto.variant_val) == count:
        allow(shape, object)
        variants = np.empty(count, object)
        variants[:] = list(proto.variant_val)  # what they mean is their maker's business
        return variants.reshape(shape)
    raise errors.InvalidArgumentError(None, None, f"a {dtype.op_name} tensor cannot be made from the wire")


def held_bytes(value: Any) -> int:
    """Bytes that a constant takes in memory, about: an element that is repeated is there once. 0 for no array."""
    return getattr(value, "nbytes", 0) if any(getattr(value, "strides", ())) else 0


def _dtype_of(proto: TensorProto) -> DType:
    try:
        dtype = dtypes.as_dtype(int(proto.dtype))
    except TypeError:
        raise errors.InvalidArgumentError(None, None, f"TensorProto has unknown type number {proto.dtype}") from None
    if proto.dtype not in dtypes.FIXED_SIZE and dtype not in (dtypes.string, dtypes.resource, dtypes.variant):
        raise errors.InvalidArgumentError(None, None, f"a tensor of type {dtype.op_name} is not handled here")
    return dtype


def _shape_of(proto: TensorProto, dtype: DType) -> tuple[int, ...]:
    if proto.tensor_shape.unknown_rank:
        raise errors.InvalidArgumentError(None, None, "TensorProto has a shape of unknown rank")
    shape = tuple(d.size for d in proto.tensor_shape.dim)
    total = dtype.size
    for size in shape:
        if size < 0:
            raise errors.InvalidArgumentError(None, None, f"TensorProto has a negative size in shape {list(shape)}")
        total *= size
    if len(shape) > 32 or total > MAX_TENSOR_BYTES:
        raise errors.InvalidArgumentError(None, None, f"TensorProto of shape {list(shape)} is too large")
    return shape


def _decode_values(
    proto: TensorProto, dtype: DType, np_dtype: Any, shape: tuple[int, ...], count: int, held_once: bool
) -> np.ndarray:
    if not count:
        allow(shape, np_dtype)
        return np.empty(shape, np_dtype)  # TensorFlow's client sends a value with an empty shape, too
    values = getattr(proto, dtype.proto_field)
    flat: np.ndarray
    if dtype.proto_field == "half_val":
        flat = np.array(values, np.int64).astype(np.uint16).view(np_dtype)
    elif dtype.proto_field == "float8_val":
        flat = np.frombuffer(values, np_dtype)
    elif dtype.is_carried:
        bits = np.dtype(np_dtype[0])
        flat = np.array(values, np.int64).astype(bits).view(np_dtype)
    elif dtype.is_complex:
        pairs = np.array(values, np.float32 if dtype is dtypes.complex64 else np.float64)
        if len(pairs) % 2:
            raise errors.InvalidArgumentError(None, None, "a complex TensorProto holds an odd number of values")
        flat = pairs.view(np_dtype)
    else:
        # of what is too wide for its type the lowest bits count, as in TensorFlow
        wide = np.int64 if dtype.proto_field == "int_val" else np_dtype
        flat = np.array(values, wide).astype(np_dtype, copy=False)
    if len(flat) == count:
        return flat.reshape(shape)
    if len(flat) > count:
        raise errors.InvalidArgumentError(
            None, None, f"TensorProto of shape {list(shape)} holds {len(flat)} values, {count} at most fit"
        )
    # A short list means that its last value repeats; an empty one means zeros.
    allow(shape, np_dtype)
    if held_once and len(flat) < 2 and count * np.dtype(np_dtype).itemsize >= HELD_ONCE_BYTES:
        return np.broadcast_to(flat if len(flat) else np.zeros(1, np_dtype), shape)
    result = np.empty(count, np_dtype)
    result[: len(flat)] = flat
    result[len(flat) :] = flat[-1] if len(flat) else 0
    return result.reshape(shape)


def _decode_strings(proto: TensorProto, shape: tuple[int, ...], count: int) -> np.ndarray:
    if count > MAX_TENSOR_BYTES // 64:
        raise errors.InvalidArgumentError(None, None, f"TensorProto of {count} strings is beyond any memory")
    allow(shape, object)
    if not count:
        return np.empty(shape, object)
    items = _split_strings(proto.tensor_content, count) if proto.tensor_content else list(proto.string_val)
    if len(items) > count:
        raise errors.InvalidArgumentError(
            None, None, f"TensorProto of shape {list(shape)} holds {len(items)} strings, {count} at most fit"
        )
    result = np.empty(count, object)
    result[: len(items)] = items
    result[len(items) :] = items[-1] if items else b""
    return result.reshape(shape)


def _split_strings(content: bytes, count: int) -> list[bytes]:
    """TensorFlow's encoding of a string feed: `count` varint lengths, then the bytes one after the other."""
    lengths, at = [], 0
    if count > len(content):
        raise errors.InvalidArgumentError(None, None, f"tensor_content ends within the {count} lengths")
    for _ in range(count):
        value = shift = 0
        while True:
            if at >= len(content) or shift > 63:
                raise errors.InvalidArgumentError(None, None, f"tensor_content ends within the {count} lengths")
            byte = content[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(value)
    if at + sum(lengths) != len(content):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{count} strings need {at + sum(lengths)} bytes of tensor_content, not {len(content)}",
        )
    items = []
    for length in lengths:
        items.append(content[at : at + length])
        at += length
    return items


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview | np.bytes_):
        return bytes(value)
    raise TypeError(f"Expected binary or unicode string, got {value!r} of type {type(value).__name__}")


def as_array(values: Any, dtype: Any = None) -> np.ndarray:
    """The array that `tf.constant` would make: floats become float32, ints int32, strings object arrays of bytes.

    What offers an array itself, as a column of pandas does, keeps its type as an array would. Raises TypeError or
    ValueError naming the value that does not fit the type.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    if values is None:
        raise ValueError("None values not supported.")
    if not isinstance(values, np.ndarray | np.generic) and callable(getattr(values, "__array__", None)):
        values = np.asarray(values)
    array = values if isinstance(values, np.ndarray | np.generic) else _from_python(values)
    array = np.asarray(array)
    if array.dtype.kind in "SUO":
        if wanted not in (None, dtypes.string):
            raise TypeError(f"Expected {wanted.name}, got {values!r} of type '{type(values).__name__}' instead.")
        flat = np.empty(array.size, object)
        flat[:] = [_as_bytes(item) for item in array.ravel().tolist()]
        return flat.reshape(array.shape)
    natural = isinstance(values, np.ndarray | np.generic)
    if wanted is dtypes.string and not array.size and not natural:
        return np.empty(array.shape, object)
    if wanted is None:
        if natural or array.dtype.kind in "bc":
            wanted = dtypes.as_dtype(array.dtype)
        elif array.dtype.kind == "f":
            wanted = dtypes.float32
        else:
            wanted = dtypes.int32
            if array.size and (array.max() > dtypes.int32.max or array.min() < dtypes.int32.min):
                wanted = dtypes.int64
    if wanted is dtypes.string:
        raise TypeError(f"Expected string, got {values!r} of type '{type(values).__name__}' instead.")
    if not natural and array.size:
        _check_python_kind(values, array, wanted)
    numbers = natural and array.dtype.kind in "iu"
    if wanted.is_carried and array.dtype != wanted.as_numpy_dtype and not numbers:
        raise TypeError(f"{wanted.name} values must come as an array of {wanted.as_numpy_dtype}, not {array.dtype}.")
    return array.astype(wanted.as_numpy_dtype, copy=False)


def _from_python(values: Any) -> np.ndarray:
    try:
        array = np.array(values)
    except ValueError as error:
        raise ValueError(f"Argument must be a dense tensor: {values!r} is ragged ({error})") from None
    if array.size == 0 and array.dtype == np.float64 and not isinstance(values, np.ndarray):
        return array.astype(np.float32)
    if array.dtype.kind == "S" or array.dtype.kind == "U":
        # NumPy strips trailing zero bytes from fixed-width strings; objects keep them.
        return np.array(values, object)
    return array


def _check_python_kind(values: Any, array: np.ndarray, wanted: DType) -> None:
    kind = array.dtype.kind
    fits = (
        (kind == "b" and wanted.is_bool)
        or (kind in "iu" and (wanted.is_integer or wanted.is_floating or wanted.is_complex))
        or (kind == "f" and (wanted.is_floating or wanted.is_complex))
        or (kind == "c" and wanted.is_complex)
    )
    if not fits:
        raise TypeError(f"Expected {wanted.name}, got {values!r} of type '{type(values).__name__}' instead.")
    if wanted.is_integer and kind in "iu" and (array.max() > wanted.max or array.min() < wanted.min):
        raise ValueError(f"{values!r} does not fit {wanted.name}, which holds {wanted.min} to {wanted.max}")


def make_tensor_proto(values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False) -> TensorProto:
    """The TensorProto of a Python value, list or array, as `tf.constant` makes it.

    With `shape`, a single value fills it, a shorter list repeats its last value, unless `verify_shape` asks for the
    very shape. Raises TypeError for a value of the wrong type and ValueError for one of the wrong shape.
    """
    if isinstance(values, TensorProto):
        return values
    array = as_array(values, dtype)
    if shape is not None:
        wanted = tuple(int(d) for d in TensorShape(shape).as_list())  # type: ignore[arg-type]
        if verify_shape and wanted != array.shape:
            raise TypeError(f"Expected Tensor's shape: {wanted}, got {array.shape}.")
        count = math.prod(wanted)
        if not count and not isinstance(values, np.ndarray):
            # A Python value for a tensor without elements only says the type.
            return tensor_to_proto(np.empty(wanted, array.dtype))
        if array.size > count:
            raise ValueError(f"Too many elements provided. Needed at most {count}, but received {array.size}")
        if array.size < count:
            # The reader repeats the last value.
            return _proto_of_values(array, wanted)
        array = array.reshape(wanted)
    if array.size <= 1 or dtypes.as_dtype(array.dtype) in _ALWAYS_VALUES:
        return _proto_of_values(array, array.shape)
    return tensor_to_proto(array)


#: The types, besides strings, that TensorFlow's clients of all releases write value by value, however many they are.
_ALWAYS_VALUES = frozenset((dtypes.bool_, dtypes.complex64, dtypes.complex128))


def _proto_of_values(array: np.ndarray, shape: tuple[int, ...]) -> TensorProto:
    """The TensorProto of that shape with the elements of `array` in the field of their type."""
    dtype = dtypes.as_dtype(array.dtype)
    flat = np.ascontiguousarray(array).reshape(-1)
    if dtype.proto_field == "float8_val":
        whole = np.zeros(prod(shape), flat.dtype)
        whole[: flat.size], whole[flat.size :] = flat, flat[-1] if flat.size else 0
        return tensor_to_proto(whole.reshape(shape))
    proto = TensorProto()
    describe(proto, dtype, shape)
    if dtype is dtypes.string:
        values: list[Any] = [_as_bytes(item) for item in flat.tolist()]
    elif dtype.proto_field == "half_val":
        values = flat.view(np.uint16).tolist()
    elif dtype.is_carried:
        values = flat.view(np.dtype(array.dtype[0])).tolist()
    elif dtype.is_complex:
        values = flat.view(np.float32 if dtype is dtypes.complex64 else np.float64).tolist()
    else:
        values = flat.tolist()
    getattr(proto, dtype.proto_field).extend(values)
    return proto


def make_ndarray(proto: TensorProto) -> np.ndarray:
    """The array of a TensorProto, writable and the caller's own."""
    array = proto_to_tensor(proto)
    return array if array.flags.writeable else array.copy()
