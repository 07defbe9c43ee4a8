"""One run from its start to its answer: what it waits for and where it computes, what ends it, what it leaves behind.

start ─► done, or waits ─► (arrivals, the pool, a kernel, another task) ─► done(result) | done(error)
"""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.executions import FakeExecution, result, tensor
from support.fake_run_owner import PS, TASK, Task
from support.moments import PATIENCE
from support.programs import sums
from tenfold_core import errors
from tenfold_core.rendezvous_key import make_key
from tenfold_kernels.resources.state import ResourceManager
from tenfold_kernels.resources.waiting import Waiting
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.worker import graph_run
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.graph_run import GraphRun, explained
from tenfold_services.worker.outbox import Outbox
from tenfold_services.worker.rendezvous import Rendezvous
from tenfold_services.worker.run_policy import RunPolicy
from tenfold_services.worker.sessions import WorkerSession

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL = make_key(f"{TASK}/device:CPU:0", 1, f"{TASK}/device:CPU:1", "local")
REMOTE = make_key(f"{PS}/device:CPU:0", 1, f"{TASK}/device:CPU:0", "remote")


class Started:
    """A run of an execution that is the test's, and what it has answered."""

    def __init__(
        self,
        execution: FakeExecution | None = None,
        *,
        plan: ExchangePlan | None = None,
        outbox: Outbox | None = None,
        rendezvous: Rendezvous | None = None,
        fetches: tuple[str, ...] = ("fetch",),
        is_short: bool = True,
        program: Any = None,
    ) -> None:
        self.task, self.session = Task(), WorkerSession("s", ResourceManager())
        self.rendezvous = rendezvous or Rendezvous(5)
        self.answers: list[tuple[Any, errors.OpError | None]] = []
        self.over = asyncio.Event()
        policy = RunPolicy(10**15, sized_by_values=False, loops=False)
        if is_short:
            policy.note(1, (7,))
        compiled = SimpleNamespace(is_straight=False)
        fake = SimpleNamespace(policy=policy, compiled=compiled, node_edges=None)
        executor = None if execution is None else lambda *_: execution
        self.run = GraphRun(
            cast("Any", self.task), self.session, program or cast("Any", fake), self.rendezvous, fetches, self._done,
            plan, outbox, cast("Any", executor),
        )  # fmt: skip

    def _done(self, result: Any, error: errors.OpError | None) -> None:
        assert self.run.ended
        self.answers.append((result, error))
        self.over.set()

    def start(self, feeds: dict[str, Any] | None = None) -> Started:
        self.run.start(feeds or {})
        return self

    @property
    def values(self) -> dict[str, Any]:
        ((result, error),) = self.answers
        assert error is None
        found: dict[str, Any] = result.values
        return found

    @property
    def error(self) -> errors.OpError:
        ((result, error),) = self.answers
        assert result is None
        assert error is not None
        return error

    async def ended(self) -> Started:
        async with asyncio.timeout(PATIENCE):
            await self.over.wait()
        self.left_nothing()
        return self

    def left_nothing(self) -> None:
        assert self.run.ended
        assert self.run.part_run is None
        assert not self.session.running
        assert (self.task.running, self.rendezvous.runs) == (0, 0)
        assert self.rendezvous.error is not None or not self.rendezvous._listeners
        assert not self.rendezvous._waiting


def a_part(*wants: Any, stretches: int = 1, takes: Callable[[], None] | None = None) -> FakeExecution:
    return FakeExecution(stretches, list(wants), takes)


# -- the way to the end ------------------------------------------------------------------------------------------------


async def test_a_short_run_that_waits_for_nothing_has_ended_when_it_has_started() -> None:
    run = Started(a_part()).start()

    assert run.values == {"fetch": []}
    run.left_nothing()
    assert not run.task.pool.jobs


class Unheard(Rendezvous):
    """A step that nobody may listen to."""

    def listen(self, aborted: Any) -> None:
        raise AssertionError("a short program needs nobody to wait")


async def test_a_straight_program_takes_one_turn_and_nobody_waits() -> None:
    program, x, y, plus, minus = sums()
    feeds = {x: np.float32([2]), y: np.float32([1])}
    program.policy.note(1, (program.start(StepIO(feeds, lambda *_: None)).shapes,))

    run = Started(program=program, fetches=(plus, minus), rendezvous=Unheard(5)).start(feeds)

    assert {key: value.tolist() for key, value in run.values.items()} == {plus: [3.0], minus: [1.0]}
    run.left_nothing()


async def test_a_straight_program_of_a_step_that_was_aborted_does_not_run() -> None:
    program, x, y, plus, minus = sums()
    feeds = {x: np.float32([2]), y: np.float32([1])}
    program.policy.note(1, (program.start(StepIO(feeds, lambda *_: None)).shapes,))
    rendezvous = Rendezvous(5)
    rendezvous.abort(errors.aborted("before"))

    run = Started(program=program, fetches=(plus, minus), rendezvous=rendezvous).start(feeds)

    assert run.error is rendezvous.error
    run.left_nothing()


async def test_a_straight_program_that_was_not_measured_computes_in_the_pool() -> None:
    program, x, y, plus, minus = sums()
    run = Started(program=program, fetches=(plus, minus)).start({x: np.float32([2]), y: np.float32([1])})
    assert not run.answers

    run.task.pool.run()
    await run.ended()

    assert run.values[plus].tolist() == [3.0]


async def test_a_feed_that_is_missing_ends_the_run() -> None:
    program, x, _, plus, _ = sums()
    run = Started(program=program, fetches=(plus,)).start({x: np.float32([2])})

    assert "You must feed a value for 'y'" in run.error.message
    run.left_nothing()


async def test_a_run_is_counted_while_it_waits() -> None:
    run = Started(a_part(tensor(LOCAL))).start()

    assert (run.task.running, run.rendezvous.runs, list(run.session.running)) == (1, 1, [run.run])
    assert not run.run.ended
    assert run.run.part_run is not None
    run.rendezvous.send(LOCAL, 4)
    assert run.values == {"fetch": [(f"token of {LOCAL}", 4, False)]}
    run.left_nothing()


async def test_a_run_of_a_step_that_was_aborted_ends_with_that_error() -> None:
    rendezvous = Rendezvous(5)
    rendezvous.abort(errors.aborted("before"))
    execution = a_part()

    run = Started(execution, rendezvous=rendezvous).start()

    assert run.error is rendezvous.error
    assert execution.left == 1
    run.left_nothing()


async def test_a_tensor_of_another_task_is_asked_for_there() -> None:
    run = Started(a_part(tensor(REMOTE))).start()
    (receiver,) = run.run._remote
    assert receiver.get_name() == f"recv:{PS};remote"

    run.task.answer.set_result((4, True))
    await run.ended()

    assert run.task.asked == [(PS, 5, REMOTE)]
    assert run.values == {"fetch": [(f"token of {REMOTE}", 4, True)]}


async def test_what_is_pushed_is_waited_for_and_not_asked_for() -> None:
    run = Started(a_part(tensor(REMOTE)), plan=ExchangePlan("s", "g", expected=(REMOTE,))).start()

    run.rendezvous.send(REMOTE, 4)

    assert run.values == {"fetch": [(f"token of {REMOTE}", 4, False)]}
    assert run.task.asked == []


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (errors.unavailable("it is gone"), f"From {PS}:\nit is gone"),
        (errors.unavailable(f"{PS} is gone"), f"{PS} is gone"),
        (errors.unavailable("From /job:other/replica:0/task:1:\nx"), "From /job:other/replica:0/task:1:\nx"),
        (ValueError("a bug"), f"Receiving {REMOTE} failed with ValueError: a bug"),
    ],
)
async def test_a_producers_error_says_where_it_comes_from_once(failure: Exception, message: str) -> None:
    run = Started(a_part(tensor(REMOTE))).start()

    run.task.answer.set_exception(failure)
    await run.ended()

    assert run.error.message == message
    assert run.error.code == (errors.INTERNAL if isinstance(failure, ValueError) else errors.UNAVAILABLE)


async def test_a_long_stretch_computes_in_the_pool_for_the_session() -> None:
    run = Started(a_part(), is_short=False).start()
    (job,) = run.task.pool.jobs
    assert job.owner == "s"
    assert not run.answers

    run.run.go_on()  # what comes meanwhile waits
    assert len(run.task.pool.jobs) == 1
    run.task.pool.run()
    await run.ended()

    assert run.values == {"fetch": []}
    assert run.task.pool.let_go_of == []


async def test_a_stretch_that_fails_in_the_pool_ends_the_run() -> None:
    def fails() -> None:
        raise errors.internal("a kernel")

    run = Started(a_part(takes=fails), is_short=False).start()
    run.task.pool.run()
    await run.ended()

    assert run.error.message == "a kernel"


async def test_a_stretch_that_the_pool_drops_ends_the_run() -> None:
    run = Started(a_part(), is_short=False).start()
    run.task.pool.jobs[0].future.cancel()
    await run.ended()

    assert isinstance(run.error, errors.CancelledError)
    assert run.error.message == "Step was cancelled."


async def test_a_pool_that_refuses_ends_the_run() -> None:
    run = Started(a_part(), is_short=False)

    def refuses(owner: str, work: Any) -> Any:
        raise errors.unavailable("shutting down")

    run.task.pool.submit = refuses  # type: ignore[method-assign]
    run.start()

    assert run.error.message == "shutting down"
    run.left_nothing()


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_kernels_result_wakes_the_run_later_and_not_within(elsewhere: bool) -> None:
    waiting = Waiting()
    run = Started(a_part(result(waiting))).start()

    if elsewhere:
        thread = threading.Thread(target=waiting.complete, args=(5,))
        thread.start()
        thread.join(PATIENCE)
    else:
        waiting.complete(5)
    assert not run.answers
    await run.ended()

    assert run.values == {"fetch": [("token of dequeue", 5, False)]}


async def test_a_tensor_from_another_thread_comes_through_the_loop() -> None:
    run = Started(a_part(tensor(LOCAL))).start()

    thread = threading.Thread(target=run.rendezvous.send, args=(LOCAL, 4))
    thread.start()
    thread.join(PATIENCE)
    assert not run.answers
    await run.ended()

    assert run.values == {"fetch": [(f"token of {LOCAL}", 4, False)]}


async def test_a_frames_tensors_are_handed_out_before_the_run_goes_on() -> None:
    other = LOCAL.replace("local", "other")
    run = Started(a_part(tensor(LOCAL), tensor(other))).start()
    turns: list[int] = []
    part = run.run.part_run
    assert part is not None
    turn = part.execution.arrived  # type: ignore[union-attr]
    part.execution.arrived = lambda *each: (turns.append(1), turn(*each))  # type: ignore[union-attr,method-assign,assignment]

    with run.task.arrivals:
        run.rendezvous.send(LOCAL, 1)
        assert not turns
        run.rendezvous.send(other, 2)
        assert not turns
    assert len(turns) == 2

    assert len(run.values["fetch"]) == 2


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_the_first_error_of_a_step_is_the_one_that_is_reported() -> None:
    run = Started(a_part(tensor(LOCAL), tensor(REMOTE))).start()
    first = errors.aborted("the first")

    run.rendezvous.abort(first)
    run.rendezvous.abort(errors.internal("a later one"))

    assert run.error is first
    run.left_nothing()


async def test_an_error_of_the_run_ends_its_step_with_a_copy_of_it() -> None:
    run = Started(a_part(takes=lambda: (_ for _ in ()).throw(errors.aborted("of the run")))).start()  # type: ignore[arg-type]

    assert run.error.message == "of the run"
    assert run.rendezvous.error is not None
    assert run.rendezvous.error is not run.error
    assert (run.rendezvous.error.code, run.rendezvous.error.message) == (run.error.code, "of the run")


async def test_an_abort_from_another_thread_ends_the_run_on_its_own() -> None:
    run = Started(a_part(tensor(LOCAL))).start()
    # the rendezvous tells the receiver first: only the listener is left then
    run.rendezvous._waiting.clear()
    thread = threading.Thread(target=run.rendezvous.abort, args=(errors.aborted("from outside"),))
    thread.start()
    thread.join(PATIENCE)
    assert not run.answers
    await run.ended()

    assert run.error.message == "from outside"


async def test_cancelling_says_which_step_unless_it_is_said_why() -> None:
    for error in (None, errors.aborted("because")):
        run = Started(a_part(tensor(LOCAL))).start()
        part = run.run.part_run
        assert part is not None
        run.run.cancel(error)
        run.run.cancel(errors.internal("again"))

        assert part.stop
        assert run.error.message == ("because" if error else f"Step 5 was cancelled on {TASK}.")
        assert isinstance(run.error, errors.AbortedError if error else errors.CancelledError)
        run.left_nothing()


async def test_a_run_that_has_ended_is_not_cancelled() -> None:
    run = Started(a_part()).start()

    run.run.cancel()
    run.run.stop()

    assert run.rendezvous.error is None
    assert len(run.answers) == 1


async def test_a_kernel_that_computes_is_told_to_stop_and_not_waited_for() -> None:
    run = Started(a_part(), is_short=False).start()
    part = run.run.part_run
    assert part is not None

    run.run.cancel()

    assert isinstance(run.error, errors.CancelledError)
    assert part.stop
    assert run.task.pool.let_go_of == run.task.pool.jobs
    assert part.execution is not None  # it is the pool's until it comes back
    run.left_nothing()
    back = asyncio.wrap_future(run.task.pool.jobs[0].future)
    run.task.pool.run()
    await back
    await asyncio.sleep(0)
    assert part.execution is None
    assert run.run._job is None
    assert len(run.answers) == 1


async def test_a_run_that_ends_withdraws_what_it_asked_for() -> None:
    run = Started(a_part(tensor(LOCAL), tensor(REMOTE))).start()
    (receiver,) = run.run._remote

    run.run.part_run.fail(errors.aborted("over"))  # type: ignore[union-attr]
    run.run.go_on()

    run.left_nothing()
    assert not run.run._local
    with pytest.raises(asyncio.CancelledError):
        await receiver
    run.run.go_on()
    assert len(run.answers) == 1


async def test_what_comes_when_the_run_is_over_changes_nothing() -> None:
    run = Started(a_part(tensor(LOCAL))).start()
    run.run.cancel()

    run.run._arrived(LOCAL, 1, False)
    run.run._failed(errors.internal("late"))
    run.run._local_done(LOCAL, 1, False, None)

    assert len(run.answers) == 1


def sending(plan: ExchangePlan) -> tuple[Outbox, Rendezvous]:
    rendezvous = Rendezvous(5)
    return Outbox(plan, rendezvous, lambda *_: None), rendezvous


@pytest.mark.parametrize("kept", [False, True])
async def test_a_step_of_which_nothing_is_left_here_is_forgotten(kept: bool) -> None:
    plan = ExchangePlan("s", "g", answered=("a",))
    outbox, rendezvous = sending(plan)

    def sends() -> None:
        outbox.send("a", 7)
        if kept:
            outbox.send("kept", 1)

    execution = a_part(takes=sends)
    run = Started(execution, plan=plan, outbox=outbox, rendezvous=rendezvous).start()

    assert run.values == {"fetch": []}
    assert run.answers[0][0].answered == [(0, 7, False)]
    assert run.task.forgotten == ([] if kept else [rendezvous.step_id])


async def test_a_step_with_another_run_is_not_forgotten() -> None:
    plan = ExchangePlan("s", "g", answered=("a",))
    outbox, rendezvous = sending(plan)
    rendezvous.runs = 1
    run = Started(a_part(takes=lambda: outbox.send("a", 7)), plan=plan, outbox=outbox, rendezvous=rendezvous).start()

    assert run.answers[0][0].answered == [(0, 7, False)]
    assert run.task.forgotten == []


async def test_a_step_without_a_plan_is_not_forgotten() -> None:
    run = Started(a_part()).start()
    assert run.task.forgotten == []


async def test_a_consumer_that_cannot_be_reached_at_the_end_fails_the_run() -> None:
    def unreachable(*_: Any) -> None:
        raise errors.unavailable("gone")

    plan, rendezvous = ExchangePlan("s", "g", pushed=((PS, ("p",)),)), Rendezvous(5)
    outbox = Outbox(plan, rendezvous, unreachable)
    run = Started(a_part(takes=lambda: outbox.send("p", 1)), plan=plan, outbox=outbox, rendezvous=rendezvous).start()

    assert run.error.message == "gone"
    assert run.task.forgotten == []
    run.left_nothing()


async def test_what_was_sent_goes_after_each_stretch() -> None:
    plan, rendezvous = ExchangePlan("s", "g", pushed=((PS, ("p", "q")),)), Rendezvous(5)
    gone: list[Any] = []
    outbox = Outbox(plan, rendezvous, lambda task, step, tensors: gone.append([key for key, _, _ in tensors]))
    keys = iter("pq")
    execution = a_part(stretches=2, takes=lambda: outbox.send(next(keys), 1))

    Started(execution, plan=plan, outbox=outbox, rendezvous=rendezvous).start()

    assert gone == [["p"], ["q"]]


# -- values and errors -------------------------------------------------------------------------------------------------


async def test_the_fetches_that_were_asked_for_are_the_callers_own() -> None:
    execution = a_part()
    lent = np.ones(2)
    lent.flags.writeable = False
    execution.fetched = lambda: {"a": lent, "b": 2}  # type: ignore[method-assign]

    assert Started(execution, fetches=("b", "a")).start().values == {"a": lent, "b": 2}
    some = Started(FakeLike(execution), fetches=("a",)).start().values
    assert list(some) == ["a"]
    assert some["a"].flags.writeable


class FakeLike(FakeExecution):
    """Fetches what another one does."""

    def __init__(self, other: FakeExecution) -> None:
        super().__init__()
        self.fetched = other.fetched  # type: ignore[method-assign]


@pytest.mark.parametrize(("fetches", "known"), [(("fetch", "y"), "'fetch'"), (("y",), "'fetch'")])
async def test_a_fetch_that_is_not_there_is_named_with_those_that_are(fetches: tuple[str, ...], known: str) -> None:
    run = Started(a_part(), fetches=fetches).start()

    assert isinstance(run.error, errors.InvalidArgumentError)
    assert run.error.message == f"This graph has no fetch 'y'; it has {known}."
    run.left_nothing()


async def test_a_graph_without_fetches_says_that_it_has_none() -> None:
    execution = a_part()
    execution.fetched = dict  # type: ignore[method-assign]
    assert Started(execution).start().error.message == "This graph has no fetch 'fetch'; it has none."


def test_an_error_is_explained_to_the_log_if_its_cause_does_not_travel(caplog: pytest.LogCaptureFixture) -> None:
    known = errors.aborted("known")
    assert explained(known, TASK, "Step 5") is known
    assert not caplog.records

    internal = errors.internal("of a bug")
    assert explained(internal, TASK, "Step 5") is internal
    (record,) = caplog.records
    assert record.getMessage() == f"Step 5 on {TASK}: of a bug"
    assert record.exc_info is not None
    assert record.exc_info[1] is internal
    caplog.clear()

    internal.__cause__ = KeyError("cause")
    explained(internal, TASK, "Step 5")
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is internal.__cause__
    caplog.clear()

    bug = ValueError("what")
    found = explained(bug, TASK, "Step 5")
    assert isinstance(found, errors.InternalError)
    assert found.message == f"{TASK}: ValueError: what"
    assert found.__cause__ is bug
    assert caplog.records[0].getMessage() == f"Step 5 on {TASK} failed with an unexpected exception"
    assert graph_run._log.name == "tenfold.worker"
