"""The engines that tests of launchers run on: real ones, on this machine; skipped with the reason where one is not
installed (`make engines`). Each starts once, and has to leave no process and no file behind."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from support import slurm_cluster, sshd
from support.gates import Gate
from support.kube import cluster
from support.left_over import left_over
from support.task_processes import PATIENCE
from tenfold.cli.scratch import remove_abandoned
from tenfold.launchers.local import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of Ray's dashboard, and of its agent on the first node.
_DASHBOARD_PORT, _AGENT_PORT = free_ports(2)
#: Engine → how fixtures and parameters that stand for it begin.
_NAMES = {"slurm": ("slurm", "large_slurm"), "ray": ("ray",), "kubernetes": ("kube",), "ssh": ("ssh", "hosts")}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps an engine's tests in one process, where several run beside each other: an engine starts once. Comes first:
    xdist reads the groups in a hook of the same name, which it registers after the conftests."""
    here = Path(__file__).parent
    for item in items:
        if isinstance(item, pytest.Function) and item.path.is_relative_to(here):
            parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
            words = [*item.fixturenames, *(each for each in parameters if isinstance(each, str))]
            engine = next((engine for engine, names in _NAMES.items() for each in words if each.startswith(names)), "")
            item.add_marker(pytest.mark.xdist_group(engine or item.path.stem))


@pytest.fixture(scope="session", autouse=True)
def kept_together(request: pytest.FixtureRequest) -> None:
    """Fails where they are not: two clusters of Ray, or of Slurm, take each other's ports."""
    here = Path(__file__).parent
    names = [item.nodeid for item in request.session.items if item.path.is_relative_to(here)]
    if getattr(request.config.option, "loadgroup", False) and not all("@" in name for name in names):
        pytest.fail("pytest-xdist does not keep an engine's tests in one process", pytrace=False)


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.SshHosts]:
    """Three hosts that ssh reaches."""
    if (why := sshd.why_not()) is not None:
        pytest.skip(why)
    made = sshd.SshHosts(tmp_path_factory.mktemp("hosts"), 3)
    yield made
    made.close()
    assert left_over(made.folder) == []
    for kind in ("run", "agent", "tasks", "output"):  # of killed hosts: the next start removes what nobody holds
        remove_abandoned(kind, str(made.scratch))
    assert list(made.scratch.iterdir()) == []


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_cluster.SlurmCluster]:
    """Slurm with three nodes, in this process's environment."""
    if (why := slurm_cluster.why_not()) is not None:
        pytest.skip(why)
    made = slurm_cluster.SlurmCluster(tmp_path_factory.mktemp("slurm"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.variables.items():
            patch.setenv(name, value)
        yield made
    made.close()
    assert left_over(made.folder) == []


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """Ray with three nodes and, where all of it is installed, its dashboard; it tells nobody of it."""
    pytest.importorskip("ray", reason="Ray is not installed: make engines")
    from ray.cluster_utils import Cluster

    # Ray's sockets have long names below it
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # where it notes the newest cluster's address, in a folder that has to be there
        (folder / "ray").mkdir()
        patch.setenv("RAY_TMPDIR", str(folder))
        shown = {
            "include_dashboard": _has_dashboard(),
            "dashboard_host": "127.0.0.1",
            "dashboard_port": _DASHBOARD_PORT,
            "dashboard_agent_listen_port": _AGENT_PORT,
        }
        for tries_left in (2, 1, 0):
            try:
                made = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "temp_dir": str(folder), **shown})
                break
            except Exception as error:
                # it gives a node 30 s to begin, which is too little on a busy machine, and leaves what has begun
                if not tries_left or "timed out during startup" not in str(error):
                    raise
                for process in _processes_of_ray():
                    process.kill()
        for name in ("second", "third"):
            # as on machines of their own: in one folder for the packages of jobs, a node removes what another uses
            made.add_node(num_cpus=4, runtime_env_dir_name=f"runtime_resources_{name}")
        yield made
        processes = _processes_of_ray()
        made.shutdown()
    left = psutil.wait_procs(processes, timeout=PATIENCE)[1]
    assert [each for each in map(_command_of, left) if each] == []
    assert left_over(folder) == []
    shutil.rmtree(folder)


def _processes_of_ray() -> list[psutil.Process]:
    """Some have names that say nothing of its folder."""
    return [each for each in psutil.Process().children(recursive=True) if "ray" in _command_of(each)]


def _command_of(process: psutil.Process) -> str:
    """Empty for one that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # a zombie, too
        return ""


@pytest.fixture(scope="session")
def ray_dashboard(ray_cluster: Any) -> str:
    """Where it is, an http URL. It takes jobs."""
    if not _has_dashboard():
        pytest.skip("Ray's dashboard is not installed: make engines")
    url = f"http://127.0.0.1:{_DASHBOARD_PORT}"
    # a job of it needs a node's agent, which begins after the node, on a busy machine by more than Ray waits for it
    job = [sys.executable, "-m", "ray.scripts.scripts", "job", "submit", "--address", url, "--", "true"]
    for tries_left in (3, 2, 1, 0):
        done = subprocess.run(job, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
        if done.returncode == 0:
            break
        if "No available agent" not in done.stderr:
            pytest.fail(f"{done.stdout}\n{done.stderr}")
        if not tries_left:
            pytest.skip("Ray's dashboard takes no job on this machine now: No available agent")
    return url


def _has_dashboard() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("aiohttp", "aiohttp_cors", "opencensus"))


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.close()


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.KubeCluster]:
    """A Kubernetes cluster of two nodes, which is the tests' own: no other is to be had."""
    pytest.importorskip("kubernetes", reason="the kubernetes client is not installed: make engines")
    if (why := cluster.why_not()) is not None:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("kube")
    made = cluster.KubeCluster(folder)
    yield made
    made.close()
    assert left_over(folder) == []


@pytest.fixture
def kube_options(kube: cluster.KubeCluster) -> Iterator[dict[str, str]]:
    """What `-o` gives of it. Afterwards it refuses nothing, and is empty."""
    yield {
        "kubeconfig": str(kube.kubeconfig),
        "image": cluster.IMAGE,
        "python": sys.executable,
        "port": str(cluster.consecutive_ports(8)),
        "sync": "no",
        "grace": "5",
        "lease": "8",
    }
    kube.be_kind()
    kube.wait_for(lambda: not any(kube.names(kind) for kind in ("jobs", "pods", "secrets", "services")))
