"""Real TensorFlow, client and server, on the other side of tunnels: it speaks in the clear to its own machine alone.

Our tasks take every connection for another user's, so that nothing comes in but what the tunnels show. The same with a
stand-in for TensorFlow, and everything that is refused, is in tests/cluster/test_tunnel.py.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.certs import access
from support.ports import free_addresses
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

from .tensorflow_processes import clients, tensorflow_servers
from .test_client_matrix import LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tenfold_core.access.credentials import AccessSettings


@pytest.fixture(autouse=True)
def as_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))


@contextmanager
def tunnels(*each: tuple[str, str, tuple[str, ...]]) -> Iterator[None]:
    """(listen, to, options) of each tunnel, a process of its own, listening."""
    with Children(echo=lambda name, line: None) as children:
        for listen, to, options in each:
            program = [*CLI, "tunnel", "--listen", listen, "--to", to, *options]
            children.start(f"tunnel to {to}", program, stage=1)
        for _, to, _ in each:
            children.wait_for_line(f"tunnel to {to}", "tunnel listening on", PATIENCE)
        yield


def shown(settings: AccessSettings) -> tuple[str, ...]:
    options = {"--tls-cert": settings.tls_cert, "--tls-key": settings.tls_key, "--tls-ca": settings.tls_ca}
    return tuple(str(word) for option in options.items() for word in option)


_SESSION = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [None])
v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
y = v.assign_add(tf.reduce_sum(x))
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    sums = [float(session.run(y, {x: np.ones(1_000_000, np.float32)})) for _ in range(3)]
try:
    with tf.Session(sys.argv[2]) as session:
        session.run(tf.constant(1))
    refused = None
except tf.errors.OpError as error:
    refused = [type(error).__name__, error.message]
print(json.dumps({"sums": sums, "refused": refused}))
"""


@pytest.mark.parametrize("what", ["a certificate", "a token"])
def test_a_client_comes_through_a_tunnel(what: str, tmp_path: Path, ask_tensorflow: Callable[..., Any]) -> None:
    task = access(tmp_path, token="tenfold-the-token")
    if what == "a token":
        (tmp_path / "token").write_text("tenfold-the-token\n")
        options = ("--tls-ca", str(task.tls_ca), "--token-file", str(tmp_path / "token"))
    else:
        options = shown(access(tmp_path, "client", Role.RUN))
    (here,) = free_addresses(1)
    with (
        BackgroundServer(TaskServer({"localhost": {0: ""}}, "localhost", 0, access=task)) as server,
        tunnels((here, f"localhost:{server.port}", options)),
    ):
        found = ask_tensorflow(_SESSION, f"grpc://{here}", server.target)

    assert found["sums"] == [1e6, 2e6, 3e6]
    assert found["refused"][0] == "UnauthenticatedError"


@pytest.mark.thorough
def test_a_parameter_server_of_tensorflow_behind_a_tunnel(tmp_path: Path) -> None:
    """TensorFlow's ps sits on "another machine": what goes to it and what it says itself goes through tunnels."""
    ps, ps_outside, worker_at_ps, worker_at_client = free_addresses(4)
    worker, ps_tunnel = access(tmp_path, "worker"), access(tmp_path, "ps")
    with ExitStack() as stack:
        addresses: dict[str, dict[int, str]] = {"ps": {0: ps_outside}, "worker": {0: ""}}
        server = stack.enter_context(BackgroundServer(TaskServer(addresses, "worker", 0, access=worker)))
        there = f"localhost:{server.port}"
        server.update_cluster({"ps": {0: ps_outside}, "worker": {0: there}})
        stack.enter_context(
            tunnels(
                (ps_outside, ps, ("--reverse", *shown(ps_tunnel))),
                (worker_at_ps, there, shown(ps_tunnel)),
            )
        )
        client = access(tmp_path, "client", Role.RUN)
        stack.enter_context(tunnels((worker_at_client, there, shown(client))))
        stack.enter_context(tensorflow_servers("2.21", {"ps": [ps], "worker": [worker_at_ps]}, [("ps", 0)]))
        call = f"train=grpc://{worker_at_client},{tmp_path},12"
        with clients("2.21", tmp_path, client=[call]) as started:
            trained = started["client"].answers()["train"]

    assert "failed" not in trained, trained["failed"]
    assert (trained["begin"], trained["end"], trained["saved_step"]) == (0, 12, 12)
    np.testing.assert_allclose(trained["losses"][:5], LOSSES, rtol=1e-5)
