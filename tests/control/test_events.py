"""`/v1/events`: what is told of clusters, tasks, runs and sessions; places, restarts, many listeners, slow ones."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy.exc import OperationalError

from tenfold.control import ControlClient
from tenfold.control.retry import RetryPolicy
from tenfold_control_api.app import create_app
from tenfold_control_api.events import log as event_log
from tenfold_control_api.events.event import Event
from tenfold_control_api.events.log import EventLog
from tenfold_control_api.events.store import EventStore
from tenfold_control_api.problems import ApiError
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.store import ControlStore
from tenfold_core import errors

from .conftest import PATIENCE, Masters, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from .conftest import Service


async def told(api: httpx.AsyncClient, after: int, count: int, **params: Any) -> list[dict[str, Any]]:
    """`count` events after that place; waits for them."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        answer = await api.get("/v1/events", params={"after": after, "wait": f"{PATIENCE}s", **params})
        assert answer.is_success, answer.text
        found += answer.json()["events"]
        after = answer.json()["next"]
    return found


def words(events: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(event["kind"], event["object"], event["action"]) for event in events]


async def test_the_life_of_a_task_and_a_session(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    await api.post(f"/v1/leases/{lease}:renew")
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()
    await api.delete(f"/v1/sessions/{session['name']}")
    await api.delete(f"/v1/leases/{lease}", params={"state": "lost", "reason": "out of memory"})

    found = await told(api, 0, 5)

    name = "/job:worker/replica:0/task:0"
    assert words(found) == [
        ("cluster", "default", "declared"),
        ("task", name, "ready"),
        ("session", session["name"], "opened"),
        ("session", session["name"], "closed"),
        ("task", name, "lost"),
    ]
    assert [event["id"] for event in found] == [1, 2, 3, 4, 5]
    assert (found[-1]["message"], found[-1]["cluster"]) == ("out of memory", "default")
    assert words(await told(api, 0, 2, kind="task")) == [words(found)[1], words(found)[4]]
    assert words(await told(api, 0, 1, action=["lost", "closed"], object=name)) == [words(found)[4]]
    assert words(await told(api, 0, 2, object=session["name"])) == words(found)[2:4]


async def test_the_life_of_a_run(api: httpx.AsyncClient) -> None:
    body = {"entrypoint": ["python", "t.py"], "jobs": {"worker": 1}, "launcher": "external"}
    run = (await api.post("/v1/runs", json=body)).json()["name"]
    supervisor = {"host": "h", "pid": 1}
    task = {"job": "worker", "index": 0, "state": "running", "starts": 1}
    error = {"type": "E", "node": "n", "message": "From /job:ps/replica:0/task:0:\nits cause"}
    failed = {**task, "state": "failed", "exit_code": 1, "ended": 5.0, "error": error}
    for report in (
        {"state": "RUNNING", "reason": "runs", "attempt": 1, "tasks": [task]},
        {"state": "RUNNING", "reason": "runs", "attempt": 1, "tasks": [failed]},
        {"state": "RUNNING", "reason": "runs", "attempt": 2, "tasks": [task]},
    ):
        answer = await api.post(f"/v1/runs/{run}:report", json={**report, "supervisor": supervisor})
        assert answer.is_success, answer.text
    checkpoint = {"checkpoints": [{"time": 1.0, "path": "/model-3"}]}
    await api.post(f"/v1/runs/{run}/tasks/worker/0:report", json=checkpoint)
    await api.post(f"/v1/runs/{run}:stop", json={"reason": "enough"})
    last = {"state": "STOPPED", "reason": "x", "attempt": 2, "tasks": [task], "supervisor": supervisor}
    await api.post(f"/v1/runs/{run}:report", json=last)

    found = await told(api, 0, 7, run=run)

    assert words(found) == [
        ("run", run, "PENDING"),
        ("run", run, "RUNNING"),
        ("task", "worker/0", "failed"),
        ("run", run, "attempt"),
        ("checkpoint", "/model-3", "written"),
        ("run", run, "stop-asked"),
        ("run", run, "STOPPED"),
    ]
    assert (found[2]["data"]["node"], found[2]["message"]) == ("n", "it ended with exit code 1: E, node n: its cause")


async def test_who_waits_hears_at_once(api: httpx.AsyncClient) -> None:
    waits = asyncio.create_task(api.get("/v1/events", params={"wait": "20s"}))
    quiet = (await api.get("/v1/events")).json()
    await declare(api, worker=1)

    answer = (await waits).json()

    assert quiet == {"events": [], "next": 0}
    assert (words(answer["events"]), answer["next"]) == ([("cluster", "default", "declared")], 1)


async def test_who_waits_for_one_kind_is_not_woken_by_another(api: httpx.AsyncClient) -> None:
    waits = asyncio.create_task(api.get("/v1/events", params={"after": 0, "kind": "session", "wait": f"{PATIENCE}s"}))
    await declare(api, worker=1)
    await register(api, "worker", 0)
    await told(api, 0, 2)  # a look that the wait takes part in, too
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]

    answer = (await waits).json()

    assert words(answer["events"]) == [("session", session, "opened")]
    assert answer["next"] == 3


async def test_a_wait_for_what_never_comes_ends_with_the_place_it_looked_at(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    await told(api, 0, 1)

    answer = (await api.get("/v1/events", params={"after": 0, "run": "none", "wait": "50ms"})).json()

    assert answer == {"events": [], "next": 1}


async def test_events_outlive_the_service_and_their_numbers_go_on(database: str) -> None:
    for size in (1, 2):
        async with running_app(create_app(Settings(database=database), Masters())) as api:
            await declare(api, worker=size)
            found = await told(api, 0, size)

    assert [(event["id"], event["data"]["jobs"]) for event in found] == [(1, {"worker": 1}), (2, {"worker": 2})]


async def test_a_place_outlives_the_last_event_before_it(database: str) -> None:
    clock = Clock()
    for start in range(2):
        app = create_app(Settings(database=database, event_memory=60.0), Masters(), clock=clock, wall_clock=clock)
        async with running_app(app) as api:
            if start == 0:
                await declare(api, worker=1)
                await told(api, 0, 1)
                clock.now = 2000.0
                await app.state.control.clear()
            else:
                asked = ({"after": place, "wait": "20s"} for place in (0, 1))
                waits = [asyncio.create_task(api.get("/v1/events", params=params)) for params in asked]
                quiet = await api.get("/v1/events", params={"after": 1})
                await declare(api, worker=2)
                found = [(await each).json()["events"] for each in waits]

    assert (quiet.status_code, quiet.json()) == (200, {"events": [], "next": 1})
    assert [[event["id"] for event in events] for events in found] == [[2], [2]]


async def test_a_place_that_is_not_there(api: httpx.AsyncClient) -> None:
    future = await api.get("/v1/events", params={"after": 7})
    stream = await api.get("/v1/events", headers={"Accept": "text/event-stream", "Last-Event-ID": "7"})
    wrong = await api.get("/v1/events", headers={"Last-Event-ID": "x"})

    for answer in (future, stream):
        assert (answer.status_code, answer.json()["type"]) == (410, "urn:tenfold:problem:events-gone")
    assert wrong.status_code == 400


# -- the log itself


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(database: str) -> AsyncIterator[EventStore]:
    opened = ControlStore(database)
    await opened.open()
    yield EventStore(opened.engine)
    await opened.close()


def an_event(number: int, time: float = 1000.0) -> Event:
    return Event("run", "RUNNING", f"run-{number}", "", time)


async def read(log: EventLog, last: int, count: int) -> list[Event]:
    found: list[Event] = []
    while len(found) < count:
        found += await log.after(found[-1].id if found else last, PATIENCE)
    return found


async def test_who_falls_behind_reads_the_database_and_then_loses_its_place(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "_RECENT", 10)
    clock = Clock()
    log = EventLog(store, Settings(event_memory=60.0), shared=False)
    await log.start()
    log.note([an_event(number) for number in range(100)])
    await read(log, 0, 100)
    behind = await read(log, 3, 97)
    near = await read(log, 95, 5)
    clock.now += 100.0
    log.note([an_event(100, clock.now)])
    await read(log, 100, 1)
    await log.forget_old(clock.now)
    with pytest.raises(ApiError, match="events before 101 are forgotten"):
        await log.after(3)
    await log.stop()

    assert [event.object for event in behind] == [f"run-{number}" for number in range(3, 100)]
    assert [event.id for event in near] == [96, 97, 98, 99, 100]


async def test_a_database_that_fails_for_a_while_loses_nothing(
    store: EventStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_log, "_AGAIN_S", 0.01)
    adding, failures = store.add, [OperationalError("insert", {}, Exception("disk full"))] * 2

    async def add(fresh: Sequence[Event]) -> list[Event]:
        if failures:
            raise failures.pop()
        return await adding(fresh)

    monkeypatch.setattr(store, "add", add)
    log = EventLog(store, Settings(), shared=False)
    await log.start()
    log.note([an_event(0)])
    log.note([an_event(1)])
    found = await read(log, 0, 2)
    await log.stop()

    assert [event.object for event in found] == ["run-0", "run-1"]
    assert caplog.text.count("events could not be written") == 2


async def test_what_is_noted_last_is_written_before_the_end(store: EventStore) -> None:
    log = EventLog(store, Settings(), shared=False)
    await log.start()
    log.note([an_event(0)])
    await log.stop()

    assert [event.object for event in await store.after(0, 10)] == ["run-0"]


# -- streams, over a real connection


def declared(service: Service, *sizes: int) -> None:
    with ControlClient(service.url) as control:
        for size in sizes:
            control.declare_cluster("default", {"worker": size})


def test_a_stream_goes_on_over_a_restart_of_the_service(
    start_service: Callable[..., Service], connect: Callable[..., ControlClient]
) -> None:
    first = start_service()
    port = first.url.rpartition(":")[2]
    seen: list[Any] = []
    came = threading.Semaphore(0)

    def listen() -> None:
        with connect(first.url, retry=RetryPolicy(attempts=1000, longest_pause=0.05)) as control:
            for event in control.events(after=0):
                seen.append(event["data"]["jobs"]["worker"])
                came.release()
                if len(seen) == 4:
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    declared(first, 1, 2)
    assert came.acquire(timeout=PATIENCE)
    assert came.acquire(timeout=PATIENCE)
    first.stop()
    second = start_service(port=int(port))
    declared(second, 3, 4)
    listener.join(PATIENCE)

    assert (listener.is_alive(), seen) == (False, [1, 2, 3, 4])


def test_a_stream_of_some_kinds_leaves_the_others_out(service: Service) -> None:
    declared(service, 1)
    with ControlClient(service.url) as control:
        lease = control.register_task("default", "worker", 0, "h:1")
        control.release(lease.id, state="stopped")

        events = control.events(after=0, kinds=["task"], cluster="default")
        actions = [next(events)["action"] for _ in range(2)]

    assert actions == ["ready", "stopped"]


def test_a_listener_that_lost_its_place_is_told(service: Service, connect: Callable[..., ControlClient]) -> None:
    with connect(service.url) as control, pytest.raises(errors.OutOfRangeError, match="Start over without it"):
        next(control.events(after=99))


@pytest.mark.thorough
async def test_a_thousand_listeners_hear_everything(service: Service) -> None:
    count = 1000
    limits = httpx.Limits(max_connections=None)

    async def listen(client: httpx.AsyncClient) -> list[str]:
        params, headers = {"after": "0"}, {"Accept": "text/event-stream"}
        names = []
        async with client.stream("GET", "/v1/events", params=params, headers=headers) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    names.append(line)
                if len(names) == 3:
                    return names
        return names

    async with httpx.AsyncClient(base_url=service.url, limits=limits, timeout=60.0, trust_env=False) as client:
        listeners = [asyncio.create_task(listen(client)) for _ in range(count)]
        await client.put("/v1/clusters/default", json={"jobs": {"worker": 1}})
        await register(client, "worker", 0)
        await client.put("/v1/clusters/other", json={"jobs": {"ps": 1}})
        heard = await asyncio.gather(*listeners)

    assert heard == [["event: cluster", "event: task", "event: cluster"]] * count
