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
from tenfold.cli.sweep_space import space_options
from tenfold.cli.tables import plain_console, plain_table
from tenfold.cli.tokens import token_option
from tenfold_core.parameter_values import write_value

if TYPE_CHECKING:
    from tenfold.cli.cluster_options import ClusterOptions
    from tenfold.launchers import Resources
    from tenfold.sweeps.machine import Room, SweepMachine, Trial
    from tenfold.sweeps.median import Goal, MedianRule
    from tenfold.sweeps.space import Point
    from tenfold_core.access.credentials import ShownToken

_LOCAL = "local"


@click.command(cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@cluster_options
@space_options(required=True)
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
    points: list[Point],
    parallel: int | None,
    total_cores: int | None,
    total_memory: int | None,
    metric: str | None,
    goal: Goal,
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
    --memory of its tasks, or one core for each worker. Exit code 1 if a run failed or was not started.
    """
    from tenfold.cli.signals import stop_signals
    from tenfold.runs.entrypoint import is_python
    from tenfold.runs.source import source_of
    from tenfold.sweeps.driver import SweepDriver, SweepProgram
    from tenfold.sweeps.machine import SweepMachine
    from tenfold.sweeps.median import MedianRule

    if metric is None and stop_early:
        raise click.UsageError("--stop-early compares the runs by a scalar: name it with --metric, as --metric loss")
    rule = None if metric is None else MedianRule(goal, grace_steps, min_others)
    called = name or f"sweep-{secrets.token_hex(4)}"
    # a file of Python needs no interpreter before it
    entrypoint = ("python", *command) if command[0].endswith(".py") and not is_python(command[0]) else command
    try:
        there = _there(on, total_cores, total_memory)
        each = _taken(cluster.jobs, resources, there)
        machine = SweepMachine(
            points, parallel=parallel or 1, each=each, there=there, rule=rule if stop_early else None
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    submission = {
        **{"jobs": cluster.jobs, "working_dir": os.getcwd(), "on": on, "launcher_options": launcher_options},
        **{
            "guide_flags": cluster.guide_flags,
            "as_tensorflow": cluster.as_tensorflow,
            "source": source_of(os.getcwd()),
        },
        "resources": {job: asdict(needed) for job, needed in resources.items()},
    }
    click.echo(f"{called}: {len(points)} settings; `tenfold runs --filter tag={called}` lists their runs", err=True)
    with asking(control, token) as client:
        driver = SweepDriver(
            client,
            SweepProgram(called, entrypoint, metric, submission, tags),
            machine,
            say=lambda line: click.echo(line, err=True),
        )
        with stop_signals(lambda each: driver.stop(f"stopped by {each.name}")) as signals:
            driver.run()
    _show(called, machine, metric, rule, as_json)
    if signals.received is not None:
        raise SystemExit(signals.exit_code)
    raise SystemExit(0 if all(trial.early or trial.state == "SUCCEEDED" for trial in machine.trials) else 1)


def _there(on: str, cores: int | None, memory: int | None) -> Room:
    """What the runs share: what was given, else all of this machine where they run here."""
    from tenfold.sweeps.machine import Room

    if on != _LOCAL:
        return Room(cores, memory)
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Room(cores or here, memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _taken(jobs: dict[str, int], resources: dict[str, Resources], there: Room) -> Room:
    """What a run takes: what its tasks ask for, else a core for each worker and the chief, as far as there are any."""
    from tenfold.sweeps.machine import Room

    asked = {job: needed.cores for job, needed in resources.items() if needed.cores is not None}
    cores = sum(size * (asked.get(job, 0) if asked else int(job in ("worker", "chief"))) for job, size in jobs.items())
    if not asked and there.cores is not None:
        cores = min(cores, there.cores)
    return Room(cores, sum(size * (resources[job].memory or 0) for job, size in jobs.items() if job in resources))


def _show(name: str, machine: SweepMachine, metric: str | None, rule: MedianRule | None, as_json: bool) -> None:
    """The trials, the best first."""
    trials = machine.trials if rule is None else sorted(machine.trials, key=lambda each: rule.place(each.curve))
    if as_json:
        shown = [
            {
                **{"trial": each.index, "run": each.run, "state": each.state, "stopped_early": each.early},
                **{
                    "reason": each.reason,
                    "parameters": each.point,
                    "best": None if rule is None else rule.best(each.curve),
                },
            }
            for each in trials
        ]
        click.echo(json.dumps({"sweep": name, "metric": metric, "trials": shown}, indent=2))
        return
    names = list(machine.trials[0].point)
    heads = ("trial", "run", "state", *names, *(() if metric is None else (f"best {metric}",)))
    plain_console().print(plain_table(heads, [_row(each, names, rule) for each in trials]))


def _row(trial: Trial, names: list[str], rule: MedianRule | None) -> tuple[str, ...]:
    state = "stopped early" if trial.early else trial.state or trial.phase
    values = [write_value(trial.point[name]) for name in names]
    row = (str(trial.index), trial.run or "", state, *values)
    if rule is None:
        return row
    best = rule.best(trial.curve)
    return (*row, "" if best is None else f"{best:.6g}")
