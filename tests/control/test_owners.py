"""What one caller has made is neither seen nor used by another of a lesser role than admin: every route × every lesser
token × objects of another principal, by table; and keys, which each caller has for itself."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.idempotency import _digest
from tenfold_control_api.route_roles import SAFE_METHODS, TABLE
from tenfold_control_api.service_settings import Settings

from .conftest import declare, double, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

    from .conftest import Masters

ADMIN, OWNER = "tenfold-admin", "tenfold-owner"
#: Others, one of each lesser role; a reader may see what `read` says.
OTHERS = {role: f"tenfold-another-{role}" for role in ("read", "run:untrusted", "run", "register")}
GUESTS = ("tenfold-guest-a", "tenfold-guest-b")


def submission(**more: Any) -> dict[str, Any]:
    return {"entrypoint": ["python", "t.py"], "jobs": {"ps": 1, "worker": 2}, **more}


def by(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    lines = [ADMIN, f"{OWNER} role=run", *(f"{token} role={role}" for role, token in OTHERS.items())]
    lines += [f"{token} role=run:untrusted" for token in GUESTS]
    (tmp_path / "tokens").write_text("\n".join(lines))
    return Settings(database=database, token_file=str(tmp_path / "tokens"))


@pytest.fixture
async def api(settings: Settings, masters: Masters) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as client:
        await declare(client, worker=2)
        await register(client, "worker", 0)
        yield client


async def opened(api: httpx.AsyncClient, token: str) -> str:
    answer = await api.post("/v1/sessions", json={"cluster": "default", "graph_def": {}}, headers=by(token))
    assert answer.status_code == 201, answer.text
    name: str = answer.json()["name"]
    return name


STEP = {"outputs": ["y:0"]}
#: What of a session is asked for: (method, path, body).
OF_A_SESSION: list[tuple[str, str, Any]] = [
    ("GET", "/v1/sessions/{session}", None),
    ("GET", "/v1/sessions/{session}/placement", None),
    ("GET", "/v1/sessions/{session}:why", None),
    ("POST", "/v1/sessions/{session}/steps", STEP),
    ("POST", "/v1/sessions/{session}/graph:extend", {"graph_def": {}}),
    ("POST", "/v1/sessions/{session}:trace", STEP),
    ("DELETE", "/v1/sessions/{session}", None),
]
#: What of a run is its submitter's.
OF_A_RUN: list[tuple[str, str, Any]] = [
    ("POST", "/v1/runs/{run}:stop", {}),
    ("POST", "/v1/runs/{run}:trace", {}),
    ("PATCH", "/v1/runs/{run}", {"notes": "mine"}),
]
#: What of a sweep is its creator's.
OF_A_SWEEP: list[tuple[str, str, Any]] = [
    ("POST", "/v1/sweeps/{sweep}:cancel", {}),
    ("POST", "/v1/sweeps/{sweep}:resume", {}),
]
#: Routes with an object in their path that are everybody's with the role: what they need names it (a lease's id), or
#: the object is the cluster's, or tasks of the role register trust each other (SECURITY.md).
EVERYBODYS = {
    ("POST", "/v1/leases/{lease}:renew"),
    ("POST", "/v1/leases/{lease}:release"),
    ("DELETE", "/v1/leases/{lease}"),
    ("PUT", "/v1/clusters/{cluster}"),
    ("PUT", "/v1/clusters/{cluster}/tasks/{job}/{index}"),
    ("POST", "/v1/clusters/{cluster}/tasks/{job}:claim"),
    ("POST", "/v1/runs/{run}:report"),
    ("POST", "/v1/runs/{run}/tasks/{job}/{index}:report"),
    ("PUT", "/v1/runs/{run}/traces/{trace}/tasks/{job}/{index}"),
    ("PUT", "/v1/runs/{run}/why/{asked}/tasks/{job}/{index}"),
    ("PUT", "/v1/runs/{run}/tasks/{job}/{index}/output"),
    ("PUT", "/v1/packages/{name}"),
}


def test_each_route_that_changes_an_object_is_in_one_table() -> None:
    tried = {
        (method, path) for method, path, _ in (*OF_A_SESSION, *OF_A_RUN, *OF_A_SWEEP) if method not in SAFE_METHODS
    }
    named = {(method, path) for (method, path), row in TABLE.items() if "{" in path and row.role.word != "admin"}
    named = {asked for asked in named if not asked[1].startswith("/v2/models/")}  # models are everybody's

    assert named == tried | EVERYBODYS
    assert not tried & EVERYBODYS


async def ask(api: httpx.AsyncClient, token: str, method: str, path: str, body: Any) -> httpx.Response:
    return await api.request(method, path, json=body, headers=by(token))


async def test_a_session_is_its_owner_s(api: httpx.AsyncClient, masters: Masters) -> None:
    session = await opened(api, OWNER)
    (master,) = masters.by_target.values()

    for role, token in OTHERS.items():
        for method, path, body in OF_A_SESSION:
            answer = await ask(api, token, method, path.format(session=session), body)

            needs_more = (method != "GET" and role == "read") or (path.endswith(":trace") and role == "run:untrusted")
            kind = "role-too-small" if needs_more else "owned-by-another"
            assert (answer.status_code, answer.json()["type"]) == (403, f"urn:tenfold:problem:{kind}"), (role, path)
    assert not master.steps
    assert not master.closed
    assert set(master.versions.values()) == {1}
    assert (await api.get(f"/v1/sessions/{session}", headers=by(OWNER))).status_code == 200


async def test_its_owner_and_admins_use_it(api: httpx.AsyncClient, masters: Masters) -> None:
    for token in (OWNER, ADMIN):
        session = await opened(api, OWNER)
        (master,) = masters.by_target.values()
        master.step = double
        for method, path, body in OF_A_SESSION:
            answer = await ask(api, token, method, path.format(session=session), body)
            assert answer.status_code in (200, 501), answer.text  # a scripted master tells no placement


async def test_lists_and_events_show_each_his_own(api: httpx.AsyncClient) -> None:
    mine = {token: await opened(api, token) for token in GUESTS}
    seen: dict[str, list[str]] = {}
    for token in (*GUESTS, OTHERS["read"], ADMIN):
        listed = await api.get("/v1/sessions", headers=by(token))
        seen[token] = [each["name"] for each in listed.json()["sessions"]]
    await api.get("/v1/events", params={"after": 0, "kind": "session", "wait": "20s"}, headers=by(ADMIN))
    told: dict[str, set[str]] = {}
    for token in (*GUESTS, OTHERS["read"], ADMIN):
        page = await api.get("/v1/events", params={"after": 0, "kind": "session"}, headers=by(token))
        told[token] = {event["object"] for event in page.json()["events"]}

    for token in GUESTS:
        assert seen[token] == [mine[token]]
        assert told[token] <= {mine[token]}
    assert (seen[OTHERS["read"]], told[OTHERS["read"]]) == ([], set())
    assert set(seen[ADMIN]) == set(mine.values())
    assert told[ADMIN]


async def test_a_session_stays_its_owner_s_over_a_restart(settings: Settings, masters: Masters) -> None:
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = await opened(api, GUESTS[0])
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        answers = [await api.get(f"/v1/sessions/{session}", headers=by(token)) for token in GUESTS]

    assert [answer.status_code for answer in answers] == [200, 403]


async def test_tokens_of_one_name_are_one_caller(settings: Settings, masters: Masters, tmp_path: Path) -> None:
    """So a token can be changed without losing what was made with it."""
    (tmp_path / "tokens").write_text(f"{ADMIN}\ntenfold-old role=run name=ci\ntenfold-new role=run name=ci\n")
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = await opened(api, "tenfold-old")
        answer = await api.get(f"/v1/sessions/{session}", headers=by("tenfold-new"))

    assert answer.status_code == 200


# -- runs


async def test_a_run_is_its_submitter_s(api: httpx.AsyncClient) -> None:
    run = (await api.post("/v1/runs", json=submission(launcher="external"), headers=by(OWNER))).json()["name"]

    for role, token in OTHERS.items():
        for method, path, body in OF_A_RUN:
            answer = await ask(api, token, method, path.format(run=run), body)

            kind = "role-too-small" if role in ("read", "run:untrusted") else "owned-by-another"
            assert (answer.status_code, answer.json()["type"]) == (403, f"urn:tenfold:problem:{kind}"), (role, path)
    assert (await api.get(f"/v1/runs/{run}", headers=by(OWNER))).json()["stop"] is None
    assert (await api.post(f"/v1/runs/{run}:stop", json={}, headers=by(OWNER))).status_code == 200


async def test_a_sweep_is_its_creator_s(settings: Settings, masters: Masters) -> None:
    asked = {"name": "s", "parameters": {"lr": {"values": [1]}}, "program": submission()}
    async with running_app(create_app(replace(settings, allow_runs=True), masters)) as api:
        created = await ask(api, OWNER, "POST", "/v1/sweeps", asked)
        for role, token in OTHERS.items():
            for method, path, body in OF_A_SWEEP:
                answer = await ask(api, token, method, path.format(sweep="s"), body)

                kind = "role-too-small" if role in ("read", "run:untrusted") else "owned-by-another"
                assert (answer.status_code, answer.json()["type"]) == (403, f"urn:tenfold:problem:{kind}"), (role, path)
        another = await ask(api, OTHERS["run"], "POST", "/v1/sweeps", asked)
        untouched = await ask(api, OWNER, "GET", "/v1/sweeps/s", None)
        cancelled = await ask(api, OWNER, "POST", "/v1/sweeps/s:cancel", {})

    assert (created.status_code, another.json()["type"]) == (201, "urn:tenfold:problem:sweep-differs")
    assert "by another caller" in another.text
    assert (untouched.json()["stop"], cancelled.json()["stop"]) == (None, "stopped by request")


async def test_a_submission_id_gives_nobody_another_s_run(api: httpx.AsyncClient) -> None:
    asked = submission(launcher="external", submission_id="nightly")
    first = await api.post("/v1/runs", json=asked, headers=by(OWNER))
    again = await api.post("/v1/runs", json=asked, headers=by(OWNER))
    another = await api.post("/v1/runs", json=asked, headers=by(OTHERS["run"]))

    assert (first.status_code, again.status_code, another.status_code) == (201, 200, 409)
    assert another.json()["type"] == "urn:tenfold:problem:submission-differs"


# -- keys


async def test_two_callers_use_one_key_independently(api: httpx.AsyncClient, masters: Masters) -> None:
    body = {"cluster": "default", "graph_def": {}}
    key = {"Idempotency-Key": "one"}
    first = await api.post("/v1/sessions", json=body, headers=by(GUESTS[0], **key))
    other = await api.post("/v1/sessions", json=body, headers=by(GUESTS[1], **key))
    different = await api.post("/v1/sessions", json={**body, "job": "worker"}, headers=by(OWNER, **key))
    again = [await api.post("/v1/sessions", json=body, headers=by(token, **key)) for token in GUESTS]
    spoiled = await api.post("/v1/sessions", json={**body, "job": "worker"}, headers=by(GUESTS[0], **key))

    assert [each.status_code for each in (first, other, different, *again)] == [201] * 5
    names = [each.json()["name"] for each in (first, other, different)]
    assert len(set(names)) == 3
    assert [each.json()["name"] for each in again] == names[:2]
    assert spoiled.status_code == 422


async def test_two_callers_submit_under_one_key(api: httpx.AsyncClient) -> None:
    asked, key = submission(launcher="external"), {"Idempotency-Key": "one"}
    answers = [await api.post("/v1/runs", json=asked, headers=by(token, **key)) for token in (OWNER, OTHERS["run"])]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert len({answer.json()["name"] for answer in answers}) == 2


async def test_a_key_from_before_runs_nothing_again_and_shows_nobody_its_answer(
    sqlite: str, masters: Masters, settings: Settings
) -> None:
    """In a database that was brought up to date it is not known whose it was."""
    settings = Settings(database=sqlite, token_file=settings.token_file)
    body, key = {"cluster": "default", "graph_def": {}}, {"Idempotency-Key": "one"}
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        await api.post("/v1/sessions", json=body, headers=by(OWNER, **key))
    former = _digest(b"/v1/sessions", b"one")
    with closing(sqlite3.connect(sqlite)) as db:
        db.execute("UPDATE tenfold_answers SET key = ?, principal = NULL", (former,))
        db.commit()
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        answers = [await api.post("/v1/sessions", json=body, headers=by(token, **key)) for token in (OWNER, *GUESTS)]
        fresh = await api.post("/v1/sessions", json=body, headers=by(OWNER, **{"Idempotency-Key": "two"}))

    assert {answer.json()["type"] for answer in answers} == {"urn:tenfold:problem:outcome-unknown"}
    assert fresh.status_code == 201
    assert len(next(iter(masters.by_target.values())).configs) == 2


# -- what stored answers take


def kept(database: str) -> tuple[int, int]:
    """Rows, and bytes of their answers."""
    with closing(sqlite3.connect(database)) as db:
        rows, size = db.execute("SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0) FROM tenfold_answers").fetchone()
    return int(rows), int(size)


async def keyed(api: httpx.AsyncClient, token: str, session: str, key: str) -> httpx.Response:
    return await api.post(f"/v1/sessions/{session}/steps", json=STEP, headers=by(token, **{"Idempotency-Key": key}))


async def test_answers_have_a_budget_and_their_keys_still_guard(
    sqlite: str, masters: Masters, settings: Settings
) -> None:
    settings = Settings(
        database=sqlite,
        token_file=settings.token_file,
        max_stored_answers=40_000,
        max_stored_answers_per_caller=20_000,
    )
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        sessions = {token: await opened(api, token) for token in GUESTS}
        (master,) = masters.by_target.values()
        master.step = lambda feeds, fetches, targets: [np.zeros(1000, np.float32)]
        small = await keyed(api, GUESTS[1], sessions[GUESTS[1]], "small")
        answers = [await keyed(api, GUESTS[0], sessions[GUESTS[0]], str(number)) for number in range(20)]
        rows, size = kept(sqlite)
        first, last = [await keyed(api, GUESTS[0], sessions[GUESTS[0]], key) for key in ("0", "19")]
        others = await keyed(api, GUESTS[1], sessions[GUESTS[1]], "small")
        ran = len(master.steps)

    assert {answer.status_code for answer in answers} == {200}
    assert rows == 21
    assert size <= 20_000 + len(small.content)
    # its key is remembered, its answer is not; nothing ran again
    assert (first.status_code, first.json()["type"]) == (500, "urn:tenfold:problem:answer-not-kept")
    assert first.json()["outcome"] == "done"
    assert (last.status_code, last.content) == (200, answers[-1].content)
    # one caller's answers do not take another's place
    assert (others.status_code, others.content) == (200, small.content)
    assert ran == 21


async def test_keys_are_bounded_and_what_is_refused_did_not_run(
    sqlite: str, masters: Masters, settings: Settings
) -> None:
    settings = Settings(database=sqlite, token_file=settings.token_file, max_keys=4, max_keys_per_caller=3)
    async with running_app(create_app(settings, masters), headers=by(ADMIN)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        sessions = {token: await opened(api, token) for token in (*GUESTS, OWNER)}
        (master,) = masters.by_target.values()
        mine = [await keyed(api, GUESTS[0], sessions[GUESTS[0]], str(number)) for number in range(4)]
        again = await keyed(api, GUESTS[0], sessions[GUESTS[0]], "0")
        other = await keyed(api, GUESTS[1], sessions[GUESTS[1]], "0")
        full = await keyed(api, OWNER, sessions[OWNER], "0")
        without = await api.post(f"/v1/sessions/{sessions[OWNER]}/steps", json=STEP, headers=by(OWNER))

    assert [answer.status_code for answer in mine] == [200, 200, 200, 429]
    assert json.loads(mine[-1].content)["outcome"] == "not-run"
    assert (again.status_code, other.status_code, full.status_code, without.status_code) == (200, 200, 429, 200)
    assert full.json()["type"] == "urn:tenfold:problem:too-many-keys"
    assert len(master.steps) == 5
