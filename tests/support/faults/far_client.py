"""A client in a process of its own, on a host of network.py: it opens a session and runs steps when the test says so.

    with FarClient(network, "client") as client:
        client.call("open", "grpc://10.77.0.2:2222", [("ps", 0), ("worker", 0)])
        assert client.call("total").value == 3.0

Run as a program this file is that process: its argument is the descriptor of a connection to the test. An error of a
step becomes data, since what it says and when it came is what the test looks at.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf

if TYPE_CHECKING:
    from types import TracebackType

    from support.faults.network import Network

#: Seconds for an answer: what a step may take that waits for tasks to come back, and for a slow network.
PATIENCE = 120.0


@dataclass(frozen=True)
class Outcome:
    """How a call of the client ended."""

    seconds: float
    value: Any = None
    #: "UNAVAILABLE" and so on, and what it says; "" where there was none.
    code: str = ""
    message: str = ""


class FarClient:
    """Blocking; one thread at a time. Leaving the block kills the process, whatever it waits for."""

    def __init__(self, network: Network, host: str) -> None:
        self._network, self._host = network, host

    def __enter__(self) -> FarClient:
        self._connection, theirs = Pipe()
        program = [sys.executable, __file__, str(theirs.fileno())]
        self._process = self._network.inside(
            self._host, lambda: subprocess.Popen(program, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        )
        theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait(PATIENCE)

    def call(self, method: str, *arguments: Any) -> Outcome:
        """Has a method of `_Session` called, and waits for its end."""
        self.begin(method, *arguments)
        return self.end()

    def begin(self, method: str, *arguments: Any) -> None:
        self._connection.send((method, arguments))

    def end(self) -> Outcome:
        """The outcome of what was begun. Raises AssertionError for one that hangs."""
        assert self._connection.poll(PATIENCE), f"the client's call has not ended after {PATIENCE:g} s"
        outcome: Outcome = Outcome(*self._connection.recv())
        return outcome


class _Session:
    """What the process does. Each task has a variable, a power of two, so that their sum tells which are in it."""

    def open(self, target: str, tasks: list[tuple[str, int]]) -> None:
        """A session at `target`, whose variables are initialised."""
        self._target, self._graph = target, tf.Graph()
        with self._graph.as_default():
            parts = []
            for place, (job, index) in enumerate(tasks):
                with tf.device(f"/job:{job}/task:{index}"):
                    parts.append(tf.get_variable(f"{job}{index}", initializer=float(2**place)) + 0.0)
            self._total = tf.add_n(parts)
            initialized = tf.global_variables_initializer()
        self._session = tf.Session(target, graph=self._graph)
        self._session.run(initialized)

    def total(self) -> float:
        return float(self._session.run(self._total))

    def total_again(self) -> float:
        """As soon as it works again, in the same session or in a new one; variables outlive both."""
        end = time.monotonic() + PATIENCE / 2
        while True:
            try:
                return self.total()
            except (tf.errors.UnavailableError, tf.errors.AbortedError):
                if time.monotonic() > end:
                    raise
            with suppress(tf.errors.UnavailableError, tf.errors.AbortedError):
                self._session = tf.Session(self._target, graph=self._graph)

    def carry(self, source: tuple[str, int], destination: tuple[str, int], count: int) -> bool:
        """Moves the numbers 0 to `count` from one task to another; whether each of them is there and right."""
        with self._graph.as_default():
            [variable] = [each for each in tf.global_variables() if each.op.name == f"{source[0]}{source[1]}"]
            with tf.device("/job:{}/task:{}".format(*source)):
                # read from its variable, so that they are not made anywhere else
                numbers = tf.range(count) + tf.cast(variable - variable, tf.int32)
            with tf.device("/job:{}/task:{}".format(*destination)):
                right = tf.reduce_all(tf.equal(numbers, tf.range(count)))
        return bool(self._session.run(right))

    def feed(self, destination: tuple[str, int], count: int) -> bool:
        """Moves them from here to a task, in the same way."""
        with self._graph.as_default(), tf.device("/job:{}/task:{}".format(*destination)):
            numbers = tf.placeholder(tf.int32, [count])
            right = tf.reduce_all(tf.equal(numbers, tf.range(count)))
        return bool(self._session.run(right, {numbers: np.arange(count, dtype=np.int32)}))


def _serve(descriptor: int) -> None:
    connection, session = Connection(descriptor), _Session()
    with suppress(EOFError):  # the test is gone
        while True:
            method, arguments = connection.recv()
            began, value, code, message = time.monotonic(), None, "", ""
            try:
                value = getattr(session, method)(*arguments)
            except tf.errors.OpError as error:
                code, message = type(error).__name__, error.message
            connection.send((time.monotonic() - began, value, code, message))


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
