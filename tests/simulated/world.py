"""One simulated world: its time, its chance, its processes and what happens between them, one thing after the other.

Everything that is chosen is chosen by the seed: which process goes on, what a message takes, when something breaks. So
a world of one seed is the same each time, which `trace` shows: a checksum over every turn and every event. Time moves
only when nothing can go on without it. Used by scenario.py; what processes say to each other goes through network.py.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from simulated.loop import ProcessLoop
from simulated.network import Network

if TYPE_CHECKING:
    from collections.abc import Callable

#: Turns without any time going by: a loop that would never end.
_MOST_TURNS = 200_000
#: A process that is busy goes on after an event that lies so near.
_NEAR = 0.02
#: Nanoseconds of processor time that two looks at the clock are apart, and how often so many.
_SPENT = (20_000, 20_000, 20_000, 200_000, 3_000_000)


class Process:
    """One life of a program on `host`: it has an event loop and sockets, and can be stopped for a while or killed."""

    def __init__(self, world: World, name: str, host: str) -> None:
        self.name, self.host = name, host
        self.alive, self.stopped = True, False
        #: Which of the world's processes it is.
        self.number = next(world.process_numbers)
        self.loop = ProcessLoop(world, self)
        #: Timers whose time came while it was stopped.
        self.late: list[asyncio.Handle] = []

    def __repr__(self) -> str:
        return f"<{self.name}>"


class World:
    """`now` begins above zero, as the clock of a machine that has been up for a while does."""

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        """`tell` gets each line of what happens, for a person to read."""
        self.seed, self._tell = seed, tell
        self.chance = random.Random(seed)
        self.now = 1000.0
        self.trace = 0
        self.turns = 0
        #: What is to happen: (time, number, process or None, timer or function, its label).
        self._events: list[tuple[float, int, Process | None, Any, str]] = []
        self._numbers = itertools.count()
        self.processes: list[Process] = []
        self.process_numbers = itertools.count(1)
        #: Killed ones, whose coroutines must not run on while the world does.
        self._dead: list[Process] = []
        #: What must never be: found by anything, told at the end.
        self.violations: list[str] = []
        self._spent = 0
        #: How likely a message that may come twice does.
        self.repeats = 0.0
        #: Of the tasks that live.
        self.incarnations: set[int] = set()
        #: Hosts, or two hosts between which something is wrong: what goes on now, and when there was something last.
        self._troubles: Counter[frozenset[str]] = Counter()
        self._troubled: dict[frozenset[str], float] = {}
        self.network = Network(self)

    # -- what is told -----------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Adds a line to the trace."""
        self.trace = zlib.crc32(text.encode(), self.trace)
        if self._tell is not None:
            self._tell(f"{self.now - 1000.0:10.6f} {text}")

    def broken(self, text: str, error: object = None) -> None:
        """A violation: the seed has failed."""
        self.violations.append(text)
        self.note(f"VIOLATION {text}")
        if self._tell is not None and isinstance(error, BaseException):
            import traceback

            self._tell("".join(traceback.format_exception(error)))

    def processor_time(self) -> int:
        """Nanoseconds of processor time so far: each look finds some more, now and then as much as a long kernel."""
        self._spent += self.chance.choice(_SPENT)
        return self._spent

    # -- what is wrong ----------------------------------------------------------------------------------------------

    def trouble(self, *hosts: str, seconds: float = 0.0) -> None:
        """Something is wrong with a host, or between two, from now on for so long."""
        key = frozenset(hosts)
        self._troubles[key] += 1

        def over() -> None:
            self._troubles[key] -= 1
            self._troubled[key] = self.now

        self.after(seconds, "", over)

    def untroubled(self, one: str, other: str, since: float) -> bool:
        """Whether nothing was wrong with these hosts and between them all the time."""
        alone = any(self._troubles[key] or self._troubled.get(key, 0.0) >= since for key in map(_only, (one, other)))
        return not alone and not self.was_apart(one, other, since)

    def was_apart(self, one: str, other: str, since: float) -> bool:
        """Whether something was wrong between two hosts at any time since then."""
        key = frozenset((one, other))
        return bool(self._troubles[key]) or self._troubled.get(key, 0.0) >= since

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, name: str, host: str, main: Callable[[], Any]) -> Process:
        """A new process whose loop runs the coroutine `main()`."""
        process = Process(self, name, host)
        self.processes.append(process)
        self.within(process, lambda: process.loop.create_task(main(), name=f"main:{name}"))
        self.note(f"start {name}")
        return process

    def within(self, process: Process, call: Callable[[], Any]) -> Any:
        """The result of `call()`, which is made as if from a callback of the process."""
        asyncio._set_running_loop(process.loop)
        try:
            return call()
        finally:
            asyncio._set_running_loop(None)

    def stop(self, process: Process) -> None:
        """SIGSTOP: it does nothing more; what is sent to it waits in the kernel."""
        if process.alive:
            process.stopped = True
            self.note(f"stop {process.name}")

    def go_on(self, process: Process) -> None:
        """SIGCONT."""
        if process.alive and process.stopped:
            process.stopped = False
            self.note(f"go on {process.name}")
            process.loop.ready.extend(process.late)
            process.late.clear()

    def kill(self, process: Process, why: str = "kill") -> None:
        """SIGKILL, or its end: nothing of it runs any more, and the kernel closes its connections."""
        if not process.alive:
            return
        self.note(f"{why} {process.name}")
        process.alive = False
        process.loop.ready.clear()
        process.loop.readers.clear()
        process.loop.writers.clear()
        for task in process.loop.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.processes.remove(process)
        self._dead.append(process)
        self.network.process_ended(process)

    def end(self) -> None:
        """Ends all that is left. Nothing that coroutines do on their way out of memory counts."""
        for process in list(self.processes):
            self.kill(process, "end")
        self._events.clear()

    # -- time -------------------------------------------------------------------------------------------------------

    def at(self, when: float, process: Process | None, what: Any, label: str = "") -> None:
        """`what` happens then: a timer of `process`, or a function of the world."""
        heapq.heappush(self._events, (when, next(self._numbers), process, what, label))

    def after(self, seconds: float, label: str, what: Callable[[], None]) -> None:
        """`what` happens so many seconds from now; an empty `label` is not traced."""
        self.at(self.now + seconds, None, what, label)

    def run(self, done: Callable[[], bool], until: float) -> bool:
        """Lets the world go on until `done()`, or the time `until`, or until nothing happens any more; whether done."""
        chance, idle = self.chance.random, 0
        while not done():
            runnable = [p for p in self.processes if p.loop.ready and not p.stopped]
            events = self._events
            if runnable:
                idle += 1
                if idle > _MOST_TURNS:
                    self.broken(f"{runnable[0].name} goes on for ever without any time going by")
                    return False
                if not (events and events[0][0] < self.now + _NEAR and chance() < 0.2):
                    self._turn(runnable[int(chance() * len(runnable))])
                    continue
            elif not events:
                return False
            if events[0][0] > until:
                self.now = until
                return False
            when, number, process, what, label = heapq.heappop(events)
            if when > self.now:
                self.now, idle = when, 0
            if process is None:
                if label:
                    self.note(label)
                what()
            elif process.alive and not what.cancelled():
                (process.late if process.stopped else process.loop.ready).append(what)
            del number
        return True

    def _turn(self, process: Process) -> None:
        ready = process.loop.ready
        self.turns += 1
        # of numbers, whose hashes are the same in each process
        self.trace = hash((self.trace, process.number, len(ready), self.now)) & 0xFFFFFFFF
        asyncio._set_running_loop(process.loop)
        try:
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
        finally:
            asyncio._set_running_loop(None)


def _only(host: str) -> frozenset[str]:
    return frozenset((host,))
