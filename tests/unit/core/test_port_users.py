"""Who listens on a port, read from a /proc of the test's own and from the real one."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from tenfold_core.port_users import listener, refusal, taken


def fake_proc(folder: Path, state: str, command: bytes) -> Path:
    """A /proc in which process 4711 has socket 99 on port 0x1F90 (8080)."""
    (folder / "net").mkdir()
    row = "   0: 0100007F:1F90 00000000:0000 {} 00000000:00000000 00:00000000 00000000  0  0 99 1 0 100 0 0 10 0"
    (folder / "net" / "tcp").write_text("  sl  local_address ...\n" + row.format(state) + "\n")
    descriptors = folder / "4711" / "fd"
    descriptors.mkdir(parents=True)
    (descriptors / "3").symlink_to("socket:[99]")
    (folder / "4711" / "cmdline").write_bytes(command)
    return folder


def test_the_process_that_listens(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, "0A", b"python\0server.py\0")

    assert listener(8080, proc) == "process 4711 (python server.py)"
    assert listener(8081, proc) is None


def test_a_connection_is_no_listener(tmp_path: Path) -> None:
    assert listener(8080, fake_proc(tmp_path, "01", b"curl\0")) is None


def test_a_long_command_line_is_cut(tmp_path: Path) -> None:
    found = listener(8080, fake_proc(tmp_path, "0A", b"x" * 500))

    assert found == f"process 4711 ({'x' * 99}…)"


def test_where_there_is_no_proc(tmp_path: Path) -> None:
    assert listener(8080, tmp_path) is None


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no /proc here")
def test_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        why = f"address already in use by process {os.getpid()} ("
        assert taken(OSError(errno.EADDRINUSE, "Address already in use"), port).startswith(why)
        assert refusal(port).startswith(why)
    assert refusal(port) == ""
    assert taken(OSError(errno.EADDRINUSE, ""), port) == "address already in use by another process"
    assert taken(OSError(errno.EACCES, "Permission denied"), 80) == "permission denied"
