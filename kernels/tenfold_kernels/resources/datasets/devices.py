"""An iterator whose elements go to several devices in turn: element i to shard i modulo their number.

A thread of the pool fills a buffer for each shard as far as it may; a shard that has to wait for another one to take
what is its own waits without a thread. Used by cpu/dataset_devices.py. Follows multi_device_iterator_ops.cc.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run
from tenfold_kernels.resources.datasets.iterators import verify
from tenfold_kernels.resources.datasets.threads import pool
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape

#: Elements that a shard's buffer holds at most, whatever a program says.
MOST = 4096


class _Pass:
    """One pass over a dataset: what `MultiDeviceIterator.start` begins."""

    def __init__(self, machine: Machine, run: Run, shards: int, size: int) -> None:
        self._machine, self._run, self._size = machine, run, max(1, min(size, MOST))
        self._lock = threading.Lock()
        self._buffers: list[deque[tuple[Element | None, errors.OpError | None]]] = [deque() for _ in range(shards)]
        self._lines: list[deque[Waiting]] = [deque() for _ in range(shards)]
        #: The shard that the next element belongs to.
        self._next = 0
        self._is_filling = self._is_over = False

    def get(self, shard: int) -> Waiting:
        """A Waiting for the shard's next element, None at the end."""
        waiting = Waiting()
        waiting.on_cancel = functools.partial(self._leave, shard, waiting)
        found: tuple[Element | None, errors.OpError | None] | None = None
        with self._lock:
            if self._buffers[shard]:
                found = self._buffers[shard].popleft()
            elif self._is_over:
                found = None, None
            else:
                self._lines[shard].append(waiting)
            fills = not self._is_filling and not self._is_over
            self._is_filling = self._is_filling or fills
        if found is not None:
            _settle(waiting, *found)
        if fills:
            pool.submit(self._fill)
        return waiting

    def close(self) -> None:
        self._run.close()
        with self._lock:
            self._is_over = True
            left = [waiting for line in self._lines for waiting in line]
            for line in self._lines:
                line.clear()
        for waiting in left:
            waiting.fail(errors.cancelled("Cancelled Multidevice iterator"))

    def _leave(self, shard: int, waiting: Waiting) -> None:
        with self._lock:
            if waiting in self._lines[shard]:
                self._lines[shard].remove(waiting)

    def _fill(self) -> None:
        self._run.begin()
        while True:
            with self._lock:
                shard = self._next
                is_full = len(self._buffers[shard]) >= self._size and not self._lines[shard]
                if self._is_over or is_full:
                    self._is_filling = False
                    return
            element: Element | None = None
            error: errors.OpError | None = None
            try:
                element = self._machine.following()
            except errors.OpError as failure:
                error = failure
            except Exception as bug:  # must reach the step that asks
                error = errors.internal(f"{type(bug).__name__}: {bug}")
            if element is None and error is None:
                self._end()
                return
            self._hand_over(shard, element, error)

    def _hand_over(self, shard: int, element: Element | None, error: errors.OpError | None) -> None:
        while True:
            with self._lock:
                if not self._lines[shard]:
                    self._buffers[shard].append((element, error))
                    self._next = (shard + 1) % len(self._buffers)
                    return
                waiting = self._lines[shard].popleft()
                if waiting.claim():
                    self._next = (shard + 1) % len(self._buffers)
                    break
        waiting.deliver(element, error)

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            left = [waiting for line in self._lines for waiting in line]
            for line in self._lines:
                line.clear()
        for waiting in left:
            waiting.complete(None)


def _settle(waiting: Waiting, element: Element | None, error: errors.OpError | None) -> None:
    if error is None:
        waiting.complete(element)
    else:
        waiting.fail(error)


class MultiDeviceIterator:
    """Thread-safe. `types` and `shapes` are what it was declared with."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], devices: int) -> None:
        self.types, self.shapes, self._devices = tuple(types), tuple(shapes), devices
        self._lock = threading.Lock()
        self._incarnation = 0
        self._pass: _Pass | None = None

    def start(self, dataset: Dataset, most: int) -> int:
        """Begins anew, with at most so many elements waiting for each device; the number of this pass."""
        verify(self.types, self.shapes, dataset.types, dataset.shapes)
        run = Run()
        begun = _Pass(dataset.iterate(run), run, self._devices, most)
        with self._lock:
            old, self._pass = self._pass, begun
            self._incarnation += 1
            incarnation = self._incarnation
        if old is not None:
            old.close()
        return incarnation

    def get_next(self, shard: int, incarnation: int, finish: Callable[[Element | None], Any]) -> Any:
        """A Waiting for what `finish` makes of the shard's next element of that pass.

        Raises InvalidArgumentError for another pass or a shard that there is not.
        """
        with self._lock:
            current, expected = self._pass, self._incarnation
        if current is None or incarnation != expected:
            raise invalid(f"Invalid incarnation id. Provided: {incarnation}; Expected: {expected}")
        if not 0 <= shard < self._devices:
            raise invalid(f"Invalid shard number {shard}: the iterator has {self._devices} devices.")
        made = current.get(shard)
        answer = Waiting(made.cancel)

        def done(element: Any, error: errors.OpError | None) -> None:
            outputs = None
            if error is None:
                try:
                    outputs = finish(element)
                except errors.OpError as failure:
                    error = failure
            if error is None:
                answer.complete(outputs)
            else:
                answer.fail(error)

        made.listen(done)
        return answer

    def close(self) -> None:
        """Gives up what is being made; steps that wait get a CancelledError."""
        with self._lock:
            old, self._pass = self._pass, None
        if old is not None:
            old.close()
