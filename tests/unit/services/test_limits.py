"""What a peer can create without closing it is bounded, or goes by itself: graphs, partial runs, sessions, answers."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_core import errors, node_attrs, opdefs, rendezvous_key
from tenfold_core.device import DeviceSpec
from tenfold_kernels.loop_turns import MOST_TURNS
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos import config_pb2, graph_pb2, master_pb2, node_def_pb2
from tenfold_services import limits as limits_module
from tenfold_services.limits import Limits
from tenfold_services.master import client_graph, run_table
from tenfold_services.master.callables import Callables
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.master import Master
from tenfold_services.master.request_ids import RecentRequests
from tenfold_services.rpc import large, link_master_service, master_service
from tenfold_services.server import TaskServer
from tenfold_services.worker.rendezvous import StepTable
from tenfold_services.worker.sessions import SessionTable

if TYPE_CHECKING:
    from collections.abc import Callable


def program(size: int = 1) -> Any:
    """So much of a program as a session looks at."""
    return SimpleNamespace(compiled=SimpleNamespace(size=size))


def test_the_session_of_nobody_drops_the_graph_unused_for_longest() -> None:
    session = SessionTable("/job:ps/replica:0/task:0", ResourceManager()).get("")
    limits = Limits(graphs_without_session=2)
    first, second = session.add_graph(program(), limits), session.add_graph(program(), limits)
    session.graph(first)
    third = session.add_graph(program(), limits)
    assert list(session.graphs) == [first, third]
    with pytest.raises(errors.AbortedError, match="Graph handle is not found"):
        session.graph(second)


def test_the_session_of_nobody_keeps_so_many_bytes() -> None:
    session = SessionTable("/job:ps/replica:0/task:0", ResourceManager()).get("")
    limits = Limits(graph_bytes_without_session=10)
    first, second = session.add_graph(program(4), limits), session.add_graph(program(4), limits)
    assert list(session.graphs) == [first, second]
    third = session.add_graph(program(6), limits)
    assert list(session.graphs) == [second, third]
    fourth = session.add_graph(program(50), limits)
    assert list(session.graphs) == [fourth]


def test_a_session_of_somebody_refuses_more_graphs_than_its_limit() -> None:
    table = SessionTable("/job:ps/replica:0/task:0", ResourceManager())
    table.create("s", False, "", 0)
    limits = Limits(graphs_per_session=1)
    table.get("s").add_graph(program(), limits)
    with pytest.raises(errors.ResourceExhaustedError, match="1 graphs registered"):
        table.get("s").add_graph(program(), limits)


class FakePartialRun:
    """Of a client that went away."""

    def __init__(self, last_call: float) -> None:
        self.last_call, self.given_up = last_call, False

    def ended_as_idle(self, now: float) -> bool:
        self.given_up = now - self.last_call > 100
        return self.given_up


def test_a_partial_run_that_nobody_calls_is_given_up() -> None:
    steps = StepTable(Limits(idle_step_seconds=10))
    left, used = FakePartialRun(0.0), FakePartialRun(950.0)
    for number, partial in ((1, left), (2, used)):
        rendezvous = steps.get(number, now=0.0)
        rendezvous.runs, rendezvous.partial = 1, partial  # type: ignore[assignment]
    assert steps.sweep(now=1000.0) == 1
    assert (left.given_up, used.given_up, len(steps)) == (True, False, 1)


def test_an_answer_given_at_once_is_given_again_and_an_error_too() -> None:
    requests: RecentRequests[int] = RecentRequests(10, 10, 1000, lambda answer: 8)
    requests.note("a", 7)
    requests.note("b", None, errors.NotFoundError(None, None, "no such thing"))

    async def never() -> int:
        raise AssertionError("it was run before")

    async def ask(key: str) -> int:
        return await requests.run(key, never)

    assert requests.knows("a")
    assert not requests.knows("c")
    assert asyncio.run(ask("a")) == 7
    for _ in range(2):
        with pytest.raises(errors.NotFoundError, match="no such thing"):
            asyncio.run(ask("b"))


def _graph() -> tuple[graph_pb2.GraphDef, str]:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.add(x, 1.0, name="y")
    return graph.as_graph_def(), y.name


def _with_master(limits: MasterLimits, use: Callable[[Master], Any]) -> None:
    async def main() -> None:
        async with TaskServer(None, "worker", 0) as server:
            own = server.master
            assert isinstance(own, Master)
            await use(Master(own._env, limits=limits))

    asyncio.run(main())


def test_at_the_limit_a_session_that_nobody_uses_makes_room() -> None:
    async def use(master: Master) -> None:
        graph, _ = _graph()
        first, _ = await master.create_session(graph, config_pb2.ConfigProto())
        with pytest.raises(errors.ResourceExhaustedError, match="1 sessions open"):
            await master.create_session(graph, config_pb2.ConfigProto())
        master._sessions[first].last_used -= 100.0
        second, _ = await master.create_session(graph, config_pb2.ConfigProto())
        assert [each.handle for each in master.open_sessions] == [second]
        await master.stop()

    _with_master(MasterLimits(sessions=1, idle_session_seconds=50.0), use)


def test_create_session_answers_before_the_client_gives_up() -> None:
    async def use(master: Master) -> None:
        config = config_pb2.ConfigProto(operation_timeout_in_ms=1 << 60)
        config.cluster_def.job.add(name="worker").tasks[0] = "127.0.0.1:1"
        ps = config.cluster_def.job.add(name="ps")
        ps.tasks[0] = "127.0.0.1:1"
        with pytest.raises(errors.OpError) as caught:
            await asyncio.wait_for(
                master.create_session(graph_pb2.GraphDef(), config, "grpc://127.0.0.1:1", seconds=0.5), 20
            )
        assert caught.value.code in (errors.DEADLINE_EXCEEDED, errors.UNAVAILABLE)

    _with_master(MasterLimits(), use)


def test_a_short_step_is_run_where_it_is_asked_for() -> None:
    async def use(master: Master) -> None:
        graph, fetch = _graph()
        handle, _ = await master.create_session(graph, config_pb2.ConfigProto())
        feeds = {"x:0": np.float32(1.0)}
        assert master.run_at_once(handle, feeds, [fetch], []) is None  # the step is not known yet
        for _ in range(3):
            await master.run_step(handle, feeds, [fetch], [], config_pb2.RunOptions())
        found = master.run_at_once(handle, feeds, [fetch], [], request_id=5)
        assert found is not None
        assert found[0] == 2.0
        assert master.run_at_once(handle, feeds, [fetch], [], request_id=5) is None
        values, _ = await master.run_step(handle, {"x:0": np.float32(9.0)}, [fetch], [], config_pb2.RunOptions(), 5)
        assert values[0] == 2.0  # the first answer
        assert master.run_at_once("no such", feeds, [fetch], []) is None
        await master.stop()

    _with_master(MasterLimits(), use)


class _Refusing:
    def run_at_once(self, *arguments: Any) -> Any:
        raise errors.InvalidArgumentError(None, None, "wrong\n\t [[{{node a/b}}]]")

    async def run_step(self, *arguments: Any) -> Any:
        return self.run_at_once()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("in_body", "name"), [(True, "[[{{node a/b}}]]"), (False, "[[Node: a/b = ]]")])
def test_clients_of_every_age_find_the_node_in_a_message(in_body: bool, name: str, at_once: bool) -> None:
    methods = master_service._MasterMethods(_Refusing(), "/job:worker/replica:0/task:0")  # type: ignore[arg-type]
    step = large.RunStep(master_pb2.RunStepRequest(session_handle="s", store_errors_in_response_body=in_body), {})

    def run() -> Any:
        return methods.run_step_at_once(step) if at_once else asyncio.run(methods.run_step(step, None))

    if in_body:
        answer = run()
        assert answer.status_code == errors.INVALID_ARGUMENT
        assert name in answer.status_error_message
    else:
        with pytest.raises(errors.InvalidArgumentError, match=re.escape(name)):
            run()


def test_a_list_of_another_kind_is_refused() -> None:
    node = node_def_pb2.NodeDef(name="n", op="IdentityN")
    node.attr["T"].list.i.extend([1, 2])
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match=r"attr 'T' holds a list of another kind; .*list\(type\)"):
            node_attrs.resolve_attrs(opdefs.get("IdentityN"), node)
        node.attr["T"].list.type.append(1)  # beside the numbers


def test_what_is_remembered_of_names_and_keys_is_short() -> None:
    runs, before = run_table.RunTable(), rendezvous_key._parse_known.cache_info().currsize
    many = tuple(f"n{number}:0" for number in range(2000))
    for fetches in (many, ("x" * 100_000 + ":0",)):
        graph = client_graph.ClientGraph(client_graph.run_names((), fetches, ()).signature, None, 0, 0)  # type: ignore[arg-type]
        runs.put(graph)
        found = runs.find((), fetches, ())
        assert found is not None
        assert (found.graph, found.names.fetches) == (graph, fetches)
    assert not runs._runs
    key = rendezvous_key.make_key("/job:a", 1, "/job:b", "x" * 10_000)
    assert rendezvous_key.parse_key(key).tensor_name == "x" * 10_000
    assert before == rendezvous_key._parse_known.cache_info().currsize
    with pytest.raises(errors.ResourceExhaustedError, match=r"0 feeds, 16385 fetches and 0 targets: .* 16384 of them"):
        client_graph.run_names((), ("x:0",) * (client_graph.MAX_NAMES + 1), ())
    with pytest.raises(ValueError, match="it has 10005 characters, 4096 are the most"):
        DeviceSpec.from_string("/job:" + "x" * 10_000)


def _many(of: str) -> Any:
    """More than a run may have of feeds (none of which can be decoded), fetches or targets."""
    count = client_graph.MAX_NAMES + 1
    if of == "feed":
        bad = master_pb2.RunStepRequest(session_handle="s")
        bad.feed.add(name="x:0").tensor.dtype = 99
        return master_pb2.RunStepRequest(session_handle="s", feed=list(bad.feed) * count)
    return master_pb2.RunStepRequest(session_handle="s", **{of: ["x:0"] * count})


@pytest.mark.parametrize("of", ["feed", "fetch", "target"])
def test_names_are_counted_before_a_feed_is_decoded(of: str) -> None:
    methods = master_service._MasterMethods(_Refusing(), "/job:worker/replica:0/task:0")  # type: ignore[arg-type]
    step = large.parse_run_step(_many(of).SerializeToString())
    says = f"16385 {of}.* a run has 16384 of them"
    with pytest.raises(errors.ResourceExhaustedError, match=says):
        methods.run_step_at_once(step)
    with pytest.raises(errors.ResourceExhaustedError, match=says):
        asyncio.run(methods.run_step(step, None))


def test_feeds_of_a_callable_are_counted_before_they_are_decoded() -> None:
    methods = master_service._MasterMethods(SimpleNamespace(), "/job:worker/replica:0/task:0")  # type: ignore[arg-type]
    request = master_pb2.RunCallableRequest(session_handle="s", handle=1)
    request.feed.extend([feed.tensor for feed in _many("feed").feed])
    with pytest.raises(errors.ResourceExhaustedError, match="16385 feeds"):
        asyncio.run(methods.run_callable(request, None))


def test_names_of_a_step_over_a_link_are_counted_when_they_are_said() -> None:
    with pytest.raises(errors.ResourceExhaustedError, match="16385 feeds"):
        link_master_service._NumberedStep(_many("feed"))


def test_a_callable_of_too_many_names_is_refused_before_they_are_looked_at() -> None:
    count = client_graph.MAX_NAMES
    options = config_pb2.CallableOptions(feed=["x:0"] * count, fetch=["y:0"])
    options.feed_devices["x:0"] = "/cpu:0"
    with pytest.raises(errors.ResourceExhaustedError, match="16384 feeds, 1 fetches"):
        Callables("s", MasterLimits()).signature(options)


@pytest.mark.parametrize(
    ("state", "of_session", "memory", "found"),
    [
        (0, 0, 1000, (875, 500)), (0, 0, 1007, (875, 503)), (0, 0, 0, (0, 0)), (5, 0, 1000, (5, 500)),
        (0, 6, 1000, (875, 6)), (5, 6, 0, (5, 6)),
    ],
)  # fmt: skip
def test_states_take_what_is_said_or_a_part_of_the_memory(
    state: int, of_session: int, memory: int, found: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "memory", lambda: memory)
    limits = Limits(state_bytes=state, state_bytes_per_session=of_session)
    assert (limits.most_state_bytes, limits.most_state_bytes_per_session) == found


def test_the_limits_of_a_task_as_docs_cli_has_them() -> None:
    found = {field.name: getattr(Limits(), field.name) for field in fields(Limits)}
    assert found.pop("pool_threads") == max(4, (os.cpu_count() or 1) + 2)
    assert found.pop("loop_turns") == MOST_TURNS
    assert found == {
        "setup_seconds": 30.0, "cleanup_seconds": 10.0, "probe_every_seconds": 2.5, "probe_answer_seconds": 7.0,
        "probe_behind_seconds": 60.0, "tensor_bytes": 0, "files": "", "file_bytes": 0, "sessions": 4096,
        "state_bytes": 0, "state_bytes_per_session": 0, "queues": 16_384, "graphs_per_session": 4096,
        "graphs_without_session": 512, "graph_bytes_without_session": 134_217_728, "nodes_per_graph": 1_000_000,
        "steps": 65_536, "finished_steps": 8192, "idle_step_seconds": 600.0, "idle_partial_run_seconds": 3600.0,
        "keys_per_step": 1_000_000, "concurrent_rpcs": 16_384, "inline_nanoseconds": 1_000_000,
        "long_kernel_seconds": 2.0, "long_kernels": 64, "long_kernels_per_session": 32, "file_threads": 32,
        "status_message_bytes": 7168, "stop_seconds": 5.0, "finished_seconds": 1.0, "last_steps_seconds": 2.0,
    }  # fmt: skip


def test_limits_of_the_process_have_names_of_their_own() -> None:
    environment = {
        "TENFOLD_TASK_SESSIONS": "7", "TENFOLD_TENSOR_BYTES": "8", "TENFOLD_FILE_BYTES": "9", "TENFOLD_FILES": "/f",
    }  # fmt: skip
    found = Limits.from_environment(environment)
    assert found == Limits(sessions=7, tensor_bytes=8, file_bytes=9, files="/f")
