from __future__ import annotations

import pytest

from tenfold.launchers import Resources
from tenfold.launchers.slurm import of_resources, request_of, site_options
from tenfold.launchers.slurm_script import job_script

_GIB = 1 << 30


def test_a_script_asks_for_all_tasks_and_runs_them() -> None:
    script = job_script(
        "digits",
        {"ps": 1, "worker": 4},
        {"worker": Resources(cores=4, memory=8 * _GIB, gpus=1)},
        {"partition": "long", "time": "2:00:00", "python": "/opt/python"},
        "/home/me/two words",
        ["/opt/python", "-m", "tenfold.cli", "run", "--on=slurm", "train.py", "--rate", "0 1"],
        90,
    )
    assert script == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=digits\n"
        "#SBATCH --partition=long\n"
        "#SBATCH --time=2:00:00\n"
        "#SBATCH --ntasks=5\n"
        "#SBATCH --cpus-per-task=4\n"
        "#SBATCH --mem-per-cpu=2048M\n"
        "#SBATCH --gpus-per-task=1\n"
        "#SBATCH '--chdir=/home/me/two words'\n"
        "#SBATCH --output=digits-%j.out\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --requeue\n"
        "#SBATCH --signal=B:TERM@90\n"
        "\n"
        "# the shell's place is taken, so that Slurm's signal reaches the run\n"
        "exec /opt/python -m tenfold.cli run --on=slurm train.py --rate '0 1'\n"
    )


@pytest.mark.parametrize(
    ("resources", "options"),
    [
        (None, ["--cpus-per-task=1"]),
        (Resources(), ["--cpus-per-task=1"]),
        (Resources(cores=3), ["--cpus-per-task=3"]),
        (Resources(memory=_GIB), ["--cpus-per-task=1", "--mem=1024M"]),
        (Resources(memory=_GIB + 1), ["--cpus-per-task=1", "--mem=1025M"]),
        (Resources(gpus=2), ["--cpus-per-task=1", "--gres=gpu:2"]),
    ],
)
def test_a_step_asks_for_what_its_task_needs(resources: Resources | None, options: list[str]) -> None:
    assert of_resources(resources) == options


@pytest.mark.parametrize(
    ("resources", "options"),
    [
        ({}, ["--ntasks=3", "--cpus-per-task=1"]),
        ({"ps": Resources(cores=2), "worker": Resources(cores=4)}, ["--ntasks=3", "--cpus-per-task=4"]),
        ({"ps": Resources(memory=3 * _GIB)}, ["--ntasks=3", "--cpus-per-task=1", "--mem-per-cpu=3072M"]),
        (
            {"ps": Resources(cores=2, memory=3 * _GIB), "worker": Resources(memory=5 * _GIB)},
            ["--ntasks=3", "--cpus-per-task=2", "--mem-per-cpu=2560M"],
        ),
    ],
)
def test_a_job_asks_for_the_most_that_a_task_needs(resources: dict[str, Resources], options: list[str]) -> None:
    assert request_of({"ps": 1, "worker": 2}, resources) == options


def test_the_sites_options_are_handed_on() -> None:
    assert site_options({"qos": "low", "patience": "3", "account": "me"}) == ["--account=me", "--qos=low"]
