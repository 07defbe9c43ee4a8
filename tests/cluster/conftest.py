"""Clusters of real servers on loopback ports, all on the test's event loop, always stopped.

`pytest tests/cluster --path=PATH` runs them all on one way between processes: `link` (shared memory for every buffer),
`noshm`, `tcp` or `grpc`. Without it the environment's switches count (TENFOLD_LINK, TENFOLD_SHARED_MEMORY).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest

from support.link_ends import Ends
from tenfold_link.link_settings import LinkSettings
from tenfold_services.limits import DEFAULT_LIMITS, Limits
from tenfold_services.rpc.grpc_worker import GrpcWorker
from tenfold_services.rpc.link_worker import LinkWorker
from tenfold_services.server import TaskServer

#: The switches of each path.
PATHS = {
    "link": {"TENFOLD_LINK": "auto", "TENFOLD_SHARED_MEMORY": "auto", "TENFOLD_SHARED_MEMORY_THRESHOLD": "1"},
    "noshm": {"TENFOLD_LINK": "auto", "TENFOLD_SHARED_MEMORY": "off"},
    "tcp": {"TENFOLD_LINK": "tcp"},
    "grpc": {"TENFOLD_LINK": "off"},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--path", choices=sorted(PATHS), help="the way between processes that the cluster tests take")


def pytest_configure(config: pytest.Config) -> None:
    # children inherit the switches, so that the process tests take the same way
    os.environ.update(PATHS.get(config.getoption("--path", None) or "", {}))


class Cluster:
    """Started servers by (job, index). `servers["ps", 0]`."""

    def __init__(self, servers: dict[tuple[str, int], TaskServer]) -> None:
        self.servers = servers

    def __getitem__(self, task: tuple[str, int]) -> TaskServer:
        return self.servers[task]

    @property
    def addresses(self) -> dict[str, dict[int, str]]:
        result: dict[str, dict[int, str]] = {}
        for (job, index), server in self.servers.items():
            result.setdefault(job, {})[index] = f"localhost:{server.port}"
        return result


#: `await start_cluster(ps=1, worker=2)` starts so many tasks of each job.
StartCluster: TypeAlias = Callable[..., Awaitable[Cluster]]
#: `connect(server)` gives a worker reached by gRPC.
Connect: TypeAlias = Callable[[TaskServer], GrpcWorker]


@pytest.fixture
async def start_cluster() -> AsyncIterator[StartCluster]:
    """Starts a cluster: port 0 everywhere, then every server learns of every address."""
    async with AsyncExitStack() as stack:

        async def start(limits: Limits = DEFAULT_LIMITS, **jobs: int) -> Cluster:
            spec = {job: {index: "" for index in range(count)} for job, count in jobs.items()}
            servers = {
                (job, index): await stack.enter_async_context(TaskServer(spec, job, index, limits=limits))
                for job, tasks in spec.items()
                for index in tasks
            }
            cluster = Cluster(servers)
            for server in servers.values():
                server.update_cluster(cluster.addresses)
            return cluster

        yield start


@pytest.fixture
async def connect_link() -> AsyncIterator[Callable[[TaskServer], LinkWorker]]:
    """Links to servers, opened before they are given out, closed at the end."""
    async with AsyncExitStack() as stack:

        def open_worker(server: TaskServer, limits: Limits = DEFAULT_LIMITS) -> LinkWorker:
            worker = LinkWorker(
                server.task,
                f"localhost:{server.port}",
                limits,
                own=("/job:test/replica:0/task:0", 1),
                on_link=lambda link: {},
                settings=LinkSettings.from_environment(),
                deliver=lambda *_: None,
            )
            stack.push_async_callback(worker.close)
            return worker

        yield open_worker


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """gRPC connections to servers, closed at the end."""
    async with AsyncExitStack() as stack:

        def open_worker(server: TaskServer, limits: Limits = DEFAULT_LIMITS) -> GrpcWorker:
            worker = GrpcWorker(server.task, f"localhost:{server.port}", limits)
            stack.push_async_callback(worker.close)
            return worker

        yield open_worker


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    async with AsyncExitStack() as stack:
        yield Ends(stack)
