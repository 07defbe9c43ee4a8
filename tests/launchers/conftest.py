"""The engines that tests of launchers run on: real ones, on this machine; skipped with the reason where one is not
installed (`make engines`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support import slurm_cluster, sshd

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
