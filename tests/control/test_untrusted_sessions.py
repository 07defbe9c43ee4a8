"""Sessions of the role run:untrusted over REST, on a real task: their master knows what they may do, and whose they
are.

tests/cluster/test_untrusted_sessions.py has the same over gRPC and links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.control import ControlClient, TaskRegistration
from tenfold.session.grpc_master import GrpcMaster
from tenfold_control_api.masters import link_masters
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.roles import Role
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.background import BackgroundServer
from tenfold_services.rpc import master_service
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Service

ADMIN, RUNNER, GUEST = "tenfold-of-an-admin", "tenfold-of-a-runner", "tenfold-of-a-guest"


@pytest.fixture
def service(start_service: Callable[..., Service], tmp_path: Path) -> Iterator[Service]:
    """With one task, which takes the service for its own user's process: it may do everything there."""
    (tmp_path / "tokens").write_text(f"{ADMIN}\n{RUNNER} role=run\n{GUEST} role=run:untrusted\n")
    factory = link_masters(AccessSettings())
    service = start_service(master_factory=factory, token_file=str(tmp_path / "tokens"))
    server = BackgroundServer(TaskServer({}, "worker", 0))
    server.start()
    address = f"127.0.0.1:{server.port}"
    with ControlClient(service.url, ADMIN) as admin:
        admin.declare_cluster("default", {"worker": 1})
        with TaskRegistration(
            admin,
            "default",
            "worker",
            0,
            address,
            on_spec=lambda _: server.update_cluster({"worker": {0: address}}),
        ):
            yield service
    server.stop(1.0)


@pytest.fixture
def guest(service: Service) -> Iterator[ControlClient]:
    with ControlClient(service.url, GUEST) as client:
        yield client


@pytest.fixture
def runner(service: Service) -> Iterator[ControlClient]:
    with ControlClient(service.url, RUNNER) as client:
        yield client


def graph_of(build: Callable[[], Any]) -> Any:
    with tf.Graph().as_default() as graph:
        build()
    return graph.as_graph_def()


def computes() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.get_variable("v", initializer=2.0)
    tf.group(v.initializer, name="init")
    tf.add(v, x, name="y")


def reads() -> None:
    tf.identity(tf.read_file("/etc/hostname"), name="y")


def test_a_graph_that_computes_runs(guest: ControlClient) -> None:
    with guest.create_session("default", graph_of(computes)) as session:
        session.run("init")
        for value in range(3):
            assert session.run("y:0", {"x:0": np.float32(value)}) == value + 2


def test_one_that_does_more_is_refused_and_so_is_what_comes_later(guest: ControlClient) -> None:
    refused = pytest.raises(errors.PermissionDeniedError, match=r"is a ReadFile, which.*run:untrusted")
    with refused:
        guest.create_session("default", graph_of(reads))
    with guest.create_session("default", graph_of(lambda: tf.constant(1, name="one"))) as session:
        with refused:
            session.extend(graph_of(reads))
        assert session.run("one:0") == 1


def test_another_ones_session_is_neither_run_nor_extended_nor_closed(
    guest: ControlClient, runner: ControlClient
) -> None:
    with runner.create_session("default", graph_of(reads)) as trusted:
        before = trusted.run("y:0")
        stolen = guest.session(trusted.id)
        refused = pytest.raises(errors.PermissionDeniedError, match="was made by another caller")
        with refused:
            stolen.run("y:0")
        with refused:
            stolen.extend(graph_of(lambda: tf.constant(1, name="one")))
        with refused:
            stolen.close()
        assert trusted.run("y:0") == before


def test_variables_of_others_are_not_seen(guest: ControlClient, runner: ControlClient) -> None:
    with runner.create_session("default", graph_of(computes)) as trusted:
        trusted.run("init")
        session = guest.create_session("default", graph_of(computes))
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized"):
            session.run("y:0", {"x:0": np.float32(1)})
        session.close()


def test_a_guest_closes_his_own(guest: ControlClient, service: Service) -> None:
    session = guest.create_session("default", graph_of(computes))
    session.close()
    with pytest.raises(errors.NotFoundError):
        session.run("y:0", {"x:0": np.float32(1)})


def test_a_master_that_does_not_know_lesser_roles_gets_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an older task, or TensorFlow's: it would open one that may do everything."""
    server = BackgroundServer(TaskServer({"worker": [""]}, "worker", 0))
    server.start()
    monkeypatch.setattr(master_service, "AS_ROLE", "not-known")
    master = GrpcMaster(server.target, as_role=Role.RUN_UNTRUSTED)
    with pytest.raises(errors.PermissionDeniedError, match="opens no sessions of the role run:untrusted"):
        master.create_session(graph_of(computes), ConfigProto(), 20.0)
    assert server.master.open_sessions == []
    master.close()
    server.stop(0)
