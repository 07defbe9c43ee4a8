"""A session's graph: its versions, where the work on it is done, how it is placed, and what is logged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_core import errors
from tenfold_core.op_gradients import no_gradients
from tenfold_protos import config_pb2, graph_pb2
from tenfold_services.master import session_graph
from tenfold_services.master.env import SessionEnv
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.session_graph import SessionGraph

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = "/job:worker/task:0"
CPU = fake_device(TASK).name


class Pool:
    """Stands for a GraphPool: works at once, and says for whom and how often."""

    def __init__(self) -> None:
        self.owners: list[str] = []

    async def run(self, owner: str, work: Callable[[], Any]) -> Any:
        self.owners.append(owner)
        return work()


def session(pool: Any = None, devices: Any = None, limit: int = 5000, **config: Any) -> SessionGraph:
    found = devices or [fake_device(TASK)]
    master: Any = SimpleNamespace(graph_pool=pool, gradients=no_gradients)
    devices, limits = DeviceSet(found, found[0].name), MasterLimits(nodes=limit)
    asked_for = config_pb2.ConfigProto(**config)
    return SessionGraph(SessionEnv("handle", master, asked_for, devices, lambda op, attrs: ("CPU",), limits))


async def grow(graph: SessionGraph, text: str, version: int) -> int:
    graph_def = parse_text(text)
    return graph.take(await graph.grown(graph_def, version), graph_def, version)


X = "x = Placeholder() dtype=float"


async def test_each_extension_makes_the_next_version() -> None:
    graph = session()
    await graph.load(parse_text(X))
    assert graph.version == 0
    assert await grow(graph, "y = Neg(x) T=float", 0) == 1
    assert await grow(graph, "z = Neg(y) T=float", 1) == graph.version == 2
    assert list(graph.graph.nodes) == ["x", "y", "z"]


@pytest.mark.parametrize("version", [0, 2, -1])
async def test_another_version_than_the_clients_is_refused_before_the_work_and_after_it(version: int) -> None:
    graph, pool = session(), Pool()
    await graph.load(parse_text(X))
    await grow(graph, "y = Neg(x) T=float", 0)
    graph_def = parse_text("z = Neg(y) T=float")
    text = f"^Current version is 1 but caller expected {version}"
    grown = await graph.grown(graph_def, 1)
    with pytest.raises(errors.AbortedError, match=text):
        await graph.grown(graph_def, version)
    with pytest.raises(errors.AbortedError, match=text):
        graph.take(grown, graph_def, version)
    assert (graph.version, list(graph.graph.nodes), pool.owners) == (1, ["x", "y"], [])


async def test_what_is_grown_counts_once_it_is_taken() -> None:
    graph = session()
    await graph.load(parse_text(X))
    assert list((await graph.grown(parse_text("y = Neg(x) T=float"), 0)).nodes) == ["x", "y"]
    assert (list(graph.graph.nodes), graph.version) == (["x"], 0)


# ---- where the work is done ------------------------------------------------------------------------------------------


async def places_of(pool: Pool, graph: SessionGraph) -> list[str]:
    """For whom the pool works when the graph is gone through."""
    pool.owners.clear()
    assert await graph.aside(lambda: "result") == "result"
    return pool.owners


async def test_nodes_are_counted_over_all_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_graph, "SMALL_NODES", 3)
    pool = Pool()
    graph = session(pool)
    await graph.load(parse_text(X))
    await grow(graph, "y = Neg(x) T=float", 0)
    assert graph.is_small
    assert await places_of(pool, graph) == []
    await grow(graph, "z = Neg(y) T=float", 1)
    assert not graph.is_small
    assert await places_of(pool, graph) == ["handle"]
    pool.owners.clear()
    await grow(graph, "more = NoOp()", 2)
    assert pool.owners == ["handle"], "the new nodes alone are few"


@pytest.mark.parametrize("over", [0, 1])
async def test_bytes_are_counted_over_all_extensions(over: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (parse_text(text) for text in (X, "y = Neg(x) T=float"))
    monkeypatch.setattr(session_graph, "SMALL_BYTES", first.ByteSize() + second.ByteSize() + 1 - over)
    pool = Pool()
    graph = session(pool)
    await graph.load(first)
    assert await places_of(pool, graph) == []
    graph.take(await graph.grown(second, 0), second, 0)
    assert await places_of(pool, graph) == ["handle"] * over


async def test_a_large_extension_of_a_small_graph_is_worked_on_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    graph = session(pool)
    await graph.load(parse_text(X))
    assert pool.owners == []
    large = graph_pb2.GraphDef()
    for number in range(1000):
        large.node.add(name=f"n{number}", op="NoOp")
    graph.take(await graph.grown(large, 0), large, 0)
    assert pool.owners == ["handle"]
    assert not graph.is_small, "what is not small counts as if it just were not"
    monkeypatch.setattr(session_graph, "SMALL_NODES", 1 << 20)
    assert not graph.is_small


async def test_functions_make_a_graph_large() -> None:
    pool = Pool()
    graph = session(pool)
    graph_def = parse_text(X)
    graph_def.library.function.add().signature.name = "f"
    await graph.load(graph_def)
    assert pool.owners == ["handle"]
    assert not graph.is_small


async def test_without_a_pool_all_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_graph, "SMALL_NODES", 0)
    graph = session()
    await graph.load(parse_text(X))
    assert await graph.aside(lambda: 5) == 5


# ---- placement -------------------------------------------------------------------------------------------------------


async def test_nodes_are_placed_as_they_come_or_with_their_step() -> None:
    graph = session()
    await graph.load(parse_text(X))
    assert graph.graph.nodes["x"].device == CPU
    later = session(graph_options=config_pb2.GraphOptions(place_pruned_graph=True))
    await later.load(parse_text(X))
    assert later.graph.nodes["x"].device == ""
    assert later.placed(later.graph).nodes["x"].device == CPU


@pytest.mark.parametrize("soft", [False, True])
async def test_a_device_that_is_missing_is_an_error_unless_placement_is_soft(soft: bool) -> None:
    graph = session(allow_soft_placement=soft)
    loading = graph.load(parse_text(f"{X} @/gpu:0"))
    if soft:
        await loading
        assert graph.graph.nodes["x"].device == CPU
        answer = await graph.placement()
        assert answer.text[answer.node[0].reason].startswith("soft placement: ")
    else:
        with pytest.raises(errors.InvalidArgumentError, match="x"):
            await loading


@pytest.mark.parametrize(("executor", "is_lowered"), [("", True), ("SINGLE_THREADED_EXECUTOR", False)])
async def test_one_executor_takes_control_flow_as_it_is(
    executor: str, is_lowered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def noted(graph: Any, *, control_flow: bool, **options: Any) -> Any:
        asked.append(control_flow)
        return lower(graph, control_flow=control_flow, **options)

    lower = session_graph.lower
    monkeypatch.setattr(session_graph, "lower", noted)
    graph = session(experimental=config_pb2.ConfigProto.Experimental(executor_type=executor))
    await graph.load(parse_text(X))
    assert asked == [is_lowered]


async def test_more_nodes_than_the_limit_are_refused() -> None:
    graph = session(limit=2)
    await graph.load(parse_text(f"{X}\ny = Neg(x)"))
    with pytest.raises(errors.OpError, match="2 is the limit"):
        await graph.grown(parse_text("z = Neg(y) T=float"), 0)


async def test_where_nodes_are_is_told_with_the_version() -> None:
    graph = session()
    await graph.load(parse_text(X))
    await grow(graph, "y = Neg(x) T=float", 0)
    answer = await graph.placement()
    assert [(node.name, answer.text[node.assigned]) for node in answer.node] == [("x", CPU), ("y", CPU)]
    assert answer.graph_version == 1


# ---- the log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logged", [False, True])
async def test_placements_are_written_where_they_are_asked_for(
    logged: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = fake_device(TASK, "GPU")
    gpu.physical_device_desc = "a card"
    graph = session(devices=[fake_device(TASK), gpu], log_device_placement=logged)
    await graph.load(parse_text(X))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == (["Device mapping:", f"{gpu.name} -> a card"] if logged else [])
    assert [CPU in line and "x" in line for line in lines[2:]] == [True] * logged


async def test_devices_that_describe_nothing_are_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    graph = session(log_device_placement=True)
    await graph.load(parse_text(X))
    assert "Device mapping:" not in capsys.readouterr().err
