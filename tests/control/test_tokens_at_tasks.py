"""What is shown to a task opens that task alone, and its address changes only with its lease.

A FakeTask registers with a token of the role register, as its attacker would, and keeps what it is shown. What it got
is tried at the control service, at another task, and as the token of a greater role.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import tenfold as tf
from support.fake_task import FakeTask
from tenfold.control import ControlClient, TaskRegistration
from tenfold.session.grpc_master import GrpcMaster
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

from .conftest import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Service

ADMIN, MEMBER, ATTACKER, RUNNER = "tenfold-admin", "tenfold-member", "tenfold-attacker", "tenfold-runner"
LEASE, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    lines = f"{ADMIN}\n{MEMBER} role=register\n{ATTACKER} role=register\n{RUNNER} role=run\n"
    (tmp_path / "tokens").write_text(lines)
    return str(tmp_path / "tokens")


@pytest.fixture
def service(start_service: Callable[..., Service], tokens: str) -> Service:
    """With its own masters, as `tenfold control` has them, and a cluster of two."""
    service = start_service(master_factory=None, token_file=tokens, session_timeout=5.0, lease_ttl=60.0)
    with ControlClient(service.url, ADMIN) as admin:
        admin.declare_cluster("default", {"worker": 2})
    return service


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks take every loopback connection for another user's, so only what is shown counts."""
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))


@pytest.fixture
def task(service: Service, tokens: str, strange: None) -> Iterator[BackgroundServer]:
    """A real one, worker 0, that has the token file of the cluster."""
    with BackgroundServer(TaskServer({}, "worker", 0, access=AccessSettings(token_file=tokens))) as server:
        yield server


@contextlib.contextmanager
def registered(service: Service, server: BackgroundServer, token: str = ADMIN) -> Iterator[TaskRegistration]:
    address = f"127.0.0.1:{server.port}"
    with (
        ControlClient(service.url, token) as client,
        TaskRegistration(client, "default", "worker", 0, address, on_lease=server.hold_lease) as registration,
    ):
        yield registration


def one_graph() -> Any:
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="one")
    return graph.as_graph_def()


def put(service: Service, index: int, token: str, **body: Any) -> httpx.Response:
    path = f"{service.url}/v1/clusters/default/tasks/worker/{index}"
    return httpx.put(path, json=body, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=PATIENCE)


def claim(service: Service, token: str, **body: Any) -> httpx.Response:
    path = f"{service.url}/v1/clusters/default/tasks/worker:claim"
    return httpx.post(path, json=body, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=PATIENCE)


def readable(service: Service, index: int) -> dict[str, Any]:
    path = f"{service.url}/v1/clusters/default/tasks/worker/{index}"
    shown = {"Authorization": f"Bearer {RUNNER}"}
    found: dict[str, Any] = httpx.get(path, headers=shown, trust_env=False, timeout=PATIENCE).json()
    return found


def opens_control(service: Service, token: str) -> bool:
    shown = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{service.url}/v1/clusters", headers=shown, trust_env=False, timeout=PATIENCE).status_code == 200


def opens_task(server: BackgroundServer, token: str) -> bool:
    master = GrpcMaster(server.target, AccessSettings(token=token))
    try:
        handle, _ = master.create_session(one_graph(), ConfigProto(), PATIENCE)
        master.close_session(handle, PATIENCE)
    except errors.UnauthenticatedError:
        return False
    finally:
        master.close()
    return True


# -- what the control service shows


@pytest.mark.parametrize("own_lease", [True, False])
def test_what_a_fake_task_is_shown_opens_nothing_else(
    service: Service, task: BackgroundServer, own_lease: bool
) -> None:
    with FakeTask() as fake, registered(service, task):
        lease = {"lease": LEASE} if own_lease else {}
        assert put(service, 1, ATTACKER, address=fake.address, incarnation="f", **lease).status_code == 201
        with ControlClient(service.url, RUNNER) as runner, pytest.raises(errors.OpError):
            runner.create_session("default", one_graph(), job="worker", index=1)

    got = set(fake.shown) - {ATTACKER}
    assert fake.called
    assert not got & {ADMIN, MEMBER, RUNNER}
    assert not [token for token in got if opens_control(service, token)]
    assert not [token for token in got if opens_task(task, token)]
    # who made up no lease is shown what it has shown itself, and nothing else
    assert got or not own_lease


def test_a_real_task_lets_the_service_in_by_what_is_made_of_its_lease(service: Service, task: BackgroundServer) -> None:
    with (
        registered(service, task, MEMBER),
        ControlClient(service.url, RUNNER) as runner,
        runner.create_session("default", one_graph(), job="worker", index=0) as session,
    ):
        assert session.run("one:0") == 1


def test_a_task_that_registers_as_before_gets_the_cluster_s_token(service: Service, task: BackgroundServer) -> None:
    """A release from before: it knows the token that it registered with, and nothing of leases of its own."""
    answer = put(service, 0, ADMIN, address=f"127.0.0.1:{task.port}", incarnation="a")
    assert answer.status_code == 201

    with (
        ControlClient(service.url, RUNNER) as runner,
        runner.create_session("default", one_graph(), job="worker", index=0) as session,
    ):
        assert session.run("one:0") == 1


def test_after_a_new_lease_the_former_opens_nothing(service: Service, task: BackgroundServer) -> None:
    with registered(service, task) as registration, ControlClient(service.url, ADMIN) as admin:
        first = registration.lease.id
        admin.release(first, state="lost", exit_code=None, reason="the test says so")
        registration._renew()
        assert registration.lease.id != first
        with admin.create_session("default", one_graph(), job="worker", index=0) as session:
            assert session.run("one:0") == 1
        with pytest.raises(errors.FailedPreconditionError, match="has ended"):
            admin.register_task("default", "worker", 0, "127.0.0.1:9", incarnation="x", lease=first)


# -- what tasks show each other


@pytest.mark.parametrize("shown", [ADMIN, MEMBER])
def test_what_a_task_shows_to_a_fake_member_is_no_greater_than_a_member(
    service: Service, strange: None, tokens: str, shown: str, tmp_path: Path
) -> None:
    """A token of the role register is shown as it is; a fake member has one, or could not have registered."""
    (tmp_path / "own").write_text({ADMIN: ADMIN, MEMBER: f"{MEMBER} role=register"}[shown])
    access = AccessSettings(token_file=str(tmp_path / "own"))
    with FakeTask() as fake, BackgroundServer(TaskServer({}, "worker", 0, access=access)) as server:
        server.update_cluster({"worker": {0: f"127.0.0.1:{server.port}", 1: fake.address}})
        assert fake.met.wait(PATIENCE)

        assert ADMIN not in fake.shown
        if shown == ADMIN:
            assert not [token for token in fake.shown if opens_control(service, token)]
            assert not [token for token in fake.shown if opens_task(server, token)]


def test_tasks_of_one_admin_token_call_each_other(strange: None) -> None:
    access = AccessSettings(token=ADMIN)
    with (
        BackgroundServer(TaskServer({"worker": ["", ""]}, "worker", 0, access=access)) as left,
        BackgroundServer(TaskServer({"worker": ["", ""]}, "worker", 1, access=access)) as right,
    ):
        cluster = {"worker": {0: f"127.0.0.1:{left.port}", 1: f"127.0.0.1:{right.port}"}}
        left.update_cluster(cluster)
        right.update_cluster(cluster)
        with tf.Graph().as_default() as graph, tf.device("/job:worker/task:1"):
            tf.constant(1, name="one")
        master = GrpcMaster(left.target, access)
        handle, _ = master.create_session(graph.as_graph_def(), ConfigProto(), PATIENCE)
        (value,), _ = master.run_step(handle, {}, ["one:0"], [], tf.RunOptions(), PATIENCE)
        master.close()

    assert value == 1


# -- whose address it is


def test_the_readable_incarnation_moves_nothing(service: Service) -> None:
    assert put(service, 0, MEMBER, address="10.0.0.1:1", incarnation="i", lease=LEASE).status_code == 201
    known = readable(service, 0)

    for token in (ATTACKER, MEMBER):
        for more in ({}, {"lease": OTHER}):
            moved = put(service, 0, token, address="10.0.0.2:2", incarnation=known["incarnation"], **more)
            repeated = put(service, 0, token, address=known["address"], incarnation=known["incarnation"], **more)
            assert (moved.status_code, repeated.status_code) == (409, 409)
            assert moved.json()["type"].endswith("task-taken")
            assert LEASE not in moved.text + repeated.text
    assert readable(service, 0)["address"] == "10.0.0.1:1"

    moved = put(service, 0, MEMBER, address="10.0.0.2:2", incarnation="i", lease=LEASE)
    assert (moved.status_code, moved.json()["lease"]["id"]) == (200, LEASE)
    assert readable(service, 0)["address"] == "10.0.0.2:2"


def test_a_claim_with_a_readable_incarnation_gets_no_lease_of_another(service: Service) -> None:
    first = claim(service, MEMBER, address="10.0.0.1:1", incarnation="i", lease=LEASE)
    again = claim(service, MEMBER, address="10.0.0.1:1", incarnation="i", lease=LEASE)
    assert (first.status_code, again.status_code, again.json()["lease"]["id"]) == (201, 200, LEASE)

    stolen = claim(service, ATTACKER, address="10.0.0.1:1", incarnation="i")

    assert (stolen.status_code, stolen.json()["task"]["index"]) == (201, 1)
    assert stolen.json()["lease"]["id"] != LEASE


def test_who_made_up_no_lease_may_repeat_what_it_said_and_nobody_else(service: Service) -> None:
    first = put(service, 0, MEMBER, address="10.0.0.1:1", incarnation="i")
    lease = first.json()["lease"]["id"]

    assert put(service, 0, MEMBER, address="10.0.0.1:1", incarnation="i").json()["lease"]["id"] == lease
    assert put(service, 0, ATTACKER, address="10.0.0.1:1", incarnation="i").status_code == 409
    assert put(service, 0, MEMBER, address="10.0.0.2:2", incarnation="i").status_code == 409
    assert put(service, 0, MEMBER, address="10.0.0.2:2", incarnation="i", lease=lease).status_code == 200


def test_a_lease_is_of_one_place(service: Service) -> None:
    assert put(service, 0, MEMBER, address="10.0.0.1:1", incarnation="i", lease=LEASE).status_code == 201

    assert put(service, 1, MEMBER, address="10.0.0.1:1", incarnation="i", lease=LEASE).status_code == 409
    assert put(service, 1, MEMBER, address="10.0.0.1:1", incarnation="i", lease="short").status_code == 400
