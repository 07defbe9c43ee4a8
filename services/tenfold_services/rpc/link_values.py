"""Runtime values as records of a link's frame and back. Used by all of this folder; link_values.py has them.

Large tensors go out by reference. What somebody may still write to, a variable's memory, is copied first: the copy is
the one into shared memory where there is shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from google.protobuf.message import DecodeError

from tenfold_core import errors
from tenfold_link.wire import values
from tenfold_protos.tensor_pb2 import TensorProto

from ..rpc.tensors import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..interfaces import Value


class LinkLike(Protocol):
    """What sends frames: Link, or a client's blocking end (tenfold_link.blocking.step_link)."""

    state: dict[Any, Any]

    def stage(self, buffer: Any) -> Any:
        """A private copy for sending."""
        ...

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Any] = ()) -> None:
        """Sends a notification."""
        ...


def pack(value: Value, is_dead: bool, parts: list[bytes], buffers: list[Any], link: LinkLike | None = None) -> None:
    """Appends a record. With a `link`, large contents are copied for it now: the value may change after this call."""
    if is_dead:
        values.pack_dead(parts)
        return
    count = len(buffers)
    values.pack_value(value, parts, buffers, encode)
    if link is not None and len(buffers) > count:
        buffers[count] = link.stage(buffers[count])


def reader(header: bytes, offset: int, buffers: Sequence[Any]) -> values.ValueReader:
    """Reads the records from `offset` on."""
    return values.ValueReader(header, offset, buffers, _from_proto)


def _from_proto(content: bytes) -> Value:
    try:
        proto = TensorProto.FromString(content)
    except DecodeError as error:
        text = f"A link's frame holds a malformed TensorProto: {error}"
        raise errors.InvalidArgumentError(None, None, text) from None
    return decode(proto, "A tensor that came over a link")
