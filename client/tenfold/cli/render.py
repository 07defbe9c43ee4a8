"""`tenfold render ENGINE`: what an engine is given, as a file that a user or an administrator reads and keeps."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tenfold.cli.cluster_options import cluster_options
from tenfold.cli.group import Group, ProgramCommand
from tenfold.cli.launching import launch_arguments, launch_options

if TYPE_CHECKING:
    from tenfold.cli.cluster_options import ClusterOptions
    from tenfold.launchers import Resources


@click.group(cls=Group)
def render() -> None:
    """Write what an engine is given to run a program: a job script."""


@render.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@cluster_options
@click.option("--name", default="tenfold", show_default=True, help="The job's name.")
@click.option(
    "--warning",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Seconds before the end of its time at which the job is told: programs save, and end.",
)
@launch_options
@click.argument("program", required=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def slurm(
    cluster: ClusterOptions,
    name: str,
    warning: int,
    on: str,
    launcher_options: dict[str, str],
    resources: dict[str, Resources],
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Write a job script for `sbatch` that runs PROGRAM as every task of a cluster.

    Slurm starts it again after a preemption or the loss of a node (--requeue): a program with a checkpoint directory
    goes on where it was.
    """
    from tenfold.launchers import LaunchRefusedError
    from tenfold.launchers.interface import checked_options
    from tenfold.launchers.slurm import SlurmLauncher
    from tenfold.launchers.slurm_script import job_script

    try:
        options = checked_options(SlurmLauncher(), launcher_options)
    except LaunchRefusedError as error:
        raise click.UsageError(str(error)) from None
    python = options.get("python", sys.executable)
    command = [python, "-P", "-m", "tenfold.cli", "run", *cluster.arguments()]
    command += [*launch_arguments("slurm", {"python": python}, resources), program, *arguments]
    script = job_script(name, cluster.jobs, resources, options, os.getcwd(), command, warning)
    click.echo(script, nl=False)
