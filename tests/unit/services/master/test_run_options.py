"""What a client's RunOptions may ask for, when a run builds the cost model, and what that says of nodes that ran."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.graph_text import parse_text
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_protos.config_pb2 import GraphOptions
from tenfold_protos.step_stats_pb2 import StepStats
from tenfold_protos.types_pb2 import DT_FLOAT
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions
from tenfold_services.master.run_options import (
    check_options,
    cost_graph,
    exec_options,
    is_due,
    run_metadata,
    step_seconds,
)


def test_a_watch_that_sends_what_it_sees_nowhere_is_no_debugger() -> None:
    options, config = config_pb2.RunOptions(), config_pb2.ConfigProto()
    watch = options.debug_options.debug_tensor_watch_opts.add(node_name="x", debug_ops=["DebugIdentity"])

    check_options(options, config)

    watch.debug_urls.append("grpc://localhost:6064")
    with pytest.raises(errors.UnimplementedError, match="debugger is not served"):
        check_options(options, config)


def test_graphs_of_parts_are_shown_unless_the_session_forbids_it() -> None:
    options, config = config_pb2.RunOptions(output_partition_graphs=True), config_pb2.ConfigProto()
    check_options(options, config)
    config.experimental.disable_output_partition_graphs = True
    with pytest.raises(errors.InvalidArgumentError, match="not supported when disable_output_partition_graphs is true"):
        check_options(options, config)
    check_options(config_pb2.RunOptions(), config)


@pytest.mark.parametrize(
    ("own", "of_session", "seconds"),
    [(0, 0, None), (1, 0, 0.001), (0, 2000, 2.0), (1500, 2000, 1.5), (None, 2000, 2.0), (None, 0, None)],
)
def test_the_time_of_a_step_is_its_own_or_the_session_s(
    own: int | None, of_session: int, seconds: float | None
) -> None:
    options = None if own is None else config_pb2.RunOptions(timeout_in_ms=own)
    assert step_seconds(options, config_pb2.ConfigProto(operation_timeout_in_ms=of_session)) == seconds


@pytest.mark.parametrize(("own", "of_session"), [(-1, 0), (-1, 5), (0, -1)])
def test_a_negative_time_is_refused(own: int, of_session: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"timeout_in_ms is -1; 0 means none\."):
        step_seconds(
            config_pb2.RunOptions(timeout_in_ms=own), config_pb2.ConfigProto(operation_timeout_in_ms=of_session)
        )


LEVELS = [
    (config_pb2.RunOptions.NO_TRACE, False),
    (config_pb2.RunOptions.SOFTWARE_TRACE, True),
    (config_pb2.RunOptions.HARDWARE_TRACE, False),
    (config_pb2.RunOptions.FULL_TRACE, True),
]


@pytest.mark.parametrize(("level", "traced"), LEVELS)
@pytest.mark.parametrize("costs", [True, False])
def test_a_step_is_traced_for_its_client_or_for_costs(level: Any, traced: bool, costs: bool) -> None:
    found = exec_options(config_pb2.RunOptions(trace_level=level), costs)
    assert found == (ExecOptions(record_timeline=True) if traced or costs else DEFAULT_EXEC_OPTIONS)


@pytest.mark.parametrize(("level", "traced"), LEVELS)
@pytest.mark.parametrize("costs", [True, False])
@pytest.mark.parametrize("parts", [True, False])
def test_the_metadata_has_what_was_asked_for(level: Any, traced: bool, costs: bool, parts: bool) -> None:
    pruned, shown = RuntimeGraph.from_graph_def(parse_text(GRAPH)), [parse_text("a = NoOp()")]
    graph: Any = SimpleNamespace(pruned=pruned, partition_graphs=lambda devices: shown if devices == "devices" else [])
    options = config_pb2.RunOptions(trace_level=level, output_partition_graphs=parts)

    found = run_metadata(options, [stats("x"), stats("y")], graph, cast("Any", "devices"), costs)

    kept = ["x", "y"] if traced or not costs else []
    assert [node.node_name for device in found.step_stats.dev_stats for node in device.node_stats] == kept
    assert [node.name for node in found.cost_graph.node] == (["x", "y"] if costs else [])
    assert list(found.partition_graphs) == (shown if parts else [])


# -- the cost model ----------------------------------------------------------------------------------------------------

GRAPH = """
    x = Placeholder() dtype=float
    y = Neg(x)
    z = Neg(y, ^x)
"""


@pytest.mark.parametrize(
    ("every", "after", "due"),
    [
        (0, 0, []),
        (1, 0, [0, 1, 2, 3, 4, 5]),
        (2, 0, [1, 3, 5]),
        (3, 1, [0, 3]),
    ],
)
def test_which_runs_build_it(every: int, after: int, due: list[int]) -> None:
    options = GraphOptions(build_cost_model=every, build_cost_model_after=after)

    assert [runs for runs in range(6) if is_due(options, runs)] == due


def stats(*names: str) -> StepStats:
    made = StepStats()
    device = made.dev_stats.add(device="/cpu:0")
    for number, name in enumerate(names):
        ran = device.node_stats.add(node_name=name, op_start_rel_micros=1, op_end_rel_micros=11 + number)
        described = ran.output.add(slot=0).tensor_description
        described.dtype = DT_FLOAT
        described.shape.dim.add(size=3)
        described.allocation_description.allocated_bytes = 12
    return made


def test_nodes_and_edges_that_ran() -> None:
    graph = RuntimeGraph.from_graph_def(parse_text(GRAPH))

    found = cost_graph(stats("x", "y", "z"), graph)

    assert [(node.name, node.id, node.device, node.compute_cost) for node in found.node] == [
        ("x", 0, "/cpu:0", 10),
        ("y", 1, "/cpu:0", 11),
        ("z", 2, "/cpu:0", 12),
    ]
    z = found.node[2]
    assert [(edge.preceding_node, edge.preceding_port) for edge in z.input_info] == [(1, 0)]
    assert list(z.control_input) == [0]
    (output,) = z.output_info
    assert (output.size, output.dtype, output.alias_input_port, output.shape.dim[0].size) == (12, DT_FLOAT, -1, 3)


def test_what_did_not_run_or_is_unknown_has_no_edges() -> None:
    graph = RuntimeGraph.from_graph_def(parse_text(GRAPH))

    found = cost_graph(stats("z", "_Send_1", "z"), graph)

    assert [node.name for node in found.node] == ["z", "_Send_1"]
    assert not any(node.input_info or node.control_input for node in found.node)


def test_a_stream_shows_the_same_nodes_once_more() -> None:
    found = stats("x")
    found.dev_stats.add(device="/gpu:0/stream:all").node_stats.add(node_name="z")
    found.dev_stats.add(device="/gpu:0").node_stats.add(node_name="y")
    graph = RuntimeGraph.from_graph_def(parse_text(GRAPH))
    assert [(node.name, node.device) for node in cost_graph(found, graph).node] == [("x", "/cpu:0"), ("y", "/gpu:0")]
