"""`tf.summary`: ops whose values are Summary messages, and the writer of event files that TensorBoard reads.

The ops are summary_ops.py's, the files file_writer.py's; writer_ops.py writes on a task. Names and arguments are TF
1.15's.
"""

from __future__ import annotations

from tenfold.summary.file_writer import FileWriter, FileWriterCache
from tenfold.summary.summary_ops import (
    audio,
    get_summary_description,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)
from tenfold.summary.writer_ops import all_v2_summary_ops, initialize
from tenfold_protos.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tenfold_protos.summary_pb2 import Summary, SummaryDescription

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "TaggedRunMetadata",
    "all_v2_summary_ops",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "initialize",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]
