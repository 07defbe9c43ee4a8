"""What a killed task knew, its next life asks for: real servers that are taken away without an end, and come back.

worker:1 finishes ─► ps:0, worker:0 know   ps:0 dies   ps:0 ◄─ asks ── worker:0 tells   worker:0 dies, asks ps:0
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from support.task_processes import free_addresses, task_name
from tenfold_core import errors
from tenfold_protos import graph_pb2
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PS, CHIEF, SECOND = ("ps", 0), ("worker", 0), ("worker", 1)
#: Seconds for anything to happen that should, and for a session to be refused that should be.
PATIENCE, SHORT = 30.0, 0.6


class Cluster:
    """One parameter server and two workers at fixed addresses, each started and taken away by the test."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.addresses = {"ps": free_addresses(1), "worker": free_addresses(2)}
        self.servers: dict[tuple[str, int], TaskServer] = {}

    async def start(self, *tasks: tuple[str, int]) -> None:
        """Starts these one after the other; returns once each knows what it could ask for."""
        for job, index in tasks:
            self.servers[job, index] = await self._stack.enter_async_context(TaskServer(self.addresses, job, index))
            await self.settled((job, index))

    async def settled(self, task: tuple[str, int]) -> None:
        peers = self.servers[task].peers
        assert peers is not None
        async with asyncio.timeout(PATIENCE):
            await peers.settled()

    async def finish(self, task: tuple[str, int]) -> None:
        await self.servers[task].stop(finished=True)

    async def kill(self, task: tuple[str, int]) -> None:
        """As far as others can tell: it says nothing any more."""
        await self.servers[task].stop()

    def knows(self, task: tuple[str, int], of: tuple[str, int]) -> bool:
        return task_name(*of) in self.servers[task].finished

    async def session(self, task: tuple[str, int], seconds: float = PATIENCE) -> None:
        """Opens and closes a session on the task's master. Raises DeadlineExceededError if a task is missing."""
        master = self.servers[task].master
        handle, _ = await master.create_session(graph_pb2.GraphDef(), ConfigProto(), seconds=seconds)
        await master.close_session(handle)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        yield Cluster(stack)


async def test_a_killed_parameter_server_knows_again_who_has_finished(cluster: Cluster) -> None:
    await cluster.start(PS, CHIEF, SECOND)
    await cluster.finish(SECOND)

    await cluster.kill(PS)
    await cluster.start(PS)
    assert cluster.knows(PS, SECOND)

    # and so does the chief, which dies as well, from its word
    await cluster.kill(CHIEF)
    await cluster.start(CHIEF)
    assert cluster.knows(CHIEF, SECOND)
    await cluster.session(CHIEF)


async def test_one_that_was_away_when_a_task_finished_hears_of_it(cluster: Cluster) -> None:
    await cluster.start(PS, CHIEF, SECOND)
    await cluster.kill(PS)
    await cluster.finish(SECOND)

    await cluster.start(PS)

    assert cluster.knows(PS, SECOND)


async def test_what_nobody_remembers_is_not_known(cluster: Cluster) -> None:
    await cluster.start(PS, CHIEF, SECOND)
    await cluster.finish(SECOND)
    await cluster.kill(PS)
    await cluster.kill(CHIEF)

    await cluster.start(PS, CHIEF)

    with pytest.raises(errors.DeadlineExceededError, match=task_name(*SECOND)):
        await cluster.session(CHIEF, SHORT)


async def test_a_parameter_server_that_came_back_ends_with_the_workers(cluster: Cluster) -> None:
    await cluster.start(PS, CHIEF, SECOND)
    await cluster.finish(SECOND)
    await cluster.kill(PS)
    await cluster.start(PS)
    ps = cluster.servers[PS]
    ps.end_with_workers()
    await cluster.session(CHIEF)

    await cluster.finish(CHIEF)

    async with asyncio.timeout(PATIENCE):
        await ps.wait_stopped()
    assert cluster.knows(CHIEF, SECOND)


async def test_one_that_comes_back_after_all_have_finished_ends(cluster: Cluster) -> None:
    """A worker that still stops tells it: it serves until it has told those that are there."""
    await cluster.start(CHIEF, SECOND)
    await cluster.finish(SECOND)
    chief = cluster.servers[CHIEF].finished
    chief.finish(cluster.servers[CHIEF].worker.incarnation)

    await cluster.start(PS)
    cluster.servers[PS].end_with_workers()

    async with asyncio.timeout(PATIENCE):
        await cluster.servers[PS].wait_stopped()


async def test_a_task_that_is_back_says_so_before_it_makes_a_session(cluster: Cluster) -> None:
    await cluster.start(PS, CHIEF, SECOND)
    await cluster.finish(SECOND)
    assert cluster.knows(PS, SECOND)
    assert cluster.knows(CHIEF, SECOND)

    await cluster.start(SECOND)

    assert not cluster.knows(PS, SECOND)
    assert not cluster.knows(CHIEF, SECOND)
    # and finishes in its new life
    await cluster.finish(SECOND)
    assert cluster.knows(CHIEF, SECOND)


async def test_what_a_control_service_declared_is_handed_on(cluster: Cluster) -> None:
    """The parameter server is registered and the chief is not."""
    await cluster.start(PS)
    cluster.servers[PS].finished.declare([task_name(*SECOND)])

    await cluster.start(CHIEF)

    assert cluster.knows(CHIEF, SECOND)
    await cluster.session(CHIEF)


async def test_a_hello_that_was_lost_is_made_up_for_on_sight(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.start(PS, CHIEF, SECOND)
    await cluster.finish(SECOND)
    await cluster.kill(PS)
    with monkeypatch.context() as patched:
        patched.setattr("tenfold_services.peers.Peers.greet", lambda *_: None)
        await cluster.start(PS)
    assert not cluster.knows(PS, SECOND)

    await cluster.session(CHIEF)
    await cluster.settled(CHIEF)

    assert cluster.knows(PS, SECOND)
