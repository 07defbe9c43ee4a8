"""Processes that run out of open files: they say so, send away who comes, do not spin, and go on once there is room."""

from __future__ import annotations

import base64
import json
import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import tenfold as tf
from support.few_files import few_files
from support.links import ADDRESS, ECHO
from support.ports import free_addresses
from support.task_processes import PATIENCE, static_cluster
from tenfold.cli.children import Children
from tenfold_core import errors
from tenfold_core.open_files import TOLD, needed_by_service, needed_by_task
from tenfold_link.blocking.dial import connect
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
HARD = 160
#: Seconds of the processor in one of the clock: what spins takes about 1, a server that rests next to nothing.
BUSY = 0.5


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def limited(*command: str) -> list[str]:
    return [str(HERE / "few_files_main.py"), "64", str(HARD), *command]


def test_a_task_takes_what_it_may_and_says_that_it_is_little(children: Children) -> None:
    cluster = json.dumps({"ps": free_addresses(1)})
    children.start("ps", limited("task", "--job", "ps", "--cluster", cluster))

    children.wait_for_line("ps", "listening on grpc://", PATIENCE)
    children.wait_for_line(
        "ps",
        f"/job:ps/replica:0/task:0 may have {HARD} files and sockets open, and a cluster of 1 task needs about "
        f"{needed_by_task(1)}: connections will be refused. ulimit -n 65536",
        PATIENCE,
    )

    assert resource.prlimit(children.pid("ps"), resource.RLIMIT_NOFILE) == (HARD, HARD)


def test_a_control_service_does_the_same(children: Children, tmp_path: Path) -> None:
    command = ("control", "--port", "0", "--database", str(tmp_path / "c.db"), "--jobs", "ps=4,worker=40")
    children.start("control", limited(*command))

    children.wait_for_line("control", "listening on http://", PATIENCE)
    children.wait_for_line(
        "control",
        f"This control service may have {HARD} files and sockets open, and a registry of 44 tasks needs about "
        f"{needed_by_service(44)}: connections will be refused. ulimit -n 65536",
        PATIENCE,
    )

    assert resource.prlimit(children.pid("control"), resource.RLIMIT_NOFILE) == (HARD, HARD)


@pytest.mark.thorough
def test_grpcs_port_sends_away_who_comes_and_goes_on_once_there_is_room() -> None:
    with static_cluster(ps=1) as tasks, ExitStack() as stack:
        process = psutil.Process(tasks.children.pid("ps/0"))
        host, port = tasks.addresses["ps"][0].rsplit(":", 1)
        target = tasks.target("ps", 0)
        # open until the end: what a closed one has used would be room again, by and by
        before = stack.enter_context(tf.Session(target, graph=tf.Graph()))
        before.list_devices()

        with few_files(4, process.pid):
            crowd = [stack.enter_context(socket.create_connection((host, int(port)), PATIENCE)) for _ in range(40)]
            greetings = [each.recv(4096) for each in crowd]
            tasks.children.wait_for_line(
                "ps/0",
                rf"gRPC's port {port} sends connections away: this process has all \d+ .*RLIMIT_NOFILE",
                PATIENCE,
            )
            with tf.Graph().as_default():
                elsewhere = target.replace("127.0.0.1", "localhost")  # on a connection of its own
                late = tf.Session(elsewhere, config=tf.ConfigProto(operation_timeout_in_ms=3000))
                with late, pytest.raises(tf.errors.DeadlineExceededError) as refused:
                    late.run(tf.constant(1.0))
            began = sum(process.cpu_times()[:2])
            crowd[0].settimeout(1.0)  # a second in which nobody comes
            with pytest.raises(TimeoutError):
                crowd[0].recv(4096)
            spent = sum(process.cpu_times()[:2]) - began
        for each in crowd:
            each.close()
        with tf.Graph().as_default(), tf.Session(target) as session:
            answer = session.run(tf.constant(2.0))

    sent_away = [TOLD.encode() in greeting for greeting in greetings]
    assert not sent_away[0]
    assert all(sent_away[20:])
    assert "RLIMIT_NOFILE" in refused.value.message, refused.value.message
    assert spent < BUSY
    assert answer == 2.0


@pytest.fixture
def listener() -> Iterator[subprocess.Popen[str]]:
    """A listener of links in a process of its own."""
    command = [sys.executable, "-u", str(HERE / "link_main.py"), "serve"]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield process
        process.kill()


def offer(listener: subprocess.Popen[str]) -> link_pb2.OpenLinkResponse:
    assert listener.stdin is not None
    assert listener.stdout is not None
    listener.stdin.write("\n")
    listener.stdin.flush()
    while (line := listener.stdout.readline()).startswith(("closed", "held", "entered")):
        pass
    return link_pb2.OpenLinkResponse.FromString(base64.b64decode(line))


def test_a_link_without_room_is_refused_by_name_and_opens_once_there_is_some(listener: subprocess.Popen[str]) -> None:
    first = connect(offer(listener), ADDRESS)  # what a process opens once has been opened then
    for free in range(4):
        answer = offer(listener)
        answer.tcp_port = 0
        with few_files(free, listener.pid), pytest.raises(errors.UnavailableError) as refused:
            connect(answer, ADDRESS)
        assert TOLD in refused.value.message, (free, refused.value.message)

    second = connect(offer(listener), ADDRESS)

    assert second.path == "unix+shm"
    assert bytes(second.call(ECHO, b"again")[0]) == b"again"
    assert bytes(first.call(ECHO, b"still")[0]) == b"still"
    for link in (first, second):
        link.close()
