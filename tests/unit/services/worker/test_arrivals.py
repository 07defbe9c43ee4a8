"""Runs go on once all tensors of a frame are handed out; one tensor of a step, awaited: from this thread and others,
dead, failed, and given up.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.rendezvous_key import make_key
from tenfold_services.worker.arrivals import Arrivals, receive, settle
from tenfold_services.worker.rendezvous import Rendezvous

KEY = make_key("/job:a/replica:0/task:0/device:CPU:0", 1, "/job:b/replica:0/task:0/device:CPU:0", "x:0")


class Driver:
    """Notes how often it went on."""

    def __init__(self, arrivals: Arrivals) -> None:
        self.arrivals, self.went_on = arrivals, 0

    def arrived(self) -> None:
        if not self.arrivals.hold(self.go_on):
            self.go_on()

    def go_on(self) -> None:
        self.went_on += 1


def test_outside_of_a_frame_every_tensor_counts() -> None:
    driver = Driver(Arrivals())
    driver.arrived()
    driver.arrived()
    assert driver.went_on == 2


def test_within_a_frame_each_run_goes_on_once_at_its_end() -> None:
    arrivals = Arrivals()
    first, second = Driver(arrivals), Driver(arrivals)
    with arrivals:
        first.arrived()
        with arrivals:
            second.arrived()
            first.arrived()
        assert first.went_on == second.went_on == 0
    assert first.went_on == second.went_on == 1
    with arrivals:
        pass
    assert first.went_on == 1


def test_a_frame_that_is_cut_off_delivers_what_it_brought() -> None:
    arrivals = Arrivals()
    driver = Driver(arrivals)

    def frame() -> None:
        with arrivals:
            driver.arrived()
            raise ValueError("cut off")

    with pytest.raises(ValueError, match="cut off"):
        frame()
    assert driver.went_on == 1


async def started(rendezvous: Rendezvous) -> asyncio.Task[tuple[object, bool]]:
    """A task that waits for the tensor."""
    task: asyncio.Task[tuple[object, bool]] = asyncio.create_task(receive(rendezvous, KEY))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_tensor_that_is_there_is_not_waited_for() -> None:
    rendezvous, value = Rendezvous(1), np.ones(2)
    rendezvous.send(KEY, value)
    found, is_dead = await receive(rendezvous, KEY)
    assert found is value
    assert not is_dead


@pytest.mark.parametrize("is_dead", [False, True])
async def test_a_tensor_that_another_thread_sends_wakes_the_loop(is_dead: bool) -> None:
    rendezvous, value = Rendezvous(1), np.ones(2)
    task = await started(rendezvous)
    sender = threading.Thread(target=rendezvous.send, args=(KEY, value, is_dead))
    sender.start()
    assert (await asyncio.wait_for(task, 30))[1] is is_dead
    sender.join(30)


async def test_what_ends_the_step_is_raised() -> None:
    rendezvous = Rendezvous(1)
    task = await started(rendezvous)
    rendezvous.abort(errors.AbortedError(None, None, "the step is over"))
    with pytest.raises(errors.AbortedError, match="the step is over"):
        await task


async def test_a_caller_that_gives_up_takes_nothing() -> None:
    rendezvous, value = Rendezvous(1), np.ones(2)
    task = await started(rendezvous)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    rendezvous.send(KEY, value)
    assert (await receive(rendezvous, KEY))[0] is value


async def test_a_tensor_that_comes_while_the_caller_gives_up_breaks_nothing() -> None:
    rendezvous = Rendezvous(1)
    task = await started(rendezvous)
    sender = threading.Thread(target=rendezvous.send, args=(KEY, np.ones(2)))
    sender.start()
    sender.join(30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)


@pytest.mark.parametrize("kind", [asyncio.Future, Future])
async def test_a_future_is_settled_once(kind: Any) -> None:
    made, failed = kind(), kind()
    error = errors.aborted("over")

    settle(made, 7, None)
    settle(made, 8, None)
    settle(made, None, error)
    settle(failed, None, error)
    settle(failed, 7, None)

    assert made.result() == 7
    assert failed.exception() is error


async def test_what_is_there_is_received_on_the_spot_and_a_dead_one_too() -> None:
    rendezvous = Rendezvous(1)
    rendezvous.send(KEY, None, True)
    assert await receive(rendezvous, KEY) == (None, True)


async def test_a_receiver_that_is_cancelled_leaves_the_place_to_another() -> None:
    rendezvous = Rendezvous(1)
    task = await started(rendezvous)
    assert list(rendezvous._waiting) == [KEY]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not rendezvous._waiting


def test_runs_that_are_held_again_within_their_turn_go_on_again() -> None:
    arrivals = Arrivals()

    class Nested(Driver):
        def go_on(self) -> None:
            super().go_on()
            if self.went_on == 1:
                with arrivals:
                    self.arrived()

    driver = Nested(arrivals)
    with arrivals:
        driver.arrived()
    assert driver.went_on == 2
