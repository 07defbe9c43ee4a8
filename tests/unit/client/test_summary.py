"""tf.summary and timelines: ops whose values are Summary messages, event files, and Chrome traces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from tenfold.profiler.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def value_of(op: tf.Tensor) -> tf.Summary.Value:
    """The one value of a summary op."""
    with tf.Session() as session:
        (value,) = tf.Summary.FromString(session.run(op)).value
    return value


def events(folder: Path) -> list[tf.Event]:
    return [event for path in tf.gfile.Glob(f"{folder}/events.*") for event in tf.train.summary_iterator(path)]


def test_scalars_and_their_names() -> None:
    with tf.name_scope("loss"):
        op = tf.summary.scalar("mean value", 3.5, family="both")
    value = value_of(op)
    assert (value.tag, value.simple_value) == ("both/loss/both/mean_value", 3.5)


def test_histograms() -> None:
    histogram = value_of(tf.summary.histogram("weights", np.array([-1.0, 0.0, 2.0, 2.0]))).histo
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (-1.0, 2.0, 4.0, 3.0)
    assert sum(histogram.bucket) == 4


def test_images_are_png_of_their_size() -> None:
    op = tf.summary.image("pictures", np.zeros((5, 4, 6, 3), np.uint8), max_outputs=2)
    with tf.Session() as session:
        first, second = tf.Summary.FromString(session.run(op)).value
    assert (first.tag, second.tag) == ("pictures/image/0", "pictures/image/1")
    assert (first.image.height, first.image.width, first.image.colorspace) == (4, 6, 3)
    assert first.image.encoded_image_string.startswith(b"\x89PNG")


def test_text_is_a_tensor_with_its_plugins_name() -> None:
    value = value_of(tf.summary.text("note", tf.constant("hello")))
    assert value.metadata.plugin_data.plugin_name == "text"
    assert tf.make_ndarray(value.tensor).item() == b"hello"


def test_all_are_merged() -> None:
    assert tf.summary.merge_all() is None
    tf.summary.scalar("one", 1.0)
    tf.summary.scalar("two", 2.0)
    tf.summary.scalar("apart", 3.0, collections=["mine"])
    merged, mine = tf.summary.merge_all(), tf.summary.merge_all("mine")
    with tf.Session() as session:
        assert [value.tag for value in tf.Summary.FromString(session.run(merged)).value] == ["one", "two"]
        assert [value.tag for value in tf.Summary.FromString(session.run(mine)).value] == ["apart"]


def test_two_values_of_one_tag_cannot_be_merged() -> None:
    one = tf.summary.scalar("one", 1.0)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag one"):
        session.run(tf.summary.merge([one, one]))


class TestFileWriter:
    def test_it_writes_what_it_is_given(self, tmp_path: Path) -> None:
        tf.constant(1.0, name="node")
        with tf.summary.FileWriter(str(tmp_path), tf.get_default_graph()) as writer:
            summary = tf.Summary(value=[tf.Summary.Value(tag="tag", simple_value=2.0)])
            writer.add_summary(summary, 1)
            writer.add_summary(summary.SerializeToString(), np.int64(2))
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 3)
            writer.add_run_metadata(tf.RunMetadata(), "run", 4)
            with pytest.raises(ValueError, match="already"):
                writer.add_run_metadata(tf.RunMetadata(), "run", 5)
            assert writer.get_logdir() == str(tmp_path)
        found = events(tmp_path)
        assert found[0].file_version == "brain.Event:2"
        assert [(event.step, event.WhichOneof("what")) for event in found[1:]] == [
            (0, "graph_def"),
            (0, "meta_graph_def"),
            (1, "summary"),
            (2, "summary"),
            (3, "session_log"),
            (4, "tagged_run_metadata"),
        ]
        graph_def = tf.GraphDef.FromString(found[1].graph_def)
        assert [node.name for node in graph_def.node] == ["node"]
        assert found[3].wall_time > 0

    def test_closing_reopening_and_the_shared_one(self, tmp_path: Path) -> None:
        shared = tf.summary.FileWriterCache.get(str(tmp_path))
        assert tf.summary.FileWriterCache.get(str(tmp_path)) is shared
        shared.close()
        with pytest.warns(UserWarning, match="closed FileWriter"):
            shared.add_summary(tf.Summary(), 1)
        shared.reopen()
        shared.add_summary(tf.Summary(value=[tf.Summary.Value(tag="after")]), 2)
        shared.flush()
        assert [event.step for event in events(tmp_path) if event.HasField("summary")] == [2]
        tf.summary.FileWriterCache.clear()
        assert tf.summary.FileWriterCache.get(str(tmp_path)) is not shared
        tf.summary.FileWriterCache.clear()

    def test_a_file_that_is_cut_short_says_so(self, tmp_path: Path) -> None:
        with tf.summary.FileWriter(str(tmp_path)) as writer:
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="x")]), 1)
        (path,) = tmp_path.glob("events.*")
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(tf.errors.DataLossError, match="truncated"):
            events(tmp_path)


def test_a_timeline_shows_each_node_on_its_device() -> None:
    x = tf.placeholder(tf.float32, (4, 4), name="x")
    y = tf.matmul(x, x, name="product")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        session.run(y, {x: np.eye(4)}, options=options, run_metadata=metadata)
    trace = json.loads(Timeline(metadata.step_stats, graph=tf.get_default_graph()).generate_chrome_trace_format())
    rows = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    (product,) = [event for event in trace["traceEvents"] if event.get("args", {}).get("name") == "product"]
    assert (product["ph"], product["name"]) == ("X", "MatMul")
    assert "CPU:0" in rows[product["pid"]]
    assert product["dur"] >= 0


def test_a_timeline_knows_what_its_allocators_held() -> None:
    x = tf.placeholder(tf.float32, (4, 4), name="x")
    y = tf.matmul(tf.matmul(x, x, name="first"), x, name="second")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        session.run(y, {x: np.eye(4)}, options=options, run_metadata=metadata)
    analysis = Timeline(metadata.step_stats).analyze_step_stats()
    most = analysis.allocator_maximums["cpu"]
    assert most.num_bytes >= 2 * 64
    assert {"first", "second"} <= most.tensors
    trace = json.loads(analysis.chrome_trace.format_to_string())["traceEvents"]
    assert {event["ph"] for event in trace} >= {"X", "C", "N", "O", "D"}
    assert max(event["args"]["cpu"] for event in trace if event["ph"] == "C") == most.num_bytes
    assert [event["args"]["cpu"] for event in trace if event["ph"] == "C"][-1] == 0


def test_a_timeline_without_memory_has_no_maximums() -> None:
    analysis = Timeline(tf.RunMetadata().step_stats).analyze_step_stats(show_memory=False)
    assert analysis.allocator_maximums == {}
    assert json.loads(analysis.chrome_trace.format_to_string(pretty=True)) == {"traceEvents": []}


def test_a_record_that_is_no_event_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "events"
    with tf.python_io.TFRecordWriter(str(path)) as out:
        out.write(tf.Event(step=1).SerializeToString())
        out.write(b"\xff\xff")
    events = tf.train.summary_iterator(str(path))

    assert next(events).step == 1
    with pytest.raises(tf.errors.DataLossError, match=r"events: the record that ends at \d+ is no event"):
        next(events)
