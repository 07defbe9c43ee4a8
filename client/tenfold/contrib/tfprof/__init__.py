"""`tf.contrib.tfprof`: `tf.profiler` under its names of old. As TensorFlow 1.15's contrib/tfprof."""

from tenfold.contrib.lazy import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {"": "model_analyzer=tenfold.contrib.tfprof.model_analyzer tfprof_logger=tenfold.profiler.model_analyzer"},
    left_out={"ProfileContext": "trace steps with tf.train.ProfilerHook, and the whole cluster with `tenfold trace`"},
)
