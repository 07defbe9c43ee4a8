"""`tenfold ping` against servers that are there, that are not, and that answer with an error."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from click.testing import CliRunner, Result

from support.ports import free_port
from tenfold.cli.main import cli
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.worker_pb2 import GetStatusRequest, GetStatusResponse

GetStatus = Callable[[GetStatusRequest, Any], GetStatusResponse]


def ping(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["ping", *arguments])


@pytest.fixture
def refused() -> str:
    """An address where nothing listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def serve() -> Iterator[Callable[[GetStatus], str]]:
    """Starts a worker service that knows only GetStatus; returns its address."""
    servers: list[Any] = []

    def start(get_status: GetStatus) -> str:
        server = grpc.server(ThreadPoolExecutor(1))
        method = grpc.unary_unary_rpc_method_handler(
            get_status, GetStatusRequest.FromString, GetStatusResponse.SerializeToString
        )
        handlers = grpc.method_handlers_generic_handler("tensorflow.WorkerService", {"GetStatus": method})
        server.add_generic_rpc_handlers((handlers,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None).wait()


@pytest.fixture
def web(request: pytest.FixtureRequest) -> Iterator[str]:
    """A web server that answers /healthz and /readyz with the statuses given by the test's parameter."""
    status = dict(zip(("/healthz", "/readyz"), request.param, strict=True))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status.get(self.path, 404))
            self.end_headers()
            self.wfile.write(b"the body")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["", "grpc://"])
def test_a_task_shows_its_devices(serve: Callable[[GetStatus], str], scheme: str) -> None:
    name = "/job:ps/replica:0/task:0/device:CPU:0"
    device = DeviceAttributes(name=name, device_type="CPU", incarnation=0xABC)
    address = serve(lambda request, context: GetStatusResponse(device_attributes=[device]))

    result = ping(scheme + address)

    assert (result.exit_code, result.output) == (0, f"{name} (CPU, incarnation 0000000000000abc)\n")


def test_a_task_that_answers_with_an_error(serve: Callable[[GetStatus], str]) -> None:
    def refuse(request: GetStatusRequest, context: Any) -> GetStatusResponse:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not yet")
        raise AssertionError("abort does not return")

    result = ping(serve(refuse))

    assert result.exit_code == 1
    assert "FAILED_PRECONDITION: not yet" in result.output


def test_nobody_there(refused: str) -> None:
    result = ping(refused, "--timeout", "10")

    assert result.exit_code == 1
    assert f"{refused} does not answer: UNAVAILABLE" in result.output


def test_no_control_service_there(refused: str) -> None:
    result = ping(f"http://{refused}")

    assert result.exit_code == 1
    assert "does not answer" in result.output


@pytest.mark.parametrize("web", [(200, 200)], indirect=True)
def test_a_control_service_that_is_well(web: str) -> None:
    assert (ping(web).exit_code, ping(web + "/").exit_code) == (0, 0)


@pytest.mark.parametrize("web", [(503, 503)], indirect=True)
def test_a_control_service_that_is_not(web: str) -> None:
    result = ping(web)

    assert result.exit_code == 1
    assert "answers /healthz with 503: the body" in result.output


@pytest.mark.parametrize("web", [(200, 503)], indirect=True)
def test_a_control_service_that_is_alive_but_not_ready(web: str) -> None:
    assert ping(web, "--live").output == f"{web} is alive\n"

    result = ping(web)

    assert result.exit_code == 1
    assert "answers /readyz with 503: the body" in result.output
