"""What a client's RunOptions may ask for, when a run builds the cost model, and what that says of nodes that ran."""

from __future__ import annotations

import pytest

from support.graph_text import parse_text
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_protos.config_pb2 import GraphOptions
from tenfold_protos.step_stats_pb2 import StepStats
from tenfold_protos.types_pb2 import DT_FLOAT
from tenfold_services.master.run_options import check_options, cost_graph, is_due


def test_a_watch_that_sends_what_it_sees_nowhere_is_no_debugger() -> None:
    options, config = config_pb2.RunOptions(), config_pb2.ConfigProto()
    watch = options.debug_options.debug_tensor_watch_opts.add(node_name="x", debug_ops=["DebugIdentity"])

    check_options(options, config)

    watch.debug_urls.append("grpc://localhost:6064")
    with pytest.raises(errors.UnimplementedError, match="debugger is not served"):
        check_options(options, config)


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
