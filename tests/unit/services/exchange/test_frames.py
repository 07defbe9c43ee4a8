"""What a peer answers to a run: read, or refused as malformed, whatever the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_link.wire.calls import RUN_GRAPH, RUN_GRAPH_ANSWER, STEP_DONE, UNKNOWN_NUMBER, LinkCall
from tenfold_services.exchange.frames import answer_frame, options_of, read_answer, run_frame
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult

PLAN = ExchangePlan("s", "g", fetches=("out",), answered=("edge",))


class Link:
    state: dict[Any, Any]

    def stage(self, buffer: Any) -> Any:
        return buffer

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Any = ()) -> None:
        raise AssertionError


def test_an_answer_comes_back() -> None:
    value = np.arange(3.0)
    arrived: dict[str, Any] = {}
    answer = answer_frame(RunGraphResult({"out": value}, answered=[(0, value + 1, False)]), PLAN.fetches, Link())

    result = read_answer(PLAN, answer, lambda key, tensor, is_dead: arrived.update({key: tensor}))

    assert result is not None
    assert result.values["out"].tolist() == [0, 1, 2]
    assert arrived["edge"].tolist() == [1, 2, 3]
    assert read_answer(PLAN, (RUN_GRAPH_ANSWER.pack(UNKNOWN_NUMBER, 0, 0, 0), []), arrived.update) is None


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"", "requires a buffer"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 2, 0, 0), "2 values for 1"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 0, 0, 0), "0 values for 1"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 1, 0, 0), "malformed tensor at byte"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 1, 0, 2) + b"\xff\xff", "Error parsing message"),
    ],
)
def test_a_malformed_answer_is_said_to_be_one(header: bytes, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        read_answer(PLAN, (header, []), lambda key, value, is_dead: None)


def test_a_key_that_the_plan_has_not_is_malformed() -> None:
    value = np.float32(1)
    header, buffers = answer_frame(RunGraphResult({"out": value}, answered=[(7, value, False)]), PLAN.fetches, Link())

    with pytest.raises(errors.InvalidArgumentError, match="RunGraph's answer: tuple index out of range"):
        read_answer(PLAN, (header, buffers), lambda key, value, is_dead: None)


@pytest.mark.parametrize("name", ["record_timeline", "record_costs", "record_partition_graphs"])
def test_what_a_run_is_to_record_comes_across_and_nothing_else(name: str) -> None:
    link = Link()
    link.state = {}
    method, header, _ = run_frame(link, PLAN, 7, {}, [], ExecOptions(**{name: True}))
    plain = run_frame(link, PLAN, 8, {}, [], DEFAULT_EXEC_OPTIONS, known=False)[1]

    assert method == LinkCall.RUN_GRAPH
    assert options_of(RUN_GRAPH.unpack_from(header)[3]) == ExecOptions(**{name: True})
    assert options_of(RUN_GRAPH.unpack_from(plain)[3]) is DEFAULT_EXEC_OPTIONS


def test_a_plan_is_said_the_first_time_and_to_who_does_not_know_it() -> None:
    link = Link()
    link.state = {}

    said = [
        len(run_frame(link, PLAN, step, {}, [], DEFAULT_EXEC_OPTIONS, known=known)[1]) > RUN_GRAPH.size
        for step, known in ((1, True), (2, True), (3, False))
    ]

    assert said == [True, False, True]


@pytest.mark.parametrize("writeable", [True, False])
def test_what_belongs_to_a_variable_is_copied_before_it_can_change(writeable: bool) -> None:
    value = np.zeros(100_000)
    value.flags.writeable = writeable
    staged: list[Any] = []
    link = Link()
    link.stage = lambda buffer: staged.append(buffer) or buffer  # type: ignore[method-assign, func-returns-value]

    answer_frame(RunGraphResult({"out": value}), PLAN.fetches, link)

    assert len(staged) == (0 if writeable else 1)
