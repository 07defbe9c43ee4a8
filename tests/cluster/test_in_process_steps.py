"""Steps of sessions with a server of their own process: the second one runs on the thread that asked for it.

What must not change with it: results, errors word for word, cancelling, deadlines, the end of a server. The *usual way*
is what a step takes the first time, and every time with options: `sess.run(…, options=tf.RunOptions())`.
"""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.session import inprocess
from tenfold_core import errors
from tenfold_kernels import registry
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPTIONS = tf.RunOptions()
SECONDS = 20.0


class Probe:
    """Stands in front of the kernels of all nodes named "probe": sees every call, and can hold or fail it."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.arguments: list[Any] = []
        self.error: Exception | None = None
        self.instead: Callable[[], None] | None = None
        #: While set, calls wait for `release`.
        self.holds = False
        self.entered = threading.Event()
        self._gate = threading.Event()

    def wrap(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def probed(*arguments: Any) -> Any:
            self.threads.append(threading.get_ident())
            self.arguments.append(arguments)
            self.entered.set()
            if self.holds:
                assert self._gate.wait(SECONDS)
            if self.instead is not None:
                self.instead()
            if self.error is not None:
                raise self.error
            return kernel(*arguments)

        return probed

    def release(self) -> None:
        self._gate.set()

    @property
    def here(self) -> bool:
        """Whether the last call was on this thread."""
        return self.threads[-1] == threading.get_ident()


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Probe:
    probe, lookup = Probe(), registry.lookup

    def probing_lookup(node: registry.KernelNode, device_type: str) -> Any:
        builder = lookup(node, device_type)
        if node.name != "probe":
            return builder
        return lambda node: probe.wrap(builder(node))

    monkeypatch.setattr(registry, "lookup", probing_lookup)
    return probe


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    with BackgroundServer(TaskServer(None, "local", 0, bind=None)) as server:
        inprocess.register("grpc://localhost:1", server)
        yield server
        inprocess.unregister("grpc://localhost:1")


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def sess(server: BackgroundServer, graph: tf.Graph) -> Iterator[tf.Session]:
    with tf.Session("grpc://localhost:1") as sess:
        yield sess


class Noting(list[Any]):
    """A list that tells when something was appended."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = threading.Event()

    def append(self, item: Any) -> None:
        super().append(item)
        self.happened.set()


def in_thread(function: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


# -- where a step runs -------------------------------------------------------------------------------------------------


def test_the_second_step_runs_where_it_was_asked_for(probe: Probe, sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")

    assert [sess.run(y, {x: 1.0}), probe.here] == [-1.0, False]
    assert [sess.run(y, {x: 2.0}), probe.here] == [-2.0, True]
    assert [in_thread(lambda: sess.run(y, {x: 3.0})).result(SECONDS), probe.here] == [-3.0, False]
    assert len(set(probe.threads)) == 3
    call = sess.make_callable([y], [x])
    assert [call(4.0), probe.here] == [[-4.0], True]


def test_options_and_metadata_take_the_usual_way(probe: Probe, sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    call = sess.make_callable(y, [x], accept_options=True)
    for _ in range(2):
        call(1.0)
    assert probe.here

    metadata = tf.RunMetadata()
    assert sess.run(y, {x: 2.0}, run_metadata=metadata) == -2.0
    assert not probe.here
    assert call(3.0, options=OPTIONS) == -3.0
    assert not probe.here


def test_a_session_with_a_timeout_leaves_long_programs_to_the_usual_way(
    probe: Probe, server: BackgroundServer, graph: tf.Graph
) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    with tf.Session("grpc://localhost:1", config=tf.ConfigProto(operation_timeout_in_ms=20_000)) as sess:
        # How long the program takes is known after its first run; compiling counts, so that may be more than one.
        local = None
        while local is None or local.program.policy.nanoseconds > 10**8:
            sess.run(y, {x: 1.0})
            ((local,),) = (session.graphs.values() for session in server.server.caller_steps._sessions.values())
        sess.run(y, {x: 1.0})
        assert probe.here
        local.program.policy.note(10**12)
        sess.run(y, {x: 1.0})
        assert not probe.here


def test_a_deadline_ends_a_step_that_could_have_run_here(
    probe: Probe, sess: tf.Session, server: BackgroundServer
) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    for _ in range(2):
        sess.run(y, {x: 1.0})
    # As if it took long: a kernel that holds must not hold the event loop.
    ((local,),) = (session.graphs.values() for session in server.server.caller_steps._sessions.values())
    local.program.policy.note(10**12)
    probe.holds = True

    with pytest.raises(errors.DeadlineExceededError, match="within 30 ms"):
        sess.run(y, {x: 1.0}, options=tf.RunOptions(timeout_in_ms=30))
    probe.release()


def test_a_graph_that_grows(probe: Probe, sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    for _ in range(2):
        sess.run(y, {x: 1.0})
    z = y + 1.0

    # The new nodes have to be sent, even though this step has none of them.
    assert sess.run(y, {x: 2.0}) == -2.0
    assert sess.run(y, {x: 3.0}) == -3.0
    assert probe.here
    assert [sess.run(z, {x: 4.0}) for _ in range(2)] == [-3.0, -3.0]
    assert probe.here


def test_a_step_within_a_step(probe: Probe, sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    outer, inner = tf.negative(x, name="probe"), x / 0.0
    for _ in range(2):
        sess.run([outer, inner], {x: 1.0})
    for _ in range(2):
        sess.run(inner, {x: 1.0})
        sess.run(outer, {x: 1.0})
    seen: list[Any] = []
    probe.instead = lambda: seen.append(sess.run(inner, {x: 1.0}))

    assert sess.run(outer, {x: 2.0}) == -2.0
    assert seen == [np.inf]


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_results_are_those_of_the_usual_way(sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    text = tf.constant(["a", "é"])
    v = tf.Variable([1.0, 2.0])
    update = v.assign_add([1.0, 1.0])
    sess.run(tf.global_variables_initializer())
    fetches = {
        "sum": tf.reduce_sum(x),
        "both": [x * 2.0, (text, v)],
        "twice": [v, v],
        "op": update.op,
        "name": "Const:0",
    }
    feed = {x: [[1.0, 2.0]]}
    plain = {key: fetches[key] for key in ("sum", "both", "twice", "name")}

    for _ in range(3):
        usual, here = sess.run(plain, feed, options=OPTIONS), sess.run(plain, feed)
        assert str(usual) == str(here)
        assert here["both"][1][0].tolist() == [b"a", "é".encode()]
        assert type(here["sum"]) is np.float32
        assert type(here["both"]) is list
        assert type(here["both"][1]) is tuple
        assert sess.run(fetches, feed)["op"] is None
    assert sess.run(v).tolist() == [4.0, 5.0]


def test_what_is_returned_may_be_written_to(sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [2])
    c, y, v = tf.constant([1.0, 2.0]), tf.identity(x), tf.Variable([3.0, 4.0])
    sess.run(v.initializer)
    fed = np.array([5.0, 6.0], np.float32)

    for _ in range(3):
        for result in sess.run([c, y, v, x + 1.0], {x: fed}):
            result[:] = -1.0

    assert [value.tolist() for value in sess.run([c, y, v], {x: fed})] == [[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]]
    assert fed.tolist() == [5.0, 6.0]


def test_a_fetch_is_the_value_at_its_place_in_the_order(sess: tf.Session) -> None:
    v = tf.Variable([0.0, 0.0])
    before = tf.identity(v)
    with tf.control_dependencies([before]):
        update = tf.assign_add(v, [1.0, 1.0])
    sess.run(v.initializer)

    seen = [sess.run([before, update]) for _ in range(3)]

    assert [new[0] for _, new in seen] == [1.0, 2.0, 3.0]


def test_feeds_are_taken_as_they_are_and_read_only(probe: Probe, sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.negative(x, name="probe")
    fed = np.arange(4, dtype=np.float32)
    for _ in range(2):
        assert sess.run(y, {x: fed}).tolist() == [0.0, -1.0, -2.0, -3.0]

    assert probe.here
    (argument,) = probe.arguments[-1]
    assert np.shares_memory(argument, fed)
    assert not argument.flags.writeable
    assert fed.flags.writeable


def test_a_feed_that_nothing_needs(sess: tf.Session) -> None:
    x, unused = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y = -x

    assert [sess.run(y, {unused: 9.0, x: value}) for value in (1.0, 2.0, 3.0)] == [-1.0, -2.0, -3.0]


def test_a_tensor_fed_and_fetched(sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [])

    assert [sess.run([x, -x], {x: value}) for value in (1.0, 2.0, 3.0)] == [[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]]


def test_numpy_does_not_warn_and_stays_as_the_program_set_it(sess: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = x / 0.0
    with np.errstate(all="raise"):
        for _ in range(3):
            assert sess.run(y, {x: [1.0, -1.0]}).tolist() == [np.inf, -np.inf]
        assert np.geterr()["divide"] == "raise"
        with pytest.raises(FloatingPointError):
            np.ones(2) / np.zeros(2)


def test_many_threads_lose_no_update(sess: tf.Session) -> None:
    count = tf.Variable(0, use_resource=True)
    step = count.assign_add(1).op
    sess.run(count.initializer)
    sess.run(step)

    def work() -> None:
        for _ in range(200):
            sess.run(step)

    for future in [in_thread(work) for _ in range(8)]:
        future.result(SECONDS)

    assert sess.run(count) == 1 + 8 * 200


def test_a_graph_that_is_run_here_counts_as_used(probe: Probe, sess: tf.Session, server: BackgroundServer) -> None:
    x = tf.placeholder(tf.float32, [])
    hot, cold, new = tf.negative(x, name="probe"), x + 1.0, x + 2.0
    for fetch in (hot, hot, cold):
        sess.run(fetch, {x: 1.0})
    (session,) = server.server.master._sessions.values()  # type: ignore[attr-defined]
    session._client_graphs._limits = dataclasses.replace(session._client_graphs._limits, client_graphs=2)
    sess.run(hot, {x: 1.0})
    sess.run(new, {x: 1.0})

    assert sess.run(hot, {x: 2.0}) == -2.0
    assert probe.here
    assert len(session._client_graphs.runs.graphs) == 2
    # The one that had to go is made again.
    assert [sess.run(cold, {x: value}) for value in (1.0, 2.0)] == [2.0, 3.0]


# -- errors ------------------------------------------------------------------------------------------------------------


def outcome(function: Callable[[], Any]) -> tuple[Any, ...]:
    with pytest.raises(errors.OpError) as raised:
        function()
    error = raised.value
    return type(error), error.message, error.op, str(error.node_def)


def test_a_failing_node_is_reported_as_on_the_usual_way(sess: tf.Session) -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    z = tf.add(x, y, name="sum")
    good, bad = {x: [1.0], y: [2.0]}, {x: np.ones(2), y: np.ones(3)}
    for _ in range(2):
        sess.run(z, good)

    usual, here = outcome(lambda: sess.run(z, bad, options=OPTIONS)), outcome(lambda: sess.run(z, bad))

    assert usual == here
    assert here[0] is errors.InvalidArgumentError
    assert here[1].startswith("From /job:local/replica:0/task:0:\n")
    assert "[[{{node sum}}]]" in here[1]
    assert here[2] is z.op
    assert sess.run(z, good).tolist() == [3.0]


@pytest.mark.parametrize(
    "error", [ValueError("odd"), MemoryError("full"), errors.FailedPreconditionError(None, None, "not yet")]
)
def test_whatever_a_kernel_raises_is_reported_as_on_the_usual_way(
    probe: Probe, sess: tf.Session, error: Exception
) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    for _ in range(2):
        sess.run(y, {x: 1.0})
    probe.error = error

    usual = outcome(lambda: sess.run(y, {x: 1.0}, options=OPTIONS))

    assert outcome(lambda: sess.run(y, {x: 1.0})) == usual
    assert probe.here
    assert "[[{{node probe}}]]" in usual[1]


def test_an_uninitialized_variable_and_a_bad_feed(sess: tf.Session) -> None:
    v, x = tf.Variable(1.0, name="v"), tf.placeholder(tf.float32, [2])
    total = v + x
    sess.run(v.initializer)
    for _ in range(2):
        sess.run(total, {x: [1.0, 2.0]})

    for bad, kind in (([1.0], ValueError), ("text", ValueError), (total, TypeError)):
        with pytest.raises(kind) as usual:
            sess.run(total, {x: bad}, options=OPTIONS)
        with pytest.raises(kind) as here:
            sess.run(total, {x: bad})
        assert str(usual.value) == str(here.value)


def test_what_is_forbidden_later_is_refused(sess: tf.Session, graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [])
    y, z = -x, x * 2.0
    call = sess.make_callable(z, [x])
    for _ in range(2):
        sess.run(y, {x: 1.0})
        call(1.0)

    graph.prevent_fetching(y.op)
    with pytest.raises(ValueError, match="not fetchable"):
        sess.run(y, {x: 1.0})
    graph.prevent_feeding(x)
    with pytest.raises(ValueError, match="may not be fed"):
        call(1.0)


# -- the end -----------------------------------------------------------------------------------------------------------


def test_closing_cancels_a_step_on_another_thread(probe: Probe, server: BackgroundServer, graph: tf.Graph) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    sess = tf.Session("grpc://localhost:1")
    for _ in range(2):
        sess.run(y, {x: 1.0})
    (session,) = server.server.caller_steps._sessions.values()
    told = session.stop = Noting()
    probe.holds = True
    probe.entered.clear()
    step = in_thread(lambda: sess.run(y, {x: 1.0}))
    assert probe.entered.wait(SECONDS)

    closing = in_thread(sess.close)
    # The step is told to stop before close waits for it.
    assert told.happened.wait(SECONDS)
    assert not closing.done()
    probe.release()

    with pytest.raises(errors.CancelledError, match=r"^Step was cancelled by an explicit call to `Session::Close\(\)`"):
        step.result(SECONDS)
    closing.result(SECONDS)
    assert not server.server.caller_steps._sessions
    with pytest.raises(RuntimeError, match="closed Session"):
        sess.run(y, {x: 1.0})


def test_closing_frees_the_program(sess: tf.Session, server: BackgroundServer) -> None:
    x = tf.placeholder(tf.float32, [])
    y = -x
    call = sess.make_callable(y, [x])
    for _ in range(2):
        call(1.0)
        sess.run(y, {x: 1.0})
    steps = [found.step for found in sess._calls._by_key.values()]

    sess.close()

    assert steps
    assert all(step is not None and step._call is None for step in steps)  # type: ignore[attr-defined]
    assert not server.server.caller_steps._sessions
    with pytest.raises(RuntimeError, match="closed Session"):
        call(1.0)


def test_a_reset_master_says_so(sess: tf.Session) -> None:
    c = tf.constant(1.0)
    for _ in range(2):
        sess.run(c)

    tf.Session.reset("grpc://localhost:1")

    with pytest.raises(errors.AbortedError, match="is not found"):
        sess.run(c)


def test_a_stopping_server_gives_a_step_its_grace(
    probe: Probe, graph: tf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    server = BackgroundServer(TaskServer(None, "local", 0, bind=None))
    server.start()
    inprocess.register("grpc://localhost:2", server)
    sess = tf.Session("grpc://localhost:2")
    for _ in range(2):
        sess.run(y, {x: 1.0})
    probe.holds = True
    probe.entered.clear()
    step = in_thread(lambda: sess.run(y, {x: 5.0}))
    assert probe.entered.wait(SECONDS)

    refused, refuse = threading.Event(), server.server.caller_steps.refuse
    monkeypatch.setattr(server.server.caller_steps, "refuse", lambda: (refuse(), refused.set()))
    stopping = in_thread(lambda: server.stop(SECONDS))
    assert refused.wait(SECONDS)
    probe.holds = False
    with pytest.raises(errors.UnavailableError, match="is shutting down"):
        sess.run(y, {x: 1.0})
    probe.release()

    assert step.result(SECONDS) == -5.0
    stopping.result(SECONDS)
    inprocess.unregister("grpc://localhost:2")
    with pytest.raises(errors.UnavailableError, match="does not run"):
        sess.run(y, {x: 1.0})
    sess.close()


def test_the_event_loop_lives_while_a_step_computes(probe: Probe, sess: tf.Session, server: BackgroundServer) -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.negative(x, name="probe")
    for _ in range(2):
        sess.run(y, {x: 1.0})
    probe.holds = True
    probe.entered.clear()
    step = in_thread(lambda: sess.run(y, {x: 1.0}))
    assert probe.entered.wait(SECONDS)

    assert sess.run(tf.constant(7.0)) == 7.0
    probe.release()

    assert step.result(SECONDS) == -1.0
