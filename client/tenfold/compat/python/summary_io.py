"""`tensorflow.python.training.summary_io`: the writers of event files by their names of TensorFlow 0.x.

The classes are those of `tf.summary`.
"""

from __future__ import annotations

from tenfold.summary import FileWriter as SummaryWriter
from tenfold.summary import FileWriterCache as SummaryWriterCache
from tenfold.summary.summary_iterator import summary_iterator

__all__ = ["SummaryWriter", "SummaryWriterCache", "summary_iterator"]
