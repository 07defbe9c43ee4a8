"""How steps of the master end: errors, time-outs, sessions that are closed, tasks and clients that are gone."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from support.fake_cluster import FakeCluster, Gate, fake_device
from tenfold_core import errors
from tenfold_services.master.limits import MasterLimits

from .sessions import FAST, MASTER, NO_OPTIONS, PS, PS_FULL, OpenSession, X, session


async def test_an_error_names_its_task_once(opened: OpenSession) -> None:
    opened.cluster[MASTER].reply("run_graph", errors.InvalidArgumentError(None, None, "bad\n\t [[{{node z}}]]"))

    with pytest.raises(errors.InvalidArgumentError) as caught:
        await opened.run(X, ("z",))

    assert caught.value.message == "From /job:worker/replica:0/task:0:\nbad\n\t [[{{node z}}]]"
    assert caught.value.node_name == "z"


async def test_the_first_error_stops_the_other_parts(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    opened.cluster[PS].reply("run_graph", errors.FailedPreconditionError(None, None, "uninitialized value w"))

    with pytest.raises(errors.FailedPreconditionError, match=f"From {PS_FULL}:\nuninitialized value w"):
        await opened.run(X, ("y",))

    assert gate.cancelled.is_set()


async def test_an_unexpected_exception_of_a_worker_becomes_internal(opened: OpenSession) -> None:
    opened.cluster[MASTER].reply("run_graph", TypeError("oops"))

    with pytest.raises(errors.InternalError, match="TypeError: oops"):
        await opened.run(X, ("z",))


async def test_a_time_out_names_the_tasks_that_are_pending(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("run_graph", gate)

    with pytest.raises(errors.DeadlineExceededError) as caught:
        await opened.run(X, ("y",), timeout_in_ms=300)

    assert caught.value.message == f"The step did not finish within 300 ms; still pending on {PS_FULL}."
    assert gate.cancelled.is_set()


async def test_a_time_out_holds_for_a_single_part_too(opened: OpenSession) -> None:
    opened.cluster[MASTER].reply("run_graph", Gate())

    with pytest.raises(errors.DeadlineExceededError, match="still pending on /job:worker/replica:0/task:0"):
        await opened.run(X, ("z",), timeout_in_ms=300)


async def test_a_time_out_covers_registration(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)

    with pytest.raises(errors.DeadlineExceededError, match=f"still being registered with {PS_FULL}"):
        await opened.run(targets=("init",), timeout_in_ms=20)

    gate.release()


async def test_the_sessions_time_out_is_the_default() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(FAST)
    handle = await session(cluster, master, "a = NoOp()", operation_timeout_in_ms=30)
    cluster[MASTER].reply("run_graph", Gate())

    with pytest.raises(errors.DeadlineExceededError, match="30 ms"):
        await master.run_step(handle, {}, [], ["a"], NO_OPTIONS)

    await master.stop()


async def test_a_task_that_does_not_register_in_time_is_out_of_reach(opened: OpenSession) -> None:
    # monitored sessions begin again after UnavailableError, and not after a step that took too long
    opened.cluster[PS].reply("register_graph", errors.DeadlineExceededError(None, None, "no answer in time"))
    with pytest.raises(errors.UnavailableError, match="no answer in time"):
        await opened.run(targets=("init",))

    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    with pytest.raises(errors.UnavailableError, match=r"within 0\.2 s with /job:ps/replica:0/task:0"):
        await opened.run(targets=("init",))
    gate.release()


async def test_a_failed_registration_is_tried_again_and_leaves_nothing(opened: OpenSession) -> None:
    opened.cluster[MASTER].reply("register_graph", errors.NotFoundError(None, None, "no kernel"))

    with pytest.raises(errors.NotFoundError, match="From /job:worker/replica:0/task:0:\nno kernel"):
        await opened.run(X, ("y",))
    assert len(opened.cluster[PS].called("deregister_graph")) == 1

    await opened.run(X, ("y",))


@pytest.mark.parametrize("fetch", ["z", "y"])
async def test_closing_cancels_running_steps_in_tensorflows_words(opened: OpenSession, fetch: str) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(opened.run(X, (fetch,)))
    await gate.entered.wait()

    await opened.master.close_session(opened.handle)

    with pytest.raises(errors.CancelledError) as caught:
        await step
    assert caught.value.message == "Step was cancelled by an explicit call to `Session::Close()`."
    assert gate.cancelled.is_set()


async def test_a_closed_session_registers_nothing_more(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    step = asyncio.create_task(opened.run(targets=("init",)))
    await gate.entered.wait()

    await opened.master.close_session(opened.handle)

    with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
        await step


async def test_stopping_ends_everything_and_refuses_what_is_new(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(opened.run(X, ("z",)))
    await gate.entered.wait()

    await opened.master.stop()

    with pytest.raises(errors.CancelledError, match="shutting down"):
        await step
    with pytest.raises(errors.UnavailableError, match="shutting down"):
        await session(opened.cluster, opened.master)


@pytest.mark.parametrize("fetch", ["z", "y"])
async def test_a_client_that_gives_up_stops_its_step(opened: OpenSession, fetch: str) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(opened.run(X, (fetch,)))
    await gate.entered.wait()

    step.cancel()

    with pytest.raises(asyncio.CancelledError):
        await step
    assert gate.cancelled.is_set()
    assert await opened.run(X, ("z",)) == [np.float32(0)]


async def test_a_worker_that_does_not_answer_the_end_of_a_session_does_not_hold_it_up(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("delete_worker_session", gate)

    await opened.master.close_session(opened.handle)

    assert gate.cancelled.is_set()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errors.UnavailableError(None, None, "connection refused"), []),
        (errors.AbortedError(None, None, "another incarnation"), []),
        (errors.InternalError(None, None, "no room"), [f"DeleteWorkerSession on {PS_FULL} failed: no room"]),
    ],
)
async def test_a_lost_task_is_no_warning_at_the_end_of_a_session(
    opened: OpenSession, caplog: pytest.LogCaptureFixture, error: errors.OpError, says: list[str]
) -> None:
    opened.cluster[PS].reply("delete_worker_session", error)

    await opened.master.close_session(opened.handle)

    assert [record.message.partition(": ")[2] for record in caplog.records if record.levelname == "WARNING"] == says


async def test_a_task_that_restarted_is_named(opened: OpenSession) -> None:
    await opened.run(targets=("init",))
    opened.cluster[PS].devices = [fake_device(PS, incarnation=99)]
    opened.cluster[PS].reply("run_graph", errors.AbortedError(None, None, "Graph handle is not found"))

    with pytest.raises(errors.AbortedError, match=f"{PS_FULL} has restarted since this session was created") as caught:
        await opened.run(targets=("init",))

    assert "open a new session" in caught.value.message
    assert "Graph handle is not found" in caught.value.message


async def test_a_task_that_is_gone_is_unavailable(opened: OpenSession) -> None:
    lost = errors.UnavailableError(None, None, f"{PS_FULL} is gone")
    opened.cluster[PS].reply("run_graph", lost)
    opened.cluster[PS].reply("get_status", lost)

    with pytest.raises(errors.UnavailableError, match="is gone"):
        await opened.run(X, ("y",))


async def test_the_number_of_running_steps_is_bounded() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(running_steps=1))
    handle = await session(cluster, master, "a = NoOp()")
    gate = Gate()
    cluster[MASTER].reply("run_graph", gate)
    step = asyncio.create_task(master.run_step(handle, {}, [], ["a"], NO_OPTIONS))
    await gate.entered.wait()

    with pytest.raises(errors.ResourceExhaustedError, match="runs 1 steps at once"):
        await master.run_step(handle, {}, [], ["a"], NO_OPTIONS)

    gate.release()
    await step
    await master.stop()


async def test_a_negative_time_out_is_refused(opened: OpenSession) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="timeout_in_ms is -5"):
        await opened.run(X, ("z",), timeout_in_ms=-5)
