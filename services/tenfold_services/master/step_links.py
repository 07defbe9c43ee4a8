"""Links for steps on their caller's thread: each step has a set of them, a `StepLinks`, to itself while it runs.

Sets are kept for the next step (`StepLinkPool`). What is read from any link of a set is read on the step's thread, and
its one wait is for all of them. caller_cluster_steps.py runs steps over them; the link is in tenfold_link.blocking.
"""

from __future__ import annotations

import asyncio
import logging
import select
import threading
import time
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_link.blocking.step_link import StepLink, connect_for_steps
from tenfold_link.spin_wait import SpinWait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Future

    from tenfold_core.access.credentials import Credentials
    from tenfold_link.link_settings import LinkSettings
    from tenfold_services.interfaces import PushWorker

_log = logging.getLogger("tenfold.master")

#: Sets of links that one task keeps; more steps at once take the scheduled path.
_SETS = 16
#: Seconds for what a step asks of the event loop: an answer to OpenLink, whether a task has restarted.
_ASK_SECONDS = 10.0
#: Milliseconds. The kernel ends a wait after this long, so that a step can look at its deadline and after its peers.
_TICK = 500
#: Seconds. Links that were unused for so long may have lost a peer without notice.
_IDLE_SECONDS = 0.1


class StepLinks:
    """Links to some tasks, used by one step at a time."""

    __slots__ = ("_by_file", "_poll", "_spin", "given_back", "links")

    def __init__(self) -> None:
        self.links: dict[str, StepLink] = {}
        #: All that are open, by descriptor; made when it is first waited for them.
        self._by_file: dict[int, StepLink] = {}
        self._poll: select.poll | None = None
        self._spin = SpinWait()
        #: When the last step was through with them.
        self.given_back = 0.0

    def notice_ends(self) -> None:
        """Reads what is there without waiting, so that a link whose peer has gone is closed before a step uses it."""
        self._read(self._look())

    def has(self, tasks: Iterable[str]) -> bool:
        """Whether there is an open link to each."""
        links = self.links
        for task in tasks:
            link = links.get(task)
            if link is None or link.closed:
                return False
        return True

    def put(self, task: str, link: StepLink | None) -> None:
        """Replaces the link to `task`, which is ended, if there was one."""
        self._poll = None
        old = self.links.pop(task, None)
        if old is not None:
            old.end()
        if link is not None:
            self.links[task] = link

    def receive(self) -> None:
        """Reads from the links what is there; waits for something, half a second at most.

        Some may be closed afterwards.
        """
        poll = self._poll or self._watch()
        ready = self._spin.wait(self._look) or poll.poll(_TICK)
        if not ready:
            for link in self._by_file.values():
                link.check_life()
        self._read(ready)

    def _read(self, ready: list[tuple[int, int]]) -> None:
        for file, _ in ready:
            link = self._by_file[file]
            link.receive()
            if link.closed:
                # what is at its end is always ready
                self._poll = None

    def end(self) -> None:
        self._poll = None
        for link in self.links.values():
            link.on_notice = None
            link.end()
        self.links.clear()

    def _look(self) -> list[tuple[int, int]]:
        return (self._poll or self._watch()).poll(0)

    def _watch(self) -> select.poll:
        poll = self._poll = select.poll()
        self._by_file = {link.fileno(): link for link in self.links.values() if not link.closed}
        for file in self._by_file:
            poll.register(file, select.POLLIN)
        return poll


class StepLinkPool:
    """All of a task's. Any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, settings: LinkSettings, credentials: Credentials) -> None:
        self._loop, self._settings, self._credentials = loop, settings, credentials
        self._lock = threading.Lock()
        #: Not in use, the one used last at the end.
        self._free: list[StepLinks] = []
        self._made = 0
        self._closed = False
        #: Task → until when no link to it is tried.
        self._not_before: dict[str, float] = {}

    def take(self, workers: Mapping[str, PushWorker]) -> StepLinks | None:
        """Links to these tasks; None if they cannot be had now. Blocks while links are opened, within bounds."""
        with self._lock:
            if self._closed:
                return None
            if self._free:
                lines = self._free.pop()
            elif self._made < _SETS:
                self._made += 1
                lines = StepLinks()
            else:
                return None
        try:
            if time.monotonic() - lines.given_back > _IDLE_SECONDS:
                lines.notice_ends()
            if lines.has(workers):
                return lines
            for task, worker in workers.items():
                if not lines.has((task,)):
                    self._open(lines, task, worker)
        except BaseException as error:
            self.give(lines)
            if not isinstance(error, errors.OpError):
                raise
            _log.info("A step takes the scheduled path: %s", error.message)
            return None
        return lines

    def give(self, lines: StepLinks) -> None:
        """Takes links back."""
        lines.given_back = time.monotonic()
        with self._lock:
            if not self._closed:
                self._free.append(lines)
                return
        lines.end()

    def close(self) -> None:
        """Ends all links that are not in use, and the others when they come back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for lines in free:
            lines.end()

    def ask(self, start: Callable[[], Any]) -> Any:
        """The result of a coroutine of the event loop. Raises what it raises, UnavailableError without a loop."""
        future = self._begin(start)
        if future is None:
            raise errors.unavailable("The server of this process does not run.")
        try:
            return future.result(_ASK_SECONDS)
        except TimeoutError:
            future.cancel()
            raise errors.deadline_exceeded("The server of this process did not answer in time.") from None

    def tell(self, start: Callable[[], Any]) -> None:
        """Starts a coroutine of the event loop, without waiting for its result."""
        self._begin(start)

    def _begin(self, start: Callable[[], Any]) -> Future[Any] | None:
        coroutine = start()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            return None

    def _open(self, lines: StepLinks, task: str, worker: PushWorker) -> None:
        if time.monotonic() < self._not_before.get(task, 0.0):
            raise errors.unavailable(f"{task} could not be reached by a link a moment ago.")
        lines.put(task, None)
        try:
            answer = self.ask(lambda: worker.ask_link(self._settings))
            lines.put(task, connect_for_steps(answer, worker.address, task, self._settings, self._credentials))
        except errors.OpError:
            self._not_before[task] = time.monotonic() + self._settings.retry_seconds
            raise
