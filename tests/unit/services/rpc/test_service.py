"""A service from a table: what is read, asked, answered and written down around each method; no transport."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from support.fake_calls import CALLER, FakeCall, ask, ask_bytes
from tenfold_core import errors, graph_wire, message_parts, protocol, telemetry
from tenfold_core.access import audit
from tenfold_core.access.roles import Role
from tenfold_protos import health_pb2, master_pb2, master_service_pb2, placement_pb2, worker_pb2, worker_service_pb2
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_services.http2.handler import Failure
from tenfold_services.rpc.service import Audited, Parser, Served, TableService, of_session, plain

WORKER = worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"]
MASTER = master_service_pb2.DESCRIPTOR.services_by_name["MasterService"]
PLACEMENT = placement_pb2.DESCRIPTOR.services_by_name["PlacementService"]
HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]
CLEANUP, GRAPH = "/tensorflow.WorkerService/CleanupGraph", "/tensorflow.WorkerService/RegisterGraph"
SAID = (("tenfold-said", "1"),)


def where() -> str:
    return "/job:ps/task:0 at host:1"


def service(**methods: Any) -> TableService:
    return TableService(WORKER, methods, where, needs=Role.REGISTER)


async def nothing(request: Any, context: Any) -> worker_pb2.CleanupGraphResponse:
    return worker_pb2.CleanupGraphResponse()


def raising(error: Exception) -> Served:
    async def method(request: Any, context: Any) -> Any:
        raise error

    return Served(method)


class AuditLog:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[Any] = []
        self.refused: list[Any] = []
        monkeypatch.setattr(audit, "done", lambda *line, **more: self.done.append((*line, more)))
        monkeypatch.setattr(audit.refusals, "note", lambda *line, **more: self.refused.append((*line, more)))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> AuditLog:
    return AuditLog(monkeypatch)


async def test_a_method_that_is_one_call_gives_a_field_of_its_response() -> None:
    async def register(session: str, graph: GraphDef) -> str:
        return f"{session}{len(graph.node)}"

    call = plain(lambda r: register(r.session_handle, r.graph_def), worker_pb2.RegisterGraphResponse, "graph_handle")
    request = worker_pb2.RegisterGraphRequest(session_handle="s", graph_def=GraphDef())

    answer = await ask(service(RegisterGraph=Served(call)), GRAPH, request, worker_pb2.RegisterGraphResponse)

    assert answer.graph_handle == "s0"


async def test_one_that_gives_nothing_has_an_empty_response() -> None:
    seen: list[int] = []

    async def cleanup(step_id: int) -> None:
        seen.append(step_id)

    table = service(CleanupGraph=Served(plain(lambda r: cleanup(r.step_id), worker_pb2.CleanupGraphResponse)))

    assert await ask_bytes(table, CLEANUP, worker_pb2.CleanupGraphRequest(step_id=7).SerializeToString()) == b""
    assert seen == [7]


def test_handlers_have_the_role_of_their_row_or_the_services() -> None:
    less, audited = Served(nothing, Role.READ), Served(nothing, audited=Audited("clean up"))
    table = service(CleanupGraph=audited, CleanupAll=less, Tracing="not here")
    handlers = table.handlers
    everything = {f"/tensorflow.WorkerService/{method.name}" for method in WORKER.methods}

    assert handlers.keys() == everything
    needs = [handlers[f"/tensorflow.WorkerService/{name}"].needs for name in ("CleanupGraph", "CleanupAll", "Tracing")]
    assert needs == [Role.REGISTER, Role.READ, Role.READ]
    assert handlers[CLEANUP].action == "clean up"
    assert handlers["/tensorflow.WorkerService/CleanupAll"].action == "CleanupAll"
    assert handlers["/tensorflow.WorkerService/Tracing"].action == "Tracing"
    assert [handler.aligned for handler in handlers.values()] == [None] * len(handlers)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Tracing", "WorkerService.Tracing is not served by /job:ps/task:0 at host:1: not here."),
        ("RecvBuf", "WorkerService.RecvBuf is not served by /job:ps/task:0 at host:1: not implemented."),
        ("Nonesuch", "WorkerService.Nonesuch is not served by /job:ps/task:0 at host:1: there is no such method."),
    ],
)
async def test_what_is_not_served_says_why(path: str, text: str) -> None:
    table = service(Tracing="not here")
    assert await ask_bytes(table, f"/tensorflow.WorkerService/{path}", b"") == Failure(12, text)


async def test_the_package_of_a_service_that_is_not_tensorflows_is_named() -> None:
    table = TableService(HEALTH, {}, where, "grpc.health.v1", needs=Role.READ)
    failure = await ask_bytes(table, "/grpc.health.v1.Health/Watch", b"")
    assert failure.text.startswith("grpc.health.v1.Health.Watch is not served by")


def test_paths_of_other_services_are_not_found() -> None:
    assert service().find("/tensorflow.MasterService/RunStep") is None
    assert service().find("/tensorflow.WorkerService/RunGraph") is not None


@pytest.mark.parametrize("row", [Served(nothing), "refused"])
def test_a_row_without_a_method_is_a_fault_of_the_table(row: Any) -> None:
    with pytest.raises(errors.InternalError, match=r"WorkerService has no methods \['Typo'\]"):
        service(Typo=row)


async def test_what_is_no_message_is_an_invalid_argument() -> None:
    failure = await ask_bytes(service(CleanupGraph=Served(nothing)), CLEANUP, b"\xff")
    assert (failure.code, failure.metadata) == (3, SAID)
    assert failure.text.startswith("CleanupGraph: the request is no valid CleanupGraphRequest message: ")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (errors.not_found("no such step"), 5, "no such step"),
        (MemoryError("77 bytes"), 8, "CleanupGraph at /job:ps/task:0 at host:1: OOM: 77 bytes"),
        (MemoryError(), 8, "CleanupGraph at /job:ps/task:0 at host:1: OOM: the memory is used up"),
        (KeyError("k"), 13, "CleanupGraph at /job:ps/task:0 at host:1: KeyError: 'k'"),
        (errors.from_code(4711, "odd"), 2, "odd"),
        (errors.OpError(None, None, "fine?", 0), 2, "fine?"),
    ],
)
async def test_an_error_becomes_a_failure(
    error: Exception, code: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    failure = await ask_bytes(service(CleanupGraph=raising(error)), CLEANUP, b"")

    assert failure == Failure(code, text, SAID)
    logged = [record.getMessage() for record in caplog.records]
    assert logged == (["CleanupGraph at /job:ps/task:0 at host:1 failed"] if isinstance(error, KeyError) else [])
    assert error.__traceback__ is None or all(not frame.f_locals for frame in _frames(error))


def _frames(error: BaseException) -> list[Any]:
    trace, found = error.__traceback__, []
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return [frame for frame in found if frame.f_code.co_name == "method"]


async def test_an_answer_that_is_no_message_can_be_sent_is_exhausted() -> None:
    class Huge:
        def SerializeToString(self) -> bytes:
            raise ValueError("more than 2 GiB")

    async def method(request: Any, context: Any) -> Any:
        return Huge()

    failure = await ask_bytes(service(CleanupGraph=Served(method)), CLEANUP, b"")

    assert failure.code == 8
    assert failure.text == "CleanupGraph: the answer cannot be sent, a message takes 2 GiB at most: more than 2 GiB"


async def test_pieces_are_sent_as_they_are() -> None:
    pieces = [b"a", memoryview(b"b")]

    async def method(request: Any, context: Any) -> Any:
        return pieces

    assert await ask_bytes(service(CleanupGraph=Served(method)), CLEANUP, b"") is pieces


# -- before the call ---------------------------------------------------------------------------------------------------


async def test_a_request_that_needs_no_waiting_is_answered_at_once() -> None:
    quick: list[Any] = [worker_pb2.CleanupGraphResponse(), None]
    waited: list[Any] = []

    async def method(request: Any, context: Any) -> Any:
        waited.append(request.step_id)
        return worker_pb2.CleanupGraphResponse()

    table = service(CleanupGraph=Served(method, at_once=lambda request: quick.pop(0)))
    handler = table.find(CLEANUP)
    assert handler is not None

    assert handler.begin(b"", FakeCall()) == b""
    assert waited == []
    outcome: Any = handler.begin(worker_pb2.CleanupGraphRequest(step_id=3).SerializeToString(), FakeCall())
    assert await outcome == b""
    assert waited == [3]


async def test_what_fails_at_once_is_a_failure() -> None:
    def at_once(request: Any) -> Any:
        raise errors.aborted("no")

    assert await ask_bytes(service(CleanupGraph=Served(nothing, at_once=at_once)), CLEANUP, b"") == Failure(
        10, "no", SAID
    )


async def test_a_check_comes_first_and_a_refusal_is_written_down(log: AuditLog) -> None:
    asked: list[Any] = []

    def check(request: Any, caller: Any) -> None:
        asked.append((request.step_id, caller))
        if request.step_id == 2:
            raise errors.permission_denied("not yours")
        if request.step_id == 3:
            raise errors.not_found("unknown")

    def at_once(request: Any) -> Any:
        assert request.step_id == 1
        return worker_pb2.CleanupGraphResponse()

    row = Served(nothing, check=check, at_once=at_once, audited=Audited("clean up"))
    requests = [worker_pb2.CleanupGraphRequest(step_id=number).SerializeToString() for number in (1, 2, 3)]
    results = [await ask_bytes(service(CleanupGraph=row), CLEANUP, request) for request in requests]

    assert results == [b"", Failure(7, "not yours", SAID), Failure(5, "unknown", SAID)]
    assert asked == [(1, CALLER), (2, CALLER), (3, CALLER)]
    assert log.refused == [(CALLER, "clean up", "not yours", {"address": "ipv4:127.0.0.1:1234"})]


# -- the audit log -----------------------------------------------------------------------------------------------------


async def test_the_audit_log_tells_what_came_of_a_call(log: AuditLog) -> None:
    audited = Audited("clean up", lambda request, answer: {"step": request.step_id, "answered": answer is not None})
    request = worker_pb2.CleanupGraphRequest(step_id=3).SerializeToString()

    assert await ask_bytes(service(CleanupGraph=Served(nothing, audited=audited)), CLEANUP, request) == b""
    failing = raising(errors.not_found("no step"))._replace(audited=audited)
    failure = await ask_bytes(service(CleanupGraph=failing), CLEANUP, request)

    assert failure == Failure(5, "no step", SAID)
    address = "ipv4:127.0.0.1:1234"
    assert log.done == [
        (CALLER, "clean up", "done", {"address": address, "step": 3, "answered": True}),
        (CALLER, "clean up", "failed", {"address": address, "step": 3, "answered": False, "error": "no step"}),
    ]


async def test_a_caller_that_gives_up_stands_in_the_audit_log(log: AuditLog) -> None:
    began = asyncio.Event()

    async def method(request: Any, context: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    call = asyncio.ensure_future(
        ask_bytes(service(CleanupGraph=Served(method, audited=Audited("clean up"))), CLEANUP, b"")
    )
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert [line[1:3] for line in log.done] == [("clean up", "given up by its caller")]


async def test_an_audited_answer_that_cannot_be_sent_has_failed(log: AuditLog) -> None:
    class Huge:
        def SerializeToString(self) -> bytes:
            raise ValueError

    async def method(request: Any, context: Any) -> Any:
        return Huge()

    audited = Audited("clean up", lambda request, answer: {})
    await ask_bytes(service(CleanupGraph=Served(method, audited=audited)), CLEANUP, b"")

    assert log.done[0][2] == "failed"


@pytest.mark.parametrize(
    ("request_", "answer", "handle"),
    [
        (master_pb2.CloseSessionRequest(session_handle="a"), None, "a"),
        (master_pb2.CreateSessionRequest(), master_pb2.CreateSessionResponse(session_handle="b"), "b"),
        (master_pb2.CreateSessionRequest(), None, ""),
    ],
)
def test_a_session_is_that_of_the_request_or_else_of_the_answer(request_: Any, answer: Any, handle: str) -> None:
    assert of_session(request_, answer) == {"session": handle}
    assert Audited("close session").more(request_, answer) == {"session": handle}


# -- large requests ----------------------------------------------------------------------------------------------------


def graph_request(nodes: int, size: int) -> bytes:
    graph = GraphDef()
    for index in range(nodes):
        graph.node.add(name=f"n{index}")
    graph.node[0].op = "x" * size
    return worker_pb2.RegisterGraphRequest(graph_def=graph).SerializeToString()


@pytest.mark.parametrize("more", [-1, 0])
async def test_a_request_from_256_kib_on_is_read_in_a_thread(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    apart: list[int] = []
    real = graph_wire.apart
    monkeypatch.setattr(graph_wire, "apart", lambda work, *given: (apart.append(len(given[0])), real(work, *given))[1])
    empty = len(worker_pb2.CleanupAllRequest(container=["x" * 200_000]).SerializeToString()) - 200_000
    request = worker_pb2.CleanupAllRequest(container=["x" * (graph_wire.LARGE + more - empty)]).SerializeToString()
    assert len(request) == graph_wire.LARGE + more
    seen: list[int] = []

    async def method(request: Any, context: Any) -> Any:
        seen.append(len(request.container[0]))
        return worker_pb2.CleanupAllResponse()

    table = service(CleanupAll=Served(method))
    assert await ask_bytes(table, "/tensorflow.WorkerService/CleanupAll", request) == b""
    assert seen == [graph_wire.LARGE + more - empty]
    assert apart == ([len(request)] if more == 0 else [])


@pytest.mark.parametrize(("graphs", "fails"), [(2, False), (1, True), (None, False)])
async def test_a_large_graph_has_a_bound(graphs: int | None, fails: bool) -> None:
    async def method(request: Any, context: Any) -> Any:
        return worker_pb2.RegisterGraphResponse(graph_handle=str(len(request.graph_def.node)))

    table = TableService(WORKER, {"RegisterGraph": Served(method)}, where, graphs=graphs, needs=Role.RUN)
    outcome = await ask_bytes(table, GRAPH, graph_request(2, graph_wire.LARGE))
    if fails:
        assert outcome.code == 8
        assert outcome.text.startswith("RegisterGraph at /job:ps/task:0 at host:1: ")
        assert outcome.text.endswith("; TENFOLD_MASTER_NODES sets another limit.")
    else:
        assert worker_pb2.RegisterGraphResponse.FromString(outcome).graph_handle == "2"


async def test_a_large_request_that_is_no_message_is_refused() -> None:
    failure = await ask_bytes(service(RegisterGraph=Served(nothing)), GRAPH, b"\xff" * graph_wire.LARGE)
    assert failure.text.startswith("RegisterGraph: the request is no valid RegisterGraphRequest message: ")


async def test_a_large_request_with_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any) -> Any:
        raise message_parts.TooLargeError("too many parts")

    monkeypatch.setattr(message_parts, "parse", too_large)
    request = worker_pb2.CleanupAllRequest(container=["x" * graph_wire.LARGE]).SerializeToString()
    # which holds no graph, so that their bound does not count
    table = TableService(WORKER, {"CleanupAll": Served(nothing)}, where, graphs=1, needs=Role.RUN)
    failure = await ask_bytes(table, "/tensorflow.WorkerService/CleanupAll", request)
    assert failure == Failure(8, "CleanupAll at /job:ps/task:0 at host:1: too many parts.", SAID)


async def test_a_large_request_is_checked_and_answered_at_once_too() -> None:
    row = Served(nothing, at_once=lambda request: worker_pb2.CleanupAllResponse())
    request = worker_pb2.CleanupAllRequest(container=["x" * graph_wire.LARGE]).SerializeToString()
    assert await ask_bytes(service(CleanupAll=row), "/tensorflow.WorkerService/CleanupAll", request) == b""


@pytest.mark.parametrize("apart", [False, True])
async def test_a_parser_of_its_own_reads_a_request(apart: bool) -> None:
    def parse(data: Any) -> Any:
        if apart:
            raise graph_wire.ReadApartError
        return ("here", len(data))

    def aligned(data: memoryview) -> int:
        return 7

    seen: list[Any] = []

    async def method(request: Any, context: Any) -> Any:
        seen.append(request)
        return master_pb2.RunStepResponse()

    parser = Parser(parse, lambda data: ("apart", len(data)), aligned)
    table = TableService(MASTER, {"RunStep": Served(method, parser=parser)}, where, needs=Role.RUN)
    handler = table.find("/tensorflow.MasterService/RunStep")
    assert handler is not None
    assert handler.aligned is aligned
    large = b"x" * graph_wire.LARGE

    assert await ask_bytes(table, "/tensorflow.MasterService/RunStep", large) == b""
    assert seen == [("apart" if apart else "here", len(large))]


@pytest.mark.parametrize(("error", "code"), [(DecodeError("cut"), 3), (errors.not_found("x"), 5)])
async def test_what_a_parser_raises_is_a_failure(error: Exception, code: int) -> None:
    def parse(data: Any) -> Any:
        raise error

    def apart(data: Any) -> Any:
        raise graph_wire.ReadApartError

    for parser in (Parser(parse, parse), Parser(apart, parse)):
        table = TableService(MASTER, {"RunStep": Served(nothing, parser=parser)}, where, needs=Role.RUN)
        assert (await ask_bytes(table, "/tensorflow.MasterService/RunStep", b"")).code == code


# -- Tenfold's own -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "code"), [(None, None), ("1-1", None), ("7-9", 9), ("nonsense", 3), ("1-7; release=9.9.9", None)]
)
async def test_a_method_of_our_own_needs_a_version_in_common(header: str | None, code: int | None) -> None:
    async def placement(request: Any, context: Any) -> Any:
        return placement_pb2.GetPlacementResponse()

    table = TableService(PLACEMENT, {"GetPlacement": Served(placement)}, where, "tenfold", needs=Role.READ)
    metadata = [("other", "x")] if header is None else [("other", "x"), (protocol.HEADER, header)]
    call = FakeCall(metadata=metadata)

    outcome = await ask_bytes(table, "/tenfold.PlacementService/GetPlacement", b"", call)

    if code is None:
        assert outcome == b""
        assert call.trailing == ((protocol.HEADER, protocol.calls().text()),)
    else:
        assert outcome.code == code
        assert call.trailing is None
    if code == 9:
        assert "who calls GetPlacement at /job:ps/task:0 at host:1" in outcome.text


async def test_metadata_may_be_absent() -> None:
    table = TableService(PLACEMENT, {"GetPlacement": Served(nothing)}, where, "tenfold", needs=Role.READ)
    assert await ask_bytes(table, "/tenfold.PlacementService/GetPlacement", b"", FakeCall(metadata=None)) == b""


async def test_a_call_that_brings_a_trace_goes_on_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    below: list[Any] = []

    def run_below(carrier: Any, call: Any, *given: Any) -> Any:
        below.append(carrier)
        return call(*given)

    monkeypatch.setattr(telemetry, "run_below", run_below)
    traced = FakeCall(metadata=[(telemetry.TRACEPARENT, "00-1-2-01"), ("x", "y")])
    ask_once = partial(ask_bytes, service(CleanupGraph=Served(nothing)), CLEANUP, b"")

    await ask_once(traced)
    assert below == []
    monkeypatch.setattr(telemetry, "tracer", object())
    await ask_once(traced)
    await ask_once(FakeCall())

    assert below == [{telemetry.TRACEPARENT: "00-1-2-01", "x": "y"}]
