"""A server on a thread of its own: what is handed on, what blocks, and how it ends. Without sockets."""

from __future__ import annotations

import asyncio
import concurrent.futures
import selectors
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_core.device import task_name
from tenfold_services import background as module
from tenfold_services.background import BackgroundServer, SpinningSelector, new_event_loop
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator

PS, WORKER = task_name("ps", 0), task_name("worker", 0)
CLUSTER = {"ps": {0: "a:1"}, "worker": {0: "b:2"}}
#: No test takes so long.
LONG = 60.0


def made(**options: Any) -> BackgroundServer:
    return BackgroundServer(TaskServer(CLUSTER, "ps", 0, bind=None, **options))


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    with made() as running:
        yield running


# -- what is handed on -------------------------------------------------------------------------------------------------


def test_it_is_the_server_that_it_runs(server: BackgroundServer) -> None:
    inner = server.server
    assert (server.task, server.port, server.target, server.insecure) == (PS, 0, "", False)
    assert server.master is inner.master
    thread = server._thread
    assert thread is not None
    assert (thread.name, thread.daemon) == ("tenfold-server-job:ps-replica:0-task:0", True)
    assert isinstance(server._loop, asyncio.SelectorEventLoop)


def test_what_the_listener_says_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made()
    monkeypatch.setattr(type(one.server), "port", 5)
    monkeypatch.setattr(type(one.server), "target", "grpc://localhost:5")
    one.server.insecure = True
    assert (one.port, one.target, one.insecure) == (5, "grpc://localhost:5", True)


def test_a_lease_and_a_new_cluster_reach_the_server(server: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Any] = []
    monkeypatch.setattr(server.server._own_tokens, "hold", held.append)
    server.hold_lease("lease")
    server.update_cluster({"ps": {0: "a:1", 1: "c:3"}})
    assert held == ["lease"]
    assert server.server.workers.addresses == {"ps": {0: "a:1", 1: "c:3"}}


def test_a_control_service_declares_who_ended(server: BackgroundServer) -> None:
    server.declare_ended([WORKER], [task_name("worker", 1)])
    assert server.answers(LONG)
    assert WORKER in server.server.finished
    assert server.server.finished.lost == {task_name("worker", 1)}


def test_figures_are_the_tasks(server: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "task_figures", lambda of: {"of": of})
    assert server.figures() == {"of": server.server}


def test_what_steps_wait_for_is_asked_within_a_time(server: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def waits(handle: str) -> list[str]:
        return [handle]

    async def hang(handle: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(server.server, "step_waits", waits)
    assert server.step_waits("s", LONG) == ["s"]
    monkeypatch.setattr(server.server, "step_waits", hang)
    with pytest.raises(TimeoutError):
        server.step_waits("s", 0.01)


# -- start and stop ----------------------------------------------------------------------------------------------------


def test_starting_twice_is_no_error(server: BackgroundServer) -> None:
    thread = server._thread
    server.start()
    assert server._thread is thread


def test_a_start_that_fails_is_raised_and_its_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made()

    async def fail() -> None:
        raise errors.unknown("no port")

    monkeypatch.setattr(one.server, "start", fail)
    with pytest.raises(errors.UnknownError, match="no port"):
        one.start()
    assert one._thread is not None
    one._thread.join(LONG)
    assert not one._thread.is_alive()
    with pytest.raises(errors.UnavailableError, match=f"^The server of {PS} in this process does not run.$"):
        one.call(lambda: asyncio.sleep(0))
    one.stop()
    assert one.join() is False


def test_a_loop_that_cannot_be_made_fails_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise OSError("no files left")

    monkeypatch.setattr(module, "new_event_loop", fail)
    with pytest.raises(OSError, match="no files left"):
        made().start()


def test_a_start_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []

    class Started(concurrent.futures.Future[None]):
        def result(self, timeout: float | None = None) -> None:
            waited.append(timeout)
            return super().result(timeout)

    monkeypatch.setattr(concurrent.futures, "Future", Started)
    one = made()
    one.start()
    monkeypatch.undo()
    one.stop()
    assert waited[0] == 60.0


def test_stopping_hands_on_and_ends_the_thread(server: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Any] = []
    real = server.server.stop

    async def stop(*given: Any, **named: Any) -> None:
        stopped.append((given, named))
        await real()

    monkeypatch.setattr(server.server, "stop", stop)
    assert not server.stopped_by_caller
    server.stop(0.5, finished=True, why="is drained")
    server.stop()
    assert stopped == [((0.5,), {"finished": True, "why": "is drained"})]
    assert server.stopped_by_caller
    assert server._thread is not None
    assert not server._thread.is_alive()
    assert not server.answers(0)


def test_a_server_that_was_not_started_stops_too() -> None:
    one = made()
    with pytest.raises(errors.UnavailableError, match="does not run"):
        one.call(lambda: asyncio.sleep(0))
    one.stop()
    assert one._ended.is_set()
    with pytest.raises(errors.UnavailableError):
        one.call(lambda: asyncio.sleep(0))


def test_a_server_that_does_not_stop_is_left_after_a_while(
    server: BackgroundServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[Any] = []

    class Never:
        def result(self, timeout: float) -> None:
            bounds.append(timeout)
            raise TimeoutError

    def submit(work: Any, loop: Any) -> Never:
        work.close()
        return Never()

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "run_coroutine_threadsafe", submit)
        patched.setattr(server._thread, "join", bounds.append)
        server.stop(2.0)
    assert bounds == [2.0 + 2 * server.server.limits.stop_seconds] * 2
    assert server._ended.is_set()
    asyncio.run_coroutine_threadsafe(server.server.stop(), server._loop).result(LONG)  # type: ignore[arg-type]


def test_leaving_the_block_stops() -> None:
    with made() as one:
        assert one.answers(LONG)
    assert one.stopped_by_caller
    assert one._ended.is_set()


# -- join --------------------------------------------------------------------------------------------------------------


def test_what_was_not_started_cannot_be_waited_for() -> None:
    with pytest.raises(errors.FailedPreconditionError, match=rf"^The server of {PS} was not started\.$"):
        made().join()


def test_a_server_ends_with_the_workers_that_it_serves(server: BackgroundServer) -> None:
    server.declare_ended([WORKER], [])
    assert server.join(with_workers=True) is True


def test_one_that_does_not_end_by_itself_is_stopped(server: BackgroundServer) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        joined = pool.submit(server.join)
        server.declare_ended([WORKER], [])
        assert server.answers(LONG)
        assert not joined.done()
        server.stop()
        assert joined.result(LONG) is False


def test_a_caller_that_stops_it_first_has_stopped_it(server: BackgroundServer) -> None:
    server.end_with_workers(True)
    server.stop()
    server.server._ending = object()  # type: ignore[assignment]
    assert server.join() is False


def test_the_end_with_workers_is_taken_back(server: BackgroundServer) -> None:
    server.end_with_workers(True)
    server.end_with_workers(False)
    server.declare_ended([WORKER], [])
    assert server.answers(LONG)
    assert not server.server.ended_with_workers


# -- calls -------------------------------------------------------------------------------------------------------------


def test_a_call_gives_what_its_coroutine_gives(server: BackgroundServer) -> None:
    async def which() -> int:
        return threading.get_ident()

    async def fail() -> None:
        raise errors.aborted("no")

    assert server._thread is not None
    assert server.call(which) == server._thread.ident
    with pytest.raises(errors.AbortedError, match="no"):
        server.call(fail)


def test_a_call_that_takes_too_long_is_cancelled(server: BackgroundServer) -> None:
    cancelled = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        server.call(hang, 0.01)
    assert cancelled.wait(LONG)


def test_a_call_that_ends_with_the_server_is_unavailable(server: BackgroundServer) -> None:
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    with pytest.raises(errors.UnavailableError, match="does not run"):
        server.call(cancel_itself)


def test_the_thread_of_the_server_cannot_wait_for_itself(server: BackgroundServer) -> None:
    async def call() -> None:
        server.call(lambda: asyncio.sleep(0))

    text = f"The thread of {PS}'s server cannot wait for itself; await the coroutine there."
    with pytest.raises(errors.FailedPreconditionError, match=text):
        server.call(call)


def test_a_loop_that_ended_meanwhile_is_unavailable(server: BackgroundServer) -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "_loop", closed)
        with pytest.raises(errors.UnavailableError, match="does not run"):
            server.call(lambda: asyncio.sleep(0))
        assert not server.answers(0)


def test_a_loop_that_is_busy_does_not_answer(server: BackgroundServer) -> None:
    go, busy = threading.Event(), threading.Event()

    async def block() -> None:
        busy.set()
        go.wait(LONG)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(server.call, block)
        assert busy.wait(LONG)
        assert not server.answers(0.01)
        go.set()
        blocked.result(LONG)
    assert server.answers(LONG)


# -- the loop ----------------------------------------------------------------------------------------------------------


class Spin:
    """Stands in for SpinWait: looks once."""

    def __init__(self) -> None:
        self.looked = 0

    def wait(self, look: Any) -> Any:
        self.looked += 1
        return look()


def test_a_selector_looks_before_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    ready = [("key", 1)]
    answers: list[Any] = [ready, [], ready, ready, []]

    def select(self: Any, timeout: float | None = None) -> Any:
        asked.append(timeout)
        return answers.pop(0)

    monkeypatch.setattr(selectors.DefaultSelector, "select", select)
    monkeypatch.setattr(module, "SpinWait", Spin)
    with SpinningSelector() as selector:
        spin: Any = selector._spin
        assert selector.select(2.5) == ready
        assert asked == [0]
        assert selector.select() == ready
        assert asked == [0, 0, None]
        assert selector.select(0) == ready
        assert selector.select(-1) == []
        assert (asked[3:], spin.looked) == ([0, -1], 2)


def test_the_loop_has_such_a_selector() -> None:
    loop: Any = new_event_loop()
    assert isinstance(loop._selector, SpinningSelector)
    loop.close()


def test_why_a_task_waits_is_told_without_the_threads_of_the_process() -> None:
    asked: list[bool] = []
    server: Any = SimpleNamespace(server=SimpleNamespace(why=lambda stacks: asked.append(stacks)))
    BackgroundServer.why(server)
    assert asked == [False]
