"""Steps kept ready for each order of feeds and fetches: one each, a bounded number, none once the graph has ended."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tenfold_services.master.arrangement import Arrangement, Part
from tenfold_services.master.caller_cluster_run import CallerClusterGraph
from tenfold_services.master.caller_cluster_steps import CallerClusterStep
from tenfold_services.master.caller_graph import CallerGraph, CallerStep
from tenfold_services.master.caller_steps import CallerSteps
from tenfold_services.master.run_table import RunTable

PUSHES = Arrangement("here", cast("Any", None), {}, {}, frozenset())
FETCHES = ("a:0", "b:0")
TASK = "/job:worker/replica:0/task:0"


class Step(CallerStep):
    """Knows its order, and whether it was told to end."""

    @property
    def order(self) -> Any:
        return self._feeds, self._fetches

    @property
    def ended(self) -> bool:
        return self._ended


@pytest.fixture
def orders() -> Any:
    part = Part(TASK, {"x:0": "key of x"}, {"a:0": "key of a", "b:0": "key of b"})
    return CallerGraph(cast("Any", None), Step, part, None)


def test_an_order_is_made_once(orders: Any) -> None:
    step = orders.step(("x:0",), FETCHES)
    assert step is not None
    assert step.order == (["key of x"], ["key of a", "key of b"])
    assert orders.step(("x:0",), FETCHES) is step
    assert orders.step(("x:0",), FETCHES[::-1]) is not step


def test_a_feed_that_nothing_needs_has_no_key(orders: Any) -> None:
    step = orders.step(("unused:0", "x:0"), ("b:0",))
    assert step is not None
    assert step.order == ([None, "key of x"], ["key of b"])


def test_the_oldest_order_goes_for_one_too_many(orders: Any) -> None:
    made = [orders.step((f"x:{number}",), FETCHES) for number in range(65)]
    assert [step is not None and step.ended for step in made] == [True] + [False] * 64
    assert orders.step(("x:64",), FETCHES) is made[64]
    assert orders.step(("x:0",), FETCHES) is not made[0]


def test_after_the_end_there_are_no_steps(orders: Any) -> None:
    step = orders.step((), FETCHES)
    orders.end()
    assert step is not None
    assert step.ended
    assert orders.step((), FETCHES) is None


async def test_a_step_across_tasks_that_has_ended_does_not_run() -> None:
    session = CallerSteps(TASK).open("h", None, RunTable())
    graph = CallerClusterGraph(session, CallerClusterStep, None, None, PUSHES, cast("Any", None), cast("Any", None))
    step = graph.step((), ())
    assert step is not None
    graph.end()
    assert step.run([]) is None, "the scheduled path says why"
    assert not session.running
