"""Whether a port of this machine can be had and, if not, who listens there: read from /proc, where there is one.

Used wherever something of ours listens: the control service, a task, the commands. Of processes of other users the
system does not tell which sockets they hold; then it stays open who it is.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

#: The state of a listening socket in /proc/net/tcp.
_LISTEN = "0A"
#: Characters of a command line in a message.
_CHARACTERS = 100


def refusal(port: int, host: str = "127.0.0.1") -> str:
    """Why nobody can listen at that address now, as `taken` words it; empty: one can. Listens there for a moment."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        return taken(error, port)
    return ""


def taken(error: OSError, port: int) -> str:
    """Why the system refused to let us listen on `port`, with the process that listens there if that is it:
    "address already in use by process 4711 (python server.py)"."""
    why = (error.strerror or str(error)).lower()
    if error.errno != errno.EADDRINUSE:
        return why
    return f"{os.strerror(errno.EADDRINUSE).lower()} by {listener(port) or 'another process'}"


def listener(port: int, proc: Path = Path("/proc")) -> str | None:
    """ "process 4711 (python server.py)"; None where nobody listens, or nobody tells who."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    if not sockets:
        return None
    for folder in proc.glob("[0-9]*"):
        try:
            if any(os.readlink(each) in sockets for each in (folder / "fd").iterdir()):
                return f"process {folder.name} ({_command(folder)})"
        except OSError:
            continue  # it has ended, or belongs to another user
    return None


def _listening(port: int, proc: Path) -> list[str]:
    """The inodes of the sockets that listen on `port`."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.append(fields[9])
    return found


def _command(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        words = []
    text = b" ".join(words).decode("utf-8", "replace") or "unknown"
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
