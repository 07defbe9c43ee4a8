"""`tenfold submit | runs | logs | stop | delete`: programs that the control service runs, from the command line."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from tenfold.cli.cluster_options import cluster_options
from tenfold.cli.described import described_options
from tenfold.cli.launching import launch_options
from tenfold.cli.run_views import display_of_run, listed, moving_line, show
from tenfold.cli.tables import plain_console
from tenfold.cli.tokens import token_option
from tenfold_core.file_names import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.cli.cluster_options import ClusterOptions
    from tenfold.control import ControlClient, LogLine
    from tenfold.launchers import Resources
    from tenfold_core.access.credentials import ShownToken

#: The most lines that one request gives.
_ALL_LINES = 100_000

#: Where the control service is, for the commands that ask it.
control_option = click.option(
    "--control",
    default="http://localhost:8080",
    show_default=True,
    envvar="TENFOLD_CONTROL",
    show_envvar=True,
    help="URL of the control service.",
)
#: Which of its clusters.
cluster_option = click.option(
    "--cluster-name",
    default="default",
    show_default=True,
    envvar="TENFOLD_CLUSTER_NAME",
    show_envvar=True,
    help="Name of the cluster.",
)


@contextmanager
def asking(control: str, token: ShownToken) -> Iterator[ControlClient]:
    """A client whose refusals become one line and exit code 1."""
    from tenfold.control import ControlClient
    from tenfold_core import errors

    try:
        with ControlClient(control, token, timeout=10.0) as client:
            yield client
    except errors.OpError as error:
        raise click.ClickException(error.message + _more(error)) from None


def _more(error: BaseException) -> str:
    """Where to read what to do; before it a filter that was malformed, with a mark below the character."""
    from tenfold.control.problem import problem_of
    from tenfold_core.help_links import UNREACHABLE, link

    problem = problem_of(error)
    if problem is None:
        return f"\nWhat to do: {link(UNREACHABLE)}"
    help_text = f"\nWhat to do: {problem.help}" if problem.help else ""
    if problem.kind != "invalid-filter":
        return help_text
    return f"\n  {problem.members['filter']}\n  {' ' * int(problem.members['position'])}^{help_text}"


def _variables(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """ "NAME=VALUE" → {NAME: VALUE}; a NAME alone takes the value that it has here."""
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not name or (not equals and name not in os.environ):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, nor the name of a variable that is set here")
        found[name] = value if equals else os.environ[name]
    return found


@click.command(context_settings={"allow_interspersed_args": False})
@cluster_options
@click.option("--submission-id", metavar="ID", help="The same one again is the same run, and starts nothing.")
@click.option(
    "--working-dir",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="Folder, on the service's machine, in which the program starts; or a URL, whose files are sent.",
)
@click.option("--upload", is_flag=True, help="Send the folder of --working-dir, where the service does not have it.")
@click.option(
    "--env", "environment", multiple=True, callback=_variables, metavar="NAME[=VALUE]", help="A variable of the tasks."
)
@click.option(
    "--success",
    type=click.Choice(("chief", "all", "any")),
    default="all",
    show_default=True,
    help="Which tasks must end with exit code 0: the chief, every worker, or any worker.",
)
@click.option("--restarts", type=click.IntRange(min=0), default=0, show_default=True, help="Restarts after failures.")
@click.option("--alone", is_flag=True, help="Restart only the failed task, not all of them.")
@click.option("--deadline", type=click.FloatRange(min=0, min_open=True), help="Seconds after which the run fails.")
@described_options
@launch_options
@click.option("--wait", is_flag=True, help="Show the output, and end with the run: 0 if it succeeded, 1 if not.")
@control_option
@token_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(
    cluster: ClusterOptions,
    submission_id: str | None,
    working_dir: str,
    upload: bool,
    environment: dict[str, str],
    success: str,
    restarts: int,
    alone: bool,
    deadline: float | None,
    on: str,
    launcher_options: dict[str, str],
    resources: dict[str, Resources],
    described: dict[str, Any],
    wait: bool,
    control: str,
    token: ShownToken,
    command: tuple[str, ...],
) -> None:
    """Have the control service run COMMAND, as in `tenfold submit -- python trainer.py`, as every task of a cluster.

    The tasks run on its machine or, with --on, on an engine that it reaches (`tenfold launchers`). Prints the run's
    name. It continues without this command, and without the control service.
    """
    from tenfold.runs.source import source_of

    elsewhere = is_url(working_dir)
    upload = upload or elsewhere  # the service may not reach that store
    if upload:
        _check_program(command, working_dir)
    with asking(control, token) as client:
        run = client.submit_run(
            command,
            jobs=cluster.jobs,
            working_dir=None if upload else os.path.abspath(working_dir),
            package=client.upload_folder(working_dir) if upload else None,
            submission_id=submission_id,
            environment=environment,
            success=success,
            restarts={"limit": restarts, "gang": not alone},
            deadline=deadline,
            guide_flags=cluster.guide_flags,
            as_tensorflow=cluster.as_tensorflow,
            on=on,
            launcher_options=launcher_options,
            resources={job: asdict(needed) for job, needed in resources.items()},
            source=None if elsewhere else source_of(working_dir),
            **described,
        )
        click.echo(run["name"])
        if not wait:
            click.echo(f"tenfold logs -f {run['name']} shows its output.", err=True)
            return
        with moving_line(client, run.name):
            _follow(client, run.name, (), _ALL_LINES)
        raise SystemExit(_verdict(client.run(run.name).json))


def _check_program(command: tuple[str, ...], folder: str) -> None:
    """Before anything is sent: the service could only say that the package lacks the program. Of a folder that it has
    itself, it looks there."""
    from tenfold.runs.entrypoint import read_entrypoint
    from tenfold_core.files import EVERYWHERE

    file = read_entrypoint(command).file
    if file is None or os.path.isabs(file):
        return
    where = folder if is_url(folder) else os.path.abspath(folder)
    if not EVERYWHERE.exists(os.path.join(where, os.path.normpath(file))):
        raise click.UsageError(f"there is no file {file!r} in the folder {where}, which would be sent")


@click.command()
@control_option
@token_option
@click.option("--state", "states", multiple=True, help="Only runs in this state: PENDING, RUNNING, SUCCEEDED, …")
@click.option("--filter", "wanted", metavar="FILTER", help="Only runs of which this holds: 'tag=a and lr>0.01'.")
@click.option("--sort", metavar="NAME", help="By a parameter or scalar, as loss; -loss turns it round.")
@click.option("-n", "limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print what the control service says, as JSON.")
@click.option("--watch", is_flag=True, help="Look on until RUN has ended: its step, steps/s and loss.")
@click.argument("name", metavar="[RUN]", required=False)
def runs(
    control: str,
    token: ShownToken,
    states: tuple[str, ...],
    wanted: str | None,
    sort: str | None,
    limit: int,
    as_json: bool,
    watch: bool,
    name: str | None,
) -> None:
    """List the runs, or show RUN with its tasks: their states, exit codes and errors.

    Exit code 1 if RUN has failed or was stopped.
    """
    if watch and (as_json or not name):
        raise click.UsageError("--watch needs the name of a run, and no --json. `tenfold status --watch` shows all.")
    with asking(control, token) as client:
        if watch and name:
            client.watch(name, display=display_of_run())
        if name:
            asked = [client.run(name)]
        else:
            chosen = [state.upper() for state in states]
            asked = client.runs(states=chosen, filter=wanted, sort=sort, limit=limit)
    found = [run.json for run in asked]
    if as_json:
        click.echo(json.dumps(found[0] if name else {"runs": found}, indent=2))
    elif name:
        show(found[0])
    else:
        console = plain_console()
        console.print(listed(found, datetime.now(UTC), console.width, sort and sort.removeprefix("-")))
    if name and found[0]["state"] in ("FAILED", "STOPPED"):
        raise SystemExit(1)


@click.command()
@control_option
@token_option
@click.option("--task", "tasks", multiple=True, metavar="JOB/INDEX", help="Only of this task, as worker/0.")
@click.option("--tail", type=click.IntRange(1, _ALL_LINES), default=200, show_default=True, help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Continue until the run has ended.")
@click.argument("name", metavar="RUN")
def logs(control: str, token: ShownToken, tasks: tuple[str, ...], tail: int, follow: bool, name: str) -> None:
    """Show the newest output of RUN's tasks. Each line has its time, level and task."""
    with asking(control, token) as client:
        if follow:
            _follow(client, name, tasks, tail)
        else:
            for line in client.run_logs(name, tasks=tasks, tail=tail):
                _print(line)


@click.command()
@control_option
@token_option
@click.option("--reason", help="The reason, recorded with the run.")
@click.option("--wait", is_flag=True, help="Return once they have ended.")
@click.argument("names", metavar="RUN…", nargs=-1, required=True)
def stop(control: str, token: ShownToken, reason: str | None, wait: bool, names: tuple[str, ...]) -> None:
    """Stop RUN: its tasks get SIGTERM, parameter servers last, and are killed if they do not end."""
    with asking(control, token) as client:
        for name in names:
            run = client.stop_run(name, reason=reason)
            if wait:
                run = client.wait_for_run(name)
            click.echo(f"{name} is {run['state']}" + ("" if run["ended"] else ", and stops"))


@click.command()
@control_option
@token_option
@click.argument("names", metavar="RUN…", nargs=-1, required=True)
def delete(control: str, token: ShownToken, names: tuple[str, ...]) -> None:
    """Forget RUN, which has ended, and its logs."""
    with asking(control, token) as client:
        for name in names:
            client.delete_run(name)
            click.echo(f"{name} is deleted")


def _follow(client: ControlClient, name: str, tasks: tuple[str, ...], tail: int) -> None:
    for line in client.follow_run_logs(name, tasks=tasks, tail=tail):
        _print(line)


def _print(line: LogLine) -> None:
    click.echo(f"{line.time} {line.level:8}{line.task} {line.text}")


def _verdict(run: dict[str, Any]) -> int:
    click.echo(f"{run['name']} has {run['state']}: {run['reason']}", err=True)
    return 0 if run["state"] == "SUCCEEDED" else 1
