"""Sessions whose client is reached over a link: the same values, errors, deadlines and ends as over gRPC.

Each test that compares runs on both ways of the same cluster. What a frame may say wrong is at the end.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.blocked_runs import BlockedRuns
from tenfold.session import link_master, targets
from tenfold.session.grpc_master import GrpcMaster
from tenfold.session.link_master import LinkMaster
from tenfold.session.open_link import asker
from tenfold_core import errors
from tenfold_link.blocking.dial import open_link
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire.calls import HAS_NAMES, HAS_OPTIONS, RUN_STEP, RUN_STEP_ANSWER, STEP_DONE, LinkCall
from tenfold_link.wire.values import ValueReader
from tenfold_protos import config_pb2, master_pb2
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINKED = LinkSettings(shared_threshold=1)
PATHS = {
    "link": LINKED,
    "tcp": LinkSettings(mode="tcp"),
    "noshm": LinkSettings(shared_memory=False),
    "grpc": LinkSettings(mode="off"),
}


class Cluster:
    """Two servers of this process, ps and worker, and sessions that reach the worker over the network."""

    def __init__(self, settings: LinkSettings, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ps = BackgroundServer(TaskServer({}, "ps", 0, link=settings))
        self.worker = BackgroundServer(TaskServer({}, "worker", 0, link=settings))
        monkeypatch.setattr(link_master.LinkSettings, "from_environment", staticmethod(lambda *_: settings))

    def start(self) -> None:
        spec = {"ps": {0: ""}, "worker": {0: ""}}
        for server in (self.ps, self.worker):
            server.start()
        spec = {"ps": {0: f"localhost:{self.ps.port}"}, "worker": {0: f"localhost:{self.worker.port}"}}
        for server in (self.ps, self.worker):
            server.update_cluster(spec)

    def session(self, graph: tf.Graph, config: Any = None) -> tf.Session:
        return tf.Session(self.worker.target, graph=graph, config=config)

    def stop(self) -> None:
        self.worker.stop()
        self.ps.stop()


@pytest.fixture(params=list(PATHS))
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """On every path."""
    cluster = Cluster(PATHS[request.param], monkeypatch)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """By a link with shared memory for every buffer."""
    cluster = Cluster(LINKED, monkeypatch)
    cluster.start()
    yield cluster
    cluster.stop()


def master_of(sess: tf.Session) -> LinkMaster:
    master = sess._master
    assert isinstance(master, LinkMaster)
    return master


def test_steps_go_over_the_link(linked: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GrpcMaster, "_run_step", lambda *_: pytest.fail("a step went over gRPC"))
    with tf.Graph().as_default() as graph, linked.session(graph) as sess:
        x = tf.placeholder(tf.float32, [])
        y = x * 2.0

        assert [sess.run(y, {x: value}) for value in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]

        link = master_of(sess).link
        assert link is not None
        assert link.path == "unix+shm"


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.zeros((0, 3), np.int64),
        np.arange(24, dtype=np.int8).reshape(2, 3, 4),
        np.array([[True], [False]]),
        np.array([b"", b"\xff\x00", b"x" * 10_000], object),
        np.array(b"alone", object),
        np.arange(200_000, dtype=np.complex128),
        np.arange(60_000, dtype=np.float16).reshape(100, 600)[:, ::2],
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_values_travel_both_ways(cluster: Cluster, value: np.ndarray) -> None:
    with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
        x = tf.placeholder(tf.as_dtype(value.dtype) if value.dtype != object else tf.string)
        with tf.device("/job:ps/task:0"):
            there = tf.identity(x)
        y = tf.identity(there)

        for _ in range(2):
            fetched, again = sess.run([y, there], {x: value})

            np.testing.assert_array_equal(fetched, value)
            np.testing.assert_array_equal(again, value)
            if isinstance(fetched, np.ndarray):
                assert fetched.flags.writeable
                fetched[...] = again


def test_a_fetched_variable_does_not_change_afterwards(cluster: Cluster) -> None:
    with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
        v = tf.Variable(tf.zeros([50_000]))
        add = v.assign_add(tf.ones([50_000])).op
        sess.run(tf.global_variables_initializer())
        before = [sess.run(v) for _ in range(2)]
        sess.run(add)

        assert [float(value.max()) for value in before] == [0.0, 0.0]
        assert sess.run(v).min() == 1.0


def test_a_fed_array_may_change_after_the_step(cluster: Cluster) -> None:
    with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
        x = tf.placeholder(tf.float32, [50_000])
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(tf.zeros([50_000]))
            keep = v.assign(x).op
        value = np.ones(50_000, np.float32)
        sess.run(keep, {x: value})
        value[:] = 7

        assert sess.run(v).max() == 1.0


def test_a_failing_node_is_named_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {}
    for path, settings in PATHS.items():
        cluster = Cluster(settings, monkeypatch)
        cluster.start()
        try:
            with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
                x = tf.placeholder(tf.int32, [None], name="x")
                with tf.device("/job:ps/task:0"):
                    bad = tf.reshape(x, [2, 2], name="bad")
                for _ in range(2):
                    with pytest.raises(errors.InvalidArgumentError) as caught:
                        sess.run(bad, {x: [1, 2, 3]})
                said[path] = caught.value.message
                assert caught.value.op is bad.op
                assert sess.run(bad, {x: [1, 2, 3, 4]}).tolist() == [[1, 2], [3, 4]]
        finally:
            cluster.stop()

    assert set(said.values()) == {said["grpc"]}, said
    assert said["grpc"].startswith("From /job:ps/replica:0/task:0:\n")


def test_a_deadline_is_kept_and_the_step_stops(cluster: Cluster) -> None:
    with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
        with tf.device("/job:ps/task:0"):
            c = tf.constant(1.0) + 1.0
        y = c + 1.0
        assert sess.run(y) == 3.0
        with BlockedRuns(cluster.ps) as blocked:
            with pytest.raises(errors.DeadlineExceededError, match=r"did not finish within 100 ms.*/job:ps"):
                sess.run(y, options=config_pb2.RunOptions(timeout_in_ms=100))

            assert blocked.cancelled.wait(10)
        assert sess.run(y) == 3.0


@pytest.mark.parametrize("runs_before", [0, 2])
def test_closing_the_session_ends_its_step(cluster: Cluster, runs_before: int) -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            c = tf.constant(1.0) + 1.0
        y = c + 1.0
        sess = cluster.session(graph)
        for _ in range(runs_before):
            sess.run(y)
        caught: list[BaseException] = []

        def run() -> None:
            try:
                sess.run(y)
            except BaseException as error:
                caught.append(error)

        with BlockedRuns(cluster.ps) as blocked:
            thread = threading.Thread(target=run)
            thread.start()
            assert blocked.entered.wait(10)
            sess.close()
            thread.join(10)

            assert not thread.is_alive()
            assert blocked.cancelled.wait(10)
        assert isinstance(caught[0], errors.CancelledError), caught
        assert "Session::Close()" in str(caught[0])


def test_many_threads_share_a_session(cluster: Cluster) -> None:
    with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            y = x * 2.0
        z = y + 1.0
        wrong: list[Any] = []

        def run(number: int) -> None:
            for value in range(30):
                got = sess.run([z, y][value % 2], {x: float(number + value)})
                if got != 2 * (number + value) + 1 - value % 2:
                    wrong.append((number, value, got))

        threads = [threading.Thread(target=run, args=(number * 1000,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert not wrong


def test_a_link_that_broke_is_opened_again(linked: Cluster) -> None:
    with tf.Graph().as_default() as graph, linked.session(graph) as sess:
        with tf.device("/job:ps/task:0"):
            c = tf.constant(1.0) + 1.0
        y = c + 1.0
        assert sess.run(y) == 3.0
        first = master_of(sess).link
        break_links(linked.worker)
        break_links(linked.ps)
        assert first is not None

        # the client may learn of it only by its next step
        values = [outcome(lambda: sess.run(y)) for _ in range(2)]

        assert values[-1] == 3.0
        assert isinstance(values[0], (float, np.floating, errors.UnavailableError))
        assert master_of(sess).link is not first


def break_links(server: BackgroundServer) -> None:
    async def abort() -> None:
        links = server.server._port.links
        assert links is not None
        for link in links.links:
            link.abort("the test broke it")

    server.call(abort, 10)


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except errors.UnavailableError as error:
        return error


def test_a_server_that_is_gone_is_named(cluster: Cluster) -> None:
    with tf.Graph().as_default() as graph:
        y = tf.constant(1.0) + 1.0
        sess = cluster.session(graph)
        assert sess.run(y) == 2.0
        target = cluster.worker.target
        cluster.worker.stop()

        with pytest.raises(errors.UnavailableError) as caught:
            sess.run(y)

        assert target in caught.value.message
        assert "cannot be reached or has died" in caught.value.message
        sess.close()


def test_a_client_that_wants_no_links_is_served(linked: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_master.LinkSettings, "from_environment", staticmethod(lambda *_: LinkSettings(mode="off")))
    with tf.Graph().as_default() as graph, linked.session(graph) as sess:
        with tf.device("/job:ps/task:0"):
            y = tf.constant(1.0) + 1.0

        assert sess.run(y) == 2.0
        assert master_of(sess).link is None


def test_a_server_that_wants_no_links_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(LinkSettings(mode="off"), monkeypatch)
    monkeypatch.setattr(link_master.LinkSettings, "from_environment", staticmethod(lambda *_: LINKED))
    cluster.start()
    try:
        with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
            y = tf.constant(1.0) + 1.0

            assert sess.run(y) == 2.0
            assert master_of(sess).link is None
    finally:
        cluster.stop()


def test_run_metadata_comes_along(cluster: Cluster) -> None:
    with tf.Graph().as_default() as graph, cluster.session(graph) as sess:
        y = tf.constant(1.0) + 1.0
        metadata = config_pb2.RunMetadata()

        sess.run(y, options=config_pb2.RunOptions(output_partition_graphs=True), run_metadata=metadata)

        assert metadata.partition_graphs


def test_a_partial_run_spans_two_tasks(linked: Cluster) -> None:
    with tf.Graph().as_default() as graph, linked.session(graph) as sess:
        x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            first = x + 1.0
            second = first * y

        handle = sess.partial_run_setup([first, second], [x, y])
        assert sess.partial_run(handle, first, {x: 2.0}) == 3.0
        assert sess.partial_run(handle, second, {y: 5.0}) == 15.0


def test_a_traced_step_tells_of_both_tasks(linked: Cluster) -> None:
    with tf.Graph().as_default() as graph, linked.session(graph) as sess:
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            y = tf.negative(x, name="y")
        metadata = config_pb2.RunMetadata()

        for _ in range(2):  # the second has links to push over
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            assert sess.run(y, {x: 2.0}, options=options, run_metadata=metadata) == -2.0

        traced = metadata.step_stats.dev_stats
        devices = {device.device: [node.node_name for node in device.node_stats] for device in traced}
        assert len(devices) == 2
        assert "y" in devices["/job:ps/replica:0/task:0/device:CPU:0"]


# -- frames ------------------------------------------------------------------------------------------------------------


class Raw:
    """A session, and a link of its own on which a test says what it likes."""

    def __init__(self, cluster: Cluster) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, [], name="x")
            self.v = tf.Variable(0.0, name="v")
            self.add = self.v.assign_add(self.x, read_value=False)
            init = tf.global_variables_initializer()
        self.sess = cluster.session(self.graph)
        self.sess.run(init)
        master = master_of(self.sess)
        self.link = open_link(asker(master.channel(), master._address), master._address, settings=LINKED)
        assert self.sess._handle is not None
        self.handle = self.sess._handle

    def names(self, feeds: tuple[str, ...], fetches: tuple[str, ...], **fields: Any) -> bytes:
        request = master_pb2.RunStepRequest(session_handle=self.handle, fetch=fetches, **fields)
        for name in feeds:
            request.feed.add(name=name)
        return request.SerializeToString()

    def call(self, header: bytes) -> tuple[int, list[Any]]:
        answer, buffers = self.link.call(LinkCall.RUN_STEP, header, timeout=20)
        status, count, length = RUN_STEP_ANSWER.unpack_from(answer)
        reader = ValueReader(answer, RUN_STEP_ANSWER.size + length, buffers, bytes)
        return status, [reader.read()[0] for _ in range(count)]

    def close(self) -> None:
        self.link.close()
        self.sess.close()


@pytest.fixture
def raw(linked: Cluster) -> Iterator[Raw]:
    raw = Raw(linked)
    yield raw
    raw.close()


def test_a_number_stands_for_names_from_then_on(raw: Raw) -> None:
    names = raw.names((), ("v:0",))

    first = raw.call(RUN_STEP.pack(5, HAS_NAMES, 0, len(names)) + names)
    second = raw.call(RUN_STEP.pack(5, 0, 0, 0))

    assert first == second == (STEP_DONE, [0.0])


def test_a_number_that_is_not_known_runs_nothing(raw: Raw) -> None:
    status, values = raw.call(RUN_STEP.pack(6, 0, 0, 0))

    assert status != STEP_DONE
    assert not values


def test_a_client_says_the_names_again_when_they_are_forgotten(
    linked: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenfold_link.wire.short_ids.OTHER_KEEPS", 1)
    with tf.Graph().as_default() as graph, linked.session(graph) as sess:
        a, b = tf.constant(1.0) + 1.0, tf.constant(2.0) + 1.0

        assert [sess.run(t) for t in (a, b, a, b, a)] == [2.0, 3.0, 2.0, 3.0, 2.0]


def test_a_request_that_comes_twice_runs_once(raw: Raw) -> None:
    names = raw.names((), ("v:0",), target=[], request_id=77)
    header = RUN_STEP.pack(7, HAS_NAMES | HAS_OPTIONS, 0, len(names)) + names
    first = raw.call(header)
    raw.sess.run(raw.add, {raw.x: 5.0})

    assert raw.call(header) == first


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"", "cut off"),
        (RUN_STEP.pack(1, HAS_NAMES, 0, 3) + b"\xff\xff\xff", "malformed"),
        (RUN_STEP.pack(8, HAS_NAMES, 2, 0), "2 feeds for"),
    ],
)
def test_a_malformed_frame_is_refused_and_the_link_goes_on(raw: Raw, header: bytes, text: str) -> None:
    names = raw.names(("x:0",), ("v:0",))
    raw_known = RUN_STEP.pack(8, HAS_NAMES, 1, len(names)) + names
    with pytest.raises(errors.InvalidArgumentError, match="malformed"):
        raw.call(raw_known)  # its feed is missing

    with pytest.raises(errors.InvalidArgumentError, match=text):
        raw.call(header)

    assert not raw.link.closed


def test_targets_are_link_masters(linked: Cluster) -> None:
    master = targets.connect(linked.worker.target)
    try:
        assert isinstance(master, LinkMaster)
    finally:
        master.close()
