"""The iterator that steps ask for elements: a resource with a dataset's machine, and a line of steps.

An element that a step could not have any more stays for the next one. What takes long runs on a thread of the pool, and
its steps wait without holding one. Used by cpu/dataset_iterator.py. Follows iterator_ops.cc.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run
from tenfold_kernels.resources.datasets.threads import pool
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class _Asked(NamedTuple):
    waiting: Waiting
    finish: Callable[[Element | None], Any]


class DatasetIterator:
    """Thread-safe. `types` and `shapes` are what it was declared with; empty types take any dataset."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        self.types, self.shapes = tuple(types), tuple(shapes)
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._machine: Machine | None = None
        self._is_slow = self._is_over = False
        #: The current run alone; a list, for the finalizer, which must not hold the iterator.
        self._runs = [Run()]
        self._unread: deque[Element] = deque()
        self._line: deque[_Asked] = deque()
        #: A thread is at the machine; which, while that is one of the pool's.
        self._is_busy = False
        self._thread = 0
        self._served: Waiting | None = None
        weakref.finalize(self, _close, self._runs)

    @property
    def _run(self) -> Run:
        return self._runs[0]

    @property
    def is_started(self) -> bool:
        return self._machine is not None

    def start_once(self, dataset: Dataset) -> None:
        """As `start`, unless another step was faster."""
        with self._starting:
            if self._machine is None:
                self.start(dataset)

    def start(self, dataset: Dataset) -> None:
        """Begins anew. Raises InvalidArgumentError for a dataset of other types or shapes."""
        verify(self.types, self.shapes, dataset.types, dataset.shapes)
        run = Run()
        machine = dataset.iterate(run)
        with self._lock:
            old, self._runs[0] = self._run, run
            self._machine, self._is_slow, self._is_over = machine, dataset.is_slow, False
            self._unread.clear()
        old.close()

    def get_next(self, finish: Callable[[Element | None], Any]) -> Any:
        """What `finish` makes of the next element (None at the end), or a Waiting for it.

        Raises FailedPreconditionError for an iterator that was never started.
        """
        with self._lock:
            if self._machine is None:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element.",
                )
            is_first = not self._is_busy
            self._is_busy = True
            if not is_first or self._is_slow:
                asked = _Asked(Waiting(), finish)
                asked.waiting.on_cancel = functools.partial(self._leave, asked)
                self._line.append(asked)
                if is_first:
                    pool.submit(self._serve)
                return asked.waiting
        try:
            element = self._take()
        finally:
            self._pass_on()
        return finish(element)

    def _pass_on(self) -> None:
        with self._lock:
            self._is_busy = bool(self._line)
            if self._is_busy:
                pool.submit(self._serve)

    def _take(self) -> Element | None:
        """The next element; only the thread that is at the machine comes here."""
        with self._lock:
            if self._unread:
                return self._unread.popleft()
            machine, run = self._machine, self._run
            if self._is_over or machine is None:
                return None
        element = machine()
        if element is None:
            with self._lock:
                if self._run is run:
                    self._is_over = True
        return element

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._line:
                    self._is_busy = False
                    return
                asked = self._line.popleft()
                self._served, self._thread, run = asked.waiting, threading.get_ident(), self._run
                run.begin()  # a step that ends from here on is heard
            element: Element | None = None
            outputs: Any = None
            error: errors.OpError | None = None
            if asked.waiting.is_open:
                try:
                    element = self._take()
                    outputs = asked.finish(element)
                except errors.OpError as failure:
                    error = failure
                except Exception as bug:  # must end the step, not leave it waiting
                    error = errors.InternalError(None, None, f"{type(bug).__name__}: {bug}")
            with self._lock:
                self._served = None
                is_taken = asked.waiting.claim()
                if not is_taken and element is not None and self._run is run:
                    self._unread.append(element)
            if is_taken:
                asked.waiting.deliver(outputs, error)

    def _leave(self, asked: _Asked) -> None:
        """The step that waited has ended."""
        with self._lock:
            if asked in self._line:
                self._line.remove(asked)
            run, thread = self._run, self._thread if self._served is asked.waiting else None
        if thread is not None:
            run.cancel(thread)


def _close(runs: list[Run]) -> None:
    for run in runs:
        run.close()


def verify(
    types: Sequence[DType], shapes: Sequence[TensorShape], given: Sequence[DType], given_shapes: Sequence[TensorShape]
) -> None:
    """Raises InvalidArgumentError where elements of the given types and shapes are not what was expected."""
    if not types:
        return
    if len(types) != len(given):
        raise _invalid(f"Number of components does not match: expected {len(types)} types but got {len(given)}.")
    for number, (a, b) in enumerate(zip(types, given, strict=True)):
        if a != b:
            raise _invalid(f"Data type mismatch at component {number}: expected {a.op_name} but got {b.op_name}.")
    for number, (x, y) in enumerate(zip(shapes, given_shapes, strict=False)):
        if not x.is_compatible_with(y):
            raise _invalid(f"Incompatible shapes at component {number}: expected {x} but got {y}.")


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)
