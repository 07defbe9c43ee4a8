"""A dataset that works ahead: a thread of the pool fills a buffer while steps use what is in it.

A reader that finds the buffer empty makes the element itself, so nothing depends on a free thread. Elements, errors and
the end stay in order. Used by cpu/dataset.py. Follows prefetch_dataset_op.cc.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run, Same, State
from tenfold_kernels.resources.datasets.statistics import Figures, figures_of
from tenfold_kernels.resources.datasets.threads import pool

#: How far ahead a buffer goes whose size is left to us (-1), and how far at most.
AUTOTUNED, MOST = 8, 4096
#: After so many seconds a thread that has filled a buffer looks whether something was taken out of it.
_PAUSE_S = 1e-3


class Prefetch(Same):
    """The input, up to `size` elements ahead."""

    scalars = 1

    def __init__(self, dataset: Dataset, size: int) -> None:
        super().__init__(dataset)
        if size < -1:
            raise invalid("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning")
        self._size = AUTOTUNED if size == -1 else min(size, MOST)

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        figures = figures_of(run, self, "PrefetchDataset")
        if not self._size or (not self.is_slow and figures is None):
            return source  # what takes no time needs no thread
        ahead = _Prefetching(source, self._size, run, figures)
        return Machine(ahead.following, ahead.save, ahead.restore, is_ready=ahead.is_ready)

    def at(self, index: int, run: Run) -> Element:
        return self.input.at(index, run)


class _Prefetching:
    def __init__(self, source: Machine, size: int, run: Run, figures: Figures | None) -> None:
        self._source, self._size, self._run, self._figures = source, size, run, figures
        #: A reader that takes an element wakes a thread once no more are left than this: a thread that is woken for
        #: each element takes longer than many elements do. One that fills the buffer looks again by itself before it
        #: goes.
        self._few = size // 2
        self._is_low = threading.Event()
        #: Held while the source makes an element, and until it stands in the buffer.
        self._making = threading.Lock()
        self._lock = threading.Lock()
        self._buffer: deque[tuple[Element | None, errors.OpError | None]] = deque()
        self._is_filling = self._is_over = False

    def following(self) -> Element | None:
        have = len(self._buffer)
        entry = self._pop()
        if entry is None:
            with self._making:
                entry = self._pop()
                if entry is None:
                    if self._is_over:
                        return None
                    entry = self._make()
        if not self._is_filling:
            self._fill_later()
        elif len(self._buffer) <= self._few:
            self._is_low.set()
        element, error = entry
        if error is not None:
            raise error
        if self._figures is not None and element is not None:
            have = max(have, 1)  # one that was made at once stood there, too
            self._figures.sample("buffer_utilization", have / self._size)
            self._figures.scalar("buffer_size", have)
            self._figures.scalar("buffer_capacity", self._size)
        return element

    def is_ready(self) -> bool:
        return bool(self._buffer)

    def save(self) -> State:
        """With what stands in the buffer, errors too."""
        with self._making:
            inner = self._source.save()
            with self._lock:
                held = [
                    (element, None if error is None else (error.code, error.message)) for element, error in self._buffer
                ]
        return self._is_over, held, inner

    def restore(self, state: Any) -> None:
        with self._making:
            self._is_over, held, inner = state
            self._source.restore(inner)
            with self._lock:
                self._buffer.clear()
                for element, error in held:
                    made = None if error is None else errors.from_code(int(error[0]), str(error[1]))
                    self._buffer.append((None if element is None else tuple(element), made))

    def _pop(self) -> tuple[Element | None, errors.OpError | None] | None:
        with self._lock:
            return self._buffer.popleft() if self._buffer else None

    def _make(self) -> tuple[Element | None, errors.OpError | None]:
        """The next element, or the end, or what went wrong. With `_making` held."""
        try:
            element = self._source.following()
        except errors.OpError as error:
            return None, error
        except Exception as bug:  # must reach the step that asks
            return None, errors.internal(f"{type(bug).__name__}: {bug}")
        self._is_over = element is None
        return element, None

    def _fill_later(self) -> None:
        with self._lock:
            if self._is_filling or self._is_over or len(self._buffer) >= self._size:
                return
            self._is_filling = True
        pool.submit(self._fill)

    def _fill(self) -> None:
        has_looked = False
        while True:
            with self._lock:
                is_full = len(self._buffer) >= self._size
                if self._is_over or self._run.is_closed or (is_full and has_looked):
                    self._is_filling = False
                    return
            if is_full:
                self._is_low.wait(_PAUSE_S)
                self._is_low.clear()
                has_looked = True
                continue
            has_looked = False
            with self._making:
                if not self._is_over:
                    entry = self._make()
                    with self._lock:
                        self._buffer.append(entry)
                        if entry[1] is not None:
                            # The reader that gets the error may not come back: no further until it is asked again.
                            self._is_filling = False
                            return
