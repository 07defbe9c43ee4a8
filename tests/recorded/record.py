"""Writes down what this release says on the wire, for later releases to be tried against: `python record.py FOLDER`.

To be run once for each release, with its own code; tests/cluster/test_an_older_release.py and
tests/control/test_an_older_release.py replay what was written. A conversation is a list of turns in their order, each
with who speaks ("caller" or "listener"), the bytes in base64, and its number among the turns of all connections.
Addresses are those of loopback, tokens of one use.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import grpc

from tenfold.control import ControlClient, TaskRegistration
from tenfold_control_api.app import create_app
from tenfold_control_api.main import ControlServer
from tenfold_control_api.service_settings import Settings
from tenfold_link.aio.dial import connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_protos import examine_pb2, link_pb2, peers_pb2
from tenfold_services.server import TaskServer

ECHO = 1
TASK, CALLER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"
TCP = LinkSettings(mode="tcp")


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def asked() -> link_pb2.OpenLinkRequest:
    """What a task of another machine asks for."""
    request = handshake.ask(TCP, CALLER)
    request.host_identity = "another-boot/4026531840"
    return request


class Tap:
    """Passes connections on to `port` and writes down what goes through: a conversation for each."""

    def __init__(self, port: int) -> None:
        self._port, self._numbers = port, itertools.count()
        self.heard: list[list[Any]] = []

    async def more(self, reader: Any) -> bytes:
        try:
            data: bytes = await reader.read(1 << 20)
        except (asyncio.CancelledError, ConnectionError):
            return b""
        return data

    async def pipe(self, who: str, turns: list[Any], reader: Any, writer: Any) -> None:
        while data := await self.more(reader):
            if turns and turns[-1][0] == who:
                turns[-1][1] = text(base64.b64decode(turns[-1][1]) + data)
            else:
                turns.append([who, text(data), next(self._numbers)])
            writer.write(data)
        writer.close()

    async def __call__(self, reader: Any, writer: Any) -> None:
        turns: list[Any] = []
        self.heard.append(turns)
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ways = self.pipe("caller", turns, reader, back), self.pipe("listener", turns, there, writer)
        with contextlib.suppress(asyncio.CancelledError):  # by the end of the recording
            await asyncio.gather(*ways, return_exceptions=True)


async def link() -> dict[str, Any]:
    """A link over TCP: its handshake, a call, its end."""

    def methods(_: Any) -> dict[int, LinkMethod]:
        return {ECHO: LinkMethod("Echo", lambda link, header, buffers: (header, buffers))}

    async with LinkListener(TASK, methods, TCP) as listener:
        request = asked()
        offer = listener.open_link(request)
        tap = Tap(offer.tcp_port)
        async with await asyncio.start_server(tap, "127.0.0.1", 0) as server:
            answer = link_pb2.OpenLinkResponse.FromString(offer.SerializeToString())
            answer.tcp_port = server.sockets[0].getsockname()[1]
            opened = await connect(answer, "127.0.0.1:1", settings=TCP)
            await opened.call(ECHO, b"header", [b"a buffer"])
            await opened.close("the recording is over")
    return {
        "request": text(request.SerializeToString()),
        "response": text(offer.SerializeToString()),
        "turns": tap.heard[0],
    }


def calls(port: int) -> dict[str, Any]:
    """Each method of Tenfold's own over gRPC, as a caller of this release asks it, and the answer."""
    life = peers_pb2.TaskLife(task=CALLER, incarnation=4711)
    requests = {
        "/tenfold.LinkService/OpenLink": asked(),
        "/tenfold.PeerService/ExchangeFinished": peers_pb2.ExchangeFinishedRequest(task=[life], caller=life),
        "/tenfold.ExamineService/Examine": examine_pb2.ExamineRequest(seconds=5.0),
    }
    found = {}
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for method, request in requests.items():
            data = request.SerializeToString()
            answer = channel.unary_unary(method)(data, timeout=20)
            if method.endswith("Examine"):
                # not this machine's own name
                told = examine_pb2.ExamineResponse.FromString(answer)
                told.host = "alpha"
                answer = told.SerializeToString()
            found[method] = {"request": text(data), "response": text(answer)}
    return found


async def rest(folder: str) -> list[list[Any]]:
    """A task registers, renews its lease, follows the spec and leaves: what it says to the control service, by
    connection."""
    settings = Settings(database=f"{folder}/c.db")
    service, started = ControlServer(create_app(settings), host="127.0.0.1", port=0, settings=settings), asyncio.Event()
    service.on_started = lambda _: started.set()
    serving = asyncio.create_task(service.serve())
    await started.wait()
    tap = Tap(service.servers[0].sockets[0].getsockname()[1])
    async with await asyncio.start_server(tap, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        def live() -> None:
            followed = threading.Event()
            with ControlClient(url) as client:
                client.declare_cluster("default", {"ps": 1, "worker": 1})
                registration = TaskRegistration(
                    client, "default", "ps", 0, "127.0.0.1:2222", incarnation="4711", on_spec=lambda _: followed.set()
                )
                registration.start()
                followed.wait(20)
                registration._heartbeat()
                registration.stop()

        await asyncio.to_thread(live)
    service.should_exit = True
    await serving
    return tap.heard


async def record() -> dict[str, Any]:
    """What is written down, by the names of the files."""
    async with TaskServer({"ps": [""]}, "ps", 0, link=TCP) as server:
        over_grpc = await asyncio.to_thread(calls, server.port)
    with tempfile.TemporaryDirectory() as scratch:
        over_rest = await rest(scratch)
    return {"link": await link(), "calls": over_grpc, "rest": over_rest}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in asyncio.run(record()).items():
        (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
