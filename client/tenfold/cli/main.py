"""The `tenfold` command itself: joins the commands and turns their failures into one line and an exit code.

Exit codes: 0 done, 1 the answer is "no" or the work failed, 2 wrong usage (click's own), 128 and the signal's number
when a signal stopped it: 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import sys

import click

from tenfold.cli.control import control
from tenfold.cli.ping import ping
from tenfold.cli.run import run
from tenfold.cli.runs import delete, logs, runs, stop, submit
from tenfold.cli.status import status
from tenfold.cli.task import task
from tenfold.cli.up import up
from tenfold_core.blas_env import prefer_wide_kernels


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tenfold", prog_name="tenfold")
def cli() -> None:
    """Run dataflow graphs over many processes: TensorFlow 1.x's distributed runtime.

    Every option can also be given in the environment: TENFOLD_JOB, TENFOLD_CONTROL, … (each command's help names
    them), and a task understands TF_CONFIG.
    """


for command in (up, run, control, task, status, ping, submit, runs, logs, stop, delete):
    cli.add_command(command)


def main() -> None:
    """Entry point of the console script. Never returns: exits with the command's code."""
    # before anything loads NumPy: tasks compute in this process
    prefer_wide_kernels()
    sys.exit(cli(prog_name="tenfold", standalone_mode=True))
