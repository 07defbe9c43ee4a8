"""Where the nodes of a session are, as the control service tells it. Of answers.py's kind; made by trace_calls.py."""

from __future__ import annotations

from tenfold.control.answers import Answer, answer


@answer
class NodePlacement(Answer):
    """Where one node is."""

    name: str
    op: str
    #: The device that the program asked for, maybe a part of a name, maybe nothing.
    requested: str
    assigned: str
    #: Why, e.g. "as requested".
    reason: str


@answer
class TaskPlacement(Answer):
    """The nodes and variables on one task."""

    task: str
    nodes: int
    variables: int
    #: Of the variables whose shapes the graph tells.
    variable_bytes: int


@answer
class Placement(Answer):
    """Where a session's master has placed the nodes, in the graph's order."""

    session: str
    graph_version: int
    nodes: tuple[NodePlacement, ...]
    tasks: tuple[TaskPlacement, ...]
    #: `after` of the next page; None where there is no more.
    next: str | None
