"""`tenfold status`: the tasks of a cluster, which are missing, and the newest runs, from the control service."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.run_views import progress_of
from tenfold.cli.runs import asking, cluster_option, control_option
from tenfold.cli.tables import age, plain_console, shown_table
from tenfold.cli.tokens import token_option
from tenfold_core import errors

if TYPE_CHECKING:
    from rich.console import Group

    from tenfold.control import ControlClient

#: Runs that are shown.
_RUNS = 5
#: Seconds between two looks of --watch.
_EVERY_S = 1.0


@click.command()
@control_option
@cluster_option
@token_option
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
def status(control: str, cluster_name: str, token: str | None, as_json: bool, watch: bool) -> None:
    """Show the tasks of a cluster, which are missing, stopped or lost, since when and why, and the newest runs.

    Exit code 0 if the cluster is complete, 1 if not, or if the control service does not answer.
    """
    with asking(control, token) as client:
        if watch:
            _watch(client, cluster_name)
            return
        jobs, runs = _ask(client, cluster_name)
    if as_json:
        click.echo(json.dumps({"cluster": cluster_name, "jobs": jobs or [], "runs": runs}, indent=2))
    else:
        console = plain_console()
        console.print(rendered(cluster_name, jobs, runs, datetime.now(UTC), console.width))
    raise SystemExit(1 if jobs is None or missing_of(jobs) else 0)


def missing_of(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks that the cluster waits for."""
    return [task for job in jobs for task in job["tasks"] if task["name"] in job["missing_tasks"]]


def rendered(
    cluster: str, jobs: list[dict[str, Any]] | None, runs: list[dict[str, Any]], now: datetime, width: int
) -> Group:
    """What is printed in `width` columns: the runs, a line for each task, each task that is missed. `jobs` is None for
    a cluster that is not declared: programs of runs have clusters of their own."""
    from rich.console import Group
    from rich.text import Text

    tasks = [
        (
            f"{task['job']}/{task['index']}",
            task["state"],
            age(task["since"], now),
            task["address"] or "",
            task["reason"],
        )
        for job in jobs or ()
        for task in job["tasks"]
    ]
    listed = [
        (
            run["name"],
            run["state"],
            age(run["ended"] or run["started"] or run["created"], now),
            progress_of(run),
            run["reason"],
        )
        for run in runs
    ]
    columns = ("run", "state", "since", "progress", "why")
    parts: list[Any] = [shown_table("runs", columns, listed, width)] if runs else []
    if jobs is None:
        return Group(*parts, Text(f"cluster {cluster} is not declared"))
    told = [
        Text(f"/job:{task['job']}/task:{task['index']} is {task['state']}: {task['reason']}")
        for task in missing_of(jobs)
    ]
    names = ("task", "state", "since", "address", "why")
    return Group(*parts, shown_table(f"cluster {cluster}", names, tasks, width), *(told or [Text("complete")]))


def _ask(client: ControlClient, cluster: str) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """The jobs of the cluster and the newest runs. Raises NotFoundError where there is neither."""
    runs = [run.json for run in client.runs(limit=_RUNS)]
    try:
        return client.jobs(cluster)["jobs"], runs
    except errors.NotFoundError:
        if not runs:
            raise
        return None, runs


def _watch(client: ControlClient, cluster: str) -> None:
    from rich.live import Live

    console = plain_console()
    terminal = console.file.isatty()
    with Live(console=console, auto_refresh=False, screen=True) if terminal else nullcontext() as live:
        try:
            while True:
                shown = rendered(cluster, *_ask(client, cluster), datetime.now(UTC), console.width)
                if live is not None:
                    live.update(shown, refresh=True)
                else:  # one after the other
                    console.print(shown)
                    console.file.flush()
                time.sleep(_EVERY_S)
        except KeyboardInterrupt:
            return
