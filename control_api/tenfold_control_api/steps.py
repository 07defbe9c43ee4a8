"""A step's request and answer on the wire: Open Inference Protocol JSON, its binary form, or TensorFlow's own RunStep
messages.

Called by routes/sessions.py. Parsing the head is cheap and happens on the event loop; `StepRequest.run` decodes the
tensors, runs the step and encodes the answer, and is meant for a thread.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from tenfold_control_api.problems import ApiError
from tenfold_core import errors, graph_wire, message_parts, tensor_util
from tenfold_core import open_inference as oip
from tenfold_protos import config_pb2, graph_pb2, master_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    import numpy as np

    from tenfold.session.master_interface import MasterInterface

M = TypeVar("M", bound=Message)
T = TypeVar("T")

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
BINARY = "application/octet-stream"
HEADER_LENGTH = "Inference-Header-Content-Length"

#: Parameters of an output by which Triton's clients ask for another answer than the output.
_NOT_OFFERED = {"classification", "shared_memory_region"}
#: Of a step in JSON.
MEMBERS = {"id", "inputs", "outputs", "targets", "options", "parameters"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A body ready to be sent."""

    body: bytes
    media_type: str
    headers: Mapping[str, str]


class StepRequest(Protocol):
    """One step, parsed as far as is cheap."""

    @property
    def timeout(self) -> float | None:
        """Seconds from its RunOptions; None if they set no time-out."""
        ...

    def run(self, master: MasterInterface, handle: str, left: float, acting: Callable[[], None]) -> Answer:
        """Decodes, runs, encodes. Blocks. Calls `acting` just before the step is sent. Raises OpError for what the
        master answers, ApiError for malformed tensors."""
        ...


def tensor_name(name: str) -> str:
    """`x` → `x:0`; a full tensor name is left as it is."""
    return name if ":" in name else f"{name}:0"


def parse_message(cls: type[M], body: bytes) -> M:
    """The message in `body`. Raises `malformed-message` for bytes that are no such message, `body-too-large`."""
    try:
        return message_parts.parse(cls, body)
    except message_parts.TooLargeError as error:
        raise ApiError("body-too-large", f"{error}.") from None
    except DecodeError:
        raise ApiError(
            "malformed-message", f"the body is not a {cls.DESCRIPTOR.name} ({len(body)} bytes do not parse)."
        ) from None


def message_from(cls: type[M], value: str | Mapping[str, Any], where: str) -> M:
    """A message from base64 text or protobuf JSON, as JSON bodies carry it. Raises `malformed-message`."""
    message = cls()
    try:
        if isinstance(value, str):
            message.ParseFromString(base64.b64decode(value, validate=True))
        else:
            json_format.ParseDict(dict(value), message)
    except (binascii.Error, ValueError):
        raise ApiError(
            "malformed-message", f"{where!r} is not the base64 of a {cls.DESCRIPTOR.name}.", at=(where,)
        ) from None
    except DecodeError:
        raise ApiError(
            "malformed-message", f"{where!r} is base64, but not of a {cls.DESCRIPTOR.name}.", at=(where,)
        ) from None
    except (json_format.ParseError, TypeError, RecursionError) as error:
        text = f"{where!r} is not the JSON of a {cls.DESCRIPTOR.name}: {error}"
        raise ApiError("malformed-message", text, at=(where,)) from None
    return message


async def read_apart(read: Callable[[], T], size: int) -> T:
    """`read()`, which parses a body of `size` bytes that holds a graph: in a thread where it is large, so that the
    service goes on. Raises what it raises."""
    return read() if size < graph_wire.LARGE else await asyncio.wrap_future(graph_wire.apart(read))


def graph_message(cls: type[M], body: bytes, nodes: int) -> M:
    """As `parse_message`, of a message with a graph of `nodes` at most. Raises `body-too-large` for more."""
    if len(body) < graph_wire.LARGE:
        return parse_message(cls, body)
    try:
        return graph_wire.parse(cls, body, nodes)
    except message_parts.TooLargeError as error:
        raise ApiError("body-too-large", f"{error} (TENFOLD_CONTROL_MAX_GRAPH_NODES).") from None
    except DecodeError:
        name = cls.DESCRIPTOR.name
        raise ApiError("malformed-message", f"the body is not a {name} ({len(body)} bytes do not parse).") from None


def graph_from(value: str | Mapping[str, Any], nodes: int) -> graph_pb2.GraphDef:
    """As `message_from`, of a graph of `nodes` at most. Raises `body-too-large` for more."""
    if isinstance(value, str) and len(value) >= graph_wire.LARGE:
        try:
            body = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise ApiError(
                "malformed-message", "'graph_def' is not the base64 of a GraphDef.", at=("graph_def",)
            ) from None
        return graph_message(graph_pb2.GraphDef, body, nodes)
    listed = None if isinstance(value, str) else value.get("node")
    if isinstance(listed, list) and len(listed) > nodes:
        text = f"the graph has {len(listed)} nodes; {nodes} are accepted (TENFOLD_CONTROL_MAX_GRAPH_NODES)."
        raise ApiError("body-too-large", text, at=("graph_def", "node"))
    return message_from(graph_pb2.GraphDef, value, "graph_def")


def parse_json(text: bytes) -> Any:
    """Strict JSON. Raises `malformed-json`, which says where it stops to be JSON."""
    try:
        return oip.parse_json(text)
    except errors.OpError as error:
        raise ApiError("malformed-json", str(error.message), at=()) from None


def _options_timeout(options: config_pb2.RunOptions) -> float | None:
    if options.timeout_in_ms < 0:
        raise ApiError(
            "invalid-timeout",
            f"timeout_in_ms is {options.timeout_in_ms}; it must be at least 0 (0: the service's own limit).",
            at=("options", "timeout_in_ms"),
        )
    return options.timeout_in_ms / 1000 if options.timeout_in_ms else None


@dataclass(frozen=True, slots=True)
class ProtobufStep:
    """A raw RunStepRequest; answered with a RunStepResponse."""

    request: master_pb2.RunStepRequest

    @staticmethod
    def parse(body: bytes) -> ProtobufStep:
        request = parse_message(master_pb2.RunStepRequest, body)
        if request.partial_run_handle:
            raise ApiError(
                "partial-run",
                "partial runs are not offered over REST; open a session at the task's own grpc:// address.",
            )
        return ProtobufStep(request)

    @property
    def timeout(self) -> float | None:
        return _options_timeout(self.request.options)

    def run(self, master: MasterInterface, handle: str, left: float, acting: Callable[[], None]) -> Answer:
        request, response = self.request, master_pb2.RunStepResponse()
        feeds = _decoded(request)
        acting()
        try:
            values, metadata = master.run_step(
                handle, feeds, list(request.fetch), list(request.target), request.options, left
            )
        except errors.OpError as error:
            if not request.store_errors_in_response_body:
                raise
            response.status_code = error.code  # type: ignore[assignment]
            response.status_error_message = str(error.message)
        else:
            for name, value in zip(request.fetch, values, strict=True):
                response.tensor.add(name=name).tensor.CopyFrom(tensor_util.tensor_to_proto(value))
            response.metadata.CopyFrom(metadata)
        return Answer(response.SerializeToString(), PROTOBUF, {})


@dataclass(frozen=True, slots=True)
class InferenceStep:
    """A step in the Open Inference Protocol, JSON or binary."""

    id: str | None
    inputs: Any
    binary: memoryview
    #: (name as asked for, asked for in binary)
    outputs: Sequence[tuple[str, bool]]
    targets: Sequence[str]
    options: config_pb2.RunOptions
    #: Of the request as a whole; `all_binary` is one of them.
    parameters: Mapping[str, Any]
    all_binary: bool
    #: Members that a route takes besides MEMBERS, where the request has them.
    more: Mapping[str, Any]

    @staticmethod
    def parse(body: bytes, header_length: str | None, also: Set[str] = frozenset()) -> InferenceStep:
        """`also` are members that are taken besides MEMBERS. Raises ApiError saying which member is wrong."""
        try:
            text, binary = oip.cut_body(body, header_length)
        except errors.OpError as error:
            raise ApiError("malformed-body", str(error.message)) from None
        head = parse_json(text)
        if not isinstance(head, dict):
            raise ApiError(
                "invalid-step",
                "a step is an object like "
                '{"inputs": [{"name": "x:0", "datatype": "FP32", "shape": [1], "data": [1.0]}], '
                '"outputs": [{"name": "y:0"}], "targets": []}.',
                at=(),
            )
        if unknown := sorted(head.keys() - MEMBERS - also):
            raise ApiError(
                "invalid-step",
                f"a step has no member {unknown[0]!r}; its members are {', '.join(sorted(MEMBERS | also))}.",
                at=(unknown[0],),
            )
        step_id = head.get("id")
        if step_id is not None and not isinstance(step_id, str):
            raise ApiError("invalid-step", "'id' must be a text.", at=("id",))
        all_binary = _flag(head, "binary_data_output", False, ())
        options = head.get("options", {})
        if not isinstance(options, dict):
            raise ApiError(
                "invalid-step", "'options' must be an object: the protobuf JSON of RunOptions.", at=("options",)
            )
        return InferenceStep(
            step_id,
            head.get("inputs", []),
            binary,
            [_output(output, all_binary, i) for i, output in enumerate(_list(head, "outputs"))],
            [_text(target, ("targets", i)) for i, target in enumerate(_list(head, "targets"))],
            message_from(config_pb2.RunOptions, options, "options") if options else config_pb2.RunOptions(),
            oip.parameters_of(head),
            all_binary,
            {name: head[name] for name in also & head.keys()},
        )

    @property
    def timeout(self) -> float | None:
        return _options_timeout(self.options)

    def feeds(self) -> dict[str, np.ndarray[Any, Any]]:
        """The inputs, by the names that the request gives them. Raises `invalid-tensor`."""
        try:
            arrays = oip.read_tensors(self.inputs, self.binary, "inputs")
        except oip.MalformedError as error:
            raise ApiError("invalid-tensor", str(error.message), at=error.at) from None
        return {name: _read_only(array) for name, array in arrays.items()}

    def run(self, master: MasterInterface, handle: str, left: float, acting: Callable[[], None]) -> Answer:
        feeds: dict[str, np.ndarray[Any, Any]] = {}
        for i, (name, array) in enumerate(self.feeds().items()):
            if tensor_name(name) in feeds:
                text = f"'inputs' names tensor {tensor_name(name)!r} twice."
                raise ApiError("invalid-tensor", text, at=("inputs", i, "name"))
            feeds[tensor_name(name)] = array
        fetches = list(dict.fromkeys(tensor_name(name) for name, _ in self.outputs))
        acting()
        values, metadata = master.run_step(handle, feeds, fetches, list(self.targets), self.options, left)
        by_name = dict(zip(fetches, values, strict=True))
        tensors = ((name, by_name[tensor_name(name)], binary) for name, binary in self.outputs)
        more: dict[str, Any] = {} if self.id is None else {"id": self.id}
        if metadata.ByteSize():
            more["metadata"] = json_format.MessageToDict(metadata, preserving_proto_field_name=True)
        return answer(tensors, more)


def answer(tensors: Iterable[tuple[str, np.ndarray[Any, Any], bool]], more: Mapping[str, Any]) -> Answer:
    """The answer with these outputs, (name, value, in binary), and further members. Raises `no-datatype`."""
    try:
        heads, parts = oip.write_tensors(tensors)
    except errors.OpError as error:
        raise ApiError("no-datatype", str(error.message), extra={"outcome": "done"}) from None
    text = json.dumps({"outputs": heads, **more}, allow_nan=False, separators=(",", ":")).encode()
    if not parts:
        return Answer(text, JSON, {})
    return Answer(b"".join([text, *parts]), BINARY, {HEADER_LENGTH: str(len(text))})


def _decoded(request: master_pb2.RunStepRequest) -> dict[str, np.ndarray[Any, Any]]:
    """The feeds of a request. Raises `invalid-tensor`."""
    feeds: dict[str, np.ndarray[Any, Any]] = {}
    for feed in request.feed:
        name = tensor_name(feed.name)
        if name in feeds:
            raise ApiError("invalid-tensor", f'Endpoint "{name}" fed more than once.')
        try:
            feeds[name] = _read_only(tensor_util.make_ndarray(feed.tensor))
        except errors.OpError as error:
            raise ApiError("invalid-tensor", f"The value fed for {name!r}: {error.message}") from error
    return feeds


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _list(head: Mapping[str, Any], member: str) -> list[Any]:
    value = head.get(member, [])
    if not isinstance(value, list):
        raise ApiError("invalid-step", f"{member!r} must be a list.", at=(member,))
    return value


def _text(value: Any, at: Sequence[str | int]) -> str:
    """A name, which stands `at` that place of the body."""
    if not isinstance(value, str) or not value:
        raise ApiError("invalid-step", f"{at[0]!r} holds {value!r}; it takes names.", at=at)
    return value


def _flag(thing: Mapping[str, Any], name: str, otherwise: bool, at: Sequence[str | int]) -> bool:
    """A member of the `parameters` of a `thing`, which stands `at` that place of the body: true or false."""
    try:
        value = oip.parameters_of(thing).get(name, otherwise)
    except oip.MalformedError as error:
        raise ApiError("invalid-step", str(error.message), at=(*at, *error.at)) from None
    if not isinstance(value, bool):
        text = f"the parameter {name!r} is {value!r}; it must be true or false."
        raise ApiError("invalid-step", text, at=(*at, "parameters", name))
    return value


def _output(output: Any, all_binary: bool, index: int) -> tuple[str, bool]:
    at = ("outputs", index)
    if isinstance(output, str):
        return _text(output, at), all_binary
    if not isinstance(output, dict):
        text = f"'outputs' holds {output!r}; it takes names, or objects with a name."
        raise ApiError("invalid-step", text, at=at)
    found = _text(output.get("name"), (*at, "name")), _flag(output, "binary_data", all_binary, at)
    for name in _NOT_OFFERED & oip.parameters_of(output).keys():
        text = f"the parameter {name!r} of an output is not offered: outputs come whole, in the body of the answer."
        raise ApiError("invalid-step", text, at=(*at, "parameters", name))
    return found
