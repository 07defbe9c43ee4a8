"""Runs kernels that call functions of the client's program on threads of their own; their results are waited for.

Which of a part's kernels need that is tenfold_compiler/part/node_facts.py's to say.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

#: Threads of a process that wait for or run such functions; more functions than that wait for a thread.
MOST_THREADS = 256
#: Seconds that a thread stays for the next function.
_IDLE_SECONDS = 10.0


def on_a_thread(kernel: Callable[..., Any]) -> Callable[..., Waiting]:
    """`kernel`, run on a thread of the pool with copies of its inputs, which may change when the step goes on."""

    def compute(*inputs: Any) -> Waiting:
        waiting = Waiting()
        copies = [value.copy() for value in inputs]

        def run() -> None:
            if not waiting.is_open:
                return
            try:
                outputs = kernel(*copies)
            except BaseException as error:
                waiting.fail(error)  # type: ignore[arg-type] # the driver makes an OpError of any
            else:
                waiting.complete(outputs)

        _threads.submit(run)
        return waiting

    return compute


class HostThreads:
    """Daemon threads, as many as there are functions under way: a function that never returns holds up no exit."""

    def __init__(self, most: int = MOST_THREADS, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._most, self._idle_seconds = most, idle_seconds
        self._changed = threading.Condition()
        #: Submitted and not begun, FIFO; and how many threads there are and wait for work.
        self._queue: deque[Callable[[], None]] = deque()
        self._count = self._idle = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work`, which raises nothing, soon. Never blocks."""
        with self._changed:
            self._queue.append(work)
            if self._idle >= len(self._queue) or self._count >= self._most:
                self._changed.notify()
                return
            self._count += 1
        threading.Thread(target=self._serve, name="tenfold-host-function", daemon=True).start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    self._idle += 1
                    self._changed.wait_for(lambda: bool(self._queue), self._idle_seconds)
                    self._idle -= 1
                if not self._queue:
                    self._count -= 1
                    return
                work = self._queue.popleft()
            work()
            del work


_threads = HostThreads()
