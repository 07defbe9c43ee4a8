"""The edges: problems for everything that is no request, who is accepted, sizes, probes, OpenAPI."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sqlite3
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.database import DatabaseError, database_url, shown
from tenfold_control_api.http1 import HEAD_BYTES
from tenfold_control_api.main import InsecureBindError, answered_hosts, check_bind, serve
from tenfold_control_api.problem_types import CODES
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors

from .conftest import PATIENCE, Masters, Service, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOKEN = "correct horse battery staple"


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "code"),
    [
        ("GET", "/nowhere", {}, 404, "NOT_FOUND"),
        ("GET", "/v1/clusters/x/tasks/ps", {}, 404, "NOT_FOUND"),
        ("PATCH", "/v1/clusters", {}, 405, "UNIMPLEMENTED"),
        ("PUT", "/v1/clusters/x", {"content": b"{"}, 415, "INVALID_ARGUMENT"),
        (
            "PUT",
            "/v1/clusters/x",
            {"content": b"{", "headers": {"Content-Type": "application/json"}},
            400,
            "INVALID_ARGUMENT",
        ),
        ("PUT", "/v1/clusters/x", {}, 400, "INVALID_ARGUMENT"),
        ("PUT", "/v1/clusters/x", {"json": {"jobs": {"ps": "1"}}}, 400, "INVALID_ARGUMENT"),
        ("PUT", "/v1/clusters/x", {"json": {"jobs": {"ps": 1}, "size": 2}}, 400, "INVALID_ARGUMENT"),
        ("PUT", "/v1/clusters/a%20b", {"json": {"jobs": {"ps": 1}}}, 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/clusters/x/tasks/ps/one", {}, 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/clusters/x/spec?after=-1", {}, 400, "INVALID_ARGUMENT"),
        ("POST", "/v1/sessions", {"content": b"x", "headers": {"Content-Type": "text/plain"}}, 415, "INVALID_ARGUMENT"),
        ("POST", "/v1/sessions/x/steps", {"content": b"{}"}, 415, "INVALID_ARGUMENT"),
        ("POST", "/v1/sessions/x/steps", {"json": {}}, 404, "NOT_FOUND"),
        ("DELETE", "/v1/sessions/x", {}, 404, "NOT_FOUND"),
        ("POST", "/v1/leases/x:renew", {}, 404, "NOT_FOUND"),
        ("POST", "/v1/leases/x:release", {"json": {"state": "done"}}, 400, "INVALID_ARGUMENT"),
    ],
)
async def test_everything_that_is_refused_is_a_problem(
    api: httpx.AsyncClient, method: str, path: str, more: dict[str, Any], status: int, code: str
) -> None:
    answer = await api.request(method, path, **more)
    problem = answer.json()

    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["detail"]
    assert problem["instance"] == httpx.URL(path).path


async def test_what_fails_inside_is_a_problem_with_a_reference(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tenfold_control_api.registry.Registry.refreshed", lambda self: 1 / 0)

    answer = await api.get("/v1/clusters")

    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
    assert "ZeroDivisionError" in answer.json()["detail"]
    assert "Traceback" not in answer.text
    assert answer.json()["detail"].split()[-1].rstrip(".") in caplog.text


async def test_a_compressed_body_is_refused_by_what_it_is(api: httpx.AsyncClient) -> None:
    """… and not by what its bytes look like: nothing here decompresses."""
    refused = await api.put("/v1/clusters/default", content=b"x", headers={"Content-Encoding": "gzip"})
    plain = await api.put("/v1/clusters/default", json={"jobs": {"ps": 1}}, headers={"Content-Encoding": "identity"})

    assert (refused.status_code, refused.json()["type"]) == (415, "urn:tenfold:problem:unsupported-media-type")
    assert "Content-Encoding 'gzip'" in refused.json()["detail"]
    assert plain.status_code == 201


def test_every_code_has_a_row() -> None:
    assert CODES.keys() == {errors.code_name(code) for code in range(1, 17)}


# -- who is accepted


@pytest.fixture
async def guarded(database: str, masters: Masters) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(create_app(Settings(database=database, token=TOKEN), masters)) as client:
        yield client


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Basic %%%", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"],
)
async def test_without_the_token_nothing_is_answered(guarded: httpx.AsyncClient, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    for method, path in [("GET", "/v1/clusters"), ("POST", "/v1/sessions"), ("GET", "/v1/events"), ("GET", "/nowhere")]:
        answer = await guarded.request(method, path, headers=headers)  # type: ignore[arg-type]

        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
        assert "Bearer" in answer.headers["www-authenticate"]


async def test_with_the_token(guarded: httpx.AsyncClient) -> None:
    bearer = await guarded.get("/v1/clusters", headers={"Authorization": f"Bearer {TOKEN}"})
    browser = await guarded.get("/v1/clusters", auth=("anyone", TOKEN))
    opened = ("/healthz", "/readyz", "/openapi.json", "/", "/ui/main.js")
    probes = [await guarded.get(path) for path in opened]
    scrape = await guarded.get("/metrics"), await guarded.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})

    assert (bearer.status_code, browser.status_code) == (200, 200)
    assert {probe.status_code for probe in probes} == {200}
    assert [each.status_code for each in scrape] == [401, 200]


@pytest.mark.parametrize("names", [("localhost", "localhost"), ("localhost", "evil.example")])
async def test_two_host_headers_are_refused(guarded: httpx.AsyncClient, names: tuple[str, str]) -> None:
    answer = await guarded.get("/healthz", headers=[("Host", name) for name in names])

    assert (answer.status_code, answer.json()["type"]) == (403, "urn:tenfold:problem:host-not-allowed")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil.example", "[::2]:80", ""])
async def test_another_host_name_is_not_answered(api: httpx.AsyncClient, host: str) -> None:
    answer = await api.get("/v1/clusters", headers={"Host": host})

    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:9", "LOCALHOST"])
async def test_loopback_host_names_are_answered(api: httpx.AsyncClient, host: str) -> None:
    assert (await api.get("/v1/clusters", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("10.1.2.3:8080", True),
        ("[fe80::1]:8080", True),
        ("control", True),
        ("CONTROL:80", True),
        ("evil.example", False),
    ],
)
async def test_beyond_loopback_addresses_and_known_names_are_answered(
    database: str, masters: Masters, host: str, answered: bool
) -> None:
    settings = Settings(database=database, allowed_hosts=("localhost", "control"), answer_addresses=True)
    async with running_app(create_app(settings, masters)) as api:
        answer = await api.get("/v1/clusters", headers={"Host": host})

    assert answer.status_code == (200 if answered else 403)
    assert answered or "TENFOLD_CONTROL_ALLOWED_HOSTS" in answer.json()["detail"]


def test_the_names_of_a_service_are_those_that_are_allowed_and_its_own() -> None:
    machine = socket.gethostname().lower()

    assert answered_hosts("127.0.0.1", ("localhost", "127.0.0.1")) == ("localhost", "127.0.0.1")
    assert answered_hosts("0.0.0.0", ("localhost", "Control")) == ("localhost", "control", machine)
    assert answered_hosts("trainer.lan", ("localhost",)) == ("localhost", "trainer.lan", machine)
    assert answered_hosts("0.0.0.0", None) is None


@pytest.mark.parametrize(
    ("headers", "admitted"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "http://localhost"}, True),
        ({"Origin": "http://127.0.0.1:9999"}, False),
        ({"Origin": "http://localhost:3000"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, False),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
    ],
)
async def test_a_page_of_another_origin_may_change_nothing(
    api: httpx.AsyncClient, headers: dict[str, str], admitted: bool
) -> None:
    put = await api.put("/v1/clusters/x", json={"jobs": {"ps": 1}}, headers=headers)
    read = await api.get("/v1/clusters", headers=headers)

    assert (put.status_code == 201) is admitted
    assert admitted or (put.status_code, put.json()["type"]) == (403, "urn:tenfold:problem:foreign-origin")
    assert read.status_code == 200
    assert len(read.json()["clusters"]) == admitted


async def test_a_foreign_page_may_change_nothing_with_a_password_that_the_browser_keeps(
    guarded: httpx.AsyncClient,
) -> None:
    answer = await guarded.put(
        "/v1/clusters/x", json={"jobs": {"ps": 1}}, auth=("me", TOKEN), headers={"Origin": "http://evil.example"}
    )

    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "control"])
def test_beyond_loopback_a_token_is_needed(host: str) -> None:
    with pytest.raises(InsecureBindError, match="TENFOLD_TOKEN"):
        serve(host, 0, "never-opened.db")

    check_bind(host, guarded=True, insecure=False)
    check_bind(host, guarded=False, insecure=True)


# -- sizes


async def test_bodies_have_a_limit(database: str, masters: Masters) -> None:
    settings = Settings(database=database, max_small_body=100, max_json_body=1000)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 100

    async with running_app(create_app(settings, masters)) as api:
        announced = await api.put("/v1/clusters/x", json={"jobs": {"x" * 200: 1}})
        headers = {"Content-Type": "application/json"}
        streamed = await api.put("/v1/clusters/x", content=chunks(), headers=headers)
        step = await api.post("/v1/sessions/x/steps", content=chunks(), headers=headers)
        keyed = await api.post("/v1/sessions", content=chunks(), headers={**headers, "Idempotency-Key": "k"})

    for answer in (announced, streamed, step, keyed):
        assert (answer.status_code, answer.json()["code"]) == (413, "RESOURCE_EXHAUSTED")
        assert answer.json()["retryable"] is False


# -- probes, OpenAPI, page


async def test_readiness_follows_the_database(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = await api.get("/readyz")

    async def gone(self: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr("tenfold_control_api.store.ControlStore.ping", gone)
    away = await api.get("/readyz")

    assert ready.status_code == 200
    assert (away.status_code, away.json()["code"]) == (503, "UNAVAILABLE")
    assert (await api.get("/healthz")).status_code == 200


@pytest.mark.parametrize("loop", ["control:lease-sweeper", "control:session-sweeper", "control:clearer"])
async def test_readiness_follows_the_sweepers(api: httpx.AsyncClient, loop: str) -> None:
    (running,) = [task for task in asyncio.all_tasks() if task.get_name() == loop]
    assert (await api.get("/readyz")).status_code == 200
    while not running.done():
        running.cancel()
        await asyncio.wait((running,), timeout=1)

    ended = await api.get("/readyz")

    assert (ended.status_code, ended.json()["type"]) == (503, "urn:tenfold:problem:not-ready")
    assert loop.split(":")[1].replace("-", " ") in ended.json()["detail"]
    assert (await api.get("/healthz")).status_code == 200


async def test_metrics(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)
    await register(api, "worker", 0)
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
    await api.post(f"/v1/sessions/{session}/steps", json={})

    text = (await api.get("/metrics")).text

    for line in (
        'tenfold_control_tasks{cluster="default",state="ready"} 1.0',
        'tenfold_control_tasks{cluster="default",state="missing"} 1.0',
        "tenfold_control_leases 1.0",
        "tenfold_control_sessions 1.0",
        'tenfold_control_step_seconds_count{code="OK"} 1.0',
        'tenfold_control_requests_total{method="POST",route="/v1/sessions/{session}/steps",status="200"} 1.0',
    ):
        assert line in text


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/clusters", "GET, HEAD"),
        ("/v1/clusters/x", "DELETE, GET, HEAD, PUT"),
        ("/v1/clusters/x/tasks/ps/0", "DELETE, GET, HEAD, PUT"),
        ("/v1/leases/x", "DELETE, GET, HEAD"),
        ("/v1/leases/x:renew", "POST"),
        ("/v1/runs", "GET, HEAD, POST"),
        ("/healthz", "GET, HEAD"),
    ],
)
async def test_a_method_that_is_not_offered_names_all_that_are(api: httpx.AsyncClient, path: str, allowed: str) -> None:
    answer = await api.patch(path)

    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert answer.json()["detail"] == f"PATCH is not offered at {path}; {allowed} is."


async def test_head_is_get_without_a_body(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.url, trust_env=False, timeout=PATIENCE) as client:
        for path in ("/healthz", "/v1/clusters", "/v1/runs/none", "/metrics", "/"):
            got, head = await client.get(path), await client.head(path)
            assert (head.status_code, head.content) == (got.status_code, b"")
            assert head.headers["content-type"] == got.headers["content-type"]
        stream = await client.head("/v1/events", headers={"Accept": "text/event-stream"})
        refused = await client.head("/v1/sessions/x/steps")

    assert (stream.status_code, stream.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_operations_have_plain_names(api: httpx.AsyncClient) -> None:
    document = (await api.get("/openapi.json")).json()

    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names), names


async def test_openapi_is_the_contract(api: httpx.AsyncClient) -> None:
    document = (await api.get("/openapi.json")).json()

    operations = [(m, p, o) for p, methods in document["paths"].items() for m, o in methods.items()]
    assert "/v1/clusters/{cluster}/tasks/{job}:claim" in document["paths"]
    assert "Problem" in document["components"]["schemas"]
    for method, path, operation in operations:
        assert operation["summary"], path
        problems = [operation["responses"][status] for status in operation["responses"] if status >= "400"]
        assert problems, path
        kind = "application/json" if path.startswith("/v2") else "application/problem+json"
        assert all(list(problem["content"]) == [kind] for problem in problems), path
        if method == "post":
            assert "Idempotency-Key" in {parameter["name"] for parameter in operation["parameters"]}


# -- settings and the database


def test_a_heartbeat_must_fit_into_its_lease() -> None:
    with pytest.raises(ValueError, match="below lease_ttl"):
        Settings(heartbeat=10, lease_ttl=10)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("x.db", "sqlite+aiosqlite:///x.db"),
        ("sqlite:////x.db", "sqlite+aiosqlite:////x.db"),
        ("postgresql://u@h/d", "postgresql+asyncpg://u@h/d"),
        ("postgres://u@h/d", "postgresql+asyncpg://u@h/d"),
    ],
)
def test_database_urls(given: str, url: str) -> None:
    assert str(database_url(given)) == url


def test_an_unsupported_database() -> None:
    with pytest.raises(DatabaseError, match="'mysql' is not supported"):
        database_url("mysql://h/d")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("sqlite://", "it is in memory"),
        ("sqlite:///:memory:", "it is in memory"),
        (":memory:", "it is in memory"),
        ("", "it is in memory"),
        ("sqlite:///file:x.db?uri=true", "options of an SQLite URL are not supported"),
        ("sqlite:///x.db?timeout=soon", "options of an SQLite URL are not supported"),
        ("sqlite://host/x.db", "three slashes"),
        ("sqlite:///x\0.db", "no null character"),
        ("://", "not a database URL"),
        ("postgresql://host:port/name", "not a database URL"),
        ("gopher://x", "'gopher' is not supported"),
    ],
)
def test_a_database_that_is_none(given: str, why: str) -> None:
    with pytest.raises(DatabaseError, match=why):
        database_url(given)


@pytest.mark.parametrize(
    ("given", "show"),
    [
        ("postgresql://me:secret@host/name", "postgresql://me:***@host/name"),
        ("postgresql://me:secret@host:port/name", "postgresql://…@host:port/name"),
        ("postgresql://me@host/name?password=secret", "postgresql://me@host/name"),
        ("x.db", "x.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
    ],
)
def test_messages_show_no_password(given: str, show: str) -> None:
    assert shown(given) == show


@pytest.mark.parametrize(
    ("options", "why"), [("", "Connect call failed"), ("?colour=red", "unexpected keyword argument 'colour'")]
)
async def test_a_database_server_that_is_not_there(options: str, why: str, masters: Masters) -> None:
    url = f"postgresql://me@127.0.0.1:1/name{options}"

    with pytest.raises(DatabaseError, match=why):
        async with running_app(create_app(Settings(database=url), masters)):
            pass


async def test_files_that_are_no_database(tmp_path: Path, masters: Masters) -> None:
    text, folder, locked = tmp_path / "text", tmp_path / "folder", tmp_path / "locked.db"
    text.write_text("not a database, but long enough to be looked at as if it were one" * 20)
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(locked, isolation_level=None)) as other:
        other.execute("CREATE TABLE mine (x)")
    locked.chmod(0o444)
    wrong = {text: "file is not a database", folder: "it is a folder"}
    if os.geteuid() != 0:  # root may write to anything
        wrong[locked] = "readonly database"

    for path, why in wrong.items():
        with pytest.raises(DatabaseError, match=why):
            async with running_app(create_app(Settings(database=str(path)), masters)):
                pass


async def test_a_folder_that_is_missing_is_made(tmp_path: Path, masters: Masters) -> None:
    path = tmp_path / "not" / "there" / "x.db"

    async with running_app(create_app(Settings(database=str(path)), masters)):
        assert path.exists()


async def test_others_may_not_read_the_database(tmp_path: Path, masters: Masters) -> None:
    path = tmp_path / "new" / "x.db"
    for existing in (False, True):
        if existing:
            path.chmod(0o644)
        async with running_app(create_app(Settings(database=str(path)), masters)):
            modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}

        assert modes == dict.fromkeys(("x.db", "x.db-shm", "x.db-wal", "x.db.lock"), 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_second_service_on_the_same_file_is_refused(sqlite: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=sqlite), masters)):
        with pytest.raises(DatabaseError, match="another control service"):
            async with running_app(create_app(Settings(database=sqlite), masters)):
                pass


def test_a_head_that_does_not_end_is_cut_off(service: Service) -> None:
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
        answer = b""
        with contextlib.suppress(ConnectionError):  # it need not take all of it, and what it says may be lost then
            peer.sendall(b"x" * (HEAD_BYTES + 300_000))
            answer = peer.recv(1 << 16)
        assert not answer or answer.startswith(b"HTTP/1.1 431 ")

    with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 30_000 + b"\r\n\r\n")
        assert peer.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
