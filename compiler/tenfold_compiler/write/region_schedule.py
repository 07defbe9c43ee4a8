"""In which order the regions of a program run: fixed by build.py, followed by services/worker/static_executor.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import CUT_OPS, UPDATE_OPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.waiting import Waiting

    from .generated_code import GeneratedCode


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an execution needs from elsewhere, mostly a tensor: the driver gets it and calls `arrived(token, …)`."""

    token: Any
    key: str
    #: Not received but awaited: the result of the kernel of `node`, which `arrived` takes as the kernel returns it.
    waiting: Waiting | None = None
    node: PartNode | None = None


@dataclass(frozen=True, slots=True)
class AwaitedNode:
    """A node whose kernel may have to wait. It runs in one region, its outputs belong to another."""

    node: PartNode
    #: Where its region leaves what the kernel returned.
    slot: int
    #: Where its outputs belong, and the region that waits for them.
    outputs: tuple[int, ...]
    region: int


@dataclass(frozen=True, slots=True)
class RegionSchedule:
    """In which order the regions of a program run, as far as it is known beforehand. Regions by index."""

    #: Per region: how many tensors and regions it waits for.
    waits: tuple[int, ...]
    #: Regions that wait for nothing.
    first: tuple[int, ...]
    #: Per region: the regions that wait for it.
    successors: tuple[tuple[int, ...], ...]
    #: What the step receives from its beginning on; the token is (slot, region).
    wanted: tuple[Wanted, ...]
    #: Per region: the nodes run in it that may have to wait. Empty when the program has none.
    starts: tuple[tuple[AwaitedNode, ...], ...] = ()
    #: Per region: what the step receives once the region has run. Empty when there is none.
    asks: tuple[tuple[Wanted, ...], ...] = ()
    #: Regions with updates of variables, if there are several updates: a save has all of them or none.
    updates: frozenset[int] = frozenset()


def schedule(
    regions: Sequence[Region], region_of: Sequence[int], generated: GeneratedCode, keys: Mapping[int, str]
) -> RegionSchedule:
    """The schedule of these regions. By node: `region_of` has its region, `keys` the rendezvous key of a Recv."""
    waits = tuple(len(region.after) + len(region.recvs) + len(region.awaited) for region in regions)
    successors: list[list[int]] = [[] for _ in regions]
    for region in regions:
        for before in sorted(region.after):
            successors[before].append(region.index)
    starts = tuple(
        tuple(AwaitedNode(node, *generated.awaited_slots[node.index], region_of[node.index]) for node in region.starts)
        for region in regions
    )

    def wanted(node: PartNode) -> Wanted:
        return Wanted((generated.slot_of[node.index], region_of[node.index]), keys[node.index])

    asks = tuple(tuple(map(wanted, region.asks)) for region in regions)
    asked = {node.index for region in regions for node in region.asks}
    return RegionSchedule(
        waits=waits,
        first=tuple(index for index, count in enumerate(waits) if not count),
        successors=tuple(map(tuple, successors)),
        wanted=tuple(wanted(node) for region in regions for node in region.recvs if node.index not in asked),
        starts=starts if any(starts) else (),
        asks=asks if any(asks) else (),
        updates=_updates(regions),
    )


def _updates(regions: Sequence[Region]) -> frozenset[int]:
    nodes = [(region.index, node) for region in regions for node in region.nodes]
    found = [index for index, node in nodes if UPDATE_OPS.match(node.op) and any(map(_is_shared, node.input_types))]
    # a save beside its own step's updates would wait for itself
    saves = any(node.op in CUT_OPS for _, node in nodes)
    return frozenset(found) if len(found) > 1 and not saves else frozenset()


def _is_shared(dtype: DType) -> bool:
    return dtype.is_ref_dtype or dtype.base_dtype is dtypes.resource
