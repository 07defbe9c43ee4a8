"""What outlives a step on its caller's thread: the client graph, and a step ready for each order of feeds and fetches.

The base of CallerGraph (caller_steps.py), CallerClusterGraph and CallerWaitingGraph (beside it). What names stand for
is looked up here, for all three alike.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tenfold_core import telemetry
from tenfold_services import step_spans
from tenfold_services.master.running_steps import new_step_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_services.interfaces import Value
    from tenfold_services.master.running_steps import RunningSteps

#: Orders that one graph keeps ready; a program has one or two.
_ORDERS = 64


class _Step(Protocol):
    #: What it is asked for, as its spans show it.
    wanted: str

    def end(self) -> None: ...


S = TypeVar("S", bound=_Step)


class StepOrders(Generic[S]):
    """Of one client graph. Any thread; its lock is not held while a step runs."""

    #: Whether a step is one part of this task and nothing else.
    is_one_part = True

    def __init__(self, session: RunningSteps, feed_keys: Mapping[str, str], fetch_keys: Mapping[str, str]) -> None:
        """The keys of our own part, by canonical name. What is fed and needed by nothing that runs has no key."""
        self.session, self.feed_keys, self.fetch_keys = session, feed_keys, fetch_keys
        #: A step ran it since the cache of client graphs last asked.
        self.used = False
        #: Guards the two below.
        self._lock = threading.Lock()
        self._steps: dict[tuple[tuple[str, ...], tuple[str, ...]], S] = {}
        self._ended = False

    def _make(self, feeds: list[str | None], fetches: list[str]) -> S:
        """A step for these rendezvous keys; None stands for a feed that nothing needs, whose value is dropped."""
        raise NotImplementedError

    def in_spans(self, run: Callable[[int], list[Value] | None], wanted: str) -> list[Value] | None:
        """`run(number of the step)`, which runs a step that is asked for what is `wanted`, within its spans."""
        session, step_id = self.session, new_step_id()
        part_id = step_id if self.is_one_part else 0
        return step_spans.on_callers_thread(lambda: run(step_id), session.task, session.handle, wanted, part_id)

    def step(self, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: Sequence[str] = ()) -> S | None:
        """The step with this order of canonical names; None once ended. `targets` are for its spans."""
        with self._lock:
            if self._ended:
                return None
            found = self._steps.get((feeds, fetches))
            if found is None:
                if len(self._steps) >= _ORDERS:
                    self._steps.pop(next(iter(self._steps))).end()
                keys = [self.feed_keys.get(name) for name in feeds], [self.fetch_keys[name] for name in fetches]
                found = self._steps[feeds, fetches] = self._make(*keys)
                found.wanted = telemetry.wanted_names(fetches, targets)
            return found

    def end(self) -> None:
        """No step starts any more, and the program can be freed once those under way are over."""
        with self._lock:
            self._ended = True
            for step in self._steps.values():
                step.end()
            self._steps.clear()
