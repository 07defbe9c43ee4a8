"""`tenfold ping`: does this task, or this control service, answer? For health checks and for people.

A task is asked for its health and then GetStatus over gRPC, the calls that need no session; a control service is asked
for /healthz and /readyz.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

from tenfold_core.address import split_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes


@click.command()
@click.argument("target", metavar="HOST:PORT|URL")
@click.option("--live", is_flag=True, help="Ask only whether the process answers, not whether it takes new work.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=5.0, show_default=True, help="Seconds.")
def ping(target: str, live: bool, timeout: float) -> None:
    """Ask a task (HOST:PORT) for its health and its devices, or a control service (http://…) whether it is well.

    Exit code 0 if it is ready, 1 if not.
    """
    if target.startswith(("http://", "https://")):
        _ping_control(target, live, timeout)
        return
    address = target.removeprefix("grpc://")
    try:
        split_address(address)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    deadline = time.monotonic() + timeout
    if not live and (why := why_not_ready(address, timeout)):
        raise click.ClickException(f"{address} is alive, but takes no new work: {why}")
    for device in get_status(address, max(0.1, deadline - time.monotonic())):
        click.echo(f"{device.name} ({device.device_type}, incarnation {device.incarnation:016x})")


def get_status(address: str, timeout: float) -> list[DeviceAttributes]:
    """The devices of the task at `address`. Blocks for at most `timeout` seconds; raises ClickException if it fails."""
    import grpc

    from tenfold_protos.worker_pb2 import GetStatusRequest, GetStatusResponse

    with _method(address, "/tensorflow.WorkerService/GetStatus", GetStatusRequest, GetStatusResponse) as call:
        try:
            return list(call(GetStatusRequest(), timeout=timeout).device_attributes)
        except grpc.RpcError as error:
            raise _no_answer(address, error) from None


def why_not_ready(address: str, timeout: float) -> str:
    """Why the task at `address` takes no new work; "" where it does, or knows no health service. As get_status."""
    import grpc

    from tenfold_protos.health_pb2 import HealthCheckRequest, HealthCheckResponse

    with _method(address, "/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse) as ask:
        try:
            answer, call = ask.with_call(HealthCheckRequest(), timeout=timeout)
        except grpc.RpcError as error:
            status: Any = error
            if status.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ""  # TensorFlow's servers have none
            raise _no_answer(address, error) from None
    if answer.status == HealthCheckResponse.SERVING:
        return ""
    told = dict(call.trailing_metadata() or ()).get("tenfold-not-ready")
    return unquote(told) if told else HealthCheckResponse.ServingStatus.Name(answer.status)


@contextmanager
def _method(address: str, path: str, request: Any, response: Any) -> Iterator[Any]:
    """A method of the task at `address`."""
    import grpc

    from tenfold_core.access.channel import open_channel
    from tenfold_core.access.credentials import AccessSettings

    # A proxy meant for the web has no business between tasks.
    options = [("grpc.enable_http_proxy", 0)]
    with open_channel(grpc, address, options, AccessSettings.from_environment().credentials()) as channel:
        yield channel.unary_unary(
            path, request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )


def _no_answer(address: str, error: Exception) -> click.ClickException:
    # What a call raises is also the finished call itself.
    call_error: Any = error
    return click.ClickException(f"{address} does not answer: {call_error.code().name}: {call_error.details()}")


def _ping_control(url: str, live: bool, timeout: float) -> None:
    import httpx

    from tenfold_core.access.https import https_context

    verify = https_context() if url.startswith("https:") else True
    for probe in ("healthz",) if live else ("healthz", "readyz"):
        try:
            answer = httpx.get(f"{url.rstrip('/')}/{probe}", timeout=timeout, trust_env=False, verify=verify)
        except httpx.HTTPError as error:
            raise click.ClickException(f"{url} does not answer: {error or type(error).__name__}") from None
        if answer.status_code != 200:
            raise click.ClickException(f"{url} answers /{probe} with {answer.status_code}: {answer.text[:200]}")
    click.echo(f"{url} is {'alive' if live else 'well'}")
