"""The tasks of a simulated cluster: real servers, each in a process of its own, that come and go.

What a life of a task held when it ended goes into the ledger, as a person with a debugger would read it: no step is run
for that. A task that starts finds its variables initialized, as if it had restored them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simulated.graphs import COUNTERS
from simulated.ledger import digits_of
from simulated.pools import nothing_runs, simulated_pools
from tenfold_core import dtypes
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.device import task_name
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.accumulators import DenseAccumulator
from tenfold_kernels.resources.queues import Queue
from tenfold_kernels.resources.state import Variable
from tenfold_link.link_settings import LinkSettings
from tenfold_services.limits import Limits
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from simulated.ledger import Requests
    from simulated.registry import Registry
    from simulated.world import Process, World

#: Steps and sessions that nobody cleaned up are forgotten after a minute, so that a seed's end comes soon.
LIMITS = Limits(idle_step_seconds=60.0, idle_partial_run_seconds=60.0)
LINK, GRPC_ONLY = LinkSettings(mode="tcp"), LinkSettings(mode="off")
ACCESS = AccessSettings()


class Task:
    """One place of the cluster, over all its lives."""

    def __init__(
        self, world: World, job: str, index: int, port: int, cluster: dict[str, list[str]], links: bool
    ) -> None:
        self.world, self.job, self.index, self.port, self._cluster = world, job, index, port, cluster
        self.host, self.name = f"{job}{index}", task_name(job, index)
        self._link = LINK if links else GRPC_ONLY
        self.process: Process | None = None
        self.server: TaskServer | None = None
        self.lives, self.incarnation = 0, 0
        #: Where it registers; None in a cluster that is written down.
        self.registry: Registry | None = None
        #: By name, the requests of what this task holds.
        self.holds: dict[str, Requests] = {}

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.alive

    def start(self) -> None:
        """A new life. Nothing for one that is up."""
        if self.is_up:
            return
        if self.lives and self.registry is not None and self.world.chance.random() < 0.3:
            # it comes back at another port, which the others learn from the registry
            self.port += 100
            self.world.network.hosts[self.port] = self.host
        self.lives, self.incarnation = self.lives + 1, 0
        self.process = self.world.start(f"{self.host}.{self.lives}", self.host, self._main)

    async def _main(self) -> None:
        cluster = self._cluster if self.registry is None else {self.job: {self.index: f"{self.host}:{self.port}"}}
        server = self.server = TaskServer(
            cluster,
            self.job,
            self.index,
            bind=f"127.0.0.1:{self.port}",
            insecure=True,
            limits=LIMITS,
            link=self._link,
            access=ACCESS,
            pools=simulated_pools,
        )
        await server.start()
        self.incarnation = server.worker.incarnation
        self.world.incarnations.add(self.incarnation)
        if self.registry is not None:
            assert self.process is not None
            self.process.loop.create_task(self.registry.follow(self, self.process, server), name=f"follow:{self.name}")
        for name in self.holds:
            if name in COUNTERS:
                variable = server.worker.resources.lookup_or_create(
                    "", name, Variable, partial(Variable, name, dtypes.int64, TensorShape([]))
                )
                variable.assign(np.array(0, np.int64))

    def kill(self) -> None:
        """kill -9."""
        if self.is_up:
            assert self.process is not None
            self._end("kill")

    def leave(self) -> None:
        """SIGTERM: stops in order, and is gone then."""
        process, server = self.process, self.server
        if not self.is_up or server is None or process is None or process.stopped or not self.incarnation:
            return
        self.world.note(f"leave {process.name}")

        async def stop() -> None:
            await server.stop(0.5)
            self.world.after(0.0, "", gone)

        def gone() -> None:
            if process.alive:
                self._end("left")

        self.world.within(process, lambda: process.loop.create_task(stop(), name="stop"))

    def _end(self, why: str) -> None:
        assert self.process is not None
        self.count()
        self.world.incarnations.discard(self.incarnation)
        self.world.kill(self.process, why)
        self.server = None
        if self.registry is not None:
            self.registry.look_after(self)

    def count(self) -> None:
        """Tells the ledger what this life holds."""
        server = self.server
        if server is None or server._worker is None:
            return
        resources = server.worker.resources
        for name, requests in self.holds.items():
            if name in COUNTERS:
                found = [each for each in resources.every(Variable) if each.name == name and each.is_initialized]
                requests.ended(digits_of(int(found[0].value)).items() if found else ())
            elif name == "sums":
                for sums in resources.every(DenseAccumulator):
                    requests.ended(digits_of(int(sums._sum) if sums.count else 0).items())
            elif name == "queue":
                for queue in resources.every(Queue):
                    requests.ended((int(element[0]), 1) for element in queue.store._elements)

    def session_handles(self) -> list[str]:
        """Of the sessions that are open at its master."""
        server = self.server
        return [] if server is None or server._master is None else list(server.master._sessions)

    def left_over(self, open_handles: set[str]) -> list[str]:
        """What is still there of steps, and of sessions that are not among those that are open, in words."""
        server = self.server
        if server is None or server._worker is None:
            return []
        worker, master = server.worker, server.master
        counts: dict[str, Any] = {
            "steps with a rendezvous": len(worker.steps),
            "parts that run": worker.running,
            "sessions of no master": self._orphans(open_handles),
            "runs of sessions": [run for session in worker._sessions for run in session.running],
            "sessions that are being closed": len(master._closing),
            "sessions that are being created": master._creating,
            "jobs of pools": not nothing_runs(worker.pools),
            "calls of peers": sum(len(link._serving._serving) for link in _links(server)),
            "calls to peers": sum(len(link._calls) for link in _links(server)),
            "waiting calls": sum(len(peer._waiting) for peer in server.workers._workers.values()),
        }
        return [f"{self.name} has {what}: {count}" for what, count in counts.items() if count]

    def _orphans(self, open_handles: set[str]) -> list[str]:
        """Worker sessions that are open at no master, though the life of a master that opened them still goes on."""
        assert self.server is not None
        return [
            session.handle
            for session in self.server.worker._sessions
            if session.handle
            and session.handle not in open_handles
            and session.master_incarnation % 2**64 in self.world.incarnations
        ]


def _links(server: TaskServer) -> list[Any]:
    """The links of a task, those that it opened among them."""
    opened = [peer.link for peer in server.workers._workers.values() if getattr(peer, "link", None) is not None]
    accepted = [] if server._port is None or server._port.links is None else server._port.links.links
    return [*opened, *accepted]
