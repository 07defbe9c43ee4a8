"""The rendezvous of steps against a model: each tensor goes to one receiver once, and each receiver is told once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.machines import short_and_long
from tenfold_core import errors
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker.rendezvous import Rendezvous, StepTable

_LIMITS = replace(DEFAULT_LIMITS, steps=3, finished_steps=2, idle_step_seconds=10.0, keys_per_step=3)
steps = st.integers(1, 5)
keys = st.sampled_from("wxyz")


class Receiver:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def __call__(self, value: Any, is_dead: bool, error: errors.OpError | None) -> None:
        self.told.append(error if error is not None else (value, is_dead))


@dataclass
class Step:
    """One step as the model knows it."""

    rendezvous: Rendezvous
    created: float
    sent: dict[str, tuple[int, bool]] = field(default_factory=dict)
    waiting: dict[str, Receiver] = field(default_factory=dict)
    listeners: list[list[errors.OpError]] = field(default_factory=list)
    error: errors.OpError | None = None
    runs: int = 0


class StepTableMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = StepTable(_LIMITS)
        self.now = 100.0
        self.model: dict[int, Step] = {}
        #: Steps that are over, oldest first.
        self.finished: list[int] = []
        #: What each receiver must have been told: nothing, or one thing.
        self.expected: list[tuple[Receiver, list[Any]]] = []
        self.values = iter(range(10**9))

    def _get(self, step_id: int) -> Step | None:
        """The step at both; None where there cannot be one."""
        if step_id not in self.model:
            if step_id in self.finished:
                with pytest.raises(errors.AbortedError, match="is over"):
                    self.table.get(step_id, self.now)
                return None
            if len(self.model) >= _LIMITS.steps:
                self._swept()
            if len(self.model) >= _LIMITS.steps:
                with pytest.raises(errors.ResourceExhaustedError, match="limit"):
                    self.table.get(step_id, self.now)
                return None
            self.model[step_id] = Step(self.table.get(step_id, self.now), self.now)
        step = self.model[step_id]
        assert self.table.get(step_id, self.now) is step.rendezvous is self.table.find(step_id)
        return step

    def _told(self, receiver: Receiver, what: Any) -> None:
        next(told for known, told in self.expected if known is receiver).append(what)

    @rule(step_id=steps, key=keys, is_dead=st.booleans())
    def send(self, step_id: int, key: str, is_dead: bool) -> None:
        step = self._get(step_id)
        if step is None:
            return
        value = next(self.values)
        if step.error is not None:
            with pytest.raises(type(step.error)) as caught:
                step.rendezvous.send(key, value, is_dead)
            assert caught.value is step.error
        elif key in step.sent:
            with pytest.raises(errors.InternalError, match="twice"):
                step.rendezvous.send(key, value, is_dead)
        elif key not in step.waiting and len(step.sent) + len(step.waiting) >= _LIMITS.keys_per_step:
            with pytest.raises(errors.ResourceExhaustedError, match="limit"):
                step.rendezvous.send(key, value, is_dead)
        else:
            receiver = step.waiting.pop(key, None)
            if receiver is None:
                step.sent[key] = (value, is_dead)
            else:
                self._told(receiver, (value, is_dead))
            step.rendezvous.send(key, value, is_dead)

    @rule(step_id=steps, key=keys)
    def recv(self, step_id: int, key: str) -> None:
        step = self._get(step_id)
        if step is None:
            return
        receiver = Receiver()
        self.expected.append((receiver, []))
        if step.error is not None:
            self._told(receiver, step.error)
        elif key in step.sent:
            self._told(receiver, step.sent.pop(key))
        elif key in step.waiting:
            with pytest.raises(errors.InternalError, match="two receivers"):
                step.rendezvous.recv(key, receiver)
            return
        elif len(step.sent) + len(step.waiting) >= _LIMITS.keys_per_step:
            with pytest.raises(errors.ResourceExhaustedError, match="limit"):
                step.rendezvous.recv(key, receiver)
            return
        else:
            step.waiting[key] = receiver
        step.rendezvous.recv(key, receiver)

    @rule(step_id=steps, key=keys)
    def cancel_recv(self, step_id: int, key: str) -> None:
        step = self.model.get(step_id)
        if step is not None:
            receiver = step.waiting.pop(key, None)
            assert step.rendezvous.cancel_recv(key, receiver or Receiver()) is (receiver is not None)

    @rule(step_id=steps)
    def listen(self, step_id: int) -> None:
        step = self._get(step_id)
        if step is not None:
            heard: list[errors.OpError] = []
            step.rendezvous.listen(heard.append)
            step.listeners.append(heard)
            assert heard == ([] if step.error is None else [step.error])

    def _abort(self, step: Step, error: errors.OpError) -> None:
        """What an abort means in the model."""
        if step.error is None:
            step.error = error
            for receiver in step.waiting.values():
                self._told(receiver, error)
            step.waiting.clear()
            step.sent.clear()

    @rule(step_id=steps)
    def abort(self, step_id: int) -> None:
        step = self._get(step_id)
        if step is not None:
            error = errors.InvalidArgumentError(None, None, "a cause")
            self._abort(step, error)
            step.rendezvous.abort(error)

    @rule(step_id=steps, by=st.sampled_from((1, -1)))
    def run(self, step_id: int, by: int) -> None:
        """A part begins or ends."""
        step = self._get(step_id)
        if step is not None and step.runs + by >= 0:
            step.runs += by
            step.rendezvous.runs += by

    def _over(self, step_id: int) -> Step | None:
        """What it means in the model that a step is over."""
        if step_id in self.finished:
            self.finished.remove(step_id)
        self.finished.append(step_id)
        del self.finished[: -_LIMITS.finished_steps]
        return self.model.pop(step_id, None)

    def _cleaned_up(self, step_id: int, step: Step | None) -> None:
        if step is not None:
            if step.error is None:
                error = step.rendezvous.error
                assert error is not None
                self._abort(step, error)
            assert step.error is step.rendezvous.error

    @rule(step_id=steps)
    def finish(self, step_id: int) -> None:
        step = self._over(step_id)
        self.table.finish(step_id)
        self._cleaned_up(step_id, step)

    @rule(step_id=steps)
    def forget(self, step_id: int) -> None:
        """Only a step that nobody waits for ends so."""
        step = self.model.get(step_id)
        if step is None or not step.waiting:
            self.model.pop(step_id, None)
            self.table.forget(step_id)

    @rule(seconds=st.integers(0, 8))
    def time_goes_by(self, seconds: int) -> None:
        self.now += seconds

    def _swept(self) -> list[int]:
        """Sweeps the model as the table will be, or was."""
        old = [
            step_id
            for step_id, step in self.model.items()
            if step.created <= self.now - _LIMITS.idle_step_seconds and not step.runs and not step.waiting
        ]
        for step_id in old:
            self._over(step_id)
        return old

    @rule()
    def sweep(self) -> None:
        assert len(self._swept()) == self.table.sweep(self.now)

    @invariant()
    def same_as_the_model(self) -> None:
        assert len(self.table) == len(self.model) <= _LIMITS.steps
        for receiver, told in self.expected:
            assert receiver.told == told
        for step in self.model.values():
            assert step.rendezvous.error is step.error
            assert step.rendezvous.idle is (not step.runs and not step.waiting)
            assert step.rendezvous.waits_for("w") is ("w" in step.waiting)
            assert all(heard == ([] if step.error is None else [step.error]) for heard in step.listeners)


TestStepTable, TestStepTableLong = short_and_long(StepTableMachine)
