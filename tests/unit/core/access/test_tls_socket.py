"""TLS over a pair of connected sockets: what arrives, what blocks, what is refused."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest

from support.certs import access
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import role_of
from tenfold_core.access.tls_socket import TlsSocket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tenfold_core.access.tls import Certificates

MB = 1 << 20


def certificates(folder: Path, **more: Any) -> Certificates:
    found = access(folder, **more).credentials().certificates
    assert found is not None
    return found


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for each in (ours, theirs):
            each.settimeout(20)
        yield ours, theirs


def greeted(ours: TlsSocket, theirs: TlsSocket) -> None:
    """Makes the handshake, on this thread."""
    while not (ours.handshake() and theirs.greeted):
        if not theirs.greeted:
            theirs.hear()
            theirs.handshake()
        if not ours.greeted:
            ours.hear()


@pytest.fixture
def ends(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> tuple[TlsSocket, TlsSocket]:
    ours = certificates(tmp_path)
    client = TlsSocket(pair[0], ours.client_context(), server_hostname="localhost")
    server = TlsSocket(pair[1], ours.server_context())
    greeted(client, server)
    return client, server


def received(sock: TlsSocket, size: int) -> bytes:
    space = bytearray(size)
    view = memoryview(space)
    at = 0
    while at < size:
        got = sock.recv_into(view[at:])
        assert got
        at += got
    return bytes(space)


def test_the_peer_is_known_by_its_certificate(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends

    assert role_of(server.certificate) is Role.REGISTER
    assert client.certificate is not None
    assert role_of(None) is Role.NONE


@pytest.mark.parametrize("size", [1, 16 * 1024, 3 * MB + 7])
def test_what_is_sent_arrives(ends: tuple[TlsSocket, TlsSocket], size: int) -> None:
    client, server = ends
    data = os.urandom(size)
    pieces: list[Any] = [memoryview(data)[: size // 3], data[size // 3 :]]

    def send() -> None:
        rest = [memoryview(piece) for piece in pieces if len(piece)]
        while rest:
            sent = client.sendmsg(rest)
            while rest and sent >= len(rest[0]):
                sent -= len(rest.pop(0))
            if sent:
                rest[0] = rest[0][sent:]

    thread = threading.Thread(target=send)
    thread.start()
    found = received(server, size)
    thread.join(20)

    assert found == data


def test_both_directions_at_once(ends: tuple[TlsSocket, TlsSocket]) -> None:
    data = os.urandom(4 * MB)
    found: dict[TlsSocket, bytes] = {}

    def send(sock: TlsSocket) -> None:
        view = memoryview(data)
        while view:
            view = view[sock.send(view) :]

    threads = [threading.Thread(target=send, args=(each,)) for each in ends]
    threads += [threading.Thread(target=lambda s=each: found.update({s: received(s, len(data))})) for each in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [found[each] == data for each in ends] == [True, True]


def test_what_the_socket_does_not_take_is_brought_again(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    client.setblocking(False)
    data = os.urandom(8 * MB)
    sent, got, blocked = 0, bytearray(), 0
    space = bytearray(MB)

    while len(got) < len(data):
        try:
            while sent < len(data):
                sent += client.send(memoryview(data)[sent:])
        except BlockingIOError:
            blocked += 1
            assert client.half_sent
        got += space[: server.recv_into(space)]

    assert bytes(got) == data
    assert blocked > 0
    assert not client.half_sent


def test_what_was_received_is_taken_without_the_socket(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    client.send(b"x" * 1000)

    first = server.recv(10)
    space = bytearray(5000)
    rest = server.take(space)
    server.setblocking(False)

    assert (first, rest, server.take(space)) == (b"x" * 10, 990, 0)
    with pytest.raises(BlockingIOError):
        server.recv(1)


def test_a_message_goes_into_several_places(ends: tuple[TlsSocket, TlsSocket]) -> None:
    """… in their order, and one that is not filled ends it: what comes later is the next call's."""
    client, server = ends
    first, second, third = (bytearray(4) for _ in range(3))
    client.send(b"abcdefg")

    assert server.recvmsg_into([first, second, third]) == (7, [], 0, None)
    assert (first, second, third) == (b"abcd", b"efg\0", bytes(4))

    client.send(b"abcdefgh")
    server.setblocking(False)
    assert server.recvmsg_into([first, second, third])[0] == 8, "the third has nothing to wait for"
    with pytest.raises(BlockingIOError):
        server.recvmsg_into([first])

    server.setblocking(True)
    client.send(b"hijk")
    assert server.recvmsg(3, 100) == (b"hij", [], 0, None)
    assert server.recv(10) == b"k"


def test_a_half_is_shut_down_as_it_was_asked(ends: tuple[TlsSocket, TlsSocket]) -> None:
    """The receiving half without a word of TLS, and on the socket below: what the peer sends breaks."""
    client, server = ends
    server.shutdown(socket.SHUT_RD)
    server.send(b"to you")

    assert client.recv(100) == b"to you"
    with pytest.raises(BrokenPipeError):
        client.send(b"x")


def test_the_end_is_the_end(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    client.send(b"last words")
    client.shutdown(socket.SHUT_WR)

    assert (server.recv(100), server.recv(100), server.recv(100)) == (b"last words", b"", b"")


def test_a_connection_that_breaks_is_the_end_too(ends: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = ends
    client.close()

    assert server.recv(100) == b""


def test_nothing_is_sent_before_the_handshake(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    server = TlsSocket(pair[1], certificates(tmp_path).server_context())

    with pytest.raises(BlockingIOError, match="handshake"):
        server.send(b"x")


def test_a_server_of_another_authority_is_refused(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    client = TlsSocket(pair[0], certificates(tmp_path / "a").client_context(), server_hostname="localhost")
    server = TlsSocket(pair[1], certificates(tmp_path / "b").server_context())

    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(client, server)


def test_a_server_of_another_name_is_refused(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    ours = certificates(tmp_path)
    client = TlsSocket(pair[0], ours.client_context(), server_hostname="elsewhere.example")

    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        greeted(client, TlsSocket(pair[1], ours.server_context()))


def test_what_comes_with_the_end_of_the_handshake_waits_to_be_taken(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    ours = certificates(tmp_path)
    client = TlsSocket(pair[0], ours.client_context(), server_hostname="localhost")
    server = TlsSocket(pair[1], ours.server_context())
    while not client.handshake():
        server.hear()
        server.handshake()
        client.hear()
    client.send(b"hello")

    server.hear()
    over = server.handshake()
    server.setblocking(False)

    assert (over, server.waiting) == (True, True)
    assert (server.recv(100), server.waiting) == (b"hello", False)
