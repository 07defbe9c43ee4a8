"""Figures that come with heartbeats: shown while the lease lives, refused by name where they are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold.control import TaskRegistration
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tenfold.control import ControlClient

FIGURES: dict[str, Any] = {
    "resident_bytes": 1 << 20,
    "shared_bytes": 1 << 10,
    "cpu_seconds": 1.5,
    "minor_faults": 7,
    "threads": 4,
    "variables": 2,
    "variable_bytes": 400,
    "table_rows": 5,
    "table_bytes": 900,
    "tables": [
        {
            "name": "user/part_0",
            "kind": "EmbeddingVariable",
            "rows": 5,
            "waiting": 1,
            "evicted": 2,
            "bytes": 900,
            "quota_bytes": 800,
            "lookups": 8,
            "found": 4,
        }
    ],
    "tables_left_out": 0,
    "steps": 12,
    "sessions": 1,
    "bytes_sent": 1000,
    "bytes_received": 2000,
    "long_kernels": 0,
    "peers": [{"task": "/job:ps/replica:0/task:0", "bytes_sent": 10, "bytes_received": 20}],
    "queues": [{"name": "tokens", "size": 1, "capacity": 8}, {"name": "names", "size": 0, "capacity": None}],
    "open_sessions": [],
}


async def renew(api: httpx.AsyncClient, lease: str, figures: Any) -> httpx.Response:
    return await api.post(f"/v1/leases/{lease}:renew", json={"figures": figures})


async def test_a_heartbeats_figures_are_shown_with_the_task(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    await register(api, "ps", 0)

    answer = await renew(api, lease, FIGURES)
    jobs = (await api.get("/v1/clusters/default/jobs")).json()["jobs"]
    task = (await api.get("/v1/clusters/default/tasks/worker/0")).json()

    assert answer.status_code == 200
    assert answer.json()["spec_version"] == 3
    assert task["figures"].pop("updated").endswith("Z")
    assert task["figures"] == FIGURES
    assert [job["tasks"][0]["figures"] is None for job in jobs] == [True, False]


async def test_the_tables_of_a_cluster_are_summed_up_with_its_jobs(api: httpx.AsyncClient) -> None:
    await declare(api, ps=2, worker=1)
    leases = [(await register(api, *task))["lease"]["id"] for task in (("ps", 0), ("ps", 1), ("worker", 0))]
    before = (await api.get("/v1/clusters/default/jobs")).json()["tables"]
    other = {**FIGURES["tables"][0], "name": "user/part_1", "rows": 15}
    await renew(api, leases[0], FIGURES)
    await renew(api, leases[1], {"tables": [other], "table_rows": 40, "table_bytes": 300, "tables_left_out": 3})
    await renew(api, leases[2], {"steps": 1})

    found = (await api.get("/v1/clusters/default/jobs")).json()["tables"]

    assert before is None
    (table,) = found["tables"]
    assert (table["name"], table["parts"], table["rows"], table["admitted"]) == ("user", 2, 20, 18)
    assert (table["hit_rate"], table["largest"], table["unevenness"]) == (0.5, "ps/1", 1.5)
    assert {**found, "tables": None} == {
        "tables": None,
        "left_out": 3,
        "rows": 45,
        "bytes": 1200,
        "largest": "ps/0",
        "unevenness": 1.5,
    }
    workers = (await api.get("/v1/clusters/default/jobs", params={"complete": "false"})).json()
    assert (workers["jobs"], workers["tables"]) == ([], None)


async def test_a_heartbeat_without_a_body_stays_one(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    await renew(api, lease, {"steps": 3})

    bare = await api.post(f"/v1/leases/{lease}:renew")
    empty = await api.post(f"/v1/leases/{lease}:renew", json={})
    task = (await api.get("/v1/clusters/default/tasks/worker/0")).json()

    assert (bare.status_code, empty.status_code) == (200, 200)
    assert task["figures"]["steps"] == 3
    assert task["figures"]["resident_bytes"] is None


async def test_figures_are_forgotten_with_the_lease(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    await renew(api, lease, FIGURES)

    await api.post(f"/v1/leases/{lease}:release")
    gone = await renew(api, lease, FIGURES)

    assert gone.status_code == 410
    assert (await api.get("/v1/clusters/default/tasks/worker/0")).json()["figures"] is None


@pytest.mark.parametrize(
    ("figures", "pointer"),
    [
        ({"steps": -1}, "#/figures/steps"),
        ({"cpu_seconds": "soon"}, "#/figures/cpu_seconds"),
        ({"bytes_sent": 2**63}, "#/figures/bytes_sent"),
        ({"peers": [{"task": "", "bytes_sent": 0, "bytes_received": 0}]}, "#/figures/peers/0/task"),
        ({"queues": [{"name": "q", "size": 0}] * 300}, "#/figures/queues"),
        ({"tables": [{**FIGURES["tables"][0], "rows": -1}]}, "#/figures/tables/0/rows"),
        ({"tables": FIGURES["tables"] * 1025}, "#/figures/tables"),
    ],
)
async def test_figures_of_another_form_are_refused(
    api: httpx.AsyncClient, figures: dict[str, Any], pointer: str
) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    answer = await renew(api, lease, figures)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert (await api.get("/v1/clusters/default/tasks/worker/0")).json()["figures"] is None


async def test_a_newer_task_may_tell_more(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    answer = await renew(api, lease, {"steps": 1, "temperature": 40})

    assert answer.status_code == 200
    assert "temperature" not in (await api.get("/v1/clusters/default/tasks/worker/0")).json()["figures"]


async def test_a_restarted_service_waits_for_the_next_heartbeat(database: str, masters: Masters) -> None:
    settings = Settings(database=database)
    async with running_app(create_app(settings, masters)) as api:
        await declare(api, worker=1)
        lease = (await register(api, "worker", 0))["lease"]["id"]
        await renew(api, lease, FIGURES)

    async with running_app(create_app(settings, masters)) as api:
        before = (await api.get("/v1/clusters/default/tasks/worker/0")).json()
        await renew(api, lease, FIGURES)
        after = (await api.get("/v1/clusters/default/tasks/worker/0")).json()

    assert (before["state"], before["figures"]) == ("ready", None)
    assert after["figures"]["steps"] == 12


def _figures_of(control: ControlClient) -> Any:
    """Those of the first heartbeat that has some; waits by long-polls for what never comes: another version."""
    version = control.spec("default").version
    for _ in range(100):
        found = control.task_status("default", "worker", 0)["figures"]
        if found is not None:
            return found
        control.poll_spec("default", after=version, wait=0.1)
    raise AssertionError("no heartbeat brought figures")


def test_a_registration_sends_them(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 1})
    with TaskRegistration(control, "default", "worker", 0, "h:1", figures=lambda: FIGURES):
        assert _figures_of(control)["variable_bytes"] == 400


def test_figures_that_fail_do_not_cost_the_lease(control: ControlClient) -> None:
    control.declare_cluster("default", {"worker": 1})
    sent: list[Callable[[], dict[str, Any]]] = [lambda: {}["none"], lambda: {"steps": -1}]
    asked = 0

    def odd() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return sent[min(asked, 2) - 1]()

    with TaskRegistration(control, "default", "worker", 0, "h:1", figures=odd) as registration:
        version = control.spec("default").version
        for _ in range(100):
            if registration.figures is None:
                break
            control.poll_spec("default", after=version, wait=0.1)
        task = control.task_status("default", "worker", 0)

    assert (asked, registration.figures) == (2, None)
    assert (task["state"], task["figures"]) == ("ready", None)


async def test_a_renewal_with_a_query_is_refused_like_any_other(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]

    assert (await api.post(f"/v1/leases/{lease}:renew", params={"x": "1"})).status_code == 400
    assert (await api.post(f"/v1/leases/{lease}:renew")).status_code == 200
