"""What an agent and its launcher say to each other: JSON, a message a line, over the agent's standard input and output.

    launcher → agent                                           agent → launcher
    room       folder                                          ready      protocol, version, host, address, pid, rsync
    begin      working_dir, files, package, tasks, scratch     room       path
    piece      data: base64 of the package                     begun
    ports      count                                           ports      numbers
    start      name, program, interpreter, stage, env          started    name, pid · refused  name, why
    terminate  name · kill  name                               line       name, text
    clear                                                      ended      name, code, error · cleared
    ping                                                       pong
    (the end of the input)                                     failed     why: of `room`, `begin`

`room` comes first where rsync is to bring the working directory; else it is there, or comes as `package` bytes of zip.

An agent that hears nothing for SILENCE_S ends, and all of its tasks with it; one that says nothing for as long is taken
for lost. The first line of either side may be preceded by what a shell or a site writes; it is skipped.
"""

from __future__ import annotations

import json
from typing import Any

#: Changes with the meaning of a message.
PROTOCOL = 2
#: Seconds between two messages of the launcher, at most; and of silence after which the other end is lost.
PING_S, SILENCE_S = 5.0, 30.0
#: Bytes of a package in one message.
PIECE_BYTES = 192 << 10
#: Characters of one message, which bounds what either end keeps of a line.
LONGEST = 4 << 20

#: The variable in which an engine says by what tasks reach the agent's host.
ADDRESS = "TENFOLD_AGENT_ADDRESS"

Message = dict[str, Any]


def written(kind: str, **members: Any) -> str:
    """The line of one message."""
    return json.dumps({"tenfold": kind, **members}) + "\n"


def read(line: str) -> tuple[str, Message] | None:
    """(kind, message); None for a line that is no message."""
    if not line.startswith('{"tenfold": "'):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return str(found.pop("tenfold")), found
