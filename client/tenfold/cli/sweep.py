"""`tenfold sweep`: a program run with many settings of its parameters, a few at a time, the worst stopped early."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tenfold.cli.cluster_options import cluster_options
from tenfold.cli.group import ProgramCommand
from tenfold.cli.launching import byte_size, launch_options
from tenfold.cli.runs import asking, control_option
from tenfold.cli.sweep_space import dimension_options
from tenfold.cli.tables import plain_console, plain_table
from tenfold.cli.tokens import token_option
from tenfold_core.parameter_values import write_value

if TYPE_CHECKING:
    from tenfold.cli.cluster_options import ClusterOptions
    from tenfold.control import ControlClient, Sweep, Trial
    from tenfold.launchers import Resources
    from tenfold.sweeps.space import Dimension
    from tenfold_core.access.credentials import ShownToken

#: Seconds of a look at a sweep in which nothing happens.
_LOOK_S = 20.0


@click.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@cluster_options
@dimension_options(required=True)
@click.option(
    "--total-cores", type=click.IntRange(min=1), help="Cores that the runs share; of --on local this machine's."
)
@click.option("--total-memory", callback=byte_size, metavar="SIZE", help="Memory that they share; as --total-cores.")
@click.option("--metric", metavar="NAME", help="The scalar by which the runs are compared, as loss.")
@click.option("--goal", type=click.Choice(("min", "max")), default="min", show_default=True, help="What is best.")
@click.option("--stop-early", is_flag=True, help="Stop a run whose best is worse than the median of the others.")
@click.option(
    "--grace-steps", type=click.IntRange(min=0), default=0, show_default=True, help="Steps that every run may make."
)
@click.option(
    "--min-others", type=click.IntRange(min=1), default=2, show_default=True, help="Others that must be as far."
)
@click.option("--name", metavar="NAME", help="The sweep's name and its runs' tag. Use it again to resume the sweep.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="One more tag of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@launch_options
@control_option
@token_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def sweep(
    cluster: ClusterOptions,
    dimensions: list[Dimension],
    draws: int | None,
    seed: int,
    parallel: int | None,
    total_cores: int | None,
    total_memory: int | None,
    metric: str | None,
    goal: str,
    stop_early: bool,
    grace_steps: int,
    min_others: int,
    name: str | None,
    tags: tuple[str, ...],
    as_json: bool,
    on: str,
    launcher_options: dict[str, str],
    resources: dict[str, Resources],
    control: str,
    token: ShownToken,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND (a file, or `python` and its arguments) with every setting of the parameters, each a run of its own.

    A parameter becomes an argument --NAME=VALUE, or stands where an argument has {NAME}. The control service starts the
    runs, as of `tenfold submit`: at most --parallel at once, and no more than find room. A run takes the --cores and
    --memory of its tasks, or one core for each worker. Ctrl-C cancels the sweep; the same command with the same --name
    resumes it. Exit code 1 if a run failed or was not started.
    """
    from tenfold.cli.signals import stop_signals
    from tenfold.runs.entrypoint import is_python
    from tenfold.runs.source import source_of

    if metric is None and stop_early:
        raise click.UsageError("--stop-early compares the runs by a scalar: name it with --metric, as --metric loss")
    called = name or f"sweep-{secrets.token_hex(4)}"
    # a file of Python needs no interpreter before it
    entrypoint = ["python", *command] if command[0].endswith(".py") and not is_python(command[0]) else list(command)
    program = {
        **{"entrypoint": entrypoint, "jobs": cluster.jobs, "working_dir": os.getcwd()},
        **{"launcher": on, "launcher_options": launcher_options, "tags": list(tags)},
        **{"guide_flags": cluster.guide_flags, "as_tensorflow": cluster.as_tensorflow},
        **{"source": source_of(os.getcwd()), "resources": {job: asdict(each) for job, each in resources.items()}},
    }
    options = {
        **{"random": None if draws is None else {"count": draws, "seed": seed}, "parallel": parallel or 1},
        **{"total_cores": total_cores, "total_memory": total_memory, "metric": metric, "goal": goal},
        **{"stop_early": {"grace_steps": grace_steps, "min_others": min_others} if stop_early else None},
    }
    spaces = {each.name: each.space() for each in dimensions}
    with asking(control, token) as client:
        found = client.create_sweep(spaces, program, name=called, **options)
        if found.state == "STOPPED":
            found = client.resume_sweep(called)
        text = f"{called}: {found.settings} settings; `tenfold runs --filter tag={called}` lists their runs"
        click.echo(text, err=True)
        with stop_signals(lambda each: _cancel(client, called, f"stopped by {each.name}")) as signals:
            found = _follow(client, found)
    _show(found, as_json)
    if signals.received is not None:
        raise SystemExit(signals.exit_code)
    raise SystemExit(0 if found.succeeded else 1)


def _cancel(client: ControlClient, name: str, reason: str) -> None:
    """On the thread of the signals: the sweep's end is seen by who follows it."""
    from tenfold_core import errors

    try:
        client.cancel_sweep(name, reason=reason)
    except errors.OpError as error:
        click.echo(f"{name} is not cancelled: {error.message}", err=True)


def _follow(client: ControlClient, found: Sweep) -> Sweep:
    """Says what becomes of the trials, and gives the sweep at its end. Blocks."""
    said: dict[int, str] = {}
    while True:
        for trial in found.trials:
            if trial.state not in ("WAITING", said.get(trial.index)):
                _say(found.name, trial, is_new=trial.index not in said)
                said[trial.index] = trial.state
        if found.final:
            return found
        found = client.poll_sweep(found.name, after=found.version, wait=_LOOK_S)


def _say(sweep: str, trial: Trial, *, is_new: bool) -> None:
    called = f"{sweep}/{trial.index}"
    if trial.run is not None and is_new:
        setting = " ".join(f"{name}={write_value(value)}" for name, value in trial.parameters.items())
        click.echo(f"{called} is {trial.run}: {setting}", err=True)
    if trial.state == "REFUSED":
        click.echo(f"{called} is not started: {trial.reason}", err=True)
    elif trial.state != "RUNNING":
        state = "was stopped early" if trial.stopped_early else f"has {trial.state}"
        click.echo(f"{called} {state}{'' if trial.reason is None else f': {trial.reason}'}", err=True)


def _show(found: Sweep, as_json: bool) -> None:
    """The trials, the best first."""
    sign = 1 if found.goal == "min" else -1
    # those without a value last
    ranked = {each.index: (each.best is None, sign * float(each.best or 0)) for each in found.trials}
    trials = sorted(found.trials, key=lambda each: ranked[each.index])
    if as_json:
        members = ("run", "state", "stopped_early", "reason", "parameters", "best")
        shown = [{"trial": each.index, **{name: each[name] for name in members}} for each in trials]
        click.echo(json.dumps({"sweep": found.name, "metric": found.metric, "trials": shown}, indent=2))
        return
    names = list(trials[0].parameters)
    heads = ("trial", "run", "state", *names, *(() if found.metric is None else (f"best {found.metric}",)))
    plain_console().print(plain_table(heads, [_row(each, names, found.metric is not None) for each in trials]))


def _row(trial: Trial, names: list[str], compared: bool) -> tuple[str, ...]:
    state = "stopped early" if trial.stopped_early else trial.state
    values = [write_value(trial.parameters[name]) for name in names]
    row = (str(trial.index), trial.run or "", state, *values)
    if not compared:
        return row
    return (*row, "" if trial.best is None else f"{float(trial.best):.6g}")
