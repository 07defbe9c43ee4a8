"""What one run of a part sends to other tasks, on its way: pushed without being asked for, as its ExchangePlan says.

graph_manager.py makes an `Outbox` for each run that has a plan, or has it run at once; the links carry what is pushed.
What the plan does not push goes to the rendezvous and waits there for RecvTensor. Decision 0008.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from tenfold_core import errors

from ..interfaces import RunGraphResult
from .part_run import LONG, WAITS, PartRun
from .rendezvous import read_now
from .run_policy import EVENT_LOOP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_kernels.resources.state import Variable

    from ..exchange.plan import ExchangePlan, Push, Sent
    from ..interfaces import Value
    from .loaded_program import LoadedProgram
    from .rendezvous import Rendezvous


#: Bytes after which the loop's thread turns to others before it hands on more: links copy what may change.
TURN = 64 << 20


class Outbox:
    """What one run has sent and what has not gone yet. `send` is for any thread, the rest for the loop's."""

    __slots__ = (
        "_lock", "_loop", "_plan", "_push", "_ready", "_rendezvous", "_scheduled", "_thread", "kept",
    )  # fmt: skip

    def __init__(self, plan: ExchangePlan, rendezvous: Rendezvous, push: Push) -> None:
        """`push` takes what the caller consumes before the answer as of the task ""."""
        self._plan, self._rendezvous, self._push = plan, rendezvous, push
        #: Tensors that stay here until RecvTensor asks for them.
        self.kept = 0
        #: Sent and not yet gone, in order.
        self._ready: list[Sent] = []
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        #: A flush is on its way to the loop's thread.
        self._scheduled = False

    def send(self, key: str, value: Value | Variable, is_dead: bool = False) -> None:
        """Rendezvous.send for a run with a plan. Never blocks; the value must not change until it has gone.
        A reference that is pushed is read now: the graph was cut so that its _Send comes after what it has to see.

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
        value = read_now(value)
        if threading.get_ident() == self._thread:
            self._ready.append((key, value, is_dead))
            return
        # a long program: what it has made may be waited for
        with self._lock:
            self._ready.append((key, value, is_dead))
        self._flush_soon()

    def flush(self) -> None:
        """Sends on what is ready, to the caller too; what is beyond a turn goes in the loop's next ones.

        Raises UnavailableError when a consumer cannot be reached; in a later turn that aborts the step.
        """
        self._go(self._take())

    def finish(self) -> list[tuple[int, Value, bool]]:
        """The run is over: sends on what is for others; the rest, (number, value, is_dead), goes with the answer."""
        ready = self._take()
        if not ready:
            return []
        answered = self._plan.answered
        self._go([sent for sent in ready if sent[0] not in answered])
        return [(answered[key], value, is_dead) for key, value, is_dead in ready if key in answered]

    def _take(self) -> list[Sent]:
        if not self._ready:
            return []
        with self._lock:
            ready, self._ready = self._ready, []
        return ready

    def _go(self, ready: list[Sent]) -> None:
        by_task: dict[str, list[Sent]] = {}
        pushed = self._plan.pushed
        left = TURN
        for number, sent in enumerate(ready):
            if left <= 0:
                with self._lock:
                    self._ready[:0] = ready[number:]
                self._flush_soon()
                break
            by_task.setdefault(pushed.get(sent[0], ""), []).append(sent)
            left -= getattr(sent[1], "nbytes", 0)
        for task, tensors in by_task.items():
            self._push(task, self._rendezvous.step_id, tensors)

    def _flush_soon(self) -> None:
        """Has what is ready sent on in a later turn of the loop. Any thread."""
        with self._lock:
            is_first, self._scheduled = not self._scheduled, True
        if is_first:
            self._loop.call_soon_threadsafe(self._flush_scheduled)

    def _flush_scheduled(self) -> None:
        with self._lock:
            self._scheduled = False
        if self._rendezvous.error is not None:
            return
        try:
            self.flush()
        except Exception as error:
            self._rendezvous.abort(error if isinstance(error, errors.OpError) else errors.internal(str(error)))


def run_at_once(
    program: LoadedProgram,
    plan: ExchangePlan,
    step_id: int,
    feeds: Mapping[str, Value],
    brought: Mapping[str, tuple[Value, bool]],
    push: Push,
) -> RunGraphResult | None:
    """A run that has all that it needs, as one turn: nothing can come in between, so it needs no rendezvous.

    `brought` has the tensor, and whether it is dead, of each key that the plan expects. None, and nothing has run, for
    one that does not belong on the event loop's thread, has branches, or sends what is not pushed. Raises what the step
    raises.
    """
    compiled = program.compiled
    transfers = compiled.transfers
    if (
        compiled.generated is None
        or compiled.blocks
        or not plan.sent.issuperset(transfers.send_keys)
        or (transfers.recv_keys and not transfers.recv_keys <= brought.keys())
    ):
        return None
    sent: list[Sent] = []

    def send(key: str, value: Value | Variable, is_dead: bool) -> None:
        sent.append((key, read_now(value), is_dead))

    run = PartRun(program, feeds, send, brought=brought)
    turn = run.turn(EVENT_LOOP)
    if turn == LONG:
        return None
    if turn == WAITS:
        raise errors.internal(f"Step {step_id}: two receivers wait for the same tensor.")
    result = RunGraphResult(run.fetched())
    others: dict[str, list[Sent]] = {}
    for one in sent:
        number = plan.answered.get(one[0])
        if number is None:
            others.setdefault(plan.pushed[one[0]], []).append(one)
        else:
            result.answered.append((number, one[1], one[2]))
    for task, tensors in others.items():
        push(task, step_id, tensors)
    return result
