"""Staging areas: tuples of tensors put in by one step and taken out by another, in order or by key.

A synchronous machine under one lock, as queues.py is: what cannot go on waits in line and is tried again after every
change, the first that came first. Bounded by a number of tuples and of bytes where a program says so. Used by
cpu/data_flow_stage.py and cpu/data_flow_map_stage.py. Follows stage_op.cc and map_stage_op.cc.
"""

from __future__ import annotations

import functools
import itertools
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.handles import kept
from tenfold_kernels.resources.waiting import ELEMENTS, ROOM, Lack, Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.resources.quota import Account

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: A tuple under way: None where a component has not come yet, or has been taken.
Parts: TypeAlias = list[Array | None]
#: What an attempt would do now, or None where it has to wait. Called with the lock held; raises OpError.
Ready: TypeAlias = Callable[[], Callable[[], Any] | None]


#: What a string counts, whatever it holds: TensorFlow's own header of one.
_STRING_BYTES = 24


def size_of(parts: Parts) -> int:
    """Bytes that count towards a memory limit."""
    there = (part for part in parts if part is not None)
    return sum(part.size * _STRING_BYTES if part.dtype == object else part.nbytes for part in there)


class Area(ABC):
    """What both kinds share: the bounds and the line. Thread-safe; no method blocks."""

    def __init__(self, name: str, capacity: int, memory_limit: int, account: Account | None = None) -> None:
        """`account` is charged for the tuples; None: nobody counts them."""
        self.name = name
        self._capacity, self._limit = capacity, memory_limit
        self.account = account
        self._lock = threading.Lock()
        self._line: list[tuple[Waiting, Ready]] = []
        self._bytes = 0

    def _has_memory(self, parts: Parts) -> bool:
        """Raises ResourceExhaustedError for what could never go in."""
        size = size_of(parts)
        if self._limit and size > self._limit:
            raise errors.resource_exhausted(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging Area with a memory "
                f"limit of '{self._limit}'."
            )
        if self.account is not None:
            self.account.check(size)
        return not self._limit or self._bytes + size <= self._limit

    def _is_full(self, count: int) -> bool:
        return 0 < self._capacity <= count

    @abstractmethod
    def size(self) -> int:
        """Whole tuples that are there now."""

    def _lack_of_tuples(self) -> Lack:
        there = self.size()
        return Lack(ELEMENTS, self.name, there, there + 1, "the tuple that it asks for is not there")

    def _lack_of_room(self) -> Lack:
        there = self.size()
        return Lack(ROOM, self.name, there, self._capacity, f"it holds {there} tuples, as much as it may")

    def _attempt(self, ready: Ready, lack: Callable[[], Lack] | None = None) -> Any:
        """Does it now, or gives a Waiting that waits for what `lack` says, by default for a tuple."""
        with self._lock:
            act = ready()
            if act is None:
                waiting = Waiting()
                waiting.lack = lack or self._lack_of_tuples
                entry = (waiting, ready)
                waiting.on_cancel = functools.partial(self._leave, entry)
                self._line.append(entry)
                return waiting
            outputs = act()
            finished = self._advance()
            if self.account is not None:
                self.account.add(self._bytes - self.account.bytes)
        for waiting, found, error in finished:
            waiting.deliver(found, error)
        return outputs

    def _advance(self) -> list[tuple[Waiting, Any, errors.OpError | None]]:
        """Lets the line go on until nothing moves; an error belongs to the attempt that waited. With the lock held."""
        finished: list[tuple[Waiting, Any, errors.OpError | None]] = []
        moved = True
        while moved:
            moved = False
            for entry in list(self._line):
                waiting, ready = entry
                error: errors.OpError | None = None
                try:
                    act = ready()
                except errors.OpError as found:
                    act, error = None, found
                if act is None and error is None:
                    continue
                self._line.remove(entry)
                if not waiting.claim():
                    continue
                outputs = None
                if act is not None:
                    moved = True
                    try:
                        outputs = act()
                    except errors.OpError as found:
                        error = found
                finished.append((waiting, outputs, error))
        return finished

    def _leave(self, entry: tuple[Waiting, Ready]) -> None:
        with self._lock:
            if entry in self._line:
                self._line.remove(entry)


class StagingArea(Area):
    """Tuples in the order in which they came."""

    def __init__(self, name: str, capacity: int, memory_limit: int, account: Account | None = None) -> None:
        super().__init__(name, capacity, memory_limit, account)
        self._held: deque[Parts] = deque()

    def size(self) -> int:
        with self._lock:
            return len(self._held)

    def put(self, tensors: Sequence[Array]) -> Any:
        """None, or a Waiting until there is room."""
        values: Parts = [kept(tensor) for tensor in tensors]

        def ready() -> Callable[[], Any] | None:
            return act if self._has_memory(values) and not self._is_full(len(self._held)) else None

        def act() -> None:
            self._held.append(values)
            self._bytes += size_of(values)

        return self._attempt(ready, self._lack_of_room)

    def get(self, count: int) -> Any:
        """The first tuple, or a Waiting for it. Raises InvalidArgumentError for one of not `count` tensors, taken."""

        def act() -> Any:
            values = self._held.popleft()
            self._bytes -= size_of(values)
            return _fitting(values, count)

        return self._attempt(lambda: act if self._held else None)

    def peek(self, index: int, count: int) -> Any:
        """The tuple at `index`, which stays. Raises InvalidArgumentError for an index below 0; `count` as in `get`."""
        if index < 0:
            raise invalid(f"Staging area {self.name} has no element {index}.")
        return self._attempt(lambda: (lambda: _fitting(self._held[index], count)) if index < len(self._held) else None)

    def clear(self) -> None:
        def act() -> None:
            self._held.clear()
            self._bytes = 0

        self._attempt(lambda: act)


class StagingMap(Area):
    """Tuples by number; components may come and go one by one."""

    def __init__(
        self,
        name: str,
        capacity: int,
        memory_limit: int,
        count: int,
        is_ordered: bool,
        account: Account | None = None,
    ) -> None:
        super().__init__(name, capacity, memory_limit, account)
        self._count, self._is_ordered = count, is_ordered
        self._held: dict[int, Parts] = {}
        #: Key → component → tensor; some of each key's components are missing.
        self._incomplete: dict[int, dict[int, Array | None]] = {}

    def size(self) -> int:
        with self._lock:
            return len(self._held)

    def incomplete_size(self) -> int:
        with self._lock:
            return len(self._incomplete)

    def put(self, key: int, indices: list[int], tensors: Sequence[Array]) -> Any:
        """None, or a Waiting until there is room: a whole tuple waits for its place, a part of one for memory alone.

        A tuple whose key is there already is dropped, as TensorFlow's map drops it. Raises InvalidArgumentError for a
        component that is there, or that there is not.
        """
        self._check(key, indices)
        values: Parts = [kept(tensor) for tensor in tensors]
        is_whole = len(indices) == self._count

        def ready() -> Callable[[], Any] | None:
            for index in indices:
                if not is_whole and self._incomplete.get(key, {}).get(index) is not None:
                    raise invalid(
                        f"The tensor for index '{index}' for key '{key}' was already initialized '{self._count}'."
                    )
            if not self._has_memory(values) or (is_whole and self._is_full(len(self._held))):
                return None
            return act

        def act() -> None:
            parts = {} if is_whole else self._incomplete.setdefault(key, {})
            parts.update(zip(indices, values, strict=True))
            self._bytes += size_of(values)
            if len(parts) < self._count:
                return
            if not is_whole:
                del self._incomplete[key]
            whole: Parts = [parts[index] for index in range(self._count)]
            if self._held.setdefault(key, whole) is not whole:
                self._bytes -= size_of(whole)

        return self._attempt(ready, self._lack_of_room)

    def get(self, key: int, indices: list[int]) -> Any:
        self._check(key, indices)
        return self._attempt(lambda: (lambda: outputs_of(self._take(key, indices))) if key in self._held else None)

    def get_any(self, indices: list[int]) -> Any:
        """The key, and its tuple: the smallest one of an ordered map."""
        self._check(None, indices)

        def act() -> Any:
            key = min(self._held) if self._is_ordered else next(iter(self._held))
            return (np.array(key, np.int64), *self._take(key, indices))

        return self._attempt(lambda: act if self._held else None)

    def peek(self, key: int, indices: list[int]) -> Any:
        self._check(key, indices)
        return self._attempt(lambda: (lambda: outputs_of(self._picked(key, indices))) if key in self._held else None)

    def clear(self) -> None:
        def act() -> None:
            self._held.clear()
            self._incomplete.clear()
            self._bytes = 0

        self._attempt(lambda: act)

    def _check(self, key: int | None, indices: list[int]) -> None:
        wrong = ""
        if not indices:
            wrong = "Indices are empty"
        elif any(first >= second for first, second in itertools.pairwise(indices)):
            wrong = "Indices are not strictly ordered"
        elif indices[0] < 0 or indices[-1] >= self._count:
            index = indices[0] if indices[0] < 0 else indices[-1]
            of_key = "" if key is None else f" for key '{key}'"
            wrong = f"Index '{index}'{of_key} was out of bounds '{self._count}'."
        if wrong:
            raise invalid(wrong)

    def _picked(self, key: int, indices: list[int]) -> Parts:
        parts = self._held[key]
        for index in indices:
            if parts[index] is None:
                raise invalid(f"Tensor at index '{index}' for key '{key}' has already been removed.")
        return [parts[index] for index in indices]

    def _take(self, key: int, indices: list[int]) -> Parts:
        found = self._picked(key, indices)
        parts = self._held[key]
        for index in indices:
            parts[index] = None
        self._bytes -= size_of(found)
        if all(part is None for part in parts):
            del self._held[key]
        return found


def _fitting(parts: Parts, count: int) -> Any:
    if len(parts) != count:
        raise invalid(f"Mismatch stage/unstage: {len(parts)} vs. {count}")
    return outputs_of(parts)


def outputs_of(parts: Parts) -> Any:
    """As a Compute returns them."""
    return parts[0] if len(parts) == 1 else tuple(parts)
