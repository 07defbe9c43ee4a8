"""`tenfold tunnel` as a process: the line that says where it listens, a port that is taken, its end by a signal."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from support.certs import access
from support.task_processes import CLI, PATIENCE, python
from tenfold_core.access.roles import Role
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def tunnel(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A tunnel that runs, and its first line."""
    process = subprocess.Popen(
        python(*CLI, "tunnel", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_ends_by_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    task, mine = access(tmp_path), access(tmp_path, "client", Role.RUN)
    shown = ("--tls-cert", str(mine.tls_cert), "--tls-key", str(mine.tls_key), "--tls-ca", str(mine.tls_ca))
    with BackgroundServer(TaskServer({"ps": [""]}, "ps", 0, access=task)) as server:
        there = f"localhost:{server.port}"
        with tunnel("--listen", "127.0.0.1:0", "--to", there, *shown) as (process, line):
            words = line.split()
            assert line == f"tunnel listening on {words[3][:-1]}, to {there} over TLS\n"
            with grpc.insecure_channel(words[3][:-1]) as channel:
                channel.unary_unary("/tensorflow.MasterService/CreateSession")(b"", timeout=PATIENCE)
            process.send_signal(number)
            code = process.wait(PATIENCE)

    assert code == 128 + number


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    mine = access(tmp_path)
    shown = ("--tls-cert", str(mine.tls_cert), "--tls-key", str(mine.tls_key), "--tls-ca", str(mine.tls_ca))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with tunnel("--listen", f"127.0.0.1:{port}", "--to", "localhost:1", *shown) as (process, line):
            said = process.communicate(timeout=PATIENCE)[1]

    assert (line, process.returncode) == ("", 1)
    assert f"cannot listen on 127.0.0.1:{port}: address already in use by process" in said
    assert "Another port: --listen HOST:PORT, where port 0 takes a free one." in said
