"""Services over grpc.aio: who calls, what is refused, what is answered; gRPC's library is a fake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller, Gate
from tenfold_core.access.roles import Role
from tenfold_core.traffic import OTHERS
from tenfold_services.http2.handler import Failure
from tenfold_services.http2.http2_settings import DEFAULT_HTTP2_SETTINGS
from tenfold_services.rpc import aio_handlers as module
from tenfold_services.rpc.aio_handlers import AioService, serve
from tenfold_services.rpc.grpcio_port import Came

NEIGHBOUR = Caller(Role.RUN, "user 1000")
CI = Caller(Role.REGISTER, "token ci")


class AbortedCall(Exception):
    """What grpc.aio raises where a call is aborted."""


class FakeContext:
    def __init__(self, metadata: Any = ()) -> None:
        self._metadata = metadata
        self.aborted: Any = None

    def peer(self) -> str:
        return "unix:%2Ftmp%2Fx"

    def invocation_metadata(self) -> Any:
        return self._metadata

    def time_remaining(self) -> float:
        return 2.5

    async def abort(self, *given: Any) -> None:
        self.aborted = given
        raise AbortedCall


class FakeGate(Gate):
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.refused: errors.OpError | None = None

    def caller(self, authorization: str | None, connection: Caller) -> Caller:
        self.asked.append(("caller", authorization, connection))
        if authorization == "bad":
            raise errors.UnauthenticatedError(None, None, "unknown token")
        return CI if authorization else connection

    def refusal(self, role: Role, needed: Role, what: str) -> errors.OpError | None:
        self.asked.append(("refusal", role, needed, what))
        return self.refused


class Table:
    """One method, "/s/m", that ends as it is told."""

    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome
        self.begun: list[Any] = []

    def find(self, path: str) -> Any:
        return SimpleNamespace(needs=Role.RUN, action="do", begin=self.begin) if path == "/s/m" else None

    def begin(self, data: bytes, context: Any) -> Any:
        self.begun.append((data, context))
        return self._outcome


@pytest.fixture
def gate() -> FakeGate:
    return FakeGate()


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    noted: list[Any] = []
    monkeypatch.setattr(audit.refusals, "note", lambda *line, **more: noted.append((*line, more)))
    return noted


def method(table: Table, gate: FakeGate) -> Any:
    peers: list[str] = []

    def came(peer: str) -> Came:
        peers.append(peer)
        assert peers == ["unix:/tmp/x"] * len(peers)
        return Came(NEIGHBOUR, "ipv4:10.0.0.7:1")

    service = AioService(cast("Any", table), cast("Any", gate), came)
    return service.service(SimpleNamespace(method="/s/m")).unary_unary


async def later(outcome: Any) -> Any:
    return outcome


@pytest.mark.parametrize(
    "outcome",
    [b"abc", [b"a", memoryview(b"bc")], "later bytes", "later pieces"],
)
async def test_a_call_is_answered_and_counted(gate: FakeGate, outcome: Any) -> None:
    made = {"later bytes": lambda: later(b"abc"), "later pieces": lambda: later([b"ab", b"c"])}
    table = Table(made[outcome]() if isinstance(outcome, str) else outcome)
    sent, received = OTHERS.sent, OTHERS.received

    assert await method(table, gate)(b"request", FakeContext()) == b"abc"

    assert (OTHERS.sent - sent, OTHERS.received - received) == (3, 7)
    [(data, context)] = table.begun
    assert (data, context.peer(), context.caller(), context.time_remaining()) == (
        b"request",
        "ipv4:10.0.0.7:1",
        NEIGHBOUR,
        2.5,
    )
    assert gate.asked == [("caller", None, NEIGHBOUR), ("refusal", Role.RUN, Role.RUN, "s/m")]


@pytest.mark.parametrize("is_later", [False, True])
async def test_a_failure_is_the_calls_status(gate: FakeGate, is_later: bool) -> None:
    failure = Failure(5, "no", (("said", "1"),))
    context = FakeContext()
    with pytest.raises(AbortedCall):
        await method(Table(later(failure) if is_later else failure), gate)(b"", context)
    assert context.aborted == (grpc.StatusCode.NOT_FOUND, "no", (("said", "1"),))


async def test_a_refusal_is_a_status_and_written_down(gate: FakeGate, refusals: list[Any]) -> None:
    gate.refused = errors.permission_denied("not you")
    table, context = Table(b""), FakeContext([("authorization", "good")])
    with pytest.raises(AbortedCall):
        await method(table, gate)(b"", context)
    assert context.aborted == (grpc.StatusCode.PERMISSION_DENIED, "not you")
    assert refusals == [(CI, "do", "not you", {"address": "ipv4:10.0.0.7:1"})]
    assert table.begun == []


async def test_a_token_that_is_not_known_is_refused(gate: FakeGate, refusals: list[Any]) -> None:
    context = FakeContext([("authorization", "bad")])
    with pytest.raises(AbortedCall):
        await method(Table(b""), gate)(b"", context)
    assert context.aborted == (grpc.StatusCode.UNAUTHENTICATED, "unknown token")
    assert refusals[0][:3] == (NEIGHBOUR, "do", "unknown token")


async def test_a_caller_may_ask_as_a_lesser_role(gate: FakeGate) -> None:
    table = Table(b"")
    metadata = [("authorization", "good"), ("tenfold-role", "read")]
    await method(table, gate)(b"", FakeContext(metadata))
    assert gate.asked[-1] == ("refusal", Role.READ, Role.RUN, "s/m")
    assert table.begun[0][1].caller() == CI.lowered(Role.READ)


async def test_a_role_that_there_is_not_is_refused(gate: FakeGate, refusals: list[Any]) -> None:
    context = FakeContext([("tenfold-role", "king")])
    with pytest.raises(AbortedCall):
        await method(Table(b""), gate)(b"", context)
    code, text = context.aborted
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith("tenfold-role: 'king' is no role")


async def test_metadata_may_be_absent(gate: FakeGate) -> None:
    assert await method(Table(b"a"), gate)(b"", FakeContext(None)) == b"a"


def test_a_method_of_another_service_is_not_found(gate: FakeGate) -> None:
    service = AioService(cast("Any", Table(b"")), cast("Any", gate), cast("Any", None))
    assert service.service(SimpleNamespace(method="/other/m")) is None


async def test_services_are_served_behind_a_port_of_ours(monkeypatch: pytest.MonkeyPatch, gate: FakeGate) -> None:
    made: dict[str, Any] = {}

    class FakeServer:
        def add_generic_rpc_handlers(self, handlers: Any) -> None:
            made["handlers"] = handlers

    class FakePort:
        def __init__(self, *given: Any) -> None:
            made["port"] = given

        def came(self, peer: str) -> Came:
            return Came(NEIGHBOUR, peer)

        async def start(self, host: str, port: int) -> int:
            assert "handlers" in made
            return port + 1

    def server(**options: Any) -> FakeServer:
        made["server"] = options
        return FakeServer()

    monkeypatch.setattr(module.aio, "server", server)
    monkeypatch.setattr(module, "GrpcioPort", FakePort)
    table = Table(b"")

    behind, port = await serve([cast("Any", table)], "host", 6, 77, DEFAULT_HTTP2_SETTINGS, cast("Any", gate))

    assert (type(behind), port) == (FakePort, 7)
    assert made["port"][1:] == (gate, DEFAULT_HTTP2_SETTINGS)
    [handler] = made["handlers"]
    assert (handler._table, handler._gate, handler._came) == (table, gate, behind.came)
    assert made["server"]["maximum_concurrent_rpcs"] == 77
    assert dict(made["server"]["options"]) == {
        "grpc.max_receive_message_length": -1,
        "grpc.max_send_message_length": -1,
        "grpc.http2.min_ping_interval_without_data_ms": 1000,
        "grpc.http2.max_ping_strikes": 0,
    }
