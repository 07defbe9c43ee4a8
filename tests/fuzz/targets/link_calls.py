"""What the frames of a link carry, both ways: byte 0 picks the call, the rest are pieces: the header, then its buffers.

RunStep and RunGraph go through their services, with a master and a worker that answer at once; pushes and the answers
of peers through the readers of both ends.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz import pieces
from fuzz.harness import Fault, refusals
from fuzz.messages import changed_bytes
from tenfold.session.link_master import LinkMaster
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_core.errors import InternalError
from tenfold_kernels.resources.messages import encode
from tenfold_link.wire import calls, values
from tenfold_link.wire.calls import StepNames
from tenfold_protos.config_pb2 import RunMetadata
from tenfold_protos.master_pb2 import RunStepRequest
from tenfold_protos.step_stats_pb2 import StepStats
from tenfold_services.exchange import step_frames as frames
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, RunGraphResult
from tenfold_services.rpc.link_master_service import MasterEndpoint
from tenfold_services.rpc.link_worker_service import WorkerEndpoint

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_NAMES = StepNames("s", (), ("a:0", "b:0"), ())
_CLIENT = LinkMaster("grpc://localhost:1")
_PLAN = ExchangePlan("s", "g", ("in",), ("out", "two"), ("answer",), (), ("pushed",), ("brought",))


class _Link:
    """Takes what is sent, and lets nothing go."""

    closed, peer_role, peer_caller = False, Role.RUN, Caller(Role.RUN, "")

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}
        self.sent: list[tuple[int, bytes, Any]] = []

    def stage(self, buffer: Any) -> Any:
        return bytes(buffer)

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Any = ()) -> None:
        self.sent.append((method, header, buffers))

    def on_close(self, call: Any) -> None:
        pass


class _Master:
    """Answers every step with what it was fed."""

    def find_step(self, *names: Any) -> None:
        return None

    def check_caller(self, handle: str, caller: Caller) -> None:
        pass

    async def run_step(self, handle: str, feeds: Any, fetches: Any, targets: Any, options: Any, request: int) -> Any:
        del handle, targets, options, request
        fed = list(feeds.values()) or [np.float32(1)]
        return [fed[0]] * len(fetches), RunMetadata()


class _Worker:
    """Every graph is registered, and gives a number for each fetch."""

    task, workers = "/job:x/replica:0/task:0", None

    #: A program that takes and gives as much as anybody names.
    steps = SimpleNamespace(finish=lambda step: None)
    compiled = SimpleNamespace(transfers=SimpleNamespace(feeds=range(1 << 40), fetch_keys=range(1 << 40)))

    def program(self, session: str, graph: str) -> _Worker:
        return self

    def run_at_once(self, *arguments: Any) -> None:
        return None

    def pushed(self, step: int, key: str, value: Any, is_dead: bool) -> None:
        if not is_dead:
            np.asarray(value)

    def start_run(self, request: Any, ended: Any, *_: Any) -> None:
        ended(RunGraphResult({key: np.float32(2) for key in request.fetches}), None)

    @property
    def arrivals(self) -> Any:
        import contextlib

        return contextlib.nullcontext()


def one_input(data: bytes) -> None:
    if not data:
        return
    header, *buffers = pieces.split(data[1:]) or [b""]
    with refusals():
        _CALLS[data[0] % len(_CALLS)](header, buffers)


def _run_step(header: bytes, buffers: list[bytes]) -> None:
    _ended(MasterEndpoint(_Link(), _Master()).run_step(_Link(), header, buffers))  # type: ignore[arg-type]


def _run_graph(header: bytes, buffers: list[bytes]) -> None:
    endpoint = WorkerEndpoint(_Link(), _Worker())  # type: ignore[arg-type]
    endpoint.run_graph(_Link(), header, buffers)  # type: ignore[arg-type]


def _recv_tensor(header: bytes, buffers: list[bytes]) -> None:
    endpoint = WorkerEndpoint(_Link(), _Receiver())  # type: ignore[arg-type]
    _ended(endpoint.recv_tensor(_Link(), header, buffers))  # type: ignore[arg-type]


def _small_calls(header: bytes, buffers: list[bytes]) -> None:
    endpoint = WorkerEndpoint(_Link(), _Worker())  # type: ignore[arg-type]
    with refusals():
        endpoint.cleanup_graph(_Link(), header, buffers)  # type: ignore[arg-type]
    _ended(endpoint.producer(_Link(), header, buffers))  # type: ignore[arg-type]


def _push(header: bytes, buffers: list[bytes]) -> None:
    frames.read_push(header, buffers, _Worker().pushed)


def _answer(header: bytes, buffers: list[bytes]) -> None:
    frames.read_answer(_PLAN, (header, buffers), lambda key, value, is_dead: None)


def _step_answer(header: bytes, buffers: list[bytes]) -> None:
    """What a client makes of a server's answer, which may say that it does not know the step's number, always."""
    try:
        _CLIENT.run_over(_Answering(header, buffers), _NAMES, [], None, None)  # type: ignore[arg-type]
    except InternalError as error:
        if "is malformed" not in error.message:
            raise


def _values(header: bytes, buffers: list[bytes]) -> None:
    """What could be read can be written, and is read the same again."""
    reader, read = frames.reader(header, 0, buffers), []
    while reader.offset < len(header):
        read.append(reader.read())
    parts: list[bytes] = []
    out: list[Any] = []
    for value, is_dead in read:
        if is_dead:
            values.pack_dead(parts)
        else:
            values.pack_value(value, parts, out, encode)
    again = frames.reader(b"".join(parts), 0, [bytes(buffer) for buffer in out])
    for value, is_dead in read:
        other, dead = again.read()
        if dead != is_dead or np.shape(other) != np.shape(value):
            raise Fault("what was written is not what was read")


class _Answering:
    """A link whose other end has one answer."""

    def __init__(self, header: bytes, buffers: list[bytes]) -> None:
        self._answer = header, buffers

    def call(self, method: int, header: bytes, buffers: Any) -> Any:
        return self._answer


class _Receiver(_Worker):
    async def recv_tensor(self, step: int, key: str) -> Any:
        return np.zeros(3, np.float32), False


def _ended(work: Any) -> None:
    """Runs a coroutine that waits for nothing; an answer that is there already is one."""
    if not hasattr(work, "send"):
        return
    try:
        work.send(None)
    except StopIteration:
        return
    raise Fault("it waits, and there is nothing to wait for")


_CALLS = (_run_step, _run_graph, _push, _answer, _values, _recv_tensor, _small_calls, _step_answer)


def mutated(data: bytes, chance: random.Random) -> bytes:
    return (data[:1] or b"\0") + pieces.join(pieces.mutated(pieces.split(data[1:]), chance, changed_bytes))


def seeds() -> Iterator[bytes]:
    items = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(5000, np.uint8), np.array([b"a", b"bc"], object)]
    parts: list[bytes] = []
    buffers: list[Any] = []
    for item in items:
        values.pack_value(item, parts, buffers, encode)
    values.pack_dead(parts)
    yield b"\4" + pieces.join([b"".join(parts), *(bytes(buffer) for buffer in buffers)])

    names = RunStepRequest(session_handle="s", fetch=["out:0"], target=["t"])
    for feed in ("x:0", "y:0", "z:0"):
        names.feed.add(name=feed)
    message = names.SerializeToString()
    head = calls.RUN_STEP.pack(7, calls.HAS_NAMES, len(items), len(message)) + message
    yield b"\0" + pieces.join([head + b"".join(parts[:-1]), *(bytes(buffer) for buffer in buffers)])

    link = _Link()
    brought = [(0, np.float32(2), False)]
    _, header, buffers = frames.run_frame(link, _PLAN, 3, {"in": items[0]}, brought, DEFAULT_EXEC_OPTIONS)
    yield b"\1" + pieces.join([header, *(bytes(buffer) for buffer in buffers)])
    frames.push(link, 5, [("key;0;k", items[1], False), ("dead", None, True)])
    _, header, buffers = link.sent[-1]
    yield b"\2" + pieces.join([header, *(bytes(buffer) for buffer in buffers)])
    result = RunGraphResult({"out": items[0], "two": items[2]}, step_stats=StepStats())
    result.answered.append((0, items[0], False))
    header, buffers = frames.answer_frame(result, ("out", "two"), link)
    yield b"\3" + pieces.join([header, *(bytes(buffer) for buffer in buffers)])
    done = calls.RUN_STEP_ANSWER.pack(calls.STEP_DONE, 2, 0)
    two: list[bytes] = []
    for item in items[::2]:
        values.pack_value(item, two, [], encode)
    yield b"\7" + pieces.join([done + b"".join(two)])
    yield b"\7" + pieces.join([calls.RUN_STEP_ANSWER.pack(calls.UNKNOWN_NUMBER, 0, 0)])
    yield b"\5" + pieces.join([calls.STEP.pack(9) + b"a;0000000000000001;b;edge;0:0"])
    yield b"\6" + pieces.join([calls.STEP.pack(9) * 2])
