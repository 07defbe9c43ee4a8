"""What a supervisor says of a signal that it gets."""

from __future__ import annotations

import signal
import threading

import pytest

from tenfold.runs import supervise


@pytest.mark.parametrize(("gone", "why"), [(False, "stopped by SIGTERM"), (True, "the control service ended")])
def test_a_signal_that_nobody_sent_is_not_named(gone: bool, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = threading.Event()
    monkeypatch.setattr(supervise, "parent_gone", parent)
    if gone:
        parent.set()

    assert supervise.why_stopped(signal.SIGTERM) == why
