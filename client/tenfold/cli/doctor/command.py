"""The command: a line for each finding, what to do below it, and the exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tenfold.cli.task_settings import read_cluster
from tenfold.cli.tokens import token_option
from tenfold_core.open_files import needed_by_task
from tenfold_core.user_folders import default_database

if TYPE_CHECKING:
    from tenfold.cli.doctor.cluster import Addresses
    from tenfold.cli.doctor.finding import Finding
    from tenfold_core.access.credentials import ShownToken

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option("--control", envvar="TENFOLD_CONTROL", help="Look at this control service and its tasks, too: a URL.")
@click.option("--cluster", envvar="TENFOLD_CLUSTER", help="Look at these tasks, too: JSON, or a file that holds it.")
@click.option(
    "--cluster-name",
    default="default",
    show_default=True,
    envvar="TENFOLD_CLUSTER_NAME",
    help="Name of the cluster at the control service.",
)
@token_option
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8080,
    show_default=True,
    envvar="TENFOLD_HTTP_PORT",
    help="The port that a control service here would have.",
)
@click.option(
    "--link-port",
    type=click.IntRange(0, 65535),
    default=0,
    envvar="TENFOLD_LINK_PORT",
    help="The port for links that a task here would have; 0, the default: any free one.",
)
@click.option(
    "--database",
    default=default_database,
    show_default="~/.local/state/tenfold/control.db",
    envvar="TENFOLD_DATABASE",
    help="The database that a control service here would have.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=30),
    default=5.0,
    show_default=True,
    help="Seconds that each answer may take.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(
    control: str | None,
    cluster: str | None,
    cluster_name: str,
    token: ShownToken,
    port: int,
    link_port: int,
    database: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Look for what may be wrong: with this machine, and with a control service and the tasks of a cluster.

    Exit code 1 if anything has failed, 0 if not; a warning is not a failure.
    """
    from tenfold.cli.doctor import cluster as tasks
    from tenfold.cli.doctor import machine

    addresses = {} if cluster is None else _named(cluster)
    of_service: list[Finding] = []
    if control is not None:
        of_service, registered = tasks.of_service(control.rstrip("/"), cluster_name, token, timeout)
        addresses |= registered
    files = needed_by_task(len(addresses))
    found = [*machine.examined(machine.look(port, database, link_port), files), *of_service]
    if addresses:
        found += tasks.resolved(addresses)
        found += tasks.of_tasks(addresses, timeout, token.settings.credentials())
    if as_json:
        click.echo(json.dumps([{name: getattr(each, name) for name in each.__slots__} for each in found], indent=2))
    else:
        click.echo(shown(found))
    raise SystemExit(any(each.level == "fail" for each in found))


def _named(cluster: str) -> Addresses:
    from tenfold_core.device import task_name

    try:
        spec = read_cluster(cluster)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return {task_name(job, index): address for job, tasks in spec.items() for index, address in tasks.items()}


def shown(found: list[Finding]) -> str:
    """The findings as a terminal shows them."""
    lines = []
    for each in found:
        lines.append(f"{click.style(f'{each.level:4}', fg=_COLOURS[each.level])}  {each.what}: {each.says}")
        if each.remedy:
            lines.append(f"      → {each.remedy}")
    counts = [sum(each.level == level for each in found) for level in ("fail", "warn")]
    lines.append(f"{len(found)} looked at, {counts[0]} failed, {counts[1]} to look at.")
    return "\n".join(lines)
