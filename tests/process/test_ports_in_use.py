"""A port that is taken: each listener names the port, the process that has it, and the way out."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.task_processes import CLI, PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def port() -> Iterator[int]:
    """A port of loopback on which this process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def golden(port: int, text: str) -> str:
    """The message without what changes: port, process, command line."""
    text = re.sub(rf"process {os.getpid()} \(.*?\)\. ", "process PID (COMMAND). ", text)
    return text.replace(str(port), "PORT").strip()


def said(*arguments: str) -> tuple[int, str]:
    """Exit code and last line of what a command says."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TENFOLD_")}
    command = [sys.executable, *CLI, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False)
    return done.returncode, done.stderr.strip().splitlines()[-1]


def test_control(port: int, tmp_path: object) -> None:
    code, line = said("control", "--port", str(port), "--database", f"{tmp_path}/c.db")

    assert (code, golden(port, line)) == (
        1,
        "Error: the control service cannot listen on 127.0.0.1:PORT: address already in use by process PID (COMMAND). "
        "End that process, or choose another port with --port (TENFOLD_HTTP_PORT); 0 takes a free one.",
    )


def test_up(port: int) -> None:
    code, line = said("up", "--control-port", str(port))

    assert (code, golden(port, line)) == (
        1,
        "Error: the control service cannot listen on 127.0.0.1:PORT: address already in use by process PID (COMMAND). "
        "End that process, or choose another port with --control-port (TENFOLD_HTTP_PORT); 0 takes a free one.",
    )


def test_a_task_of_a_written_cluster(port: int) -> None:
    code, line = said("task", "--job", "ps", "--cluster", f'{{"ps": ["127.0.0.1:{port}"]}}')

    assert (code, golden(port, line)) == (
        1,
        "Error: UnknownError: Could not start gRPC server: /job:ps/replica:0/task:0 cannot listen on 127.0.0.1:PORT: "
        "address already in use by process PID (COMMAND). Another port: in the cluster spec, or where this task only "
        "listens (`tenfold task --bind`).",
    )


def test_a_port_for_links(port: int) -> None:
    cluster = '{"ps": ["127.0.0.1:1"]}'
    code, line = said("task", "--job", "ps", "--cluster", cluster, "--bind", "127.0.0.1:0", "--link-port", str(port))

    assert code == 1
    assert re.sub(r"127\.0\.0\.1:PORT", "HOST:PORT", golden(port, line)) == (
        "Error: UnknownError: /job:ps/replica:0/task:0 cannot listen for links on HOST:PORT: address already in use by "
        "process PID (COMMAND). Another port: `tenfold task --link-port` (TENFOLD_LINK_PORT), where 0 takes a free "
        "one; each task of a machine needs its own."
    )


def test_a_task_that_registers(port: int) -> None:
    code, line = said("task", "--job", "ps", "--control", "http://127.0.0.1:9", "--bind", f"127.0.0.1:{port}")

    assert (code, golden(port, line)) == (
        1,
        "Error: cannot listen on 127.0.0.1:PORT: address already in use by process PID (COMMAND). "
        "Another port: --bind HOST:PORT (TENFOLD_BIND), where port 0 takes a free one.",
    )


def test_a_server_in_a_program(port: int) -> None:
    with pytest.raises(tf.errors.UnknownError) as refused:
        tf.train.Server({"ps": [f"127.0.0.1:{port}"]}, job_name="ps", task_index=0)

    assert golden(port, refused.value.message) == (
        "Could not start gRPC server: /job:ps/replica:0/task:0 cannot listen on 127.0.0.1:PORT: "
        "address already in use by process PID (COMMAND). Another port: in the cluster spec, or where this task only "
        "listens (`tenfold task --bind`)."
    )
