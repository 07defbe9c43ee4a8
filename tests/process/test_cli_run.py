"""`tenfold run`: a program becomes every task of a cluster, and its end is the command's end."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.task_processes import CLI, PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

#: A trainer in the form of TensorFlow's guide; imports `tensorflow`.
GUIDE = """
import argparse, sys
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import errors

def main(rest):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return
    setter = tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)
    with tf.device(setter):
        places = [tf.Variable(float(i), name="v%d" % i) for i in range(2)]
    with tf.device("/job:ps/task:0"):
        said = tf.FIFOQueue(1, tf.int32, shapes=[()], shared_name="said")
        say, hear = said.enqueue(1), said.dequeue()
    assert isinstance(tf.get_default_graph().as_graph_def(), graph_pb2.GraphDef)
    assert errors.OpError is tf.errors.OpError and tf.compat.v1.Session is tf.Session
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        print("sum", session.run(sum(places)), [v.device for v in places], rest[1:])
        session.run(say if FLAGS.task_index == 0 else hear)  # a failure stops the others: only when they have said it
    sys.exit(FLAGS.fail if FLAGS.task_index == 1 else 0)

parser = argparse.ArgumentParser()
for name in ("ps_hosts", "worker_hosts", "job_name"):
    parser.add_argument("--" + name, type=str, default="")
parser.add_argument("--task_index", type=int, default=0)
parser.add_argument("--fail", type=int, default=0)
FLAGS, unparsed = parser.parse_known_args()
tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
"""

#: Says who it is by TF_CONFIG alone, and needs no server.
TELLS = """
import json, os, sys
config = json.loads(os.environ["TF_CONFIG"])
if config["task"]["type"] == "ps":
    sys.exit(0)
print(json.dumps({"task": config["task"], "jobs": {j: len(a) for j, a in config["cluster"].items()}, "argv": sys.argv}))
"""

#: Fails as long as a file is not there, which it makes.
FAILS_ONCE = """
import os, sys
if os.path.exists(sys.argv[1]):
    print("second life")
else:
    open(sys.argv[1], "w").close()
    sys.exit(5)
"""


def _run(folder: Path, text: str, *options: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(text)
    return subprocess.run(
        [sys.executable, *CLI, "run", *options, str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.thorough
def test_the_guides_trainer_runs_as_written_and_its_failure_is_ours(tmp_path: Path) -> None:
    done = _run(
        tmp_path,
        GUIDE,
        "--ps",
        "2",
        "--guide-flags",
        "--as-tensorflow",
        arguments=("--fail=7", "more"),
    )
    assert done.returncode == 7, done.stdout + done.stderr
    for worker in ("worker/0", "worker/1"):
        assert f"{worker:9}| sum 1.0 ['/job:ps/task:0', '/job:ps/task:1'] ['more']" in done.stdout
    assert "worker/1 ended with exit code 7" in done.stderr


def test_tf_config_tells_each_task_who_it_is(tmp_path: Path) -> None:
    done = _run(tmp_path, TELLS, "--workers", "2", "--chief", arguments=("--flag", "value"))
    assert done.returncode == 0, done.stderr
    told = [json.loads(line.partition("| ")[2]) for line in done.stdout.splitlines()]
    assert sorted((each["task"]["type"], each["task"]["index"]) for each in told) == [
        ("chief", 0),
        ("worker", 0),
        ("worker", 1),
    ]
    for each in told:
        assert each["jobs"] == {"ps": 1, "chief": 1, "worker": 2}
        assert each["argv"][1:] == ["--flag", "value"]


def test_a_task_that_fails_is_started_again_when_allowed(tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    done = _run(tmp_path, FAILS_ONCE, "--ps", "0", "--workers", "1", "--restarts", "1", arguments=(mark,))
    assert (done.returncode, done.stdout) == (0, "worker/0 | second life\n"), done.stderr
    assert "Starting worker/0 again; 0 more restarts allowed." in done.stderr


def test_a_run_without_workers_is_a_usage_error(tmp_path: Path) -> None:
    done = _run(tmp_path, TELLS, "--workers", "0")
    assert done.returncode == 2
    assert "there is nobody to end the run" in done.stderr


@pytest.mark.parametrize("job", ["ps", pytest.param("worker", marks=pytest.mark.thorough)])
def test_the_first_failure_decides(job: str, tmp_path: Path) -> None:
    text = (
        "import json, os, sys, threading\n"
        f"if json.loads(os.environ['TF_CONFIG'])['task'] == {{'type': {job!r}, 'index': 0}}: sys.exit(9)\n"
        "threading.Event().wait()\n"
    )
    assert _run(tmp_path, text, "--workers", "1").returncode == 9


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('raise ValueError("boom")', "ended with exit code 1: ValueError: boom"),
        ("import sys; sys.exit('no data')", "ended with exit code 1: SystemExit: no data"),
        pytest.param("raise SystemExit(3)", "ended with exit code 3", marks=pytest.mark.thorough),
    ],
)
def test_a_failure_under_as_tensorflow_is_the_programs_own(text: str, told: str, tmp_path: Path) -> None:
    done = _run(tmp_path, text, "--ps", "0", "--workers", "1", "--as-tensorflow")
    assert done.returncode == (3 if "3" in text else 1)
    assert told in done.stderr
    assert done.stdout.count("Traceback") == ("boom" in text), done.stdout


def test_a_program_that_wants_tensorflow_is_told_how_it_gets_it(tmp_path: Path) -> None:
    # also where TensorFlow is installed
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'tensorflow': raise ModuleNotFoundError(\"No module named 'tensorflow'\", name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import tensorflow.contrib.slim as slim\n"
    )
    done = _run(tmp_path, program, "--ps", "0", "--workers", "1")
    assert "ModuleNotFoundError: No module named 'tensorflow'. Start it with --as-tensorflow" in done.stderr
