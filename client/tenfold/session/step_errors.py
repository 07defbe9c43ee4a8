"""Adds to an error of a step what only the client knows: the operation, and where the program made it.

The runtime names the failing node as `{{node NAME}}` in the message. `explain` looks the name up in the session's
graph and fills `op` and `node_def`; the line that defined the operation is appended if the graph recorded it. A note
names the page that says what to do.
Called by base_session.py. Follows TF 1.15's `BaseSession._do_call` and error_interpolation.py.
"""

from __future__ import annotations

import linecache
import re
from typing import Any

from tenfold.graph.traceback import user_frames
from tenfold_core import errors
from tenfold_core.help_links import with_note

#: The node in a message: `{{node NAME}}` now, `[[Node: NAME = …]]` from servers older than TF 1.12.
_NODE_NAME = re.compile(r"\{\{node ([^}\s]+)\}\}|\[\[Node: ([^\s=\]]+)")

#: How a message begins in a session without a target: there is one task, and TensorFlow names none.
_OWN_PROCESS = "From /job:localhost/replica:0/task:0:\n"

#: Innermost frames shown; the outer ones rarely help and make the message long.
_FRAMES_SHOWN = 6


def explain(error: errors.OpError, graph: Any) -> errors.OpError:
    """An error of the same class with `op`, `node_def` and the place of definition; `error` if nothing changes."""
    if error.op is not None:
        return with_note(error)
    message = error.message.removeprefix(_OWN_PROCESS)
    operation = _failed(message, graph)
    place = "" if operation is None else definition_place(operation)
    if place:
        message = f"{message}\n\nOperation {operation.name!r} was defined at:\n{place}"
    if operation is None and message == error.message:
        return with_note(error)
    node_def = getattr(operation, "node_def", error.node_def)
    explained = errors.from_code(error.code, message, node_def, operation)
    for note in getattr(error, "__notes__", ()):
        explained.add_note(note)
    return with_note(explained)


def _failed(message: str, graph: Any) -> Any:
    """The operation that a message names. None for none, and for one that the runtime made, such as a Send."""
    found = _NODE_NAME.search(message)
    if found is None:
        return None
    try:
        return graph.get_operation_by_name(found.group(1) or found.group(2))
    except (KeyError, ValueError):
        return None


class Explained:
    """A block in which every `OpError` that leaves it is explained for `graph`. Entering is cheap."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.OpError):
            explained = explain(error, self._graph)
            if explained is not error:
                raise explained from None


def definition_place(operation: Any) -> str:
    """Lines `  File "…", line n, in f` for where `operation` was made, or "" if its graph did not record it.

    Frames inside this package are left out, so that the program's own lines stand first.
    """
    lines = []
    for filename, line, function in user_frames(operation.traceback):
        lines.append(f'  File "{filename}", line {line}, in {function}')
        source = linecache.getline(filename, line).strip()
        if source:
            lines.append(f"    {source}")
    return "\n".join(lines[-2 * _FRAMES_SHOWN :])
