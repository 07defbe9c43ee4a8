"""`tenfold drain`: lets a task end without breaking a step. It hears of it with its next heartbeat.

What the task does then is in registered_task.py; what the control service keeps of it in control_api's cluster.py.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import click

from tenfold.cli.runs import asking, cluster_option, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from tenfold.control import ControlClient
    from tenfold.control.cluster_answers import Task
    from tenfold_core.access.credentials import ShownToken

#: ps/0, or as the runtime spells it.
_TASK = re.compile(r"(?:/job:)?(?P<job>[A-Za-z]\w*)(?:/replica:0)?/(?:task:)?(?P<index>\d{1,9})")
#: Seconds beyond the grace that the heartbeat, stopping and the release may take.
_BEYOND_S = 60.0


@click.command()
@control_option
@cluster_option
@token_option
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    help="Seconds that running steps get.",
)
@click.option("--reason", default="drained by request", show_default=True, help="The reason that clients see.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return once the task has ended.")
@click.argument("task", metavar="TASK")
def drain(control: str, cluster_name: str, token: ShownToken, grace: float, reason: str, wait: bool, task: str) -> None:
    """Drain TASK (ps/0): it takes no new work, lets running steps end, and returns its place.

    Another task may take the place then. Exit code 0 once it has ended, 1 if it does not, or cannot be asked.
    """
    found = _TASK.fullmatch(task)
    if found is None:
        raise click.UsageError(f"{task!r} names no task; ps/0 or /job:ps/task:0 does.")
    with asking(control, token) as client:
        told = client.drain_task(cluster_name, found["job"], int(found["index"]), grace=grace, reason=reason)
        if not wait:
            click.echo(f"{told.name} is being drained")
            return
        click.echo(f"{told.name} is {_ended(client, told, grace)}")


def _ended(client: ControlClient, told: Task, grace: float) -> str:
    """How the task has ended. Blocks; raises ClickException if it has not after its grace and a while."""
    version, deadline = told.version, time.monotonic() + grace + _BEYOND_S
    while True:
        now = client.task_status(told.cluster, told.job, told.index)
        if now.incarnation != told.incarnation:
            return "drained, and another one has its place"
        if now.state != "ready":
            return f"{now.state}: {now.reason}"
        left = deadline - time.monotonic()
        if left <= 0:
            raise click.ClickException(f"{told.name} has not ended {grace + _BEYOND_S:g} s after it was asked to")
        version = client.poll_spec(told.cluster, after=version, wait=left).version
