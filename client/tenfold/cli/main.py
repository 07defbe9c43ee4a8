"""The `tenfold` command itself: joins the commands and turns their failures into one line and an exit code.

Exit codes: 0 done, 1 the answer is "no" or the work failed, 2 wrong usage (click's own), 128 and the signal's number
when a signal stopped it: 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import sys

import click

from tenfold.cli.artifacts import artifacts
from tenfold.cli.backup import backup, restore
from tenfold.cli.certs import certs
from tenfold.cli.colours import asked_for
from tenfold.cli.compact import compact
from tenfold.cli.compare import compare
from tenfold.cli.completion import completion
from tenfold.cli.config import META, Config, find, load, show_config
from tenfold.cli.control import control
from tenfold.cli.demo import demo
from tenfold.cli.doctor.command import doctor
from tenfold.cli.drain import drain
from tenfold.cli.edit import edit
from tenfold.cli.export import export
from tenfold.cli.group import Group
from tenfold.cli.launching import launchers
from tenfold.cli.model import model
from tenfold.cli.ping import ping
from tenfold.cli.placement import placement
from tenfold.cli.render import render
from tenfold.cli.run import run
from tenfold.cli.runs import delete, logs, runs, stop, submit
from tenfold.cli.signals import exit_on_sigterm
from tenfold.cli.status import status
from tenfold.cli.sweep import sweep
from tenfold.cli.tables_command import tables
from tenfold.cli.task import task
from tenfold.cli.tensorboard import tensorboard
from tenfold.cli.tokens import token
from tenfold.cli.trace import trace
from tenfold.cli.tunnel import tunnel
from tenfold.cli.up import up
from tenfold.cli.why import why
from tenfold_core.access import core_files
from tenfold_core.blas_env import prefer_wide_kernels


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tenfold", prog_name="tenfold")
@click.option(
    "--config",
    metavar="FILE",
    envvar="TENFOLD_CONFIG",
    show_envvar=True,
    help="TOML file with defaults of options; by default tenfold.toml here, or ~/.config/tenfold/config.toml.",
)
@click.pass_context
def cli(context: click.Context, config: str | None) -> None:
    """Run dataflow graphs over many processes: TensorFlow 1.x's distributed runtime.

    Every option can also be given in the environment: TENFOLD_JOB, TENFOLD_CONTROL, … (each command's help names
    them), and in a file; a task understands TF_CONFIG. `tenfold config` shows what is in force.
    """
    context.color = asked_for()
    assert isinstance(context.command, click.Group)
    path = find(config)
    found = context.meta[META] = Config() if path is None else load(path, context.command)
    context.default_map = found.default_map(context.command)


for command in (
    *(demo, up, run, control, task, status, ping),
    *(submit, sweep, runs, compare, artifacts, export, edit, logs, stop, delete, launchers, render, tensorboard),
    *(placement, tables, trace, why, drain, tunnel, model),
    *(backup, restore, compact),
    *(token, certs, show_config, completion, doctor),
):
    cli.add_command(command)


def main() -> None:
    """Entry point of the console script. Never returns: exits with the command's code."""
    core_files.write_none()
    # before anything loads NumPy: tasks compute in this process
    prefer_wide_kernels()
    exit_on_sigterm()
    sys.exit(cli(prog_name="tenfold", standalone_mode=True))
