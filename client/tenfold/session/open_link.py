"""The client's OpenLink call over gRPC, with which tenfold_link.blocking.dial begins a link.

The server offers it on the port of TensorFlow's services, so that gRPC's authentication covers links as well. The
server's side, and the call of one task to another, is tenfold_services/rpc/own_services.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from tenfold_core import errors
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD = "/tenfold.LinkService/OpenLink"


def asker(
    channel: Any, address: str, timeout: float = 5.0
) -> Callable[[link_pb2.OpenLinkRequest], link_pb2.OpenLinkResponse]:
    """The OpenLink call on `channel`, which reaches the server at `address`. It blocks for `timeout` seconds at most.

    Raises UnimplementedError where the server is not Tenfold's, FailedPreconditionError if its links are off,
    UnavailableError or DeadlineExceededError where it cannot be reached.
    """
    call: Any = channel.unary_unary(
        METHOD,
        request_serializer=link_pb2.OpenLinkRequest.SerializeToString,
        response_deserializer=link_pb2.OpenLinkResponse.FromString,
    )

    def ask(request: link_pb2.OpenLinkRequest) -> link_pb2.OpenLinkResponse:
        try:
            answer: link_pb2.OpenLinkResponse = call(request, timeout=timeout)
        except grpc.RpcError as error:
            status: Any = error
            raise errors.from_code(int(status.code().value[0]), f"OpenLink at {address}: {status.details()}") from None
        return answer

    return ask
