"""Servers of this process: how targets find them, and how a session calls their masters. Without a real server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold.session import inprocess, targets
from tenfold.session.direct_master import DirectMaster
from tenfold.session.grpc_master import GrpcMaster
from tenfold_core import errors
from tenfold_protos import config_pb2, device_attributes_pb2, graph_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator


class RecordingMaster:
    """The coroutines of a master; `calls` holds the arguments they got."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def create_session(self, *arguments: Any) -> tuple[str, int]:
        self.calls.append(("create", *arguments))
        return "h", 1

    async def extend_session(self, *arguments: Any) -> int:
        self.calls.append(("extend", *arguments))
        return 2

    async def run_step(self, *arguments: Any) -> tuple[list[Any], config_pb2.RunMetadata]:
        self.calls.append(("run", *arguments))
        return [np.array(3)], config_pb2.RunMetadata()

    async def close_session(self, *arguments: Any) -> None:
        self.calls.append(("close", *arguments))

    async def list_devices(self, *arguments: Any) -> list[Any]:
        self.calls.append(("devices", *arguments))
        return [device_attributes_pb2.DeviceAttributes(name="d")]

    async def reset(self, *arguments: Any) -> None:
        self.calls.append(("reset", *arguments))


class FakeServer:
    """Runs coroutines where it is called. `late` makes every call miss its deadline."""

    target = "grpc://localhost:4711"

    def __init__(self) -> None:
        self.master = RecordingMaster()
        self.late = False
        self.timeouts: list[float | None] = []

    def call(self, start: Callable[[], Coroutine[Any, Any, Any]], timeout: float | None) -> Any:
        self.timeouts.append(timeout)
        if self.late:
            raise TimeoutError
        return asyncio.run(start())


@pytest.fixture
def server() -> Iterator[FakeServer]:
    server = FakeServer()
    inprocess.register(server.target, server)  # type: ignore[arg-type]
    yield server
    inprocess.unregister(server.target)


@pytest.mark.parametrize(
    "target", ["grpc://localhost:4711", "grpc://127.0.0.1:4711", "grpc://[::1]:4711", "grpc://LOCALHOST:4711/"]
)
def test_spellings_of_this_host(server: FakeServer, target: str) -> None:
    master = targets.connect(target)

    assert isinstance(master, DirectMaster)
    assert master.list_devices("h", None)[0].name == "d"


def test_other_servers_are_reached_over_the_network(server: FakeServer) -> None:
    for target in ("grpc://localhost:4712", "grpc://other.host:4711", "grpc://[fe80::1]:4711"):
        master = targets.connect(target)
        assert isinstance(master, GrpcMaster)
        master.close()


def test_unregistered(server: FakeServer) -> None:
    inprocess.unregister("grpc://127.0.0.1:4711")
    inprocess.unregister("grpc://127.0.0.1:4711")

    assert inprocess.find(server.target) is None


def test_a_child_process_has_no_servers(server: FakeServer) -> None:
    # What os.register_at_fork calls in the child.
    inprocess._forget_all()

    assert inprocess.find(server.target) is None


def test_calls_reach_the_master_as_they_are(server: FakeServer) -> None:
    master = DirectMaster(server, server.target)  # type: ignore[arg-type]
    graph_def, config, options = graph_pb2.GraphDef(), config_pb2.ConfigProto(), config_pb2.RunOptions()
    feeds = {"x:0": np.zeros(2)}

    assert master.create_session(graph_def, config, 5.0) == ("h", 1)
    assert master.extend_session("h", graph_def, 1, None) == 2
    assert master.run_step("h", feeds, ["y:0"], ["z"], options, None)[0] == [3]
    master.close_session("h", None)
    master.reset(["c"], None)
    master.close()

    calls = server.master.calls
    assert calls[0] == ("create", graph_def, config, server.target)
    assert calls[1] == ("extend", "h", graph_def, 1)
    assert calls[2][2] is feeds
    assert calls[2][3:5] == (["y:0"], ["z"])
    assert calls[3:] == [("close", "h"), ("reset", ["c"])]
    # Set-up is bounded even where the caller set no bound; a step is not.
    assert server.timeouts == [6.0, 61.0, None, 11.0, 61.0]


def test_deadlines(server: FakeServer) -> None:
    server.late = True

    with pytest.raises(errors.DeadlineExceededError, match=r"RunStep on the server of this process .*within 0\.5 s"):
        DirectMaster(server).run_step("h", {}, [], ["x"], config_pb2.RunOptions(), 0.5)  # type: ignore[arg-type]
