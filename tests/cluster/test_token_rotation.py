"""A token is changed under a training that goes on: the new one beside the old one, then alone. Nothing is restarted.

Tasks take every connection for another user's, so that nothing comes in without the token; client, worker and
parameter server have one token file. The control service and its clients are in tests/control/test_token_rotation.py.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.session.grpc_master import GrpcMaster
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_link.link_settings import LinkSettings
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OLD, NEW = "tenfold-the-old-one", "tenfold-the-new-one"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The token file of this process's clients, which is looked at each time."""
    monkeypatch.setattr("tenfold_core.access.tokens._LOOK_S", 0.0)
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    path = tmp_path / "tokens"
    path.write_text(f"{OLD}\n")
    monkeypatch.setenv("TENFOLD_TOKEN_FILE", str(path))
    return path


@pytest.fixture
def cluster(file: Path) -> Iterator[Callable[[Any], dict[str, BackgroundServer]]]:
    started: list[BackgroundServer] = []

    def start(mode: Any) -> dict[str, BackgroundServer]:
        jobs = {"ps": {0: ""}, "worker": {0: ""}}
        access, link = AccessSettings(token_file=str(file)), LinkSettings(mode=mode)
        servers = {job: BackgroundServer(TaskServer(jobs, job, 0, access=access, link=link)) for job in jobs}
        for server in servers.values():
            server.start()
            started.append(server)
        for server in servers.values():
            server.update_cluster({job: {0: f"localhost:{each.port}"} for job, each in servers.items()})
        return servers

    yield start
    for server in started:
        server.stop()


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_training_goes_on_while_the_token_is_changed(
    mode: Any, cluster: Callable[[Any], dict[str, BackgroundServer]], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENFOLD_LINK", mode)
    servers = cluster(mode)
    target = servers["worker"].target
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/task:0"):
            weight = tf.get_variable("weight", initializer=8.0)
        with tf.device("/job:worker/task:0"):
            train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(weight))
        init = tf.global_variables_initializer()
    seen = []

    with tf.Session(target, graph=graph) as session:
        session.run(init)
        for content in (None, f"{NEW}\n{OLD}\n", f"{NEW}\n"):
            if content is not None:
                file.write_text(content)
            for _ in range(3):
                session.run(train)
            seen.append(session.run(weight))
            with tf.Session(target, graph=graph) as another:  # what has to be opened anew is accepted as well
                assert another.run(weight) == seen[-1]

    assert seen == [1.0, 0.125, 0.015625]
    late = GrpcMaster(target, AccessSettings(token=OLD))
    with pytest.raises(errors.UnauthenticatedError, match="does not know the token"):
        late.create_session(tf.Graph().as_graph_def(), ConfigProto(), 20)
    late.close()
