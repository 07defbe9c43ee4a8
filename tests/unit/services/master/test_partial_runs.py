"""Partial runs of the master against scripted workers: what calls that overlap do to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.fake_cluster import FakeCluster, Gate
from support.moments import started

from .sessions import MASTER, NO_OPTIONS, X, session

if TYPE_CHECKING:
    from tenfold_services.interfaces import Value

TEXT = """
    x = Placeholder() dtype=float
    z = Neg(x)
    u = Placeholder() dtype=float
    v = Neg(u)
"""


async def test_a_call_that_ends_does_not_end_the_step_under_a_later_one() -> None:
    cluster = FakeCluster(MASTER)
    worker, master = cluster[MASTER], cluster.master()
    handle = await session(cluster, master, TEXT)
    run = await master.partial_run_setup(handle, ["x:0", "u:0"], ["z:0", "v:0"], [])
    gates = [Gate(), Gate()]
    worker.reply("run_graph", *gates)
    u: dict[str, Value] = {"u:0": X["x:0"]}
    first = await started(master.run_step(handle, X, ["z:0"], (), NO_OPTIONS, partial_run_handle=run))
    await gates[0].entered.wait()
    last = await started(master.run_step(handle, u, ["v:0"], (), NO_OPTIONS, partial_run_handle=run))
    await gates[1].entered.wait()

    gates[0].release()
    await first
    await started(nothing())  # a clean-up would have begun before

    assert worker.called("cleanup_graph") == []
    gates[1].release()
    await last
    await started(nothing())
    assert len(worker.called("cleanup_graph")) == 1
    await master.stop()


async def test_a_setup_that_comes_twice_is_done_once() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master()
    handle = await session(cluster, master, TEXT)
    setup = handle, ["x:0", "u:0"], ["z:0", "v:0"], []

    first = await master.partial_run_setup(*setup, request_id=7)

    assert await master.partial_run_setup(*setup, request_id=7) == first
    assert await master.partial_run_setup(*setup, request_id=8) != first
    await master.stop()


async def nothing() -> None:
    """Gives what was begun before its turn."""
