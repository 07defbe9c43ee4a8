"""Saver and meta graphs: what is saved, kept, restored and refused, and a graph that is built again from its file."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_protos import meta_graph_pb2, saver_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def kept(folder: Path) -> list[str]:
    return sorted({path.name.partition(".index")[0] for path in folder.glob("*.index")})


@pytest.mark.parametrize("sequentially", [False, True])
def test_a_sharded_saver_reads_small_variables_of_a_device_by_one_op(tmp_path: Path, sequentially: bool) -> None:
    """And large ones each by their own."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/cpu:0"):
            small = [tf.get_variable(f"small_{i}", [i, 3], use_resource=bool(i % 2)) for i in range(6)]
            large = [tf.get_variable(f"large_{i}", [1 << 20, 4], initializer=tf.ones_initializer()) for i in range(2)]
        saver = tf.train.Saver(sharded=True, restore_sequentially=sequentially)
        init, values = tf.global_variables_initializer(), [tf.identity(each) for each in [*small, *large]]
    with tf.Session(graph=graph) as session:
        session.run(init)
        before = session.run(values)
        path = saver.save(session, str(tmp_path / "model"))

    with tf.Session(graph=graph) as session:
        saver.restore(session, path)
        after = session.run(values)

    counts = sorted(len(op.outputs) for op in graph.get_operations() if op.type == "RestoreV2")
    assert counts == ([1] * 8 if sequentially else [1, 1, 6])
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_values_of_many_types_come_back(tmp_path: Path, sharded: bool, resource: bool) -> None:
    values = {
        "floats": np.array([[1.5, -2.0]], np.float32),
        "doubles": np.float64(3.25),
        "ints": np.arange(5, dtype=np.int64),
        "flags": np.array([True, False]),
        "words": np.array([b"one", b""], object),
        "none": np.zeros((0, 3), np.float32),
    }
    variables = {name: tf.Variable(value, name=name, use_resource=resource) for name, value in values.items()}
    saver = tf.train.Saver(sharded=sharded)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"), global_step=7)
    assert path == f"{tmp_path}/model-7"
    with tf.Session() as session:
        saver.restore(session, path)
        for name, variable in variables.items():
            np.testing.assert_array_equal(session.run(variable), values[name])


def test_a_checkpoint_whose_files_are_gone_is_not_blamed_on_a_name(tmp_path: Path) -> None:
    tf.Variable(1.0, name="one")
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        for file in tmp_path.glob("*.data*"):
            file.unlink()
        with pytest.raises(tf.errors.NotFoundError, match="model are gone, at least in part: they were") as caught:
            saver.restore(session, path)
    assert "Variable name" not in str(caught.value)


def test_only_what_is_named_under_the_names_given(tmp_path: Path) -> None:
    one, two = tf.Variable(1.0, name="one"), tf.Variable(2.0, name="two")
    saver = tf.train.Saver({"uno": one})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        session.run([one.assign(5.0), two.assign(6.0)])
        saver.restore(session, path)
        assert session.run([one, two]) == [1.0, 6.0]
    assert [name for name, _ in tf.train.list_variables(path)] == ["uno"]
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match=r"(?s)Restoring from checkpoint.*two"):
        tf.train.Saver([two]).restore(session, path)


def test_the_newest_are_kept(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = [saver.save(session, str(tmp_path / "model"), global_step=step) for step in range(4)]
        assert saver.last_checkpoints == paths[2:]
        assert kept(tmp_path) == ["model-2", "model-3"]
        assert tf.train.latest_checkpoint(str(tmp_path)) == paths[3]
        # the next saver of the same folder goes on where this one was
        after = tf.train.Saver(max_to_keep=2)
        state = tf.train.get_checkpoint_state(str(tmp_path))
        after.recover_last_checkpoints(state.all_model_checkpoint_paths)
        after.save(session, str(tmp_path / "model"), global_step=4)
    assert kept(tmp_path) == ["model-3", "model-4"]
    assert not (tmp_path / "model-2.meta").exists()


def test_one_every_so_often_is_kept_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(5):
            saver.save(session, str(tmp_path / "model"), global_step=step)
            now[0] += 1900.0
    assert kept(tmp_path) == ["model-2", "model-4"]


def test_relative_paths_and_padded_steps(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(save_relative_paths=True, pad_step_number=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.save(session, str(tmp_path / "model"), global_step=3)
    assert 'model_checkpoint_path: "model-00000003"' in (tmp_path / "checkpoint").read_text()
    moved = tmp_path.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    assert tf.train.latest_checkpoint(str(moved)) == f"{moved}/model-00000003"


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    tf.Variable(np.arange(100, dtype=np.float32))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        data = next(tmp_path.glob("*.data-*"))
        damaged = bytearray(data.read_bytes())
        damaged[40] ^= 1
        data.write_bytes(damaged)
        with pytest.raises(tf.errors.DataLossError, match=r"[Cc]hecksum"):
            saver.restore(session, path)


def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    value = tf.Variable(1.0)
    with pytest.raises(ValueError, match="build cannot be deferred"):
        tf.train.Saver([value], defer_build=True)
    saver = tf.train.Saver(defer_build=True)
    with tf.Session() as session:
        session.run(value.initializer)
        with pytest.raises(RuntimeError, match=r"`build\(\)` should be called before save"):
            saver.save(session, str(tmp_path / "model"))
        saver.build()
        with pytest.raises(ValueError, match="must not contain path components"):
            saver.save(session, str(tmp_path / "model"), latest_filename="a/b")
        with pytest.raises(ValueError, match="collides with 'save_path'"):
            saver.save(session, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist"):
            saver.save(session, str(tmp_path / "none" / "deeper" / "model"))
        with pytest.raises(TypeError, match="'sess' must be a Session"):
            saver.save("session", str(tmp_path / "model"))
        with pytest.raises(ValueError, match="Can't load save_path when it is None"):
            saver.restore(session, None)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(session, str(tmp_path / "none"))
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


class _Held(tf.Session):
    """A session whose first step, once it is done, is kept from its caller until `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.ran, self.go, self.held = threading.Event(), threading.Event(), False

    def run(self, *args: Any, **keywords: Any) -> Any:
        result = super().run(*args, **keywords)
        if self.held and not self.ran.is_set():
            self.ran.set()
            assert self.go.wait(30)
        return result


def test_the_newest_is_the_one_that_was_begun_last(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver, path = tf.train.Saver(), str(tmp_path / "model")
    with _Held() as session:
        session.run(tf.global_variables_initializer())
        session.held = True
        threads = [threading.Thread(target=saver.save, args=(session, path, step)) for step in (1, 2)]
        threads[0].start()
        assert session.ran.wait(30)
        threads[1].start()
        # long enough for the second to be there first, if it did not wait
        threads[1].join(0.2)
        session.go.set()
        for thread in threads:
            thread.join(30)
    assert tf.train.latest_checkpoint(str(tmp_path)) == f"{path}-2"
    assert saver.last_checkpoints == [f"{path}-1", f"{path}-2"]


def test_empty_is_allowed_when_said(tmp_path: Path) -> None:
    saver = tf.train.Saver(allow_empty=True)
    with tf.Session() as session:
        tf.constant(1.0)
        assert saver.save(session, str(tmp_path / "model")) is None
        saver.restore(session, "whatever")
    assert kept(tmp_path) == []


def test_another_shape_only_with_reshape(tmp_path: Path) -> None:
    flat = tf.Variable(np.arange(6, dtype=np.float32), name="value")
    with tf.Session() as session:
        session.run(flat.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        square = tf.Variable(np.zeros((2, 3), np.float32), name="value")
        with pytest.raises(tf.errors.InvalidArgumentError, match="mismatch between the current graph"):
            tf.train.Saver().restore(session, path)
        tf.train.Saver(reshape=True).restore(session, path)
        assert session.run(square).tolist() == [[0, 1, 2], [3, 4, 5]]


class TestMetaGraph:
    def test_a_graph_is_built_again_with_its_collections(self, tmp_path: Path) -> None:
        value = tf.Variable(2.0, name="value")
        fed = tf.placeholder(tf.float32, (), name="fed")
        tf.add_to_collection("answers", tf.multiply(value, fed, name="answer"))
        tf.add_to_collection("names", b"text")
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(value.initializer)
            path = saver.save(session, str(tmp_path / "model"))
        with tf.Graph().as_default(), tf.Session() as session:
            again = tf.train.import_meta_graph(f"{path}.meta")
            again.restore(session, path)
            (answer,) = tf.get_collection("answers")
            assert session.run(answer, {"fed:0": 21.0}) == 42.0
            assert [variable.name for variable in tf.global_variables()] == ["value:0"]
            assert tf.get_collection("names") == [b"text"]

    def test_under_a_scope_and_without_devices(self, tmp_path: Path) -> None:
        with tf.device("/job:ps/task:0"):
            tf.Variable(3.0, name="value")
        file = str(tmp_path / "graph.meta")
        saver = tf.train.Saver()
        exported = saver.export_meta_graph(file, as_text=True)
        assert isinstance(exported, meta_graph_pb2.MetaGraphDef)
        with tf.Graph().as_default() as other, tf.Session() as session:
            again = tf.train.import_meta_graph(file, clear_devices=True, import_scope="inner")
            (variable,) = tf.global_variables()
            assert variable.name == "inner/value:0"
            assert variable.device == ""
            session.run(variable.initializer)
            assert again.save(session, str(tmp_path / "model"), write_meta_graph=False)
            assert session.run(variable) == 3.0
            assert other.get_operation_by_name("inner/value").device == ""

    def test_into_a_scope_that_is_open_or_named_with_its_slash(self) -> None:
        tf.Variable(3.0, name="value")
        exported = tf.train.export_meta_graph()
        with tf.Graph().as_default():
            tf.train.import_meta_graph(exported, import_scope="inner/")
            assert [variable.name for variable in tf.global_variables()] == ["inner/value:0"]

    def test_names_that_are_taken_are_made_unique(self) -> None:
        tf.add(tf.placeholder(tf.float32, (), name="fed"), 1.0, name="answer")
        exported = tf.train.export_meta_graph()
        with tf.Graph().as_default() as other, tf.Session() as session:
            for _ in range(2):
                tf.train.import_meta_graph(exported)
            assert session.run("answer_1:0", {"fed_1:0": 41.0}) == 42.0
            assert other.get_operation_by_name("answer").inputs[0].name == "fed:0"

    def test_a_device_function_moves_it_to_a_cluster(self) -> None:
        tf.Variable(3.0, name="value")
        exported = tf.train.export_meta_graph()
        with tf.Graph().as_default() as other:
            with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
                tf.train.import_meta_graph(exported)
            devices = {name: other.get_operation_by_name(name).device for name in ("value", "value/Assign")}
            assert devices == {"value": "/job:ps/task:0", "value/Assign": "/job:ps/task:0"}

    def test_without_variables_there_is_no_saver(self, tmp_path: Path) -> None:
        tf.constant(1.0, name="one")
        file = str(tmp_path / "graph.meta")
        tf.train.export_meta_graph(file)
        with tf.Graph().as_default() as other:
            assert tf.train.import_meta_graph(file) is None
            assert other.get_tensor_by_name("one:0") is not None
        with pytest.raises(OSError, match="nothing"):
            tf.train.import_meta_graph(str(tmp_path / "nothing"))

    def test_queue_runners_survive(self) -> None:
        queue = tf.FIFOQueue(1, tf.int32, shapes=(), name="queue")
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)]))
        exported = tf.train.export_meta_graph()
        with tf.Graph().as_default():
            tf.train.import_meta_graph(exported)
            (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
            assert runner.name == "queue"

    def test_a_saver_as_a_message(self) -> None:
        tf.Variable(1.0)
        definition = tf.train.Saver(max_to_keep=3, sharded=True).as_saver_def()
        assert (definition.max_to_keep, definition.sharded, definition.version) == (3, True, saver_pb2.SaverDef.V2)
        again = tf.train.Saver.from_proto(definition)
        assert again.to_proto() == definition
        assert again.to_proto(export_scope="elsewhere") is None
