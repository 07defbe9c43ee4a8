"""What a client's RunOptions ask of a step, within what its session's ConfigProto allows, and the RunMetadata in turn.

Pure. Used by master_session.py; the cost graph, which the session asks for and not the step, is cost_model.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions
from tenfold_services.master.cost_model import cost_graph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
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
