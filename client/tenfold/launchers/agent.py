"""The process on a host that starts tasks of a run there: `python -m tenfold.launchers.agent`.

It is started by a launcher through its engine (ssh, srun), whose pipes are its standard input and output; what it hears
and says there stands in agent_protocol.py. It lives as long as its input: when that ends, or is silent for too long,
the tasks are stopped in order, what they have left is killed, and no file of its own stays.
"""

from __future__ import annotations

import base64
import contextlib
import os
import queue
import signal
import socket
import tempfile
import threading
import time
import zipfile
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from tenfold.cli.scratch import scratch_folder
from tenfold.launchers import agent_protocol as protocol
from tenfold.launchers.local import LocalProcesses, free_ports
from tenfold.launchers.working_dir import has_rsync
from tenfold_core.exit_codes import STOP_SIGNALS


class Agent:
    """One run's tasks of this host. `run` returns when the launcher has gone."""

    def __init__(self, source: IO[str], out: IO[str]) -> None:
        self._source, self._out = source, out
        self._speaking = threading.Lock()
        #: What is to be done, one after the other; None: end. A signal's handler may put something, too.
        self._heard: queue.SimpleQueue[tuple[str, protocol.Message] | None] = queue.SimpleQueue()
        self._last = time.monotonic()
        self._held = ExitStack()
        self._processes: LocalProcesses | None = None
        self._running: set[str] = set()
        self._package: IO[bytes] | None = None
        self._left = 0
        #: Where the working directory goes that is sent.
        self._folder: Path | None = None

    def run(self) -> None:
        self._say(
            "ready",
            protocol=protocol.PROTOCOL,
            version=metadata.version("tenfold"),
            host=socket.gethostname(),
            address=os.environ.get(protocol.ADDRESS) or socket.gethostname(),
            pid=os.getpid(),
            rsync=has_rsync(),
        )
        for each in STOP_SIGNALS:
            signal.signal(each, lambda number, frame: self._put(None))
        threading.Thread(target=self._listen, name="listen", daemon=True).start()
        with self._held:
            while self._next():
                pass

    # -- hearing and saying

    def _listen(self) -> None:
        """Body of a thread: reads to the end of the input."""
        while line := self._source.readline(protocol.LONGEST):
            self._last = time.monotonic()
            found = protocol.read(line)
            if found is not None and found[0] == "ping":
                self._say("pong")
            elif found is not None:
                self._put(found)
        self._put(None)

    def _put(self, found: tuple[str, protocol.Message] | None) -> None:
        self._heard.put(found)
        if self._processes is not None:
            self._processes.wake()

    def _say(self, kind: str, **members: Any) -> None:
        # a launcher that has gone is noticed by the end of the input
        with self._speaking, contextlib.suppress(OSError, ValueError):
            self._out.write(protocol.written(kind, **members))
            self._out.flush()

    def _line(self, name: str, text: str) -> None:
        self._say("line", name=name, text=text)

    # -- one thing after the other

    def _next(self) -> bool:
        """Does what comes first: a command, the end of a task. False when the launcher has gone."""
        if self._processes is not None and self._running and self._heard.empty():
            ended = self._processes.wait_for_exit(
                list(self._running), protocol.PING_S, unless=lambda: not self._heard.empty()
            )
            if ended is not None:
                name, code = ended
                self._running.discard(name)
                self._say("ended", name=name, code=code, error=self._processes.error(name) if code else None)
        else:
            with contextlib.suppress(queue.Empty):
                found = self._heard.get(timeout=protocol.PING_S)
                if found is None:
                    return False
                return self._do(*found)
        return time.monotonic() < self._last + protocol.SILENCE_S

    def _do(self, kind: str, message: protocol.Message) -> bool:
        match kind:
            case "begin" | "room":
                try:
                    (self._begin if kind == "begin" else self._make_room)(message)
                except (OSError, ValueError) as error:
                    self._say("failed", why=str(error))
                    return False
            case "piece":
                return self._take(base64.b64decode(message["data"]))
            case "ports":
                self._say("ports", numbers=free_ports(message["count"], ""))
            case "start":
                self._start(message)
            case "terminate" | "kill" if self._processes is not None and message["name"] in self._running:
                (self._processes.terminate if kind == "terminate" else self._processes.kill)(message["name"])
            case "clear":
                if self._processes is not None:
                    self._processes.clear()
                self._say("cleared")
        return True

    def _begin(self, message: protocol.Message) -> None:
        """Goes to the working directory, which is here or comes in pieces. Raises OSError and ValueError."""
        if message["scratch"]:
            place = os.path.expandvars(message["scratch"])
            if not os.path.isdir(place):
                raise ValueError(f"it has no scratch folder {place}")
            # of this process, too: what tasks leave there goes with it
            tempfile.tempdir = os.environ["TMPDIR"] = str(self._held.enter_context(scratch_folder("tasks", place)))
        if message["package"]:
            self._room(message["working_dir"])
        self._held.enter_context(processes := LocalProcesses(self._line, message["tasks"], whole=True))
        self._processes = processes
        if message["package"]:
            self._package = self._held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - held to the end
            self._left = message["package"]
            return
        folder = _path_here(message["working_dir"])
        if not os.path.isdir(folder):
            raise ValueError(f"it has no folder {folder}")
        os.chdir(folder)
        self._begun(message["files"])

    def _make_room(self, message: protocol.Message) -> None:
        """A folder for the working directory, which rsync brings. Raises OSError."""
        self._say("room", path=str(self._room(message["folder"])))

    def _room(self, folder: str) -> Path:
        """That folder, made if it is not there, and left at the end; without a name one of this process's own. Raises
        OSError."""
        if folder:
            self._folder = Path(_path_here(folder)).absolute()
            self._folder.mkdir(parents=True, exist_ok=True)
        else:
            self._folder = self._held.enter_context(scratch_folder("agent")) / "work"
            self._folder.mkdir()
        return self._folder

    def _take(self, piece: bytes) -> bool:
        """A piece of the package; with the last one the tasks can begin."""
        assert self._package is not None
        assert self._folder is not None
        try:
            self._package.write(piece)
            self._left -= len(piece)
            if self._left <= 0:
                with zipfile.ZipFile(self._package) as package:
                    package.extractall(self._folder)
                os.chdir(self._folder)
                self._begun(())
        except (OSError, zipfile.BadZipFile) as error:
            self._say("failed", why=f"the working directory cannot be written: {error}")
            return False
        return True

    def _begun(self, files: Any) -> None:
        for file in files:
            if not os.path.isfile(file):
                raise ValueError(f"it has no file {file} in {os.getcwd()}")
        self._say("begun")

    def _start(self, message: protocol.Message) -> None:
        name = message["name"]
        assert self._processes is not None
        try:
            self._processes.start(
                name,
                message["program"],
                stage=message["stage"],
                env=message["env"],
                interpreter=message["interpreter"],
            )
        except (OSError, ValueError) as error:
            self._say("refused", name=name, why=str(error))
            return
        self._running.add(name)
        self._say("started", name=name, pid=self._processes.place(name)["pid"])


def _path_here(path: str) -> str:
    """A path that is not absolute may begin with ~ or a variable of this host."""
    return path if os.path.isabs(path) else os.path.expanduser(os.path.expandvars(path))


def main() -> None:
    # nothing but messages is to go out there
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    source = os.fdopen(os.dup(0), encoding="utf-8")
    Agent(source, out).run()


if __name__ == "__main__":
    main()
