"""Two control services over one PostgreSQL: what one commits the other knows, and no lease is lost between them.

Skipped with the reason where there is no PostgreSQL.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.settings import Settings

from .conftest import PATIENCE, Masters, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

Pair = tuple["httpx.AsyncClient", "httpx.AsyncClient"]


@pytest.fixture
async def replicas(postgres: str, masters: Masters) -> AsyncIterator[Pair]:
    """Two services that share an empty database."""
    settings = Settings(database=postgres, heartbeat=0.1, lease_ttl=0.6, refresh_interval=0.05)
    async with (
        running_app(create_app(settings, masters)) as left,
        running_app(create_app(settings, masters)) as right,
    ):
        yield left, right


async def test_what_one_commits_the_other_knows(replicas: Pair) -> None:
    left, right = replicas
    await declare(left, ps=1, worker=1)
    lease = (await register(right, "ps", 0))["lease"]["id"]

    renewed = await left.post(f"/v1/leases/{lease}:renew")
    taken = await left.put("/v1/clusters/default/tasks/ps/0", json={"address": "h:1", "incarnation": "b"})
    spec = (await left.get("/v1/clusters/default/spec")).json()

    assert (renewed.status_code, taken.status_code) == (200, 409)
    assert spec["version"] == 2


async def test_claims_at_both_never_share_an_index(replicas: Pair) -> None:
    await declare(replicas[0], worker=12)

    answers = await asyncio.gather(
        *(
            replicas[i % 2].post(
                "/v1/clusters/default/tasks/worker:claim", json={"address": f"h:{i + 1}", "incarnation": i}
            )
            for i in range(15)
        )
    )

    taken = sorted(answer.json()["task"]["index"] for answer in answers if answer.is_success)
    assert taken == list(range(12))


async def test_a_long_poll_at_one_is_woken_by_a_change_at_the_other(replicas: Pair) -> None:
    left, right = replicas
    await declare(left, ps=1)
    waiting = asyncio.create_task(right.get("/v1/clusters/default/spec", params={"after": 1, "wait": "20s"}))

    await register(left, "ps", 0)
    answer = (await asyncio.wait_for(waiting, PATIENCE)).json()

    assert answer["version"] == 2


async def test_heartbeats_at_one_keep_the_lease_at_both(replicas: Pair) -> None:
    left, right = replicas
    await declare(left, ps=1, worker=1)
    kept = (await register(left, "ps", 0))["lease"]["id"]
    await register(left, "worker", 0)

    # The worker never renews; when it is lost, the ps was renewed at one replica for longer than a lease lasts.
    version = 3
    while version == 3:
        assert (await right.post(f"/v1/leases/{kept}:renew")).status_code == 200
        spec = await left.get("/v1/clusters/default/spec", params={"after": 3, "wait": "50ms"})
        version = spec.json()["version"]

    tasks = {task["name"]: task["state"] for task in spec.json()["tasks"]}
    assert tasks == {"/job:ps/replica:0/task:0": "ready", "/job:worker/replica:0/task:0": "lost"}
    assert version == 4


async def test_a_step_under_one_key_runs_once_over_both(replicas: Pair, masters: Masters) -> None:
    left, right = replicas
    await declare(left, worker=1)
    await register(left, "worker", 0)
    session = (await left.post("/v1/sessions", json={"cluster": "default"})).json()["name"]

    steps = [
        await api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]}, headers={"Idempotency-Key": "k"})
        for api in (left, right)
    ]

    assert steps[0].content == steps[1].content
    assert len(masters("grpc://127.0.0.1:2222").steps) == 1


@pytest.mark.parametrize(
    ("part", "instead", "why"),
    [("//[a-z]+@", "//nobody_else@", 'role "nobody_else" does not exist'), ("@/[^?]+", "@/no_such", "does not exist")],
)
async def test_a_server_that_does_not_let_us_in(
    postgres: str, part: str, instead: str, why: str, masters: Masters
) -> None:
    with pytest.raises(DatabaseError, match=why):
        async with running_app(create_app(Settings(database=re.sub(part, instead, postgres)), masters)):
            pass
