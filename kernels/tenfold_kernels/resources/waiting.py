"""A kernel's result that comes later: what a dequeue from an empty queue returns instead of an element.

A kernel registered with `blocking=True` may return a `Waiting`; the executors treat its node like a receive, so no
thread is held however many steps wait. The resource that made it (queues.py, accumulators.py, barriers.py) completes
it when the result is there; a step that ends first cancels it. TensorFlow's AsyncOpKernel and CancellationManager.

    open ──claim──► claimed ──deliver──► over        the maker has decided: the result belongs to the step
      └────cancel──► cancelled                       the step has decided: `claim` fails, nothing was taken

`claim` and `cancel` exclude each other, the first call wins: an element is never lost and never taken twice. A result
that its step may not keep when it fails, a mutex's lock, has a `give_back`: `cancel` calls it if the result was given.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.errors import OpError

#: Told once: (outputs as a Compute returns them, None) or (None, error).
Done: TypeAlias = "Callable[[Any, OpError | None], None]"

_OPEN, _CLAIMED, _OVER, _CANCELLED = range(4)

#: What a kernel may wait for: others put something in, others take something out, gradients, a lock. Also names on the
#: wire (why.proto).
ELEMENTS, ROOM, GRADIENTS, LOCK = "elements", "room", "gradients", "lock"


class Lack(NamedTuple):
    """What is missing for a result, for those who ask why a step takes long."""

    #: ELEMENTS, ROOM, GRADIENTS or LOCK.
    kind: str
    #: The name of the queue, accumulator, barrier, staging area or lock.
    resource: str
    #: How many there are, and how many the kernel needs; of ROOM how many there are, and how many fit.
    have: int
    need: int
    #: The same as the end of a sentence.
    text: str
    #: Of a LOCK: the id() of the Waiting by which its holder got it.
    holder: int = 0


def _nothing() -> None:
    """For results without a list of waiters."""


class Waiting:
    """One result that comes later. Thread-safe; completed at most once."""

    __slots__ = ("_done", "_error", "_lock", "_outputs", "_state", "give_back", "lack", "on_cancel", "since")

    def __init__(self, on_cancel: Callable[[], None] = _nothing) -> None:
        self._lock = threading.Lock()
        self._state = _OPEN
        self._outputs: Any = None
        self._error: OpError | None = None
        #: Set once: the callback that is told.
        self._done: Done | None = None
        #: Leaves the list of waiters; called at most once, by `cancel`, with no lock of ours held.
        self.on_cancel = on_cancel
        #: Undoes a result that was given, any number of times, with no lock of ours held. Set before `deliver`.
        self.give_back: Callable[[], None] | None = None
        #: Says what of others is missing; any thread, and with no lock of the resource. None, or None from it: it
        #: computes.
        self.lack: Callable[[], Lack | None] | None = None
        #: When the wait began (monotonic seconds).
        self.since = monotonic()

    @property
    def is_open(self) -> bool:
        """True until it is claimed or cancelled."""
        return self._state == _OPEN

    def claim(self) -> bool:
        """The maker will `deliver`; False when the step has given up. Calls nothing: allowed under the maker's lock."""
        with self._lock:
            if self._state != _OPEN:
                return False
            self._state = _CLAIMED
            return True

    def deliver(self, outputs: Any = None, error: OpError | None = None) -> None:
        """Hands over the result of what was claimed. Runs the listener: call it without a lock held."""
        with self._lock:
            if self._state != _CLAIMED:
                return  # the step ended between the claim and now
            self._state = _OVER
            done = self._done
            if done is None:
                self._outputs, self._error = outputs, error
        if done is not None:
            done(outputs, error)

    def complete(self, outputs: Any) -> bool:
        """The result is there: outputs as a Compute returns them. False if it was over already."""
        if not self.claim():
            return False
        self.deliver(outputs)
        return True

    def fail(self, error: OpError) -> bool:
        """There will be no result. False if it was over already."""
        if not self.claim():
            return False
        self.deliver(None, error)
        return True

    def listen(self, done: Done) -> None:
        """Calls `done` once: now if it is over, else on the thread that completes it. One listener."""
        with self._lock:
            if self._state != _OVER:
                self._done = done
                return
            outputs, error = self._outputs, self._error
            self._outputs = None
        done(outputs, error)

    def cancel(self) -> None:
        """The step ended, and not well if it has the result: leaves the line, or gives back what it may not keep.

        Nothing is delivered any more. Any thread, any number of times.
        """
        with self._lock:
            before, self._state = self._state, _CANCELLED
            self._done = self._outputs = None
        if before == _OPEN:
            self.on_cancel()
        elif self.give_back is not None and before != _CANCELLED:
            self.give_back()
