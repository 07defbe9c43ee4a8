"""A step in several calls: each feeds and fetches once, errors end the step, and who stops calling is given up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from support.fake_run_owner import Task
from support.moments import PATIENCE, started
from support.parts import PartBuilder
from support.programs import TASK, compiled, sums
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker import partial_runs
from tenfold_services.worker.partial_runs import PartialRun
from tenfold_services.worker.rendezvous import Rendezvous
from tenfold_services.worker.sessions import WorkerSession

F32, BOOL = dtypes.float32, dtypes.bool_


class Begun:
    """A partial run of x + y and x - y, whose stretches in the pool run at once."""

    def __init__(self, program: Any = None) -> None:
        found = sums()
        self.x, self.y, self.plus, self.minus = found.x, found.y, found.plus, found.minus
        self.task, self.rendezvous = Task(), Rendezvous(5)
        self.task.task = TASK
        submit = self.task.pool.submit

        def at_once(owner: str, work: Any) -> Any:
            job = submit(owner, work)
            asyncio.get_running_loop().call_soon(self.task.pool.run)
            return job

        self.task.pool.submit = at_once  # type: ignore[method-assign]
        self.session = WorkerSession("s", ResourceManager())
        self.run = PartialRun(cast("Any", self.task), self.session, program or found.program, self.rendezvous)

    async def call(self, feeds: dict[str, Any], fetches: list[str], is_last: bool = False) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return (await self.run.call(feeds, fetches, is_last)).values


def one(value: float) -> np.ndarray:
    return np.float32([value])


async def test_feeds_and_fetches_come_in_several_calls() -> None:
    run = Begun()

    assert await run.call({run.x: one(5)}, []) == {}
    first = await run.call({run.y: one(3)}, [run.plus])
    last = await run.call({}, [run.minus], is_last=True)

    assert {key: value.tolist() for key, value in (*first.items(), *last.items())} == {
        run.plus: [8.0],
        run.minus: [2.0],
    }
    assert all(value.flags.writeable for value in (*first.values(), *last.values()))
    assert run.rendezvous.error is None
    assert run.task.running == 0


async def test_a_fetch_waits_for_what_it_needs() -> None:
    run = Begun()
    waiting = await started(run.call({run.x: one(5)}, [run.plus]))
    assert not waiting.done()

    await run.call({run.y: one(3)}, [])

    assert (await waiting)[run.plus].tolist() == [8.0]


@pytest.mark.parametrize("verb", ["fed", "fetched"])
async def test_what_is_not_there_or_came_before_is_refused_and_changes_nothing(verb: str) -> None:
    run = Begun()
    await run.call({run.x: one(5), run.y: one(3)}, [run.plus])

    def asks(key: str) -> Any:
        return run.call({key: one(1)}, []) if verb == "fed" else run.call({}, [key])

    for unknown in ("unknown", run.plus if verb == "fed" else run.x):
        with pytest.raises(errors.InvalidArgumentError) as raised:
            await asks(unknown)
        assert raised.value.message == f"This graph has no tensor {unknown!r} that can be {verb}."
    again = run.x if verb == "fed" else run.plus
    with pytest.raises(errors.InvalidArgumentError) as raised:
        await asks(again)
    assert raised.value.message == f"The tensor {again!r} has already been {verb}."
    assert run.rendezvous.error is None
    assert (await run.call({}, [run.minus], is_last=True))[run.minus].tolist() == [2.0]


async def test_a_feed_of_another_type_ends_the_step() -> None:
    run = Begun()
    with pytest.raises(errors.InvalidArgumentError, match="'x' has dtype float64"):
        await run.call({run.x: np.ones(1)}, [])

    assert run.rendezvous.error is not None
    with pytest.raises(errors.InvalidArgumentError, match="'x' has dtype float64"):
        await run.call({run.y: one(1)}, [])


async def test_the_first_error_of_the_step_is_raised_by_every_call() -> None:
    run = Begun()
    waiting = await started(run.call({}, [run.plus]))
    last = await started(run.call({}, [run.minus], is_last=True))
    first = errors.aborted("the first")

    run.rendezvous.abort(first)

    for call in (waiting, last):
        with pytest.raises(errors.AbortedError) as raised:
            await call
        assert raised.value is first


async def test_a_cancelled_call_ends_the_step() -> None:
    run = Begun()
    waiting = await started(run.call({}, [run.plus]))

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert isinstance(run.rendezvous.error, errors.CancelledError)
    assert run.task.running == 0


async def test_a_last_call_that_is_cancelled_does_not_cancel_the_answer() -> None:
    run = Begun()
    waiting = await started(run.call({}, [], is_last=True))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert not run.run._ended.cancelled()
    assert isinstance(run.run._ended.exception(), errors.CancelledError)


async def test_a_dead_tensor_cannot_be_fetched() -> None:
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", BOOL)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    no, yes = part.fetch("switch:0"), part.fetch("switch:1")
    run = Begun(compiled(part))

    values = await run.call({x: one(1), p: np.array(True)}, [yes])
    assert values[yes].tolist() == [1.0]
    with pytest.raises(errors.InvalidArgumentError, match="was not valid"):
        await run.call({}, [no])
    assert run.rendezvous.error is not None


async def test_who_calls_no_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now, idle = [1000.0], DEFAULT_LIMITS.idle_partial_run_seconds
    monkeypatch.setattr(partial_runs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    run = Begun()
    assert not run.run.ended_as_idle(1000.0 + idle)
    now[0] = 2000.0
    waiting = await started(run.call({}, [run.plus]))
    assert not run.run.ended_as_idle(3000.0 + idle)
    await run.call({run.x: one(1), run.y: one(1)}, [])
    await waiting

    assert not run.run.ended_as_idle(2000.0 + idle)
    assert run.rendezvous.error is None
    assert run.run.ended_as_idle(2000.1 + idle)
    assert run.rendezvous.error is not None
    assert run.rendezvous.error.message == "The partial run was not called for too long."
    assert isinstance(run.rendezvous.error, errors.AbortedError)
