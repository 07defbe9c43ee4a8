"""The control service as a process: where it listens, what it starts and ends in which order, what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.certs import access
from tenfold_control_api import main
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.entry import Entry
from tenfold_control_api.main import (
    ControlServer,
    InsecureBindError,
    ListenError,
    answered_hosts,
    check_bind,
    listening_sockets,
    reachable,
    serve,
)
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.service_tokens import ServiceTokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

# -- sockets


def test_answers_leave_at_once() -> None:
    (listening,) = listening_sockets("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()) as client:
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert client.getpeername() == listening.getsockname()


def resolved(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """A name with these addresses."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def bindable(address: str) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
        return True


@pytest.mark.skipif(not bindable("127.0.0.2"), reason="this machine's loopback has one address")
def test_all_addresses_of_a_name_listen_on_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved(monkeypatch, "127.0.0.1", "127.0.0.2", "127.0.0.1")

    first, second = listening_sockets("both", 0)

    with first, second:
        port = first.getsockname()[1]
        assert (first.getsockname(), second.getsockname()) == (("127.0.0.1", port), ("127.0.0.2", port))
        assert all(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in (first, second))


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")
def test_every_address_is_one_of_both_families() -> None:
    (listening,) = listening_sockets("::", 0)
    port = listening.getsockname()[1]
    with listening:
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, port), 30), listening.accept()[0]:
                pass


def test_a_port_that_is_taken_says_by_whom_and_what_to_do() -> None:
    (listening,) = listening_sockets("127.0.0.1", 0)
    port = listening.getsockname()[1]

    with listening, pytest.raises(ListenError) as refused:
        listening_sockets("127.0.0.1", port)

    text = str(refused.value)
    assert text.startswith(f"the control service cannot listen on 127.0.0.1:{port}: address already in use by ")
    assert "End that process, or choose another port with --port (TENFOLD_HTTP_PORT); 0 takes a free one." in text


def test_an_address_of_another_machine_is_refused_and_nothing_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    def create(*arguments: Any, **options: Any) -> socket.socket:
        if made:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        made.append(real(*arguments, **options))
        return made[0]

    real = socket.create_server
    monkeypatch.setattr(socket, "create_server", create)
    resolved(monkeypatch, "127.0.0.1", "192.0.2.1")

    with pytest.raises(ListenError, match=r"cannot assign requested address\. Choose another port") as refused:
        listening_sockets("both", 0)

    assert "End that process" not in str(refused.value)
    assert [each.fileno() for each in made] == [-1]


@pytest.mark.parametrize(
    ("address", "dialled"),
    [
        ("http://0.0.0.0:80", "http://127.0.0.1:80"),
        ("https://[::]:80", "https://[::1]:80"),
        ("http://10.0.0.0:80", "http://10.0.0.0:80"),
    ],
)
def test_a_wildcard_is_dialled_at_loopback(address: str, dialled: str) -> None:
    assert reachable(address) == dialled


# -- who is accepted


@pytest.mark.parametrize(
    ("host", "guarded", "insecure", "refused"),
    [
        ("127.0.0.1", False, False, False),
        ("localhost", False, False, False),
        ("10.0.0.1", True, False, False),
        ("10.0.0.1", False, True, False),
        ("10.0.0.1", False, False, True),
        ("0.0.0.0", False, False, True),
        ("::", False, False, True),
    ],
)
def test_beyond_loopback_something_has_to_guard_it(host: str, guarded: bool, insecure: bool, refused: bool) -> None:
    with pytest.raises(InsecureBindError, match=f"listen on {host}") if refused else contextlib.nullcontext():
        check_bind(host, guarded, insecure)


def test_it_answers_to_the_names_that_are_allowed_and_to_its_own() -> None:
    machine = socket.gethostname().lower()

    assert answered_hosts("127.0.0.1", ("localhost", "127.0.0.1")) == ("localhost", "127.0.0.1")
    assert answered_hosts("127.0.0.1", ("Localhost",)) == ("localhost", "127.0.0.1")
    assert answered_hosts("0.0.0.0", ("localhost",)) == ("localhost", machine)
    assert answered_hosts("trainer.lan", ("localhost",)) == ("localhost", "trainer.lan", machine)
    assert answered_hosts("trainer.lan", None) is None


# -- the server


class FakeApp:
    """Answers everything with 204. `events` has what was done to it, in order."""

    def __init__(self, settings: Settings) -> None:
        self.events: list[Any] = []
        control = SimpleNamespace(
            settings=settings,
            end_runs=self._end_runs,
            serve_at=lambda address: self.events.append(("serves at", address)),
            begin_stop=lambda: self.events.append("waits end"),
        )
        entry = Entry(ServiceTokens(settings.access().tokens()), open_to_all=True, guarded=False)
        self.state = SimpleNamespace(control=control, entry=entry)
        self.router = SimpleNamespace(lifespan_context=self._lifespan)

    async def _end_runs(self) -> None:
        self.events.append("runs end")

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: FakeApp) -> AsyncIterator[None]:
        assert app is self
        self.events.append("database opens")
        yield
        self.events.append("database closes")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def server_of(settings: Settings, host: str = "127.0.0.1", port: int = 0) -> tuple[ControlServer, FakeApp]:
    """A server that is about to start up, as `serve` of uvicorn makes it."""
    app = FakeApp(settings)
    server = ControlServer(cast("Any", app), host=host, port=port, settings=settings)
    if not server.config.loaded:
        server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    server.on_started = lambda address: app.events.append(("started", address))
    return server, app


async def test_it_starts_and_stops_in_order() -> None:
    server, app = server_of(Settings(grace=0.2))

    await server.startup()
    assert server.address.startswith("http://127.0.0.1:")
    await server.on_tick(0)  # makes what each answer has
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.address.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = (await reader.read()).lower()
    writer.close()
    before = list(app.events)
    await server.shutdown()

    assert answer.startswith(b"http/1.1 204")
    assert b"server:" not in answer, "nobody need know what it is made with"
    assert before == ["database opens", ("serves at", server.address), ("started", server.address)]
    assert app.events[3:] == ["runs end", "waits end", "database closes"]
    with pytest.raises(OSError, match="onnect"):
        await asyncio.open_connection("127.0.0.1", int(server.address.rpartition(":")[2]))


async def test_supervisors_reach_it_where_it_is_said_to_be() -> None:
    server, app = server_of(Settings(advertise="http://outside:80"))
    server.on_started = None

    await server.startup()
    await server.shutdown()

    assert app.events[:2] == ["database opens", ("serves at", "http://outside:80")]


async def test_sockets_that_it_is_given_are_the_ones_it_uses() -> None:
    (own,) = listening_sockets("127.0.0.1", 0)
    server, _ = server_of(Settings(), port=1)

    await server.startup([own])
    port = own.getsockname()[1]
    await server.shutdown([own])

    assert server.address == f"http://127.0.0.1:{port}"


async def test_a_port_that_is_taken_closes_the_database() -> None:
    (own,) = listening_sockets("127.0.0.1", 0)
    with own:
        server, app = server_of(Settings(), port=own.getsockname()[1])
        with pytest.raises(ListenError):
            await server.startup()

    assert app.events == ["database opens", "database closes"]


@pytest.mark.parametrize(("grace", "seconds"), [(0.0, 1), (1.4, 1), (7.0, 7)])
def test_open_requests_get_the_grace_but_a_second_at_least(grace: float, seconds: int) -> None:
    server, _ = server_of(Settings(grace=grace))

    assert server.config.timeout_graceful_shutdown == seconds


def test_requests_are_logged_once() -> None:
    """By EdgeMiddleware; uvicorn has a log of its own."""
    server, _ = server_of(Settings())

    assert not server.config.access_log


async def test_with_a_certificate_it_speaks_tls_alone(tmp_path: Path) -> None:
    given = access(tmp_path, "control")
    settings = Settings(tls_cert=given.tls_cert, tls_key=given.tls_key, tls_ca=given.tls_ca)
    server, app = server_of(settings)
    trusted = given.credentials().certificates
    assert trusted is not None

    await server.startup()
    port = int(server.address.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted.client_context("http/1.1"))
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await server.shutdown()

    assert answer.startswith(b"HTTP/1.1 204")
    assert ("serves at", f"https://127.0.0.1:{port}") in app.events


# -- serve


class FakeServer:
    """Stands where ControlServer does; `fails` is raised in place of serving."""

    fails: BaseException | None = None
    starts = True
    made: list[FakeServer]

    def __init__(self, app: Any, **options: Any) -> None:
        self.app, self.options, self.started = app, options, False
        self.on_started: Callable[[str], None] | None = None
        self.made.append(self)

    async def serve(self) -> None:
        if self.fails is not None:
            raise self.fails
        self.started = self.starts


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was done to the process before it served; no server is real."""
    done: list[Any] = []
    monkeypatch.setattr(main, "raise_limit", lambda: done.append("open files"))
    monkeypatch.setattr(main.telemetry, "start", lambda name: done.append(name))
    monkeypatch.setattr(main.collector, "settle", lambda: done.append("collector"))
    monkeypatch.setattr(main, "create_app", lambda settings, factory: (settings, factory))
    monkeypatch.setattr(main, "ControlServer", FakeServer)
    monkeypatch.setattr(FakeServer, "made", [], raising=False)
    return done


def served(**options: Any) -> Settings:
    """The settings of the app that `serve` makes."""
    serve(**{"settings": Settings(), **options})
    made: Settings = FakeServer.made[-1].options["settings"]
    assert FakeServer.made[-1].app[0] is made
    return made


def test_a_process_is_prepared_and_tells_its_address(prepared: list[Any]) -> None:
    factory, told = object(), list[str]()

    code = serve("127.0.0.1", 0, settings=Settings(), master_factory=cast("Any", factory), announce=told.append)

    (server,) = FakeServer.made
    assert code == 0
    assert prepared == ["open files", "tenfold-control", "collector"]
    assert (server.app[1], server.options["host"], server.options["port"]) == (factory, "127.0.0.1", 0)
    assert server.on_started is not None
    server.on_started("http://x")
    assert told == ["http://x"]


def test_the_address_is_printed_where_nobody_else_wants_it(
    prepared: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unread(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    output = Unread()
    serve("127.0.0.1", 0, settings=Settings())
    monkeypatch.setattr("sys.stdout", output)
    (server,) = FakeServer.made
    assert server.on_started is not None

    server.on_started("http://x")

    assert output.flushed == "control service at http://x\n", "who waits for it reads a pipe"


def test_arguments_go_before_settings(prepared: list[Any]) -> None:
    base = Settings(database="base.db", token="of the settings", token_file="base tokens", models_folder="base models")

    kept = served(settings=base)
    given = served(
        settings=base, database="given.db", token="given", token_file="given tokens", models_folder="given models"
    )

    assert (kept.database, kept.token, kept.token_file) == ("base.db", None, "base tokens")
    assert (kept.models_folder, kept.allow_runs, kept.insecure) == ("base models", False, False)
    assert (given.database, given.token, given.token_file) == ("given.db", "given", "given tokens")
    assert given.models_folder == "given models"
    assert served(allow_runs=True).allow_runs


def test_without_settings_they_are_the_environments(prepared: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "from_environment", classmethod(lambda cls: Settings(heartbeat=0.75)))

    assert served(settings=None).heartbeat == 0.75
    assert served(settings=Settings(heartbeat=0.5)).heartbeat == 0.5


def test_it_answers_to_addresses_where_other_machines_reach_it(prepared: list[Any]) -> None:
    assert not served(host="127.0.0.1").answer_addresses
    assert served(host="127.0.0.1", settings=Settings(answer_addresses=True)).answer_addresses
    assert served(host="0.0.0.0", token="t").answer_addresses
    assert served(host="trainer.lan", token="t").allowed_hosts == answered_hosts(
        "trainer.lan", Settings().allowed_hosts
    )


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"host": "0.0.0.0"}, "refusing to listen on 0.0.0.0 without a token"),
        ({"host": "0.0.0.0", "insecure": True, "allow_runs": True}, "--allow-runs needs a token there"),
        ({"host": "0.0.0.0", "insecure": True}, None),
        ({"host": "0.0.0.0", "token": "t", "allow_runs": True}, None),
        ({"host": "0.0.0.0", "settings": Settings(tls_cert="c", tls_key="k"), "allow_runs": True}, None),
        ({"host": "127.0.0.1", "allow_runs": True}, None),
        ({"host": "127.0.0.1", "insecure": True, "allow_runs": True}, None),
    ],
)
def test_programs_are_started_for_nobody_who_only_reaches_it(
    options: dict[str, Any], refused: str | None, prepared: list[Any]
) -> None:
    with pytest.raises(InsecureBindError, match=refused) if refused else contextlib.nullcontext():
        served(**options)

    assert len(FakeServer.made) == (0 if refused else 1)


@pytest.mark.parametrize(
    ("insecure", "token", "warned"),
    [(True, None, True), (True, "t", False), (False, None, False), (False, "t", False)],
)
def test_that_everybody_is_let_in_is_said(
    insecure: bool, token: str | None, warned: bool, prepared: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    served(insecure=insecure, token=token)

    assert ("--insecure: anyone who reaches 127.0.0.1:8080 may run code" in caplog.text) is warned


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (DatabaseError("it is too new"), "tenfold control: the database 'x.db' cannot be used: it is too new\n"),
        (OSError("no space"), "tenfold control: the database 'x.db' cannot be used: no space\n"),
        (ListenError("the port is taken"), "Error: the port is taken\n"),
    ],
)
def test_a_service_that_cannot_start_says_why(
    failure: Exception,
    text: str,
    prepared: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(FakeServer, "fails", failure)

    assert serve("127.0.0.1", 0, "x.db", settings=Settings()) == 1
    assert capsys.readouterr().err == text


def test_an_interrupt_is_an_end_and_a_service_that_never_started_a_failure(
    prepared: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeServer, "starts", False)
    assert serve("127.0.0.1", 0, settings=Settings()) == 1

    monkeypatch.setattr(FakeServer, "fails", KeyboardInterrupt())
    assert serve("127.0.0.1", 0, settings=Settings()) == 1
