"""--on, -o, --cores, --memory and --gpus; `tenfold launchers` and `tenfold render slurm`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from tenfold.cli.launching import launch_arguments, launch_options
from tenfold.cli.main import cli
from tenfold.launchers import Resources

if TYPE_CHECKING:
    from pathlib import Path

_GIB = 1 << 30


@click.command()
@launch_options
def shown(on: str, launcher_options: dict[str, str], resources: dict[str, Resources]) -> None:
    click.echo(json.dumps([on, launcher_options, {job: repr(needed) for job, needed in resources.items()}]))


def given(*arguments: str) -> list[object]:
    done = CliRunner().invoke(shown, list(arguments))
    assert done.exit_code == 0, done.output
    found: list[object] = json.loads(done.output)
    return found


def test_nothing_is_asked_for_by_default() -> None:
    assert given() == ["local", {}, {}]


def test_what_each_job_needs() -> None:
    ps, worker = Resources(cores=1, memory=2 * _GIB), Resources(cores=4, memory=2 * _GIB, gpus=1)
    on, options, resources = given(
        *("--on", "ssh", "-o", "hosts=a,b", "-o", "config=a=b"),
        *("--cores", "4,ps=1", "--memory", "2G", "--gpus", "worker=1"),
    )
    assert (on, options) == ("ssh", {"hosts": "a,b", "config": "a=b"})
    assert isinstance(resources, dict)
    assert (resources["ps"], resources["worker"]) == (repr(ps), repr(worker))


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("3k", 3072), ("512M", 512 << 20), ("2GiB", 2 * _GIB), ("1TB", 1 << 40)]
)
def test_a_size(text: str, size: int) -> None:
    resources = given("--memory", text)[2]
    assert isinstance(resources, dict)
    assert resources["worker"] == repr(Resources(memory=size))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "hosts"), "'hosts' is not NAME=VALUE"),
        (("-o", "=x"), "'=x' is not NAME=VALUE"),
        (("--cores", "two"), "'two' is not a number; write 2, or worker=2,ps=1"),
        (("--cores", "worker=-1"), "'-1' is not a number"),
        (("--memory", "4X"), "'4X' is not a size; write 512M, or worker=4G,ps=1G"),
    ],
)
def test_what_cannot_be_read_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(shown, list(arguments))
    assert done.exit_code == 2
    assert words in done.output


def test_the_same_on_a_command_line() -> None:
    resources = {"ps": Resources(cores=1), "worker": Resources(cores=4, memory=5, gpus=2)}
    found = launch_arguments("slurm", {"python": "/p"}, resources)
    assert found == ["--on=slurm", "-opython=/p", "--cores=ps=1,worker=4", "--memory=worker=5", "--gpus=worker=2"]
    assert launch_arguments("local", {}, {}) == ["--on=local"]


def test_launchers_are_listed_with_why_they_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = CliRunner().invoke(cli, ["launchers", "--json"])
    found = {each["name"]: each for each in json.loads(done.output)["launchers"]}
    assert list(found)[:5] == ["local", "ssh", "slurm", "ray", "kubernetes"]
    assert found["local"]["missing"] is None
    assert found["ssh"]["missing"] == "there is no `ssh` here: install OpenSSH's client"
    assert found["slurm"]["missing"] == "there is no `srun` here: this is no machine of a Slurm cluster"
    assert "hosts" in found["ssh"]["options"]
    assert "usable" in CliRunner().invoke(cli, ["launchers"]).output


def test_one_launcher_is_shown_with_its_options() -> None:
    done = CliRunner().invoke(cli, ["launchers", "local"])
    assert done.output == "local: processes of this machine\nusable here\n"
    assert "-o hosts=…  the hosts: n1,n2 or n[1-4]" in CliRunner().invoke(cli, ["launchers", "ssh"]).output
    missing = CliRunner().invoke(cli, ["launchers", "pigeon"])
    assert (missing.exit_code, "there is no launcher 'pigeon'; there are local, ssh" in missing.output) == (1, True)


def test_a_job_script_is_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--ps", "1", "--workers", "3", "-o", "partition=low", "-o", "python=/opt/python", "--cores", "2"]
    done = CliRunner().invoke(cli, ["render", "slurm", *arguments, "train.py", "--rate", "0.1"])
    assert done.exit_code == 0, done.output
    assert "#SBATCH --partition=low\n#SBATCH --ntasks=4\n#SBATCH --cpus-per-task=2\n" in done.output
    assert done.output.endswith(
        "exec /opt/python -P -m tenfold.cli run --ps=1 --workers=3 --on=slurm -opython=/opt/python "
        "--cores=chief=2,evaluator=2,ps=2,worker=2 train.py --rate 0.1\n"
    )
    refused = CliRunner().invoke(cli, ["render", "slurm", "-o", "colour=red", "train.py"])
    assert (refused.exit_code, "slurm has no option 'colour'" in refused.output) == (2, True)
    wrong = CliRunner().invoke(cli, ["render", "slurm", "--array", "1..3", "train.py"])
    assert (wrong.exit_code, "'1..3' is not a list of numbers as 0-7, 1,3,5 or 0-15%4" in wrong.output) == (2, True), (
        wrong.output
    )


def test_a_sweep_is_an_array_whose_number_stands_in_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [
        "-o",
        "scratch=/scratch/$SLURM_JOB_ID",
        "--array=0-3",
        "--wait",
        "train.py",
        "--seed=$SLURM_ARRAY_TASK_ID",
    ]
    done = CliRunner().invoke(cli, ["render", "slurm", *arguments])
    assert done.exit_code == 0, done.output
    assert "#SBATCH --array=0-3\n#SBATCH --wait\n" in done.output
    assert "'-oscratch=/scratch/$SLURM_JOB_ID'" in done.output
    assert done.output.endswith(' train.py --seed="$SLURM_ARRAY_TASK_ID"\n')


def test_a_run_on_an_engine_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    done = CliRunner().invoke(cli, ["run", "--on", "slurm", "train.py"])
    assert (done.exit_code, done.output) == (
        1,
        "Error: there is no `srun` here: this is no machine of a Slurm cluster\n",
    )
