"""The control service's open sessions against a model: how many, how long unused, which are over."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.hand_clock import HandClock
from support.machines import short_and_long
from tenfold_control_api.problems import ApiError
from tenfold_control_api.session_record import OpenSessions, SessionRecord

_LIMIT, _IDLE, _TTL = 3, 10.0, 40.0
names = st.sampled_from("abcde")


@dataclass
class Open:
    started: float
    used: float
    running: int = 0
    version: int = 0


class OpenSessionsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.sessions = OpenSessions(self.clock, limit=_LIMIT, idle_timeout=_IDLE, ttl=_TTL)
        self.model: dict[str, Open] = {}
        self.reserved = 0

    @rule()
    def reserve(self) -> None:
        if len(self.model) + self.reserved >= _LIMIT:
            with pytest.raises(ApiError, match="limit"):
                self.sessions.reserve()
        else:
            self.sessions.reserve()
            self.reserved += 1

    @precondition(lambda self: self.reserved)
    @rule(name=names, comes=st.booleans())
    def what_was_reserved_comes(self, name: str, comes: bool) -> None:
        if comes and name not in self.model:
            self.sessions.add(SessionRecord(name, "c", "worker", 0, "a", "grpc://h:1", "handle", 0, 0.0))
            self.model[name] = Open(self.clock.now, self.clock.now)
        self.sessions.unreserve()
        self.reserved -= 1

    @rule(name=names)
    def begin(self, name: str) -> None:
        if name not in self.model:
            with pytest.raises(ApiError, match="no session"):
                self.sessions.begin(name)
        else:
            self.sessions.begin(name)
            self.model[name].running += 1

    @rule(name=names)
    def end(self, name: str) -> None:
        held = self.model.get(name)
        if held is None or held.running:
            self.sessions.end(name)
        if held is not None and held.running:
            held.running -= 1
            held.used = self.clock.now

    @rule(name=names, version=st.integers(0, 9))
    def grow(self, name: str, version: int) -> None:
        if name in self.model:
            assert self.sessions.replace(name, graph_version=version).graph_version == version
            self.model[name].version = version

    @rule(name=names)
    def remove(self, name: str) -> None:
        removed = self.sessions.remove(name)
        assert (removed is not None) is (name in self.model)
        self.model.pop(name, None)

    @rule(seconds=st.integers(0, 30))
    def time_goes_by(self, seconds: int) -> None:
        self.clock.now += seconds

    @invariant()
    def same_as_the_model(self) -> None:
        now = self.clock.now
        assert len(self.sessions) == len(self.model) <= _LIMIT
        assert {record.id: record.graph_version for record in self.sessions} == {
            name: held.version for name, held in self.model.items()
        }
        for name, held in self.model.items():
            assert self.sessions.idle_for(name) == (0.0 if held.running else now - held.used)
        over = {
            name
            for name, held in self.model.items()
            if now - held.started >= _TTL or (not held.running and now - held.used >= _IDLE)
        }
        assert {record.id for record, _ in self.sessions.expired()} == over


TestOpenSessions, TestOpenSessionsLong = short_and_long(OpenSessionsMachine)
