"""Input pipelines of TensorFlow 1.x over the wire: a real client's readers, queues and parsers on our server."""

# ruff: noqa: E501 (lines of the scripts)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCRIPT = """
import json, sys
import numpy as np
import tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_v2_behavior()
target, folder = sys.argv[1], sys.argv[2]
for i in range(3):
    with open(folder + "/%d.csv" % i, "w") as out:
        out.write("a,b\\n" + "".join("%d,%.1f\\n" % (10 * i + k, k / 2) for k in range(4)))
    with tf.io.TFRecordWriter(folder + "/%d.tfrecords" % i) as out:
        for k in range(4):
            feature = {"label": tf.train.Feature(int64_list=tf.train.Int64List(value=[10 * i + k])),
                       "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([k] * 4)]))}
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())

def run_all(fetch):
    found = []
    with tf1.Session(target) as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append([v.tolist() for v in session.run(fetch)])
        except tf.errors.OutOfRangeError as error:
            last = error.message
        coordinator.request_stop()
        coordinator.join(threads)
    return found, last

out = {}
with tf.Graph().as_default():
    names = tf1.train.string_input_producer([folder + "/%d.csv" % i for i in range(3)], num_epochs=1, shuffle=False)
    reader = tf1.TextLineReader(skip_header_lines=1)
    key, line = reader.read(names)
    number, half = tf1.decode_csv(line, [[0], [0.0]])
    batch = tf1.train.shuffle_batch([number, half], 4, 20, 4, num_threads=2, allow_smaller_final_batch=True)
    batches, out["csv end"] = run_all(batch)
    out["csv"] = sorted((int(n), h) for b in batches for n, h in zip(*b))
with tf.Graph().as_default():
    names = tf1.train.string_input_producer([folder + "/%d.tfrecords" % i for i in range(3)], num_epochs=1, shuffle=False)
    _, record = tf1.TFRecordReader().read(names)
    features = tf1.parse_single_example(record, {"label": tf1.FixedLenFeature([], tf.int64), "image": tf1.FixedLenFeature([], tf.string)})
    image = tf.reshape(tf1.decode_raw(features["image"], tf.uint8), [4])
    batches, out["records end"] = run_all(tf1.train.batch([features["label"], image], 6, allow_smaller_final_batch=True))
    out["records"] = sorted((int(n), im) for b in batches for n, im in zip(*b))
with tf.Graph().as_default(), tf1.Session(target) as session:
    queue = tf1.FIFOQueue(10, tf.string, shapes=[[]])
    reader = tf1.WholeFileReader()
    _, value = reader.read_up_to(queue, 5)
    session.run(queue.enqueue_many([[folder + "/0.csv", folder + "/nothing"]]))
    out["whole"] = [v.decode() for v in session.run(value)]
    out["counts"] = [int(v) for v in session.run([reader.num_records_produced(), reader.num_work_units_completed()])]
    try:
        session.run(value)
    except tf.errors.NotFoundError as error:
        out["missing"] = [error.message, error.op.name]
    session.run(queue.close())
    try:
        session.run(value)
    except tf.errors.OutOfRangeError as error:
        out["closed"] = error.message
    session.run(reader.reset())
    files = session.run(tf1.matching_files(folder + "/*.csv"))
    out["files"] = [f.decode().rsplit("/", 1)[-1] for f in files]
    hashes = session.run([tf1.string_to_hash_bucket_fast(["a", "bc"], 1000), tf.strings.to_hash_bucket_strong(["a"], 1000, [1, 2])])
    out["hashes"] = [h.tolist() for h in hashes]
with tf.Graph().as_default(), tf1.Session() as session:
    hashes = session.run([tf1.string_to_hash_bucket_fast(["a", "bc"], 1000), tf.strings.to_hash_bucket_strong(["a"], 1000, [1, 2])])
    out["hashes of TensorFlow"] = [h.tolist() for h in hashes]
print(json.dumps(out))
"""


def test_pipelines(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> None:
    with BackgroundServer(TaskServer({"local": {0: "127.0.0.1:0"}}, "local", 0)) as server:
        found = ask_tensorflow(SCRIPT, server.target, str(tmp_path))

    assert found["csv"] == [[10 * i + k, k / 2] for i in range(3) for k in range(4)]
    assert found["records"] == [[10 * i + k, [k] * 4] for i in range(3) for k in range(4)]
    assert "is closed and has insufficient elements" in found["csv end"]
    assert "is closed and has insufficient elements" in found["records end"]
    assert found["whole"] == ["a,b\n" + "".join(f"{k},{k / 2:.1f}\n" for k in range(4))]
    assert found["counts"] == [1, 1]
    assert "nothing; No such file or directory" in found["missing"][0]
    assert "is closed and has insufficient elements" in found["closed"]
    assert found["files"] == ["0.csv", "1.csv", "2.csv"]
    assert found["hashes"] == found["hashes of TensorFlow"]
