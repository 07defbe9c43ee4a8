"""`tenfold run --on …`: the same programs on each engine, and one that loses a host and goes on from its checkpoint."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from support.left_over import left_over
from support.run_programs import Service
from support.slurm_cluster import SLURM_PATIENCE
from support.task_processes import PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.gates import Gate
    from support.kube.cluster import KubeCluster
    from support.slurm_cluster import SlurmCluster
    from support.sshd import SshHosts

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_TENFOLD = [sys.executable, "-m", "tenfold.cli"]

#: Trains to step 40, and saves each 5 steps; in its first attempt worker 0 stops at step 20, and at step 30,
#: until it is told to go on.
TRAINER = """
import os, socket, sys
import tenfold as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster, job, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies([tf.get_variable("w", initializer=0.0).assign_add(1.0)]):
        train = step.assign_add(1)
hooks = [tf.train.StopAtStepHook(last_step=40)]
first = os.environ["TENFOLD_ATTEMPT"] == "1"
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=index == 0, checkpoint_dir=sys.argv[1], hooks=hooks, save_checkpoint_steps=5
) as session:
    print("begins at", session.run(step), flush=True)
    while not session.should_stop():
        if index:
            now = session.run(step)
        else:
            now = session.run(train)
            if now in (20, 30) and first:
                with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as gate:
                    gate.sendall(b"worker/0 1")
                    gate.recv(16)
print("ends", flush=True)
"""

#: Trains as TensorFlow's guide has it; worker 0 stops at step 20 where nothing was saved before, until it is told
#: to go on.
FLAGS_TRAINER = """
import argparse, socket
import tensorflow as tf

parser = argparse.ArgumentParser()
for name in ("ps_hosts", "worker_hosts", "job_name", "log_dir"):
    parser.add_argument("--" + name)
for name in ("task_index", "gate"):
    parser.add_argument("--" + name, type=int)
FLAGS = parser.parse_args()
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
first = tf.train.latest_checkpoint(FLAGS.log_dir) is None
with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    loss = tf.square(tf.get_variable("w", initializer=3.0))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
hooks = [tf.train.StopAtStepHook(last_step=40)]
chief = FLAGS.task_index == 0
with tf.train.MonitoredTrainingSession(
    master=server.target, is_chief=chief, checkpoint_dir=FLAGS.log_dir, hooks=hooks, save_checkpoint_steps=5
) as session:
    print("begins at", session.run(step), flush=True)
    while not session.should_stop():
        if not chief:
            session.run(step)
        elif session.run([train, step])[1] == 20 and first:
            with socket.create_connection(("127.0.0.1", FLAGS.gate)) as gate:
                gate.sendall(b"worker/0 1")
                gate.recv(16)
print("ends", flush=True)
"""


_ENGINES = ("ssh", "slurm", "ray", "kubernetes")


@pytest.fixture(params=["local", *_ENGINES])
def engine(request: pytest.FixtureRequest) -> list[str]:
    """What `tenfold run` is given for each engine."""
    on = ["--on", request.param]
    if request.param == "ssh":
        hosts: SshHosts = request.getfixturevalue("hosts")
        return [*on, "-o", "hosts=n[1-3]", "-o", f"config={hosts.config}"]
    if request.param == "slurm":
        request.getfixturevalue("slurm")
    if request.param == "ray":
        cluster: Any = request.getfixturevalue("ray_cluster")
        return [*on, "-o", f"address={cluster.address}"]
    if request.param == "kubernetes":
        options: dict[str, str] = request.getfixturevalue("kube_options")
        return [*on, *(f"-o{name}={value}" for name, value in options.items())]
    return on


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*_TENFOLD, "run", *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.thorough
def test_a_program_with_tf_config_trains(engine: list[str], tmp_path: Path) -> None:
    program = str(_EXAMPLES / "between_graph.py")
    shown = run(tmp_path, *engine, "--ps", "1", "--workers", "2", program, "--steps", "60")
    assert len(re.findall(r"worker [01]: global step 6\d, loss 0\.\d+", shown)) == 2, shown


@pytest.mark.thorough
def test_a_program_with_flags_trains(engine: list[str], tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(
        "import argparse\nimport tensorflow as tf\np = argparse.ArgumentParser()\n"
        "for name in ('ps_hosts', 'worker_hosts', 'job_name'): p.add_argument('--' + name)\n"
        "p.add_argument('--task_index', type=int)\nF = p.parse_args()\n"
        "cluster = tf.train.ClusterSpec({'ps': F.ps_hosts.split(','), 'worker': F.worker_hosts.split(',')})\n"
        "server = tf.train.Server(cluster, job_name=F.job_name, task_index=F.task_index)\n"
        "if F.job_name == 'ps':\n    server.join()\n"
        "with tf.device('/job:ps/task:0'):\n    v = tf.Variable(3.0)\n"
        "with tf.Session(server.target) as s:\n    s.run(v.initializer)\n    print('value', s.run(v * 2))\n"
    )
    shown = run(tmp_path, *engine, "--ps", "1", "--workers", "1", "--guide-flags", "--as-tensorflow", "trainer.py")
    assert "worker/0 | value 6.0" in shown.replace("worker/0  |", "worker/0 |"), shown


@pytest.mark.thorough
def test_a_task_that_is_killed_takes_the_run_back_to_its_checkpoint(
    engine: list[str], gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    command = ["run", *engine, "--restarts", "2", "--workers", "2", "trainer.py", str(tmp_path / "saved")]
    with running(tmp_path, *command, str(gate.port)) as process:
        gate.wait_for("worker/0 1")
        victim = next(pid for pid in programs(tmp_path) if task_of(pid) == "ps/0")
        os.kill(victim, signal.SIGKILL)
        if "local" in engine:  # where no host can be lost, the others wait for the one that is started again
            gate.tell("worker/0 1")
            gate.wait_for("worker/0 1")
            gate.tell("worker/0 1")
        shown, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, shown
    assert "Error: ps/0 was ended by SIGKILL" in shown, shown
    assert "begins at 0" in shown
    if "local" not in engine:
        assert re.search(r"begins at (15|20)", shown), shown
    assert shown.count("ends") >= 2
    assert left_over(tmp_path) == []


@pytest.mark.thorough
def test_a_program_with_flags_whose_chief_is_killed_goes_on(engine: list[str], gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(FLAGS_TRAINER)
    command = ["run", *engine, "--restarts", "2", "--workers", "2", "--guide-flags", "--as-tensorflow", "trainer.py"]
    with running(tmp_path, *command, f"--log_dir={tmp_path / 'saved'}", f"--gate={gate.port}") as process:
        gate.wait_for("worker/0 1")
        os.kill(next(pid for pid in programs(tmp_path) if task_of(pid) == "worker/0"), signal.SIGKILL)
        shown, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, shown
    assert "Error: worker/0 was ended by SIGKILL" in shown, shown
    assert re.search(r"begins at (15|2\d)", shown), shown
    assert shown.count("ends") >= 2
    assert left_over(tmp_path) == []


@pytest.mark.thorough
def test_the_digits_train_in_a_cluster_of_the_run_that_loses_a_worker(engine: list[str], tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    program = [str(_EXAMPLES / "digits.py"), "--steps", "1200"]
    shown = []
    with running(tmp_path, "run", *engine, "--restarts", "3", "--workers", "2", *program) as process:
        assert process.stdout is not None
        for line in process.stdout:
            shown.append(line)
            if "worker 1: step" in line and not any("SIGKILL" in each for each in shown):
                victim = next(pid for pid in programs(tmp_path, "digits.py") if task_of(pid) == "worker/1")
                os.kill(victim, signal.SIGKILL)
                break
        shown += process.communicate(timeout=PATIENCE)[0].splitlines(keepends=True)
    text = "".join(shown)
    assert process.returncode == 0, text
    assert "Error: worker/1 was ended by SIGKILL" in text, text
    accuracies = [float(found) for found in re.findall(r"accuracy (0\.\d+|1\.0+)", text)]
    assert len(accuracies) >= 2, text
    assert min(accuracies[-2:]) > 0.85
    assert left_over(tmp_path) == []


@pytest.mark.thorough
def test_a_host_that_is_lost_takes_the_run_back_to_its_checkpoint(hosts: SshHosts, gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    engine = ["--on", "ssh", "-o", "hosts=n[1-3]", "-o", f"config={hosts.config}"]
    command = ["run", *engine, "--restarts", "2", "--workers", "2", "trainer.py", str(tmp_path / "saved")]
    with running(tmp_path, *command, str(gate.port)) as process:
        gate.wait_for("worker/0 1")
        hosts.kill("n1")
        shown, _ = process.communicate(timeout=PATIENCE)
    hosts.start("n1")
    assert process.returncode == 0, shown
    assert "n1 is lost" in shown
    assert "n1 is left out" in shown
    assert re.search(r"begins at (15|20)", shown), shown


@pytest.mark.thorough
def test_a_node_that_is_lost_takes_the_run_back_to_its_checkpoint(
    kube: KubeCluster, kube_options: dict[str, str], gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    engine = ["--on", "kubernetes", *(f"-o{name}={value}" for name, value in kube_options.items())]
    command = ["run", *engine, "--restarts", "2", "--workers", "2", "trainer.py", str(tmp_path / "saved")]
    with running(tmp_path, *command, str(gate.port)) as process:
        gate.wait_for("worker/0 1")
        node = next(each["spec"]["nodeName"] for each in kube.store.list("pods", None) if "-ps-0-" in str(each))
        for name in kube.kubelet.lose(node):  # which the cluster notices, and takes its pods off the list
            kube.store.delete("pods", "default", name, 0)
        shown, _ = process.communicate(timeout=PATIENCE)
    kube.kubelet.nodes.append(node)
    assert process.returncode == 0, shown
    assert f"HostLost: its pod on {node} was deleted" in shown, shown
    assert re.search(r"begins at (15|20)", shown), shown
    assert programs(tmp_path) == []


@pytest.mark.thorough
def test_a_job_script_runs_in_a_job_that_is_preempted_and_goes_on(
    slurm: SlurmCluster, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    rendered = subprocess.run(
        [
            *(*_TENFOLD, "render", "slurm", "-o", "partition=low", "--workers", "2", "--name", "goes-on"),
            *("trainer.py", str(tmp_path / "saved"), str(gate.port)),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "job.sh").write_text(rendered.stdout)
    with (
        subprocess.Popen(
            ["sbatch", "--parsable", "--wait", str(tmp_path / "job.sh")], stdout=subprocess.PIPE, text=True
        ) as waiting,
        ExitStack() as held,
    ):
        assert waiting.stdout is not None
        held.callback(waiting.kill)
        job = waiting.stdout.readline().strip()
        gate.wait_for("worker/0 1")
        wanted = ["--partition=high", "--ntasks=6", "--output=/dev/null"]
        slurm.run("sbatch", "--wait", *wanted, "--wrap=true")
        slurm.wait_for_state(job, "PENDING")
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")  # which else is two minutes later
        gate.there.pop("worker/0 1").close()
        # the job begins anew, and so does its count of attempts
        gate.wait_for("worker/0 1", seconds=SLURM_PATIENCE)
        gate.tell("worker/0 1")
        assert waiting.wait(PATIENCE) == 0
    shown = (tmp_path / f"goes-on-{job}.out").read_text()
    assert "begins at 0" in shown
    assert re.search(r"begins at (15|20)", shown), shown
    assert shown.count("ends") >= 2
    assert [each for each in slurm.jobs() if "COMPLETING" not in each] == []
    assert left_over(tmp_path) == []


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`tenfold ARGUMENTS…`, which a test that fails does not leave behind."""
    with subprocess.Popen(
        [*_TENFOLD, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def programs(folder: Path, name: str = "trainer.py") -> list[int]:
    """The tasks of a run in that folder that live here."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                process.cwd() == str(folder)
                and any(word.endswith(name) for word in process.cmdline())
                and "tenfold.cli.child" in process.cmdline()
            ):
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def task_of(pid: int) -> str:
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(each.partition(b"=")[2].decode() for each in variables if each.startswith(b"TENFOLD_TASK="))


#: The example, after which each worker leaves a file of two pieces in its folder.
LEAVING = f"""
import os, pathlib, runpy

folder = os.environ["TENFOLD_OUTPUT"]
job, index = os.environ["TENFOLD_TASK"].split("/")
if job == "worker":
    at = pathlib.Path(folder, f"worker-{{index}}")
    at.mkdir()
    (at / "large.bin").write_bytes(bytes(range(250)) * 4000)
    (at / "link").symlink_to("/etc/passwd")
runpy.run_path({str(_EXAMPLES / "between_graph.py")!r}, run_name="__main__")
"""


@pytest.mark.thorough
def test_a_submitted_run_is_started_over_ssh(hosts: SshHosts, tmp_path: Path) -> None:
    with Children() as children:
        service = Service(children, tmp_path)
        (tmp_path / "leaving.py").write_text(LEAVING)
        done = subprocess.run(
            [
                *(*_TENFOLD, "submit", "--control", service.url, "--wait", "--on", "ssh", "-o", "hosts=n[1-3]"),
                *("-o", f"config={hosts.config}", "--workers", "2", "--"),
                *("python", str(tmp_path / "leaving.py"), "--steps", "60"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        with service.client() as api:
            run = api.get("/v1/runs").json()["runs"][0]
            left = api.get(f"/v1/runs/{run['name']}/artifacts").json()["artifacts"]
            large = api.get(f"/v1/runs/{run['name']}/artifacts/worker-1/large.bin").content
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["path"] for each in left] == ["worker-0/large.bin", "worker-1/large.bin"]
    assert large == bytes(range(250)) * 4000
    assert len(re.findall(r"worker [01]: global step 6\d, loss 0\.\d+", done.stdout)) == 2, done.stdout
    assert (run["launcher"], run["state"]) == ("ssh", "SUCCEEDED")
    assert [task["state"] for task in run["tasks"] if task["job"] == "worker"] == ["succeeded"] * 2


@pytest.mark.thorough
def test_a_submitted_run_whose_host_does_not_come_back_names_its_tasks(
    hosts: SshHosts, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    body = {
        **{"launcher": "ssh", "launcher_options": {"hosts": "n3", "config": str(hosts.config)}},
        **{"entrypoint": ["python", "trainer.py", str(tmp_path / "saved"), str(gate.port)]},
        **{"working_dir": str(tmp_path), "jobs": {"ps": 1, "worker": 1}, "restarts": {"limit": 1, "backoff": 0}},
    }
    with Children() as children:
        service = Service(children, tmp_path)
        with service.client() as api:
            name = api.post("/v1/runs", json=body).raise_for_status().json()["name"]
            gate.wait_for("worker/0 1")
            hosts.kill("n3")
            ended = api.get(f"/v1/runs/{name}", params={"wait": "60s", "ended": "true"}).json()
    hosts.start("n3")
    assert ended["state"] == "FAILED"
    assert re.match(r"ps/0, worker/0 cannot start again: n3: .*[Cc]onnection refused", ended["reason"]), ended["reason"]
    assert [(task["name"], task["state"], task["starts"]) for task in ended["tasks"]] == [
        ("/job:ps/replica:0/task:0", "failed", 1),
        ("/job:worker/replica:0/task:0", "failed", 1),
    ]


@pytest.mark.thorough
def test_a_node_of_ray_that_dies_is_replaced_and_the_run_goes_on(ray_cluster: Any, gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    nodes = {"late": ray_cluster.add_node(num_cpus=40)}  # where Ray packs all that it can
    ray_cluster.wait_for_nodes()
    engine = ["--on", "ray", "-o", f"address={ray_cluster.address}", "-o", "place=pack"]
    command = ["run", *engine, "--restarts", "2", "--cores", "worker=5,ps=1", "--workers", "2", "trainer.py"]
    with running(tmp_path, *command, str(tmp_path / "saved"), str(gate.port)) as process:
        gate.wait_for("worker/0 1")
        nodes["new"] = ray_cluster.add_node(num_cpus=40)
        ray_cluster.remove_node(nodes.pop("late"), allow_graceful=False)
        shown, _ = process.communicate(timeout=2 * PATIENCE)
    ray_cluster.remove_node(nodes.pop("new"))
    assert process.returncode == 0, shown
    assert "HostLost" in shown, shown
    assert re.search(r"begins at (15|20)", shown), shown
    assert shown.count("ends") >= 2
    assert left_over(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.timeout(3 * SLURM_PATIENCE)  # Slurm takes its time: to miss the node, and to look at the queue again
def test_a_job_that_loses_a_node_is_queued_again_and_goes_on(slurm: SlurmCluster, gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    slurm.wait_for_nodes()
    job = sbatch(
        slurm, tmp_path, "--workers", "2", "--restarts", "1", "--name", "loses", str(tmp_path / "saved"), str(gate.port)
    )
    gate.wait_for("worker/0 1")
    held = gate.there.pop("worker/0 1")

    # n2 is where worker/1 is: n1 has the script, the parameter server and worker/0
    with slurm.without_node("n2"):
        slurm.wait_for_state(job, "PENDING")
        held.close()
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")  # which else is two minutes later
        gate.wait_for("worker/0 1", seconds=SLURM_PATIENCE)
        gate.tell("worker/0 1")
        slurm.run("srun", "--quiet", f"--dependency=afterok:{job}", "true")
    shown = (tmp_path / f"loses-{job}.out").read_text()
    assert "begins at 0" in shown
    assert re.search(r"begins at (15|20)", shown), shown
    assert left_over(tmp_path) == []


def sbatch(slurm: SlurmCluster, folder: Path, *arguments: str) -> str:
    """Queues trainer.py with these options of `tenfold render slurm`, and its own two arguments last; the job."""
    *options, saved, port = arguments
    command = [*_TENFOLD, "render", "slurm", *options, "trainer.py", saved, port]
    rendered = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    (folder / "job.sh").write_text(rendered.stdout)
    return slurm.run("sbatch", "--parsable", str(folder / "job.sh")).strip()
