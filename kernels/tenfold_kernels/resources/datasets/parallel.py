"""A map that makes several elements at once, on threads of the pool, while what comes out stays in order.

Short calls gain nothing by that: handing one over takes longer than it does. So calls are made one by one, and timed,
until they prove long. A reader that waits for an element that no thread has begun makes it itself: nothing depends on a
free thread. Used by cpu/dataset.py. Follows parallel_map_dataset_op.cc.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import Element, Machine, Run, State
from tenfold_kernels.resources.datasets.functional import Map, call_for_element
from tenfold_kernels.resources.datasets.map_blocks import Apart, Blocks
from tenfold_kernels.resources.datasets.statistics import Figures, figures_of
from tenfold_kernels.resources.datasets.threads import pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import Function
    from tenfold_kernels.resources.datasets.core import Dataset

#: Calls at once at most, whatever a program says.
MOST_CALLS = 32
#: Seconds that a call takes on average for which another thread is worth it.
_LONG = 3e-4
#: Calls that show whether they are short where they may wait for each other: until then, several are begun.
_KNOWN = 16
#: Seconds that the pool has to begin a call before who waits for any of them makes one.
_PATIENCE_S = 0.05
#: How much of the average the last call is.
_WEIGHT = 0.25


class ParallelMap(Map):
    """As Map, with up to `calls` elements being made at once; -1 leaves their number to us.

    With `in_order` false, what is ready first comes first.
    """

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        function: Function,
        captured: Element,
        keeps_count: bool,
        calls: int,
        in_order: bool,
        kind: str = "ParallelMapDataset",
        is_counted: bool | None = None,
    ) -> None:
        """`kind` is TensorFlow's name of the dataset, for figures about it."""
        super().__init__(types, shapes, dataset, function, captured, keeps_count, is_counted)
        if calls < 1 and calls != -1:
            raise invalid("num_parallel_calls must be greater than zero.")
        self._calls = min(os.cpu_count() or 1 if calls == -1 else calls, MOST_CALLS)
        self._in_order, self._kind = in_order, kind

    def iterate(self, run: Run) -> Machine:
        figures = figures_of(run, self, self._kind)
        if self._calls == 1 and figures is None:
            return super().iterate(run)
        source = Apart(self._input.iterate(run))
        in_order = self._in_order and not run.is_sloppy
        calls = _Calls(source.machine, run, self._call, self._calls, in_order, figures)
        if figures is not None:
            return Machine(calls.following, calls.save, calls.restore, None, calls.is_ready)
        mapping = Blocks(source, run, self._at_once, self._captured)
        calls.rests = mapping.is_known_as_faster

        def block(most: int) -> Element | None:
            # what is being made already comes first
            return mapping.block(most) if calls.is_idle else None

        return Machine(mapping.timed(calls.following), calls.save, calls.restore, block, calls.is_ready)

    def _call(self, run: Run, element: Element) -> Element | None:
        return call_for_element(run, self._function, (*element, *self._captured), self._keeps)


def _timed(
    call: Callable[[Run, Element], Element | None], figures: Figures
) -> Callable[[Run, Element], Element | None]:
    """The call, whose nanoseconds are noted."""

    def timed(run: Run, element: Element) -> Element | None:
        began = time.perf_counter_ns()
        try:
            return call(run, element)
        finally:
            figures.sample("execution_time", time.perf_counter_ns() - began)

    return timed


def _never() -> bool:
    return False


class _Slot:
    """An element that is being made, or will be. The first who claims it makes it."""

    __slots__ = ("_claim", "_news", "argument", "error", "is_over", "result")

    def __init__(self, argument: Element) -> None:
        self.argument = argument
        self.result: Element | None = None
        self.error: errors.OpError | None = None
        self.is_over = False
        self._claim = threading.Lock()
        self._news = threading.Event()

    @classmethod
    def made(cls, result: Element | None, error: errors.OpError | None) -> _Slot:
        slot = cls(())
        slot.claim()
        slot.result, slot.error, slot.is_over = result, error, True
        return slot

    @property
    def is_claimed(self) -> bool:
        return self._claim.locked()

    def claim(self) -> bool:
        return self._claim.acquire(blocking=False)

    def done(self) -> None:
        self.is_over = True
        self._news.set()

    def wait(self, run: Run) -> None:
        """Blocks until it is over. Raises CancelledError for one who gives up; another may wait after that."""
        self._news = threading.Event()
        if not self.is_over:
            run.wait(self._news)


class _Calls:
    def __init__(
        self,
        source: Machine,
        run: Run,
        call: Callable[[Run, Element], Element | None],
        most: int,
        in_order: bool,
        figures: Figures | None,
    ) -> None:
        self._source, self._run, self._most, self._in_order = source, run, most, in_order
        self._call, self._figures = call if figures is None else _timed(call, figures), figures
        self._window: deque[_Slot] = deque()
        self._is_over = False
        #: Whether elements had better be made together: no more are begun here, so that those under way come to an end.
        self.rests: Callable[[], bool] = _never
        #: Some element was made since it was put here.
        self._news = threading.Event()
        #: Seconds that a call takes, and calls so far.
        self._seconds, self._made = 0.0, 0

    def following(self) -> Element | None:
        if self._figures is not None:
            busy = sum(slot.is_claimed and not slot.is_over for slot in self._window)
            self._figures.scalar("thread_utilization", busy / self._most)
        if self._seconds < _LONG and not self._window and (self._in_order or self._made >= _KNOWN):
            return self._alone()
        if not self._window or not self.rests():
            self._fill()
        if not self._window:
            return None
        slot = self._finished() if self._in_order else self._first_finished()
        self._window.remove(slot)
        if slot.error is not None:
            raise slot.error
        return slot.result

    def is_ready(self) -> bool:
        return bool(self._window) and self._window[0].is_over

    @property
    def is_idle(self) -> bool:
        """Whether the source's next element is the one that comes next."""
        return not self._window and not self._is_over

    def _alone(self) -> Element | None:
        element = None if self._is_over else self._source.following()
        if element is None:
            self._is_over = True
            return None
        begin = time.perf_counter()
        result = self._call(self._run, element)
        self._seconds += (time.perf_counter() - begin - self._seconds) * _WEIGHT
        return result

    def _fill(self) -> None:
        while len(self._window) < self._most and not self._is_over:
            try:
                element = self._source.following()
            except errors.OpError as error:
                self._window.append(_Slot.made(None, error))
                return  # the reader that gets the error may not come back
            if element is None:
                self._is_over = True
                return
            slot = _Slot(element)
            self._window.append(slot)
            pool.submit(lambda slot=slot: self._make_there(slot))  # type: ignore[misc]

    def _finished(self) -> _Slot:
        """The first slot, once its element is made."""
        slot = self._window[0]
        if slot.claim():
            self._make(slot)
        elif not slot.is_over:
            slot.wait(self._run)
        return slot

    def _first_finished(self) -> _Slot:
        """The slot whose element is made first. Calls may wait for each other: the pool's threads get them first."""
        is_patient = True
        while True:
            self._news = threading.Event()
            for slot in self._window:
                if slot.is_over:
                    return slot
            waiting = [slot for slot in self._window if not slot.is_claimed]
            if waiting and is_patient:
                is_patient = self._news.wait(_PATIENCE_S)
                continue
            for slot in waiting:
                if slot.claim():
                    self._make(slot)
                    return slot
            self._run.wait(self._news)

    def _make_there(self, slot: _Slot) -> None:
        """On a thread of the pool, unless the element is not wanted any more."""
        if self._run.is_closed or not slot.claim():
            return
        self._run.begin()
        self._make(slot)

    def _make(self, slot: _Slot) -> None:
        begin = time.perf_counter()
        try:
            slot.result = self._call(self._run, slot.argument)
        except errors.OpError as error:
            slot.error = error
        except Exception as bug:  # must reach the step that asks
            slot.error = errors.internal(f"{type(bug).__name__}: {bug}")
        finally:
            slot.argument = ()
            self._made += 1
            self._seconds += (time.perf_counter() - begin - self._seconds) * _WEIGHT
            slot.done()
            self._news.set()

    def save(self) -> State:
        """Waits for what is being made: it is saved as it is."""
        made: list[State] = []
        for slot in self._window:
            if slot.claim():
                self._make(slot)
            else:
                slot.wait(self._run)
            made.append((slot.result, None if slot.error is None else (int(slot.error.code), slot.error.message)))
        return self._is_over, made, self._source.save()

    def restore(self, state: Any) -> None:
        self._is_over, made, inner = state
        self._source.restore(inner)
        self._window.clear()
        for result, error in made:
            failure = None if error is None else errors.from_code(int(error[0]), str(error[1]))
            self._window.append(_Slot.made(None if result is None else tuple(result), failure))
