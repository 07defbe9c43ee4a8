"""`:drain`: how a task hears of it, what is kept of it, and what it does not do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, declare, register, running_app

if TYPE_CHECKING:
    import httpx

DRAIN = "/v1/clusters/default/tasks/worker/0:drain"


async def test_a_task_hears_of_it_with_its_next_heartbeat(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)
    lease = (await register(api, "worker", 0))["lease"]
    before = (await api.post(f"/v1/leases/{lease['id']}:renew")).json()

    told = (await api.post(DRAIN, json={"grace": 7, "reason": "a new release"})).json()
    again = (await api.post(DRAIN, json={"grace": 7, "reason": "a new release"})).json()
    heard = (await api.post(f"/v1/leases/{lease['id']}:renew")).json()

    assert before["drain"] is None
    assert told["drain"] == heard["drain"] == {"grace": 7.0, "reason": "a new release"}
    assert (told["state"], told["version"]) == ("ready", again["version"])


async def test_no_session_is_opened_on_it_and_its_successor_is_not_drained(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    await api.post(DRAIN, json={"reason": "a new release"})

    refused = await api.post("/v1/sessions", json={"cluster": "default", "job": "worker"})
    await api.post(f"/v1/leases/{lease}:release", json={"state": "stopped", "reason": "drained: a new release"})
    gone = (await api.get("/v1/clusters/default/tasks/worker/0")).json()
    successor = await register(api, "worker", 0, incarnation="the-next")

    assert (refused.status_code, refused.json()["type"]) == (503, "urn:tenfold:problem:no-master")
    assert "is being drained: a new release" in refused.json()["detail"]
    assert (gone["state"], gone["reason"], gone["drain"]) == ("stopped", "drained: a new release", None)
    assert successor["task"]["drain"] is None


async def test_of_a_task_that_is_not_there(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)

    nobody = await api.post(DRAIN)

    assert (nobody.status_code, nobody.json()["type"]) == (400, "urn:tenfold:problem:nothing-to-drain")


@pytest.mark.parametrize("body", [{"grace": -1}, {"grace": 1e9}, {"reason": ""}, {"seconds": 3}])
async def test_a_wish_of_another_form(api: httpx.AsyncClient, body: dict[str, object]) -> None:
    await declare(api, ps=1, worker=1)
    await register(api, "worker", 0)

    assert (await api.post(DRAIN, json=body)).status_code == 400


async def test_it_outlives_the_service(database: str) -> None:
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        await declare(api, ps=1, worker=1)
        lease = (await register(api, "worker", 0))["lease"]["id"]
        await api.post(DRAIN, json={"grace": 7, "reason": "a new release"})

    async with running_app(create_app(Settings(database=database), Masters())) as api:
        heard = (await api.post(f"/v1/leases/{lease}:renew")).json()

    assert heard["drain"] == {"grace": 7.0, "reason": "a new release"}
