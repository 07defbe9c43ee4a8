"""`tenfold trace`: one trace over all tasks, of a run's next steps or of a step of a session, into a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from tenfold_core.access.credentials import ShownToken


@click.command()
@control_option
@token_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True),
    default="trace.json",
    show_default=True,
    help="The file that is written.",
)
@click.option(
    "--steps", type=click.IntRange(1, 100), default=1, show_default=True, help="Of a run: how many of each program."
)
@click.option("--task", "tasks", multiple=True, metavar="JOB/INDEX", help="Of a run: only this program's, as worker/0.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 30),
    default=30,
    show_default=True,
    help="Of a run: seconds to wait for its programs.",
)
@click.option("--fetch", "fetches", multiple=True, metavar="TENSOR", help="Of a session: what a step fetches, as y:0.")
@click.option("--target", "targets", multiple=True, metavar="OP", help="Of a session: an operation that the step runs.")
@click.argument("name", metavar="RUN|SESSION")
def trace(
    control: str,
    token: ShownToken,
    output: str,
    steps: int,
    tasks: tuple[str, ...],
    wait: float,
    fetches: tuple[str, ...],
    targets: tuple[str, ...],
    name: str,
) -> None:
    """Write what the tasks did in the next steps of RUN, or in a step of SESSION, as a trace for ui.perfetto.dev.

    SESSION, a name that `POST /v1/sessions` gave, runs a step with --fetch and --target. Exit code 1 if no program ran
    a step in time.
    """
    with asking(control, token) as client:
        if fetches or targets:
            found = client.trace_session(name, fetches=fetches, targets=targets)
        elif name.startswith("run-"):
            found = client.trace_run(name, steps=steps, tasks=tasks, wait=wait)
        else:
            raise click.UsageError(f"{name} is not a run; a session's step needs --fetch or --target")
    with open(output, "w", encoding="utf-8") as file:
        json.dump(found, file, separators=(",", ":"))
    for line in summary(found):
        click.echo(line)
    click.echo(f"{output} is for https://ui.perfetto.dev or chrome://tracing", err=True)


def summary(found: dict[str, Any]) -> list[str]:
    """What is in the file, and what is not."""
    about = found["metadata"]
    arrows = sum(event["ph"] == "s" for event in found["traceEvents"])
    nodes = sum(step["nodes"] for step in about["steps"])
    lines = [
        f"{len(about['steps'])} steps of {len({step['task'] for step in about['steps']})} clients on "
        f"{len(about['tasks'])} processes: {nodes} nodes, {arrows} tensors sent"
    ]
    for task in about["tasks"]:
        error = task["clock_error_us"]
        if task["clock_offset_us"]:
            bound = "unknown" if error is None else f"±{error:.0f} µs"
            lines.append(f"clock of {task['task']}: {task['clock_offset_us']:+.0f} µs ({bound})")
    lines += [f"missing {each['task']}: {each['reason']}" for each in about["missing"]]
    return lines + [f"{each['task']}: {each['note']}" for each in about["notes"]]
