"""What outlives steps in one set of containers, counted: bytes of variables and of what else keeps values, and queues.

`state.ResourceManager` has a quota, each of its variables, queues, tables, accumulators, barriers and staging areas an
account there: charged when it grows, before it does, and closed when it is forgotten. A session's own quota is part of
its task's. tenfold_services/limits.py sets the numbers. Finalizers may run at any time, so the locks are reentrant.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tenfold_core.env_settings import limit_reached

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

#: What sets other numbers: for all of a task, and for each session with containers of its own.
BYTES, BYTES_PER_SESSION = "TENFOLD_TASK_STATE_BYTES", "TENFOLD_TASK_STATE_BYTES_PER_SESSION"
QUEUES = "TENFOLD_TASK_QUEUES"
#: Bytes of an element that is an object, its place in the array included; the text comes on top.
_OBJECT_BYTES = 64


class StateQuota:
    """Thread-safe; never blocks for long. 0 is no limit."""

    def __init__(
        self, most_bytes: int = 0, most_queues: int = 0, *, variable: str = BYTES, whole: StateQuota | None = None
    ) -> None:
        """`variable` is what sets `most_bytes`. All of this counts for `whole`, too, until `close`."""
        self._most_bytes, self._most_queues, self._variable = most_bytes, most_queues, variable
        self._whole = whole
        self.lock = threading.RLock()
        #: There now.
        self.bytes = self.queues = 0

    def account(self, name: str) -> Account:
        """For a variable, or what else keeps values but is no queue."""
        return Account(self, name, 0)

    def queue_account(self, name: str) -> Account:
        """For a queue. Raises ResourceExhaustedError where there are too many."""
        with self.lock:
            self._check_queues()
            return Account(self, name, 1)

    def close(self) -> None:
        """What is left goes with its session."""
        with self.lock:
            whole, self._whole = self._whole, None
            if whole is not None:
                whole.add(-self.bytes, -self.queues)

    def add(self, nbytes: int, queues: int = 0) -> None:
        """Charges so much, or gives it back, without asking."""
        with self.lock:
            self.bytes += nbytes
            self.queues += queues
            if self._whole is not None:
                self._whole.add(nbytes, queues)

    def check(self, nbytes: int, name: str) -> None:
        """Raises ResourceExhaustedError where `nbytes` more, for `name`, would be too many. To be sure that they are
        not taken meanwhile, with the lock."""
        if nbytes > 0 and 0 < self._most_bytes < self.bytes + nbytes:
            text = f"OOM: with '{name}' what is kept would take {self.bytes + nbytes} bytes"
            raise limit_reached(text, self._most_bytes, self._variable)
        if self._whole is not None:
            self._whole.check(nbytes, name)

    def _check_queues(self) -> None:
        if 0 < self._most_queues <= self.queues:
            raise limit_reached(f"There are {self.queues} queues", self._most_queues, QUEUES)
        if self._whole is not None:
            self._whole._check_queues()


class Account:
    """What one variable, queue, table, … has taken of a quota."""

    __slots__ = ("_name", "_queues", "_quota", "bytes")

    def __init__(self, quota: StateQuota, name: str, queues: int) -> None:
        self._quota: StateQuota | None = quota
        self._name, self._queues, self.bytes = name, queues, 0
        quota.add(0, queues)

    def resize(self, nbytes: int) -> None:
        """It takes so many bytes from now on. Raises ResourceExhaustedError, and changes nothing, for too many."""
        quota = self._quota
        if quota is None or nbytes == self.bytes:
            return
        with quota.lock:
            quota.check(nbytes - self.bytes, self._name)
            self._add(nbytes - self.bytes)

    def check(self, nbytes: int) -> None:
        """Raises ResourceExhaustedError where it could not take so many bytes more."""
        quota = self._quota
        if quota is not None:
            quota.check(nbytes, self._name)

    def add(self, nbytes: int) -> None:
        """So many bytes more, or fewer, without asking."""
        quota = self._quota
        if quota is not None and nbytes:
            with quota.lock:
                self._add(nbytes)

    def close(self) -> None:
        """It is forgotten: gives everything back. Twice is no error."""
        quota = self._quota
        if quota is not None:
            with quota.lock:
                if self._quota is not None:
                    self._quota = None
                    quota.add(-self.bytes, -self._queues)

    def _add(self, nbytes: int) -> None:
        if self._quota is not None:
            self.bytes += nbytes
            self._quota.add(nbytes)


def size_of(arrays: Iterable[np.ndarray[Any, Any]]) -> int:
    """Bytes that the arrays take, texts included."""
    total = 0
    for array in arrays:
        total += array.nbytes
        if array.dtype.hasobject:
            total += array.size * (_OBJECT_BYTES - array.itemsize)
            total += sum(len(item) for item in array.ravel().tolist() if isinstance(item, bytes))
    return total
