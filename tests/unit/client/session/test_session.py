"""`Session` against a scripted master: what it sends, when, and what it makes of the answers. No server, no socket."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold.graph import Graph, get_default_graph, get_default_session
from tenfold.session import targets
from tenfold.session.session import InteractiveSession, Session
from tenfold_core import errors
from tenfold_protos import attr_value_pb2, config_pb2, device_attributes_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tenfold_protos.graph_pb2 import GraphDef

FLOAT = {"dtype": attr_value_pb2.AttrValue(type=types_pb2.DT_FLOAT)}


class ScriptedMaster:
    """Answers steps from a script and records every call. `answers` maps a tensor name to what it is worth."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answers: dict[str, Any] = {}
        #: Raised by the next call of that method, once.
        self.failures: dict[str, BaseException] = {}
        self.step_entered = threading.Event()
        self.step_gate: threading.Event | None = None
        self.closed = False

    def _note(self, method: str, *details: Any) -> None:
        self.calls.append((method, *details))
        failure = self.failures.pop(method, None)
        if failure is not None:
            raise failure

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def create_session(self, graph_def: GraphDef, config: Any, timeout: float | None) -> tuple[str, int]:
        self._note("create", [node.name for node in graph_def.node], config, timeout)
        return "handle", 5

    def extend_session(self, handle: str, graph_def: GraphDef, version: int, timeout: float | None) -> int:
        self._note("extend", [node.name for node in graph_def.node], version, timeout)
        return version + 1

    def run_step(
        self, handle: str, feeds: Mapping[str, np.ndarray], fetches: Sequence[str], run: Sequence[str],
        options: config_pb2.RunOptions, timeout: float | None,
    ) -> tuple[list[Any], config_pb2.RunMetadata]:  # fmt: skip
        self._note("run", dict(feeds), list(fetches), list(run), options, timeout)
        self.step_entered.set()
        if self.step_gate is not None:
            assert self.step_gate.wait(10)
        metadata = config_pb2.RunMetadata()
        metadata.step_stats.dev_stats.add(device="/device:CPU:0")
        return [self.answers[name] for name in fetches], metadata

    def close_session(self, handle: str, timeout: float | None) -> None:
        self._note("close", handle)

    def list_devices(self, handle: str, timeout: float | None) -> list[Any]:
        self._note("devices", handle)
        name = "/job:ps/replica:0/task:0/device:CPU:0"
        return [device_attributes_pb2.DeviceAttributes(name=name, device_type="CPU", memory_limit=7, incarnation=9)]

    def reset(self, containers: Sequence[str], timeout: float | None) -> None:
        self._note("reset", list(containers), timeout)

    def close(self) -> None:
        self.closed = True


class MasterInParts(ScriptedMaster):
    """A master that can run a step in parts."""

    def partial_run_setup(self, handle: str, feeds: Any, fetches: Any, run: Any, timeout: float | None) -> str:
        self._note("setup", list(feeds), list(fetches), list(run))
        return "part"

    def partial_run(self, handle: str, part: str, feeds: Any, fetches: Any, timeout: float | None) -> list[Any]:
        self._note("part", part, dict(feeds), list(fetches))
        return [self.answers[name] for name in fetches]


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> ScriptedMaster:
    master = ScriptedMaster()
    monkeypatch.setattr(targets, "connect", lambda target, config=None: master)
    return master


@pytest.fixture
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        graph.create_op("Placeholder", [], name="x", attrs=FLOAT)
        graph.create_op("NoOp", [], name="init")
        yield graph


def identity(graph: Graph, name: str) -> Any:
    x, kind = graph.get_tensor_by_name("x:0"), {"T": attr_value_pb2.AttrValue(type=types_pb2.DT_FLOAT)}
    return graph.create_op("Identity", [x], name=name, attrs=kind).outputs[0]


def test_lazy_create_then_extend_with_new_nodes_only(master: ScriptedMaster, graph: Graph) -> None:
    sess = Session()
    assert master.calls == []

    sess.run("init")
    sess.run("init")
    identity(graph, "y")
    identity(graph, "z")
    sess.run("init")
    identity(graph, "w")
    sess.run("init")
    sess.close()

    assert master.names() == ["create", "run", "run", "extend", "run", "extend", "run", "close"]
    assert master.calls[0][1] == ["x", "init"]
    assert master.calls[3][1:3] == (["y", "z"], 5)
    assert master.calls[5][1:3] == (["w"], 6)
    assert master.closed


def test_a_failed_create_is_sent_again(master: ScriptedMaster, graph: Graph) -> None:
    master.failures["create"] = errors.InvalidArgumentError(None, None, "no device for {{node x}}")
    with Session() as sess:
        with pytest.raises(errors.InvalidArgumentError) as raised:
            sess.run("init")
        identity(graph, "y")
        sess.run("init")

    assert raised.value.op is graph.get_operation_by_name("x")
    assert master.names() == ["create", "create", "run", "close"]
    assert master.calls[1][1] == ["x", "init", "y"]


def test_a_failed_extend_is_sent_again(master: ScriptedMaster, graph: Graph) -> None:
    with Session() as sess:
        sess.run("init")
        identity(graph, "y")
        master.failures["extend"] = errors.UnavailableError(None, None, "away")
        with pytest.raises(errors.UnavailableError):
            sess.run("init")
        sess.run("init")

    assert [call[1] for call in master.calls if call[0] == "extend"] == [["y"], ["y"]]


def test_unused_session_sends_nothing(master: ScriptedMaster, graph: Graph) -> None:
    with Session():
        pass

    assert master.calls == []


def test_step_request(master: ScriptedMaster, graph: Graph) -> None:
    y = identity(graph, "y")
    master.answers["y:0"] = np.float32(3.0) * np.ones((2,), np.float32)
    value = np.ones(2, np.float32)
    with Session() as sess:
        result = sess.run([y, "init", (y,)], {"x:0": value})

    feeds, fetches, run = master.calls[1][1:4]
    assert fetches == ["y:0"]
    assert run == ["init"]
    assert feeds["x:0"].tolist() == [1, 1]
    assert np.shares_memory(feeds["x:0"], value)
    assert not feeds["x:0"].flags.writeable
    assert result[1] is None
    assert result[2][0] is result[0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.array(1.5, np.float32), np.float32),
        (np.array(True), np.bool_),
        (np.array(7, np.int64), np.int64),
        (np.array(b"Hello", object), bytes),
        (np.array([b"a"], object), np.ndarray),
        (np.zeros((0,), np.float32), np.ndarray),
    ],
)
def test_results_have_tensorflows_types(master: ScriptedMaster, graph: Graph, value: Any, kind: type) -> None:
    master.answers["x:0"] = value
    with Session() as sess:
        result: Any = sess.run("x:0")

    assert type(result) is kind
    assert np.asarray(result).tolist() == value.tolist()


def test_results_may_be_written_to(master: ScriptedMaster, graph: Graph) -> None:
    kept = np.zeros(3, np.float32)
    kept.flags.writeable = False
    master.answers["x:0"] = kept
    with Session() as sess:
        sess.run("x:0")[:] = 1

    assert kept.tolist() == [0, 0, 0]


def test_fetching_only_what_is_fed_sends_nothing(master: ScriptedMaster, graph: Graph) -> None:
    y = identity(graph, "y")
    master.answers["y:0"] = np.array(2.0, np.float32)
    with Session() as sess:
        assert sess.run("x:0", {"x:0": [1.0, 2.0]}).tolist() == [1.0, 2.0]
        assert sess.run([]) == []
        assert sess.run({}) == {}
        assert master.calls == []
        assert sess.run(["x:0", y], {"x:0": 4.0}) == [4.0, 2.0]
    assert master.calls[1][2] == ["y:0"]


def test_step_errors_know_their_operation(master: ScriptedMaster, graph: Graph) -> None:
    y = identity(graph, "y")
    text = "From /job:ps/replica:0/task:0:\nYou must feed\n\t [[{{node y}}]]"
    with Session() as sess:
        sess.run("init")
        master.failures["run"] = errors.InvalidArgumentError(None, None, text)
        with pytest.raises(errors.InvalidArgumentError) as raised:
            sess.run(y)

    assert raised.value.op is y.op
    assert raised.value.node_def.name == "y"
    assert raised.value.message.startswith(text)
    assert "Operation 'y' was defined at:" in raised.value.message
    assert "in identity" in raised.value.message
    assert "client/tenfold/graph" not in raised.value.message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("From /job:localhost/replica:0/task:0:\nYou must feed", "You must feed"),
        ("From /job:local/replica:0/task:0:\nYou must feed", "From /job:local/replica:0/task:0:\nYou must feed"),
    ],
)
def test_a_session_without_a_target_names_no_task(master: ScriptedMaster, graph: Graph, text: str, shown: str) -> None:
    y = identity(graph, "y")
    with Session() as sess:
        sess.run("init")
        master.failures["run"] = errors.InvalidArgumentError(None, None, text)
        with pytest.raises(errors.InvalidArgumentError) as raised:
            sess.run(y)

    assert raised.value.message == shown


def test_errors_of_nodes_that_the_runtime_made(master: ScriptedMaster, graph: Graph) -> None:
    with Session() as sess:
        master.failures["run"] = errors.AbortedError(None, None, "lost [[{{node y_S0}}]]")
        with pytest.raises(errors.AbortedError) as raised:
            sess.run("init")

    assert raised.value.op is None
    assert raised.value.message == "lost [[{{node y_S0}}]]"


def test_closed_and_empty(master: ScriptedMaster, graph: Graph) -> None:
    sess = Session()
    sess.close()
    sess.close()
    uses: list[Callable[[], Any]] = [
        lambda: sess.run("init"), sess.list_devices, lambda: sess.make_callable("init"),
        lambda: sess.partial_run_setup("init"), lambda: sess.partial_run("h", "x:0"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(RuntimeError, match=r"Attempted to use a closed Session\."):
            use()

    empty = Session(graph=Graph())
    with pytest.raises(RuntimeError, match=r"The Session graph is empty\."):
        empty.run("x:0")
    assert master.calls == []


def test_closing_is_quiet_about_a_master_that_is_gone(master: ScriptedMaster, graph: Graph) -> None:
    for gone in (errors.UnavailableError, errors.AbortedError):
        sess = Session()
        sess.run("init")
        master.failures["close"] = gone(None, None, "gone")
        sess.close()

    sess = Session()
    sess.run("init")
    master.failures["close"] = errors.InternalError(None, None, "broken")
    with pytest.raises(errors.InternalError):
        sess.close()
    assert master.closed


def test_close_during_create(master: ScriptedMaster, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, gate = threading.Event(), threading.Event()
    outcome: list[str] = []

    def slow(graph_def: GraphDef, config: Any, timeout: float | None) -> tuple[str, int]:
        entered.set()
        assert gate.wait(10)
        return "late", 0

    def use() -> None:
        try:
            sess.run("init")
        except RuntimeError as error:
            outcome.append(str(error))

    monkeypatch.setattr(master, "create_session", slow)
    sess = Session(graph=graph)
    user = threading.Thread(target=use)
    user.start()
    assert entered.wait(10)
    sess.close()
    gate.set()
    user.join(10)

    assert outcome == ["Attempted to use a closed Session."]
    assert master.calls == [("close", "late")]


def test_defaults_inside_with(master: ScriptedMaster) -> None:
    graph = Graph()
    assert get_default_session() is None
    with Session(graph=graph) as sess:
        assert get_default_session() is sess
        assert get_default_graph() is graph
        with pytest.raises(RuntimeError, match="Session context managers are not re-entrant"):
            sess.__enter__()
        with sess.as_default() as same:
            assert same is sess
    assert get_default_session() is None
    assert get_default_graph() is not graph


def test_as_default_leaves_the_session_open(master: ScriptedMaster, graph: Graph) -> None:
    sess = Session()
    master.answers["x:0"] = np.array(1.0, np.float32)
    with sess.as_default():
        assert graph.get_tensor_by_name("x:0").eval() == 1.0
        graph.get_operation_by_name("init").run()
    sess.run("init")
    sess.close()


def test_an_error_inside_with_is_not_replaced(master: ScriptedMaster, graph: Graph) -> None:
    def use() -> None:
        with Session() as sess:
            sess.run("init")
            master.failures["close"] = errors.InternalError(None, None, "broken")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()
    assert master.names()[-1] == "close"


def test_interactive_session(master: ScriptedMaster, graph: Graph) -> None:
    other = Graph()
    sess = InteractiveSession(graph=other)
    try:
        assert get_default_session() is sess
        assert get_default_graph() is other
        with pytest.warns(UserWarning, match="An interactive session is already active"):
            second = InteractiveSession()
        sess.close()
        assert get_default_session() is second
        second.close()
        second.close()
    finally:
        sess.close()
    assert get_default_session() is None
    assert InteractiveSession._active_session_count == 0
    config = config_pb2.ConfigProto()
    third = InteractiveSession(graph=graph, config=config)
    third.run("init")
    third.close()
    assert master.calls[0][2].graph_options.place_pruned_graph
    assert not config.graph_options.place_pruned_graph


def test_timeouts(master: ScriptedMaster, graph: Graph) -> None:
    with Session(config=config_pb2.ConfigProto(operation_timeout_in_ms=2500)) as sess:
        sess.run("init")
        sess.run("init", options=config_pb2.RunOptions(timeout_in_ms=100, trace_level=config_pb2.RunOptions.FULL_TRACE))
    with Session() as free:
        free.run("init")

    create, first, second = master.calls[:3]
    assert create[3] == 2.5
    assert (first[5], first[4].timeout_in_ms) == (2.5, 2500)
    assert (second[5], second[4].timeout_in_ms, second[4].trace_level) == (0.1, 100, 3)
    assert master.calls[5][4:] == (config_pb2.RunOptions(), None)


def test_run_metadata(master: ScriptedMaster, graph: Graph) -> None:
    metadata = config_pb2.RunMetadata()
    with Session() as sess:
        sess.run("init", run_metadata=metadata)
        with pytest.raises(TypeError, match=r"`options` must be a tf.RunOptions"):
            sess.run("init", options=5)
        with pytest.raises(TypeError, match=r"`run_metadata` must be a tf.RunMetadata"):
            sess.run("init", run_metadata=5)

    assert metadata.step_stats.dev_stats[0].device == "/device:CPU:0"


def test_make_callable(master: ScriptedMaster, graph: Graph) -> None:
    y = identity(graph, "y")
    master.answers["y:0"] = np.array(3.0, np.float32)
    with Session() as sess:
        fetch = sess.make_callable([y, "init"], feed_list=["x:0"])
        assert fetch(1.0) == [3.0, None]
        assert sess.make_callable("init")() is None
        metadata = config_pb2.RunMetadata()
        sess.make_callable(y, accept_options=True)(
            options=config_pb2.RunOptions(timeout_in_ms=9), run_metadata=metadata
        )
        with pytest.raises(TypeError, match="Argument `feed_list` must be a list or tuple"):
            sess.make_callable(y, feed_list="x:0")
        with pytest.raises(TypeError, match="takes 1 feed values, but got 2"):
            fetch(1.0, 2.0)
        with pytest.raises(TypeError, match="accept_options=True"):
            fetch(1.0, run_metadata=metadata)
        with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
            sess.make_callable("nope")
    with pytest.raises(RuntimeError, match="closed Session"):
        fetch(1.0)

    assert master.calls[1][1]["x:0"] == 1.0
    assert master.calls[3][4].timeout_in_ms == 9
    assert metadata.HasField("step_stats")


def test_list_devices_opens_the_session(master: ScriptedMaster, graph: Graph) -> None:
    with Session() as sess:
        (device,) = sess.list_devices()

    assert device.name == "/job:ps/replica:0/task:0/device:CPU:0"
    assert (device.device_type, device.memory_limit_bytes, device.incarnation) == ("CPU", 7, 9)
    assert repr(device) == "_DeviceAttributes(/job:ps/replica:0/task:0/device:CPU:0, CPU, 7, 9)"
    assert master.names() == ["create", "devices", "close"]


def test_partial_run_needs_a_master_that_can(master: ScriptedMaster, graph: Graph) -> None:
    with Session() as sess, pytest.raises(errors.UnimplementedError, match="Partial runs are not implemented"):
        sess.partial_run_setup(["x:0"], ["x:0"])


def test_partial_run(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    master = MasterInParts()
    monkeypatch.setattr(targets, "connect", lambda target, config=None: master)
    y = identity(graph, "y")
    master.answers["y:0"] = np.array(3.0, np.float32)
    with Session() as sess:
        handle = sess.partial_run_setup([y], ["x:0"])
        assert sess.partial_run(handle, {"k": y}, {"x:0": 1.0}) == {"k": 3.0}
        with pytest.raises(RuntimeError, match="requires empty target_list"):
            sess.partial_run(handle, "init")
        with pytest.raises(TypeError, match="Cannot interpret feed_dict key"):
            sess.partial_run_setup([y], [5])

    assert master.calls[1] == ("setup", ["x:0"], ["y:0"], [])
    assert master.calls[2] == ("part", "part", {"x:0": 1.0}, ["y:0"])


def test_reset(master: ScriptedMaster) -> None:
    Session.reset("grpc://h:1", [b"a", "b"], config=config_pb2.ConfigProto(operation_timeout_in_ms=500))
    Session.reset("grpc://h:1")

    assert master.calls == [("reset", ["a", "b"], 0.5), ("reset", [], None)]
    assert master.closed


def test_two_threads_create_one_session(master: ScriptedMaster, graph: Graph) -> None:
    sess = Session()
    threads = [threading.Thread(target=sess.run, args=("init",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    sess.close()

    assert master.names().count("create") == 1
    assert master.names().count("run") == 8


def test_close_while_a_step_runs(master: ScriptedMaster, graph: Graph) -> None:
    master.step_gate = threading.Event()
    sess = Session()
    runner = threading.Thread(target=sess.run, args=("init",))
    runner.start()
    assert master.step_entered.wait(10)
    sess.close()
    assert master.names() == ["create", "run", "close"]
    master.step_gate.set()
    runner.join(10)
    assert not runner.is_alive()


def test_a_dropped_session_is_closed_at_the_master(
    master: ScriptedMaster, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()
    monkeypatch.setattr(master, "close", closed.set)
    sess = Session()
    sess.run("init")

    del sess
    gc.collect()

    assert closed.wait(10)
    assert master.names()[-1] == "close"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"target": config_pb2.ConfigProto()}, r'Did you do "Session\(config\)" instead of "Session\(config=config\)"'),
        ({"target": 5}, 'target must be a string, but got "int"'),
        ({"graph": 5}, 'graph must be a tf.Graph, but got "int"'),
        ({"config": 5}, 'config must be a tf.ConfigProto, but got "int"'),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], text: str) -> None:
    for kind in (Session, InteractiveSession):
        with pytest.raises(TypeError, match=text):
            kind(**arguments)


def test_a_target_that_nobody_serves_is_refused_at_once(graph: Graph) -> None:
    with pytest.raises(errors.NotFoundError, match=r"No session factory registered .*foo://x:1"):
        Session("foo://x:1")


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ("grpc://nowhere", errors.InvalidArgumentError, "Session target 'grpc://nowhere' is malformed"),
        ("grpc://host:2222\n", errors.InvalidArgumentError, "is malformed"),
        ("grpc://host:٣", errors.InvalidArgumentError, "is malformed"),
        ("grpc://h:99999", errors.InvalidArgumentError, "malformed"),
    ],
)
def test_malformed_targets(graph: Graph, target: str, error: type[Exception], text: str) -> None:
    with Session(target) as sess:
        with pytest.raises(error, match=text):
            sess.run("init")
        assert sess.sess_str == target.encode()
