"""Updates of many variables by rows, of one optimizer with one set of numbers, as one call.

    SparseApplyAdagrad(a, …), SparseApplyAdagrad(b, …), …   ─►   one compiled loop over all, which the cores share

As _many_rows.py; the loops are those of embedding variables (_compiled/many_tables.py). Indices are copied and checked
before anything is written, so that a bad one leaves all variables as they were, and its node, run by itself, says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels import chunks, optimizer_rules
from tenfold_kernels.arrays import contiguous
from tenfold_kernels.cpu._compiled import many_rows, many_tables
from tenfold_kernels.cpu._compiled.many_rows import Job as Rows
from tenfold_kernels.cpu._compiled.many_tables import JOB_WORDS, Job
from tenfold_kernels.cpu._many_rows import Call, addresses, objects
from tenfold_kernels.cpu._many_tables import step_of
from tenfold_kernels.cpu._variables import all_locked, is_resource, variable_reader
from tenfold_kernels.cpu.state_apply import arguments_reader
from tenfold_kernels.resources.table_lines import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._many_rows import Member
    from tenfold_kernels.fusion.cache import FusionCache

#: Ops that add to rows, or take from them: descents at such a rate.
RATES = {"ScatterSub": 1.0, "ScatterAdd": -1.0, "ResourceScatterSub": 1.0, "ResourceScatterAdd": -1.0}
_LOOPS = frozenset(("momentum", "adagrad", "ftrl"))
#: Those of an optimizer.
UPDATES = frozenset(
    op for op in optimizer_rules.OPS if optimizer_rules.layout_of(op).sparse
    and optimizer_rules.layout_of(op).rule.loop in _LOOPS
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class ManyUpdates:
    """What `Group.run` is for updates of one kind, all of which have the same scalars."""

    members: tuple[Member, ...]
    #: The members whose references are the call's results.
    outputs: tuple[int, ...]
    #: Of the first member's inputs, whether the call has a reference for a value.
    refs: tuple[bool, ...]
    source: None = None

    def build(self, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
        """Inputs by position → nothing, a reference, or a tuple of references. Never blocks for machine code."""
        first = self.members[0]
        numbers_of: Callable[[Sequence[Any]], tuple[Any, ...]]
        if first.node.op in RATES:
            rate = RATES[first.node.op]
            variable_places: tuple[int, ...] = (0,)
            indices_place, gradient_place = 1, 2
            name, numbers_of = "gradient_descent", lambda inputs: (rate,)
        else:
            layout = optimizer_rules.layout_of(first.node.op)
            variable_places, indices_place, gradient_place = layout.variables, layout.indices, layout.gradient
            name = layout.rule.loop
            numbers_of = arguments_reader(first.node, layout, np.float32)
        loops = many_rows.loop("collect"), many_rows.loop("find"), many_tables.updater(name)
        resource = is_resource(first.node)
        readers = [[variable_reader(each.node) for _ in variable_places] for each in self.members]
        of_variables = [tuple(each.places[place] for place in variable_places) for each in self.members]
        of_rows = [(each.places[gradient_place], each.places[indices_place]) for each in self.members]
        given, outputs, refs = first.places, self.outputs, self.refs

        def update(inputs: Sequence[Any]) -> list[list[Any]] | None:
            addresses = [each() for each in loops]
            if not all(addresses):
                return None
            numbers = numbers_of([inputs[p].value if ref else inputs[p] for p, ref in zip(given, refs, strict=True)])
            if resource:
                found = [
                    [read(inputs[place]) for read, place in zip(each, places, strict=True)]
                    for each, places in zip(readers, of_variables, strict=True)
                ]
            else:
                found = [[inputs[place] for place in places] for places in of_variables]
            gradients = [contiguous(inputs[gradient]) for gradient, _ in of_rows]
            indices = [inputs[place] for _, place in of_rows]
            variables = [each for together in found for each in together]
            if any(each.ndim != 1 for each in indices) or len({*map(id, variables)}) < len(variables):
                return None
            with all_locked(variables):
                held = [
                    [each.buffer(exclusive=resource, rows=rows) for each in together]
                    for together, rows in zip(found, indices, strict=True)
                ]
                return found if _update(addresses, held, gradients, indices, numbers) else None

        def call(*inputs: Any) -> Any:
            try:
                found = update(inputs)
            except errors.OpError:
                found = None
            if found is None:
                return fallback(*inputs)
            results = [found[number][0] for number in outputs]
            return results[0] if len(results) == 1 else tuple(results) if results else None

        return call


def _update(
    loops: Sequence[int],
    held: Sequence[Sequence[Array]],
    gradients: Sequence[Array],
    indices: Sequence[Array],
    numbers: Sequence[Any],
) -> bool:
    """Under the locks. Whether it could be done; else nothing was."""
    collect, find, loop = loops
    at, count, columns, step = chunks.address_of, len(held), len(held[0]), step_of(len(held))
    shapes = [buffers[0].shape for buffers in held]
    for shape, buffers, grad, ids in zip(shapes, held, gradients, indices, strict=True):
        if not shape or grad.shape != ids.shape + shape[1:] or any([each.shape != shape for each in buffers[1:]]):
            return False
    ends = np.cumsum([ids.size for ids in indices], dtype=np.int64)
    rows, limits = np.empty(int(ends[-1]), np.int64), np.array([shape[0] for shape in shapes], np.int64)
    # others may write to indices meanwhile: those that are checked are those that are used
    collected = Call(count, indices[0])
    for cell, array in ((Rows.IDS, objects(indices)), (Rows.ENDS, ends), (Rows.OUT, rows), (Rows.COUNTS, limits)):
        collected.name(cell, array)
    if not collected.run(collect, step, count):
        return False
    found = addresses(find, [each for buffers in held for each in buffers] + list(gradients))
    places, widths = found[columns * count :], np.array([math.prod(shape[1:]) for shape in shapes], np.int64)
    tables, chosen = np.zeros((count, len(Table)), np.int64), np.arange(count)
    tables[:, Table.LIMIT] = limits
    tables[:, Table.WEIGHTS : Table.WEIGHTS + columns] = found[: columns * count].reshape(count, columns)
    job = np.zeros(JOB_WORDS, np.int64)
    job[Job.TABLES], job[Job.ENDS], job[Job.COUNT] = at(tables), at(ends), count
    job[Job.ROWS], job[Job.TOTAL], job[Job.STEP] = at(rows), rows.size, step
    job[Job.CHOSEN], job[Job.CHOICES] = at(chosen), count
    job[Job.GRADIENTS], job[Job.WIDTHS] = at(places), at(widths)
    job[Job.NUMBERS : Job.NUMBERS + len(numbers)].view(np.float64)[:] = numbers
    chunks.run(loop, job, -(-count // step))
    return True
