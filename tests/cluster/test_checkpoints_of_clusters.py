"""Checkpoints of variables on several parameter servers: sharded, gathered, elsewhere, on another number of tasks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold.train.shared_folders import check_shared_folder, tasks_that_save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenfold_services.background import BackgroundServer

Cluster = dict[tuple[str, int], "BackgroundServer"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three parameter servers, a worker."""
    with background_cluster({"ps": 3, "worker": 1}) as servers:
        yield servers


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


VALUES = {f"v{i}": np.arange(i + 1, dtype=np.float32) for i in range(5)}


def counting(shape: Any, dtype: Any = None, partition_info: Any = None) -> tf.Tensor:
    """0, 1, 2, … over all parts."""
    begin = 0 if partition_info is None else partition_info.var_offset[0]
    return tf.range(begin, begin + shape[0], dtype=dtype)


def variables(ps: int, filled: bool, container: str) -> list[tf.Variable]:
    """Round robin on so many parameter servers, each kind of variable."""
    with tf.container(container), tf.device(tf.train.replica_device_setter(ps_tasks=ps)):
        made = [
            tf.get_variable(
                name, initializer=value if filled else np.zeros_like(value), use_resource=bool(len(value) % 2)
            )
            for name, value in VALUES.items()
        ]
        how = counting if filled else tf.zeros_initializer()
        made.extend(tf.get_variable("big", [12], tf.int64, how, partitioner=tf.fixed_size_partitioner(ps)))
    return made


def values(sess: tf.Session, made: list[tf.Variable]) -> list[list[float]]:
    found = sess.run(made)
    return [value.tolist() for value in found[:5]] + [np.concatenate(found[5:]).tolist()]


EXPECTED = [value.tolist() for value in VALUES.values()] + [list(range(12))]


@pytest.mark.parametrize(
    "saving", ["gather", *(pytest.param(how, marks=pytest.mark.thorough) for how in ("sharded", "plain"))]
)
def test_what_two_tasks_saved_is_restored_on_three_and_on_one(cluster: Cluster, tmp_path: Path, saving: str) -> None:
    target = f"grpc://localhost:{cluster['worker', 0].port}"
    options = {} if saving == "plain" else {saving: True}
    made = variables(2, True, f"two {saving}")
    saver = tf.train.Saver(made, **options)
    with tf.Session(target) as sess:
        sess.run([each.initializer for each in made])
        prefix = saver.save(sess, str(tmp_path / "model"), global_step=3)
    assert tf.train.latest_checkpoint(str(tmp_path)) == prefix == str(tmp_path / "model-3")
    assert sum(".data-" in name for name in os.listdir(tmp_path)) == (1 if saving == "plain" else 2)
    for ps in (3, 1):
        for other in ({}, {"sharded": True}, {"gather": True}):
            with tf.Graph().as_default():
                made = variables(ps, False, f"{ps} {saving} {sorted(other)}")
                saver = tf.train.Saver(made, **other)
                with tf.Session(target) as sess:
                    saver.restore(sess, prefix)
                    assert values(sess, made) == EXPECTED


def test_gathered_and_sharded_checkpoints_are_the_same_files(cluster: Cluster, tmp_path: Path) -> None:
    made = variables(2, True, "same")
    savers = {name: tf.train.Saver(made, **{name: True}) for name in ("sharded", "gather")}
    with tf.Session(f"grpc://localhost:{cluster['worker', 0].port}") as sess:
        sess.run([each.initializer for each in made])
        for name, saver in savers.items():
            (tmp_path / name).mkdir()
            saver.save(sess, str(tmp_path / name / "model"), write_meta_graph=False, write_state=False)
    names = sorted(os.listdir(tmp_path / "sharded"))

    assert names == sorted(os.listdir(tmp_path / "gather"))
    for name in names:
        assert (tmp_path / "sharded" / name).read_bytes() == (tmp_path / "gather" / name).read_bytes()


def test_gathered_files_are_written_by_the_sessions_own_task(graph: tf.Graph) -> None:
    made = variables(2, True, "own")
    with tf.device("/job:ps/task:1"):
        saver = tf.train.Saver(made, gather=True)
        sharded = tf.train.Saver(made, sharded=True)

    assert saver.saver_def is not None
    assert tasks_that_save(graph, saver.saver_def) == [""]
    assert tasks_that_save(graph, sharded.saver_def) == ["/job:ps/task:0", "/job:ps/task:1"]
    with pytest.raises(ValueError, match="gather=True needs write_version"):
        tf.train.Saver(made, gather=True, write_version=tf.train.SaverDef.V1)


def test_a_shared_folder_passes_and_keeps_no_probe(cluster: Cluster, tmp_path: Path, graph: tf.Graph) -> None:
    saver = tf.train.Saver(variables(2, True, "probed"), sharded=True)
    with tf.Session(f"grpc://localhost:{cluster['worker', 0].port}", graph=graph) as sess:
        check_shared_folder(sess, str(tmp_path / "made"), saver.saver_def)

    assert os.listdir(tmp_path / "made") == []


def test_a_sharded_checkpoint_elsewhere_has_the_same_bytes(cluster: Cluster, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (pip install -e '.[dev]')")
    made = variables(2, True, "elsewhere")
    saver = tf.train.Saver(made, sharded=True)
    folder = "memory://sharded"
    with tf.Session(f"grpc://localhost:{cluster['worker', 0].port}") as sess:
        sess.run([each.initializer for each in made])
        saver.save(sess, str(tmp_path / "model"), write_state=False)
        prefix = saver.save(sess, f"{folder}/model")
    store = fsspec.filesystem("memory").store
    found = {name.rpartition("/")[2]: store[name].getvalue() for name in store if name.startswith("/sharded/")}
    state = found.pop("checkpoint").decode()

    assert found == {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    assert state == 'model_checkpoint_path: "model"\nall_model_checkpoint_paths: "model"\n'
    assert tf.train.latest_checkpoint(folder) == prefix == f"{folder}/model"
    with tf.Graph().as_default():
        made = variables(3, False, "restored")
        with tf.Session(f"grpc://localhost:{cluster['worker', 0].port}") as sess:
            tf.train.Saver(made, sharded=True).restore(sess, prefix)
            assert values(sess, made) == EXPECTED
    tf.gfile.DeleteRecursively(folder)
