"""Event files written on a task: tf.contrib.summary, FileWriter(session=…), assets of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from tenfold.contrib import summary as contrib_summary
from tenfold.summary.plugin_asset import PluginAsset, get_all_plugin_assets, get_plugin_asset
from tenfold.summary.summary_iterator import summary_iterator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenfold_protos.event_pb2 import Event


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def events(folder: Path) -> list[Event]:
    return [event for path in sorted(folder.glob("events.*")) for event in summary_iterator(str(path))]


def test_ops_write_while_recording(tmp_path: Path) -> None:
    step = tf.train.create_global_step()
    writer = contrib_summary.create_file_writer(str(tmp_path), flush_millis=10)
    with writer.as_default():
        with contrib_summary.always_record_summaries():
            ops = [
                contrib_summary.scalar("loss", 2.0),
                contrib_summary.histogram("weights", tf.constant([1.0, 2.0])),
                contrib_summary.image("picture", np.zeros([1, 2, 2, 1], np.float32), step=7),
                contrib_summary.audio("sound", tf.zeros([1, 8]), 8000.0, 1),
                contrib_summary.generic("words", tf.constant("text")),
            ]
        contrib_summary.scalar("unwritten", 1.0)
    with tf.Session() as session:
        session.run([step.initializer, contrib_summary.summary_writer_initializer_op()])
        session.run(contrib_summary.all_summary_ops())
        session.run(writer.close())
    assert len(ops) == 5
    written = events(tmp_path)
    assert written[0].file_version == "brain.Event:2"
    kinds = {value.tag: value.WhichOneof("value") for event in written[1:] for value in event.summary.value}
    assert kinds == {
        "loss": "simple_value",
        "weights": "histo",
        "picture/image/0": "image",
        "sound/audio": "audio",
        "words": "tensor",
    }
    assert {event.step for event in written if event.summary.value and "picture" in event.summary.value[0].tag} == {7}


def test_recording_may_depend_on_the_step(tmp_path: Path) -> None:
    step = tf.train.create_global_step()
    writer = contrib_summary.create_file_writer(str(tmp_path))
    with writer.as_default(), contrib_summary.record_summaries_every_n_global_steps(2):
        op = contrib_summary.scalar("x", 1.0)
    with tf.Session() as session:
        session.run([step.initializer, writer.init()])
        for _ in range(4):
            session.run(op)
            session.run(step.assign_add(1))
        session.run(writer.flush())
    assert [event.step for event in events(tmp_path)[1:]] == [0, 2]


def test_a_writer_that_is_not_open_says_so(tmp_path: Path) -> None:
    writer = contrib_summary.create_file_writer(str(tmp_path))
    flush, close = writer.flush(), writer.close()
    with tf.Session() as session:
        with pytest.raises(tf.errors.NotFoundError, match="has no file open"):
            session.run(flush)
        session.run(writer.init())
        session.run(close)
        with pytest.raises(tf.errors.NotFoundError, match="has no file open"):
            session.run(flush)


def test_a_session_that_ends_loses_nothing(tmp_path: Path) -> None:
    writer = contrib_summary.create_file_writer(str(tmp_path))
    with writer.as_default(), contrib_summary.always_record_summaries():
        op = contrib_summary.scalar("x", 1.0, step=3)
    with tf.Session() as session:
        session.run(writer.init())
        session.run(op)
        session.run(writer.flush())
    assert [event.step for event in events(tmp_path)] == [0, 3]


def test_what_does_not_parse_is_refused(tmp_path: Path) -> None:
    writer = contrib_summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        op = contrib_summary.import_event(tf.constant(b"\xff\xff\xff"))
    with tf.Session() as session:
        session.run(writer.init())
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not parse as a serialized Event"):
            session.run(op)


def test_a_name_of_a_file_is_no_path(tmp_path: Path) -> None:
    writer = contrib_summary.create_file_writer(str(tmp_path), filename_suffix="/../../x")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="part of a file's name"):
        session.run(writer.init())


def test_initialize_opens_and_writes_the_graph(tmp_path: Path) -> None:
    writer = contrib_summary.create_file_writer(str(tmp_path))
    with tf.Session(), writer.as_default():
        tf.summary.initialize(tf.get_default_graph())
        tf.get_default_session().run(writer.flush())
    assert tf.GraphDef.FromString(events(tmp_path)[-1].graph_def).node
    with pytest.raises(RuntimeError, match="No default"):
        tf.summary.initialize()


def test_a_file_writer_writes_through_its_session(tmp_path: Path) -> None:
    with tf.Session() as session:
        one = tf.summary.FileWriter(str(tmp_path), session=session)
        other = tf.summary.FileWriter(str(tmp_path), session=session)
        one.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=1.0)]), 1)
        other.add_summary(tf.Summary(value=[tf.Summary.Value(tag="b", simple_value=2.0)]), 2)
        one.flush()
        one.close()
        one.reopen()
        one.add_session_log(tf.SessionLog(status=tf.SessionLog.STOP), 3)
        one.close()
    files = sorted(tmp_path.glob("events.*"))
    assert len(files) == 2
    assert [event.step for event in events(tmp_path)] == [0, 1, 2, 0, 3]


def test_the_meta_graph_of_a_writer_has_the_default_graphs_collections(tmp_path: Path) -> None:
    with tf.Graph().as_default() as other:
        tf.constant(1, name="one")
    tf.add_to_collection("words", "default")
    with tf.summary.FileWriter(str(tmp_path), other):
        pass

    [found] = [event.meta_graph_def for event in events(tmp_path) if event.meta_graph_def]
    meta_graph = tf.MetaGraphDef.FromString(found)
    assert [node.name for node in meta_graph.graph_def.node] == ["one"]
    assert meta_graph.collection_def["words"].bytes_list.value[:] == [b"default"]


class _Notes(PluginAsset):
    plugin_name = "notes"

    def assets(self) -> dict[str, str | bytes]:
        return {"a.txt": "text", "b.bin": b"\x00"}


def test_assets_of_plugins_lie_beside_the_graph(tmp_path: Path) -> None:
    asset = get_plugin_asset(_Notes)
    with tf.summary.FileWriter(str(tmp_path), tf.get_default_graph()):
        assert get_plugin_asset(_Notes) is asset
        assert get_all_plugin_assets() == [asset]
    assert (tmp_path / "plugins" / "notes" / "a.txt").read_text() == "text"
    assert (tmp_path / "plugins" / "notes" / "b.bin").read_bytes() == b"\x00"
