"""Traces of runs: who is waited for, what becomes of those who do not answer, what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from support.hand_clock import HandClock
from tenfold_control_api.problems import ApiError
from tenfold_control_api.traces.trace_table import TraceTable
from tenfold_protos.trace_pb2 import ProgramTrace, TracedStep

TASKS = [("worker", 0), ("worker", 1)]
STEP = ProgramTrace(step=[TracedStep(begin_nanos=1)])


class Table(TraceTable):
    def __init__(self, **limits: Any) -> None:
        self.clock = HandClock()
        self.ends: list[str] = []
        super().__init__(self.clock, **{"limit": 2, "max_bytes": 100, "kept_bytes": 10, **limits})

    def of(self, run: str, steps: int = 1) -> Any:
        return self.begin(run, steps, 10.0, TASKS, lambda: self.ends.append(run))


def kind_of(error: pytest.ExceptionInfo[ApiError]) -> str:
    return error.value.kind


def test_a_trace_is_over_once_each_program_was_heard() -> None:
    table = Table()
    trace = table.of("r", steps=3)

    order = table.order_for("r", "worker", 0)
    assert order is not None
    assert (order.id, order.steps, order.seconds, order.max_bytes) == (trace.id, 3, 9.0, 100)
    table.add("r", trace.id, "worker", 0, STEP)
    assert table.order_for("r", "worker", 0) is None
    assert table.ends == []
    assert table.order_for("r", "worker", 1) is not None
    table.add("r", trace.id, "worker", 1, ProgramTrace())

    assert table.ends == ["r"]
    assert list(trace.came) == [("worker", 0)]
    assert trace.missing == {("worker", 1): "it ran no step within 9.0 s"}


def test_who_was_not_heard_in_time_is_missing() -> None:
    table = Table()
    trace = table.of("r")
    table.order_for("r", "worker", 1)

    trace.give_up()

    assert trace.missing == {
        ("worker", 0): "it did not report in time",
        ("worker", 1): "it was asked, and did not answer in time",
    }
    assert table.ends == ["r"]


def test_an_end_of_the_run_ends_the_trace() -> None:
    table = Table()
    trace = table.of("r")

    table.end_run("r", "the run has ended: it is FAILED")

    assert set(trace.missing.values()) == {"the run has ended: it is FAILED"}
    assert table.ends == ["r"]


def test_others_are_asked_for_nothing() -> None:
    table = Table()
    table.of("r")

    assert table.order_for("r", "ps", 0) is None
    assert table.order_for("other", "worker", 0) is None


def test_a_program_that_reports_at_the_last_moment_is_not_asked() -> None:
    table = Table()
    table.of("r")
    table.clock.now += 9.5

    assert table.order_for("r", "worker", 0) is None


def test_a_run_has_one_trace_at_a_time_and_a_service_a_few() -> None:
    table = Table()
    first = table.of("a")

    with pytest.raises(ApiError) as again:
        table.of("a")
    table.of("b")
    with pytest.raises(ApiError) as third:
        table.of("c")
    table.end(first)

    assert (kind_of(again), kind_of(third)) == ("trace-active", "too-many-traces")
    table.of("c")


def test_what_comes_for_no_trace_is_refused() -> None:
    table = Table()
    trace = table.of("r")
    table.add("r", trace.id, "worker", 0, STEP)

    for run, name, index in (("r", "trace-0", 1), ("other", trace.id, 1), ("r", trace.id, 0), ("r", trace.id, 7)):
        with pytest.raises(ApiError) as refused:
            table.add(run, name, "worker", index, STEP)
        assert kind_of(refused) == "no-such-trace"


def test_files_are_kept_until_newer_ones_need_the_memory() -> None:
    table = Table()
    first, second = table.of("a"), table.of("b")
    table.keep(first, b"1234567")
    assert table.get("a", first.id) == b"1234567"

    table.keep(second, b"12345678901")

    assert table.get("b", second.id) == b"12345678901"
    for run, name in (("a", first.id), ("a", second.id)):
        with pytest.raises(ApiError) as gone:
            table.get(run, name)
        assert kind_of(gone) == "no-such-trace"


@pytest.mark.parametrize(("left", "asked"), [(2.0, True), (1.5, True), (1.0, False), (0.5, False)])
def test_a_second_is_left_for_the_answer(left: float, asked: bool) -> None:
    table = Table()
    table.of("r")
    table.clock.now += 10.0 - left

    order = table.order_for("r", "worker", 0)

    assert (order is not None) is asked
    assert order is None or order.seconds == left - 1.0


def test_who_asks_twice_is_told_the_time_that_is_left_and_blamed_for_the_time_that_it_had() -> None:
    table = Table()
    trace = table.of("r")
    table.order_for("r", "worker", 0)
    table.clock.now += 4.0

    again = table.order_for("r", "worker", 0)
    table.add("r", trace.id, "worker", 0, ProgramTrace())

    assert again is not None
    assert again.seconds == 5.0
    assert trace.missing == {("worker", 0): "it ran no step within 9.0 s"}


def test_what_comes_after_it_was_given_up_is_refused_and_ends_nothing_twice() -> None:
    table = Table()
    trace = table.of("r")
    trace.give_up()

    with pytest.raises(ApiError) as refused:
        table.add("r", trace.id, "worker", 0, STEP)
    assert table.order_for("r", "worker", 0) is None
    trace.add(("worker", 0), STEP)

    assert kind_of(refused) == "no-such-trace"
    assert (trace.came, table.ends) == ({}, ["r"])


def test_files_that_just_fit_are_all_kept() -> None:
    table = Table(kept_bytes=10)
    traces = [table.begin(f"r{at}", 1, 10.0, TASKS, lambda: None) for at in range(2)]
    for trace in traces:
        table.keep(trace, b"12345")

    assert [table.get(trace.run, trace.id) for trace in traces] == [b"12345", b"12345"]


def test_an_older_trace_does_not_end_the_one_that_followed_it() -> None:
    table = Table()
    first = table.of("r")
    table.end(first)
    second = table.of("r")

    table.end(first)
    table.end_run("other", "it has ended")

    with pytest.raises(ApiError, match=f"run r is being traced: {second.id}") as again:
        table.of("r")
    assert kind_of(again) == "trace-active"
