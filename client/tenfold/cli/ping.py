"""`tenfold ping`: does this task, or this control service, answer? For health checks and for people.

A task is asked GetStatus over gRPC, the one call that needs no session; a control service is asked for /healthz.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tenfold_core.address import split_address

if TYPE_CHECKING:
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes


@click.command()
@click.argument("target", metavar="HOST:PORT|URL")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=5.0, show_default=True, help="Seconds.")
def ping(target: str, timeout: float) -> None:
    """Ask a task (HOST:PORT) for its devices, or a control service (http://…) whether it is well.

    Exit code 0 if it answers, 1 if not.
    """
    if target.startswith(("http://", "https://")):
        _ping_control(target, timeout)
        return
    address = target.removeprefix("grpc://")
    try:
        split_address(address)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    for device in get_status(address, timeout):
        click.echo(f"{device.name} ({device.device_type}, incarnation {device.incarnation:016x})")


def get_status(address: str, timeout: float) -> list[DeviceAttributes]:
    """The devices of the task at `address`. Blocks for at most `timeout` seconds; raises ClickException if it fails."""
    import grpc

    from tenfold_core.access.channel import open_channel
    from tenfold_core.access.settings import AccessSettings
    from tenfold_protos.worker_pb2 import GetStatusRequest, GetStatusResponse

    # A proxy meant for the web has no business between tasks.
    options = [("grpc.enable_http_proxy", 0)]
    with open_channel(grpc, address, options, AccessSettings.from_environment().credentials()) as channel:
        call = channel.unary_unary(
            "/tensorflow.WorkerService/GetStatus",
            request_serializer=GetStatusRequest.SerializeToString,
            response_deserializer=GetStatusResponse.FromString,
        )
        try:
            return list(call(GetStatusRequest(), timeout=timeout).device_attributes)
        except grpc.RpcError as error:
            # What a call raises is also the finished call itself.
            call_error: Any = error
            why = f"{call_error.code().name}: {call_error.details()}"
            raise click.ClickException(f"{address} does not answer: {why}") from None


def _ping_control(url: str, timeout: float) -> None:
    import httpx

    try:
        answer = httpx.get(f"{url.rstrip('/')}/healthz", timeout=timeout, trust_env=False)
    except httpx.HTTPError as error:
        raise click.ClickException(f"{url} does not answer: {error or type(error).__name__}") from None
    if answer.status_code != 200:
        raise click.ClickException(f"{url} answers {answer.status_code}: {answer.text[:200]}")
    click.echo(f"{url} is well")
