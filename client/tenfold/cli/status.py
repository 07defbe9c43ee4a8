"""`tenfold status`: the tasks of a cluster, which are missing, their tables, and the newest runs, from the control
service."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.run_views import progress_of
from tenfold.cli.runs import asking, cluster_option, control_option
from tenfold.cli.tables import age, plain_console, shown_table
from tenfold.cli.tables_command import summary
from tenfold.cli.tokens import token_option
from tenfold_core import errors

if TYPE_CHECKING:
    from rich.console import Group

    from tenfold.control import ControlClient
    from tenfold_core.access.credentials import ShownToken

#: Runs that are shown, and tables, the largest.
_RUNS, _TABLES = 5, 5
#: Seconds between two looks of --watch.
_EVERY_S = 1.0
#: Seconds between two attempts of --wait to reach the service.
_RETRY_S = 0.2


@click.command()
@control_option
@cluster_option
@token_option
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0, max=86_400),
    default=0.0,
    help="Seconds to wait, at most, until the service answers and the cluster is complete.",
)
def status(control: str, cluster_name: str, token: ShownToken, as_json: bool, watch: bool, wait: float) -> None:
    """Show the tasks of a cluster, which are missing, stopped or lost, since when and why, and the newest runs.

    Exit code 0 if the cluster is complete, 1 if not, or if the control service does not answer.
    """
    with asking(control, token) as client:
        if wait:
            _wait(client, cluster_name, wait)
        if watch:
            _watch(client, cluster_name)
            return
        jobs, runs, service, tables = _ask(client, cluster_name)
    if as_json:
        found = {"cluster": cluster_name, "jobs": jobs or [], "runs": runs, "service": service, "tables": tables}
        click.echo(json.dumps(found, indent=2))
    else:
        console = plain_console()
        console.print(rendered(cluster_name, jobs, runs, service, tables, datetime.now(UTC), console.width))
    raise SystemExit(1 if jobs is None or missing_of(jobs) else 0)


def missing_of(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks that the cluster waits for."""
    return [task for job in jobs for task in job["tasks"] if task["name"] in job["missing_tasks"]]


def open_to_all(jobs: list[dict[str, Any]], service: dict[str, Any] | None) -> list[str]:
    """A line for each that accepts anyone who reaches it."""
    told = ["the control service"] if service is not None and service["insecure"] else []
    # what is gone has no port any more; services of before say nothing
    tasks = [task for job in jobs for task in job["tasks"] if task.get("insecure") and task["state"] == "ready"]
    told += [f"/job:{task['job']}/task:{task['index']}" for task in tasks]
    return [f"insecure: anyone who reaches {each} may run code there" for each in told]


def gpus_of(jobs: list[dict[str, Any]]) -> list[str]:
    """A line for each task with GPUs that is ready."""
    lines = []
    for task in (task for job in jobs for task in job["tasks"] if task["state"] == "ready"):
        gpus = [each for each in task.get("devices", ()) if each["device_type"] == "GPU"]
        if gpus:
            names = dict.fromkeys(_model(each["physical_device_desc"]) for each in gpus)
            lines.append(f"/job:{task['job']}/task:{task['index']} has {_gpus(len(gpus))}: {', '.join(names)}")
    return lines


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _model(description: str) -> str:
    """`NVIDIA H200` of a device's description, as DeviceAttributes has it."""
    return description.rpartition("name: ")[2].partition(", ")[0] or "of an unknown model"


def rendered(
    cluster: str,
    jobs: list[dict[str, Any]] | None,
    runs: list[dict[str, Any]],
    service: dict[str, Any] | None,
    tables: dict[str, Any] | None,
    now: datetime,
    width: int,
) -> Group:
    """What is printed in `width` columns: the runs, a line for each task, the largest tables, each task that is missed,
    who is open to all. `jobs` is None for a cluster that is not declared: programs of runs have clusters of their own;
    `service` is None for one of before, which does not tell of itself."""
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
    warned = [Text(line, style="red") for line in open_to_all(jobs or [], service)]
    if jobs is None:
        return Group(*parts, Text(f"cluster {cluster} is not declared"), *warned)
    told = [
        Text(f"/job:{task['job']}/task:{task['index']} is {task['state']}: {task['reason']}")
        for task in missing_of(jobs)
    ]
    gpus = map(Text, gpus_of(jobs))
    names = ("task", "state", "since", "address", "why")
    table = shown_table(f"cluster {cluster}", names, tasks, width)
    largest = [] if tables is None else [summary("the cluster", tables, width, _TABLES)]
    return Group(*parts, table, *largest, *gpus, *(told or [Text("complete")]), *warned)


def _ask(
    client: ControlClient, cluster: str
) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]], dict[str, Any] | None, dict[str, Any] | None]:
    """The jobs of the cluster, the newest runs, the service, and the tables of the cluster's tasks. Raises
    NotFoundError where there are no jobs and no runs."""
    runs = [run.json for run in client.runs(limit=_RUNS)]
    service: dict[str, Any] | None = None
    with suppress(errors.NotFoundError):
        service = client.service().json
    try:
        found = client.jobs(cluster)
    except errors.NotFoundError:
        if not runs:
            raise
        return None, runs, service, None
    return found["jobs"], runs, service, found.get("tables")


def _wait(client: ControlClient, cluster: str, seconds: float) -> None:
    """Returns once the cluster is complete, or so many seconds have passed. Blocks."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            client.wait_for_spec(cluster, until_complete=True, timeout=left)
        except errors.DeadlineExceededError:
            continue  # of one request, or of all
        except (errors.UnavailableError, errors.NotFoundError):
            # it does not listen yet, or nobody has declared the cluster yet
            time.sleep(min(_RETRY_S, left))
        else:
            return


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
