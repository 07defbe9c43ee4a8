"""The messages of a hostile peer: which method, which bytes, the same for a seed. No I/O; hostile.py sends them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from google.protobuf.message_factory import GetMessageClass

from process.hostile_graphs import FETCHES, NUMBERS, broken, hostile_feeds
from tenfold_core import opdefs, tensor_util
from tenfold_protos import (
    attr_value_pb2,
    graph_pb2,
    master_pb2,
    master_service_pb2,
    tensor_pb2,
    types_pb2,
    worker_pb2,
    worker_service_pb2,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

METHODS = {
    f"/tensorflow.{service.name}/{method.name}": method.input_type
    for descriptor in (master_service_pb2.DESCRIPTOR, worker_service_pb2.DESCRIPTOR)
    for service in descriptor.services_by_name.values()
    for method in service.methods
}
_MASTER, _WORKER = "/tensorflow.MasterService/", "/tensorflow.WorkerService/"
CREATE, RUN, CLOSE = f"{_MASTER}CreateSession", f"{_MASTER}RunStep", f"{_MASTER}CloseSession"
REGISTER, RECV = f"{_WORKER}RegisterGraph", f"{_WORKER}RecvTensor"
#: Seconds that a hostile step says it may take.
STEP_SECONDS = 3.0

#: Kind of request → how often, of a hundred.
KINDS = {
    "random bytes": 9,
    "cut off": 9,
    "bytes changed": 9,
    "two in one": 6,
    "senseless fields": 14,
    "senseless graph to a master": 10,
    "senseless graph to a worker": 10,
    "broken graph": 6,
    "hostile sizes": 17,
    "long lists": 1,
    "partial runs and callables": 3,
    "rendezvous keys": 3,
    "sessions left open": 2,
    "resets and closes": 1,
}


class Attack:
    """Makes requests. What a number gets is settled by the seed alone, but for the handle of the session."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ops = opdefs.names()
        self._methods = list(METHODS)
        #: A session with `hostile_graphs.FED`.
        self.session = ""
        #: What the last step with hostile sizes fetches.
        self.fetch = ""

    def request(self) -> tuple[str, str, bytes]:
        """The next (kind, method, message)."""
        draw = self._random
        kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
        path = draw.choice(self._methods)
        match kind:
            case "random bytes":
                data = draw.randbytes(draw.choice((0, 1, 7, 100, 4096)))
            case "cut off":
                data = self._message(path).SerializeToString()
                data = data[: draw.randrange(len(data) + 1)]
            case "bytes changed":
                data = self._changed(self._message(path).SerializeToString())
            case "two in one":
                data = self._message(path).SerializeToString()
                data += self._message(draw.choice(self._methods)).SerializeToString()
            case "senseless fields":
                data = self._message(path).SerializeToString()
            case _:
                path, message = self._meant(kind)
                data = message.SerializeToString()
        return kind, path, data

    def _meant(self, kind: str) -> tuple[str, Message]:
        draw = self._random
        match kind:
            case "senseless graph to a master":
                return CREATE, master_pb2.CreateSessionRequest(graph_def=self._graph())
            case "senseless graph to a worker":
                return REGISTER, worker_pb2.RegisterGraphRequest(graph_def=self._graph())
            case "broken graph":
                graph = broken(draw)
                if draw.random() < 0.3:
                    return REGISTER, worker_pb2.RegisterGraphRequest(graph_def=graph)
                if draw.random() < 0.3:
                    return f"{_MASTER}ExtendSession", master_pb2.ExtendSessionRequest(
                        session_handle=self.session, graph_def=graph, current_graph_version=draw.choice((-1, 0, 2**40))
                    )
                return CREATE, master_pb2.CreateSessionRequest(graph_def=graph)
            case "hostile sizes":
                return RUN, self._fed_step()
            case "long lists":
                return RUN, self._long_lists()
            case "partial runs and callables":
                return self._partial_or_callable()
            case "rendezvous keys":
                return RECV, worker_pb2.RecvTensorRequest(step_id=draw.choice(NUMBERS), rendezvous_key=self._key())
            case "sessions left open":
                graph = graph_pb2.GraphDef()
                graph.node.add(name="n", op="NoOp")
                if draw.random() < 0.5:
                    return CREATE, master_pb2.CreateSessionRequest(graph_def=graph, target="left")
                return f"{_WORKER}CreateWorkerSession", worker_pb2.CreateWorkerSessionRequest(
                    session_handle=f"left {draw.randrange(10**9)}"
                )
            case _:
                if draw.random() < 0.2:
                    containers = draw.choice(([], ["a"], ["x" * 99] * 99))
                    return f"{_MASTER}Reset", master_pb2.ResetRequest(container=containers)
                return CLOSE, master_pb2.CloseSessionRequest(session_handle=draw.choice(("", "no such", self.session)))

    # -- messages without sense --------------------------------------------------------------------------------------

    def _changed(self, whole: bytes) -> bytes:
        data = bytearray(whole or b"\0")
        for _ in range(self._random.randrange(1, 6)):
            data[self._random.randrange(len(data))] = self._random.randrange(256)
        return bytes(data)

    def _message(self, path: str) -> Message:
        """A message of the method's type whose fields are filled without sense."""
        message = GetMessageClass(METHODS[path])()
        self._fill(message, 0)
        return message

    def _fill(self, message: Any, depth: int) -> None:
        draw = self._random
        for one in message.DESCRIPTOR.fields:
            if draw.random() < 0.4 or (one.message_type is not None and depth > 3):
                continue
            if one.message_type is not None and one.message_type.GetOptions().map_entry:
                continue
            if one.message_type is not None:
                target = getattr(message, one.name)
                for _ in range(draw.randrange(1, 3)) if one.is_repeated else (0,):
                    self._fill(target.add() if one.is_repeated else target, depth + 1)
            elif one.is_repeated:
                getattr(message, one.name).extend(self._scalar(one) for _ in range(draw.randrange(4)))
            else:
                setattr(message, one.name, self._scalar(one))

    def _scalar(self, one: Any) -> Any:
        draw = self._random
        if one.type == one.TYPE_STRING:
            return draw.choice(
                ("", "a", "a:0", "^a", self.session, "no such", "x" * 300, "/job:ps/task:0", "é\n\0", "a:99")
            )
        if one.type == one.TYPE_BYTES:
            return draw.randbytes(draw.choice((0, 3, 40)))
        if one.type == one.TYPE_BOOL:
            return draw.random() < 0.5
        if one.type == one.TYPE_ENUM:
            return draw.choice(one.enum_type.values).number
        if one.type in (one.TYPE_FLOAT, one.TYPE_DOUBLE):
            return draw.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
        bits = 32 if one.type in (one.TYPE_INT32, one.TYPE_UINT32, one.TYPE_SINT32, one.TYPE_FIXED32) else 64
        value = draw.choice(NUMBERS) % 2**bits
        signed = one.type in (one.TYPE_INT32, one.TYPE_INT64, one.TYPE_SINT32, one.TYPE_SINT64, one.TYPE_SFIXED64)
        return value - 2**bits if signed and value >= 2 ** (bits - 1) else value

    # -- graphs without sense ----------------------------------------------------------------------------------------

    def _graph(self) -> graph_pb2.GraphDef:
        """A graph of ops that exist or do not, wired at random."""
        draw = self._random
        graph = graph_pb2.GraphDef()
        graph.versions.producer = draw.choice((0, 24, 134, 2474, 2**31 - 1))
        names = [f"n{i}" for i in range(draw.choice((1, 2, 5, 12, 40)))]
        for name in names:
            node = graph.node.add(name=name, op=draw.choice((*self._ops, "Const", "Const", "Fill", "Nonsense")))
            node.device = draw.choice(("", "", "/job:ps/task:0", "/job:none/task:7", "/gpu:0", "garbage"))
            if not opdefs.has(node.op):
                continue
            definition = opdefs.get(node.op)
            for attr in definition.attrs:
                if draw.random() < 0.9:
                    node.attr[attr.name].CopyFrom(self._attr(attr.type))
            for _ in range(max(0, len(definition.inputs) + draw.choice((0, 0, 0, 1, -1)))):
                node.input.append(draw.choice(names) + draw.choice(("", "", ":0", ":1", f":{draw.choice(NUMBERS)}")))
            if draw.random() < 0.2:
                node.input.append("^" + draw.choice(names))
        return graph

    def _attr(self, kind: str) -> attr_value_pb2.AttrValue:
        draw = self._random
        value = attr_value_pb2.AttrValue()
        if kind == "int":
            value.i = draw.choice(NUMBERS)
        elif kind == "float":
            value.f = draw.choice((0.0, float("nan"), -1.0))
        elif kind == "bool":
            value.b = draw.random() < 0.5
        elif kind == "string":
            value.s = draw.choice((b"", b"SAME", b"\xff\xfe", b"x" * 1000))
        elif kind == "type":
            value.type = draw.choice(types_pb2.DataType.values())
        elif kind == "shape":
            value.shape.CopyFrom(self._shape())
        elif kind == "tensor":
            value.tensor.CopyFrom(self._tensor())
        else:
            value.list.i.extend(draw.choice(NUMBERS) for _ in range(draw.randrange(4)))
        return value

    def _shape(self) -> Any:
        shape = tensor_pb2.TensorProto().tensor_shape
        for _ in range(self._random.choice((0, 1, 2, 4, 300))):
            shape.dim.add(size=self._random.choice(NUMBERS))
        return shape

    def _tensor(self) -> tensor_pb2.TensorProto:
        draw = self._random
        proto = tensor_pb2.TensorProto(dtype=draw.choice(types_pb2.DataType.values()))
        proto.tensor_shape.CopyFrom(self._shape())
        proto.tensor_content = draw.randbytes(draw.choice((0, 1, 4, 64)))
        proto.float_val.extend([1.0] * draw.randrange(3))
        proto.int_val.extend([1] * draw.randrange(3))
        return proto

    # -- steps -------------------------------------------------------------------------------------------------------

    def _fed_step(self) -> master_pb2.RunStepRequest:
        """A step of a known session whose shapes, axes, counts and indices are hostile."""
        draw = self._random
        self.fetch = draw.choice(FETCHES)
        request = fed_step(self.session, self.fetch, hostile_feeds(draw))
        if draw.random() < 0.1:
            draw.choice(list(request.feed)).tensor.CopyFrom(self._tensor())
        return request

    def _long_lists(self) -> master_pb2.RunStepRequest:
        """Feeds, fetches and targets by the hundred thousand."""
        draw = self._random
        request = master_pb2.RunStepRequest(session_handle=self.session, store_errors_in_response_body=True)
        count = draw.choice((1000, 100_000))
        match draw.randrange(4):
            case 0:
                request.fetch.extend([draw.choice(FETCHES)] * count)
            case 1:
                request.target.extend(f"t{i}" for i in range(count))
            case 2:
                for i in range(count):
                    request.feed.add(name=f"f{i}").tensor.dtype = 1
                if draw.random() < 0.5:
                    request.feed.add(name=f"f{count - 1}").tensor.dtype = 1
            case _:
                request.feed.extend([request.feed.add(name="scalar:0")] * count)
        return request

    def _partial_or_callable(self) -> tuple[str, Message]:
        draw = self._random
        names = [draw.choice((*FETCHES, "scalar:0", "no such", "")) for _ in range(draw.choice((0, 1, 5)))]
        match draw.randrange(5):
            case 0:
                return f"{_MASTER}PartialRunSetup", master_pb2.PartialRunSetupRequest(
                    session_handle=self.session, feed=["scalar:0", "vector:0"], fetch=names
                )
            case 1:
                request = self._fed_step()
                request.partial_run_handle = draw.choice(("no such", "1", self.session))
                return RUN, request
            case 2:
                make = master_pb2.MakeCallableRequest(session_handle=self.session)
                make.options.fetch.extend(names)
                make.options.feed.extend(names[:2])
                return f"{_MASTER}MakeCallable", make
            case 3:
                run = master_pb2.RunCallableRequest(session_handle=self.session, handle=draw.choice(NUMBERS))
                run.feed.extend([self._tensor()] * draw.choice((0, 1, 100)))
                return f"{_MASTER}RunCallable", run
            case _:
                return f"{_MASTER}ReleaseCallable", master_pb2.ReleaseCallableRequest(
                    session_handle=self.session, handle=draw.choice(NUMBERS)
                )

    def _key(self) -> str:
        draw = self._random
        device = draw.choice(("/job:ps/replica:0/task:0/device:CPU:0", "/job:x", "", "x" * 9999))
        key = f"{device};{draw.choice(NUMBERS) % 2**64:016x};{device};edge_{draw.randrange(9)};0:0"
        return draw.choice((key, key, key[: draw.randrange(len(key))], ";" * 1000, "\0"))


def fed_step(session: str, fetch: str, feeds: Any) -> master_pb2.RunStepRequest:
    """A step of `hostile_graphs.FED`."""
    request = master_pb2.RunStepRequest(session_handle=session, store_errors_in_response_body=True)
    request.options.timeout_in_ms = int(1000 * STEP_SECONDS)
    for name, value in feeds.items():
        request.feed.add(name=name).tensor.CopyFrom(tensor_util.tensor_to_proto(value))
    request.fetch.append(fetch)
    return request
