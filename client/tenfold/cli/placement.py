"""`tenfold placement`: which node of a session is on which device, and why; what lies on each task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tables import plain_console, shown_table
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from rich.console import Group

    from tenfold.control import Placement
    from tenfold_core.access.credentials import ShownToken

#: Units of bytes, the largest first.
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@click.command()
@control_option
@token_option
@click.option("--name", default="", metavar="TEXT", help="Only nodes with TEXT in their name.")
@click.option("--op", metavar="OP", help="Only nodes of this op, as MatMul.")
@click.option("-n", "limit", type=click.IntRange(min=1), default=1000, show_default=True, help="How many nodes.")
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.argument("session", metavar="SESSION")
def placement(
    control: str, token: ShownToken, name: str, op: str | None, limit: int, as_json: bool, session: str
) -> None:
    """Show where the nodes of SESSION are, why, and how much is on each task.

    SESSION is a name that `POST /v1/sessions` returned.
    """
    with asking(control, token) as client:
        found = client.placement(session, name=name, op=op, limit=limit)
    if as_json:
        click.echo(json.dumps(found.json, indent=2))
        return
    console = plain_console()
    console.print(rendered(found, console.width))


def rendered(found: Placement, width: int) -> Group:
    """What is printed in `width` columns: a line for each task, then one for each node."""
    from rich.console import Group
    from rich.text import Text

    tasks = [
        (short(task.task), str(task.nodes), str(task.variables), size(task.variable_bytes)) for task in found.tasks
    ]
    nodes = [(node.name, node.op, short(node.assigned) or "-", node.reason) for node in found.nodes]
    parts: list[Any] = [
        shown_table(f"session {found.session}", ("task", "nodes", "variables", "bytes"), tasks, width),
        Text(),
        shown_table(None, ("node", "op", "device", "why"), nodes, width),
    ]
    if found.next is not None:
        parts.append(Text("… and more: -n shows them, --name and --op choose"))
    return Group(*parts)


def short(device: str) -> str:
    """ "/job:ps/replica:0/task:0/device:CPU:0" → "ps/0 CPU:0"; a task's name → "ps/0"."""
    task, _, kind = device.partition("/device:")
    job, _, index = task.removeprefix("/job:").replace("/replica:0", "").partition("/task:")
    return f"{job}/{index} {kind}".strip(" /")


def size(count: int) -> str:
    """ "1.5 MiB"."""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"
