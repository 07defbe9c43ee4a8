"""What a user types, as README.md and the page of each engine have it: the lines run as they stand, on real engines.

`tenfold`, `ssh` and `ray` are those of this checkout, ssh with the tests' configuration. `pip install` is not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import slurm_cluster
from support.left_over import left_over
from support.run_programs import Service
from support.task_processes import PATIENCE
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.sshd import SshHosts

# an engine starts within the first test that needs it
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

_ROOT = Path(__file__).resolve().parents[2]
#: What each worker says at its end, of examples/between_graph.py.
_TRAINED = r"worker (\d): global step 2\d\d, loss \d+\.\d+"


def block(page: str, after: str = "") -> list[str]:
    """The lines of the first shell block of that file, after a heading."""
    text = (_ROOT / page).read_text(encoding="utf-8").partition(after)[2] if after else (_ROOT / page).read_text()
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1].strip().splitlines()


class Shell:
    """Where a user types: a folder with a program in it, trainer.py, and commands before those of the system."""

    def __init__(self, folder: Path, **commands: str) -> None:
        self.folder = folder
        self.commands = folder.parent / f"{folder.name}-commands"
        self.commands.mkdir()
        for name, command in {"tenfold": f"{sys.executable} -m tenfold.cli", **commands}.items():
            (self.commands / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (self.commands / name).chmod(0o755)
        program = (_ROOT / "examples/between_graph.py").read_text(encoding="utf-8")
        (folder / "trainer.py").write_text(program)
        (folder / "examples").mkdir()
        for name in ("between_graph.py", "digits.py"):
            (folder / "examples" / name).write_text((_ROOT / "examples" / name).read_text(encoding="utf-8"))

    def type(self, line: str, variables: Mapping[str, str] | None = None) -> str:
        """What the line writes. It has to succeed."""
        path = f"{self.commands}:{(variables or {}).get('PATH', os.environ['PATH'])}"
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=self.folder,
            env={**os.environ, **(variables or {}), "PATH": path},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def require_trained(shown: str, workers: int) -> None:
    assert sorted(re.findall(_TRAINED, shown)) == [str(index) for index in range(workers)], shown


@pytest.fixture
def ssh_shell(hosts: SshHosts, tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "ssh"
    folder.mkdir()
    yield Shell(folder, ssh=f"/usr/bin/ssh -F {hosts.config}")
    assert left_over(folder) == []


@pytest.fixture(scope="module")
def large_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_cluster.SlurmCluster]:
    """Nodes as large as pages speak of."""
    if (why := slurm_cluster.why_not()) is not None:
        pytest.skip(why)
    made = slurm_cluster.SlurmCluster(tmp_path_factory.mktemp("large-slurm"), cores=32, memory=64_000)
    yield made
    made.close()
    assert left_over(made.folder) == []


@pytest.fixture
def slurm_shell(large_slurm: slurm_cluster.SlurmCluster, tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "slurm"
    folder.mkdir()
    yield Shell(folder)
    assert [job for job in large_slurm.jobs() if "COMPLETING" not in job] == []
    assert left_over(folder) == []


@pytest.fixture
def ray_shell(ray_cluster: Any, tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "ray"
    folder.mkdir()
    yield Shell(folder, ray=f"{sys.executable} -m ray.scripts.scripts")
    assert left_over(folder) == []


def test_ssh(ssh_shell: Shell, tmp_path: Path) -> None:
    here, packed, submitted = block("docs/launchers/ssh.md")
    (ssh_shell.folder / "hosts.txt").write_text("node1 slots=4\nnode2 slots=8\n")

    require_trained(ssh_shell.type(here), 3)
    require_trained(ssh_shell.type(packed), 8)
    with Children() as children:
        variables = {"PATH": f"{ssh_shell.commands}:{os.environ['PATH']}"}
        service = Service(children, tmp_path, **variables)
        name = ssh_shell.type(submitted, {"TENFOLD_CONTROL": service.url}).strip()
        with service.client() as api:
            ended = api.get(f"/v1/runs/{name}", params={"wait": "60s", "ended": "true"}).json()
            logs = api.get(f"/v1/runs/{name}/logs", params={"format": "text"}).text
    assert ended["state"] == "SUCCEEDED", ended
    require_trained(logs, 2)


def test_slurm(slurm_shell: Shell, large_slurm: slurm_cluster.SlurmCluster) -> None:
    now, render, queue = block("docs/launchers/slurm.md")
    variables = large_slurm.variables

    require_trained(slurm_shell.type(now, variables), 4)
    assert slurm_shell.type(render, variables) == ""
    job = slurm_shell.type(queue, variables).split()[-1]
    slurm_shell.type(f"srun --quiet --dependency=afterany:{job} true", variables)
    require_trained((slurm_shell.folder / f"tenfold-{job}.out").read_text(), 4)


def test_ray(ray_shell: Shell, ray_cluster: Any, ray_dashboard: str) -> None:
    install, now, job = block("docs/launchers/ray.md")
    extras = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert shlex.split(install) == ["pip", "install", "tenfold[ray]"]
    assert "ray" in extras
    variables = {"RAY_ADDRESS": ray_cluster.address, "RAY_API_SERVER_ADDRESS": ray_dashboard}

    require_trained(ray_shell.type(now, variables), 4)
    require_trained(ray_shell.type(job.replace("-- tenfold", f"-- {ray_shell.commands}/tenfold"), variables), 4)


@pytest.mark.parametrize("name", ["local", "ssh", "slurm", "ray"])
def test_the_readmes_program_on(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    lines = {shlex.split(line)[3]: line for line in block("README.md", "## Many machines") if "--on" in line}
    lines["local"] = block("README.md", "## Many machines")[0]
    variables: dict[str, str] = {}
    if name == "local":
        (tmp_path / "local").mkdir()
        shell = Shell(tmp_path / "local")
    else:
        shell = request.getfixturevalue(f"{name}_shell")
    if name == "slurm":
        variables = request.getfixturevalue("large_slurm").variables
    if name == "ray":
        variables = {"RAY_ADDRESS": request.getfixturevalue("ray_cluster").address}

    require_trained(shell.type(lines[name], variables), 2)


def test_a_program_that_starts_no_server(ssh_shell: Shell) -> None:
    pytest.importorskip("sklearn")
    (line,) = block("docs/launchers.md", "## Programs that start no server")

    accuracies = re.findall(r"accuracy (\d\.\d+)", ssh_shell.type(line))

    assert len(accuracies) == 2
    assert min(float(each) for each in accuracies) > 0.9


@pytest.mark.parametrize(
    ("after", "settings"),
    [
        ("## Sweeps", [f"--lr={lr} --layers={layers}" for lr in (0.1, 0.01) for layers in (2, 3, 4)]),
        ("To pass plain numbers instead of settings", [f"--seed={number}" for number in range(8)]),
    ],
)
def test_a_sweep(
    slurm_shell: Shell, large_slurm: slurm_cluster.SlurmCluster, after: str, settings: list[str]
) -> None:
    (line,) = block("docs/launchers/slurm.md", after)
    (slurm_shell.folder / "trainer.py").write_text(
        "import os, sys\nif 'worker' in os.environ['TENFOLD_TASK']:\n    print('has', *sys.argv[1:])\n"
    )

    slurm_shell.type(line, large_slurm.variables)
    job = slurm_shell.type("sbatch --parsable --wait sweep.sh", large_slurm.variables).strip()

    shown = [(slurm_shell.folder / f"tenfold-{job}_{number}.out").read_text() for number in range(len(settings))]
    assert [re.findall(r"has (.*)", each) for each in shown] == [[setting] * 2 for setting in settings]
