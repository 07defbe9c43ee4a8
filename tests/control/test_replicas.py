"""Two control services over one PostgreSQL: what one commits the other knows, and no lease is lost between them.

Skipped with the reason where there is no PostgreSQL.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from tenfold_control_api.app import create_app
from tenfold_control_api.cluster import Cluster, Newcomer
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.events.event import Event
from tenfold_control_api.events.store import EventStore
from tenfold_control_api.loops import end_loop
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.store import ControlStore

from .conftest import PATIENCE, Gate, Masters, declare, register, running_app
from .test_runs import ScriptedSupervisors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx
    from fastapi import FastAPI

    from tenfold_control_api.replicas import Replicas

Pair = tuple["httpx.AsyncClient", "httpx.AsyncClient"]


def settings_of(database: str, **more: Any) -> Settings:
    return Settings(database=database, **{"heartbeat": 0.1, "lease_ttl": 30.0, "refresh_interval": 0.05, **more})


@pytest.fixture
async def replicas(request: pytest.FixtureRequest, postgres: str, masters: Masters) -> AsyncIterator[Pair]:
    """Two services that share an empty database; with the parameter's settings."""
    settings = settings_of(postgres, **getattr(request, "param", {}))
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


@pytest.mark.parametrize("replicas", [{"lease_ttl": 1.0}], indirect=True)
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


async def test_heartbeats_of_a_moment_are_answered_each_by_its_own_lease(replicas: Pair) -> None:
    left, right = replicas
    await declare(left, worker=3)
    leases = [(await register(left, "worker", index))["lease"]["id"] for index in range(3)]
    await left.delete("/v1/clusters/default/tasks/worker/1")

    answers = await asyncio.gather(*(right.post(f"/v1/leases/{lease}:renew") for lease in (*leases, "none") * 2))

    assert [answer.status_code for answer in answers] == [200, 410, 200, 404] * 2
    assert {answer.json()["spec_version"] for answer in answers if answer.is_success} == {5}


async def test_a_row_that_is_being_changed_holds_up_no_other_renewal(postgres: str) -> None:
    controls = [ControlStore(postgres) for _ in range(2)]
    for control in controls:
        await control.open()
    first, second = controls
    cluster = Cluster.new("c", "u", {"worker": 2}, 1.0)
    await first.save_cluster(None, cluster, lease_ttl=9.0)
    for index, lease in enumerate(("a", "b")):
        before = cluster
        cluster = cluster.register("worker", index, Newcomer("h:1", f"life {index}", lease), 2.0).cluster
        await first.save_cluster(before, cluster, lease_ttl=9.0)
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"

    async with second.engine.begin() as db:
        await db.execute(text("UPDATE tenfold_leases SET state = 'ended' WHERE id = 'a'"))
        together = await first.count_renewals(["a", "b", "none"])
        alone = asyncio.create_task(first.count_renewal("a"))
        async with first.engine.connect() as look:
            while not alone.done() and not await look.scalar(text(waits)):
                pass
        waited = not alone.done()
    lives = await alone
    counts = await first.renewal_counts()
    for control in controls:
        await control.close()

    assert (together, waited, lives) == ({"b"}, True, False)
    assert counts == [("b", 9.0, 1)]


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


# -- one of them dies


async def killed(app: FastAPI) -> None:
    """The service ends without a word to the database, as by kill -9."""
    replicas: Replicas = app.state.control.replicas
    await end_loop(replicas._beating)
    replicas._shared = False


async def test_a_request_of_a_dead_service_has_an_unknown_outcome_at_the_others(
    postgres: str, masters: Masters
) -> None:
    gate = Gate()
    masters("grpc://127.0.0.1:2222").step = gate
    living, dying = (create_app(settings_of(postgres, lease_ttl=3.0), masters) for _ in range(2))
    async with running_app(living) as left, running_app(dying) as right:
        await declare(left, worker=1)
        lease = (await register(left, "worker", 0))["lease"]["id"]
        session = (await left.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
        keyed = {"headers": {"Idempotency-Key": "k"}, "json": {"outputs": ["y"]}}
        step = asyncio.create_task(right.post(f"/v1/sessions/{session}/steps", **keyed))
        await gate.wait_entered()

        meanwhile = await left.post(f"/v1/sessions/{session}/steps", **keyed)
        await killed(dying)
        after = meanwhile
        while after.status_code == 409:
            assert (await left.post(f"/v1/leases/{lease}:renew")).status_code == 200
            after = await left.post(f"/v1/sessions/{session}/steps", **keyed)
        gate.leave.set()
        await step

    assert (meanwhile.status_code, meanwhile.json()["type"]) == (409, "urn:tenfold:problem:in-progress")
    assert (after.status_code, after.json()["outcome"]) == (500, "unknown")
    assert len(masters("grpc://127.0.0.1:2222").steps) == 1


@pytest.mark.parametrize("dies", [True, False])
async def test_a_run_that_a_dead_service_was_to_start_is_started_by_another_one(
    postgres: str, masters: Masters, dies: bool
) -> None:
    both = ScriptedSupervisors(), ScriptedSupervisors()
    settings = settings_of(postgres, allow_runs=True, lease_ttl=0.6 if dies else 30.0)
    first, second = (create_app(settings, masters, supervisors=lambda *_, each=each: each) for each in both)
    body = {"entrypoint": ["python", "t.py"], "jobs": {"worker": 1}}
    async with running_app(second) as right:
        second.state.control.serve_at("http://right")
        async with running_app(first) as left:
            run = (await left.post("/v1/runs", json=body)).json()["name"]
            if dies:
                await killed(first)
            else:  # it does not know where it listens, so it starts nothing; but it lives
                looked = [await second.state.control.replicas.observe() for _ in range(3)]
                await second.state.control.runs.sweep()
                assert (len(looked), both[1].launched) == (3, [])
                first.state.control.serve_at("http://left")
                assert await asyncio.to_thread(both[0].started.wait, PATIENCE)
            if dies:
                assert await asyncio.to_thread(both[1].started.wait, PATIENCE)
            # before the first one ends: from then on the run, of which no supervisor has reported, is the other's
            launched = [list(each.launched) for each in both]
            found = (await right.get(f"/v1/runs/{run}")).json()

    assert launched == ([[], [run]] if dies else [[run], []])
    assert found["state"] == "PENDING"


async def test_a_clean_end_leaves_nothing_to_wait_for(postgres: str, masters: Masters) -> None:
    stays = create_app(settings_of(postgres, lease_ttl=3600.0, heartbeat=1.0), masters)
    async with running_app(stays):
        replicas: Replicas = stays.state.control.replicas
        goes = create_app(settings_of(postgres), masters)
        async with running_app(goes):
            other = goes.state.control.replicas.id
            there = await replicas.alive(other), sorted(await replicas.living()) == sorted([replicas.id, other])
        await replicas.observe()
        gone = await replicas.alive(other), await replicas.living() == [replicas.id]

    assert (there, gone) == ((True, True), (False, True))


async def test_services_know_where_the_others_are(postgres: str, masters: Masters) -> None:
    first, second = (create_app(settings_of(postgres), masters) for _ in range(2))
    async with running_app(first), running_app(second):
        first.state.control.serve_at("http://127.0.0.1:1")
        for app in (first, second):
            await app.state.control.replicas.beat()

        assert second.state.control.replicas.addresses() == ["http://127.0.0.1:1"]
        second.state.control.replicas._host = "elsewhere"
        first.state.control.replicas._host = "here"
        await first.state.control.replicas.beat()
        await second.state.control.replicas.observe()
        # loopback is this machine's own
        assert second.state.control.replicas.addresses() == []


# -- events


async def test_events_of_one_are_seen_at_the_other(replicas: Pair) -> None:
    left, right = replicas
    waits = asyncio.create_task(right.get("/v1/events", params={"after": 0, "wait": "20s"}))
    await declare(left, worker=1)

    events = (await asyncio.wait_for(waits, PATIENCE)).json()["events"]

    assert [(event["kind"], event["action"]) for event in events] == [("cluster", "declared")]


async def test_what_one_did_is_not_told_again_by_the_other(replicas: Pair) -> None:
    left, right = replicas
    await declare(left, ps=1, worker=1)
    await register(left, "ps", 0)
    await register(right, "worker", 0)
    found: list[tuple[str, str]] = []
    # that a task is ready may be told after what was done a moment later at the other one
    while len(found) < 4:
        await left.put("/v1/clusters/last", json={"jobs": {"ps": 1}})
        answer = (await right.get("/v1/events", params={"after": 0, "wait": "100ms"})).json()
        found = [(event["action"], event["object"]) for event in answer["events"]]

    assert sorted(found) == [
        ("declared", "default"),
        ("declared", "last"),
        ("ready", "/job:ps/replica:0/task:0"),
        ("ready", "/job:worker/replica:0/task:0"),
    ]


async def test_no_event_is_seen_before_one_with_a_smaller_number(postgres: str) -> None:
    controls = [ControlStore(postgres) for _ in range(2)]
    for control in controls:
        await control.open()
    first, second = (EventStore(control.engine) for control in controls)
    event = Event("run", "RUNNING", "run-1", "", 1.0)
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

    async with first.writing() as db:
        # the number is taken, and not yet to be seen
        await db.execute(text("SELECT nextval('tenfold_events_id_seq')"))
        adding = asyncio.create_task(second.add([event]))
        async with controls[0].engine.connect() as look:
            while not adding.done() and not await look.scalar(text(waits)):
                pass
        seen = await second.after(0, 10)
    written = await adding
    for control in controls:
        await control.close()

    assert (seen, [each.id for each in written]) == ([], [2])


async def test_two_writers_and_a_reader_that_misses_nothing(replicas: Pair) -> None:
    left, right = replicas
    writing = asyncio.gather(
        *(api.put(f"/v1/clusters/c{number}", json={"jobs": {"ps": 1}}) for number in range(40) for api in (left, right))
    )
    seen: list[str] = []
    place = 0
    while len(seen) < 40:
        answer = (await left.get("/v1/events", params={"after": place, "wait": "20s"})).json()
        seen += [event["object"] for event in answer["events"]]
        place = answer["next"]
    await writing

    assert sorted(seen) == sorted(f"c{number}" for number in range(40))


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
