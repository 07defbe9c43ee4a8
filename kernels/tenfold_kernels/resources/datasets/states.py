"""What iterators remember, written down: plain values and arrays as a variant's message, and back.

The message is the one that variants travel and are saved in: its metadata holds the values as JSON, its tensors the
arrays that the JSON names by number. Used by cpu/dataset_iterator.py, by caches in files and by resources/messages.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from tenfold_core import errors, tensor_util
from tenfold_kernels.arrays import objects, scalar_object
from tenfold_kernels.resources.tensor_variants import TensorVariant
from tenfold_protos.tensor_pb2 import VariantTensorDataProto

if TYPE_CHECKING:
    from tenfold_kernels.resources.datasets.core import Array, State

#: TensorFlow's name for the variant that SerializeIterator gives.
TYPE_NAME = "tensorflow::Iterator"


@dataclass(frozen=True, slots=True)
class IteratorState:
    """The value of a variant edge: where an iterator was. Immutable."""

    state: Any

    def as_array(self) -> Array:
        return scalar_object(self)


def to_proto(state: State) -> VariantTensorDataProto:
    """Raises UnimplementedError for what only its task understands: datasets, optionals, handles."""
    proto = VariantTensorDataProto(type_name=TYPE_NAME)
    proto.metadata = json.dumps(_plain(state, proto), separators=(",", ":")).encode()
    return proto


def from_proto(proto: VariantTensorDataProto) -> Any:
    """The state, its tuples as lists and its arrays read-only. Raises DataLossError for what is no state."""
    try:
        return _value(json.loads(proto.metadata), proto)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise errors.data_loss(f"This is not the state of an iterator: {error}") from None


def to_bytes(state: State) -> bytes:
    return to_proto(state).SerializeToString()


def from_bytes(data: bytes) -> Any:
    """As `from_proto`."""
    proto = VariantTensorDataProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise errors.data_loss("This is not the state of an iterator: no message") from None
    return from_proto(proto)


def _plain(value: Any, proto: VariantTensorDataProto) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return {"b": value.decode("latin-1")}
        case list() | tuple():
            return [_plain(item, proto) for item in value]
        case dict():
            return {"d": [[_plain(k, proto), _plain(v, proto)] for k, v in value.items()]}
        case np.generic():
            return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a state cannot hold a {type(value).__name__}")
    if value.dtype == object and value.size and all(isinstance(item, TensorVariant) for item in value.flat):
        return {"o": [list(value.shape), [_plain(item.value, proto) for item in value.flat]]}
    if value.dtype == object and not all(isinstance(item, (bytes, str)) for item in value.flat):
        kind = next(type(item).__name__ for item in value.flat if not isinstance(item, (bytes, str)))
        raise errors.unimplemented(f"An element that holds a {kind} cannot be saved.")
    proto.tensors.append(tensor_util.tensor_to_proto(value))
    return {"a": len(proto.tensors) - 1}


def _value(plain: Any, proto: VariantTensorDataProto) -> Any:
    if isinstance(plain, list):
        return [_value(item, proto) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if "b" in plain:
        return plain["b"].encode("latin-1")
    if "d" in plain:
        return {_value(k, proto): _value(v, proto) for k, v in plain["d"]}
    if "o" in plain:
        shape, items = plain["o"]
        variants = objects([TensorVariant(_value(item, proto)) for item in items]).reshape(shape)
        variants.flags.writeable = False
        return variants
    array = tensor_util.proto_to_tensor(proto.tensors[plain["a"]])
    array.flags.writeable = False
    return array
