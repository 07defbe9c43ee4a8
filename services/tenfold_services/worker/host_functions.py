"""Lets functions of the client's program (py_func) that do not depend on each other run side by side.

One of them may wait for another, on an event or a queue of Python's: run one after the other, the step would hang. So
where a part has several that are independent, each runs on a thread of its own and its node waits for the result like a
dequeue. A function that is alone, or follows the others, keeps the step's thread, which costs no hand-over.
Used by program_compiler.py. In TensorFlow: the threads between ops, on which py_func.cc runs.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .part import PartGraph, PartNode

#: Ops that call a function of the client's process.
HOST_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))
#: Threads of a process that wait for or run such functions; more functions than that wait for a thread.
MOST_THREADS = 256
#: Seconds that a thread stays for the next function.
_IDLE_SECONDS = 10.0


def independent(part: PartGraph) -> list[int]:
    """The nodes that call a host function and have another such node that neither needs them nor is needed by them.

    Linear in nodes. What is in two branches, of which one runs, counts as well.
    """
    bits: dict[int, int] = {}
    for node in part.nodes:
        if node.op in HOST_OPS:
            bits[node.index] = 1 << len(bits)
    if len(bits) < 2:
        return []
    #: Per node: the host functions that it needs, and those that need it, itself among them.
    needs = [bits.get(index, 0) for index in range(len(part.nodes))]
    needed_by = list(needs)
    for node in part.nodes:
        for source in _sources(node):
            needs[node.index] |= needs[source]
    for node in reversed(part.nodes):
        for source in _sources(node):
            needed_by[source] |= needed_by[node.index]
    everyone = (1 << len(bits)) - 1
    return [index for index in bits if needs[index] | needed_by[index] != everyone]


def _sources(node: PartNode) -> Iterator[int]:
    """The nodes before it, without the back edges of loops."""
    for source, _ in node.inputs:
        if source < node.index:
            yield source
    yield from (source for source in node.controls if source < node.index)


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
