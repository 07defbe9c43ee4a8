"""Files on S3, over HTTP: what programs, readers, datasets, summaries and checkpoints do there."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support import s3
from support.background_cluster import background_cluster
from tenfold_core import records, url_errors, url_streams
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.files import EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.s3 import S3Server

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240)]
FOLDER = "s3://training/run"


@pytest.fixture(autouse=True)
def graph(store: S3Server) -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def put(name: str, content: bytes) -> str:
    path = f"{FOLDER}/{name}"
    with tf.gfile.GFile(path, "wb") as out:
        out.write(content)
    return path


def test_files_and_folders(store: S3Server, tmp_path: Path) -> None:
    gfile = tf.gfile
    gfile.MakeDirs(f"{FOLDER}/sub")
    put("a.txt", b"one\ntwo\n")
    put("sub/b.txt", b"three")

    assert store.objects() == {"run/a.txt": b"one\ntwo\n", "run/sub/b.txt": b"three"}
    assert gfile.GFile(f"{FOLDER}/a.txt").readlines() == ["one\n", "two\n"]
    assert gfile.Exists(f"{FOLDER}/a.txt")
    assert gfile.Exists(FOLDER)
    assert not gfile.Exists(f"{FOLDER}/c.txt")
    assert gfile.IsDirectory(f"{FOLDER}/sub")
    assert not gfile.IsDirectory(f"{FOLDER}/a.txt")
    assert gfile.ListDirectory(FOLDER) == ["a.txt", "sub"]
    assert gfile.Glob(f"{FOLDER}/*.txt") == [f"{FOLDER}/a.txt"]
    assert gfile.Glob(f"{FOLDER}/*/*.txt") == [f"{FOLDER}/sub/b.txt"]
    assert list(gfile.Walk(FOLDER)) == [(FOLDER, ["sub"], ["a.txt"]), (f"{FOLDER}/sub", [], ["b.txt"])]
    found = gfile.Stat(f"{FOLDER}/a.txt")
    assert (found.length, found.is_directory) == (8, False)
    assert found.mtime_nsec > 1_600_000_000_000_000_000
    with gfile.GFile(f"{FOLDER}/a.txt", "a") as out:
        out.write("three\n")
    gfile.Copy(f"{FOLDER}/a.txt", f"{FOLDER}/c.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.Copy(f"{FOLDER}/a.txt", f"{FOLDER}/c.txt")
    gfile.Rename(f"{FOLDER}/c.txt", f"{FOLDER}/d.txt")
    gfile.Rename(f"{FOLDER}/sub", f"{FOLDER}/moved")
    gfile.Copy(f"{FOLDER}/d.txt", str(tmp_path / "here"))
    assert (tmp_path / "here").read_text() == "one\ntwo\nthree\n"
    assert set(store.objects()) == {"run/a.txt", "run/d.txt", "run/moved/b.txt"}
    gfile.Remove(f"{FOLDER}/d.txt")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.Remove(f"{FOLDER}/d.txt")
    gfile.DeleteRecursively(FOLDER)
    assert store.objects() == {}
    with pytest.raises(tf.errors.PermissionDeniedError, match="whole bucket"):
        gfile.DeleteRecursively("s3://training")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.ListDirectory(FOLDER)


def test_a_large_file_goes_and_comes_in_parts(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_streams, "PART", 5 << 20)
    content = np.random.default_rng(0).bytes(17 << 20)
    with AtomicFile(f"{FOLDER}/large") as out:
        for at in range(0, len(content), 1 << 20):
            out.write(content[at : at + (1 << 20)])
        assert store.objects() == {}
    assert store.objects() == {"run/large": content}
    assert store.uploads() == 0
    with EVERYWHERE.open_to_read(f"{FOLDER}/large") as file:
        assert file.read(10) == content[:10]
        file.seek(9 << 20)
        assert file.read(5 << 20) == content[9 << 20 : 14 << 20]
        file.seek(-3, 2)
        assert file.read() == content[-3:]
    file = AtomicFile(f"{FOLDER}/large")
    file.out.write(content[::-1])
    file.discard()
    assert store.objects() == {"run/large": content}
    assert store.uploads() == 0


def test_a_large_file_that_is_replaced_while_it_is_read_is_an_error(store: S3Server) -> None:
    path = put("f", bytes(12 << 20))
    with EVERYWHERE.open_to_read(path) as file:
        file.read(10)
        put("f", b"\1" * (12 << 20))
        file.seek(11 << 20)
        with pytest.raises(OSError, match=r"replaced|pre-conditions|Precondition"):
            file.read(1 << 20)


def test_readers_datasets_and_writers(store: S3Server) -> None:
    with tf.python_io.TFRecordWriter(f"{FOLDER}/a.tfrecord") as out:
        for i in range(10):
            out.write(f"record {i}".encode())
    put("lines.txt", b"one\ntwo\nthree\n")
    put("fixed", b"aabbcc")
    assert list(tf.python_io.tf_record_iterator(f"{FOLDER}/a.tfrecord")) == [f"record {i}".encode() for i in range(10)]
    datasets = {
        "records": tf.data.TFRecordDataset(tf.data.Dataset.list_files(f"{FOLDER}/*.tfrecord")),
        "lines": tf.data.TextLineDataset([f"{FOLDER}/lines.txt"]),
        "fixed": tf.data.FixedLengthRecordDataset([f"{FOLDER}/fixed"], 2),
    }
    elements = {name: tf.data.make_one_shot_iterator(each).get_next() for name, each in datasets.items()}
    queue = tf.train.string_input_producer([f"{FOLDER}/lines.txt"], num_epochs=1, shuffle=False)
    key, value = tf.TextLineReader().read(queue)
    _, whole = tf.WholeFileReader().read(tf.train.string_input_producer([f"{FOLDER}/fixed"], shuffle=False))
    written = tf.write_file(f"{FOLDER}/new/w", "written")
    matched = tf.matching_files(f"{FOLDER}/*.txt")
    table = tf.contrib.lookup.index_table_from_file(f"{FOLDER}/lines.txt")
    looked_up = table.lookup(tf.constant(["two", "four"]))
    with tf.train.MonitoredSession() as sess:
        assert sess.run(elements["records"]) == b"record 0"
        assert sess.run(elements["lines"]) == b"one"
        assert sess.run(elements["fixed"]) == b"aa"
        assert [sess.run([key, value]) for _ in range(2)] == [
            [f"{FOLDER}/lines.txt:1".encode(), b"one"],
            [f"{FOLDER}/lines.txt:2".encode(), b"two"],
        ]
        assert sess.run(whole) == b"aabbcc"
        sess.run(written)
        assert sess.run(matched).tolist() == [f"{FOLDER}/lines.txt".encode()]
        assert sess.run(looked_up).tolist() == [1, -1]
    assert store.objects("run/new/") == {"run/new/w": b"written"}


def test_training_goes_on_from_a_checkpoint(store: S3Server) -> None:
    def train(last: int) -> float:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=[4.0, 4.0])
            tf.summary.scalar("loss", tf.reduce_sum(w))
            op = tf.train.GradientDescentOptimizer(0.25).minimize(tf.reduce_sum(tf.square(w)), global_step=step)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=FOLDER,
                save_checkpoint_steps=2,
                save_summaries_steps=1,
                hooks=[tf.train.StopAtStepHook(last_step=last)],
            ) as sess:
                while not sess.should_stop():
                    sess.run(op)
        return float(tf.train.load_variable(FOLDER, "w")[0])

    assert train(2) == 1.0
    assert train(4) == 0.25
    names = set(store.objects())
    assert {"run/checkpoint", "run/graph.pbtxt", "run/model.ckpt-4.meta", "run/model.ckpt-4.index"} <= names
    saver = tf.train.import_meta_graph(f"{FOLDER}/model.ckpt-4.meta")
    assert saver is not None
    with tf.Session() as sess:
        saver.restore(sess, tf.train.latest_checkpoint(FOLDER))
        assert sess.run("w:0").tolist() == [0.25, 0.25]
    assert any("tfevents" in name for name in names)
    assert store.objects()["run/checkpoint"].startswith(b'model_checkpoint_path: "model.ckpt-4"\n')


READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1]).Reload()
print(json.dumps([[event.step, event.value] for event in found.Scalars("loss")]))
"""


def test_tensorboard_reads_the_events(store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (pip install -e '.[dev]')")
    monkeypatch.setattr(records, "_MOST_RESENT", 400)
    writer = tf.summary.FileWriter(f"{FOLDER}/log")
    for step in range(20):
        value = tf.Summary.Value(tag="loss", simple_value=step / 2)
        writer.add_summary(tf.Summary(value=[value]), step)
        writer.flush()
    writer.close()
    found = store.objects("run/log/")
    assert len(found) > 1, "a file that is sent anew with each flush is followed by another"
    for key, content in found.items():
        (tmp_path / key.rpartition("/")[2]).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([[step, step / 2] for step in range(20)])


@pytest.mark.parametrize("options", [{}, {"sharded": True}, {"gather": True}])
def test_checkpoints_have_the_bytes_of_local_ones(store: S3Server, tmp_path: Path, options: dict[str, bool]) -> None:
    with background_cluster({"ps": 2, "worker": 1}) as servers:
        with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
            made = [
                tf.get_variable(f"v{i}", initializer=np.full(1000 * (i + 1), i, np.float32), use_resource=bool(i % 2))
                for i in range(5)
            ]
            words = tf.get_variable("words", initializer=[b"one", b"two"])
        saver = tf.train.Saver([*made, words], **options)
        with tf.Session(f"grpc://localhost:{servers['worker', 0].port}") as sess:
            sess.run(tf.global_variables_initializer())
            saver.save(sess, str(tmp_path / "model"), global_step=1, write_state=False)
            prefix = saver.save(sess, f"{FOLDER}/model", global_step=1)
            sess.run([each.assign(tf.zeros_like(each)) for each in made])
            saver.restore(sess, prefix)
            assert [value.mean() for value in sess.run(made)] == [0, 1, 2, 3, 4]
    found = {key.removeprefix("run/"): content for key, content in store.objects("run/").items()}
    assert found.pop("checkpoint")
    assert found == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_safetensors(store: S3Server) -> None:
    v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0], tf.bfloat16))
    with tf.Session() as sess:
        sess.run(v.initializer)
        tf.train.Saver().save(sess, f"{FOLDER}/model")
        tf.train.export_safetensors(FOLDER, f"{FOLDER}/w.safetensors")
        sess.run(v.assign(tf.zeros_like(v)))
        tf.train.restore_safetensors(sess, f"{FOLDER}/w.safetensors")
        assert sess.run(v).astype(np.float32).tolist() == [1, 2]


# -- what is said when it does not work --------------------------------------------------------------------------------


def test_no_such_bucket() -> None:
    v = tf.get_variable("v", initializer=1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.NotFoundError, match=r"s3://nobody/model\S*; The specified bucket does not exist"):
            tf.train.Saver().save(sess, "s3://nobody/model")
    with pytest.raises(tf.errors.NotFoundError, match="s3://nobody/x"):
        tf.gfile.GFile("s3://nobody/x").read()
    assert not tf.gfile.Exists("s3://nobody/x")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with s3.forgotten_file_systems():
        for call in (tf.gfile.Exists, tf.gfile.Stat, tf.train.latest_checkpoint):
            with pytest.raises(tf.errors.PermissionDeniedError, match=r"no credentials.*AWS_ACCESS_KEY_ID"):
                call(FOLDER)


def test_a_store_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(url_errors, "DEADLINE", 0.5)
    with (
        s3.forgotten_file_systems(),
        pytest.raises(tf.errors.UnavailableError, match=r"s3://training/run/checkpoint; Could not connect to the"),
    ):
        tf.train.latest_checkpoint(FOLDER)


def test_a_busy_store_is_asked_again(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from s3fs import S3FileSystem

    plain: Any = S3FileSystem._call_s3
    refusals = [OSError(16, "SlowDown"), TimeoutError(), OSError(16, "SlowDown")]

    async def busy(self: Any, method: str, *arguments: Any, **more: Any) -> Any:
        if method == "put_object" and refusals:
            raise refusals.pop()
        return await plain(self, method, *arguments, **more)

    monkeypatch.setattr(S3FileSystem, "_call_s3", busy)
    put("f", b"there")

    assert store.objects() == {"run/f": b"there"}
    assert refusals == []
