"""Large graphs read portion by portion: the same as in one piece, and what is too much before any node is made."""

from __future__ import annotations

import random

import pytest
from google.protobuf.message import DecodeError

from tenfold_core import graph_wire, message_parts
from tenfold_core.graph_wire import TooLargeError, parse
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.master_pb2 import CreateSessionRequest, ExtendSessionRequest


def graph(nodes: int, functions: int, seed: int = 7) -> GraphDef:
    drawn, made = random.Random(seed), GraphDef()
    for number in range(nodes):
        node = made.node.add(name=f"n{number}", op="NoOp", input=[f"^n{drawn.randrange(nodes)}"] * drawn.randrange(3))
        node.attr["value"].s = bytes(drawn.randrange(300))
    for number in range(functions):
        function = made.library.function.add()
        function.signature.name = f"f{number}"
        for inner in range(drawn.randrange(5)):
            function.node_def.add(name=f"i{inner}", op="NoOp")
    made.versions.producer = 21
    return made


@pytest.mark.parametrize("portion", [1, 100, 5000, 1 << 20])
def test_it_is_what_one_piece_gives(monkeypatch: pytest.MonkeyPatch, portion: int) -> None:
    monkeypatch.setattr(graph_wire, "_PORTION", portion)
    monkeypatch.setattr(message_parts, "PORTION", portion)
    request = CreateSessionRequest(graph_def=graph(200, 30), target="grpc://here")
    request.config.operation_timeout_in_ms = 17
    extension = ExtendSessionRequest(session_handle="h", graph_def=graph(40, 0), current_graph_version=3)

    assert parse(CreateSessionRequest, request.SerializeToString(), 10_000) == request
    assert parse(ExtendSessionRequest, memoryview(extension.SerializeToString()), 40) == extension
    assert parse(GraphDef, bytearray(request.graph_def.SerializeToString()), 10_000) == request.graph_def
    # parts of one message, as a sender may have written them
    twice = request.SerializeToString() * 2
    assert parse(CreateSessionRequest, twice, 10_000) == CreateSessionRequest.FromString(twice)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x0a\x00" * 101, "more than 100 nodes"),
        (b"\x0a\xca\x01" + b"\x0a\x00" * 101, "more than 100 nodes"),
        (b"\x12\xce\x01\x0a\xcb\x01" + b"\x1a\x00" * 101 + b"\x00", "more than 100 nodes"),
        (b"\x0a\x82\x19" + b"\x1a\x00" * 1601, "more than 1600 inputs and attributes"),
    ],
)
def test_too_much_is_refused_by_its_bytes(data: bytes, words: str) -> None:
    cls = CreateSessionRequest if data.startswith(b"\x0a\xca") else GraphDef
    with pytest.raises(TooLargeError, match=words):
        parse(cls, data, 100)


def test_what_is_beside_the_graph_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_wire, "_BESIDE", 100)
    with pytest.raises(TooLargeError, match="beside the graph has more than 100 bytes"):
        parse(CreateSessionRequest, CreateSessionRequest(target="x" * 200).SerializeToString(), 100)


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05ab", b"\x0b\x00", b"\xff" * 20, b"\x09\x00", b"\x0a\x02\x0a\x7f"])
def test_what_is_no_graph_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        parse(GraphDef, data, 100)
    with pytest.raises(DecodeError):
        GraphDef.FromString(data)


@pytest.mark.parametrize("seed", range(30))
def test_any_bytes_give_what_protocol_buffers_give_or_an_error(seed: int) -> None:
    drawn = random.Random(seed)
    data = bytearray(CreateSessionRequest(graph_def=graph(20, 4, seed), target="t").SerializeToString())
    for _ in range(drawn.randrange(1, 4)):
        data[drawn.randrange(len(data))] = drawn.randrange(256)
    try:
        whole = CreateSessionRequest.FromString(bytes(data))
    except DecodeError:
        with pytest.raises((DecodeError, TooLargeError)):
            parse(CreateSessionRequest, data, 100)
        return
    try:
        assert parse(CreateSessionRequest, data, 100) == whole
    except DecodeError:
        # groups, which no message of ours has, are skipped by protocol buffers
        assert any(byte & 7 in (3, 4) for byte in data)
