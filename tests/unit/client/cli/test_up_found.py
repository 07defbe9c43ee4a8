"""What `tenfold up` says of last time: which runs were running then, and what became of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from support.run_answers import a_run
from tenfold.cli.held_database import Holder
from tenfold.cli.up_found import found, told, were_running

if TYPE_CHECKING:
    from tenfold.control.run_answers import Run

#: When the last one began, and this one.
SINCE, BEGAN = 1000.0, 2000.0


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def run(name: str, state: str, ended: float | None, stop: str | None = None, **others: Any) -> Run:
    end = None if ended is None else at(ended)
    return a_run(state, **{"name": name, "created": at(500), "ended": end, "stop": stop, **others})


def test_which_runs_were_running() -> None:
    cut = [
        run("stopped-with-it", "STOPPED", 1900, "the control service ended"),
        run("its-service-was-killed", "STOPPED", 1900, reason="the control service ended"),
        run("found-dead", "FAILED", 2001),
        run("goes-on", "RUNNING", None, launcher="external"),
    ]
    others = [
        run("succeeded", "SUCCEEDED", 1900),
        run("stopped-by-hand", "STOPPED", 1900, "stopped by request"),
        run("stopped-with-an-earlier-one", "STOPPED", 900, "the control service ended"),
        run("new", "FAILED", 2002, created=at(2001)),
    ]

    assert were_running([*others, *cut], SINCE, BEGAN) == cut


def test_one_run() -> None:
    assert told("/x", 1, [run("a", "STOPPED", 1)], killed=False) == [
        "Found 1 run in /x; 1 was running when the last `tenfold up` ended:",
        "  a is STOPPED.",
    ]


def test_many_runs() -> None:
    states = ["FAILED", "RUNNING", "PENDING", "STOPPED", "STOPPED", "STOPPED", "STOPPED"]
    launchers = ["external" if state == "RUNNING" else "local" for state in states]
    cut = [run(f"r{at}", states[at], None, launcher=launchers[at]) for at in range(7)]

    assert told("/x", 1200, cut, killed=True) == [
        "Found 1,200 runs in /x; 7 were running when the last `tenfold up` was killed:",
        "  r0 is FAILED, r1 goes on, r2 starts again, r3 is STOPPED, r4 is STOPPED, and 2 more.",
    ]


def test_none_was_running() -> None:
    assert told("/x", 2, [], killed=False) == [
        "Found 2 runs in /x; none was running when the last `tenfold up` ended."
    ]


class Service:
    """A control service that has some runs."""

    def __init__(self, *runs: Run) -> None:
        self.all = runs

    def service(self) -> Any:
        return type("Service", (), {"runs_found": len(self.all)})

    def runs(self, *, states: list[str], **order: Any) -> list[Run]:
        return [each for each in self.all if each.state in states]


def test_the_service_is_asked() -> None:
    service = cast("Any", Service(run("a", "STOPPED", 1900, "the control service ended"), run("b", "SUCCEEDED", 1)))

    assert found(service, "/x", Holder(1, SINCE, "http://h", ended=True), BEGAN)[1] == "  a is STOPPED."
    assert found(cast("Any", Service()), "/x", None, BEGAN) == ["Runs are kept in /x."]
