"""Files that peers still map stay counted until they let go. Leases of the system are played."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Any

import pytest

from tenfold_link.memory import remains as remains_module
from tenfold_link.memory.remains import Remains


class System:
    """Grants leases on no file in `held`; `error` is what it says of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: set[int] = set()
        self.error = errno.EAGAIN
        self.closed: list[int] = []
        self.leases: list[tuple[int, int]] = []
        self.given: list[int] = []
        monkeypatch.setattr(remains_module.fcntl, "fcntl", self.fcntl)
        monkeypatch.setattr(remains_module.os, "close", self.closed.append)

    def fcntl(self, fd: int, command: int, argument: int) -> int:
        assert command == fcntl.F_SETLEASE
        if argument == fcntl.F_WRLCK and fd in self.held:
            raise OSError(self.error, os.strerror(self.error))
        self.leases.append((fd, argument))
        return 0


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    return System(monkeypatch)


def test_what_nobody_holds_is_given_back_at_once(system: System) -> None:
    remains = Remains()
    remains.leave(5, 100, system.given.append)
    assert (system.given, system.closed, len(remains)) == ([100], [5], 0)
    assert system.leases == [(5, fcntl.F_WRLCK), (5, fcntl.F_UNLCK)], "the lease is given back"


def test_nothing_left_is_not_asked_about(system: System) -> None:
    system.held.add(5)
    Remains().leave(5, 0, system.given.append)
    assert (system.given, system.closed) == ([0], [5])


def test_what_a_peer_holds_stays_until_it_lets_go(system: System) -> None:
    remains = Remains()
    system.held |= {5, 6}
    remains.leave(5, 100, system.given.append)
    remains.leave(6, 200, system.given.append)
    remains.sweep()
    assert (system.given, system.closed, len(remains)) == ([], [], 2)
    system.held.remove(5)
    remains.sweep()
    assert (system.given, system.closed, len(remains)) == ([100], [5], 1)
    system.held.clear()
    remains.sweep()
    remains.sweep()
    assert (system.given, system.closed, len(remains)) == ([100, 200], [5, 6], 0)


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EACCES])
def test_where_the_system_grants_none_it_counts_as_free(system: System, error: int) -> None:
    system.held.add(5)
    system.error = error
    remains: Any = Remains()
    remains.leave(5, 100, system.given.append)
    assert (system.given, system.closed) == ([100], [5])
