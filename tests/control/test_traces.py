"""Traces over REST against scripted masters and programs: a step of a session, and a run whose programs the test is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.trace_check import check_trace
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors, open_inference
from tenfold_protos import config_pb2, master_pb2
from tenfold_protos.trace_pb2 import ProgramTrace

from .conftest import ScriptedMaster, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    import httpx

WORKER = "/job:worker/replica:0/task:0"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
RUN = {"entrypoint": ["python"], "launcher": "external", "jobs": {"ps": 1, "worker": 2}}
REPORT = {"state": "RUNNING", "reason": "", "attempt": 1, "supervisor": {"host": "here", "pid": 1}}


class Traced(ScriptedMaster):
    """A master whose steps are one node long."""

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: config_pb2.RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], config_pb2.RunMetadata]:
        values, metadata = super().run_step(handle, feeds, fetches, targets, options, timeout)
        if options.trace_level == config_pb2.RunOptions.FULL_TRACE:
            device = metadata.step_stats.dev_stats.add(device=f"{WORKER}/device:CPU:0")
            device.node_stats.add(node_name="y", timeline_label="y = Neg(x)", all_end_rel_nanos=5000)
        return values, metadata


@pytest.fixture
def master() -> Traced:
    return Traced()


@pytest.fixture
async def api(sqlite: str, master: Traced) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(create_app(Settings(database=sqlite), lambda *_: master)) as client:
        yield client


# -- a session's step


@pytest.fixture
async def session(api: httpx.AsyncClient) -> str:
    """The path of a session on worker 0."""
    await declare(api, worker=1)
    await register(api, "worker", 0)
    return f"/v1/sessions/{(await api.post('/v1/sessions', json={'cluster': 'default'})).json()['name']}"


async def test_a_step_of_a_session(api: httpx.AsyncClient, session: str, master: Traced) -> None:
    step = {"inputs": [open_inference.to_json("x:0", np.asarray([1.5]))], "outputs": ["y:0"], "targets": ["train"]}

    answer = await api.post(f"{session}:trace", json=step)

    assert answer.status_code == 200, answer.text
    found = answer.json()
    check_trace(found)
    assert master.steps == [(("x:0",), ("y:0",), ("train",))]
    assert [task["task"] for task in found["metadata"]["tasks"]] == [WORKER, "control service"]
    assert [task["clock"] for task in found["metadata"]["tasks"]] == ["127.0.0.1", "control service"]
    (traced,) = found["metadata"]["steps"]
    assert (traced["fetches"], traced["nodes"]) == (["y:0", "train"], 1)


async def test_a_step_by_protobuf_that_fails(api: httpx.AsyncClient, session: str, master: Traced) -> None:
    def fail(*_: object) -> list[np.ndarray]:
        raise errors.InvalidArgumentError(None, None, "it does not fit")

    master.step = fail
    request = master_pb2.RunStepRequest(fetch=["y:0"], store_errors_in_response_body=True)

    answer = await api.post(f"{session}:trace", content=request.SerializeToString(), headers=PROTOBUF)

    assert answer.status_code == 400
    assert answer.json()["detail"] == "it does not fit"


async def test_what_is_no_step(api: httpx.AsyncClient, session: str) -> None:
    answer = await api.post(f"{session}:trace", json={"steps": 1})

    assert answer.json()["type"] == "urn:tenfold:problem:invalid-step"


# -- a run


@pytest.fixture
async def run(api: httpx.AsyncClient) -> str:
    """The path of a run whose programs are started by others."""
    path = f"/v1/runs/{(await api.post('/v1/runs', json=RUN)).json()['name']}"
    await api.post(f"{path}:report", json=REPORT)
    return path


async def ordered(api: httpx.AsyncClient, run: str, task: str) -> dict[str, Any]:
    """What the program of `task` is told to trace, once it is told to."""
    while True:
        told = (await api.post(f"{run}/tasks/{task}:report", json={})).json()["trace"]
        if told is not None:
            found: dict[str, Any] = told
            return found


def program(begin: int) -> bytes:
    trace = ProgramTrace()
    trace.step.add(begin_nanos=begin, end_nanos=begin + 1000, fetch=["loss:0"])
    return trace.SerializeToString()


async def test_each_program_is_asked_once_and_the_file_can_be_had_again(api: httpx.AsyncClient, run: str) -> None:
    asking = asyncio.create_task(api.post(f"{run}:trace?wait=30s", json={"steps": 3}))
    for index in range(2):
        order = await ordered(api, run, f"worker/{index}")
        assert order["steps"] == 3
        path = f"{run}/traces/{order['id']}/tasks/worker/{index}"
        assert (await api.put(path, content=program(1000), headers=PROTOBUF)).status_code == 204
    answer = await asking

    check_trace(answer.json())
    assert [step["task"][-1] for step in answer.json()["metadata"]["steps"]] == ["0", "1"]
    assert (await api.get(answer.headers["Location"])).json() == answer.json()
    assert (await api.post(f"{run}/tasks/worker/0:report", json={})).json()["trace"] is None
    again = await api.put(path, content=program(1000), headers=PROTOBUF)
    assert again.json()["type"] == "urn:tenfold:problem:no-such-trace"


async def test_nobody_traced_anything(api: httpx.AsyncClient, run: str) -> None:
    answer = await api.post(f"{run}:trace?wait=50ms")

    assert answer.status_code == 504
    problem = answer.json()
    assert problem["type"] == "urn:tenfold:problem:nothing-traced"
    assert problem["missing_tasks"] == ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"]
    assert "worker/0: it did not report in time" in problem["detail"]


async def test_the_end_of_the_run_ends_the_wait(api: httpx.AsyncClient, run: str) -> None:
    asking = asyncio.create_task(api.post(f"{run}:trace?wait=60s", json={"tasks": ["worker/0"]}))
    await ordered(api, run, "worker/0")

    await api.post(f"{run}:report", json={**REPORT, "state": "FAILED"})

    assert "worker/0: the run has ended: it is FAILED" in (await asking).json()["detail"]
    assert (await api.post(f"{run}:trace")).json()["type"] == "urn:tenfold:problem:run-ended"


async def test_what_is_refused(api: httpx.AsyncClient, run: str) -> None:
    asking = asyncio.create_task(api.post(f"{run}:trace?wait=60s"))
    order = await ordered(api, run, "worker/0")
    path = f"{run}/traces/{order['id']}"

    answers = {
        "trace-active": await api.post(f"{run}:trace"),
        "no-such-task": await api.post(f"{run}:trace", json={"tasks": ["worker/2"]}),
        "invalid-request": await api.post(f"{run}:trace", json={"steps": 0}),
        "no-such-trace": await api.get(path),
        "malformed-message": await api.put(f"{path}/tasks/worker/0", content=b"\xff", headers=PROTOBUF),
        "unsupported-media-type": await api.put(f"{path}/tasks/worker/0", json={}),
        "no-such-run": await api.post("/v1/runs/none:trace"),
    }

    assert {kind: answer.json()["type"].rpartition(":")[2] for kind, answer in answers.items()} == {
        kind: kind for kind in answers
    }
    await api.post(f"{run}:report", json={**REPORT, "state": "FAILED"})
    await asking


async def test_an_upload_has_a_bound(sqlite: str, master: Traced) -> None:
    settings = Settings(database=sqlite, max_program_trace=5000)
    async with running_app(create_app(settings, lambda *_: master)) as api:
        answer = await api.put("/v1/runs/r/traces/t/tasks/worker/0", content=bytes(6000), headers=PROTOBUF)

    assert answer.json()["type"] == "urn:tenfold:problem:body-too-large"
