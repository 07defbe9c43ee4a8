"""Programs started by hand over REST: several of them are one run, and how it ends when they end, fail or go silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.hand_clock import HandClock
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, running_app
from .test_runs import ScriptedSupervisors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from fastapi import FastAPI

KEY = "0123456789abcdef"
JOBS = {"ps": 1, "worker": 2}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def app(clock: HandClock, tmp_path: Path) -> AsyncIterator[FastAPI]:
    settings = Settings(database=str(tmp_path / "c.db"), heartbeat=5.0, lease_ttl=10.0)
    app = create_app(settings, Masters(), supervisors=lambda *_: ScriptedSupervisors(), clock=clock)
    async with running_app(app):
        yield app


@pytest.fixture
async def api(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


def process(pid: int) -> dict[str, Any]:
    return {"host": "here", "pid": pid}


async def joining(api: httpx.AsyncClient, job: str, index: int | None, pid: int, **more: Any) -> httpx.Response:
    jobs = JOBS if job in JOBS else {}
    body = {"key": KEY, "job": job, "index": index, "jobs": jobs, "entrypoint": ["python", "t.py"]}
    return await api.post("/v1/runs:join", json={**body, "process": process(pid), **more})


async def join(api: httpx.AsyncClient, job: str, index: int | None, pid: int, **more: Any) -> dict[str, Any]:
    answer = await joining(api, job, index, pid, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def tell(api: httpx.AsyncClient, place: dict[str, Any], pid: int, **report: Any) -> httpx.Response:
    path = f"/v1/runs/{place['run']}/tasks/{place['job']}/{place['index']}:report"
    return await api.post(path, json={"process": process(pid), **report})


async def end(api: httpx.AsyncClient, place: dict[str, Any], pid: int, state: str = "succeeded", **more: Any) -> None:
    answer = await tell(api, place, pid, ending={"state": state, **more})
    assert answer.status_code == 200, answer.text


async def run_of(api: httpx.AsyncClient, place: dict[str, Any]) -> dict[str, Any]:
    return (await api.get(f"/v1/runs/{place['run']}")).json()


async def test_programs_of_one_cluster_are_one_run(api: httpx.AsyncClient) -> None:
    chief = await join(api, "worker", 0, 10)
    server = await join(api, "ps", 0, 11)
    other = await join(api, "worker", 1, 12)
    again = await join(api, "worker", 1, 12)
    point = {"time": 5.0, "step": 7, "values": {"loss": 0.5}}
    rates = {"steps_per_second": 20.0, "examples_per_second": 640.0}
    await tell(api, chief, 10, steps=9, global_step=7, points=[point], **rates)
    await tell(api, other, 12, steps=4, global_step=6, **rates)
    going = await run_of(api, chief)
    await end(api, chief, 10)
    half = await run_of(api, chief)
    await end(api, other, 12, exit_code=0)
    ended = await run_of(api, chief)
    late = await tell(api, server, 11)

    assert {each["run"] for each in (chief, server, other, again)} == {chief["run"]}
    assert (going["launcher"], going["state"], going["jobs"]) == ("external", "RUNNING", JOBS)
    assert going["progress"]["global_step"] == 7
    assert going["progress"]["examples_per_second"] == 1280.0
    assert (half["state"], ended["state"], ended["reason"]) == ("RUNNING", "SUCCEEDED", "its programs have ended")
    assert [each["state"] for each in ended["tasks"]] == ["stopped", "succeeded", "succeeded"]
    # a parameter server goes on serving: it joins the next run
    assert (late.status_code, late.json()["type"]) == (410, "urn:tenfold:problem:run-ended")


async def test_a_program_that_only_serves_begins_no_run(api: httpx.AsyncClient) -> None:
    alone = await joining(api, "ps", 0, 11, create=False)
    worker = await join(api, "worker", 0, 10)
    served = await join(api, "ps", 0, 11, create=False)

    assert (alone.status_code, alone.json()["type"]) == (404, "urn:tenfold:problem:no-run-to-join")
    assert served["run"] == worker["run"]


async def test_the_next_start_is_the_next_run(api: httpx.AsyncClient) -> None:
    first = await join(api, "client", None, 10)
    await end(api, first, 10)
    second = await join(api, "client", None, 10)
    other = await join(api, "client", None, 11, key="f" * 16)
    listed = (await api.get("/v1/runs")).json()["runs"]

    assert len({first["run"], second["run"], other["run"]}) == 3
    assert {each["submission_id"] for each in listed} == {f"joined:{KEY}:1", f"joined:{KEY}:2", f"joined:{'f' * 16}:1"}


async def test_clients_take_the_next_free_place(api: httpx.AsyncClient) -> None:
    places = [await join(api, "client", None, pid) for pid in (10, 11, 10, 12)]
    await end(api, places[0], 10)
    fourth = await join(api, "client", None, 13)
    run = await run_of(api, fourth)

    assert [each["index"] for each in (*places, fourth)] == [0, 1, 0, 2, 0]
    assert (run["jobs"], run["tasks"][0]["starts"]) == ({"client": 3}, 2)


async def test_a_failure_names_node_and_task(api: httpx.AsyncClient) -> None:
    await join(api, "ps", 0, 11)
    worker = await join(api, "worker", 0, 10)
    error = {"type": "InvalidArgumentError", "message": "bad loss\nmore", "node": "checked", "task": "/job:ps/task:0"}
    await end(api, worker, 10, "failed", exit_code=1, error=error)
    run = await run_of(api, worker)

    expected = "worker/0 failed: InvalidArgumentError, node checked, task /job:ps/task:0: bad loss"
    assert (run["state"], run["reason"]) == ("FAILED", expected)
    assert run["tasks"][1]["error"] == error


async def test_a_task_that_is_started_again_goes_on_in_its_run(api: httpx.AsyncClient) -> None:
    await join(api, "worker", 1, 12)
    first = await join(api, "worker", 0, 10)
    await end(api, first, 10, "failed", exit_code=1)
    second = await join(api, "worker", 0, 20)
    stale = await tell(api, first, 10)
    run = await run_of(api, second)

    assert (second["run"], run["state"], run["tasks"][1]["starts"]) == (first["run"], "RUNNING", 2)
    assert (stale.status_code, stale.json()["type"]) == (410, "urn:tenfold:problem:run-left")


async def test_a_program_that_goes_silent_has_failed(app: FastAPI, api: httpx.AsyncClient, clock: HandClock) -> None:
    place = await join(api, "worker", 0, 10)
    other = await join(api, "worker", 1, 12)
    # in steps: time in which the service itself stood still would not count
    for _ in range(3):
        clock.now += 4.0
        await tell(api, other, 12)
        await app.state.control.runs.sweep()
    run = await run_of(api, place)
    await end(api, other, 12)
    ended = await run_of(api, place)

    assert [each["state"] for each in run["tasks"]] == ["waiting", "failed", "running"]
    assert ended["state"] == "FAILED"
    assert ended["reason"] == "worker/0 failed: nothing was heard of it for 12 s: it ended without a word"


async def test_time_in_which_the_service_stood_still_does_not_count(
    app: FastAPI, api: httpx.AsyncClient, clock: HandClock
) -> None:
    place = await join(api, "worker", 0, 10)
    await app.state.control.runs.sweep()
    clock.now += 60.0
    await app.state.control.runs.sweep()

    assert (await run_of(api, place))["state"] == "RUNNING"


async def test_a_program_is_told_to_stop(api: httpx.AsyncClient) -> None:
    place = await join(api, "client", None, 10)
    before = (await tell(api, place, 10)).json()
    await api.post(f"/v1/runs/{place['run']}:stop", json={"reason": "enough"})
    told = (await tell(api, place, 10)).json()
    await end(api, place, 10, "stopped")
    run = await run_of(api, place)

    assert (before["stop"], told["stop"]) == (None, "enough")
    assert (run["state"], run["reason"]) == ("STOPPED", "enough")


async def test_what_does_not_belong_is_refused(api: httpx.AsyncClient) -> None:
    place = await join(api, "worker", 0, 10)
    outside = await joining(api, "worker", 7, 13)
    nobody = await api.post(f"/v1/runs/{place['run']}/tasks/worker/0:report", json={"steps": 1})
    supervised = {"state": "RUNNING", "reason": "?", "supervisor": process(10)}
    taken = await api.post(f"/v1/runs/{place['run']}:report", json=supervised)
    key = await joining(api, "worker", 0, 10, key="not a key")

    assert (outside.status_code, "no task worker/7" in outside.json()["detail"]) == (404, True)
    assert (nobody.status_code, "process" in nobody.json()["detail"]) == (400, True)
    assert (taken.status_code, "no supervisor" in taken.json()["detail"]) == (400, True)
    assert key.status_code in (400, 422)
