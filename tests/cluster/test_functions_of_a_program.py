"""A function of a program (py_func) runs for the sessions of that program, and for no other that has learned its token.

The strangers call as any client does, over gRPC and over a link; what they know is the graph, and at worst the
handle of the program's own session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.functions import call, function, graph, node
from tenfold.session import inprocess
from tenfold.session.grpc_master import GrpcMaster
from tenfold.session.link_master import LinkMaster
from tenfold_core import dtypes, errors, script_functions
from tenfold_protos.config_pb2 import ConfigProto, RunOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_protos.graph_pb2 import GraphDef

#: What a session of another program gets to hear.
NOT_FOUND = r"callback pyfunc_\w+ is not found.*for the sessions that this process opens"


class Program:
    """A program with a function in its graph, and a server of its own."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.called: list[float] = []
        self.graph = tf.Graph()
        with self.graph.as_default():
            given = tf.placeholder(tf.float32, [], name="given")
            tf.py_func(self._function, [given], tf.float32, name="secret")

    def _function(self, x: Any) -> Any:
        self.called.append(float(x))
        return np.float32(x + 1)

    @property
    def graph_def(self) -> GraphDef:
        """What a stranger may find in graph.pbtxt, in a summary, or in another task's trace."""
        return self.graph.as_graph_def()


@pytest.fixture
def program() -> Iterator[Program]:
    with background_cluster({"worker": 1}) as servers:
        server = servers["worker", 0]
        inprocess.register(server.target, server)
        yield Program(server.target)
        inprocess.unregister(server.target)


@pytest.fixture(params=[GrpcMaster, LinkMaster])
def stranger(request: pytest.FixtureRequest, program: Program) -> Iterator[GrpcMaster]:
    """A client that reached the server over the network."""
    master = request.param(program.target)
    yield master
    master.close()


def run(master: GrpcMaster, handle: str, fetch: str = "secret:0") -> Any:
    return master.run_step(handle, {"given:0": np.float32(1)}, [fetch], [], RunOptions(), 20.0)[0]


def test_the_program_runs_its_function(program: Program) -> None:
    with tf.Session(program.target, graph=program.graph) as session:
        assert session.run("secret:0", {"given:0": 1.0}) == 2
    assert program.called == [1]


def test_a_stranger_s_session_does_not(program: Program, stranger: GrpcMaster) -> None:
    handle, _ = stranger.create_session(program.graph_def, ConfigProto(), 20.0)
    with pytest.raises(errors.InvalidArgumentError, match=NOT_FOUND):
        run(stranger, handle)
    assert program.called == []


def test_nor_from_within_a_function_of_the_graph_s_library(program: Program, stranger: GrpcMaster) -> None:
    token = program.graph_def.node[1].attr["token"].s
    calls = node("calls", "PyFunc", "x", token=token, Tin=[dtypes.float32], Tout=[dtypes.float32])
    called = function("called", ["x: float"], ["y: float"], [calls], y="calls:output:0", stateful=True)
    given = node("given", "Placeholder", dtype=dtypes.float32)
    types = {"Tin": [dtypes.float32], "Tout": [dtypes.float32]}
    secret = node("secret", "StatefulPartitionedCall", "given", f=call("called"), **types)
    stranger_s = graph([given, secret], called)
    handle, _ = stranger.create_session(stranger_s, ConfigProto(), 20.0)
    with pytest.raises(errors.InvalidArgumentError, match=NOT_FOUND):
        run(stranger, handle)
    assert program.called == []


def test_the_handle_of_the_program_s_own_session_is_of_no_use(program: Program, stranger: GrpcMaster) -> None:
    with tf.Session(program.target, graph=program.graph) as session:
        session.run("secret:0", {"given:0": 1.0})
        handle = session._handle
        assert handle
        # so that a link, if there is one, is open
        stranger.create_session(tf.Graph().as_graph_def(), ConfigProto(), 20.0)
        refused = pytest.raises(errors.PermissionDeniedError, match="opened within the process of its task")
        with refused:
            run(stranger, handle)
        with refused:
            stranger.extend_session(handle, tf.Graph().as_graph_def(), 0, 20.0)
        with refused:
            stranger.close_session(handle, 20.0)
        assert session.run("secret:0", {"given:0": 2.0}) == 3
    assert program.called == [1, 2]


def test_another_task_s_master_may_run_it_for_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with background_cluster({"ps": 1, "worker": 1}) as servers:
        ps = servers["ps", 0]
        program = Program(ps.target)
        with program.graph.as_default():
            for node in program.graph.get_operations():
                node._set_device("/job:worker/task:0")
        # the session is the program's, its master is not
        monkeypatch.setattr(inprocess, "find", lambda target: None)
        with tf.Session(ps.target, graph=program.graph) as session:
            assert session.run("secret:0", {"given:0": 1.0}) == 2
        stranger = LinkMaster(ps.target)
        handle, _ = stranger.create_session(program.graph.as_graph_def(), ConfigProto(), 20.0)
        with pytest.raises(errors.InvalidArgumentError, match=NOT_FOUND):
            run(stranger, handle)
        stranger.close()
    assert program.called == [1]


def test_a_closed_session_is_the_program_s_no_more() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.constant(1))
        handle = session._handle
        assert handle
        assert script_functions.is_own_session(handle)
    assert not script_functions.is_own_session(handle)
