"""The spans of steps: which part they are of, when they end, and with what; OpenTelemetry is a fake."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_core import telemetry
from tenfold_services import step_spans


class Spans:
    """Stands in for telemetry: writes down what begins and ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[Any] = []
        monkeypatch.setattr(telemetry, "begin", self.begin)
        monkeypatch.setattr(telemetry, "end", lambda opened, error: self.log.append(("end", opened, error)))
        monkeypatch.setattr(telemetry, "attempt", self.attempt)

    def begin(self, name: str, **attributes: Any) -> str:
        self.log.append(("begin", name, attributes))
        return "span"

    def attempt(self, name: str, work: Any, **attributes: Any) -> Any:
        self.log.append(("attempt", name, attributes))
        return work()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    return Spans(monkeypatch)


def test_a_part_is_named_by_task_session_and_step(spans: Spans) -> None:
    assert step_spans.part("t", "s", 255) == "span"  # type: ignore[comparison-overlap]
    assert spans.log == [("begin", "worker RunGraph", {"task": "t", "session": "s", "step": "ff"})]


def test_the_end_of_a_run_ends_its_span_first(spans: Spans) -> None:
    error: Any = ValueError("x")
    done = step_spans.ending("span", lambda *given: spans.log.append(("done", *given)))  # type: ignore[arg-type]
    done(None, error)
    assert spans.log == [("end", "span", error), ("done", None, error)]


def test_a_push_is_an_event_of_the_span() -> None:
    log: list[Any] = []

    class Span:
        def add_event(self, *given: Any) -> None:
            log.append(given)

    push = step_spans.noting(Span(), lambda *given: log.append(given))  # type: ignore[arg-type]
    push("t", 7, ["a", "b"])  # type: ignore[list-item]
    assert log == [("push", {"tenfold.task": "t", "tenfold.tensors": 2}), ("t", 7, ["a", "b"])]


STEP = ("attempt", "master RunStep", {"task": "t", "session": "s", "fetches": "f"})
PART = ("begin", "worker RunGraph", {"task": "t", "session": "s", "step": "9"})


@pytest.mark.parametrize(
    ("values", "part_id", "log"),
    [
        ([1], 0, [STEP]),
        ([1], 9, [STEP, PART, ("end", "span", None)]),
        ([], 9, [STEP, PART, ("end", "span", None)]),
        # it did not run
        (None, 9, [STEP, PART]),
    ],
)
def test_a_step_on_its_callers_thread_has_a_span_and_its_part_one_below(
    spans: Spans, values: Any, part_id: int, log: Any
) -> None:
    assert step_spans.on_callers_thread(lambda: values, "t", "s", "f", part_id) == values
    assert spans.log == log


def test_a_part_that_fails_ends_with_its_error(spans: Spans) -> None:
    error = KeyboardInterrupt()

    def run() -> None:
        raise error

    with pytest.raises(KeyboardInterrupt):
        step_spans.on_callers_thread(run, "t", "s", "f", 9)
    assert spans.log == [STEP, PART, ("end", "span", error)]
