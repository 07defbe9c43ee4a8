"""The actor of a task on a Ray cluster: it starts an agent on its node and carries its messages.

ray.py starts it; Ray finds this module on the node, where Tenfold has to be installed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque

from tenfold.launchers import agent_protocol as protocol

#: Seconds of one look for messages, and for an agent to stop its tasks.
_LOOK_S, END_S = 2.0, 30.0


class AgentActor:
    """On a node: an agent as its child, and what it says. Ray makes an actor of it."""

    def __init__(self, python: str | None, shown: str) -> None:
        import ray

        self._shown = shown
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()
        self._ended = False
        self._process = subprocess.Popen(
            [python or sys.executable, "-P", "-m", "tenfold.launchers.agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            env={**os.environ, protocol.ADDRESS: ray.util.get_node_ip_address()},
        )
        self._writing = threading.Lock()
        threading.Thread(target=self._listen, name="listen", daemon=True).start()
        threading.Thread(target=self._ping, name="ping", daemon=True).start()

    def __repr__(self) -> str:
        """What Ray's dashboard shows of it: the task, its run, and where that is watched."""
        return self._shown

    def actor_id(self) -> str:
        """Ray's of this actor."""
        import ray

        return str(ray.get_runtime_context().get_actor_id())

    def write(self, text: str) -> None:
        """To the agent."""
        assert self._process.stdin is not None
        with self._writing, contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(text)
            self._process.stdin.flush()

    def read(self) -> list[str] | None:
        """What it has said since; waits for a moment where it has not. None at its end."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._lines) or self._ended, _LOOK_S)
            found = list(self._lines)
            self._lines.clear()
            return None if self._ended and not found else found

    def close(self) -> None:
        """Ends it, in order."""
        assert self._process.stdin is not None
        with self._writing, contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(protocol.LONGEST):
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _ping(self) -> None:
        while self._process.poll() is None:
            self.write(protocol.written("ping"))
            time.sleep(protocol.PING_S)
