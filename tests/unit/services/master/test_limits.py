"""How long a CreateSession may take: by its options and the client's deadline, and what the graph takes of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_core import errors
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_services.master.limits import MasterLimits, SetUpBudget

LIMITS = MasterLimits(create_session_seconds=100.0, longest_create_session_seconds=500.0, answer_before_seconds=2.0)


class Clock:
    """A budget's loop, whose time is set."""

    def __init__(self, budget: SetUpBudget) -> None:
        self.now = budget._loop.time()
        budget._loop = cast("Any", SimpleNamespace(time=lambda: self.now))


@pytest.mark.parametrize(
    ("milliseconds", "patience", "seconds"),
    [
        (0, None, 100.0),
        (0, 40.0, 38.0),  # 2 s before the client's deadline
        (0, 10.0, 9.0),  # a tenth before it, where that is less
        (0, 1000.0, 100.0),
        (30_000, None, 28.0),
        (30_000, 10.0, 9.0),
        (10_000, 30.0, 9.0),
        (900_000, None, 498.0),
    ],
)
async def test_it_is_the_shortest_of_what_is_asked_for(
    milliseconds: int, patience: float | None, seconds: float
) -> None:
    budget = SetUpBudget.of(ConfigProto(operation_timeout_in_ms=milliseconds), patience, LIMITS)

    assert budget.seconds == pytest.approx(seconds)
    assert budget.left() == pytest.approx(seconds, abs=1.0)


async def test_a_late_call_gets_some_time_still() -> None:
    budget = SetUpBudget(10.0)
    clock = Clock(budget)
    clock.now += 9.0
    assert budget.left() == pytest.approx(1.0, abs=1e-3)
    assert not budget.is_over()
    clock.now += 1.0
    assert budget.is_over()
    assert budget.left() == pytest.approx(0.1)


@pytest.mark.parametrize(("graph_seconds", "left"), [(None, 3.0), (500.0, 10.0)])
async def test_the_graph_takes_of_the_same_time_only_where_a_client_waits(
    graph_seconds: float | None, left: float
) -> None:
    budget = SetUpBudget(10.0, graph_seconds)
    clock = Clock(budget)

    async def work() -> str:
        clock.now += 7.0
        return "placed"

    assert await budget.place(GraphDef(), work()) == "placed"
    assert budget.left() == pytest.approx(left, abs=1e-3)


async def test_a_graph_that_takes_too_long_is_named_by_its_size() -> None:
    graph = GraphDef()
    graph.node.add(name="a")
    with pytest.raises(errors.DeadlineExceededError, match=r"the graph of 1 nodes was not placed within 0\.01 s"):
        await SetUpBudget(10.0, 0.01).place(graph, asyncio.get_running_loop().create_future())
