"""Runs on a Ray cluster of three nodes on this machine, one of which dies."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.left_over import left_over
from support.run_programs import Service
from support.task_processes import PATIENCE
from tenfold.cli.children import Children
from tenfold.launchers import LaunchRefusedError, Resources
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.ray import RayLauncher, reason_of

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
    from pathlib import Path

    from support.gates import Gate


# an engine starts within the first test that needs it
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


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


def test_rays_dashboard_and_ours_lead_to_each_other(
    ray_cluster: Any, ray_dashboard: str, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(
        "import os, socket, sys\nwith socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as gate:\n"
        "    gate.sendall(os.environ['TENFOLD_TASK'].encode())\n    gate.recv(16)\n"
    )
    body = {
        **{"launcher": "ray", "launcher_options": {"address": ray_cluster.address}, "jobs": {"worker": 1}},
        **{"entrypoint": ["python", "program.py", str(gate.port)], "working_dir": str(tmp_path)},
    }
    with Children() as children:
        service = Service(children, tmp_path)
        with service.client() as api:
            name = api.post("/v1/runs", json=body).raise_for_status().json()["name"]
            gate.wait_for("worker/0")
            (task,) = api.get(f"/v1/runs/{name}").json()["tasks"]
            actor = task["page"].rpartition("/")[2]
            asked = httpx.get(f"{ray_dashboard}/logical/actors/{actor}", trust_env=False, timeout=PATIENCE)
            gate.tell("worker/0")
            ended = api.get(f"/v1/runs/{name}", params={"wait": "60s", "ended": "true"}).json()
            logs = api.get(f"/v1/runs/{name}/logs", params={"format": "text"}).text
    assert task["page"] == f"{ray_dashboard}/#/actors/{actor}"
    shown = asked.raise_for_status().json()["data"]["detail"]
    assert shown["reprName"] == f"tenfold worker/0 of {name} {service.url}/#/runs/{name}"
    assert f"Ray's dashboard: {ray_dashboard}" in logs
    assert ended["state"] == "SUCCEEDED", ended
    assert left_over(tmp_path) == []


def test_what_a_node_could_not_set_up_is_tried_once_more(ray_cluster: Any, tmp_path: Path) -> None:
    import ray
    from ray.experimental.internal_kv import _internal_kv_put

    package = "gcs://_ray_pkg_0123456789abcdef.zip"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("program.py", "print('runs', flush=True)")

    class Putting(Lines):
        """Puts the package there once it was missed."""

        def __call__(self, name: str, line: str) -> None:
            if line.endswith("trying again"):
                _internal_kv_put(package, packed.getvalue())
            super().__call__(name, line)

    lines = Putting()
    ray.init(address=ray_cluster.address, runtime_env={"working_dir": package}, log_to_driver=False)
    try:
        request = LaunchRequest("late", {"worker": 2}, str(tmp_path), options={"address": ray_cluster.address})
        with RayLauncher().open(request, lines) as processes:
            processes.addresses({"worker": 2})
    finally:
        ray.shutdown()

    (said,) = [line for _, line in lines.all if line.endswith("trying again")]
    assert "Failed to set up runtime environment. OSError: Failed to download runtime_env file package gcs://" in said


def test_what_ray_tells_of_a_failed_environment_is_said_in_a_line() -> None:
    from ray.exceptions import RayActorError, RuntimeEnvSetupError

    told = "[Node 192.0.2.2] Traceback (most recent call last):\n  File ...\nValueError: /tmp/it does not exist\n"
    assert reason_of(RuntimeEnvSetupError(told)) == (
        "Failed to set up runtime environment. ValueError: /tmp/it does not exist"
    )
    assert reason_of(RayActorError(error_msg="The actor died.\nThe node has died")) == "The node has died"
