"""Large graphs: worked on beside the event loop, while their session goes on, grows or ends; and in linear time."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.fake_cluster import FakeCluster
from support.graph_text import parse_text
from support.moments import started
from support.parts import PartBuilder
from support.programs import compile_program
from tenfold_compiler.part import graph_sizes, regions
from tenfold_compiler.part.graph_sizes import is_small
from tenfold_compiler.write import codegen
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos import config_pb2, graph_pb2, types_pb2
from tenfold_protos.step_stats_pb2 import StepStats
from tenfold_services.interfaces import RunGraphResult
from tenfold_services.limits import Limits
from tenfold_services.master import client_graph_cache, master_session, session_graph
from tenfold_services.master.env import MasterEnv
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.master import Master
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.step_pool import GraphPool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tenfold_services.worker.loaded_program import LoadedProgram

TASK = "/job:worker/task:0"
LOCAL = "/job:localhost/replica:0/task:0"
#: A test that waits longer than this for an event has failed.
PATIENCE = 30.0
NO_OPTIONS = config_pb2.RunOptions()
GRAPH = """
    x = Placeholder() dtype=float
    y = Neg(x)
    z = Neg(y)
"""


class Cutting:
    """Stands for `cut_graph`: says on which threads it ran, and waits there as often as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[threading.Thread] = []
        self.entered, self.released = threading.Event(), threading.Event()
        self.released.set()
        self._cut = client_graph_cache.cut_graph
        monkeypatch.setattr(client_graph_cache, "cut_graph", self)

    def __call__(self, *arguments: Any) -> Any:
        self.threads.append(threading.current_thread())
        self.entered.set()
        assert self.released.wait(PATIENCE)
        return self._cut(*arguments)

    async def wait(self) -> None:
        """Until a graph is being cut."""
        assert await asyncio.to_thread(self.entered.wait, PATIENCE)


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cutting]:
    found = Cutting(monkeypatch)
    yield found
    found.released.set()


@asynccontextmanager
async def session(limits: MasterLimits | None = None) -> AsyncIterator[tuple[FakeCluster, Master, str]]:
    """A master with a pool, and a session of it."""
    cluster, pool = FakeCluster(TASK), GraphPool(TASK, Limits())
    env = MasterEnv(cluster.own, cluster, config_pb2.ConfigProto(), graph_pool=pool)
    master = Master(env, limits=limits or MasterLimits(close_seconds=1), devices_with_kernel=lambda op, attrs: ("CPU",))
    handle, _ = await master.create_session(parse_text(GRAPH), config_pb2.ConfigProto())
    try:
        yield cluster, master, handle
    finally:
        await master.stop()
        pool.close()


async def run(master: Master, handle: str, fetch: str) -> Any:
    return await master.run_step(handle, {"x:0": np.float32(1)}, [fetch], [], NO_OPTIONS)


@pytest.mark.parametrize("milliseconds", [100, 0])
async def test_a_session_whose_graph_takes_too_long_is_refused(
    milliseconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's deadline, or else the master's own, counts for the graph too."""
    released, lower = threading.Event(), session_graph.lower

    def late(*arguments: Any, **options: Any) -> Any:
        assert released.wait(PATIENCE)
        return lower(*arguments, **options)

    async with session(MasterLimits(close_seconds=1, longest_create_session_seconds=0.2)) as (_, master, _):
        monkeypatch.setattr(graph_sizes, "SMALL_NODES", 3)
        monkeypatch.setattr(session_graph, "lower", late)
        try:
            with pytest.raises(errors.DeadlineExceededError, match="the graph of 3 nodes was not placed within 0"):
                await master.create_session(
                    parse_text(GRAPH), config_pb2.ConfigProto(operation_timeout_in_ms=milliseconds)
                )
        finally:
            released.set()


async def test_a_small_graph_is_cut_on_the_loops_thread(cutting: Cutting) -> None:
    async with session() as (_, master, handle):
        await run(master, handle, "z:0")

    assert cutting.threads == [threading.current_thread()]


@pytest.mark.parametrize("limit", ["SMALL_NODES", "SMALL_BYTES"])
async def test_a_large_graph_is_cut_on_another_one(
    limit: str, cutting: Cutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_graph, limit, 3)
    async with session() as (_, master, handle):
        await run(master, handle, "z:0")

    assert cutting.threads != [threading.current_thread()]


async def test_a_session_answers_while_its_graph_is_cut(cutting: Cutting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    async with session() as (_, master, handle):
        await run(master, handle, "y:0")
        cutting.entered.clear()
        cutting.released.clear()
        step = await started(run(master, handle, "z:0"))
        await cutting.wait()

        await run(master, handle, "y:0")

        assert not step.done()
        cutting.released.set()
        await step


async def test_a_session_may_grow_while_its_graph_is_cut(cutting: Cutting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    async with session() as (_, master, handle):
        cutting.released.clear()
        step = await started(run(master, handle, "z:0"))
        await cutting.wait()

        version = await master.extend_session(handle, parse_text("more = NoOp()"), 0)

        cutting.released.set()
        await step
        assert version == 1
        await master.run_step(handle, {}, [], ["more"], NO_OPTIONS)


async def test_a_session_that_ends_while_its_graph_is_cut_registers_nothing(
    cutting: Cutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    async with session() as (cluster, master, handle):
        cutting.released.clear()
        step = await started(run(master, handle, "z:0"))
        await cutting.wait()

        await master.close_session(handle)

        with pytest.raises(errors.FailedPreconditionError, match="Session is closed"):
            await step
        assert cluster[TASK].called("register_graph") == []


async def test_names_are_not_used_twice_though_two_graphs_are_cut_at_a_time(
    cutting: Cutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    text = f"{GRAPH}    far = Neg(x) @/job:ps/task:0\n    near = Neg(far) @{TASK}\n    nearer = Exp(far) @{TASK}\n"
    cluster, pool = FakeCluster(TASK, "/job:ps/task:0"), GraphPool(TASK, Limits())
    env = MasterEnv(cluster.own, cluster, config_pb2.ConfigProto(), graph_pool=pool)
    master = Master(env, devices_with_kernel=lambda op, attrs: ("CPU",))
    handle, _ = await master.create_session(parse_text(text), config_pb2.ConfigProto())

    await asyncio.gather(run(master, handle, "near:0"), run(master, handle, "nearer:0"))

    await master.stop()
    pool.close()
    graphs = cluster[TASK].graphs.values()
    made = [node.name for graph in graphs for node in graph.node if "_S" in node.name]
    assert len(graphs) == 2
    assert len(made) == len(set(made)) > 2


async def test_what_a_traced_step_did_is_put_together_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def put_together(*arguments: Any) -> config_pb2.RunMetadata:
        threads.append(threading.current_thread())
        return config_pb2.RunMetadata()

    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    monkeypatch.setattr(master_session, "run_metadata", put_together)
    async with session() as (cluster, master, handle):
        await run(master, handle, "y:0")
        ((_, _, _, (key,)),) = cluster[TASK].called("run_graph")
        cluster[TASK].reply("run_graph", RunGraphResult({key: np.float32(1)}, step_stats=StepStats()))
        await run(master, handle, "y:0")

    assert [thread is threading.current_thread() for thread in threads] == [True, False]


async def test_a_graph_is_kept_until_its_step_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, released = threading.Event(), threading.Event()

    def put_together(options: Any, stats: list[Any], *others: Any) -> config_pb2.RunMetadata:
        if stats:
            entered.set()
            assert released.wait(PATIENCE)
        return config_pb2.RunMetadata()

    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    monkeypatch.setattr(master_session, "run_metadata", put_together)
    async with session(MasterLimits(client_graphs=1)) as (cluster, master, handle):
        await run(master, handle, "y:0")
        ((_, _, _, (key,)),) = cluster[TASK].called("run_graph")
        cluster[TASK].reply("run_graph", RunGraphResult({key: np.float32(1)}, step_stats=StepStats()))
        traced = await started(run(master, handle, "y:0"))
        assert await asyncio.to_thread(entered.wait, PATIENCE)

        await run(master, handle, "z:0")
        dropped = cluster[TASK].called("deregister_graph")
        released.set()
        await traced

    assert dropped == []


# -- how large -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "dtype", "shape", "small"),
    [
        (1, types_pb2.DT_FLOAT, [512, 511], True),
        (1, types_pb2.DT_FLOAT, [512, 512], False),
        (1, types_pb2.DT_STRING, [512, 512], True),
        (1, types_pb2.DT_FLOAT, [-1, 1 << 30], True),
        (1, 12345, [1 << 30], True),
        (1, types_pb2.DT_FLOAT, [1 << 30] * 255, True),
        (999, types_pb2.DT_FLOAT, [], True),
        (1000, types_pb2.DT_FLOAT, [], False),
    ],
)
def test_a_graph_is_large_for_its_nodes_or_its_constants(nodes: int, dtype: int, shape: list[int], small: bool) -> None:
    graph_def = graph_pb2.GraphDef()
    for index in range(nodes):
        tensor = graph_def.node.add(name=f"c{index}", op="Const").attr["value"].tensor
        tensor.dtype = dtype  # type: ignore[assignment]
        for extent in shape:
            tensor.tensor_shape.dim.add(size=extent)

    assert is_small(graph_def) is small


# -- the pool ------------------------------------------------------------------------------------------------------


async def test_nobody_is_refused_and_few_work_at_a_time() -> None:
    pool = GraphPool(TASK, Limits(long_kernel_seconds=0, long_kernels=1, long_kernels_per_session=1))
    entered, released = threading.Semaphore(0), threading.Event()

    def work() -> None:
        entered.release()
        assert released.wait(PATIENCE)

    jobs = [pool.submit("s", work) for _ in range(6)]
    for _ in range(4):
        assert await asyncio.to_thread(entered.acquire, timeout=PATIENCE)

    assert sum(job.future.running() for job in jobs) == 4
    released.set()
    await asyncio.gather(*(asyncio.wrap_future(job.future) for job in jobs))
    pool.close()


async def test_what_waits_ends_with_the_pool_and_with_who_waits() -> None:
    pool = GraphPool(TASK, Limits(long_kernel_seconds=PATIENCE))
    entered, released = threading.Semaphore(0), threading.Event()

    def work() -> None:
        entered.release()
        assert released.wait(PATIENCE)

    jobs = [pool.submit("s", work) for _ in range(2)]
    for _ in jobs:
        assert await asyncio.to_thread(entered.acquire, timeout=PATIENCE)
    ran: list[str] = []
    given_up = await started(pool.run("s", lambda: ran.append("given up")))
    waits = await started(pool.run("s", lambda: ran.append("waits")))

    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    pool.close()

    with pytest.raises(errors.UnavailableError, match="is shutting down"):
        await waits
    with pytest.raises(errors.UnavailableError, match="is shutting down"):
        await pool.run("s", lambda: None)
    released.set()
    await asyncio.gather(*(asyncio.wrap_future(job.future) for job in jobs))
    assert ran == []


# -- programs ------------------------------------------------------------------------------------------------------


def chain(length: int) -> tuple[PartBuilder, str, str]:
    """x → Neg → … → fetch."""
    part = PartBuilder(f"{LOCAL}/device:CPU:0")
    fed, last = part.feed("x"), "x"
    for index in range(length):
        last = part.node("Neg", f"n{index}", [last], T=dtypes.float32)
    return part, fed, part.fetch(last)


def stepped(program: LoadedProgram, feeds: dict[str, Any]) -> dict[str, Any]:
    execution = program.start(StepIO(feeds, lambda key, value, is_dead: None))
    execution.advance()
    return execution.fetched()


def test_a_long_region_becomes_several_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "MOST_NODES", 4)
    part, fed, fetch = chain(10)

    program = compile_program(part.graph_def, LOCAL, ResourceManager())

    assert len(program.compiled.regions) == 3
    assert stepped(program, {fed: np.float32([1, 2])})[fetch].tolist() == [1, 2]


def test_functions_are_compiled_some_at_a_time_and_errors_name_their_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "MOST_NODES", 4)
    monkeypatch.setattr(codegen, "_PIECE", 3)
    texts: list[str] = []

    def noted(text: str, *arguments: Any, **options: Any) -> Any:
        texts.append(text)
        return compile(text, *arguments, **options)

    monkeypatch.setattr(codegen, "compile", noted, raising=False)
    part, fed, _ = chain(9)
    part.node("Placeholder", "bad", dtype=dtypes.float32, shape=[2])
    part.fetch("bad")
    program = compile_program(part.graph_def, LOCAL, ResourceManager())

    with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node bad\}\}"):
        stepped(program, {fed: np.float32(1)})
    assert len(texts) > 2


def alike(count: int) -> PartBuilder:
    """Constants of a few values that wait for one another: all alike, none the same."""
    part = PartBuilder(f"{LOCAL}/device:CPU:0")
    part.const("c", 1.0)
    last = "c"
    for index in range(count):
        last = part.node("Neg", f"n{index}", [last], T=dtypes.float32)
    part.fetch(last)
    return part


def test_the_time_for_a_graph_grows_with_its_nodes_only() -> None:
    def seconds(count: int) -> float:
        part = alike(count)
        begin = time.thread_time()
        compile_program(part.graph_def, LOCAL, ResourceManager())
        return time.thread_time() - begin

    # a full garbage collection takes longer than small graphs do, and walks all that earlier tests left
    gc.disable()
    try:
        seconds(100)
        small, large = (min(seconds(count) for _ in range(3)) for count in (1_000, 8_000))
    finally:
        gc.enable()

    # eight times as much, not 64 times
    assert large < 30 * small


def test_regions_in_a_long_row_are_put_in_order_at_once() -> None:
    part = [regions.Region(0, recvs=[])]
    for index in range(1, 3_000):
        part.append(regions.Region(index, after={index - 1}))

    took = []
    for _ in range(3):
        begin = time.thread_time()
        order = regions.rest_of(part)
        took.append(time.thread_time() - begin)

    assert [region.index for region in order] == list(range(1, 3_000))
    # the best: the collector may go through all that earlier tests have left
    assert min(took) < 1
