"""The arena of variables: one for a process, none after a fork until it makes its own, and its size."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tenfold_core import memory_limits
from tenfold_link.memory import shared_variables


class FakeArena:
    def __init__(self, size: int, keep: int, name: str) -> None:
        self.made = (size, keep, name)

    def allocate(self, nbytes: int) -> Any:
        return ("block", nbytes)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_variables, "_arena", None)
    monkeypatch.setattr(shared_variables, "_pid", 0)
    monkeypatch.setattr(shared_variables, "Arena", FakeArena)
    monkeypatch.setattr(memory_limits, "memory", lambda: 1000)


def test_there_is_one_and_it_is_half_of_the_memory() -> None:
    made: Any = shared_variables.arena()
    assert made.made == (500, 256 << 20, "tenfold-variables")
    assert shared_variables.arena() is made
    assert shared_variables.allocate(7) == ("block", 7)


def test_a_child_makes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = shared_variables.arena()
    monkeypatch.setattr(os, "getpid", lambda: -5)
    assert shared_variables.arena() is not made
    assert shared_variables._pid == -5


@pytest.mark.parametrize("why", ["no memory", "no arena"])
def test_where_there_is_none(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    made: list[Any] = []

    def fails(*arguments: Any, **more: Any) -> Any:
        made.append(arguments)
        raise OSError

    monkeypatch.setattr(shared_variables, "Arena", fails)
    if why == "no memory":
        monkeypatch.setattr(memory_limits, "memory", lambda: 0)
    assert shared_variables.arena() is None
    assert shared_variables.allocate(7) is None
    assert len(made) == (why == "no arena"), "and it is not tried again"


def test_the_largest_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert shared_variables.half_of_machine() == 20_480

    def fails(name: str) -> int:
        raise ValueError

    monkeypatch.setattr(os, "sysconf", fails)
    assert shared_variables.half_of_machine() == 1 << 40
