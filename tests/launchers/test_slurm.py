"""Runs as steps of a Slurm job, with real daemons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold.launchers import LaunchRefusedError, Resources
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.slurm import SlurmLauncher

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
    from pathlib import Path

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
