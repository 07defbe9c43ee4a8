"""Runs on a Ray cluster of three nodes on this machine, one of which dies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.task_processes import PATIENCE
from tenfold.launchers import LaunchRefusedError, Resources
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.ray import RayLauncher

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.thorough


class TestRay(LauncherConformance):
    name = "ray"

    @pytest.fixture
    def options(self, ray_cluster: Any) -> dict[str, str]:
        return {"address": ray_cluster.address}


def test_a_node_that_dies_is_replaced_and_all_tasks_begin_again(ray_cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('runs', flush=True); input()")
    lines = Lines()
    request = LaunchRequest("dies", {"ps": 1, "worker": 2}, str(tmp_path), options={"address": ray_cluster.address})
    lost = ray_cluster.add_node(num_cpus=2, resources={"late": 1})
    with RayLauncher().open(request, lines) as processes:
        tasks = ["ps/0", "worker/0", "worker/1"]
        processes.addresses({"ps": 1, "worker": 2})
        for name in tasks:
            processes.start(name, ["program.py"])
            lines.wait_for(name, "runs")
        ray_cluster.remove_node(lost, allow_graceful=False)
        ended = processes.wait_for_exit(tasks, 5.0)
        for name in tasks:
            processes.kill(name)
        for name in tasks:
            assert processes.wait_for_exit([name], PATIENCE) == (name, -9)
        again = processes.addresses({"ps": 1, "worker": 2})
    if ended is not None:  # Ray had put a task there
        error = processes.error(ended[0])
        assert error is not None
        assert error["type"] == "HostLost"
    assert {job: len(addresses) for job, addresses in again.items()} == {"ps": 1, "worker": 2}


def test_more_than_the_cluster_has_is_refused(ray_cluster: Any, tmp_path: Path) -> None:
    options = {"address": ray_cluster.address, "patience": "1"}
    request = LaunchRequest(
        "big", {"worker": 1}, str(tmp_path), resources={"worker": Resources(cores=64)}, options=options
    )
    processes = RayLauncher().open(request, Lines())
    with (
        pytest.raises(LaunchRefusedError, match=r"^Ray has no room for 1 tasks of \{'CPU': 64\} within 1 s"),
        processes,
    ):
        pass


def test_a_cluster_that_there_is_not_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    request = LaunchRequest("none", {"worker": 1}, str(tmp_path), options={"address": "127.0.0.1:1"})
    processes = RayLauncher().open(request, Lines())
    with (
        pytest.raises(LaunchRefusedError, match=r"^Ray: nobody answers at 127\.0\.0\.1:1: Connection refused$"),
        processes,
    ):
        pass
