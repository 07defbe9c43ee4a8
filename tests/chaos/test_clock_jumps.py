"""The wall clock of the control service jumps by a day and an hour, forward and back (P2, P4, P6).

Nothing that waits, ends or is kept for a time goes by it: leases, keys of requests, runs, events. What carries a date
does: a token is good until then.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.faults.control_forks import ControlForks
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_core.access.tokens import new_token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

HOUR = 3600.0
JUMPS = [25 * HOUR, -25 * HOUR]
KEY = {"Idempotency-Key": "the-one"}
CLAIM = {"address": "127.0.0.1:1", "incarnation": "a"}


@pytest.fixture(scope="module")
def forks() -> Iterator[ControlForks]:
    with ControlForks() as made:
        yield made


@pytest.fixture
def start(forks: ControlForks, tmp_path: Path) -> Iterator[Callable[..., httpx.Client]]:
    """Starts a service on the test's database, instead of the one before; a client of it."""
    with contextlib.ExitStack() as clients:

        def start(**options: Any) -> httpx.Client:
            forks.kill()
            forks.start(str(tmp_path / "control.db"), **{"heartbeat": 0.5, "lease_ttl": 60.0, **options})
            return clients.enter_context(forks.client())

        yield start
        forks.kill()


def claimed(api: httpx.Client) -> dict[str, Any]:
    """The answer to a claim, which is the same each time."""
    answer = api.post("/v1/clusters/c/tasks/worker:claim", json=CLAIM, headers=KEY)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("jump", JUMPS)
def test_leases_keys_and_runs(jump: float, start: Callable[..., httpx.Client], forks: ControlForks) -> None:
    api = start()
    api.put("/v1/clusters/c", json={"jobs": {"worker": 2}})
    first = claimed(api)
    run = api.post("/v1/runs", json={"launcher": "external", "entrypoint": ["x"]}).json()["name"]
    version = api.get("/v1/events?after=0").json()

    forks.shift(jump)
    answers = [claimed(api), claimed(api)]
    renewed = api.post(f"/v1/leases/{first['lease']['id']}:renew", json={}).json()
    # longer than the sweepers need to look at everything
    waited = api.get("/v1/clusters/c/spec", params={"after": renewed["spec_version"], "wait": "1s"}).json()
    again = start(shift=jump)

    assert answers == [first, first]
    assert (renewed["state"], waited["changed"]) == ("live", False)
    assert renewed["expires_in"] > 50
    assert claimed(again) == first
    assert again.get(f"/v1/runs/{run}").json()["state"] == "PENDING"
    assert again.get("/v1/clusters/c/tasks/worker/0").json()["state"] == "ready"
    assert len(version["events"]) >= 2


@pytest.mark.parametrize("jump", [JUMPS[1], pytest.param(JUMPS[0], marks=pytest.mark.long)])
def test_a_lease_that_nobody_renews_ends_in_its_time(
    jump: float, start: Callable[..., httpx.Client], forks: ControlForks
) -> None:
    api = start(lease_ttl=1.5)
    api.put("/v1/clusters/c", json={"jobs": {"worker": 1}})
    version = claimed(api)["spec_version"]
    forks.shift(jump)

    began = time.monotonic()
    spec = api.get("/v1/clusters/c/spec", params={"after": version, "wait": "30s"}).json()

    assert [task["state"] for task in spec["tasks"]] == ["lost"]
    assert time.monotonic() - began < 15


def test_a_token_is_good_until_its_date(
    start: Callable[..., httpx.Client], forks: ControlForks, tmp_path: Path
) -> None:
    token, tomorrow = new_token(), datetime.fromtimestamp(time.time() + 24 * HOUR, UTC)
    file = tmp_path / "tokens"
    file.write_text(f"{token} role=run expires={tomorrow:%Y-%m-%dT%H:%M:%SZ}\n")
    api = start(token_file=str(file))
    api.headers["Authorization"] = f"Bearer {token}"

    kinds = []
    for jump in (0.0, 25 * HOUR, -25 * HOUR):
        forks.shift(jump)
        answer = api.get("/v1/clusters")
        kinds.append("" if answer.is_success else answer.json()["type"].rpartition(":")[2])

    assert kinds == ["", "token-expired", ""]


class Hands:
    """A wall clock that is set by hand, and else goes as the machine's."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@contextlib.asynccontextmanager
async def service(database: Path, clock: Hands) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """A control service in this process, which clears away when it is told to."""
    app = create_app(Settings(database=str(database)), wall_clock=clock)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as api:
            yield api, app.state.control


@pytest.mark.parametrize("jumps", [JUMPS, JUMPS[::-1]], ids=["forward-back", "back-forward"])
async def test_what_is_kept_for_a_day_stays(jumps: list[float], tmp_path: Path) -> None:
    """The end of a lease, events, the package of a run: as young as before, whatever the clock says."""
    clock = Hands()
    async with service(tmp_path / "control.db", clock) as (api, control):
        await api.put("/v1/clusters/c", json={"jobs": {"worker": 2}})
        claim = (await api.post("/v1/clusters/c/tasks/worker:claim", json=CLAIM)).json()
        release = f"/v1/leases/{claim['lease']['id']}:release"
        released = (await api.post(release, json={})).json()
        seen = (await api.get("/v1/events?after=0&wait=20s")).json()["events"]
        for jump in (*jumps, 0.0):
            clock.ahead = jump
            await control.clear()
            again = await api.post(release, json={})
            events = (await api.get("/v1/events?after=0")).json()["events"]

            assert (again.status_code, again.json()["task"]) == (200, released["task"])
            assert [event["id"] for event in events][: len(seen)] == [event["id"] for event in seen]
