"""The engines that tests of launchers run on: real ones, on this machine; skipped with the reason where one is not
installed (`make engines`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from support import slurm_cluster, sshd
from support.kube import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.SshHosts]:
    """Three hosts that ssh reaches."""
    if (why := sshd.why_not()) is not None:
        pytest.skip(why)
    made = sshd.SshHosts(tmp_path_factory.mktemp("hosts"), 3)
    yield made
    made.close()


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    """Ray with three nodes of two cores each."""
    pytest.importorskip("ray", reason="Ray is not installed: make engines")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    for _ in range(2):
        made.add_node(num_cpus=2)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.KubeCluster]:
    """A Kubernetes cluster of two nodes, which is the tests' own: no other is to be had."""
    pytest.importorskip("kubernetes", reason="the kubernetes client is not installed: make engines")
    if (why := cluster.why_not()) is not None:
        pytest.skip(why)
    made = cluster.KubeCluster(tmp_path_factory.mktemp("kube"))
    yield made
    made.close()


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
