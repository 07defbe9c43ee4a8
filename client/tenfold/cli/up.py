"""`tenfold up`: a whole cluster on this machine, until Ctrl-C.

A task that ends is reported, also to the control service, and the others go on, as on several machines. `kill -9` of a
worker therefore shows how the cluster takes such a loss. One that died is started again (restarts.py); one that was
told to stop is not. Whose the database is, and what became of the `tenfold up` before: held_database.py, up_found.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from tenfold.cli.colours import asked_for
from tenfold.cli.log_options import log_options, variables
from tenfold.cli.restarts import Restarts

if TYPE_CHECKING:
    from tenfold.cli.children import Echo
    from tenfold.cli.held_database import HeldDatabase
    from tenfold.cli.local import LocalCluster
    from tenfold.cli.restarts import Again

#: Seconds that the control service has to take the news of a task's end.
_TELL_S = 5.0


@click.command()
@click.option("--ps", type=click.IntRange(min=0), default=1, show_default=True, help="Parameter servers.")
@click.option("--workers", type=click.IntRange(min=0), default=2, show_default=True, help="Workers.")
@click.option(
    "--control-port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    envvar="TENFOLD_HTTP_PORT",
    show_envvar=True,
    help="Port of the control service; 0 takes a free one.",
)
@click.option(
    "--stop-with-workers",
    is_flag=True,
    envvar="TENFOLD_STOP_WITH_WORKERS",
    show_envvar=True,
    help="End the parameter servers, and then all of it, once every worker has finished.",
)
@click.option(
    "--database",
    type=click.Path(dir_okay=False),
    show_default="~/.local/state/tenfold/up/control.db",
    help="SQLite file of the control service, with the runs' curves and logs next to it; kept for the next start.",
)
@click.option("--fresh", is_flag=True, help="Find nothing from earlier times, and keep nothing.")
@click.option(
    "--models",
    type=click.Path(exists=True, file_okay=False),
    help="Serve the SavedModels of this folder (docs/models.md).",
)
@click.option(
    "--trainings",
    metavar="FOLDER",
    help="Models may follow trainings whose checkpoints are in here; default: the folder of --models.",
)
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Starts of a task that dies, in a row, with pauses of 1 to 30 s; a minute of running begins a new row.",
)
@log_options
def up(
    ps: int,
    workers: int,
    control_port: int,
    stop_with_workers: bool,
    database: str | None,
    fresh: bool,
    models: str | None,
    trainings: str | None,
    restarts: int,
) -> None:
    """Start a control service, parameter servers and workers on this machine, as real processes.

    Prints their addresses and their output, each line with its process's name in front. Ctrl-C stops all of them,
    and so does the death of the control service or of the last task. When another task dies, the rest continues, and it
    restarts, a limited number of times; its memory, such as variables, is lost.
    Submitted runs stop with it; they, their curves, logs and artifacts are there again at the next start.
    """
    from tenfold.cli.children import ChildFailedError
    from tenfold.cli.local import LocalCluster
    from tenfold.cli.signals import StopSignalError, stop_signals

    if ps + workers == 0:
        raise click.UsageError("a cluster needs at least one task: --ps and --workers are both 0")
    if fresh and database is not None:
        raise click.UsageError("--fresh keeps nothing, and --database says where to keep it: give one of them")

    with stop_signals() as stop:
        try:
            with ExitStack() as stack:
                held = None if fresh else _hold(stack, database)
                # the processes of one that was killed have given it back by now
                _check_port(control_port)
                began = time.time()
                cluster = LocalCluster(
                    ps,
                    workers,
                    control_port,
                    prefixed(),
                    stop_with_workers=stop_with_workers,
                    database=None if held is None else str(held.file),
                    models=models,
                    trainings=trainings,
                    environment=variables(),
                )
                stack.enter_context(cluster)
                if held is not None:
                    held.serves(cluster.control_url)
                    _say_what_was_found(cluster, held, began)
                click.echo(f"control service    {cluster.control_url}")
                for (job, index), address in cluster.addresses.items():
                    click.echo(f"{f'/job:{job}/task:{index}':18} grpc://{address}")
                click.echo("Ctrl-C stops all of it.")
                _watch(cluster, Restarts(restarts, time.monotonic))
        except ChildFailedError as error:
            click.echo(f"Error: {error}\nAll processes were stopped.", err=True)
            raise SystemExit(1) from None
        except StopSignalError as signal:
            click.echo(f"stopped by {signal}")
            raise SystemExit(stop.exit_code) from None


def _hold(stack: ExitStack, database: str | None) -> HeldDatabase | None:
    """The database, this process's until the stack ends. None where it is not named and somebody else has it. Raises
    ClickException for a named one that cannot be had."""
    from tenfold.cli.held_database import DatabaseError, HeldDatabase

    try:
        return stack.enter_context(HeldDatabase(database, click.echo))
    except DatabaseError as error:
        if database is not None:
            raise click.ClickException(str(error)) from None
        click.echo(f"{error}. What is submitted to this one is forgotten at its end; --database keeps it.")
        return None


def _say_what_was_found(cluster: LocalCluster, held: HeldDatabase, began: float) -> None:
    from tenfold.cli.up_found import found
    from tenfold.control import ControlClient
    from tenfold_core import errors
    from tenfold_core.access.credentials import shown_token

    # news, and no more: the cluster is there
    with (
        contextlib.suppress(errors.OpError),
        ControlClient(cluster.control_url, shown_token(), _TELL_S) as client,
    ):
        for line in found(client, str(held.file.parent), held.former, began):
            click.echo(line)


def _check_port(port: int) -> None:
    """Raises ClickException if the control service could not have the port: it would say so itself, but later."""
    from tenfold_core.port_users import refusal

    if why := refusal(port):
        raise click.ClickException(
            f"the control service cannot listen on 127.0.0.1:{port}: {why}. End that process, or choose "
            "another port with --control-port (TENFOLD_HTTP_PORT); 0 takes a free one."
        )


def _watch(cluster: LocalCluster, restarts: Restarts) -> None:
    """Reports each task that ends, and starts those that died again; returns once the last one has finished. Raises
    ChildFailedError when the last one ends in another way, or the control service does."""
    from tenfold.cli.local import CONTROL
    from tenfold.control import ControlClient
    from tenfold.control.retry import NO_RETRY
    from tenfold_core import errors
    from tenfold_core.access.credentials import shown_token
    from tenfold_core.exit_codes import ending

    running = [CONTROL, *(f"{job}/{index}" for job, index in cluster.addresses)]
    for name in running:
        restarts.started(name)
    with ControlClient(cluster.control_url, shown_token(), _TELL_S, retry=NO_RETRY) as control:
        while True:
            ended = cluster.children.wait_for_exit(running, restarts.seconds)
            for name in restarts.due() if ended is None else ():
                job, _, index = name.partition("/")
                same = cluster.start_task(job, int(index))
                former = cluster.addresses[job, int(index)]
                where = f"at {former}" if same else f"at another address: something else has taken {former}"
                click.echo(f"{name} is started again, {where}.", err=True)
                restarts.started(name)
                running.append(name)
            if ended is None:
                continue
            name, code = ended
            failure = cluster.children.failure(name)
            running.remove(name)
            if CONTROL not in running:
                raise failure
            if code == 0:
                click.echo(f"{name} has finished.")
                if running == [CONTROL] and restarts.seconds is None:
                    return
                continue
            state, why = ending(code)
            # what was told to stop stays away
            again = restarts.died(name) if state == "lost" else None
            last = running == [CONTROL] and restarts.seconds is None
            if not last:
                # before the service is told, which may take a moment
                click.echo(f"Error: {failure}", err=True)
            job, _, index = name.partition("/")
            # a control service that does not answer finds it out when the lease has run out
            with contextlib.suppress(errors.OpError):
                control.end_task("default", job, int(index), state=state, exit_code=code, reason=why)
            if last:
                raise failure
            click.echo(f"The others go on without {name}{_what_next(state, again, restarts.most)}.", err=True)


def _what_next(state: str, again: Again | None, most: int) -> str:
    """What becomes of a task that ended, after "The others go on without it"."""
    if again is not None:
        return f"; it is started again in {again.seconds:g} s ({again.number} of {most} times in a row)"
    return f", which is not started again: it died {most + 1} times in a row" if state == "lost" and most else ""


def prefixed() -> Echo:
    """An echo that writes whole lines, `name | line`, from any thread, in a colour per process on a terminal."""
    lock = threading.Lock()
    colours: dict[str, str] = {}
    palette = ("cyan", "green", "magenta", "yellow", "blue", "bright_red")

    def echo(name: str, line: str) -> None:
        with lock:
            colour = colours.setdefault(name, palette[len(colours) % len(palette)])
            # a character that the terminal cannot show is replaced, and the rest of the line is kept
            encoding = sys.stdout.encoding or "utf-8"
            shown = line.encode(encoding, "replace").decode(encoding)
            try:
                click.echo(click.style(f"{name:9}|", fg=colour) + f" {shown}", color=asked_for())
                sys.stdout.flush()
            except BrokenPipeError:
                # the reader of this output is gone; the tasks go on
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return echo
