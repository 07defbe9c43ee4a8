"""The driver of a part, turn by turn: what it hands in, where it stops, how it ends. No event loop, no thread.

turn ─► DONE | WAITS (wanted: a, a kernel's result) | LONG (elsewhere: advance) | raises
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.executions import FakeExecution, result, tensor
from support.parts import PartBuilder
from support.programs import compiled
from tenfold_compiler.write.region_schedule import Wanted
from tenfold_core import dtypes, errors
from tenfold_core.rendezvous_key import make_key
from tenfold_kernels.resources.waiting import ELEMENTS, ROOM, Lack, Waiting
from tenfold_services.worker import part_run
from tenfold_services.worker.part_run import DONE, LONG, WAITS, PartRun
from tenfold_services.worker.run_policy import CALLER, EVENT_LOOP, FUNCTION_CALLER, RunPolicy
from tenfold_services.worker.waits import StepRun, wait_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_services.worker.execution import StepIO
    from tenfold_services.worker.loaded_program import LoadedProgram

LIMIT = 1_000_000
OTHER = "/job:ps/replica:0/task:0/device:CPU:0"


class Clock:
    """Stands where it is set; each stretch of a FakeExecution moves it on."""

    def __init__(self) -> None:
        self.now = self.reads = 0

    def __call__(self) -> int:
        self.reads += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(part_run, "clock", found)
    return found


class FakeProgram:
    compiled = None

    node_edges = None

    def __init__(self, *, loops: bool = False) -> None:
        self.policy = RunPolicy(LIMIT, sized_by_values=False, loops=loops)

    def run(self, execution: FakeExecution) -> PartRun:
        def executor(program: Any, edges: Any, io: StepIO) -> Any:
            return execution

        return PartRun(cast("LoadedProgram", self), {}, _no_send, executor)


class Notes(RunPolicy):
    """Says what it is told to; what it was asked and what it heard."""

    def __init__(self, *, times: bool, stays: Sequence[bool] = ()) -> None:
        super().__init__(LIMIT, sized_by_values=False, loops=False)
        self.times, self.answers = times, list(stays)
        self.asked: list[tuple[int, int]] = []
        self.noted: list[tuple[int, tuple[int, ...]]] = []
        self.pairs: list[Any] = []

    def is_short(self, shapes: int, spent: int = 0, usual: frozenset[int] | None = None) -> bool:
        self.asked.append((shapes, spent))
        return self.answers.pop(0) if self.answers else True

    def times_next(self) -> bool:
        return self.times

    def note(self, nanoseconds: int, shapes: Any = (), pairs: Any = None) -> None:
        self.noted.append((nanoseconds, tuple(shapes)))
        self.pairs.append(pairs)


def noting(execution: FakeExecution, policy: Notes) -> PartRun:
    program = FakeProgram()
    program.policy = policy
    return program.run(execution)


def _no_send(key: str, value: Any, is_dead: bool) -> None:
    raise AssertionError("nothing is sent")


def test_a_turn_goes_on_to_the_end() -> None:
    run = FakeProgram().run(FakeExecution(stretches=100))

    assert run.turn(CALLER) == DONE
    assert run.fetched() == {"fetch": []}


def test_what_is_wanted_is_asked_for_once_unless_it_has_come() -> None:
    execution = FakeExecution(wants=[tensor("a"), tensor("b")])
    run = FakeProgram().run(execution)
    asked: list[str] = []
    run.receive = asked.append
    run.arrived("b", 2, False)

    assert run.turn(CALLER) == WAITS
    assert asked == ["a"]
    assert not run.can_go_on
    run.arrived("a", None, True)
    assert run.can_go_on
    assert run.turn(CALLER) == DONE
    assert execution.had == [("token of b", 2, False), ("token of a", None, True)]
    assert asked == ["a"]


def test_what_was_not_measured_is_long_on_the_event_loop_and_runs_elsewhere(clock: Clock) -> None:
    program = FakeProgram()
    run = program.run(FakeExecution(takes=lambda: setattr(clock, "now", clock.now + 5000)))

    assert run.turn(EVENT_LOOP) == LONG
    run.leave()
    run.advance()
    run.came_back(None)
    assert run.turn(EVENT_LOOP) == DONE
    assert program.policy.nanoseconds == 5000
    assert program.run(FakeExecution()).turn(EVENT_LOOP) == DONE


def test_a_run_that_turns_out_long_leaves_the_event_loop(clock: Clock) -> None:
    program = FakeProgram(loops=True)
    program.policy.note(1, (7,))
    run = program.run(FakeExecution(stretches=9, takes=lambda: setattr(clock, "now", clock.now + LIMIT)))

    assert run.turn(EVENT_LOOP) == LONG
    execution = cast("FakeExecution", run.execution)
    assert execution.left == 8


def test_a_callers_thread_is_not_timed(clock: Clock) -> None:
    program = FakeProgram()

    assert program.run(FakeExecution()).turn(CALLER) == DONE
    assert clock.reads == 0
    assert program.policy.nanoseconds is None


def test_a_functions_caller_is_let_go_after_some_stretches() -> None:
    execution = FakeExecution(stretches=20)
    run = FakeProgram().run(execution)

    assert [run.turn(FUNCTION_CALLER) for _ in range(3)] == [LONG, LONG, DONE]


def test_what_was_sent_goes_after_each_stretch_but_the_last() -> None:
    program = FakeProgram()
    program.policy.note(1, (7,))
    execution = FakeExecution(stretches=3)
    run = program.run(execution)
    gone: list[int] = []
    run.advanced = lambda: gone.append(execution.left)

    run.leave()
    run.advance()
    run.came_back(None)
    assert run.turn(EVENT_LOOP) == DONE
    assert gone == [2, 1]


def test_the_first_error_ends_the_run() -> None:
    execution = FakeExecution(wants=[tensor("a")])
    run = FakeProgram().run(execution)
    first = errors.AbortedError(None, None, "first")
    run.fail(first)
    run.fail(errors.AbortedError(None, None, "second"))
    run.arrived("a", 1, False)

    assert run.can_go_on
    with pytest.raises(errors.AbortedError, match="first"):
        run.turn(CALLER)
    assert execution.left == 1


def test_an_error_while_the_last_stretch_computes_counts() -> None:
    program = FakeProgram()
    run = program.run(FakeExecution(takes=lambda: run.fail(errors.AbortedError(None, None, "aborted"))))

    with pytest.raises(errors.AbortedError):
        run.turn(CALLER)


def test_an_error_of_a_stretch_elsewhere_is_raised_by_the_next_turn() -> None:
    run = FakeProgram().run(FakeExecution())
    assert run.turn(EVENT_LOOP) == LONG
    run.leave()
    run.came_back(errors.InternalError(None, None, "kernel"))

    with pytest.raises(errors.InternalError, match="kernel"):
        run.turn(EVENT_LOOP)


def test_a_kernels_result_wakes_the_waiter_and_is_handed_in() -> None:
    waiting = Waiting()
    execution = FakeExecution(wants=[result(waiting)])
    run = FakeProgram().run(execution)
    woken: list[None] = []
    run.wake = lambda: woken.append(None)

    assert run.turn(CALLER) == WAITS
    waiting.complete(5)
    assert woken == [None]
    assert run.turn(CALLER) == DONE
    assert execution.had == [("token of dequeue", 5, False)]


def test_a_kernels_error_names_its_node() -> None:
    waiting = Waiting()
    run = FakeProgram().run(FakeExecution(wants=[result(waiting)]))
    run.turn(CALLER)
    waiting.fail(errors.CancelledError(None, None, "the queue is closed"))

    with pytest.raises(errors.CancelledError, match="node dequeue"):
        run.turn(CALLER)


def test_the_end_gives_up_what_the_run_waits_for() -> None:
    left: list[str] = []
    asked, unasked = Waiting(lambda: left.append("asked")), Waiting(lambda: left.append("unasked"))
    execution = FakeExecution(wants=[result(asked)])
    run = FakeProgram().run(execution)
    run.turn(CALLER)
    execution.wants.append(result(unasked))

    run.end()
    run.end()

    assert left == ["asked", "unasked"]
    assert run.stop
    assert run.execution is None
    run.arrived("late", 1, False)
    assert not run.can_go_on


def test_an_execution_that_computes_elsewhere_is_left_alone_until_it_is_back() -> None:
    given_up: list[None] = []
    execution = FakeExecution(stretches=2)
    run = FakeProgram().run(execution)
    run.leave()
    run.end()
    assert run.stop
    assert run.execution is not None

    run.advance()
    execution.wants.append(result(Waiting(lambda: given_up.append(None))))
    run.came_back(None)

    assert run.execution is None
    assert given_up == [None]


def test_a_program_that_receives_computes_as_its_tensors_come() -> None:
    part = PartBuilder()
    a = part.recv("a", dtypes.float32, OTHER, 7)
    b = part.recv("b", dtypes.float32, OTHER, 7)
    part.node("Neg", "n", ["a"], T=dtypes.float32)
    sent = part.send("n", dtypes.float32, OTHER, "edge")
    part.node("Add", "sum", ["n", "b"], T=dtypes.float32)
    fetch = part.fetch("sum")
    out: list[Any] = []
    run = PartRun(compiled(part), {}, lambda *edge: out.append(edge))

    assert run.turn(CALLER) == WAITS
    run.arrived(a, np.float32(2), False)
    assert run.turn(CALLER) == WAITS
    assert [(key, float(value), is_dead) for key, value, is_dead in out] == [(sent, -2.0, False)]
    run.arrived(b, np.float32(5), False)
    assert run.turn(CALLER) == DONE
    assert {key: float(value) for key, value in run.fetched().items()} == {fetch: 3.0}


# -- on the event loop -------------------------------------------------------------------------------------------------


def test_each_stretch_on_the_event_loop_is_timed_and_what_came_between_counts(clock: Clock) -> None:
    def computes() -> None:
        clock.now += 10
        execution.shapes = min(execution.shapes + 1, 9)

    execution, policy = FakeExecution(stretches=4, takes=computes), Notes(times=True)

    assert noting(execution, policy).turn(EVENT_LOOP) == DONE

    assert policy.asked == [(7, 0), (8, 10), (9, 20), (9, 30)]
    assert policy.noted == [(40, (7, 8, 9))]
    assert execution.careful == [True] * 4


def test_a_run_of_many_short_turns_stays_and_counts_as_its_longest(clock: Clock) -> None:
    took = iter([LIMIT - 1, *[10] * 30])
    wants = [tensor(str(number)) for number in range(30)]

    def computes() -> None:
        clock.now += next(took)
        execution.waits_for = 1 if execution.left else 0

    execution, policy = FakeExecution(31, takes=computes), Notes(times=True)
    run = noting(execution, policy)
    for want in wants:
        assert run.turn(EVENT_LOOP) == WAITS
        run._inbox.append((want.token, 1, False))
    assert run.turn(EVENT_LOOP) == DONE

    before = LIMIT - 1
    # all counts at first; from the turn on that makes them short in the mean, what this one has taken
    whole = [before + 10 * number for number in range(30) if before + 10 * number >= (number + 2) * 50_000]
    assert [spent for _, spent in policy.asked] == [0, *whole, *[0] * (30 - len(whole))]
    assert policy.noted == [(LIMIT - 1, (7,))]


def test_what_is_usual_is_noted_without_its_shapes(clock: Clock) -> None:
    policy = Notes(times=True)
    execution = FakeExecution()
    execution.pairs = [1, 2]
    assert noting(execution, policy).turn(EVENT_LOOP) == DONE
    usual = FakeExecution()
    usual.usual = frozenset([1, 2])
    assert noting(usual, policy).turn(EVENT_LOOP) == DONE

    assert policy.noted == [(0, (7,)), (0, ())]
    assert policy.pairs == [[1, 2], None]


def test_a_run_that_is_not_timed_reads_no_clock_and_notes_nothing(clock: Clock) -> None:
    execution, policy = FakeExecution(stretches=2), Notes(times=False)

    assert noting(execution, policy).turn(EVENT_LOOP) == DONE

    assert clock.reads == 0
    assert policy.noted == []
    assert execution.careful == [True, True]


def test_a_program_that_was_never_ready_is_noted_as_short_on_the_event_loop_only() -> None:
    policies = [Notes(times=False), Notes(times=False)]

    assert [
        noting(FakeExecution(0), policy).turn(place)
        for policy, place in zip(policies, (EVENT_LOOP, CALLER), strict=True)
    ] == [DONE] * 2

    assert [policy.noted for policy in policies] == [[(0, (7,))], []]


def test_a_stretch_elsewhere_adds_to_the_time_and_makes_it_a_timed_run(clock: Clock) -> None:
    execution, policy = (
        FakeExecution(3, takes=lambda: setattr(clock, "now", clock.now + 100_000)),
        Notes(times=False, stays=[False]),
    )
    run = noting(execution, policy)

    assert run.turn(EVENT_LOOP) == LONG
    run.leave()
    run.advance()
    run.came_back(None)
    assert run.turn(EVENT_LOOP) == DONE

    assert policy.asked == [(7, 0), (7, 100_000), (7, 200_000)]
    assert policy.noted == [(300_000, (7,))]
    assert execution.careful == [False, True, True]


def test_a_functions_caller_computes_some_stretches_in_one_turn() -> None:
    execution, policy = FakeExecution(stretches=20), Notes(times=True)
    run = noting(execution, policy)

    assert [run.turn(FUNCTION_CALLER) for _ in range(3)] == [LONG, LONG, DONE]

    assert len(execution.careful) == 20
    assert policy.asked == policy.noted == []
    assert noting(FakeExecution(stretches=8), policy).turn(FUNCTION_CALLER) == DONE
    assert noting(FakeExecution(stretches=9), policy).turn(FUNCTION_CALLER) == LONG


def test_a_caller_computes_without_care_and_asks_nobody() -> None:
    execution, policy = FakeExecution(stretches=3), Notes(times=True)

    assert noting(execution, policy).turn(CALLER) == DONE

    assert policy.asked == policy.noted == []
    assert execution.careful == [False] * 3


@pytest.mark.parametrize("error", [None, errors.internal("a kernel")])
def test_what_an_ended_stretch_elsewhere_sent_goes_unless_it_failed_or_was_the_last(
    error: errors.OpError | None,
) -> None:
    for stretches in (1, 2):
        run = FakeProgram().run(FakeExecution(stretches))
        gone: list[None] = []
        run.advanced = lambda gone=gone: gone.append(None)  # type: ignore[misc]
        run.leave()
        run.advance()
        run.came_back(error)
        if error is None:
            assert run.turn(CALLER) == DONE
        else:
            with pytest.raises(errors.InternalError, match="a kernel"):
                run.turn(CALLER)
        assert len(gone) == (stretches == 2 and error is None)


def test_a_run_without_anybody_to_hear_of_its_stretches_goes_on() -> None:
    run = FakeProgram().run(FakeExecution(2, wants=[tensor("a")]))
    run.leave()
    run.came_back(None)

    assert run.turn(CALLER) == WAITS  # nobody asks: it comes unasked
    run.arrived("a", 1, False)
    assert run.turn(CALLER) == DONE


# -- what came before, and what comes late -----------------------------------------------------------------------------


def test_what_was_brought_is_taken_when_it_is_wanted() -> None:
    execution = FakeExecution(wants=[tensor("a"), tensor("b")])
    brought = {"a": (1, False), "b": (None, True)}
    run = PartRun(cast("LoadedProgram", FakeProgram()), {}, _no_send, lambda *_: cast("Any", execution), brought)
    asked: list[str] = []
    run.receive = asked.append

    assert run.turn(CALLER) == DONE

    assert execution.had == [("token of a", 1, False), ("token of b", None, True)]
    assert asked == []
    assert brought == {"a": (1, False), "b": (None, True)}


def test_several_tensors_that_come_early_are_all_kept() -> None:
    execution = FakeExecution(wants=[tensor("a"), tensor("b")])
    run = FakeProgram().run(execution)
    run.arrived("b", 2, True)
    run.arrived("a", 1, False)

    assert not run.can_go_on
    assert run.turn(CALLER) == DONE
    assert execution.had == [("token of a", 1, False), ("token of b", 2, True)]


def lock(given_back: list[str], name: str) -> Waiting:
    waiting = Waiting()
    waiting.give_back = lambda: given_back.append(name)
    return waiting


def test_a_run_that_fails_gives_back_the_locks_that_it_has_got() -> None:
    given_back: list[str] = []
    waiting = lock(given_back, "lock")
    run = FakeProgram().run(FakeExecution(wants=[result(waiting), tensor("never")]))
    run.turn(CALLER)
    waiting.complete(1)
    run.turn(CALLER)

    assert given_back == []
    run.end()
    assert given_back == ["lock"]


def test_a_run_that_comes_to_its_end_keeps_its_locks() -> None:
    given_back: list[str] = []
    waiting = lock(given_back, "lock")
    run = FakeProgram().run(FakeExecution(wants=[result(waiting)]))
    run.turn(CALLER)
    waiting.complete(1)
    assert run.turn(CALLER) == DONE

    run.end()

    assert given_back == []


def test_a_lock_that_comes_when_the_run_is_over_is_given_back() -> None:
    given_back: list[str] = []
    waiting = lock(given_back, "late")
    run = FakeProgram().run(FakeExecution(wants=[result(waiting)]))
    run.turn(CALLER)
    assert waiting.claim()
    run.ended = True  # between the claim and the result

    waiting.deliver(1)

    assert given_back == ["late"]
    assert not run.can_go_on or run.execution is not None


def test_the_end_forgets_the_waiters_callbacks_and_the_values() -> None:
    run = FakeProgram().run(FakeExecution(wants=[tensor("a")]))
    run.receive, run.advanced, run.wake = [].append, lambda: None, lambda: None
    run.turn(CALLER)
    run.arrived("a", 1, False)
    run.arrived("early", 1, False)
    execution = cast("FakeExecution", run.execution)

    run.end()

    assert (run.receive, run.advanced, run.wake, run.execution) == (None, None, None, None)
    assert execution.had == []
    assert run.stop == [True]
    assert not run.can_go_on
    assert run._early is None
    assert not run._inbox


def test_what_comes_back_with_an_error_after_the_end_is_no_error_any_more() -> None:
    run = FakeProgram().run(FakeExecution())
    run.leave()
    run.end()

    run.came_back(errors.internal("too late"))

    assert run.error is None
    assert run.execution is None


# -- what runs wait for, in words --------------------------------------------------------------------------------------

TASK = "/job:localhost/replica:0/task:0"


def blocked(
    name: str, inputs: Sequence[str] = (), why: str | None = "its queue 'q' is empty", kind: str = ELEMENTS
) -> PartRun:
    """A run whose node waits."""
    waiting = Waiting()
    waiting.lack = None if why is None else lambda: Lack(kind, "q", 0, 1, why)
    part = PartBuilder()
    part.feed("queue")
    part.node("Neg" if inputs else "NoOp", name, inputs, **({"T": dtypes.float32} if inputs else {}))
    (node,) = [each for each in compiled(part).compiled.part.nodes if each.name == name]
    run = FakeProgram().run(FakeExecution(wants=[Wanted("token", "", waiting, node)]))
    assert run.turn(CALLER) == WAITS
    return run


def wants(*keys: str) -> PartRun:
    run = FakeProgram().run(FakeExecution(wants=[tensor(key) for key in keys]))
    assert run.turn(CALLER) == WAITS
    return run


def texts(*runs: PartRun) -> list[str]:
    return wait_texts(StepRun(TASK, run, 1, "s", TASK) for run in runs)


def edge(sender: str, name: str) -> str:
    return make_key(f"{sender}/device:CPU:0", 1, f"{TASK}/device:CPU:0", name)


def test_a_kernel_that_waits_is_named_with_what_it_waits_at_and_why() -> None:
    assert texts(blocked("get", ["queue:0"])) == [f"'get' (Neg of 'queue') at {TASK}: its queue 'q' is empty"]
    assert texts(blocked("lock")) == [f"'lock' (NoOp) at {TASK}: its queue 'q' is empty"]


def test_what_computes_or_waits_for_room_is_not_named() -> None:
    assert texts(blocked("computes", why=None), blocked("has_no_room", kind=ROOM)) == []


def test_a_tensor_of_another_task_is_named_unless_a_kernel_waits() -> None:
    ps = "/job:ps/replica:0/task:1"
    tensors = wants(edge(ps, "w"), edge(TASK, "own"), edge(ps, "b"))

    assert texts(tensors, tensors) == [f"a tensor of {ps} ({name}) at {TASK}" for name in ("w", "b")]
    assert texts(tensors, blocked("get")) == [f"'get' (NoOp) at {TASK}: its queue 'q' is empty"]
    assert texts() == []


def test_an_answer_names_twenty_and_no_long_ones() -> None:
    ps = "/job:ps/replica:0/task:1"
    assert len(texts(wants(*(edge(ps, f"w{number}") for number in range(21))))) == 20
    (kernel,) = texts(blocked("get", why="x" * 500))
    (text,) = texts(wants(edge(ps, "y" * 500)))
    assert (len(kernel), len(text)) == (400, 400)


def test_what_has_come_is_not_waited_for() -> None:
    ps = "/job:ps/replica:0/task:1"
    run = wants(edge(ps, "w"), edge(ps, "b"))
    run.arrived(edge(ps, "w"), 1, False)

    assert texts(run) == [f"a tensor of {ps} (b) at {TASK}"]
