"""The state of a step against a model: the error that explains most wins, and it is over once and for all."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.machines import short_and_long
from tenfold_core import errors
from tenfold_services.master.step_state import ArmGrace, Cancel, Decision, Finish, StepState

TASKS = tuple(f"/job:worker/replica:0/task:{index}" for index in range(4))
CONSEQUENCE, CAUSE, VERDICT = range(3)


class StepStateMachine(RuleBasedStateMachine):
    @initialize(count=st.integers(0, 4))
    def start(self, count: int) -> None:
        tasks = TASKS[:count]
        self.state = StepState(tasks)
        #: Parts that run; the first error of the greatest weight, with that, and who failed; whether it is over.
        self.running = list(tasks)
        self.error: tuple[int, str, str | None] | None = None
        self.finished = not count
        self.cancelled = self.graced = False
        assert (list(self.state.pending), self.state.finished) == (list(tasks), not tasks)

    def _expect(self, decisions: list[Decision]) -> None:
        """Whatever happened: the others are cancelled once, with the first error; the end comes with the last part."""
        wanted: list[Decision] = []
        if self.error is not None and not self.cancelled:
            self.cancelled = True
            if self.running:
                wanted = [*(Cancel(task) for task in self.running), ArmGrace()]
                self.graced = True
        if not self.running and not self.finished:
            self.finished = True
            wanted = [Finish()]
        assert decisions == wanted

    def _fail(self, weight: int, text: str, task: str | None) -> None:
        if self.error is None or weight > self.error[0]:
            self.error = (weight, text, task)

    def _part(self, data: st.DataObject) -> str:
        task = data.draw(st.sampled_from(self.running))
        self.running.remove(task)
        return task

    @precondition(lambda self: self.running and not self.finished)
    @rule(data=st.data())
    def part_done(self, data: st.DataObject) -> None:
        self._expect(self.state.part_done(self._part(data)))

    @precondition(lambda self: self.running and not self.finished)
    @rule(data=st.data(), kind=st.sampled_from((CONSEQUENCE, CAUSE)), derived=st.booleans())
    def part_failed(self, data: st.DataObject, kind: int, derived: bool) -> None:
        task = self._part(data)
        text = f"{task} failed"
        if kind == CAUSE:
            error = errors.invalid_argument(text)
        elif derived:
            error = errors.aborted(f"[_Derived_]{text}")
        else:
            error = errors.cancelled(text)
        self._fail(kind, error.message, task)
        self._expect(self.state.part_failed(task, error))

    @rule()
    def deadline(self) -> None:
        decisions = self.state.deadline(1.5)
        if self.finished:
            assert not decisions
            return
        error = self.state.error
        assert error is not None
        self._fail(VERDICT, error.message, None)
        assert self.error is not None
        if self.error[0] == VERDICT and error.code == errors.DEADLINE_EXCEEDED:
            assert "1500 ms" in error.message
        self._expect(decisions)

    @rule()
    def interrupt(self) -> None:
        decisions = self.state.interrupt(errors.cancelled("the session closes"))
        if self.finished:
            assert not decisions
            return
        self._fail(VERDICT, "the session closes", None)
        self._expect(decisions)

    @precondition(lambda self: self.graced)
    @rule()
    def grace_over(self) -> None:
        decisions = self.state.grace_over()
        assert decisions == ([] if self.finished else [Finish()])
        self.finished = True

    @invariant()
    def same_as_the_model(self) -> None:
        if not hasattr(self, "state"):
            return
        assert list(self.state.pending) == self.running
        assert self.state.finished is self.finished
        if self.error is None:
            assert self.state.error is None
            assert self.state.failed_task is None
        else:
            assert self.state.error is not None
            assert self.state.error.message == self.error[1]
            assert self.state.failed_task == self.error[2]


TestStepState, TestStepStateLong = short_and_long(StepStateMachine)
