"""`tf.contrib.tfprof.model_analyzer`: `tf.profiler.profile` under its name of old, with its options.

As TensorFlow 1.15's contrib/tfprof/model_analyzer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.profiler.model_analyzer import Profiler, profile
from tenfold.profiler.option_builder import ProfileOptionBuilder

if TYPE_CHECKING:
    from tenfold_protos.config_pb2 import RunMetadata

__all__ = [
    "FLOAT_OPS_OPTIONS",
    "PRINT_ALL_TIMING_MEMORY",
    "TRAINABLE_VARS_PARAMS_STAT_OPTIONS",
    "Profiler",
    "print_model_analysis",
]

TRAINABLE_VARS_PARAMS_STAT_OPTIONS = ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = ProfileOptionBuilder.float_operation()
PRINT_ALL_TIMING_MEMORY = {**ProfileOptionBuilder.time_and_memory(), "order_by": "name"}


def print_model_analysis(
    graph: Any,
    run_meta: RunMetadata | None = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = None,
) -> Any:
    """As `tf.profiler.profile`; without options the trainable variables' parameters."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options or None)
