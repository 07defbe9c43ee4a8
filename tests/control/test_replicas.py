"""Two control services over one PostgreSQL: what one commits the other knows, and no lease is lost between them.

Needs a PostgreSQL server's programs (initdb, postgres) and asyncpg; skipped with the reason where one is lacking.
"""

from __future__ import annotations

import asyncio
import getpass
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.settings import Settings

from .conftest import PATIENCE, Masters, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx

Pair = tuple["httpx.AsyncClient", "httpx.AsyncClient"]


def _why_not() -> str:
    if importlib.util.find_spec("asyncpg") is None:
        return "asyncpg is not installed (pip install 'tenfold[postgres]')"
    lacking = [name for name in ("initdb", "postgres") if shutil.which(name) is None]
    return f"no PostgreSQL here: {', '.join(lacking)} not found" if lacking else ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there is one")


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A throw-away server on a Unix socket; PostgreSQL refuses to run as root, so as root it runs as nobody."""
    folder = Path(tempfile.mkdtemp(prefix="tenfold-pg-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        who = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody", "nogroup")
    user = who.get("user", getpass.getuser())
    environment = {**os.environ, "LC_ALL": "C", "HOME": str(folder)}
    data = folder / "data"
    try:
        subprocess.run(
            ["initdb", "-D", str(data), "-A", "trust", "-U", user, "--no-sync"],
            check=True,
            capture_output=True,
            env=environment,
            cwd=folder,
            timeout=60,
            **who,
        )
        with subprocess.Popen(
            ["postgres", "-D", str(data), "-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"],
            env=environment,
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
            **who,
        ) as server:
            try:
                assert server.stderr is not None
                for line in server.stderr:
                    if "ready to accept connections" in line:
                        break
                yield f"postgresql://{user}@/postgres?host={folder}"
            finally:
                server.terminate()
                server.communicate(timeout=PATIENCE)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
async def replicas(postgres: str, masters: Masters) -> AsyncIterator[Pair]:
    """Two services that share an empty database."""
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(postgres.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.begin() as db:
        await db.execute(text("DROP SCHEMA public CASCADE"))
        await db.execute(text("CREATE SCHEMA public"))
    await engine.dispose()
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
    ("instead", "why"),
    [("://nobody_else@", 'role "nobody_else" does not exist'), ("/no_such?host", "database .* does not exist")],
)
async def test_a_server_that_does_not_let_us_in(postgres: str, instead: str, why: str, masters: Masters) -> None:
    user = postgres.removeprefix("postgresql://").partition("@")[0]
    part = f"://{user}@" if "@" in instead else "/postgres?host"

    with pytest.raises(DatabaseError, match=why):
        async with running_app(create_app(Settings(database=postgres.replace(part, instead)), masters)):
            pass
