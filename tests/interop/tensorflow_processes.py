"""Processes of TensorFlow's interpreters: scripts (tf_forks.py), clients that run programs.py, servers (tf_server.py).

environments.py knows where they are: 2.21 always, 1.15 and 1.4 where a Python that is old enough was found. Every wait
has a deadline, and nothing outlives its `with` block.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from .environments import ENVIRONMENTS, interpreter_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).resolve().parent
VERSIONS = tuple(ENVIRONMENTS)
PROGRAMS = HERE / "programs.py"

#: Seconds for TensorFlow to be imported and a server to listen; a busy machine takes more than ten.
START_S = 90.0
#: Seconds for a client's programs, all together.
CLIENT_S = 110.0
#: What keeps TensorFlow's chatter out of a script's output.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"}


def interpreter(version: str) -> str:
    """TensorFlow's interpreter of that version. Skips the test, saying why, where there is none."""
    path = interpreter_path(version)
    if not path.exists():
        pytest.skip(f"no environment with TensorFlow {version}: `make tf-env` builds one where it finds its Python")
    return str(path)


def printed_json(python: str, *arguments: str, timeout: float = CLIENT_S) -> Any:
    """What a script prints on its last line, as JSON. Fails the test, with the end of its errors, if it ends badly."""
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, timeout=timeout, env=os.environ | QUIET, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


class Forks:
    """A process that has imported TensorFlow and forks for each script (tf_forks.py). Started by the first of them."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._stack = ExitStack()
        self._starting = threading.Lock()
        self._address = ""

    def ask(self, script: str, *arguments: str) -> Any:
        """What a script prints on its last line, as JSON. Fails the test if it ends badly. Threads may ask at once."""
        with self._starting:
            self._address = self._address or self._start()
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as connection:
            out, errors = Path(folder, "out"), Path(folder, "errors")
            connection.settimeout(CLIENT_S)
            connection.connect(self._address)
            connection.sendall(json.dumps([script, arguments, str(out), str(errors)]).encode() + b"\n")
            try:
                status = connection.recv(100)
            except TimeoutError:
                pytest.fail(f"TensorFlow {self._version} has not ended its script after {CLIENT_S:g} s")
            assert status == b"0\n", errors.read_text()[-4000:] if errors.exists() else status
            return json.loads(out.read_text().strip().splitlines()[-1])

    def close(self) -> None:
        """Ends it, and scripts that go on."""
        self._stack.close()

    def _start(self) -> str:
        python = interpreter(self._version)
        address = str(Path(self._stack.enter_context(tempfile.TemporaryDirectory()), "forks"))
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                [python, str(HERE / "tf_forks.py"), address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env=os.environ | QUIET,
                start_new_session=True,
            )
            self._stack.callback(process.communicate, timeout=START_S)
            self._stack.callback(os.killpg, process.pid, signal.SIGKILL)
            _wait_until_listening(process, f"TensorFlow {self._version}", said)
        return address


class Client:
    """A process of programs.py under way. `answers` waits for its end."""

    def __init__(self, version: str, out: Path, calls: Sequence[str]) -> None:
        self._out = out
        self._log = out.with_suffix(".log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [interpreter(version), str(PROGRAMS), str(out), *calls],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | QUIET,
            )

    def answers(self) -> dict[str, Any]:
        """Program → what it returned, or {"failed": traceback}. Fails the test when the process did not end well."""
        try:
            code = self._process.wait(CLIENT_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the client has not ended after {CLIENT_S:g} s:\n{self._tail()}")
        assert code == 0, self._tail()
        result: dict[str, Any] = json.loads(self._out.read_text())
        return result

    def close(self) -> None:
        self._process.kill()
        self._process.wait(START_S)

    def _tail(self) -> str:
        return self._log.read_text()[-4000:]


@contextmanager
def clients(version: str, folder: Path, **calls: Sequence[str]) -> Iterator[dict[str, Client]]:
    """Starts a client process for each name, with these calls of programs.py ("program=argument,…")."""
    started: dict[str, Client] = {}
    try:
        for name, programs in calls.items():
            started[name] = Client(version, folder / f"{name}.json", programs)
        yield started
    finally:
        for client in started.values():
            client.close()


@contextmanager
def tensorflow_servers(
    version: str, cluster: Mapping[str, Sequence[str]], tasks: Sequence[tuple[str, int]]
) -> Iterator[None]:
    """TensorFlow's own servers as these tasks of the cluster, listening; they end with the block."""
    python = interpreter(version)
    processes = []
    with tempfile.TemporaryFile("w+") as said:
        try:
            for job, index in tasks:
                processes.append(
                    subprocess.Popen(
                        [python, str(HERE / "tf_server.py"), json.dumps(cluster), job, str(index)],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=said,
                        text=True,
                        env=os.environ | QUIET,
                    )
                )
            for process, task in zip(processes, tasks, strict=True):
                _wait_until_listening(process, f"TensorFlow's server for {task}", said)
            yield
        finally:
            for process in processes:
                process.kill()
                process.communicate(timeout=START_S)


def _wait_until_listening(process: subprocess.Popen[str], name: str, said: IO[str]) -> None:
    heard: queue.Queue[str] = queue.Queue()
    out = process.stdout
    assert out is not None
    threading.Thread(target=lambda: heard.put(out.readline()), daemon=True).start()
    try:
        line = heard.get(timeout=START_S)
    except queue.Empty:
        line = ""
    if not line.startswith("listening on "):
        said.seek(0)
        pytest.fail(f"{name} did not start:\n{said.read()[-4000:]}")
