"""Every method of a task's port × every kind of caller: nobody runs a graph without being let in.

The same user of this machine needs no token. Strangers are connections whose user the gate is told to be another one,
and, where tests may start one, a process of another user. tests/unit/core/access has the decisions themselves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from support.other_user import WHY_NOT, can_become
from support.parts import PartBuilder
from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.peer_user import CAN_TELL
from tenfold_link.wire import handshake
from tenfold_protos import link_pb2
from tenfold_services import server as server_module
from tenfold_services.rpc import examine_service, master_service, own_services, worker_service
from tenfold_services.rpc.link_worker import LinkWorker
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SERVICES = {
    "tensorflow": (master_service.DESCRIPTOR, worker_service.DESCRIPTOR),
    "tenfold": (own_services.LINKS, own_services.PEERS, examine_service.DESCRIPTOR, own_services.PLACEMENT),
    "grpc.health.v1": (own_services.HEALTH,),
}
METHODS = {
    f"/{package}.{service.name}/{method.name}": method.name
    for package, services in SERVICES.items()
    for service in services
    for method in service.methods
}
#: What anybody who may look may ask for; methods that are not served say only that.
OPEN_TO_READERS = {"GetStatus", "ListDevices", "GetPlacement", "Check", "Watch", *worker_service.REFUSED}
OF_TASKS = {method.name for method in worker_service.DESCRIPTOR.methods} | {"ExchangeFinished"}

GOOD, TASK, RUNNER, READER = "tenfold-admin", "tenfold-of-a-task", "tenfold-of-a-runner", "tenfold-of-a-reader"
UNTRUSTED = "tenfold-of-a-guest"
EXPIRED = "tenfold-of-last-year"
TOKENS = f"""
{GOOD}
{TASK} role=register
{RUNNER} role=run
{READER} role=read
{UNTRUSTED} role=run:untrusted
{EXPIRED} expires=2025-01-01T00:00:00Z
"""
REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


@pytest.fixture(params=["http2", "grpcio"])
async def server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[TaskServer]:
    """A task that takes every loopback connection for another user's."""
    (tmp_path / "tokens").write_text(TOKENS)
    monkeypatch.setenv("TENFOLD_GRPC", request.param)
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    async with TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings(token_file=str(tmp_path / "tokens"))) as started:
        yield started


async def outcome(server: TaskServer, path: str, token: str | None) -> grpc.StatusCode:
    """How an empty request of a stranger ends, which shows `token`."""
    metadata = None if token is None else (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        try:
            await channel.unary_unary(path)(b"", timeout=30, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


async def test_all_methods_that_a_task_serves_are_tried(server: TaskServer) -> None:
    assert server._port is not None
    served = {path for service in server._port.services for path in service.handlers}

    assert set(METHODS) == served
    assert set(METHODS.values()) > {"RunStep", "RunGraph", "OpenLink", "ExchangeFinished"}


@pytest.mark.parametrize("token", [None, "wrong-token", EXPIRED, "tenfold-of-another-cluster"])
async def test_without_a_good_token_nothing_is_done(server: TaskServer, token: str | None) -> None:
    found = {path: await outcome(server, path, token) for path in METHODS}

    assert found == dict.fromkeys(METHODS, grpc.StatusCode.UNAUTHENTICATED)


@pytest.mark.parametrize(
    ("token", "forbidden"),
    [
        (READER, set(METHODS.values()) - OPEN_TO_READERS),
        (RUNNER, OF_TASKS - OPEN_TO_READERS),
        (UNTRUSTED, set(METHODS.values()) - OPEN_TO_READERS - {"CreateSession", "OpenLink"}),
        (TASK, set()),
        (GOOD, set()),
    ],
)
async def test_a_good_token_opens_what_its_role_may_do(server: TaskServer, token: str, forbidden: set[str]) -> None:
    found = {path: await outcome(server, path, token) for path in METHODS}

    assert {METHODS[path] for path, code in found.items() if code in REFUSED} == forbidden
    assert all(code is grpc.StatusCode.PERMISSION_DENIED for code in found.values() if code in REFUSED)


async def test_the_refusal_says_what_is_missing(server: TaskServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/tensorflow.MasterService/CreateSession")(b"", timeout=30)

    details = caught.value.details() or ""
    assert "tensorflow.MasterService/CreateSession is refused by /job:ps/replica:0/task:0" in details
    assert "Set TENFOLD_TOKEN or TENFOLD_TOKEN_FILE where it comes from" in details


def worker_at(server: TaskServer, token: str) -> LinkWorker:
    """Another task, which shows `token`."""
    return LinkWorker(
        server.task,
        f"localhost:{server.port}",
        own=("/job:worker/replica:0/task:0", 1),
        on_link=lambda link: {},
        settings=server._link_settings,
        deliver=lambda *_: None,
        credentials=AccessSettings(token=token).credentials(),
    )


async def run_a_part(worker: LinkWorker) -> Any:
    part = PartBuilder("")
    part.const("c", b"hello")
    await worker.create_worker_session("s", None, False, ("/job:worker/replica:0/task:0", 1))
    return await worker.register_graph("s", part.graph_def, server_module.ConfigProto())


async def test_a_task_that_shows_the_token_is_a_peer(server: TaskServer) -> None:
    worker = worker_at(server, TASK)
    try:
        assert await run_a_part(worker)
        assert await worker.connect()
        assert await worker.arrange([]) == []
    finally:
        await worker.close()


async def test_a_runner_is_no_peer(server: TaskServer) -> None:
    worker = worker_at(server, RUNNER)
    try:
        with pytest.raises(errors.PermissionDeniedError, match="needs the role register, and this caller has run"):
            await run_a_part(worker)
        # nor over a link, which it may open for steps of sessions
        with pytest.raises(errors.PermissionDeniedError, match="the peer of this link has run"):
            await worker.connect()
    finally:
        await worker.close()


#: As another user, without a token and with one: the status of a CreateSession.
OTHER_USER = """
import sys
import grpc
from support.other_user import become_nobody

grpc.insecure_channel("127.0.0.1:1").close()  # loads what gRPC loads late
become_nobody()
with grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}") as channel:
    for metadata in (None, (("authorization", f"Bearer {sys.argv[2]}"),)):
        try:
            channel.unary_unary("/tensorflow.MasterService/CreateSession")(b"", timeout=20, metadata=metadata)
            print("OK")
        except grpc.RpcError as error:
            print(error.code().name)
"""


@pytest.mark.skipif(not CAN_TELL or not can_become, reason=WHY_NOT)
@pytest.mark.parametrize("transport", ["http2", "grpcio"])
async def test_a_process_of_another_user_needs_the_token(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", transport)
    async with TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings(token=GOOD)) as server:
        program = [sys.executable, "-c", OTHER_USER, str(server.port), GOOD]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        ended = await asyncio.to_thread(
            subprocess.run, program, env=environment, capture_output=True, text=True, timeout=60, check=True
        )

    assert ended.stdout.split() == ["UNAUTHENTICATED", "OK"]


@pytest.mark.parametrize("transport", ["http2", "grpcio"])
async def test_the_same_user_needs_none(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", transport)
    async with TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings(token=GOOD)) as server:
        assert await outcome(server, "/tensorflow.MasterService/CreateSession", None) is grpc.StatusCode.OK
        assert await outcome(server, "/tensorflow.MasterService/CreateSession", "x-wrong") in REFUSED


async def test_insecure_lets_every_user_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    async with TaskServer({"ps": [""]}, "ps", 0, insecure=True, access=AccessSettings()) as server:
        assert await outcome(server, "/tensorflow.MasterService/CreateSession", None) is grpc.StatusCode.OK


async def test_a_token_is_enough_to_listen_beyond_loopback() -> None:
    async with TaskServer({"ps": [""]}, "ps", 0, bind="0.0.0.0:0", access=AccessSettings(token=GOOD)) as server:
        assert server.port > 0

    with pytest.raises(errors.PermissionDeniedError, match="refuses to listen on 0"):
        TaskServer({"ps": [""]}, "ps", 0, bind="0.0.0.0:0", access=AccessSettings())


@pytest.fixture
def audited(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """What stands in the audit log."""
    monkeypatch.setattr(audit, "refusals", audit.Refusals())
    caplog.set_level(logging.INFO, "tenfold.audit")
    return lambda: [record.__dict__["fields"] for record in caplog.records if record.name == "tenfold.audit"]


@pytest.mark.parametrize("transport", ["http2", "grpcio"])
async def test_sessions_and_refusals_are_written(
    audited: Callable[[], list[dict[str, Any]]], transport: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", transport)
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    master = "/tensorflow.MasterService/"
    (tmp_path / "tokens").write_text("let-me-run role=run name=ci\nlet-me-look role=read name=bob\n")
    access = AccessSettings(token_file=str(tmp_path / "tokens"))
    async with TaskServer({"ps": [""]}, "ps", 0, access=access) as server:
        await outcome(server, master + "CreateSession", "wrong-token")
        await outcome(server, master + "RunStep", "let-me-look")
        await outcome(server, master + "CreateSession", "let-me-run")
        await outcome(server, master + "CloseSession", "let-me-run")

    lines = audited()
    assert [(line["action"], line["outcome"].partition(":")[0], line["caller"], line["role"]) for line in lines] == [
        ("create session", "refused", f"user {os.geteuid() + 1}", "none"),
        ("RunStep", "refused", "token bob", "read"),
        ("create session", "done", "token ci", "run"),
        ("close session", "failed", "token ci", "run"),
        ("end session", "done", "this process", "admin"),
    ]
    assert all("127.0.0.1" in line["address"] for line in lines[:-1])
    assert lines[2]["session"]
    assert lines[2]["session"] == lines[4]["session"]
    assert "Session  is not found" in lines[3]["error"]


async def test_links_that_are_opened_and_refused_are_written(
    server: TaskServer, audited: Callable[[], list[dict[str, Any]]]
) -> None:
    worker = worker_at(server, RUNNER)
    try:
        with pytest.raises(errors.PermissionDeniedError):
            await worker.connect()
    finally:
        await worker.close()
    assert server._port is not None
    assert server._port.links is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server._port.links._tcp_port)
    writer.write(handshake.hello(link_pb2.OpenLinkResponse(token=b"of nobody"), None, always_reads=True))
    async with asyncio.timeout(30):
        await reader.read()
    writer.close()

    lines = [(line["action"], line["outcome"], line["role"]) for line in audited()]
    assert ("open link", "done", "run") in lines
    over_a_link, unknown = [line for line in lines if line[1].startswith("refused")][-2:]
    assert over_a_link[1:] == ("refused: it needs the role register", "run")
    assert unknown == ("open link", "refused: it sent a token that is not good (any more)", "none")
