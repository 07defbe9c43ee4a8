"""How the working directory of a run comes to its hosts: it is there already, or it is sent, by rsync or as a zip file.

rsync sends what has changed since, over a connection of its own; both ends must have it. The zip goes through the
agent's pipe, on every engine. Used by agent_processes.py; the other end is agent.py.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from tenfold.launchers import agent_protocol as protocol
from tenfold.runs.package import LEFT_OUT, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.launchers.agent_pipe import AgentLine
    from tenfold.launchers.interface import LaunchRequest

#: Seconds for the working directory to be there, and without a byte after which rsync gives up.
BEGIN_S, _STILL_S = 300.0, 30
#: Seconds for its output to end once it was killed.
_KILLED_S = 5.0
#: Makes "host:path" and the command that rsync reaches the host by: (what stands before the path, command).
RsyncTarget: TypeAlias = "tuple[str, Sequence[str]]"


class WorkingDir:
    """The working directory of one run. `begin` and `send` may be called for several agents at once."""

    def __init__(self, request: LaunchRequest, *, sync: bool) -> None:
        """`sync`: it is sent to each agent; else the hosts have it. The options `folder` and `scratch` of the request
        say where it is there, and where temporary files go."""
        self._request, self._sync = request, sync
        self._folder, self._scratch = request.options.get("folder", ""), request.options.get("scratch", "")
        self._zip: IO[bytes] | None = None
        self._lock = threading.Lock()
        #: The rsyncs that run; None once they are not to. Guarded by _lock.
        self._pushing: set[subprocess.Popen[str]] | None = set()

    def close(self) -> None:
        """Ends what is on its way."""
        with self._lock:
            running, self._pushing = self._pushing or set(), None
        for process in running:
            process.kill()
        if self._zip is not None:
            self._zip.close()

    def begin(self, line: AgentLine, target: RsyncTarget | None, tasks: int) -> None:
        """Has it brought to an agent, which says `begun` once it is there. `target`: where rsync may send it. Blocks
        while a zip file goes out. Raises OSError where the directory cannot be read."""
        if not self._sync:
            self._begin(line, self._folder or self._request.working_dir, tasks)
        elif target is not None and has_rsync():
            line.send("room", folder=self._folder)  # goes on with `send`
        else:
            package = self._packed()
            size = os.fstat(package.fileno()).st_size
            where, scratch = self._folder, self._scratch
            line.send("begin", working_dir=where, files=[], package=size, tasks=tasks, scratch=scratch)
            package.seek(0)
            while piece := package.read(protocol.PIECE_BYTES):
                if not line.send_slowly("piece", data=base64.b64encode(piece).decode()):
                    return

    def send(self, line: AgentLine, target: RsyncTarget, path: str, tasks: int, failed: Callable[[str], None]) -> None:
        """The agent has made room for it at `path`: sends it there, and lets the agent begin. Does not block;
        `failed(why)` is called on another thread."""

        def push() -> None:
            why = self._pushed(rsync_command(self._request.working_dir, target, path))
            if why is None:
                self._begin(line, path, tasks)
            else:
                failed(why if why.startswith("rsync") else f"rsync: {why}")

        threading.Thread(target=push, name="rsync", daemon=True).start()

    def _begin(self, line: AgentLine, path: str, tasks: int) -> None:
        files = list(self._request.files)
        line.send("begin", working_dir=path, files=files, package=0, tasks=tasks, scratch=self._scratch)

    def _pushed(self, command: Sequence[str]) -> str | None:
        """Runs rsync to its end; why it failed."""
        with self._lock:
            if self._pushing is None:
                return "the run ends"
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    start_new_session=True,
                )
            except OSError as error:
                return error.strerror or str(error)
            self._pushing.add(process)
        try:
            said, _ = process.communicate(timeout=BEGIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_KILLED_S)
            return f"it took more than {BEGIN_S:g} s"
        finally:
            with self._lock:
                if self._pushing is not None:
                    self._pushing.discard(process)
        if not process.returncode:
            return None
        # its last line has the code of the failure, the first one why
        lines = [text.strip() for text in said.splitlines() if text.strip()]
        return lines[0] if lines else f"it ended with exit code {process.returncode}"

    def _packed(self) -> IO[bytes]:
        """It as one file, made once."""
        if self._zip is None:
            self._zip = tempfile.TemporaryFile()  # noqa: SIM115 - kept for later attempts
            pack(Path(self._request.working_dir), self._zip)
        return self._zip


def has_rsync() -> bool:
    """Whether this host has it."""
    return shutil.which("rsync") is not None


def rsync_command(folder: str, target: RsyncTarget, path: str) -> list[str]:
    """What sends the files of `folder` to `path`: those of the zip, too, but links within the folder stay links. What
    is not here any more stays there."""
    host, shell = target
    left_out = [f"--exclude={name}/" for name in sorted(LEFT_OUT)]
    kept = ["--recursive", "--links", "--copy-unsafe-links", "--perms", "--times", "--protect-args"]
    by = ["--rsh", " ".join(_quoted(word) for word in shell)]
    return ["rsync", *kept, f"--timeout={_STILL_S}", *left_out, *by, f"{folder.rstrip('/')}/", f"{host}:{path}/"]


def _quoted(word: str) -> str:
    """As rsync takes a word of --rsh apart: quotes, a doubled one in them for itself, and no backslashes."""
    return "'" + word.replace("'", "''") + "'" if any(each in word for each in " '\"") else word
