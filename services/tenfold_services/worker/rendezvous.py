"""Where the tensors of one step meet: producers send, consumers receive, each edge once.

A pure machine: no event loop, no waiting. `recv` takes a callback; arrivals.py makes something to await of it.
Follows TensorFlow's framework/rendezvous.cc and the contract of base_rendezvous_mgr.h.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tenfold_core import errors
from tenfold_core.env_settings import limit_reached
from tenfold_kernels.resources.state import Variable

from ..limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..interfaces import RunGraphResult, Value

#: Told once: (value, is_dead, None) or (None, False, error). Runs on the sender's or the aborter's thread.
Done: TypeAlias = Callable[[Any, bool, errors.OpError | None], None]


def read_now(value: Value | Variable) -> Value:
    """What a reference refers to at this moment; any other value as it is. Never blocks."""
    return value.value if isinstance(value, Variable) else value


class PartialCalls(Protocol):
    """A run that takes its feeds and fetches in several calls (partial_runs.py)."""

    def ended_as_idle(self, now: float) -> bool:
        """Ends it if there was no call for so long that none will come; whether that is so."""

    async def call(self, feeds: Mapping[str, Value], fetches: Sequence[str], is_last: bool) -> RunGraphResult:
        """One of its calls."""


class Rendezvous:
    """One step's meeting place on one task. Thread-safe: programs in the pool send from their own threads."""

    __slots__ = (
        "_limit", "_listeners", "_lock", "_sent", "_waiting", "created", "error", "partial", "runs", "step_id",
    )  # fmt: skip

    def __init__(self, step_id: int, *, created: float = 0.0, limit: int = DEFAULT_LIMITS.keys_per_step) -> None:
        self.step_id, self.created = step_id, created
        #: Partitions of this task that run now; a step with a run is never forgotten.
        self.runs = 0
        #: The run that takes its feeds and fetches in several calls, if this step is such.
        self.partial: PartialCalls | None = None
        self._limit = limit
        self._lock = threading.Lock()
        #: Sent and not yet received. Disjoint from _waiting.
        self._sent: dict[str, tuple[Value | Variable, bool]] = {}
        #: Asked for and not yet sent.
        self._waiting: dict[str, Done] = {}
        #: Told of the abort, once, besides the receivers.
        self._listeners: list[Callable[[errors.OpError], None]] = []
        #: What the step was aborted with on this task: the first error. Set means: both tables are empty and stay so.
        self.error: errors.OpError | None = None

    @property
    def idle(self) -> bool:
        """True when no part runs here and no receiver waits (values that were not fetched do not count)."""
        return self.runs == 0 and not self._waiting

    def waits_for(self, prefix: str) -> bool:
        """Whether a receiver waits for a key that begins so."""
        with self._lock:
            return any(key.startswith(prefix) for key in self._waiting)

    def send(self, key: str, value: Value | Variable, is_dead: bool = False) -> None:
        """Hands one edge over. Never blocks. The value is shared, not copied: it must not change until received.
        A variable stands for a reference to it, and is read when it is received.

        Raises the step's error once aborted, InternalError for a key sent twice, ResourceExhaustedError over the limit.
        """
        with self._lock:
            if self.error is not None:
                raise self.error
            done = self._waiting.pop(key, None)
            if done is None:
                if key in self._sent:
                    raise errors.internal(f"Step {self.step_id} sent the tensor {key!r} twice.")
                self._check_room()
                self._sent[key] = (value, is_dead)
                return
        done(read_now(value), is_dead, None)

    def recv(self, key: str, done: Done) -> None:
        """Calls `done` once: at once if the edge was sent or the step aborted, else from `send` or `abort`.

        Raises InternalError when another receiver waits for the key, ResourceExhaustedError over the limit.
        """
        with self._lock:
            error = self.error
            if error is None:
                found = self._sent.pop(key, None)
                if found is None:
                    if key in self._waiting:
                        raise errors.internal(f"Step {self.step_id}: two receivers wait for the tensor {key!r}.")
                    self._check_room()
                    self._waiting[key] = done
                    return
        if error is not None:
            done(None, False, error)
        elif found is not None:
            done(read_now(found[0]), found[1], None)

    def cancel_recv(self, key: str, done: Done) -> bool:
        """The receiver no longer waits; True when it did. Its `done` is not called any more."""
        with self._lock:
            # == and not `is`: a bound method is a new object each time it is taken
            if self._waiting.get(key) != done:
                return False
            del self._waiting[key]
            return True

    def listen(self, aborted: Callable[[errors.OpError], None]) -> None:
        """Calls `aborted` once when the step is aborted, at once if it was."""
        with self._lock:
            self._listeners.append(aborted)
            error = self.error
        if error is not None:
            aborted(error)

    def unlisten(self, aborted: Callable[[errors.OpError], None]) -> None:
        """Undoes `listen`."""
        with self._lock:
            self._listeners.remove(aborted)

    def abort(self, error: errors.OpError) -> None:
        """Ends the step here: every receiver, waiting or late, and every late sender gets `error`. The first stays."""
        with self._lock:
            if self.error is not None:
                return
            self.error = error
            waiting, listeners = list(self._waiting.values()), list(self._listeners)
            self._waiting.clear()
            self._sent.clear()
        for done in waiting:
            done(None, False, error)
        for aborted in listeners:
            aborted(error)

    def _check_room(self) -> None:
        count = len(self._sent) + len(self._waiting)
        if count >= self._limit:
            text = f"Step {self.step_id} has {count} tensors under way on this task"
            raise limit_reached(text, self._limit, Limits.variable("keys_per_step"))


class StepTable:
    """The rendezvous of every step this worker knows, and which steps are over. Time is passed in, seconds.

    A step appears when it is run, when a consumer asks for one of its tensors or when one is pushed, whichever comes
    first. It goes at its end if all its tensors were pushed, else with CleanupGraph; failing that, when idle for
    `limits.idle_step_seconds` (its master died).
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        #: Oldest first.
        self._steps: OrderedDict[int, Rendezvous] = OrderedDict()
        #: Steps that were cleaned up, oldest first; disjoint from _steps. A receiver that comes late gets an error.
        self._finished: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._steps)

    def get(self, step_id: int, now: float) -> Rendezvous:
        """The step's rendezvous, made if new.

        Raises AbortedError when the step is over, ResourceExhaustedError when there are too many.
        """
        found = self._steps.get(step_id)
        if found is not None:
            return found
        if step_id in self._finished:
            raise errors.aborted(f"Step {step_id} is over on this task.")
        if len(self._steps) >= self._limits.steps:
            self.sweep(now)
            if len(self._steps) >= self._limits.steps:
                raise self._limits.reached("steps", f"This task has {len(self._steps)} steps under way")
        made = self._steps[step_id] = Rendezvous(step_id, created=now, limit=self._limits.keys_per_step)
        return made

    def find(self, step_id: int) -> Rendezvous | None:
        """The step's rendezvous if there is one; makes none."""
        return self._steps.get(step_id)

    def finish(self, step_id: int) -> None:
        """CleanupGraph: receivers that still wait get AbortedError, later ones too. Unknown steps are noted as over."""
        self._finished[step_id] = None
        self._finished.move_to_end(step_id)
        while len(self._finished) > self._limits.finished_steps:
            self._finished.popitem(last=False)
        found = self._steps.pop(step_id, None)
        if found is not None:
            found.abort(errors.aborted(f"Step {step_id} was cleaned up."))

    def forget(self, step_id: int) -> None:
        """The step ended well and nothing of it is left: no receiver comes late. Unknown steps are no error."""
        self._steps.pop(step_id, None)

    def abort_all(self, error: errors.OpError) -> None:
        """Every step gets `error`, each one of its own: an exception keeps every place that it was raised at."""
        for rendezvous in list(self._steps.values()):
            rendezvous.abort(errors.from_code(error.code, error.message, error.node_def, error.op))

    def sweep(self, now: float) -> int:
        """Forgets idle steps that are too old; returns how many. Steps that run or are waited for stay."""
        horizon = now - self._limits.idle_step_seconds
        old = []
        for step_id, rendezvous in self._steps.items():
            if rendezvous.created > horizon:
                break
            partial = rendezvous.partial
            if rendezvous.idle or (partial is not None and partial.ended_as_idle(now)):
                old.append(step_id)
        for step_id in old:
            self.finish(step_id)
        return len(old)
