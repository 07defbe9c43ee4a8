from __future__ import annotations

import pytest

from tenfold.launchers import Resources
from tenfold.launchers.slurm import components_of, of_resources, request_of, site_options
from tenfold.launchers.slurm_script import ARRAY, job_script

_GIB = 1 << 30


def test_a_script_asks_for_all_tasks_and_runs_them() -> None:
    needs = Resources(cores=4, memory=8 * _GIB, gpus=1)
    script = job_script(
        "digits",
        {"ps": 1, "worker": 4},
        {"ps": needs, "worker": needs},
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


def test_jobs_that_need_different_things_are_components_of_one_job() -> None:
    script = job_script(
        "digits",
        {"ps": 2, "worker": 4},
        {"ps": Resources(memory=8 * _GIB), "worker": Resources(cores=4, gpus=1)},
        {"partition": "long", "folder": "/lustre/me"},
        "/home/me",
        ["tenfold", "run", "--on=slurm", "train.py"],
        60,
        wait=True,
    )
    assert script == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=digits\n"
        "#SBATCH --partition=long\n"
        "#SBATCH --ntasks=2\n"
        "#SBATCH --cpus-per-task=1\n"
        "#SBATCH --mem-per-cpu=8192M\n"
        "#SBATCH --chdir=/lustre/me\n"
        "#SBATCH --output=digits-%j.out\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --wait\n"
        "#SBATCH --requeue\n"
        "#SBATCH --signal=B:TERM@60\n"
        "#SBATCH hetjob\n"
        "#SBATCH --job-name=digits\n"
        "#SBATCH --partition=long\n"
        "#SBATCH --ntasks=4\n"
        "#SBATCH --cpus-per-task=4\n"
        "#SBATCH --gpus-per-task=1\n"
        "#SBATCH --requeue\n"
        "#SBATCH --signal=B:TERM@60\n"
        "\n"
        "# components, in order: ps, worker; a component is what the tasks of one job need\n"
        "\n"
        "# the shell's place is taken, so that Slurm's signal reaches the run\n"
        "exec tenfold run --on=slurm train.py\n"
    )


def test_the_number_of_an_array_stands_in_arguments_and_nothing_else_does() -> None:
    command = [
        "run",
        "a.py",
        "--rate=$SLURM_ARRAY_TASK_ID",
        "$HOME",
        "x${SLURM_ARRAY_TASK_ID} y",
        "",
        "$SLURM_ARRAY_TASK_IDX",
    ]
    needs = {"worker": Resources(cores=4)}
    script = job_script("sweep", {"ps": 1, "worker": 2}, needs, {}, "/home/me", command, 60, array="0-7%2")

    assert "#SBATCH --array=0-7%2\n" in script
    assert "#SBATCH --output=sweep-%A_%a.out\n" in script
    assert "hetjob" not in script
    assert "#SBATCH --ntasks=3\n#SBATCH --cpus-per-task=4\n" in script
    number = '"$SLURM_ARRAY_TASK_ID"'
    last = f"exec run a.py --rate={number} '$HOME' x{number}' y' '' '$SLURM_ARRAY_TASK_IDX'\n"
    assert script.endswith(last)


def test_the_arguments_of_a_setting_are_those_of_its_number() -> None:
    settings = [["--lr=0.1", "two words"], ["--lr=0.2", "$SLURM_ARRAY_TASK_ID"]]
    script = job_script("s", {"worker": 1}, {}, {}, "/home/me", ["run", "a.py"], 60, array="0-1", settings=settings)

    assert script.endswith(
        '# the arguments of each number\ncase "$SLURM_ARRAY_TASK_ID" in\n'
        "0) set -- --lr=0.1 'two words' ;;\n"
        '1) set -- --lr=0.2 "$SLURM_ARRAY_TASK_ID" ;;\n'
        "esac\n\n# the shell's place is taken, so that Slurm's signal reaches the run\n"
        'exec run a.py "$@"\n'
    )


@pytest.mark.parametrize("text", ["0", "0-7", "1,3,5", "0-15:4%2", "1-3,7%1"])
def test_numbers_of_an_array(text: str) -> None:
    assert ARRAY.fullmatch(text)


@pytest.mark.parametrize("text", ["", "a", "0-", "1..3", "0-7%", "0-7;reboot"])
def test_what_is_no_list_of_numbers(text: str) -> None:
    assert not ARRAY.fullmatch(text)


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({}, 1),
        ({"ps": Resources(cores=1)}, 1),
        ({"ps": Resources(cores=2), "worker": Resources(cores=2)}, 1),
        ({"ps": Resources(gpus=1)}, 2),
        ({"worker": Resources(memory=_GIB)}, 2),
    ],
)
def test_components_are_as_many_as_there_are_different_needs(resources: dict[str, Resources], count: int) -> None:
    assert len(components_of({"ps": 1, "worker": 2}, resources)) == count
