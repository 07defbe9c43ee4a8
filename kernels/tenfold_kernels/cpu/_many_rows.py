"""Nodes of one kind that do not wait for each other, as one call: rows of many variables gathered, ids of many columns
told apart, gradients added up by id.

    GatherV2(a, ids_a), GatherV2(b, ids_b), …   ─►   one compiled loop over all, which the cores share

A kernel of its own for each of 200 small tables costs more than what it does, and one core does it. The worker groups
the nodes (tenfold_compiler/fuse/alike.py); here they become a call that gives the same bits: where something is not as
it should be, or the loops are not loaded yet, it runs the nodes, `fallback`, and the one that fails says so. Loops:
_compiled/many_rows.py; the updates: _many_updates.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels import chunks
from tenfold_kernels.cpu._compiled import many_rows
from tenfold_kernels.cpu._compiled.many_rows import Job
from tenfold_kernels.cpu._many_tables import step_of
from tenfold_kernels.cpu._variables import all_locked, is_resource, variable_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.registry import KernelNode

#: Indices of a piece of a gather.
_PIECE = 1024
#: Of sums by id: what has so many elements, and more than all others, is shared by the threads if it is alone.
_LARGE = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One node, and where the call has its inputs."""

    node: KernelNode
    places: tuple[int, ...]


#: (inputs of the call) → the results of each member by its ports; None where the nodes have to do it themselves.
_Work: TypeAlias = "Callable[[Sequence[Any]], Sequence[Sequence[Any]] | None]"


@dataclass(frozen=True, slots=True, eq=False)
class ManyRows:
    """What `Group.run` is for members of one kind; `outputs` are its results, by member and port."""

    #: Of _WORKS.
    loop: str
    members: tuple[Member, ...]
    outputs: tuple[tuple[int, int], ...]
    source: None = None

    def build(self, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
        """Inputs by position → a result, or a tuple of them. Never blocks for machine code."""
        work = _WORKS[self.loop](self.members)
        outputs, is_one = self.outputs, len(self.outputs) == 1

        def call(*inputs: Any) -> Any:
            try:
                made = work(inputs)
            except errors.OpError:
                made = None
            if made is None:
                return fallback(*inputs)
            return made[outputs[0][0]][outputs[0][1]] if is_one else tuple([made[n][port] for n, port in outputs])

        return call


def objects(arrays: Sequence[Any]) -> Array:
    """Where they are. The caller keeps them."""
    return np.array(list(map(id, arrays)), np.int64)


def addresses(finder: int, arrays: Sequence[Array]) -> Array:
    """Where each array's elements begin. `finder` is the address of many_rows.find."""
    named, found = objects(arrays), np.empty(len(arrays), np.int64)
    job = np.zeros(len(Job), np.int64)
    job[Job.COUNT], job[Job.DATA], job[Job.OUT] = len(arrays), chunks.address_of(named), chunks.address_of(found)
    chunks.run(finder, job, 1)
    return found


class Call:
    """A job of one of the loops, and all that it names."""

    def __init__(self, count: int, ids: Array) -> None:
        self.job, self._bad = np.zeros(len(Job), np.int64), np.zeros(1, np.int64)
        self.job[Job.COUNT], self.job[Job.WIDE] = count, ids.itemsize == 8
        self._held: list[Any] = [self._bad]
        self.job[Job.BAD] = chunks.address_of(self._bad)

    def name(self, cell: Job, array: Array) -> None:
        self._held.append(array)
        self.job[cell] = chunks.address_of(array)

    def run(self, address: int, step: int, total: int) -> bool:
        """Whether all was well."""
        self.job[Job.STEP] = step
        chunks.run(address, self.job, -(-total // step))
        return not self._bad[0]


def _gathers(members: Sequence[Member]) -> _Work:
    loop = many_rows.loop("gather")
    resource = is_resource(members[0].node)
    readers = [variable_reader(each.node) for each in members]
    of_tables, of_ids = ([each.places[n] for each in members] for n in (0, 1))

    def gather(tables: Sequence[Array], indices: Sequence[Array]) -> Any:
        if not all([table.ndim for table in tables]):
            return None
        dtype = tables[0].dtype
        ends = np.cumsum([ids.size for ids in indices], dtype=np.int64)
        total = int(ends[-1])
        # of more rows than a table has: a step may ask for what no memory holds
        for table, ids in zip(tables, indices, strict=True):
            if ids.size > _PIECE:
                allow((*ids.shape, *table.shape[1:]), dtype)
        outs = [np.empty(ids.shape + table.shape[1:], dtype) for table, ids in zip(tables, indices, strict=True)]
        made = Call(len(outs), indices[0])
        made.job[Job.ITEM] = dtype.itemsize
        for cell, arrays in ((Job.DATA, tables), (Job.IDS, indices), (Job.OUT, outs)):
            made.name(cell, objects(arrays))
        made.name(Job.ENDS, ends)
        return [(out,) for out in outs] if made.run(loop(), _PIECE, total) else None

    def work(inputs: Sequence[Any]) -> Any:
        if not loop():
            return None
        indices = [inputs[place] for place in of_ids]
        if not resource:
            return gather([inputs[place] for place in of_tables], indices)
        variables = [read(inputs[place]) for read, place in zip(readers, of_tables, strict=True)]
        with all_locked(variables):
            return gather([each.value for each in variables], indices)

    return work


def _distincts(members: Sequence[Member]) -> _Work:
    loop = many_rows.loop("distinct")
    dtype = members[0].node.output_types[1].as_numpy_dtype
    places = [each.places[0] for each in members]

    def work(inputs: Sequence[Any]) -> Any:
        address = loop()
        values = [inputs[place] for place in places]
        if not address or any([each.ndim != 1 for each in values]):
            return None
        sizes = [each.size for each in values]
        ends = np.cumsum(sizes, dtype=np.int64)
        slots = np.cumsum([1 << (2 * size).bit_length() for size in sizes], dtype=np.int64)
        found, counts = np.empty(int(ends[-1]), np.int64), np.zeros(len(values), np.int64)
        outs = [np.empty(size, dtype) for size in sizes]
        made = Call(len(outs), values[0])
        made.job[Job.OUT_WIDE] = outs[0].itemsize == 8
        for cell, array in (
            (Job.IDS, objects(values)), (Job.OUT, objects(outs)), (Job.ENDS, ends), (Job.FOUND, found),
            (Job.COUNTS, counts), (Job.SLOT_ENDS, slots), (Job.TABLE, np.empty(int(slots[-1]), np.int32)),
        ):  # fmt: skip
            made.name(cell, array)
        if not made.run(address, step_of(len(outs)), len(outs)):
            return None
        begins = (ends - sizes).tolist()
        return [
            (found[begin : begin + count].astype(values[0].dtype), out)
            for begin, count, out in zip(begins, counts.tolist(), outs, strict=True)
        ]

    return work


def _sums(members: Sequence[Member]) -> _Work:
    loop = many_rows.loop("add_up")
    of_data, of_ids, of_counts = ([each.places[n] for each in members] for n in (0, 1, 2))

    def work(inputs: Sequence[Any]) -> Any:
        address = loop()
        if not address:
            return None
        data, indices = [inputs[place] for place in of_data], [inputs[place] for place in of_ids]
        outs, sizes = [], []
        for rows, ids, place in zip(data, indices, of_counts, strict=True):
            count = inputs[place]
            if count.ndim or ids.ndim != 1 or not rows.ndim or len(rows) != ids.size:
                return None
            limit = count.item()
            if not 0 < limit <= ids.size:
                return None
            outs.append(np.empty((limit, *rows.shape[1:]), rows.dtype))
            sizes.append(rows.size)
        if max(sizes) > _LARGE and 2 * max(sizes) > sum(sizes):
            return None
        made = Call(len(outs), indices[0])
        for cell, arrays in ((Job.DATA, data), (Job.IDS, indices), (Job.OUT, outs)):
            made.name(cell, objects(arrays))
        return [(out,) for out in outs] if made.run(address, step_of(len(outs)), len(outs)) else None

    return work


_WORKS: dict[str, Callable[[Sequence[Member]], _Work]] = {"gather": _gathers, "distinct": _distincts, "add_up": _sums}
