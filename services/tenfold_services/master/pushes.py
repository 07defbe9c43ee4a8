"""Decides, once for each client graph, which of its edges between tasks are pushed.

Both ends of an edge must agree, and only the master knows both: an edge is pushed if producer and consumer can be told
(they are our own worker, or reached by a link) and the producer has a link to the consumer. All others are exchanged by
RecvTensor, as TensorFlow does it. Called by client_graph_cache.py when a graph was registered; step_runner.py runs
what was arranged. Decision 0008.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_services.rpc.link_plans import RunPlan
from tenfold_services.worker.push import PushPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.interfaces import ExecOptions, PushWorker
    from tenfold_services.master.client_graph import Part
    from tenfold_services.master.step_runner import StepRunner
    from tenfold_services.rpc.link_worker import PlanCall
    from tenfold_services.worker.graph_run import Done, GraphRun
    from tenfold_services.worker.push import Sent
    from tenfold_services.worker.worker import Worker


@dataclass(slots=True)
class PushedPart:
    """A part that is run with a plan."""

    part: Part
    #: Of our own worker's part.
    own: PushPlan | None = None
    #: Of another task's part, with its worker.
    plan: RunPlan | None = None
    worker: PushWorker | None = None
    #: Key → number in the plan, of what we may bring with the call.
    brought: dict[str, int] = field(default_factory=dict)
    #: The worker forgets the step by itself: all that this part sends is pushed.
    forgets: bool = False


@dataclass(slots=True)
class Arrangement:
    """How a client graph is run with pushes. Tasks that are not in it are run and cleaned up on the scheduled path."""

    own_task: str
    #: Our own worker, and its part if it has one.
    local: Worker
    own: PushedPart | None
    others: dict[str, PushedPart]

    @property
    def is_open(self) -> bool:
        """False once a link that it needs is gone: arrange again."""
        return all(other.worker is not None and other.worker.is_linked for other in self.others.values())

    def forgets(self, task: str) -> bool:
        """Whether the task forgets a step of this graph by itself."""
        found = self.own if task == self.own_task else self.others.get(task)
        return found is not None and found.forgets

    def own_first(self, session_handle: str) -> bool:
        """Whether our own part sends anything and is short: then it runs before the others are called."""
        own = self.own
        if own is None or own.own is None or not own.own.pushed:
            return False
        return self.local.runs_inline(session_handle, own.part.handle)

    def start_own(self, runner: StepRunner, session_handle: str, done: Done) -> GraphRun:
        """Runs our own part. Raises what keeps it from starting."""
        assert self.own is not None
        part = self.own.part
        return self.local.start_run(
            session_handle,
            part.handle,
            runner.step_id,
            runner.feeds_of(part),
            list(part.fetch_keys.values()),
            runner.options,
            done,
            self.own.own,
            runner.push,
        )

    def start_other(self, task: str, step_id: int, held: Sequence[Sent], options: ExecOptions, done: Done) -> PlanCall:
        """Runs another task's part; it gets what is `held` for it along with the call."""
        other = self.others[task]
        assert other.worker is not None
        assert other.plan is not None
        brought = [(other.brought[key], value, is_dead) for key, value, is_dead in held]
        return other.worker.start_plan(other.plan, step_id, {}, brought, options, done)

    def push(self, task: str, step_id: int, tensors: Sequence[Sent]) -> None:
        """Hands tensors to a task. Raises UnavailableError."""
        worker = self.others[task].worker
        assert worker is not None
        worker.push(step_id, tensors)


async def arrange(
    session_handle: str, parts: list[Part], own_task: str, local: object, seconds: float
) -> Arrangement | None:
    """None where nothing can be pushed. Opens links as needed; bounded; a task that does not answer is left out."""
    if len(parts) == 1 and parts[0].task == own_task:
        return None
    peers = {part.task: part.worker for part in parts if part.task != own_task and hasattr(part.worker, "start_plan")}
    if not peers or not hasattr(local, "start_run"):
        return None

    async def connect(task: str) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return bool(await peers[task].connect())  # type: ignore[attr-defined]
        except (errors.OpError, TimeoutError):
            return False

    connected = await asyncio.gather(*map(connect, peers))
    linked = {task: worker for (task, worker), yes in zip(peers.items(), connected, strict=True) if yes}
    if not linked:
        return None

    async def reachable(part: Part) -> set[str]:
        """To whom the part's task can push."""
        if part.task == own_task:
            return set(linked)
        if part.task not in linked:
            return set()
        wanted = {task for task in part.sends.values() if task in linked and task != part.task}
        if not wanted:
            return {own_task}
        try:
            async with asyncio.timeout(seconds):
                found = await linked[part.task].arrange(sorted(wanted))  # type: ignore[attr-defined]
        except (errors.OpError, TimeoutError):
            found = []
        return {own_task, *found}

    reach = dict(zip((part.task for part in parts), await asyncio.gather(*map(reachable, parts)), strict=True))
    expected: dict[str, list[str]] = defaultdict(list)
    ours: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for key, consumer in part.sends.items():
            if consumer in reach[part.task] and (consumer in linked or consumer == own_task):
                expected[consumer].append(key)
                if part.task == own_task:
                    ours[consumer].append(key)
    own: PushedPart | None = None
    others: dict[str, PushedPart] = {}
    for part in parts:
        can_reach = reach[part.task]
        pushed = {key: task for key, task in part.sends.items() if task in can_reach and task != part.task}
        forgets = len(pushed) == len(part.sends) and not part.loop_sends
        if part.task == own_task:
            own = PushedPart(part, own=PushPlan(pushed=pushed, expected=frozenset(expected[own_task])), forgets=forgets)
        elif part.task in linked:
            by_task: dict[str, list[str]] = defaultdict(list)
            for key, task in pushed.items():
                by_task[task].append(key)
            answered = tuple(by_task.pop(own_task, ()))
            brought = ours[part.task]
            others[part.task] = PushedPart(
                part,
                plan=RunPlan(
                    session_handle,
                    part.handle,
                    answered=answered,
                    pushed=tuple((task, tuple(keys)) for task, keys in sorted(by_task.items())),
                    expected=tuple(expected[part.task]),
                    brought=tuple(brought),
                ),
                worker=linked[part.task],  # type: ignore[arg-type]
                brought={key: number for number, key in enumerate(brought)},
                forgets=forgets,
            )
    return Arrangement(own_task, local, own, others)  # type: ignore[arg-type]
