"""What a run's own process tells the control service, and what it says itself while nobody answers."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenfold.runs import reporter
from tenfold_core import errors

if TYPE_CHECKING:
    import pytest


class ClientThatIsAway:
    """Refuses the first `times` reports and takes those that follow."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.taken = threading.Event()

    def report_run(self, run: str, report: dict[str, Any]) -> Any:
        if self.times > 0:
            self.times -= 1
            raise errors.UnavailableError(None, None, "nobody answers")
        self.taken.set()
        return SimpleNamespace(services=(), stop=None, heartbeat=60.0)

    def learn(self, services: Any) -> None:
        pass


def test_a_service_that_is_away_is_mentioned_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reporter, "_PAUSE_S", 0.001)
    client: Any = ClientThatIsAway(times=5)
    told = reporter.RunReporter(client, "run-1", {}, on_stop=lambda reason: None)

    told.start()
    told.put({"state": "RUNNING"})
    assert client.taken.wait(10)
    ended = told.finish(10)

    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert (ended, warnings) == (True, ["run run-1 continues without the control service: nobody answers"])
