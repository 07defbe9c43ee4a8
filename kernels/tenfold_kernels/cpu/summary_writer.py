"""The ops of writers of event files on a task: open, write, flush, close. The writer is summary_writers.py.

What is written is made by the builders of the summary ops (summary.py, summary_media.py), which give a serialized
Summary. Follows summary_kernels.cc.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu import summary, summary_media
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.resources.handles import resource_of, shared_resource
from tenfold_kernels.resources.summary_writers import SummaryWriter
from tenfold_kernels.typesets import REAL
from tenfold_protos import event_pb2, graph_pb2, summary_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

no_kernel("CreateSummaryDbWriter", device="CPU", why="summaries go to event files, not databases")


@kernel("SummaryWriter")
def build_summary_writer(node: KernelNode) -> Compute:
    """The handle. Its file is opened by CreateSummaryFileWriter."""
    return shared_resource(node, SummaryWriter, SummaryWriter)


def _scalar(value: Array, what: str) -> Any:
    if value.ndim:
        raise invalid(f"{what} must be scalar, got shape {shape_text(value.shape)}")
    return value[()]


def _text(value: Array, what: str) -> str:
    return bytes(_scalar(value, what)).decode("utf-8", "surrogateescape")


@kernel("CreateSummaryFileWriter", files=True)
def build_create_summary_file_writer(node: KernelNode) -> Compute:
    """Opens a file of the task's machine, unless the writer has one open."""

    def compute(writer: Any, logdir: Array, max_queue: Array, flush_millis: Array, filename_suffix: Array) -> None:
        folder = file_path(_text(logdir, "logdir"))
        with os_errors(folder):
            resource_of(node, writer, SummaryWriter).open(
                folder,
                int(_scalar(max_queue, "max_queue")),
                int(_scalar(flush_millis, "flush_millis")),
                _text(filename_suffix, "filename_suffix"),
            )

    return compute


@kernel("FlushSummaryWriter", files=True)
def build_flush_summary_writer(node: KernelNode) -> Compute:
    return lambda writer: resource_of(node, writer, SummaryWriter).flush()


@kernel("CloseSummaryWriter", files=True)
def build_close_summary_writer(node: KernelNode) -> Compute:
    return lambda writer: resource_of(node, writer, SummaryWriter).close()


@kernel("ImportEvent", files=True)
def build_import_event(node: KernelNode) -> Compute:
    """Writes a serialized Event as it is."""

    def compute(writer: Any, event: Array) -> None:
        data = bytes(_scalar(event, "event"))
        _parsed(event_pb2.Event(), data, "Event")
        resource_of(node, writer, SummaryWriter).add(data)

    return compute


def _parsed(message: Any, data: bytes, kind: str) -> Any:
    try:
        message.ParseFromString(data)
    except Exception:
        raise invalid(f"The string does not parse as a serialized {kind}") from None
    return message


def _write_event(node: KernelNode, writer: Any, step: Array, **content: Any) -> None:
    event = event_pb2.Event(wall_time=time.time(), step=int(_scalar(step, "step")), **content)
    resource_of(node, writer, SummaryWriter).add(event.SerializeToString())


@kernel("WriteSummary", files=True)
def build_write_summary(node: KernelNode) -> Compute:
    """A tensor under its tag, with metadata."""
    make = summary.build_tensor_summary(replace(node, op="TensorSummaryV2"))

    def compute(writer: Any, step: Array, tensor: Array, tag: Array, metadata: Array) -> None:
        made = summary_pb2.Summary.FromString(make(tag, tensor, metadata)[()])
        _write_event(node, writer, step, summary=made)

    return compute


@kernel("WriteRawProtoSummary", files=True)
def build_write_raw_proto_summary(node: KernelNode) -> Compute:
    """Serialized Summaries, of which one event is made."""

    def compute(writer: Any, step: Array, tensor: Array) -> None:
        made = summary_pb2.Summary()
        for item in tensor.reshape(-1).tolist():
            made.MergeFrom(_parsed(summary_pb2.Summary(), item, "Summary"))
        _write_event(node, writer, step, summary=made)

    return compute


@kernel("WriteGraphSummary", files=True)
def build_write_graph_summary(node: KernelNode) -> Compute:
    """A serialized GraphDef."""

    def compute(writer: Any, step: Array, tensor: Array) -> None:
        data = bytes(_scalar(tensor, "tensor"))
        _parsed(graph_pb2.GraphDef(), data, "GraphDef")
        _write_event(node, writer, step, graph_def=data)

    return compute


@kernel("WriteScalarSummary", files=True, T=REAL)
def build_write_scalar_summary(node: KernelNode) -> Compute:
    """One number."""

    def compute(writer: Any, step: Array, tag: Array, value: Array) -> None:
        number = float(_scalar(value, "value"))
        made = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=summary.tag_of(tag), simple_value=number)])
        _write_event(node, writer, step, summary=made)

    return compute


def _writes(node: KernelNode, make: Callable[..., Any]) -> Compute:
    """Writes what the compute of a summary op gives of tag, values and further inputs."""

    def compute(writer: Any, step: Array, tag: Array, values: Array, *more: Array) -> None:
        made = summary_pb2.Summary.FromString(make(tag, values, *more)[()])
        _write_event(node, writer, step, summary=made)

    return compute


@kernel("WriteHistogramSummary", files=True, T=REAL | {dtypes.bool_})
def build_write_histogram_summary(node: KernelNode) -> Compute:
    return _writes(node, summary.build_histogram_summary(node))


@kernel("WriteImageSummary", files=True)
def build_write_image_summary(node: KernelNode) -> Compute:
    """The colour of what is not finite is an input here."""

    def make(tag: Array, tensor: Array, bad_color: Array) -> Any:
        attrs = dict(node.attrs) | {"bad_color": np.asarray(bad_color)}
        return summary_media.build_image_summary(replace(node, attrs=attrs))(tag, tensor)

    return _writes(node, make)


@kernel("WriteAudioSummary", files=True)
def build_write_audio_summary(node: KernelNode) -> Compute:
    return _writes(node, summary_media.build_audio_summary(node))
