"""What programs call of TensorFlow's C interface: events written on the caller's thread, graphs compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tenfold as tf
from tenfold.compat.python.pywrap_tensorflow import EqualGraphDefWrapper, EventsWriter
from tenfold.summary.summary_iterator import summary_iterator
from tenfold_protos.event_pb2 import Event

if TYPE_CHECKING:
    from pathlib import Path


def test_events_are_in_a_file_that_begins_with_the_prefix(tmp_path: Path) -> None:
    writer = EventsWriter(str(tmp_path / "run").encode())
    writer.WriteEvent(Event(step=3))
    writer.Flush()
    first = writer.FileName().decode()
    writer.InitWithSuffix(".more")
    writer.WriteEvent(Event(step=4))
    writer.Close()

    assert first.startswith(f"{tmp_path}/run.out.tfevents.")
    assert [event.step for event in summary_iterator(first)] == [0, 3]
    (second,) = tmp_path.glob("*.more")
    found = list(summary_iterator(str(second)))
    assert [event.step for event in found] == [0, 4]
    assert found[0].file_version == "brain.Event:2"


def test_graphs_are_compared_node_by_node() -> None:
    graphs = []
    for value in (1, 1, 2):
        with tf.Graph().as_default() as graph:
            tf.constant(value, name="c")
        graphs.append(graph.as_graph_def().SerializeToString())

    assert EqualGraphDefWrapper(graphs[0], graphs[1]) == b""
    assert b"'c'" in EqualGraphDefWrapper(graphs[0], graphs[2])
