"""Clusters, tasks, leases and the spec over REST, without a socket."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import seconds
from tenfold_control_api.service_settings import Settings

from .conftest import PATIENCE, Masters, declare, register, running_app


async def test_a_cluster_comes_up(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)

    first = await register(api, "ps", 0, "127.0.0.1:1")
    second = await api.post("/v1/clusters/default/tasks/worker:claim", json={"address": "127.0.0.1:2"})
    cluster = (await api.get("/v1/clusters/default")).json()

    assert (first["lease"]["ttl"], first["lease"]["heartbeat"]) == (10.0, 2.0)
    assert second.status_code == 201
    assert second.json()["task"]["name"] == "/job:worker/replica:0/task:0"
    assert (cluster["state"], cluster["complete"], cluster["missing_tasks"]) == ("ready", True, [])
    assert cluster["spec"] == {"ps": {"0": "127.0.0.1:1"}, "worker": {"0": "127.0.0.1:2"}}
    assert (await api.get("/v1/clusters")).json()["clusters"] == [cluster]


@pytest.mark.parametrize("sender", ["10.1.2.3", "fd00::3"])
async def test_an_address_of_loopback_that_another_host_sends_is_refused(database: str, sender: str) -> None:
    app = create_app(Settings(database=database), Masters())
    async with running_app(app) as near, httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=(sender, 4711)), base_url="http://localhost"
    ) as far:
        await declare(near, worker=2)
        by_index = await far.put("/v1/clusters/default/tasks/worker/0", json={"address": "localhost:2222"})
        claimed = await far.post("/v1/clusters/default/tasks/worker:claim", json={"address": "127.0.0.1:2222"})
        dialled = await far.post("/v1/clusters/default/tasks/worker:claim", json={"address": "10.1.2.3:2222"})
        await register(near, "worker", 1)

    for refused in (by_index, claimed):
        assert refused.status_code == 400
        assert refused.json()["type"].endswith("invalid-address")
        assert f"was sent by {sender}, which no other machine reaches by it" in refused.json()["detail"]
    assert dialled.status_code == 201


async def test_declaring_again(api: httpx.AsyncClient) -> None:
    created = await api.put("/v1/clusters/default", json={"jobs": {"ps": 1}})
    same = await api.put("/v1/clusters/default", json={"jobs": {"ps": 1}})
    grown = await api.put("/v1/clusters/default", json={"jobs": {"ps": 2}})

    assert [r.status_code for r in (created, same, grown)] == [201, 200, 200]
    assert [r.json()["version"] for r in (created, same, grown)] == [1, 1, 2]
    assert created.json()["uid"] == grown.json()["uid"]


async def test_an_undeclared_cluster_says_how_to_declare_it(api: httpx.AsyncClient) -> None:
    answer = await api.put("/v1/clusters/default/tasks/ps/0", json={"address": "h:1"})

    assert answer.status_code == 404
    assert "PUT /v1/clusters/default" in answer.json()["detail"]


async def test_a_taken_index(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)
    held = await register(api, "ps", 0, incarnation="a")

    other = await api.put("/v1/clusters/default/tasks/ps/0", json={"address": "h:1", "incarnation": "b"})
    same = await api.put("/v1/clusters/default/tasks/ps/0", json={"address": "127.0.0.1:2222", "incarnation": "a"})

    assert (other.status_code, other.json()["code"]) == (409, "ALREADY_EXISTS")
    assert other.json()["task"] == "/job:ps/replica:0/task:0"
    assert (same.status_code, same.json()["lease"]["id"]) == (200, held["lease"]["id"])


async def test_heartbeats_tell_the_newest_version(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)
    lease = (await register(api, "ps", 0))["lease"]["id"]
    await register(api, "worker", 0)

    answer = await api.post(f"/v1/leases/{lease}:renew")

    assert (answer.status_code, answer.json()["spec_version"]) == (200, 3)


async def test_an_unknown_lease_is_404_and_an_ended_one_410(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)
    lease = (await register(api, "ps", 0))["lease"]["id"]
    await api.delete("/v1/clusters/default/tasks/ps/0", params={"reason": "moved elsewhere"})

    unknown = await api.post("/v1/leases/nope:renew")
    ended = await api.post(f"/v1/leases/{lease}:renew")

    assert (unknown.status_code, unknown.json()["code"]) == (404, "NOT_FOUND")
    assert (ended.status_code, ended.json()["code"]) == (410, "FAILED_PRECONDITION")
    assert "moved elsewhere" in ended.json()["detail"]
    assert (await api.get(f"/v1/leases/{lease}")).json()["state"] == "ended"


async def test_a_finished_task_says_so(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    first = await api.post(f"/v1/leases/{lease}:release", json={"state": "finished", "exit_code": 0})
    again = await api.post(f"/v1/leases/{lease}:release", json={"state": "finished", "exit_code": 0})
    other = await api.delete(f"/v1/leases/{lease}", params={"state": "lost"})
    task = (await api.get("/v1/clusters/default/tasks/worker/0")).json()
    job = (await api.get("/v1/clusters/default/jobs/worker")).json()

    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 410)
    assert (task["state"], task["exit_code"]) == ("finished", 0)
    assert (job["state"], job["missing_tasks"]) == ("finished", [])


async def test_a_task_that_failed_cannot_say_that_it_finished(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    refused = await api.post(f"/v1/leases/{lease}:release", json={"state": "finished", "exit_code": 3})
    task = (await api.get("/v1/clusters/default/tasks/worker/0")).json()

    assert (refused.status_code, task["state"]) == (400, "ready")
    assert "exit code 3, so it has not finished" in refused.json()["detail"]


async def test_who_saw_a_task_end_tells_it(api: httpx.AsyncClient) -> None:
    await declare(api, worker=2)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    path = "/v1/clusters/default/tasks/worker/0:end"

    told = await api.post(path, json={"state": "lost", "reason": "ended by SIGKILL", "exit_code": -9})
    again = await api.post(path, json={"state": "finished"})
    job = (await api.get("/v1/clusters/default/jobs/worker")).json()
    heartbeat = await api.post(f"/v1/leases/{lease}:renew")
    unknown = await api.post("/v1/clusters/default/tasks/worker/7:end", json={"state": "lost"})

    # what came first counts
    for answer in (told, again):
        task = answer.json()
        assert (task["state"], task["reason"], task["exit_code"]) == ("lost", "ended by SIGKILL", -9)
    assert job["state"] == "degraded"
    assert (heartbeat.status_code, heartbeat.json()["outcome"]) == (410, "lost")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "NOT_FOUND")


async def test_a_stopped_task_keeps_the_cluster_incomplete(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    body = {"state": "stopped", "reason": "stopped by SIGTERM", "exit_code": 143}
    await api.post(f"/v1/leases/{lease}:release", json=body)
    cluster = (await api.get("/v1/clusters/default")).json()

    assert (cluster["state"], cluster["complete"]) == ("stopped", False)
    assert cluster["missing_tasks"] == ["/job:worker/replica:0/task:0"]
    assert "is stopped: stopped by SIGTERM" in cluster["conditions"][0]["message"]


async def test_a_task_that_gives_up_is_lost_with_its_reason(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    await api.delete(f"/v1/leases/{lease}", params={"state": "lost", "reason": "out of memory", "exit_code": 137})
    task = (await api.get("/v1/clusters/default/jobs/worker/tasks/0")).json()

    assert (task["state"], task["reason"], task["exit_code"]) == ("lost", "out of memory", 137)


async def test_job_status(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=2)
    await register(api, "worker", 1, "127.0.0.1:9", "i9")

    jobs = (await api.get("/v1/clusters/default/jobs")).json()["jobs"]
    task = jobs[1]["tasks"][1]

    assert [job["name"] for job in jobs] == ["ps", "worker"]
    assert jobs[1]["missing_tasks"] == ["/job:worker/replica:0/task:0"]
    assert jobs[1]["counts"] == {"missing": 1, "ready": 1, "lost": 0, "stopped": 0, "finished": 0}
    assert (task["state"], task["address"], task["incarnation"]) == ("ready", "127.0.0.1:9", "i9")
    assert task["last_heartbeat_age"] >= 0
    assert task["since"].endswith("Z")


async def test_devices_are_kept(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)
    device = {"name": "/job:ps/replica:0/task:0/device:CPU:0", "device_type": "CPU", "memory_limit": 1 << 40}

    await api.put("/v1/clusters/default/tasks/ps/0", json={"address": "h:1", "devices": [device]})
    task = (await api.get("/v1/clusters/default/tasks/ps/0")).json()

    assert task["devices"][0].items() >= device.items()


async def watched(api: httpx.AsyncClient) -> None:
    """Until the service counts a waiting long-poll."""
    while True:
        if "tenfold_control_watchers 1.0" in (await api.get("/metrics")).text:
            return
        await asyncio.sleep(0)  # a request in this process is answered without giving way to other tasks


async def test_a_long_poll_is_woken_by_the_change(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)
    waiting = asyncio.create_task(api.get("/v1/clusters/default/spec", params={"after": 1, "wait": "60s"}))
    await asyncio.wait_for(watched(api), PATIENCE)

    await register(api, "ps", 0)
    answer = (await asyncio.wait_for(waiting, PATIENCE)).json()

    assert (answer["version"], answer["changed"], answer["complete"]) == (2, True, True)


async def test_a_long_poll_that_runs_out_answers_with_what_there_is(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)

    answer = await api.get("/v1/clusters/default/spec", params={"after": 1, "wait": "10ms"})

    assert (answer.json()["version"], answer.json()["changed"]) == (1, False)


async def test_a_version_from_another_history_is_gone(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1)

    answer = await api.get("/v1/clusters/default/spec", params={"after": 9})

    assert (answer.status_code, answer.json()["code"]) == (410, "OUT_OF_RANGE")


@pytest.mark.parametrize("wait", ["soon", "-1s", "1h", "1e9", ""])
def test_bad_waits(wait: str) -> None:
    with pytest.raises(ApiError, match="is not a duration"):
        seconds(wait, 60)


async def test_tf_config(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=2)
    await register(api, "ps", 0, "h:1")
    await register(api, "worker", 1, "h:3")
    asked = {"format": "tf_config", "job": "worker", "index": 1}

    early = await api.get("/v1/clusters/default/spec", params=asked)
    await register(api, "worker", 0, "h:2")
    answer = await api.get("/v1/clusters/default/spec", params=asked)

    assert (early.status_code, early.json()["missing_tasks"]) == (503, ["/job:worker/replica:0/task:0"])
    assert answer.json() == {
        "cluster": {"ps": ["h:1"], "worker": ["h:2", "h:3"]},
        "task": {"type": "worker", "index": 1},
    }


async def test_an_expired_lease_makes_its_task_lost_and_frees_the_index(database: str, masters: Masters) -> None:
    settings = Settings(database=database, heartbeat=0.05, lease_ttl=0.2)
    async with running_app(create_app(settings, masters)) as api:
        await declare(api, ps=1)
        lease = (await register(api, "ps", 0))["lease"]["id"]

        after = (await api.get("/v1/clusters/default/spec", params={"after": 2, "wait": "20s"})).json()
        task = (await api.get("/v1/clusters/default/tasks/ps/0")).json()
        late = await api.post(f"/v1/leases/{lease}:renew")
        taken = await register(api, "ps", 0, "h:9", "b")

        assert after["missing_tasks"] == ["/job:ps/replica:0/task:0"]
        assert task["state"] == "lost"
        silent = re.fullmatch(r"lease expired: no heartbeat for (\d+\.\d) s", task["reason"])
        assert silent is not None
        assert float(silent[1]) >= settings.lease_ttl
        assert late.status_code == 410
        assert (taken["task"]["state"], taken["spec_version"]) == ("ready", 4)
        metrics = (await api.get("/metrics")).text
        assert 'tenfold_control_tasks_lost_total{cluster="default"} 1.0' in metrics
        assert "tenfold_control_leases 1.0" in metrics


async def test_many_claims_at_once_never_share_an_index(api: httpx.AsyncClient) -> None:
    await declare(api, worker=20)

    answers = await asyncio.gather(
        *(
            api.post("/v1/clusters/default/tasks/worker:claim", json={"address": f"h:{i + 1}", "incarnation": i})
            for i in range(25)
        )
    )

    taken = sorted(answer.json()["task"]["index"] for answer in answers if answer.is_success)
    assert taken == list(range(20))
    assert {answer.status_code for answer in answers if not answer.is_success} == {429}


async def test_limits(database: str, masters: Masters) -> None:
    settings = Settings(database=database, max_clusters=1, max_tasks=3, max_jobs=2)
    async with running_app(create_app(settings, masters)) as api:
        too_many_tasks = await api.put("/v1/clusters/a", json={"jobs": {"ps": 4}})
        too_many_jobs = await api.put("/v1/clusters/a", json={"jobs": {"a": 1, "b": 1, "c": 1}})
        await api.put("/v1/clusters/a", json={"jobs": {"ps": 1}})
        too_many_clusters = await api.put("/v1/clusters/b", json={"jobs": {"ps": 1}})

    assert [r.status_code for r in (too_many_tasks, too_many_jobs, too_many_clusters)] == [400, 400, 429]


async def test_the_registry_is_there_again_after_a_restart(database: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=database), masters)) as api:
        await declare(api, ps=1, worker=1)
        lease = (await register(api, "ps", 0))["lease"]["id"]
    async with running_app(create_app(Settings(database=database), masters)) as api:
        cluster = (await api.get("/v1/clusters/default")).json()
        renewed = await api.post(f"/v1/leases/{lease}:renew")

    assert (cluster["version"], cluster["counts"]["ready"]) == (2, 1)
    assert renewed.status_code == 200
