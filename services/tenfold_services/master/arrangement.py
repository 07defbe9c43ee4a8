"""Decides, once for each client graph, which of its edges between tasks are pushed: one ExchangePlan for each part;
and, before it is cut, between which tasks tensors may cross in bundles.

Both ends of an edge must agree, and only the master knows both: an edge is pushed if producer and consumer can be told
(they are our own worker, or reached by a link) and the producer has a link to the consumer. All others are exchanged by
RecvTensor, as TensorFlow does it. Called by client_graph_cache.py when a graph was registered; step_runner.py and
caller_cluster_steps.py run what was arranged. Decision 0008.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, cast

from tenfold_compiler.graph.bundles import ABILITY
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.owned_tasks import in_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_services.interfaces import PushWorker, WorkerInterface
    from tenfold_services.worker.worker import Worker


@dataclass(slots=True)
class Part:
    """One task's share of a client graph: who runs it, and what it takes and gives."""

    task: str
    #: Set before the part is registered.
    worker: WorkerInterface = field(init=False)
    #: Canonical tensor name → rendezvous key, of what the client feeds and fetches here. Only the master's own task has
    #: any: feeds enter and fetches leave there.
    feed_keys: dict[str, str] = field(default_factory=dict)
    fetch_keys: dict[str, str] = field(default_factory=dict)
    #: Rendezvous key → consuming task, of what this part sends to others.
    sends: dict[str, str] = field(default_factory=dict)
    #: The same for what it sends in the iterations of a loop, under a key of its own each time; never pushed.
    loop_sends: dict[str, str] = field(default_factory=dict)
    #: From register_graph; "" before.
    handle: str = ""


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


async def _linked(workers: Mapping[str, object], own_task: str, seconds: float) -> dict[str, PushWorker]:
    """Those of other tasks that a link leads to. Opens links as needed; bounded; who does not answer is left out."""
    peers = {
        task: cast("PushWorker", worker)
        for task, worker in workers.items()
        if task != own_task and hasattr(worker, "start_plan")
    }
    connected = await asyncio.gather(*(in_time(seconds, worker.connect, False) for worker in peers.values()))
    return dict(compress(peers.items(), connected))


async def able_to_bundle(workers: Mapping[str, object], own_task: str, seconds: float) -> set[str]:
    """Those of these tasks that know bundles: our own, and those that say so over a link. Opens links; bounded."""
    linked = await _linked(workers, own_task, seconds)
    return {own_task, *(task for task, worker in linked.items() if worker.can(ABILITY))}


async def arrange(
    session_handle: str, parts: list[Part], own_task: str, local: object, seconds: float
) -> Arrangement | None:
    """None where nothing can be pushed. Opens links as needed; bounded; a task that does not answer is left out."""
    if not hasattr(local, "start_run"):
        return None
    linked = await _linked({part.task: part.worker for part in parts}, own_task, seconds)
    if not linked:
        return None

    #: Task → to whom it can push.
    reach = {own_task: set(linked), **{task: {own_task} for task in linked}}

    async def ask(part: Part) -> None:
        wanted = {task for task in part.sends.values() if task in linked and task != part.task}
        if wanted and part.task in linked:
            reached: list[str] = await in_time(seconds, partial(linked[part.task].arrange, sorted(wanted)), [])
            reach[part.task] |= wanted.intersection(reached)

    await asyncio.gather(*map(ask, parts))
    #: Keys of what is pushed, by producer and consumer; and by consumer alone.
    pushed: dict[str, dict[str, list[str]]] = {}
    expected: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        by_task: dict[str, list[str]] = defaultdict(list)
        pushed[part.task] = by_task
        for key, consumer in part.sends.items():
            if consumer in reach.get(part.task, ()):
                by_task[consumer].append(key)
                expected[consumer].append(key)
    ours = pushed.get(own_task, {})
    plans: dict[str, ExchangePlan] = {}
    forgetful: set[str] = set()
    for part in parts:
        is_ours, by_task = part.task == own_task, pushed[part.task]
        if not is_ours and part.task not in linked:
            continue
        if not part.loop_sends and sum(map(len, by_task.values())) == len(part.sends):
            forgetful.add(part.task)
        plans[part.task] = ExchangePlan(
            session_handle,
            part.handle,
            # feeds enter and fetches leave at our own task
            feeds=tuple(part.feed_keys.values()),
            fetches=tuple(part.fetch_keys.values()),
            answered=tuple(by_task.pop(own_task, ())),
            pushed=tuple((task, tuple(keys)) for task, keys in sorted(by_task.items())),
            expected=tuple(expected[part.task]),
            brought=() if is_ours else tuple(ours.get(part.task, ())),
        )
    return Arrangement(own_task, cast("Worker", local), plans, linked, frozenset(forgetful))
