"""`stop_with_workers` of a cluster over REST: declared, changed, kept, handed out with the spec; old databases too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, declare, register, running_app

if TYPE_CHECKING:
    import httpx

JOBS = {"ps": 1, "worker": 1}
PATH = "/v1/clusters/default"


async def test_it_is_false_until_it_is_declared(api: httpx.AsyncClient) -> None:
    created = (await api.put(PATH, json={"jobs": JOBS})).json()
    wanted = (await api.put(PATH, json={"jobs": JOBS, "stop_with_workers": True})).json()
    silent = (await api.put(PATH, json={"jobs": JOBS})).json()
    grown = (await api.put(PATH, json={"jobs": {"ps": 1, "worker": 2}})).json()
    taken_back = (await api.put(PATH, json={"jobs": {"ps": 1, "worker": 2}, "stop_with_workers": False})).json()

    told = [(each["version"], each["stop_with_workers"]) for each in (created, wanted, silent, grown, taken_back)]
    assert told == [(1, False), (2, True), (2, True), (3, True), (4, False)]


async def test_the_spec_tells_it_to_who_waits(api: httpx.AsyncClient) -> None:
    await declare(api, **JOBS)
    waits = asyncio.create_task(api.get(f"{PATH}/spec", params={"after": 1, "wait": "20s"}))

    await api.put(PATH, json={"jobs": JOBS, "stop_with_workers": True})
    spec = (await waits).json()

    assert (spec["version"], spec["stop_with_workers"], spec["changed"]) == (2, True, True)


async def test_what_is_no_boolean_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.put(PATH, json={"jobs": JOBS, "stop_with_workers": "yes"})

    assert answer.status_code == 400
    assert "stop_with_workers" in answer.text


async def test_finished_tasks_are_finished_and_nobody_is_missing(api: httpx.AsyncClient) -> None:
    await declare(api, **JOBS)
    held = [await register(api, job, 0, f"127.0.0.1:{port}") for job, port in (("worker", 1), ("ps", 2))]

    for each in held:
        await api.post(f"/v1/leases/{each['lease']['id']}:release", json={"state": "finished", "exit_code": 0})
    jobs = (await api.get(f"{PATH}/jobs")).json()["jobs"]
    cluster = (await api.get(PATH)).json()

    told = [(job["state"], job["counts"]["finished"], job["missing_tasks"]) for job in jobs]
    assert told == [("finished", 1, [])] * 2
    assert [task["exit_code"] for job in jobs for task in job["tasks"]] == [0, 0]
    assert (cluster["state"], cluster["complete"]) == ("finished", True)


async def test_it_outlives_the_service(database: str) -> None:
    for _ in range(2):
        async with running_app(create_app(Settings(database=database), Masters())) as api:
            found = await api.get(PATH)
            if found.status_code == 404:
                await api.put(PATH, json={"jobs": JOBS, "stop_with_workers": True})

    assert found.json()["stop_with_workers"] is True
