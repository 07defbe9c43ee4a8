"""What goes wrong in a simulated cluster, and when: chosen by the seed, undone after a while, at the end at the latest.

Every fault is noted as a trouble of the hosts that it concerns (World.trouble): only what an answer does not depend on
may be wrong while the answer is late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulated.programs import Program
    from simulated.registry import Registry
    from simulated.tasks import Task
    from simulated.world import Process, World

#: Seconds that something goes on, from too short to be noticed to longer than the 15 that a peer may be silent.
_LASTS = (0.1, 0.6, 3.0, 9.0, 20.0, 90.0)


class Faults:
    """Of one world."""

    def __init__(
        self, world: World, tasks: list[Task], clients: dict[Program, Process], registry: Registry | None
    ) -> None:
        self._world, self._tasks, self._clients, self._registry = world, tasks, clients, registry
        #: To go on at the end.
        self._stopped: list[Process] = []
        self.killed_clients: list[Program] = []

    def plan(self, count: int, until: float) -> None:
        """Has so many faults happen between now and `until`."""
        chance, kinds = self._world.chance, (
            self._kill, self._kill, self._leave, self._stop, self._stop, self._stop, self._part, self._part_one_way,
            self._cut, self._cut, self._slow, self._kill_client,
        )  # fmt: skip
        for _ in range(count):
            kind = chance.choice(kinds)
            self._world.at(self._world.now + chance.random() * (until - self._world.now), None, kind, kind.__name__)

    def undo(self) -> None:
        """Nothing is wrong any more: what stood still goes on, all hear each other; killed tasks stay away."""
        network = self._world.network
        for source, target in list(network.blocked):
            network.heal(source, target)
        network.slow.clear()
        for process in self._stopped:
            self._world.go_on(process)

    def _lasts(self) -> float:
        return self._world.chance.choice(_LASTS) * (0.5 + self._world.chance.random())

    def _kill(self) -> None:
        task = self._world.chance.choice(self._tasks)
        self._away(task, task.kill)

    def _leave(self) -> None:
        task = self._world.chance.choice(self._tasks)
        self._away(task, task.leave)

    def _away(self, task: Task, go: object) -> None:
        """The task goes, and mostly comes back."""
        seconds = 0.05 + self._lasts()
        self._world.trouble(task.host, seconds=seconds)
        go()  # type: ignore[operator]
        if self._world.chance.random() < 0.8:
            self._world.after(seconds, "", task.start)

    def _stop(self) -> None:
        world = self._world
        process = world.chance.choice([*self._tasks, *([] if self._registry is None else [self._registry])]).process
        if process is None or not process.alive:
            return
        seconds = self._lasts()
        world.trouble(process.host, seconds=seconds)
        world.stop(process)
        self._stopped.append(process)
        world.after(seconds, "", lambda: world.go_on(process))

    def _two(self) -> tuple[str, str]:
        hosts = [task.host for task in self._tasks] + [client.host for client in self._clients]
        if self._registry is not None:
            hosts.append(self._registry.process.host)
        one, other = self._world.chance.sample(hosts, 2)
        return one, other

    def _part(self, both: bool = True) -> None:
        (one, other), world = self._two(), self._world
        seconds = self._lasts()
        world.trouble(one, other, seconds=seconds)
        ways = ((one, other), (other, one)) if both else ((one, other),)
        for source, target in ways:
            world.network.block(source, target)
            world.after(seconds, "", lambda way=(source, target): world.network.heal(*way))  # type: ignore[misc]

    def _part_one_way(self) -> None:
        self._part(both=False)

    def _cut(self) -> None:
        one, other = self._two()
        self._world.trouble(one, other)
        self._world.network.cut(one, other)

    def _slow(self) -> None:
        host, world = self._world.chance.choice(self._two()), self._world
        seconds = self._lasts()
        world.trouble(host, seconds=seconds + 1.0)
        world.network.slow[host] = world.chance.choice((0.02, 0.4))
        world.after(seconds, "", lambda: world.network.slow.pop(host, None))

    def _kill_client(self) -> None:
        client, process = self._world.chance.choice(list(self._clients.items()))
        if process.alive:
            self.killed_clients.append(client)
            client.is_done = True
            self._world.kill(process)
