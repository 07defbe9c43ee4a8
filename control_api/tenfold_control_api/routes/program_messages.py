"""What the programs of a run send when a report's answer asks for it, a message each: what they traced or wait for.

For traces.py and why.py.
"""

from typing import Any, TypeVar

from fastapi import Request
from google.protobuf.message import Message

from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import content_type, unsupported
from tenfold_control_api.steps import PROTOBUF, parse_message

M = TypeVar("M", bound=Message)


def taking(what: str, unknown: str) -> dict[str, Any]:
    """OpenAPI's description of a route that takes `what`, and answers `unknown` where nobody waits for it."""
    schema = {"type": "string", "format": "binary", "description": what}
    body = {"required": True, "content": {PROTOBUF: {"schema": schema}}}
    return {"requestBody": body, **problems(unknown, "malformed-message")}


async def received(request: Request, cls: type[M]) -> M:
    """The message in the body. Raises `unsupported-media-type`, and what `parse_message` raises."""
    if content_type(request) != PROTOBUF:
        raise unsupported(request, PROTOBUF)
    return parse_message(cls, await request.body())
