"""What the system says of this process."""

from __future__ import annotations

import builtins
import threading
from typing import Any

import psutil
import pytest

from tenfold_core.process_figures import process_figures


def test_they_are_those_of_this_process() -> None:
    process = psutil.Process()
    before = process.memory_info().rss

    found = process_figures()

    assert found["resident_bytes"] == pytest.approx(before, rel=0.1)
    assert 0 < found["shared_bytes"] < found["resident_bytes"]
    assert found["threads"] == process.num_threads()
    assert 0 < found["cpu_seconds"] <= sum(process.cpu_times()[:2]) + 0.1
    assert found["minor_faults"] > 0


def test_without_proc_there_is_what_the_library_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: Any, **__: Any) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr(builtins, "open", refuse)

    found = process_figures()

    assert found.keys() == {"cpu_seconds", "minor_faults", "threads"}
    assert found["threads"] == threading.active_count()
