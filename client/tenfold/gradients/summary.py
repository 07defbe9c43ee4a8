"""Gradient rows of the summary ops; the op definitions are in tenfold_core/opdefs/summary.py.

Summaries are strings for the event files.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable(
    "AudioSummaryV2",
    "HistogramSummary",
    "ImageSummary",
    "MergeSummary",
    "ScalarSummary",
    "TensorSummary",
    "TensorSummaryV2",
    why="strings for event files",
)
not_differentiable(
    "AudioSummary",
)
not_differentiable(
    "CloseSummaryWriter",
    "CreateSummaryDbWriter",
    "CreateSummaryFileWriter",
    "FlushSummaryWriter",
    "ImportEvent",
    "SummaryWriter",
    "WriteAudioSummary",
    "WriteGraphSummary",
    "WriteHistogramSummary",
    "WriteImageSummary",
    "WriteRawProtoSummary",
    "WriteScalarSummary",
    "WriteSummary",
    why="they write event files",
)
