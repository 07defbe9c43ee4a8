"""One partial run by itself, and the table of those of a session: what each call may ask for, and how a run ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.graph_text import parse_text
from support.moments import PATIENCE, started
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors
from tenfold_services.interfaces import ExecOptions, RunGraphResult, RunRequest
from tenfold_services.master.arrangement import Part
from tenfold_services.master.client_graph import ClientGraph, run_names
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.partial_runs import PartialRuns, PartialStep
from tenfold_services.master.peer_use import PeerUse
from tenfold_services.owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OWN, PS, OTHER = (f"/job:{job}/replica:0/task:0" for job in ("worker", "ps", "other"))
TEXT = """
    x = Placeholder() dtype=float
    u = Placeholder() dtype=float
    a = Neg(x)
    b = Neg(a)
    both = Add(b, u)
    late = Neg(b, ^u)
    plain = Const() dtype=float value=1.0
"""
FEEDS, FETCHES = ("x:0", "u"), ("a:0", "b:0", "both", "late:0")


class Graph:
    """In place of the session's graph."""

    def __init__(self) -> None:
        self.graph = RuntimeGraph.from_graph_def(parse_text(TEXT))
        #: Called while a call looks whether it can be computed.
        self.meanwhile: Callable[[], object] = lambda: None

    async def aside(self, work: Callable[[], Any]) -> Any:
        self.meanwhile()
        return work()


class Worker:
    """Notes each call, and ends it as the test says: with an error, or with the number of the key."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int, dict[str, Any], list[str], ExecOptions]] = []
        self.ends: list[asyncio.Future[BaseException | None]] = []
        self.cancelled = 0
        self.at_once = True
        self._changed = asyncio.Event()

    async def until(self, *, waiting: int = 0, cancelled: int = 0) -> None:
        """Returns once so many calls have come that wait, and so many were cancelled."""
        async with asyncio.timeout(PATIENCE):
            while len(self.ends) < waiting or self.cancelled < cancelled:
                self._changed.clear()
                await self._changed.wait()

    async def run_graph(self, request: RunRequest) -> RunGraphResult:
        session, handle, step_id, feeds, fetches, options = request
        self.calls.append((session, handle, step_id, dict(feeds), list(fetches), options))
        if not self.at_once:
            end: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
            self.ends.append(end)
            self._changed.set()
            try:
                error = await end
            except asyncio.CancelledError:
                self.cancelled += 1
                self._changed.set()
                raise
            if error is not None:
                raise error
        return RunGraphResult({key: f"value of {key}" for key in fetches})


class Run:
    """A partial run over three tasks, of which the first is the master's own."""

    def __init__(self, feeds: tuple[str, ...] = FEEDS, fetches: tuple[str, ...] = FETCHES, own: str = OWN) -> None:
        self.workers = {task: Worker() for task in (PS, OWN, OTHER)}
        parts = []
        for task, worker in self.workers.items():
            part = Part(task, handle=f"g{len(parts)}")
            part.worker = cast("Any", worker)
            if task == OWN:
                part.feed_keys = {"x:0": "key x"}
                part.fetch_keys = {name: f"key {name}" for name in ("a:0", "b:0", "both:0", "late:0", "plain:0")}
            parts.append(part)
        names = run_names(feeds, fetches, ())
        self.client_graph = ClientGraph(names.signature, cast("Any", None), 0, 0, parts)
        self.graph = Graph()
        self.tasks = OwnedTasks("test")
        env: Any = SimpleNamespace(handle="session", master=SimpleNamespace(task=own))
        self.step = PartialStep(self.client_graph, names, 77, env, cast("Any", self.graph), self.tasks)

    @property
    def own(self) -> Worker:
        return self.workers[OWN]

    async def __call__(
        self, feeds: Sequence[str] = (), fetches: Sequence[str] = (), seconds: float | None = None
    ) -> list[Any]:
        given = {name: f"fed {name}" for name in feeds}
        return await self.step.run(cast("Any", given), fetches, seconds)

    def slow(self, *tasks: str) -> None:
        for task in tasks:
            self.workers[task].at_once = False


# -- what a call may ask for -------------------------------------------------------------------------------------------


async def test_calls_feed_and_fetch_in_turn_and_the_last_ends_the_step() -> None:
    run = Run()
    assert not run.step.is_over
    assert await run(["x"], ["b", "a:0"]) == ["value of key b:0", "value of key a:0"]
    assert not run.step.is_over
    assert run.step._waiting == set(), "a call that has ended is not kept"
    assert await run(["u:0"], []) == []
    assert await run([], ["late"]) == ["value of key late:0"]
    assert not run.step.is_over
    assert await run([], ["both:0"]) == ["value of key both:0"]
    assert run.step.is_over

    partial, last = ExecOptions(is_partial=True), ExecOptions(is_partial=True, is_last_partial_run=True)
    assert run.own.calls == [
        ("session", "g1", 77, {"key x": "fed x"}, ["key b:0", "key a:0"], partial),
        ("session", "g1", 77, {}, [], partial),
        ("session", "g1", 77, {}, ["key late:0"], partial),
        ("session", "g1", 77, {}, ["key both:0"], last),
    ]
    # what is fed and has no part in the graph is left out; the parts of other tasks run once and get nothing
    assert run.workers[PS].calls == [("session", "g0", 77, {}, [], ExecOptions())]
    assert run.workers[OTHER].calls == [("session", "g2", 77, {}, [], ExecOptions())]


@pytest.mark.parametrize(
    ("feeds", "fetches", "text"),
    [
        (["a"], [], "The feed a was not specified in partial_run_setup."),
        (["x:1"], [], "The feed x:1 was not specified"),
        (["u"], ["plain"], "The fetch plain was not specified in partial_run_setup."),
        (["u", "x"], [], "The feed x has already been fed."),
        (["u"], ["a:0"], "The fetch a:0 has already been fetched."),
        (["a"], ["both"], "The feed a was not specified"),
        ([], ["both"], "Fetch u:0 can't be computed from the feeds that have been fed so far."),
    ],
)
async def test_what_a_call_may_not_ask_leaves_the_step_as_it_was(
    feeds: list[str], fetches: list[str], text: str
) -> None:
    run = Run()
    await run(["x"], ["a"])
    with pytest.raises(errors.InvalidArgumentError, match=text):
        await run(feeds, fetches)
    assert len(run.own.calls) == 1
    await run([], ["b"])
    await run(["u"], ["both", "late"])
    assert run.step.is_over


@pytest.mark.parametrize("fetch", ["a", "b", "both"])
async def test_a_fetch_waits_for_all_feeds_that_it_needs(fetch: str) -> None:
    run = Run()
    with pytest.raises(errors.InvalidArgumentError, match="Fetch x:0 can't be computed"):
        await run(["u"] if fetch == "both" else [], [fetch])
    assert run.own.calls == []
    await run(["x", "u"], [fetch])
    assert len(run.own.calls) == 1


async def test_a_feed_behind_a_control_input_is_not_needed_by_value() -> None:
    run = Run()
    await run(["x"], ["late"])
    assert len(run.own.calls) == 1


async def test_what_needs_no_feed_comes_before_any() -> None:
    run = Run(fetches=("plain", "a", "gone:3"))
    assert await run([], ["plain"]) == ["value of key plain:0"]
    with pytest.raises(KeyError, match="gone"):
        await run([], ["gone:3"])  # a node that is not in the graph needs nothing


async def test_a_call_that_came_meanwhile_counts() -> None:
    run = Run()

    def another() -> None:
        run.graph.meanwhile = lambda: None
        run.step._unfed.discard("x:0")

    run.graph.meanwhile = another
    with pytest.raises(errors.InvalidArgumentError, match="The feed x has already been fed"):
        await run(["x"], ["a"])
    run.graph.meanwhile = lambda: run.step.interrupt(errors.aborted("gone"))
    with pytest.raises(errors.AbortedError, match="gone"):
        await run(["u"], ["late"])
    assert run.own.calls == []


# -- how it ends -------------------------------------------------------------------------------------------------------


async def test_a_step_is_over_when_the_last_of_its_calls_is() -> None:
    run = Run()
    run.slow(OWN)
    first = await started(run(["x"], ["a", "b"]))
    last = await started(run(["u"], ["both", "late"]))
    await run.own.until(waiting=2)
    assert [call[-1].is_last_partial_run for call in run.own.calls] == [False, True]
    run.own.ends[1].set_result(None)
    await last
    assert not run.step.is_over, "the first call waits"
    run.own.ends[0].set_result(None)
    await first
    assert run.step.is_over


async def test_the_last_call_waits_for_the_parts_of_others_and_no_other_does() -> None:
    run = Run(fetches=("a", "late"))
    run.slow(PS, OTHER)
    assert await run(["x"], ["a"]) == ["value of key a:0"]
    last = await started(run(["u"], ["late"]))
    run.workers[PS].ends[0].set_result(None)
    await started(asyncio.sleep(0))
    assert not last.done()
    assert len(run.workers[PS].calls) == len(run.workers[OTHER].calls) == 1
    run.workers[OTHER].ends[0].set_result(None)
    assert await last == ["value of key late:0"]


@pytest.mark.parametrize("task", [OWN, PS])
async def test_an_error_ends_the_step_for_all_calls(task: str) -> None:
    run = Run()
    run.slow(OWN, PS, OTHER)
    call, other = await started(run(["x"], ["a"])), await started(run(["u"], ["late"]))
    await run.own.until(waiting=2)
    run.workers[task].ends[0].set_result(errors.invalid_argument("wrong"))
    for each in (call, other):
        with pytest.raises(errors.InvalidArgumentError, match=f"From {task}:\nwrong"):
            await each
    assert run.step.is_over
    with pytest.raises(errors.InvalidArgumentError, match="wrong"):
        await run([], ["b"])
    for name, worker in run.workers.items():
        still = 2 if name == OWN else 1
        await worker.until(cancelled=still - (name == task))
    assert len(run.own.calls) == 2


async def test_a_cause_counts_before_a_consequence_that_came_with_it() -> None:
    for first, second in ((OWN, PS), (PS, OWN)):
        run = Run()
        run.slow(OWN, PS, OTHER)
        call = await started(run(["x"], ["a"]))
        for worker in run.workers.values():
            await worker.until(waiting=1)
        run.workers[first].ends[0].set_result(errors.cancelled("a mere consequence"))
        run.workers[second].ends[0].set_result(errors.aborted("the cause"))
        with pytest.raises(errors.AbortedError, match="the cause"):
            await call


async def test_an_error_that_is_none_of_a_step_s_is_raised_as_it_is() -> None:
    run = Run()
    run.slow(OWN)
    call = await started(run(["x"], ["a"]))
    await run.own.until(waiting=1)
    run.own.ends[0].set_result(ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError, match="a defect"):
        await call


async def test_a_call_has_its_time_and_the_step_ends_with_it() -> None:
    run = Run()
    run.slow(OWN, PS)
    with pytest.raises(errors.DeadlineExceededError, match=f"within 1 ms; still pending on {OWN}"):
        await run(["x"], ["a"], 0.001)
    await run.own.until(cancelled=1)
    await run.workers[PS].until(cancelled=1)
    with pytest.raises(errors.DeadlineExceededError):
        await run([], ["b"])
    assert run.step.is_over


async def test_a_client_that_gives_up_ends_the_step() -> None:
    run = Run()
    run.slow(OWN, PS)
    call = await started(run(["x"], ["a"]))
    await run.workers[PS].until(waiting=1)
    await run.own.until(waiting=1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert run.step.is_over
    with pytest.raises(errors.CancelledError, match="The client gave up the step"):
        await run([], ["b"])
    await run.own.until(cancelled=1)
    await run.workers[PS].until(cancelled=1)


async def test_an_interrupted_step_says_why_and_the_first_reason_stays() -> None:
    run = Run()
    run.slow(OWN, OTHER)
    call = await started(run(["x"], ["a"]))
    await run.own.until(waiting=1)
    await run.workers[OTHER].until(waiting=1)
    run.step.interrupt(errors.aborted("the session ends"))
    run.step.interrupt(errors.unavailable("something else"))
    with pytest.raises(errors.AbortedError, match="the session ends"):
        await call
    run.graph.meanwhile = pytest.fail
    with pytest.raises(errors.AbortedError, match="the session ends"):
        await run(["u"], [])
    await run.workers[OTHER].until(cancelled=1)
    early = Run()
    early.step.interrupt(errors.aborted("before any call"))
    assert early.step.is_over


async def test_a_client_that_gives_up_an_interrupted_step_hears_why() -> None:
    run = Run()
    run.slow(OWN)
    call = await started(run(["x"], ["a"]))
    run.step.interrupt(errors.aborted("the session ends"))
    call.cancel()
    with pytest.raises(errors.AbortedError, match="the session ends"):
        await call


async def test_a_call_that_others_cancel_ends_the_step_as_cancelled() -> None:
    run = Run()
    run.slow(OWN, PS)
    call = await started(run(["x"], ["a"]))
    await run.own.until(waiting=1)
    await run.tasks.cancel_all(10)
    with pytest.raises(errors.CancelledError, match="The partial run was cancelled"):
        await call
    assert run.step.is_over


async def test_a_worker_out_of_time_ends_a_step_that_has_no_time_of_its_own() -> None:
    run = Run()
    run.slow(OWN)
    call = await started(run(["x"], ["a"]))
    await run.own.until(waiting=1)
    run.own.ends[0].set_result(TimeoutError())
    with pytest.raises(errors.DeadlineExceededError, match="within 0 ms"):
        await call


async def test_a_graph_of_many_ways_is_looked_through_once() -> None:
    lines = ["x = Placeholder() dtype=float", "n0 = Neg(x)"]
    lines += [f"n{number} = Add(n{number - 1}, n{number - 1})" for number in range(1, 60)]
    run = Run(("x:0", "u:0"), ("n59:0",))
    run.graph.graph = RuntimeGraph.from_graph_def(parse_text("\n".join([*lines, "u = Placeholder() dtype=float"])))
    run.client_graph.parts[1].fetch_keys["n59:0"] = "last"
    assert await run(["x"], ["n59"]) == ["value of last"]


async def test_a_run_without_a_part_here_is_a_defect() -> None:
    run = Run(own="/job:nowhere/replica:0/task:0")
    with pytest.raises(errors.InternalError, match="no part on /job:nowhere"):
        await run(["x"], ["a"])


# -- all of a session --------------------------------------------------------------------------------------------------


async def test_runs_are_kept_by_handle_until_they_are_over() -> None:
    forgotten: list[PartialStep] = []
    runs = PartialRuns(MasterLimits(partial_runs=2), forgotten.append)
    first, second, third = Run(("x",), ("a",)), Run(("x",), ("a",)), Run()
    handles = [runs.add(first.step), runs.add(second.step)]
    assert handles == ["0", "1"]
    assert first.client_graph.users == 1
    with pytest.raises(errors.ResourceExhaustedError, match="2 partial runs that are not over"):
        runs.add(third.step)
    assert third.client_graph.users == 0

    given = cast("Any", {"x": 1})
    with pytest.raises(errors.InvalidArgumentError, match="not specified"):
        await runs.run("0", given, ["b"], None)
    assert forgotten == []
    assert await runs.run("0", given, ["a"], None) == ["value of key a:0"]
    assert forgotten == [first.step]
    assert (first.client_graph.users, second.client_graph.users) == (0, 1)
    for unknown in ("0", "7", ""):
        with pytest.raises(errors.InvalidArgumentError, match="Must run PartialRunSetup before"):
            await runs.run(unknown, given, ["a"], None)
    assert runs.add(third.step) == "2"

    second.slow(OWN)
    call = await started(runs.run("1", given, ["a"], None))
    runs.close(errors.cancelled("closed"))
    assert forgotten == [first.step, second.step, third.step]
    assert (second.client_graph.users, third.client_graph.users) == (0, 0)
    with pytest.raises(errors.CancelledError, match="closed"):
        await call
    assert len(forgotten) == 3, "each once"
    assert second.client_graph.users == 0
    with pytest.raises(errors.InvalidArgumentError, match="Must run PartialRunSetup"):
        await runs.run("2", {}, [], None)


async def test_a_run_that_failed_is_forgotten() -> None:
    forgotten: list[PartialStep] = []
    runs, run = PartialRuns(MasterLimits(partial_runs=1), forgotten.append), Run()
    runs.add(run.step)
    run.slow(OWN)
    call = await started(runs.run("0", cast("Any", {"x": 1}), ["a"], None))
    await run.own.until(waiting=1)
    run.own.ends[0].set_result(errors.aborted("lost"))
    with pytest.raises(errors.AbortedError):
        await call
    assert forgotten == [run.step]
    assert runs.add(Run().step) == "1"


async def test_what_the_runs_of_a_peer_hold_is_bounded() -> None:
    peer, other = PeerUse("a guest"), PeerUse("another")
    limits, forgotten = MasterLimits(partial_run_bytes_per_peer=100), list[PartialStep]()
    tables = [PartialRuns(limits, forgotten.append) for _ in range(2)]
    runs = [Run(("x", "u"), ("a", "b")) for _ in range(4)]
    for table, run in zip((*tables, *tables), runs, strict=True):
        table.add(run.step, peer if run is not runs[3] else other)

    def feed(number: int, *, name: str = "x", size: int = 40, fetches: tuple[str, ...] = ("a",)) -> Any:
        value = cast("Any", np.zeros(size, np.uint8))
        return tables[number % 2].run(str(number // 2), {name: value}, fetches, None)

    await feed(0)
    await feed(1)
    assert peer.partial_run_bytes == 80
    with pytest.raises(
        errors.ResourceExhaustedError, match=r"runs of a guest hold 80 bytes .* this call feeds 40 more"
    ) as e:
        await feed(2)
    assert "TENFOLD_MASTER_PARTIAL_RUN_BYTES_PER_PEER" in str(e.value)
    await feed(3)  # somebody else's
    await feed(2, size=20)  # exactly at the limit: the refusal left the run as it was
    assert (peer.partial_run_bytes, other.partial_run_bytes) == (100, 40)

    await feed(0, name="u", size=0, fetches=("b",))  # it is over
    assert forgotten == [runs[0].step]
    assert peer.partial_run_bytes == 60
    with pytest.raises(errors.InvalidArgumentError, match="already been fed"):
        await feed(2)
    assert peer.partial_run_bytes == 60
    for table in tables:
        table.close(errors.cancelled("closed"))
    assert (peer.partial_run_bytes, other.partial_run_bytes) == (0, 0)


@pytest.mark.parametrize("how", ["it fails", "its session closes"])
async def test_a_run_that_ends_while_a_call_waits_holds_nothing(how: str) -> None:
    peer, run, runs = PeerUse("a guest"), Run(), PartialRuns(MasterLimits(), lambda step: None)
    runs.add(run.step, peer)
    run.slow(OWN)
    value = cast("Any", np.array([b"12345", b""], object))
    call = await started(runs.run("0", {"x": value}, ["a"], None))
    await run.own.until(waiting=1)
    assert peer.partial_run_bytes == value.nbytes + 5

    if how == "it fails":
        run.own.ends[0].set_result(errors.aborted("lost"))
    else:
        runs.close(errors.cancelled("closed"))
    with pytest.raises(errors.OpError, match=r"lost|closed"):
        await call
    assert peer.partial_run_bytes == 0
