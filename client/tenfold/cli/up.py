"""`tenfold up`: a whole cluster on this machine, until Ctrl-C.

A task that ends is reported, and the others go on, as on several machines. `kill -9` of a worker therefore shows how
the cluster takes such a loss; the control service's status shows it too.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenfold.cli.children import Echo


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
def up(ps: int, workers: int, control_port: int, stop_with_workers: bool) -> None:
    """Start a control service, parameter servers and workers on this machine, as real processes.

    Prints their addresses and their output, each line with its process's name in front. Ctrl-C stops all of them,
    and so does the death of the control service or of the last task. When another task dies, the rest goes on.
    """
    from tenfold.cli.children import ChildFailedError
    from tenfold.cli.local import CONTROL, LocalCluster
    from tenfold.cli.signals import stop_signals

    if ps + workers == 0:
        raise click.UsageError("a cluster needs at least one task: --ps and --workers are both 0")
    cluster = LocalCluster(ps, workers, control_port, echo=prefixed(), stop_with_workers=stop_with_workers)
    with stop_signals():
        try:
            with cluster:
                click.echo(f"control service    {cluster.control_url}")
                for (job, index), address in cluster.addresses.items():
                    click.echo(f"{f'/job:{job}/task:{index}':18} grpc://{address}")
                click.echo("Ctrl-C stops all of it.")
                running = [CONTROL, *(f"{job}/{index}" for job, index in cluster.addresses)]
                while True:
                    ended = cluster.children.wait_for_exit(running)
                    assert ended is not None  # no time-out was given
                    failure = cluster.children.failure(ended[0])
                    running.remove(ended[0])
                    if ended[1] == 0 and CONTROL in running:
                        click.echo(f"{ended[0]} has finished.")
                        if running == [CONTROL]:
                            return
                        continue
                    if CONTROL not in running or running == [CONTROL]:
                        raise failure
                    click.echo(f"Error: {failure}\nThe others go on without {ended[0]}.", err=True)
        except ChildFailedError as error:
            click.echo(f"Error: {error}\nAll processes were stopped.", err=True)
            raise SystemExit(1) from None
        except KeyboardInterrupt:
            click.echo("stopped")
            raise SystemExit(130) from None


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
                click.echo(click.style(f"{name:9}|", fg=colour) + f" {shown}")
                sys.stdout.flush()
            except BrokenPipeError:
                # the reader of this output is gone; the tasks go on
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return echo
