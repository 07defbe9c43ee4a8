"""One task from start to stop, without sockets: the port is a fake, or there is none."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors, telemetry
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.device import task_name
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services import server as module
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.server import TaskServer

PS, WORKER = task_name("ps", 0), task_name("worker", 0)
CLUSTER = {"ps": {0: "localhost:0"}, "worker": {0: "b:2"}}


class FakePort:
    """Stands in for TaskPort; `made` is the newest."""

    made: FakePort
    failure: BaseException | None = None
    #: What happened, in order; shared with other fakes.
    log: list[str]

    def __init__(self, *given: Any) -> None:
        self.given = given
        self.host, self.port = given[1], given[2]
        self.is_open = False
        self.opened: Any = None
        self.reason = ""
        FakePort.made = self

    async def open(self, *given: Any) -> None:
        self.opened = given
        if FakePort.failure is not None:
            raise FakePort.failure
        self.is_open, self.port = True, 4711

    async def close_links(self, reason: str) -> None:
        self.reason = reason
        FakePort.log.append("links")

    async def close(self) -> None:
        FakePort.log.append("listener")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    FakePort.failure, FakePort.log = None, []
    monkeypatch.setattr(module, "TaskPort", FakePort)
    return FakePort.log


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that the BLAS was limited to."""
    counts: list[int] = []
    monkeypatch.setattr(module, "limit_blas_threads", lambda owner, count: counts.append(count))
    return counts


def no_port(**options: Any) -> TaskServer:
    return TaskServer(CLUSTER, "ps", 0, bind=None, **options)


# -- what it is made of ------------------------------------------------------------------------------------------------


def test_another_protocol_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"The protocol 'verbs' is not served; 'grpc' is\."):
        no_port(protocol="verbs")


@pytest.mark.parametrize(("port", "fine"), [(-1, False), (0, True), (65535, True), (65536, False)])
def test_links_have_a_port(log: list[str], port: int, fine: bool) -> None:
    if fine:
        TaskServer(CLUSTER, "ps", 0, link_port=port)
        assert FakePort.made.given[6] == replace(LinkSettings.from_environment(), port=port)
    else:
        text = rf"link_port is {port}; it may be 1 to 65535, or 0 for any\."
        with pytest.raises(errors.InvalidArgumentError, match=text):
            TaskServer(CLUSTER, "ps", 0, link_port=port)


def test_a_port_is_made_of_what_the_server_is_given(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", "grpcio")
    limits = replace(DEFAULT_LIMITS, concurrent_rpcs=77)
    server = TaskServer(CLUSTER, "ps", 0, bind="127.0.0.1:55", limits=limits, link=DEFAULT_LINK_SETTINGS)
    task, host, port, given, transport, http2, link, gate, credentials = FakePort.made.given
    assert (task, host, port, given, transport, link) == (
        PS,
        "127.0.0.1",
        55,
        limits,
        "grpcio",
        DEFAULT_LINK_SETTINGS,
    )
    assert http2 == Http2Settings.from_environment(77)
    assert credentials is server._credentials
    assert gate is not None


@pytest.mark.parametrize(
    ("bind", "insecure", "says"),
    [("127.0.0.1:0", False, False), ("127.0.0.1:0", True, True), (None, True, False), (None, False, False)],
)
def test_a_listener_may_be_insecure(log: list[str], bind: str | None, insecure: bool, says: bool) -> None:
    assert TaskServer(CLUSTER, "ps", 0, bind=bind, insecure=insecure).insecure is says


def test_beyond_loopback_a_token_is_needed(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "where_to_listen", lambda *given: (asked.append(given), ("h", 1))[1])
    TaskServer(CLUSTER, "ps", 0, bind="0.0.0.0:1", access=AccessSettings())
    TaskServer(CLUSTER, "ps", 0, bind="0.0.0.0:1", access=AccessSettings(), insecure=True)
    TaskServer({}, "ps", 0, bind="0.0.0.0:1", access=AccessSettings(token="x" * 40))
    assert asked == [
        (PS, "0.0.0.0:1", "localhost:0", False),
        (PS, "0.0.0.0:1", "localhost:0", True),
        (PS, "0.0.0.0:1", "", True),
    ]


def test_without_a_listener_there_is_no_target() -> None:
    server = no_port()
    assert (server.port, server.target, server.job, server.index, server.task) == (0, "", "ps", 0, PS)


@pytest.mark.parametrize("name", ["master", "worker", "workers", "caller_steps"])
def test_before_the_start_there_are_no_parts(name: str) -> None:
    with pytest.raises(errors.FailedPreconditionError, match=rf"^The server of {PS} was not started\.$"):
        getattr(no_port(), name)


def test_a_lease_is_held_by_the_tokens_of_this_task(monkeypatch: pytest.MonkeyPatch) -> None:
    server = no_port()
    held: list[str] = []
    monkeypatch.setattr(server._own_tokens, "hold", held.append)
    server.hold_lease("lease")
    assert held == ["lease"]


# -- start -------------------------------------------------------------------------------------------------------------


async def test_a_started_server_has_its_parts(threads: list[int]) -> None:
    config = ConfigProto(intra_op_parallelism_threads=3)
    async with no_port(config=config) as server:
        assert server.workers.worker(PS) is server.worker
        assert server.worker.workers is server.workers
        assert server.worker.sessions_set_threads
        assert server.worker.limits.state_bytes_per_session == server.limits.most_state_bytes
        assert server.worker.on_master == server.finished.answered
        assert server.caller_steps.lines is None
        assert server.peers is None
        assert server.not_ready() == ""
        env = server.master._env
        assert (env.task, env.workers, env.default_config) == (PS, server.workers, config)
        assert env.workers.worker(PS) is server.worker
        assert env.workers.addresses == CLUSTER
        assert (env.caller_steps, env.graph_pool) == (server.caller_steps, server.worker.graph_pool)
        assert (env.finished, env.ask_finished) == (server.finished, None)
        [sweep] = [task for task in asyncio.all_tasks() if task.get_name() == f"sweep:{PS}"]
        assert threads == [3]
    assert threads == [3, 0]
    assert sweep.cancelled() or sweep.done() or sweep.cancelling()


async def test_a_listener_is_opened_with_them(log: list[str], threads: list[int]) -> None:
    async with TaskServer(CLUSTER, "ps", 0) as server:
        port = FakePort.made
        master, worker, finished, not_ready, waits, why = port.opened
        assert (master, worker, finished) == (server.master, server.worker, server.finished)
        assert (not_ready, waits) == (server.not_ready, server._waits_here)
        assert why().task == PS
        assert (server.port, server.target) == (4711, "grpc://localhost:4711")
        # the port that is really open
        assert server.workers.addresses == {"ps": {0: "localhost:4711"}, "worker": {0: "b:2"}}
        assert not server.worker.sessions_set_threads
        assert server.worker.limits == server.limits
        assert server.peers is not None
        assert server.master._env.ask_finished == server.peers.ask
        assert server.caller_steps.lines is not None
    assert log == ["links", "listener"]
    assert port.reason == f"{PS} is shutting down"


async def test_without_links_no_steps_go_over_them(log: list[str]) -> None:
    async with TaskServer(CLUSTER, "ps", 0, link=replace(DEFAULT_LINK_SETTINGS, mode="off")) as server:
        assert server.caller_steps.lines is None


async def test_an_insecure_listener_is_warned_of(log: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async with TaskServer(CLUSTER, "ps", 0, insecure=True):
        pass
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"{PS} is insecure" in warning
    assert "127.0.0.1:4711" in warning


async def test_a_port_that_cannot_be_had_leaves_nothing_behind(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    FakePort.failure = errors.unknown("taken")
    closed: list[Any] = []
    real = module.Worker.close
    monkeypatch.setattr(module.Worker, "close", lambda worker: (closed.append(worker), real(worker))[1])
    server = TaskServer(CLUSTER, "ps", 0)
    with pytest.raises(errors.UnknownError, match="taken"):
        await server.start()
    assert len(closed) == 1
    for name in ("master", "worker", "workers", "caller_steps"):
        with pytest.raises(errors.FailedPreconditionError):
            getattr(server, name)
    await server.stop()


async def test_a_server_starts_once(threads: list[int]) -> None:
    server = no_port()
    await server.start()
    for _ in range(2):
        with pytest.raises(errors.FailedPreconditionError, match=f"The server of {PS} was started before"):
            await server.start()
        await server.stop()
    stopped = no_port()
    await stopped.stop()
    with pytest.raises(errors.FailedPreconditionError):
        await stopped.start()


@pytest.mark.parametrize("bind", ["127.0.0.1:0", None])
async def test_limits_of_the_process_are_set(log: list[str], monkeypatch: pytest.MonkeyPatch, bind: str | None) -> None:
    told: list[Any] = []
    monkeypatch.setattr(module, "raise_limit", lambda: told.append("files"))
    monkeypatch.setattr(module, "limit_tensor", lambda size: told.append(size))
    monkeypatch.setattr(module, "use", lambda files: told.append(files))
    monkeypatch.setattr(telemetry, "start", lambda *given: told.append(given))
    monkeypatch.setattr(module, "tensor_bytes_from_environment", lambda: 0)
    limits = replace(DEFAULT_LIMITS, tensor_bytes=123)
    server = TaskServer(CLUSTER, "ps", 0, bind=bind, limits=limits)
    async with server:
        assert told == [*(["files"] if bind else []), 123, server._files, ("tenfold-task", {"tenfold.task": PS})]
    told.clear()
    async with TaskServer(CLUSTER, "ps", 0, bind=None, limits=replace(limits, tensor_bytes=0)):
        assert 123 not in told
        assert 0 not in told


def test_files_are_those_of_the_caller_or_of_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(module, "GraphFiles", lambda *given: made.append(given))
    limits = replace(DEFAULT_LIMITS, files="/limits", file_bytes=7)
    no_port(limits=limits)
    no_port(limits=limits, files="")
    assert made == [("/limits", 7), ("", 7)]


# -- the cluster -------------------------------------------------------------------------------------------------------


async def test_a_new_cluster_is_taken_over(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    server = TaskServer(CLUSTER, "ps", 0)
    monkeypatch.setattr(server._files_short, "look", lambda *given: looked.append(given))
    async with server:
        greeted: list[Any] = []
        assert server.peers is not None
        monkeypatch.setattr(server.peers, "greet", greeted.append)
        server.update_cluster({"worker": {0: "c:3", 1: "d:4"}})
        assert server.workers.addresses == {"worker": {0: "c:3", 1: "d:4"}, "ps": {0: "localhost:4711"}}
        assert greeted == [[PS, WORKER, task_name("worker", 1)]]
        server.update_cluster({})
        assert server.workers.addresses == {"ps": {0: "localhost:4711"}}
    needed = [module.needed_by_task(count) for count in (2, 3, 1)]
    assert looked == [
        (needed[0], "a cluster of 2 tasks"),
        (needed[1], "a cluster of 3 tasks"),
        (needed[2], "a cluster of 1 task"),
    ]


async def test_a_cluster_may_come_before_the_start(threads: list[int]) -> None:
    server = no_port()
    server.update_cluster({"ps": {0: "x:1", 1: "y:1"}})
    assert threads == []
    async with server:
        assert server.workers.addresses == {"ps": {0: "x:1", 1: "y:1"}}


@pytest.mark.parametrize(("tasks", "share", "count"), [(1, "4", 0), (2, "4", 4), (3, None, 0)])
async def test_tasks_of_one_host_share_its_threads(
    threads: list[int], monkeypatch: pytest.MonkeyPatch, tasks: int, share: str | None, count: int
) -> None:
    monkeypatch.setattr(module, "tasks_on_host", lambda *given: tasks)
    monkeypatch.setattr(module, "thread_share", lambda number: {} if share is None else {"OPENBLAS_NUM_THREADS": share})
    async with no_port():
        assert threads == [count]


async def test_a_session_may_bring_a_cluster_of_its_own() -> None:
    cluster = ClusterDef()
    cluster.job.add(name="other").tasks[5] = "x:1"
    task = task_name("other", 5)
    async with no_port() as server:
        home = server.master._env
        assert home.join is not None
        env = home.join(cluster, task)

        assert env.task == task
        guest: Any = env.workers.worker(task)
        assert guest.devices[0].name.startswith(task)
        assert server.worker.guests == [guest]
        assert env.workers.addresses == {"other": {5: "x:1"}}
        assert (env.default_config, env.graph_pool) == (home.default_config, server.worker.graph_pool)
        assert env.server_def is not None
        assert env.server_def(task).task_index == 5
        assert env.leave is not None
        await env.leave()
        assert server.worker.guests == []


async def test_another_task_is_reached_over_links(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}

    def worker(*given: Any, **named: Any) -> Any:
        made.update(named, given=given)

        async def close() -> None:
            made["closed"] = True

        return SimpleNamespace(address="b:2", close=close)

    monkeypatch.setattr("tenfold_services.rpc.link_worker.LinkWorker", worker)
    monkeypatch.setattr(module, "credentials_for", lambda credentials, task: ("shown", task))
    monkeypatch.setattr(module, "endpoints", lambda *given: ("endpoints", *given))
    async with TaskServer(CLUSTER, "ps", 0) as server:
        server.workers.worker(WORKER)
        assert made == {
            "given": (WORKER, "b:2", server.limits),
            "own": (PS, server.worker.incarnation),
            "on_link": ("endpoints", server.master, server.worker),
            "settings": server._link_settings,
            "deliver": server.worker.pushed,
            "credentials": ("shown", WORKER),
        }
    assert made["closed"]


async def test_what_steps_wait_for_is_asked_everywhere(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def everywhere(*given: Any) -> list[str]:
        asked.append(given)
        return ["everything"]

    monkeypatch.setattr("tenfold_services.rpc.examine_service.waits_everywhere", everywhere)
    monkeypatch.setattr(module, "wait_texts", lambda runs: [f"{run.session} {run.where}" for run in runs])
    for bind, others in (("127.0.0.1:0", {"a": "a:1"}), (None, {})):
        async with TaskServer(CLUSTER, "ps", 0, bind=bind) as server:
            handles = {server.caller_steps: ("s", "t"), server.worker: ("", "s")}
            for where, those in handles.items():
                runs = [SimpleNamespace(session=handle, where=type(where).__name__) for handle in those]
                monkeypatch.setattr(where, "step_runs", lambda runs=runs: runs)
            monkeypatch.setattr(server.master, "other_tasks", lambda: {"a": "a:1"})
            assert await server.step_waits("s") == ["everything"]
            assert asked[-1] == ("s", ["s CallerSteps", "s Worker"], others, server._credentials)
            assert server._waits_here("") == []


async def test_steps_that_nobody_cleaned_up_are_forgotten_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_SWEEP_SECONDS", 0)
    caplog.set_level(logging.INFO, module.__name__)
    swept, answers = asyncio.Event(), iter((0, 7))

    def sweep(now: float) -> int:
        found = next(answers, None)
        if found is None:
            swept.set()
        return found or 0

    async with no_port() as server:
        monkeypatch.setattr(server.worker.steps, "sweep", sweep)
        await swept.wait()
    told = [record.getMessage() for record in caplog.records if "forgot" in record.getMessage()]
    assert told == [f"{PS} forgot 7 steps that were not cleaned up"]


# -- stop --------------------------------------------------------------------------------------------------------------


def watch(monkeypatch: pytest.MonkeyPatch, server: TaskServer, log: list[Any]) -> None:
    """Writes the steps of stopping into `log`, and lets them do nothing else."""

    def note(owner: Any, name: str, what: str, *, is_async: bool) -> None:
        async def later(*given: Any) -> None:
            log.append((what, *given))

        monkeypatch.setattr(owner, name, later if is_async else lambda *given: log.append((what, *given)))

    note(server.worker, "refuse", "worker refuses", is_async=False)
    note(server.caller_steps, "refuse", "callers refused", is_async=False)
    note(server.worker, "drained", "worker drained", is_async=True)
    note(server.caller_steps, "drained", "callers drained", is_async=True)
    note(server.worker, "abort_steps", "steps aborted", is_async=False)
    note(server.workers, "close", "connections", is_async=True)


@pytest.mark.parametrize("grace", [0.0, 1.0])
@pytest.mark.parametrize("finished", [False, True])
async def test_stopping_goes_in_order(
    log: list[Any], monkeypatch: pytest.MonkeyPatch, grace: float, finished: bool
) -> None:
    server = TaskServer(CLUSTER, "ps", 0)
    await server.start()
    watch(monkeypatch, server, log)
    peers, lines, master = server.peers, server.caller_steps.lines, server.master
    assert peers is not None
    assert lines is not None

    async def noted(what: str) -> None:
        log.append(what)

    monkeypatch.setattr(peers, "tell", lambda tasks: noted(f"told {tasks}"))
    monkeypatch.setattr(peers, "close", lambda: noted("peers"))
    monkeypatch.setattr(master, "stop", lambda: noted("master"))
    monkeypatch.setattr(lines, "close", lambda: log.append("lines"))
    real = server.worker.close
    monkeypatch.setattr(server.worker, "close", lambda: (log.append("worker"), real())[1])

    await server.stop(grace, finished=finished, why="is being drained: nodes go")

    named = [each if isinstance(each, str) else each[0] for each in log]
    assert named == [
        "worker refuses",
        "callers refused",
        *(["worker drained", "callers drained"] if grace else []),
        "master",
        "steps aborted",
        *([f"told {[PS, WORKER]}"] if finished else []),
        "peers",
        "links",
        "listener",
        "lines",
        "connections",
        "worker",
    ]
    gone = log[0][1]
    assert isinstance(gone, errors.UnavailableError)
    assert gone.message == server.not_ready() == f"{PS} is being drained: nodes go."
    assert next(each for each in log if each[0] == "steps aborted")[1] is gone


async def test_a_server_that_stops_has_not_finished_and_gives_no_grace_unless_that_is_said(
    log: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = TaskServer(CLUSTER, "ps", 0)
    await server.start()
    watch(monkeypatch, server, log)
    assert server.peers is not None
    monkeypatch.setattr(server.peers, "tell", lambda tasks: pytest.fail("nothing has finished"))
    await server.stop()
    assert "worker drained" not in [each[0] for each in log if not isinstance(each, str)]


async def test_a_second_caller_waits_for_the_first(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    server = no_port()
    await server.start()
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        entered.set()
        await go.wait()

    monkeypatch.setattr(server.master, "stop", slow)
    first = asyncio.ensure_future(server.stop())
    await entered.wait()
    second = asyncio.ensure_future(server.stop(why="never said"))
    waiting = asyncio.ensure_future(server.wait_stopped())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not second.done()
    assert not waiting.done()
    assert server.not_ready() == f"{PS} is shutting down."
    go.set()
    await asyncio.gather(first, second, waiting)
    assert threads[-1] == 0


@pytest.mark.parametrize("fails", [False, True])
async def test_a_step_of_stopping_that_hangs_or_fails_is_told_and_passed_over(
    log: list[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    server = TaskServer(CLUSTER, "ps", 0, limits=replace(DEFAULT_LIMITS, stop_seconds=0.03, finished_seconds=0.01))
    await server.start()

    async def hang(*given: Any) -> None:
        if fails:
            raise ValueError("a fault")
        await asyncio.Event().wait()

    assert server.peers is not None
    for owner, name in (
        (server.worker, "drained"),
        (server.master, "stop"),
        (server.peers, "tell"),
        (server.peers, "close"),
        (FakePort.made, "close_links"),
        (FakePort.made, "close"),
        (server.workers, "close"),
    ):
        monkeypatch.setattr(owner, name, hang)

    await server.stop(0.02, finished=True)

    what = {
        "running steps": 0.02,
        "the master's sessions": 0.01,
        "telling the others": 0.05,
        "news for the others": 0.01,
        "links": 0.01,
        "the listener": 0.01,
        "connections": 0.01,
    }
    told = [record.getMessage() for record in caplog.records if " stops: " in record.getMessage()]
    if fails:
        assert told == [f"{PS} stops: {each} failed to end" for each in what]
    else:
        assert told == [f"{PS} stops: {each} did not end within {seconds:g} s" for each, seconds in what.items()]


# -- the end with the workers ------------------------------------------------------------------------------------------


async def test_a_server_may_end_with_those_that_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Any] = []
    async with no_port(limits=replace(DEFAULT_LIMITS, last_steps_seconds=0.5)) as server:
        real = server.stop

        async def stop(grace: float = 0.0, **named: Any) -> None:
            stopped.append((grace, named))
            await real()

        monkeypatch.setattr(server, "stop", stop)
        server.end_with_workers()
        assert not server.ended_with_workers
        server.finished.note({WORKER: 5})
        assert server.ended_with_workers
        server.finished.on_change()
        await server.wait_stopped()
        assert stopped == [(0.5, {"finished": True})]


async def test_that_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with no_port() as server:
        server.end_with_workers()
        server.end_with_workers(False)
        server.finished.note({WORKER: 5})
        assert not server.ended_with_workers
        server.end_with_workers(False)
        assert not server.ended_with_workers
        server.end_with_workers()
        assert server.ended_with_workers
