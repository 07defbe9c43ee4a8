"""The driver of a part, turn by turn: what it hands in, where it stops, how it ends. No event loop, no thread.

turn ─► DONE | WAITS (wanted: a, a kernel's result) | LONG (elsewhere: advance) | raises
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compiled
from tenfold_compiler.write.region_schedule import Wanted
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.waiting import Waiting
from tenfold_services.worker import part_run
from tenfold_services.worker.part_run import DONE, LONG, WAITS, PartRun
from tenfold_services.worker.run_policy import CALLER, EVENT_LOOP, FUNCTION_CALLER, RunPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_compiler.part.part_graph import PartNode
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


class FakeExecution:
    """Runs so many stretches; wants what it is told to before the first one."""

    def __init__(
        self, stretches: int = 1, wants: Sequence[Wanted] = (), takes: Callable[[], None] | None = None
    ) -> None:
        self.left, self.wants, self.waits_for = stretches, list(wants), len(wants)
        self.takes = takes
        self.had: list[Any] = []
        self.shapes = 7

    @property
    def ready(self) -> bool:
        return not self.waits_for and self.left > 0

    @property
    def done(self) -> bool:
        return not self.waits_for and not self.left

    def take_wanted(self) -> Sequence[Wanted]:
        wanted, self.wants = self.wants, []
        return wanted

    def arrived(self, token: Any, value: Any, is_dead: bool) -> None:
        self.had.append((token, value, is_dead))
        self.waits_for -= 1

    def advance(self, careful: bool = False) -> None:
        self.left -= 1
        if self.takes is not None:
            self.takes()

    def fetched(self) -> dict[str, Any]:
        return {"fetch": self.had}


class FakeProgram:
    compiled = None

    def node_edges(self) -> None:
        pass

    def __init__(self, *, loops: bool = False) -> None:
        self.policy = RunPolicy(LIMIT, sized_by_values=False, loops=loops)

    def run(self, execution: FakeExecution) -> PartRun:
        def executor(program: Any, edges: Any, io: StepIO) -> Any:
            return execution

        return PartRun(cast("LoadedProgram", self), {}, _no_send, executor)


def _no_send(key: str, value: Any, is_dead: bool) -> None:
    raise AssertionError("nothing is sent")


def tensor(key: str) -> Wanted:
    return Wanted(f"token of {key}", key)


def result(waiting: Waiting) -> Wanted:
    part = PartBuilder()
    part.const("dequeue", 1.0)
    node: PartNode = compiled(part).compiled.part.nodes[0]
    return Wanted("token of dequeue", "", waiting, node)


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
