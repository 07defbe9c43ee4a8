"""Op definitions: serialized Summary protos for event files.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs.table import family

op = family("summary")

op(
    "AudioSummaryV2",
    "tag: string, tensor: float, sample_rate: float",
    "summary: string",
    "max_outputs: int >= 1 = 3",
    shape=s.scalar,
)
op("HistogramSummary", "tag: string, values: T", "summary: string", "T: {real} = float", shape=s.scalar)
op(
    "ImageSummary",
    "tag: string, tensor: T",
    "summary: string",
    "max_images: int >= 1 = 3",
    "T: {uint8, float, half, double} = float",
    "bad_color: tensor = uint8[255, 0, 0, 255]",
    shape=s.scalar,
)
op("MergeSummary", "inputs: N * string", "summary: string", "N: int >= 1", shape=s.scalar)
op("ScalarSummary", "tags: string, values: T", "summary: string", "T: {real}", shape=s.scalar)
op(
    "TensorSummary",
    "tensor: T",
    "summary: string",
    "T: type",
    "description: string = ''",
    "labels: list(string) = []",
    "display_name: string = ''",
    shape=s.scalar,
)
op(
    "TensorSummaryV2",
    "tag: string, tensor: T, serialized_summary_metadata: string",
    "summary: string",
    "T: type",
    shape=s.scalar,
)
op(
    "AudioSummary",
    "tag: string, tensor: float",
    "summary: string",
    "sample_rate: float",
    "max_outputs: int >= 1 = 3",
)

# The writers of event files that live on a task, and what is written through them.
op(
    "SummaryWriter",
    "",
    "writer: resource",
    "shared_name: string = ''",
    "container: string = ''",
    stateful=True,
    shape=s.scalar,
)
op(
    "CreateSummaryFileWriter",
    "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string",
    "",
    stateful=True,
)
op(
    "CreateSummaryDbWriter",
    "writer: resource, db_uri: string, experiment_name: string, run_name: string, user_name: string",
    "",
    stateful=True,
)
op("FlushSummaryWriter", "writer: resource", "", stateful=True)
op("CloseSummaryWriter", "writer: resource", "", stateful=True)
op("ImportEvent", "writer: resource, event: string", "", stateful=True)
op(
    "WriteSummary",
    "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string",
    "",
    "T: type",
    stateful=True,
)
op("WriteRawProtoSummary", "writer: resource, step: int64, tensor: string", "", stateful=True)
op("WriteGraphSummary", "writer: resource, step: int64, tensor: string", "", stateful=True)
op("WriteScalarSummary", "writer: resource, step: int64, tag: string, value: T", "", "T: {real}", stateful=True)
op(
    "WriteHistogramSummary",
    "writer: resource, step: int64, tag: string, values: T",
    "",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, bool} = float",
    stateful=True,
)
op(
    "WriteImageSummary",
    "writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8",
    "",
    "max_images: int >= 1 = 3",
    "T: {uint8, double, float, half} = float",
    stateful=True,
)
op(
    "WriteAudioSummary",
    "writer: resource, step: int64, tag: string, tensor: float, sample_rate: float",
    "",
    "max_outputs: int >= 1 = 3",
    stateful=True,
)
