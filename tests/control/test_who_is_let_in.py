"""Who may ask the control service for what: every route by every kind of caller, by table.

Tokens and roles are those of tasks (tests/cluster/test_who_is_let_in.py). What needs a certificate is in test_https.py.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.other_user import WHY_NOT, can_become
from support.task_processes import PATIENCE
from tenfold_control_api.app import create_app
from tenfold_control_api.route_roles import SAFE_METHODS, TABLE, needed
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.service_tokens import ServiceTokens
from tenfold_core.access import audit
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import Token, TokenFile, TokenSet, digest_of, line_of, new_token

from .conftest import declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from .conftest import Masters, Service

#: What anybody may ask for, and no more: written here, so that what is opened beside it fails.
OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs", "/", "/runs/compare")
OPEN_FOLDERS = ("/ui/", "/docs/")

TOKENS = {role: new_token() for role in Role if role}
EXPIRED, HASHED, OTHERS = new_token(), new_token(), new_token()


def write_tokens(path: Path) -> None:
    lines = [line_of(text, Token(digest_of(text), role, role.word), hashed=False) for role, text in TOKENS.items()]
    lines.append(line_of(HASHED, Token(digest_of(HASHED)), hashed=True))
    lines.append(line_of(EXPIRED, Token(digest_of(EXPIRED), name="old", expires=time.time() - 60), hashed=False))
    path.write_text("\n".join(lines))


@pytest.fixture
async def guarded(sqlite: str, masters: Masters, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    write_tokens(tmp_path / "tokens")
    settings = Settings(database=sqlite, token_file=str(tmp_path / "tokens"))
    async with running_app(create_app(settings, masters)) as api:
        yield api


def routes() -> list[tuple[str, str]]:
    """Every route that the app has."""
    paths = create_app(Settings(database="never-opened.db")).openapi()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def test_every_route_has_its_role() -> None:
    writing = {(method, path) for method, path in routes() if method not in SAFE_METHODS}

    assert writing == set(TABLE)
    assert {path for method, path in routes() if needed(method, path).role is Role.NONE} <= set(OPEN_PATHS)
    for method, path in routes():
        assert needed(method, re.sub(r"\{\w+\}", "x-1.y", path)) == needed(method, path)


@pytest.mark.parametrize("path", ["/v1/runs/x:y:report", "/v1/nowhere", "/v1/sessions/x/steps/", "/v1//leases/x:renew"])
def test_what_is_no_route_needs_the_most(path: str) -> None:
    assert needed("POST", path).role is Role.ADMIN
    assert needed("PATCH", "/v1/sessions").role is Role.ADMIN


CALLERS: dict[str, str | None] = {
    "no token": None,
    "an empty one": "",
    "a wrong one": new_token(),
    "an expired one": EXPIRED,
    "another cluster's": OTHERS,
    "a digest": "sha256:" + digest_of(HASHED).hex(),
    **{role.word: text for role, text in TOKENS.items()},
    "one kept as digest": HASHED,
}
KINDS = {
    "no token": "token-needed",
    "an expired one": "token-expired",
    "an empty one": "token-unknown",
    "a wrong one": "token-unknown",
    "another cluster's": "token-unknown",
    "a digest": "token-unknown",
}


#: The refusals that are told otherwise, and who is accepted by each of them.
QUICK = ("no token", "another cluster's", Role.READ.word, Role.ADMIN.word)


@pytest.mark.parametrize(
    "who", [pytest.param(who, marks=() if who in QUICK else pytest.mark.thorough) for who in CALLERS]
)
async def test_every_route_by(who: str, guarded: httpx.AsyncClient) -> None:
    text = CALLERS[who]
    headers = {} if text is None else {"Authorization": f"Bearer {text}"}
    role = next((role for role, token in TOKENS.items() if token == text), Role.ADMIN if text == HASHED else Role.NONE)
    wrong = []
    for method, path in [*routes(), ("GET", "/"), ("GET", "/ui/main.js"), ("GET", "/docs"), ("GET", "/openapi.json")]:
        opened = path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
        if path == "/v1/events":
            path += "?after=0&wait=0s"
        answer = await guarded.request(method, re.sub(r"\{\w+\}", "x", path), headers=headers)
        kind = answer.json()["type"].rpartition(":")[2] if answer.status_code >= 400 else ""
        refused = kind in (*KINDS.values(), "role-too-small")
        needs = TABLE[method, path].role if (method, path) in TABLE else Role.READ
        expected = "" if opened or role >= needs else KINDS.get(who, "role-too-small")
        if (kind if refused else "") != expected:
            wrong.append(f"{method} {path}: {answer.status_code} {kind}, not {expected or 'let in'}")
        if expected:
            assert answer.status_code == (403 if expected == "role-too-small" else 401)
    assert not wrong


@pytest.mark.parametrize("who", [*KINDS, Role.READ.word, Role.RUN.word, Role.REGISTER.word])
async def test_a_replayed_request_needs_what_the_first_one_needed(who: str, guarded: httpx.AsyncClient) -> None:
    """Who has listened, and sends a request once more with its key, does not get the stored answer."""
    by = {"Authorization": f"Bearer {TOKENS[Role.ADMIN]}"}
    await guarded.put("/v1/clusters/default", json={"jobs": {"ps": 1}}, headers=by)
    await guarded.put("/v1/clusters/default/tasks/ps/0", json={"address": "127.0.0.1:2222"}, headers=by)
    ending: dict[str, Any] = {
        "url": "/v1/clusters/default/tasks/ps/0:end",
        "json": {"state": "finished", "reason": "a secret"},
    }
    key = {"Idempotency-Key": "the-key"}
    first = await guarded.post(**ending, headers=by | key)
    same = await guarded.post(**ending, headers=by | key)

    text = CALLERS[who]
    shown = {} if text is None else {"Authorization": f"Bearer {text}"}
    replayed = await guarded.post(**ending, headers=shown | key)

    assert (first.status_code, same.headers["Idempotency-Replayed"]) == (200, "true")
    assert replayed.status_code == (401 if who in KINDS else 403)
    assert "a secret" not in replayed.text


async def test_a_token_file_is_read_again(guarded: httpx.AsyncClient, tmp_path: Path) -> None:
    fresh = new_token()
    files = TokenFile(str(tmp_path / "tokens"), clock=iter([0.0, 10.0, 20.0]).__next__)
    (tmp_path / "tokens").write_text(fresh)

    assert files.current().find(fresh) is not None
    assert files.current().find(TOKENS[Role.ADMIN]) is None


async def test_two_tokens_with_a_comma_are_both_good(sqlite: str, masters: Masters) -> None:
    settings = Settings(database=sqlite, token="the new one,the old one")
    async with running_app(create_app(settings, masters)) as api:
        for each in ("the new one", "the old one"):
            assert (await api.get("/v1/clusters", headers={"Authorization": f"Bearer {each}"})).status_code == 200


# -- without tokens

_ASK = """
import sys
import http.client
sys.path.insert(0, {tests!r})
from support.other_user import become_nobody
become_nobody()
connection = http.client.HTTPConnection("127.0.0.1", {port}, timeout=20)
connection.request("GET", {path!r})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""


def as_nobody(service: Service, path: str) -> tuple[int, str]:
    """What another user of this machine gets."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = _ASK.format(tests=tests, port=service.url.rpartition(":")[2], path=path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    status, _, body = done.stdout.partition(" ")
    return int(status), body


@pytest.mark.skipif(not can_become, reason=WHY_NOT)
def test_without_tokens_another_user_is_not_let_in(start_service: Callable[..., Service]) -> None:
    service = start_service()

    status, body = as_nobody(service, "/v1/clusters")

    assert (status, json.loads(body)["type"]) == (401, "urn:tenfold:problem:another-user")
    assert "user 65534" in body
    assert as_nobody(service, "/healthz")[0] == 200
    assert httpx.get(f"{service.url}/v1/clusters", timeout=PATIENCE).status_code == 200


@pytest.mark.skipif(not can_become, reason=WHY_NOT)
def test_insecure_lets_everybody_in(start_service: Callable[..., Service]) -> None:
    assert as_nobody(start_service(insecure=True), "/v1/clusters")[0] == 200


def test_with_tokens_the_same_user_shows_one_too(start_service: Callable[..., Service]) -> None:
    service = start_service(token="a token of ours")

    assert httpx.get(f"{service.url}/v1/clusters", timeout=PATIENCE).status_code == 401
    shown = {"Authorization": "Bearer a token of ours"}
    assert httpx.get(f"{service.url}/v1/clusters", headers=shown, timeout=PATIENCE).status_code == 200


# -- the tokens of programs that the service starts


def test_programs_get_a_token_for_tasks_and_no_more(tmp_path: Path) -> None:
    held = [TokenSet.of_text("the admin's", "here")]
    tokens = ServiceTokens(lambda: held[0])

    path = tokens.for_programs(tmp_path / "runs" / "tokens")

    assert path is not None
    theirs = TokenSet.of_file(str(path))
    assert theirs.shown is not None
    found = tokens.current().find(theirs.shown)
    assert found is not None
    assert (found.role, path.stat().st_mode & 0o777) == (Role.REGISTER, 0o600)
    assert "the admin's" not in path.read_text()
    own = theirs.find("the admin's")
    assert own is not None
    assert own.role is Role.ADMIN

    held[0] = TokenSet.of_text("the next one,the admin's", "here")
    after = tokens.current()
    renewed = TokenSet.of_file(str(path)).shown
    assert renewed not in (None, theirs.shown)
    assert after.find(renewed or "") is not None
    assert after.find(theirs.shown) is not None


def test_a_reader_s_token_gives_programs_no_more() -> None:
    text = "to look only"
    tokens = ServiceTokens(lambda: TokenSet([(text, Token(digest_of(text), Role.READ))]))

    assert {token.role for _, token in tokens.current().lines} == {Role.READ}


def test_digests_alone_start_no_programs(tmp_path: Path) -> None:
    tokens = ServiceTokens(lambda: TokenSet([(None, Token(digest_of(HASHED)))]))

    with pytest.raises(ValueError, match="--hashed"):
        tokens.for_programs(tmp_path / "tokens")


# -- the audit log


async def test_who_did_what_is_written(
    guarded: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "refusals", audit.Refusals())
    caplog.set_level(logging.INFO, "tenfold.audit")
    by = {"Authorization": f"Bearer {TOKENS[Role.REGISTER]}"}
    await guarded.put("/v1/clusters/default", json={"jobs": {"ps": 1}}, headers=by)
    await guarded.delete("/v1/clusters/default", headers=by)
    await guarded.get("/v1/clusters", headers=by)

    done, refused = [record.__dict__["fields"] for record in caplog.records if record.name == "tenfold.audit"]

    who = {"caller": "token register", "role": "register", "path": "/v1/clusters/default", "address": "127.0.0.1"}
    assert {**done, **who, "action": "declare cluster", "outcome": "done", "method": "PUT"} == done
    assert {**refused, **who, "action": "delete cluster", "outcome": "refused: role-too-small"} == refused


async def test_a_task_that_is_lost_is_written(sqlite: str, masters: Masters, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tenfold.audit")
    settings = Settings(database=sqlite, heartbeat=0.05, lease_ttl=0.2)
    async with running_app(create_app(settings, masters)) as api:
        await declare(api, ps=1)
        await register(api, "ps", 0)
        await api.get("/v1/clusters/default/spec", params={"after": 2, "wait": "20s"})

    *_, line = [record.__dict__["fields"] for record in caplog.records if record.name == "tenfold.audit"]
    lost = {"action": "lose task", "outcome": "done", "caller": "this process", "cluster": "default"}
    assert {**line, **lost, "task": "/job:ps/replica:0/task:0"} == line
    assert line["reason"].startswith("its lease ran out: no heartbeat for 0.")
