"""Which failures of a step are explained by a task that has restarted, and which are left as they are."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_core import errors
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_services.master.restarts import explain_restart

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def device(task: str, incarnation: int) -> DeviceAttributes:
    return DeviceAttributes(name=f"{task}/device:CPU:0", device_type="CPU", incarnation=incarnation)


DEVICES = DeviceSet([device(PS, 1), device(WORKER, 2)], f"{WORKER}/device:CPU:0")


class FakeWorkers:
    """Tasks by what they answer when they are asked for their devices: an incarnation, an error, or nothing (None)."""

    def __init__(self, answers: dict[str, int | errors.OpError | None]) -> None:
        self.answers, self.asked = answers, 0

    async def devices(self, task: str, *, refresh: bool, timeout: float) -> list[DeviceAttributes]:  # noqa: ASYNC109 - as the real one has it
        assert refresh
        self.asked += 1
        answer = self.answers[task]
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, errors.OpError):
            raise answer
        return [device(task, cast("int", answer))]


async def explain(error: errors.OpError, answers: dict[str, Any]) -> tuple[errors.OpError, FakeWorkers]:
    workers = FakeWorkers(answers)
    return await explain_restart(error, list(answers), DEVICES, cast("Any", workers), 0.01), workers


@pytest.mark.parametrize("kind", [errors.AbortedError, errors.UnavailableError])
async def test_a_restarted_task_is_named_and_the_first_error_kept(kind: type[errors.OpError]) -> None:
    found, _ = await explain(kind(None, None, "no such graph"), {PS: 77, WORKER: 2})

    assert isinstance(found, errors.AbortedError)
    assert f"{PS} has restarted" in found.message
    assert WORKER not in found.message
    assert "open a new session" in found.message
    assert found.message.endswith("no such graph")


async def test_other_errors_ask_no_task() -> None:
    error = errors.InvalidArgumentError(None, None, "wrong")
    found, workers = await explain(error, {PS: 77})

    assert found is error
    assert workers.asked == 0


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({}, id="no tasks"),
        pytest.param({PS: 1, WORKER: 2}, id="the same lives"),
        pytest.param({PS: errors.UnavailableError(None, None, "down")}, id="down"),
        pytest.param({PS: None}, id="no answer in time"),
    ],
)
async def test_without_another_life_the_error_stays(answers: dict[str, Any]) -> None:
    error = errors.UnavailableError(None, None, "lost")

    assert (await explain(error, answers))[0] is error
