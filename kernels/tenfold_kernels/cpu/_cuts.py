"""What a save has of one task's state is of one moment: all variables and tables are locked together, and copied.

The moment is one when no step is between two of its updates (resources/unfinished_steps.py). Locks are taken as updates
take them: variables in the order of their ids, and then tables. Large variables and tables are read later, in pieces,
as they were then (resources/read_in_pieces.py, resources/kept_rows.py). Used by the kernels of saves, io_checkpoint.py,
embedding.py and embedding_increments.py; decision 0197.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.variable_memory import lend
from tenfold_kernels.cpu._variables import locked, variable_of
from tenfold_kernels.cpu.work_queue import WORK_QUEUE, queue_of
from tenfold_kernels.resources.read_in_pieces import ReadInPieces, prepared
from tenfold_kernels.resources.state import ResourceHandle, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu.work_queue import WorkQueue
    from tenfold_kernels.registry import KernelNode
    from tenfold_kernels.resources.embedding_tables import EmbeddingTable

log = logging.getLogger(__name__)

#: What handles of embedding variables say that they are.
EMBEDDING = "EmbeddingVariable"
#: Seconds to wait for a moment when no step has made some of its updates here and not all; and then, while new steps
#: wait with theirs. Where one under way has not ended in so long, it is cut in two, with a warning.
_PATIENCE, _HELD_BACK = 5.0, 5.0


@dataclass
class Cut:
    """The state at one moment."""

    #: The tables, each with its slots by the names that they are saved under.
    tables: list[tuple[EmbeddingTable, dict[str, str]]] = field(default_factory=list)
    #: The tensors as they were given, but for variables and work queues, which have their values: parts of a variable
    #: go by the same name. See `value_of`.
    values: list[Array | ReadInPieces] = field(default_factory=list)


@contextlib.contextmanager
def cut(
    node: KernelNode,
    names: Sequence[str],
    tensors: Sequence[Array | Variable],
    embedding_of: Callable[[KernelNode, Array], tuple[EmbeddingTable, str]],
) -> Iterator[Cut]:
    """All tables and variables that a node is given to save stay as they are within the block, after what lived too
    long is evicted, by the value of `global_step`, or that of the newest update.

    Tensors may be handles, references, values that were read through references, and others. Waits for steps whose
    updates are under way, some seconds at most, and for updates.
    Raises FailedPreconditionError for a handle of what is not there.
    """
    made = Cut(values=[np.zeros(0) if isinstance(each, Variable) else each for each in tensors])
    tables: dict[int, tuple[EmbeddingTable, dict[str, str]]] = {}
    #: By place, and whether a handle named it.
    variables: dict[int, tuple[Variable, bool]] = {}
    queues: dict[int, WorkQueue] = {}
    views = {id(variable.anchor): variable for variable in node.resources.every(Variable)}
    for place, (name, value) in enumerate(zip(names, tensors, strict=True)):
        if isinstance(value, Variable):
            value.check_initialized()
            variables[place] = value, False
            continue
        handle = value[()] if value.dtype == object and not value.ndim else None
        if not isinstance(handle, ResourceHandle):
            found = views.get(id(value.base)) if value.base is not None else None
            if found is not None:
                variables[place] = found, False
        elif handle.type_name == EMBEDDING:
            table, slot = embedding_of(node, value)
            tables.setdefault(id(table), (table, {}))[1][name] = slot
        elif handle.type_name == WORK_QUEUE:
            queues[place] = queue_of(node, value)
        else:
            variables[place] = variable_of(node, value), True
    made.tables = [tables[each] for each in sorted(tables)]
    for table, _ in made.tables:
        table.shrink(_step_by_now(names, made, variables))
        table.prepare_export()
    marks = {place: prepared(variable.value) for place, (variable, _) in variables.items() if _is_here(variable)}
    with (
        node.resources.unfinished.none(_PATIENCE, _HELD_BACK) as is_whole,
        locked([*{id(variable): variable for variable, _ in variables.values()}.values()]),
        contextlib.ExitStack() as stack,
    ):
        for table, _ in made.tables:
            stack.enter_context(table.lock)
        for place, (variable, by_handle) in variables.items():
            made.values[place] = variable.begin_reading(marks.get(place)) or (
                variable.snapshot() if by_handle else _as_it_is(variable.value)
            )
        for place, queue in queues.items():
            made.values[place] = queue.works()
        yield made
    if not is_whole:
        log.warning(
            "%s saved while a step had made some of its updates on this task and not all, for %g s without a moment "
            "between steps: variables and rows are of one moment, but this save has a part of that step",
            node.name,
            _PATIENCE + _HELD_BACK,
        )


def value_of(value: Array | ReadInPieces) -> Array:
    """One of a cut's values; a large one is copied now. Once for each, and not within the cut's block."""
    return value.copy() if isinstance(value, ReadInPieces) else value


def no_embeddings(node: KernelNode, handle: Array) -> tuple[EmbeddingTable, str]:
    """For a node that is given the handles of none."""
    raise AssertionError(f"{node.name} was said to have no embedding variables")


def _is_here(variable: Variable) -> bool:
    """Whether its value is in memory that is lent, not on a GPU."""
    return variable.is_initialized and isinstance(variable.value, np.ndarray)


def _as_it_is(value: Array) -> Array:
    """The value of a reference variable whose lock is held, as it is now: a large one is lent, and the next update
    copies it."""
    lease = lend(value)
    return value.copy() if lease is None else lease.array().view(value.dtype).reshape(value.shape)


def _step_by_now(names: Sequence[str], made: Cut, variables: Mapping[int, tuple[Variable, bool]]) -> int:
    """The global step; where another task saves it, that of the newest update of any of the tables."""
    for place, name in enumerate(names):
        if name == "global_step":
            value = variables[place][0].snapshot() if place in variables else value_of(made.values[place])
            if not value.ndim:
                return int(value)
    return max(table.newest_step for table, _ in made.tables)
