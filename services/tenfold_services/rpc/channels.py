"""gRPC's options for connections to other tasks; aio_handlers.py has those of the other end.

Messages have no size limit (a feed is as large as memory allows), ports are never shared, no proxy stands between
tasks, and a peer that came back is tried again within a second. A dead host is noticed by grpc_worker.py's probe and
not by HTTP/2 pings, which TensorFlow's servers answer with GOAWAY "too_many_pings".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.protobuf.message import Message
from grpc import aio

from tenfold_core.access import channel

from .status import from_rpc_error

if TYPE_CHECKING:
    from tenfold_core.access.credentials import Credentials

SIZES = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    *SIZES,
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # in spite of its name what one attempt to connect may take: several round trips of a slow network
    ("grpc.min_reconnect_backoff_ms", 4000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # each channel has a connection of its own: two servers in one process must not share a fate
    ("grpc.use_local_subchannel_pool", 1),
)


R = TypeVar("R", bound=Message)


def open_channel(address: str, credentials: Credentials) -> Any:
    """A channel to "host:port". Connects on the first call. Never blocks. Must be closed."""
    return channel.open_channel(aio, address, CHANNEL_OPTIONS, credentials)


async def ask(
    opened: Any, path: str, request: Message, response_class: type[R], task: str, address: str, seconds: float
) -> R:
    """One unary call of "/service/method" to `task` at `address`, over `opened`. Raises as from_rpc_error."""
    call = opened.unary_unary(
        path, request_serializer=type(request).SerializeToString, response_deserializer=response_class.FromString
    )
    try:
        answer: R = await call(request, timeout=seconds)
    except grpc.RpcError as error:
        raise from_rpc_error(error, task, address, path.rpartition("/")[2]) from None
    return answer
