"""Runs go on once all tensors of a frame are handed out. No event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from tenfold_services.worker.event_loop_waiter import Arrivals

if TYPE_CHECKING:
    from tenfold_services.worker.event_loop_waiter import EventLoopWaiter


class Driver:
    """Notes how often it went on."""

    def __init__(self, arrivals: Arrivals) -> None:
        self.arrivals, self.went_on = arrivals, 0

    def arrived(self) -> None:
        if not self.arrivals.hold(cast("EventLoopWaiter", self)):
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
