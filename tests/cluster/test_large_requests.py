"""Requests with millions of small parts from somebody who may only compute: other calls go on, and the limit is named.

A request of a few megabytes can hold millions of empty names or strings, which took seconds on the task's event loop.
"""

from __future__ import annotations

import asyncio
import os
import re
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import grpc
import numpy as np
import pytest

import tenfold as tf
from tenfold.session import inprocess
from tenfold.session.grpc_master import GrpcMaster
from tenfold.session.link_master import LinkMaster
from tenfold_core import errors, message_parts
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GUEST = "tenfold-of-a-guest"
MANY, MOST = 2 << 20, 1_000_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BackgroundServer]:
    """A task that takes every connection for another user's."""
    (tmp_path / "tokens").write_text(f"{GUEST} role=run:untrusted\n")
    monkeypatch.setattr(message_parts, "MOST", MOST)
    monkeypatch.setenv("TENFOLD_MASTER_NODES", "100000")
    monkeypatch.setattr(inprocess, "find", lambda target: None)
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    made = BackgroundServer(
        TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings(token_file=str(tmp_path / "tokens")))
    )
    made.start()
    yield made
    made.stop(0)


class Pauses:
    """How long the server's loop stood still."""

    def __init__(self) -> None:
        self.longest, self.over = 0.0, False

    async def watch(self) -> None:
        before = perf_counter()
        while not self.over:
            await asyncio.sleep(0.005)
            self.longest, before = max(self.longest, perf_counter() - before), perf_counter()


def field(number: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes((number << 3 | 2,)) + bytes(length) + content


def fed(tensor: bytes) -> bytes:
    return field(2, field(1, b"x:0") + field(2, tensor))


#: A string tensor of so many elements, whose lengths of 0 are its content.
LENGTHS = b"\x08\x07" + field(2, field(2, b"\x08" + b"\x80\x80\x80\x01")) + field(4, bytes(MANY))
REQUESTS = {
    "names": ("RunStep", b"\x1a\x00" * MANY, "RunStep at .* more than 1000000 fields"),
    "strings": ("RunStep", fed(b"\x08\x07" + b"\x42\x00" * MANY), "RunStep at .* more than 1000000 fields"),
    "lengths": ("RunStep", fed(LENGTHS), ""),
    "callable": ("RunCallable", field(3, b"\x08\x07" + b"\x42\x00" * MANY), "RunCallable at .* more than 1000000"),
    "node": ("CreateSession", field(1, field(1, b"\x1a\x00" * MANY)), "more than 1600000 inputs"),
    "config": ("CreateSession", field(2, b"\x22\x00" * MANY), ""),
}


QUICK = ("names", "lengths")
KINDS = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.thorough) for kind in REQUESTS]


@pytest.mark.parametrize("kind", KINDS)
def test_other_calls_go_on(server: BackgroundServer, kind: str) -> None:
    method, request, says = REQUESTS[kind]
    target = server.target.replace("localhost", "127.0.0.1")
    address = target.removeprefix("grpc://")
    if method != "CreateSession":
        master = GrpcMaster(target, access=AccessSettings(token=GUEST))
        handle, _ = master.create_session(tf.Graph().as_graph_def(), ConfigProto(), 30.0)
        request = field(1, handle.encode()) + request
        master.close()
    pauses = Pauses()
    watching = asyncio.run_coroutine_threadsafe(pauses.watch(), server._loop)  # type: ignore[arg-type]
    metadata = (("authorization", f"Bearer {GUEST}"),)
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, options=options) as channel:
        call = channel.unary_unary(f"/tensorflow.MasterService/{method}")
        began = perf_counter()
        try:
            call(request, timeout=120, metadata=metadata)
        except grpc.RpcError as error:
            said = error
        took = perf_counter() - began
    pauses.over = True
    watching.result(20)

    if says:
        assert said.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert re.search(says, said.details())
    # client and server share Python's lock and the cores: in one piece it was nearly all of the time
    assert pauses.longest < max(0.5, 0.4 * took), f"{pauses.longest:.2f} s of {took:.2f} s without a turn of the loop"


def test_a_step_s_strings_over_a_link(server: BackgroundServer) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.string, [None])
        count = tf.size(x)
    master = LinkMaster(server.target.replace("localhost", "127.0.0.1"), access=AccessSettings(token=GUEST))
    handle, _ = master.create_session(graph.as_graph_def(), ConfigProto(), 30.0)

    def counted(value: np.ndarray[tuple[int], np.dtype[np.object_]]) -> int:
        fetched, _ = master.run_step(handle, {x.name: value}, [count.name], [], RunOptions(), 60.0)
        return int(fetched[0])

    assert counted(np.full(3, b"a", object)) == 3
    assert counted(np.full(400_000, b"", object)) == 400_000  # read apart
    with pytest.raises(errors.ResourceExhaustedError, match="more than 1000000 fields"):
        counted(np.full(MOST + 1, b"", object))
    assert counted(np.full(5, b"a", object)) == 5
    master.close_session(handle, 30.0)
    master.close()
