"""Steps across tasks: which graphs are such, and what a step lends, counts and gives back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_core import errors
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.master import caller_cluster_steps as module
from tenfold_services.master.arrangement import Arrangement, Part
from tenfold_services.master.caller_cluster_steps import CallerClusterGraph, CallerClusterStep, cluster_graph
from tenfold_services.master.caller_steps import CallerSteps
from tenfold_services.master.run_table import RunTable

if TYPE_CHECKING:
    from tenfold_services.master.caller_graph import RunningSteps

OWN, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
OWN_PLAN = ExchangePlan("h", "g", expected=("p>w",))
PS_PLAN = ExchangePlan("h", "g of ps")


class Pool:
    """Lends the same links as long as it has them."""

    def __init__(self) -> None:
        self.lines: Any = "lines"
        self.taken: list[Any] = []
        self.given: list[Any] = []

    def take(self, workers: Any) -> Any:
        self.taken.append(workers)
        return self.lines

    def give(self, lines: Any) -> None:
        self.given.append(lines)


class Run:
    """In place of CallerClusterRun."""

    made: list[Run] = []  # noqa: RUF012 - of one test, see the fixture
    error: Exception | None = None

    def __init__(self, graph: Any, lines: Any, step_id: int) -> None:
        self.graph, self.lines, self.step_id = graph, lines, step_id
        self.fed: Any = None
        self.among: set[Any] = set()
        Run.made.append(self)

    part_run = None

    def interrupt(self) -> None: ...

    def release(self) -> None:
        self.graph.pool.give(self.lines)

    def run(self, feeds: Any) -> dict[str, Any]:
        self.fed, self.among = feeds, set(self.graph.session.linked)
        assert self.graph.session.running
        if Run.error is not None:
            raise Run.error
        return {"a": 1.0, "b": 2.0}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    monkeypatch.setattr(Run, "made", [])
    monkeypatch.setattr(Run, "error", None)
    monkeypatch.setattr(module, "CallerClusterRun", Run)
    monkeypatch.setattr(module, "new_step_id", lambda: 99)
    return Run.made


def graph_of(session: RunningSteps, pool: Pool, program: Any = "program") -> CallerClusterGraph:
    part = Part(OWN, {"x:0": "key of x"}, {"a:0": "a", "b:0": "b"})
    pushes = Arrangement(OWN, cast("Any", None), {PS: PS_PLAN}, cast("Any", {PS: "worker"}), frozenset())
    return CallerClusterGraph(session, part, program, pushes, cast("Any", pool), cast("Any", "explain"))


def a_session() -> RunningSteps:
    return CallerSteps(OWN).open("h", None, RunTable())


async def test_a_step_has_its_links_while_it_runs(runs: list[Run]) -> None:
    session, pool = a_session(), Pool()
    graph = graph_of(session, pool)
    step = graph.step(("y:0", "x:0"), ("b:0", "a:0", "b:0"))
    assert step is not None
    assert not graph.used

    assert step.run([7, 8]) == [2.0, 1.0, 2.0]

    (run,) = runs
    assert (run.graph, run.lines, run.step_id) == (graph, "lines", 99)
    assert run.fed == {"key of x": 8}, "nothing needs y"
    assert run.among == {run}
    assert session.linked == set()
    assert session.running == set()
    assert (pool.taken, pool.given) == ([{PS: "worker"}], ["lines"])
    assert graph.used
    assert session.steps == 1
    assert step.run([7, 8], 5) is not None
    assert runs[1].step_id == 5
    assert step.may_wait
    assert not step.is_short([7, 8])
    assert step.run_timed([7, 8]) is None
    assert len(runs) == 2


async def test_a_step_without_a_part_of_ours_is_not_counted_as_ours(runs: list[Run]) -> None:
    session = a_session()
    step = graph_of(session, Pool(), program=None).step((), ())
    assert step is not None
    assert step.run([]) == []
    assert session.steps == 0


async def test_a_step_that_fails_gives_its_links_back(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    session, pool = a_session(), Pool()
    step = graph_of(session, pool).step((), ())
    assert step is not None
    monkeypatch.setattr(Run, "error", errors.aborted("no"))

    with pytest.raises(errors.AbortedError):
        step.run([])

    assert pool.given == ["lines"]
    assert session.linked == set()
    assert session.running == set()


async def test_a_step_without_links_does_not_run(runs: list[Run]) -> None:
    session, pool = a_session(), Pool()
    pool.lines = None
    graph = graph_of(session, pool)
    step = graph.step((), ())
    assert step is not None

    assert step.run([]) is None

    assert runs == []
    assert pool.given == []
    assert session.running == set()
    assert not graph.used
    assert session.steps == 0


async def test_a_step_that_has_ended_takes_no_links(runs: list[Run]) -> None:
    session, pool = a_session(), Pool()
    graph = graph_of(session, pool)
    step = graph.step((), ())
    assert step is not None
    graph.end()
    assert step.run([]) is None
    assert pool.taken == []
    assert session.running == set()


async def test_feeds_of_another_number_are_a_defect(runs: list[Run]) -> None:
    session, pool = a_session(), Pool()
    step = graph_of(session, pool).step(("x:0",), ())
    assert step is not None
    with pytest.raises(ValueError, match="zip"):
        step.run([1, 2])
    assert session.running == set()


# -- which graphs ------------------------------------------------------------------------------------------------------


class Local:
    """Our own worker."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def program(self, session: str, graph: str) -> Any:
        self.asked.append((session, graph))
        return SimpleNamespace(compiled="compiled")


def offered(plans: dict[str, ExchangePlan], forgetful: tuple[str, ...]) -> tuple[Any, Local]:
    local, parts = Local(), [Part(PS), Part(OWN, {"x:0": "key of x"}, {}, sends={"w>p": PS})]
    pushes = Arrangement(OWN, cast("Any", local), plans, cast("Any", {PS: "worker"}), frozenset(forgetful))
    return SimpleNamespace(pushes=pushes, parts=parts, tasks=[PS, OWN]), local


@pytest.mark.parametrize("waits", [True, False])
async def test_a_graph_whose_edges_are_all_pushed_is_taken(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "waits_for_links_only", lambda *arguments: asked.append(arguments) or waits)
    graph, local = offered({PS: PS_PLAN, OWN: OWN_PLAN}, (PS, OWN))
    session, pool = a_session(), cast("Any", Pool())

    found = cluster_graph(session, graph, pool, cast("Any", "explain"))

    assert asked == [("compiled", OWN_PLAN.expected)]
    assert local.asked == [("h", "g")]
    assert (found is not None) == waits
    if found is not None:
        assert (found.session, found.pool, found.explain) == (session, pool, "explain")
        assert (found.plans, found.workers, found.order) == ({PS: PS_PLAN}, {PS: "worker"}, (PS,))
        assert found.sends == {"w>p": PS}
        assert found.program is not None
        assert found.program.compiled == "compiled"
        assert not found.is_one_part
        assert isinstance(found.step(("x:0",), ()), CallerClusterStep)


async def test_a_graph_without_a_part_of_ours_is_taken() -> None:
    graph, local = offered({PS: PS_PLAN}, (PS, OWN))
    found = cluster_graph(a_session(), graph, cast("Any", Pool()), cast("Any", "explain"))
    assert found is not None
    assert (found.program, found.sends, found.plans) == (None, {}, {PS: PS_PLAN})
    assert local.asked == []


@pytest.mark.parametrize("forgetful", [(), (PS,), (OWN,)])
async def test_a_graph_with_an_edge_that_is_not_pushed_is_not(forgetful: tuple[str, ...]) -> None:
    graph, _ = offered({PS: PS_PLAN, OWN: OWN_PLAN}, forgetful)
    assert cluster_graph(a_session(), graph, cast("Any", Pool()), cast("Any", "explain")) is None
    graph.pushes = None
    assert cluster_graph(a_session(), graph, cast("Any", Pool()), cast("Any", "explain")) is None
