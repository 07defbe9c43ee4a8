"""Who is at the other end of a connection: how the system's answers are read. Real connections are in tests/cluster."""

from __future__ import annotations

import io
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core.access import peer_user as module
from tenfold_core.access.peer_user import is_connected, peer_user, unmapped

if TYPE_CHECKING:
    from collections.abc import Iterator

PEER, OWN = ("127.0.0.1", 40000), ("127.0.0.1", 2222)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

pytestmark = pytest.mark.skipif(sys.byteorder != "little", reason="the table is of a machine with that order")


def row(local: str, remote: str, state: int = 1, user: int = 7, inode: int = 99) -> str:
    return f"   0: {local} {remote} {state:02X} 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1\n"


V4 = ("0100007F:9C40", "0100007F:08AE")
V6 = ("00000000000000000000000001000000:9C40", "00000000000000000000000001000000:08AE")
MAPPED = ("0000000000000000FFFF00000100007F:9C40", "0000000000000000FFFF00000100007F:08AE")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What /proc holds; sock_diag is not there."""
    held: dict[str, Any] = {"/proc/self/uid_map": "0 0 4294967295\n"}

    def opened(path: str, **_: Any) -> io.StringIO:
        if isinstance(held.get(path), OSError):
            raise held[path]
        if path not in held:
            raise FileNotFoundError(path)
        return io.StringIO(held[path])

    def no_netlink(*_: Any) -> int:
        raise OSError("no sock_diag")

    monkeypatch.setattr(module, "open", opened, raising=False)
    monkeypatch.setattr(module, "_by_netlink", no_netlink)
    monkeypatch.setattr(module, "CAN_TELL", True)
    module._nobody_in_particular.cache_clear()
    yield held
    module._nobody_in_particular.cache_clear()


@pytest.mark.parametrize(
    ("host", "plain"), [("::ffff:1.2.3.4", "1.2.3.4"), ("1.2.3.4", "1.2.3.4"), ("::ffff:1", "::ffff:1"), ("::1", "::1")]
)
def test_an_ipv4_address_in_an_ipv6_socket_is_one(host: str, plain: str) -> None:
    assert unmapped(host) == plain


def test_a_table_names_the_user_of_exactly_this_connection(files: dict[str, Any]) -> None:
    files["/proc/net/tcp"] = HEAD + row(V4[1], V4[0], user=1) + row(V4[0], "0100007F:08AF", user=2) + row(*V4)
    assert peer_user(PEER, OWN, socket.AF_INET) == 7
    assert peer_user(PEER, ("127.0.0.1", 2224), socket.AF_INET) is None


@pytest.mark.parametrize(
    ("state", "found"), [(1, 7), (2, None), (4, 7), (5, 7), (6, None), (7, None), (8, 7), (9, 7), (10, None), (11, 7)]
)
def test_only_a_socket_that_has_a_connection_counts(files: dict[str, Any], state: int, found: int | None) -> None:
    files["/proc/net/tcp"] = HEAD + row(*V4, state=state)
    assert peer_user(PEER, OWN, socket.AF_INET) == found


def test_a_socket_that_its_process_has_closed_is_nobodys(files: dict[str, Any]) -> None:
    files["/proc/net/tcp"] = HEAD + row(*V4, user=0, inode=0)
    assert peer_user(PEER, OWN, socket.AF_INET) is None


def test_ipv4_may_stand_in_the_table_of_ipv6(files: dict[str, Any]) -> None:
    files["/proc/net/tcp6"] = HEAD + row(*MAPPED, user=8)
    assert peer_user(PEER, OWN, socket.AF_INET) == 8
    mapped = ("::ffff:127.0.0.1", 40000, 0, 0), ("::ffff:127.0.0.1", 2222, 0, 0)
    assert peer_user(*mapped, socket.AF_INET6) == 8
    files["/proc/net/tcp"] = HEAD + row(*V4)
    assert peer_user(*mapped, socket.AF_INET6) == 7


def test_ipv6_is_looked_up_in_its_own_table(files: dict[str, Any]) -> None:
    files["/proc/net/tcp"] = HEAD + row(*V4)
    peer, own = ("::1%lo", 40000, 0, 1), ("::1", 2222, 0, 0)
    assert peer_user(peer, own, socket.AF_INET6) is None
    files["/proc/net/tcp6"] = HEAD + row(*V6, user=9)
    assert peer_user(peer, own, socket.AF_INET6) == 9


def test_a_table_that_cannot_be_read_tells_nothing(files: dict[str, Any]) -> None:
    files["/proc/net/tcp"] = HEAD + "broken 0100007F:9C40 0100007F:08AE\n"
    files["/proc/net/tcp6"] = HEAD + row(*MAPPED, user=8)
    assert peer_user(PEER, OWN, socket.AF_INET) == 8
    files["/proc/net/tcp"] = PermissionError("no")
    assert peer_user(PEER, OWN, socket.AF_INET) == 8
    files["/proc/net/tcp"] = OSError(24, "Too many open files")
    with pytest.raises(OSError, match="Too many open files"):
        peer_user(PEER, OWN, socket.AF_INET)


def test_without_a_file_to_ask_with_nobody_guesses(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    files["/proc/net/tcp"] = HEAD + row(*V4)

    def out_of_files(*_: Any) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "_by_netlink", out_of_files)
    with pytest.raises(OSError, match="Too many open files"):
        peer_user(PEER, OWN, socket.AF_INET)


def test_where_the_system_cannot_tell_nobody_is_asked(files: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    files["/proc/net/tcp"] = HEAD + row(*V4)
    monkeypatch.setattr(module, "CAN_TELL", False)
    assert peer_user(PEER, OWN, socket.AF_INET) is None
    assert is_connected(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("uid_map", "overflow", "found"),
    [
        ("0 0 4294967295\n", "7", 7),
        ("0 0 4294967294\n", "7", None),
        ("0 0 1\n1 100000 65536\n", "7", None),
        ("0 0 1\n1 1 4294967294\n", "7", 7),
        ("0 0 1\n", "65534", 7),
        ("0 0 1\n", "no number", 7),
        (PermissionError(), "7", 7),
        ("0\n", "7", 7),
    ],
)
def test_the_number_that_stands_for_unknown_users_is_nobodys(
    files: dict[str, Any], uid_map: Any, overflow: str, found: int | None
) -> None:
    files["/proc/net/tcp"] = HEAD + row(*V4)
    files["/proc/self/uid_map"], files["/proc/sys/kernel/overflowuid"] = uid_map, overflow
    assert peer_user(PEER, OWN, socket.AF_INET) == found


@pytest.mark.parametrize(("state", "connected"), [(1, True), (8, True), (7, False), (4, False), (10, False)])
def test_a_connection_lasts_until_our_side_ends_it(
    state: int, connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CAN_TELL", True)
    asked: list[Any] = []

    class Accepted:
        def getsockopt(self, *given: Any) -> bytes:
            asked.append(given)
            return bytes([state])

    sock: Any = Accepted()
    assert is_connected(sock) is connected
    assert asked == [(socket.IPPROTO_TCP, socket.TCP_INFO, 1)]


@pytest.mark.parametrize("answer", [OSError("closed"), b""])
def test_a_socket_that_is_closed_has_no_connection(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CAN_TELL", True)

    class Accepted:
        def getsockopt(self, *_: Any) -> bytes:
            if isinstance(answer, OSError):
                raise answer
            return bytes(answer)

    sock: Any = Accepted()
    assert not is_connected(sock)
