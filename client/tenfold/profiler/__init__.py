"""`tf.profiler`: the part of TensorFlow's namespace for the timeline of a traced step."""

from __future__ import annotations

from tenfold.profiler.timeline import Timeline

__all__ = ["Timeline"]
