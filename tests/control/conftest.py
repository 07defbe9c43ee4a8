"""What the control service's tests share: a scripted master, a clock by hand, an app without a socket, a real uvicorn.

The scripted master stands where GrpcMaster stands; the steps that it runs are functions of the test. `api` reaches the
app through httpx's ASGI transport; `service` is uvicorn on a free port of loopback, started and stopped by events. Both
come with `database`: every test that uses them runs on SQLite and on PostgreSQL (some of them in `make test-thorough`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import httpx
import numpy as np
import pytest

from support.awaited import Awaited, EventLoop
from tenfold.control import AsyncControlClient, ControlClient
from tenfold_control_api import asgi, handlers
from tenfold_control_api.app import create_app
from tenfold_control_api.asgi import problem_body as asgi_problem_body
from tenfold_control_api.main import ControlServer
from tenfold_control_api.openapi import TYPES
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.store import ControlStore
from tenfold_core import errors
from tenfold_protos.config_pb2 import ConfigProto, RunMetadata, RunOptions

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tenfold_control_api.masters import MasterFactory, Registered
    from tenfold_control_api.problems import ApiError
    from tenfold_core.access.roles import Role
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef

Step = Callable[[Mapping[str, np.ndarray], Sequence[str], Sequence[str]], list[np.ndarray]]

#: What is different on PostgreSQL: these run there in `make test`, too. All others do in `make test-thorough`.
ON_BOTH = ("durability", "migrations", "replicas")

#: A test that waits longer than this for an event has failed.
PATIENCE = 20.0


def double(feeds: Mapping[str, np.ndarray], fetches: Sequence[str], targets: Sequence[str]) -> list[np.ndarray]:
    """The default step: each fetch is the first feed, doubled; without feeds it is 42."""
    value = next(iter(feeds.values()), np.asarray(21, np.int32))
    return [np.asarray(value + value) for _ in fetches]


@dataclass
class ScriptedMaster:
    """A MasterInterface that runs functions of the test, and notes what was asked of it."""

    step: Step = double
    refusal: errors.OpError | None = None
    sessions: dict[str, GraphDef] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    configs: list[ConfigProto] = field(default_factory=list)
    steps: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    given_up: bool = False

    def create_session(self, graph_def: GraphDef, config: ConfigProto, timeout: float | None) -> tuple[str, int]:
        if self.refusal is not None:
            raise self.refusal
        handle = f"{len(self.sessions) + 1:016x}"
        self.sessions[handle], self.versions[handle] = graph_def, 1
        self.configs.append(config)
        return handle, 1

    def extend_session(self, handle: str, graph_def: GraphDef, current_version: int, timeout: float | None) -> int:
        if current_version != self.versions[handle]:
            raise errors.AbortedError(None, None, f"version {current_version} is not {self.versions[handle]}")
        self.sessions[handle].MergeFrom(graph_def)
        self.versions[handle] += 1
        return self.versions[handle]

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        assert all(not value.flags.writeable for value in feeds.values())
        if handle not in self.sessions:
            raise errors.AbortedError(None, None, f"Session {handle} is not found.")
        self.steps.append((tuple(feeds), tuple(fetches), tuple(targets)))
        return self.step(feeds, fetches, targets), RunMetadata()

    def close_session(self, handle: str, timeout: float | None) -> None:
        self.closed.append(handle)
        self.sessions.pop(handle, None)

    def list_devices(self, handle: str, timeout: float | None) -> list[DeviceAttributes]:
        return []

    def reset(self, containers: Sequence[str], timeout: float | None) -> None:
        self.sessions.clear()

    def close(self) -> None:
        self.given_up = True


@dataclass
class Masters:
    """The factory: one ScriptedMaster a target, made on first use or put there by the test."""

    by_target: dict[str, ScriptedMaster] = field(default_factory=dict)

    def __call__(
        self, target: str, as_role: Role | None = None, known: Registered | None = None, /
    ) -> ScriptedMaster:
        return self.by_target.setdefault(target, ScriptedMaster())


class Gate:
    """A step that tells when it was entered and goes on when it is let: `master.step = gate`."""

    def __init__(self, step: Step = double) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()
        self._step = step

    def __call__(
        self, feeds: Mapping[str, np.ndarray], fetches: Sequence[str], targets: Sequence[str]
    ) -> list[np.ndarray]:
        self.entered.set()
        if not self.leave.wait(PATIENCE):
            raise errors.DeadlineExceededError(None, None, "the gate was never opened")
        return self._step(feeds, fetches, targets)

    async def wait_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, PATIENCE)


@functools.cache
def _problems_by_route() -> dict[tuple[str, str | None], list[str]]:
    """(method, path) → the problems that the route's description lists: the same for all apps."""
    paths = create_app(Settings(database="never-opened.db")).openapi()["paths"]
    return {(method, path): found[TYPES] for path, methods in paths.items() for method, found in methods.items()}


@pytest.fixture(autouse=True)
def documented(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test provokes: a route answers only with problems that its description lists."""
    breaches: list[str] = []

    def problem_body(scope: Any, error: ApiError) -> dict[str, Any]:
        body = asgi_problem_body(scope, error)
        asked = scope["method"].lower(), getattr(scope.get("route"), "path_format", None)
        if error.kind not in _problems_by_route().get(asked, [error.kind]):
            breaches.append(f"{asked}: {error.kind}")
        return body

    for module in (asgi, handlers):
        monkeypatch.setattr(module, "problem_body", problem_body)
    yield
    assert not breaches, "name these problems at their routes: problems(…)"


@pytest.fixture
def masters() -> Masters:
    return Masters()


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The name of an SQLite file that is not there yet."""
    return str(tmp_path / "control.db")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder, name = item.path.parent, item.path.stem.removeprefix("test_")
        # other folders' parameters may be anything, an array among them
        if folder != Path(__file__).parent or name in ON_BOTH:
            continue
        if "postgres" in getattr(getattr(item, "callspec", None), "params", {}).values():
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session")
def sqlite_with_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file as a service leaves it that has only started: making its tables takes longer than most tests."""
    path = tmp_path_factory.mktemp("database") / "control.db"

    async def start_once() -> None:
        store = ControlStore(str(path))
        await store.open()
        await store.close()

    asyncio.run(start_once())
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest) -> str:
    """A database without a table, once of each kind."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def database(empty_database: str, request: pytest.FixtureRequest) -> str:
    """The same with the service's tables, in which there is nothing."""
    if "://" not in empty_database:
        shutil.copyfile(request.getfixturevalue("sqlite_with_tables"), empty_database)
    return empty_database


@contextlib.asynccontextmanager
async def running_app(app: FastAPI, **client: Any) -> AsyncIterator[httpx.AsyncClient]:
    """The app's lifespan around a client that needs no socket."""
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", **client) as api:
            yield api


@pytest.fixture
async def api(database: str, masters: Masters) -> AsyncIterator[httpx.AsyncClient]:
    """A control service with default settings and scripted masters."""
    async with running_app(create_app(Settings(database=database), masters)) as client:
        yield client


class Service:
    """A real uvicorn in a thread."""

    def __init__(self, settings: Settings, master_factory: MasterFactory, port: int = 0) -> None:
        self.app = create_app(settings, master_factory)
        self._server = ControlServer(self.app, host="127.0.0.1", port=port, settings=settings)
        self._started = threading.Event()
        self._server.on_started = lambda _: self._started.set()
        self._thread = threading.Thread(target=self._run, name="uvicorn", daemon=True)
        self._failure: BaseException | None = None

    def _run(self) -> None:
        try:
            # Without uvicorn's signal handlers, which belong to a main thread.
            asyncio.run(self._server._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    @property
    def url(self) -> str:
        return self._server.address

    def start(self) -> Service:
        self._thread.start()
        assert self._started.wait(PATIENCE)
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture
def start_service(database: str, masters: Masters, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts services with given settings; all of them are stopped at the end."""
    running: list[Service] = []

    def start(master_factory: MasterFactory = masters, port: int = 0, **settings: Any) -> Service:
        settings = {"runs_folder": str(tmp_path / "runs"), **settings}
        service = Service(Settings(database=database, **settings), master_factory, port).start()
        running.append(service)
        return service

    yield start
    for service in running:
        service.stop()


@pytest.fixture
def service(start_service: Callable[..., Service]) -> Service:
    """A control service with quick heartbeats, and leases that no slow machine loses."""
    return start_service(heartbeat=0.1, lease_ttl=30.0)


@pytest.fixture
def control(service: Service) -> Iterator[ControlClient]:
    """The SDK against it."""
    with ControlClient(service.url) as client:
        yield client


@pytest.fixture(params=["blocking", "awaiting"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., ControlClient]]:
    """Makes a client of either kind: an AsyncControlClient's calls run on an event loop beside the test."""
    if request.param == "blocking":
        yield ControlClient
        return
    loop = EventLoop()
    yield lambda *args, **kwargs: cast("ControlClient", Awaited(AsyncControlClient(*args, **kwargs), loop))
    loop.stop()


@pytest.fixture
def client(service: Service, connect: Callable[..., ControlClient]) -> Iterator[ControlClient]:
    """The SDK of either kind against `service`."""
    with connect(service.url) as client:
        yield client


async def declare(api: httpx.AsyncClient, **jobs: int) -> None:
    answer = await api.put("/v1/clusters/default", json={"jobs": jobs})
    assert answer.is_success, answer.text


async def register(
    api: httpx.AsyncClient, job: str, index: int, address: str = "127.0.0.1:2222", incarnation: str = "a"
) -> dict[str, Any]:
    """Registers a task of cluster `default`: the answer's JSON."""
    answer = await api.put(
        f"/v1/clusters/default/tasks/{job}/{index}", json={"address": address, "incarnation": incarnation}
    )
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found
