"""Decides, once for each client graph, which of its edges between tasks are pushed: one ExchangePlan for each part.

Both ends of an edge must agree, and only the master knows both: an edge is pushed if producer and consumer can be told
(they are our own worker, or reached by a link) and the producer has a link to the consumer. All others are exchanged by
RecvTensor, as TensorFlow does it. Called by client_graph_cache.py when a graph was registered; step_runner.py and
caller_cluster_run.py run what was arranged. Decision 0008.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from tenfold_core import errors
from tenfold_services.exchange.plan import ExchangePlan, numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.exchange.plan import Sent
    from tenfold_services.interfaces import Done, ExecOptions, PushWorker, RunningPart, Value
    from tenfold_services.worker.worker import Worker

    from .graph_part import Part


class ArrangedStep(Protocol):
    """What a step is, to a part that is started."""

    step_id: int
    options: ExecOptions

    def push(self, task: str, step_id: int, tensors: list[Sent]) -> None:
        """Takes what our own part sends to another task."""
        ...

    def feeds_of(self, part: Part) -> dict[str, Value]:
        """What the client feeds there, by rendezvous key."""
        ...


@dataclass(slots=True)
class Arrangement:
    """Which worker carries out which plan. Tasks without a plan are run and cleaned up by RunGraph and CleanupGraph."""

    own_task: str
    local: Worker
    #: By task; our own, if it has a part, among them.
    plans: dict[str, ExchangePlan]
    #: Those of the other tasks with a plan.
    workers: dict[str, PushWorker]
    #: Tasks that forget a step of this graph by themselves: all that their part sends is pushed.
    forgetful: frozenset[str]

    @property
    def is_open(self) -> bool:
        """False once a link that it needs is gone: arrange again."""
        return all(worker.is_linked for worker in self.workers.values())

    def own_first(self) -> bool:
        """Whether our own part sends anything and is short: then it runs before the others are called."""
        own = self.plans.get(self.own_task)
        return own is not None and bool(own.pushed) and self.local.runs_inline(own.session_handle, own.graph_handle)

    def start(self, runner: ArrangedStep, part: Part, held: Sequence[Sent], done: Done) -> RunningPart:
        """Runs a part that has a plan. Raises what keeps our own one from starting.

        Another task gets what is `held` for it along with the call.
        """
        plan = self.plans[part.task]
        if part.task != self.own_task:
            brought = numbered(held, plan)
            return self.workers[part.task].start_plan(plan, runner.step_id, brought, runner.options, done)
        return self.local.start_run(
            plan.session_handle,
            plan.graph_handle,
            runner.step_id,
            runner.feeds_of(part),
            plan.fetches,
            runner.options,
            done,
            plan,
            runner.push,
        )


async def arrange(
    session_handle: str, parts: list[Part], own_task: str, local: object, seconds: float
) -> Arrangement | None:
    """None where nothing can be pushed. Opens links as needed; bounded; a task that does not answer is left out."""
    if len(parts) == 1 and parts[0].task == own_task:
        return None
    peers = {
        part.task: cast("PushWorker", part.worker)
        for part in parts
        if part.task != own_task and hasattr(part.worker, "start_plan")
    }
    if not peers or not hasattr(local, "start_run"):
        return None

    async def connect(task: str) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await peers[task].connect()
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
                found = await linked[part.task].arrange(sorted(wanted))
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
    plans: dict[str, ExchangePlan] = {}
    forgetful: set[str] = set()
    for part in parts:
        if part.task != own_task and part.task not in linked:
            continue
        by_task: dict[str, list[str]] = defaultdict(list)
        for key, task in part.sends.items():
            if task in reach[part.task] and task != part.task:
                by_task[task].append(key)
        if not part.loop_sends and sum(map(len, by_task.values())) == len(part.sends):
            forgetful.add(part.task)
        plans[part.task] = ExchangePlan(
            session_handle,
            part.handle,
            # feeds enter and fetches leave at our own task
            feeds=tuple(part.feed_keys.values()),
            fetches=tuple(part.fetch_keys.values()),
            answered=() if part.task == own_task else tuple(by_task.pop(own_task, ())),
            pushed=tuple((task, tuple(keys)) for task, keys in sorted(by_task.items())),
            expected=tuple(expected[part.task]),
            brought=() if part.task == own_task else tuple(ours[part.task]),
        )
    return Arrangement(own_task, cast("Worker", local), plans, linked, frozenset(forgetful))
