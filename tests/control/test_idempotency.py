"""The same Idempotency-Key again: the stored answer, and never a second run."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.exc import OperationalError

from tenfold_control_api.answer_store import AnswerStore
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.service_time import ServiceTime
from tenfold_control_api.store import ControlStore
from tenfold_core import errors

from .conftest import Gate, Masters, ScriptedMaster, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx
    import numpy as np

TARGET = "grpc://127.0.0.1:2222"
KEY = {"Idempotency-Key": "step-1"}
STEP = {"outputs": ["y:0"]}


@pytest.fixture
async def master(api: httpx.AsyncClient, masters: Masters) -> ScriptedMaster:
    await declare(api, worker=1)
    await register(api, "worker", 0)
    return masters(TARGET)


async def create(api: httpx.AsyncClient) -> str:
    return str((await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"])


async def test_a_step_is_run_once(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    steps = f"/v1/sessions/{await create(api)}/steps"

    first = await api.post(steps, json=STEP, headers=KEY)
    second = await api.post(steps, json=STEP, headers=KEY)

    assert len(master.steps) == 1
    assert second.content == first.content
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


async def test_the_key_with_another_request_is_refused(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    steps = f"/v1/sessions/{await create(api)}/steps"
    await api.post(steps, json=STEP, headers=KEY)

    other = await api.post(steps, json={"outputs": ["z:0"]}, headers=KEY)

    assert (other.status_code, other.json()["type"]) == (422, "urn:tenfold:problem:idempotency-key-reused")
    assert len(master.steps) == 1


async def test_keys_belong_to_a_path(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    for _ in range(2):
        await api.post(f"/v1/sessions/{await create(api)}/steps", json=STEP, headers=KEY)

    assert len(master.steps) == 2


async def test_a_failed_step_is_not_run_again(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    steps = f"/v1/sessions/{await create(api)}/steps"
    calls: list[int] = []

    def step(feeds: Mapping[str, np.ndarray], fetches: Sequence[str], targets: Sequence[str]) -> list[np.ndarray]:
        calls.append(1)
        raise errors.UnavailableError(None, None, "the connection broke")

    master.step = step
    first = await api.post(steps, json=STEP, headers=KEY)
    second = await api.post(steps, json=STEP, headers=KEY)

    assert len(calls) == 1
    assert first.json() == second.json()
    assert second.json()["outcome"] == "unknown"


async def test_a_request_that_did_nothing_gives_its_key_back(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    session = await create(api)
    await api.delete("/v1/clusters/default/tasks/worker/0")

    refused = await api.post(f"/v1/sessions/{session}/steps", json=STEP, headers=KEY)
    creation = await api.post("/v1/sessions", json={"cluster": "default"}, headers=KEY)
    await register(api, "worker", 0)
    again = await api.post("/v1/sessions", json={"cluster": "default"}, headers=KEY)

    assert (refused.status_code, creation.status_code, again.status_code) == (409, 503, 201)


async def test_two_at_once_are_one_step(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    steps = f"/v1/sessions/{await create(api)}/steps"
    master.step = gate = Gate()
    first = asyncio.create_task(api.post(steps, json=STEP, headers=KEY))
    await gate.wait_entered()
    second = asyncio.create_task(api.post(steps, json=STEP, headers=KEY))

    gate.leave.set()
    answers = await asyncio.gather(first, second)

    assert len(master.steps) == 1
    assert answers[0].content == answers[1].content


async def test_sessions_and_claims_are_replayed(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    await declare(api, worker=3)
    created = [await api.post("/v1/sessions", json={"cluster": "default"}, headers=KEY) for _ in range(2)]
    claimed = [
        await api.post("/v1/clusters/default/tasks/worker:claim", json={"address": "h:1"}, headers=KEY)
        for _ in range(2)
    ]

    assert len(master.sessions) == 1
    assert created[0].json() == created[1].json()
    assert created[1].headers["location"] == created[0].headers["location"]
    assert claimed[0].json() == claimed[1].json()


async def crash(database: str, masters: Masters, path: str, body: Any) -> None:
    """Leaves the database as a service does that died over `path`: the key is taken, the answer is not there."""
    app = create_app(Settings(database=database), masters)
    async with running_app(app) as api:
        store = app.state.control.answers
        finish, store.finish = store.finish, _die
        with pytest.raises(_DiedError):
            await app(*_request(path, body))
        store.finish = finish
    del api


class _DiedError(BaseException):
    pass


async def _die(*_: Any) -> None:
    raise _DiedError


def _request(path: str, body: Any) -> tuple[dict[str, Any], Any, Any]:
    import json

    raw = json.dumps(body, separators=(",", ":")).encode()
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"idempotency-key", b"step-1")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": headers,
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: Any) -> None:
        raise AssertionError("nothing is answered before it is stored")

    return scope, receive, send


async def test_an_unknown_outcome_is_said_to_be_unknown(database: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=database), masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        steps = f"/v1/sessions/{await create(api)}/steps"
    await crash(database, masters, steps, STEP)

    async with running_app(create_app(Settings(database=database), masters)) as api:
        answer = await api.post(
            steps, content=b'{"outputs":["y:0"]}', headers={**KEY, "Content-Type": "application/json"}
        )

    assert (answer.status_code, answer.json()["outcome"]) == (500, "unknown")
    assert answer.json()["type"] == "urn:tenfold:problem:outcome-unknown"
    assert len(masters(TARGET).steps) == 1


async def test_a_claim_that_died_is_worked_on_again(database: str, masters: Masters) -> None:
    claim = "/v1/clusters/default/tasks/worker:claim"
    body = {"address": "h:1", "incarnation": "a"}
    async with running_app(create_app(Settings(database=database), masters)) as api:
        await declare(api, worker=2)
    await crash(database, masters, claim, body)

    async with running_app(create_app(Settings(database=database), masters)) as api:
        answer = await api.post(
            claim, content=b'{"address":"h:1","incarnation":"a"}', headers={**KEY, "Content-Type": "application/json"}
        )

    assert (answer.status_code, answer.json()["task"]["index"]) == (200, 0)


async def test_an_answer_too_large_to_keep(database: str, masters: Masters) -> None:
    settings = Settings(database=database, max_stored_answer=10)
    async with running_app(create_app(settings, masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        steps = f"/v1/sessions/{await create(api)}/steps"
        first = await api.post(steps, json=STEP, headers=KEY)
        second = await api.post(steps, json=STEP, headers=KEY)

    assert first.status_code == 200
    assert (second.status_code, second.json()["code"], second.json()["outcome"]) == (500, "DATA_LOSS", "done")
    assert len(masters(TARGET).steps) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
async def test_bad_keys(api: httpx.AsyncClient, key: str) -> None:
    answer = await api.post("/v1/sessions", json={}, headers={"Idempotency-Key": key})

    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_ARGUMENT")


# -- a full disk, and clocks


def full(monkeypatch: pytest.MonkeyPatch, target: object, *names: str) -> None:
    """These methods fail as on a full disk."""

    async def fail(*_: Any) -> None:
        raise OperationalError("UPDATE", {}, Exception("database or disk is full"))

    for name in names:
        monkeypatch.setattr(target, name, fail)


async def test_a_step_whose_answer_cannot_be_kept_has_an_unknown_outcome(
    database: str, masters: Masters, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(database=database), masters)
    async with running_app(app) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        steps = f"/v1/sessions/{await create(api)}/steps"
        with monkeypatch.context() as disk:
            full(disk, app.state.control.answers, "finish")
            answers = [await api.post(steps, json=STEP, headers=KEY)]
        answers.append(await api.post(steps, json=STEP, headers=KEY))
        other = await api.post(steps, json={"outputs": ["z:0"]}, headers=KEY)

    for answer in answers:
        assert (answer.status_code, answer.json()["type"]) == (500, "urn:tenfold:problem:outcome-unknown")
        assert answer.json()["outcome"] == "unknown"
    assert other.status_code == 422
    assert len(masters(TARGET).steps) == 1


@pytest.mark.parametrize("where", ["answer", "session"])
async def test_a_session_that_nobody_will_hear_of_is_closed(
    database: str, masters: Masters, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    app = create_app(Settings(database=database), masters)
    async with running_app(app) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        control = app.state.control
        with monkeypatch.context() as disk:
            if where == "answer":
                full(disk, control.answers, "finish")
                full(disk, control.store, "remove_sessions")
            else:
                full(disk, control.store, "add_session")
            answer = await api.post("/v1/sessions", json={"cluster": "default"}, headers=KEY)
        listed = (await api.get("/v1/sessions")).json()["sessions"]

    assert answer.status_code >= 500
    assert listed == []
    assert masters(TARGET).sessions == {}


async def test_what_can_be_done_again_is_done_again(
    database: str, masters: Masters, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(database=database), masters)
    claim, body = "/v1/clusters/default/tasks/worker:claim", {"address": "h:1", "incarnation": "a"}
    async with running_app(app) as api:
        await declare(api, worker=2)
        with monkeypatch.context() as disk:
            full(disk, app.state.control.answers, "finish")
            lost = await api.post(claim, json=body, headers=KEY)
        again = await api.post(claim, json=body, headers=KEY)

    assert lost.json()["outcome"] == "unknown"
    assert (again.status_code, again.json()["task"]["index"]) == (200, 0)


async def test_a_wall_clock_that_jumps_makes_no_key_run_twice(database: str, masters: Masters) -> None:
    hours = 0.0
    app = create_app(Settings(database=database), masters, wall_clock=lambda: time.time() + hours * 3600)
    async with running_app(app) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        steps = f"/v1/sessions/{await create(api)}/steps"
        first = await api.post(steps, json=STEP, headers=KEY)
        hours = 25.0
        await app.state.control.clear()
        second = await api.post(steps, json=STEP, headers=KEY)

    assert second.content == first.content
    assert len(masters(TARGET).steps) == 1


async def test_answers_age_while_a_service_runs_and_running_keys_stay(database: str) -> None:
    store = ControlStore(database)
    await store.open()
    clock = 100.0

    async def run_for(seconds: float) -> ServiceTime:
        """Another service, until it has run for that long."""
        nonlocal clock
        made = ServiceTime(store.engine, lambda: clock)
        await made.keep()
        clock += seconds
        await made.keep()
        return made

    moment = await run_for(0.0)
    answers = AnswerStore(store.engine, "me", lambda: moment.now(), Settings())
    for key in ("done", "mine", "dead"):
        owner = "gone" if key == "dead" else "me"
        await AnswerStore(store.engine, owner, lambda: moment.now(), Settings()).begin(key, "f", "a caller")
    await answers.finish("done", "a caller", 200, [], b"")
    clock += 1e6  # nothing runs
    moment = await run_for(50.0)
    await answers.forget(60.0, ["me"])
    young = [key for key in ("done", "mine", "dead") if await answers.get(key)]
    moment = await run_for(50.0)
    await answers.forget(60.0, ["me"])
    old = [key for key in ("done", "mine", "dead") if await answers.get(key)]
    await store.close()

    assert (young, old) == (["done", "mine", "dead"], ["mine"])
