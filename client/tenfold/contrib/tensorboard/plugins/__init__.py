"""`tf.contrib.tensorboard.plugins`: the embedding projector's settings."""

from tenfold.contrib.lazy import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {"": "projector=tenfold.contrib.tensorboard.plugins.projector"},
    left_out={"trace": "it was removed from TensorFlow; tf.profiler.Timeline and `tenfold trace` show where time goes"},
)
