"""A task's port without sockets: what it serves, what serves it, and a port that cannot be had."""

from __future__ import annotations

import errno
import inspect
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_core import errors
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.calls import LinkCall
from tenfold_protos.why_pb2 import TaskAnswer
from tenfold_services import task_port as module
from tenfold_services.http2.http2_settings import DEFAULT_HTTP2_SETTINGS
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.task_port import TaskPort, endpoints

TASK = "/job:ps/replica:0/task:0"
IN_USE = OSError(errno.EADDRINUSE, "Address already in use")


class Fakes:
    """Stands in for servers and links; `log` has what they did, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[Any] = []
        self.failure: Exception | None = None
        self.link_failure: Exception | None = None
        self.services: dict[str, Any] = {}
        fakes = self

        class Server:
            def __init__(self, find: Any, *given: Any) -> None:
                fakes.find = find
                fakes.log.append(("server", *given))

            async def start(self, host: str, port: int) -> int:
                fakes.log.append(("start", host, port))
                if fakes.failure is not None:
                    raise fakes.failure
                return 4711

            async def stop(self, grace: Any) -> None:
                fakes.log.append(("stop", grace))

        class Links:
            def __init__(self, task: str, methods: Any, settings: Any, host: str, **more: Any) -> None:
                fakes.log.append(("links", task, methods, settings, host, more))

            async def start(self) -> None:
                fakes.log.append("links start")
                if fakes.link_failure is not None:
                    raise fakes.link_failure

            async def stop(self, reason: str) -> None:
                fakes.log.append(("links stop", reason))

        async def serve(*given: Any) -> Any:
            fakes.log.append(("serve", *given))
            return Server(None), 4712

        self.find: Any = None
        monkeypatch.setattr("tenfold_services.http2.server.Http2Server", Server)
        monkeypatch.setattr("tenfold_link.aio.listener.LinkListener", Links)
        monkeypatch.setattr("tenfold_services.rpc.aio_handlers.serve", serve)
        monkeypatch.setattr(module, "endpoints", lambda *given: ("endpoints", *given))
        rpc = "tenfold_services.rpc"
        for path in (
            f"{rpc}.master_service.master_service",
            f"{rpc}.worker_service.worker_service",
            f"{rpc}.own_services.link_service",
            f"{rpc}.own_services.peer_service",
            f"{rpc}.own_services.placement_service",
            f"{rpc}.own_services.health_service",
            f"{rpc}.examine_service.examine_service",
        ):
            name = path.rpartition(".")[2]
            monkeypatch.setattr(path, lambda *given, name=name: self.service(name, given))

    def service(self, name: str, given: Any) -> Any:
        self.services[name] = given
        return SimpleNamespace(name=name, find=lambda path: name if path == name else None)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    return Fakes(monkeypatch)


CREDENTIALS: Any = SimpleNamespace(certificates="certificates")
NO_CERTIFICATES: Any = SimpleNamespace(certificates=None)
MASTER: Any = SimpleNamespace(other_tasks=dict)
WORKER: Any = SimpleNamespace(incarnation=5)
GATE: Any = "gate"


def port(credentials: Any = CREDENTIALS, transport: Any = "http2", link: Any = DEFAULT_LINK_SETTINGS) -> TaskPort:
    return TaskPort(TASK, "[::1]", 0, DEFAULT_LIMITS, transport, DEFAULT_HTTP2_SETTINGS, link, GATE, credentials)


def test_what_comes_with_opening_is_not_given() -> None:
    given = ["task", "host", "port", "limits", "transport", "http2", "link_settings", "gate", "credentials"]
    assert list(inspect.signature(TaskPort).parameters) == given


def not_ready() -> str:
    return ""


def waits(handle: str) -> list[str]:
    return []


def why() -> TaskAnswer:
    return TaskAnswer()


FINISHED: Any = "finished"


async def opened(made: TaskPort) -> None:
    await made.open(MASTER, WORKER, FINISHED, not_ready, waits, why)


async def test_a_port_serves_all_of_a_task(fakes: Fakes) -> None:
    made = port()
    assert not made.is_open

    await opened(made)

    assert (made.is_open, made.port) == (True, 4711)
    assert fakes.log == [
        (
            "links",
            TASK,
            ("endpoints", MASTER, WORKER),
            DEFAULT_LINK_SETTINGS,
            "::1",
            {"certificates": "certificates"},
        ),
        ("server", DEFAULT_HTTP2_SETTINGS, GATE, "certificates"),
        ("start", "[::1]", 0),
        "links start",
    ]
    where = made._where
    assert where() == f"{TASK} at [::1]:4711"
    assert fakes.services == {
        "master_service": (MASTER, TASK, where),
        "worker_service": (WORKER, where),
        "link_service": (made.links, where),
        "peer_service": (FINISHED, 5, where),
        "placement_service": (MASTER, where),
        "examine_service": (CREDENTIALS, MASTER.other_tasks, where, DEFAULT_LINK_SETTINGS, waits, why),
        "health_service": (not_ready, where),
    }
    assert [service.name for service in cast("Any", made.services)] == list(fakes.services)
    assert [fakes.find(name) for name in ("health_service", "none")] == ["health_service", None]


async def test_closing_ends_links_then_calls(fakes: Fakes) -> None:
    made = port()
    await made.close_links("why")
    await made.close()
    assert fakes.log == []
    await opened(made)
    fakes.log.clear()
    await made.close_links("why")
    await made.close()
    assert fakes.log == [("links stop", "why"), ("stop", 0.1)]
    assert made.is_open


async def test_grpcs_own_library_serves_where_it_is_asked_for(fakes: Fakes) -> None:
    made = port(NO_CERTIFICATES, "grpcio")
    await opened(made)
    assert made.port == 4712
    served = ("serve", made.services, "[::1]", 0, DEFAULT_LIMITS.concurrent_rpcs, DEFAULT_HTTP2_SETTINGS, GATE)
    assert served in fakes.log


async def test_it_does_not_serve_tls(fakes: Fakes) -> None:
    text = "TENFOLD_GRPC=grpcio does not serve TLS; leave TENFOLD_TLS_CERT or it out"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        await opened(port(CREDENTIALS, "grpcio"))


@pytest.mark.parametrize("in_use", [True, False])
async def test_a_port_that_cannot_be_had_says_why(fakes: Fakes, monkeypatch: pytest.MonkeyPatch, in_use: bool) -> None:
    monkeypatch.setattr(module, "taken", lambda error, port: f"{error.strerror} of {port}")
    fakes.failure = IN_USE if in_use else OSError(errno.EACCES, "Permission denied")
    made = port()
    with pytest.raises(errors.UnknownError) as raised:
        await opened(made)
    hint = " Another port: in the cluster spec, or where this task only listens (`tenfold task --bind`)."
    assert raised.value.message == (
        f"Could not start gRPC server: {TASK} cannot listen on [::1]:0: {fakes.failure.strerror} of 0."
        + (hint if in_use else "")
    )
    assert not made.is_open
    assert made.links is None


OTHER_PORT = (
    " Another port: `tenfold task --link-port` (TENFOLD_LINK_PORT), where 0 takes a free one; each task of a machine "
    "needs its own."
)


@pytest.mark.parametrize(
    ("link_port", "why"), [(4711, "it serves gRPC there itself"), (4712, "Address already in use of 4712")]
)
async def test_a_port_for_links_that_cannot_be_had_closes_the_other(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch, link_port: int, why: str
) -> None:
    monkeypatch.setattr(module, "taken", lambda error, port: f"{error.strerror} of {port}")
    fakes.link_failure = IN_USE
    made = port(link=replace(DEFAULT_LINK_SETTINGS, port=link_port))
    with pytest.raises(errors.UnknownError) as raised:
        await opened(made)
    assert raised.value.message == f"{TASK} cannot listen for links on [::1]:{link_port}: {why}.{OTHER_PORT}"
    assert fakes.log[-1] == ("stop", 0)
    assert ("links start" in fakes.log) == (link_port == 4712)
    assert not made.is_open
    assert made.links is None


async def test_without_links_their_port_does_not_matter(fakes: Fakes) -> None:
    made = port(link=replace(DEFAULT_LINK_SETTINGS, port=4711, mode="off"))
    await opened(made)
    assert made.is_open


def test_an_end_of_a_link_serves_sessions_and_workers() -> None:
    methods = endpoints(MASTER, WORKER)(cast("Any", None))
    assert LinkCall.RUN_STEP in methods
    assert LinkCall.RUN_GRAPH in methods
    assert len(methods) == 7
