"""TensorProtos: read by the runtime and by the client, and what was read is written and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from fuzz.harness import Fault, refusals
from fuzz.messages import mutated as message_mutated
from fuzz.messages import parsed
from tenfold_core import dtypes, tensor_util
from tenfold_core.memory_limits import limit_tensor
from tenfold_kernels.resources import messages
from tenfold_protos.tensor_pb2 import TensorProto

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def one_input(data: bytes) -> None:
    limit_tensor(16 << 20)
    try:
        proto = TensorProto.FromString(data)
    except DecodeError:
        return
    with refusals():
        value = messages.decode(proto, "a tensor")
        again = messages.decode(messages.encode(value), "a tensor")
        if np.shape(again) != np.shape(value) or not _same(value, again):
            raise Fault("what was written is not what was read")
    with refusals():
        tensor_util.proto_to_tensor(proto)
    with refusals():
        tensor_util.make_ndarray(proto)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype != other.dtype:
        return False
    return one.dtype.hasobject or one.tobytes() == other.tobytes()


def mutated(data: bytes, chance: random.Random) -> bytes:
    proto = parsed(TensorProto, data)
    message_mutated(proto, chance)
    return proto.SerializePartialToString()


def seeds() -> Iterator[bytes]:
    for number in dtypes.FIXED_SIZE:
        dtype = dtypes.as_dtype(int(number))
        proto = TensorProto(dtype=number)
        proto.tensor_shape.dim.add(size=2)
        proto.tensor_content = bytes(2 * dtype.size)
        yield proto.SerializeToString()
        spread = TensorProto(dtype=number)
        spread.tensor_shape.dim.add(size=3)
        if dtype.proto_field == "float8_val":
            spread.float8_val = b"\1"
        else:
            getattr(spread, dtype.proto_field).extend([1, 1] if dtype.is_complex else [1])
        yield spread.SerializeToString()
    yield tensor_util.tensor_to_proto(np.array([[b"a", b""]], object)).SerializeToString()
    handle = TensorProto(dtype=dtypes.resource.as_datatype_enum)  # type: ignore[arg-type]
    handle.resource_handle_val.add(device="/cpu:0", container="c", name="n", hash_code=1)
    yield handle.SerializeToString()
    variant = TensorProto(dtype=dtypes.variant.as_datatype_enum)  # type: ignore[arg-type]
    variant.variant_val.add(type_name="tensorflow::TensorList", metadata=b"\0\1\1").tensors.add(dtype=1)
    yield variant.SerializeToString()
    yield tensor_util.make_tensor_proto(np.zeros((0, 3), np.int32)).SerializeToString()
