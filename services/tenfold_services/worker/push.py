"""Push: what a run of a part sends to other tasks goes out by itself; nobody asks for it.

A `PushPlan` says, for one registered graph, which of its edges are pushed and where. The master makes it
(master/pushes.py), because both ends of an edge must agree: a tensor that is pushed is not kept for RecvTensor, and
one that is expected is not asked for. An `Outbox` carries it out in one run. Decision 0008.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..interfaces import Value
    from .rendezvous import Rendezvous

#: One tensor on its way: (rendezvous key, value, is_dead).
Sent: TypeAlias = "tuple[str, Value, bool]"
#: Takes tensors to a task: (task, step_id, tensors). On the loop's thread, never blocks. Raises UnavailableError.
Push: TypeAlias = "Callable[[str, int, list[Sent]], None]"


@dataclass(frozen=True, slots=True)
class PushPlan:
    """Of one part. Keys are rendezvous keys; those in none of the tables are exchanged by RecvTensor."""

    #: Sent here, consumed by the task that runs the graph: number of the key in the answer.
    answered: Mapping[str, int] = field(default_factory=dict)
    #: Sent here, consumed by other tasks: the task.
    pushed: Mapping[str, str] = field(default_factory=dict)
    #: Received here and pushed by its producer.
    expected: frozenset[str] = frozenset()
    #: All that goes out by itself.
    sent: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sent", frozenset((*self.answered, *self.pushed)))


class Outbox:
    """What one run has sent and what has not gone yet. `send` is for any thread, the rest for the loop's."""

    __slots__ = (
        "_lock",
        "_loop",
        "_plan",
        "_push",
        "_ready",
        "_rendezvous",
        "_scheduled",
        "_thread",
        "kept",
        "to_caller",
    )

    def __init__(self, plan: PushPlan, rendezvous: Rendezvous, push: Push, to_caller: str = "") -> None:
        """`to_caller` is the name under which `push` takes what the caller consumes before the answer."""
        self._plan, self._rendezvous, self._push = plan, rendezvous, push
        self.to_caller = to_caller
        #: Tensors that stay here until somebody asks for them with RecvTensor.
        self.kept = 0
        #: Sent and not yet gone, in order.
        self._ready: list[Sent] = []
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        #: A flush is on its way to the loop's thread.
        self._scheduled = False

    def send(self, key: str, value: Value, is_dead: bool = False) -> None:
        """Rendezvous.send for a run with a plan. Never blocks; the value must not change until it has gone.

        Raises the step's error once it was aborted.
        """
        plan = self._plan
        if key not in plan.answered and key not in plan.pushed:
            self.kept += 1
            self._rendezvous.send(key, value, is_dead)
            return
        error = self._rendezvous.error
        if error is not None:
            raise error
        if threading.get_ident() == self._thread:
            self._ready.append((key, value, is_dead))
            return
        with self._lock:
            self._ready.append((key, value, is_dead))
            if self._scheduled:
                return
            self._scheduled = True
        # a long program: what it has made may be waited for
        self._loop.call_soon_threadsafe(self._flush_scheduled)

    def flush(self) -> None:
        """Sends on what is ready, to the caller too. Raises UnavailableError when a consumer cannot be reached."""
        self._go(self._take(), with_answer=False)

    def finish(self) -> list[tuple[int, Value, bool]]:
        """The run is over: sends on what is for others; the rest, (number, value, is_dead), goes with the answer."""
        ready = self._take()
        if not ready:
            return []
        answered = self._plan.answered
        self._go([sent for sent in ready if sent[0] not in answered], with_answer=True)
        return [(answered[key], value, is_dead) for key, value, is_dead in ready if key in answered]

    def _take(self) -> list[Sent]:
        if not self._ready:
            return []
        with self._lock:
            ready, self._ready = self._ready, []
        return ready

    def _go(self, ready: list[Sent], *, with_answer: bool) -> None:
        if not ready:
            return
        by_task: dict[str, list[Sent]] = {}
        pushed = self._plan.pushed
        for sent in ready:
            by_task.setdefault(pushed.get(sent[0], self.to_caller), []).append(sent)
        for task, tensors in by_task.items():
            self._push(task, self._rendezvous.step_id, tensors)

    def _flush_scheduled(self) -> None:
        with self._lock:
            self._scheduled = False
        if self._rendezvous.error is not None:
            return
        try:
            self.flush()
        except Exception as error:
            failure = error if isinstance(error, errors.OpError) else errors.InternalError(None, None, str(error))
            self._rendezvous.abort(failure)
