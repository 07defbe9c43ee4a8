"""Files of training, both ways: TensorFlow restores our checkpoints and meta graphs, TensorBoard reads our events, and
Tenfold restores and reads theirs. TensorFlow 2.21, and 1.15 where it is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .tensorflow_processes import Forks

PRELUDE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import tensorflow
tf = tensorflow.compat.v1
tf.disable_eager_execution() if hasattr(tf, "disable_eager_execution") else None
folder = sys.argv[1]
"""
VALUES: dict[str, Any] = {
    "scalar": np.float32(2.5),
    "matrix": np.arange(12, dtype=np.float64).reshape(3, 4),
    "counts": np.arange(5, dtype=np.int64),
    "flags": np.array([True, False]),
    "words": np.array([b"one", b"", b"three"], object),
}


@pytest.fixture(params=["1.15", "2.21"])
def ask(request: pytest.FixtureRequest, forks: dict[str, Forks]) -> Callable[[str, Path], Any]:
    """Runs a script, with the folder as its argument, under one TensorFlow; what it prints last, as JSON."""
    tensorflow = forks[request.param]
    return lambda script, folder: tensorflow.ask(PRELUDE + script, str(folder))


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def plain(values: Any) -> Any:
    """Arrays as JSON has them."""
    return {
        name: [item.decode() for item in value] if value.dtype == object else value.tolist()
        for name, value in values.items()
    }


#: Reads every tensor of every checkpoint in the folder; imports the first one's meta graph and restores it.
READ = """
out = {}
for path in json.load(open(folder + "/paths.json")):
    reader = tf.train.NewCheckpointReader(path)
    out[path] = {
        name: [item.decode() for item in value] if value.dtype == object else value.tolist()
        for name in reader.get_variable_to_shape_map() for value in [np.asarray(reader.get_tensor(name))]
    }
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(path + ".meta", clear_devices=True)
        saver.restore(session, path)
        (twice,) = tf.get_collection("outputs")
        out[path]["scalar, twice"] = float(session.run(twice))
        names = sorted(variable.op.name for variable in tf.global_variables())
        assert set(names) >= set(out[path]) - {"scalar, twice", "parted"}, names
state = tf.train.get_checkpoint_state(folder)
out["latest"] = state.model_checkpoint_path
print(json.dumps(out))
"""


def test_tensorflow_restores_our_checkpoints_and_graphs(
    ask: Callable[[str, Path], Any], tmp_path: Path, graph: tf.Graph
) -> None:
    variables = {name: tf.Variable(value, name=name) for name, value in VALUES.items()}
    with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(3)):
        whole = np.arange(14, dtype=np.float32).reshape(7, 2)
        tf.get_variable(
            "parted", shape=(7, 2), initializer=lambda shape, dtype, partition_info: part(whole, shape, partition_info)
        )
    tf.add_to_collection("outputs", variables["scalar"] * 2)
    paths = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for sharded in (False, True):
            saver = tf.train.Saver(sharded=sharded)
            paths.append(saver.save(session, str(tmp_path / f"model{int(sharded)}"), global_step=3))
    (tmp_path / "paths.json").write_text(json.dumps(paths))

    out = ask(READ, tmp_path)

    for path in paths:
        assert out[path] == plain(VALUES | {"parted": whole}) | {"scalar, twice": 5.0}
    assert out["latest"] == paths[1]


def part(whole: np.ndarray, shape: Any, info: Any) -> Any:
    """What of `whole` a partition holds."""
    at = info.var_offset
    return tf.constant(whole[tuple(slice(a, a + int(n)) for a, n in zip(at, shape, strict=True))])


WRITE = """
import base64
values = {"scalar": np.float32(2.5), "matrix": np.arange(12.0).reshape(3, 4), "counts": np.arange(5),
          "flags": np.array([True, False]), "words": np.array([b"one", b"", b"three"], object)}
variables = {name: tf.Variable(value, name=name, use_resource=name == "matrix") for name, value in values.items()}
tf.add_to_collection("outputs", variables["scalar"] * 2)
tf.summary.scalar("tag", variables["scalar"])
tf.summary.histogram("spread", variables["matrix"])
merged = tf.summary.merge_all()
queue = tf.FIFOQueue(1, tf.int32, shapes=())
tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)]))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    paths = [tf.train.Saver(sharded=s).save(session, "%s/theirs%d" % (folder, s), global_step=4) for s in (0, 1)]
    writer = tf.summary.FileWriter(folder + "/events", session.graph)
    for step in range(3):
        writer.add_summary(session.run(merged), step)
    writer.close()
print(json.dumps(paths))
"""


def test_we_restore_and_read_theirs(ask: Callable[[str, Path], Any], tmp_path: Path) -> None:
    for path in ask(WRITE, tmp_path):
        with tf.Graph().as_default(), tf.Session() as session:
            saver = tf.train.import_meta_graph(f"{path}.meta")
            saver.restore(session, path)
            got = {variable.op.name: np.asarray(session.run(variable)) for variable in tf.global_variables()}
            assert plain(got) == plain({name: np.asarray(value) for name, value in VALUES.items()})
            (twice,) = tf.get_collection("outputs")
            assert session.run(twice) == 5.0
            assert len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)) == 1
        last = path
    assert tf.train.latest_checkpoint(str(tmp_path)) == last
    (file,) = tf.gfile.Glob(f"{tmp_path}/events/*")
    events = list(tf.train.summary_iterator(file))
    tags = [(event.step, value.tag) for event in events for value in event.summary.value]
    assert tags == [(step, tag) for step in range(3) for tag in ("tag", "spread")]
    assert any(event.HasField("graph_def") for event in events)


BOARD = """
try:
    import tensorboard
except ImportError:
    print("null")
    sys.exit()
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
board = EventAccumulator(folder, {"images": 0, "histograms": 0, "tensors": 0, "scalars": 0})
board.Reload()
tags = board.Tags()
print(json.dumps({
    "scalars": [(event.step, event.value) for event in board.Scalars("loss")],
    "histogram": [event.histogram_value.num for event in board.Histograms("spread")],
    "image": [(event.width, event.height) for event in board.Images("picture/image/0")],
    "text": [event.tensor_proto.string_val[0].decode() for event in board.Tensors("note")],
    "graph": sorted(node.name for node in board.Graph().node)[:1],
    "metadata": tags["run_metadata"],
    "meta_graph": tags["meta_graph"],
}))
"""


def test_tensorboards_own_reader_reads_our_events(ask: Callable[[str, Path], Any], tmp_path: Path) -> None:
    value = tf.placeholder(tf.float32, (), name="a")
    tf.summary.scalar("loss", value)
    tf.summary.histogram("spread", tf.stack([value, value + 1]))
    tf.summary.image("picture", tf.zeros((1, 2, 3, 1)))
    tf.summary.text("note", tf.constant("hello"))
    merged = tf.summary.merge_all()
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session, tf.summary.FileWriter(str(tmp_path), session.graph) as writer:
        for step in range(3):
            writer.add_summary(session.run(merged, {value: step}, options=options, run_metadata=metadata), step)
        writer.add_run_metadata(metadata, "traced", 2)

    out = ask(BOARD, tmp_path)

    if out is None:
        pytest.skip("this TensorFlow came without tensorboard")
    assert out == {
        "scalars": [[0, 0.0], [1, 1.0], [2, 2.0]],
        "histogram": [2.0] * 3,
        "image": [[3, 2]] * 3,
        "text": ["hello"] * 3,
        "graph": ["Const"],
        "metadata": ["traced"],
        "meta_graph": True,
    }
