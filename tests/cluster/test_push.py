"""Push: tensors go to their consumers by themselves, a step between tasks costs one round trip, and nothing is left.

The other half of most tests is what must not happen: RecvTensor and CleanupGraph between tasks that are linked.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.blocked_runs import BlockedRuns
from support.moments import until
from tenfold_core import errors
from tenfold_link.link_settings import LinkSettings
from tenfold_protos.attr_value_pb2 import AttrValue as Attr
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_services.background import BackgroundServer
from tenfold_services.master import caller_cluster_steps
from tenfold_services.rpc.grpc_worker import GrpcWorker
from tenfold_services.rpc.link_worker import LinkWorker
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

LINKED = LinkSettings(shared_threshold=1)
NO_LINKS = LinkSettings(mode="off")


class Tasks:
    """Servers on the test's loop; the session's master is on worker 0."""

    def __init__(self, servers: dict[tuple[str, int], TaskServer]) -> None:
        self.servers = servers
        self.master = servers["worker", 0].master

    def __getitem__(self, task: tuple[str, int]) -> TaskServer:
        return self.servers[task]

    async def session(self, graph: tf.Graph) -> str:
        return (await self.master.create_session(graph.as_graph_def(), ConfigProto()))[0]

    async def run(self, handle: str, fetches: list[Any], feeds: Any = None, targets: Any = (), **options: Any) -> Any:
        values, _ = await self.master.run_step(
            handle,
            {tensor.name: np.asarray(value) for tensor, value in (feeds or {}).items()},
            [tensor.name for tensor in fetches],
            [operation.name for operation in targets],
            RunOptions(**options),
        )
        return values

    @property
    def left(self) -> dict[tuple[str, int], int]:
        """Steps that tasks still know."""
        return {task: len(server.worker.steps) for task, server in self.servers.items() if server.worker.steps}


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Tasks]]]:
    servers: dict[tuple[str, int], TaskServer] = {}

    async def start(settings: dict[str, LinkSettings] | None = None, **jobs: int) -> Tasks:
        """`settings` by job; links for the others."""
        spec = {job: {index: "" for index in range(count)} for job, count in jobs.items()}
        for job, count in jobs.items():
            for index in range(count):
                server = TaskServer(spec, job, index, link=(settings or {}).get(job, LINKED))
                servers[job, index] = server
                await server.start()
        addresses: dict[str, dict[int, str]] = {job: {} for job in jobs}
        for (job, index), server in servers.items():
            addresses[job][index] = f"localhost:{server.port}"
        for server in servers.values():
            server.update_cluster(addresses)
        return Tasks(servers)

    yield start
    for server in servers.values():
        await server.stop()


@pytest.fixture
def pushes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test when a task asks for a tensor or sends CleanupGraph after a step that went well."""
    for name in ("recv_tensor", "cleanup_graph"):
        monkeypatch.setattr(LinkWorker, name, lambda *_, name=name: pytest.fail(f"{name} was called"))
        monkeypatch.setattr(GrpcWorker, name, lambda *_, name=name: pytest.fail(f"{name} was called"))


@pytest.mark.usefixtures("pushes_only")
async def test_a_tensor_of_another_task_comes_with_the_answer(start: Any) -> None:
    tasks = await start(ps=1, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([1.0, 2.0])
            init = v.initializer
        with tf.device("/job:worker/task:0"):
            y = v + 1.0
    handle = await tasks.session(graph)
    await tasks.run(handle, [], targets=[init])

    for _ in range(3):
        [value] = await tasks.run(handle, [y])

        assert value.tolist() == [2.0, 3.0]
        assert not tasks.left


@pytest.mark.usefixtures("pushes_only")
@pytest.mark.parametrize("size", [1, 100_000])
async def test_a_feed_goes_along_with_the_call(start: Any, size: int) -> None:
    tasks = await start(ps=1, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [size])
        with tf.device("/job:ps/task:0"):
            y = x * 2.0
    handle = await tasks.session(graph)

    for number in range(3):
        [value] = await tasks.run(handle, [y], {x: np.full(size, number, np.float32)})

        assert value.max() == value.min() == 2 * number
        assert not tasks.left


@pytest.mark.usefixtures("pushes_only")
async def test_a_training_step_goes_back_and_forth(start: Any) -> None:
    """ps → worker → ps → worker within one step."""
    tasks = await start(ps=1, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([1.0, 2.0])
            init = v.initializer
        with tf.device("/job:worker/task:0"):
            gradient = v * 10.0
        with tf.device("/job:ps/task:0"):
            updated = v.assign_add(gradient)
        with tf.device("/job:worker/task:0"):
            y = updated + 1.0
    handle = await tasks.session(graph)
    await tasks.run(handle, [], targets=[init])

    [first] = await tasks.run(handle, [y])
    [second] = await tasks.run(handle, [y])

    assert first.tolist() == [12.0, 23.0]
    assert second.tolist() == [122.0, 243.0]
    assert not tasks.left


@pytest.mark.usefixtures("pushes_only")
async def test_tasks_push_to_each_other_without_the_master(start: Any) -> None:
    """worker 0 (the master) → ps 0 → ps 1 → worker 0, and ps 1 → ps 0 → worker 0."""
    tasks = await start(ps=2, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            a = x + 1.0
        with tf.device("/job:ps/task:1"):
            b = a * 10.0
        with tf.device("/job:ps/task:0"):
            c = b + a
        with tf.device("/job:worker/task:0"):
            d = c + b
    handle = await tasks.session(graph)

    for value in (1.0, 2.0, 3.0):
        [result] = await tasks.run(handle, [d], {x: np.float32(value)})

        assert result == 21 * (value + 1)
        assert not tasks.left


@pytest.mark.usefixtures("pushes_only")
async def test_dead_tensors_are_pushed_too(start: Any) -> None:
    tasks = await start(ps=1, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:0"):
            p = tf.placeholder(tf.bool, [])
            v = tf.constant(5.0)
            kind = Attr(type=tf.float32.as_datatype_enum)
            no, yes = graph.create_op("Switch", [v, p], attrs={"T": kind}).outputs
        with tf.device("/job:ps/task:0"):
            less, more = no - 1.0, yes + 1.0
        with tf.device("/job:worker/task:0"):
            merge = graph.create_op("Merge", [less, more], attrs={"T": kind, "N": Attr(i=2)})
            y = merge.outputs[0] + 0.0
    handle = await tasks.session(graph)

    got = [(await tasks.run(handle, [y], {p: np.bool_(taken)}))[0] for taken in (True, False, True)]

    assert got == [6.0, 4.0, 6.0]
    assert not tasks.left


@pytest.mark.parametrize("without", ["ps", "worker"])
async def test_a_pair_without_a_link_pulls(start: Any, without: str) -> None:
    tasks = await start({without: NO_LINKS}, ps=2, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            a = tf.constant([1.0]) + 1.0
        with tf.device("/job:ps/task:1"):
            b = a * 10.0
        with tf.device("/job:worker/task:0"):
            c = a + b
    handle = await tasks.session(graph)

    got = [(await tasks.run(handle, [c]))[0].tolist() for _ in range(2)]

    assert got == [[22.0], [22.0]]


async def test_some_pairs_push_and_some_pull(start: Any) -> None:
    """ps 0 is linked, the task of job "old" is not: edges with it are pulled, the others pushed."""
    tasks = await start({"old": NO_LINKS}, ps=1, old=1, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            a = x + 1.0
        with tf.device("/job:old/task:0"):
            b = a * 10.0 + x
        with tf.device("/job:ps/task:0"):
            c = b + a
        with tf.device("/job:worker/task:0"):
            d = c + b + a
    handle = await tasks.session(graph)

    got = [(await tasks.run(handle, [d], {x: np.float32(value)}))[0] for value in (1.0, 2.0)]

    assert got == [(20 + 1) * 2 + 4, (30 + 2) * 2 + 6]


async def test_the_producers_error_is_the_steps(start: Any) -> None:
    tasks = await start(ps=2, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.int32, [None])
        with tf.device("/job:ps/task:0"):
            bad = tf.reshape(x, [2, 2], name="bad")
        with tf.device("/job:ps/task:1"):
            y = bad + 1
        with tf.device("/job:worker/task:0"):
            z = y + bad
    handle = await tasks.session(graph)
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match=r"(?s)^From /job:ps/replica:0/task:0:\n.*node bad"):
            await tasks.run(handle, [z], {x: np.array([1, 2, 3], np.int32)})

    [value] = await tasks.run(handle, [z], {x: np.array([1, 2, 3, 4], np.int32)})

    assert value.tolist() == [[3, 5], [7, 9]]
    tables = [server.worker.steps for server in tasks.servers.values()]
    await until(lambda: not tasks.left, *((table, name) for table in tables for name in ("finish", "forget")))


async def test_a_lost_link_ends_the_step_and_the_next_one_runs(start: Any) -> None:
    tasks = await start(ps=1, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            a = tf.placeholder_with_default([1.0], [1]) + 1.0
        with tf.device("/job:worker/task:0"):
            b = a + 1.0
    handle = await tasks.session(graph)
    assert (await tasks.run(handle, [b]))[0] == 3.0
    links = tasks["ps", 0]._port.links
    assert links is not None
    entered = asyncio.Event()
    worker: Any = tasks["ps", 0].worker

    def never_ends(*_: Any) -> Any:
        entered.set()
        return Hung()

    worker.start_run = never_ends
    worker.run_at_once = lambda *_: None
    step = asyncio.ensure_future(tasks.run(handle, [b]))
    await entered.wait()
    del worker.start_run, worker.run_at_once
    for link in links.links:
        link.abort("the test broke it")

    with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:0"):
        await step
    assert (await tasks.run(handle, [b]))[0] == 3.0


class Hung:
    """A run that nothing ends."""

    def cancel(self, error: errors.OpError | None = None) -> None:
        return


async def test_who_waits_for_a_push_hears_that_its_producer_is_lost(start: Any) -> None:
    """ps 0 has answered its master and dies with the tensor for ps 1 unsent."""
    tasks = await start(ps=2, worker=1)
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            a = tf.constant([1.0]) + 1.0
        with tf.device("/job:ps/task:1"):
            b = a * 10.0
    handle = await tasks.session(graph)
    assert (await tasks.run(handle, [b]))[0] == 20.0
    consumer = tasks["ps", 1]
    lost = asyncio.Event()
    pushed = consumer.worker.pushed
    any_worker: Any = consumer.worker

    def drop(*_: Any) -> None:
        lost.set()

    any_worker.pushed = drop
    step = asyncio.ensure_future(tasks.run(handle, [b]))
    await lost.wait()
    any_worker.pushed = pushed
    links = consumer._port.links
    assert links is not None
    for link in links.links:
        if link.peer == tasks["ps", 0].task:
            link.abort("the test broke it")

    with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:0"):
        async with asyncio.timeout(10):
            await step


async def test_a_step_of_a_master_without_links_pulls_over_the_workers_links(start: Any) -> None:
    """As with TensorFlow's master: RunGraph comes by gRPC, and RecvTensor goes by the link that there is."""
    tasks = await start(ps=1, worker=1)
    producer, consumer = tasks["ps", 0], tasks["worker", 0]
    peer: Any = consumer.workers.worker(producer.task)
    assert await peer.connect()
    step = asyncio.ensure_future(consumer.worker.recv_remote(producer.task, 7, key_of(producer, consumer)))
    await until(lambda: len(producer.worker.steps), (producer.worker.steps, "get"))  # it asks
    rendezvous = producer.worker.steps.find(7)
    assert rendezvous is not None
    rendezvous.send(key_of(producer, consumer), np.arange(3000.0))

    value, is_dead = await step

    assert not is_dead
    assert value.sum() == np.arange(3000.0).sum()


def key_of(producer: TaskServer, consumer: TaskServer) -> str:
    device = producer.worker.devices[0]
    return f"{device.name};{device.incarnation:016x};{consumer.worker.devices[0].name};edge;0:0"


# -- on the caller's thread --------------------------------------------------------------------------------------------


class Threads:
    """A ps and a worker with loops of their own, and a session in the worker's process."""

    def __init__(self) -> None:
        self.ps = BackgroundServer(TaskServer({}, "ps", 0, link=LINKED))
        self.server = tf.train.Server({"worker": ["localhost:0"]}, "worker", 0, start=False)
        self.worker: BackgroundServer = self.server._server

    def start(self) -> None:
        self.ps.start()
        self.server.start()
        spec = {"ps": {0: f"localhost:{self.ps.port}"}, "worker": {0: f"localhost:{self.worker.port}"}}
        for server in (self.ps, self.worker):
            server.update_cluster(spec)

    def stop(self) -> None:
        self.server.stop()
        self.ps.stop()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    for name in ("TENFOLD_LINK", "TENFOLD_SHARED_MEMORY", "TENFOLD_SHARED_MEMORY_THRESHOLD"):
        monkeypatch.delenv(name, raising=False)
    threads = Threads()
    threads.start()
    yield threads
    threads.stop()


def build(graph: tf.Graph) -> tuple[tf.Tensor, tf.Tensor]:
    with graph.as_default():
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [None])
        with tf.device("/job:ps/task:0"):
            a = x * 2.0
        with tf.device("/job:worker/task:0"):
            b = a + 1.0
        with tf.device("/job:ps/task:0"):
            c = b * 10.0
        return x, c


def test_a_step_runs_on_its_callers_thread(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = build(graph := tf.Graph())
    with tf.Session(threads.server.target, graph=graph) as sess:
        assert sess.run(y, {x: [1.0]}) == 30.0
        monkeypatch.setattr(
            threads.worker.server.master, "run_step", lambda *_: pytest.fail("the step went through the loop")
        )

        for size in (1, 3, 10_000):
            value = np.arange(size, dtype=np.float32)

            np.testing.assert_array_equal(sess.run(y, {x: value}), (value * 2 + 1) * 10)

    assert len(threads.ps.server.worker.steps) == 0


def test_an_error_on_the_callers_thread_is_the_same(threads: Threads) -> None:
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.int32, [None])
        with tf.device("/job:ps/task:0"):
            bad = tf.reshape(x, [2, 2], name="bad")
        with tf.device("/job:worker/task:0"):
            y = bad + 1
    said = []
    with tf.Session(threads.server.target, graph=graph) as sess:
        for _ in range(3):
            with pytest.raises(errors.InvalidArgumentError) as caught:
                sess.run(y, {x: [1, 2, 3]})
            said.append(caught.value.message)
            assert sess.run(y, {x: [1, 2, 3, 4]}).tolist() == [[2, 3], [4, 5]]

    assert len(set(said)) == 1
    assert said[0].startswith("From /job:ps/replica:0/task:0:\n")


def test_the_sessions_deadline_holds_on_the_callers_thread(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_cluster_steps, "SHORTEST_DEADLINE", 0.1)
    x, y = build(graph := tf.Graph())
    config = tf.ConfigProto(operation_timeout_in_ms=700)
    with tf.Session(threads.server.target, graph=graph, config=config) as sess:
        for _ in range(2):
            sess.run(y, {x: [1.0]})
        with monkeypatch.context() as patched, BlockedRuns(threads.ps) as blocked:
            patched.setattr(threads.worker.server.master, "run_step", lambda *_: pytest.fail("through the loop"))

            with pytest.raises(errors.DeadlineExceededError) as caught:
                sess.run(y, {x: [1.0]})

            assert blocked.entered.is_set()
        assert "did not finish within 700 ms; still pending on /job:ps/replica:0/task:0" in caught.value.message
        assert sess.run(y, {x: [1.0]}) == 30.0


def test_closing_ends_a_step_on_its_callers_thread(threads: Threads) -> None:
    x, y = build(graph := tf.Graph())
    sess = tf.Session(threads.server.target, graph=graph)
    for _ in range(2):
        sess.run(y, {x: [1.0]})
    caught: list[BaseException] = []

    def run() -> None:
        try:
            sess.run(y, {x: [1.0]})
        except BaseException as error:
            caught.append(error)

    with BlockedRuns(threads.ps) as blocked:
        thread = threading.Thread(target=run)
        thread.start()
        assert blocked.entered.wait(10)
        sess.close()
        thread.join(10)

    assert not thread.is_alive()
    assert isinstance(caught[0], errors.CancelledError)
    assert "Session::Close()" in str(caught[0])


def test_a_peer_that_is_gone_is_named_on_the_callers_thread(threads: Threads) -> None:
    x, y = build(graph := tf.Graph())
    sess = tf.Session(threads.server.target, graph=graph)
    for _ in range(2):
        sess.run(y, {x: [1.0]})
    threads.ps.stop()

    for _ in range(2):
        with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:0"):
            sess.run(y, {x: [1.0]})

    sess.close()


def test_many_threads_have_links_of_their_own(threads: Threads) -> None:
    x, y = build(graph := tf.Graph())
    wrong: list[Any] = []
    with tf.Session(threads.server.target, graph=graph) as sess:
        sess.run(y, {x: [0.0]})

        def run(number: int) -> None:
            for value in range(50):
                got = sess.run(y, {x: [number + value]})
                if got != 20 * (number + value) + 10:
                    wrong.append((number, value, got))

        callers = [threading.Thread(target=run, args=(number * 1000,)) for number in range(20)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)

    assert not wrong
