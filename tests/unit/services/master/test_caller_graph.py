"""Steps kept ready for each order of feeds and fetches: one each, a bounded number, none once the graph has ended."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tenfold_core import telemetry
from tenfold_services import step_spans
from tenfold_services.master import caller_graph
from tenfold_services.master.arrangement import Arrangement, Part
from tenfold_services.master.caller_cluster_steps import CallerClusterGraph
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
    graph = CallerClusterGraph(session, None, None, PUSHES, cast("Any", None), cast("Any", None))
    step = graph.step((), ())
    assert step is not None
    graph.end()
    assert step.run([]) is None, "the scheduled path says why"
    assert not session.running


# -- spans, and steps that run now -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_one_part", [True, False])
async def test_a_step_in_spans_has_a_number_that_its_part_shares(
    monkeypatch: pytest.MonkeyPatch, is_one_part: bool
) -> None:
    ran: list[Any] = []
    shown: list[Any] = []

    class Noted(Step):
        def run(self, feeds: Any, step_id: int = 0) -> Any:
            ran.append((feeds, step_id))
            return ["value"]

    def on_callers_thread(run: Any, *about: Any) -> Any:
        shown.append(about)
        return run()

    monkeypatch.setattr(caller_graph, "new_step_id", lambda: 99)
    monkeypatch.setattr(step_spans, "on_callers_thread", on_callers_thread)
    session = CallerSteps(TASK).open("h", None, RunTable())
    graph = CallerGraph(session, Noted, Part(TASK, {}, {"a:0": "key of a"}), None)
    monkeypatch.setattr(graph, "is_one_part", is_one_part)
    step = graph.step((), ("a:0",), ("init",))
    assert step is not None

    assert step.run_in_spans([5]) == ["value"]

    assert ran == [([5], 99)]
    assert shown == [(TASK, "h", telemetry.wanted_names(("a:0",), ("init",)), 99 if is_one_part else 0)]


async def test_a_step_of_no_kind_does_not_run() -> None:
    session = CallerSteps(TASK).open("h", None, RunTable())
    step = CallerGraph(session, CallerStep, None, None).step(("x:0",), ())
    assert step is not None
    with pytest.raises(NotImplementedError):
        step.run([1])


def test_a_fetch_without_a_key_is_a_defect(orders: Any) -> None:
    with pytest.raises(KeyError, match="c:0"):
        orders.step((), ("c:0",))
