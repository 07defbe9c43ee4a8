"""The programs of TensorFlow's guide, as written (guide/*.py, with `import tensorflow as tf`), run on Tenfold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.ports import free_ports
from support.task_processes import CLI, PATIENCE

GUIDE = Path(__file__).with_name("guide")


def program(name: str, *arguments: str) -> list[str]:
    """What the program prints. It must end well."""
    done = subprocess.run(
        [sys.executable, "-m", "tenfold.cli.run_as_tensorflow", str(GUIDE / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def cluster_run(name: str, *arguments: str) -> list[str]:
    """What the tasks of a parameter server and two workers print, each with its name. All of them must end well."""
    done = subprocess.run(
        [
            *(sys.executable, *CLI, "run", "--ps", "1", "--workers", "2", "--guide-flags", "--as-tensorflow"),
            *(str(GUIDE / f"{name}.py"), *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(" ".join(line.split()) for line in done.stdout.splitlines())


def test_hello() -> None:
    assert program("hello") == ["b'Hello, distributed TensorFlow!'"]


def test_hello_with_its_import_line_changed(tmp_path: Path) -> None:
    text = (GUIDE / "hello.py").read_text()
    changed = tmp_path / "hello.py"
    changed.write_text(text.replace("import tensorflow as tf", "import tenfold as tf"))
    done = subprocess.run([sys.executable, str(changed)], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "b'Hello, distributed TensorFlow!'\n"


def test_devices_that_are_there_and_that_are_not() -> None:
    assert program("devices") == [
        "product [[11.]]",
        "refused Cannot place 'on_gpu' on /device:GPU:0: the tasks of this cluster have CPU:0 only.",
        "soft 2.0",
    ]


def test_what_a_cluster_spec_tells() -> None:
    workers = ["w0.example.com:2222", "w1.example.com:2222"]
    ps = ["ps0.example.com:2222"]
    assert program("cluster_spec") == [
        "['ps', 'worker'] 2 [0, 1] w1.example.com:2222",
        f"{workers} {[None, workers[1]]}",
        f"{ {'ps': ps, 'worker': workers} } { {'worker': {1: workers[1]}, 'ps': ps} }",
        f"{[('ps', {0: ps[0]}), ('worker', {1: workers[1]})]}",
        "True False True",
        "ValueError No such job in cluster: 'chief'; its jobs are ['ps', 'worker']",
        "ValueError No task with index 3 in job 'ps'; its tasks are [0]",
    ]


def test_a_notebook_with_summaries(tmp_path: Path) -> None:
    assert program("notebook", str(tmp_path)) == [
        "learned True True",
        "events 60 ['loss/logits', 'loss/loss'] True",
    ]


def test_work_is_split_and_reduced_in_the_spelling_of_an_early_release() -> None:
    assert program("split_reduce", *map(str, free_ports(3))) == [
        "total 9900.0",
        f"traced {[f'/job:{task}/replica:0/task:{i}/device:CPU:0' for task, i in TRACED]}",
        "timeline True True",
    ]


#: Tasks that have a part in the split and reduced step.
TRACED = (("ps", 0), ("worker", 0), ("worker", 1))


@pytest.mark.parametrize(
    "saves", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["checkpoints", "nothing-saved"]
)
def test_both_workers_of_the_trainer_end_and_then_the_parameter_server(tmp_path: Path, saves: bool) -> None:
    """TensorFlow 2.21 leaves the second worker waiting for the first, and the parameter server for ever."""
    said = cluster_run("trainer", *([f"--log_dir={tmp_path}"] if saves else []))
    assert [line for line in said if "ended" in line] == [
        "ps/0 | parameter server has ended",
        "worker/0 | worker has ended, loss below 0.5: True",
        "worker/1 | worker has ended, loss below 0.5: True",
    ]


@pytest.mark.thorough
def test_the_trainer_with_a_supervisor(tmp_path: Path) -> None:
    assert cluster_run("supervised", f"--log_dir={tmp_path}") == [
        "ps/0 | parameter server has ended",
        "worker/0 | worker has ended at its last step: True",
        "worker/1 | worker has ended at its last step: True",
    ]
