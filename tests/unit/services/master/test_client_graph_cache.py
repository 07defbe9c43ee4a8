"""A session's client graphs: built once for all who ask, registered at all tasks or none, and given up in order."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_cluster import Gate
from support.moments import PATIENCE, started
from tenfold_core import errors
from tenfold_services.master import client_graph_cache as module
from tenfold_services.master.client_graph import ClientGraph, RunSignature

from .sessions import MASTER, OTHER, OTHER_FULL, PS, PS_FULL, OpenSession

if TYPE_CHECKING:
    from tenfold_services.master.client_graph_cache import ClientGraphCache

FULL = "/job:worker/replica:0/task:0"
Z, Y, READ, REMOTE = (RunSignature(("x:0",), (f"{name}:0",), ()) for name in ("z", "y", "read", "remote"))


def cache_of(opened: OpenSession) -> ClientGraphCache:
    return opened.master._sessions[opened.handle]._client_graphs


async def test_a_graph_is_built_once_and_then_known(opened: OpenSession) -> None:
    cache, gate = cache_of(opened), Gate()
    opened.cluster[MASTER].reply("register_graph", gate)
    first, second = await started(cache.build(Z, None)), await started(cache.build(Z, PATIENCE))
    assert list(cache._building) == [Z]
    assert cache.runs.graph_of(Z) is None
    gate.release()
    assert await first is await second is cache.runs.graph_of(Z)
    assert cache._building == {}
    assert len(opened.cluster[MASTER].called("register_graph")) == 1


async def test_a_graph_has_its_parts_with_their_workers_and_handles(opened: OpenSession) -> None:
    graph = await cache_of(opened).build(Y, None)
    assert graph.signature == Y
    assert graph.tasks == [PS_FULL, FULL], "our own comes last"
    assert [part.worker for part in graph.parts] == [opened.cluster[PS], opened.cluster[MASTER]]
    assert [part.handle for part in graph.parts] == [f"{PS_FULL}#0", f"{FULL}#0"]
    ps, own = graph.parts
    assert list(ps.sends.values()) == [FULL]
    assert (ps.feed_keys, ps.fetch_keys, ps.loop_sends) == ({}, {}, {})
    assert (list(own.feed_keys), list(own.fetch_keys), own.sends) == (["x:0"], ["y:0"], {})
    assert graph.pushes is None


async def test_numbers_of_nodes_go_on_from_graph_to_graph(opened: OpenSession) -> None:
    cache = cache_of(opened)
    first = await cache.build(Y, None)
    second = await cache.build(REMOTE, None)
    assert first.first_id == 0
    assert 0 < first.next_id == second.first_id < second.next_id == cache._next_node_id


async def until_called(gate: Gate) -> None:
    async with asyncio.timeout(PATIENCE):
        await gate.entered.wait()


async def test_a_caller_that_gives_up_leaves_the_graph_to_the_others(opened: OpenSession) -> None:
    cache, gate = cache_of(opened), Gate()
    opened.cluster[PS].reply("register_graph", gate)
    first, second = await started(cache.build(Y, None)), await started(cache.build(Y, None))
    await until_called(gate)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.release()
    assert (await second).signature == Y


async def test_what_is_late_is_said(opened: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, gate = cache_of(opened), Gate()
    assert cache._progress(Y) == f"its graph is still being cut on {FULL}"
    opened.cluster[PS].reply("register_graph", gate)
    building = await started(cache.build(Y, None))
    await until_called(gate)
    assert cache._progress(Y) == f"its graph is still being registered with {PS_FULL}"
    with pytest.raises(errors.DeadlineExceededError) as caught:
        await cache.build(Y, 0.001)
    assert caught.value.message == (
        f"The step did not finish within 1 ms; its graph is still being registered with {PS_FULL}."
    )
    arranging, arranged = asyncio.Event(), asyncio.Event()

    async def arrange(*arguments: Any) -> None:
        arranging.set()
        await arranged.wait()

    monkeypatch.setattr(module, "arrange", arrange)
    gate.release()
    async with asyncio.timeout(PATIENCE):
        await arranging.wait()
    assert cache._progress(Y) == f"links between its tasks are still being opened: {PS_FULL}, {FULL}"
    arranged.set()
    await building
    assert cache._registering == {}


async def test_pushes_are_arranged_for_all_parts(opened: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def arrange(*arguments: Any) -> str:
        asked.append(arguments)
        return "an arrangement"

    monkeypatch.setattr(module, "arrange", arrange)
    graph = await cache_of(opened).build(Y, None)
    assert asked == [(opened.handle, graph.parts, FULL, opened.cluster[MASTER], 0.2)]
    assert graph.pushes == "an arrangement"
    graph.pushes = None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.invalid_argument("bad node"), errors.InvalidArgumentError),
        (errors.deadline_exceeded("no answer"), errors.UnavailableError),
    ],
)
async def test_a_part_that_is_refused_leaves_nothing_registered(
    opened: OpenSession, error: errors.OpError, kind: type[errors.OpError]
) -> None:
    cache = cache_of(opened)
    opened.cluster[MASTER].reply("register_graph", error)

    with pytest.raises(kind) as caught:
        await cache.build(REMOTE, None)

    assert caught.value.message == f"From {FULL}:\n{error.message}"
    registered = opened.cluster[OTHER].called("register_graph")
    assert [about[1] for about in registered] == [
        about[1] for about in opened.cluster[OTHER].called("deregister_graph")
    ]
    assert cache.runs.graph_of(REMOTE) is None
    assert cache._registering == {}


async def test_a_task_that_does_not_register_in_time_is_named(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    with pytest.raises(errors.UnavailableError) as caught:
        await cache_of(opened).build(Y, None)
    assert caught.value.message == f"The graph could not be registered within 0.2 s with {PS_FULL}."
    assert gate.cancelled.is_set()
    assert opened.cluster[MASTER].called("deregister_graph") == [(opened.handle, f"{FULL}#0")]
    assert opened.cluster[PS].called("deregister_graph") == [], "it has none of it"


async def test_a_large_graph_may_take_longer_to_register(opened: OpenSession) -> None:
    opened.cluster[PS].reply("register_graph", Gate())
    cache = cache_of(opened)
    cache._limits = dataclasses.replace(cache._limits, register_node_seconds=0.01)
    with pytest.raises(errors.UnavailableError) as caught:
        await cache.build(Y, None)
    waited = re.search(r"within (0\.2[1-9]) s", caught.value.message)
    assert waited is not None, caught.value.message


async def test_the_graph_unused_for_longest_goes_where_there_are_too_many(opened: OpenSession) -> None:
    cache = cache_of(opened)
    cache._limits = dataclasses.replace(cache._limits, client_graphs=2)
    first, second = await cache.build(Z, None), await cache.build(Y, None)
    ended: list[int] = []
    first.local = SimpleNamespace(end=lambda: ended.append(1), used=False)  # type: ignore[assignment]
    cache.runs.touch(second)
    third = await cache.build(READ, None)
    assert cache.runs.graphs == [second, third]
    assert ended == [1]
    await opened.master._sessions[opened.handle]._tasks.settled(PATIENCE)
    assert [part.handle for part in first.parts] == [""]
    assert opened.cluster[MASTER].called("deregister_graph") == [(opened.handle, f"{FULL}#0")]
    assert opened.cluster[PS].called("deregister_graph") == []


async def test_graphs_in_use_stay_and_the_new_one_too(opened: OpenSession) -> None:
    cache = cache_of(opened)
    cache._limits = dataclasses.replace(cache._limits, client_graphs=1)
    first = await cache.build(Z, None)
    first.users = 1
    second = await cache.build(Y, None)
    assert cache.runs.graphs == [first, second]
    first.users = 0
    third = await cache.build(READ, None)
    assert cache.runs.graphs == [third]


async def test_a_worker_that_is_gone_does_not_keep_a_graph_from_going(opened: OpenSession) -> None:
    cache = cache_of(opened)
    graph = await cache.build(Y, None)
    opened.cluster[PS].reply("deregister_graph", errors.unavailable("gone"))
    opened.cluster[MASTER].reply("deregister_graph", Gate())
    cache.drop(graph)
    assert cache.runs.graphs == []
    await opened.master._sessions[opened.handle]._tasks.settled(PATIENCE)
    assert [part.handle for part in graph.parts] == ["", ""]


async def test_what_is_being_built_ends_with_the_session(opened: OpenSession) -> None:
    cache, gate = cache_of(opened), Gate()
    await cache.build(Z, None)
    opened.cluster[PS].reply("register_graph", gate)
    building = await started(cache.build(Y, None))
    await until_called(gate)
    cache.close()
    with pytest.raises(errors.FailedPreconditionError, match=r"Session is closed\."):
        await building
    assert cache.runs.graphs == []
    assert gate.cancelled.is_set()


async def test_a_graph_that_is_not_kept_is_registered_all_the_same(opened: OpenSession) -> None:
    cache = cache_of(opened)
    graph = await cache.register(REMOTE)
    assert isinstance(graph, ClientGraph)
    assert graph.tasks == [OTHER_FULL, FULL]
    assert cache.runs.graphs == []
