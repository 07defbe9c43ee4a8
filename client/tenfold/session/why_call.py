"""Asking a task over gRPC why nothing goes on there: Examine, a service of Tenfold's own.

Called by grpc_master.py; the server's side is tenfold_services/rpc/examine_service.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from tenfold.session.grpc_errors import from_rpc_error
from tenfold_core import errors
from tenfold_protos.examine_pb2 import ExamineRequest, ExamineResponse

if TYPE_CHECKING:
    from tenfold_core.access.channel import TokenChannel
    from tenfold_protos.why_pb2 import TaskAnswer

METHOD = "/tenfold.ExamineService/Examine"


def ask_why(channel: TokenChannel, target: str, task: str | None, timeout: float) -> TaskAnswer:
    """What the task behind `channel` says. Blocks for `timeout` seconds at most.

    Raises UnimplementedError, saying so, where the server is not Tenfold's or does not know the question; else as
    GrpcMaster's calls.
    """
    call: Any = channel.unary_unary(
        METHOD,
        request_serializer=ExamineRequest.SerializeToString,
        response_deserializer=ExamineResponse.FromString,
    )
    try:
        # a release that does not know `why` would dial nobody, in no more than this
        answer: ExamineResponse = call(ExamineRequest(why=True, seconds=timeout), timeout=timeout)
    except grpc.RpcError as error:
        found = from_rpc_error(error, "Examine", target, task, timeout)
        if not isinstance(found, errors.UnimplementedError):
            raise found from None
        answer = ExamineResponse()
    if not answer.HasField("why"):
        text = f"The server at {target} does not tell why nothing goes on: it is not Tenfold's, or an old one."
        raise errors.UnimplementedError(None, None, text)
    return answer.why
