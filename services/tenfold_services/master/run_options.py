"""What a client's RunOptions ask of a step, within what its session's ConfigProto allows, and the RunMetadata in turn.

Pure. Used by master_session.py. RunMetadata.cost_graph says what each node cost; GraphOptions.build_cost_model asks for
it now and then. It is made from the step's trace, so such a step is a traced one. Follows PublishCostGraph in
TensorFlow's master_session.cc and costmodel.cc, without their averages over steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_protos import config_pb2, cost_graph_pb2
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_compiler.graph.runtime_graph import RuntimeGraph
    from tenfold_protos.config_pb2 import ConfigProto, GraphOptions, RunMetadata, RunOptions
    from tenfold_protos.cost_graph_pb2 import CostGraphDef
    from tenfold_protos.step_stats_pb2 import StepStats
    from tenfold_services.master.client_graph import ClientGraph


def check_options(options: RunOptions, config: ConfigProto) -> None:
    """Raises UnimplementedError or InvalidArgumentError for what no step of the session can have."""
    # A watch without a URL sends what it sees nowhere.
    if any(watch.debug_urls for watch in options.debug_options.debug_tensor_watch_opts):
        raise errors.unimplemented("RunOptions.debug_options: the TensorFlow debugger is not served.")
    if options.output_partition_graphs and config.experimental.disable_output_partition_graphs:
        raise errors.invalid_argument(
            "RunOptions.output_partition_graphs() is not supported when disable_output_partition_graphs is true."
        )


def step_seconds(options: RunOptions | None, config: ConfigProto) -> float | None:
    """A step's own time-out, else the session's; None for none. Raises InvalidArgumentError for a negative one."""
    milliseconds = (options.timeout_in_ms if options is not None else 0) or config.operation_timeout_in_ms
    if milliseconds < 0:
        raise errors.invalid_argument(f"timeout_in_ms is {milliseconds}; 0 means none.")
    return milliseconds / 1000 or None


def exec_options(options: RunOptions, costs: bool) -> ExecOptions:
    """What the workers are told. `costs`: the step builds the cost model, from its trace."""
    return ExecOptions(record_timeline=True) if costs or _is_traced(options) else DEFAULT_EXEC_OPTIONS


def run_metadata(
    options: RunOptions, stats: Iterable[StepStats], graph: ClientGraph, devices: DeviceSet, costs: bool
) -> RunMetadata:
    """What the client is told of a step beside its values. `stats` of each part."""
    metadata = config_pb2.RunMetadata()
    for each in stats:
        metadata.step_stats.MergeFrom(each)
    if costs:
        metadata.cost_graph.CopyFrom(cost_graph(metadata.step_stats, graph.pruned))
        if not _is_traced(options):
            metadata.ClearField("step_stats")
    if options.output_partition_graphs:
        metadata.partition_graphs.extend(graph.partition_graphs(devices))
    return metadata


def _is_traced(options: RunOptions) -> bool:
    return options.trace_level in (config_pb2.RunOptions.SOFTWARE_TRACE, config_pb2.RunOptions.FULL_TRACE)


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
