"""The three lines of docs/storage.md train on a cluster, with S3 at the end of the URL."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.task_processes import CLI

if TYPE_CHECKING:
    from support.s3 import S3Server

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "storage.md"

TRAINER = """
import json, os
import tenfold as tf

tf.flags.DEFINE_string("train_dir", None, "for checkpoints and summaries")
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]


def main(_):
    server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return
    place = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(cluster=config["cluster"], worker_device=place)):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=tf.ones([4]))
        b = tf.get_variable("b", initializer=tf.ones([2]))
        train = tf.group(w.assign_add(tf.ones([4])), b.assign_add(tf.ones([2])), step.assign_add(1))
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(sharded=True))
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief=index == 0, checkpoint_dir=tf.flags.FLAGS.train_dir, scaffold=scaffold,
        save_checkpoint_steps=5, hooks=[tf.train.StopAtStepHook(last_step=20)],
    ) as session:
        while not session.should_stop():
            session.run(train)


tf.app.run()
"""


def test_the_three_lines(store: S3Server, tmp_path: Path) -> None:
    block = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    install, export, run = block[1].strip().splitlines()
    assert install == "pip install 'tenfold[s3]'"
    (tmp_path / "train.py").write_text(TRAINER)
    words = shlex.split(export)
    assert words.pop(0) == "export"
    environment = {**os.environ, **dict(word.split("=", 1) for word in words)}

    program = shlex.split(run)
    assert program.pop(0) == "tenfold"
    done = subprocess.run(
        [sys.executable, *CLI, *program],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    folder = program[-1].partition("=")[2]
    assert tf.train.load_variable(folder, "global_step") >= 20
    prefix = tf.train.latest_checkpoint(folder)
    assert prefix is not None
    assert sum(".data-" in key for key in store.objects() if key.startswith(prefix.removeprefix("s3://training/"))) == 2
    assert any("tfevents" in key for key in store.objects())
    assert not [key for key in store.objects() if "probe" in key]
