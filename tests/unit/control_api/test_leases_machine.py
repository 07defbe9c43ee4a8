"""Leases against a model: a dictionary of deadlines."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.hand_clock import HandClock
from support.machines import short_and_long
from tenfold_control_api.figures import FiguresReport, NewestFigures
from tenfold_control_api.leases import LeaseTable

_STALL = 4.0
#: Quarters of a second, which are exact.
seconds = st.integers(0, 80).map(lambda quarters: quarters / 4)
names = st.sampled_from("abcd")


@dataclass
class Held:
    """A lease as the model knows it."""

    ttl: float
    deadline: float
    renewed: float
    renewals: int
    noted: float | None = None


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.table = LeaseTable(self.clock, stall=_STALL)
        self.model: dict[str, Held] = {}
        self.looked = self.clock.now

    @rule(name=names, ttl=seconds, renewals=st.integers(0, 3))
    def grant(self, name: str, ttl: float, renewals: int) -> None:
        self.table.grant(name, ttl, renewals)
        self.model[name] = Held(ttl, self.clock.now + ttl, self.clock.now, renewals)

    def _renewed(self, held: Held) -> None:
        held.renewed, held.deadline = self.clock.now, self.clock.now + held.ttl

    @rule(name=names)
    def renew(self, name: str) -> None:
        assert self.table.renew(name) is (name in self.model)
        if name in self.model:
            self._renewed(self.model[name])

    @rule(name=names, ttl=seconds, renewals=st.integers(0, 5))
    def observe(self, name: str, ttl: float, renewals: int) -> None:
        self.table.observe(name, ttl, renewals)
        held = self.model.get(name)
        if held is None:
            self.model[name] = Held(ttl, self.clock.now + ttl, self.clock.now, renewals)
        elif renewals > held.renewals:
            held.renewals = renewals
            self._renewed(held)

    @rule(name=names)
    def end(self, name: str) -> None:
        self.table.end(name)
        self.model.pop(name, None)

    @rule(name=names)
    def note(self, name: str) -> None:
        self.table.note(name, NewestFigures(FiguresReport(), 0.0))
        if name in self.model:
            self.model[name].noted = self.clock.now

    @rule(time=seconds)
    def time_goes_by(self, time: float) -> None:
        self.clock.now += time

    @rule()
    def look(self) -> None:
        now = self.clock.now
        gap, self.looked = now - self.looked, now
        if gap > _STALL:
            for held in self.model.values():
                held.deadline = min(held.deadline + gap, now + held.ttl)
        over = self.table.expired()
        assert sorted(over) == sorted(name for name, held in self.model.items() if held.deadline <= now)
        assert [self.model[name].deadline for name in over] == sorted(self.model[name].deadline for name in over)

    @invariant()
    def same_as_the_model(self) -> None:
        now, table = self.clock.now, self.table
        assert len(table) == len(self.model)
        for name in "abcd":
            held = self.model.get(name)
            assert (name in table) is (held is not None)
            assert table.age(name) == (None if held is None else now - held.renewed)
            assert table.remaining(name) == (None if held is None else max(0.0, held.deadline - now))
            assert table.renewals(name) == (0 if held is None else held.renewals)
            fresh = held is not None and held.noted is not None and now - held.noted <= held.ttl
            assert (table.figures(name) is not None) is fresh

    @invariant()
    def the_next_look_is_soon_enough(self) -> None:
        first = min((held.deadline for held in self.model.values()), default=float("inf"))
        assert self.table.next_look() == min(max(0.0, first - self.clock.now), _STALL / 2)


TestLeases, TestLeasesLong = short_and_long(LeaseMachine)
