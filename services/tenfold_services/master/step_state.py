"""One step as its master sees it: which parts still run, which error counts, when it is over.

A pure machine: events in, decisions out, no clock and no event loop. The driver is step_runner.py. The first error wins
and aborts the rest; a later one replaces it only if the first was a mere consequence (a cancelled receive, say) and
the later is a cause. Follows TensorFlow's RunManyGraphs and StatusGroup in master_session.cc.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from tenfold_core import errors

#: Of the numbers of steps: its own, as programs seed the global one alike. A process that forks does not share it.
_step_ids = random.Random()
os.register_at_fork(after_in_child=_step_ids.seed)

if TYPE_CHECKING:
    from collections.abc import Iterable

#: With this TensorFlow's workers mark an error that another part's error caused.
_DERIVED_MARK = "[_Derived_]"


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the part of this task; report its end as usual."""

    task: str


@dataclass(frozen=True, slots=True)
class ArmGrace:
    """Call `grace_over` after the abort grace: a part that does not stop must not hold back the error."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The step is over. `error` and `failed_task` say how; tasks in `pending` did not end in time."""


Decision: TypeAlias = Cancel | ArmGrace | Finish


class _Weight(IntEnum):
    """How much an error explains."""

    CONSEQUENCE = 0
    CAUSE = 1
    #: The deadline, or the cancellation of the step: nothing that a part says afterwards explains more.
    VERDICT = 2


class StepState:
    """The parts of one step, by task. Each method returns what is to be done now, in order."""

    __slots__ = ("_weight", "error", "failed_task", "finished", "pending")

    def __init__(self, tasks: Iterable[str]) -> None:
        #: Tasks whose part was started and has not ended, in order of starting.
        self.pending: dict[str, None] = dict.fromkeys(tasks)
        #: The error that the client will see. Set once means: the step fails; only a heavier error replaces it.
        self.error: errors.OpError | None = None
        #: The task whose part reported `error`; None for a verdict from outside.
        self.failed_task: str | None = None
        #: Finish was decided, or there is nothing to run. Nothing is decided after it.
        self.finished = not self.pending
        self._weight = _Weight.CONSEQUENCE

    def part_done(self, task: str) -> list[Decision]:
        """The part ran to its end, or stopped because it was told to. Raises KeyError for one that is not running."""
        del self.pending[task]
        return self._after_end()

    def part_failed(self, task: str, error: errors.OpError) -> list[Decision]:
        """The part ended with an error. Raises KeyError for a part that is not running."""
        del self.pending[task]
        weight = _Weight.CONSEQUENCE if is_consequence(error) else _Weight.CAUSE
        return self._fail(error, task, weight)

    def deadline(self, seconds: float) -> list[Decision]:
        """The step's time is up."""
        return self.interrupt(late(seconds, self.pending))

    def interrupt(self, error: errors.OpError) -> list[Decision]:
        """The session closes, or the client gave up."""
        if self.finished:
            return []
        return self._fail(error, None, _Weight.VERDICT)

    def grace_over(self) -> list[Decision]:
        """Parts that were told to stop had their time."""
        return [] if self.finished else self._finish()

    def _fail(self, error: errors.OpError, task: str | None, weight: _Weight) -> list[Decision]:
        first = self.error is None
        if first or weight > self._weight:
            self.error, self.failed_task, self._weight = error, task, weight
        if not first or not self.pending:
            return self._after_end()
        return [*(Cancel(other) for other in self.pending), ArmGrace()]

    def _after_end(self) -> list[Decision]:
        return [] if self.pending or self.finished else self._finish()

    def _finish(self) -> list[Decision]:
        self.finished = True
        return [Finish()]


def new_step_id() -> int:
    """The number of a step, unlike those of all other masters. Never 0; the high byte stays free, as TensorFlow keeps
    it. Any thread."""
    return _step_ids.getrandbits(56) or 1


def is_consequence(error: errors.OpError) -> bool:
    """True if the error says only that something else went wrong."""
    return error.code == errors.CANCELLED or error.message.startswith(_DERIVED_MARK)


def late(seconds: float, pending: Iterable[str]) -> errors.DeadlineExceededError:
    """The error of a step that had so many seconds."""
    return errors.deadline_exceeded(
        f"The step did not finish within {seconds * 1000:.0f} ms; {describe_pending(pending)}."
    )


def describe_pending(tasks: Iterable[str]) -> str:
    """ "still pending on /job:ps/replica:0/task:0"; at most ten by name."""
    names = list(tasks)
    if not names:
        return "no part of it was running"
    shown = ", ".join(names[:10])
    return f"still pending on {shown}" + (f" and {len(names) - 10} more tasks" if len(names) > 10 else "")


def from_task(error: errors.OpError, task: str) -> errors.OpError:
    """The error as the client sees it: with the task that it came from, named once."""
    if error.message.startswith("From /job:"):
        return error
    return errors.from_code(error.code, f"From {task}:\n{error.message}", error.node_def, error.op)
