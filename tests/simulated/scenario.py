"""One seed: a cluster of real tasks with clients and faults, and what must hold when all is over.

P1 an answer is there in time, and an error names its task · P2 a step is applied once for its request · P5 sums are
exact · P7 nothing is left of steps and sessions that are over. `play(seed)` tells what was violated, and the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulated import boundary
from simulated.faults import Faults
from simulated.graphs import COUNTERS
from simulated.ledger import Requests
from simulated.programs import Program
from simulated.registry import Registry
from simulated.tasks import Task
from simulated.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulated.world import Process

#: Seconds of the world in which clients work, in which the last of them has its answer, and until nothing is left.
_WORK, _LAST, _REST = 1.2, 300.0, 150.0


@dataclass
class Outcome:
    """What became of one seed. Equal seeds have equal traces."""

    seed: int
    violations: list[str] = field(default_factory=list)
    trace: int = 0
    turns: int = 0
    seconds: float = 0.0


def play(seed: int, tell: Callable[[str], None] | None = None) -> Outcome:
    """Plays a seed from its beginning to its end. `tell` gets each line of what happens."""
    world = World(seed, tell)
    boundary.enter(world)
    try:
        _Scenario(world).run()
    except Exception as error:
        world.broken(f"the simulation failed: {type(error).__name__}: {error}", error)
    finally:
        world.end()
        boundary.leave()
    return Outcome(seed, world.violations, world.trace, world.turns, world.now - 1000.0)


class _Scenario:
    def __init__(self, world: World) -> None:
        self._world, chance = world, world.chance
        ps = chance.choice((1, 2))
        cluster = {
            "ps": [f"ps{index}:{4000 + index}" for index in range(ps)],
            "worker": [f"worker{index}:{5000 + index}" for index in range(2)],
        }
        links = chance.random() < 0.85
        world.repeats = chance.choice((0.0, 0.0, 0.05, 0.2))
        world.note(f"seed {world.seed}: {ps} ps, {'links' if links else 'gRPC alone'}, repeats {world.repeats}")
        self._ledger = {name: Requests(name, world.broken) for name in (*COUNTERS, "queue", "sums")}
        self._tasks = [
            Task(world, job, index, int(address.rpartition(":")[2]), cluster, links)
            for job, addresses in cluster.items()
            for index, address in enumerate(addresses)
        ]
        for task in self._tasks:
            world.network.hosts[task.port] = task.host
        self._ps = self._tasks[:ps]
        self._registry: Registry | None = None
        if chance.random() < 0.5:
            self._registry = Registry(world, {job: len(addresses) for job, addresses in cluster.items()})
            for task in self._tasks:
                task.registry = self._registry
        for name, index in COUNTERS.items():
            self._ps[index % ps].holds[name] = self._ledger[name]
        self._ps[0].holds.update({name: self._ledger[name] for name in ("queue", "sums")})
        #: Client → its process.
        self._clients: dict[Program, Process] = {}

    def run(self) -> None:
        world, chance = self._world, self._world.chance
        began = world.now
        for task in self._tasks:
            world.after(chance.choice((0.0, 0.0, 0.0, 0.0, 0.05, 0.8)), "", task.start)
        workers = self._tasks[len(self._ps) :]
        until = began + _WORK * (0.5 + chance.random())
        for number in range(chance.choice((1, 2, 2, 3))):
            master = chance.choice([*workers, *workers, self._ps[0]])
            other = chance.choice([task for task in self._tasks if task is not master])
            client = Program(world, number, master, other, len(self._ps), self._ledger, until)
            self._clients[client] = world.start(client.host, client.host, client.main)
        faults = Faults(world, self._tasks, self._clients, self._registry)
        faults.plan(chance.choice((0, 0, 1, 1, 2, 3, 5)), until)
        world.run(lambda: False, until)
        if not world.run(lambda: all(client.is_done for client in self._clients), began + _LAST):
            for client in self._clients:
                if not client.is_done:
                    world.broken(f"{client.host} still waits for {client.waits_for or 'nothing'}")
        faults.undo()
        self._rest(faults)
        for task in self._tasks:
            if task.is_up:
                task.count()
        if self._registry is not None:
            self._registry.check(self._tasks)
        self._settle()

    def _rest(self, faults: Faults) -> None:
        """Waits until nothing is left, within bounds; says what is."""
        world, until = self._world, self._world.now + _REST
        left: list[str] = []
        if self._registry is not None:
            world.run(lambda: False, world.now + 9.0)  # leases of those that are gone end
        while world.now < until:
            world.run(lambda: False, world.now + 3.0)
            left = self._left_over(faults)
            if not left:
                return
        for text in left:
            world.broken(text)

    def _left_over(self, faults: Faults) -> list[str]:
        up = [task for task in self._tasks if task.is_up]
        open_handles = {handle for task in up for handle in task.session_handles()}
        left = [text for task in up for text in task.left_over(open_handles)]
        may_stay = sum(client.orphans for client in self._clients) + len(faults.killed_clients)
        if len(open_handles) > may_stay:
            left.append(f"{len(open_handles)} sessions are open, though {may_stay} may have been left open by clients")
        return left

    def _settle(self) -> None:
        for name, requests in self._ledger.items():
            lost = 0
            if name == "queue":
                lost = sum(client.lost_elements for client in self._clients)
            elif name == "sums":
                lost = 26 * sum(client.lost_sums for client in self._clients)
            requests.check(lost)
