"""Gathering what a run's programs say: several who ask get the same answers; who has never reported is not asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from tenfold_control_api.why.gather import Gatherer
from tenfold_protos.why_pb2 import TaskAnswer

RUN: Any = SimpleNamespace(
    id="run-1",
    submission={"jobs": {"worker": 2}},
    tasks=({"job": "worker", "index": 0, "state": "running"}, {"job": "worker", "index": 1, "state": "running"}),
)


class Progress:
    """Both programs report, or one."""

    def __init__(self, *indices: int) -> None:
        self.indices = indices

    async def of(self, run: str) -> list[Any]:
        return [SimpleNamespace(job="worker", index=index, updated=5.0) for index in self.indices]


def gatherer(*indices: int) -> Gatherer:
    return Gatherer(cast("Any", None), cast("Any", Progress(*indices)), lambda: 7.0)


async def until_open(made: Gatherer, askers: int) -> str:
    for _ in range(1000):
        question = made._questions._open.get("run-1")
        if question is not None and question.askers == askers:
            return question.id
        await asyncio.sleep(0)
    raise AssertionError("the question was not opened")


async def test_two_who_ask_share_the_answers() -> None:
    made = gatherer(0, 1)
    asking = [asyncio.create_task(made.of_run(RUN)) for _ in range(2)]
    asked = await until_open(made, 2)
    for index in range(2):
        assert made.order_for("run-1", "worker", index) == asked
        made.add("run-1", asked, "worker", index, TaskAnswer(pid=index + 1))
    for places in await asyncio.gather(*asking):
        assert [place.answer.pid for place in places if place.answer is not None] == [1, 2]
    assert not made._answered
    await made.stop()


async def test_a_program_that_has_never_reported_is_not_asked() -> None:
    made = gatherer(0)
    asking = asyncio.create_task(made.of_run(RUN))
    asked = await until_open(made, 1)
    assert made.order_for("run-1", "worker", 1) is None
    made.add("run-1", asked, "worker", 0, TaskAnswer())

    first, second = await asking
    assert (first.silent, second.silent) == (False, False)
    assert (second.answer, second.silence) == (None, "")
    await made.stop()
