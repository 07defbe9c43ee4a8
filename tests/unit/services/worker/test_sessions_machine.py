"""A worker's sessions against a model: which handles are open, whose they are, and what they share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.machines import short_and_long
from tenfold_core import errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker.sessions import SessionTable

_LIMIT = 4
handles = st.sampled_from(("", "h1", "h2", "h3", "h4", "h5"))
masters = st.sampled_from(("", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"))
incarnations = st.integers(1, 3)


def life_is_former(lives: list[int], incarnation: int) -> bool:
    return incarnation in lives[:-1]


class SessionTableMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shared = ResourceManager()
        self.table = SessionTable("/job:ps/replica:0/task:0", self.shared, replace(DEFAULT_LIMITS, sessions=_LIMIT))
        #: Handle → (isolated, master, incarnation). "" is always there.
        self.model: dict[str, tuple[bool, str, int]] = {"": (False, "", 0)}
        #: Master → its lives in the order in which they were heard of.
        self.lives: dict[str, list[int]] = {}

    @rule(handle=handles, isolate=st.booleans(), master=masters, incarnation=incarnations)
    def create(self, handle: str, isolate: bool, master: str, incarnation: int) -> None:
        stale = {
            each for each, (_, its, life) in self.model.items() if master and its == master and life != incarnation
        }
        wanted: type[errors.OpError] | None = None
        if not handle:
            wanted = errors.InvalidArgumentError
        elif handle in self.model:
            wanted = errors.AlreadyExistsError
        elif master and life_is_former(self.lives.get(master, []), incarnation):
            wanted = errors.FailedPreconditionError
        else:
            if master and incarnation not in self.lives.setdefault(master, []):
                self.lives[master].append(incarnation)
            self.model = {each: held for each, held in self.model.items() if each not in stale}
            if len(self.model) >= _LIMIT:
                wanted = errors.ResourceExhaustedError
        if wanted is not None:
            with pytest.raises(wanted):
                self.table.create(handle, isolate, master, incarnation)
            return
        assert {session.handle for session in self.table.create(handle, isolate, master, incarnation)} == stale
        self.model[handle] = (isolate, master, incarnation)

    @rule(handle=handles)
    def remove(self, handle: str) -> None:
        removed = self.table.remove(handle)
        assert (removed is not None) is (bool(handle) and handle in self.model)
        if handle:
            self.model.pop(handle, None)

    @rule(handle=handles)
    def get(self, handle: str) -> None:
        if handle not in self.model:
            with pytest.raises(errors.AbortedError, match="just restarted"):
                self.table.get(handle)
            return
        session, (isolated, master, incarnation) = self.table.get(handle), self.model[handle]
        assert (session.master_task, session.master_incarnation) == (master, incarnation)
        assert (session.resources is self.shared) is not isolated

    @invariant()
    def same_as_the_model(self) -> None:
        assert {session.handle for session in self.table} == self.model.keys()
        assert len(self.model) <= _LIMIT
        resources = [session.resources for session in self.table if session.resources is not self.shared]
        assert len({id(each) for each in resources}) == len(resources)


TestSessionTable, TestSessionTableLong = short_and_long(SessionTableMachine)
