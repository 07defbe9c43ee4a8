"""Checkpoints cross over: TensorFlow reads ours, we read TensorFlow's, and a real client restores from a new server."""

# ruff: noqa: E501 (lines of the scripts)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import checkpoint, dtypes
from tenfold_core.records import RecordReader, RecordWriter
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Saves in every way a Saver of TensorFlow 1.x can, with every type that both sides know.
SAVE = """
import json, sys
import numpy as np
import tensorflow as tf
tf1 = tf.compat.v1
folder = sys.argv[1]
with tf.Graph().as_default(), tf1.Session() as session:
    kinds = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128".split()
    every = {k: (np.arange(6).reshape(2, 3) % 2 == 1 if k == "bool" else np.arange(6).reshape(2, 3)).astype(k) for k in kinds}
    every["string"] = np.array([b"", b"x", b"long" * 50], object)
    every["scalar"] = np.float32(2.5)
    every["empty"] = np.zeros((0, 4), np.float32)
    tf.raw_ops.SaveV2(prefix=folder + "/every", tensor_names=list(every), shape_and_slices=[""] * len(every),
                      tensors=[tf.constant(v) for v in every.values()], name="save_every")
    session.run("save_every")
    many = [np.full(50, i, np.float32) for i in range(3000)]
    tf.raw_ops.SaveV2(prefix=folder + "/many", tensor_names=["layer/with/a/long/name/number_%05d" % i for i in range(3000)],
                      shape_and_slices=[""] * 3000, tensors=[tf.constant(v) for v in many], name="save_many")
    session.run("save_many")
    w = tf1.get_variable("w", [7, 4], partitioner=tf1.fixed_size_partitioner(3), initializer=tf1.ones_initializer())
    b = tf1.get_variable("b", initializer=tf.range(4))
    session.run(tf1.global_variables_initializer())
    for i, part in enumerate(w):
        session.run(tf1.assign(part, np.arange(np.prod(part.shape)).reshape(part.shape) + 100.0 * i))
    whole = session.run(tf.convert_to_tensor(w)).tolist()
    for sharded in (False, True):
        tf1.train.Saver(sharded=sharded).save(session, folder + "/saver%d" % sharded)
    tf1.train.Saver(write_version=tf1.train.SaverDef.V1).save(session, folder + "/v1")
    with tf.io.TFRecordWriter(folder + "/records", "GZIP") as out:
        for record in (b"", b"one", b"two" * 1000):
            out.write(record)
print(json.dumps(whole))
"""

#: Reads what we wrote, through the checkpoint reader and through restore ops.
READ = """
import json, sys
import tensorflow as tf
tf1 = tf.compat.v1
folder = sys.argv[1]
reader = tf.train.load_checkpoint(folder + "/ours")
out = {n: [reader.get_variable_to_dtype_map()[n].name, list(s), str(reader.get_tensor(n).tolist())]
       for n, s in reader.get_variable_to_shape_map().items()}
with tf.Graph().as_default(), tf1.Session() as session:
    parts = tf.raw_ops.RestoreV2(prefix=folder + "/ours", tensor_names=["part", "part"],
                                 shape_and_slices=["10 4 2,6:1,2", ""], dtypes=[tf.float64] * 2)
    out["slice"], out["whole"] = [p.tolist() for p in session.run(parts)]
    merged = tf.raw_ops.RestoreV2(prefix=folder + "/merged", tensor_names=["own0", "own1", "w"],
                                  shape_and_slices=[""] * 3, dtypes=[tf.int64] * 3)
    out["merged"] = [p.tolist() for p in session.run(merged)]
    first = tf.raw_ops.RestoreSlice(file_pattern=folder + "/v1ours", tensor_name="w", shape_and_slice="4 1,2", dt=tf.float32)
    out["v1"] = session.run(first).tolist()
    out["v1s"] = str(session.run(tf.raw_ops.Restore(file_pattern=folder + "/v1ours", tensor_name="s", dt=tf.string)).tolist())
for kind in ("", "GZIP", "ZLIB"):
    dataset = tf.data.TFRecordDataset(folder + "/records" + kind, kind)
    out["records" + kind] = [r.numpy().decode() for r in dataset]
print(json.dumps(out))
"""


@pytest.mark.thorough
def test_we_read_tensorflows(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> None:
    whole = ask_tensorflow(SAVE, str(tmp_path))

    with checkpoint.BundleReader(str(tmp_path / "every")) as reader:
        for name, (dtype, shape) in reader.shapes().items():
            value = reader.read(name)
            assert value.shape == shape
            if name not in ("string", "scalar", "empty"):
                assert dtype.name == name
                expected = np.arange(6).reshape(2, 3) % 2 if name == "bool" else np.arange(6).reshape(2, 3)
                assert np.array_equal(value, expected.astype(value.dtype)), name
        assert reader.read("string").tolist() == [b"", b"x", b"long" * 50]
        assert len(reader.names()) == 17
    with checkpoint.BundleReader(str(tmp_path / "many")) as reader:
        assert [int(reader.read(name)[7]) for name in reader.names()] == list(range(3000))
    for prefix in ("saver0", "saver1"):
        with checkpoint.BundleReader(str(tmp_path / prefix)) as reader:
            assert reader.names() == ["b", "w"]
            assert len(reader.slices("w")) == 3
            assert reader.read("w").tolist() == whole
            part = checkpoint.TensorSlice.parse("2,4:1,2")
            assert reader.read_slice("w", part).tolist() == np.array(whole)[2:6, 1:3].tolist()
    with checkpoint.SliceTableReader(str(tmp_path / "v1")) as old:
        assert old.names() == ["b", "w"]
        assert old.read_slice("w", checkpoint.TensorSlice.full(2)).tolist() == whole
        assert old.read_slice("b", checkpoint.TensorSlice.full(1)).tolist() == [0, 1, 2, 3]
    with RecordReader(str(tmp_path / "records"), "GZIP") as records:
        assert list(records) == [b"", b"one", b"two" * 1000]


def test_tensorflow_reads_ours(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> None:
    values: dict[str, Any] = {
        t.name: (np.arange(6).reshape(2, 3) % 2 if t.is_bool else np.arange(6).reshape(2, 3)).astype(t.as_numpy_dtype)
        for t in dtypes.ALL_TYPES
        if t.is_numpy_compatible and t is not dtypes.string
    }
    values["scalar"], values["empty"] = np.array(2.5), np.zeros((0, 4))
    strings = np.empty(3, object)
    strings[:] = [b"", b"x", b"long" * 50]
    values["string"] = strings
    whole = np.arange(40.0).reshape(10, 4)
    with checkpoint.BundleWriter(str(tmp_path / "ours")) as writer:
        for name, value in values.items():
            writer.add(name, value)
        for start, length in ((0, 3), (3, 7)):
            part = checkpoint.TensorSlice.parse(f"{start},{length}:-")
            writer.add_slice("part", (10, 4), part, whole[start : start + length])
    for i in range(2):
        with checkpoint.BundleWriter(str(tmp_path / f"temp{i}")) as writer:
            writer.add(f"own{i}", np.array([i]))
            writer.add_slice("w", (4,), checkpoint.TensorSlice.parse(f"{2 * i},2"), np.full(2, i))
    checkpoint.merge_bundles([str(tmp_path / f"temp{i}") for i in range(2)], str(tmp_path / "merged"))
    rows = [
        checkpoint.SavedTensor(
            "w", (4,), checkpoint.TensorSlice.full(1), np.arange(4, dtype=np.float32), dtypes.float32
        ),
        checkpoint.SavedTensor("s", (3,), checkpoint.TensorSlice.full(1), strings, dtypes.string),
    ]
    checkpoint.write_slice_table(str(tmp_path / "v1ours"), rows)
    for kind in ("", "GZIP", "ZLIB"):
        with RecordWriter(str(tmp_path / f"records{kind}"), kind) as out:
            out.write(b"one")
            out.flush()
            out.write(b"two" * 100)

    theirs = ask_tensorflow(READ, str(tmp_path))

    for name, value in values.items():
        assert theirs[name][:2] == [dtypes.as_dtype(value.dtype).name, list(value.shape)], name
        assert theirs[name][2] == str(value.tolist()), name
    assert theirs["slice"] == whole[2:8, 1:3].tolist()
    assert theirs["whole"] == whole.tolist()
    assert theirs["merged"] == [[0], [1], [0, 0, 1, 1]]
    assert theirs["v1"] == [1, 2]
    assert theirs["v1s"] == str(strings.tolist())
    for kind in ("", "GZIP", "ZLIB"):
        assert theirs[f"records{kind}"] == ["one", "two" * 100]


#: Trains some steps in a MonitoredTrainingSession, or plainly with a Saver; prints where it ends.
TRAIN = """
import json, sys
import tensorflow as tf
tf1 = tf.compat.v1
target, folder, steps, resource, sharded = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1", sys.argv[5] == "1"
tf1.disable_eager_execution()
with tf.Graph().as_default():
    tf1.set_random_seed(7)
    w = tf1.get_variable("w", [5, 2], use_resource=resource, partitioner=tf1.fixed_size_partitioner(2))
    b = tf1.get_variable("b", initializer=tf.zeros([2]), use_resource=resource)
    words = tf1.get_variable("words", initializer=tf.constant(["a", "bc"]), use_resource=False, trainable=False)
    step = tf1.train.get_or_create_global_step()
    x = tf.reshape(tf.range(15, dtype=tf.float32), [3, 5]) / 15.0
    loss = tf.reduce_sum(tf.square(tf.matmul(x, tf.convert_to_tensor(w)) + b - 1.0))
    train = tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=step)
    scaffold = tf1.train.Scaffold(saver=tf1.train.Saver(sharded=sharded, max_to_keep=2))
    with tf1.train.MonitoredTrainingSession(
            target, checkpoint_dir=folder, scaffold=scaffold, save_checkpoint_steps=2, save_summaries_steps=None,
            log_step_count_steps=None, hooks=[tf1.train.StopAtStepHook(last_step=steps)]) as session:
        start = session.run(step)
        while not session.should_stop():
            at, value, b_value, _ = session.run([step, loss, b, train])
    with tf1.Session(target) as session:
        tf1.train.Saver().restore(session, tf1.train.latest_checkpoint(folder))
        final = session.run([step, b, words])
print(json.dumps({"start": int(start), "step": int(final[0]), "b": final[1].tolist(), "words": str(final[2].tolist())}))
"""


@pytest.mark.parametrize(
    "resource", [pytest.param("0", marks=pytest.mark.thorough), "1"], ids=["reference variables", "resource variables"]
)
def test_a_real_client_goes_on_with_a_new_server(
    ask_tensorflow: Callable[..., Any], tmp_path: Path, resource: str
) -> None:
    runs = []
    straight = [("b", "12")] if resource == "0" else []
    for folder, steps in (("a", "6"), ("a", "12"), *straight):
        with BackgroundServer(TaskServer({"local": {0: "127.0.0.1:0"}}, "local", 0)) as server:
            runs.append(ask_tensorflow(TRAIN, server.target, str(tmp_path / folder), steps, resource, resource))

    assert [(run["start"], run["step"]) for run in runs] == [(0, 6), (6, 12), (0, 12)][: len(runs)]
    assert runs[1]["words"] == "[b'a', b'bc']"
    assert runs[1]["b"] != runs[0]["b"]
    for run in runs[2:]:
        np.testing.assert_allclose(runs[1]["b"], run["b"], rtol=1e-5)
    assert not [p for p in (tmp_path / "a").iterdir() if "temp" in p.name]
