"""The pools of one task: what runs its long programs, what works on its large graphs, what waits for its files.

A server takes what makes them (`TaskServer(pools=…)`): `pools_of` makes those on threads of this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .file_pool import FilePool
from .step_pool import GraphPool, StepPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..limits import Limits


class Pools(NamedTuple):
    """Those of a task, shared by its worker's guests."""

    steps: StepPool
    graphs: GraphPool
    files: FilePool


#: Makes the pools of a task.
MakePools: TypeAlias = "Callable[[str, Limits], Pools]"


def pools_of(task: str, limits: Limits) -> Pools:
    """On threads of this process."""
    return Pools(StepPool(task, limits), GraphPool(task, limits), FilePool(task, limits))
