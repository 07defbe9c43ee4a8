"""What one session and one peer may take of a task: each limit on a running server, its refusal, and that others go on.

The limits are set as an operator sets them, in the environment; each refusal names the variable.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.functions import call, const, function, graph, node
from support.moments import PATIENCE
from tenfold.session import inprocess
from tenfold_compiler.graph import runtime_graph
from tenfold_compiler.part import read_part
from tenfold_core import dtypes, errors
from tenfold_kernels import loop_turns
from tenfold_kernels.resources import quota
from tenfold_services.background import BackgroundServer
from tenfold_services.limits import Limits
from tenfold_services.master.limits import MasterLimits
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _reached_by_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of this process are peers."""
    monkeypatch.setattr(inprocess, "find", lambda target: None)


@contextlib.contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, **limits: int) -> Iterator[str]:
    """The target of a task with these variables in its environment."""
    for name, value in limits.items():
        monkeypatch.setenv(f"TENFOLD_{name.upper()}", str(value))
    server = BackgroundServer(TaskServer({"ps": [""]}, "ps", 0))
    server.start()
    _servers[server.target] = server
    try:
        yield server.target
    finally:
        server.stop(0)
        del _servers[server.target]


#: Those that serve now, by target.
_servers: dict[str, BackgroundServer] = {}


@contextlib.contextmanager
def within(target: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tf.Session]:
    """A session of the server's own process, which is no peer; of the default graph."""
    with tf.Session(target) as session:
        with monkeypatch.context() as patch:
            patch.setattr(inprocess, "find", _servers.get)
            session._ensure_created()
        yield session


@contextlib.contextmanager
def session_at(target: str, config: tf.ConfigProto | None = None) -> Iterator[tf.Session]:
    """Of a graph of its own, the default one."""
    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        yield session


def refusal(limit: int, variable: str) -> Any:
    text = rf"; {limit} is the limit, and {variable} in the environment of the task sets another\."
    return pytest.raises(errors.ResourceExhaustedError, match=text)


class Other:
    """A session that is there before somebody goes too far, and works afterwards as before."""

    def __init__(self, target: str) -> None:
        with tf.Graph().as_default() as own:
            self._variable = tf.get_variable("other", initializer=1.0)
            self._more = self._variable.assign_add(1.0)
            self._session = tf.Session(target, graph=own)
            self._session.run(tf.global_variables_initializer())

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def works(self) -> None:
        before = self._session.run(self._variable)
        assert self._session.run(self._more) == before + 1


def test_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, master_nodes=40) as target, Other(target) as other:
        with tf.Graph().as_default(), tf.Session(target) as session:
            one = tf.constant(1.0)
            assert session.run(one) == 1
            last = [tf.identity(one) for _ in range(60)][-1]
            with refusal(40, "TENFOLD_MASTER_NODES"):
                session.run(last)
        other.works()


def test_nodes_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """They count where they are called."""
    body = [node("n0", "Neg", "x", T=dtypes.float32)]
    body += [node(f"n{i}", "Neg", f"n{i - 1}:y:0", T=dtypes.float32) for i in range(1, 30)]
    many = function("many", ["x: float"], ["y: float"], body, y="n29:y:0")
    types = {"Tin": [dtypes.float32], "Tout": [dtypes.float32]}
    nodes = [const("x", 1.0), node("a", "PartitionedCall", "x", f=call("many"), **types)]
    nodes += [node("b", "PartitionedCall", "a", f=call("many"), **types)]
    with serving(monkeypatch, master_nodes=40) as target, Other(target) as other:
        with tf.Graph().as_default() as own, tf.Session(target, graph=own) as session:
            monkeypatch.setattr(own, "_as_graph_def", lambda *_: (graph(nodes, many), 1))
            with refusal(40, "TENFOLD_MASTER_NODES"):
                session.run(tf.constant(1))
        other.works()


def test_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, master_sessions=2) as target, Other(target) as other:
        with tf.Graph().as_default():
            one = tf.constant(1)
            with tf.Session(target) as first:
                assert first.run(one) == 1
                with tf.Session(target) as second, refusal(2, "TENFOLD_MASTER_SESSIONS"):
                    second.run(one)
                assert first.run(one) == 1
            # one that is closed makes room
            with tf.Session(target) as third:
                assert third.run(one) == 1
        other.works()


@pytest.mark.parametrize("transport", ["http2", "grpcio"])
def test_sessions_of_a_peer(monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", transport)
    with serving(monkeypatch, master_sessions_per_peer=1) as target, tf.Graph().as_default():
        one = tf.constant(1)
        with tf.Session(target) as first:
            assert first.run(one) == 1
            with tf.Session(target) as second, refusal(1, "TENFOLD_MASTER_SESSIONS_PER_PEER"):
                second.run(one)
            assert first.run(one) == 1
            with within(target, monkeypatch) as program:
                assert program.run(one) == 1
        with tf.Session(target) as third:
            assert third.run(one) == 1


@pytest.mark.parametrize("of_peer", [False, True])
def test_steps_at_once(monkeypatch: pytest.MonkeyPatch, of_peer: bool) -> None:
    limit = "master_running_steps_per_peer" if of_peer else "master_running_steps"
    with serving(monkeypatch, **{limit: 1}) as target, tf.Graph().as_default():
        begun, gate = (tf.FIFOQueue(4, [tf.float32], shapes=[()], shared_name=name) for name in ("begun", "gate"))
        with tf.control_dependencies([begun.enqueue(1.0)]):
            waits = gate.dequeue()
        told, let_go, one = begun.dequeue(), gate.enqueue(2.0), tf.constant(1)
        with within(target, monkeypatch) as program, tf.Session(target) as session, tf.Session(target) as second:
            assert [each.run(one) for each in (program, session, second)] == [1, 1, 1]
            found: list[Any] = []
            waiter = threading.Thread(target=lambda: found.append(session.run(waits)))
            waiter.start()
            program.run(told)  # the step has begun

            with refusal(1, f"TENFOLD_{limit.upper()}"):
                (second if of_peer else session).run(told)

            if not of_peer:
                second.run(begun.size())
            program.run(let_go)
            waiter.join(PATIENCE)
            assert found == [2.0]
            assert session.run(begun.size()) == 0


def _endless(vector: bool = False) -> Any:
    start = tf.constant([0, 0]) if vector else tf.constant(0)
    return tf.while_loop(lambda i: tf.reduce_all(i >= 0), lambda i: (i + 1) % 7, [start])


def _nested() -> Any:
    """No loop takes many turns by itself."""

    def outer(i: Any) -> Any:
        inner = tf.while_loop(lambda j: j < 10, lambda j: j + 1, [tf.constant(0)])
        return i + inner - inner + 1

    return tf.while_loop(lambda i: i < 900, outer, [tf.constant(0)])


LOOPS = {"scalar": _endless, "vector": lambda: _endless(vector=True), "nested": _nested}


@pytest.mark.parametrize("build", LOOPS.values(), ids=LOOPS.keys())
@pytest.mark.parametrize("fusion", ["off", "eager"])
def test_turns_of_loops(monkeypatch: pytest.MonkeyPatch, fusion: str, build: Callable[[], Any]) -> None:
    """Generated code, and compiled loops."""
    monkeypatch.setenv("TENFOLD_FUSION", fusion)
    with serving(monkeypatch, task_loop_turns=1000) as target, Other(target) as other, session_at(target) as session:
        endless, ends = build(), tf.while_loop(lambda i: i < 990, lambda i: i + 1, [tf.constant(0)])
        for _ in range(4):
            assert session.run(ends) == 990
            with refusal(1000, "TENFOLD_TASK_LOOP_TURNS"):
                session.run(endless)
            other.works()


def test_turns_of_a_loop_that_is_run_node_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, task_loop_turns=100) as target, Other(target) as other:
        with tf.Graph().as_default(), tf.Session(target) as session:
            queue = tf.FIFOQueue(1000, [tf.int32], shapes=[()])

            def body(i: Any) -> Any:
                with tf.control_dependencies([queue.enqueue(i)]):
                    return queue.dequeue()

            endless = tf.while_loop(lambda i: i >= 0, body, [tf.constant(0)])
            with refusal(100, "TENFOLD_TASK_LOOP_TURNS"):
                session.run(endless)
        other.works()


def test_bytes_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, task_state_bytes=100_000) as target, Other(target) as other:
        with tf.Graph().as_default(), tf.Session(target) as session:
            small, large = tf.Variable(tf.zeros([10_000])), tf.Variable(tf.zeros([20_000]))
            session.run(small.initializer)
            with refusal(100_000, "TENFOLD_TASK_STATE_BYTES"):
                session.run(large.initializer)
            assert session.run(small).sum() == 0
            # in place it takes no more
            session.run(small.assign_add(tf.ones([10_000])))
        other.works()
        tf.Session.reset(target)
        with tf.Graph().as_default(), tf.Session(target) as session:
            session.run(tf.Variable(tf.zeros([20_000])).initializer)


def test_bytes_of_a_session_with_containers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = tf.ConfigProto(isolate_session_state=True)
    with serving(monkeypatch, task_state_bytes_per_session=50_000) as target, Other(target) as other:
        for _ in range(3):
            with tf.Graph().as_default(), tf.Session(target, config=own) as session:
                session.run(tf.Variable(tf.zeros([10_000])).initializer)
                with refusal(50_000, "TENFOLD_TASK_STATE_BYTES_PER_SESSION"):
                    session.run(tf.Variable(tf.zeros([10_000])).initializer)
        with tf.Graph().as_default(), tf.Session(target) as session:
            session.run(tf.Variable(tf.zeros([20_000])).initializer)
        other.works()


def test_what_a_session_had_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts for the task as long as it is open."""
    own = tf.ConfigProto(isolate_session_state=True)
    with serving(monkeypatch, task_state_bytes=50_000) as target:
        for _ in range(3):
            with tf.Graph().as_default(), tf.Session(target, config=own) as session:
                session.run(tf.Variable(tf.zeros([10_000])).initializer)
                with session_at(target, own) as second, refusal(50_000, "TENFOLD_TASK_STATE_BYTES"):
                    second.run(tf.Variable(tf.zeros([10_000])).initializer)


def test_bytes_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, task_state_bytes=100_000) as target, tf.Graph().as_default():
        text = tf.placeholder(tf.string, [2])
        variable = tf.Variable(["a", "b"])
        with tf.Session(target) as session:
            session.run(variable.initializer)
            with refusal(100_000, "TENFOLD_TASK_STATE_BYTES"):
                session.run(variable.assign(text), {text: [b"x" * 90_000, b"y" * 90_000]})
            assert session.run(variable).tolist() == [b"a", b"b"]


def test_bytes_of_a_queue_s_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, task_state_bytes=100_000) as at, Other(at) as other, session_at(at) as session:
        queue = tf.FIFOQueue(1000, [tf.float32], shapes=[(10_000,)])
        put, take = queue.enqueue(tf.zeros([10_000])), queue.dequeue()
        several = queue.enqueue_many(tf.zeros([3, 10_000]))
        for _ in range(3):
            session.run([put])
            session.run([put])
            for too_many in (put, several):
                with refusal(100_000, "TENFOLD_TASK_STATE_BYTES"):
                    session.run([too_many])
            other.works()
            assert session.run(queue.size()) == 2
            session.run([take])
            session.run([take])


def test_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, task_queues=2) as target, Other(target) as other:
        with tf.Graph().as_default(), tf.Session(target) as session:
            sizes = [tf.FIFOQueue(1, [tf.int32], shared_name=f"q{i}").size() for i in range(3)]
            assert session.run(sizes[:2]) == [0, 0]
            with refusal(2, "TENFOLD_TASK_QUEUES"):
                session.run(sizes[2])
        other.works()


def test_the_names_in_refusals_are_those_of_the_table() -> None:
    assert Limits.variable("loop_turns") == loop_turns.VARIABLE
    assert Limits.variable("state_bytes") == quota.BYTES
    assert Limits.variable("state_bytes_per_session") == quota.BYTES_PER_SESSION
    assert Limits.variable("queues") == quota.QUEUES
    assert Limits.variable("nodes_per_graph") == read_part.NODES_VARIABLE
    assert MasterLimits.variable("nodes") == runtime_graph.NODES_VARIABLE
    assert MasterLimits().nodes == runtime_graph.MAX_NODES
    assert np.iinfo(np.int64).max > Limits().loop_turns == loop_turns.MOST_TURNS
