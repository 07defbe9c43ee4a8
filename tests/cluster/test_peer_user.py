"""Whose a loopback connection is, as the system tells: real sockets, another user where tests may become one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.other_user import NOBODY, WHY_NOT, can_become
from tenfold_core.access import peer_user as module
from tenfold_core.access.peer_user import peer_user

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not module.CAN_TELL, reason="only Linux tells whose a connection is")

#: Becomes another user, connects, and waits for the end of its input.
CONNECT = """
import socket, sys
from support.other_user import become_nobody
become_nobody()
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))):
    sys.stdin.read()
"""
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(params=["netlink", "proc"])
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[socket.socket], int | None]:
    """Asks for the peer's user by either way."""
    if request.param == "proc":

        def refused(*_: object) -> int | None:
            raise OSError("no sock_diag here")

        monkeypatch.setattr(module, "_by_netlink", refused)
    return lambda sock: peer_user(sock.getpeername(), sock.getsockname(), sock.family)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.0.0.1 at ::"])
def test_this_user(ask: Callable[[socket.socket], int | None], host: str) -> None:
    dialled, _, bound = host.partition(" at ")
    family = socket.AF_INET6 if ":" in (bound or dialled) else socket.AF_INET
    with (
        socket.create_server((bound or dialled, 0), family=family, dualstack_ipv6=bool(bound)) as listening,
        socket.create_connection((dialled, listening.getsockname()[1])),
        listening.accept()[0] as accepted,
    ):
        assert ask(accepted) == os.geteuid()


def test_a_peer_that_has_closed_is_nobody_and_not_root(ask: Callable[[socket.socket], int | None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = socket.create_connection(listening.getsockname())
        with listening.accept()[0] as accepted:
            peer.sendall(b"a request")
            peer.close()
            assert accepted.recv(100) == b"a request"
            assert accepted.recv(100) == b""

            assert ask(accepted) is None


@pytest.mark.skipif(not can_become, reason=WHY_NOT)
def test_another_user(ask: Callable[[socket.socket], int | None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        program = [sys.executable, "-S", "-c", CONNECT, str(listening.getsockname()[1])]
        child = subprocess.Popen(program, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": TESTS})
        try:
            listening.settimeout(20)
            with listening.accept()[0] as accepted:
                assert ask(accepted) == NOBODY
        finally:
            child.communicate(timeout=20)


#: In a user namespace that has no number for anybody, itself included: accepts a connection, and says its own user and
#: whose the connection is, by either way.
ASKED_IN_A_NAMESPACE = """
import os, socket
from tenfold_core.access import peer_user as module

with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    with listening.accept()[0] as accepted:
        names = accepted.getpeername(), accepted.getsockname(), accepted.family
        found = [module.peer_user(*names)]
        def refused(*_):
            raise OSError("no sock_diag here")
        module._by_netlink = refused
        print(os.geteuid(), *found, module.peer_user(*names), flush=True)
"""


def test_who_has_no_number_in_our_namespace_is_nobody() -> None:
    """… and not the user by whose number the kernel shows all of them, which is ours there."""
    command = ["unshare", "--user", sys.executable, "-c", ASKED_IN_A_NAMESPACE]
    if subprocess.run([*command[:2], "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine makes no user namespaces")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdout is not None
        with socket.create_connection(("127.0.0.1", int(asked.stdout.readline())), timeout=30):
            own, *found = asked.stdout.readline().split()
        assert asked.wait(30) == 0

    assert own == Path("/proc/sys/kernel/overflowuid").read_text().strip()
    assert found == ["None", "None"]
