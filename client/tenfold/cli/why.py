"""`tenfold why`: who keeps a run, a cluster or a session waiting; what each task waits for, where its program is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tenfold.cli.runs import asking, control_option
from tenfold.cli.tokens import token_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.control import Why, WhyTask, WhyThread, WhyWait
    from tenfold_core.access.credentials import ShownToken

#: Waits and threads of a task that are shown without --stacks.
_SHOWN = 8
#: What the runtime does in a thread, in words.
_DOING = {
    "run": "waits for a step",
    "create": "waits for its session",
    "chief": "waits for the chief to initialise",
    "join": "waits for the end",
    "": "is in the program's own code",
}


@click.command()
@control_option
@token_option
@click.option("--cluster-name", "cluster", metavar="NAME", help="Ask the tasks of this cluster.")
@click.option("--session", metavar="SESSION", help="Ask about this session, a name that `POST /v1/sessions` gave.")
@click.option("--stacks", is_flag=True, help="Show the Python stacks of the programs' threads, too.")
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.argument("run", required=False, metavar="[RUN]")
def why(
    control: str,
    token: ShownToken,
    cluster: str | None,
    session: str | None,
    stacks: bool,
    as_json: bool,
    run: str | None,
) -> None:
    """Say why RUN is stuck: the suspect in one sentence, and the evidence.

    Asks every program of the run, for at most two seconds, and names tasks that do not answer. It costs nothing
    when not in use.
    """
    if sum(each is not None for each in (run, cluster, session)) != 1:
        raise click.UsageError("name one of RUN, --cluster-name and --session")
    with asking(control, token) as client:
        if run is not None:
            found = client.why_run(run)
        else:
            found = client.why_cluster(cluster) if cluster is not None else client.why_session(session or "")
    if as_json:
        click.echo(json.dumps(found.json, indent=2))
        return
    for line in lines(found, stacks):
        click.echo(line)


def lines(found: Why, stacks: bool) -> Iterator[str]:
    """The answer as text."""
    yield found.suspect
    if found.because:
        yield ""
        yield "How this is known:"
        yield from (f"  {each}" for each in found.because)
    for task in found.tasks:
        yield ""
        yield f"{task.name}  {task.state}" + (f": {task.reason}" if task.reason else "")
        if task.silence:
            yield f"  did not answer: {task.silence}"
        yield from (f"  {each}" for each in _of_task(task, stacks))


def _of_task(task: WhyTask, stacks: bool) -> Iterator[str]:
    for step in task.steps[:_SHOWN]:
        yield f"Session.run of {', '.join(step.names)} for {step.seconds:.1f} s"
    shown = task.waits if stacks else task.waits[:_SHOWN]
    yield from map(_wait, shown)
    if len(task.waits) > len(shown):
        yield f"… and {len(task.waits) - len(shown)} more waits"
    for thread in task.threads if stacks else task.threads[:_SHOWN]:
        yield f"thread {thread.name} {_doing(thread)}"
        if stacks:
            yield from (f"    {each.file}:{each.line} in {each.function}" for each in thread.frames)


def _wait(wait: WhyWait) -> str:
    return wait.text + (f", for {wait.seconds:.1f} s" if wait.seconds is not None else "")


def _doing(thread: WhyThread) -> str:
    if thread.node is not None:
        return f"computes '{thread.node}' ({thread.op})"
    return _DOING.get(thread.doing, thread.doing)
