"""Which user of this machine is at the other end of a loopback TCP connection, as Linux tells.

The kernel knows the owner of both ends of such a connection: asked by sock_diag (netlink), else read from
/proc/net/tcp. Elsewhere nobody tells. Source: linux/inet_diag.h, proc(5). Used by gate.py when a connection has been
accepted.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
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
#: inet_diag_msg: 4 bytes, the socket's id, 12 bytes; then user and inode.
_OWNER, _OWNER_AT = struct.Struct("=II"), _HEADER.size + 4 + _SOCKET_ID.size + 12
_ANSWER_S = 1.0


def peer_user(peer: tuple[Any, ...], own: tuple[Any, ...], family: int) -> int | None:
    """The user id of the process whose socket is bound to `peer` and connected to `own`, both (host, port, …) as
    `accept` and `getsockname` give them. None where the system does not tell, or the socket has no owner any more.

    Takes some 100 µs; does not wait for the peer. Raises OSError where the process may open no file to ask with.
    """
    if not CAN_TELL:
        return None
    theirs, ours = (unmapped(peer[0]), int(peer[1])), (unmapped(own[0]), int(own[1]))
    # a peer that speaks IPv4 has an IPv4 socket, also where ours is one of IPv6
    family = family if ":" in theirs[0] else socket.AF_INET
    try:
        return _by_netlink(theirs, ours, family)
    except OSError as error:
        if is_out_of_files(error):
            raise
        return _by_proc(theirs, ours, family)


def unmapped(host: str) -> str:
    """An IPv4 address that an IPv6 socket has written as one of its own is the IPv4 address again."""
    return host.removeprefix("::ffff:") if "." in host else host


def _by_netlink(peer: tuple[str, int], own: tuple[str, int], family: int) -> int | None:
    """Raises OSError where there is no sock_diag."""
    hosts = [_packed(each[0], family).ljust(16, b"\0") for each in (peer, own)]
    wanted = _SOCKET_ID.pack(peer[1], own[1], *hosts, 0, _ANY_COOKIE)
    body = _REQUEST_HEAD.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + wanted
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
    user, inode = _OWNER.unpack_from(answer, _OWNER_AT)
    # a socket that its process has closed counts as root's, and has no inode
    return int(user) if inode else None


def _by_proc(peer: tuple[str, int], own: tuple[str, int], family: int) -> int | None:
    wanted = [f"{_words(_packed(each[0], family))}:{each[1]:04X}" for each in (peer, own)]
    try:
        with open("/proc/net/tcp6" if family == socket.AF_INET6 else "/proc/net/tcp", encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[1:3] == wanted:
                    return int(fields[7]) if fields[9] != "0" else None
    except OSError as error:
        if is_out_of_files(error):
            raise
    except (IndexError, ValueError):
        pass
    return None


def _packed(host: str, family: int) -> bytes:
    return socket.inet_pton(family, host.partition("%")[0])


def _words(address: bytes) -> str:
    """As /proc writes addresses: words of four bytes in the machine's order."""
    count = len(address) // 4
    return "".join(f"{word:08X}" for word in struct.unpack(f"={count}I", address))
