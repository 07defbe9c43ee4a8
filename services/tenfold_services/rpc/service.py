"""A gRPC service from a table: method name → an async function of the request message, or why there is none.

Around each function: parse the request, call, serialise the answer, turn an OpError into a failure. The *_service.py
files hold the tables. Served by two transports: http2/ takes `find`, grpc.aio an aio_handlers.AioService of it. Either
asks the gate first whether the caller has the role that a method needs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tenfold_core import errors, graph_wire, message_parts, protocol, telemetry
from tenfold_core.access import audit
from tenfold_core.access.roles import Role
from tenfold_protos.graph_pb2 import GraphDef

from ..http2.handler import Failure
from .status import STATUS_BY_NUMBER, status_message

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

    from tenfold_core.access.gate import Caller

    from ..http2.handler import Buffer, CallContext, Outcome, UnaryHandler

_log = logging.getLogger(__name__)

#: Metadata by which a server of ours tells that it is one, and which task it is.
TENFOLD_TASK = "tenfold-task"
#: Tells the caller that a server said this, not gRPC itself on a broken connection.
_SAID = (("tenfold-said", "1"),)

#: The request and its context → the response message, or its bytes in pieces.
Method: TypeAlias = Callable[[Any, Any], "Awaitable[Message | list[Buffer]]"]


def plain(call: Callable[[Any], Awaitable[Any]], response: type[Message], field: str | None = None) -> Method:
    """The method of a request that is one call; what that gives is the `field` of the response."""

    async def method(request: Any, context: Any) -> Message:
        value = await call(request)
        return response() if field is None else response(**{field: value})

    return method


class Parser(NamedTuple):
    """Reads a request in another way than its message does."""

    #: Raises DecodeError, and graph_wire.ReadApartError where that would hold up the loop.
    parse: Callable[[Buffer], Any]
    #: The same in a thread, for any size. Raises DecodeError, TooLargeError.
    parse_apart: Callable[[Buffer], Any]
    #: As UnaryHandler's.
    aligned: Callable[[memoryview], int] | None = None


def of_session(request: Any, answer: Any) -> dict[str, object]:
    """The `more` of a method whose request, else its answer, names a session."""
    named = request if "session_handle" in request.DESCRIPTOR.fields_by_name else answer
    return {"session": getattr(named, "session_handle", "")}


class Audited(NamedTuple):
    """A method that the audit log tells of: what it does there, and what else stands in the line, by the request and
    the answer, which is None where there is none."""

    action: str
    more: Callable[[Any, Any], dict[str, object]] = of_session


class Served(NamedTuple):
    """A row of the table: a method, and what stands around it."""

    call: Method
    #: The least role of a caller, where that is another than the service's.
    needs: Role | None = None
    #: Raises PermissionDeniedError where that caller may not ask that.
    check: Callable[[Any, Caller], None] | None = None
    #: Set where the audit log tells of it; what is refused stands there in any case.
    audited: Audited | None = None
    #: Tried before `call`, without waiting: None for a request that has to wait.
    at_once: Callable[[Any], Message | list[Buffer] | None] | None = None
    #: Reads the request where that is not the message's own parser.
    parser: Parser | None = None


class TableService:
    """Serves `/<package>.<service>/<method>` for every method of the descriptor."""

    def __init__(
        self,
        descriptor: ServiceDescriptor,
        methods: Mapping[str, Served | str],
        where: Callable[[], str],
        package: str = "tensorflow",
        graphs: int | None = None,
        *,
        needs: Role,
    ) -> None:
        """`methods` has a text for a method that is not served: why. `where` names this task ("task at port").

        `needs` is the least role of a caller, `package` the service's package on the wire. `graphs` is how many nodes a
        graph in a request may have: large ones are read in a thread. Raises InternalError for a method that the
        descriptor has not.
        """
        self._prefix = f"/{package}.{descriptor.name}/"
        self._where = where
        #: Path → its handler, of every method that there is.
        self.handlers: dict[str, UnaryHandler] = {}
        kind = _Versioned if package == "tenfold" else _Unary
        for method in descriptor.methods:
            served = methods.get(method.name, "not implemented")
            if isinstance(served, str):
                self.handlers[self._prefix + method.name] = self._refusal(method.name, served)
            else:
                self.handlers[self._prefix + method.name] = kind(method, served, where, needs, graphs)
        if unknown := methods.keys() - descriptor.methods_by_name.keys():
            raise errors.internal(f"{descriptor.name} has no methods {sorted(unknown)}.")

    def find(self, path: str) -> UnaryHandler | None:
        """The handler of a path; None for one of another service."""
        if not path.startswith(self._prefix):
            return None
        known = self.handlers.get(path)
        return known or self._refusal(path.removeprefix(self._prefix), "there is no such method")

    def _refusal(self, name: str, why: str) -> UnaryHandler:
        return _Refusal(self._prefix.strip("/").removeprefix("tensorflow."), name, self._where, why)


class _Unary:
    """A handler.UnaryHandler of a function."""

    def __init__(
        self, method: MethodDescriptor, served: Served, where: Callable[[], str], needs: Role, graphs: int | None
    ) -> None:
        self._call, role, self._check, self._audited, self._at_once, parser = served
        self.needs = needs if role is None else role
        holds_graph = any(field.message_type is GraphDef.DESCRIPTOR for field in method.input_type.fields)
        #: Nodes that a graph in a large request may have, which is read apart from the loop; None where there is none.
        self._nodes = graphs if holds_graph else None
        self.action = method.name if self._audited is None else self._audited.action
        self._name, self._request_name, self._where = method.name, method.input_type.name, where
        message: Any = GetMessageClass(method.input_type)
        self._message = message
        self._has_parser = parser is not None
        self._parse, self._parse_apart, self.aligned = parser or Parser(message.FromString, self._portions)

    def begin(self, request: Buffer, context: CallContext) -> Outcome | Coroutine[Any, Any, Outcome]:
        if telemetry.tracer is not None and (carrier := telemetry.carrier_of(context.invocation_metadata())):
            return telemetry.run_below(carrier, self._begin, request, context)
        return self._begin(request, context)

    def _begin(self, request: Buffer, context: CallContext) -> Outcome | Coroutine[Any, Any, Outcome]:
        if len(request) >= graph_wire.LARGE and not self._has_parser:
            return self._read_apart(request, context)
        try:
            message = self._parse(request)
        except graph_wire.ReadApartError:
            return self._read_apart(request, context)
        except Exception as error:
            return self._unreadable(error)
        return self._read(message, context)

    def _unreadable(self, error: Exception) -> Failure:
        if isinstance(error, DecodeError):
            text = f"{self._name}: the request is no valid {self._request_name} message: {error}"
            return self._failure(errors.invalid_argument(text))
        return self._failure(error)

    def _portions(self, request: Buffer) -> Any:
        """The message, for a thread. Raises DecodeError, TooLargeError."""
        if self._nodes is not None:
            return graph_wire.parse(self._message, request, self._nodes)
        return message_parts.parse(self._message, request)

    async def _read_apart(self, request: Buffer, context: CallContext) -> Outcome:
        try:
            message = await asyncio.wrap_future(graph_wire.apart(self._parse_apart, request))
        except message_parts.TooLargeError as error:
            more = "." if self._nodes is None else "; TENFOLD_MASTER_NODES sets another limit."
            return self._failure(errors.resource_exhausted(f"{self._name} at {self._where()}: {error}{more}"))
        except Exception as error:
            return self._unreadable(error)
        outcome = self._read(message, context)
        return outcome if isinstance(outcome, (bytes, list, Failure)) else await outcome

    def _read(self, message: Any, context: CallContext) -> Outcome | Coroutine[Any, Any, Outcome]:
        try:
            if self._check is not None:
                try:
                    self._check(message, context.caller())
                except errors.PermissionDeniedError as error:
                    audit.refusals.note(context.caller(), self.action, error.message, address=context.peer())
                    raise
            if self._at_once is not None:
                response = self._at_once(message)
                if response is not None:
                    return self._bytes(response)
        except Exception as error:
            return self._failure(error)
        return self._wait(message, context)

    async def _wait(self, message: Any, context: CallContext) -> Outcome:
        """The outcome of the method; the audit log has what came of one that it tells of."""
        answer: Any = None
        outcome, more = "given up by its caller", dict[str, object]()
        try:
            answer = await self._call(message, context)
            outcome = "done"
            return self._bytes(answer)
        except Exception as error:
            failure = self._failure(error)
            outcome, more["error"] = "failed", failure.text
            return failure
        finally:
            if self._audited is not None:
                more = {**self._audited.more(message, answer), **more}
                audit.done(context.caller(), self.action, outcome, address=context.peer(), **more)

    def _bytes(self, response: Message | list[Buffer]) -> bytes | list[Buffer]:
        if isinstance(response, list):
            return response
        try:
            return response.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise errors.resource_exhausted(
                f"{self._name}: the answer cannot be sent, a message takes 2 GiB at most: {error}"
            ) from error

    def _failure(self, error: Exception) -> Failure:
        """What the caller gets to know of an error."""
        if isinstance(error, errors.OpError):
            code, message = error.code, error.message
        elif isinstance(error, MemoryError):
            code = errors.RESOURCE_EXHAUSTED
            message = f"{self._name} at {self._where()}: OOM: {str(error) or 'the memory is used up'}"
        else:
            _log.error("%s at %s failed", self._name, self._where(), exc_info=error)
            code, message = errors.INTERNAL, f"{self._name} at {self._where()}: {type(error).__name__}: {error}"
        # Else a frame and the exception hold each other, and with them the request.
        errors.forget_frames(error)
        known = code if code in STATUS_BY_NUMBER and code else errors.UNKNOWN
        return Failure(known, status_message(message), _SAID)


class _Versioned(_Unary):
    """The same for a method of Tenfold's own: caller and task have to speak a version of it in common."""

    def _begin(self, request: Buffer, context: CallContext) -> Outcome | Coroutine[Any, Any, Outcome]:
        told = next((value for name, value in context.invocation_metadata() or () if name == protocol.HEADER), None)
        try:
            protocol.agree_on_calls(protocol.parse(told), f"who calls {self._name} at {self._where()}")
        except Exception as error:
            return self._failure(error)
        context.set_trailing_metadata(((protocol.HEADER, protocol.calls().text()),))
        return super()._begin(request, context)


class _Refusal:
    """A handler.UnaryHandler that says why there is none."""

    aligned: Callable[[memoryview], int] | None = None
    needs = Role.READ

    def __init__(self, service: str, name: str, where: Callable[[], str], why: str) -> None:
        self._service, self.action, self._where, self._why = service, name, where, why

    def begin(self, request: Buffer, context: CallContext) -> Failure:
        text = f"{self._service}.{self.action} is not served by {self._where()}: {self._why}."
        return Failure(errors.UNIMPLEMENTED, status_message(text))
