"""The ops of writers of event files: what each writes, and what they refuse."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import errors, tensor_util
from tenfold_core.records import RecordReader
from tenfold_kernels.cpu._png import decode_png
from tenfold_kernels.resources.summary_writers import SummaryWriter
from tenfold_protos import event_pb2, graph_pb2, summary_pb2

if TYPE_CHECKING:
    from pathlib import Path


def text(value: bytes) -> Any:
    return np.array(value, object)


def number(value: Any, dtype: Any = np.int64) -> Any:
    return np.array(value, dtype)


class Writer(Steps):
    """Steps with a writer whose file is open."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.handle = self("SummaryWriter", shared_name=b"w")
        self.open()

    def open(self, queue: Any = 10, millis: Any = 1_000_000, suffix: Any = b".end") -> None:
        self(
            "CreateSummaryFileWriter",
            self.handle,
            text(str(self.folder).encode()),
            number(queue, np.int32),
            number(millis, np.int32),
            suffix if isinstance(suffix, np.ndarray) else text(suffix),
        )

    def write(self, op: str, *inputs: Any, **attrs: Any) -> None:
        assert self(op, self.handle, *inputs, **attrs) is None

    def events(self) -> list[Any]:
        """What is in the file after its first event."""
        self.write("FlushSummaryWriter")
        (path,) = self.folder.iterdir()
        with RecordReader(str(path)) as reader:
            first, *others = [event_pb2.Event.FromString(record) for record in reader]
        assert first.file_version == "brain.Event:2"
        return others

    def refused(self, message: str, op: str, *inputs: Any, **attrs: Any) -> None:
        with pytest.raises(errors.InvalidArgumentError, match=message):
            self.write(op, *inputs, **attrs)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "logs")


def one_value(writer: Writer, step: int) -> Any:
    (event,) = writer.events()
    assert event.step == step
    assert 0 <= time.time() - event.wall_time < 600
    (value,) = event.summary.value
    return value


def test_a_file_is_opened_as_the_node_says(writer: Writer) -> None:
    held = writer.handle[()].resource
    assert isinstance(held, SummaryWriter)
    assert writer("SummaryWriter", shared_name=b"w")[()].resource is held
    (path,) = writer.folder.iterdir()
    assert path.name.endswith(".end")
    assert (held._max_queue, held._flush_seconds) == (10, 1000.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queue": [1]}, r"^max_queue must be scalar, got shape \[1\]$"),
        ({"millis": [1]}, r"^flush_millis must be scalar, got shape \[1\]$"),
        ({"suffix": np.array([b"x"], object)}, r"^filename_suffix must be scalar, got shape \[1\]$"),
    ],
)
def test_what_says_how_to_open_is_scalars(writer: Writer, options: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        writer.open(**options)


def test_a_folder_that_cannot_be_made_is_named(writer: Writer) -> None:
    (path,) = writer.folder.iterdir()
    writer.write("CloseSummaryWriter")
    writer.folder = path / "in_a_file"
    with pytest.raises(errors.OpError, match="in_a_file"):
        writer.open()
    refused = [np.array([b"x"], object), number(1, np.int32), number(1, np.int32), text(b"")]
    writer.refused(r"^logdir must be scalar, got shape \[1\]$", "CreateSummaryFileWriter", *refused)


def test_events_wait_until_they_are_flushed_or_the_writer_is_closed(writer: Writer) -> None:
    (path,) = writer.folder.iterdir()
    before = path.stat().st_size
    writer.write("WriteScalarSummary", number(1), text(b"a"), number(1, np.float32))
    assert path.stat().st_size == before
    writer.write("FlushSummaryWriter")
    flushed = path.stat().st_size
    assert flushed > before
    writer.write("WriteScalarSummary", number(1), text(b"a"), number(1, np.float32))
    writer.write("CloseSummaryWriter")
    assert path.stat().st_size > flushed
    with pytest.raises(errors.NotFoundError, match="no file open"):
        writer.write("FlushSummaryWriter")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_a_number(writer: Writer, dtype: Any) -> None:
    writer.write("WriteScalarSummary", number(7), text(b"loss"), number(2, dtype))
    value = one_value(writer, 7)
    assert (value.tag, value.simple_value) == ("loss", 2.0)
    tag = r"^tag must be scalar, got shape \[1\]$"
    writer.refused(tag, "WriteScalarSummary", number(7), np.array([b"a"], object), number(2, dtype))
    refused = r"^value must be scalar, got shape \[1\]$"
    writer.refused(refused, "WriteScalarSummary", number(7), text(b"a"), number([2], dtype))
    refused = r"^step must be scalar, got shape \[1\]$"
    writer.refused(refused, "WriteScalarSummary", number([7]), text(b"a"), number(2, dtype))


def test_a_tensor(writer: Writer) -> None:
    metadata = summary_pb2.SummaryMetadata(display_name="shown").SerializeToString()
    tensor = number([[1, 2]], np.float32)
    writer.write("WriteSummary", number(3), tensor, text(b"t"), text(metadata))
    value = one_value(writer, 3)
    assert (value.tag, value.metadata.display_name) == ("t", "shown")
    assert tensor_util.make_ndarray(value.tensor).tolist() == [[1, 2]]


def test_a_histogram(writer: Writer) -> None:
    writer.write("WriteHistogramSummary", number(3), text(b"h"), number([1.0, 3.0], np.float32))
    value = one_value(writer, 3)
    assert (value.tag, value.histo.num, value.histo.sum) == ("h", 2, 4)


def test_a_histogram_of_truths(writer: Writer) -> None:
    writer.write("WriteHistogramSummary", number(3), text(b"h"), np.array([True, False, True]))
    histo = one_value(writer, 3).histo
    assert (histo.num, histo.sum, histo.min, histo.max) == (3, 2, 0, 1)


def test_a_picture_marks_what_is_no_number_in_the_colour_that_comes_with_it(writer: Writer) -> None:
    picture = number([[[[np.nan] * 3, [1.0] * 3]]], np.float32)
    colour = np.array([1, 2, 3], np.uint8)
    writer.write("WriteImageSummary", number(4), text(b"p"), picture, colour, max_images=1)
    value = one_value(writer, 4)
    assert (value.tag, value.image.height, value.image.width) == ("p/image", 1, 2)
    assert decode_png(value.image.encoded_image_string, 0, np.uint8).tolist() == [[[1, 2, 3], [255] * 3]]


def test_a_sound(writer: Writer) -> None:
    sound = np.zeros((2, 3), np.float32)
    writer.write("WriteAudioSummary", number(5), text(b"s"), sound, number(8000, np.float32), max_outputs=2)
    (event,) = writer.events()
    assert [each.tag for each in event.summary.value] == ["s/audio/0", "s/audio/1"]
    assert event.summary.value[0].audio.sample_rate == 8000


def test_what_is_serialized_already(writer: Writer) -> None:
    parts = [summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag)]) for tag in "ab"]
    rows = np.array([part.SerializeToString() for part in parts], object)
    writer.write("WriteRawProtoSummary", number(6), rows)
    graph = graph_pb2.GraphDef(node=[{"name": "n"}]).SerializeToString()
    writer.write("WriteGraphSummary", number(7), text(graph))
    event = event_pb2.Event(wall_time=12.5, step=8)
    writer.write("ImportEvent", text(event.SerializeToString()))

    raw, drawn, imported = writer.events()
    assert (raw.step, [value.tag for value in raw.summary.value]) == (6, ["a", "b"])
    assert (drawn.step, drawn.graph_def) == (7, graph)
    assert imported == event


@pytest.mark.parametrize(
    ("op", "inputs", "kind", "what"),
    [
        ("ImportEvent", (), "Event", "event"),
        ("WriteGraphSummary", (number(1),), "GraphDef", "tensor"),
        ("WriteRawProtoSummary", (number(1),), "Summary", ""),
    ],
)
def test_what_does_not_parse_is_refused(writer: Writer, op: str, inputs: tuple[Any], kind: str, what: str) -> None:
    writer.refused(f"^The string does not parse as a serialized {kind}$", op, *inputs, text(b"\xff"))
    if what:
        refused = rf"^{what} must be scalar, got shape \[1\]$"
        writer.refused(refused, op, *inputs, np.array([b""], object))
    assert writer.events() == []


def test_types_of_numbers_are_real(writer: Writer) -> None:
    with pytest.raises(errors.OpError):
        writer.write("WriteScalarSummary", number(1), text(b"a"), np.array(1j, np.complex64))
