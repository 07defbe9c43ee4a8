"""A result that comes later: the maker and the step exclude each other, and the listener hears of it once."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_core import errors
from tenfold_kernels.resources.waiting import Waiting


class Heard:
    """Listens, and counts what its Waiting calls besides."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.results: list[tuple[Any, errors.OpError | None]] = []
        self.waiting = Waiting(lambda: self.calls.append("left"))
        self.waiting.give_back = lambda: self.calls.append("given back")

    def listen(self) -> Heard:
        self.waiting.listen(lambda outputs, error: self.results.append((outputs, error)))
        return self


ERROR = errors.OutOfRangeError(None, None, "over")


@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_the_listener_hears_of_outputs_once(early: bool) -> None:
    heard = Heard()
    if early:
        heard.listen()
    assert heard.waiting.is_open
    assert heard.waiting.complete(7) is True
    assert not heard.waiting.is_open
    if not early:
        heard.listen()

    assert heard.results == [(7, None)]
    assert heard.waiting.complete(8) is False
    assert heard.waiting.fail(ERROR) is False
    heard.waiting.deliver(9)
    assert heard.results == [(7, None)]
    assert heard.calls == []


@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_the_listener_hears_of_an_error_once(early: bool) -> None:
    heard = Heard()
    if early:
        heard.listen()
    assert heard.waiting.fail(ERROR) is True
    if not early:
        heard.listen()

    assert heard.results == [(None, ERROR)]
    assert heard.waiting.fail(ERROR) is False
    assert heard.waiting.complete(8) is False
    assert heard.results == [(None, ERROR)]


def test_outputs_are_held_for_one_listener_only() -> None:
    """They may be large, and the Waiting outlives them."""
    heard = Heard()
    heard.waiting.complete(7)
    heard.listen()
    heard.listen()
    assert heard.results == [(7, None), (None, None)]


def test_what_has_a_listener_holds_no_outputs() -> None:
    heard = Heard().listen()
    heard.waiting.complete(7)
    heard.listen()
    assert heard.results == [(7, None), (None, None)]


def test_a_claim_is_granted_once() -> None:
    waiting = Heard().waiting
    assert waiting.claim() is True
    assert not waiting.is_open
    assert waiting.claim() is False


def test_a_step_that_gives_up_first_leaves_the_line_once_and_hears_nothing() -> None:
    heard = Heard().listen()
    heard.waiting.cancel()
    heard.waiting.cancel()

    assert not heard.waiting.is_open
    assert heard.calls == ["left"]
    assert heard.waiting.claim() is False
    assert heard.waiting.complete(7) is False
    heard.waiting.deliver(7)
    assert heard.results == []


@pytest.mark.parametrize("is_delivered", [True, False], ids=["delivered", "claimed"])
def test_a_step_that_ends_badly_gives_back_what_it_was_given(is_delivered: bool) -> None:
    heard = Heard()
    heard.waiting.claim()
    if is_delivered:
        heard.waiting.deliver(7)
    heard.waiting.cancel()
    heard.waiting.cancel()

    assert heard.calls == ["given back"]
    heard.waiting.deliver(8)
    assert heard.listen().results == []


def test_what_a_step_may_keep_is_not_given_back() -> None:
    heard = Heard()
    heard.waiting.give_back = None
    heard.waiting.complete(7)
    heard.waiting.cancel()
    assert heard.calls == []


def test_without_a_line_to_leave_there_is_nothing_to_call() -> None:
    waiting = Waiting()
    assert (waiting.lack, waiting.give_back) == (None, None)
    waiting.cancel()
    assert not waiting.is_open
