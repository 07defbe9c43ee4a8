"""The control service of a simulated cluster: its registry and its leases, driven by a few lines.

Decided by control_api's own machines (cluster.py, leases.py), which the real service drives too. Tasks register, renew
their leases and follow the spec, as the SDK's registration does. What must hold (P4): a task that is gone is lost
within its lease and a heartbeat or two, and no task is lost that could renew its lease all the time.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.leases import LeaseTable
from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulated.tasks import Task
    from simulated.world import Process, World

LEASE, HEARTBEAT = 4.0, 1.0
#: What messages and turns may take besides.
_SLACK = 1.5
HOST = "control"


class Answer(NamedTuple):
    """To a registration or a renewal: the lease, "" where it was not given or is over, and the newest spec."""

    lease: str
    version: int
    addresses: dict[str, dict[int, str]]


class Registry:
    """The service; one process, which may be stopped and cut off, and is not killed."""

    def __init__(self, world: World, sizes: dict[str, int]) -> None:
        self._world = world
        self._cluster = Cluster.new("default", "uid", sizes, now=0.0)
        self._leases = LeaseTable(lambda: world.now, stall=2 * HEARTBEAT)
        self._holders: dict[str, tuple[str, int]] = {}
        #: Lease → the life that it was given to.
        self._lives: dict[str, Process] = {}
        self._granted = asyncio.Event()
        self.process: Process = world.start(HOST, HOST, self._sweep)

    async def _sweep(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._leases.next_look()):
                    await self._granted.wait()
            except TimeoutError:
                pass
            self._granted.clear()
            for lease in self._leases.expired():
                job, index = self._holders.pop(lease)
                self._leases.end(lease)
                self._world.note(f"{lease} is over")
                life, since = self._lives[lease], self._world.now - LEASE
                apart = self._world.was_apart(life.host, HOST, since)
                if life.alive and not apart and self._world.untroubled(life.host, life.host, since):
                    self._world.broken(f"/job:{job}/task:{index} is lost, though it renewed its lease all the time")
                self._cluster = self._cluster.end(job, index, TaskState.LOST, "lease expired", self._world.now)

    def register(self, job: str, index: int, address: str, incarnation: str, lease: str) -> Answer:
        """A task registers, or says its lease is `lease`."""
        try:
            made = self._cluster.register(job, index, Newcomer(address, incarnation, lease), self._world.now)
        except ApiError:
            return self._answer("")  # taken: its former life's lease still goes on
        self._cluster = made.cluster
        held = made.task.lease_id
        assert held is not None
        if made.fresh:
            self._holders[held] = (job, index)
            self._leases.grant(held, LEASE)
        else:
            self._leases.renew(held)
        self._granted.set()
        return self._answer(held)

    def renew(self, lease: str) -> Answer:
        """A heartbeat."""
        return self._answer(lease if self._leases.renew(lease) else "")

    def _answer(self, lease: str) -> Answer:
        addresses = {
            job: {index: self._cluster.addresses().get(job, {}).get(index, "") for index in range(size)}
            for job, size in self._cluster.jobs.items()
        }
        return Answer(lease, self._cluster.version, addresses)

    # -- for the tasks -------------------------------------------------------------------------------------------------

    async def ask(self, process: Process, call: Callable[[], Answer]) -> Answer:
        """What `call()` gives at the service, over the network. Raises TimeoutError."""
        answered: asyncio.Future[Answer] = process.loop.create_future()

        def back(answer: Answer) -> None:
            if process.alive:
                process.loop.call_soon(lambda: answered.done() or answered.set_result(answer))

        def serve() -> None:
            answer = call()
            self._world.network.post(HOST, process.host, lambda: back(answer))

        self._world.network.post(process.host, HOST, lambda: self.process.loop.call_soon(serve))
        async with asyncio.timeout(HEARTBEAT):
            return await answered

    async def follow(self, task: Task, process: Process, server: Any) -> None:
        """Registers a task and keeps it registered; hands its server each newer spec. Ends with its process."""
        lease, version, wanted = "", 0, f"{task.host}.{task.lives}"
        self._lives[f"lease of {wanted}"] = process
        address = f"{task.host}:{task.port}"
        while True:
            try:
                if lease:
                    answer = await self.ask(process, partial(self.renew, lease))
                else:
                    place = task.job, task.index, address
                    answer = await self.ask(process, partial(self.register, *place, wanted, f"lease of {wanted}"))
            except TimeoutError:
                continue
            if lease and not answer.lease:
                wanted += "'"  # the place may have been given away: as another life, if it is free
                self._lives[f"lease of {wanted}"] = process
            lease = answer.lease
            if answer.version > version and lease:
                version = answer.version
                server.update_cluster(answer.addresses)
            await asyncio.sleep(HEARTBEAT)

    def check(self, tasks: list[Task]) -> None:
        """Long after everything: who is up is ready, and nobody else is."""
        for task in tasks:
            state = self._cluster.task(task.job, task.index).state
            if (state is TaskState.READY) is not task.is_up:
                is_up = "up" if task.is_up else "down"
                self._world.broken(f"{task.name} is {state} for the control service, and {is_up}")

    def look_after(self, task: Task) -> None:
        """A life of the task has ended: it is lost in time, unless the service itself could not look."""
        incarnation, since = f"{task.host}.{task.lives}", self._world.now

        def look() -> None:
            held = self._cluster.task(task.job, task.index)
            still = held.state is TaskState.READY and (held.incarnation or "").rstrip("'") == incarnation
            # what it had sent may have been held on its way, and may have come only now
            could_hear = self._world.untroubled(HOST, HOST, since) and not self._world.was_apart(task.host, HOST, since)
            if still and could_hear:
                self._world.broken(f"{task.name} is gone since {since - 1000:.1f} and still ready")

        self._world.after(LEASE + 2 * HEARTBEAT + _SLACK, "", look)
