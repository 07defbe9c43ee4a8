"""`tenfold task`: one task as a process. Static from --cluster or TF_CONFIG, or registered with a control service.

task_settings.py decides which task it is; the server itself is in tenfold_services; registered_task.py keeps the task
registered at the control service. This file parses options, starts and stops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tenfold.cli.log_options import log_options
from tenfold.cli.serving import GRACE_S, announce, end_with_server
from tenfold.cli.signals import StopSignalError, stop_signals
from tenfold.cli.task_settings import TaskSettings, resolve_task
from tenfold.cli.tokens import token_option
from tenfold.server_gradients import gradient_of_op

if TYPE_CHECKING:
    from tenfold.cli.signals import StopSignals
    from tenfold_core.access.credentials import ShownToken


@click.command()
@click.option("--job", envvar="TENFOLD_JOB", show_envvar=True, help="Name of the job that this task is of.")
@click.option(
    "--index",
    type=click.IntRange(min=0),
    envvar="TENFOLD_INDEX",
    show_envvar=True,
    help="Index of the task in its job.",
)
@click.option(
    "--cluster", envvar="TENFOLD_CLUSTER", show_envvar=True, help="The cluster as JSON, or a file that holds it."
)
@click.option("--control", envvar="TENFOLD_CONTROL", show_envvar=True, help="URL of the control service.")
@click.option(
    "--cluster-name",
    default="default",
    show_default=True,
    envvar="TENFOLD_CLUSTER_NAME",
    show_envvar=True,
    help="Name of the cluster at the control service.",
)
@click.option("--address", envvar="TENFOLD_ADDRESS", show_envvar=True, help="HOST:PORT that other tasks dial.")
@click.option(
    "--bind", envvar="TENFOLD_BIND", show_envvar=True, help="HOST:PORT to listen on; port 0 takes a free one."
)
@token_option
@click.option(
    "--insecure", is_flag=True, envvar="TENFOLD_INSECURE", show_envvar=True, help="Accept anyone who reaches the port."
)
@click.option(
    "--stop-with-workers",
    is_flag=True,
    envvar="TENFOLD_STOP_WITH_WORKERS",
    show_envvar=True,
    help="End once every worker and the chief have finished; also set by the cluster in the control service.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    envvar="TENFOLD_METRICS_PORT",
    show_envvar=True,
    help="Port on which Prometheus finds the task's metrics; 0 takes a free one. Without it there are none.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    envvar="TENFOLD_METRICS_HOST",
    show_envvar=True,
    help="Interface of that port.",
)
@click.option(
    "--files",
    envvar="TENFOLD_FILES",
    show_envvar=True,
    help="The folder, or the URL, below which graphs may use files; without it, anywhere but in the system's places.",
)
@click.option(
    "--link-port",
    type=click.IntRange(0, 65535),
    envvar="TENFOLD_LINK_PORT",
    show_envvar=True,
    help="Port for links over TCP from other machines, for firewalls; 0, the default, takes a free one.",
)
@click.option("--tf-config", envvar="TF_CONFIG", hidden=True)
@log_options
@click.pass_context
def task(
    context: click.Context,
    job: str | None,
    index: int | None,
    cluster: str | None,
    control: str | None,
    cluster_name: str,
    address: str | None,
    bind: str | None,
    token: ShownToken,
    insecure: bool,
    stop_with_workers: bool,
    metrics_port: int | None,
    metrics_host: str,
    files: str | None,
    link_port: int | None,
    tf_config: str | None,
) -> None:
    """Serve one task: its devices, its master service and its worker service.

    Give the whole cluster with --cluster (or TF_CONFIG), or let a control service put it together with --control; then
    --index may be left out to take the next free one.
    """
    # of two ways to the cluster, a flag wins over a variable, and both over the file
    ranks = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
    if cluster and control:
        rank = {name: ranks.index(context.get_parameter_source(name) or ranks[-1]) for name in ("cluster", "control")}
        if rank["cluster"] < rank["control"]:
            control = None
        elif rank["control"] < rank["cluster"]:
            cluster = None
    try:
        settings = resolve_task(
            job=job,
            index=index,
            cluster=cluster,
            control=control,
            cluster_name=cluster_name,
            address=address,
            bind=bind,
            insecure=insecure,
            tf_config=tf_config,
            stop_with_workers=stop_with_workers,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            files=files,
            link_port=link_port,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    run(settings, token)


def run(settings: TaskSettings, token: ShownToken) -> None:
    """Serves until a stop signal, or until its workers are done. Blocks; raises ClickException if it cannot start or
    loses its index, and SystemExit with 128 and the signal's number if one stopped it.

    Stopping, each step bounded: 1 release the lease · 2 let running steps end · 3 close the listener.
    """
    from tenfold_core import errors
    from tenfold_core.memory_limits import bound_process

    bound_process()
    with stop_signals() as stop:
        try:
            if settings.control is None:
                _serve_static(settings, token, stop)
            else:
                from tenfold.cli.registered_task import serve_registered

                serve_registered(settings, token, stop)
        except errors.OpError as error:
            from tenfold.control.problem import problem_of

            problem = problem_of(error)
            more = f"\nWhat to do: {problem.help}" if problem is not None and problem.help else ""
            raise click.ClickException(f"{type(error).__name__}: {error.message}{more}") from None
        except StopSignalError:
            raise SystemExit(stop.exit_code) from None


def _serve_static(settings: TaskSettings, token: ShownToken, stop: StopSignals) -> None:
    from tenfold.cli.metrics_port import metrics_port
    from tenfold_services.background import BackgroundServer
    from tenfold_services.server import TaskServer

    assert settings.index is not None  # task_settings.py guarantees it
    server = BackgroundServer(
        TaskServer(
            settings.cluster,
            settings.job,
            settings.index,
            bind=settings.bind,
            insecure=settings.insecure,
            gradients=gradient_of_op,
            access=token.settings,
            files=settings.files,
            link_port=settings.link_port,
        )
    )
    try:
        server.start()
        server.end_with_workers(settings.stop_with_workers)
        end_with_server(server, stop.end)
        with metrics_port(settings, settings.index, server, token.settings):
            announce(settings.job, settings.index, settings.address or server.target.removeprefix("grpc://"))
            stop.wait()
    finally:
        server.stop(GRACE_S)
