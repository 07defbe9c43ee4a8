"""The client's GetPlacement call over gRPC: where a session's nodes are, and why.

A service of Tenfold's own, beside TensorFlow's: other servers do not have it. Called by grpc_master.py; the server's
side is tenfold_services/rpc/own_services.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from tenfold.session.grpc_errors import from_rpc_error
from tenfold_core import errors
from tenfold_protos import placement_pb2

if TYPE_CHECKING:
    from tenfold_core.access.channel import TokenChannel
    from tenfold_protos.placement_pb2 import GetPlacementResponse

METHOD = "/tenfold.PlacementService/GetPlacement"


def get_placement(
    channel: TokenChannel, target: str, task: str | None, handle: str, timeout: float
) -> GetPlacementResponse:
    """The placement of the session `handle` at the server behind `channel`. Blocks for `timeout` seconds at most.

    Raises UnimplementedError, saying so, where the server is not Tenfold's; else as GrpcMaster's calls.
    """
    call: Any = channel.unary_unary(
        METHOD,
        request_serializer=placement_pb2.GetPlacementRequest.SerializeToString,
        response_deserializer=placement_pb2.GetPlacementResponse.FromString,
    )
    try:
        answer: GetPlacementResponse = call(placement_pb2.GetPlacementRequest(session_handle=handle), timeout=timeout)
    except grpc.RpcError as error:
        found = from_rpc_error(error, "GetPlacement", target, task, timeout)
        if isinstance(found, errors.UnimplementedError):
            text = f"The server at {target} does not tell where it places nodes: it is not Tenfold's, or an old one."
            raise errors.UnimplementedError(None, None, text) from None
        raise found from None
    return answer
