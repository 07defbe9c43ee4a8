"""A checkpoint folder that the parameter servers do not share is found before anything is trained, and said by name.

The tasks run in folders of their own, and the checkpoint's folder is named relative to them: so each has another.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.ports import free_addresses
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A cluster of which worker 0 and ps 0 share this process's folder, and ps 1 does not."""
    places = {"ps/0": tmp_path / "shared", "worker/0": tmp_path / "shared", "ps/1": tmp_path / "apart"}
    free = free_addresses(3)
    cluster = {"ps": free[:2], "worker": free[2:]}
    with Children(echo=lambda name, line: None) as children:
        for name, place in places.items():
            place.mkdir(exist_ok=True)
            job, index = name.split("/")
            program = [*CLI, "task", "--job", job, "--index", index, "--cluster", json.dumps(cluster)]
            children.start(name, program, stage=1, cwd=str(place))
        for name in places:
            children.wait_for_line(name, "listening on grpc://", PATIENCE)
        monkeypatch.chdir(tmp_path / "shared")
        yield f"grpc://{free[2]}"


def trained(target: str, **options: bool) -> list[float]:
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=[1.0, 2.0])
            op = tf.group(v.assign_add([1.0, 1.0]), step.assign_add(1))
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(**options))
        with tf.train.MonitoredTrainingSession(
            target, checkpoint_dir="train", scaffold=scaffold, hooks=[tf.train.StopAtStepHook(last_step=2)]
        ) as sess:
            while not sess.should_stop():
                sess.run(op)
        found: list[float] = tf.train.load_variable("train", "v").tolist()
        return found


def test_a_folder_that_is_not_shared_is_named_with_the_task_and_gathering_helps(target: str, tmp_path: Path) -> None:
    with pytest.raises(tf.errors.FailedPreconditionError) as refused:
        trained(target, sharded=True)
    text = refused.value.message
    assert "The checkpoint folder train of this process" in text
    assert "/job:ps/task:1: " in text
    assert "/job:ps/task:0: " not in text
    assert "Saver(gather=True)" in text
    assert [name for name in os.listdir(tmp_path / "shared" / "train") if "probe" in name] == []

    assert trained(target, gather=True) == [3.0, 4.0]
    assert not (tmp_path / "apart" / "train").exists()
