"""Stop signals: told on a thread of their own, whichever thread is the first to see them."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.cli.signals import StopSignalError, exit_on_sigterm, stop_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def former_handler() -> Iterator[None]:
    former = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, former)


def test_the_first_signal_is_raised() -> None:
    with stop_signals() as stop, pytest.raises(StopSignalError, match="SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)

    assert stop.exit_code == 143


def test_it_is_told_also_where_the_watcher_was_woken_before_it_was_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    # as if the watcher had used up what the system's handler wrote, before Python's handler ran
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: -1)
    told = threading.Event()

    with stop_signals(lambda _: told.set()) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(PATIENCE)

    assert stop.received == signal.SIGTERM


def test_sigterm_ends_a_command_that_waits() -> None:
    exit_on_sigterm()

    with pytest.raises(SystemExit) as ended:
        os.kill(os.getpid(), signal.SIGTERM)

    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_sigterm_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    exit_on_sigterm()

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
