"""The run sweeper: which runs it starts, which it ends and in which words, and when it leaves one alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from support.hand_clock import HandClock
from tenfold_control_api.runs.record import EXTERNAL, LOCAL, RunRecord
from tenfold_control_api.runs.run_sweeper import RunSweeper
from tenfold_control_api.runs.supervisors import Found
from tenfold_control_api.runs.table import RunTable
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors
from tenfold_core.run_states import RunState

SUPERVISOR = {"host": "h", "pid": 7}


class Store:
    def __init__(self) -> None:
        self.runs: dict[str, RunRecord] = {}
        self.reports: dict[str, int] = {}

    async def get(self, run_id: str) -> RunRecord | None:
        return self.runs.get(run_id)

    async def save(self, old: RunRecord, new: RunRecord) -> bool:
        self.runs[new.id] = new
        return True

    async def active(self) -> list[tuple[RunRecord, int]]:
        return [(run, self.reports.get(run.id, 0)) for run in self.runs.values() if not run.state.final]


class Others:
    """What stands around the sweeper: launcher, replicas, progress and joined runs, with what they were asked."""

    id = "me"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.found: Found | None = None
        self.error: Exception | None = None
        self.living = {"me"}

    def launch(self, run: RunRecord, services: str) -> None:
        self.asked.append(("launch", run.id, services))
        if self.error is not None:
            raise self.error

    def look(self, run: RunRecord) -> Found | None:
        self.asked.append(("look", run.id))
        return self.found

    async def alive(self, service: str) -> bool:
        return service in self.living

    async def observe(self) -> None:
        self.asked.append("observe")

    def addresses(self) -> list[str]:
        return ["http://other"]

    async def flush(self) -> None:
        self.asked.append("flush")

    def release(self, run_id: str) -> None:
        self.asked.append(("release", run_id))

    def begin_round(self, ids: set[str]) -> None:
        self.asked.append(("round", ids))

    async def attend(self, run: RunRecord) -> None:
        self.asked.append(("joined", run.id))


class Service:
    def __init__(self, *, address: str = "http://me", **settings: Any) -> None:
        self.store, self.others, self.clock = Store(), Others(), HandClock()
        known = Settings(**{"allow_runs": True, "heartbeat": 2.0, "run_start_timeout": 60.0, **settings})
        self.table = RunTable(cast("Any", self.store), known, shared=False, clock=self.clock)
        others = cast("Any", self.others)
        self.sweeper = RunSweeper(
            *(self.table, cast("Any", self.store), others, others, others, others, known),
            clock=self.clock,
            wall_clock=lambda: 500.0,
        )
        if address:
            self.sweeper.serve_at(address)

    def keep(self, **given: Any) -> RunRecord:
        run = RunRecord("r", given.pop("submission_id", "once"), "f", given.pop("launcher", LOCAL), {}, 1.0)
        self.store.runs["r"] = run = replace(run, **given)
        return run

    @property
    def run(self) -> RunRecord:
        return self.store.runs["r"]

    async def sweep(self, seconds: float = 0.0) -> list[Any]:
        """What was asked of the others besides what each round asks."""
        self.clock.now += seconds
        self.others.asked.clear()
        await self.sweeper.sweep()
        return [each for each in self.others.asked if each[0] not in ("round", "flush") and each != "flush"]


async def test_a_run_of_this_service_is_started_once() -> None:
    service = Service()
    service.keep(owner="me")
    assert await service.sweep() == ["observe", ("launch", "r", "http://me,http://other")]
    assert await service.sweep() == []
    assert service.run.state is RunState.PENDING


@pytest.mark.parametrize(("owner", "started"), [(None, True), ("dead", True), ("other", False)])
async def test_a_run_of_nobody_or_of_a_dead_service_is_taken(owner: str | None, started: bool) -> None:
    service = Service()
    service.others.living.add("other")
    service.keep(owner=owner)
    assert bool(await service.sweep()) is started
    assert service.run.owner == ("me" if started else owner)


@pytest.mark.parametrize("given", [{"supervisor": SUPERVISOR}, {"launcher": EXTERNAL}, {"submission_id": "program:1"}])
async def test_a_run_that_somebody_else_runs_is_not_started(given: dict[str, Any]) -> None:
    service = Service()
    service.keep(owner="me", **given)
    asked = await service.sweep()
    assert asked == ([("joined", "r")] if "submission_id" in given else [])


async def test_nothing_is_started_before_the_address_is_known_or_where_runs_are_not_allowed() -> None:
    for service in (Service(address=""), Service(allow_runs=False)):
        service.keep(owner="me")
        assert await service.sweep() == []


@pytest.mark.parametrize(
    "error", [OSError("no such file"), ValueError("no such file"), errors.NotFoundError(None, None, "no such file")]
)
async def test_a_supervisor_that_cannot_be_started_fails_its_run(error: Exception) -> None:
    service = Service()
    service.others.error = error
    service.keep(owner="me")
    assert (await service.sweep())[-1] == ("release", "r")
    assert (service.run.state, service.run.ended) == (RunState.FAILED, 500.0)
    assert service.run.reason.startswith("its supervisor cannot be started: ")
    assert "no such file" in service.run.reason
    assert await service.sweep() == []


async def test_a_silent_supervisor_is_looked_for_after_a_while_and_left_alone_while_it_lives() -> None:
    service = Service()
    service.keep(supervisor=SUPERVISOR)
    assert await service.sweep() == []
    assert await service.sweep(4.9) == []
    service.others.found = Found(True)
    assert await service.sweep(0.1) == [("look", "r")]
    assert await service.sweep(100.0) == [("look", "r")]
    assert service.run.state is RunState.PENDING


async def test_reports_that_came_to_another_service_count() -> None:
    service = Service()
    service.keep(supervisor=SUPERVISOR)
    await service.sweep()
    service.store.reports["r"] = 1
    assert await service.sweep(50.0) == []
    assert await service.sweep(4.9) == []
    assert await service.sweep(0.2) == [("look", "r")]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "its supervisor (process 7 on h) ended without a word"),
        ("killed", "its supervisor (process 7 on h) ended: killed"),
    ],
)
async def test_a_supervisor_that_is_gone_fails_its_run_in_its_last_words(words: str, reason: str) -> None:
    service = Service()
    service.keep(supervisor=SUPERVISOR)
    service.others.found = Found(False, None, words)
    await service.sweep()
    await service.sweep(5.0)
    assert (service.run.state, service.run.reason) == (RunState.FAILED, reason)


async def test_what_a_supervisor_left_counts() -> None:
    service = Service()
    service.keep(supervisor=SUPERVISOR)
    service.others.found = Found(False, {"state": "SUCCEEDED", "reason": "all done", "attempt": 1})
    await service.sweep()
    await service.sweep(5.0)
    assert (service.run.state, service.run.reason, service.run.ended) == (RunState.SUCCEEDED, "all done", 500.0)
    assert service.run.supervisor == SUPERVISOR


async def test_a_report_that_nobody_sent_is_of_nobody() -> None:
    service = Service()
    service.keep(owner="me")
    await service.sweep()
    service.others.found = Found(False, {"state": "FAILED", "reason": "no room"})
    await service.sweep(5.0)
    assert (service.run.state, service.run.reason) == (RunState.FAILED, "no room")
    assert service.run.supervisor == {"host": "", "pid": 0}


async def test_a_report_that_cannot_be_read_is_said_to() -> None:
    service = Service()
    service.keep(supervisor=SUPERVISOR)
    service.others.found = Found(False, {"state": "RUNNING", "reason": 7})
    await service.sweep()
    await service.sweep(5.0)
    assert service.run.state is RunState.FAILED
    assert service.run.reason.startswith("its supervisor (process 7 on h) left a report that cannot be read: ")


async def test_an_end_that_was_seen_is_looked_at_at_once() -> None:
    service = Service()
    service.keep(owner="me")
    await service.sweep()
    service.others.found = Found(False, None, "out of memory")
    over = asyncio.Event()
    service.table.end_listeners.append(lambda _: over.set())
    await service.sweeper.start()
    service.sweeper.supervisor_ended("r")
    await over.wait()
    assert service.run.reason == "its supervisor ended: out of memory"
    await service.sweeper.stop()
    service.sweeper.supervisor_ended("r")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({"supervisor": SUPERVISOR, "launcher": EXTERNAL}, 10.0), ({"launcher": EXTERNAL}, 60.0), ({"owner": "me"}, 60.0)],
)
async def test_a_run_of_which_nothing_is_heard_fails_after_its_time(given: dict[str, Any], seconds: float) -> None:
    service = Service()
    service.keep(**given)
    await service.sweep()
    await service.sweep(seconds - 0.1)
    assert service.run.state is RunState.PENDING
    await service.sweep(0.2)
    who = "its supervisor (process 7 on h)" if "supervisor" in given else "its supervisor"
    assert (service.run.state, service.run.reason) == (
        RunState.FAILED,
        f"nothing was heard of {who} for {seconds:.0f} s",
    )


async def test_a_run_that_ended_elsewhere_is_forgotten() -> None:
    service = Service()
    service.keep(supervisor=SUPERVISOR)
    await service.sweep()
    assert list(service.table.heard) == ["r"]
    service.keep(state=RunState.SUCCEEDED)
    assert await service.sweep() == [("release", "r")]
    assert service.table.heard == {}
    assert await service.sweep() == []


async def test_it_goes_on_after_an_error_and_ends_when_it_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    service = Service(heartbeat=0.001)
    rounds = [0]
    again = asyncio.Event()

    async def broken() -> None:
        rounds[0] += 1
        if rounds[0] == 2:
            again.set()
        raise OSError("the database is away")

    await service.sweeper.start()
    service.sweeper.sweep = broken  # type: ignore[method-assign]
    service.sweeper.look_soon()
    await again.wait()
    assert "the run sweeper could not do its work; it tries again" in caplog.text
    service.others.asked.clear()
    await service.sweeper.stop()
    assert service.others.asked == ["flush"]


async def test_it_ends_between_two_looks_without_being_cancelled() -> None:
    service = Service(heartbeat=9.0)
    await service.sweeper.start()
    sweeping = service.sweeper._sweeping
    assert sweeping is not None
    service.sweeper.begin_stop()
    await asyncio.wait_for(sweeping, 30)
    assert not sweeping.cancelled()


@pytest.mark.parametrize("alive", [True, False])
async def test_what_an_earlier_service_left_is_looked_at_at_once(alive: bool) -> None:
    service = Service(address="", heartbeat=9.0)
    service.keep(supervisor=SUPERVISOR, state=RunState.RUNNING)
    service.others.found = Found(alive=alive)
    await service.sweeper.start()
    assert ("look", "r") in await service.sweep()
    assert service.run.state is (RunState.RUNNING if alive else RunState.FAILED)
    # later it has its time again
    assert ("look", "r") not in await service.sweep()
    await service.sweeper.stop()
