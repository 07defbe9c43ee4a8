"""Which user of this machine is at the other end of an accepted loopback TCP connection, as Linux tells.

The kernel knows the owner of both ends of such a connection: asked by sock_diag (netlink), else read from /proc/net/tcp
and tcp6. What it answers counts only for exactly this connection in a connected state: asked for a connection that is
gone, sock_diag answers with the owner of what listens at the peer's port. Elsewhere nobody tells. Used by gate.py when
a connection has been accepted. Source: linux/inet_diag.h, proc(5), user_namespaces(7).
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from functools import lru_cache
from typing import Any

from tenfold_core.open_files import is_out_of_files

#: Whether the system can tell at all.
CAN_TELL = sys.platform == "linux"

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")
#: inet_diag_req_v2 up to the socket's id: family, protocol, extensions, states.
_REQUEST_HEAD = struct.Struct("=BBBxI")
#: inet_diag_sockid: ports, addresses, interface, cookie ("any").
_SOCKET_ID = struct.Struct("!HH16s16sI8s")
_ANY_COOKIE = b"\xff" * 8
#: inet_diag_msg: family, state, 2 bytes, the socket's id, 12 bytes, then user and inode.
_ANSWER = struct.Struct(f"=BBxx{_SOCKET_ID.size}s12xII")
_ANSWER_S = 1.0

# States of a TCP socket, as linux/tcp_states.h numbers them.
_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT, _LAST_ACK, _CLOSING = 1, 4, 5, 8, 9, 11
#: Of a peer's socket that has a connection. Neither a listener nor one that is still connecting is among them.
_CONNECTED = frozenset({_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT, _LAST_ACK, _CLOSING})
_MAPPED = bytes(10) + b"\xff\xff"


def peer_user(peer: tuple[Any, ...], own: tuple[Any, ...], family: int) -> int | None:
    """The user id of the process whose socket is bound to `peer` and connected to `own`, both (host, port, …) as
    `accept` and `getsockname` give them. None where the system does not tell, or the socket has no owner any more.

    The answer is about the process that has that connection now: `is_connected` of the accepted socket, asked
    afterwards, says whether it still is the one that was accepted. Takes some 100 µs; does not wait for the peer.
    Raises OSError where the process may open no file to ask with.
    """
    if not CAN_TELL:
        return None
    theirs, ours = (unmapped(peer[0]), int(peer[1])), (unmapped(own[0]), int(own[1]))
    # a peer that speaks IPv4 is asked for as such, also where our socket is one of IPv6
    family = family if ":" in theirs[0] else socket.AF_INET
    try:
        user = _by_netlink(theirs, ours, family)
    except (OSError, ValueError, struct.error) as error:
        if isinstance(error, OSError) and is_out_of_files(error):
            raise
        user = _by_proc(theirs, ours, family)
    return None if user is not None and user == _nobody_in_particular() else user


def is_connected(accepted: socket.socket) -> bool:
    """Whether `accepted` still has its connection: the peer may have shut down its half, and has not reset it. As long
    as this is so no other connection has the same four numbers. Raises nothing."""
    if not CAN_TELL:
        return True
    try:
        return accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in (_ESTABLISHED, _CLOSE_WAIT)
    except (OSError, IndexError):
        return False


def unmapped(host: str) -> str:
    """An IPv4 address that an IPv6 socket has written as one of its own is the IPv4 address again."""
    return host.removeprefix("::ffff:") if "." in host else host


@lru_cache(maxsize=1)
def _nobody_in_particular() -> int | None:
    """The number that stands for every user whom this process's user namespace has no number for; None where it has
    one for all. A service that runs as that very user would take all of them for its own."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            if sum(int(line.split()[2]) for line in file) >= (1 << 32) - 1:
                return None
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError, IndexError):
        return None


def _by_netlink(peer: tuple[str, int], own: tuple[str, int], family: int) -> int | None:
    """Raises OSError where there is no sock_diag, struct.error for a malformed answer."""
    hosts = [_packed(each[0], family).ljust(16, b"\0") for each in (peer, own)]
    wanted = _SOCKET_ID.pack(peer[1], own[1], *hosts, 0, _ANY_COOKIE)
    states = sum(1 << state for state in _CONNECTED)
    body = _REQUEST_HEAD.pack(family, socket.IPPROTO_TCP, 0, states) + wanted
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as asking:
        asking.settimeout(_ANSWER_S)
        asking.sendto(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + body, (0, 0))
        answer = asking.recv(4096)
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR:
        code = -int.from_bytes(answer[_HEADER.size : _HEADER.size + 4], sys.byteorder, signed=True)
        if code == 2:  # ENOENT: the peer has closed it
            return None
        raise OSError(code, os.strerror(code))
    its_family, state, identity, user, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    peer_port, own_port, peer_host, own_host, *_ = _SOCKET_ID.unpack(identity)
    found = [(_plain(host, its_family), port) for host, port in ((peer_host, peer_port), (own_host, own_port))]
    if state not in _CONNECTED or found != [(_packed(host, family), port) for host, port in (peer, own)]:
        return None
    # a socket that its process has closed counts as root's, and has no inode
    return int(user) if inode else None


def _by_proc(peer: tuple[str, int], own: tuple[str, int], family: int) -> int | None:
    """Reads the tables of connections: an IPv6 socket that speaks IPv4 stands in that of IPv6."""
    ways = [("/proc/net/tcp6", b"")]
    if family == socket.AF_INET:
        ways = [("/proc/net/tcp", b""), ("/proc/net/tcp6", _MAPPED)]
    for path, before in ways:
        wanted = [f"{_words(before + _packed(host, family))}:{port:04X}" for host, port in (peer, own)]
        try:
            with open(path, encoding="ascii") as file:
                for line in file:
                    fields = line.split()
                    if fields[1:3] == wanted and int(fields[3], 16) in _CONNECTED:
                        return int(fields[7]) if fields[9] != "0" else None
        except OSError as error:
            if is_out_of_files(error):
                raise
        except (IndexError, ValueError):
            continue
    return None


def _plain(host: bytes, family: int) -> bytes:
    """An address of an answer: four bytes where it is one of IPv4, also in a socket of IPv6."""
    if family == socket.AF_INET:
        return host[:4]
    return host[12:] if host.startswith(_MAPPED) else host


def _packed(host: str, family: int) -> bytes:
    return socket.inet_pton(family, host.partition("%")[0])


def _words(address: bytes) -> str:
    """As /proc writes addresses: words of four bytes in the machine's order."""
    count = len(address) // 4
    return "".join(f"{word:08X}" for word in struct.unpack(f"={count}I", address))
