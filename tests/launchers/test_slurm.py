"""Runs as steps of a Slurm job, with real daemons."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.left_over import left_over
from tenfold.launchers import LaunchRefusedError, Resources
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.slurm import SlurmLauncher

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
    from pathlib import Path

    from support.gates import Gate
    from support.slurm_cluster import SlurmCluster


pytestmark = pytest.mark.thorough


@pytest.mark.usefixtures("slurm")
class TestSlurm(LauncherConformance):
    name = "slurm"


def request_of(folder: Path, **options: str) -> LaunchRequest:
    return LaunchRequest("test", {"ps": 1, "worker": 2}, str(folder), options=options)


def test_the_nodes_are_given_back(slurm: SlurmCluster, tmp_path: Path) -> None:
    with SlurmLauncher().open(request_of(tmp_path), Lines()) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        inside = slurm.jobs()
    assert [job.split()[1] for job in inside] == ["RUNNING"]
    assert not [job for job in slurm.jobs() if "COMPLETING" not in job]


def test_a_partition_that_there_is_not_is_refused_in_slurms_words(slurm: SlurmCluster, tmp_path: Path) -> None:
    processes = SlurmLauncher().open(request_of(tmp_path, partition="night"), Lines())
    with pytest.raises(LaunchRefusedError, match=r"^Slurm gives no nodes: .*Invalid partition name.*$"), processes:
        pass


def test_more_than_there_is_is_refused(slurm: SlurmCluster, tmp_path: Path) -> None:
    resources = {"worker": Resources(memory=1 << 45)}
    request = LaunchRequest("test", {"worker": 2}, str(tmp_path), resources=resources)
    processes = SlurmLauncher().open(request, Lines())
    with pytest.raises(LaunchRefusedError, match=r"^Slurm gives no nodes: .+$"), processes:
        pass


def rendered(folder: Path, *arguments: str) -> Path:
    """The job script that `tenfold render slurm ARGUMENTS…` writes."""
    done = subprocess.run(
        [sys.executable, "-m", "tenfold.cli", "render", "slurm", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    script = folder / "job.sh"
    script.write_text(done.stdout)
    return script


#: Comes to the gate after its first step, and trains until it is to stop.
_TRAINS = """
import os, socket, sys
import tenfold as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
    train = tf.train.get_or_create_global_step().assign_add(1)
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, checkpoint_dir=sys.argv[2]) as session:
    session.run(train)
    gate = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    gate.sendall(b"worker/0 1")
    while not session.should_stop():
        session.run(train)
"""

_SAYS = """
import os
print("in", os.environ["SLURM_JOB_ID"], os.environ.get("SLURM_CPUS_PER_TASK"), flush=True)
if os.environ["TENFOLD_TASK"].startswith("ps"):
    import sys; sys.stdin.read()
"""


def test_jobs_that_need_different_things_run_in_components_of_one_job(slurm: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text(_SAYS)
    script = rendered(tmp_path, "--cores", "ps=1,worker=2", "--workers", "2", "--wait", "--name", "het", "says.py")
    assert "#SBATCH hetjob" in script.read_text()

    job = slurm.run("sbatch", "--parsable", str(script)).strip()

    shown = (tmp_path / f"het-{job}.out").read_text()
    assert re.search(r"ps/0 +\| in \d+ 1", shown), shown
    assert len(re.findall(r"worker/\d +\| in \d+ 2", shown)) == 2, shown
    assert len(set(re.findall(r"\| in (\d+) ", shown))) >= 1
    assert [each for each in slurm.jobs() if "COMPLETING" not in each] == []


def test_an_allocation_has_components_too(slurm: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text(_SAYS)
    lines = Lines()
    request = LaunchRequest(
        "het", {"ps": 1, "worker": 1}, str(tmp_path), resources={"ps": Resources(cores=1), "worker": Resources(cores=2)}
    )
    with SlurmLauncher().open(request, lines) as processes:
        processes.addresses({"ps": 1, "worker": 1})
        for name in ("ps/0", "worker/0"):
            processes.start(name, ["says.py"], env={"TENFOLD_TASK": name})
        lines.wait_for("ps/0", r"^in \d+ 1$")
        lines.wait_for("worker/0", r"^in \d+ 2$")
    assert [each for each in slurm.jobs() if "COMPLETING" not in each] == []


def test_an_array_is_a_run_for_each_number(slurm: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text("import sys; print('rate', sys.argv[1])")
    arguments = ["--ps", "0", "--workers", "1", "--array", "1-3%2", "--wait", "--name", "sweep"]
    script = rendered(tmp_path, *arguments, "says.py", "--rate=0.$SLURM_ARRAY_TASK_ID")

    job = slurm.run("sbatch", "--parsable", str(script)).strip()

    for number in (1, 2, 3):
        assert f"rate --rate=0.{number}" in (tmp_path / f"sweep-{job}_{number}.out").read_text()


def test_a_sweep_is_an_array_with_a_run_for_each_setting(slurm: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text("import sys; print('given', *sys.argv[1:])")
    arguments = ["--ps", "0", "--workers", "1", "--param=lr=0.1,0.2", "--parallel=1", "--wait", "--name", "grid"]
    script = rendered(tmp_path, *arguments, "says.py", "rate {lr}")

    job = slurm.run("sbatch", "--parsable", str(script)).strip()

    for number, rate in enumerate(("0.1", "0.2")):
        assert f"given rate {rate}" in (tmp_path / f"grid-{job}_{number}.out").read_text()


def test_a_cancelled_job_leaves_nothing(slurm: SlurmCluster, gate: Gate, tmp_path: Path) -> None:
    text = (
        "import os, socket, subprocess, sys\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as gate:\n"
        "    gate.sendall(os.environ['TENFOLD_TASK'].encode())\n    gate.recv(1)\n"
    )
    (tmp_path / "program.py").write_text(text)
    script = rendered(tmp_path, "--workers", "2", "--name", "cancelled", "program.py", str(gate.port))
    job = slurm.run("sbatch", "--parsable", str(script)).strip()
    gate.wait_for("ps/0", "worker/0", "worker/1")

    slurm.run("scancel", job)

    slurm.run("srun", "--quiet", f"--dependency=afterany:{job}", "true")
    assert left_over(tmp_path) == []
    assert [each for each in slurm.jobs() if "COMPLETING" not in each] == []


def test_a_job_that_is_told_of_its_end_saves_and_ends_well(slurm: SlurmCluster, gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_TRAINS)
    saved = tmp_path / "saved"
    script = rendered(tmp_path, "--workers", "1", "--name", "told", "program.py", str(gate.port), str(saved))
    job = slurm.run("sbatch", "--parsable", str(script)).strip()
    gate.wait_for("worker/0 1")

    # as Slurm does at --signal's time
    slurm.run("scancel", "--batch", "--signal=TERM", job)

    slurm.run("srun", "--quiet", f"--dependency=afterok:{job}", "true")
    newest = tf.train.latest_checkpoint(str(saved))
    assert newest is not None
    assert int(newest.rpartition("-")[2]) > 0
    assert left_over(tmp_path) == []


def test_a_job_of_other_components_is_refused(slurm: SlurmCluster, tmp_path: Path) -> None:
    patch = {"SLURM_JOB_ID": "7", "SLURM_HET_SIZE": "3"}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in patch.items():
            environment.setenv(name, value)
        processes = SlurmLauncher().open(request_of(tmp_path), Lines())
        with pytest.raises(
            LaunchRefusedError, match=r"^Slurm: job 7 has 3 components, and the run the jobs ps, worker: "
        ):
            processes.__enter__()
