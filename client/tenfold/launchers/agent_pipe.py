"""Our end of one agent: a command of an engine (ssh, srun) whose pipes lead to it.

Three threads: one writes, pings and looks whether the other end is alive, one reads messages, one keeps what the
engine's command says on its standard error, the last line of which tells why a connection failed.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Protocol

from tenfold.launchers import agent_protocol as protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

log = logging.getLogger(__name__)

#: Called with each message's kind and members.
Heard = Callable[[str, protocol.Message], None]
#: Messages that wait to be written; an agent that takes none for so long is lost.
_WAITING = 10_000
#: Lines of the engine's command that are kept.
_WORDS = 20
#: Seconds for the command to end once its input is closed: an agent stops its tasks meanwhile; and once it was killed.
_END_S, _KILLED_S = 30.0, 5.0


class AgentLine(Protocol):
    """Our end of an agent. AgentPipe is one over a command's pipes."""

    def send(self, kind: str, **members: Any) -> None:
        """Never blocks. What is sent to an agent that is lost is lost, too."""
        ...

    def send_slowly(self, kind: str, **members: Any) -> bool:
        """`send` of a large message: waits for room, within a bound. Whether it was taken."""
        ...

    def end(self, why: str) -> None:
        """Breaks the connection now; the agent ends its tasks."""
        ...

    def close(self) -> None:
        """Ends the agent, which stops what runs, and waits for it, within a bound."""
        ...


class AgentPipe:
    """Starts the command. `heard(kind, message)` and, at the end, `lost(why)` are called on threads of this object."""

    def __init__(
        self,
        command: Sequence[str],
        heard: Heard,
        lost: Callable[[str], None],
        say: Callable[[str], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`say` gets each line that the engine's command writes on its standard error. Raises OSError where the command
        cannot be started."""
        self._heard, self._lost, self._say = heard, lost, say
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            # a terminal's Ctrl-C reaches only this process, which stops the tasks in order
            start_new_session=True,
            env=None if environment is None else dict(environment),
        )
        self._out: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._last = time.monotonic()
        #: Why we ended it ourselves.
        self._why = ""
        self._threads = [
            threading.Thread(target=each, name=f"agent:{each.__name__}", daemon=True)
            for each in (self._keep_words, self._write, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, kind: str, **members: Any) -> None:
        """Never blocks. What is sent to an agent that is lost is lost, too."""
        try:
            self._out.put_nowait(protocol.written(kind, **members))
        except queue.Full:
            self.end("it takes no more messages")

    def send_slowly(self, kind: str, **members: Any) -> bool:
        """`send` of a large message: waits for room, for as long as a silence may last. Whether it was taken."""
        try:
            self._out.put(protocol.written(kind, **members), timeout=protocol.SILENCE_S)
        except queue.Full:
            return False
        return self._process.poll() is None

    def end(self, why: str) -> None:
        """Breaks the connection now; the agent ends its tasks."""
        self._why = self._why or why
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        """Ends the agent, which stops what runs, and waits for it; breaks the connection if that takes too long."""
        with contextlib.suppress(queue.Full):
            self._out.put_nowait(None)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.end("it did not end")
            self._process.wait(_KILLED_S)
        for thread in self._threads:
            thread.join(_KILLED_S)

    # -- threads

    def _write(self) -> None:
        out = self._process.stdin
        assert out is not None
        with contextlib.suppress(OSError, ValueError), out:
            while True:
                try:
                    text = self._out.get(timeout=protocol.PING_S)
                except queue.Empty:
                    if self._process.poll() is not None:
                        return
                    if time.monotonic() > self._last + protocol.SILENCE_S:
                        self.end(f"nothing was heard of it for {protocol.SILENCE_S:g} s")
                    text = protocol.written("ping")
                if text is None:
                    return
                out.write(text)
                out.flush()

    def _read(self) -> None:
        source: IO[str] | None = self._process.stdout
        assert source is not None
        with source:
            while line := source.readline(protocol.LONGEST):
                self._last = time.monotonic()
                found = protocol.read(line)
                if found is not None and found[0] != "pong":
                    self._heard(*found)
        try:
            code = self._process.wait(_KILLED_S)
        except subprocess.TimeoutExpired:
            # its output is closed, and so it is of no use any more
            self._process.kill()
            code = self._process.wait(_KILLED_S)
        self._threads[0].join(_KILLED_S)  # which was started first
        said = self._words[-1] if self._words else f"its connection ended with exit code {code}"
        self._lost(self._why or said)
        with contextlib.suppress(queue.Full):
            self._out.put_nowait(None)

    def _keep_words(self) -> None:
        source = self._process.stderr
        assert source is not None
        with source:
            while line := source.readline(protocol.LONGEST):
                if text := line.strip():
                    self._words.append(text)
                    self._say(text)
