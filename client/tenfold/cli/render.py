"""`tenfold render ENGINE`: what an engine is given, as a file that a user or an administrator reads and keeps.

A job script for Slurm (launchers/slurm_script.py), manifests for Kubernetes (launchers/kubernetes_manifests.py)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from tenfold.cli.cluster_options import cluster_options
from tenfold.cli.group import Group, ProgramCommand
from tenfold.cli.launching import launch_arguments, launch_options
from tenfold.cli.sweep_space import space_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.cli.cluster_options import ClusterOptions
    from tenfold.launchers import Resources
    from tenfold.sweeps.space import Point


@click.group(cls=Group)
def render() -> None:
    """Write what an engine is given to run a program: a job script, manifests."""


@render.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@cluster_options
@click.option("--name", default="tenfold", show_default=True, help="The job's name.")
@click.option(
    "--warning",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Seconds before the time limit at which the job is signalled: programs save, and end.",
)
@click.option(
    "--array",
    metavar="NUMBERS",
    help="A job for each, as 0-7 or 0-15%4; $SLURM_ARRAY_TASK_ID in an argument is its number.",
)
@space_options
@click.option("--wait", is_flag=True, help="`sbatch` ends with the job, and with its exit code.")
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many times tasks that fail are started again within the job, all together.",
)
@launch_options
@click.argument("program", required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def slurm(
    cluster: ClusterOptions,
    name: str,
    warning: int,
    array: str | None,
    points: list[Point],
    parallel: int | None,
    wait: bool,
    restarts: int,
    on: str,
    launcher_options: dict[str, str],
    resources: dict[str, Resources],
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Write a job script for `sbatch` that runs PROGRAM as every task of a cluster.

    Slurm starts it again after a preemption or the loss of a node (--requeue): a program with a checkpoint directory
    resumes from its checkpoint. If parameter servers and workers need different resources (--cores ps=1,worker=8), it
    is a heterogeneous job.
    """
    from tenfold.launchers import LaunchRefusedError
    from tenfold.launchers.interface import checked_options
    from tenfold.launchers.slurm import SlurmLauncher
    from tenfold.launchers.slurm_script import ARRAY, job_script
    from tenfold.sweeps.command import command_of

    if points and array is not None:
        raise click.UsageError("--param makes a job array of its settings: leave out --array")
    if points:
        array = f"0-{len(points) - 1}" + ("" if parallel is None else f"%{parallel}")
    if array is not None and not ARRAY.fullmatch(array):
        raise click.BadParameter(f"{array!r} is not a list of numbers as 0-7, 1,3,5 or 0-15%4", param_hint="--array")
    try:
        options = checked_options(SlurmLauncher(), launcher_options)
    except LaunchRefusedError as error:
        raise click.UsageError(str(error)) from None
    python = options.get("python", sys.executable)
    command = [python, "-P", "-m", "tenfold.cli", "run", *cluster.arguments()]
    command += [f"--restarts={restarts}"] if restarts else []
    there = {"python": python, **({"scratch": options["scratch"]} if "scratch" in options else {})}
    command += [*launch_arguments("slurm", there, resources), program, *(() if points else arguments)]
    script = job_script(
        *(name, cluster.jobs, resources, options, os.getcwd(), command, warning),
        array=array,
        settings=[command_of(arguments, point) for point in points],
        wait=wait,
    )
    click.echo(script, nl=False)


@render.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@cluster_options
@click.option("--name", default="tenfold", show_default=True, help="The name of the created objects, a DNS label.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(("jobset", "trainjob", "plain")),
    default="jobset",
    show_default=True,
    help="A JobSet, a TrainJob of Kubeflow Trainer v2 with its runtime, or Jobs and a Service alone.",
)
@click.option(
    "--success",
    type=click.Choice(("all", "chief")),
    default="all",
    show_default=True,
    help="The tasks whose success ends the parameter servers and all others.",
)
@click.option(
    "--restarts", type=click.IntRange(min=0), default=3, show_default=True, help="How often failed tasks start again."
)
@click.option("--token-secret", metavar="SECRET", help="A Secret that has the token as `token`. [default: NAME-token]")
@click.option("--working-dir", metavar="PATH", help="Where programs begin. [default: the image's own folder]")
@click.option("--control", metavar="URL", help="A control service that pods reach and register with.")
@launch_options
@click.argument("program", required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubernetes(
    cluster: ClusterOptions,
    name: str,
    kind: Literal["jobset", "trainjob", "plain"],
    success: Literal["all", "chief"],
    restarts: int,
    token_secret: str | None,
    working_dir: str | None,
    control: str | None,
    on: str,
    launcher_options: dict[str, str],
    resources: dict[str, Resources],
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Write manifests for `kubectl apply` that run PROGRAM, which is in the image, as every task of a cluster.

    Kubernetes starts failed tasks again: a program with a checkpoint directory on a volume (-o volume=CLAIM:/path)
    resumes from its checkpoint. -o image=NAME is required; `tenfold launchers kubernetes` lists the other options.
    """
    from tenfold.launchers import LaunchRefusedError
    from tenfold.launchers.kubernetes_manifests import Workload, first_lines, manifests
    from tenfold.launchers.kubernetes_objects import POD_OPTIONS, settings_of
    from tenfold.runs.entrypoint import is_python, read_entrypoint
    from tenfold.runs.plan import RunPlan

    given = (program, *arguments)
    entrypoint = read_entrypoint(given if is_python(program) else ("python", *given))
    plan = RunPlan(
        cluster.jobs,
        entrypoint.program,
        entrypoint.command,
        interpreter=entrypoint.interpreter,
        guide_flags=cluster.guide_flags,
        as_tensorflow=cluster.as_tensorflow,
        resources=resources,
    )
    try:
        if unknown := sorted(set(launcher_options) - set(POD_OPTIONS)):
            raise LaunchRefusedError(f"manifests have no option {unknown[0]!r}; they have {', '.join(POD_OPTIONS)}")
        workload = Workload(
            name,
            plan,
            settings_of(launcher_options),
            success,
            restarts,
            token_secret or f"{name}-token",
            working_dir,
            control,
        )
        found = manifests(workload, kind)
    except LaunchRefusedError as error:
        raise click.UsageError(str(error)) from None
    click.echo("".join(f"# {line}\n" for line in first_lines(workload, kind)), nl=False)
    click.echo(_yaml(found), nl=False)


def _yaml(objects: Sequence[dict[str, Any]]) -> str:
    try:
        import yaml
    except ImportError:
        raise click.ClickException('manifests need PyYAML: pip install "tenfold[kubernetes]"') from None

    class Plain(yaml.SafeDumper):
        """Writes what is the same in two places twice: an alias saves the reader nothing."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    return str(yaml.dump_all(objects, Dumper=Plain, sort_keys=False, width=110, explicit_start=True))
