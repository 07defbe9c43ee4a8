"""`tenfold control`: the control service as a process. The service itself is tenfold_control_api.

This file parses options, declares the cluster that --jobs names, and prints in one line where the service listens.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from tenfold.cli.log_options import log_options
from tenfold.cli.tokens import token_option
from tenfold_core.user_folders import default_database

if TYPE_CHECKING:
    from tenfold_core.access.credentials import ShownToken


def parse_jobs(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, int]:
    """ "ps=1,worker=2" → {"ps": 1, "worker": 2}."""
    jobs: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in (value or "").split(","))):
        job, _, size = part.partition("=")
        if not job or not size.isdecimal() or int(size) < 1:
            raise click.BadParameter(f"{part!r} is not JOB=SIZE with a size of at least 1, as in ps=1,worker=2")
        if job in jobs:
            raise click.BadParameter(f"job {job!r} is named twice")
        jobs[job] = int(size)
    return jobs


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, envvar="TENFOLD_HTTP_HOST", show_envvar=True)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    envvar="TENFOLD_HTTP_PORT",
    show_envvar=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--database",
    default=default_database,
    show_default="~/.local/state/tenfold/control.db",
    envvar="TENFOLD_DATABASE",
    show_envvar=True,
    help="File of an SQLite database, or a SQLAlchemy or PostgreSQL URL.",
)
@click.option(
    "--jobs",
    callback=parse_jobs,
    metavar="JOB=SIZE,…",
    envvar="TENFOLD_JOBS",
    show_envvar=True,
    help="Declare the cluster at start: jobs and how many tasks each has.",
)
@click.option(
    "--cluster-name",
    default="default",
    show_default=True,
    envvar="TENFOLD_CLUSTER_NAME",
    show_envvar=True,
    help="Name of the cluster that --jobs declares.",
)
@click.option(
    "--stop-with-workers",
    is_flag=True,
    envvar="TENFOLD_STOP_WITH_WORKERS",
    show_envvar=True,
    help="Parameter servers of that cluster end once every worker, and the chief, has finished.",
)
@click.option("--anew", is_flag=True, hidden=True, help="Forget first what the database has of that cluster.")
@click.option(
    "--allow-runs",
    is_flag=True,
    envvar="TENFOLD_CONTROL_ALLOW_RUNS",
    show_envvar=True,
    help="Start programs that clients submit, on this machine.",
)
@click.option(
    "--models",
    type=click.Path(exists=True, file_okay=False),
    envvar="TENFOLD_CONTROL_MODELS_FOLDER",
    show_envvar=True,
    help="Serve the SavedModels of this folder (docs/models.md).",
)
@click.option(
    "--trainings",
    metavar="FOLDER",
    envvar="TENFOLD_CONTROL_TRAININGS_FOLDER",
    show_envvar=True,
    help="Models may follow trainings whose checkpoints are in here; default: the folder of --models.",
)
@token_option
@click.option(
    "--insecure",
    is_flag=True,
    envvar="TENFOLD_INSECURE",
    show_envvar=True,
    help="Listen beyond loopback without a token.",
)
@log_options
def control(
    host: str,
    port: int,
    database: str,
    jobs: dict[str, int],
    cluster_name: str,
    stop_with_workers: bool,
    anew: bool,
    allow_runs: bool,
    models: str | None,
    trainings: str | None,
    token: ShownToken,
    insecure: bool,
) -> None:
    """Serve the registry of tasks, the cluster spec, job status, runs, sessions and steps over REST."""
    from tenfold.cli.signals import StopSignalError, stop_signals
    from tenfold_core import collector, errors

    try:
        with collector.held_back():  # a sixth of the time of these imports
            from tenfold_control_api.main import InsecureBindError, serve
    except ImportError as error:
        raise click.ClickException(
            f"the control service needs more packages: pip install 'tenfold[control]' ({error})"
        ) from None

    failures: list[str] = []

    def ready(address: str) -> None:
        """Declares the cluster, then prints where the service listens."""
        try:
            if jobs:
                _declare(address, cluster_name, jobs, token, stop_with_workers, anew)
        except Exception as error:
            failures.append(f"cluster {cluster_name!r} could not be declared: {error}")
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            click.echo(f"control service listening on {address}")

    def announce(address: str) -> None:
        # A thread: the server's own loop must stay free to answer the declaration.
        threading.Thread(target=ready, args=(address,), name="declare", daemon=True).start()

    # While it serves, the server has handlers of its own for these signals; it raises them again when it is done.
    with stop_signals() as stop:
        code = 0
        try:
            code = serve(
                host,
                port,
                database,
                token=token.settings.token,
                token_file=token.settings.token_file,
                insecure=insecure,
                allow_runs=allow_runs,
                models_folder=models,
                trainings_folder=trainings,
                announce=announce,
            )
        except InsecureBindError as error:
            raise click.UsageError(str(error)) from None
        except errors.OpError as error:
            raise click.ClickException(error.message) from None
        except ValueError as error:
            raise click.ClickException(str(error)) from None
        except SystemExit:
            # The web server prints why it cannot listen, and exits with its own code.
            code = 1
        except StopSignalError:
            pass
        if code:
            raise SystemExit(1)
    if failures:
        raise click.ClickException(failures[0])
    raise SystemExit(stop.exit_code)


def _declare(
    address: str, cluster: str, jobs: dict[str, int], token: ShownToken, stop_with_workers: bool, anew: bool
) -> None:
    from tenfold.control import ControlClient
    from tenfold_control_api.main import reachable
    from tenfold_core import errors

    with ControlClient(reachable(address), token) as client:
        if anew:
            with suppress(errors.NotFoundError):
                client.delete_cluster(cluster, force=True)
        # without the option, a restarted service keeps what was set before
        client.declare_cluster(cluster, jobs, stop_with_workers=stop_with_workers or None)
