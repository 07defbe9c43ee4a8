"""`tf.profiler`: figures of a graph's nodes, and the timeline of a traced step.

Each name is loaded from its module at its first use.
"""

from tenfold.contrib.lazy import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.profiler.timeline": "Timeline",
        "tenfold.profiler.option_builder": "ProfileOptionBuilder",
        "tenfold.profiler.model_analyzer": "Profiler advise profile write_op_log",
        "tenfold_protos.tfprof_output_pb2": "AdviceProto GraphNodeProto MultiGraphNodeProto",
        "tenfold_protos.tfprof_log_pb2": "OpLogProto",
    },
)
