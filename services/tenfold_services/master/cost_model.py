"""What each node of a step cost: RunMetadata.cost_graph, which GraphOptions.build_cost_model asks for now and then.

Used by master_session.py and run_options.py. Made from the step's trace, so such a step is a traced one. Follows
PublishCostGraph in TensorFlow's master_session.cc and costmodel.cc, without their averages over steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_protos import cost_graph_pb2

if TYPE_CHECKING:
    from tenfold_compiler.graph.runtime_graph import RuntimeGraph
    from tenfold_protos.config_pb2 import GraphOptions
    from tenfold_protos.cost_graph_pb2 import CostGraphDef
    from tenfold_protos.step_stats_pb2 import StepStats


def is_due(options: GraphOptions, runs: int) -> bool:
    """Whether the run of a client graph that has had so many `runs` builds the cost model."""
    every = options.build_cost_model
    return every > 0 and (runs + 1 - options.build_cost_model_after) % every == 0


def cost_graph(stats: StepStats, graph: RuntimeGraph) -> CostGraphDef:
    """The costs of the nodes that ran; edges are those of `graph`, as far as both of their ends ran."""
    result = cost_graph_pb2.CostGraphDef()
    ids: dict[str, int] = {}
    for device in stats.dev_stats:
        if "/stream:" in device.device:
            # the same nodes once more
            continue
        for ran in device.node_stats:
            if ran.node_name in ids:
                continue
            ids[ran.node_name] = len(ids)
            node = result.node.add(name=ran.node_name, device=device.device, id=ids[ran.node_name])
            node.compute_cost = node.compute_time = ran.op_end_rel_micros - ran.op_start_rel_micros
            for output in ran.output:
                described = output.tensor_description
                node.output_info.add(
                    size=described.allocation_description.allocated_bytes,
                    alias_input_port=-1,
                    shape=described.shape,
                    dtype=described.dtype,
                )
    for node in result.node:
        known = graph.nodes.get(node.name)
        if known is None:
            continue
        for source in known.inputs:
            if source.node in ids:
                node.input_info.add(preceding_node=ids[source.node], preceding_port=source.output)
        node.control_input.extend(ids[name] for name in known.control_inputs if name in ids)
    return result
