"""Producers whose link has ended, for runs that already wait, still compute, or begin later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from support.moments import PATIENCE
from tenfold_core import errors
from tenfold_core.rendezvous_key import make_key
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.worker import lost_producers
from tenfold_services.worker.lost_producers import LostProducers
from tenfold_services.worker.rendezvous import Rendezvous

if TYPE_CHECKING:
    import pytest

PS = "/job:ps/replica:0/task:0"
KEY = make_key(f"{PS}/device:CPU:0", 1, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
LOST = errors.unavailable(f"The link to {PS} ended: the test broke it.")


class FakeRun:
    """A run that expects a tensor of the ps, and asks for it when the test says."""

    def __init__(self, *expected: str) -> None:
        self.plan: Any = ExchangePlan("s", "g", expected=expected)
        self.rendezvous, self.ended = Rendezvous(1), False
        self.error: errors.OpError | None = None
        self.over = asyncio.Event()

    def ask(self) -> FakeRun:
        self.rendezvous.recv(KEY, lambda *_: None)
        return self

    def cancel(self, error: errors.OpError | None = None) -> None:
        self.error, self.ended = error, True
        self.over.set()


async def ended(run: FakeRun) -> errors.OpError | None:
    async with asyncio.timeout(PATIENCE):
        await run.over.wait()
    return run.error


async def test_a_run_that_waits_ends_at_once() -> None:
    lost, run = LostProducers(3600.0), FakeRun(KEY).ask()

    lost.lost(PS, LOST, [run])  # type: ignore[list-item]

    assert run.error is not None
    assert (run.error.code, run.error.message) == (LOST.code, LOST.message)


async def test_a_run_that_waits_later_ends_when_the_tensor_should_have_come() -> None:
    lost, run = LostProducers(0.01), FakeRun(KEY)
    looked = asyncio.Event()
    waits_for = run.rendezvous.waits_for

    class Watched(Rendezvous):
        def waits_for(self, prefix: str) -> bool:
            looked.set()
            return waits_for(prefix)

    run.rendezvous, asked = Watched(1), run.rendezvous
    lost.lost(PS, LOST, [run])  # type: ignore[list-item]
    looked.clear()
    async with asyncio.timeout(PATIENCE):
        await looked.wait()
    assert not run.ended

    asked.recv(KEY, lambda *_: None)

    found = await ended(run)
    assert found is not None
    assert found.message == LOST.message


async def test_a_run_that_begins_soon_after_ends_too() -> None:
    lost, run = LostProducers(0.01), FakeRun(KEY)
    lost.lost(PS, LOST, [])

    lost.began(run.ask())  # type: ignore[arg-type]

    assert isinstance(await ended(run), errors.UnavailableError)


async def test_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = LostProducers(0.01)
    later: list[Any] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda *call: later.append(call))
    none, other = FakeRun(), FakeRun(KEY.replace("ps", "other"))

    lost.lost(PS, LOST, [none, other])  # type: ignore[list-item]
    lost.began(none)  # type: ignore[arg-type]

    assert not later
    assert not none.ended
    assert not other.ended


async def test_what_is_remembered_is_bounded_and_runs_out() -> None:
    lost = LostProducers(-1.0)
    for number in range(2000):
        lost.lost(f"/job:ps/replica:0/task:{number}", LOST, [])
    assert len(lost.recent) == 1024

    lost.began(FakeRun(KEY))  # type: ignore[arg-type]

    assert not lost.recent


def looks_later(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Any]]:
    """What is asked of the loop: (after so many seconds, what)."""
    later: list[tuple[float, Any]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda seconds, look: later.append((seconds, look)))
    return later


async def test_a_run_is_looked_at_until_it_waits_or_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    later, lost, run = looks_later(monkeypatch), LostProducers(2.5), FakeRun(KEY)
    lost.lost(PS, LOST, [run])  # type: ignore[list-item]
    assert [seconds for seconds, _ in later] == [2.5]
    later.pop()[1]()
    assert [seconds for seconds, _ in later] == [2.5]
    run.ask()
    later.pop()[1]()
    assert run.error is not None
    assert run.error is not LOST  # each run has an exception of its own
    assert (run.error.code, run.error.message) == (LOST.code, LOST.message)
    assert not later

    done = FakeRun(KEY)
    lost.lost(PS, LOST, [done])  # type: ignore[list-item]
    done.ended = True
    later.pop()[1]()
    assert not later
    assert done.error is None


async def test_a_run_without_a_plan_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    later, lost, run = looks_later(monkeypatch), LostProducers(1.0), FakeRun(KEY).ask()
    run.plan = None

    lost.lost(PS, LOST, [run])  # type: ignore[list-item]
    lost.began(run)  # type: ignore[arg-type]

    assert not later
    assert run.error is None


async def test_a_task_whose_name_begins_alike_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    later, lost = looks_later(monkeypatch), LostProducers(1.0)
    run = FakeRun(KEY.replace("task:0/device", "task:01/device", 1))

    lost.lost(PS, LOST, [run])  # type: ignore[list-item]

    assert not later


async def test_the_end_of_a_link_counts_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(lost_producers.time, "monotonic", lambda: now[0])
    later, lost = looks_later(monkeypatch), LostProducers(10.0)
    lost.lost(PS, LOST, [])
    assert lost.recent == {PS: (110.0, LOST)}

    now[0] = 110.0
    lost.began(FakeRun(KEY))  # type: ignore[arg-type]
    assert len(later) == 1
    now[0] = 110.1
    lost.began(FakeRun(KEY))  # type: ignore[arg-type]
    assert len(later) == 1
    assert not lost.recent


async def test_the_task_that_was_lost_last_is_remembered_longest() -> None:
    lost = LostProducers(1.0)
    for number in range(1024):
        lost.lost(f"/job:ps/replica:0/task:{number}", LOST, [])
    lost.lost("/job:ps/replica:0/task:0", LOST, [])
    assert len(lost.recent) == 1024
    lost.lost("/job:new/replica:0/task:0", LOST, [])

    assert len(lost.recent) == 1024
    assert "/job:ps/replica:0/task:1" not in lost.recent
    assert "/job:ps/replica:0/task:0" in lost.recent


async def test_a_task_that_is_lost_again_is_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_producers, "_TASKS", 3)
    lost = LostProducers(1.0)
    for task in "abacd":
        lost.lost(task, LOST, [])
    assert list(lost.recent) == ["a", "c", "d"]
