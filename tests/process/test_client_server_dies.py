"""A server process that dies during a step: the client hears of it at once, with the task's name.

The server here is a small program that speaks just enough of the MasterService and kills itself, as `kill -9` does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tenfold.session.grpc_master import GrpcMaster
from tenfold_core import errors
from tenfold_protos import config_pb2, graph_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = """
import os, signal, threading
from concurrent import futures
import grpc
from tenfold_protos import master_pb2

class Handlers(grpc.GenericRpcHandler):
    def service(self, details):
        method = self.create if details.method.endswith("CreateSession") else self.die
        return grpc.unary_unary_rpc_method_handler(method)

    def create(self, request, context):
        context.send_initial_metadata((("tenfold-task", "/job:worker/replica:0/task:1"),))
        return master_pb2.CreateSessionResponse(session_handle="h").SerializeToString()

    def die(self, request, context):
        os.kill(os.getpid(), signal.SIGKILL)

server = grpc.server(futures.ThreadPoolExecutor(2), [Handlers()])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


@pytest.fixture
def port() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_killed_during_a_step(port: int) -> None:
    master = GrpcMaster(f"grpc://localhost:{port}")
    handle, _ = master.create_session(graph_pb2.GraphDef(), config_pb2.ConfigProto(), 30)

    started = time.monotonic()
    with pytest.raises(errors.UnavailableError) as first:
        master.run_step(handle, {}, [], ["x"], config_pb2.RunOptions(), None)
    with pytest.raises(errors.UnavailableError):
        master.run_step(handle, {}, [], ["x"], config_pb2.RunOptions(), None)
    took = time.monotonic() - started
    master.close()

    assert took < 5
    assert f"grpc://localhost:{port} (/job:worker/replica:0/task:1)" in first.value.message
