"""The iterator that steps ask for elements: a resource with a dataset's machine, and a line of steps.

An element that a step could not have any more stays for the next one. What takes long runs on a thread of the pool, and
its steps wait without holding one; what stands ready in a buffer is handed out at once. What an iterator remembers can
be saved, and given to another one of the same dataset. Used by cpu/dataset_iterator.py. Follows iterator_ops.cc.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run, State
from tenfold_kernels.resources.datasets.threads import pool
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class _Asked(NamedTuple):
    waiting: Waiting
    #: Of the next element, or of what the iterator remembers.
    finish: Callable[[Any], Any]
    is_save: bool


class DatasetIterator:
    """Thread-safe. `types` and `shapes` are what it was declared with; empty types take any dataset."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        self.types, self.shapes = tuple(types), tuple(shapes)
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._dataset: Dataset | None = None
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

    def end_work(self) -> None:
        """Nobody will ask any more: gives up what is under way, and what a dataset keeps open."""
        self._run.close()

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
        self._begin(dataset, run, dataset.iterate(run), is_over=False, unread=())

    def _begin(self, dataset: Dataset, run: Run, machine: Machine, is_over: bool, unread: Sequence[Element]) -> None:
        with self._lock:
            old, self._runs[0] = self._run, run
            self._dataset, self._machine, self._is_slow, self._is_over = dataset, machine, dataset.is_slow, is_over
            self._unread = deque(unread)
        old.close()

    def save(self, finish: Callable[[State], Any], is_all: bool = False) -> Waiting:
        """A Waiting for what `finish` makes of what it remembers, once all that was asked before has been served.

        Raises FailedPreconditionError for an iterator that was never started, and, where it must be all that there is
        to remember (`is_all`), for one whose functions have a state of their own.
        """
        dataset = self._dataset
        if is_all and dataset is not None and (op := dataset.stateful_op()) is not None:
            raise errors.failed_precondition(f"{op} is stateful.")
        with self._lock:
            if self._machine is None:
                raise errors.failed_precondition(
                    "Save() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before saving it."
                )
            return self._queue(finish, is_save=True)

    def restore(self, state: Any) -> None:
        """Goes on where an iterator of the same dataset was when it was saved.

        Raises FailedPreconditionError for an iterator that was never started, DataLossError for what is not a state of
        this dataset.
        """
        dataset = self._dataset
        if dataset is None:
            raise errors.failed_precondition(
                "Restore failed because the iterator has not been initialized. Ensure that you have run the "
                "initializer operation for this iterator before restoring it."
            )
        run = Run()
        machine = dataset.iterate(run)
        try:
            machine.restore(state["machine"])
            unread = [tuple(element) for element in state["unread"]]
            is_over = bool(state["is_over"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise errors.data_loss(
                f"The saved state is not that of an iterator over this dataset: {error}"
            ) from None
        self._begin(dataset, run, machine, is_over, unread)

    def _state(self) -> State:
        """Only the thread that is at the machine comes here."""
        with self._lock:
            machine, is_over, unread = self._machine, self._is_over, list(self._unread)
        assert machine is not None
        return {"is_over": is_over, "unread": unread, "machine": machine.save()}

    def _queue(self, finish: Callable[[Any], Any], is_save: bool) -> Waiting:
        """With the lock held: a place in the line, and a thread for it if none is at the machine."""
        asked = _Asked(Waiting(), finish, is_save)
        asked.waiting.on_cancel = functools.partial(self._leave, asked)
        self._line.append(asked)
        if not self._is_busy:
            self._is_busy = True
            pool.submit(self._serve)
        return asked.waiting

    def get_next(self, finish: Callable[[Element | None], Any]) -> Any:
        """What `finish` makes of the next element (None at the end), or a Waiting for it.

        Raises FailedPreconditionError for an iterator that was never started.
        """
        with self._lock:
            if self._machine is None:
                raise errors.failed_precondition(
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element."
                )
            if self._is_busy or (self._is_slow and not self._has_one()):
                return self._queue(finish, is_save=False)
            self._is_busy = True
        try:
            element = self._take()
        finally:
            self._pass_on()
        return finish(element)

    def _has_one(self) -> bool:
        """With the lock held: whether the next element is there already."""
        machine = self._machine
        return bool(self._unread) or (machine is not None and machine.is_ready is not None and machine.is_ready())

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
        element = machine.following()
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
                    if asked.is_save:
                        outputs = asked.finish(self._state())
                    else:
                        element = self._take()
                        outputs = asked.finish(element)
                except errors.OpError as failure:
                    error = failure
                except Exception as bug:  # must end the step, not leave it waiting
                    error = errors.internal(f"{type(bug).__name__}: {bug}")
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
        raise invalid(f"Number of components does not match: expected {len(types)} types but got {len(given)}.")
    for number, (a, b) in enumerate(zip(types, given, strict=True)):
        if a != b:
            raise invalid(f"Data type mismatch at component {number}: expected {a.op_name} but got {b.op_name}.")
    for number, (x, y) in enumerate(zip(shapes, given_shapes, strict=False)):
        if not x.is_compatible_with(y):
            raise invalid(f"Incompatible shapes at component {number}: expected {x} but got {y}.")
