"""How a map makes a whole block of elements by one call of its function, and when it does not.

A call that fails is done anew for each element, so that an element fails by itself. A call that is not known to be
faster is timed now and then, and so are calls for each element: the faster way is taken. Both give the same numbers.
Used by functional.py and parallel.py.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Element, Machine, Run, State, element_of
from tenfold_kernels.resources.datasets.sources import row
from tenfold_kernels.resources.datasets.stacks import stacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.registry import ByRows

#: Nanoseconds.
clock = time.perf_counter_ns
#: Groups of each way that are timed before one is chosen, elements of one for which the function is called one by one.
_GROUPS, _SIZE = 6, 64
#: After how many elements both are timed again, at first and in the end.
_AGAIN, _SELDOM = 1 << 12, 1 << 17


class Apart:
    """A source whose blocks can be given back: their elements come one by one then."""

    def __init__(self, source: Machine) -> None:
        self._source, self._take = source, source.following
        #: Elements that were given back, in order.
        self._held: deque[Element] = deque()
        #: What the source raised behind elements that it had given: comes when it is asked again.
        self._failure: errors.OpError | None = None

    @property
    def machine(self) -> Machine:
        return Machine(self.following, self.save, self.restore)

    def following(self) -> Element | None:
        if self._held:
            return self._held.popleft()
        self._check()
        return self._take()

    def _check(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def rows(self, most: int, run: Run) -> Element | None:
        """The next elements on top of each other; None at the end, and while there are some that were given back."""
        if self._held:
            return None
        self._check()
        rows = None if self._source.block is None else self._source.block(most)
        if rows is not None:
            return rows
        elements: list[Element] = []
        try:
            while len(elements) < most and (element := self._take()) is not None:
                run.check()
                elements.append(element)
        except errors.OpError as error:
            if not elements or isinstance(error, errors.CancelledError):
                self._held.extend(elements)
                raise
            self._failure = error
        if not elements:
            return None
        try:
            return tuple(stacked(number, arrays) for number, arrays in enumerate(zip(*elements, strict=True)))
        except errors.InvalidArgumentError:  # of different shapes
            self._held.extend(elements)
            return None

    def give_back(self, rows: Element) -> None:
        for number in range(len(rows[0])):
            self._held.append(tuple(row(array, number) for array in rows))

    def save(self) -> State:
        failure = self._failure
        return list(self._held), None if failure is None else (failure.code, failure.message), self._source.save()

    def restore(self, state: Any) -> None:
        held, failure, inner = state
        self._held = deque(tuple(element) for element in held)
        self._failure = None if failure is None else errors.from_code(int(failure[0]), str(failure[1]))
        self._source.restore(inner)


class _Way:
    """Calls of one kind: what an element takes, by the fastest of a few groups. The first ones load and compile."""

    __slots__ = ("_elements", "_groups", "_nanoseconds", "_size", "best")

    def __init__(self, size: int) -> None:
        self._size = size
        self._groups = self._elements = self._nanoseconds = 0
        self.best = float("inf")

    def note(self, elements: int, nanoseconds: int) -> None:
        self._elements += elements
        self._nanoseconds += nanoseconds
        if self._elements >= self._size:
            self.best = min(self.best, self._nanoseconds / self._elements)
            self._groups += 1
            self._elements = self._nanoseconds = 0

    @property
    def is_known(self) -> bool:
        return self._groups >= _GROUPS


class Blocks:
    """Machine.block of a map. `find` says once how its function is called for many elements, if it can be."""

    def __init__(self, source: Apart, run: Run, find: Callable[[], ByRows | None], captured: Element) -> None:
        self._source, self._run, self._find, self._captured = source, run, find, captured
        self._is_known = False
        self._call: ByRows | None = None
        self._by_rows, self._one_by_one = _Way(1), _Way(_SIZE)
        #: Elements until both ways are timed again, and until the time after that.
        self._left = self._again = _AGAIN

    def block(self, most: int) -> Element | None:
        if not self._is_known:
            self._is_known, self._call = True, self._find()
        call = self._call
        if call is None or not (call.is_sure or self._is_faster(most)):
            return None
        began = clock()
        rows = self._source.rows(most, self._run)
        if rows is None:
            return None
        try:
            found = element_of(self._run.outputs(call, (*rows, *self._captured)))
        except errors.CancelledError:
            raise
        except Exception:  # whatever it is, the element that it comes from says so when it is called for
            if call.is_sure:
                raise
            self._source.give_back(rows)
            self._by_rows.note(len(rows[0]), clock() - began)
            return None
        if not call.is_sure:
            self._by_rows.note(len(rows[0]), clock() - began)
        return found

    def is_known_as_faster(self) -> bool:
        """Whether both ways were timed, and elements that are made together take less time each."""
        return self._one_by_one.is_known and self._by_rows.is_known and self._by_rows.best <= self._one_by_one.best

    def _is_faster(self, most: int) -> bool:
        """Whether the next elements are made together: the faster way, or one that is not timed yet."""
        if not self._by_rows.is_known:
            return True
        if not self._one_by_one.is_known:
            return False
        self._left -= most
        if self._left < 0:
            self._left = self._again = min(4 * self._again, _SELDOM)
            self._by_rows, self._one_by_one = _Way(1), _Way(_SIZE)
            return True
        return self._by_rows.best <= self._one_by_one.best

    def timed(self, following: Callable[[], Element | None]) -> Callable[[], Element | None]:
        """`following`, timed as long as that is of use."""

        def taken() -> Element | None:
            if self._call is None or self._call.is_sure or self._one_by_one.is_known:
                return following()
            began = clock()
            element = following()
            self._one_by_one.note(1, clock() - began)
            return element

        return taken
