"""How many steps a task has run a part of, whoever ran it: its worker, or a caller's thread in its process.

Counted by worker/graph_manager.py, master/caller_steps.py and master/caller_cluster_steps.py; read by figures.py.
"""

from __future__ import annotations


class StepCount:
    """Of one task. Any thread adds to `steps`; as with tenfold_core.traffic, a lost count does no harm."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0
