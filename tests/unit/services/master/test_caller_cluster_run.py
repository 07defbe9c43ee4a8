"""One step across tasks on its caller's thread, over scripted links: what is called, pushed, awaited and given up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_core import errors, telemetry
from tenfold_link.wire.calls import STEP, LinkCall
from tenfold_services import step_spans
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS
from tenfold_services.master import caller_cluster_steps as module
from tenfold_services.master.arrangement import Arrangement, Part
from tenfold_services.master.caller_cluster_steps import CallerClusterGraph, CallerClusterRun
from tenfold_services.master.caller_steps import CallerSteps
from tenfold_services.master.run_table import RunTable
from tenfold_services.worker.part_run import DONE
from tenfold_services.worker.run_policy import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable

OWN, PS, OTHER = (f"/job:{job}/replica:0/task:0" for job in ("worker", "ps", "other"))
STEP_ID = 0x77
PS_PLAN = ExchangePlan("h", "g of ps", expected=("to ps",), brought=("to ps", "late"))
OTHER_PLAN = ExchangePlan("h", "g of other", brought=("to other",))


class Call:
    """A call that runs, and how it ends."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.answer: Any = None
        self.error: errors.OpError | None = None


class Link:
    """Notes what goes out; raises what it is to."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.pushed: list[tuple[int, list[Any]]] = []
        self.abandoned: list[Call] = []
        self.noticed: list[tuple[int, bytes]] = []
        self.closed = False
        self.error: errors.OpError | None = None
        self.on_notice: Callable[..., None] | None = None

    def start(self, *frame: Any) -> Call:
        if self.error is not None:
            raise self.error
        self.calls.append(Call(frame))
        return self.calls[-1]

    def abandon(self, call: Call) -> None:
        self.abandoned.append(call)

    def notify_nowait(self, method: int, header: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.noticed.append((method, header))


class Own:
    """In place of PartRun: a script for each turn, which may send; None ends the run."""

    def __init__(self, *turns: Callable[[Own], object] | None) -> None:
        self.turns = list(turns)
        self.can_go_on = False
        self.came: list[tuple[str, Any, bool]] = []
        self.taken: list[int] = []
        self.stop: list[bool] = []
        self.ended = 0
        self.send: Callable[[str, Any, bool], None] = lambda key, value, is_dead: None

    def turn(self, where: int) -> int:
        self.taken.append(where)
        self.can_go_on = False
        script = self.turns.pop(0)
        if script is None:
            return DONE
        script(self)
        return DONE if not self.turns else DONE + 1

    def arrived(self, key: str, value: Any, is_dead: bool) -> None:
        self.came.append((key, value, is_dead))
        self.can_go_on = True

    def fetched(self) -> dict[str, Any]:
        return {"fetch": 5.0}

    def end(self) -> None:
        self.ended += 1


class Scene:
    """A graph over two other tasks, perhaps with a part of our own, and what comes in at each wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own: Own | None = None) -> None:
        self.steps = CallerSteps(OWN)
        self.session = self.steps.open("h", None, RunTable())
        self.told: list[Any] = []
        self.asked: list[Any] = []
        self.explained: Any = errors.aborted("it has restarted")
        self.own = own
        self.fed: list[Any] = []
        self.comes: list[Callable[[], object]] = []
        self.links = {PS: Link(), OTHER: Link()}
        lines: Any = SimpleNamespace(links=self.links, receive=self._receive)
        part = Part(OWN, sends={"to ps": PS, "late": PS, "to other": OTHER}) if own is not None else None
        workers: Any = {
            task: SimpleNamespace(cleanup_graph=lambda step, task=task: (task, step)) for task in self.links
        }
        plans = {PS: PS_PLAN, OTHER: OTHER_PLAN, OWN: ExchangePlan("h", "g of ours")}
        self.graph = CallerClusterGraph(
            self.session, part, cast("Any", own), Arrangement(OWN, cast("Any", None), plans, workers,
            frozenset()), cast("Any", SimpleNamespace(tell=lambda start: self.told.append(start()), ask=self._ask)),
            lambda error: ("explained", error),
        )  # fmt: skip
        self.run = CallerClusterRun(self.graph, lines, STEP_ID)
        monkeypatch.setattr(module, "PartRun", self._part_run)
        monkeypatch.setattr(module, "run_frame", self._frame)
        monkeypatch.setattr(module, "read_answer", self._read_answer)
        monkeypatch.setattr(module, "read_push", lambda header, buffers, take: take(*buffers))
        monkeypatch.setattr(module, "push", lambda link, step_id, tensors: link.pushed.append((step_id, tensors)))
        monkeypatch.setattr(module, "read_now", lambda value: ("now", value))

    def _part_run(self, program: Any, feeds: Any, send: Any) -> Any:
        self.fed.append((program, feeds))
        assert self.own is not None
        self.own.send = send
        return self.own

    def _frame(self, link: Any, plan: Any, step_id: int, feeds: Any, brought: Any, options: Any, *, known: bool) -> Any:
        assert (step_id, feeds, options) == (STEP_ID, {}, DEFAULT_EXEC_OPTIONS)
        assert self.links[PS if plan is PS_PLAN else OTHER] is link
        return plan.graph_handle, brought, known

    def _read_answer(self, plan: Any, answer: Any, deliver: Any) -> Any:
        if answer == "which plan?":
            return None
        for each in answer:
            deliver(*each)
        return "a result"

    def _receive(self) -> None:
        self.comes.pop(0)()

    def _ask(self, start: Callable[[], Any]) -> Any:
        self.asked.append(start())
        if self.explained is None:
            raise errors.unavailable("no loop")
        return self.explained

    def answer(self, task: str, answer: Any = ()) -> Callable[[], None]:
        """The last call to the task is answered."""

        def answered() -> None:
            self.links[task].calls[-1].answer = list(answer) if not isinstance(answer, str) else answer

        return answered

    def fails(self, task: str, error: errors.OpError) -> Callable[[], None]:
        def failed() -> None:
            self.links[task].calls[-1].error = error

        return failed

    def pushes(self, step_id: int, *tensor: Any, method: int = LinkCall.PUSH) -> Callable[[], None]:
        """The parameter server pushes a tensor."""

        def pushed() -> None:
            on_notice = self.links[PS].on_notice
            assert on_notice is not None
            on_notice(method, b"", [step_id, *tensor])

        return pushed

    def frames(self, task: str) -> list[Any]:
        return [call.frame for call in self.links[task].calls]

    def fail(self, kind: type[BaseException] = errors.OpError) -> Any:
        with pytest.raises(kind) as caught:
            self.run.run({})
        return caught.value


# -- steps that succeed ------------------------------------------------------------------------------------------------


async def test_a_step_of_other_tasks_alone_is_over_with_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.comes = [scene.answer(OTHER), scene.answer(PS)]

    assert scene.run.run({}) == {}

    assert scene.frames(PS) == [("g of ps", [], True)]
    assert scene.frames(OTHER) == [("g of other", [], True)]
    assert scene.comes == []
    assert scene.fed == []
    assert [link.on_notice for link in scene.links.values()] == [None, None]
    assert [link.noticed for link in scene.links.values()] == [[], []]


async def test_our_part_runs_first_and_what_it_sends_at_once_goes_with_the_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sends(own: Own) -> None:
        assert not scene.links[PS].calls
        own.send("to ps", 1.0, False)
        own.send("late", 2.0, True)
        own.send("to other", 3.0, False)

    scene = Scene(monkeypatch, Own(sends))
    scene.comes = [scene.answer(PS), scene.answer(OTHER)]

    assert scene.run.run({"feed": 7}) == {"fetch": 5.0}

    assert scene.fed == [(scene.own, {"feed": 7})]
    assert scene.frames(PS) == [("g of ps", [(0, ("now", 1.0), False), (1, ("now", 2.0), True)], True)]
    assert scene.frames(OTHER) == [("g of other", [(0, ("now", 3.0), False)], True)]
    assert scene.own is not None
    assert scene.own.taken == [CALLER]
    assert scene.own.ended == 0, "it has run to its end"
    assert scene.run.part_run is None


async def test_our_part_goes_on_with_what_comes_and_pushes_what_it_sends_then(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: Callable[[Own], object] = lambda own: None  # noqa: E731
    scene = Scene(monkeypatch, Own(waits, lambda own: own.send("late", 4.0, False), None))
    scene.comes = [
        scene.pushes(STEP_ID, "p>w", 1.5, False),
        scene.pushes(STEP_ID + 1, "p>w", "of an earlier step", False),
        scene.pushes(STEP_ID, "p>w", "no push", False, method=LinkCall.CLEANUP_GRAPH),
        scene.answer(OTHER, [("o>w", None, True)]),
        scene.answer(PS),
    ]

    assert scene.run.run({}) == {"fetch": 5.0}

    assert scene.own is not None
    assert scene.own.came == [("p>w", 1.5, False), ("o>w", None, True)]
    assert scene.own.taken == [CALLER] * 3, "no turn without something new"
    assert scene.links[PS].pushed == [(STEP_ID, [("late", ("now", 4.0), False)])]
    assert scene.links[OTHER].pushed == []


async def test_a_peer_that_forgot_the_plan_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Own(lambda own: own.send("to ps", 1.0, False)))
    scene.comes = [scene.answer(PS, "which plan?"), scene.answer(PS), scene.answer(OTHER)]

    scene.run.run({})

    assert scene.frames(PS) == [("g of ps", [(0, ("now", 1.0), False)], known) for known in (True, False)]
    assert len(scene.frames(OTHER)) == 1


@pytest.mark.parametrize(
    ("begin", "end", "order"),
    [(1.0, 1.000031, (OTHER, PS)), (0.0, 30e-6, (PS, OTHER)), (1.0, 1.000029, (PS, OTHER))],
)
async def test_a_task_whose_call_took_long_is_called_last_from_then_on(
    monkeypatch: pytest.MonkeyPatch, begin: float, end: float, order: tuple[str, ...]
) -> None:
    scene = Scene(monkeypatch)
    scene.comes = [scene.answer(PS), scene.answer(OTHER)]
    times = iter((begin, end, 0.0, 1.0))
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(times), monotonic=lambda: 0.0))

    scene.run.run({})

    assert scene.graph.order == order


# -- steps that fail ---------------------------------------------------------------------------------------------------

CLEANUP = (LinkCall.CLEANUP_GRAPH, STEP.pack(STEP_ID))


async def test_the_error_of_a_task_ends_the_step_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Own(lambda own: None, None))
    scene.comes = [scene.fails(OTHER, errors.invalid_argument("wrong"))]

    error = scene.fail()

    assert isinstance(error, errors.InvalidArgumentError)
    assert error.message == f"From {OTHER}:\nwrong"
    assert [link.noticed for link in scene.links.values()] == [[CLEANUP], [CLEANUP]]
    assert scene.links[PS].abandoned == scene.links[PS].calls
    assert scene.links[OTHER].abandoned == [], "it has ended by itself"
    assert [link.on_notice for link in scene.links.values()] == [None, None]
    assert scene.own is not None
    assert scene.own.ended == 1
    assert scene.run.part_run is None
    assert scene.asked == []
    assert scene.told == []


async def test_tasks_without_a_link_are_told_by_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)

    def breaks() -> None:
        scene.links[PS].closed = True
        scene.links[PS].calls[0].error = errors.internal("broken")

    scene.comes = [breaks]

    assert scene.fail().message == f"From {PS}:\nbroken"
    assert scene.told == [(PS, STEP_ID)]
    assert scene.links[PS].noticed == []
    assert scene.links[OTHER].noticed == [CLEANUP]


async def test_a_link_that_fails_at_the_end_does_not_keep_the_others_from_being_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(monkeypatch)
    scene.links[PS].error = errors.unavailable("gone")
    scene.explained = None

    assert scene.fail().message == f"From {PS}:\ngone"
    assert scene.links[OTHER].noticed == [CLEANUP]
    assert scene.links[OTHER].calls == [], "the first call failed"


@pytest.mark.parametrize("kind", [errors.AbortedError, errors.UnavailableError])
async def test_an_error_that_a_restart_may_have_caused_is_explained(
    monkeypatch: pytest.MonkeyPatch, kind: type[errors.OpError]
) -> None:
    scene = Scene(monkeypatch)
    scene.comes = [scene.fails(PS, kind(None, None, "no such graph"))]

    assert scene.fail() is scene.explained
    ((what, asked),) = scene.asked
    assert what == "explained"
    assert asked.message == f"From {PS}:\nno such graph"


async def test_without_an_event_loop_the_error_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.explained = None
    scene.comes = [scene.fails(PS, errors.unavailable("gone"))]

    assert scene.fail().message == f"From {PS}:\ngone"
    assert len(scene.asked) == 1


@pytest.mark.parametrize("turns", [0, 1])
async def test_the_error_of_our_own_part_names_our_task(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    def fails(own: Own) -> None:
        raise errors.invalid_argument("ours")

    scene = Scene(monkeypatch, Own(*[lambda own: None] * turns, fails, None))
    scene.comes = [scene.pushes(STEP_ID, "p>w", 1.0, False)]

    assert scene.fail().message == f"From {OWN}:\nours"
    assert len(scene.links[PS].calls) == turns
    assert scene.links[OTHER].noticed == [CLEANUP]


async def test_a_defect_is_an_internal_error(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(monkeypatch)
    scene.comes = [lambda: 1 / 0]

    error = scene.fail()

    assert isinstance(error, errors.InternalError)
    assert error.message == f"From {OWN}:\n{OWN}: ZeroDivisionError: division by zero"
    assert scene.links[PS].noticed == [CLEANUP]
    assert "division by zero" in caplog.text


async def test_a_user_who_interrupts_ends_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Own(lambda own: None, None))

    def interrupts() -> None:
        raise KeyboardInterrupt

    scene.comes = [interrupts]

    scene.fail(KeyboardInterrupt)
    assert [link.noticed for link in scene.links.values()] == [[CLEANUP], [CLEANUP]]
    assert scene.own is not None
    assert scene.own.ended == 1


async def test_a_part_that_waits_for_what_nobody_sends_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Own(lambda own: None, None))
    scene.comes = [scene.answer(PS), scene.answer(OTHER)]

    assert scene.fail().message == "Step 77 waits for nothing and has not ended."


@pytest.mark.parametrize(("now", "late"), [(10.0, False), (10.001, True)])
async def test_a_deadline_ends_the_step_and_names_who_is_late(
    monkeypatch: pytest.MonkeyPatch, now: float, late: bool
) -> None:
    scene = Scene(monkeypatch)
    scene.session.seconds = 10.0
    times = [0.0, 0.0, now]
    clocks = SimpleNamespace(monotonic=lambda: times.pop(0), perf_counter=lambda: 0.0)
    monkeypatch.setattr(module, "time", clocks)
    scene.comes = [scene.answer(PS), scene.answer(OTHER)]

    if late:
        error = scene.fail()
        assert isinstance(error, errors.DeadlineExceededError)
        assert error.message == f"The step did not finish within 10000 ms; still pending on {OTHER}."
        assert scene.links[OTHER].abandoned == scene.links[OTHER].calls
    else:
        assert scene.run.run({}) == {}


# -- sessions that end -------------------------------------------------------------------------------------------------


async def test_a_step_of_a_session_that_has_ended_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Own(None))
    scene.session.stop.append(errors.cancelled("closed"))

    error = scene.fail()

    assert (type(error), error.message) == (errors.CancelledError, "closed")
    assert error is not scene.session.stop[0]
    assert scene.own is not None
    assert scene.own.taken == []
    assert scene.own.ended == 1
    assert scene.links[PS].calls == []


async def test_a_session_that_ends_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, Own(lambda own: None, None))

    def closes() -> None:
        scene.session.linked.add(scene.run)
        scene.session.interrupt(errors.cancelled("closed"))
        assert scene.own is not None
        assert scene.own.stop == [True]
        assert [link.abandoned for link in scene.links.values()] == [link.calls for link in scene.links.values()]
        scene.links[PS].calls[0].answer = []

    scene.comes = [closes]

    assert scene.fail().message == "closed"
    assert scene.links[OTHER].noticed == [CLEANUP]
    assert scene.asked == []


async def test_the_error_of_a_task_counts_no_more_once_the_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)

    def closes() -> None:
        scene.session.stop.append(errors.aborted("closed"))
        scene.links[PS].calls[0].error = errors.cancelled("as it was told")

    scene.comes = [closes]

    error = scene.fail()
    assert (type(error), error.message) == (errors.AbortedError, "closed")


async def test_interrupting_a_run_that_has_no_part_or_no_link_left(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)

    def interrupted() -> None:
        link = scene.links.pop(PS)
        scene.run.interrupt()
        scene.links[PS] = link
        for each in scene.links.values():
            each.calls[0].answer = []

    scene.comes = [interrupted]
    scene.run.run({})
    assert scene.links[PS].abandoned == []
    assert len(scene.links[OTHER].abandoned) == 1


# -- spans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
async def test_the_span_of_our_part_ends_with_it(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    begun: list[Any] = []
    ended: list[Any] = []
    monkeypatch.setattr(telemetry, "tracer", object())
    monkeypatch.setattr(step_spans, "part", lambda *about: begun.append(about) or "span")
    monkeypatch.setattr(telemetry, "end", lambda span, error: ended.append((span, error)))
    scene = Scene(monkeypatch, Own(lambda own: None, None) if fails else Own(None))
    scene.comes = [scene.fails(PS, errors.internal("no"))] if fails else [scene.answer(PS), scene.answer(OTHER)]

    error = scene.fail() if fails else scene.run.run({}) and None

    assert begun == [(OWN, "h", STEP_ID)]
    assert [span for span, _ in ended] == ["span"]
    assert str(ended[0][1]) == str(error)


async def test_without_a_part_there_is_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "tracer", object())
    scene = Scene(monkeypatch)
    scene.comes = [scene.answer(PS), scene.answer(OTHER)]
    assert scene.run.run({}) == {}
