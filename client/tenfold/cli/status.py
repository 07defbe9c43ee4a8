"""`tenfold status`: a table of jobs and tasks, and which are missing, from the control service."""

from __future__ import annotations

import json
from typing import Any

import click

#: How a task's state is shown.
STYLES = {"ready": "green", "finished": "blue", "missing": "yellow", "stopped": "yellow", "lost": "bold red"}


@click.command()
@click.option(
    "--control",
    default="http://localhost:8080",
    show_default=True,
    envvar="TENFOLD_CONTROL",
    show_envvar=True,
    help="URL of the control service.",
)
@click.option(
    "--cluster-name",
    default="default",
    show_default=True,
    envvar="TENFOLD_CLUSTER_NAME",
    show_envvar=True,
    help="Name of the cluster.",
)
@click.option("--token", envvar="TENFOLD_TOKEN", show_envvar=True, help="The control service's secret.")
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
def status(control: str, cluster_name: str, token: str | None, as_json: bool) -> None:
    """Show the jobs and tasks of a cluster, which are missing, stopped or lost, since when and why.

    Exit code 0 if the cluster is complete, 1 if not, or if the control service does not answer.
    """
    from tenfold.control import ControlClient
    from tenfold_core import errors

    try:
        with ControlClient(control, token, timeout=10.0) as client:
            jobs: list[dict[str, Any]] = client.job_status(cluster_name)["jobs"]
    except errors.OpError as error:
        raise click.ClickException(error.message) from None
    missing = [task for job in jobs for task in job["tasks"] if task["name"] in job["missing_tasks"]]
    if as_json:
        click.echo(json.dumps({"cluster": cluster_name, "jobs": jobs}, indent=2))
    else:
        _print(cluster_name, jobs, missing)
    raise SystemExit(1 if missing else 0)


def _print(cluster: str, jobs: list[dict[str, Any]], missing: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # What is piped into a file or another program must not be folded to the width of a terminal.
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    table = Table(title=f"cluster {cluster}", title_justify="left")
    for column in ("task", "state", "address", "since", "devices", "reason"):
        table.add_column(column)
    for job in jobs:
        for task in job["tasks"]:
            state = task["state"]
            table.add_row(
                f"/job:{task['job']}/task:{task['index']}",
                f"[{STYLES.get(state, 'default')}]{state}[/]",
                escape(task["address"] or ""),
                escape(task["since"]),
                ", ".join(sorted(_short(device["name"]) for device in task["devices"])),
                escape(task["reason"]),
            )
    console.print(table)
    if missing:
        for task in missing:
            console.print(f"/job:{task['job']}/task:{task['index']} is {task['state']}: {escape(task['reason'])}")
    else:
        console.print("complete")


def _short(device: str) -> str:
    """ "/job:ps/replica:0/task:0/device:CPU:0" → "CPU:0"."""
    return device.rpartition("device:")[2]
